"""The order of what is pending: usually that of time, but it can be given, one choice after the other.

Messages and timers that are pending at the same time may come in any order, but for one rule: on one connection nothing
overtakes. A timeout may come before any message: networks can be that slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka_ctl.simulation.loop import Timer, VirtualLoop
from kafka_ctl.zookeeper.memory.session import MemorySession


class Choice(NamedTuple):
    """One point of choice: the number of events that were pending, and which of them came first."""

    taken: int
    of: int


class GivenOrder:
    """The chooser of a virtual loop's next pending event; it removes itself after its last number."""

    def __init__(self, loop: VirtualLoop, numbers: Sequence[int]) -> None:
        self.loop, self.numbers = loop, numbers
        self.made: list[Choice] = []

    def __call__(self, pending: list[Timer]) -> Timer | None:
        ready = list(_heads(pending))
        if len(ready) < 2:  # without a choice a periodic check that is due earlier comes first, or it would never come
            return ready[0] if ready[0].when <= (self.loop.next_time or 0.0) else None
        number = self.number(ready)
        if number is None:
            self.loop.choose = None
            return None
        self.made.append(Choice(min(number, len(ready) - 1), len(ready)))
        return ready[self.made[-1].taken]

    def number(self, ready: list[Timer]) -> int | None:
        """The number of the one that comes next, the earliest being 0; None for the usual order from here on."""
        place = len(self.made)
        return self.numbers[place] if place < len(self.numbers) else None


def _heads(pending: list[Timer]) -> Iterator[Timer]:
    """The first event of every connection; others have a lane of their own."""
    lanes = set()
    for timer in pending:
        own = connection(timer)
        if own is None or own not in lanes:
            lanes.add(own)
            yield timer


def connection(timer: Timer) -> tuple[int, bool] | None:
    """The session of a message between a client and ZooKeeper, and whether it goes up; None for other events."""
    session = getattr(timer.callback, "__self__", None)
    if not isinstance(session, MemorySession):
        return None
    name = timer.callback.__name__
    return (session.id, name == "_arrive") if name in ("_arrive", "_answered", "_call") else None
