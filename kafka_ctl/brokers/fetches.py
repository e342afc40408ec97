"""Messages between a follower and its leader, as values: the network carries them like any request.

A fetch of one partition tells the leader that the follower has everything below its offset. A fetch that finds nothing
waits at the leader, and most that would find nothing are not sent at all. A follower learns from a `FetchResult` what a
fetch would find. A leader learns from a `FollowerLag` how late a follower is. A `NextFetch` asks for the next fetch.
Kafka 2.0.1: common/requests/FetchRequest.java, FetchResponse.java, OffsetsForLeaderEpochRequest.java
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from kafka_ctl.brokers.log import Entry
from kafka_ctl.cluster import TopicPartition

FETCH_WAIT = 0.5
"""Seconds that a fetch waits for records (`replica.fetch.wait.max.ms`)."""
FETCH_BACKOFF = 1.0
"""Seconds that a fetcher waits that has nothing to ask for, or has no answer (`replica.fetch.backoff.ms`)."""
FETCH_BYTES = 1 << 20
"""Bytes that a follower gets of one partition at most, or one record (`replica.fetch.max.bytes`)."""
NO_EPOCH = -1
"""The leader epoch of a fetch that names none."""


class FetchRequest(NamedTuple):
    """A follower asks for what lies from `offset` on, in the leader epoch that it knows.

    Without an offset it asks from the end of the leader's log: it has all there is, and wants to be in the ISR.
    `high_watermark` is the one that it knows, `log_start` the first offset of its own log.
    """

    partition: TopicPartition
    replica: int
    leader_epoch: int = NO_EPOCH
    offset: int | None = None
    high_watermark: int = 0
    log_start: int = 0


class FetchResponse(NamedTuple):
    """The leader's records from the asked offset on, its high watermark before that, and where its log ends and begins.

    `throttled`: there are records that it may not send now. `in_isr`: whether the follower is in the ISR by now.
    """

    entries: list[Entry]
    high_watermark: int
    end: int
    throttled: bool = False
    in_isr: bool = False
    log_start: int = 0


def first_bytes(entries: list[Entry]) -> list[Entry]:
    """As many records as one answer has: up to `FETCH_BYTES`, and one at least."""
    size = 0
    for number, entry in enumerate(entries):
        size += entry.size
        if size > FETCH_BYTES and number:
            return entries[:number]
    return entries


class OffsetsForLeaderEpochRequest(NamedTuple):
    """A follower asks where this epoch, or the last one before it, ends in the leader's log (KIP-101)."""

    partition: TopicPartition
    replica: int
    leader_epoch: int
    epoch: int


class EpochEndOffset(NamedTuple):
    """The last leader epoch up to the asked one that has records, and the offset at which it ends."""

    epoch: int
    end: int


class FetchResult(NamedTuple):
    """The result of a fetch now: if it is answered, high watermark and log end, if the ISR has the follower, log start.

    `offsets` is None where nothing was ever written.
    """

    answered: bool
    offsets: tuple[int, int] | None
    in_isr: bool
    log_start: int = 0
    is_fenced: bool = False
    """True if the fetch names an older leader epoch than the leader's."""


class FollowerLag(NamedTuple):
    """Lateness of a follower in one partition, as its fetches show: times in seconds, infinity for never."""

    late_since: float
    """Since when its fetches have not reached the end of the leader's log."""
    silent_since: float
    """Since when there are no fetches: it has no fetcher, or does not reach the leader."""


Finds = Enum("Finds", "RECORDS NO_LOG NEW_LEADER EXPELLED")
"""Outcome of a follower's next fetch.

    RECORDS     a new leader, whose log may have records
    NO_LOG      no record yet, but one is about to be appended: the fetch waits
    NEW_LEADER  a new leader, in whose ISR the follower is not
    EXPELLED    the leader has taken the follower out of the ISR
"""


class NextFetch(NamedTuple):
    """The order to send the next fetch now. A follower of Kafka sends one within half a second in any case."""

    leader: int
    partition: TopicPartition
    finds: Finds


class WaitingFetch(Protocol):
    """A fetch that waits at a leader, as its follower knows it."""

    is_completed: bool
    """True if it has been answered."""
    result: object
    """True if the answer brought something."""

    def force_complete(self) -> bool:
        """Stop waiting, as when the connection ends."""
