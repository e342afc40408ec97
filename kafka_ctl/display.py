"""Values as tables, HTML where it can be shown and aligned text elsewhere; lines about work that takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, SupportsIndex, TypeVar, overload

from kafka_ctl.errors import UnknownKey
from kafka_ctl.visible import visible

T = TypeVar("T", bound=tuple[object, ...])
K = TypeVar("K")
V = TypeVar("V", bound=tuple[object, ...])
MOST_ROWS, WIDEST = 200, 80
"""Rows of a table, and characters of a cell, that are shown."""
LEFT = 'style="text-align:left"'
Bundle = tuple[dict[str, str], dict[str, object]]
"""A display in a notebook: its forms by MIME type, and their metadata."""


def display_bundle(shown: object, more: dict[str, str]) -> Bundle:
    """The display of a widget, and the forms that show without it."""
    bundle, meta = shown if isinstance(shown, tuple) else (shown or {}, {})
    return {**bundle, **more}, meta


class Countdown:
    """Lines on standard error about work that takes long: at most one in `every` seconds, after `title`."""

    def __init__(self, every: float, title: str = "") -> None:
        self.every, self.title = every, title
        self._began = self._last = time.monotonic()

    def __call__(self, text: str, done: int | None = None, total: int = 0) -> None:
        """Print the text if it is time for a line, with the time left if so many of `total` parts are done."""
        now = time.monotonic()
        if done == 0 or now - self._last < self.every:
            return
        self._last = now
        left = "" if done is None else f", {rounded((now - self._began) * (total - done) / done)} left"
        print(f"{self.title}{text}{left}", file=sys.stderr, flush=True)


def counted(number: int, what: str) -> str:
    """A number of things in words: `1 partition`, `2 partitions`."""
    return f"{number} {what}{'s' * (number != 1)}"


def rounded(seconds: float) -> str:
    """A time as one reads it: `90 s`, `12 min`, `19 h 50 min`."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class Table(NamedTuple):
    """The names of the columns, and the rows with their cells as text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self, caption: str = "") -> str:
        """The table in HTML, with all of its text escaped; the path of a field may be broken after an index."""
        from html import escape

        title = f"<caption>{escape(caption)}</caption>" if caption else ""
        head = "".join(f"<th {LEFT}>{escape(name)}</th>" for name in self.head)
        rows = (
            "".join(f"<td {LEFT}>{escape(text).replace('].', '].<wbr>')}</td>" for text in row) for row in self.rows
        )
        return f"<table>{title}<tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def text(self) -> str:
        """The table as aligned text, with the names of the columns first."""
        rows = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def cell(value: object) -> str:
    """One value as the text of a cell: None is empty, a sequence is its members; a long text is cut at `WIDEST`."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, (tuple, list, dict)) and type(value).__str__ is object.__str__:
        value = ", ".join(map(str, value))
    shown = visible(str(value))
    return shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 1]}…"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], size: int) -> Table:
    """A table of the first `MOST_ROWS` of `size` rows. A last row says how many rows are left out."""
    shown = [[cell(value) for value in row] for _, row in zip(range(MOST_ROWS), rows, strict=False)]
    if size > len(shown):
        shown.append([f"({size - len(shown):,} more)", *[""] * (len(head) - 1)])
    return Table(head, shown)


class Printer(Protocol):
    """The part of IPython's pretty printer that is used here."""

    def text(self, text: str) -> None:
        """Write text."""


class Shown:
    """A value that a notebook shows as a table and `print` as aligned text."""

    def table(self) -> Table:
        """The value as a table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(str(self))


class Rows(Shown, list[T]):
    """A list of named tuples of one class, shown as a table; all else is as of a list.

    >>> Rows([TopicPartition("orders", 0)])[0].topic
    'orders'
    """

    def table(self) -> Table:
        """A row for each member, and a column for each field of a member."""
        head = getattr(self[0], "_fields", ()) if self else ("(no rows)",)
        return table(head, self, len(self))

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Rows[T]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> T | Rows[T]:
        return Rows(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)


class KeyedRows(Shown, dict[K, V]):
    """A dictionary of tuples, shown as a table; all else is as of a dictionary. A subclass names the columns."""

    key: str
    """The name of a key in an error."""

    def __missing__(self, key: K) -> V:
        raise UnknownKey(self.key, key, self)
