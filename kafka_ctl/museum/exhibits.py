"""The collection of the museum: the rows of `exhibits.txt`."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.museum.exhibit import Exhibit
from kafka_ctl.museum.questions import QUESTIONS, Question

TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")


def _exhibit(row: str) -> Exhibit:
    """One row: its name, and indented lines of a word and a value."""
    name, *lines = row.splitlines()
    values = dict(line.strip().split(" ", 1) for line in lines)
    *unless, field = values["fix"].split()
    caught, _, asked = values["caught"].partition(": ")
    return Exhibit(
        name,
        {field: not unless},
        values["releases"],
        Question(asked, QUESTIONS[caught]) if asked else caught,
        values["decisive"],
        values["visible"],
        values["source"],
    )


EXHIBITS = tuple(map(_exhibit, re.findall(r"^\S.*\n(?:  .*\n)+", TABLE, re.M)))
"""All of them. They are known by their names, as `KAFKA-7482`, and by their numbers, from 1."""


def find(name: str) -> Exhibit:
    """The exhibit of that number or name; UnknownName, which lists all names, if there is none.

    The ticket will do, also without its `KAFKA-`. Raises BadInput if it has two exhibits.
    """
    given = name.strip().upper()
    if given.isdecimal() and 1 <= int(given) <= len(EXHIBITS):
        return EXHIBITS[int(given) - 1]
    wanted = given if given.startswith(("KAFKA-", "LINKEDIN")) else f"KAFKA-{given}"
    fitting = [e for e in EXHIBITS if wanted in (e.name.upper(), e.ticket.upper())]
    if len(fitting) > 1:
        raise BadInput(f"{wanted} has {len(fitting)} exhibits: {' and '.join(e.name for e in fitting)}")
    if not fitting:
        raise UnknownName("exhibit", name, [e.name for e in EXHIBITS])
    return fitting[0]
