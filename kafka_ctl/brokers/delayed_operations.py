"""The operations that wait in a leader's purgatories: a produce request for its replicas, a fetch for bytes.

Both are watched on each of their partitions. A produce request is looked at again when a high watermark rises, or the
partition changes hands. A follower's fetch waits for records at the end of the log, a consumer's for the high
watermark, and that of a consumer that reads committed records only for the last stable offset. Records are deleted when
every live replica's log begins behind them.

Kafka 2.0.1: server/DelayedProduce.scala, DelayedProduce; server/DelayedFetch.scala, DelayedFetch;
server/DelayedDeleteRecords.scala, DelayedDeleteRecords
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from kafka_ctl.brokers.purgatory import DelayedOperation
from kafka_ctl.cluster import TopicPartition

TIMED_OUT = "REQUEST_TIMED_OUT"
TOO_FEW = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
LOG_END, HIGH_WATERMARK, LAST_STABLE = "log_end", "high_watermark", "last_stable"
"""The end of the readable log: for a follower, a consumer, and a consumer with `isolation.level=read_committed`."""

Error = str | None
"""Kafka's name of an error, None for none."""


class Appended(NamedTuple):
    """The result for the records of one partition: acknowledged at this high watermark, or refused."""

    required_offset: int
    error: Error = None


Enough = Callable[[TopicPartition, int], tuple[bool, Error]]
"""True if the in-sync replicas have all records below this offset; the error: too few of them, or not led here."""
LowWatermark = Callable[[TopicPartition], int | str]
"""The log start of the last live replica; an error where this broker does not lead the partition."""


def enough_replicas(high_watermark: int, offset: int, isr: int, min_isr: int) -> tuple[bool, Error]:
    """True if a leader's high watermark has come to `offset`; an error where by then the ISR has too few members.

    Kafka 2.0.1: cluster/Partition.scala, checkEnoughReplicasReachOffset
    """
    if high_watermark < offset:
        return False, None
    return True, None if isr >= min_isr else TOO_FEW


class DelayedProduce(DelayedOperation):
    """A produce request with `acks=all`; its result is the error of each partition."""

    def __init__(self, delay: int, appended: Mapping[TopicPartition, Appended], enough: Enough) -> None:
        super().__init__(delay, "produce")
        self.enough = enough
        self.pending = {tp: append.required_offset for tp, append in appended.items() if append.error is None}
        """Partitions that are not acknowledged yet, and the offset that is missing."""
        self.errors: dict[TopicPartition, Error] = {
            tp: TIMED_OUT if tp in self.pending else append.error for tp, append in appended.items()
        }

    def try_complete(self) -> bool:
        for tp, offset in list(self.pending.items()):
            enough, error = self.enough(tp, offset)
            if enough or error is not None:
                del self.pending[tp]
                self.errors[tp] = error
        return not self.pending and self.force_complete()

    def on_complete(self) -> dict[TopicPartition, Error]:
        return self.errors


NO_LOW_WATERMARK = -1
"""Kafka's DeleteRecordsResponse.INVALID_LOW_WATERMARK."""


class Deleted(NamedTuple):
    """The result of a deletion in one partition: the low watermark, and the reason why it is not the wanted one."""

    low_watermark: int = NO_LOW_WATERMARK
    error: Error = None


