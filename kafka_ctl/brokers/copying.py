"""How a follower copies what its leader has: its fetches, what must be dropped first, and how far behind it is.

Records without a size take no time to copy; of bytes a follower notes since when it lags.
Kafka 2.0.1: server/AbstractFetcherThread.scala, FetcherLagStats; cluster/Replica.scala, updateLogReadResult;
server/ReplicaFetcherThread.scala, processPartitionData, maybeTruncate, handleOffsetOutOfRange, shouldFollowerThrottle
"""

from __future__ import annotations

import math

from kafka_ctl.brokers.fetcher_threads import FetcherThreads
from kafka_ctl.brokers.fetches import (
    FETCH_WAIT,
    NO_EPOCH,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchState,
    OffsetsForLeaderEpochRequest,
)
from kafka_ctl.brokers.log import Log
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.topic_configs import TopicConfigs
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.trace import details

FETCH_BACKOFF = 1.0
"""Seconds that a follower waits whose leader does not answer."""


class Copying:
    """What one broker fetches as a follower, partition by partition."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs, threads: FetcherThreads) -> None:
        self.process, self.configs, self.threads = process, configs, threads
        self.fetch_delay = 0.0
        """How much longer every fetch takes, in seconds."""
        self.waiting: set[TopicPartition] = set()
        """Partitions whose next fetch waits, as the leader has not answered."""
        self._unchecked: set[TopicPartition] = set()
        """Where our leader epochs have not been compared with the leader's yet."""
        self._lags: dict[TopicPartition, int] = {}
        """How many records below its leader's high watermark a follower lacked after its last fetch."""
        self._last: dict[TopicPartition, tuple[float, int]] = {}
        """When it fetched last, in seconds, and where the leader's log ended then."""
        self.behind: dict[TopicPartition, float] = {}
        """Partitions of which bytes are being copied, and since when they have not been caught up."""

    # Fetches

    def names_epoch(self, leader: int) -> bool:
        """Whether our next fetch from that leader says which leader epoch we know: the first one of a fetch session, as
        sessions lose it (KAFKA-9338, fixed in 2.5.0).

        Kafka 2.4.1: server/FetchSession.scala, CachedPartition.reqData
        """
        return self.process.generation.records.checks_fetched_epoch and not self.threads.in_session(leader)

    def named_epoch(self, state: LeaderAndIsr) -> int:
        """The leader epoch that the next fetch of this partition names, -1 for none."""
        return state.leader_epoch if self.names_epoch(state.leader) else -1

    def request(self, tp: TopicPartition, offset: int | None = None, high_watermark: int = 0) -> FetchRequest:
        """Our next fetch of a partition."""
        return FetchRequest(
            tp, self.process.id, self.named_epoch(self.process.hosted[tp].state), offset, high_watermark
        )

    def found(self, tp: TopicPartition, state: LeaderAndIsr) -> FetchState | None:
        """What our next fetch would find; None without a leader."""
        return self.process.network.fetch_state(state.leader, tp, self.process.id, self.named_epoch(state))

    def has_records(self, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether anything was ever written, here or at the leader."""
        found = self.process.network.fetch_state(state.leader, tp, self.process.id, NO_EPOCH)
        return found is not None and (tp in self.process.disk.logs or found.offsets is not None)

    # What must go first

    def prepare_truncation(self, tp: TopicPartition) -> None:
        """Before anything is copied from a new leader, what it may not have must go."""
        log = self.process.disk.logs.get(tp)
        if log is None:
            return
        if self.process.generation.records.truncates_by_epoch:
            self._unchecked.add(tp)
        else:
            self._truncate(tp, log, log.high_watermark, "high-watermark")

    # Copying

    async def copy(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Drop what the leader has not, then fetch to the end of its log; at once where nothing was ever written."""
        process = self.process
        if not self.has_records(tp, state):
            return
        log = process.disk.log(tp)
        while process.listening:
            await process.clock.sleep(process.costs.request + self.fetch_delay)
            if self.is_throttled(tp):
                await process.clock.sleep(FETCH_BACKOFF)
            elif tp in self._unchecked:
                await self._compare_epochs(tp, log, state.leader)
            elif await self._fetch(tp, log, state.leader):
                return

    async def _compare_epochs(self, tp: TopicPartition, log: Log, leader: int) -> None:
        """Ask where our leader epochs end in the leader's log, and drop what it has not."""
        process, named = self.process, self.named_epoch(self.process.hosted[tp].state)

        def ask(epoch: int) -> EpochEndOffset | None:
            request = OffsetsForLeaderEpochRequest(tp, process.id, named, epoch)
            return process.network.end_of_epoch(leader, request)

        end = log.common_end(ask)
        if end is None:
            await self._back_off(tp)
            return
        self.threads.fetched(leader)
        await process.clock.sleep(process.costs.request)
        self._truncate(tp, log, end, "leader-epoch")
        self._unchecked.discard(tp)

    async def _fetch(self, tp: TopicPartition, log: Log, leader: int) -> bool:
        """One fetch and what it brings; whether our log ends where the leader's does."""
        answer = self.process.network.fetch(leader, self.request(tp, log.end))
        if answer is None:
            await self._back_off(tp)
            return False
        self.threads.fetched(leader)
        await self.transfer(tp, log.end, answer)
        if answer.throttled:
            await self.process.clock.sleep(FETCH_WAIT)
            return False
        if log.end > answer.end:
            await self._out_of_range(tp, log, answer.end)
            return False
        self._append(tp, log, answer)
        found = self.process.network.fetch_state(leader, tp, self.process.id, NO_EPOCH)
        return not answer.entries and log.end == (found.offsets[1] if found and found.offsets else 0)

    def _append(self, tp: TopicPartition, log: Log, answer: FetchResponse) -> None:
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

    async def _back_off(self, tp: TopicPartition) -> None:
        self.waiting.add(tp)
        await self.process.clock.sleep(FETCH_BACKOFF, background=True)
        self.waiting.discard(tp)

    # How far behind

    def is_throttled(self, tp: TopicPartition) -> bool:
        """Whether the next fetch has to wait: others have used up what may be fetched."""
        return self.process.quotas.follower.stops(tp, in_sync=self._lags.get(tp, 1) <= 0)

    async def transfer(self, tp: TopicPartition, offset: int, answer: FetchResponse) -> None:
        """An answer is on its way, each byte of its records adding to the time."""
        size = sum(entry.size for entry in answer.entries)
        if size or tp in self.behind:
            self._note(tp, offset, answer.end)
        await self.process.clock.sleep(self.process.costs.request + size * self.process.costs.byte)
        self.process.quotas.follower.record(tp, size)
        self._lags[tp] = max(0, answer.high_watermark - offset - len(answer.entries))

    def _note(self, tp: TopicPartition, offset: int, end: int) -> None:
        """A fetch from `offset`, when the leader's log ended at `end`: we are caught up, or were at the last fetch."""
        now = self.process.clock.now()
        then, last_end = self._last.get(tp, (now, math.inf))
        if offset >= end:
            self.behind.pop(tp, None)
        else:
            self.behind[tp] = then if offset >= last_end else self.behind.get(tp, now)
        self._last[tp] = now, end

    def stop(self, tp: TopicPartition) -> None:
        """Nothing of this partition is copied now."""
        self.waiting.discard(tp)
        self.behind.pop(tp, None)
        self._last.pop(tp, None)

    def forget(self, tp: TopicPartition) -> None:
        """It is followed no more, or in another way."""
        self.stop(tp)
        self._lags.pop(tp, None)
