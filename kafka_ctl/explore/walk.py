"""A random walk: a cluster and what happens to it, drawn from one seed.

Commands and faults are drawn blindly, with no look at the cluster: what cannot be done just then is refused and left
out when the walk is played. So a walk is plain data, and any part of it is a walk as well.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from kafka_ctl.generation import Generation
from kafka_ctl.lab.story import Command

TOPICS = ("a", "b", "c")
OWN = "m"
"""The topic of the focused moments, which nothing else touches."""
PARTITIONS = 3
"""Topics have at most so many partitions."""
LENGTH = 40
"""Commands and faults in a walk; time passes between them and is not counted here."""


class Walk(NamedTuple):
    """The first line of a story and the lines that follow."""

    opening: Command
    commands: tuple[Command, ...]

    @property
    def story(self) -> str:
        """The walk as a story's text."""
        return "".join(f"{line}\n" for line in (self.opening, *self.commands))


class Draw:
    """Draws the parts of a command for a cluster of so many brokers of a generation."""

    def __init__(self, rng: Random, brokers: int, generation: str) -> None:
        self.rng, self.brokers, self.generation = rng, brokers, generation

    def broker(self) -> int:
        return self.rng.randint(1, self.brokers)

    def topic(self) -> str:
        return self.rng.choice(TOPICS)

    def partition(self) -> str:
        return f"{self.topic()}-{self.rng.randrange(PARTITIONS)}"

    def replicas(self) -> list[int]:
        return self.rng.sample(range(1, self.brokers + 1), self.rng.randint(1, self.brokers))

    def pair(self, zookeeper: bool) -> tuple[Any, Any]:
        """Two ends of a connection."""
        ends: list[Any] = [*range(1, self.brokers + 1), *["zookeeper"] * zookeeper]
        one, other = self.rng.sample(ends, 2)
        return one, other

    def tool(self) -> Command:
        """What one administrator does."""
        return self.rng.choice([maker for _, maker in tools(self.generation)])(self)

    def seconds(self, most: float) -> float:
        """A time, short ones as likely as long ones."""
        return round(most ** self.rng.uniform(-2.5, 1), 4)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share


def _command(name: str, *args: Any, **kwargs: Any) -> Command:
    return Command(name, args, {key: value for key, value in kwargs.items() if value not in (None, False)})


Maker = Callable[[Draw], Command]
TOOLS: tuple[tuple[float, Maker], ...] = (
    (6, lambda d: _command(
        "create_topic", d.topic(), partitions=d.rng.randint(1, PARTITIONS),
        replication_factor=d.rng.randint(1, d.brokers))),
    (2, lambda d: _command("add_partitions", d.topic(), d.rng.randint(2, PARTITIONS))),
    (3, lambda d: _command("delete_topic", d.topic())),
    (4, lambda d: _command("reassign", {d.partition(): d.replicas()}, through="zookeeper" if d.maybe(0.3) else None)),
    (1, lambda d: _command("cancel_reassignment")),
    (3, lambda d: _command("elect_preferred")),
)  # fmt: skip
"""What administrators do, and how often; they may do it at the same time."""
ELECT_LEADERS: tuple[tuple[float, Maker]] = (
    (2, lambda d: _command(
        "elect_leaders", d.rng.choice(("preferred", "unclean")),
        partitions=[d.partition()] if d.maybe(0.5) else None)),
)  # fmt: skip
"""What they do only where the controller answers it (KIP-460)."""
MENU: tuple[tuple[float, Maker], ...] = (
    *TOOLS,
    (6, lambda d: _command("kill", d.broker())),
    (14, lambda d: _command("start", d.broker())),
    (4, lambda d: _command("bounce", d.broker())),
    (5, lambda d: _command("shutdown", d.broker(), **({"wait": False} if d.maybe(0.6) else {}))),
    (4, lambda d: _command("pause", d.broker(), d.seconds(20))),
    (4, lambda d: _command("expire_session", d.broker())),
    (3, lambda d: _command("lag", d.broker(), d.topic(), d.rng.randrange(PARTITIONS))),
    (2, lambda d: _command("catch_up", d.broker())),
    (1, lambda d: _command("fail_log_dir", d.broker())),
    (3, lambda d: _command("disconnect", *d.pair(zookeeper=True), one_way=d.maybe(0.5))),
    (3, lambda d: _command("delay", *d.pair(zookeeper=True), d.seconds(3.9))),
    (1, lambda d: _command("slow", d.broker(), d.seconds(15))),
    (6, lambda d: _command(
        "produce", d.topic(), d.rng.randrange(PARTITIONS), records=d.rng.randint(1, 3),
        acks=d.rng.choice((None, None, 1)), **({"wait": False} if d.maybe(0.6) else {}))),
    (4, lambda d: _command("lose", d.broker(), *d.pair(zookeeper=True)[1:], applied=d.maybe(0.5))),
    (6, lambda d: _command("heal")),
    (1, lambda d: _command("stop_zookeeper")),
    (1, lambda d: _command("start_zookeeper")),
    (2, lambda d: _command("delete_controller")),
    (4, lambda d: _command("at_once", [str(d.tool()) for _ in range(d.rng.randint(2, 3))])),
)  # fmt: skip
"""What can be drawn in every generation, and how often."""


