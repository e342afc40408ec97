"""The questions to be answered before a cell is run. `guesses.txt` has them; this file is its only reader."""

from __future__ import annotations

import re

from kafka_ctl.exercises.exercise import Guess
from kafka_ctl.paths import text_in

TEXT = text_in(__package__, "guesses.txt")


def guesses(lesson: str) -> dict[str, Guess]:
    """The questions of a lesson by name, those of `01` from `01.a` on."""
    found = {}
    for name, block in re.findall(rf"^({lesson}\.\w) ((?:.+\n)+)", TEXT, re.MULTILINE):
        question, *options = re.split(r"^(?=[-+] )", block, flags=re.MULTILINE)
        right = next(place for place, option in enumerate(options) if option.startswith("+"))
        rows = (option[2:].split("\n", 1) for option in options)
        found[name] = Guess(_joined(question), tuple((option, _joined(reply)) for option, reply in rows), right)
    return found


def _joined(lines: str) -> str:
    """A text that goes over several lines."""
    return " ".join(lines.split())
