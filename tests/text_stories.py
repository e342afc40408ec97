"""Stories in text files, several in one, each a block of lines that ends with an empty line.

    # The title of the story
    # seed: 7
    lab brokers=3
    kill 1

Lines `# name: value` below the title are notes for who plays the story; a name may come several times.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

NOTE = re.compile(r"# ([a-z]+): (.+)")


class TextStory(NamedTuple):
    """A story of a text file: its title, its notes by name, its commands as `kafka_ctl.lab.story` reads them."""

    title: str
    notes: dict[str, list[str]]
    text: str


def stories(file: Path, *known: str) -> list[TextStory]:
    """The stories of a file, in their order; ValueError for a note that is not one of `known`."""
    found = []
    for block in re.split(r"\n\n+", file.read_text(encoding="utf-8").strip("\n")):
        title, *lines = block.splitlines()
        notes: dict[str, list[str]] = {}
        while note := NOTE.fullmatch(lines[0]):
            notes.setdefault(note[1], []).append(note[2])
            lines.pop(0)
        if unknown := notes.keys() - {*known}:
            raise ValueError(f"{file.name}: {title}: no note {sorted(unknown)}; there are {', '.join(known) or 'none'}")
        found.append(TextStory(title.removeprefix("# "), notes, "".join(f"{line}\n" for line in lines)))
    return found