def tools(generation: str) -> tuple[tuple[float, Maker], ...]:
    """What administrators of a generation do, and how often."""
    return TOOLS + ELECT_LEADERS * Generation(generation).election.elects_on_request


def menu(generation: str) -> tuple[tuple[float, Maker], ...]:
    """What can be drawn in a generation, and how often."""
    return MENU + ELECT_LEADERS * Generation(generation).election.elects_on_request


def _at_a_return(draw: Draw) -> list[Command]:
    """A record comes while followers that have caught up wait to be let into the ISR: half a millisecond.

    Nobody but the leader is in the ISR by then, so that the record is below the high watermark at once.
    """
    brokers, produce = range(1, draw.brokers + 1), Command("produce", (OWN, 0), {"wait": False})
    lags = [_command("lag", follower, OWN, 0) for follower in brokers]
    moment = round(draw.rng.uniform(0.2012, 0.2022), 4)
    returns = [_command("catch_up", follower) for follower in brokers]
    return [*lags, _settle(), produce, *returns, _command("run_for", moment), produce]


def _answers_lost(draw: Draw) -> list[Command]:
    """A broker dies, and the answer to the next write of each other one is lost."""
    dead = draw.broker()
    lost = [_command("lose", id, "zookeeper", applied=True) for id in range(1, draw.brokers + 1) if id != dead]
    return [_command("kill", dead), *lost]


def _focused(draw: Draw) -> list[Command]:
    """One of the moments, in a cluster that is whole again, with a topic that has a replica on every broker."""
    whole = [_command("heal"), *[_command("start", id) for id in range(1, draw.brokers + 1)], _settle()]
    create = _command("create_topic", OWN, replication_factor=draw.brokers)
    return [*whole, create, _settle(), *draw.rng.choice(MOMENTS)(draw), _settle()]


def _settle() -> Command:
    return _command("settle", limit=300)


MOMENTS: tuple[Callable[[Draw], list[Command]], ...] = (_at_a_return, _answers_lost)
"""Faults at the moments at which they matter, which single draws hardly ever meet."""
FOCUSED = 0.4
"""The share of walks that have such a moment."""


def _pass_time(draw: Draw) -> list[Command]:
    """Nothing, a few moments, a while, or until all is quiet."""
    chosen = draw.rng.random()
    if chosen < 0.25:
        return []
    if chosen < 0.45:
        return [_command("step", draw.rng.randint(1, 40))]
    if chosen < 0.7:
        return [_command("run_for", draw.seconds(20))]
    return [_command("settle", limit=300)]


def walk(generation: str, seed: int, length: int = LENGTH) -> Walk:
    """The walk of a seed: up to `length` commands and faults, then everything is healed and comes to rest."""
    rng = Random(f"{generation} {seed}")
    draw = Draw(rng, rng.choice((2, 3, 3, 3, 4)), generation)
    config: dict[str, Any] = {}
    if draw.maybe(0.15):
        config["unclean.leader.election.enable"] = True
    if draw.maybe(0.3):
        config["leader.imbalance.check.interval.seconds"] = rng.choice((10, 30))
    if generation == "0.10" and draw.maybe(0.8):
        config["delete.topic.enable"] = True
        config.setdefault("unclean.leader.election.enable", False)
    given: dict[str, Any] = {"brokers": list(range(1, draw.brokers + 1)), "generation": generation, "seed": seed}
    opening = Command("lab", (), given | ({"config": config} if config else {}))
    commands: list[Command] = []
    drawn = menu(generation)
    for _, maker in rng.choices(drawn, [weight for weight, _ in drawn], k=length):
        commands += [maker(draw), *_pass_time(draw)]
    other = Draw(Random(f"{generation} {seed} moment"), draw.brokers, generation)
    if other.maybe(FOCUSED):
        place = other.rng.randrange(len(commands) + 1)
        commands[place:place] = _focused(other)
    commands.append(_command("heal"))
    commands += [_command("start", broker) for broker in range(1, draw.brokers + 1)]
    commands.append(_command("settle", limit=300))
    return Walk(opening, tuple(commands))


def busy(generation: str, seed: int) -> Walk:
    """The explorer's walk of a seed in a cluster that is in use.

    There are topics, somebody produces often, leaderships are rebalanced every 10 s, and `/controller` is deleted while
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
