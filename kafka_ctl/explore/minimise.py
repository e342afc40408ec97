"""Minimising a walk: the shortest story that still breaks the same invariant.

First whole stretches of commands are left out, then shorter and shorter ones, then single ones (delta debugging); then
what is left is made simpler: fewer brokers, a plain configuration, time that passes until all is quiet. Each attempt
is a new run, so no assumption is needed about why a command matters.

Separate from `search.py` because it takes a found story, however that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kafka_ctl.explore.play import Failure, Outcome, play
from kafka_ctl.explore.walk import Walk
from kafka_ctl.lab.story import Command

Fails = Callable[[Walk], bool]
ATTEMPTS = 2000
"""Runs that one minimisation may take."""
SIMPLER: dict[str, dict[str, tuple[int | None, ...]]] = {
    "create_topic": {"partitions": (1, 2), "replication_factor": (1, 2)},
    "settle": {"limit": (None,)},
    "shutdown": {"wait": (None,)},
    "disconnect": {"one_way": (None,)},
    "lose": {"applied": (None,)},
    "reassign": {"through": (None,)},
}
"""By command: simpler values of its options; None leaves the option out."""
TIMES = {"run_for": (1, 10), "pause": (1, 10), "delay": (1,), "step": (1, 2, 5, 10)}
"""By command: rounder values of its last argument."""


class Minimiser:
    """Makes a walk shorter as long as it breaks the same; `progress` is called at each success."""

    def __init__(self, broken: Failure, progress: Callable[[int, int], None] = lambda runs, lines: None) -> None:
        self.broken, self.progress, self.runs = broken, progress, 0

    def minimise(self, walk: Walk) -> Walk:
        """The shortest walk found that breaks the same; the given one, if it does not break it at all."""
        outcome = self._try(walk)
        if outcome is None:
            return walk
        walk = walk._replace(commands=outcome.commands)
        before = None
        while before != walk and self.runs < ATTEMPTS:
            before = walk
            walk = self._simplify(self._shorten(walk))
        return walk

    def _try(self, walk: Walk) -> Outcome | None:
        if self.runs >= ATTEMPTS:
            return None
        self.runs += 1
        outcome = play(walk, self.broken.kind)
        return outcome if any(b.kind == self.broken.kind for b in outcome.broken) else None

    def _shorten(self, walk: Walk) -> Walk:
        """Leave out stretches of commands: halves first, single commands last."""
        size = max(1, len(walk.commands) // 2)
        while True:
            start = 0
            while start < len(walk.commands):
                rest = (*walk.commands[:start], *walk.commands[start + size :])
                outcome = self._try(walk._replace(commands=rest))
                if outcome is None:
                    start += size
                else:
                    walk = walk._replace(commands=outcome.commands)
                    self.progress(self.runs, len(walk.commands))
            if size == 1:
                return walk
            size = max(1, size // 2)

    def _simplify(self, walk: Walk) -> Walk:
        """Replace what can be simpler, one thing at a time."""
        for place in range(len(walk.commands)):
            for line in _simpler(walk.commands[place]):
                other = walk._replace(commands=(*walk.commands[:place], line, *walk.commands[place + 1 :]))
                if self._try(other) is not None:
                    walk = other
                    break
        for opening in plainer(walk.opening):
            if self._try(walk._replace(opening=opening)) is not None:
                walk = walk._replace(opening=opening)
        return walk


def _simpler(line: Command) -> Iterator[Command]:
    """The same command in simpler forms, the simplest first."""
    if line.name in ("run_for", "step"):
        yield Command("settle", (), {})
    if line.name in TIMES:
        for time in TIMES[line.name]:
            if time < line.args[-1]:
                yield line._replace(args=(*line.args[:-1], time))
    if line.name == "order":
        for numbers in _earlier(line.args[0]):
            yield line._replace(args=(numbers,))
    for option, values in SIMPLER.get(line.name, {}).items():
        for value in values:
            if option in line.kwargs and (value is None or value < line.kwargs[option]):
                rest = {k: v for k, v in line.kwargs.items() if k != option}
                yield line._replace(kwargs=rest if value is None else rest | {option: value})


def _earlier(numbers: list[int]) -> Iterator[list[int]]:
    """The same order with fewer choices, and with choices that are closer to the usual order."""
    if numbers:
        yield numbers[: len(numbers) // 2]
        yield numbers[:-1]
    for place, number in enumerate(numbers):
        yield from ([*numbers[:place], less, *numbers[place + 1 :]] for less in range(number))


def plainer(opening: Command) -> Iterator[Command]:
    """The same cluster with less of what is special about it."""
    given = dict(opening.kwargs)
    brokers, config = given.get("brokers", 3), given.get("config", {})
    if isinstance(brokers, Mapping):  # id -> rack
        yield opening._replace(kwargs=given | {"brokers": list(map(int, brokers))})
    for fewer in _fewer(brokers):
        yield opening._replace(kwargs=given | {"brokers": fewer})
    for key in config:
        rest = {k: v for k, v in config.items() if k != key}
        plain = {k: v for k, v in given.items() if k != "config"}
        yield opening._replace(kwargs=plain | ({"config": rest} if rest else {}))
    for seed in (0, 1, 2):
        if seed < given.get("seed", 0):
            yield opening._replace(kwargs=given | {"seed": seed})


def _fewer(brokers: Mapping[str, str] | list[int] | int) -> Iterator[Mapping[str, str] | list[int] | int]:
    """One broker less, of three or more; a story names a number of them, their ids, or their racks by id."""
    if isinstance(brokers, int):
        yield from [brokers - 1] * (brokers > 2)
    elif len(brokers) > 2:
        yield dict(list(brokers.items())[:-1]) if isinstance(brokers, Mapping) else brokers[:-1]
