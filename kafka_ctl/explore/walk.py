"""A random walk: a cluster and what happens to it, drawn from one seed.

Commands and faults are drawn blindly, with no look at the cluster: what cannot be done just then is refused and left
out when the walk is played. So a walk is plain data, and any part of it is a walk as well.

Walks near a story take most of its commands: some are left out, doubled or exchanged, and others come between.
A story that broke an invariant is a good starting point: such walks find in minutes what blind ones find in days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.generation import UNCLEAN, Generation
from kafka_ctl.lab import story
from kafka_ctl.lab.commands import TOOLS
from kafka_ctl.lab.menu import MENU, TOPICS, Draw, Drawn
from kafka_ctl.lab.story import Command

MOMENT_TOPIC = "m"
"""The topic of the focused moments, which nothing else touches."""
LENGTH = 40
"""Commands and faults in a walk; time passes between them and is not counted here."""
SETTLE = Command("settle", (), {"limit": 300})


class Walk(NamedTuple):
    """The first line of a story and the lines that follow."""

    opening: Command
    commands: tuple[Command, ...]

    @property
    def story(self) -> str:
        """The walk as a story's text."""
        return "".join(f"{line}\n" for line in (self.opening, *self.commands))


def _command(name: str, *args: object, **kwargs: object) -> Command:
    return Command(name, args, {key: value for key, value in kwargs.items() if value not in (None, False)})


def menu(generation: str) -> list[tuple[str, Drawn]]:
    """The commands that can be drawn in a generation, with their draws, by name."""
    known = Generation(generation)
    drawn = ((name, MENU[name].drawn) for name in sorted(MENU))
    return [(name, d) for name, d in drawn if d is not None and (not d.needs or known.has(d.needs))]


def _at_a_return(draw: Draw) -> list[Command]:
    """Commands that produce a record in the half millisecond in which caught-up followers are not yet in the ISR.

    Only the leader is in the ISR by then, so that the record is below the high watermark at once.
    """
    brokers, produce = range(1, draw.brokers + 1), Command("produce", (MOMENT_TOPIC, 0), {"wait": False})
    lags = [_command("lag", follower, MOMENT_TOPIC, 0) for follower in brokers]
    moment = round(draw.rng.uniform(0.2012, 0.2022), 4)
    returns = [_command("catch_up", follower) for follower in brokers]
    return [*lags, SETTLE, produce, *returns, _command("run_for", moment), produce]


def _answers_lost(draw: Draw) -> list[Command]:
    """A broker dies, and the answer to the next write of each other one is lost."""
    dead = draw.broker()
    lost = [_command("lose", id, "zookeeper", applied=True) for id in range(1, draw.brokers + 1) if id != dead]
    return [_command("kill", dead), *lost]


def _focused(draw: Draw) -> list[Command]:
    """One of the moments, in a cluster that is whole again, with a topic that has a replica on every broker."""
    create = _command("create_topic", MOMENT_TOPIC, replication_factor=draw.brokers)
    return [*healed(draw.brokers), create, SETTLE, *draw.rng.choice(MOMENTS)(draw), SETTLE]


def healed(brokers: int) -> list[Command]:
    """The commands that heal every fault, start every broker and settle."""
    return [_command("heal"), *[_command("start", id) for id in range(1, brokers + 1)], SETTLE]


MOMENTS: tuple[Callable[[Draw], list[Command]], ...] = (_at_a_return, _answers_lost)
"""Faults at the moments at which they matter, which single draws hardly ever meet."""
FOCUSED = 0.4
"""The share of walks that have such a moment."""


def pass_time(draw: Draw) -> list[Command]:
    """Commands that let no time, a short time or a long time pass, or that settle."""
    chosen = draw.rng.random()
    if chosen < 0.25:
        return []
    if chosen < 0.45:
        return [_command("step", draw.rng.randint(1, 40))]
    if chosen < 0.7:
        return [_command("run_for", draw.seconds(20))]
    return [SETTLE]


def walk(generation: str, seed: int, length: int = LENGTH) -> Walk:
    """The walk of a seed: up to `length` commands and faults, then everything is healed and comes to rest."""
    rng = Random(f"{generation} {seed}")
    drawn = menu(generation)
    tools = [(name, d) for name, d in drawn if name in TOOLS]
    draw = Draw(rng, rng.choice((2, 3, 3, 3, 4)), tools)
    config: dict[str, object] = {}
    if draw.maybe(0.15):
        config[UNCLEAN] = True
    if draw.maybe(0.3):
        config["leader.imbalance.check.interval.seconds"] = rng.choice((10, 30))
    opening = _lab_line(config, draw, generation, seed)
    commands: list[Command] = []
    for name, d in rng.choices(drawn, [d.weight for _, d in drawn], k=length):
        commands += [Command(name, *d.arguments(draw)), *pass_time(draw)]
    other = Draw(Random(f"{generation} {seed} moment"), draw.brokers)
    if other.maybe(FOCUSED):
        place = other.rng.randrange(len(commands) + 1)
        commands[place:place] = _focused(other)
    return Walk(opening, (*commands, *healed(draw.brokers)))


