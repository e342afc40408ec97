"""Runs that a lab has left for an earlier moment, kept to be returned to, and time that goes on by itself.

Separate from `live.py` because it knows labs and stories, and nothing of pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.recorded_run import RecordedRun, run_on
from kafka_ctl.lab.story import UNTIL, Command
from kafka_ctl.ports import LIMIT
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.trace.record import Record
from kafka_ctl.views.steps import newsworthy

MOST_KEPT = 20
"""The most futures that are kept; the oldest is forgotten."""
WAITS = ("settle", "run_for", "step", "run_until_violation")
"""The commands that only let time pass."""
SPEEDS = (1.0, 10.0)
"""Virtual seconds in a real one, while time runs by itself."""
LONGEST = 1000
"""The most real milliseconds that are made up for at once: a page that was late does not make time jump."""


class Future(NamedTuple):
    """A run that was left: its last command that did more than let time pass, its end in seconds, its commands."""

    last: Command | None
    time: float
    commands: tuple[Command, ...]


def future(lab: RecordedRun) -> Future:
    """The present run of a lab as a future to return to."""
    commands = tuple(lab.commands)
    given = [command for command in commands if command.name != UNTIL]
    acts = [command for command in given if command.asked.name not in WAITS] or given
    return Future(acts[-1] if acts else None, lab.now, commands)


def shared(one: Sequence[Record], other: Sequence[Record]) -> int:
    """The number of records with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def pass_time(lab: RecordedRun, passed: float, speed: float | None, piece: Command | None) -> Command | None:
    """Let the time pass that fits so many real milliseconds; the story has all pieces as one `run_for`, `piece`.

    `speed` is one of `SPEEDS`; with None, silence is skipped: time goes on to the next step, and not at all while all
    is quiet. Raises BadInput when no step has come within an hour.
    """
    if speed is not None:
        return run_on(lab, round(min(passed, LONGEST) * speed) / 1000, piece)
    clock, begun, size = lab.world.clock, lab.now, len(lab.trace)
    assert isinstance(clock, VirtualClock)
    while not clock.loop.idle and not any(map(newsworthy, lab.trace.records[size:])):
        if lab.now - begun > LIMIT:
            raise BadInput(f"nothing has happened within {LIMIT:g} s of virtual time")
        wait = (clock.loop.next_time or clock.now()) - clock.now()
        piece = run_on(lab, math.floor(wait * 1000 + 1) / 1000, piece)
    return piece
