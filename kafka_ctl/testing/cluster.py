"""A small Kafka for the tests of other programs: brokers on 127.0.0.1, faults, and assertions about the stored records.

    with KafkaCluster() as kafka:
        kafka.create_topic("orders", partitions=1, replication_factor=3)
        kafka.kill_leader("orders", after=100)
        acknowledged = send(kafka.bootstrap_servers)
        kafka.assert_kept("orders", acknowledged)

It keeps nothing when it ends, is not fast and not secure. One cluster is one lab: tests share nothing.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable, UnknownName, short
from kafka_ctl.lab import validate
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.lab.menu import ZOOKEEPER
from kafka_ctl.lab.story import Command
from kafka_ctl.simulation.real_time import COSTS
from kafka_ctl.trace.record import CAUSE, Record
from kafka_ctl.wire import batches
from kafka_ctl.wire.attach import bootstrap_servers, client_faults, committed_records
from kafka_ctl.wire.listeners import PortTaken
from kafka_ctl.zookeeper.memory.server import MemoryStore
from kafka_ctl.zookeeper.memory.session import DOWN, UP

QUICK = {"zookeeper.session.timeout.ms": 1000, "replica.lag.time.max.ms": 2000}
"""Settings with which the death of a broker is noticed within a second."""
PATIENCE = 30.0
"""Seconds that `wait_until` waits for a condition."""
MOST_BROKERS = 20


@validate.calls
class KafkaCluster:
    """A lab with brokers that listen, and the commands of a test; `do` and `state` may be called from any thread.

    There are three brokers of generation 2.4 by default. `port`: the brokers listen there and at the ports after it, by
    default and with 0 at free ones. `story`: a file with the lab and the commands to begin with, instead of `brokers`,
    `generation` and `config`. Raises BadInput for what cannot be, Unavailable where a port is taken or a package is
    missing.
    """

    def __init__(
        self,
        brokers: int | None = None,
        generation: str | None = None,
        port: int | None = None,
        story: str | Path | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        if story is not None and not (brokers is None and generation is None and config is None):
            raise BadInput("a story has brokers, generation and config in its first line; leave out these arguments")
        count = validate.integer("the number of brokers", 3 if brokers is None else brokers, 1, MOST_BROKERS)
        first = validate.integer("port", 0 if port is None else port, 0, 65536 - (count if story is None else 1))
        self._lock = threading.RLock()
        self._kills: dict[TopicPartition, int] = {}
        try:
            if story is not None:
                self.lab = Lab.replay(story, wire=first or True)
            else:
                costs = replace(COSTS, zookeeper_tick=0.0)
                settings = {**QUICK, **validate.mapping("a config", {} if config is None else config)}
                made = "2.4" if generation is None else generation
                self.lab = Lab(count, made, config=settings, costs=costs, wire=first or True)
        except PortTaken as taken:
            raise Unavailable(f"{taken}; port 0 takes a free one") from None
        self.faults = client_faults(self.lab.world)
        self.lab.trace.listeners.append(self._look_at_kills)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for clients, `127.0.0.1:9092,...`, those of brokers that are down as well."""
        return bootstrap_servers(self.lab.world)

    def __repr__(self) -> str:
        return f"KafkaCluster at {self.bootstrap_servers}: {self.lab}"

    def do(self, name: str, /, **arguments: object) -> object:
        """Carry out a call by name: one of `CALLS`, or any command of a lab.

        UnknownName for another, BadInput for arguments that do not fit; the answer is that of the command.
        """
        with self._lock:
            if name in CALLS:
                return getattr(self, name)(**arguments)
            if name not in COMMANDS:
                raise UnknownName("call", name, sorted({*CALLS, *COMMANDS}))
            return self.lab.do(Command(name, (), arguments))

    vars(do)["names_itself"] = True  # the call that it carries out is named

    def create_topic(self, topic: str, partitions: int = 1, replication_factor: int = 3) -> None:
        """Create a topic, and wait until each of its partitions has a leader."""
        self.lab.create_topic(topic, partitions, replication_factor)
        self.wait_until(lambda: all(one.leader >= 0 for one in self.lab.partitions() if one.topic == topic))

    def kill(self, broker: int) -> None:
        """Kill a broker's process."""
        self.do("kill", broker=broker)

    def start(self, broker: int) -> None:
        """Start a broker that is down."""
        self.do("start", broker=broker)

    def shutdown(self, broker: int) -> None:
        """Stop a broker in good order."""
        self.do("shutdown", broker=broker)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The leader of a partition; waits until there is one that is alive."""

        leader = -1

        def found() -> bool:
            nonlocal leader
            leader = self.lab.partition(topic, partition).leader
            return leader >= 0 and self.lab.world.brokers[leader].listening

        try:
            self.wait_until(found, PATIENCE)
        except ConditionNotMet:
            raise ConditionNotMet(
                f"partition {partition} of topic {topic} has had no leader that is alive for {PATIENCE:g} s"
            ) from None
        return leader

    def wait_until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until `holds()`; ConditionNotMet after so many seconds."""
        with self._lock:
            self.lab.run_until(holds, limit=seconds)

    def records(self, topic: str, partition: int = 0) -> list[batches.Record]:
        """The committed records of a partition, which its leader shows to consumers: offset, key, value, headers."""
        self.leader(topic, partition)
        return committed_records(self.lab.world, TopicPartition(topic, partition))

    def assert_kept(self, topic: str, values: Iterable[str | bytes | None]) -> None:
        """Raise AssertionError, with the first that are lost, unless the topic holds each of these values."""
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise BadInput(f"values cannot be {short(values)}; they must be a list such as ['order-1', 'order-2']")
        wanted: Counter[bytes | None] = Counter()
        for value in values:
            if value is not None and not isinstance(value, (str, bytes)):
                raise BadInput(f"a value cannot be {short(value)}; it must be text, bytes or None")
            wanted[value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value] += 1
        partitions = [one.partition for one in self.lab.partitions() if one.topic == topic]
        if not partitions:
            raise UnknownName("topic", topic, sorted({one.topic for one in self.lab.partitions()}))
        lost = wanted - Counter(record.value for number in partitions for record in self.records(topic, number))
        if lost:
            first = ", ".join(repr(value) for value in list(lost)[:3])
            raise AssertionError(
                f"topic {topic} has lost {lost.total()} of {wanted.total()} records, among them {first}"
            )

    # Faults of clients' connections, and the kill in mid-write

    def kill_leader(self, topic: str, partition: int = 0, after: int = 0) -> None:
        """Kill the leader of a partition, with `after` as soon as its log has so many records.

        The record that makes them so many is in the leader's log then; no client has an answer, no follower a copy.
        """
        least = validate.integer("after", after)
        if not least:
            self.lab.kill(self.leader(topic, partition))
            return
        self.lab.partition(topic, partition)
        self._kills[TopicPartition(topic, partition)] = least

    def _look_at_kills(self, record: Record) -> None:
        """Kill the leader of a partition whose log is long enough; called in the thread of the lab."""
        for tp, least in list(self._kills.items()):
            leader = next((one for one in self.lab.world.brokers.values() if one.listening and one.leads(tp)), None)
            if leader is not None and tp in leader.disk.logs and leader.disk.logs[tp].end >= least:
                del self._kills[tp]
                self.lab.world.clock.loop.call_soon(self._kill_now, leader)

    def _kill_now(self, broker: Broker) -> None:
        token = CAUSE.set(self.lab.world.record_fault("kill", broker.id))
        self.lab.commands.append(Command("kill", (broker.id,), {}, 0, len(self.lab.trace), self.lab.now))
        broker.kill()
        CAUSE.reset(token)

    def cut(self, broker: int | None = None, source: int | str | None = None, target: int | str | None = None) -> None:
        """Cut all clients off from a broker, or `source` (a broker) from `target` (a broker, or `zookeeper`)."""
        if source is not None and target is not None and broker is None:
            self.lab.disconnect(source, target)
            return
        known = self._alone("cut", broker, source, target)
        self._change(lambda: self.faults.cut.add(known))

    def delay(
        self,
        seconds: float,
        broker: int | None = None,
        source: int | str | None = None,
        target: int | str | None = None,
    ) -> None:
        """Make a broker's answers to clients so much later, or what `source` sends to `target`."""
        if source is not None and target is not None and broker is None:
            self.lab.delay(source, target, seconds)
            return
        known = self._alone("delay", broker, source, target)
        wait = validate.seconds("a delay", seconds)
        self._change(lambda: self.faults.delays.__setitem__(known, wait))

    def throttle(self, broker: int, seconds: float) -> None:
        """Let each answer of a broker to a client name a throttle time, for which it then mutes the connection."""
        known, wait = self._known(broker, "throttle needs a broker"), validate.seconds("a throttle time", seconds)
        self._change(lambda: self.faults.throttles.__setitem__(known, wait))

    def errors(self, kind: str, error: str, requests: int = 1, broker: int | None = None) -> None:
        """Answer the next requests of a kind (`Produce`) with an error of Kafka (`NOT_LEADER_FOR_PARTITION`)."""
        count = validate.integer("the number of requests", requests, 1)
        known = None if broker is None else self._known(broker, "")
        name, code = validate.name("a kind of request", kind), validate.name("an error", error)
        self._change(lambda: self.faults.demand(name, code, count, known))

    def heal(self) -> None:
        """End every fault but the death of brokers: `heal` of a lab, and the faults of clients' connections."""
        self._kills.clear()
        self._change(self.faults.heal)
        self.lab.heal()

    def _alone(self, call: str, broker: int | None, source: object, target: object) -> int:
        """The broker of a fault of clients' connections, which has no source and no target."""
        if broker is not None and not (source is None and target is None):
            raise BadInput(f"{call} takes a broker, or a source and a target, not both")
        return self._known(broker, f"{call} needs a broker, or a source and a target")

    def _known(self, broker: int | None, otherwise: str) -> int:
        if broker is None:
            raise BadInput(otherwise)
        return self.lab.world.broker(validate.integer("a broker id", broker)).id

    def _change(self, change: Callable[[], object]) -> None:
        self.lab.world.clock.call(change)

    # The state

    def state(self) -> dict[str, object]:
        """The cluster in values that JSON can hold."""
        with self._lock:
            lab, faults = self.lab, self.faults
            controller, brokers = lab.controller, lab.brokers
            return {
                "bootstrap_servers": self.bootstrap_servers,
                "generation": lab.generation.name,
                "seconds": round(lab.now, 3),
                "controller": None if controller is None else controller._asdict(),
                "brokers": [{"id": id, "state": str(b.state), "paused": b.paused} for id, b in brokers.items()],
                "partitions": [one._asdict() for one in lab.partitions()],
                "faults": {
                    "cut": sorted(faults.cut),
                    "delays": dict(faults.delays),
                    "throttles": dict(faults.throttles),
                    "errors": [vars(one) for one in faults.errors],
                    "kills": [tp._asdict() | {"after": least} for tp, least in list(self._kills.items())],
                    "paused": [id for id, b in brokers.items() if b.paused],
                    "links": self._links(),
                },
            }

    def _links(self) -> list[dict[str, object]]:
        """The faults between brokers, or between one and ZooKeeper, each way by itself."""
        store, links = self.lab.world.store, list(self.lab.world.network.links.items())
        assert isinstance(store, MemoryStore)
        found: list[tuple[int | str, int | str, bool, float]]
        found = [(*ends, link.cut_since != math.inf, link.delay) for ends, link in links]
        for id in self.lab.world.brokers:
            sends, receives = store.cut.get(f"broker-{id}", (True, True))
            found.append((id, ZOOKEEPER, not sends, store.slow.get((f"broker-{id}", UP), 0.0)))
            found.append((ZOOKEEPER, id, not receives, store.slow.get((f"broker-{id}", DOWN), 0.0)))
        return [dict(zip(("source", "target", "cut", "delay"), one, strict=True)) for one in found if any(one[2:])]

    def check(self) -> None:
        """Raise the error that a part of the lab has died of, if any has."""
        self.lab.world.look(lambda znodes: None)

    def close(self) -> None:
        """Stop every broker."""
        self.lab.close()

    def __enter__(self) -> KafkaCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


CALLS = ("create_topic", "kill_leader", "cut", "delay", "throttle", "errors", "heal")
"""The calls by name that are not, or not only, commands of a lab."""
