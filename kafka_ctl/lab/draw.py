"""Drawing the arguments of commands at random, for walks through what a lab can do (`kafka_ctl/explore/walk.py`).

How often a command is drawn, and with what, stands above its method, in `@command(drawn=Drawn(...))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from kafka_ctl.lab.menu import Call
from kafka_ctl.lab.story import Command

TOPICS = ("a", "b", "c")
PARTITIONS = 3
"""Topics have at most so many partitions."""


class Draw:
    """Draws the arguments of commands for a cluster of so many brokers."""

    def __init__(self, rng: Random, brokers: int, tools: Sequence[tuple[str, Drawn]] = ()) -> None:
        self.rng, self.brokers, self.tools = rng, brokers, tools

    def broker(self) -> int:
        return self.rng.randint(1, self.brokers)

    def topic(self) -> str:
        return self.rng.choice(TOPICS)

    def partition(self) -> str:
        return f"{self.topic()}-{self.rng.randrange(PARTITIONS)}"

    def replicas(self) -> list[int]:
        return self.rng.sample(range(1, self.brokers + 1), self.rng.randint(1, self.brokers))

    def pair(self, zookeeper: bool) -> tuple[int | str, int | str]:
        """Two ends of a connection."""
        ends: list[int | str] = [*range(1, self.brokers + 1), *["zookeeper"] * zookeeper]
        one, other = self.rng.sample(ends, 2)
        return one, other

    def tool(self) -> Command:
        """What one administrator does."""
        name, drawn = self.rng.choice(self.tools)
        return Command(name, *drawn.arguments(self))

    def seconds(self, most: float) -> float:
        """A time, short ones as likely as long ones."""
        return round(most ** self.rng.uniform(-2.5, 1), 4)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share


class Drawn(NamedTuple):
    """How often a command is drawn, beside the others, and its arguments."""

    weight: float
    arguments: Callable[[Draw], Call] = lambda draw: ((), {})
    needs: str = ""
    """A field of the generation without which it is not drawn."""


def with_(*args: object, **kwargs: object) -> Call:
    """Arguments of a call, without those by name that are None or False."""
    return args, {key: value for key, value in kwargs.items() if value not in (None, False)}
