"""The simulated clusters: their brokers and topics, the `INCIDENTS` that happen to them, and how often each comes.

An incident is a generator: it acts on the lab, and yields the seconds that shall pass before it continues. A new kind
of incident is one such function and one row in the table at the end.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.history.limits import LONGEST_LIFE

if TYPE_CHECKING:
    from kafka_ctl.generation import Generation
    from kafka_ctl.lab.lab import Lab
    from kafka_ctl.trace import Trace

HOUR, DAY = 3600.0, 86400.0


@dataclass(frozen=True)
class Workload:
    """The distribution from which clusters are drawn."""

    brokers: tuple[int, int] = (3, 9)
    """Fewest and most brokers; small clusters are more frequent (the logarithm is uniform)."""
    racks: int = 3
    """Racks over which the brokers are spread evenly; 1 means no racks."""
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
        for name in ("partitions", "replication", "per_day", "config"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise BadInput(f"{name}={short(value)}: give a mapping from keys to values")
        for name in self.per_day:
            if name not in INCIDENTS:
                raise UnknownName("incident", name, INCIDENTS)
        for name in ("brokers", "topics"):
            value = getattr(self, name)
            if not isinstance(value, Sequence) or [*map(type, value)] != [int, int]:
                raise BadInput(f"{name}={short(value)}: give the smallest and the largest as whole numbers")
            if not 1 <= value[0] <= value[1]:
                raise BadInput(f"{name}={value}: give the smallest number, at least 1, and then the largest")
        for name in ("partitions", "replication"):
            weights = getattr(self, name)
            are_right = (type(n) is int and n >= 1 and _is_number(w) and w >= 0 for n, w in weights.items())
            if not all(are_right) or not sum(weights.values()):
                raise BadInput(
                    f"{name}={short(weights)}: give whole numbers of at least 1, with weights of at least 0, not all 0"
                )
        numbers = {name: getattr(self, name) for name in ("rate", "spread", "unclean", "racks")}
        for name, value in {**numbers, **self.per_day}.items():
            if not _is_number(value):
                raise BadInput(f"{name}={short(value)}: give a number")
        if not isinstance(self.racks, int):
            raise BadInput(f"racks={self.racks}: give a whole number")
        if self.rate < 0 or any(rate < 0 for rate in self.per_day.values()):
            raise BadInput("a rate is negative; rates must be 0 or more")
        if self.spread < 1:
            raise BadInput(f"spread={self.spread}: give a number of at least 1; with 1 all clusters are alike")
        if self.racks < 1 or not 0 <= self.unclean <= 1:
            raise BadInput(
                f"racks={self.racks}, unclean={self.unclean}: racks must be at least 1, and unclean a share from 0 to 1"
            )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e9 <= value <= 1e9


def check_hours(hours: object) -> None:
    """Raise BadInput unless it is a number of hours that a cluster can live."""
    if not _is_number(hours) or not 0 < hours <= LONGEST_LIFE:
        raise BadInput(f"hours={short(hours)}: give a number above 0 and up to {LONGEST_LIFE:,}")


class Topic(NamedTuple):
    name: str
    partitions: int
    replication_factor: int
    unclean: bool = False


class Plan(NamedTuple):
    """The draw of one cluster: brokers and their racks, topics, and the beginning of each incident (seconds)."""

    brokers: tuple[tuple[int, str | None], ...]
    topics: tuple[Topic, ...]
    incidents: tuple[tuple[float, str], ...]


def plan(seed: int, hours: float = 24, workload: Workload | None = None) -> Plan:
    """Draw one cluster; the same seed gives the same cluster."""
    drawn = Workload() if workload is None else workload
    if not isinstance(drawn, Workload):
        raise BadInput(f"workload={short(workload)}: give a Workload")
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
    from kafka_ctl.lab.recorded_run import rarely_collected

    drawn, config = plan(seed, hours, workload), workload.config if workload else {}
    with rarely_collected(), Lab(dict(drawn.brokers), generation, seed, config=config) as lab:
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


MINUTE = 60.0


class FaultKind(NamedTuple):
    """One row of `INCIDENTS`: how often a day it comes, to each broker or to the cluster, and what happens."""

    per_day: float
    each_broker: bool
    happen: Callable[[Lab, Random], Iterator[float]]


# Brokers that leave


def rolling_restart(lab: Lab, rng: Random) -> Iterator[float]:
    """Every running broker in turn: controlled shutdown, back after 30 to 120 s, then time to catch up."""
    for broker in running(lab):
        if broker in running(lab):
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


def quick_restart(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker stops without asking and is back at once, so that the controller may not see it gone."""
    if broker := pick(lab, rng):
        lab.bounce(broker)
    yield 0.0


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


