"""What happens to simulated clusters.

An incident is a generator: it acts on the lab and yields the seconds it wants to pass before it goes on. A new
kind of incident is one such function and one row in the table at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput

if TYPE_CHECKING:
    from kafka_ctl.lab.lab import Lab

MINUTE = 60.0


class Incident(NamedTuple):
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
    rack = rng.choice(sorted({lab.brokers[broker].rack or "" for broker in up}))
    dying = [broker for broker in up if (lab.brokers[broker].rack or "") == rack]
    if len(dying) < len(up):
        for broker in dying:
            lab.kill(broker)
        yield log_uniform(rng, 2, 60) * MINUTE
        for broker in dying:
            lab.start(broker)


def session_expiry(lab: Lab, rng: Random) -> Iterator[float]:
    """One broker's ZooKeeper session expires; the broker itself goes on and registers anew."""
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
    """Somebody creates a topic of 1 to 6 partitions."""
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


INCIDENTS: Mapping[str, Incident] = {
    "rolling_restart": Incident(0.5, False, rolling_restart),
    "restart": Incident(0.2, True, restart),
    "quick_restart": Incident(0.1, True, quick_restart),
    "crash": Incident(0.3, True, crash),
    "controller_crash": Incident(0.5, False, controller_crash),
    "rack_failure": Incident(0.1, False, rack_failure),
    "session_expiry": Incident(0.3, True, session_expiry),
    "slow_follower": Incident(0.5, True, slow_follower),
    "gc_pause": Incident(0.3, True, gc_pause),
    "new_topic": Incident(0.5, False, new_topic),
    "more_partitions": Incident(0.2, False, more_partitions),
    "deletion": Incident(0.3, False, deletion),
    "reassignment": Incident(0.5, False, reassignment),
}
"""What may happen to a cluster. The rates are those of a bad month, so that a day shows something;
`Workload(rate=0.1)` is a cluster that is well looked after."""


def running(lab: Lab) -> list[int]:
    return sorted(id for id, broker in lab.brokers.items() if broker.state == "running")


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
