"""What is said of an answer that cannot be compared with what is asked for."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
from tables import tabled

from kafka_ctl.exercises.exercise import is_open, unsuited


@tabled
def test_an_answer_of_another_kind_is_refused(answer: Any, example: Any, has: str) -> None:
    problem = unsuited(answer, example)
    assert (has in problem) if problem is not None and has else problem is None and not has, problem


def made(source: str) -> Callable[..., object]:
    """The function `answer` of a cell with this source."""
    linecache.cache["cell"] = (len(source), None, source.splitlines(keepends=True), "cell")
    names: dict[str, Any] = {}
    exec(compile(source, "cell", "exec"), names)
    function: Callable[..., object] = names["answer"]
    return function


@pytest.mark.parametrize(
    ("body", "dots"),
    [
        ("return ...", True),
        ("return (..., ...)", True),
        ("'A text.'\n    ...", True),
        ("return [row for row in x if row == ...]", True),
        ("return x[...]", True),
        ("return cast(tuple[int, ...], x)", False),
        ("kept: dict[str, tuple[int, ...]] = x\n    return kept", False),
        ("def each(f: Callable[..., int]) -> int:\n        return f(x)\n    return each", False),
        ("try:\n        return x[0]\n    except IndexError: ...\n    return 0", False),
    ],
)
def test_dots_of_a_type_are_part_of_an_answer(body: str, dots: bool) -> None:
    """Only dots that are a value, or where a function ends, are left to be answered."""
    assert is_open(made(f"def answer(x):\n    {body}\n")) == dots