def rack_failure(lab: Lab, rng: Random) -> Iterator[float]:
    """All brokers of one rack die at once and come back together after 2 to 60 minutes."""
    up = running(lab)
    if not up:
        return
    rack = rng.choice(sorted({lab.brokers[broker].rack or "" for broker in up}))
    dying = [broker for broker in up if (lab.brokers[broker].rack or "") == rack]
    if len(dying) < len(up):
        for broker in dying:
            lab.kill(broker)
        yield log_uniform(rng, 2, 60) * MINUTE
        for broker in dying:
            lab.start(broker)


def session_expiry(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker's ZooKeeper session expires; the broker itself goes on and registers again."""
    if broker := pick(lab, rng):
        lab.expire_session(broker)
    yield 0.0


def gc_pause(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker stands still for 1 to 30 s, as in a garbage collection; ZooKeeper may take it for dead."""
    if broker := pick(lab, rng):
        lab.pause(broker, round(log_uniform(rng, 1, 30), 1))
    yield 0.0


def slow_follower(lab: Lab, rng: Random) -> Iterator[float]:
    """One replica falls behind, leaves the ISR, and catches up after 1 to 30 minutes."""
    following = [
        (broker, p.topic, p.partition)
        for p in lab.partitions()
        for broker in p.isr
        if broker != p.leader and broker in running(lab)
    ]
    if following:
        slow = rng.choice(following)
        lab.lag(*slow)
        yield log_uniform(rng, 1, 30) * MINUTE
        if slow[0] in running(lab):
            lab.catch_up(slow[0])


# Administrators: what Kafka refuses, as a second reassignment at the same time, is not done


def new_topic(lab: Lab, rng: Random) -> Iterator[float]:
    """Create a topic of 1 to 6 partitions."""
    with suppress(BadInput):
        copies = min(3, len(running(lab)))
        lab.create_topic(f"new-{rng.randrange(10**9)}", rng.randint(1, 6), copies)
    yield 0.0


def more_partitions(lab: Lab, rng: Random) -> Iterator[float]:
    """A topic gets up to four more partitions."""
    if topic := any_topic(lab, rng):
        partitions = sum(p.topic == topic for p in lab.partitions())
        with suppress(BadInput):
            lab.add_partitions(topic, partitions + rng.randint(1, 4))
    yield 0.0


def deletion(lab: Lab, rng: Random) -> Iterator[float]:
    """A topic is deleted; while one of its replicas is on a dead broker it has to wait."""
    if topic := any_topic(lab, rng):
        with suppress(BadInput):
            lab.delete_topic(topic)
    yield 0.0


def reassignment(lab: Lab, rng: Random) -> Iterator[float]:
    """Up to eight partitions of a topic move to other brokers."""
    if topic := any_topic(lab, rng):
        partitions = [p for p in lab.partitions() if p.topic == topic][:8]
        up = running(lab)
        moves = {
            (topic, p.partition): rng.sample(up, len(p.replicas)) for p in partitions if len(p.replicas) <= len(up)
        }
        with suppress(BadInput):
            lab.reassign(moves)
    yield 0.0


INCIDENTS: Mapping[str, FaultKind] = {
    "rolling_restart": FaultKind(0.5, False, rolling_restart),
    "restart": FaultKind(0.2, True, restart),
    "quick_restart": FaultKind(0.1, True, quick_restart),
    "crash": FaultKind(0.3, True, crash),
    "controller_crash": FaultKind(0.5, False, controller_crash),
    "rack_failure": FaultKind(0.1, False, rack_failure),
    "session_expiry": FaultKind(0.3, True, session_expiry),
    "slow_follower": FaultKind(0.5, True, slow_follower),
    "gc_pause": FaultKind(0.3, True, gc_pause),
    "new_topic": FaultKind(0.5, False, new_topic),
    "more_partitions": FaultKind(0.2, False, more_partitions),
    "deletion": FaultKind(0.3, False, deletion),
    "reassignment": FaultKind(0.5, False, reassignment),
}
"""The incidents and their rates. The rates are those of a bad month, so that a day shows something;
`Workload(rate=0.1)` is a cluster that is well looked after."""


def running(lab: Lab) -> list[int]:
    return sorted(id for id, broker in lab.brokers.items() if broker.state == RUNNING)


def pick(lab: Lab, rng: Random) -> int | None:
    """One of the running brokers, or None: the last one is left alone."""
    brokers = running(lab)
    return rng.choice(brokers) if len(brokers) > 1 else None


def any_topic(lab: Lab, rng: Random) -> str | None:
    topics = sorted({p.topic for p in lab.partitions()})
    return rng.choice(topics) if topics else None


def log_uniform(rng: Random, low: float, high: float) -> float:
    """A number between low and high, as likely to lie between 1 and 2 as between 10 and 20."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))
