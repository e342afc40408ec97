"""The catalogue of all that can happen: one row for each kind and action of a record, read from `catalogue.txt`.

A row has the columns and the names in `detail` that such a record may carry, its sentence in a caption, whether it is
news, and the rule behind it, which "why?" explains. Text, steps, captions, the files of a history and
`docs/trace-format.md` read these rows. A new action is a new row; a test finds an action that has none.

    find("partition", "elect")    the row of a kind and action
    reason_of(record)             the rule behind a record
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kafka_ctl.paths import text_in
from kafka_ctl.trace.details import flags
from kafka_ctl.trace.record import Record

ANY = "*"
"""The action of a row that stands for every action of its kind."""
FLAGS = {
    "news": ("news", True),
    "no-news": ("news", False),
    "story": ("story", True),
    "no-story": ("story", False),
    "bulk": ("bulk", True),
}
"""The flags of a row in `catalogue.txt`, and the fields of `Action` that they set."""


class Rule(NamedTuple):
    """The decision behind an action; `{topic}` and the like are filled in from the names in `detail`."""

    rule: str
    outcome: str
    otherwise: tuple[tuple[str, str], ...] = ()
    """Pairs of a condition and what would have happened under it."""
    by: tuple[str, ...] = ()
    """The functions that decide, below `kafka_ctl.controller`: `deletion.check_topics`. A test resolves them."""


class Action(NamedTuple):
    """One row. `columns` are those beside time, actor, kind, action and cause; `fields` the names in `detail`."""

    name: str
    columns: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    sentence: str = ""
    """The caption, or its part about one subject; empty where the kind's own function composes it."""
    many: str = ""
    """The same about several subjects."""
    news: bool = True
    """True if it makes a step of a film of the cluster; kinds may set further conditions (`views/steps.py`)."""
    story: bool | None = None
    """True if the story always shows it, False if never; None: it depends on the record (`text.py`)."""
    bulk: bool = False
    """True if histories keep it in files of their own: such records are many, and no question needs them."""
    rule: Rule | None = None


class Group(NamedTuple):
    """Actions of one kind that share their meaning: a line in the tables of `docs/trace-format.md`."""

    kind: str
    about: str
    actions: tuple[Action, ...]


class Catalogue(NamedTuple):
    """The four sections of `catalogue.txt`.

    `actions` is what actors do, `messages` what controllers log, `imported` what only imported logs have; `rules` are
    those behind requests, writes, watches, events and brokers, by kind and `reason_of`'s key.
    """

    actions: tuple[Group, ...]
    messages: tuple[Group, ...]
    imported: tuple[Group, ...]
    rules: dict[tuple[str, str], Rule]


