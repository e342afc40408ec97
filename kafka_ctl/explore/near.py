"""Walks near stories: the commands of a story, of which some are left out, doubled or exchanged, with others between.

What has broken something once is close to what breaks something else: such walks meet in minutes what blind ones meet
in days.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

from kafka_ctl.errors import BadInput
from kafka_ctl.explore.walk import Walk, healed, menu, pass_time, settle
from kafka_ctl.lab import story
from kafka_ctl.lab.concurrent_commands import TOOLS
from kafka_ctl.lab.draw import TOPICS, Draw
from kafka_ctl.lab.story import Command

TIME = ("settle", "run_for", "step")
CREATED = re.compile(r"^(?:quiet )?create_topic (\S+)", re.MULTILINE)


@lru_cache(maxsize=1)
def stories(paths: tuple[str, ...]) -> tuple[Walk, ...]:
    """The stories in these files, and in the `.txt` files of these folders, in the order of their names.

    BadInput for one that cannot be read, with its name, and where there is none.
    """
    files = [file for path in map(Path, paths) for file in (sorted(path.glob("**/*.txt")) if path.is_dir() else [path])]
    found = [_story(file) for file in files]
    if not found:
        raise BadInput(f"--near: there is no story in {', '.join(paths)}")
    return tuple(found)


def _story(file: Path) -> Walk:
    """A story with its topics called as those that are drawn."""
    try:
        text = file.read_text("utf-8")
        topics = [topic for topic in dict.fromkeys(CREATED.findall(text)) if topic not in TOPICS]
        names = [name for name in TOPICS if name not in CREATED.findall(text)]
        for topic, name in zip(topics, names, strict=False):
            text = re.sub(rf"(?<![\w.]){re.escape(topic)}(?![\w.])", name, text)
        lines = [line._replace(line=0) for line in story.parse(text)]
    except (OSError, ValueError, BadInput) as error:
        raise BadInput(f"--near: {file} is no story: {error}") from None
    if not lines or lines[0].name != "lab":
        raise BadInput(f"--near: {file} is no story: it does not begin with `lab`")
    return Walk(lines[0], tuple(lines[1:]))


def walk_near(known: Sequence[Walk], generation: str, seed: int) -> Walk:
    """The walk of a seed near one of these stories, in a cluster of any generation."""
    rng = Random(f"near {generation} {seed}")
    chosen = rng.choice(known)
    brokers = _brokers(chosen.opening) + (rng.random() < 0.2)
    drawn = menu(generation)
    draw = Draw(rng, brokers, [(name, d) for name, d in drawn if name in TOOLS])
    commands: list[Command] = []

    def more() -> list[Command]:
        name, d = rng.choices(drawn, [d.weight for _, d in drawn])[0]
        return [Command(name, *d.arguments(draw)), *pass_time(draw)]

    share = rng.uniform(0.02, 0.27)
    for line in chosen.commands:
        while draw.maybe(share):
            commands += more()
        if draw.maybe(share / 3):
            continue
        if line.name in TIME and draw.maybe(share):
            commands += pass_time(draw)
            continue
        commands += [settle() if line.name == "settle" else line] * (2 if draw.maybe(share / 3) else 1)
    if len(commands) > 1 and draw.maybe(0.3):
        place = rng.randrange(len(commands) - 1)
        commands[place : place + 2] = reversed(commands[place : place + 2])
    for _ in range(rng.randrange(4)):
        commands += more()
    return Walk(_opening(chosen.opening, draw, generation, seed), (*commands, *healed(brokers)))


def _brokers(opening: Command) -> int:
    """The number of brokers, with ids from 1 on, so that the story's are among them."""
    brokers = opening.kwargs.get("brokers", 3)
    ids = [brokers] if isinstance(brokers, int) else [id for id in brokers if isinstance(id, int)]
    return min(max([2, *ids]), 6)


def _opening(near_to: Command, draw: Draw, generation: str, seed: int) -> Command:
    """The first line: the story's configuration or part of it, and of its generation nothing."""
    config: dict[str, object] = {
        key: value for key, value in near_to.kwargs.get("config", {}).items() if draw.maybe(0.8)
    }
    if generation == "0.10" and draw.maybe(0.8):
        config["delete.topic.enable"] = True
        config.setdefault("unclean.leader.election.enable", False)
    given: dict[str, object] = {"brokers": list(range(1, draw.brokers + 1)), "generation": generation, "seed": seed}
    return Command("lab", (), given | ({"config": config} if config else {}))
