"""Fetches of many partitions, of which one gets records: how the two gauges of a purgatory differ.

A fetch waits on the watch list of every partition that it asks for. The first partition that gets records
completes the fetch, and takes it off its own list only. Its entries on the other lists are purged when enough fetches
have been completed and the reaper wakes: when a bucket expires, or 200 ms after it woke last.

Kafka 2.0.1: server/DelayedOperation.scala, DelayedOperationPurgatory, advanceClock, ExpiredOperationReaper

Separate from `lesson_26.py` because the notebook calls it, and no exercise does.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.brokers.purgatory import PURGE_INTERVAL, REAPER_WAIT, DelayedOperation, Purgatory
from kafka_ctl.brokers.timing_wheel import TimingWheel
from kafka_ctl.errors import BadInput, short


class FetchLoad(NamedTuple):
    """PurgatorySize at the end and at its highest, and NumDelayedOperations at the end."""

    watched: int
    peak: int
    delayed: int


class _Fetch(DelayedOperation):
    """A delayed fetch: the next check after the records have come completes it."""

    has_records = False

    def try_complete(self) -> bool:
        return self.has_records and self.force_complete()


def fetch_load(
    partitions: int,
    requests: int = 5000,
    purge_interval: int = PURGE_INTERVAL,
    wait: int = 500,
    timer: TimingWheel | None = None,
) -> FetchLoad:
    """Let so many fetches come, one a millisecond, each of so many partitions; the first gets records each time.

    `wait` is how long a fetch waits at most, in ms; `timer` the wheel that it has, one without a journal if None.
    Raises BadInput for numbers below 1.
    """
    for name, value in (("partitions", partitions), ("requests", requests), ("wait", wait)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BadInput(f"{name} cannot be {short(value)}; it must be a whole number, 1 or more")
    timer = timer or TimingWheel(journal=False)
    purgatory, peak, woken = Purgatory(timer, purge_interval), 0, timer.now
    purge, timer.after_poll = timer.after_poll, None
    for number in range(1, requests + 1):
        fetch = _Fetch(wait, f"fetch {number}")
        purgatory.try_complete_else_watch(fetch, range(partitions))
        peak = max(peak, purgatory.watched)
        fetch.has_records = True
        purgatory.check_and_complete(0)
        polled = timer.polled
        timer.advance(timer.now + 1)
        if purge and (timer.polled > polled or timer.now - woken >= 1000 * REAPER_WAIT):
            woken = timer.now
            purge()
    return FetchLoad(purgatory.watched, peak, purgatory.delayed)
