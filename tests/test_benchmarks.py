"""What the benchmarks claim, at sizes that take no time, and on the virtual clock only."""

from __future__ import annotations

import pytest

from benchmarks.controller import TASKS, cost, trips_a_partition
from benchmarks.mutants import busy, caught, figure, played
from kafka_ctl import Generation
from kafka_ctl.lab.mutants import MUTANTS


@pytest.mark.parametrize(
    ("generation", "trips"),
    [
        (Generation("0.10"), 2.0),
        (Generation("2.0"), 0.2),
        (Generation("2.4"), 0.2),
        (Generation("2.0").but(pipelined=False), 2.0),  # KAFKA-5642 alone makes the difference
    ],
    ids=str,
)
def test_controlled_shutdown_climbs_the_published_ladder(generation: Generation, trips: float) -> None:
    """One at a time it grows by two round trips a partition, with ten in flight by a fifth of one."""
    assert trips_a_partition(generation, 30, 180) == pytest.approx(trips, abs=0.01)


@pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])
def test_the_tasks_need_the_operations_that_the_source_says(generation: str) -> None:
    """L partitions led and F followed: 3L + 2F for a failure, 2L + 2F for a shutdown; one read each, at least, for
    a new controller."""
    failure, failover, shutdown = (cost(task, generation, 60).operations for task in TASKS)
    led, followed = 20, 40
    assert 3 * led + 2 * followed <= failure <= 3 * led + 2 * followed + 10
    assert 2 * led + 2 * followed <= shutdown <= 2 * led + 2 * followed + 20
    assert failover >= led + followed + 2 * led


@pytest.mark.parametrize("name", ["sent-is-received", "followers-untold", "newest-first"])
def test_random_walks_notice_a_mutant(name: str) -> None:
    """After the same number of steps each time; and nothing is wrong with the walk itself."""
    chosen = MUTANTS[name]
    steps = caught(chosen, 3)
    assert steps is not None
    assert 0 < steps == caught(chosen, 3)
    assert played(busy(chosen.generation, 3), chosen.invariant, None)[0] is None
    assert figure(name, 2).beside.startswith("caught with 2 of 2 seeds: ")
