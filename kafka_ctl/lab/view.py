"""The views of a lab: plain values, read from ZooKeeper and from the acting controller.

Leader, ISR and epochs are read from the znodes; states, which no znode has, from the acting controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers import identity
from kafka_ctl.brokers.identity import BrokerMetadata
from kafka_ctl.brokers.log import Entry
from kafka_ctl.brokers.states import DOWN
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.display import KeyedRows, Table, table
from kafka_ctl.errors import BadInput, IdentityError
from kafka_ctl.partition import NON_EXISTENT, PartitionState
from kafka_ctl.replica import ReplicaState
from kafka_ctl.zookeeper.znodes import (
    BrokerSequenceIdZNode,
    ConfigEntityZNode,
    ControllerZNode,
    ReassignPartitionsZNode,
    TopicPartitionStateZNode,
    TopicZNode,
)

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.controller.controller import Controller

Znodes = dict[str, tuple[bytes, int, int]]


class ZnodeTable(KeyedRows[str, tuple[bytes, int, int]]):
    """Znodes by path, shown as a table."""

    key = "znode"

    def table(self) -> Table:
        """A row for each znode; its data as text."""
        rows = ((path, data, version, f"{owner:#x}" if owner else "") for path, (data, version, owner) in self.items())
        return table(("path", "data", "version", "ephemeral_owner"), rows, len(self))


class ControllerView(NamedTuple):
    """The controller: the broker named in `/controller` that also acts as such, and its epoch."""

    id: int
    epoch: int


class ControllerMemory(NamedTuple):
    """The requests in the acting controller's memory: topics to be deleted, and partitions that it moves."""

    deleting: tuple[str, ...]
    reassigning: dict[str, tuple[int, ...]]
    """By partition its target replicas."""


class PartitionView(NamedTuple):
    """One partition. `leader` is -1 where there is none; without a controller, `state` is NonExistentPartition."""

    topic: str
    partition: int
    state: PartitionState
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int
    zk_version: int


class ReplicaView(NamedTuple):
    """One copy of a partition as the acting controller sees it."""

    topic: str
    partition: int
    broker: int
    state: ReplicaState


class LogView(NamedTuple):
    """The log of one replica, as its disk has it: also of a broker that is down."""

    topic: str
    partition: int
    broker: int
    end: int
    high_watermark: int
    entries: tuple[Entry, ...]
    """The records from the log start offset on."""
    start: int = 0
    """The log start offset: records below it are deleted."""

    @property
    def content(self) -> str:
        """`1@0 2@0 | 3@1`: value and leader epoch of each record; before the bar those below the high watermark.

        Where records were deleted, the log start offset comes first: `from 2: 3@1 |`.
        """
        texts = [f"{entry.value}@{entry.leader_epoch}" for entry in self.entries]
        texts.insert(self.high_watermark - self.start, "|")
        return " ".join([f"from {self.start}:", *texts] if self.start else texts)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.broker}  {self.content}"


class IdentityView(NamedTuple):
    """The sources of a broker's id: its configuration (-1: none) and the file in each log directory.

    `generated` is how many ids `/brokers/seqid` has given out; `problem` is why the broker would not start now, in
    Kafka's words, None where it would.
    """

    broker: int
    configured: int
    files: dict[str, BrokerMetadata | None]
    generated: int
    problem: str | None


class BrokerView(NamedTuple):
    """One broker process: what it does, what it knows, what it leads and follows."""

    id: int
    rack: str | None
    state: str
    is_controller: bool
    metadata: dict[TopicPartition, LeaderAndIsr]
    leads: tuple[TopicPartition, ...]
    follows: tuple[TopicPartition, ...]
    live_brokers: tuple[int, ...]
    broker_state: str
    """Kafka's name of the state: `RunningAsBroker`."""
    paused: bool | None
    """True while the process stands still; None in an open incident, where that is to be found out."""


class BrokerTable(KeyedRows[int, BrokerView]):
    """Brokers by id, shown as a table."""

    key = "broker"

    def table(self) -> Table:
        """A row for each broker; its metadata cache is left out."""
        head = tuple(field for field in BrokerView._fields if field != "metadata")
        return table(head, ([getattr(view, name) for name in head] for view in self.values()), len(self))


def controller(znodes: Znodes, acting: Controller | None) -> ControllerView | None:
    """The controller, if the one that acts is the one that is stored."""
    stored = znodes.get(ControllerZNode.path())
    if acting is None or stored is None or ControllerZNode.named(stored[0]) != acting.id:
        return None
    return ControllerView(acting.id, acting.context.epoch)


def memory(acting: Controller | None) -> ControllerMemory | None:
    """The requests that a controller knows of; None without an acting controller."""
    if acting is None:
        return None
    moving = {str(tp): tuple(target) for tp, target in sorted(acting.context.reassigning.items())}
    return ControllerMemory(tuple(sorted(acting.context.topics_to_be_deleted)), moving)


def idle_controller(znodes: Znodes, acting: Controller | None) -> int | None:
    """The broker that `/controller` names, though it does not act: it is dead, or was written there by hand."""
    stored = znodes.get(ControllerZNode.path())
    return ControllerZNode.named(stored[0]) if stored is not None and controller(znodes, acting) is None else None


