"""How soon each invariant notices its mutant: steps (records) of random walks until it is broken, median of 20 seeds.

A seed's walks are played one after the other until one breaks the invariant; their steps are added up. What a walk
breaks without the defect as well does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from random import Random

from benchmarks.figures import Figure
from kafka_ctl.errors import BadInput, NotReached, Unavailable
from kafka_ctl.explore.search import cores
from kafka_ctl.explore.walk import Walk, walk
from kafka_ctl.lab import story
from kafka_ctl.lab.invariants import Violation
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.mutants import MUTANTS, Mutant, mutant
from kafka_ctl.lab.story import Command

SEEDS, WALKS, MOST = 20, 200, 10_000
"""Seeds, the most walks that are played for one of them, and the most steps of one command."""


def played(wanted: Walk, invariant: str, defect: str | None) -> tuple[Violation | None, int]:
    """The first violation of the invariant in a walk, if any, and the steps up to it or to the walk's end.

    A defect may also make actors crash, or a cluster never come to rest: the walk then ends there.
    """
    with ExitStack() as stack:
        if defect is not None:
            stack.enter_context(mutant(defect))
        lab = stack.enter_context(Lab(**story.opening(wanted.opening)))
        clock, records, violations = lab._world.clock, lab.trace.records, lab._world.checker.violations  # type: ignore[attr-defined]
        for line in wanted.commands:
            most = len(records) + MOST
            clock.halt = lambda most=most: len(records) > most or any(v.invariant == invariant for v in violations)
            with suppress(BadInput, NotReached, Unavailable):
                lab.do(line)
            clock.halt = None
            found = next((v for v in violations if v.invariant == invariant), None)
            if found is not None or len(records) > most:
                return found, found.seq if found else len(records)
        return None, len(records)


def busy(generation: str, seed: int) -> Walk:
    """The explorer's walk of a seed in a cluster that is in use.

    There are topics, somebody produces often, leaderships are rebalanced every 10 s, and `/controller` is deleted while
    its owner is cut off from ZooKeeper, so that two believe to be it.
    """
    wanted, rng = walk(generation, seed), Random(seed)
    brokers = len(wanted.opening.kwargs["brokers"])
    commands = [Command("create_topic", (topic,), {"partitions": 2, "replication_factor": brokers}) for topic in "ab"]
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


def caught(chosen: Mutant, seed: int) -> int | None:
    """The steps until the invariant notices its mutant; None if it does not."""
    steps = 0
    for number in range(WALKS):
        wanted = busy(chosen.generation, seed * WALKS + number)
        found, taken = played(wanted, chosen.invariant, chosen.name)
        steps += taken
        if found is not None:
            sound = played(wanted, chosen.invariant, None)[0] if found.known else None
            if sound is None or sound.seq > found.seq:
                return steps
    return None


def figure(name: str, seeds: int = SEEDS) -> Figure:
    """The median number of steps until a mutant is noticed, and with how many seeds it is."""
    chosen = MUTANTS[name]
    taken = [caught(chosen, seed) for seed in range(seeds)]
    numbers = [steps for steps in taken if steps is not None]
    told = f"{statistics.median(numbers):,.0f} steps" if numbers else "never"
    return Figure(f"{chosen.invariant} {name}", told, f"caught with {len(numbers)} of {seeds} seeds: {chosen.sentence}")


def measure() -> Iterator[Figure]:
    with get_context("spawn").Pool(cores()) as pool:
        yield from sorted(pool.imap_unordered(figure, MUTANTS), key=lambda row: int(row.name.split()[0][1:]))
