"""The stories that are compared: commands of `kafka_ctl.Lab` in `stories/`, with the generation left open.

Brokers start in ascending order, and after every command the cluster is left alone until it is quiet. When the
controller goes, the broker that has run longest follows it: in the kit by the order of its watches; a recording in
which another one was quicker is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests import text_stories

SEED = 18883
"""The seed under which the brokers of a lab, five at most, come up in ascending order, well apart. Larger clusters name
theirs."""


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
    full: bool = False
    """A log directory fails because no byte can be written to it any more; otherwise its path becomes a file."""

    @property
    def asks(self) -> str:
        """The lines above the commands that say what is compared, and what `fail_log_dir` does."""
        also = f"# Compared too: {', '.join(self.also)}.\n" if self.also else ""
        return also + ("# A log directory fails by being full.\n" if self.full else "")

    def text(self, generation: str) -> str:
        """The story as the lab reads it: leaders are given back by themselves only where the story says so."""
        head, _, inside = self.lab.partition(" config='{")
        settings = [*filter(None, ['"auto.leader.rebalance.enable":false' * ("auto" not in inside), inside[:-2]])]
        lines = [
            f"{head} generation={generation} seed={self.seed} config='{{{','.join(settings)}}}'",
            *self.commands.strip().splitlines(),
        ]
        return "".join(f"{line}\n" for line in lines)


def _stories(file: Path) -> list[Story]:
    found = []
    for title, notes, text in text_stories.stories(file, "name", "generations", "compared", "seed", "full"):
        lab, _, commands = text.partition("\n")
        found.append(
            Story(
                notes["name"][0],
                title,
                lab,
                commands,
                tuple(notes.get("generations", ["0.10 2.0 2.4"])[0].split()),
                tuple(notes.get("compared", [""])[0].split()),
                int(notes.get("seed", [SEED])[0]),
                "full" in notes,
            )
        )
    return found


PARTS = ("mechanisms", "troubles", "rarities")
"""The files: in the order in which mechanisms are met, of what goes wrong, and of what was wrong here."""
STORIES = {story.name: story for part in PARTS for story in _stories(Path(__file__).parent / "stories" / f"{part}.txt")}
"""By name."""

MEANWHILE = " # meanwhile"
"""At the end of a line: the next command does not wait until what this one leads to is over."""


def blocks(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a story, those together that do not wait for each other."""
    found: list[list[str]] = [[]]
    for line in lines:
        found[-1].append(line)
        if not line.endswith(MEANWHILE):
            found.append([])
    return [block for block in found if block]
