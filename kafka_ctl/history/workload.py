"""What simulated clusters are like, and what happens to them.

A cluster is drawn from a `Workload`: how many brokers, which topics, and how often each of the `TROUBLES`
comes. A trouble is a generator: it acts on the lab and yields the seconds it wants to pass before it goes on.
A new kind of trouble is one such function and one row in the table.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput, UnknownName

if TYPE_CHECKING:
    from kafka_ctl import Lab
    from kafka_ctl.trace import Trace

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

Happening = Callable[["Lab", Random], Iterator[float]]


class Trouble(NamedTuple):
    """One row of `TROUBLES`: how often a day it comes, to each broker or to the cluster, and what happens."""

    per_day: float
    each_broker: bool
    happen: Happening


def rolling_restart(lab: Lab, rng: Random) -> Iterator[float]:
    """Every running broker in turn: controlled shutdown, back after 30 to 120 s, then time to catch up."""
    for broker in running(lab):
        if broker not in running(lab):
            continue
        lab.shutdown(broker)
        yield rng.uniform(0.5, 2) * MINUTE
        lab.start(broker)
        yield rng.uniform(1, 3) * MINUTE


def restart(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker is shut down properly and comes back after 1 to 30 minutes."""
    if broker := pick(lab, rng):
        lab.shutdown(broker)
        yield log_uniform(rng, 1, 30) * MINUTE
        lab.start(broker)


