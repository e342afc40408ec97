"""Searching: walks of many seeds on all cores, and what they broke.

The seeds are taken in order and their outcomes counted in order, so that a search that is bounded by steps comes to
the same end on every machine; one that is bounded by time only gets further on a faster one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.pool import Pool
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.explore.minimise import Minimiser
from kafka_ctl.explore.play import Failure, play
from kafka_ctl.explore.walk import LENGTH, Walk, busy, stories, walk, walk_near
from kafka_ctl.explore.workers import cores, defect, processes
from kafka_ctl.generation import Generation

if TYPE_CHECKING:
    from kafka_ctl.explore.exhaustive import Search
    from kafka_ctl.explore.tree import Case

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
        return f"in {times} walks, first with seed {self.seed}"

    @property
    def label(self) -> str:
        """The same in the name of a file."""
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
    unknown: dict[tuple[str, str, str | None], tuple[int, Task, Failure]] = field(default_factory=dict)
    """By kind: how many walks broke it in a way that is not declared, the shortest of them, and what happened."""

    def add(self, played: Played) -> None:
        """Count one walk."""
        self.walks += 1
        self.commands += played.commands
        self.steps += played.steps
        for name, ticket in {(b.name, b.known): None for b in played.broken if b.known}:
            self.known[name, ticket or ""] = self.known.get((name, ticket or ""), 0) + 1
        for broken in {b.kind: b for b in reversed(played.broken) if not b.known}.values():
            number, task, first = self.unknown.get(broken.kind, (0, played.task, broken))
            self.unknown[broken.kind] = number + 1, task, first


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
    found: list[tuple[int, Task | Case, Failure]] = [*findings.unknown.values()]
    for times, task, broken in sorted(found, key=lambda item: -item[0])[:MOST]:
        minimiser = Minimiser(broken, progress)
        with defect(task.mutant):
            walk = minimiser.minimise(task.walk)
        yield Found(broken, times, task, walk, minimiser.runs)
