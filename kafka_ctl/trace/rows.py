"""The rows of the catalogue of what can happen: `actions.py` and `messages.py` list them."""

from __future__ import annotations

from typing import NamedTuple

ANY = "*"
"""The action of a row that stands for every action of its kind."""


class Rule(NamedTuple):
    """The decision behind an action; `{topic}` and the like are filled in from the names in `detail`."""

    rule: str
    outcome: str
    otherwise: tuple[tuple[str, str], ...] = ()
    """Pairs of a condition and what would have happened under it."""
    by: tuple[str, ...] = ()
    """The functions that decide, below `kafka_ctl.controller`: `deletion.look`."""


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
    """Whether it makes a step of a film of the cluster; kinds may set further conditions (`views/steps.py`)."""
    story: bool | None = None
    """Whether the story shows it always (True) or never (False); None: it depends on the record (`text.py`)."""
    bulk: bool = False
    """Whether histories keep it apart, as it comes in masses and no question needs it."""
    rule: Rule | None = None


class Group(NamedTuple):
    """Actions of one kind that share their meaning: a line in the tables of `docs/trace-format.md`."""

    kind: str
    about: str
    actions: tuple[Action, ...]


def action(
    name: str,
    columns: str = "",
    fields: str = "",
    sentence: str = "",
    many: str = "",
    news: bool = True,
    story: bool | None = None,
) -> Action:
    """A row whose columns and fields are written as words."""
    return Action(name, tuple(columns.split()), tuple(fields.split()), sentence, many, news, story)


def actions(
    names: str, columns: str = "", fields: str = "", news: bool = True, story: bool | None = None
) -> tuple[Action, ...]:
    """Rows that differ in their names only."""
    return tuple(action(name, columns, fields, news=news, story=story) for name in names.split())
