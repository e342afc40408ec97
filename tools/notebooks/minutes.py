"""The minutes of a lesson, from what a learner reads and does in it: `python -m tools.notebooks minutes`.

The command writes them into the headings, the first cell, the heads of the exercises and the metadata of each lesson.
The numbers below are a model of reading, not measurements of learners.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_ctl_course import EXERCISES
from tools.notebooks import EXERCISE, INSTRUCTOR, lessons, read, tags

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from kafka_ctl.exercises.exercise import Exercise

WORD = re.compile(r"\S*\w\S*")
WORDS_A_MINUTE = 180
SECONDS_A_LINE = 8
"""Of code that a learner sees; imports, assertions and answers are not counted."""
SHOWN = (("GuessWidget(", 35), ("CurveWidget(", 60), ("TurnWidget(", 60), (".player(", 90))
"""Seconds for what a cell shows, by the call that makes it."""
PICTURE, TEXT = 40, 35
"""Seconds for any other picture, and for a text."""
EXERCISE_MINUTES = {"predict": 3, "operate": 5, "repair": 6, "implement": 7}
HEADING = re.compile(r"^## (.+?)(?: · \d+ min)?$", re.MULTILINE)
UNTIMED = ("The words", "Summary")
"""Sections without minutes of their own: they are counted to the next section with minutes, or to the last one."""
TIME = re.compile(r"\*Time\*: [^.]*\.")
WRITTEN = re.compile(r" \*(?:Core|Stretch), \d+ min\.\*| · \d+ min$|\*Time\*: [^.]*\.", re.MULTILINE)
"""The text that `write` adds, which is not counted."""
HEAD = re.compile(r"^\*\*(\d)\. (.+?)\*\*(?: \*(?:Core|Stretch), \d+ min\.\*)?", re.MULTILINE)
"""The head of an exercise: its number and its title."""


def words(book: NotebookNode) -> int:
    """The words of prose that a learner reads."""
    return sum(len(WORD.findall(WRITTEN.sub("", cell.source))) for cell in book.cells if _is_prose(cell))


def write(book: NotebookNode, number: str) -> NotebookNode:
    """Write the minutes of lesson `number` into the notebook, in place."""
    found = [each for name, each in EXERCISES.items() if name.startswith(f"{number}.")]
    sections = story(book)
    about = book.metadata.lesson
    about["minutes"] = sum(sections.values())
    about["core"], about["exercises"] = ask([each for each in found if each.core]), ask(found)
    for cell in book.cells:
        if _is_prose(cell):
            cell.source = HEADING.sub(lambda head: _heading(head[1], sections, about["exercises"]), cell.source)
            cell.source = HEAD.sub(lambda head: _head(head, EXERCISES.get(f"{number}.{head[1]}")), cell.source)
    lesson, core, whole = about["minutes"], about["core"], about["exercises"]
    time = f"*Time*: {lesson} minutes for the lesson, {core} for its core exercises, {whole} for all its exercises."
    book.cells[0].source = TIME.sub(time, book.cells[0].source)
    return book


def ask(exercises: list[Exercise]) -> int:
    """The minutes that these exercises take."""
    return sum(EXERCISE_MINUTES[each.kind] for each in exercises)


def story(book: NotebookNode) -> dict[str, int]:
    """The minutes of each section but the exercises, by its title."""
    taken: dict[str, float] = {}
    title, waiting = "", 0.0
    for cell in book.cells:
        found = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
        title = found[1] if found else title
        if title == "Exercises":
            continue
        if title in ("", *UNTIMED):
            waiting += seconds(cell)
        else:
            taken[title] = taken.get(title, 0) + waiting + seconds(cell)
            waiting = 0
    last = list(taken)[-1]
    return {each: math.ceil((found + waiting * (each == last)) / 60) for each, found in taken.items()}


def seconds(cell: NotebookNode) -> float:
    """The time that a cell of the story takes to read, with what it shows."""
    if cell.cell_type == "markdown":
        return len(WORD.findall(cell.source)) / WORDS_A_MINUTE * 60 if _is_prose(cell) else 0
    if tags(cell) & {EXERCISE, "hide-input"}:
        return 0
    shown = [time for call, time in SHOWN if call in cell.source]
    pictures = any(each.startswith("image/") for output in cell.outputs for each in output.get("data", {}))
    outputs = sum(shown) or PICTURE * pictures or TEXT * bool(cell.outputs)
    return SECONDS_A_LINE * len(cell.source.splitlines()) + outputs


def _is_prose(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" and INSTRUCTOR not in tags(cell)


def _heading(title: str, sections: dict[str, int], exercises: int) -> str:
    minutes = exercises if title == "Exercises" else sections.get(title)
    return f"## {title}" if minutes is None or title in UNTIMED else f"## {title} · {minutes} min"


def _head(head: re.Match[str], exercise: Exercise | None) -> str:
    if exercise is None:
        return head[0]
    kind = "Core" if exercise.core else "Stretch"
    return f"**{head[1]}. {head[2]}** *{kind}, {EXERCISE_MINUTES[exercise.kind]} min.*"


def save(path: Path) -> None:
    """Write the minutes of a lesson into its file, from what is saved there; the start page has none."""
    import nbformat

    if path in lessons():
        nbformat.write(write(read(path), path.name[:2]), path)
