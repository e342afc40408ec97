"""A page of docs/ that is generated from what it describes, so that it cannot say anything else.

`kafka-ctl docs` writes them all, and `kafka-ctl docs --check` fails when one is stale.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Page(NamedTuple):
    """The file's name, and what makes its text."""

    name: str
    text: Callable[[], str]

    def write(self, folder: Path) -> Path:
        """Write the page into this folder; returns the file."""
        path = folder / self.name
        path.write_text(self.text(), encoding="utf-8")
        return path

    def check(self, folder: Path) -> list[str]:
        """The faults of the page in this folder, one sentence each; empty when it is as it should be."""
        path = folder / self.name
        if not path.is_file():
            return [f"{path.name} is missing"]
        return [] if path.read_text(encoding="utf-8") == self.text() else [f"{path.name} is stale"]
