"""What the records say the cluster looks like: a model folded from the trace and from nothing else.

`ClusterModel.apply(record)` moves the model one record on. It keeps two truths apart where they differ: a broker's
process can be dead while its znode still stands, and a partition can have a leader that cannot answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_ctl.cluster import NO_LEADER, parse_int
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state$")
_TOPIC = re.compile(r"/brokers/topics/([^/]+)$")
_BROKER = re.compile(r"/brokers/ids/(\d+)$")
_TIMEOUT = re.compile(r"\btimeout=(\d+(?:\.\d+)?)s\b")
_NUMBER = re.compile(r"(\d+)$")


class ZNode(NamedTuple):
    """A znode as the writes left it; `owner` is who holds an ephemeral one."""

    data: str
    version: int
    owner: str


class Work(NamedTuple):
    """The event that a controller works on, and the records that say that it began, and that it was queued."""

    event: str
    started: int
    queued: int | None


@dataclass
class BrokerSeen:
    """`alive`: the process runs; `registered`: its znode stands; `note`: what it is doing just now.

    Milliseconds: `timeout` is that of its ZooKeeper session, `silent` the time since which that hears nothing of it.
    """

    id: int
    alive: bool = False
    registered: bool = False
    rack: str | None = None
    note: str = ""
    timeout: float | None = None
    silent: float | None = None


@dataclass
class PartitionSeen:
    """A partition from the last record about it; `leader` is -1 for nobody, None while not yet known."""

    state: str = "NonExistentPartition"
    leader: int | None = None
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    leader_epoch: int | None = None
    zk_version: int | None = None


@dataclass
class ClusterModel:
    """The cluster at one moment of a trace; keys are (topic, partition) and (topic, partition, broker)."""

    brokers: dict[int, BrokerSeen] = field(default_factory=dict)
    partitions: dict[tuple[str, int], PartitionSeen] = field(default_factory=dict)
    replicas: dict[tuple[str, int, int], str] = field(default_factory=dict)
    holders: dict[tuple[str, int], dict[int, None]] = field(default_factory=dict)
    znodes: dict[str, ZNode] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    """Controller -> the events in its queue, by the `seq` of the record that put them there."""
    working: dict[str, Work] = field(default_factory=dict)
    """Controller -> the event that it works on."""
    resigned: dict[str, int] = field(default_factory=dict)
    """Controller -> the `seq` of its last resignation."""
    shutting_down: set[int] = field(default_factory=set)
    """Brokers in controlled shutdown, as controllers have logged it."""
    controller: int | None = None
    controller_epoch: int | None = None
    cuts: dict[int, list[str]] = field(default_factory=dict)
    """Broker -> whom it no longer reaches: the ids of brokers, or `zookeeper`."""
    zookeeper_down: bool = False
    violations: list[str] = field(default_factory=list)
    seq: int = -1

    def apply(self, record: Record) -> None:
        self.seq = record.seq
        handler = getattr(self, f"_{record.kind}", None)
        if handler is not None:
            handler(record)

    def apply_all(self, records: Iterable[Record]) -> ClusterModel:
        for record in records:
            self.apply(record)
        return self

    def broker(self, number: int) -> BrokerSeen:
        return self.brokers.get(number) or self.brokers.setdefault(number, BrokerSeen(number))

    def partition(self, topic: str, partition: int) -> PartitionSeen:
        return self.partitions.setdefault((topic, partition), PartitionSeen())

    def _zk(self, record: Record) -> None:
        path = record.path
        if record.action in ("connect", "reconnected", "expired", "closed"):
            self._session(record)
        if record.error or not path or record.action not in ("create", "set", "delete"):
            return
        if record.action == "delete":
            self.znodes.pop(path, None)
        else:
            old = self.znodes.get(path)
            owner = (
                record.actor if record.target == "ephemeral" else old.owner if old and record.action == "set" else ""
            )
            self.znodes[path] = ZNode(record.detail or "", record.zk_version or 0, owner)
        self._meaning(path, record)

    def _session(self, record: Record) -> None:
        """A session begins, is heard of again, or ends."""
        actor = record.actor if record.actor != "zookeeper" else (record.detail or "").rpartition(" ")[2]
        number = number_of(actor)
        if number is None or not actor.startswith("broker"):
            return
        broker = self.broker(number)
        broker.silent = None
        if record.action == "connect" and (said := _TIMEOUT.search(record.detail or "")):
            broker.timeout = 1000 * float(said[1])

    def _meaning(self, path: str, record: Record) -> None:
        """What a write to one of Kafka's znodes says about the cluster."""
        gone = record.action == "delete"
        if path.endswith("/controller"):
            named = None if gone else controller_of(record.detail)
            self.controller = named if named in (number_of(record.actor), self.controller) else None  # by hand
        elif path.endswith("/controller_epoch"):
            self.controller_epoch = parse_int(record.detail or "") or self.controller_epoch
        elif found := _BROKER.search(path):
            broker = self.broker(int(found[1]))
            broker.registered = not gone
            if gone:
                self.shutting_down.discard(broker.id)
            if not gone:
                broker.alive, broker.note = True, ""
                broker.rack = _text(details.json_object(record.detail).get("rack"))
        elif found := _STATE.search(path):
            self._state(found[1], int(found[2]), record, gone)
        elif (found := _TOPIC.search(path)) and gone:
            for key in [key for key in self.partitions if key[0] == found[1]]:
                self.partitions[key].replicas = ()
        elif found:
            for number, replicas in sorted(_mapping(details.json_object(record.detail).get("partitions")).items()):
                if (plain := parse_int(str(number))) is not None:
                    self.partition(found[1], plain).replicas = details.ids(replicas)

    def _state(self, topic: str, partition: int, record: Record, gone: bool) -> None:
        if gone:
            seen = self.partitions.get((topic, partition))
            if seen:
                seen.leader, seen.isr = None, ()
            return
        seen, said = self.partition(topic, partition), details.json_object(record.detail)
        if isinstance(said.get("leader"), int):
            seen.leader, seen.isr = said["leader"], details.ids(said.get("isr"))
            seen.leader_epoch, seen.zk_version = said.get("leader_epoch"), record.zk_version

    def _event(self, record: Record) -> None:
        if not record.actor.startswith("controller"):
            return
        queue = self.waiting.setdefault(record.actor, [])
        if record.target == "queued":
            queue.append(record.seq)
        elif record.target in ("started", "dropped"):
            queued = record.cause if record.cause in queue else None
            if queued is not None:
                queue.remove(queued)
            if record.target == "started":
                self.working[record.actor] = Work(record.action, record.seq, queued)
        elif record.target == "done":
            self.working.pop(record.actor, None)

    def _controller(self, record: Record) -> None:
        number = record.broker if record.broker is not None else number_of(record.actor)
        if record.action in ("elected", "ready") and number is not None:
            self.controller = number
        self.controller_epoch = max(self.controller_epoch or 0, record.controller_epoch or 0) or None
        if record.action in ("elected", "ready"):
            return
        if record.action == "initializing_replica_state":
            self.replicas.clear()
        elif record.action == "initializing_partition_state":
            for seen in self.partitions.values():
                seen.state = "NonExistentPartition"
        elif record.action == "resigned":
            if self.controller == number and not self.znodes.get("/controller"):
                self.controller = None
            self.resigned[record.actor] = record.seq
        elif record.action == "shutting_down_broker":
            self.shutting_down.update(details.ids([details.fields(record).get("broker")]))

    def _partition(self, record: Record) -> None:
        if record.topic is None or record.partition is None or record.error:
            return
        seen = self.partition(record.topic, record.partition)
        seen.state = record.target or seen.state
        if record.replicas:
            seen.replicas = record.replicas
        if record.leader is not None:
            seen.leader, seen.isr = record.leader, record.isr or ()
            seen.leader_epoch, seen.zk_version = record.leader_epoch, record.zk_version

    def _replica(self, record: Record) -> None:
        if record.topic is None or record.partition is None or record.broker is None or record.error:
            return
        self.replicas[record.topic, record.partition, record.broker] = record.target or ""
        self.holders.setdefault((record.topic, record.partition), {})[record.broker] = None

    def _broker(self, record: Record) -> None:
        number = record.broker if record.broker is not None else number_of(record.actor)
        if number is None:
            return
        broker = self.broker(number)
        if record.action == "start":
            broker.alive, broker.note = True, "starting"
        elif record.action == "registered":
            broker.alive, broker.note = True, ""
        elif record.action == "stopped":
            broker.alive, broker.note = False, ""
        elif (
            record.topic is not None
            and record.partition is not None
            and record.isr
            and not record.error
            and (record.action in ("shrink-isr", "expand-isr"))
        ):
            self.partition(record.topic, record.partition).isr = record.isr

    def _fault(self, record: Record) -> None:
        if record.action in ("heal", "stop_zookeeper", "start_zookeeper"):
            self.zookeeper_down = record.action == "stop_zookeeper"
        if record.action == "heal":
            self.cuts.clear()
            for other in self.brokers.values():
                other.silent = other.silent if not other.alive else None
        if record.broker is None:
            return
        broker = self.broker(record.broker)
        if record.action in ("kill", "bounce"):
            broker.alive, broker.note, broker.silent = False, "", record.time_ms
        elif record.action in ("start", "restart"):
            broker.alive, broker.note = True, "starting"
        elif record.action == "pause":
            broker.note, broker.silent = "paused", record.time_ms
        elif record.action == "disconnect":
            for end, far in details.ends(record.detail):
                if end.isdecimal():
                    self.cuts.setdefault(int(end), []).append(far)
                    if far == "zookeeper":
                        self.broker(int(end)).silent = record.time_ms
        elif record.action in ("resume", "continue"):
            broker.note, broker.silent = "", None

    def _violation(self, record: Record) -> None:
        self.violations.append(record.action)

    def leaderless(self) -> list[tuple[str, int]]:
        """The partitions that had or should have a leader and cannot answer now."""
        return [key for key, seen in self.partitions.items() if seen.leader is not None and not self.leads(seen)]

    def leads(self, seen: PartitionSeen) -> bool:
        if seen.leader is None or seen.leader == NO_LEADER:
            return False
        broker = self.brokers.get(seen.leader)
        return broker is None or broker.alive

    def members(self, key: tuple[str, int]) -> tuple[int, ...]:
        """The brokers that hold or held a copy: the assigned ones first."""
        assigned = self.partitions[key].replicas
        return (*assigned, *(b for b in self.holders.get(key, ()) if b not in assigned))


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def controller_of(text: str | None) -> int | None:
    """The broker that `/controller` names: JSON, or the plain number of the first releases."""
    return parse_int(str(details.json_object(text).get("brokerid", text)))


def number_of(actor: str) -> int | None:
    """The broker behind an actor's name: 2 for `controller-2` and `broker-2`, None for `zookeeper`."""
    found = _NUMBER.search(actor)
    return int(found[1]) if found else None
