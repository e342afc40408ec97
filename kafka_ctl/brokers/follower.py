"""The follower role of a broker: it fetches, truncates, copies, and joins the ISR again.

Kafka's fetcher threads ask a leader for all partitions at once, and so does a `CatchUp`; a partition whose log has
records to be copied is fetched by itself. Where nothing was ever written no fetch is sent, and that of a follower that
has caught up waits in its leader's purgatory. Records without a size take no time to copy. While a follower copies
bytes, it notes since when it lags.
Kafka 2.0.1: server/AbstractFetcherThread.scala, AbstractFetcherThread, PartitionFetchState, FetcherLagStats;
server/ReplicaFetcherManager.scala; cluster/Replica.scala, updateLogReadResult; server/ReplicaFetcherThread.scala,
processPartitionData, maybeTruncate, handleOffsetOutOfRange, shouldFollowerThrottle
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from kafka_ctl.brokers import fetches
from kafka_ctl.brokers.configs import TopicConfigs
from kafka_ctl.brokers.fetcher_thread import FetcherThread
from kafka_ctl.brokers.log import Log, bytes_of
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.generation import UNCLEAN
from kafka_ctl.trace import details

STARTED, KEPT, SKIPPED = "started", "kept", "skipped"
"""The fate of a partition's fetcher when its broker is made follower."""


State = Enum("State", "NONE STOPPED LAGGING CATCHING_UP IN_STEP FETCHING DELAYED WAITING")
"""The state of one partition at its follower.

    NONE         no follower: this broker leads the partition, or has no copy
    STOPPED      a follower without a fetcher, until it is made follower again
    LAGGING      made to lag by a fault: nothing is fetched
    CATCHING_UP  outside of the ISR: a `CatchUp` copies what is missing, until the leader takes the follower in
    IN_STEP      caught up, and no fetch is under way: nothing was ever written, or there is no leader to ask
    FETCHING     caught up, and the next fetch brings something
    DELAYED      as FETCHING, but the leader has not answered: the next attempt is yet to come
    WAITING      caught up, and the next fetch waits in the leader's purgatory
"""
NONE, STOPPED, LAGGING, CATCHING_UP, IN_STEP, FETCHING, DELAYED, WAITING = State
IDLE = NONE, STOPPED, LAGGING, IN_STEP
CAUGHT_UP = IN_STEP, FETCHING, DELAYED, WAITING


