"""The controller of a broker: its state machines, request batches and channels, and the loop that takes events.

Every broker has one; at most one of them is active. A procedure (`deletion.py`, `reassignment.py`, ...) is a set of
functions that get the controller, as `env`; `dispatch.py` says which event starts which.
Kafka 2.0.1: controller/KafkaController.scala, KafkaController
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.controller.batch import Channels, RequestBatch
from kafka_ctl.controller.gauges import Gauges
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.process import ControllerProcess, Lock, Thread
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.errors import BatchNotEmpty, ControllerMoved, KafkaCtlError
from kafka_ctl.requests import Response
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE


class Procedures(NamedTuple):
    """The procedures that a controller starts itself; `dispatch.py` has them."""

    process: Callable[[Controller, events.Event], Awaitable[None]]
    controller_change: Callable[[Controller], Awaitable[None]]
    trigger_move: Callable[[Controller], Awaitable[None]]


@dataclass(eq=False, repr=False)
class Controller(ControllerProcess):
    """The controller module of broker `id`; `register` writes the broker's znode again after its session expired."""

    register: Callable[[], Awaitable[None]]
    procedures: Procedures

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = "Idle"
        """Kafka's ControllerState: the current work."""
        self.active_id = -1
        """The broker this one believes to be the controller; -1 for none."""
        self.last_election = (0, "")
        """The number of records at its last election, and the error of a malformed znode on which that failed."""
        self.queue = events.EventQueue(self.actor, self.trace, self.generation.threads.preempts_queue)
        self.lock, self.shutdown_lock = Lock(self.clock), Lock(self.clock)
        """Kafka's controllerLock, held by the thread that works on the context where threads share it (0.10), and
        brokerShutdownLock: only one controlled shutdown runs at a time."""
        self.deletion_wanted = asyncio.Event()
        self._started = False
        self.threads: list[Thread] = []
        """Background threads of the active controller."""
        self.channels = Channels(self)
        answered = self.leader_and_isr_answered, self.deletion_answered
        self.batch, *batches = [RequestBatch(self, self.channels, *answered) for _ in range(3)]
        self.partition_machine = PartitionStateMachine(self, batches[0])
        self.replica_machine = ReplicaStateMachine(self, batches[1])
        self.gauges = Gauges(self.context, self.generation, lambda: self.is_active)

    # Life

    async def startup(self) -> None:
        """Begin to compete for `/controller`; in 0.10 the broker goes on only when that is decided."""
        self._started = True
        self.spawn(self._run())
        if self.generation.threads.single_threaded:
            self.queue.put(events.Startup())
        else:
            await self.work(events.Startup(), CAUSE.get())

    def stop(self) -> None:
        """Stop at once, also in the middle of an event."""
        self.queue.close()
        for task in list(self._tasks):
            task.cancel()

    async def session_expired(self) -> None:
        """Drop the queued events, put Expire, and return when its processing has begun.

        In 0.10, and before the controller has started, nothing happens until the new session is there.
        """
        if not self.generation.failover.resigns_at_expiry or not self._started:
            return
        started = asyncio.Event()
        self.queue.clear_and_put(events.Expire(started))
        await started.wait()

    def session_renewed(self) -> None:
        if self._started:
            self.queue.put(events.RegisterBrokerAndReelect())

    async def _run(self) -> None:
        while True:
            await self.work(*await self.queue.get())

    async def work(self, event: events.Event, cause: int | None) -> None:
        """Process an event in this task; `cause` is the record of its arrival."""
        CAUSE.set(cause)
        waited = Lock.count()
        about = events.subject(event)
        started = self.trace.add(self.actor, "event", event.name, source="queued", target="started", **about)
        CAUSE.set(started)
        self.state = event.state
        error = None
        try:
            await self.procedures.process(self, event)
        except KafkaCtlError as problem:
            error = type(problem).__name__
            moved = isinstance(problem, ControllerMoved) and self.generation.zookeeper.fences_writes
            self.log("controller_moved" if moved else "error_processing", event=event.name, error=str(problem))
            if moved:
                await self.procedures.controller_change(self)
        if self.generation.gauges.counts_after_events:
            self.gauges.update()
        self.state = "Idle"
        detail = details.write(waited=f"{sum(waited) * 1000:.3g}ms" if any(waited) else None)
        self.trace.add(
            self.actor, "event", event.name, source="started", target="done", error=error, detail=detail, **about
        )

    # For procedures

    @property
    def is_active(self) -> bool:
        """True if this broker acts as controller; in 0.10, True while it has channels (KAFKA-4447)."""
        return self.channels.open if self.generation.threads.acts_while_connected else self.active_id == self.id

    def locked(self, lock: Lock | None = None) -> AbstractAsyncContextManager[object]:
        """The controller lock of 0.10, or another of its locks; a no-op in later releases or if the task has it."""
        asked = lock or self.lock
        has = self.generation.threads.single_threaded or (asked.locked() and asked.holder is asyncio.current_task())
        return nullcontext() if has else asked

    def hand_over(self, event: events.Event) -> None:
        """Process an event that no listener made: in its turn or, before there was a queue, in a thread of its own."""
        if self.generation.threads.single_threaded:
            self.queue.put(event)
        else:
            self.spawn(self.work(event, self.queue.record(event)))

    def leader_and_isr_answered(self, broker: int, answer: Response) -> None:
        self.hand_over(events.LeaderAndIsrResponseReceived(broker, answer.error, dict(answer.errors)))

    def deletion_answered(self, broker: int, answer: Response) -> None:
        """Make an event of an answer to StopReplica; since KAFKA-8294, of the topics in it that are being deleted."""
        every, started = not self.generation.requests.groups_stop_replica, self.context.deletion_started
        errors = {tp: error for tp, error in answer.errors.items() if every or tp.topic in started}
        if errors or every:
            self.hand_over(events.TopicDeletionStopReplicaResponseReceived(broker, answer.error, errors))

    async def send_update_metadata(
        self, partitions: Iterable[TopicPartition] | None = None, brokers: Iterable[int] | None = None
    ) -> None:
        """Send metadata of these partitions (None: all that ever had a leader) to these brokers (None: all known)."""
        async with self.batch_of_its_own() as batch:
            wanted = self.context.leadership if partitions is None else partitions
            receivers = self.context.live_or_shutting_down if brokers is None else brokers
            batch.update_metadata(receivers, list(wanted))

    @asynccontextmanager
    async def batch_of_its_own(self) -> AsyncIterator[RequestBatch]:
        """A request batch, sent at the end; one that was left half sent makes this controller resign (KAFKA-2300)."""
        try:
            self.batch.open()
            yield self.batch
            self.batch.send()
        except BatchNotEmpty as error:
            await self.illegal_state(error)

    async def announce_brokers(self) -> None:
        """Send UpdateMetadata to all registered brokers: with all partitions or, since KAFKA-7537, with none."""
        await self.send_update_metadata(None if self.generation.requests.metadata_to_all_on_broker_change else ())

    async def illegal_state(self, error: BatchNotEmpty) -> None:
        """Resign after a batch was left half sent, so that another controller starts afresh (KAFKA-2300)."""
        if not self.generation.bugs.keeps_batches:
            self.log("forcing_resignation")
            self.batch.clear()
            await self.procedures.trigger_move(self)
        raise error
