"""`python -m tests.mutation --seed 1 --sample 300`: mutants of the controller and the brokers against the tests.

A sample of all mutants is drawn from the seed. Printed are the survivors, and the share that was killed. Known
equivalents (`tests/data/equivalent_mutants.txt`) are counted apart. Exit status 1 if another one survives, 2 if a test
fails without any mutant.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from kafka_ctl.paths import ROOT
from tests.mutation.operators import Mutant, mutants
from tests.mutation.plugin import Mutation, Result

TARGETS = ("kafka_ctl/controller", "kafka_ctl/brokers")
TESTS = """
    broker conformance controller_batch controller_events controller_failover deletion directed_stories election
    failover faults identity invariants lab log log_dirs museum mutants order producing rare_paths reassignment
    rebalance shutdown together topic_config traces
""".split()
"""The tests of `tests/` that need neither a server nor another process, and take half a minute together."""
LEFT_OUT = "not every_process"
EQUIVALENT = ROOT / "tests" / "data" / "equivalent_mutants.txt"


def sources() -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for folder in TARGETS for path in (ROOT / folder).glob("*.py"))


def every_mutant() -> list[Mutant]:
    """All there are, file by file."""
    return [mutant for name in sources() for mutant in mutants(name, (ROOT / name).read_text("utf-8"))]


def equivalents(path: Path = EQUIVALENT) -> dict[str, str]:
    """By key: why nothing can tell the mutant from what it was made of. Reasons are the indented lines below keys."""
    known: dict[str, str] = {}
    key = ""
    for line in path.read_text("utf-8").splitlines():
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


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutation", description=(__doc__ or "").partition("\n")[2])
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants; 0 for all")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants with this text in their key")
    parser.add_argument("--keys", type=Path, metavar="FILE", help="only the mutants whose keys are lines of this file")
    parser.add_argument("--killers", type=int, default=1, metavar="N", help="go on until so many tests have failed")
    parser.add_argument("--tests", default=" ".join(TESTS), help="names of the test files, without test_")
    parser.add_argument("--list", action="store_true", help="print the sample, run nothing")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    given = arguments(words)
    wanted = [mutant for mutant in every_mutant() if given.only in mutant.key]
    if given.keys:
        keys = set(given.keys.read_text("utf-8").splitlines())
        wanted = [mutant for mutant in wanted if mutant.key in keys]
    if given.sample:
        wanted = Random(given.seed).sample(wanted, min(given.sample, len(wanted)))
    if given.list:
        print("\n".join(mutant.key for mutant in wanted))
        return 0
    began = time.monotonic()

    def reported(result: Result) -> None:
        took = f"{time.monotonic() - began:6.0f} s"
        print(took, result.outcome.upper(), result.mutant.key, *result.killers, sep="  ", file=sys.stderr, flush=True)

    run = Mutation(sources(), wanted, reported, given.killers)
    there = [str(path) for name in given.tests.split() for path in ROOT.glob(f"tests/*/test_{name}.py")]
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", "-k", LEFT_OUT]
    if pytest.main([*options, *there], plugins=[run]) != 0:
        return 2
    if run.broken:
        print("these tests fail without any mutant:", *run.broken, sep="\n", file=sys.stderr)
        return 2
    known = equivalents()
    left = [result for result in run.results if not result.killed]
    for result in left:
        print(f"{result.outcome}: {result.mutant.key}\n    {known.get(result.mutant.key, '')}".rstrip())
    print(summary(run.results, known))
    return int(any(result.mutant.key not in known for result in left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
