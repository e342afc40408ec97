"""How soon each mutant is noticed, in each generation in which it is possible: steps (records) of random walks.

The walks are those of `kafka-ctl explore --mutant`. A seed's walks are played one after the other until something is
broken that is not declared; their steps are added up.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from multiprocessing import get_context

from benchmarks.figures import Figure
from kafka_ctl.errors import BadInput, KafkaCtlError, NotReached, Unavailable
from kafka_ctl.explore.play import BUDGET
from kafka_ctl.explore.search import Task, cores
from kafka_ctl.explore.walk import Walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from tests.mutants import IMPOSSIBLE, MUTANTS, mutant

SEEDS, WALKS = 9, 200
"""Seeds, and the most walks that are played for one of them."""
NAMES = tuple(MUTANTS)
QUICK = {"SEEDS": 1, "NAMES": ("sent-is-received", "newest-first")}


def played(wanted: Walk) -> tuple[str | None, int]:
    """The first thing that a walk breaks and that is not declared, if any, and the steps up to it or to the end."""
    with Lab(**story.opening(wanted.opening)) as lab:
        clock, records, violations = lab._world.clock, lab.trace.records, lab._checker.violations  # type: ignore[attr-defined]
        for line in wanted.commands:
            most = len(records) + BUDGET
            clock.halt = lambda most=most: len(records) > most or any(v.known is None for v in violations)
            try:
                with suppress(BadInput, NotReached, Unavailable):
                    lab.do(line)
            except KafkaCtlError as error:
                return type(error).__name__, len(records)
            finally:
                clock.halt = None
            found = next((v for v in violations if v.known is None), None)
            if found is not None:
                return found.invariant, found.seq
            if len(records) > most:
                return "quiesces", len(records)
        return None, len(records)


def caught(name: str, generation: str, seed: int, walks: int = WALKS) -> tuple[str, int] | None:
    """What notices a mutant first, and the steps until then; None if nothing does."""
    steps = 0
    with mutant(name):
        for number in range(seed * WALKS, seed * WALKS + walks):
            found, taken = played(Task(generation, number, mutant=name).walk)
            steps += taken
            if found is not None:
                return found, steps
    return None


def figure(name: str, generation: str, seeds: int = SEEDS) -> Figure:
    """The median number of steps until a mutant is noticed, with how many seeds it is, and what notices it."""
    chosen, where = MUTANTS[name], f"{MUTANTS[name].invariant} {name}, Kafka {generation}"
    if (name, generation) in IMPOSSIBLE:
        return Figure(where, "0 seeds", f"not possible: {IMPOSSIBLE[name, generation]}")
    found = [what for seed in range(seeds) if (what := caught(name, generation, seed)) is not None]
    median = f"{statistics.median(steps for _, steps in found):,.0f} steps" if found else "never"
    by = ", ".join(sorted({what for what, _ in found}))
    return Figure(where, median, f"noticed with {len(found)} of {seeds} seeds, first by {by}: {chosen.sentence}")


def measure() -> Iterator[Figure]:
    with get_context("spawn").Pool(cores()) as pool:
        # They come in the order of the table, each as soon as it is there.
        yield from pool.imap(partial(_cell, seeds=SEEDS), product(NAMES, GENERATIONS))


def _cell(cell: tuple[str, str], seeds: int) -> Figure:
    return figure(*cell, seeds)
