"""What the procedures of a controller work with: its process, queue, channels, state machines and locks.

A procedure (`deletion.py`, `reassignment.py`, ...) is a set of functions that take an `Environment`; only
`controller.py` knows all procedures. What a procedure needs of one that imports it is a method here, which the
controller implements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.controller.batch import PackedBatch, RequestBatch
from kafka_ctl.controller.channel import Channels
from kafka_ctl.controller.gauges import Gauges
from kafka_ctl.controller.legacy_threads import Lock, Thread
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.controller.queue import EventQueue
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.errors import BatchNotEmpty, ControllerMoved
from kafka_ctl.requests import Response


class Environment(ControllerProcess):
    """The parts of a controller; `Controller` adds what becomes of each event."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.active_id = -1
        """The broker this one believes to be the controller; -1 for none."""
        self.last_election = (0, "")
        """When (how many records there were) it last became controller, or on which malformed znode that failed."""
        self.queue = EventQueue(self.actor, self.trace, self.generation.threads.preempts_queue)
        self.lock, self.shutdown_lock = Lock(self.clock), Lock(self.clock)
        """Where several threads share the context, whoever works on it holds the first (Kafka's controllerLock), and
        only one controlled shutdown runs at a time (brokerShutdownLock)."""
        self.deletion_wanted = asyncio.Event()
        self.threads: list[Thread] = []
        """What runs beside the events while this controller is active."""
        self.channels = Channels(self)
        self.partition_machine = PartitionStateMachine(self, self._batch())
        self.replica_machine = ReplicaStateMachine(self, self._batch())
        self.batch = self._batch()
        self.gauges = Gauges(self.context, self.generation, lambda: self.is_active)

    def _batch(self) -> RequestBatch:
        kind = PackedBatch if "batch" in self.plugins.rules else RequestBatch
        return kind(self, self.channels, self.leader_and_isr_answered)

    @property
    def is_active(self) -> bool:
        """Whether this broker acts as controller; in 0.10, whether it has channels, whoever is elected (KAFKA-4447)."""
        return self.channels.open if self.generation.threads.acts_while_connected else self.active_id == self.id

    def locked(self) -> AbstractAsyncContextManager[object]:
        """What one thread may do at a time; where there is one only, that goes without saying."""
        return nullcontext() if self.generation.threads.single_threaded else self.lock

    def locked_for_shutdown(self) -> AbstractAsyncContextManager[object]:
        """The same for controlled shutdowns, one of which runs at a time."""
        return nullcontext() if self.generation.threads.single_threaded else self.shutdown_lock

    async def take_over(self) -> None:
        """Become the acting controller, after the race was won."""
        raise NotImplementedError

    async def resign(self) -> None:
        """Cease to act as controller."""
        raise NotImplementedError

    async def move(self) -> None:
        """Give the controllership up: resign and delete `/controller`, so that all compete again."""
        raise NotImplementedError

    async def work(self, event: events.Event, cause: int | None) -> None:
        """Process an event in this task; `cause` is the record of its arrival."""
        raise NotImplementedError

    def hand_over(self, event: events.Event) -> None:
        """Process an event that no listener made: in turn or, before there was a queue, in a thread of its own."""
        if self.generation.threads.single_threaded:
            self.queue.put(event)
        else:
            self.spawn(self.work(event, self.queue.record(event)))

    def leader_and_isr_answered(self, broker: int, response: Response) -> None:
        errors = dict(response.errors)
        self.hand_over(events.LeaderAndIsrResponseReceived(broker, response.error, errors))

    async def send_update_metadata(
        self, partitions: Iterable[TopicPartition] | None = None, brokers: Iterable[int] | None = None
    ) -> None:
        """Send metadata of these partitions (all that have a leader, if None) to these brokers (all live ones)."""
        try:
            self.batch.open()
            wanted = self.context.leadership if partitions is None else partitions
            receivers = self.context.live_or_shutting_down if brokers is None else brokers
            self.batch.update_metadata(receivers, list(wanted))
            self.batch.send()
        except BatchNotEmpty as error:
            await self.illegal_state(error)

    async def announce_brokers(self) -> None:
        """Send UpdateMetadata to all live brokers: with all partitions or, since KAFKA-7537, with none."""
        await self.send_update_metadata(None if self.generation.requests.metadata_to_all_on_broker_change else ())

    async def illegal_state(self, error: BatchNotEmpty) -> None:
        """A batch was left half sent: nothing can be trusted, so another controller shall start afresh (KAFKA-2300)."""
        if self.generation.bugs.keeps_batches:
            raise error
        self.log("forcing_resignation")
        self.batch.clear()
        await self.move()
        raise ControllerMoved(str(error)) from error
