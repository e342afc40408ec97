"""What a broker does with the partitions it holds: lead, follow, stop; and what it knows of all the others.

Epochs protect it: a request of an older controller, or a leader epoch that is not newer, is refused.
Kafka 2.0.1: server/ReplicaManager.scala, ReplicaManager; server/MetadataCache.scala, MetadataCache
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_ctl.brokers.disk import STORAGE_ERROR
from kafka_ctl.brokers.fetcher import KEPT, SKIPPED
from kafka_ctl.brokers.requests import (
    UNKNOWN_EPOCH,
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from kafka_ctl.cluster import LEADER_DURING_DELETE, NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.zookeeper.store import Create
from kafka_ctl.zookeeper.znodes import LogDirEventNotificationSequenceZNode, LogDirEventNotificationZNode

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH = "STALE_CONTROLLER_EPOCH", "STALE_BROKER_EPOCH"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(slots=True)
class Hosted:
    """A partition this broker holds a copy of."""

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    led_since: float = 0.0
    """When this broker became its leader, in seconds."""


class ReplicaManager:
    """The partitions of one broker, and its metadata cache."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.controller_epoch = 0
        """The highest controller epoch seen in any request."""
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.offline: set[TopicPartition] = set()
        """Partitions whose copy cannot be used since a log directory failed."""
        self.metadata: dict[TopicPartition, LeaderAndIsr] = {}
        self.live_brokers: tuple[int, ...] = ()
        self.updated = asyncio.Event()
        """Set whenever the metadata has changed."""
        self.lock = asyncio.Lock()
        """Held while a request of a controller is handled (Kafka's replicaStateChangeLock)."""

    def _stale(self, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest) -> Response | None:
        """The refusal of a request whose controller has been replaced, or that was meant for an earlier life of this
        broker, else None; remembers the controller's epoch."""
        if request.broker_epoch != UNKNOWN_EPOCH and request.broker_epoch < self.broker.epoch:
            self.broker.record(
                "ignored",
                controller_epoch=request.controller_epoch,
                error=STALE_BROKER_EPOCH,
                detail=f"request={request.name} controller={request.controller} broker_epoch={request.broker_epoch} "
                f"latest={self.broker.epoch}",
            )
            return Response(STALE_BROKER_EPOCH)
        checks = self.broker.world.generation.checks_controller_epoch
        if request.controller_epoch < self.controller_epoch and checks:
            self.broker.record(
                "ignored",
                controller_epoch=request.controller_epoch,
                error=STALE_CONTROLLER_EPOCH,
                detail=f"request={request.name} controller={request.controller} latest={self.controller_epoch}",
            )
            return Response(STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        return None

    async def read_configs(self, request: LeaderAndIsrRequest) -> None:
        """Read the configurations of the topics of which this request makes new copies: without ZooKeeper, it waits.

        Kafka does so for each copy, here it is once for each topic of the request.
        Kafka 2.0.1: cluster/Partition.scala, getOrCreateReplica; 2.4.1: createLog
        """
        me, disk = self.broker.id, self.broker.disk
        if (
            request.controller_epoch < self.controller_epoch
            or UNKNOWN_EPOCH != request.broker_epoch < self.broker.epoch
        ):
            return
        new: dict[str, list[TopicPartition]] = {}
        for tp, told in request.partitions.items():
            if tp not in self.hosted and me in told.replicas and not disk.refuses(tp, told.is_new):
                new.setdefault(tp.topic, []).append(tp)
        for topic, partitions in new.items():
            await self.broker.logs.configure(topic, partitions)

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> Response:
        """Become leader or follower of each partition whose leader epoch is newer than what is known.

        Kafka 2.0.1: server/ReplicaManager.scala, becomeLeaderOrFollower
        """
        if refusal := self._stale(request):
            return refusal
        errors: dict[TopicPartition, str | None] = {}
        for tp, told in request.partitions.items():
            errors[tp] = self._problem(tp, told, request)
            if errors[tp] is None:
                self._become(tp, told)
        return Response(None, errors)

    def _problem(self, tp: TopicPartition, told: PartitionState, request: LeaderAndIsrRequest) -> str | None:
        """Why this partition's part of the request is ignored, None if it is not."""
        known = self.hosted.get(tp)
        current = known.state.leader_epoch if known else -1
        if self.broker.disk.refuses(tp, told.is_new) or self.broker.log_dirs.prefers_failed(tp):
            error, detail = STORAGE_ERROR, "its log directory failed"
            self.offline.add(tp)
        elif told.state.leader_epoch <= current:
            error, detail = STALE_CONTROLLER_EPOCH, f"current={current}"
        elif self.broker.id not in told.replicas:
            error, detail = UNKNOWN_TOPIC_OR_PARTITION, "not in the assigned replicas"
        else:
            return None
        self.broker.record(
            "ignored",
            tp,
            leader=told.state.leader,
            leader_epoch=told.state.leader_epoch,
            controller_epoch=request.controller_epoch,
            error=error,
            replicas=told.replicas,
            detail=detail,
        )
        return error

    def _become(self, tp: TopicPartition, told: PartitionState) -> None:
        broker, state = self.broker, told.state
        broker.disk.hold(tp, broker.log_dirs.for_new(tp))
        leads = state.leader == broker.id
        known = leads or state.leader in self.live_brokers
        before = self.hosted.get(tp)
        fetcher = "" if leads or not known else broker.replication.fetcher_of(before.state if before else None, state)
        if known:
            stays = before is not None and before.state.leader == broker.id and leads
            led_since = before.led_since if before is not None and stays else broker.clock.now()
            self.hosted[tp] = Hosted(state, told.replicas, led_since)
        else:  # the copy is made, but nothing of what was told is remembered: the next request may say it again
            self.hosted.setdefault(tp, Hosted(LeaderAndIsr(NO_LEADER, (), -1), told.replicas))
        broker.trace.about(
            broker.actor,
            "broker",
            "become-leader" if leads else "become-follower",
            tp,
            broker.id,
            state,
            error=None if known else "LEADER_NOT_AVAILABLE",
            replicas=told.replicas,
            detail=" ".join(["is_new"] * told.is_new + [f"fetcher={fetcher}"] * (fetcher in (KEPT, SKIPPED))) or None,
        )
        if leads:
            broker.replication.lead(tp)
        elif known:
            broker.replication.follow(tp, fetcher)
        if before is None:
            broker.log_dirs.go_on(tp)

    def update_metadata(self, request: UpdateMetadataRequest) -> Response:
        """Remember who is alive and who leads; leader -2 removes a partition that is being deleted.

        Kafka 2.0.1: server/MetadataCache.scala, updateCache
        """
        if refusal := self._stale(request):
            return refusal
        self.live_brokers = request.live_brokers
        broker = self.broker
        about, actor, number, cache = broker.trace.about, broker.actor, broker.id, self.metadata
        for tp, (state, replicas, *_) in request.partitions.items():
            if state.leader == LEADER_DURING_DELETE:
                cache.pop(tp, None)
                broker.record("uncached", tp)
            else:
                cache[tp] = state
                about(actor, "broker", "cached", tp, number, state, replicas=replicas)
        self.updated.set()
        return Response()

    def stop_replica(self, request: StopReplicaRequest) -> Response:
        """Stop copying, and delete if told so; a partition not held is no error.

        Kafka 2.0.1: server/ReplicaManager.scala, stopReplicas
        """
        if refusal := self._stale(request):
            return refusal
        errors: dict[TopicPartition, str | None] = {}
        for tp in request.partitions:
            held = tp in self.hosted
            self.broker.replication.remove_fetcher(tp)
            self.broker.log_dirs.stop(tp)
            errors[tp] = STORAGE_ERROR if self.broker.disk.refuses(tp, is_new=True) else None
            if request.delete and errors[tp] is None:
                self.hosted.pop(tp, None)
                self.broker.replication.forget(tp)
                self.broker.logs.release(tp)
                self.broker.disk.delete(tp)
            elif request.delete and not self.broker.world.generation.counts_written_isrs:
                self.offline.discard(tp)
            self.broker.record(
                "stop-replica",
                tp,
                controller_epoch=request.controller_epoch,
                error=errors[tp],
                detail=" ".join(["delete"] * request.delete + ["absent"] * (not held)) or None,
            )
        return Response(None, errors)

    def fail_log_dir(self) -> None:
        """A log directory fails: its copies are gone, and the controller is told through ZooKeeper.

        A broker that has none left halts, and so does one that does not know of several (KAFKA-4763).
        Kafka 2.0.1: server/ReplicaManager.scala, handleLogDirFailure
        """
        broker, lost = self.broker, self.broker.disk.fail()
        broker.record("log-dir-failed", detail=f"partitions={','.join(map(str, lost))}")
        broker.log_dirs.stop_where_failed()
        for tp in lost:
            broker.replication.forget(tp)
            broker.logs.release(tp)
            if self.hosted.pop(tp, None) is not None:
                self.offline.add(tp)
        if broker.disk.has_failed or not broker.world.generation.marks_new_replicas:
            broker.record("stopped", error="KafkaStorageException")
            broker.kill()
        else:
            broker.spawn(self._announce_failure())

    async def _announce_failure(self) -> None:
        parent, data = LogDirEventNotificationZNode.path(), LogDirEventNotificationSequenceZNode.encode(self.broker.id)
        await self.broker.zk.write(Create(f"{parent}/log_dir_event_", data, sequence=True))
