"""Searching: walks of many seeds on all cores, what they broke, and the shortest story that still breaks it.

The seeds are taken in order and their outcomes counted in order, so that a search that is bounded by steps comes to
the same end on every machine; one that is bounded by time only gets further on a faster one.

To minimise a walk, first whole stretches of commands are left out, then shorter and shorter ones, then single ones
(delta debugging); then what is left is made simpler: fewer brokers, a plain configuration, time that passes until all
is quiet. Each attempt is a new run, so no assumption is needed about why a command matters.

Separate from `cli/explore.py` because tests and tools search, and write finds, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.display import counted
from kafka_ctl.explore.play import Failure, FirstFailure, Outcome, play
from kafka_ctl.explore.walk import LENGTH, Walk, busy, stories, walk, walk_near
from kafka_ctl.explore.workers import cores, defect, processes
from kafka_ctl.generation import Generation
from kafka_ctl.lab import validate
from kafka_ctl.lab.story import Command

if TYPE_CHECKING:
    from kafka_ctl.explore.exhaustive import Case, Round, Search


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
    """Shortens a walk while it still breaks the same invariant; `progress` is called at each success."""

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


MOST = 10
"""So many different violations are minimised; more are only counted."""


class Task(NamedTuple):
    """A walk to be played by whichever process is free; with the seeded defect `mutant`, if there is one.

    `near` are files and folders of stories that the walk is near to.
    """

    generation: str
    seed: int
    length: int = LENGTH
    mutant: str | None = None
    near: tuple[str, ...] = ()

    @property
    def walk(self) -> Walk:
        """The walk of the seed; a defect is looked for in every other walk in a cluster that is in use."""
        if self.near:
            return walk_near(stories(self.near), self.generation, self.seed)
        if self.mutant and self.seed % 2:
            return busy(self.generation, self.seed)
        return walk(self.generation, self.seed, self.length)

    def where(self, times: int) -> str:
        """The place of a find."""
        return f"in {counted(times, 'walk')}, first with seed {self.seed}"

    @property
    def label(self) -> str:
        """The part of a file's name that identifies the case."""
        return str(self.seed)


class Played(NamedTuple):
    """The outcome of a task: commands carried out, steps (records) they left, and violations."""

    task: Task
    commands: int
    steps: int
    broken: tuple[Failure, ...]


@dataclass
class Findings:
    """The finds of a search so far."""

    generation: str
    walks: int = 0
    commands: int = 0
    steps: int = 0
    seconds: float = 0.0
    known: dict[tuple[str, str], int] = field(default_factory=dict)
    """By invariant and ticket: how many walks broke it in a way that is declared."""
    unknown: dict[tuple[str, str, str | None], FirstFailure[Task]] = field(default_factory=dict)
    """By kind, counted in walks that broke it in a way that is not declared."""

    def add(self, played: Played) -> None:
        """Count one walk."""
        self.walks += 1
        self.commands += played.commands
        self.steps += played.steps
        for name, ticket in {(b.name, b.known): None for b in played.broken if b.known}:
            self.known[name, ticket or ""] = self.known.get((name, ticket or ""), 0) + 1
        for broken in {b.kind: b for b in reversed(played.broken) if not b.known}.values():
            known = self.unknown.get(broken.kind, FirstFailure(0, played.task, broken))
            self.unknown[broken.kind] = known._replace(times=known.times + 1)


def search(
    generation: str,
    seed: int = 0,
    seconds: float | None = None,
    steps: int | None = None,
    jobs: int | None = None,
    mutant: str | None = None,
    progress: Callable[[Findings], None] = lambda findings: None,
    near: tuple[str, ...] = (),
) -> Findings:
    """Play walks from this seed on until the time is over or so many steps were made; `progress` is called after each.

    `jobs` processes share the work (all cores, if None); with 1 it is done in this one. With `mutant`, a seeded defect
    is switched on, that some invariant must notice. With `near`, files and folders of stories, walks are near to these.
    Raises UnknownName for a generation or mutant that does not exist, BadInput where a story cannot be read.
    """
    Generation(generation)
    seed = validate.integer("a seed", seed)
    for what, number in (("steps", steps), ("jobs", jobs)):
        if number is not None:
            validate.integer(what, number, 1)
    if seconds is not None:
        validate.seconds("seconds", seconds)
    if near:
        stories(near)
    with defect(mutant):
        pass
    began, findings = time.monotonic(), Findings(generation)
    tasks = (Task(generation, number, mutant=mutant, near=near) for number in count(seed))
    with processes(jobs) as pool:
        for played in _played(pool, tasks, jobs or cores()):
            findings.add(played)
            findings.seconds = time.monotonic() - began
            progress(findings)
            if (steps is not None and findings.steps >= steps) or (seconds is not None and findings.seconds >= seconds):
                break
    return findings


