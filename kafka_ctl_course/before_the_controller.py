"""Brokers of 2012, before there was a controller: each elects the leaders of its own replicas, by ZooKeeper's watches.

A leader is an ephemeral znode of its partition. Every broker with a replica watches it; when it is gone, each of them
reads the assignment, the ISR and the live brokers, and tries to create it. A broker handles one watch after the other,
in the thread of its ZooKeeper client.

Kafka 96ed9af (the commit before KAFKA-343, which brought the controller): server/KafkaZooKeeper.scala,
LeaderChangeListener, leaderElection, canBecomeLeader; utils/ZkUtils.scala, tryToBecomeLeaderForPartition. No release
had it; logs and records are left out here.

Separate from `lesson_23.py` because the notebook runs it, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from kafka_ctl.errors import BadInput, ConnectionLoss, SessionExpired
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.memory.server import MemorySession, MemoryStore
from kafka_ctl.zookeeper.store import Children, Create, Exists, Get, Op, Result, Set, WatchedEvent

SESSION = 6.0
"""Seconds until a session times out."""
PREFERRED_WAIT = 0.3
"""Seconds that a replica waits for a preferred one that is alive (`preferred.replica.wait.time`)."""
NODE_EXISTS = "NODEEXISTS"


class Load(NamedTuple):
    """Fired watches and operations at ZooKeeper since something happened, and how long elections took, in seconds."""

    watches: int
    operations: int
    seconds: float


def can_become_leader(broker: int, assigned: Sequence[int], isr: Sequence[int], live: Sequence[int]) -> bool:
    """True if a replica may try to lead: it is in the ISR, or no member of the ISR is alive."""
    return broker in isr or (broker in assigned and not set(isr) & set(live))


class EarlyBroker:
    """One broker: its session, the partitions that it believes it leads, and its counts."""

    def __init__(self, cluster: EarlyCluster, id: int) -> None:
        self.cluster, self.id = cluster, id
        self.leads: set[int] = set()
        self.watches = self.operations = self.tries = 0
        self.done = 0.0
        """The time of its last election."""
        self.session: MemorySession
        self._known: set[int] = set()
        self._fired_for: asyncio.Queue[str] = asyncio.Queue()

    async def start(self) -> None:
        """Register, then lead or watch every partition that has a replica here."""
        store = self.cluster.store
        self.session = await store.connect(f"broker-{self.id}", SESSION, self._fired, lambda state: None)
        await self._ask(Create(f"/brokers/ids/{self.id}", ephemeral=True))
        await self._look()
        self.cluster.clock.spawn(self._listen())

    async def _look(self) -> None:
        """Read the names of all partitions, and the assignment of each new one; watch those with a replica here."""
        names = (await self._ask(Children("/partitions", watch=True))).value
        assert isinstance(names, list)
        for number in sorted({int(name) for name in names} - self._known):
            self._known.add(number)
            if self.id in _numbers((await self._ask(Get(f"/partitions/{number}"))).data):
                await self._watch(number)

    async def _ask(self, op: Op) -> Result:
        self.operations += 1
        (answer,) = await self.session.send([op])
        return answer

    def _fired(self, event: WatchedEvent) -> None:
        self.watches += 1
        self._fired_for.put_nowait(event.path)

    async def _listen(self) -> None:
        with suppress(SessionExpired, ConnectionLoss):
            while True:
                path = await self._fired_for.get()
                await (self._look() if path == "/partitions" else self._watch(int(path.split("/")[-2])))

    async def _watch(self, number: int) -> None:
        """Watch the leader of a partition (again: a watch fires once); without a leader, hold an election."""
        if (await self._ask(Exists(leader_path(number), watch=True))).error is not None:
            await self._elect(number)
            self.done = self.cluster.clock.now()

    async def _elect(self, number: int) -> None:
        assigned = _numbers((await self._ask(Get(f"/partitions/{number}"))).data)
        isr = _numbers((await self._ask(Get(f"/partitions/{number}/isr"))).data)
        names = (await self._ask(Children("/brokers/ids"))).value
        assert isinstance(names, list)
        live = [int(name) for name in names]
        if not can_become_leader(self.id, assigned, isr, live):
            return
        if self.id != assigned[0] and assigned[0] in live:
            await self.cluster.clock.sleep(PREFERRED_WAIT)
        await self._ask(Get(f"/partitions/{number}/isr"))  # the epoch
        self.tries += 1
        created = await self._ask(Create(leader_path(number), str(self.id).encode(), ephemeral=True))
        if created.error == NODE_EXISTS:
            await self._ask(Get(leader_path(number)))
            return
        self.leads.add(number)
        data = (await self._ask(Get(f"/partitions/{number}/isr"))).data
        await self._ask(Set(f"/partitions/{number}/isr", data))  # in any version: there is no condition


class EarlyCluster:
    """Brokers without a controller, with three replicas of each partition; one ZooKeeper on virtual time.

    Raises BadInput for fewer than three brokers, or no partition.
    """

    def __init__(self, brokers: int, partitions: int) -> None:
        if brokers < 3 or partitions < 1:
            raise BadInput(f"{brokers} brokers and {partitions} partitions; at least 3 and 1 are needed")
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock, Recorder(self.clock.now))
        self.assignment = [[(first + step) % brokers + 1 for step in range(3)] for first in range(partitions)]
        self.brokers = {id: EarlyBroker(self, id) for id in range(1, brokers + 1)}
        self.clock.run(self._begin())
        self.clock.run_for(10 * SESSION)

    async def _begin(self) -> None:
        self.tool = await self.store.connect("tool", SESSION, lambda event: None, lambda state: None)
        await self.tool.send([Create("/brokers"), Create("/brokers/ids"), Create("/partitions")])
        for number in range(len(self.assignment)):
            await self._write(number)
        await asyncio.gather(*(broker.start() for broker in self.brokers.values()))

    async def _write(self, number: int) -> None:
        text = ",".join(map(str, self.assignment[number])).encode()
        path = f"/partitions/{number}"
        await self.tool.send([Create(path, text), Create(f"{path}/isr", text)], window=2)

    def create(self) -> Load:
        """Create one more partition, with replicas on brokers 1, 2 and 3."""
        self.assignment.append([1, 2, 3])
        return self._measured(None, lambda: self.clock.run(self._write(len(self.assignment) - 1)))

    def kill(self, id: int) -> Load:
        """End a broker's process; the load when its session has ended and all elections are over."""
        return self._measured(self.brokers[id], self.brokers[id].session.abandon)

    def cut_off(self, id: int) -> Load:
        """Cut a broker off from ZooKeeper: it goes on as before, and its session ends."""
        return self._measured(self.brokers[id], lambda: self.store.cut_off(f"broker-{id}", False, False))

    def _measured(self, lost: EarlyBroker | None, begin: Callable[[], object]) -> Load:
        others = [broker for broker in self.brokers.values() if broker is not lost]
        before = sum(b.watches for b in others), sum(b.operations for b in others)
        began = self.clock.now() + (SESSION if lost else 0)
        begin()
        self.clock.run_for(10 * SESSION)
        seconds = max(0.0, max(broker.done for broker in others) - began)
        watches, operations = sum(b.watches for b in others), sum(b.operations for b in others)
        return Load(watches - before[0], operations - before[1], round(seconds, 4))

    def believed(self, number: int) -> list[int]:
        """The brokers that believe that they lead a partition."""
        return [id for id, broker in self.brokers.items() if number in broker.leads]

    def close(self) -> None:
        """End everything."""
        self.clock.close()


def leader_path(number: int) -> str:
    """The path of the znode that names the leader of a partition."""
    return f"/partitions/{number}/leader"


def _numbers(data: bytes) -> list[int]:
    return [int(each) for each in data.decode().split(",")]