def busy(generation: str, seed: int) -> Walk:
    """The explorer's walk of a seed in a cluster that is in use.

    There are topics, a producer sends often, leaderships are rebalanced every 10 s, and `/controller` is deleted while
    its owner is cut off from ZooKeeper, so that two believe to be it.
    """
    wanted, rng = walk(generation, seed), Random(seed)
    brokers = len(wanted.opening.kwargs["brokers"])
    commands = [_command("create_topic", topic, partitions=2, replication_factor=brokers) for topic in "ab"]
    commands.append(Command("settle", (), {}))
    for line in wanted.commands:
        acks = rng.choice(({}, {}, {"acks": 1}))
        produce = Command("produce", (rng.choice("ab"), rng.randrange(2)), {**acks, "wait": False})
        commands += [produce, line] if rng.random() < 0.5 else [line]
        if rng.random() < 0.03:
            slow = Command("delay", (rng.randint(1, brokers), "zookeeper", round(rng.uniform(0.1, 2), 2)), {})
            commands += [slow, Command("delete_controller", (), {}), Command("kill", (rng.randint(1, brokers),), {})]
    config = {**wanted.opening.kwargs.get("config", {}), "leader.imbalance.check.interval.seconds": 10}
    return Walk(wanted.opening._replace(kwargs={**wanted.opening.kwargs, "config": config}), tuple(commands))


TIME = ("settle", "run_for", "step")
CREATED = re.compile(r"^(?:quiet )?create_topic (\S+)", re.MULTILINE)


@lru_cache(maxsize=1)
def stories(paths: tuple[str, ...]) -> tuple[Walk, ...]:
    """The stories in these files, and in the `.txt` files of these folders, in the order of their names.

    Raises BadInput, with its name, for a file that cannot be read, and if there is no story.
    """
    files = [file for path in map(Path, paths) for file in (sorted(path.glob("**/*.txt")) if path.is_dir() else [path])]
    found = [_story(file) for file in files]
    if not found:
        raise BadInput(f"--near: there is no story in {', '.join(paths)}")
    return tuple(found)


def _story(file: Path) -> Walk:
    """A story with its topics called as those that are drawn."""
    try:
        text = story.read(file)
        topics = [topic for topic in dict.fromkeys(CREATED.findall(text)) if topic not in TOPICS]
        names = [name for name in TOPICS if name not in CREATED.findall(text)]
        for topic, name in zip(topics, names, strict=False):
            text = re.sub(rf"(?<![\w.]){re.escape(topic)}(?![\w.])", name, text)
        lines = [line._replace(line=0) for line in story.parse(text)]
    except (ValueError, BadInput) as error:
        raise BadInput(f"--near {file}: {error}") from None
    if not lines or lines[0].name != "lab":
        raise BadInput(f"--near {file}: this is no story; it does not begin with `lab`")
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
        commands += [SETTLE if line.name == "settle" else line] * (2 if draw.maybe(share / 3) else 1)
    if len(commands) > 1 and draw.maybe(0.3):
        place = rng.randrange(len(commands) - 1)
        commands[place : place + 2] = reversed(commands[place : place + 2])
    for _ in range(rng.randrange(4)):
        commands += more()
    config = {key: value for key, value in chosen.opening.kwargs.get("config", {}).items() if draw.maybe(0.8)}
    return Walk(_lab_line(config, draw, generation, seed), (*commands, *healed(brokers)))


def _brokers(opening: Command) -> int:
    """The number of brokers, with ids from 1 on, so that the story's are among them."""
    brokers = opening.kwargs.get("brokers", 3)
    ids = [brokers] if isinstance(brokers, int) else [id for id in brokers if isinstance(id, int)]
    return min(max([2, *ids]), 6)


def _lab_line(config: dict[str, object], draw: Draw, generation: str, seed: int) -> Command:
    """The first line of a walk; 0.10 has to be configured for topics to be deleted, and mostly is."""
    if generation == "0.10" and draw.maybe(0.8):
        config["delete.topic.enable"] = True
        config.setdefault(UNCLEAN, False)
    given: dict[str, object] = {"brokers": list(range(1, draw.brokers + 1)), "generation": generation, "seed": seed}
    return Command("lab", (), given | ({"config": config} if config else {}))
