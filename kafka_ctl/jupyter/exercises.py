"""A widget that shows which exercises have been solved, and follows each check in the same notebook."""

from __future__ import annotations

from html import escape
from itertools import groupby

import ipywidgets

from kafka_ctl.errors import Unavailable
from kafka_ctl.exercises import progress_file
from kafka_ctl.exercises.report import Row, rows, summary
from kafka_ctl.paths import import_from_checkout

MARKS = {True: "✓ ", False: ""}


class ProgressWidget(ipywidgets.VBox):
    """A table of the exercises, and a button that forgets what was solved and restores the notebooks of learners."""

    def __init__(self, **options: object) -> None:
        self.table = ipywidgets.HTML()
        self.button = ipywidgets.Button(
            description="Start anew", tooltip="Forget what was solved, restore the notebooks"
        )
        self.sure = ipywidgets.Button(description="Yes, all anew", button_style="warning")
        self.sure.layout.display = "none"
        self.button.on_click(lambda _: self._ask(True))
        self.sure.on_click(lambda _: self._reset())
        self.reply = ipywidgets.HTML()
        super().__init__([self.table, ipywidgets.HBox([self.button, self.sure]), self.reply], **options)
        progress_file.listeners.append(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the stored progress."""
        found = rows()
        parts = [f"<p><b>{escape(summary(found))}</b></p>"]
        parts += [_lesson(name, list(group)) for name, group in groupby(found, key=lambda row: row.lesson)]
        self.table.value = "".join(parts)

    def close(self) -> None:
        """Follow no longer."""
        if self.refresh in progress_file.listeners:
            progress_file.listeners.remove(self.refresh)
        super().close()

    def _ask(self, open: bool) -> None:
        self.sure.layout.display = "" if open else "none"

    def _reset(self) -> None:
        progress_file.reset()
        self.reply.value = escape(restore_notebooks())
        self._ask(False)

    def __repr__(self) -> str:
        return summary(rows())


def restore_notebooks() -> str:
    """Restore the starters in a checkout, and say which were restored."""
    stored = progress_file.place()
    kept = None if stored is None else stored.parent / "starters"
    try:
        names = import_from_checkout("tools.editions").restore(kept)
    except Unavailable:
        return "What was solved is forgotten."
    if not names:
        return "What was solved is forgotten; no notebook had to be restored."
    where = "" if kept is None else f" What they were is kept in {kept}."
    return f"What was solved is forgotten. Restored: {', '.join(names)}.{where} Close and reopen those that are open."


def _lesson(name: str, rows: list[Row]) -> str:
    """One lesson as a table; solved exercises have a mark, not only a colour."""
    lines = "".join(
        f"<tr><td>{row.name}</td><td>{row.kind}</td><td>{escape(row.title)}</td>"
        f"<td>{MARKS[row.solved]}{row.state}</td></tr>"
        for row in rows
    )
    caption = f'<caption style="text-align: left">{escape(name)}</caption>'
    return f'<table style="border-spacing: 12px 2px">{caption}{lines}</table>'
