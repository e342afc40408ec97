"""The command `python -m tools.notebooks run`: every edition runs to its end, some beside each other.

An instructor's edition with the code of its source has run with that, and is left out. A starter has dots for answers,
so its checks say that there is no answer yet, and nothing else in it needs one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tools.editions import STARTER, TEACHING
from tools.notebooks import NOTEBOOKS, execute, read

if TYPE_CHECKING:
    from nbformat import NotebookNode

AT_ONCE = 3
"""Kernels that run at the same time: on two cores one of them mostly waits, for Java or for another process."""
CHECKED = re.compile(r"^check\(", re.MULTILINE)
UNANSWERED, WRONG = "No answer yet", "Not yet."


def editions() -> list[Path]:
    """Every starter, and each instructor's edition with other code than its source, which nbval runs."""
    teaching = [path for path in TEACHING.glob("*.ipynb") if code(path) != code(NOTEBOOKS / path.name)]
    return sorted([*STARTER.glob("*.ipynb"), *teaching], key=lambda path: path.name, reverse=True)


def code(path: Path) -> list[str]:
    """The code cells of a notebook, in order."""
    return [cell.source for cell in read(path).cells if cell.cell_type == "code"]


def run(paths: Iterable[Path]) -> list[str]:
    """Run these; what went wrong, a line for each."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [problem for problem in pool.map(_run, paths) if problem]


def _run(path: Path) -> str:
    """What is wrong with one edition; empty when nothing is."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    name, began = f"{path.parent.name}/{path.name}", time.monotonic()
    book = read(path)
    try:
        execute(book, path.parent)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return f"{name}: {str(error).strip()[-2000:]}"
    problems = wrongly_checked(book, starter=path.parent == STARTER)
    print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
    return f"{name}: {'; '.join(problems)}" if problems else ""


def wrongly_checked(book: NotebookNode, starter: bool) -> list[str]:
    """The checks that do not say what they should: in a starter only that an answer is missing, else that it is right.

    An edition without any check is wrong, too.
    """
    cells = [cell for cell in book.cells if cell.cell_type == "code" and CHECKED.search(cell.source)]
    problems = [] if cells else ["nothing in it is checked"]
    for cell in cells:
        printed = "".join(output.get("text", "") for output in cell.outputs)
        open_only = bool(printed) and all(line.startswith(UNANSWERED) for line in printed.splitlines())
        if not open_only if starter else (WRONG in printed or UNANSWERED in printed):
            problems.append(f"{cell.source.splitlines()[-1]!r} prints {printed[:200]!r}")
    return problems


def main(names: list[str]) -> int:
    """The command; its exit status."""
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    problems = run([Path(name).resolve() for name in names] or editions())
    for problem in problems:
        print(problem, flush=True)
    return int(bool(problems))
