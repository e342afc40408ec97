"""Time travel: any moment of a run is reached by replaying its story up to that record.

A story that stops in the middle of a command says so in a line of its own, which `Lab.story` writes and `Lab.replay`
understands:

    settle
    until 812        the settle before ended here, just after record 812

The stopped work goes on with the next command. A stop is between two callbacks: the records that one callback
writes belong together. Where callbacks that leave no record came before the stop, a second number says how many have
run altogether. Only virtual time can be travelled.

Separate from `recorded_run.py` because it makes another run from a story, and does not change the one it is asked by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.display import Countdown
from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable, short
from kafka_ctl.lab.story import UNTIL, Command
from kafka_ctl.ports import Halted
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import MemoryWorld, World

LONG = 100_000
"""The number of records from which a replay (of a second or two) prints its progress."""
EVERY = 2.0
"""Seconds between two lines."""
LOOK = 0x3FFF
"""A mask: each 16,384th record is reported."""

Report = Callable[[int, int], object]
"""Called with how many records there are, and how many there will be."""


class Progress:
    """A listener of a trace that will have `total` records."""

    def __init__(self, what: str, total: int, report: Report | None = None) -> None:
        self.what, self.total = what, total
        self._report = report if report is not None or total < LONG else self._print
        self._countdown = Countdown(EVERY)

    def __call__(self, record: Record) -> None:
        if not record.seq & LOOK and self._report is not None:
            self._report(min(record.seq, self.total), self.total)

    def _print(self, there: int, total: int) -> None:
        self._countdown(f"{self.what}: record {there:,} of {total:,} of the story replayed", there, total)


OPEN = "lab"
OPENED = Command(OPEN, (), {})
"""The settling with which a lab begins."""


class Stop(NamedTuple):
    """The end of some commands: behind a record once so many callbacks have run, or after seconds of the last command.

    `Stop()` is none: the commands come to their own end.
    """

    record: float = math.inf
    callbacks_run: int = 0
    seconds: float = math.inf


Part = tuple[list[Command], Stop]


def run(world: World, do: Callable[[Command], object], lines: Sequence[Command], raises: bool) -> None:
    """Run commands with `do`; only the last may raise ConditionNotMet or Unavailable, and only if `raises` is true.

    Raises Halted where `halt` of the clock is true.
    """
    clock = world.clock
    for line in lines:
        try:
            if line is OPENED:
                world.settle()
            else:
                do(line)
        except Halted:
            raise
        except (ConditionNotMet, Unavailable):
            if raises and line is lines[-1]:
                raise
        if clock.halt is not None and clock.halt():
            raise Halted


def moment(world: MemoryWorld, n: int, opened: int, begun: set[int]) -> int:
    """The number of records before the last `n` moments. Raises BadInput if there were fewer moments.

    `opened`: the number of records of the first moment, the opening of the lab. `begun`: those before each command.
    """
    callbacks_run, counted = world.callbacks_at_record, 0
    for seq in range(len(callbacks_run) - 1, -1, -1):
        first = seq == 0 or seq == opened
        counted += first or (seq > opened and (callbacks_run[seq - 1] != callbacks_run[seq] or seq in begun))
        if counted == n:
            return seq
    raise BadInput(f"back(n={short(n)}): only {counted} moments have left records so far")


def parts_in_time(commands: Sequence[Command], records: Sequence[Record], at: int | None) -> list[Part]:
    """The commands up to record `at`, with stops that count seconds instead of records."""
    given = [c for c in commands if at is None or c.seq <= at]
    if at is not None and (not given or given[-1].name != UNTIL):
        given.append(Command(UNTIL, (at,), {}, 0, at, records[at].time_ms / 1000 + 1e-6))
    parts: list[Part] = []
    started = 0.0
    lines: list[Command] = []
    for line in given:
        if line.name == UNTIL:
            parts.append((lines, Stop(seconds=line.time - started)))
            lines = []
        else:
            lines.append(line)
        started = line.time
    return [*parts, (lines, Stop())] if lines or not parts else parts


def parts(lines: Iterable[Command], until: int | None = None) -> Iterator[Part]:
    """A story's commands, divided where it stops; nothing that comes after record `until`."""
    part: list[Command] = []
    for line in lines:
        if line.name != UNTIL:
            part.append(line)
            continue
        if not 1 <= len(line.args) <= 2 or line.kwargs or not all(map(_counts, line.args)):
            raise BadInput(f"line {line.line}: {line}: 'until' needs the number of a record")
        if until is not None and until <= line.args[0]:
            break
        yield part, Stop(*line.args)
        part = []
    yield part, Stop() if until is None else Stop(until)


def _counts(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
