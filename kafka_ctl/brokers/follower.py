"""What a broker does for the partitions it follows: it fetches, truncates, copies, and joins the ISR again.

A follower is caught up, lagging, or catching up. Kafka's fetcher threads ask a leader for all partitions at once, and
so does a `Fetcher` that catches up; a partition whose log has records to be copied is fetched by itself. A follower
that is caught up has a fetch waiting at its leader: it ends when something is appended (`wake`).
Kafka 2.0.1: server/AbstractFetcherThread.scala, AbstractFetcherThread; server/ReplicaFetcherManager.scala;
server/ReplicaFetcherThread.scala, processPartitionData, maybeTruncate, handleOffsetOutOfRange
"""

from __future__ import annotations

import asyncio
import math

from kafka_ctl.brokers.copying import Copying
from kafka_ctl.brokers.fetcher_threads import FetcherThreads
from kafka_ctl.brokers.leader import FETCH_WAIT
from kafka_ctl.brokers.log import Log
from kafka_ctl.brokers.process import BrokerProcess, Fetched, HostedPartition, LeaderPeer
from kafka_ctl.brokers.topic_configs import TopicConfigs
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.trace import details

STARTED, KEPT, SKIPPED = "started", "kept", "skipped"
"""What becomes of the fetcher of a partition whose broker is made follower."""
FETCH_BACKOFF = 1.0
"""Seconds that a follower waits whose leader does not answer."""