CONTINUES = 8
"""The indentation from which on a line continues the one before."""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The logical lines of a text, each with its indentation; names are replaced by the texts that `let` gives them."""
    joined: list[tuple[int, str]] = []
    for line in text.splitlines():
        indent, words = len(line) - len(line.lstrip()), line.strip()
        if not words or words.startswith("#"):
            continue
        if indent >= CONTINUES:
            indent, before = joined.pop()
            words = f"{before} {words}"
        joined.append((indent, words))
    lets: dict[str, str] = {}
    for indent, line in joined:
        full = re.sub(r"\$(\w+)", lambda found: lets[found[1]], line)
        if full.startswith("let "):
            name, _, value = full.removeprefix("let ").partition(" = ")
            lets[name] = value
        else:
            yield indent, full


def parse(text: str) -> Catalogue:
    """Parse the text of a catalogue; the head of `catalogue.txt` explains its form."""
    groups: dict[str, list[tuple[str, str, list[Action]]]] = {"actions": [], "messages": [], "imported": []}
    rules: dict[tuple[str, str], Rule] = {}
    section, key = "", ("", "")
    rows: list[Action] = []
    for indent, line in _lines(text):
        if line.startswith("== "):
            section = line.removeprefix("== ")
        elif indent == 0:
            kind, _, about = line.removeprefix("[").partition("]")
            rows = []
            groups[section].append((kind, about.strip(), rows))
        elif indent == 2 and section == "rules":
            kind, _, name = line.partition(" ")
            key = kind, name
            rules[key] = Rule("", "")
        elif indent == 2:
            rows += _rows(line, section)
        elif section == "rules":
            rules[key] = with_part(rules[key], line)
        else:
            rows[-1] = _with_text(rows[-1], line)
    made = {name: tuple(Group(kind, about, tuple(rows)) for kind, about, rows in groups[name]) for name in groups}
    return Catalogue(made["actions"], made["messages"], made["imported"], rules)


def _rows(line: str, section: str) -> list[Action]:
    """The rows of one line: `NAMES | COLUMNS | FIELDS | FLAGS`. A message names no columns: all have the same."""
    names, *cells = [cell.split() for cell in line.split("|")]
    if section == "messages":
        fields, flags = [*cells, [], []][:2]
        columns = ["broker", "controller_epoch", *["detail"] * bool(fields)]
    else:
        columns, fields, flags = [*cells, [], [], []][:3]
    set_flags = dict(FLAGS[flag] for flag in flags)
    news = set_flags.get("news", section == "actions")
    return [
        Action(name, tuple(columns), tuple(fields), news=bool(news), story=set_flags.get("story"), bulk="bulk" in flags)
        for name in names
    ]


def _with_text(row: Action, line: str) -> Action:
    """A row with one more of its texts: `says`, `many`, or a part of its rule."""
    word, _, text = line.partition(" ")
    text = text.strip()
    if word == "says":
        return row._replace(sentence=text)
    if word == "many":
        return row._replace(many=text)
    return row._replace(rule=with_part(row.rule or Rule("", ""), line))


def with_part(rule: Rule, line: str) -> Rule:
    """A rule with one more part: `rule`, `then`, `else CONDITION: OUTCOME` or `by FUNCTIONS`."""
    word, _, text = line.partition(" ")
    text = text.strip()
    match word:
        case "rule":
            return rule._replace(rule=text)
        case "then":
            return rule._replace(outcome=text)
        case "else":
            condition, _, outcome = text.partition(": ")
            return rule._replace(otherwise=(*rule.otherwise, (condition, outcome)))
        case "by":
            return rule._replace(by=tuple(text.split()))
    raise ValueError(f"catalogue.txt: a line cannot begin with {word!r}: {line}")


@cache
def catalogue() -> Catalogue:
    """The catalogue of this package."""
    return parse(text_in(__package__, "catalogue.txt"))


@cache
def rows() -> dict[tuple[str, str], Action]:
    """The rows by kind and action; the action is `ANY` where one row stands for all of a kind."""
    known = catalogue()
    groups = (*known.actions, *known.messages, *known.imported)
    return {(group.kind, row.name): row for group in groups for row in group.actions}


@cache
def find(kind: str, name: str) -> Action:
    """The row of a kind and action.

    One without a sentence for an action outside the catalogue: from a log of another release, or a record of your own.
    """
    return rows().get((kind, name)) or rows().get((kind, ANY)) or Action(ANY, news=kind != "controller")


# The rules behind records that are no message of a controller.

FAMILIES = (
    (re.compile(r"/brokers/topics/[^/]+/partitions/\d+/state\Z"), "state"),
    (re.compile(r"/brokers/topics/[^/]+\Z"), "topic"),
    (re.compile(r"/brokers/topics/.+\Z"), "tree"),
    (re.compile(r"/brokers/ids/\d+\Z"), "broker"),
    (re.compile(r"/controller\Z"), "controller"),
    (re.compile(r"/controller_epoch\Z"), "epoch"),
    (re.compile(r"/isr_change_notification/.+"), "isr change"),
    (re.compile(r"/log_dir_event_notification/.+"), "log dir"),
    (re.compile(r"/admin/delete_topics/.+"), "deletion"),
    (re.compile(r"/admin/reassign_partitions\Z"), "reassignment"),
    (re.compile(r"/admin/preferred_replica_election\Z"), "preferred"),
    (re.compile(r"/config/[^/]+/.+"), "config"),
)
"""Paths and the families of znodes. The writes of a family follow one rule."""
WRITTEN_BY_TOOLS = {
    "create": ("topic", "tree", "deletion", "reassignment", "preferred", "config"),
    "set": ("topic", "config"),
    "delete": (),
}
"""Families that Kafka's tools for administrators write. An administrator writes the others by hand, by no rule."""


def reason_of(record: Record, by_controller: bool = False) -> Rule | None:
    """The rule behind a record that is no message of a controller; None where it has none.

    `by_controller`: a controller made the write. Faults and administrators' commands have no rule.
    """
    rules = catalogue().rules
    if record.kind == "zk" and record.action in ("create", "set", "delete"):
        if record.error:
            return None
        family = next((name for found, name in FAMILIES if found.search(record.path or "")), "")
        if record.actor == "admin" and family not in WRITTEN_BY_TOOLS[record.action]:
            return None
        writer = "admin" if record.actor == "admin" else "controller" if by_controller else "broker"
        keys = (f"{record.action} {family} {writer}", f"{record.action} {family}", family)
        return next((rules["zk", key] for key in keys if ("zk", key) in rules), None)
    if record.kind == "event" and record.target != "started":
        return None
    if record.kind == "request" and record.target != "sent":
        return None
    ended = record.error or ("absent" if "absent" in flags(record.detail) else "")
    return rules.get(("broker", f"{record.action} {ended}")) or rules.get((record.kind, str(record.action)))
