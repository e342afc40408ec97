"""The progress of a learner, as rows of a table."""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.exercises.checking import EXERCISES, LESSONS, load_courses
from kafka_ctl.exercises.progress_file import UNSEEN, Entry, progress


class Row(NamedTuple):
    """One exercise and what became of it."""

    name: str
    lesson: str
    kind: str
    title: str
    state: str
    solved: bool


def rows() -> list[Row]:
    """Every exercise in order."""
    load_courses()
    known = progress()
    return [
        Row(name, LESSONS[name[:2]].TITLE, each.kind, each.title, _state(entry), entry["solved"])
        for name, each in EXERCISES.items()
        for entry in (known.get(name, UNSEEN),)
    ]


def summary(rows: list[Row]) -> str:
    """The number of solved exercises, in one sentence."""
    return f"{sum(row.solved for row in rows)} of {len(rows)} exercises solved"


def _state(entry: Entry) -> str:
    if not entry["checks"] and not entry["hints"]:
        return "not tried yet"
    counts = [_counted(entry["checks"], "check")] + [_counted(entry["hints"], "hint")] * bool(entry["hints"])
    return f"{'solved' if entry['solved'] else 'open'} ({', '.join(counts)})"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
