"""A story: its name, what it shows, and its commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

SEED = 18883
"""The seed under which the brokers of a lab, five at most, come up in ascending order, well apart."""
SEED_OF_SIX = 2303
"""The same for six."""


class Story(NamedTuple):
    """A story's name, what happens in it, its first line without generation and seed, and its commands."""

    name: str
    about: str
    lab: str
    commands: str

    generations: tuple[str, ...] = ("0.10", "2.0", "2.4")
    also: tuple[str, ...] = ()
    """What is compared beside what the controller does: `fetchers`, `metadata` (see truth.py)."""
    seed: int = SEED

    @property
    def asks(self) -> str:
        """The line above the commands that asks for it."""
        return f"# Compared too: {', '.join(self.also)}.\n" if self.also else ""

    def text(self, generation: str) -> str:
        """The story as the lab reads it."""
        head, *settings = self.lab.split(" config=")
        inside = settings[0].strip("{}") if settings else ""
        config = (
            "{"
            + ",".join(filter(None, ['"auto.leader.rebalance.enable":false' * ("auto" not in inside), inside]))
            + "}"
        )
        lines = [
            f"{head} generation={generation} seed={self.seed} config={config}",
            *self.commands.strip().splitlines(),
        ]
        return "".join(_written(line) + "\n" for line in lines)


MEANWHILE = " # meanwhile"
"""At the end of a line: the next command does not wait until what this one leads to is over."""


def _written(line: str) -> str:
    command = line.removesuffix(MEANWHILE)
    return " ".join(map(_quoted, command.split())) + line[len(command) :]


def blocks(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a story, those together that do not wait for each other."""
    found: list[list[str]] = [[]]
    for line in lines:
        found[-1].append(line)
        if not line.endswith(MEANWHILE):
            found.append([])
    return [block for block in found if block]


def _quoted(word: str) -> str:
    """A word of a command, its JSON within quotation marks of the story's language."""
    name, equals, value = word.partition("=")
    return f"{name}={shlex.quote(value)}" if equals and name.isidentifier() else shlex.quote(word)


UNCLEAN = 'config={"unclean.leader.election.enable":true}'
CLEAN = 'config={"unclean.leader.election.enable":false}'
