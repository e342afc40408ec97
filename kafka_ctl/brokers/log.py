"""A replica's log: records at offsets, each with the leader epoch it was written in, and what tells two logs apart.

A log ends at its *log end offset*, where the next record goes. Records below its *high watermark* are known to be on
every in-sync replica; those below its *log start offset* have been deleted (KIP-107). A follower first removes the
records that its leader does not have: before KIP-101 all above its own high watermark, since then those that the leader
epochs show to differ.
Kafka 2.0.1: server/epoch/LeaderEpochFileCache.scala, endOffsetFor, truncateFromStart; log/Log.scala,
maybeIncrementLogStartOffset, truncateFullyAndStartAt; server/AbstractFetcherThread.scala, getOffsetTruncationState
(KIP-101, KIP-279); log/Log.scala, recoverLog, roll, flush
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

SEGMENT_BYTES = 1 << 30
"""Kafka's default for `log.segment.bytes`."""


class Entry(NamedTuple):
    """One record: the epoch of the leader that wrote it, its value, and its bytes (0 where no size was asked for)."""

    leader_epoch: int
    value: int
    size: int = 0


def entries_of(leader_epoch: int, values: Iterable[int], sizes: Iterable[int]) -> list[Entry]:
    """One entry for each value. `tuple` makes them without a Python call for each, which Entry's constructor needs."""
    return list(map(tuple.__new__, repeat(Entry), zip(repeat(leader_epoch), values, sizes, strict=False)))


def bytes_of(entries: Iterable[Entry]) -> int:
    return sum(map(attrgetter("size"), entries))


GONE = Entry(-1, -1)
"""Holds the place of a record below the log start offset that a replica has never had."""


class Log:
    """The records of one replica, and how far its broker knows them to be on all in-sync replicas.

    The record at an offset is `entries[offset]`. Nothing below `start` is read any more: these records
    are deleted but still in the segment, or they were never here and `GONE` is in their places.

    Relations that always hold: `0 <= start <= high_watermark <= end`, `recovery_point <= end`, `future_end <= end`.
    """

    def __init__(self, entries: Iterable[Entry] = (), high_watermark: int = 0) -> None:
        self.entries = list(entries)
        self.high_watermark, self.start = high_watermark, 0
        self.recovery_point = 0
        """The offset up to which everything has been flushed to the disk."""
        self.future_end = 0
        """The end of the future copy in the other log directory; it is never above the end of this log."""

    @property
    def end(self) -> int:
        """The log end offset."""
        return len(self.entries)

    @property
    def unflushed(self) -> int:
        """The bytes that are read again after an unclean shutdown; older segments were flushed when they were full."""
        return min(SEGMENT_BYTES, bytes_of(self.entries[self.recovery_point :]))

    def truncate(self, end: int) -> list[Entry]:
        """Drop what lies at and above this offset; returns what was dropped."""
        dropped = self.entries[end:]
        del self.entries[end:]
        self.high_watermark = min(self.high_watermark, self.end)
        self.recovery_point, self.start = min(self.recovery_point, self.end), min(self.start, self.end)
        self.future_end = min(self.future_end, self.end)
        return dropped

    def start_at(self, offset: int) -> None:
        """Raise the log start offset; a log that ends before it is empty from now on, and goes on there."""
        if offset > self.end:
            self.entries = [GONE] * offset
        self.start = max(self.start, offset)
        self.high_watermark = max(self.high_watermark, self.start)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to this one that has records, and the offset at which the next epoch begins.

        Where no record is as old as that: the epoch that was asked for, and the log start offset.
        """
        offset = bisect_right(self.entries, epoch, self.start, key=lambda entry: entry.leader_epoch)
        return (self.entries[offset - 1].leader_epoch if offset > self.start else epoch), offset

    def common_end(self, leaders_end_of: Callable[[int], tuple[int, int] | None]) -> int | None:
        """The part of this log that the leader has as well, by leader epochs alone, as a follower asks for it.

        The follower names its last epoch; the leader's `end_of` answers with the last epoch up to it that it has
        records of, and where that ends. An epoch that the follower does not have makes it ask again with its next
        older one. None where the leader does not answer.
        """
        end = self.end
        while answer := leaders_end_of(self.entries[end - 1].leader_epoch if end > self.start else -1):
            epoch, leaders_end = answer
            own, own_end = self.end_of(epoch)
            end = min(end, own_end)
            if end <= self.start:  # no epoch is left, as after a start at the leader's log start offset
                return end
            if own == epoch:
                return min(end, leaders_end)
        return None
