"""Facts from the records of a run so far, against which the invariants are checked.

The facts come from the records alone and not from the actors' state, so an actor's wrong state cannot hide what it did.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafka_ctl.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.errors import BadInput
from kafka_ctl.generation import UNCLEAN, Config
from kafka_ctl.invariants.logs import ReplicaLogs
from kafka_ctl.trace import details
from kafka_ctl.trace.model import controller_of
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import (
    ConfigEntityZNode,
    ControllerEpochZNode,
    IsrChangeNotificationSequenceZNode,
    ReassignPartitionsZNode,
    TopicPartitionStateZNode,
    TopicZNode,
)

T = TypeVar("T")
Hook = TypeVar("Hook", bound=Callable[..., None])
STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state\Z")
CONTROLLER, EPOCH, REASSIGN = "/controller", "/controller_epoch", "/admin/reassign_partitions"
TOPIC, TO_DELETE, BROKER = "/brokers/topics/", "/admin/delete_topics/", "/brokers/ids/"
NOTIFICATION, CONFIG = "/isr_change_notification/", "/config/topics/"


def only(*actions: str) -> Callable[[Hook], Hook]:
    """Have a method called for records with these actions only; without, it is called for every action."""

    def marked(hook: Hook) -> Hook:
        vars(hook)["actions"] = frozenset(actions)
        return hook

    return marked


class Facts:
    """The relevant content of ZooKeeper, and the roles of the brokers, as of the last record.

    A znode that cannot be decoded (an operator can write anything) counts as missing.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.logs = records, ReplicaLogs()
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self.overwritten: dict[TopicPartition, ReplicaAssignment] = {}
        """The last write of a controller to a topic's znode, where another client has changed it since."""
        self.requests: dict[TopicPartition, tuple[int, ...]] = {}
        """The contents of `/admin/reassign_partitions`."""
        self.topics_to_be_deleted: dict[str, None] = {}
        """Topics that are to be deleted."""
        self.controller: int | None = None
        """The broker that `/controller` names."""
        self.epoch = 0
        self.epochs: dict[str, int] = {}
        """The epoch under which each controller acts, until it resigns or finds that it is no longer controller."""
        self.registered: dict[int, int] = {}
        """The registered brokers and the `seq` of the record that made their znodes."""
        self.shutting_down: set[int] = set()
        """Brokers in controlled shutdown."""
        self.deposed: dict[str, int] = {}
        """Paths that a controller wrote after another had been elected, and the `seq` of the last such write."""
        self.notifications: list[Record] = []
        """Every `/isr_change_notification/isr_change_N` that leaders have made."""
        self.requested: dict[TopicPartition, int] = {}
        """Since which record `/admin/reassign_partitions` asks for a partition what it asks for."""
        self.topic_configs: dict[str, dict[str, str]] = {}

    @property
    def acting(self) -> str:
        """The actor of the controller that ZooKeeper knows."""
        return f"controller-{self.controller}"

    def unclean(self, topic: str, config: Config) -> bool:
        """True if a replica out of sync may lead a topic's partitions."""
        own = self.topic_configs.get(topic, {}).get(UNCLEAN)
        return config[UNCLEAN] if own is None else own.lower() == "true"

    def is_deposed(self, record: Record) -> bool:
        """True if a write comes from a controller after another one has been elected."""
        return self.deposed.get(record.path or "", -1) == record.seq

    def note_author(self, record: Record) -> None:
        """Note whether the author of a successful write is still the controller.

        Call it before the write is applied.
        """
        author, path = self.author(record), record.path or ""
        if (path == CONTROLLER and record.action == "delete") or path == EPOCH:
            deposed = author.startswith("controller-") and self.controller is not None and author != self.acting
        else:
            epoch = self.epochs.get(author)
            deposed = epoch is not None and epoch < self.epoch and not path.startswith(BROKER)
        if deposed:
            self.deposed[path] = record.seq

    def author(self, record: Record) -> str:
        """The author of a write: a broker and its controller share one session, and write different znodes."""
        cause = self.records[record.cause] if record.cause is not None else None
        return cause.actor if cause is not None and cause.kind == "event" else record.actor

    def assigned(self, tp: TopicPartition) -> ReplicaAssignment | None:
        return self.assignments.get(tp.topic, {}).get(tp.partition)

    def partitions(self, topic: str | None = None) -> dict[TopicPartition, ReplicaAssignment]:
        """The assignments of a topic's partitions, or of all, in the order of the znodes."""
        topics = self.assignments if topic is None else {topic: self.assignments.get(topic, {})}
        return {TopicPartition(name, number): to for name, numbers in topics.items() for number, to in numbers.items()}

    def moving(self) -> list[TopicPartition]:
        """The partitions whose replicas are being reassigned, or are asked to be."""
        moving = {tp for tp, assignment in self.partitions().items() if assignment.is_being_reassigned}
        return sorted(moving | self.requests.keys())

    def is_deleting(self, tp: TopicPartition) -> bool:
        """True if the partition's topic is to be deleted."""
        return tp.topic in self.topics_to_be_deleted

    def target(self, tp: TopicPartition) -> tuple[int, ...]:
        """The replicas that the partition is to have in the end."""
        assignment = self.assigned(tp)
        return self.requests.get(tp, assignment.target if assignment else ())

    # Each of these methods applies one kind of record.

    @only("resigned", "already_moved", "epoch_incremented", "ready", "elected")
    def logged(self, record: Record) -> None:
        """Apply a controller's message that it has an epoch, or that it resigned."""
        if record.action in ("resigned", "already_moved"):  # one that finds another elected forgets nothing
            self.epochs.pop(record.actor, None)
        elif record.action != "elected" or record.detail:
            self.epochs[record.actor] = record.controller_epoch or 0

    @only("shutdown", "start", "kill", "bounce", "stopped")
    def process(self, record: Record) -> None:
        """A process starts, is asked to shut down, or dies."""
        broker = record.broker
        if broker is None:
            return
        if record.action == "shutdown":
            self.shutting_down.add(broker)
        else:
            self.shutting_down.discard(broker)
            if record.kind == "fault" and "empty" in details.flags(record.detail):
                self.logs.replaced(broker)
            if record.action != "bounce":  # it still finishes what it is at
                self.epochs.pop(f"controller-{broker}", None)

    def state(self, record: Record) -> tuple[TopicPartition, LeaderAndIsr | None, LeaderAndIsr | None] | None:
        """The partition, the old state and the new state of a write of a `state` znode; None for another record."""
        path = record.path or ""
        found = STATE.match(path) if path.endswith("/state") else None
        if found is None:
            return None
        tp = TopicPartition(found[1], int(found[2]))
        old, new = self.states.pop(tp, None), None
        if record.action == "delete":
            self.logs.forget(tp)
        else:
            version = record.zk_version or 0
            new = decoded(lambda data: TopicPartitionStateZNode.decode(data, version, tp), record)
            if new is not None:
                self.states[tp] = new
        return tp, old, new

    def written(self, record: Record) -> None:
        """Any other write that succeeded."""
        path, gone = record.path or "", record.action == "delete"
        if path.startswith(TOPIC) and "/" not in (topic := path.removeprefix(TOPIC)):
            known = None if gone else decoded(lambda data: TopicZNode.decode(data, topic), record)
            self._assigned(record, topic, known or {})
            if gone:
                del self.assignments[topic]
        elif path == REASSIGN:
            before = self.requests
            self.requests = {} if gone else decoded(ReassignPartitionsZNode.decode, record) or {}
            self.requested = {
                tp: self.requested[tp] if before.get(tp) == target else record.seq
                for tp, target in self.requests.items()
            }
        elif path.startswith(TO_DELETE):
            topic = path.removeprefix(TO_DELETE)
            self.topics_to_be_deleted.pop(topic, None)
            if not gone:
                self.topics_to_be_deleted[topic] = None
        elif path == CONTROLLER:
            self.controller = None if gone else controller_of(record.detail)
        elif path == EPOCH and not gone:
            self.epoch = decoded(ControllerEpochZNode.decode, record) or 0
        elif path.startswith(BROKER) and (broker := parse_int(path.removeprefix(BROKER))) is not None:
            self.registered.pop(broker, None)
            if not gone:
                self.registered[broker] = record.seq
        elif path.startswith(NOTIFICATION) and not gone:
            self.notifications.append(record)
        elif path.startswith(CONFIG):
            topic = path.removeprefix(CONFIG)
            configured = None if gone else decoded(lambda data: ConfigEntityZNode.decode(data, "topics", topic), record)
            self.topic_configs[topic] = configured or {}

    def _assigned(self, record: Record, topic: str, new: dict[int, ReplicaAssignment]) -> None:
        before = self.assignments.get(topic, {})
        self.assignments[topic] = new
        ours = self.author(record).startswith("controller-")
        for partition in [*before, *new]:
            tp = TopicPartition(topic, partition)
            if ours:
                self.overwritten.pop(tp, None)
            elif partition in before and before[partition] != new.get(partition):
                self.overwritten.setdefault(tp, before[partition])


def notified(made: Record) -> list[TopicPartition]:
    """The partitions that a notification of changed ISRs names."""
    return IsrChangeNotificationSequenceZNode.decode((made.detail or "").encode(), "")


def decoded(decode: Callable[[bytes], T], record: Record) -> T | None:
    try:
        return decode((record.detail or "").encode())
    except (BadInput, ValueError, TypeError):
        return None
