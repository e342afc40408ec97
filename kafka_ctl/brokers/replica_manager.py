"""The partitions of a broker: it leads, follows and stops them; and the metadata of all others.

Epochs protect it: a request of an older controller, or a leader epoch that is not newer, is refused.
Kafka 2.0.1: server/ReplicaManager.scala, ReplicaManager; server/MetadataCache.scala, MetadataCache
"""

from __future__ import annotations

import asyncio

from kafka_ctl.brokers.configs import TopicConfigs
from kafka_ctl.brokers.follower import KEPT, SKIPPED, FollowerRole
from kafka_ctl.brokers.leader import LeaderRole
from kafka_ctl.brokers.log_dirs import LogDirs
from kafka_ctl.brokers.process import BrokerProcess, HostedPartition
from kafka_ctl.cluster import LEADER_DURING_DELETE, NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.requests import (
    STORAGE_ERROR,
    UNKNOWN_EPOCH,
    UNKNOWN_PARTITION,
    ControlRequest,
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    api_name,
)
from kafka_ctl.trace import details
from kafka_ctl.zookeeper.store import Create
from kafka_ctl.zookeeper.znodes import LogDirEventNotificationSequenceZNode

STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH = "STALE_CONTROLLER_EPOCH", "STALE_BROKER_EPOCH"
UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR"


