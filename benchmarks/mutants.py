"""The steps (records) of random walks until each mutant is noticed, in each generation in which it is possible.

The walks are those of `kafka-ctl explore --mutant`. A seed's walks are played one after the other until something is
broken that is not declared; their steps are added up. `python -m benchmarks.mutants --write` writes `docs/mutants.md`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

from benchmarks.figures import Figure
from kafka_ctl.explore.play import Failure, apply
from kafka_ctl.explore.search import Task, cores
from kafka_ctl.explore.walk import Walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.paths import ROOT
from tests.mutants import IMPOSSIBLE, MUTANTS, mutant

SEEDS, WALKS = 9, 1000
"""Seeds, and the most walks that are played for one of them."""
NAMES = tuple(MUTANTS)
QUICK = {"SEEDS": 1, "NAMES": ("sent-is-received", "newest-first")}


def played(wanted: Walk) -> tuple[str | None, int]:
    """The first thing that a walk breaks and that is not declared, if any, and the steps up to it or to the end."""
    with Lab(**story.opening(wanted.opening)) as lab:
        violations = lab.checker.violations  # type: ignore[union-attr]
        for line in wanted.commands:
            failed = apply(lab, line, lambda: any(v.known is None for v in violations))
            found = next((v for v in violations if v.known is None), None)
            if found is not None:
                return found.invariant, found.seq
            if isinstance(failed, Failure):
                return None if failed.known else failed.name, len(lab.trace)
        return None, len(lab.trace)


def caught(name: str, generation: str, seed: int, walks: int = WALKS) -> tuple[str, int] | None:
    """The check that notices a mutant first, and the steps until then; None if none does.

    A violation that the same walk has without the mutant does not count.
    """
    steps = 0
    for number in range(seed * WALKS, seed * WALKS + walks):
        wanted = Task(generation, number, mutant=name).walk
        with mutant(name):
            found, taken = played(wanted)
        steps += taken
        if found is not None and played(wanted)[0] != found:
            return found, steps
    return None


class Cell(NamedTuple):
    """The end of a mutant in a generation: steps of each seed that noticed it, and the check that did."""

    name: str
    generation: str
    steps: tuple[int, ...]
    by: tuple[str, ...]

    @property
    def median(self) -> str:
        return f"{statistics.median(self.steps):,.0f}" if self.steps else "never"


def cell(where: tuple[str, str], seeds: int) -> Cell:
    """One mutant in one generation; nothing is played where it is not possible."""
    tried = () if where in IMPOSSIBLE else range(seeds)
    found = [what for seed in tried if (what := caught(*where, seed)) is not None]
    return Cell(*where, tuple(steps for _, steps in found), tuple(sorted({by for by, _ in found})))


def figure(found: Cell, seeds: int) -> Figure:
    """The median number of steps until a mutant is noticed, with how many seeds it is, and what notices it."""
    chosen = MUTANTS[found.name]
    where = f"{chosen.invariant} {found.name}, Kafka {found.generation}"
    if reason := IMPOSSIBLE.get((found.name, found.generation)):
        return Figure(where, "0 seeds", f"not possible: {reason}")
    noticed = f"noticed with {len(found.steps)} of {seeds} seeds, first by {', '.join(found.by)}: {chosen.sentence}"
    return Figure(where, f"{found.median} steps" if found.steps else "never", noticed)


def cells(seeds: int, jobs: int | None = None) -> Iterator[Cell]:
    """In the order of the table, each as soon as it is there."""
    with get_context("spawn").Pool(jobs or cores()) as pool:
        yield from pool.imap(partial(cell, seeds=seeds), product(NAMES, GENERATIONS))


def measure() -> Iterator[Figure]:
    yield from (figure(found, SEEDS) for found in cells(SEEDS))


# The page

PAGE = ROOT / "docs" / "mutants.md"
ABOUT = """# How soon each mutant is noticed

<!-- Written by `python -m benchmarks.mutants --write`; do not edit it. -->

A *mutant* is a seeded defect that proves that the check of an [invariant](invariants.md) can fail; `tests/mutants/` has
them. Random walks, those of `kafka-ctl explore --mutant`, are played until a violation without a known mechanism. A
cell has the median number of steps (records) until then, over {seeds} seeds. If some seeds did not notice the mutant
within {walks} walks, the number of those that did is in brackets. The last column is the invariant that noticed it
first, in any generation.

| mutant | of | {generations} | noticed by |
|---|---|{rule}---|
"""


def page(found: Iterable[Cell], seeds: int) -> str:
    """The table, and why a mutant is not possible in a generation."""
    by_mutant: dict[str, list[Cell]] = {}
    for one in found:
        by_mutant.setdefault(one.name, []).append(one)
    text = ABOUT.format(seeds=seeds, walks=WALKS, generations=" | ".join(GENERATIONS), rule="---:|" * len(GENERATIONS))
    for name, row in by_mutant.items():
        columns = " | ".join(shown(one, seeds) for one in row)
        by = ", ".join(sorted({invariant for one in row for invariant in one.by}))
        text += f"| `{name}` | {MUTANTS[name].invariant} | {columns} | {by} |\n"
    text += "\n-: not possible there.\n\n"
    return text + "".join(f"- `{name}` in {generation}: {why}.\n" for (name, generation), why in IMPOSSIBLE.items())


def shown(one: Cell, seeds: int) -> str:
    if (one.name, one.generation) in IMPOSSIBLE:
        return "-"
    return one.median + (f" ({len(one.steps)})" if one.steps and len(one.steps) < seeds else "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, help="processes (default: as many as there are cores)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    found = []
    for one in cells(asked.seeds, asked.jobs):
        found.append(one)
        print(f"{one.name:25} {one.generation:5} {shown(one, asked.seeds):>12}   {', '.join(one.by)}", flush=True)
    if asked.write:
        PAGE.write_text(page(found, asked.seeds), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
