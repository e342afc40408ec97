"""Tables of cases as text: `tests/data/<file>.txt` has the rows of the tests of that file that are `@tabled`.

    both spellings of a partition: text, topic, partition
    - 'Changed partition t-0 state', 't', 0

A block is a test without `test_` and `_`, with its parameters, and a row of Python literals for each case.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prose import heading

FOLDER = Path(__file__).parent / "data"


def text(name: str) -> str:
    """The text of a file in `tests/data`."""
    return (FOLDER / name).read_text("utf-8")


def pairs(name: str) -> dict[str, str]:
    """A file of `tests/data` with a key, a colon and a value in each line."""
    return dict(line.split(": ", 1) for line in text(name).splitlines())


class Table(NamedTuple):
    """The names of the parameters, and a value or a tuple of values for each case."""

    columns: list[str]
    rows: list[Any]


@cache
def tables(path: Path) -> dict[str, Table]:
    """The tables of a file by their headings; lines that begin with `#` are prose."""
    found: dict[str, Table] = {}
    table = Table([], [])
    for line in text(path.name).splitlines():
        if line.startswith("- "):
            row = ast.literal_eval(f"({line[2:]},)")
            table.rows.append(row if len(table.columns) > 1 else row[0])
        elif line and not line.startswith("#"):
            name, _, columns = line.partition(": ")
            table = found[name] = Table(columns.split(", "), [])
    return found


def tabled(test: Callable[..., Any] | None = None, *, ids: Callable[[Any], str] | None = None) -> Any:
    """Run a test for each row of its table; `ids` names the values."""
    if test is None:
        return lambda later: tabled(later, ids=ids)
    file = Path(inspect.unwrap(test).__code__.co_filename)
    table = tables(FOLDER / f"{file.stem.removeprefix('test_')}.txt")[heading(test.__name__)]
    return pytest.mark.parametrize(", ".join(table.columns), table.rows, ids=ids)(test)