class FollowedPartition:
    """One partition of a `FollowerRole`: its state, its copying, and how far behind it is.

    Relations that always hold:
        `leader` is None in NONE and STOPPED, and only there
        `task` is set in FETCHING and DELAYED, `waits` in WAITING, `catch_up` in CATCHING_UP, and only there
        `stopped_since` is finite in STOPPED, and only there
        `lagging_since` is finite in LAGGING; it outlives NONE and STOPPED, and is infinite elsewhere
        `behind_since` is finite in FETCHING, DELAYED and CATCHING_UP only
        `role.late` has the partition while one of these three is finite, and only then
    """

    def __init__(self, role: FollowerRole, tp: TopicPartition) -> None:
        self.role, self.process, self.tp = role, role.process, tp
        self.state = NONE
        self.leader: int | None = None
        """The broker whose fetcher thread has this partition."""
        self.task: asyncio.Task[None] | None = None
        self.waits: fetches.WaitingFetch | None = None
        self.catch_up: CatchUp | None = None
        self.stopped_since = self.lagging_since = self.behind_since = math.inf
        """Times in seconds: without a fetcher; made to lag; bytes are being copied, and were not all there."""
        self.is_reported = False
        """True if "caught-up" has been recorded since CATCHING_UP began."""
        self.joined_at = 0.0
        """The last time that the leader took us into the ISR."""
        self.truncates = False
        """True until leader epochs have been compared with the leader's (Kafka 2.4: Truncating, else Fetching)."""
        self._missing = 1
        """The records below the leader's high watermark that the log lacked at the last fetch; 1 before the first."""
        self._fetched_at, self._fetched_end = math.inf, math.inf
        """The time of the last fetch, and the end of the leader's log then; infinity before the first."""

    @property
    def known(self) -> LeaderAndIsr:
        """The leader and ISR of the newest LeaderAndIsr request."""
        return self.process.hosted[self.tp].state

    def begin(self, leader: int) -> None:
        """Give it to the fetcher thread of this leader."""
        self.leader = leader
        threads = self.role.threads
        if leader not in threads:
            threads[leader] = FetcherThread(self.process, leader)
        threads[leader].partitions += 1
        self.state = IN_STEP if self.lagging_since == math.inf else LAGGING

    def stop(self) -> None:
        """End the fetch that is under way."""
        self.behind_since = self._fetched_at = self._fetched_end = math.inf
        if self.state in IDLE:
            return
        self.state, task, waits, catch_up = IN_STEP, self.task, self.waits, self.catch_up
        self.task = self.waits = self.catch_up = None
        if task is not None:
            task.cancel()
        if waits is not None:
            waits.force_complete()
        if catch_up is not None:
            catch_up.drop(self)
        self.role.note(self)

    def forget(self) -> None:
        """Stop following it, or follow it in another way."""
        self.stop()
        if self.leader is not None:
            self.role.threads[self.leader].partitions -= 1
        self.state, self.leader, self.stopped_since, self._missing = NONE, None, math.inf, 1
        self.role.note(self)

    def request(self, offset: int | None = None, high_watermark: int = 0) -> fetches.FetchRequest:
        """Our next fetch."""
        log = self.process.disk.logs.get(self.tp)
        start = log.start if log is not None else 0
        return fetches.FetchRequest(self.tp, self.process.id, self._named_epoch(), offset, high_watermark, start)

    def _named_epoch(self) -> int:
        """The leader epoch that our next fetch names, -1 for none."""
        state = self.known
        return state.leader_epoch if self.role.names_epoch(state.leader) else fetches.NO_EPOCH

    def found(self, *, names_epoch: bool = True) -> fetches.FetchResult | None:
        """The result of our next fetch, if it were sent now; None without a leader."""
        epoch = self._named_epoch() if names_epoch else fetches.NO_EPOCH
        return self.process.network.fetch_result(self.known.leader, self.tp, self.process.id, epoch)

    def has_records(self) -> bool:
        """True if anything was ever written, here or at the leader."""
        found = self.found(names_epoch=False)
        return found is not None and (self.tp in self.process.disk.logs or found.offsets is not None)

    def is_out_of_sync(self) -> bool:
        """True if we are not in the ISR, as the controller or the leader knows it.

        A controller that has been elected just now may not know yet that the leader has taken us out.
        """
        found = self.found()
        return self.process.id not in self.known.isr or (found is not None and found.answered and not found.in_isr)

    def prepare_truncation(self) -> None:
        """Begin to remove the records that a new leader may not have; nothing is copied from it before that."""
        log = self.process.disk.logs.get(self.tp)
        if log is not None:
            cut: Callable[..., int] | None = self.process.world.plugins.rule("truncate", None)
            self.truncates = cut is not None or self.process.generation.records.truncates_by_epoch
            usual = log.end if self.truncates else log.high_watermark
            self._truncate(log, cut(log.high_watermark, log.end, None) if cut else usual, "high-watermark")

    async def _compare_epochs(self, log: Log, leader: int) -> None:
        """Ask where our leader epochs end in the leader's log, and drop the records that it does not have."""
        process, named = self.process, self._named_epoch()

        def ask(epoch: int) -> fetches.EpochEndOffset | None:
            request = fetches.OffsetsForLeaderEpochRequest(self.tp, process.id, named, epoch)
            return process.network.end_of_epoch(leader, request)

        if (end := log.common_end(ask)) is None:
            await self._back_off()
            return
        self.role.threads[self.known.leader].fetched()
        await process.clock.sleep(process.costs.request)
        cut = process.world.plugins.rule("truncate", lambda *_: end)(log.high_watermark, log.end, end)
        self._truncate(log, cut, "leader-epoch")
        self.truncates = False

    def _truncate(self, log: Log, end: int, by: str) -> None:
        if dropped := log.truncate(end):
            self.process.record_offset("truncate", self.tp, dropped, end, by)

    async def _out_of_range(self, log: Log, end: int) -> None:
        """Our log is longer than the leader's: drop the rest where records may be lost, else stop (KAFKA-3410)."""
        unclean = await self.role.configs.read(self.tp.topic, UNCLEAN)
        if self.process.generation.records.truncates_by_epoch or unclean.lower() == "true":
            return self._truncate(log, end, "leader-end")
        ends = details.write(end=log.end, leaders_end=end)
        self.process.record("stopped", self.tp, error="OFFSET_OUT_OF_RANGE", detail=ends)
        return self.process.kill()

    async def _start_over(self, log: Log) -> None:
        """Our log ends before the leader's begins: ask where that is, drop all that we have, and go on from there.

        Kafka 2.0.1: server/ReplicaFetcherThread.scala, handleOffsetOutOfRange (ListOffsets: the latest, the earliest)
        """
        await self.process.clock.sleep(2 * self.process.costs.request)
        found = self.found(names_epoch=False)
        if found is not None and found.log_start > log.end:
            self._truncate(log, log.start, "leader-start")
            self.process.raise_log_start(self.tp, log, found.log_start, "leader-start")

    # Copying

    async def copy(self) -> None:
        """Drop what the leader has not, then fetch to the end of its log; at once where nothing was ever written."""
        process, leader = self.process, self.known.leader
        if not self.has_records():
            return
        log = process.disk.log(self.tp)
        while process.listening:
            await process.clock.sleep(process.costs.request + self.role.fetch_delay)
            if process.quotas.follower.stops(self.tp, in_sync=self._missing <= 0):
                await process.clock.sleep(fetches.FETCH_BACKOFF)
            elif self.truncates:
                await self._compare_epochs(log, leader)
            elif await self._fetch(log, leader):
                return

    async def _fetch(self, log: Log, leader: int) -> bool:
        """Fetch once and apply the answer; True if our log ends where the leader's does."""
        answer = self.process.network.fetch(leader, self.request(log.end))
        if answer is None:
            await self._back_off()
            return False
        self.role.threads[self.known.leader].fetched()
        await self._transfer(log.end, answer)
        if answer.throttled:
            await self.process.clock.sleep(fetches.FETCH_WAIT)
            return False
        if log.end > answer.end:
            await self._out_of_range(log, answer.end)
            return False
        if log.end < answer.log_start:
            await self._start_over(log)
            return False
        self._append(log, answer)
        found = self.found(names_epoch=False)
        return not answer.entries and log.end == (found.offsets[1] if found and found.offsets else 0)

    def give_up_if_fenced(self) -> bool:
        """Stop fetching until the next LeaderAndIsr if our next fetch names an older epoch than the leader's.

        Kafka 2.4.1: server/AbstractFetcherThread.scala, onPartitionFenced, markPartitionFailed
        """
        if not ((found := self.found()) and found.is_fenced and self.process.reaches(self.known.leader)):
            return False
        self.role.remove_fetcher(self.tp)
        return True

    async def _back_off(self) -> None:
        if self.give_up_if_fenced():
            return
        if self.state is FETCHING:
            self.state = DELAYED
        await self.process.clock.sleep(fetches.FETCH_BACKOFF, background=True)
        if self.state is DELAYED:
            self.state = FETCHING

    async def _transfer(self, offset: int, answer: fetches.FetchResponse) -> None:
        """An answer is on its way, each byte of its records adding to the time; those with bytes show how late we are.

        A follower whose fetch reaches the end where the leader's log was at the fetch before was caught up then.
        """
        size, now = bytes_of(answer.entries), self.process.clock.now()
        if size or self.behind_since != math.inf:
            if offset >= answer.end:
                self.behind_since = math.inf
            else:
                self.behind_since = self._fetched_at if offset >= self._fetched_end else min(self.behind_since, now)
            self._fetched_at, self._fetched_end = now, answer.end
            self.role.note(self)
        await self.process.clock.sleep(self.process.costs.request + size * self.process.costs.byte)
        self.process.quotas.follower.record(self.tp, size)
        self._missing = max(0, answer.high_watermark - offset - len(answer.entries))

    def _append(self, log: Log, answer: fetches.FetchResponse) -> None:
        if answer.entries:
            offset = log.end
            log.entries += answer.entries
            self.process.record_offset("copy", self.tp, answer.entries, offset)
        self.process.set_high_watermark(self.tp, log, min(answer.high_watermark, log.end))
        self.process.raise_log_start(self.tp, log, answer.log_start, "leader")