class ReplicaManager:
    """Carries out the controller's requests on one broker."""

    def __init__(
        self,
        process: BrokerProcess,
        configs: TopicConfigs,
        leader: LeaderRole,
        follower: FollowerRole,
        log_dirs: LogDirs,
    ) -> None:
        self.process, self.configs = process, configs
        self.leader, self.follower, self.log_dirs = leader, follower, log_dirs
        self.controller_epoch = 0
        """The highest controller epoch seen in any request."""
        self.lock = asyncio.Lock()
        """Held while a request of a controller is handled (Kafka's replicaStateChangeLock)."""

    def stale(self, request: ControlRequest) -> Response | None:
        """The refusal of a request whose controller has been replaced, or that was meant for another life of this
        broker, else None; remembers the controller's epoch.

        A later life's epoch is an error of the server: the controller knows it before the broker (KAFKA-9839).
        Kafka 2.4.1: server/KafkaApis.scala, isBrokerEpochStale, handleError; common/requests/LeaderAndIsrRequest.java,
        getErrorResponse
        """
        given, mine = request.broker_epoch, self.process.epoch
        own = {"broker_epoch": given, "latest": mine}
        if given not in (UNKNOWN_EPOCH, mine):
            error = STALE_BROKER_EPOCH if given < mine else UNKNOWN_SERVER_ERROR
        elif not self._obeys(request.controller_epoch):
            error, own = STALE_CONTROLLER_EPOCH, {"latest": self.controller_epoch}
        else:
            self.controller_epoch = request.controller_epoch
            return None
        self.process.record(
            "ignored",
            controller_epoch=request.controller_epoch,
            error=error,
            detail=details.write(request=api_name(request), controller=request.controller, **own),
        )
        lists = isinstance(request, LeaderAndIsrRequest) and self.process.generation.requests.refuses_by_partition
        each = request.partitions if lists or error == UNKNOWN_SERVER_ERROR else ()
        return Response(error, dict.fromkeys(each, error))

    def _obeys(self, controller_epoch: int) -> bool:
        """True if a controller with this epoch is still the newest that is known."""
        obeys = self.process.world.plugins.rule("fence", self._is_newest)
        return obeys(controller_epoch, self.controller_epoch)

    def _is_newest(self, controller_epoch: int, newest: int) -> bool:
        return controller_epoch >= newest or self.process.generation.bugs.obeys_old_controllers

    async def _read_configs(self, request: LeaderAndIsrRequest) -> None:
        """Read the configurations of the topics of which this request makes new copies: without ZooKeeper, it waits.

        Kafka does so for each copy, here it is once for each topic of the request.
        Kafka 2.0.1: cluster/Partition.scala, getOrCreateReplica; 2.4.1: createLog
        """
        me = self.process.id
        new: dict[str, list[TopicPartition]] = {}
        for tp, sent in request.partitions.items():
            if tp not in self.process.hosted and me in sent.replicas and not self._lost(tp, sent.is_new):
                new.setdefault(tp.topic, []).append(tp)
        for topic, partitions in new.items():
            await self.configs.load(topic, partitions)

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> Response:
        """Become leader, then follower, of the partitions whose leader epoch is newer than what is known.

        Kafka 2.0.1: server/ReplicaManager.scala, becomeLeaderOrFollower
        """
        if refusal := self.stale(request):
            return refusal
        await self._read_configs(request)
        await self.leader.isr_written(request.partitions)
        errors = {tp: self.problem(tp, sent, request) for tp, sent in request.partitions.items()}
        accepted = [(tp, sent) for tp, sent in request.partitions.items() if errors[tp] is None]
        for tp, sent in sorted(accepted, key=lambda each: each[1].state.leader != self.process.id):
            self._become(tp, sent)
        if self.process.generation.log_dirs.outlives_failed_log_dir:
            self.process.offline |= request.partitions.keys() - self.process.hosted.keys()
        return Response(None, errors)

    def _lost(self, tp: TopicPartition, is_new: bool) -> bool:
        """True if no copy of this partition can be used or made. A refusal lasts until the process starts again.

        Kafka 2.0.1: server/ReplicaManager.scala, becomeLeaderOrFollower (OfflinePartition); log/LogManager.scala,
        getOrCreateLog
        """
        return tp in self.process.offline or self.process.disk.refuses(tp, is_new)

    def problem(self, tp: TopicPartition, sent: PartitionState, request: LeaderAndIsrRequest) -> str | None:
        """The reason why this partition's part of the request is ignored; None if it is not."""
        detail: str | None
        known = self.process.hosted.get(tp)
        current = known.state.leader_epoch if known else -1
        if self._lost(tp, sent.is_new) or self.log_dirs.prefers_failed(tp):
            error, detail = STORAGE_ERROR, "its log directory failed"
        elif sent.state.leader_epoch <= current:
            error, detail = STALE_CONTROLLER_EPOCH, details.write(current=current)
        elif self.process.id not in sent.replicas:
            error, detail = UNKNOWN_PARTITION, "not in the assigned replicas"
        else:
            return None
        self.process.record(
            "ignored",
            tp,
            leader=sent.state.leader,
            leader_epoch=sent.state.leader_epoch,
            controller_epoch=request.controller_epoch,
            error=error,
            replicas=sent.replicas,
            detail=detail,
        )
        return error

    def _become(self, tp: TopicPartition, sent: PartitionState) -> None:
        process, state = self.process, sent.state
        process.disk.hold(tp, self.log_dirs.for_new(tp))
        leads = state.leader == process.id
        known = leads or state.leader in self.process.live_brokers
        before = self.process.hosted.get(tp)
        fetcher = "" if leads or not known else self.follower.fetcher_of(before.state if before else None, state)
        if known:
            self.process.hosted[tp] = HostedPartition(state, sent.replicas, process.clock.now())
        else:  # the copy is made, but the state of the request is not kept: the next request may repeat it
            self.process.hosted.setdefault(tp, HostedPartition(LeaderAndIsr(NO_LEADER, (), -1), sent.replicas))
        process.trace.about(
            process.actor,
            "broker",
            "become-leader" if leads else "become-follower",
            tp,
            process.id,
            state,
            error=None if known else "LEADER_NOT_AVAILABLE",
            replicas=sent.replicas,
            detail=details.write("is_new" * sent.is_new, fetcher=fetcher if fetcher in (KEPT, SKIPPED) else None),
        )
        if leads:
            self.follower.forget(tp)
            self.leader.lead(tp)
        elif known:
            self.leader.release(tp)
            self.follower.follow(tp, fetcher)
        elif before is None:
            self.follower.remove_fetcher(tp)
        if before is None:
            self.log_dirs.resume(tp)

    def update_metadata(self, request: UpdateMetadataRequest) -> Response:
        """Remember who is alive and who leads; leader -2 removes a partition that is being deleted.

        Kafka 2.0.1: server/MetadataCache.scala, updateCache
        """
        if refusal := self.stale(request):
            return refusal
        self.process.live_brokers, self.process.known_controller = request.live_brokers, request.controller
        process, assigned = self.process, self.process.assigned
        about, actor, number, cache = process.trace.about, process.actor, process.id, self.process.metadata
        for tp, sent in request.partitions.items():
            state, replicas = sent.state, sent.replicas
            if state.leader == LEADER_DURING_DELETE:
                cache.pop(tp, None)
                assigned.pop(tp, None)
                process.record("uncached", tp)
            else:
                cache[tp], assigned[tp] = state, sent
                about(actor, "broker", "cached", tp, number, state, replicas=replicas)
        self.process.metadata_updated.set()
        return Response()

    def stop_replica(self, request: StopReplicaRequest) -> Response:
        """Stop copying, and delete if the request says so; a partition not held is no error.

        Kafka 2.0.1: server/ReplicaManager.scala, stopReplicas
        """
        if refusal := self.stale(request):
            return refusal
        errors: dict[TopicPartition, str | None] = {}
        for tp in request.partitions:
            held = tp in self.process.hosted
            self.follower.remove_fetcher(tp)
            self.log_dirs.stop(tp)
            errors[tp] = STORAGE_ERROR if request.delete and tp in self.process.offline else None
            if request.delete and errors[tp] is None:
                self.process.deletions += self.process.hosted.pop(tp, None) is not None
                self.follower.forget(tp)
                self.leader.release(tp, answers=False)
                self.process.disk.delete(tp)
            elif request.delete and not self.process.generation.isr.keeps_offline_partitions:
                self.process.offline.discard(tp)
            if errors[tp] is None and self.process.generation.records.answers_producers_at_stop:
                self.leader.produce_purgatory.check_and_complete(tp)
            self.process.record(
                "stop-replica",
                tp,
                controller_epoch=request.controller_epoch,
                error=errors[tp],
                detail=details.write("delete" * request.delete, "absent" * (not held)),
            )
        return Response(None, errors)

    def deletion_seconds(self) -> float:
        """The time for the copies that were deleted since the last call; a process is slow at its first."""
        process, costs = self.process, self.process.costs
        count, process.deletions = process.deletions, 0
        first = 0.0 if process.has_deleted or not count else costs.first_deletion
        process.has_deleted |= count > 0
        return first + count * costs.deletion

    def fail_log_dir(self) -> None:
        """A log directory fails: its copies are gone, and the controller learns of it through ZooKeeper.

        A broker with no working log directory halts. Before KAFKA-4763 it halts at the first failure.
        Kafka 2.0.1: server/ReplicaManager.scala, handleLogDirFailure
        """
        process, lost = self.process, self.process.disk.fail()
        process.record("log-dir-failed", detail=details.write(partitions=details.listed(lost)))
        self.log_dirs.stop_where_failed()
        for tp in lost:
            self.follower.forget(tp)
            if self.process.hosted.pop(tp, None) is not None:
                self.process.offline.add(tp)
            self.leader.release(tp, answers=False)
        if process.disk.has_failed or not process.generation.log_dirs.outlives_failed_log_dir:
            process.record("stopped", error="KafkaStorageException")
            process.kill()
        else:
            process.spawn(self._announce_failure())

    async def _announce_failure(self) -> None:
        znode = LogDirEventNotificationSequenceZNode
        await self.process.zk.write(Create(znode.path(), znode.encode(self.process.id), sequence=True))