def min_isr(znodes: Znodes, topic: str, usual: int) -> int:
    """`min.insync.replicas` of a topic as its configuration says, else the usual one."""
    own = None
    if found := znodes.get(ConfigEntityZNode.path("topics", topic)):
        with suppress(BadInput):
            own = parse_int(ConfigEntityZNode.decode(found[0], "topics", topic).get("min.insync.replicas", ""))
    return usual if own is None else own


def partitions(znodes: Znodes, acting: Controller | None) -> dict[TopicPartition, PartitionView]:
    """Every partition that a topic znode assigns."""
    states = acting.context.partitions if acting else {}
    return {tp: _partition(tp, a, znodes, states.get(tp, NON_EXISTENT)) for tp, a in _assignments(znodes)}


def _assignments(znodes: Znodes) -> Iterator[tuple[TopicPartition, ReplicaAssignment]]:
    """The assignments of all topics whose znodes can be read, by topic in the order of the znodes, and by partition."""
    for path, (data, *_) in znodes.items():
        parts = path.split("/")
        if path.startswith("/brokers/topics/") and len(parts) == 4:
            with suppress(BadInput):
                for number, assignment in sorted(TopicZNode.decode(data, parts[3]).items()):
                    yield TopicPartition(parts[3], number), assignment


def _partition(
    tp: TopicPartition, assignment: ReplicaAssignment, znodes: Znodes, state: PartitionState
) -> PartitionView:
    stored = znodes.get(TopicPartitionStateZNode.path(tp))
    known = LeaderAndIsr(NO_LEADER, (), -1, -1, -1)
    if stored:
        with suppress(BadInput):
            known = TopicPartitionStateZNode.decode(stored[0], stored[1], tp)
    epochs = known.leader_epoch, known.controller_epoch, known.zk_version
    return PartitionView(*tp, state, known.leader, known.isr, *assignment, *epochs)


def replicas(acting: Controller | None) -> list[ReplicaView]:
    """Every replica the acting controller knows, by topic, partition and broker."""
    known = acting.context.replicas if acting else {}
    return [ReplicaView(*replica, state) for replica, state in sorted(known.items())]


def logs(brokers: Mapping[int, Broker]) -> list[LogView]:
    """Every log that was ever written to, by topic, partition and broker."""
    return sorted(
        LogView(*tp, id, log.end, log.high_watermark, tuple(log.entries[log.start :]), log.start)
        for id, process in brokers.items()
        for tp, log in process.disk.logs.items()
    )


def identity_of(process: Broker, znodes: Znodes) -> IdentityView:
    """The id that a broker would find if it started now."""
    problem = None
    try:
        stored = identity.remembered(process.disk.meta, process.generation)
        identity.decide(process.configured, stored, process.world.cluster_id, process.config)
    except IdentityError as error:
        problem = str(error)
    generated = znodes.get(BrokerSequenceIdZNode.path(), (b"", 0, 0))[1]
    return IdentityView(process.id, process.configured, dict(process.disk.meta), generated, problem)


def broker(process: Broker) -> BrokerView:
    """The state of a broker process, its metadata, and the partitions it leads and follows at this moment."""
    hosted = process.hosted if process.state != DOWN else {}
    return BrokerView(
        process.id,
        process.rack,
        process.state,
        process.acts,
        dict(process.metadata),
        tuple(sorted(tp for tp, h in hosted.items() if h.state.leader == process.id)),
        tuple(sorted(tp for tp, h in hosted.items() if h.state.leader != process.id)),
        process.live_brokers,
        process.broker_state.name,
        process.is_paused,
    )


# Reassignments


class ReassignmentView(NamedTuple):
    """A reassignment under way: the replicas now, those there shall be, and which of these are not in sync yet."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    waiting: tuple[int, ...]


class LogDirView(NamedTuple):
    """The log directory of a broker's copy of a partition, and of its future copy; None for a failed disk."""

    topic: str
    partition: int
    broker: int
    path: str | None
    future: str | None


def log_dirs(brokers: Mapping[int, Broker]) -> list[LogDirView]:
    """The log directory of every copy, by topic, partition and broker."""
    places = sorted((tp, id) for id, process in brokers.items() for tp in process.disk.places)
    return [LogDirView(*tp, id, *brokers[id].log_dirs.describe([tp])[tp]) for tp, id in places]


def reassignments(znodes: Znodes) -> list[ReassignmentView]:
    """The reassignments that the znodes ask for, by topic and partition."""
    stored = znodes.get(ReassignPartitionsZNode.path())
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    with suppress(BadInput):  # a controller ignores such a request, too
        targets = ReassignPartitionsZNode.decode(stored[0]) if stored else {}
    found = []
    for tp, assignment in sorted(_assignments(znodes)):
        target = assignment.target if assignment.is_being_reassigned else targets.get(tp)
        if target is not None:
            state, isr = znodes.get(TopicPartitionStateZNode.path(tp)), tuple[int, ...]()
            with suppress(BadInput):
                isr = TopicPartitionStateZNode.decode(state[0], partition=tp).isr if state else ()
            waiting = tuple(r for r in target if r not in isr)
            found.append(ReassignmentView(*tp, assignment.replicas, target, waiting))
    return found