class FollowerRole:
    """The follower's side of one broker process; a partition in another state than NONE is led by another broker."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs) -> None:
        self.process, self.configs = process, configs
        self.partitions: dict[TopicPartition, FollowedPartition] = {}
        """Every partition that this process has followed, those in NONE among them."""
        self.late: dict[TopicPartition, FollowedPartition] = {}
        """Those that lag, have no fetcher, or copy bytes; those that lag in the order in which they began to."""
        self.threads: dict[int, FetcherThread] = {}
        """By leader."""
        self._idle_until = 0.0
        """The time at which the last fetch of a thread that was ended returns."""
        self.fetch_delay, self._delayed_since = 0.0, math.inf
        """The delay that is added to every fetch, in seconds, and since when there is one."""
        self._forming: dict[int, CatchUp] = {}
        """By leader: the one that has been made last."""

    def partition(self, tp: TopicPartition) -> FollowedPartition:
        """The state of a partition, in NONE where it was never followed."""
        return self.partitions.get(tp) or self.partitions.setdefault(tp, FollowedPartition(self, tp))

    def note(self, p: FollowedPartition) -> None:
        """A time has changed since when a partition is late."""
        if p.stopped_since == p.lagging_since == p.behind_since == math.inf:
            self.late.pop(p.tp, None)
        else:
            self.late[p.tp] = p
            self.process.network.wake_leaders()

    # Fetching begins and ends with requests of the controller

    def fetcher_of(self, before: LeaderAndIsr | None, state: LeaderAndIsr) -> str:
        """The fate of the fetcher where we are made follower: KEPT where little has changed, else STARTED, or SKIPPED.

        Kafka 2.4.1: cluster/Partition.scala, makeFollower; server/ReplicaManager.scala, makeFollowers
        """
        generation = self.process.generation
        if before is not None and before.leader == state.leader and not generation.records.refetches_at_each_epoch:
            missed = state.leader_epoch > before.leader_epoch + 1
            if not (missed and generation.records.refetches_after_missed_epoch):
                return KEPT
        return SKIPPED if self.process.is_leaving else STARTED

    def follow(self, tp: TopicPartition, fetcher: str) -> None:
        """Fetch from the leader; if we are not in its ISR, catch up and fetch from the end of its log."""
        p = self.partition(tp)
        if fetcher != KEPT:
            p.forget()
            p.prepare_truncation()
        if fetcher == SKIPPED:
            self._stop_fetching(p, self.process.clock.now())
        elif fetcher == STARTED:
            p.begin(p.known.leader)
        if p.state in CAUGHT_UP and p.is_out_of_sync():
            self._catch_up(p)
        self.fetch(tp)

    def _stop_fetching(self, p: FollowedPartition, since: float) -> None:
        p.state, p.stopped_since = STOPPED, since
        self.note(p)

    def remove_fetcher(self, tp: TopicPartition) -> None:
        """Stop fetching until this broker is made follower again."""
        p, hosted = self.partition(tp), self.process.hosted.get(tp)
        since = p.stopped_since if p.state is STOPPED else self.process.clock.now()
        p.forget()
        if hosted is not None and hosted.state.leader != self.process.id:
            self._stop_fetching(p, since)

    def forget(self, tp: TopicPartition) -> None:
        self.partition(tp).forget()

    def end(self) -> None:
        """The process stops or has ended: nothing is fetched any more."""
        for p in self.partitions.values():
            p.stop()

    # How far behind we are

    def will_catch_up(self, tp: TopicPartition) -> bool:
        """True if we are caught up, or will be: a process that is stopping starts no fetcher."""
        p = self.partition(tp)
        return p.lagging_since == math.inf and not (p.state is STOPPED and self.process.is_leaving)

    @property
    def is_suspect(self) -> bool:
        """True if we may be late somewhere."""
        return bool(self.late or self.fetch_delay)

    def unasked(self) -> Iterator[TopicPartition]:
        """The copies here that no LeaderAndIsr has named since this process began: we do not fetch them."""
        held = self.process.disk.places
        return filter(self._is_unasked, held if len(held) > len(self.process.hosted) else ())

    def _is_unasked(self, tp: TopicPartition) -> bool:
        process = self.process
        return tp in process.disk.places and tp not in process.hosted and tp not in process.offline

    def lag(self, tp: TopicPartition) -> fetches.FollowerLag:
        """Since when we have not been caught up: we lag, copy, or are slower than a leader waits; or do not fetch."""
        p = self.partition(tp)
        late_since = min(p.lagging_since, p.behind_since)
        if self.fetch_delay > self.process.config["replica.lag.time.max.ms"] / 1000:
            late_since = min(late_since, max(self._delayed_since, p.joined_at))
        unasked_since = self.process.down_since if self._is_unasked(tp) else math.inf
        return fetches.FollowerLag(late_since, min(p.stopped_since, unasked_since))

    def set_fetch_delay(self, seconds: float) -> None:
        """Let every fetch take so much longer from now on."""
        self.fetch_delay, self._delayed_since = seconds, self.process.clock.now() if seconds else math.inf
        self.process.network.wake_leaders()

    def fall_behind(self, tp: TopicPartition) -> None:
        """Lag in this partition until `catch_up`."""
        p = self.partition(tp)
        p.stop()
        if p.lagging_since == math.inf:
            self.late.pop(tp, None)  # to its end, in the order in which partitions began to lag
            p.lagging_since = self.process.clock.now()
            if p.state in CAUGHT_UP:
                p.state = LAGGING
        self.note(p)

    def catch_up(self) -> None:
        """Stop lagging."""
        for p in [p for p in self.late.values() if p.lagging_since != math.inf]:
            p.lagging_since = math.inf
            self.note(p)
            if p.state is LAGGING:
                p.state = IN_STEP
                self._catch_up(p)

    # Catching up and fetching

    def _catch_up(self, p: FollowedPartition) -> None:
        """Catch up together with the partitions of the same leader that begin at the same moment."""
        p.stop()
        leader, has_records = p.known.leader, p.has_records()
        catch_up = self._forming.get(leader)
        if catch_up is None or not catch_up.forming or has_records:
            catch_up = CatchUp(self, leader)
            if not has_records:
                self._forming[leader] = catch_up
        p.is_reported = False
        catch_up.add(p)

    def will_fetch(self) -> bool:
        """True if a fetch that waits for its next attempt will be answered then."""
        process = self.process
        for p in self.partitions.values():
            if p.state is CATCHING_UP or p.state is DELAYED:
                found = p.found()
                if found and found.answered and process.reaches(p.known.leader):
                    return not process.is_paused
        return False

    def rejoin(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Catch up wherever the leader has taken us out of the ISR meanwhile, in these partitions or in all."""
        for tp in self.process.hosted if partitions is None else partitions:
            p = self.partitions.get(tp)
            if p is not None and p.state in CAUGHT_UP:
                found = p.found()
                if found is not None and not found.in_isr:
                    self._catch_up(p)

    def next_fetch(self, fetch: fetches.NextFetch) -> None:
        """Send our next fetch now, as it finds something."""
        match fetch.finds:
            case fetches.Finds.RECORDS:
                self.fetch(fetch.partition)
            case fetches.Finds.NO_LOG:
                self._wait(self.partition(fetch.partition))
            case fetches.Finds.NEW_LEADER if not self.names_epoch(fetch.leader):
                self.rejoin((fetch.partition,))
            case fetches.Finds.EXPELLED:
                self.rejoin()

    def fetch(self, tp: TopicPartition) -> None:
        """Fetch now if we have caught up; a fetch that is under way goes on, unless it waits for its next attempt."""
        p = self.partition(tp)
        if p.state in CAUGHT_UP and p.state is not FETCHING and p.has_records():
            p.stop()
            p.state, p.task = FETCHING, self.process.spawn(self._copy(p))

    async def _copy(self, p: FollowedPartition) -> None:
        """Fetch until the leader has nothing new, then let a fetch wait there."""
        await p.copy()
        p.state, p.task = IN_STEP, None
        if self.process.listening:
            self._wait(p)

    def _wait(self, p: FollowedPartition) -> None:
        """Our log ends where the leader's does: let a fetch wait there, unless one is under way."""
        if p.state is not IN_STEP:
            return
        log = self.process.disk.logs.get(p.tp)
        request = p.request(*((log.end, log.high_watermark) if log is not None else (0, 0)))
        fetch = self.process.network.hold(p.known.leader, request, lambda brings: self.answered(p, brings))
        if fetch is not None and not fetch.is_completed:
            p.state, p.waits = WAITING, fetch
        elif fetch is not None and fetch.result:
            self.fetch(p.tp)
        elif fetch is not None:
            p.give_up_if_fenced()

    def answered(self, p: FollowedPartition, brings: bool) -> None:
        """Go on; a fetch that was refused is repeated when the leader leads again, or another one does."""
        if p.state is WAITING:
            p.state, p.waits = IN_STEP, None
            if brings:
                self.fetch(p.tp)

    # Fetcher threads

    def names_epoch(self, leader: int) -> bool:
        """True if our next fetch from that leader names the leader epoch: only a session's first one does (KAFKA-9338).

        Kafka 2.4.1: server/FetchSession.scala, CachedPartition.reqData
        """
        thread = self.threads.get(leader)
        return self.process.generation.records.checks_fetched_epoch and (thread is None or not thread.is_in_session)

    def end_idle_threads(self, at_once: bool) -> None:
        """End the threads that have no partition left, at once or when the fetch that is under way has returned.

        Kafka 0.10.2.2: server/AbstractFetcherManager.scala, shutdownIdleFetcherThreads
        """
        now = self.process.clock.now()
        for leader, thread in [each for each in self.threads.items() if not each[1].partitions]:
            del self.threads[leader]
            if not at_once and thread.connection[0] and self.process.reaches(leader):
                ended = now + fetches.FETCH_WAIT - (now - thread.since) % fetches.FETCH_WAIT
                self._idle_until = max(self._idle_until, ended)

    async def idle_threads_ended(self) -> None:
        """Return when no thread is being ended any more."""
        if (now := self.process.clock.now()) < self._idle_until:
            await self.process.clock.sleep(self._idle_until - now)

    def state_key(self) -> str:
        """The state for the explorer: partitions that catch up, that fetch nothing, and that lag."""
        catching_up = sorted(tp for tp, p in self.partitions.items() if p.state is CATCHING_UP)
        stopped = sorted(tp for tp, p in self.late.items() if p.state is STOPPED)
        return f"{catching_up} {stopped} {sorted(tp for tp, p in self.late.items() if p.lagging_since != math.inf)}"


