"""What can go wrong in a lab: every fault is a command, recorded as kind `fault`.

    process      kill start bounce shutdown pause (broker_commands.py) lag catch_up slow fail_log_dir
    network      disconnect delay lose heal
    ZooKeeper    expire_session stop_zookeeper start_zookeeper
    operators    delete_controller write_znode delete_znode

The network is the one between brokers and the one to ZooKeeper. `heal` ends every fault that can be ended without
starting a process.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import cast

from kafka_ctl.brokers.broker import DOWN as STOPPED
from kafka_ctl.brokers.dynamic_configs import CHANGES
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.broker_commands import ProcessFaults
from kafka_ctl.lab.commands import command
from kafka_ctl.lab.draw import PARTITIONS, Drawn, with_
from kafka_ctl.lab.menu import (
    BROKER,
    CLUSTER,
    MEMORY,
    SECONDS,
    WHEN_UP,
    ZOOKEEPER,
    Button,
    Call,
    Field,
    Given,
)
from kafka_ctl.simulation.world import MemoryWorld
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.memory.session import AFTER, BEFORE, DOWN, READ_TIMEOUT_FRACTION, UP, MemorySession
from kafka_ctl.zookeeper.store import Create, Delete, Set
from kafka_ctl.zookeeper.znodes import ControllerZNode

OTHER = Field("other", "Broker, or zookeeper", "text", "zookeeper", menu.end)
LOST = Field("way", "Lost is", "choice", "both ways|only what it sends|only what it receives")
BREAKS = Field("when", "Breaks", "choice", "before it arrives|after it is applied")
PATH = Field("path", "Path", "text", "/controller")


def _cut(broker: str, given: Given) -> Call:
    ends, direction = (int(broker), menu.end(given, "other")), LOST.choice(given)
    return (ends[::-1] if direction == "only what it receives" else ends), {} if direction == "both ways" else {
        "one_way": True
    }


def _lose(broker: str, given: Given) -> Call:
    after = BREAKS.choice(given) == "after it is applied"
    return (int(broker), menu.end(given, "other")), {"applied": True} if after else {}


class Faults(ProcessFaults):
    """The faults that a lab can inject, and `heal`, which ends them."""

    @command(
        Button(BROKER, "Expire session", "ZooKeeper expires its session although it is alive", when=WHEN_UP),
        drawn=Drawn(4, lambda d: with_(d.broker())),
    )
    def expire_session(self, broker: int) -> None:
        """Make ZooKeeper expire the session of a broker that is alive."""
        process = self._broker(broker, "expire_session", running=True)
        session = process.zk.session
        if session is None:
            raise BadInput(f"broker {broker} has no session with ZooKeeper at the moment")
        self._fault("expire_session", broker, lambda: self._world.expire(session))

    @command(
        Button(BROKER, "Lag…", "its replica of a partition falls behind and leaves the ISR",
               (Field("partition", "Partition", "partition"),), WHEN_UP,
               lambda broker, given: ((int(broker), *menu.partition(given.get("partition", ""))), {})),
        drawn=Drawn(3, lambda d: with_(d.broker(), d.topic(), d.rng.randrange(PARTITIONS))),
    )  # fmt: skip
    def lag(self, broker: int, topic: str, partition: int) -> None:
        """Let a follower fall behind: after `replica.lag.time.max.ms` its leader takes it out of the ISR."""
        process, known = self._broker(broker, "lag", running=True), self.partition(topic, partition)
        tp = TopicPartition(topic, partition)
        if broker not in known.replicas:
            raise UnknownName(f"replica of {tp} on broker", broker, known.replicas)

        def fall_behind() -> None:
            process.as_follower.fall_behind(tp)
            wait = self._world.config["replica.lag.time.max.ms"] / 1000 * 1.5
            self._world.clock.spawn(self._world.clock.sleep(wait))  # so that settle waits for the leader to notice

        self._fault("lag", broker, fall_behind, topic=topic, partition=partition)

    @command(
        Button(BROKER, "Catch up", "its replicas catch up with their leaders", when=WHEN_UP),
        drawn=Drawn(2, lambda d: with_(d.broker())),
    )
    def catch_up(self, broker: int) -> None:
        """Let a follower that fell behind keep up again in all partitions."""
        process = self._broker(broker, "catch_up", running=True)

        def act() -> None:
            for tp in list(process.as_follower.lagging):
                process.as_follower.catch_up(tp)

        self._fault("catch_up", broker, act)

    @command(
        Button(BROKER, "Slow fetches…", "its replicas fetch that much later; too late, and they leave the ISR",
               (SECONDS,), WHEN_UP),
        drawn=Drawn(1, lambda d: with_(d.broker(), d.seconds(15))),
    )  # fmt: skip
    def slow(self, broker: int, seconds: float) -> None:
        """Let everything that a follower fetches take so much longer, until `heal`, or with 0 no longer.

        When that is longer than `replica.lag.time.max.ms` it leaves the ISRs, catches up, and leaves them again.
        """
        process, wait = self._broker(broker, "slow", running=True), validate.seconds("a delay", seconds)
        self._fault("slow", broker, lambda: process.as_follower.set_fetch_delay(wait), detail=details.delay(wait))

    @command(
        Button(BROKER, "Disk fails", "one of its two log directories fails", when=WHEN_UP),
        drawn=Drawn(1, lambda d: with_(d.broker())),
    )
    def fail_log_dir(self, broker: int) -> None:
        """Let one of the broker's two log directories fail: the copies in it are gone until the broker starts again.

        A broker whose last directory fails stops; in 0.10 it stops when the first one does.
        """
        process = self._broker(broker, "fail_log_dir", running=True)
        self._fault("fail_log_dir", broker, process.replicas.fail_log_dir)

    # The network

    @command(
        Button(BROKER, "Network partition…", "it and another broker, or ZooKeeper, no longer reach one another",
               (OTHER, LOST), WHEN_UP, _cut),
        drawn=Drawn(3, lambda d: with_(*d.pair(zookeeper=True), one_way=d.maybe(0.5))),
    )  # fmt: skip
    def disconnect(self, source: int | str, target: int | str, one_way: bool = False) -> None:
        """Cut the connection between two brokers, or between a broker and `zookeeper`, until `heal`.

        With `one_way`, only what `source` sends is lost. What meets a cut is sent again until it comes through or is
        given up: a broker that receives nothing from ZooKeeper gives the connection up after a while, and ZooKeeper
        expires a session without a heartbeat for its timeout.
        """
        one, other = self._ends(source, target, "disconnect")
        first = one if one is not None else other

        def cut() -> None:
            if one is not None and other is not None:
                self._world.network.cut(one, other)
                if not one_way:
                    self._world.network.cut(other, one)
            else:
                sends, receives = self._require_memory_world("disconnect").store.cut.get(
                    f"broker-{first}", (True, True)
                )
                sends &= one_way and one is None
                receives &= one_way and one is not None
                self._require_memory_world("disconnect").store.cut_off(f"broker-{first}", sends, receives)

        if one is None or other is None:
            self._require_memory_world("disconnect from ZooKeeper")
        detail = details.link(source, target, one_way)
        self._fault("disconnect", first, cut, detail=detail)

    @command(
        Button(BROKER, "Network delay…", "what it sends to another broker, or to ZooKeeper, takes longer",
               (OTHER._replace(label="To broker, or zookeeper", default="1"), SECONDS._replace(default="2")), WHEN_UP),
        drawn=Drawn(3, lambda d: with_(*d.pair(zookeeper=True), d.seconds(3.9))),
    )  # fmt: skip
    def delay(self, source: int | str, target: int | str, seconds: float) -> None:
        """Make everything that one broker sends to another, or to or from `zookeeper`, so much slower, until `heal`.

        What is slower than a client of ZooKeeper waits for is a cut; BadInput says so.
        """
        (one, other), wait = self._ends(source, target, "delay"), validate.seconds("a delay", seconds)
        first = one if one is not None else other
        if one is None or other is None:
            store = self._require_memory_world("delay").store
            most = self._world.config["zookeeper.session.timeout.ms"] / 1000 * READ_TIMEOUT_FRACTION
            if wait >= most:
                raise BadInput(f"a delay of ZooKeeper cannot be {wait:g}; from {most:g} s on it is a cut: disconnect")
            direction = f"broker-{first}", DOWN if one is None else UP
            slow_down: Callable[[], object] = functools.partial(store.slow.__setitem__, direction, wait)
        else:
            slow_down = functools.partial(setattr, self._world.network.link(one, other), "delay", wait)
        self._fault("delay", first, slow_down, detail=f"{source} -> {target} {details.delay(wait)}")

    @command(
        Button(BROKER, "Lose a request…", "its connection breaks at its next request or write", (OTHER, BREAKS),
               WHEN_UP, _lose),
        drawn=Drawn(4, lambda d: with_(d.broker(), *d.pair(zookeeper=True)[1:], applied=d.maybe(0.5))),
    )  # fmt: skip
    def lose(self, source: int, target: int | str, applied: bool = False) -> None:
        """Break a connection at the next request of `source` (the next write, if `target` is `zookeeper`).

        It breaks before the request was handled or, with `applied`, after that, so that only the answer is lost. The
        sender connects again and sends the same again.
        """
        process = self._broker(source, "lose", running=True)
        _, to = self._ends(source, target, "lose")
        session = process.zk.session
        if to is not None:
            what = "answer" if applied else "request"
            act = functools.partial(setattr, self._world.network.link(source, to), "loses", what)
        elif isinstance(session, MemorySession):
            act = functools.partial(setattr, session, "fails_next_write", AFTER if applied else BEFORE)
        else:
            raise BadInput("lose needs the memory world, and a broker with a session")
        self._fault("lose", source, act, detail=f"{source} -> {target} {'applied' if applied else 'not applied'}")

    @command(Button(CLUSTER, "Heal", "pauses, network faults and lags end", rank=1), drawn=Drawn(6))
    def heal(self) -> None:
        """End pauses, cuts, delays and losses, let followers keep up, and ZooKeeper answer; the dead stay dead."""

        def end_faults() -> None:
            world = self._world
            world.network.heal()
            if isinstance(world, MemoryWorld):
                world.store.heal()
            for process in world.brokers.values():
                process.as_follower.set_fetch_delay(0.0)
                if process.state != STOPPED:
                    process.resume(CAUSE.get())
                    for tp in list(process.as_follower.lagging):
                        process.as_follower.catch_up(tp)
                    process.as_follower.fetch_again()

        self._fault("heal", None, end_faults)

    # ZooKeeper

    @command(
        Button(ZOOKEEPER, "Stop", "it answers no request; no session expires meanwhile", needs=MEMORY),
        drawn=Drawn(1),
    )
    def stop_zookeeper(self) -> None:
        """Let ZooKeeper not answer any more, until `start_zookeeper` or `heal`; no session expires meanwhile."""
        self._needs_zookeeper("stop_zookeeper")
        self._fault("stop_zookeeper", None, self._require_memory_world("stop_zookeeper").store.stop)

    @command(Button(ZOOKEEPER, "Start", "it answers again", needs=MEMORY), drawn=Drawn(1))
    def start_zookeeper(self) -> None:
        """Let ZooKeeper answer again."""
        store = self._require_memory_world("start_zookeeper").store
        if store.up:
            raise BadInput("start_zookeeper: ZooKeeper is up")
        self._fault("start_zookeeper", None, store.start)

    # Operators

    @command(
        Button(ZOOKEEPER, "Delete /controller", "the controller resigns, and a new one is elected", rank=-1),
        drawn=Drawn(2),
    )
    def delete_controller(self) -> None:
        """Remove `/controller` by hand, as an operator might: the controller resigns and all compete again."""
        self._write("delete_controller", Delete(ControllerZNode.path()))

    @command(
        Button(ZOOKEEPER, "Write a znode…", "write any data to a znode, by hand",
               (PATH, Field("data", "Data", "text", read=menu.as_written)), rank=-1)
    )  # fmt: skip
    def write_znode(self, path: str, data: object) -> None:
        """Write a znode by hand, whatever belongs there; it is made if it is missing and its parent is not.

        `data` is its text; a mapping or a list is written as JSON.
        """
        validate.name("a path", path)
        text = json.dumps(data, separators=(",", ":")) if isinstance(data, (dict, list)) else str(data)
        content = validate.utf8("the content of a znode", text).encode()
        self._write("write_znode", Set(path, content), Create(path, content))

    @command(Button(ZOOKEEPER, "Delete a znode…", "delete any znode, by hand", (PATH,), rank=-1))
    def delete_znode(self, path: str) -> None:
        """Delete a znode by hand."""
        self._write("delete_znode", Delete(validate.name("a path", path)))

    def _write(self, name: str, op: Set | Delete, otherwise: Create | None = None) -> None:
        async def write() -> None:
            zk = await self._admin.zk()
            if op.path.startswith(CHANGES):
                self._world.watch_configs()
            answer = await zk.write(op)
            if answer.error == "NONODE" and otherwise is not None:
                answer = await zk.write(otherwise)
            if answer.error is not None:
                raise BadInput(f"{name}: ZooKeeper answers {answer.error} for {op.path}")

        self._ask(write, name, path=None if name == "delete_controller" else op.path)

    def _ends(self, source: int | str, target: int | str, asked: str) -> tuple[int | None, int | None]:
        """Both ends of a connection: a broker's id, or None for ZooKeeper."""
        one, other = (None if end == ZOOKEEPER else self._known(cast("int", end)).id for end in (source, target))
        if one == other:
            raise BadInput(f"{asked}({source}, {target}): two different ends are needed")
        return one, other
