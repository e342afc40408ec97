"""Right and wrong answers to every exercise; with a wrong one, a part of what is said to it.

Values and functions of one line are rows of `answers.txt`, other functions are in a module for each lesson:

    == 11.3
    right lambda cached, written: written
    wrong lambda cached, written: cached
        your function answers 0
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

RIGHT: dict[str, list[Any]] = {}
"""By exercise: right answers, written in ways of their own."""
WRONG: dict[str, list[tuple[Any, str]]] = {}
"""By exercise: wrong answers, and a part of what is said to each."""


class Later(NamedTuple):
    """An answer that takes long to make: only the test that gives it makes it."""

    make: Callable[[], Any]


def made(answer: Any) -> Any:
    """The answer itself."""
    return answer.make() if isinstance(answer, Later) else answer


for file in sorted(Path(__file__).parent.glob("lesson_*.py")):
    lesson = import_module(f"exercise_answers.{file.stem}")
    RIGHT |= lesson.RIGHT
    WRONG |= lesson.WRONG


def _read(text: str) -> None:
    """Add the rows of a text."""
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, *rows = block.strip("\n").splitlines()
        while rows:
            kind, _, value = rows.pop(0).partition(" ")
            answer = eval(value) if value.startswith("lambda ") else ast.literal_eval(value)
            if kind == "right":
                RIGHT.setdefault(name, []).append(answer)
            else:
                WRONG.setdefault(name, []).append((answer, rows.pop(0).strip()))


_read((Path(__file__).parent / "answers.txt").read_text(encoding="utf-8"))
