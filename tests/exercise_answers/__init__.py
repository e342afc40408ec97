"""Right and wrong answers to every exercise, a module for each lesson; with a wrong one, what is said to it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

RIGHT: dict[str, list[Any]] = {}
"""By exercise: right answers, written in ways of their own."""
WRONG: dict[str, list[tuple[Any, str]]] = {}
"""By exercise: wrong answers, and a part of what is said to each."""

for file in sorted(Path(__file__).parent.glob("lesson_*.py")):
    lesson = import_module(f"exercise_answers.{file.stem}")
    RIGHT |= lesson.RIGHT
    WRONG |= lesson.WRONG