def _played(pool: Pool | None, tasks: Iterator[Task], jobs: int) -> Iterator[Played]:
    """The outcomes in the order of the tasks, with a few tasks ahead for every process."""
    if pool is None:
        yield from map(run, tasks)
        return
    ahead = [pool.apply_async(run, (next(tasks),)) for _ in range(4 * jobs)]
    while True:
        yield ahead.pop(0).get()
        ahead.append(pool.apply_async(run, (next(tasks),)))


def run(task: Task) -> Played:
    """Play one walk."""
    with defect(task.mutant):
        outcome = play(task.walk)
    return Played(task, len(outcome.commands), outcome.records, outcome.broken)


class Found(NamedTuple):
    """A violation with the shortest walk that shows it."""

    broken: Failure
    times: int
    task: Task | Case
    walk: Walk
    runs: int


def shortest(
    findings: Findings | Search, progress: Callable[[int, int], None] = lambda runs, lines: None
) -> Iterator[Found]:
    """Minimise what was found and is not declared, the most frequent first."""
    found: list[FirstFailure[Task] | FirstFailure[Case]] = [*findings.unknown.values()]
    for times, task, broken in sorted(found, key=lambda each: -each.times)[:MOST]:
        minimiser = Minimiser(broken, progress)
        with defect(task.mutant):
            walk = minimiser.minimise(task.walk)
        yield Found(broken, times, task, walk, minimiser.runs)


def summary(findings: Findings) -> str:
    """The amount that was played, the speed, and the declared violations."""
    f = findings
    lines = [
        f"Kafka {f.generation}: {f.walks:,} walk{'s' * (f.walks != 1)}, {f.commands:,} commands and faults, "
        f"{f.steps:,} steps in {f.seconds:.0f} s ({f.steps / max(f.seconds, 1e-9):,.0f} steps/s)"
    ]
    for (name, ticket), times in sorted(f.known.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  known  {times:>7,} walk{' ' if times == 1 else 's'}  {name}: {ticket}")
    for times, task, broken in sorted(f.unknown.values(), key=lambda each: (-each.times, each.failure.text)):
        lines.append(
            f"  BROKEN {times:>7,} walk{' ' if times == 1 else 's'}  {broken.name}: {broken.text}  (seed {task.seed})"
        )
    if not f.unknown:
        lines.append("  nothing else was broken")
    return "\n".join(lines)


def account(search: Search) -> str:
    """The amount that an exhaustive search has seen, and the violations on the way."""
    size = f"{search.brokers} brokers, {search.partitions} partition{'s' * (search.partitions > 1)}"
    speed = search.states / max(search.seconds, 1e-9)
    lines = [f"Kafka {search.generation}, {size}: {search.seconds:.0f} s ({speed:,.0f} states/s)"]
    if search.complete is not None:
        lines.append(f"  every order, {_counted(search.complete)}")
    if search.rounds and not search.rounds[-1].complete:
        lines.append(f"  not every order, for the time was over, {_counted(search.rounds[-1])}")
    for times, case, broken in sorted(search.broken.values(), key=lambda each: (each.failure.known or "", -each.times)):
        what = f"{broken.name}: {broken.known or broken.text}"
        lines.append(f"  {'known ' if broken.known else 'BROKEN'} {what}  ({case.where(times)})")
    if not search.unknown:
        lines.append("  nothing else was broken")
    return "\n".join(lines)


def _counted(tried: Round) -> str:
    seen = tried.seen
    whole = f"{seen.finished} of {tried.cases} pairs of commands" if not tried.complete else f"{tried.cases} pairs"
    depth = f"{counted(tried.depth, 'choice')} deep"
    return f"{depth}: {whole}, {seen.states:,} states on {seen.paths:,} paths, {seen.again:,} met again"


def story_text(found: Found) -> str:
    """The shortest walk as a story that says what it shows."""
    where = f"{found.task.where(found.times)}; minimised in {found.runs} runs"
    where += f"; with the mutant {found.task.mutant}" if found.task.mutant else ""
    return f"# {found.broken.name}: {found.broken.text}\n# {where}\n\n{found.walk.story}"


def write_story(found: Found, folder: Path) -> Path:
    """Write it into a folder that is made if need be; returns the file.

    Another find of the same invariant and seed has a file of its own.
    """
    generation = found.walk.opening.kwargs["generation"]
    name = re.sub(r"[^\w.]+", "-", f"{found.broken.name} {generation} {found.task.label}".lower())
    folder.mkdir(parents=True, exist_ok=True)
    text, files = story_text(found), (folder / f"{name}{f'-{n}' * (n > 1)}.txt" for n in count(1))
    path = next(file for file in files if not file.exists() or file.read_text("utf-8") == text)
    path.write_text(text, "utf-8")
    return path
