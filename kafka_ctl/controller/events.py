"""The events of a controller and their queue: one frozen value per event, processed one at a time, in order.

Events carry no data that could become stale in the queue: ZooKeeper is read when they are processed (KAFKA-5879).
Kafka 2.0.1: controller/KafkaController.scala, ControllerEvent; controller/ControllerState.scala, ControllerState
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import ClassVar, TypedDict, dataclass_transform

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ControllerMoved
from kafka_ctl.trace.record import Recorder


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Event:
    """An event; `state` is the controller's state while it is processed (Kafka's ControllerState)."""

    state: ClassVar[str]

    def __init_subclass__(cls, state: str) -> None:
        cls.state = state
        if get_annotations(cls):  # an event without fields inherits the methods
            dataclass(frozen=True)(cls)

    @property
    def name(self) -> str:
        return type(self).__name__


class Startup(Event, state="ControllerChange"): ...


class ControllerChange(Event, state="ControllerChange"): ...


class Reelect(Event, state="ControllerChange"): ...


class RegisterBrokerAndReelect(Event, state="ControllerChange"): ...


class Expire(Event, state="ControllerChange"):
    """The session is gone; `started` is set when processing begins, and only then a new session is made."""

    started: asyncio.Event = field(compare=False)


class BrokerChange(Event, state="BrokerChange"): ...


class BrokerModifications(Event, state="BrokerChange"):
    broker: int


class TopicChange(Event, state="TopicChange"): ...


class PartitionModifications(Event, state="TopicChange"):
    topic: str


class TopicDeletion(Event, state="TopicDeletion"): ...


class TopicDeletionStopReplicaResponseReceived(Event, state="TopicDeletion"):
    broker: int
    error: str | None
    errors: dict[TopicPartition, str | None] = field(compare=False)


class PartitionReassignment(Event, state="PartitionReassignment"): ...


class ApiPartitionReassignment(Event, state="PartitionReassignment"):
    """`reply` gets the refusals by partition, as ApiError; a target of None cancels."""

    targets: dict[TopicPartition, tuple[int, ...] | None] = field(compare=False)
    reply: asyncio.Future = field(compare=False)


class ListPartitionReassignments(Event, state="ListPartitionReassignment"):
    """`reply` gets the assignments of those of the partitions, or of all if None, that are moving."""

    partitions: tuple[TopicPartition, ...] | None
    reply: asyncio.Future = field(compare=False)


class PartitionReassignmentIsrChange(Event, state="PartitionReassignment"):
    partition: TopicPartition


class PreferredReplicaLeaderElection(Event, state="ManualLeaderBalance"): ...


class ReplicaLeaderElection(Event, state="ManualLeaderBalance"):
    """An administrator asks for elections; `reply` gets the leader of each partition, or an ApiError."""

    kind: ElectionType
    partitions: tuple[TopicPartition, ...]
    reply: asyncio.Future = field(compare=False)


class TopicUncleanLeaderElectionEnable(Event, state="TopicUncleanLeaderElectionEnable"):
    """A topic's configuration allows unclean elections now."""

    topic: str


class AutoPreferredReplicaLeaderElection(Event, state="AutoLeaderBalance"): ...


class LogDirEventNotification(Event, state="LogDirChange"): ...


class IsrChangeNotification(Event, state="IsrChange"): ...


class ControlledShutdown(Event, state="ControlledShutdown"):
    """`reply` gets the partitions the broker still leads, or an error."""

    broker: int
    broker_epoch: int
    reply: asyncio.Future = field(compare=False)


class LeaderAndIsrResponseReceived(Event, state="LeaderAndIsrResponseReceived"):
    broker: int
    error: str | None
    errors: dict[TopicPartition, str | None] = field(compare=False)


class Subject(TypedDict, total=False):
    """Columns of a record."""

    broker: int
    topic: str
    partition: int


def subject(event: Event) -> Subject:
    """The columns of a record that name the subject of an event."""
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

    def __init__(self, actor: str, trace: Recorder, preempts: bool) -> None:
        self.actor, self.trace, self.preempts = actor, trace, preempts
        self._items: deque[tuple[Event, int]] = deque()
        self._arrived = asyncio.Event()
        self.closed = False

    def put(self, event: Event) -> None:
        if not self.closed:
            self._items.append((event, self.record(event)))
            self._arrived.set()

    def record(self, event: Event) -> int:
        """Record that an event has arrived and waits to be processed."""
        return self.trace.add(self.actor, "event", event.name, target="queued", **subject(event))

    def clear_and_put(self, event: Event) -> None:
        """Drop all queued events, then put; since 2.2, controlled shutdowns and elections get an error (`preempt`)."""
        for dropped, seq in self._items:
            asked = dropped if isinstance(dropped, ControlledShutdown | ReplicaLeaderElection) else None
            if self.preempts and asked is not None and not asked.reply.done():
                asked.reply.set_exception(ControllerMoved("Controller moved to another broker"))
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
