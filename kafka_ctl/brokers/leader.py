"""The leader role of a broker: it appends records, answers fetches, and keeps the ISR.

A follower's fetch says where the follower's log ends. The records that every in-sync replica has lie below the high
watermark. A log is made at the first produce; until then a follower that fetches has all there is. The leader writes a
changed ISR into the `state` znode on condition of the version it knows, and announces it under
`/isr_change_notification` after a while.
Kafka 2.0.1: cluster/Partition.scala, appendRecordsToLeader, maybeIncrementLeaderHW, maybeExpandIsr, maybeShrinkIsr;
server/ReplicaManager.scala, maybePropagateIsrChanges
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat

from kafka_ctl.brokers.configs import TopicConfigs
from kafka_ctl.brokers.delayed_operations import Appended, DelayedProduce, enough_replicas
from kafka_ctl.brokers.fetches import (
    FETCH_WAIT,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Finds,
    NextFetch,
    OffsetsForLeaderEpochRequest,
    first_bytes,
)
from kafka_ctl.brokers.log import Log, bytes_of, entries_of
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.purgatory import NEVER, ClockTimer, DelayedOperation, Purgatory
from kafka_ctl.brokers.record_deletion import RecordDeletion
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import BadInput, ConnectionLoss, NoNode, SessionExpired
from kafka_ctl.ports import Timer
from kafka_ctl.requests import ALL, FENCED, UNKNOWN_LEADER_EPOCH, ProduceRequest, Response
from kafka_ctl.scala_order import java_hash, set_order, trie_order
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.store import Create, Set
from kafka_ctl.zookeeper.znodes import IsrChangeNotificationSequenceZNode, TopicPartitionStateZNode

PROPAGATION_CHECK, PROPAGATION_QUIET, PROPAGATION_LIMIT = 2.5, 5.0, 60.0
"""Seconds: how often a leader looks, how long ISRs must be quiet, how long a change waits at most."""
NOT_ENOUGH = "NOT_ENOUGH_REPLICAS"


class LeaderRole:
    """The leader's side of one broker process; the records themselves are on its disk and outlive it.

    Relations that always hold:
        `follower_ends` has partitions that we lead only, and no end in it is above that of our log; an end may fall, as
        a follower that comes back begins below where it was
        `epoch_start` has partitions that we lead only, and is not above the end of our log
        the high watermark of a log never falls while we lead it; an end that is not known counts as -1
        a follower in `_joining` has one write under way, or waiting for the lock of `_writing`
    """

    def __init__(self, process: BrokerProcess, configs: TopicConfigs) -> None:
        self.process, self.configs, self.started = process, configs, process.clock.now()
        self.follower_ends: dict[TopicPartition, dict[int, int]] = {}
        """The log end offset of each follower, as of its last fetch."""
        self._led_since: dict[TopicPartition, float] = {}
        """The time at which this broker began to lead a partition."""
        self.epoch_start: dict[TopicPartition, int] = {}
        """The end of our log when our leader epoch began, if there was a log."""
        self.produce_purgatory = Purgatory(ClockTimer(process.clock))
        """Produce requests that wait until the high watermark has come to their last record."""
        self.fetch_purgatory = Purgatory(ClockTimer(process.clock, background=True))
        """Fetches that wait for bytes: those of followers, and what comes over the wire."""
        self.deletion = RecordDeletion(process, configs, self.fetch_purgatory)
        self._changed: dict[TopicPartition, None] = {}
        self._last_change = self._last_propagation = self.started
        self._shrinker: asyncio.Task | None = None
        self._propagator: asyncio.Task | None = None
        self._joining: set[tuple[TopicPartition, int]] = set()
        """Followers that are about to enter an ISR: their fetches cause no second expansion."""
        self._writing: dict[TopicPartition, asyncio.Lock] = {}

    def begin(self) -> None:
        """Set the time from which the checks for changed ISRs are counted: that of the process's session.

        Each broker checks at times of its own, as they did not start at the same moment.
        Kafka 2.0.1: server/ReplicaManager.scala, startup
        """
        self.started = self._last_change = self._last_propagation = self.process.clock.now()

    # Leading

    def lead(self, tp: TopicPartition) -> None:
        """Lead it in a new epoch, perhaps for the first time.

        Where fetches name no leader epoch, a follower that never stopped fetching goes on, also outside of the ISR.
        """
        process = self.process
        self._led_since.setdefault(tp, process.clock.now())
        log = process.disk.logs.get(tp)
        if log is not None:
            self.epoch_start[tp] = log.end
            self.increment_high_watermark(tp)
            self._next_fetches(tp, Finds.RECORDS)  # they never ceased to ask
        hosted = process.hosted[tp]
        for follower in hosted.replicas:
            if follower not in hosted.state.isr:
                process.network.next_fetch(follower, NextFetch(process.id, tp, Finds.NEW_LEADER))

    def release(self, tp: TopicPartition, answers: bool = True) -> None:
        """Stop leading it: answer the fetches that wait here, and the producers, unless these have to time out."""
        for about in (self.follower_ends, self.epoch_start, self._led_since):
            about.pop(tp, None)
        if answers:
            self.produce_purgatory.check_and_complete(tp)
        self.fetch_purgatory.check_and_complete(tp)
        self.deletion.release(tp)

    # Records

    async def produce(self, request: ProduceRequest) -> Response:
        """Append the records, and with `acks=all` answer only when every in-sync replica has them."""
        tp, process = request.partition, self.process
        await self.isr_written((tp,))
        if tp not in process.metadata or not process.leads(tp):
            return Response(process.refusal(tp))
        if request.acks == ALL and self.has_too_few(tp):
            return Response(NOT_ENOUGH)
        if tp not in process.disk.logs:
            self._next_fetches(tp, Finds.NO_LOG)
        log = process.disk.log(tp)
        sizes = request.sizes or repeat(0)
        offset, epoch = log.end, process.hosted[tp].state.leader_epoch
        entries = entries_of(epoch, request.values, sizes)
        log.entries += entries
        CAUSE.set(process.record_offset("append", tp, entries, offset))
        self.fetch_purgatory.check_and_complete(tp)
        self.increment_high_watermark(tp)
        error = await self.replicated(tp, log.end, request.timeout) if request.acks == ALL else None
        return Response(error, offset=offset)

    def has_too_few(self, tp: TopicPartition) -> bool:
        """True if we lead it, and its ISR is too small for `acks=all`."""
        return self.process.leads(tp) and len(self.process.hosted[tp].state.isr) < self.configs.min_isr(tp)

    async def replicated(self, tp: TopicPartition, end: int, timeout: float) -> str | None:
        """Wait until the high watermark reaches `end`; returns the error if it does not, or if the ISR is too small."""
        operation = DelayedProduce(round(timeout * 1000), {tp: Appended(end)}, self.enough_replicas)
        try:
            self.produce_purgatory.try_complete_else_watch(operation, [tp])
            return str(error) if (error := (await operation)[tp]) else None
        finally:
            operation.cancel()  # the process may have ended

    def enough_replicas(self, tp: TopicPartition, offset: int) -> tuple[bool, str | None]:
        """True if the whole ISR has the records below this offset; an error if we do not lead or it is too small."""
        if not self.process.leads(tp):
            return False, self.process.refusal(tp)
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
            self.deletion.purgatory.check_and_complete(tp)

    def in_sync_end(self, tp: TopicPartition, log: Log) -> int:
        """The log end of every in-sync replica."""
        ends, hosted = self.follower_ends.get(tp, {}) | {self.process.id: log.end}, self.process.hosted[tp]
        rule: Callable[..., int] | None = self.process.world.plugins.rule("high_watermark", None)
        if rule is not None:
            return rule({id: ends.get(id, -1) for id in hosted.replicas}, hosted.state.isr, self.process.id)
        return min(ends.get(replica, -1) for replica in hosted.state.isr)

    def _next_fetches(self, tp: TopicPartition, finds: Finds) -> None:
        for id in self.process.hosted[tp].replicas:
            if id != self.process.id:
                self.process.network.next_fetch(id, NextFetch(self.process.id, tp, finds))

    # Fetches of followers

    def answers(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """True if we answer a fetch that names this leader epoch, or -1 for none."""
        return self.process.leads(tp) and self.wrong_epoch(tp, leader_epoch) is None

    def wrong_epoch(self, tp: TopicPartition, leader_epoch: int) -> str | None:
        """The error for a fetch that names this leader epoch; the partition has a copy here.

        Kafka 2.4.1: cluster/Partition.scala, checkCurrentLeaderEpoch
        """
        own = self.process.hosted[tp].state.leader_epoch
        if leader_epoch in (-1, own) or not self.process.generation.records.checks_fetched_epoch:
            return None
        return FENCED if leader_epoch < own else UNKNOWN_LEADER_EPOCH

    def fetch_result(self, tp: TopicPartition, replica: int, leader_epoch: int) -> FetchResult:
        """The result of a fetch from us."""
        log = self.process.disk.logs.get(tp)
        offsets = (log.high_watermark, log.end) if log is not None else None
        start = log.start if log is not None else 0
        is_fenced = self.process.leads(tp) and self.wrong_epoch(tp, leader_epoch) == FENCED
        return FetchResult(self.answers(tp, leader_epoch), offsets, self.is_in_isr(tp, replica), start, is_fenced)

    def hold(self, request: FetchRequest, respond: Callable[[bool], object]) -> FollowerFetch:
        """Let a fetch wait here until there is what it waits for."""
        fetch = FollowerFetch(self, request, respond)
        if self.answers(request.partition, request.leader_epoch):
            self.deletion.note_start(request.partition, request.replica, request.log_start)
        self.fetch_purgatory.try_complete_else_watch(fetch, [request.partition])
        if not fetch.is_completed:
            fetch.looked_at()
        return fetch

    def end_of_epoch(self, request: OffsetsForLeaderEpochRequest) -> EpochEndOffset | None:
        """The end of an epoch in our log; None if we refuse to answer."""
        tp, _, leader_epoch, epoch = request
        return EpochEndOffset(*self.process.disk.log(tp).end_of(epoch)) if self.answers(tp, leader_epoch) else None

    def fetch(self, request: FetchRequest) -> FetchResponse | None:
        """Answer a fetch, and remember that the follower has everything below its offset; None if we refuse it."""
        tp, follower, epoch, offset, _, log_start = request
        if offset is None:
            joins = self.try_to_join(tp, follower, epoch)
            return FetchResponse([], 0, 0, in_isr=self.is_in_isr(tp, follower)) if joins else None
        if not self.answers(tp, epoch):
            return None
        log = self.process.disk.log(tp)
        if offset < log.start:  # OFFSET_OUT_OF_RANGE, and the answer to what the follower asks then
            return FetchResponse([], log.high_watermark, log.end, log_start=log.start)
        throttled = offset < log.end and self.throttles(tp, follower)
        entries = [] if throttled else first_bytes(log.entries[offset:])
        answer = FetchResponse(entries, log.high_watermark, log.end, throttled, log_start=log.start)
        self.deletion.note_start(tp, follower, log_start)
        self.note_fetch(tp, follower, offset)
        if offset < log.end:  # at the end it asks by itself
            self.try_to_join(tp, follower, epoch)
        self.process.quotas.leader.record(tp, bytes_of(entries))
        return answer

    def throttles(self, tp: TopicPartition, follower: int) -> bool:
        """True if a follower may not be sent more of this partition now (KIP-73).

        Kafka 2.0.1: server/ReplicaManager.scala, shouldLeaderThrottle
        """
        return self.process.quotas.leader.stops(tp, self.is_in_isr(tp, follower))

    def note_fetch(self, tp: TopicPartition, follower: int, offset: int) -> None:
        """A follower fetches from this offset: it has everything below it.

        Kafka 2.0.1: cluster/Partition.scala, updateReplicaLogReadResult
        """
        if offset <= self.process.disk.log(tp).end:
            self.follower_ends.setdefault(tp, {})[follower] = offset
            self.increment_high_watermark(tp)

    def try_to_join(self, tp: TopicPartition, follower: int, leader_epoch: int) -> bool:
        """Take a follower into the ISR at its fetch; False if we do not answer it, or it has not enough yet.

        Kafka 2.0.1: cluster/Partition.scala, maybeExpandIsr
        """
        hosted = self.process.hosted.get(tp)
        if hosted is None or not self.answers(tp, leader_epoch) or not self.can_join_isr(tp, follower):
            return False
        if follower in hosted.replicas and follower not in hosted.state.isr and (tp, follower) not in self._joining:
            self._joining.add((tp, follower))
            self.process.spawn(self._expand_isr(tp, follower))
        return True

    def can_join_isr(self, tp: TopicPartition, follower: int) -> bool:
        """True if a follower has enough to be in sync: all below the high watermark and, since KAFKA-7128, all that
        we had when we began to lead."""
        log = self.process.disk.logs.get(tp)
        if log is None:
            return True
        since = self.epoch_start.get(tp, 0) if self.process.generation.isr.joins_from_epoch_start else 0
        return self.follower_ends.get(tp, {}).get(follower, -1) >= max(log.high_watermark, since)

    def is_in_isr(self, tp: TopicPartition, follower: int) -> bool:
        hosted = self.process.hosted.get(tp)
        return hosted is not None and follower in hosted.state.isr

    # Followers that are late

    def _suspects(self, limit: float) -> tuple[frozenset[int], Callable[[TopicPartition, int], bool]]:
        """The brokers that may be late now, and the test of one in a partition; `limit` is in seconds.

        If a plug-in has a rule `late`, the rule is called for each follower.

        Kafka 2.0.1: cluster/Partition.scala, getOutOfSyncReplicas; 2.4.1: the same, isFollowerOutOfSync
        """
        network, me, since = self.process.network, self.process.id, self.process.clock.now() - limit
        rule: Callable[..., bool] | None = self.process.world.plugins.rule("late", None)
        if rule is None:
            return frozenset(network.suspects(me)), partial(self._is_late, since=since)
        return frozenset(network.others(me)), lambda tp, id: rule(*self._lag(tp, id, limit))

    def late_since(self, since: float) -> bool:
        """True if in a partition led here fetches of a member of the ISR have not reached the log's end since then.

        A process that no LeaderAndIsr has named does not count: that may last.
        """
        suspects = frozenset(self.process.network.suspects(self.process.id, unasked=False))
        is_late = partial(self._is_late, since=since)
        return bool(suspects) and any(self._late(tp, suspects, is_late) for tp in self.process.hosted)

    def _late(
        self, tp: TopicPartition, suspects: frozenset[int], is_late: Callable[[TopicPartition, int], bool]
    ) -> tuple[int, ...]:
        """The members of the ISR of a partition that have to leave it; none where we do not lead."""
        hosted = self.process.hosted.get(tp)
        if hosted is None or hosted.state.leader != self.process.id or len(hosted.state.isr) == 1:
            return ()
        return tuple(f for f in hosted.state.isr if f in suspects and is_late(tp, f))

    def _is_late(self, tp: TopicPartition, id: int, since: float) -> bool:
        """True if a follower has not caught up since then: it lags, or, where that counts, it has stopped fetching."""
        caught_up, is_silent = self._caught_up_until(tp, id)
        if is_silent and not self.process.generation.isr.expels_silent_followers:
            end, leaders_end = self._log_ends(tp, id)
            return end < leaders_end and caught_up <= since
        return caught_up <= since

    def _lag(self, tp: TopicPartition, id: int, limit: float) -> tuple[float, float, int, int, float]:
        """The arguments of the rule `late`, as in `kafka_ctl.plugins`."""
        now, (caught_up, is_silent) = self.process.clock.now(), self._caught_up_until(tp, id)
        end, leaders_end = self._log_ends(tp, id)
        if caught_up < now and not is_silent:  # `lag` and `slow` keep it from the end, also where nothing was written
            end = min(end, leaders_end - 1)
        at, until, most = (round(1000 * seconds, 3) for seconds in (now, min(now, caught_up), limit))
        return at, until, end, leaders_end, most

    def _caught_up_until(self, tp: TopicPartition, id: int) -> tuple[float, bool]:
        """The last time that a follower had everything, infinity if it has now; and True if it has stopped fetching.

        A LeaderAndIsr sets it for each member of the ISR, also where the leader stays.
        Kafka 2.0.1: cluster/Partition.scala, makeLeader (resetLastCaughtUpTime)
        """
        lag, state_since = self.process.network.lag(id, self.process.id, tp), self.process.hosted[tp].state_since
        is_silent = lag.silent_since != math.inf
        return max(lag.silent_since if is_silent else lag.late_since, state_since), is_silent

    def _log_ends(self, tp: TopicPartition, id: int) -> tuple[int, int]:
        """The ends of the logs of a follower and of the leader, in the leader's memory.

        That of a follower which has not fetched from this leader is -1.
        Kafka 2.4.1: cluster/Partition.scala, makeLeader (UnknownOffsetMetadata)
        """
        if (log := self.process.disk.logs.get(tp)) is None:
            silent_since = self.process.network.lag(id, self.process.id, tp).silent_since
            return (-1 if silent_since <= self._led_since.get(tp, -math.inf) else 0), 0
        return self.follower_ends.get(tp, {}).get(id, -1), log.end

    # The ISR

    async def _expand_isr(self, tp: TopicPartition, follower: int) -> None:
        try:
            await self._change_isr(tp, "expand-isr", add=follower)
        finally:
            self._joining.discard((tp, follower))

    def look_for_late_followers(self) -> None:
        """Look for followers that lag, until `end`."""
        self._shrinker = self.process.spawn(self.shrink_isrs())

    def end(self) -> None:
        """The process stops: ISRs are neither shrunk nor announced any more.

        Kafka 2.0.1: server/KafkaServer.scala, shutdown (kafkaScheduler.shutdown)
        """
        for task in (self._shrinker, self._propagator):
            if task is not None:
                task.cancel()

    async def shrink_isrs(self) -> None:
        """Every half `replica.lag.time.max.ms`, take followers out of the ISR that lag for longer than that.

        Each partition is judged at its turn, which may be after a long write for another one.
        Times at which nothing can be found, as no broker is late, are passed over: there are many in a quiet cluster.
        """
        CAUSE.set(None)
        process = self.process
        limit = process.config["replica.lag.time.max.ms"] / 1000
        while True:
            await self._wait_to_look(limit / 2)
            judged_by = self._suspects(limit)
            for tp in list(process.hosted):
                if not (late := self._late(tp, *judged_by)):
                    continue
                await self._change_isr(tp, "shrink-isr", remove=late)
                for id in late:  # one that never stopped, or is heard again since this was decided
                    process.network.next_fetch(id, NextFetch(process.id, tp, Finds.EXPELLED))
                judged_by = self._suspects(limit)  # time has passed

    async def _wait_to_look(self, interval: float) -> None:
        """Wait for the next time to look, a multiple of the interval after the last one, at which one may be late."""
        clock = self.process.clock
        when = clock.now() + interval
        if self.process.world.plugins.rule("late", None) is None:
            suspected = await self.process.network.until_suspect()
            while when <= suspected:
                when += interval
        if when > clock.now():  # else this process has stood still since
            await clock.sleep_until(when, background=True)

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
        hashed = hosted.is_hashed or max(len(old.isr), len(isr)) > 4
        isr = self._in_hash_order(tp, isr) if hashed else isr
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
            hosted.state, hosted.is_hashed = new._replace(zk_version=version), hashed
            self._announce(tp)

    def _in_hash_order(self, tp: TopicPartition, isr: tuple[int, ...]) -> tuple[int, ...]:
        """An ISR that is a hash set as it is written to the `state` znode.

        Kafka 2.0.1: cluster/Replica.scala, hashCode; cluster/Partition.scala, updateIsr; 2.4.1: expandIsr, shrinkIsr
        """
        if self.process.generation.isr.isr_holds_ids:
            return tuple(trie_order(isr, int))
        return set_order(trie_order(isr, lambda id: 31 + java_hash(tp) + 17 * id))

    async def _write(self, tp: TopicPartition, state: LeaderAndIsr) -> tuple[int, str | None]:
        """The new zk_version, or an error; a znode that already holds what we want to write is no error."""
        zk, path = self.process.zk, TopicPartitionStateZNode.path(tp)
        data = TopicPartitionStateZNode.encode(state)
        answer = await zk.write(Set(path, data, state.zk_version))
        refuses = self.process.generation.bugs.refuses_own_isr
        is_done = self.process.world.plugins.rule("own_write", None if refuses else say_the_same)
        if answer.error == "BADVERSION" and is_done:
            there = await zk.read(path)
            stored = there.value.decode(errors="replace") if isinstance(there.value, bytes) else ""
            if there.stat is not None and is_done(data.decode(), stored):
                return there.stat.version, None
        return answer.stat.version if answer.stat else -1, answer.error

    def is_writing(self, tp: TopicPartition) -> bool:
        """True if a new ISR is on its way to ZooKeeper: until it is there, neither the old nor the new one counts."""
        lock = self._writing.get(tp)
        return lock is not None and lock.locked()

    async def isr_written(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until no new ISR of these is being written: the writer holds the lock of the partition.

        Kafka 2.0.1: cluster/Partition.scala, leaderIsrUpdateLock, in makeLeader, makeFollower, delete and
        appendRecordsToLeader
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
        """Write the changed partitions to a new znode under `/isr_change_notification`.

        That is at the next check (every 2.5 s) at which the last change is more than 5 s old, or the last notification
        more than 60 s.
        """
        clock = self.process.clock
        while self._changed:
            wait = PROPAGATION_CHECK - (clock.now() - self.started) % PROPAGATION_CHECK
            await clock.sleep(wait if wait > 1e-6 else PROPAGATION_CHECK)
            now = clock.now()
            if self._last_change + PROPAGATION_QUIET < now or self._last_propagation + PROPAGATION_LIMIT < now:
                changed, self._changed = list(self._changed), {}
                self._last_propagation = now
                znode = IsrChangeNotificationSequenceZNode
                try:
                    (await self.process.zk.write(Create(znode.path(), znode.encode(changed), sequence=True))).checked()
                except (ConnectionLoss, NoNode, SessionExpired):
                    self._changed |= dict.fromkeys(changed)

    def state_key(self) -> str:
        """The state for the explorer: the ISRs still to be announced."""
        return f"{self._changed}"


def say_the_same(wanted: str, stored: str) -> bool:
    """True if two texts of a `state` znode have the same leader, leader epoch, ISR and controller epoch.

    Kafka 2.0.1: utils/ReplicationUtils.scala, checkLeaderAndIsrZkData
    """
    try:
        return TopicPartitionStateZNode.decode(stored.encode()) == TopicPartitionStateZNode.decode(wanted.encode())
    except BadInput:
        return False


class FollowerFetch(DelayedOperation):
    """A follower's fetch of one partition from the end of its log, waiting in its leader's purgatory.

    Its result, which `respond` is called with, is whether it brings something. Kafka's fetchers ask again every half
    second. Here a fetch that found nothing stays where it is: an expiry would only bring the same fetch again. Only
    where it would bring something, its half second begins: a newer high watermark, which before KAFKA-8443 releases no
    fetch, a newer log start offset, or records that are held back by a throttle.
    Kafka 2.0.1: server/ReplicaManager.scala, fetchMessages; server/DelayedFetch.scala, DelayedFetch
    """

    def __init__(self, leader: LeaderRole, request: FetchRequest, respond: Callable[[bool], object]) -> None:
        super().__init__(NEVER, "fetch")
        assert request.offset is not None
        self.leader, self.request, self._respond = leader, request, respond
        self.replica = request.replica
        self.known = (request.high_watermark, request.offset)
        self._end: Timer | None = None

    @property
    def _found(self) -> FetchResult:
        return self.leader.fetch_result(self.request.partition, self.replica, self.request.leader_epoch)

    def try_complete(self) -> bool:
        """Records that are not held back, a leader that has stopped leading, or, since KAFKA-8443, a high watermark."""
        found = self._found
        if found.answered and not self._brings(*(found.offsets or (0, 0))):
            return False
        return self.force_complete()

    def _brings(self, high_watermark: int, end: int) -> bool:
        known_high_watermark, known_end = self.known
        passes_on = self.leader.process.generation.records.passes_on_high_watermark
        if high_watermark > known_high_watermark and passes_on:
            return True
        return end > known_end and not self.leader.throttles(self.request.partition, self.replica)

    def looked_at(self) -> None:
        """Begin its half second, if it would bring records, a high watermark or a log start offset then."""
        found = self._found
        is_news = (found.offsets or (0, 0)) != self.known or found.log_start > self.request.log_start
        if self._end is None and is_news:
            self._end = self.leader.process.clock.later(FETCH_WAIT, self.expire)

    def cancel(self) -> None:
        super().cancel()
        if self._end is not None:
            self._end.cancel()

    def on_complete(self) -> bool:
        """True if the fetch is answered, False if it is refused; records are read when the answer has arrived."""
        answered = self._found.answered
        self._respond(answered)
        return answered
