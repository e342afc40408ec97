"""What a person may ask of a film or a player: each check names what is wrong, and what is allowed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

from kafka_ctl.errors import BadInput, UnknownName, short

THEMES = ("auto", "light", "dark")
GIVEN = 3
"""What every view is made with: the union of all models, the records, the steps."""


def views_of(view: object) -> tuple[str, ...]:
    """The names of one view or of several; BadInput where there is none."""
    views = (view,) if isinstance(view, str) else tuple(view) if isinstance(view, Iterable) else ()
    if not views and isinstance(view, Iterable):
        raise BadInput("a film needs a view; it is a name such as 'cluster', or a list of names")
    if not views or not all(isinstance(name, str) for name in views):
        raise BadInput(f"a view cannot be {short(view)}; it is a name such as 'cluster', or a list of names")
    return views


def check_film(kind: type, start: object, limit: object, is_relevant: object, options: Mapping[str, object]) -> None:
    """The options of `film`; those that are left are the view's own."""
    _integer("limit", limit, 1, "a number of frames")
    if start is not None:
        _integer("start", start, 0, "the number of a record")
    if is_relevant is not None and not callable(is_relevant):
        raise BadInput(f"is_relevant cannot be {short(is_relevant)}; it is a function of a record")
    own = list(inspect.signature(kind).parameters)[GIVEN:]
    for name, value in options.items():
        if name not in own:
            raise UnknownName("option", name, ["start", "limit", "is_relevant", *own])
        if name != "generation":
            _integer(name, value, 0, "a number of partitions")


def check_player(options: Mapping[str, object]) -> None:
    """The options of a player beside those of its films."""
    for name, value in options.items():
        match name:
            case "index":
                _integer(name, value, 0, "the number of a frame")
            case "speed":
                fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1000
                if not fine:
                    raise BadInput(f"speed cannot be {short(value)}; it is a number above 0, 1000 at most")
            case "theme":
                check_theme(value)
            case _ if not isinstance(value, bool):
                raise BadInput(f"{name} cannot be {short(value)}; it is True or False")


def check_theme(theme: object) -> None:
    if not isinstance(theme, str) or theme not in THEMES:
        raise UnknownName("theme", theme, THEMES)


def check_own(call: str, options: Mapping[str, object]) -> None:
    """What a lab itself passes to a film is no option of its calls."""
    for name in ("generation", "lines"):
        if name in options:
            raise BadInput(f"{call}: {name} is that of the lab; it cannot be given")


def _integer(name: str, value: object, least: int, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 10**12:
        raise BadInput(f"{name} cannot be {short(value)}; it is {what}, {least} or more")
