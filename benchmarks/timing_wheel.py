"""The cost to set, cancel and expire a timer while many are pending: the wheel, a heap, and asyncio's own.

Timeouts are spread over 30 s, as those of requests. Each figure is the processor time of one timer, the least of some
rounds, with so many pending; beside it the same by `heapq` (of lists, where cancelling marks the entry, which the heap
keeps until its time) and by the loop of asyncio (`call_later` and `cancel`, on virtual time), and the ratios.
"""

from __future__ import annotations

import gc
import heapq
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.figures import Figure
from benchmarks.simulator import Loop
from kafka_ctl.brokers.timing_wheel import TimingWheel

PENDING, SPAN, BATCH, ROUNDS = (1_000, 10_000, 100_000, 1_000_000), 30_000, 1_000, 3
"""Timers pending, the longest delay in milliseconds, timers set and cancelled at a time, and rounds."""
QUICK = {"PENDING": (200,), "BATCH": 50, "ROUNDS": 1}
PARTS = ("set", "cancelled", "expired")


def nothing() -> None:
    """The act of every timer."""


class Wheel:
    """Our wheel, as a broker uses it: without a journal."""

    def __init__(self) -> None:
        self.wheel = TimingWheel(journal=False)

    def set(self, delay: int) -> Any:
        return self.wheel.add(delay, nothing)

    def cancel(self, timer: Any) -> None:
        timer.cancel()

    def kept(self) -> int:
        return sum(len(held.tasks) for level in self.wheel.levels() for held in level.buckets)

    def expire(self) -> None:
        self.wheel.advance(self.wheel.now + SPAN)


class Heap:
    """Entries of time, order and action."""

    def __init__(self) -> None:
        self.heap: list[list[Any]] = []
        self.order = self.now = 0

    def set(self, delay: int) -> Any:
        self.order += 1
        entry = [self.now + delay, self.order, nothing]
        heapq.heappush(self.heap, entry)
        return entry

    def cancel(self, timer: Any) -> None:
        timer[2] = None

    def kept(self) -> int:
        return len(self.heap)

    def expire(self) -> None:
        self.now += SPAN
        while self.heap and self.heap[0][0] <= self.now:
            action = heapq.heappop(self.heap)[2]
            if action is not None:
                action()


class Asyncio:
    """asyncio's selector loop, whose time jumps to the next timer."""

    def __init__(self) -> None:
        self.loop = Loop()

    def set(self, delay: int) -> Any:
        return self.loop.call_later(delay / 1000, nothing)

    def cancel(self, timer: Any) -> None:
        timer.cancel()

    def kept(self) -> int:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        left = len(self.loop._scheduled)  # type: ignore[attr-defined]
        self.loop.close()
        return left

    def expire(self) -> None:
        self.loop.call_later(SPAN / 1000, self.loop.stop)
        self.loop.run_forever()
        self.loop.close()


def costs(make: Callable[[], Any], pending: int, seed: int) -> tuple[float, float, float]:
    """Seconds of processor time to set, to cancel and to expire one timer with so many pending."""
    draw = random.Random(seed)
    delays = [draw.randint(1, SPAN) for _ in range(pending + BATCH)]
    timers = make()
    gc.collect()
    gc.disable()
    try:
        for delay in delays[BATCH:]:
            timers.set(delay)
        began = time.process_time()
        more = [timers.set(delay) for delay in delays[:BATCH]]
        was_set = time.process_time()
        for timer in more:
            timers.cancel(timer)
        was_cancelled = time.process_time()
        timers.expire()
        expired = time.process_time()
    finally:
        gc.enable()
    return (was_set - began) / BATCH, (was_cancelled - was_set) / BATCH, (expired - was_cancelled) / pending


def measure() -> Iterator[Figure]:
    kinds: dict[str, Callable[[], Any]] = {"wheel": Wheel, "heapq": Heap, "asyncio": Asyncio}
    for pending in PENDING:
        least: dict[str, tuple[float, ...]] = {}
        for name, make in kinds.items():
            rounds = [costs(make, pending, seed) for seed in range(ROUNDS)]
            least[name] = tuple(map(min, zip(*rounds, strict=True)))
        for place, part in enumerate(PARTS):
            wheel, heap, loop = (max(least[name][place], 1e-9) for name in kinds)
            beside = f"heapq: {heap * 1e6:.2f} µs, ratio {wheel / heap:.2f}; asyncio: {loop * 1e6:.2f} µs, ratio "
            yield Figure(f"a timer {part}, {pending:,} pending", f"{wheel * 1e6:.2f} µs", f"{beside}{wheel / loop:.2f}")
    kept = {name: answered(make()) for name, make in kinds.items()}
    beside = f"heapq: {kept['heapq']:,}, asyncio: {kept['asyncio']:,}"
    yield Figure(f"kept of {100 * BATCH:,} timers, each cancelled at once", f"{kept['wheel']:,}", beside)


def answered(timers: Any) -> int:
    """The memory of timers that were all cancelled, as those of requests that were answered in time."""
    for number in range(100 * BATCH):
        timers.cancel(timers.set(SPAN - number % 100))
    return int(timers.kept())
