"""What a broker does for the partitions it follows: it fetches, truncates, copies, and joins the ISR again.

A follower is caught up, lagging, or catching up. Kafka's fetcher threads ask a leader for all partitions at once, and
so does a `Fetcher` that catches up; a partition whose log has records to be copied is fetched by itself. The fetch of a
follower that is caught up waits in its leader's purgatory (`FollowerFetch`).
Kafka 2.0.1: server/AbstractFetcherThread.scala, AbstractFetcherThread; server/ReplicaFetcherManager.scala;
server/ReplicaFetcherThread.scala, processPartitionData, maybeTruncate, handleOffsetOutOfRange
"""

from __future__ import annotations

import asyncio
import math
from functools import partial

from kafka_ctl.brokers.copying import FETCH_BACKOFF, Copying
from kafka_ctl.brokers.fetcher_threads import FetcherThreads
from kafka_ctl.brokers.fetches import (
    WaitingFetch,
)
from kafka_ctl.brokers.process import BrokerProcess, HostedPartition
from kafka_ctl.brokers.topic_configs import TopicConfigs
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition

STARTED, KEPT, SKIPPED = "started", "kept", "skipped"
"""What becomes of the fetcher of a partition whose broker is made follower."""


class FollowerRole:
    """The follower's side of one broker process."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs) -> None:
        self.process = process
        self.lagging: dict[TopicPartition, float] = {}
        """Partitions that are made to lag, and since when."""
        self._delayed_since = math.inf
        self._joined: dict[TopicPartition, float] = {}
        """When we were last taken into the ISR."""
        self.unfetched: dict[TopicPartition, float] = {}
        """Partitions that we follow without a fetcher, and since when."""
        self.threads = FetcherThreads(process)
        self.copying = Copying(process, configs, self.threads)
        self.catching_up: dict[TopicPartition, Fetcher] = {}
        self._forming: dict[int, Fetcher] = {}
        """By leader: the fetcher that has been made last."""
        self._copying: dict[TopicPartition, asyncio.Task] = {}
        """Partitions that are caught up, and whose next fetch brings something."""
        self.fetches: dict[TopicPartition, WaitingFetch] = {}
        """Partitions that are caught up, and whose next fetch waits at the leader."""

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
            self.copying.prepare_truncation(tp)
        if fetcher == SKIPPED:
            self.unfetched[tp] = process.clock.now()
        elif fetcher == STARTED:
            self.threads.add(tp, state.leader)
        if tp in self.unfetched:
            return
        if self.is_caught_up(tp) and process.id not in state.isr and state.leader >= 0:
            self._catch_up(tp, state)
        self.fetch(tp)

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
        self.copying.stop(tp)
        task = self._copying.pop(tp, None)
        if task is not None:
            task.cancel()
        fetch = self.fetches.pop(tp, None)
        if fetch is not None:
            fetch.force_complete()

    def end(self) -> None:
        """The process has ended, and its connections with it."""
        for tp in list(self.fetches):
            self.fetches.pop(tp).force_complete()

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

    @property
    def fetch_delay(self) -> float:
        """How much longer every fetch takes, in seconds."""
        return self.copying.fetch_delay

    def set_fetch_delay(self, seconds: float) -> None:
        """From now on every fetch takes so much longer."""
        self.copying.fetch_delay, self._delayed_since = seconds, self.process.clock.now() if seconds else math.inf

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
        if fetcher is None or not fetcher.forming or self.copying.has_records(tp, state):
            fetcher = Fetcher(self, state.leader)
            if not self.copying.has_records(tp, state):
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
        self.fetch(tp)

    def will_fetch(self) -> bool:
        """Whether a fetch that waits for its next attempt will be answered then."""
        process = self.process
        for tp in (*self.catching_up, *self.copying.waiting):
            hosted = process.hosted.get(tp)
            found = self.copying.found(tp, hosted.state) if hosted else None
            if hosted and found and found.answered and process.reaches(hosted.state.leader):
                return process.paused_since == math.inf
        return False

    def names_epoch(self, leader: int) -> bool:
        """Whether our next fetch from that leader says which leader epoch we know."""
        return self.copying.names_epoch(leader)

    def fetch_again(self) -> None:
        """After a silence: catch up wherever the leader has taken us out of the ISR meanwhile."""
        for tp in self.process.hosted:
            self.fetch_on(tp)

    def fetch_on(self, tp: TopicPartition) -> None:
        """Catch up if we follow this partition and its leader has taken us out of the ISR meanwhile."""
        process, hosted = self.process, self.process.hosted.get(tp)
        if hosted is None or hosted.state.leader == process.id or not self.is_caught_up(tp):
            return
        found = self.copying.found(tp, hosted.state)
        if found is not None and not found.in_isr:
            self._catch_up(tp, hosted.state)

    # Copying

    def fetch(self, tp: TopicPartition) -> None:
        """Fetch now if we have caught up; who copies already goes on, unless it waits for its next attempt."""
        hosted = self._followed(tp)
        if hosted is None or not self.is_caught_up(tp):
            return
        if self.copying.has_records(tp, hosted.state) and (tp not in self._copying or tp in self.copying.waiting):
            self._stop_copying(tp)
            self._copying[tp] = self.process.spawn(self._copy_all(tp, hosted.state))

    def wait_for_records(self, tp: TopicPartition) -> None:
        """Our log ends where the leader's does: let a fetch wait there, unless one is under way."""
        hosted = self._followed(tp)
        if hosted is None or not self.is_caught_up(tp) or tp in self._copying or tp in self.fetches:
            return
        log = self.process.disk.logs.get(tp)
        ends = (log.end, log.high_watermark) if log is not None else (0, 0)
        request = self.copying.request(tp, *ends)
        fetch = self.process.network.hold(hosted.state.leader, request, partial(self._answered, tp))
        if fetch is not None and not fetch.is_completed:
            self.fetches[tp] = fetch
        elif fetch is not None and fetch.result:
            self.fetch(tp)

    def _answered(self, tp: TopicPartition, brings: bool) -> None:
        """Go on; a fetch that was refused is repeated when the leader leads again, or another one does."""
        if self.fetches.pop(tp, None) is not None and brings:
            self.fetch(tp)

    async def _copy_all(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Fetch until the leader has nothing new, then let a fetch wait there."""
        await self.copying.copy(tp, state)
        self._copying.pop(tp, None)
        if self.process.listening:
            self.wait_for_records(tp)

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
            await process.clock.sleep(process.costs.request)
            for tp in list(self.partitions):
                self._fetch(tp)
            if not self.partitions:
                return
            await process.clock.sleep(FETCH_BACKOFF, background=True)

    async def _copy(self) -> None:
        """Records are copied partition by partition: each that has some gets a fetcher of its own."""
        for tp, state in list(self.partitions.items()):
            if len(self.partitions) > 1 and self.role.copying.has_records(tp, state):
                self.role.fetch_alone(tp, state, tp in self._recorded)
        if len(self.partitions) == 1:
            await self.role.copying.copy(*next(iter(self.partitions.items())))

    def _fetch(self, tp: TopicPartition) -> None:
        """Fetch from the end of the leader's log, until it takes us into the ISR."""
        process, state = self.process, self.process.hosted[tp].state
        answer = process.network.fetch(self.leader, self.role.copying.request(tp))
        if answer is None:
            return
        self.role.threads.fetched(state.leader)
        if tp not in self._recorded:
            process.record("caught-up", tp, leader=state.leader, leader_epoch=state.leader_epoch)
            self._recorded.add(tp)
        if answer.in_isr:
            del self.partitions[tp]
            self.role.joined(tp)
