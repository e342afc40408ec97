"""A replica's log: records at offsets, each with the leader epoch it was written in, and what tells two logs apart.

A log ends at its *log end offset*, where the next record goes. Records below its *high watermark* are known to be on
every in-sync replica. What a follower has and its leader has not must go before it copies anything: before KIP-101
everything above the follower's high watermark went, since then what the leader epochs show to differ.
Kafka 2.0.1: server/epoch/LeaderEpochFileCache.scala, endOffsetFor; server/AbstractFetcherThread.scala,
getOffsetTruncationState (KIP-101, KIP-279)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Entry(NamedTuple):
    """One record: the epoch of the leader that wrote it, its value, and its bytes (0 where nobody asked for any)."""

    leader_epoch: int
    value: int
    size: int = 0


class Log:
    """The records of one replica, and how far its broker knows them to be on all in-sync replicas."""

    def __init__(self, entries: Iterable[Entry] = (), high_watermark: int = 0) -> None:
        self.entries = list(entries)
        self.high_watermark = high_watermark

    @property
    def end(self) -> int:
        """The log end offset."""
        return len(self.entries)

    def truncate(self, end: int) -> list[Entry]:
        """Drop what lies at and above this offset; returns what was dropped."""
        dropped = self.entries[end:]
        del self.entries[end:]
        self.high_watermark = min(self.high_watermark, self.end)
        return dropped

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to this one that has records, and the offset at which the next epoch begins.

        Where no record is as old as that: the epoch that was asked for, and 0.
        """
        offset = bisect_right(self.entries, epoch, key=lambda entry: entry.leader_epoch)
        return (self.entries[offset - 1].leader_epoch if offset else epoch), offset

    def common_end(self, leaders_end_of: Callable[[int], tuple[int, int] | None]) -> int | None:
        """How much of this log the leader has as well, judged by leader epochs alone, as a follower asks for it.

        The follower names its last epoch; the leader's `end_of` answers with the last epoch up to it that it has
        records of, and where that ends. An epoch that the follower does not have makes it ask again with its next
        older one. None where the leader does not answer.
        """
        end = self.end
        while answer := leaders_end_of(self.entries[end - 1].leader_epoch if end else -1):
            epoch, leaders_end = answer
            own, own_end = self.end_of(epoch)
            end = min(end, own_end)
            if own == epoch or not end:
                return min(end, leaders_end)
        return None
