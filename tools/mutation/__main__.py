"""`python -m tools.mutation --seed 1 --sample 300`: mutants of the package against the tests that concern them.

A sample of all mutants is drawn from the seed. Printed are the survivors, and by target the share that was killed.
Known equivalents (`tests/data/equivalent_mutants.txt`) are counted apart. Exit status 1 if another one survives, 2 if a
test fails without any mutant.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from kafka_ctl.paths import ROOT
from tools.mutation.operators import Mutant, mutants
from tools.mutation.plugin import Mutation, Result
from tools.mutation.targets import TARGETS, Target

EQUIVALENT = ROOT / "tests" / "data" / "equivalent_mutants.txt"


def every_mutant(targets: Iterable[Target]) -> list[Mutant]:
    """All there are, file by file."""
    names = [name for target in targets for name in target.files]
    return [mutant for name in names for mutant in mutants(name, (ROOT / name).read_text("utf-8"))]


def equivalents() -> dict[str, str]:
    """By key: why nothing can tell the mutant from what it was made of. Reasons are the indented lines below keys."""
    known: dict[str, str] = {}
    key = ""
    for line in EQUIVALENT.read_text("utf-8").splitlines():
        if line.startswith(" "):
            known[key] = f"{known[key]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            key = line
            known[key] = ""
    return known


def summary(results: list[Result], known: dict[str, str]) -> str:
    """The share that was killed; of the others, how many are known to be equivalent."""
    killed = sum(result.killed for result in results)
    same = sum(not result.killed and result.mutant.key in known for result in results)
    by = Counter(result.outcome for result in results)
    reported = ", ".join(f"{number} {outcome}" for outcome, number in sorted(by.items()))
    share = killed / max(1, len(results) - same)
    return (
        f"{len(results)} mutants: {killed} killed, {same} known to be equivalent, {len(results) - killed - same} more "
        f"survived; killed {100 * share:.1f}% of those that are not equivalent ({reported})"
    )


class Journal:
    """The results of a run, in a file with one line each, so that a run that was ended can go on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def results(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """By key of a mutant: its killers and its outcome."""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        return {key: (tuple(killers), outcome) for key, killers, outcome in map(json.loads, lines)}

    def add(self, result: Result) -> None:
        """Append one; processes that do so at once leave whole lines."""
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps([result.mutant.key, result.killers, result.outcome]), file=file)


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tools.mutation", description=(__doc__ or "").partition("\n")[2])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all without any")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants; 0 for all")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants with this text in their key")
    parser.add_argument("--keys", type=Path, metavar="FILE", help="only the mutants whose keys are lines of this file")
    parser.add_argument("--killers", type=int, default=1, metavar="N", help="go on until so many tests have failed")
    parser.add_argument("--tests", help="folder/name of test files, without test_, instead of those of the target")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="keep results here; what it has is not run again")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="try so many mutants at a time")
    parser.add_argument("--list", action="store_true", help="print the sample, run nothing")
    given = parser.parse_args(words)
    if unknown := [name for name in given.targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    return given


def chosen(given: argparse.Namespace) -> dict[Target, list[Mutant]]:
    """The sample that was asked for, by target."""
    targets = [TARGETS[name] for name in given.targets or TARGETS]
    wanted = [mutant for mutant in every_mutant(targets) if given.only in mutant.key]
    if given.keys:
        keys = set(given.keys.read_text("utf-8").splitlines())
        wanted = [mutant for mutant in wanted if mutant.key in keys]
    if given.sample:
        wanted = Random(given.seed).sample(wanted, min(given.sample, len(wanted)))
    work = {target: [mutant for mutant in wanted if mutant.path in target.files] for target in targets}
    if given.tests:
        work = {target._replace(tests=given.tests, left_out=""): drawn for target, drawn in work.items()}
    return work


def run(work: dict[Target, list[Mutant]], journal: Journal, killers: int, jobs: int) -> int:
    """Try the mutants that the journal has not; 2 if a test fails without any mutant, which is left out."""
    began, known = time.monotonic(), journal.results()

    def reported(result: Result) -> None:
        journal.add(result)
        took = f"{time.monotonic() - began:6.0f} s"
        print(took, result.outcome.upper(), result.mutant.key, *result.killers, sep="  ", file=sys.stderr, flush=True)

    left = {target: [one for one in drawn if one.key not in known] for target, drawn in work.items()}
    left = {target: drawn for target, drawn in left.items() if drawn}
    if not left:
        return 0
    mutation = Mutation(left, reported, killers, jobs)
    files = sorted({str(path) for target in left for path in target.test_files})
    if pytest.main(["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", *files], plugins=[mutation]) != 0:
        return 2
    if mutation.broken:
        print("these tests fail without any mutant:", *mutation.broken, sep="\n", file=sys.stderr)
        return 2
    return 0


def main(words: list[str]) -> int:
    given = arguments(words)
    work = chosen(given)
    if given.list:
        print("\n".join(mutant.key for drawn in work.values() for mutant in drawn))
        return 0
    known = equivalents()
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(given.journal or Path(folder) / "journal")
        status = run(work, journal, given.killers, given.jobs)
        found = journal.results()
    results = {
        target: [Result(one, *found[one.key]) for one in drawn if one.key in found] for target, drawn in work.items()
    }
    everything = [result for some in results.values() for result in some]
    if missing := sum(map(len, work.values())) - len(everything):
        print(f"{missing} mutants were not tried", file=sys.stderr)
        status = 2
    left = [result for result in everything if not result.killed]
    for result in left:
        print(f"{result.outcome}: {result.mutant.key}\n    {known.get(result.mutant.key, '')}".rstrip())
    for target, some in results.items():
        if 0 < len(some) < len(everything):
            print(f"{target.name}: {summary(some, known)}")
    print(summary(everything, known))
    return status or int(any(result.mutant.key not in known for result in left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
