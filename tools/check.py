"""Everything that must hold, in one command: `python3 -m kafka_ctl test`.

Arguments go to pytest, and then pytest is all that runs: `python3 -m kafka_ctl test -k store`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from kafka_ctl.exercises.progress_file import FOLDER
from kafka_ctl.paths import ROOT
from tools import java_classes


class Step(NamedTuple):
    """One check: a module to run with arguments; `counts` when pytest can say how many tests it was.

    `short_java` when its Java is asked little. A step that is `aside` runs beside those after it, up to the first that
    counts.
    """

    name: str
    arguments: tuple[str, ...]
    counts: bool = False
    short_java: bool = False
    aside: bool = False


# The rooms of the tests, those with the longest files first: a long file that begins last keeps the others waiting.
ROOMS = ("spark", "setup", "zookeeper", "browser", "conformance", "stories", "unit")
# Five workers on two cores, because a browser, ZooKeeper and Java leave them idle. One file's tests stay together, and
# so do those that share a Spark session: see tests/conftest.py. Without nbval, each worker starts two seconds earlier.
TESTS = ("-n5", "--dist=loadfile", "--no-loadscope-reorder", "-pno:nbval", *(f"tests/{room}" for room in ROOMS))
# Every cell of a notebook needs the same kernel, which only the `loadscope` way of sharing out respects.
NOTEBOOKS = (
    "--nbval",
    "-ptools.pictures",
    "--nbval-current-env",
    "--nbval-cell-timeout=300",
    "-n3",
    "--dist=loadscope",
    "--no-loadscope-reorder",
)
BOOKS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "notebooks").glob("*.ipynb"), reverse=True)]
"""The last come first, as the longest, lesson 25, is among them."""
# A process by itself compiles the tests, which otherwise each worker would do.
COLLECTED = ("--collect-only", "-oaddopts=", "-pno:terminal", "-pno:nbval", "tests")

STEPS = (
    Step("classes", ("tools.java_classes",), aside=True),
    Step("collect", ("pytest", *COLLECTED), aside=True),
    Step("format", ("ruff", "format", "--check", ".")),
    Step("lint", ("ruff", "check", ".")),
    Step("types", ("mypy",)),
    Step("diagrams", ("kafka_ctl", "diagrams", "--check")),
    Step("editions", ("tools.notebooks", "editions", "--check")),
    Step("tests", ("pytest", *TESTS), counts=True),
    Step("notebooks", ("pytest", *NOTEBOOKS, *BOOKS), counts=True, short_java=True),
    Step("starters", ("tools.notebooks", "run"), short_java=True),
)


class Outcome(NamedTuple):
    """The outcome of a step: its exit status, its seconds, and the checks that passed, failed or were skipped."""

    step: Step
    status: int
    seconds: float
    counted: Counter[str]
    notes: Sequence[str] = ()
    """The tests that were skipped or failed, a line for each, with the reason or the first words of the failure."""


def main(argv: Sequence[str], steps: Sequence[Step] = STEPS, root: Path = ROOT) -> int:
    """Run every step, also after one has failed, and return 0 only when all passed."""
    if argv:
        return subprocess.call([sys.executable, "-m", "pytest", *argv], cwd=root)
    began = time.monotonic()
    outcomes: list[Outcome] = []
    beside: list[Future[Outcome]] = []
    with ThreadPoolExecutor() as pool:
        for step in steps:
            if step.aside:
                beside.append(pool.submit(run, step, root))
                continue
            if step.counts:
                outcomes += [each.result() for each in beside]
                beside = []
            outcomes.append(run(step, root))
    outcomes += [each.result() for each in beside]
    print(summary(outcomes, time.monotonic() - began), flush=True)
    return int(any(outcome.status for outcome in outcomes))


def run(step: Step, root: Path) -> Outcome:
    """Run one step in `root`; what it prints goes to the terminal."""
    print(f"\n{f' {step.name} ':=^100}\n$ python -m {' '.join(step.arguments)}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        more = [f"--junitxml={report}"] if step.counts else []
        # The notebooks hold the answers; no learner has solved an exercise.
        java = {"JDK_JAVA_OPTIONS": " ".join(java_classes.options())} if step.short_java else {}
        environ = {**java, **os.environ, FOLDER: ""}
        status = subprocess.call([sys.executable, "-m", *step.arguments, *more], cwd=root, env=environ)
        counted, notes = read(report) if report.exists() else (Counter[str](passed=int(not status)), [])
    if status and not counted["failed"]:
        counted["failed"] = 1  # pytest that finds nothing to run fails no test, and yet is no success
    return Outcome(step, status, time.monotonic() - began, counted, notes)


def read(report: Path) -> tuple[Counter[str], list[str]]:
    """The numbers of tests that passed, failed or were skipped, and the notes, from pytest's XML report."""
    counted, notes = Counter[str](), list[str]()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        tests, *others = (int(suite.get(name, 0)) for name in ("tests", "skipped", "failures", "errors"))
        counted += Counter(passed=tests - sum(others), skipped=others[0], failed=others[1] + others[2])
        for test in suite.iter("testcase"):
            name = ".".join(filter(None, (test.get("classname"), test.get("name")))).removeprefix("tests.")
            for element in test:
                reason = " ".join((element.get("message") or "no reason").split())
                if element.tag == "skipped":
                    notes.append(f"skipped {name}: {reason}")
                elif element.tag in ("failure", "error"):
                    notes.append(f"failed {name}: {textwrap.shorten(reason, 300)}")
    return counted, notes


def summary(outcomes: Sequence[Outcome], total_seconds: float) -> str:
    """The skipped and failed tests with their reasons, a line for each step, and pytest's kind of last line."""
    notes = [note for outcome in outcomes for note in outcome.notes]
    lines = [f"\n{' summary ':=^100}", *sorted(notes, key=lambda note: note.startswith("failed"))]
    for step, status, seconds, counted, _ in outcomes:
        lines.append(f"{'FAILED' if status else 'passed'}  {step.name:<10} {seconds:6.1f} s  {_summary(counted)}")
    total = sum((outcome.counted for outcome in outcomes), Counter[str]())
    return "\n".join([*lines, f"{f' {_summary(total)} in {total_seconds:.2f}s ':=^100}"])


def _summary(counted: Counter[str]) -> str:
    return (
        ", ".join(f"{counted[kind]} {kind}" for kind in ("failed", "passed", "skipped") if counted[kind])
        or "nothing ran"
    )
