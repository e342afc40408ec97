"""The progress of a long replay, on standard error; a short one prints nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from kafka_ctl.trace.record import Record

LONG = 100_000
"""Records from which a replay, of a second or two, is said to take long."""
EVERY = 2.0
"""Seconds between two lines."""
LOOK = 0x3FFF
"""One record in so many looks at the clock."""

Report = Callable[[int, int], object]
"""Called with how many records there are, and how many there will be."""


class Progress:
    """A listener of a trace that will have `total` records."""

    def __init__(self, what: str, total: int, report: Report | None = None) -> None:
        self.what, self.total = what, total
        self._report = report if report is not None or total < LONG else self._print
        self._began = self._last = time.monotonic()

    def __call__(self, record: Record) -> None:
        if not record.seq & LOOK and self._report is not None:
            self._report(min(record.seq, self.total), self.total)

    def _print(self, there: int, total: int) -> None:
        now = time.monotonic()
        if there and now - self._last >= EVERY:
            self._last = now
            left = (now - self._began) * (total - there) / there
            print(
                f"{self.what}: record {there:,} of {total:,} of the story replayed, {left:.0f} s left",
                file=sys.stderr, flush=True,
            )  # fmt: skip
