"""The command `python -m tools.notebooks run`: every starter runs to its end, some beside each other.

A starter has dots for answers, and its checks say that there is no answer yet; or it has a function with a bug, which
the check of a repair finds. Nothing else in it needs an answer. The starters are made for the run, and those in a
learner's folder are not read. An instructor's edition has the code of its source, which nbval runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kafka_ctl.exercises.repair import Repair
from kafka_ctl_course import EXERCISES
from tools.editions import CHECK, starters
from tools.notebooks import NOTEBOOKS, execute

if TYPE_CHECKING:
    from nbformat import NotebookNode

AT_ONCE = 3
"""Kernels that run at the same time: on two cores one of them mostly waits, for Java or for another process."""
UNANSWERED, WRONG = "No answer yet", "Not yet."


def run(books: Mapping[str, NotebookNode]) -> list[str]:
    """Run these, by their names; what went wrong, a line for each."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [problem for problem in pool.map(_run, books, books.values()) if problem]


def _run(name: str, book: NotebookNode) -> str:
    """The fault of one starter; empty when it has none."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    began = time.monotonic()
    try:
        execute(book, NOTEBOOKS)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return f"{name}: {str(error).strip()[-2000:]}"
    problems = wrongly_checked(book)
    print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
    return f"{name}: {'; '.join(problems)}" if problems else ""


def wrongly_checked(book: NotebookNode) -> list[str]:
    """The checks that do not say what they should. A starter without any check is wrong, too."""
    found = [(cell, CHECK.search(cell.source)) for cell in book.cells if cell.cell_type == "code"]
    cells = [(cell, EXERCISES[call["name"]]) for cell, call in found if call is not None]
    problems = [] if cells else ["nothing in it is checked"]
    for cell, exercise in cells:
        printed = "".join(output.get("text", "") for output in cell.outputs)
        if not printed.startswith(WRONG if isinstance(exercise, Repair) else UNANSWERED):
            problems.append(f"{cell.source.splitlines()[-1]!r} prints {printed[:200]!r}")
    return problems


def main(argv: Sequence[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks run", description="Run starters to their end.")
    parser.add_argument("starter", nargs="*", help="names of starters (default: all)")
    names: list[str] = parser.parse_args(argv).starter
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    made = starters()
    if unknown := {*names} - made.keys():
        print(f"kafka_ctl: no starter {', '.join(sorted(unknown))}; there are: {', '.join(made)}", file=sys.stderr)
        return 2
    problems = run({name: made[name] for name in names or sorted(made, reverse=True)})
    for problem in problems:
        print(problem, flush=True)
    return int(bool(problems))
