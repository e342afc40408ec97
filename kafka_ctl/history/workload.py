"""What simulated clusters are like: how many brokers, which topics, and how often each of the `INCIDENTS` comes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.history.incidents import INCIDENTS, log_uniform

if TYPE_CHECKING:
    from kafka_ctl.generation import Generation
    from kafka_ctl.lab.lab import Lab
    from kafka_ctl.trace import Trace

HOUR, DAY = 3600.0, 86400.0
LONGEST_LIFE = 100_000
"""Hours of a cluster, eleven years: its incidents are drawn before it starts, and its records are kept in memory."""


@dataclass(frozen=True)
class Workload:
    """The distribution from which clusters are drawn."""

    brokers: tuple[int, int] = (3, 9)
    """Fewest and most brokers; small clusters are more frequent (the logarithm is uniform)."""
    racks: int = 3
    """Racks over which the brokers are spread evenly; 1 means that nobody knows of racks."""
    topics: tuple[int, int] = (3, 20)
    """Fewest and most topics, as with brokers."""
    partitions: Mapping[int, float] = field(default_factory=lambda: {1: 3, 3: 4, 6: 2, 12: 1})
    """Partitions of a topic, with the weight of each number."""
    replication: Mapping[int, float] = field(default_factory=lambda: {1: 1, 2: 2, 3: 7})
    """Replication factors with their weights; never more than there are brokers."""
    unclean: float = 0.1
    """The share of topics whose leader may be a replica out of sync, if there is no other."""
    rate: float = 1.0
    """Multiplies all rates."""
    spread: float = 1.0
    """Spread of incident rates between clusters: with 3, a cluster has between a third and three times as many."""
    per_day: Mapping[str, float] = field(default_factory=dict)
    """Rates that differ from those of `INCIDENTS`; 0 switches an incident off."""
    config: Mapping[str, bool | int] = field(default_factory=dict)
    """Kafka's configuration of all brokers, such as `{"zookeeper.session.timeout.ms": 18000}`."""

    def __post_init__(self) -> None:
        if not isinstance(self.config, Mapping):
            raise BadInput(f"config={short(self.config)}: give a mapping from keys to values")
        for name in self.per_day:
            if name not in INCIDENTS:
                raise UnknownName("incident", name, INCIDENTS)
        for name, (fewest, most) in {"brokers": self.brokers, "topics": self.topics}.items():
            if not isinstance(fewest, int) or not isinstance(most, int):
                raise BadInput(
                    f"{name}=({short(fewest)}, {short(most)}): give the fewest and the most, as whole numbers"
                )
            if not 1 <= fewest <= most:
                raise BadInput(f"{name}=({fewest}, {most}): give the fewest and the most, at least 1")
        for name, weights in {"partitions": self.partitions, "replication": self.replication}.items():
            if not weights or min(weights) < 1 or min(weights.values()) < 0 or not sum(weights.values()):
                raise BadInput(f"{name}={dict(weights)}: give numbers from 1 on, with their weights")
        numbers = {
            "rate": self.rate,
            "spread": self.spread,
            "unclean": self.unclean,
            "racks": self.racks,
            **self.per_day,
        }
        for name, value in numbers.items():
            if not isinstance(value, (int, float)) or not -1e9 <= value <= 1e9:
                raise BadInput(f"{name}={short(value)}: give a number")
        if self.rate < 0 or any(rate < 0 for rate in self.per_day.values()):
            raise BadInput("rates cannot be negative")
        if self.spread < 1:
            raise BadInput(f"spread={self.spread}: 1 for clusters that are all alike, or more")
        if self.racks < 1 or not 0 <= self.unclean <= 1:
            raise BadInput(f"racks={self.racks}, unclean={self.unclean}: at least 1, and a share from 0 to 1")


def short(value: object) -> str:
    """A value as an error shows it: a number of thousands of digits cannot even be printed."""
    try:
        shown = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return shown if len(shown) < 60 else f"{shown[:60]}..."


