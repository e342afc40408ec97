"""The speed of the search for violations, on all cores: steps and commands of random walks, states of every order."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from kafka_ctl.explore.exhaustive import exhaust
from kafka_ctl.explore.search import cores, search
from kafka_ctl.generation import GENERATIONS

SECONDS, JOBS = 10.0, cores()
QUICK = {"SECONDS": 0.2, "JOBS": 1}


def measure() -> Iterator[Figure]:
    where = f"{JOBS} cores, {SECONDS:g} s"
    for generation in GENERATIONS:
        found = search(generation, seconds=SECONDS, jobs=JOBS)
        rate = found.steps / found.seconds
        commands = f"{found.walks:,} walks, {found.commands / found.seconds:,.0f} commands and faults a second; {where}"
        yield Figure(f"random walks, Kafka {generation}", f"{rate:,.0f} steps/s", commands)
    seen = exhaust("2.4", depth=4, seconds=SECONDS, jobs=JOBS)
    tried = sum(each.seen.paths for each in seen.rounds)
    paths = f"{tried / seen.seconds:,.0f} paths a second; {where}"
    yield Figure("every order, 2 brokers, 1 partition", f"{seen.states / seen.seconds:,.0f} states/s", paths)
