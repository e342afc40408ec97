"""What a broker does for the partitions it leads: it appends records, answers fetches, and keeps the ISR.

A follower's fetch says where the follower's log ends. What every in-sync replica has lies below the high watermark. A
log is made when somebody produces; until then a follower that fetches has all there is. The leader writes a changed
ISR into the `state` znode on condition of the version it knows, and announces it under `/isr_change_notification`
after a while.
Kafka 2.0.1: cluster/Partition.scala, appendRecordsToLeader, maybeIncrementLeaderHW, maybeExpandIsr, maybeShrinkIsr;
server/ReplicaManager.scala, maybePropagateIsrChanges
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import repeat

from kafka_ctl.brokers.delayed_operations import Appended, DelayedProduce, enough_replicas
from kafka_ctl.brokers.fetches import (
    NOT_LEADER,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchState,
    OffsetsForLeaderEpochRequest,
    first_bytes,
)
from kafka_ctl.brokers.follower_fetch import FollowerFetch
from kafka_ctl.brokers.follower_lags import FollowerLags
from kafka_ctl.brokers.log import Entry, Log
from kafka_ctl.brokers.process import BrokerProcess, FollowerPeer
from kafka_ctl.brokers.purgatory import ClockTimer, Purgatory
from kafka_ctl.brokers.topic_configs import TopicConfigs
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import ConnectionLoss, SessionExpired
from kafka_ctl.requests import ProduceRequest, Response
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.store import Create, Set
from kafka_ctl.zookeeper.znodes import (
    IsrChangeNotificationSequenceZNode,
    IsrChangeNotificationZNode,
    TopicPartitionStateZNode,
)

PROPAGATION_CHECK, PROPAGATION_QUIET, PROPAGATION_LIMIT = 2.5, 5.0, 60.0
"""Seconds: how often a leader looks, how long ISRs must be quiet, how long a change waits at most."""
ALL = -1
"""What `acks=all` is in a request."""
NOT_ENOUGH = "NOT_ENOUGH_REPLICAS"


class LeaderRole:
    """The leader's side of one broker process; the records themselves are on its disk and outlive it."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs) -> None:
        self.process, self.configs, self.started = process, configs, process.clock.now()
        self.follower_ends: dict[TopicPartition, dict[int, int]] = {}
        self.lags = FollowerLags(process, self.follower_ends)
        """The log end offset of each follower, as of its last fetch."""
        self._epoch_start: dict[TopicPartition, int] = {}
        """Where our log ended when our leader epoch began."""
        self.produce_purgatory = Purgatory(ClockTimer(process.clock))
        """Produce requests that wait until the high watermark has come to their last record."""
        self.fetch_purgatory = Purgatory(ClockTimer(process.clock, background=True))
        """Fetches that wait for bytes: those of followers, and what comes over the wire."""
        self._changed: dict[TopicPartition, None] = {}
        self._last_change = self._last_propagation = self.started
        self._propagator: asyncio.Task | None = None
        self._joining: set[tuple[TopicPartition, int]] = set()
        """Followers that are about to enter an ISR: who fetches meanwhile need not ask again."""
        self._writing: dict[TopicPartition, asyncio.Lock] = {}

    def begin(self) -> None:
        """The process has a session: from now on it looks every so often whether there is an ISR to announce.

        Each broker looks at times of its own, as they did not start at the same moment.
        Kafka 2.0.1: server/ReplicaManager.scala, startup
        """
        self.started = self._last_change = self._last_propagation = self.process.clock.now()

    # Leading

    def lead(self, tp: TopicPartition) -> None:
        """Lead it in a new epoch, perhaps for the first time.

        Where fetches name no leader epoch, a follower that never stopped fetching goes on, also outside of the ISR.
        """
        process = self.process
        log = process.disk.logs.get(tp)
        if log is not None:
            self._epoch_start[tp] = log.end
            self.increment_high_watermark(tp)
            self._each_follower(tp, lambda follower: follower.fetch(tp))  # they never ceased to ask
        hosted = process.hosted[tp]
        for follower in hosted.replicas:
            other = process.network.follower(follower) if follower not in hosted.state.isr else None
            if other is not None and process.reaches(follower) and not other.names_epoch(process.id):
                other.fetch_on(tp)

    def release(self, tp: TopicPartition) -> None:
        """Lead it no more: requests that wait here are answered with that."""
        self.follower_ends.pop(tp, None)
        self._epoch_start.pop(tp, None)
        self.produce_purgatory.check_and_complete(tp)
        self.fetch_purgatory.check_and_complete(tp)

    # Records

    async def produce(self, request: ProduceRequest) -> Response:
        """Append the records, and with `acks=all` answer only when every in-sync replica has them."""
        tp, process = request.partition, self.process
        if not process.leads(tp):
            return Response(NOT_LEADER)
        state = process.hosted[tp].state
        if request.acks == ALL and len(state.isr) < self.configs.min_isr(tp):
            return Response(NOT_ENOUGH)
        if tp not in process.disk.logs:
            self._each_follower(tp, lambda follower: follower.wait_for_records(tp))
        log = process.disk.log(tp)
        sizes = request.sizes or repeat(0)
        offset, epoch = log.end, state.leader_epoch
        entries = [Entry(epoch, value, size) for value, size in zip(request.values, sizes, strict=False)]
        log.entries += entries
        CAUSE.set(process.record_offset("append", tp, entries, offset))
        self.fetch_purgatory.check_and_complete(tp)
        self.increment_high_watermark(tp)
        error = await self.replicated(tp, log.end, request.timeout) if request.acks == ALL else None
        return Response(error, offset=None if error else offset)

    async def replicated(self, tp: TopicPartition, end: int, timeout: float) -> str | None:
        """Wait until the high watermark reaches `end`; returns the error if it does not, or means too little."""
        operation = DelayedProduce(round(timeout * 1000), {tp: Appended(end)}, self)
        try:
            self.produce_purgatory.try_complete_else_watch(operation, [tp])
            return str(error) if (error := (await operation)[tp]) else None
        finally:
            operation.cancel()  # the process may have ended

    def enough_replicas(self, tp: TopicPartition, offset: int) -> tuple[bool, str | None]:
        """Whether every in-sync replica has what is below this offset; an error if we do not lead, or too few are."""
        if not self.process.leads(tp):
            return False, NOT_LEADER
        high_watermark, isr = self.process.disk.log(tp).high_watermark, self.process.hosted[tp].state.isr
        return enough_replicas(high_watermark, offset, len(isr), self.configs.min_isr(tp))

    def increment_high_watermark(self, tp: TopicPartition) -> None:
        """Raise the high watermark to where every in-sync replica's log reaches; not while the ISR is being written."""
        log = self.process.disk.logs.get(tp)
        if log is None or not self.process.leads(tp) or self.is_writing(tp):
            return
        end = self.in_sync_end(tp, log)
        if end > log.high_watermark:
            self.process.set_high_watermark(tp, log, end)
            self.fetch_purgatory.check_and_complete(tp)
            self.produce_purgatory.check_and_complete(tp)

    def in_sync_end(self, tp: TopicPartition, log: Log) -> int:
        """How far the log of every in-sync replica reaches."""
        ends, hosted = self.follower_ends.get(tp, {}) | {self.process.id: log.end}, self.process.hosted[tp]
        plugins = self.process.world.plugins
        if "high_watermark" in plugins.rules:
            known = {replica: ends.get(replica, -1) for replica in hosted.replicas}
            return plugins.high_watermark(known, hosted.state.isr, self.process.id)
        return min(ends.get(replica, -1) for replica in hosted.state.isr)

    def _each_follower(self, tp: TopicPartition, do: Callable[[FollowerPeer], object]) -> None:
        for id in self.process.hosted[tp].replicas:
            other = self.process.network.follower(id) if id != self.process.id else None
            if other is not None:
                do(other)

    # Fetches of followers

    def answers(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Whether we answer a fetch that names this leader epoch, or -1 for none.

        Kafka 2.4.1: cluster/Partition.scala, checkCurrentLeaderEpoch
        """
        process = self.process
        checks = process.generation.records.checks_fetched_epoch and leader_epoch >= 0
        return process.leads(tp) and (not checks or process.hosted[tp].state.leader_epoch == leader_epoch)

    def fetch_state(self, tp: TopicPartition, replica: int, leader_epoch: int) -> FetchState:
        """What a fetch would find here."""
        log = self.process.disk.logs.get(tp)
        offsets = (log.high_watermark, log.end) if log is not None else None
        return FetchState(self.answers(tp, leader_epoch), offsets, self.is_in_isr(tp, replica))

    def hold(self, request: FetchRequest, answered: Callable[[bool], object]) -> FollowerFetch:
        """Let a fetch wait here until there is what it waits for."""
        fetch = FollowerFetch(self, self.process, request, answered)
        self.fetch_purgatory.try_complete_else_watch(fetch, [request.partition])
        if not fetch.is_completed:
            fetch.looked_at()
        return fetch

    def end_of_epoch(self, request: OffsetsForLeaderEpochRequest) -> EpochEndOffset | None:
        """Where an epoch ends in our log; None if we refuse to answer."""
        tp, _, leader_epoch, epoch = request
        return EpochEndOffset(*self.process.disk.log(tp).end_of(epoch)) if self.answers(tp, leader_epoch) else None

    def fetch(self, request: FetchRequest) -> FetchResponse | None:
        """Answer a fetch, and remember that the follower has everything below its offset; None if we refuse it."""
        tp, follower, epoch, offset, _ = request
        if offset is None:
            joins = self.fetched_to_end(tp, follower, epoch)
            return FetchResponse([], 0, 0, in_isr=self.is_in_isr(tp, follower)) if joins else None
        if not self.answers(tp, epoch):
            return None
        log = self.process.disk.log(tp)
        throttled = offset < log.end and self.throttles(tp, follower)
        entries = [] if throttled else first_bytes(log.entries[offset:])
        answer = FetchResponse(entries, log.high_watermark, log.end, throttled)
        self.note_fetch(tp, follower, offset)
        self.count_sent(tp, sum(entry.size for entry in entries))
        return answer

    def throttles(self, tp: TopicPartition, follower: int) -> bool:
        """Whether a follower may not be sent more of this partition now (KIP-73).

        Kafka 2.0.1: server/ReplicaManager.scala, shouldLeaderThrottle
        """
        return self.process.quotas.leader.stops(tp, self.is_in_isr(tp, follower))

    def count_sent(self, tp: TopicPartition, bytes: int) -> None:
        """So many bytes leave for a follower."""
        self.process.quotas.leader.record(tp, bytes)

    def note_fetch(self, tp: TopicPartition, follower: int, offset: int) -> None:
        """A follower fetches from this offset: it has everything below it.

        Kafka 2.0.1: cluster/Partition.scala, updateReplicaLogReadResult
        """
        if offset <= self.process.disk.log(tp).end:
            self.follower_ends.setdefault(tp, {})[follower] = offset
            self.increment_high_watermark(tp)

    def fetched_to_end(self, tp: TopicPartition, follower: int, leader_epoch: int) -> bool:
        """A follower fetches from the end of our log; False if we do not answer it, or it may not join the ISR."""
        hosted = self.process.hosted.get(tp)
        if hosted is None or not self.answers(tp, leader_epoch) or not self.can_join_isr(tp, follower):
            return False
        if follower in hosted.replicas and follower not in hosted.state.isr and (tp, follower) not in self._joining:
            self._joining.add((tp, follower))
            self.process.spawn(self._expand_isr(tp, follower))
        return True

    def can_join_isr(self, tp: TopicPartition, follower: int) -> bool:
        """Whether a follower has enough to be in sync: all below the high watermark and, since KAFKA-7128, all that
        we had when we began to lead."""
        log = self.process.disk.logs.get(tp)
        if log is None:
            return True
        since = self._epoch_start.get(tp, 0) if self.process.generation.isr.joins_from_epoch_start else 0
        return self.follower_ends.get(tp, {}).get(follower, -1) >= max(log.high_watermark, since)

    def is_in_isr(self, tp: TopicPartition, follower: int) -> bool:
        """Whether a follower is in the ISR as far as we know."""
        hosted = self.process.hosted.get(tp)
        return hosted is not None and follower in hosted.state.isr

    # The ISR

    async def _expand_isr(self, tp: TopicPartition, follower: int) -> None:
        try:
            await self._change_isr(tp, "expand-isr", add=follower)
        finally:
            self._joining.discard((tp, follower))

    async def shrink_isrs(self) -> None:
        """Every half `replica.lag.time.max.ms`, take followers out of the ISR that lag for longer than that."""
        CAUSE.set(None)
        process = self.process
        limit = process.config["replica.lag.time.max.ms"] / 1000
        while True:
            await process.clock.sleep(limit / 2, background=True)
            for tp, late in self.lags.late_now(limit).items():
                await self._change_isr(tp, "shrink-isr", remove=late)
                for id in late:
                    follower = process.network.follower(id)
                    if follower is not None and process.reaches(id):
                        follower.fetch_again()  # it never stopped, or is heard again since this was decided

    async def _change_isr(
        self, tp: TopicPartition, action: str, add: int | None = None, remove: tuple[int, ...] = ()
    ) -> None:
        """Write a new ISR if the znode still has the version we know; else leave it to the controller."""
        async with self._writing.setdefault(tp, asyncio.Lock()):
            await self._write_isr(tp, action, add, remove)
        self.increment_high_watermark(tp)

    async def _write_isr(self, tp: TopicPartition, action: str, add: int | None, remove: tuple[int, ...]) -> None:
        process, hosted = self.process, self.process.hosted.get(tp)
        if hosted is None or hosted.state.leader != process.id:
            return
        old = hosted.state
        isr = tuple(r for r in old.isr if r not in remove)
        isr = isr if add is None or add in isr else (*isr, add)
        if isr == old.isr or not isr or (add is not None and add not in hosted.replicas):
            return
        new = old._replace(isr=isr)
        version, error = await self._write(tp, new)
        process.record(
            action,
            tp,
            leader=process.id,
            isr=isr,
            leader_epoch=new.leader_epoch,
            zk_version=version,
            controller_epoch=new.controller_epoch,
            error=error,
            detail=details.write(isr_before=details.listed(old.isr), cached_version=old.zk_version if error else None),
        )
        current = process.hosted.get(tp)
        if error is None and current is hosted and hosted.state is old:
            hosted.state = new._replace(zk_version=version)
            self._announce(tp)

    async def _write(self, tp: TopicPartition, state: LeaderAndIsr) -> tuple[int, str | None]:
        """The new zk_version, or an error; a znode that already holds what we want to write is no error."""
        zk, path = self.process.zk, TopicPartitionStateZNode.path(tp)
        data = TopicPartitionStateZNode.encode(state)
        answer = await zk.write(Set(path, data, state.zk_version))
        if answer.error == "BADVERSION" and not self.process.generation.bugs.refuses_own_isr:
            there = await zk.read(path)
            if there.value == data and there.stat is not None:
                return there.stat.version, None
        return answer.stat.version if answer.stat else -1, answer.error

    def is_writing(self, tp: TopicPartition) -> bool:
        """Whether a new ISR is on its way to ZooKeeper: until it is there, neither the old nor the new one counts."""
        lock = self._writing.get(tp)
        return lock is not None and lock.locked()

    async def isr_written(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until no new ISR of these is on its way to ZooKeeper: who writes one holds the lock of the partition.

        Kafka 2.0.1: cluster/Partition.scala, leaderIsrUpdateLock, in makeLeader, makeFollower and delete
        """
        for tp in partitions:
            if self.is_writing(tp):
                async with self._writing[tp]:
                    pass

    def _announce(self, tp: TopicPartition) -> None:
        self._changed[tp] = None
        self._last_change = self.process.clock.now()
        if self._propagator is None or self._propagator.done():
            self._propagator = self.process.spawn(self._propagate())

    async def _propagate(self) -> None:
        """At the next check after things are quiet, name the changed partitions under `/isr_change_notification`."""
        clock = self.process.clock
        while self._changed:
            wait = PROPAGATION_CHECK - (clock.now() - self.started) % PROPAGATION_CHECK
            await clock.sleep(wait if wait > 1e-6 else PROPAGATION_CHECK)
            now = clock.now()
            if self._last_change + PROPAGATION_QUIET < now or self._last_propagation + PROPAGATION_LIMIT < now:
                changed, self._changed = list(self._changed), {}
                self._last_propagation = now
                prefix = f"{IsrChangeNotificationZNode.path()}/isr_change_"
                data = IsrChangeNotificationSequenceZNode.encode(changed)
                try:
                    (await self.process.zk.write(Create(prefix, data, sequence=True))).checked()
                except (ConnectionLoss, SessionExpired):
                    self._changed |= dict.fromkeys(changed)

    def state_key(self) -> str:
        """What the explorer compares of two states: the ISRs still to be announced."""
        return f"{self._changed}"