class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords request; its result is what became of each partition.

    `wanted` has the offset of each partition that was not refused, and its low watermark so far, `refused` the others.
    """

    def __init__(
        self,
        delay: int,
        wanted: Mapping[TopicPartition, tuple[int, int]],
        refused: Mapping[TopicPartition, Deleted],
        low_watermark: LowWatermark,
    ) -> None:
        super().__init__(delay, "delete-records")
        self.low_watermark = low_watermark
        self.pending = {tp: offset for tp, (offset, _) in wanted.items()}
        """Partitions whose low watermark is not there yet, and where it has to be."""
        self.results = {tp: Deleted(low, TIMED_OUT) for tp, (_, low) in wanted.items()} | dict(refused)

    def try_complete(self) -> bool:
        for tp, offset in list(self.pending.items()):
            low = self.low_watermark(tp)
            if isinstance(low, str):
                self.results[tp] = Deleted(error=low)
            elif low >= offset:
                self.results[tp] = Deleted(low)
            else:
                continue
            del self.pending[tp]
        return not self.pending and self.force_complete()

    def on_complete(self) -> dict[TopicPartition, Deleted]:
        return self.results


class LogOffset(NamedTuple):
    """A place in a log: its offset, the first offset of its segment, and the bytes of the segment before it."""

    offset: int
    segment: int = 0
    position: int = 0


class LogOffsets(NamedTuple):
    """The ends of a leader's log for readers."""

    log_end: LogOffset
    high_watermark: LogOffset
    last_stable: LogOffset


class FetchPartition(NamedTuple):
    """One partition of a fetch: from where, at most how many bytes, by which leader epoch (2.4; -1 for none)."""

    start: LogOffset
    max_bytes: int
    leader_epoch: int = -1


class Fetching(Protocol):
    """The part of the leader that a fetch needs."""

    def log_offsets(self, tp: TopicPartition, leader_epoch: int) -> LogOffsets | str:
        """The end offsets of the leader's log.

        An error if this broker does not lead or have it, or has another leader epoch.
        """

    def is_throttled(self, tp: TopicPartition, replica: int) -> bool:
        """True if this replica may not be sent more of the partition now."""

    def last_sent_high_watermark(self, tp: TopicPartition, replica: int) -> int:
        """The high watermark that was last sent to this follower."""

    def read(self, fetch: DelayedFetch) -> object:
        """The answer: what there is for every partition by now."""


class DelayedFetch(DelayedOperation):
    """A fetch that waits at most `delay` milliseconds for `min_bytes`; its result is the leader's answer.

    `replica` is a follower's id, -1 for a consumer. `passes_on_high_watermark`: an answer that only brings a newer high
    watermark is worth sending, too (KIP-392).
    """

    def __init__(
        self,
        delay: int,
        min_bytes: int,
        partitions: Mapping[TopicPartition, FetchPartition],
        leader: Fetching,
        *,
        replica: int = -1,
        read_committed: bool = False,
        passes_on_high_watermark: bool = False,
    ) -> None:
        super().__init__(delay, "fetch")
        self.min_bytes, self.partitions, self.leader, self.replica = min_bytes, partitions, leader, replica
        self.upto = LOG_END if replica >= 0 else LAST_STABLE if read_committed else HIGH_WATERMARK
        self.passes_on_high_watermark = passes_on_high_watermark and replica >= 0

    def try_complete(self) -> bool:
        """Complete the fetch on enough bytes, or a partition with an error, another segment or a new high watermark.

        Kafka 2.0.1: server/DelayedFetch.scala, tryComplete
        Kafka 2.4.1: server/DelayedFetch.scala, tryComplete
        """
        available = 0
        for tp, wanted in self.partitions.items():
            found = self.leader.log_offsets(tp, wanted.leader_epoch)
            if isinstance(found, str):
                return self.force_complete()
            end: LogOffset = getattr(found, self.upto)
            if end.offset != wanted.start.offset:
                truncated, rolled = end.segment < wanted.start.segment, end.segment > wanted.start.segment
                throttled = self.leader.is_throttled(tp, self.replica)
                if truncated or (rolled and not throttled):
                    return self.force_complete()
                if not rolled and not throttled and end.offset > wanted.start.offset:
                    available += min(end.position - wanted.start.position, wanted.max_bytes)
            sent = self.leader.last_sent_high_watermark(tp, self.replica) if self.passes_on_high_watermark else None
            if sent is not None and found.high_watermark.offset > sent:
                return self.force_complete()
        return available >= self.min_bytes and self.force_complete()

    def on_complete(self) -> object:
        return self.leader.read(self)