def crash(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker dies without a word and comes back after half a minute to two hours."""
    if broker := pick(lab, rng):
        lab.kill(broker)
        yield log_uniform(rng, 0.5, 120) * MINUTE
        lab.start(broker)


def controller_crash(lab: Lab, rng: Random) -> Iterator[float]:
    """The broker that is the controller dies; another takes over."""
    if (controller := lab.controller) and len(running(lab)) > 1:
        lab.kill(controller.id)
        yield log_uniform(rng, 0.5, 30) * MINUTE
        lab.start(controller.id)


def session_expiry(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker's ZooKeeper session expires; the broker itself goes on and registers anew."""
    if broker := pick(lab, rng):
        lab.expire_session(broker)
    yield 0.0


TROUBLES: Mapping[str, Trouble] = {
    "rolling_restart": Trouble(0.5, False, rolling_restart),
    "restart": Trouble(0.2, True, restart),
    "crash": Trouble(0.3, True, crash),
    "controller_crash": Trouble(0.5, False, controller_crash),
    "session_expiry": Trouble(0.3, True, session_expiry),
}
"""What may happen to a cluster. The rates are those of a bad month, so that a day shows something;
`Workload(rate=0.1)` is a cluster that is well looked after."""


@dataclass(frozen=True)
class Workload:
    """The distribution from which clusters are drawn."""

    brokers: tuple[int, int] = (3, 9)
    """Fewest and most brokers; small clusters are more frequent (the logarithm is uniform)."""
    topics: tuple[int, int] = (3, 20)
    """Fewest and most topics, likewise."""
    partitions: Mapping[int, float] = field(default_factory=lambda: {1: 3, 3: 4, 6: 2, 12: 1})
    """Partitions of a topic, with the weight of each number."""
    replication: Mapping[int, float] = field(default_factory=lambda: {1: 1, 2: 2, 3: 7})
    """Replication factors with their weights; never more than there are brokers."""
    rate: float = 1.0
    """Multiplies all rates."""
    per_day: Mapping[str, float] = field(default_factory=dict)
    """Rates that differ from those of `TROUBLES`; 0 switches a trouble off."""

    def __post_init__(self) -> None:
        for name in self.per_day:
            if name not in TROUBLES:
                raise UnknownName("trouble", name, TROUBLES)
        for name, (fewest, most) in {"brokers": self.brokers, "topics": self.topics}.items():
            if not 1 <= fewest <= most:
                raise BadInput(f"{name}=({fewest}, {most}): give the fewest and the most, at least 1")
        for name, weights in {"partitions": self.partitions, "replication": self.replication}.items():
            if not weights or min(weights) < 1 or min(weights.values()) < 0 or not sum(weights.values()):
                raise BadInput(f"{name}={dict(weights)}: give numbers from 1 on, with their weights")
        if self.rate < 0 or any(rate < 0 for rate in self.per_day.values()):
            raise BadInput("rates cannot be negative")


class Topic(NamedTuple):
    name: str
    partitions: int
    replication_factor: int


class Plan(NamedTuple):
    """What was drawn for one cluster: its size, its topics and when each trouble begins, in seconds."""

    brokers: int
    topics: tuple[Topic, ...]
    troubles: tuple[tuple[float, str], ...]


def plan(seed: int, hours: float = 24, workload: Workload | None = None) -> Plan:
    """Draw one cluster; the same seed gives the same cluster."""
    drawn = workload or Workload()
    rng = Random(f"cluster {seed}")
    brokers = log_uniform_int(rng, *drawn.brokers)
    topics = tuple(
        Topic(f"topic-{n}", weighted(rng, drawn.partitions), min(brokers, weighted(rng, drawn.replication)))
        for n in range(log_uniform_int(rng, *drawn.topics))
    )
    troubles: list[tuple[float, str]] = []
    for name, trouble in TROUBLES.items():
        rate = drawn.rate * drawn.per_day.get(name, trouble.per_day) * (brokers if trouble.each_broker else 1)
        at = rng.expovariate(rate / DAY) if rate else math.inf
        while at < hours * HOUR:
            troubles.append((at, name))
            at += rng.expovariate(rate / DAY)
    return Plan(brokers, topics, tuple(sorted(troubles)))


def play(lab: Lab, plan: Plan, seed: int, hours: float) -> None:
    """Let the plan happen to a lab of `plan.brokers` brokers: `hours` of the lab's time.

    Troubles overlap as they come; one that finds no broker to act on does nothing. A controlled shutdown lets
    time pass by itself, so what falls due meanwhile happens right after it.
    """
    for topic in plan.topics:
        lab.create_topic(topic.name, partitions=topic.partitions, replication_factor=topic.replication_factor)
    turn = count()
    agenda = [
        (at, next(turn), TROUBLES[name].happen(lab, Random(f"{name} {n} of cluster {seed}")))
        for n, (at, name) in enumerate(plan.troubles)
    ]
    heapq.heapify(agenda)
    end = hours * HOUR
    while agenda and agenda[0][0] < end:
        at, _, trouble = heapq.heappop(agenda)
        pass_until(lab, at)
        wait = next(trouble, None)
        if wait is not None:
            heapq.heappush(agenda, (max(at, now(lab)) + wait, next(turn), trouble))
    pass_until(lab, end)


def simulate(
    seed: int, hours: float = 24, generation: str = "2.0", workload: Workload | None = None
) -> Trace:
    """Run one simulated cluster and return its trace; `seed` decides everything."""
    from kafka_ctl import Lab

    drawn = plan(seed, hours, workload)
    with Lab(brokers=drawn.brokers, generation=generation, seed=seed) as lab:
        play(lab, drawn, seed, hours)
        return lab.trace


def pass_until(lab: Lab, second: float) -> None:
    if (left := second - now(lab)) > 0:
        lab.run_for(seconds=left)


def now(lab: Lab) -> float:
    """Seconds of the lab's time since its start."""
    return lab.now


def running(lab: Lab) -> list[int]:
    return sorted(id for id, broker in lab.brokers.items() if broker.state == "running")


def pick(lab: Lab, rng: Random) -> int | None:
    """One of the running brokers, or None: the last one is left alone."""
    brokers = running(lab)
    return rng.choice(brokers) if len(brokers) > 1 else None


def log_uniform(rng: Random, low: float, high: float) -> float:
    """A number between low and high, as likely to lie between 1 and 2 as between 10 and 20."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def log_uniform_int(rng: Random, low: int, high: int) -> int:
    return min(high, int(log_uniform(rng, low, high + 1)))


def weighted(rng: Random, weights: Mapping[int, float]) -> int:
    return rng.choices(list(weights), list(weights.values()))[0]
