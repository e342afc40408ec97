"""The controller: one queue of events, one task that works through them, one method per event.

Every broker runs one; at most one of them is active. What an event does is in the module named after it.
Kafka 2.0.1: controller/KafkaController.scala, KafkaController
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kafka_ctl.controller import (
    deletion,
    electing,
    events,
    failover,
    leadership,
    membership,
    notifications,
    reassignment,
    reassignment_incremental,
    rebalance,
    shutdown,
    topics,
)
from kafka_ctl.controller.environment import Environment
from kafka_ctl.controller.legacy_threads import Lock
from kafka_ctl.errors import ControllerMoved, KafkaCtlError
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE


@dataclass(eq=False, repr=False)
class Controller(Environment):
    """The controller module of broker `id`; `register` writes the broker's own znode anew after its session expired."""

    register: Callable[[], Awaitable[None]]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = "Idle"
        self._started = False

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
        """Stop at once, in the middle of whatever it does."""
        self.queue.close()
        for task in list(self._tasks):
            task.cancel()

    async def session_expired(self) -> None:
        """Drop what waits in the queue, put Expire, and return when its processing has begun.

        While there is no queue, nothing happens before the new session is there; nor before the controller competes.
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
            await self.process(event)
        except KafkaCtlError as problem:
            error = type(problem).__name__
            moved = isinstance(problem, ControllerMoved) and self.generation.zookeeper.fences_writes
            self.log("controller_moved" if moved else "error_processing", event=event.name, error=str(problem))
            if moved:
                await leadership.controller_change(self)
        if self.generation.gauges.counts_after_events:
            self.gauges.update()
        self.state = "Idle"
        detail = details.write(waited=f"{waited.seconds * 1000:.3g}ms" if waited.seconds else None)
        self.trace.add(
            self.actor, "event", event.name, source="started", target="done", error=error, detail=detail, **about
        )

    async def process(self, event: events.Event) -> None:
        """Do what an event asks for."""
        match event:
            case events.Startup():
                await leadership.startup(self)
            case events.ControllerChange():
                await leadership.noticed_change(self)
            case events.Reelect():
                await leadership.reelect(self)
            case events.RegisterBrokerAndReelect() if self.generation.membership.registers_first:
                await self.register()
                await leadership.new_session(self)
            case events.RegisterBrokerAndReelect():
                await leadership.new_session(self)
                await self.register()
            case events.Expire(started):
                started.set()
                self.active_id = -1
                await self.resign()
            case events.ControlledShutdown(broker, broker_epoch, reply):
                await shutdown.controlled_shutdown(self, broker, broker_epoch, reply)
            case events.ApiPartitionReassignment(targets, reply):
                await reassignment_incremental.api_partition_reassignment(self, targets, reply)
            case events.ListPartitionReassignments(partitions, reply):
                reassignment_incremental.list_partition_reassignments(self, partitions, reply)
            case events.ReplicaLeaderElection(kind, partitions, reply):
                await electing.elect_leaders(self, kind, partitions, reply)
            case _ if await self._acts():
                await self._process_active(event)

    async def _acts(self) -> bool:
        """`is_active`, once nobody holds the lock: what comes while 0.10 takes over waits, and is not lost."""
        async with self.locked():
            return self.is_active

    async def _process_active(self, event: events.Event) -> None:
        """What only the acting controller does; any other drops these events."""
        match event:
            case events.BrokerChange():
                await membership.broker_change(self)
            case events.BrokerModifications(broker):
                await membership.broker_modifications(self, broker)
            case events.TopicChange():
                await topics.topic_change(self)
            case events.PartitionModifications(topic):
                await topics.partition_modifications(self, topic)
            case events.TopicDeletion():
                await deletion.topic_deletion(self)
            case events.TopicDeletionStopReplicaResponseReceived(broker, failed, errors):
                await deletion.stop_replica_response(self, broker, failed, errors)
            case events.PartitionReassignment() if self.generation.reassignment.incremental_reassignment:
                await reassignment_incremental.zk_partition_reassignment(self)
            case events.PartitionReassignment():
                await reassignment.partition_reassignment(self)
            case events.PartitionReassignmentIsrChange(tp):
                await (
                    reassignment_incremental if self.generation.reassignment.incremental_reassignment else reassignment
                ).isr_change(self, tp)
            case events.PreferredReplicaLeaderElection():
                await rebalance.preferred_election(self)
            case events.TopicUncleanLeaderElectionEnable(topic):
                await electing.unclean_enabled(self, topic)
            case events.AutoPreferredReplicaLeaderElection():
                await rebalance.auto_rebalance(self)
            case events.LogDirEventNotification():
                await notifications.log_dir_event_notification(self)
            case events.IsrChangeNotification():
                await notifications.isr_change_notification(self)
            case events.LeaderAndIsrResponseReceived(broker, failed, errors):
                await notifications.leader_and_isr_response(self, broker, failed, errors)

    # What procedures need of each other

    async def take_over(self) -> None:
        await failover.become_controller(self)
        self.last_election = (len(self.trace), "")

    async def resign(self) -> None:
        await failover.resign(self)

    async def move(self) -> None:
        await leadership.trigger_move(self)
