"""The events of a controller and their queue: one frozen value per event, processed one at a time, in order.

Events carry nothing that could grow old in the queue: whoever processes one reads ZooKeeper again (KAFKA-5879).
Kafka 2.0.1: controller/KafkaController.scala, ControllerEvent; controller/ControllerState.scala, ControllerState
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypedDict

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ControllerMoved
from kafka_ctl.trace.record import Recorder


@dataclass(frozen=True)
class Event:
    """`state` is what the controller says it is doing meanwhile (Kafka's ControllerState)."""

    state: ClassVar[str] = "Idle"

    @property
    def name(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Startup(Event):
    state = "ControllerChange"


@dataclass(frozen=True)
class ControllerChange(Event):
    state = "ControllerChange"


@dataclass(frozen=True)
class Reelect(Event):
    state = "ControllerChange"


@dataclass(frozen=True)
class RegisterBrokerAndReelect(Event):
    state = "ControllerChange"


@dataclass(frozen=True)
class Expire(Event):
    """The session is gone; `started` is set when processing begins, and only then a new session is made."""

    state = "ControllerChange"
    started: asyncio.Event = field(compare=False)


@dataclass(frozen=True)
class BrokerChange(Event):
    state = "BrokerChange"


@dataclass(frozen=True)
class BrokerModifications(Event):
    state = "BrokerChange"
    broker: int


@dataclass(frozen=True)
class TopicChange(Event):
    state = "TopicChange"


@dataclass(frozen=True)
class PartitionModifications(Event):
    state = "TopicChange"
    topic: str


@dataclass(frozen=True)
class TopicDeletion(Event):
    state = "TopicDeletion"


@dataclass(frozen=True)
class TopicDeletionStopReplicaResponseReceived(Event):
    state = "TopicDeletion"
    broker: int
    error: str | None
    errors: dict[TopicPartition, str | None] = field(compare=False)


@dataclass(frozen=True)
class PartitionReassignment(Event):
    state = "PartitionReassignment"


@dataclass(frozen=True)
class ApiPartitionReassignment(Event):
    """`reply` gets the refusals by partition, as ApiError; a target of None cancels."""

    state = "PartitionReassignment"
    targets: dict[TopicPartition, tuple[int, ...] | None] = field(compare=False)
    reply: asyncio.Future = field(compare=False)


@dataclass(frozen=True)
class ListPartitionReassignments(Event):
    """`reply` gets the assignments of those of the partitions, or of all if None, that are moving."""

    state = "ListPartitionReassignment"
    partitions: tuple[TopicPartition, ...] | None
    reply: asyncio.Future = field(compare=False)


@dataclass(frozen=True)
class PartitionReassignmentIsrChange(Event):
    state = "PartitionReassignment"
    partition: TopicPartition


@dataclass(frozen=True)
class PreferredReplicaLeaderElection(Event):
    state = "ManualLeaderBalance"


@dataclass(frozen=True)
class ReplicaLeaderElection(Event):
    """An administrator asks for elections; `reply` gets the leader of each partition, or an ApiError."""

    state = "ManualLeaderBalance"
    kind: ElectionType
    partitions: tuple[TopicPartition, ...]
    reply: asyncio.Future = field(compare=False)


@dataclass(frozen=True)
class TopicUncleanLeaderElectionEnable(Event):
    """A topic's configuration allows unclean elections now."""

    state = "TopicUncleanLeaderElectionEnable"
    topic: str


@dataclass(frozen=True)
class AutoPreferredReplicaLeaderElection(Event):
    state = "AutoLeaderBalance"


@dataclass(frozen=True)
class LogDirEventNotification(Event):
    state = "LogDirChange"


@dataclass(frozen=True)
class IsrChangeNotification(Event):
    state = "IsrChange"


@dataclass(frozen=True)
class ControlledShutdown(Event):
    """`reply` gets the partitions the broker still leads, or an error."""

    state = "ControlledShutdown"
    broker: int
    broker_epoch: int
    reply: asyncio.Future = field(compare=False)


@dataclass(frozen=True)
class LeaderAndIsrResponseReceived(Event):
    state = "LeaderAndIsrResponseReceived"
    broker: int
    error: str | None
    errors: dict[TopicPartition, str | None] = field(compare=False)


class Subject(TypedDict, total=False):
    """Columns of a record."""

    broker: int
    topic: str
    partition: int


def subject(event: Event) -> Subject:
    """The columns of a record that say what an event is about."""
    if isinstance(event, PartitionReassignmentIsrChange):
        return {"topic": event.partition.topic, "partition": event.partition.partition}
    found: Subject = {}
    if (broker := getattr(event, "broker", None)) is not None:
        found["broker"] = broker
    if (topic := getattr(event, "topic", None)) is not None:
        found["topic"] = topic
    return found


class EventQueue:
    """The event queue: one consumer, first in, first out, no priorities; each event has the record of its arrival.

    Watches and responses only enqueue; the controller's single thread does the work. When the session expires the queue
    is cleared, and pending events are discarded.
    Kafka 2.0.1: controller/ControllerEventManager.scala, ControllerEventManager
    """

    def __init__(self, actor: str, trace: Recorder, preempts: bool = False) -> None:
        self.actor, self.trace, self.preempts = actor, trace, preempts
        self._items: deque[tuple[Event, int]] = deque()
        self._arrived = asyncio.Event()
        self.closed = False

    def put(self, event: Event) -> None:
        if not self.closed:
            self._items.append((event, self.record(event)))
            self._arrived.set()

    def record(self, event: Event) -> int:
        """Record that an event has arrived, and waits for somebody to process it."""
        return self.trace.add(self.actor, "event", event.name, target="queued", **subject(event))

    def clear_and_put(self, event: Event) -> None:
        """Drop everything that waits, then put; since 2.2 those who wait for a reply get an error."""
        for dropped, seq in self._items:
            if self.preempts and (reply := getattr(dropped, "reply", None)) is not None and not reply.done():
                reply.set_exception(ControllerMoved("Controller moved to another broker"))
            self.trace.add(self.actor, "event", dropped.name, source="queued", target="dropped", cause=seq)
        self._items.clear()
        self.put(event)

    async def get(self) -> tuple[Event, int]:
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Event]:
        return (event for event, _ in self._items)

    def close(self) -> None:
        self.closed = True
        self._items.clear()