class CatchUp:
    """Catches up with one leader in some partitions, until the leader has taken us into the ISR everywhere.

    Relations that always hold: `partitions` are those in CATCHING_UP whose `catch_up` this is; the task runs while
    there are any; no partition is added once it has begun (`forming` is False).
    """

    def __init__(self, role: FollowerRole, leader: int) -> None:
        self.role, self.process, self.leader = role, role.process, leader
        self.partitions: dict[TopicPartition, FollowedPartition] = {}
        self.forming = True
        self._task: asyncio.Task[None] | None = None

    def add(self, p: FollowedPartition, at_once: bool = False) -> None:
        """One more partition; with the first this starts, after the time of catching up or at once."""
        self.partitions[p.tp] = p
        p.state, p.catch_up = CATCHING_UP, self
        if self._task is None:
            self._task = self.process.spawn(self._run(at_once))

    def drop(self, p: FollowedPartition) -> None:
        """Stop fetching this partition."""
        del self.partitions[p.tp]
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
            for p in list(self.partitions.values()):
                self._fetch(p)
            if not self.partitions:
                return
            await process.clock.sleep(fetches.FETCH_BACKOFF, background=True)

    async def _copy(self) -> None:
        """Records are copied partition by partition: each that has some catches up by itself."""
        for tp, p in list(self.partitions.items()):
            if len(self.partitions) > 1 and p.has_records():
                del self.partitions[tp]
                CatchUp(self.role, self.leader).add(p, at_once=True)
        if len(self.partitions) == 1:
            await next(iter(self.partitions.values())).copy()

    def _fetch(self, p: FollowedPartition) -> None:
        """Fetch from the end of the leader's log, until it takes us into the ISR."""
        process, state = self.process, p.known
        answer = process.network.fetch(self.leader, p.request())
        if answer is None:
            p.give_up_if_fenced()
            return
        self.role.threads[state.leader].fetched()
        if not p.is_reported:
            process.record("caught-up", p.tp, leader=state.leader, leader_epoch=state.leader_epoch)
            p.is_reported = True
        if answer.in_isr:
            del self.partitions[p.tp]
            p.state, p.catch_up, p.joined_at = IN_STEP, None, process.clock.now()
            self.role.fetch(p.tp)
