"""The table of Kafka's log statements, `tests/data/statements/*.tsv`: one row for each statement of two loggers.

`state-change.tsv` has `state.change.logger`, `controller.tsv` `kafka.controller` and all below it, and
`controller-kraft.tsv` `org.apache.kafka.controller` and all below it, as they stand in Kafka's source at the tags of
all releases from 0.8.0 to 3.9.0 (of 0.11.0.3, 3.8.1 and 3.9.0 at the tag of the last release candidate). The columns:

    releases  the first and last release that has the statement in this form; several spans where it came and went
    level     of log4j
    logger    its name
    source    file, class and method; of the newest release where it moved
    form      the message, in the template language of `kafka_ctl/kafka_log/messages.txt`: `{tp}`, `{isr:List}`
    example   a message as Kafka prints it
    record    what it becomes: kind, action and the other columns of a `Line`; the action `says` for what is
              understood without a record of the trace's own (its text is the detail)

Words named like a column are in that column of the record: `leader`, `isr`, `leader_epoch`, ... `tp` is the partition,
`id` the writer's id, `epoch` the controller's epoch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.kafka_log.read import LogLine

FOLDER = Path(__file__).parents[1] / "data" / "statements"
COLUMNS = ("releases", "level", "logger", "source", "form", "example", "record")
Release = tuple[int, ...]


class Statement(NamedTuple):
    """A row of the table."""

    releases: str
    level: str
    logger: str
    source: str
    form: str
    example: str
    record: str

    @property
    def spans(self) -> list[tuple[Release, Release]]:
        """First and last release of each span."""
        ends = [span.split("-") for span in self.releases.split(", ")]
        return [(version(one[0]), version(one[-1])) for one in ends]

    def written_by(self, release: str) -> bool:
        """Whether this release has the statement."""
        return any(first <= version(release) <= last for first, last in self.spans)

    @property
    def line(self) -> str:
        """The example in Kafka's own layout."""
        return f"[2020-01-02 03:04:05,678] {self.level} {self.example} ({self.logger})"


def version(text: str) -> Release:
    """`0.8.2.2` as numbers."""
    return tuple(map(int, text.split(".")))


@cache
def statements() -> tuple[Statement, ...]:
    """All rows of all files."""
    return tuple(_rows())


def _rows() -> Iterator[Statement]:
    for path in sorted(FOLDER.glob("*.tsv")):
        head, *lines = path.read_text("utf-8").splitlines()
        assert tuple(head.split("\t")) == COLUMNS
        yield from (Statement(*line.split("\t")) for line in lines)


PLACE = re.compile(r"\{\{|\}\}|\{(\w+)(?::(\w+))?\}")
PRINTS = {
    "AssignmentMap": r"Map\(((?:[\w.-]+ -> ReplicaAssignment\([^)]*\)(?:, )?)*)\)",
    "ArrayBuffer": r"(?:ArrayBuffer|Vector)\((.*?)\)",
    "List": r"List\((.*?)\)",
    "Map": r"Map\(((?:\S+ -> (?:\w+\([^)]*\)|\d+)(?:, )?)*)\)",
    "PairMap": r"Map\(((?:\[\S+,\d+\] -> \w+\([^)]*\)(?:, )?)*)\)",
    "PairSet": r"Set\((.*?)\)",
    "Set": r"(?:\w*Set|\w*Map|List|ArrayBuffer|Vector)\((.*?)\)",
    "Some": r"Some\((.*?)\)",
    "States": r"List\((.*?)\)",
    "count": r"(\d+)",
    "list": r"\[(.*?)\]",
    "pair": r"(\[[\w.-]+,\d+\])",
}
"""How the shapes of templates print; other words are anything. The class of a collection is often Scala's choice."""
EXACT = {
    "broker": r"(-?\d+)",
    "epoch": r"(-?\d+)",
    "id": r"(-?\d+)",
    "isr": r"([-\d, ]*)",
    "leader": r"(-?\d+)",
    "numbers": r"([\d,]*)",
    "replicas": r"([-\d, ]*)",
    "rack": r"([\w.-]*)",
    "host": r"([\w.-]+)",
    "port": r"(-?\d+)",
    "source": r"(\w+)",
    "target": r"(\w+)",
    "to": r"(-?\d+)",
    "topic": r"([\w.-]+)",
    "tp": r"([\w.-]+-\d+)",
}


@cache
def pattern(form: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A form as a pattern, and the words that its groups are."""
    text, words, last = "", [], 0
    for place in PLACE.finditer(form):
        text += re.escape(form[last : place.start()])
        last = place.end()
        if place[1] is None:
            text += re.escape(place[0][0])
            continue
        words.append(place[1])
        text += PRINTS.get(place[2] or "", EXACT.get(place[1], r"(.*?)"))
    return re.compile(f"{text}{re.escape(form[last:])}$", re.DOTALL), tuple(words)


def words(form: str, message: str) -> dict[str, str] | None:
    """The words of a message of this form, None if it is of another."""
    regex, names = pattern(form)
    found = regex.match(message)
    return None if found is None else dict(zip(names, found.groups(), strict=True))


def record(line: LogLine) -> str:
    """A line as the column `record` has it."""
    columns = line._asdict()
    reported = [f"{name}={json.dumps(value)}" for name, value in columns.items() if value is not None]
    left_out = ("time", "level", "logger", "kind", "action") + (("detail",) if line.action == "says" else ())
    return " ".join([line.kind, line.action, *(one for one in reported if one.split("=")[0] not in left_out)])
