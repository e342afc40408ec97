"""The context of a controller, folded from its records, and its form in Kafka's lines."""

from __future__ import annotations

from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import Record

TP = tuple[str | None, int | None]
"""A partition in a record."""


class ControllerState:
    """The context of one controller, folded from its records."""

    def __init__(self) -> None:
        self.channels: dict[int, None] = {}
        """The brokers it has a channel to."""
        self.handlers: dict[int, None] = {}
        """The brokers whose endpoints it listens to."""
        self.read: dict[int, None] | None = None
        """While it reads what there is: the brokers it has read. None otherwise."""
        self.leadership: dict[TP, Record] = {}
        self.assigned: dict[TP, tuple[int, ...]] = {}
        self.partitions: dict[TP, str] = {}
        self.replicas: dict[tuple[str | None, int | None, int | None], str] = {}
        self.moved: list[tuple[str | None, int | None, int | None]] = []
        """The replicas moved since the deletion of partitions began."""
        self.undeletable: list[tuple[str | None, int | None, int | None]] = []
        """Those of them that were to become ineligible for deletion, whether or not the table has that move."""
        self.event: int | None = None
        """The event in hand."""
        self.stopping = False
        """True if it has resigned because its process stops."""
        self.deleting = False
        """True if replicas are about to be deleted, and none has been yet."""
        self.elections: dict[str, str] | None = None
        """While preferred leaders are elected: what came of it, by partition. None otherwise."""
        self.skipped: dict[str, str] = {}
        """In an event that asks for elections: the partitions that are not elected, and why."""
        self.refused: dict[str, str] = {}
        """Those of them that failed, and why, until the line about it is written."""
        self.moving: dict[str, dict[str, list[int]]] = {}
        """The partitions that are being reassigned: replicas, and which of them come and go."""
        self.asked: set[str] | None = None
        """In an event that asks for reassignments: the partitions whose new assignment has been written."""
        self.appearing: list[int] = []
        """Brokers that have come and are not yet listened to, and brokers that have gone and still are."""
        self.vanishing: list[int] = []
        self.initializing_deletion = False
        """True if its last message says that it initializes topic deletion, as at failover."""
        self.shutting_down = False
        """True if it has begun a controlled shutdown."""

    def by_preferred(self) -> dict[int, dict[TP, tuple[int, ...]]]:
        """By broker, the partitions that it is the preferred replica of, with their replicas."""
        found: dict[int, dict[TP, tuple[int, ...]]] = {}
        for tp, replicas in self.assigned.items():
            if replicas:
                found.setdefault(replicas[0], {})[tp] = replicas
        return found

    def forget(self, tp: TP) -> None:
        self.partitions.pop(tp, None)
        self.assigned.pop(tp, None)
        self.leadership.pop(tp, None)


def id_of(r: Record) -> int | None:
    """The broker of a record's actor; None if it is none's, or of one that does not know its id yet."""
    return number_of(r.actor)


def tp_of(tp: TP) -> str:
    """A partition as Kafka prints it since 0.11."""
    return f"{tp[0]}-{tp[1]}"


def replica_text(topic: str | None, partition: int | None, broker: int | None) -> str:
    """A replica as Kafka prints it."""
    return f"[Topic={topic},Partition={partition},Replica={broker}]"


def state_of(r: Record) -> str:
    """The leadership of a record's partition, as Kafka prints it."""
    isr = ",".join(map(str, r.isr or ()))
    return f"(Leader:{r.leader},ISR:{isr},LeaderEpoch:{r.leader_epoch},ControllerEpoch:{r.controller_epoch})"