def check_hours(hours: object) -> None:
    """BadInput unless it is a number of hours that a cluster can live."""
    if not isinstance(hours, (int, float)) or isinstance(hours, bool) or not 0 < hours <= LONGEST_LIFE:
        raise BadInput(f"hours={short(hours)}: give a number above 0 and up to {LONGEST_LIFE:,}")


class Topic(NamedTuple):
    name: str
    partitions: int
    replication_factor: int
    unclean: bool = False


class Plan(NamedTuple):
    """What was drawn for one cluster: brokers and their racks, topics, and when each incident begins (seconds)."""

    brokers: tuple[tuple[int, str | None], ...]
    topics: tuple[Topic, ...]
    incidents: tuple[tuple[float, str], ...]


def plan(seed: int, hours: float = 24, workload: Workload | None = None) -> Plan:
    """Draw one cluster; the same seed gives the same cluster."""
    drawn = workload or Workload()
    check_hours(hours)
    rng = Random(f"cluster {seed}")
    size = log_uniform_int(rng, *drawn.brokers)
    racks = [f"rack-{n}" if drawn.racks > 1 else None for n in range(drawn.racks)]
    topics = tuple(
        Topic(
            f"topic-{n}",
            weighted(rng, drawn.partitions),
            min(size, weighted(rng, drawn.replication)),
            rng.random() < drawn.unclean,
        )
        for n in range(log_uniform_int(rng, *drawn.topics))
    )
    factor = log_uniform(Random(f"luck of cluster {seed}"), 1 / drawn.spread, drawn.spread)
    incidents: list[tuple[float, str]] = []
    for name, incident in INCIDENTS.items():
        rate = factor * drawn.rate * drawn.per_day.get(name, incident.per_day) * (size if incident.each_broker else 1)
        at = rng.expovariate(rate / DAY) if rate else math.inf
        while at < hours * HOUR:
            incidents.append((at, name))
            at += rng.expovariate(rate / DAY)
    return Plan(tuple((id, racks[id % len(racks)]) for id in range(1, size + 1)), topics, tuple(sorted(incidents)))


def play(lab: Lab, plan: Plan, seed: int, hours: float) -> None:
    """Let the plan happen to a lab of its brokers, for `hours` of the lab's time.

    Incidents overlap as they come; one that finds no broker to act on does nothing, and one that the lab refuses, as a
    paused broker cannot be shut down, ends there. A controlled shutdown lets time pass by itself, so what falls due
    meanwhile happens right after it.
    """
    for topic in plan.topics:
        config = {"unclean.leader.election.enable": True} if topic.unclean else {}
        lab.create_topic(topic.name, topic.partitions, topic.replication_factor, config=config)
    turn = count()
    agenda = [
        (at, next(turn), INCIDENTS[name].happen(lab, Random(f"{name} {n} of cluster {seed}")))
        for n, (at, name) in enumerate(plan.incidents)
    ]
    heapq.heapify(agenda)
    end = hours * HOUR
    while agenda and agenda[0][0] < end:
        at, _, incident = heapq.heappop(agenda)
        pass_until(lab, at)
        wait = None
        with suppress(BadInput):
            wait = next(incident, None)
        if wait is not None:
            heapq.heappush(agenda, (lab.now + wait, next(turn), incident))
    pass_until(lab, end)


def simulate(
    seed: int, hours: float = 24, generation: str | Generation = "2.0", workload: Workload | None = None
) -> Trace:
    """Run one simulated cluster and return its trace; `seed` decides everything."""
    from kafka_ctl.lab.lab import Lab

    drawn, config = plan(seed, hours, workload), workload.config if workload else {}
    with Lab(brokers=dict(drawn.brokers), generation=generation, seed=seed, config=config) as lab:
        play(lab, drawn, seed, hours)
        return lab.trace


def pass_until(lab: Lab, second: float) -> None:
    """Let time pass; the lab may be later already."""
    if (left := second - lab.now) > 0:
        lab.run_for(seconds=left)


def log_uniform_int(rng: Random, low: int, high: int) -> int:
    return min(high, int(log_uniform(rng, low, high + 1)))


def weighted(rng: Random, weights: Mapping[int, float]) -> int:
    return rng.choices(list(weights), list(weights.values()))[0]