class FollowerRole:
    """The follower's side of one broker process."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs) -> None:
        self.process, self.configs = process, configs
        self.lagging: dict[TopicPartition, float] = {}
        """Partitions that are made to lag, and since when."""
        self.fetch_delay, self._delayed_since = 0.0, math.inf
        """How much longer every fetch takes, in seconds, and since when."""
        self._joined: dict[TopicPartition, float] = {}
        """When we were last taken into the ISR."""
        self.unfetched: dict[TopicPartition, float] = {}
        """Partitions that we follow without a fetcher, and since when."""
        self.threads, self.copying = FetcherThreads(process), Copying(process)
        self.catching_up: dict[TopicPartition, Fetcher] = {}
        self._forming: dict[int, Fetcher] = {}
        """By leader: the fetcher that has been made last."""
        self._copying: dict[TopicPartition, asyncio.Task] = {}
        """Partitions that are caught up, and whose next fetch brings something."""
        self.waiting: set[TopicPartition] = set()
        """Where that fetch waits for records, or for a leader that does not answer."""
        self._unchecked: set[TopicPartition] = set()
        """Where our leader epochs have not been compared with the leader's yet."""

    # What requests of the controller begin and end

    def fetcher_of(self, before: LeaderAndIsr | None, state: LeaderAndIsr) -> str:
        """What becomes of the fetcher where we are made follower: KEPT where little has changed, else it is STARTED,
        unless the process is stopping.

        Kafka 2.4.1: cluster/Partition.scala, makeFollower; server/ReplicaManager.scala, makeFollowers
        """
        generation = self.process.generation
        if before is not None and before.leader == state.leader and not generation.records.refetches_at_each_epoch:
            missed = state.leader_epoch > before.leader_epoch + 1
            if not (missed and generation.records.refetches_after_missed_epoch):
                return KEPT
        return SKIPPED if self.process.is_leaving else STARTED

    def follow(self, tp: TopicPartition, fetcher: str = STARTED) -> None:
        """Fetch from the leader; if we are not in its ISR, catch up and fetch from the end of its log."""
        process = self.process
        state = process.hosted[tp].state
        if fetcher != KEPT:
            self.forget(tp)
            self._prepare_truncation(tp)
        if fetcher == SKIPPED:
            self.unfetched[tp] = process.clock.now()
        elif fetcher == STARTED:
            self.threads.add(tp, state.leader)
        if tp in self.unfetched:
            return
        if self.is_caught_up(tp) and process.id not in state.isr and state.leader >= 0:
            self._catch_up(tp, state)
        self.wake(tp)

    def _prepare_truncation(self, tp: TopicPartition) -> None:
        """Before anything is copied from a new leader, what it may not have must go."""
        log = self.process.disk.logs.get(tp)
        if log is None:
            return
        if self.process.generation.records.truncates_by_epoch:
            self._unchecked.add(tp)
        else:
            self._truncate(tp, log, log.high_watermark, "high-watermark")

    def remove_fetcher(self, tp: TopicPartition) -> None:
        """Stop fetching until we are made follower anew."""
        since = self.unfetched.get(tp, self.process.clock.now())
        self.forget(tp)
        hosted = self.process.hosted.get(tp)
        if hosted is not None and hosted.state.leader != self.process.id:
            self.unfetched[tp] = since

    def forget(self, tp: TopicPartition) -> None:
        """Follow this partition no more, or in another way."""
        self.stop(tp)
        self.unfetched.pop(tp, None)
        self.threads.remove(tp)
        self.copying.forget(tp)

    def stop(self, tp: TopicPartition) -> None:
        """End the fetch that is under way."""
        self._stop_copying(tp)
        fetcher = self.catching_up.pop(tp, None)
        if fetcher is not None:
            fetcher.drop(tp)

    def _stop_copying(self, tp: TopicPartition) -> None:
        self.waiting.discard(tp)
        self.copying.stop(tp)
        task = self._copying.pop(tp, None)
        if task is not None:
            task.cancel()

    # How far behind we are

    def is_caught_up(self, tp: TopicPartition) -> bool:
        """Whether we fetch, and neither lag nor are about to catch up."""
        return tp not in self.lagging and tp not in self.catching_up and tp not in self.unfetched

    def will_catch_up(self, tp: TopicPartition) -> bool:
        """Whether we are caught up, or will be: a process that is stopping starts no fetcher."""
        return tp not in self.lagging and not (tp in self.unfetched and self.process.is_leaving)

    @property
    def is_suspect(self) -> bool:
        """Whether we may be late somewhere."""
        return bool(self.lagging or self.fetch_delay or self.unfetched or self.copying.behind)

    def late_since(self, tp: TopicPartition) -> float:
        """Since when we have not been caught up: we lag, copy, or are slower than a leader waits; else infinity."""
        lags = min(self.lagging.get(tp, math.inf), self.copying.behind.get(tp, math.inf))
        if self.fetch_delay <= self.process.config["replica.lag.time.max.ms"] / 1000:
            return lags
        return min(lags, max(self._delayed_since, self._joined.get(tp, 0.0)))

    def set_fetch_delay(self, seconds: float) -> None:
        """From now on every fetch takes so much longer."""
        self.fetch_delay, self._delayed_since = seconds, self.process.clock.now() if seconds else math.inf

    def fall_behind(self, tp: TopicPartition) -> None:
        """Lag in this partition until `catch_up`."""
        self.stop(tp)
        self.lagging.setdefault(tp, self.process.clock.now())

    def catch_up(self, tp: TopicPartition) -> None:
        """Lag no more."""
        if self.lagging.pop(tp, None) is not None and tp not in self.unfetched and (hosted := self._followed(tp)):
            self.stop(tp)
            self._catch_up(tp, hosted.state)

    def _followed(self, tp: TopicPartition) -> HostedPartition | None:
        """The partition, where another broker leads it."""
        hosted = self.process.hosted.get(tp)
        return None if hosted is None or hosted.state.leader in (self.process.id, NO_LEADER) else hosted

    # Catching up

    def _catch_up(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Catch up together with the partitions of the same leader that begin at the same moment."""
        self._stop_copying(tp)
        fetcher = self._forming.get(state.leader)
        if fetcher is None or not fetcher.forming or self.has_records(tp, state):
            fetcher = Fetcher(self, state.leader)
            if not self.has_records(tp, state):
                self._forming[state.leader] = fetcher
        self.catching_up[tp] = fetcher
        fetcher.add(tp, state)

    def fetch_alone(self, tp: TopicPartition, state: LeaderAndIsr, recorded: bool) -> None:
        """There are records now: go on with a fetcher for this partition only."""
        self.catching_up[tp].drop(tp)
        self.catching_up[tp] = alone = Fetcher(self, state.leader)
        alone.add(tp, state, at_once=True, recorded=recorded)

    def joined(self, tp: TopicPartition) -> None:
        """The leader has taken us into the ISR."""
        self._joined[tp] = self.process.clock.now()
        self.catching_up.pop(tp, None)
        self.wake(tp)

    def will_fetch(self) -> bool:
        """Whether a fetch that waits for its next attempt will be answered then."""
        process = self.process
        for tp in (*self.catching_up, *self.waiting):
            hosted = process.hosted.get(tp)
            leader = process.network.leader(hosted.state.leader) if hosted else None
            if hosted is None or leader is None or not process.reaches(hosted.state.leader):
                continue
            if process.paused_since == math.inf and leader.answers(tp, hosted.state.leader_epoch):
                return True
        return False

    def fetch_again(self) -> None:
        """After a silence: catch up wherever the leader has taken us out of the ISR meanwhile."""
        for tp in self.process.hosted:
            self.fetch_on(tp)

    def fetch_on(self, tp: TopicPartition) -> None:
        """Catch up if we follow this partition and its leader has taken us out of the ISR meanwhile."""
        process, hosted = self.process, self.process.hosted.get(tp)
        if hosted is None or hosted.state.leader == process.id or not self.is_caught_up(tp):
            return
        leader = process.network.leader(hosted.state.leader)
        if leader is not None and not leader.is_in_isr(tp, process.id):
            self._catch_up(tp, hosted.state)

    # Copying

    def wake(self, tp: TopicPartition, after: float = 0.0) -> None:
        """There is something at the leader: fetch it, at once or when the waiting fetch has waited long enough."""
        hosted = self._followed(tp)
        if hosted is None or not self.is_caught_up(tp):
            return
        if self.has_records(tp, hosted.state) and (tp not in self._copying or (not after and tp in self.waiting)):
            self._stop_copying(tp)
            self._copying[tp] = self.process.spawn(self._copy_all(tp, hosted.state, after))

    def has_records(self, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether anything was ever written, here or at the leader."""
        leader = self.process.network.leader(state.leader)
        return leader is not None and (tp in self.process.disk.logs or leader.has_log(tp))

    async def _copy_all(self, tp: TopicPartition, state: LeaderAndIsr, after: float) -> None:
        """Fetch until the leader has nothing new, a higher high watermark included."""
        process = self.process
        at_once = process.generation.records.passes_on_high_watermark
        leader = process.network.leader(state.leader)
        assert leader is not None
        is_behind = True
        while is_behind:
            if after:
                await self._wait(tp, after)
            await self.copy(tp, state)
            after = 0.0 if at_once else FETCH_WAIT
            own, offsets = process.disk.log(tp), leader.offsets(tp)
            answered = process.listening and leader.answers(tp, process.hosted[tp].state.leader_epoch)
            is_behind = answered and offsets is not None and offsets[0] != own.high_watermark
        self._copying.pop(tp, None)

    async def _wait(self, tp: TopicPartition, seconds: float, background: bool = False) -> None:
        self.waiting.add(tp)
        await self.process.clock.sleep(seconds, background)
        self.waiting.discard(tp)

    async def copy(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Drop what the leader has not, then fetch to the end of its log; at once where nothing was ever written."""
        process, leader = self.process, self.process.network.leader(state.leader)
        if leader is None or not self.has_records(tp, state):
            return
        log = process.disk.log(tp)
        while process.listening:
            await process.clock.sleep(process.costs.request + self.fetch_delay)
            if self.copying.is_throttled(tp):
                await process.clock.sleep(FETCH_BACKOFF)
            elif not process.reaches(state.leader) or not leader.answers(tp, process.hosted[tp].state.leader_epoch):
                await self._wait(tp, FETCH_BACKOFF, background=True)
            elif tp in self._unchecked:
                end = log.common_end(lambda epoch: leader.end_of(tp, epoch))
                await process.clock.sleep(process.costs.request)
                self._truncate(tp, log, end, "leader-epoch")
                self._unchecked.discard(tp)
            elif await self._fetch(tp, log, leader):
                return

    async def _fetch(self, tp: TopicPartition, log: Log, leader: LeaderPeer) -> bool:
        """One fetch and what it brings; whether our log ends where the leader's does."""
        answer = leader.read(tp, self.process.id, log.end)
        await self.copying.transfer(tp, log.end, answer)
        if answer.throttled:
            await self.process.clock.sleep(FETCH_WAIT)
            return False
        if log.end > answer.end:
            await self._out_of_range(tp, log, answer.end)
            return False
        self._append(tp, log, answer)
        offsets = leader.offsets(tp)
        return not answer.entries and log.end == (offsets[1] if offsets else 0)

    def _append(self, tp: TopicPartition, log: Log, answer: Fetched) -> None:
        if answer.entries:
            offset = log.end
            log.entries += answer.entries
            self.process.record_offset("copy", tp, answer.entries, offset)
        self.process.set_high_watermark(tp, log, min(answer.high_watermark, log.end))

    def _truncate(self, tp: TopicPartition, log: Log, end: int, by: str) -> None:
        if dropped := log.truncate(end):
            self.process.record_offset("truncate", tp, dropped, end, by)

    async def _out_of_range(self, tp: TopicPartition, log: Log, end: int) -> None:
        """Our log is longer than the leader's: drop the rest where records may be lost, else stop (KAFKA-3410)."""
        unclean = await self.configs.read(tp.topic, "unclean.leader.election.enable")
        if self.process.generation.records.truncates_by_epoch or unclean.lower() == "true":
            return self._truncate(tp, log, end, "leader-end")
        ends = details.write(end=log.end, leaders_end=end)
        self.process.record("stopped", tp, error="OFFSET_OUT_OF_RANGE", detail=ends)
        return self.process.kill()

    def state_key(self) -> str:
        """What the explorer compares of two states: who catches up, fetches nothing, and lags."""
        return f"{sorted(self.catching_up)} {sorted(self.unfetched)} {sorted(self.lagging)}"


class Fetcher:
    """Catches up with one leader in some partitions, until the leader has taken us into the ISR everywhere."""

    def __init__(self, role: FollowerRole, leader: int) -> None:
        self.role, self.process, self.leader = role, role.process, leader
        self.partitions: dict[TopicPartition, LeaderAndIsr] = {}
        self._recorded: set[TopicPartition] = set()
        self.forming = True
        """Whether more partitions can still be added."""
        self._task: asyncio.Task | None = None

    def add(self, tp: TopicPartition, state: LeaderAndIsr, at_once: bool = False, recorded: bool = False) -> None:
        """One more partition; with the first the fetcher starts, after the time of catching up or at once."""
        self.partitions[tp] = state
        if recorded:
            self._recorded.add(tp)
        if self._task is None:
            self._task = self.process.spawn(self._run(at_once))

    def drop(self, tp: TopicPartition) -> None:
        """Fetch this partition no more."""
        del self.partitions[tp]
        if not self.partitions:
            self.forming = False
            assert self._task is not None
            self._task.cancel()

    async def _run(self, at_once: bool) -> None:
        """Copy what is missing, then fetch from the end of the leader's log."""
        process, self.forming = self.process, False
        if not at_once:
            await process.clock.sleep(process.costs.catch_up + self.role.fetch_delay)
        while True:
            await self._copy()
            leader = process.network.leader(self.leader)
            await process.clock.sleep(process.costs.request)
            if leader is not None and process.reaches(self.leader):
                for tp in list(self.partitions):
                    self._fetch(leader, tp)
            if not self.partitions:
                return
            await process.clock.sleep(FETCH_BACKOFF, background=True)

    async def _copy(self) -> None:
        """Records are copied partition by partition: each that has some gets a fetcher of its own."""
        for tp, state in list(self.partitions.items()):
            if len(self.partitions) > 1 and self.role.has_records(tp, state):
                self.role.fetch_alone(tp, state, tp in self._recorded)
        if len(self.partitions) == 1:
            await self.role.copy(*next(iter(self.partitions.items())))

    def _fetch(self, leader: LeaderPeer, tp: TopicPartition) -> None:
        """Fetch from the end of the leader's log, until it takes us into the ISR."""
        process, state = self.process, self.process.hosted[tp].state
        if not leader.fetched_to_end(tp, process.id, state.leader_epoch):
            return
        if tp not in self._recorded:
            process.record("caught-up", tp, leader=state.leader, leader_epoch=state.leader_epoch)
            self._recorded.add(tp)
        if leader.is_in_isr(tp, process.id):
            del self.partitions[tp]
            self.role.joined(tp)
