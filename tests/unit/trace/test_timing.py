"""What a controller did after a moment, as times, and several runs beside each other."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any
from xml.etree import ElementTree

import pytest
from labs import until_quiet
from prose import Prose, refuses

from kafka_ctl import BadInput, Costs, Generation, Lab
from kafka_ctl.trace.timing import Timing, timing
from kafka_ctl_course.figures.lanes import lanes

QUEUE = Generation("2.0").but(pipelined=False)


def killed(generation: str | Generation, partitions: int = 120) -> Timing:
    """A broker that leads a quarter of the partitions dies."""
    with Lab(
        brokers=4,
        generation=generation,
        seed=7,
        costs=Costs(boot=0.0005, zookeeper_tick=0),
        config={"auto.leader.rebalance.enable": False},
    ) as lab:
        until_quiet(lab.create_topic, "orders", partitions=partitions, replication_factor=3)
        start = len(lab.trace)
        until_quiet(lab.kill, 1)
        return timing(lab.trace, "expired", start)


@pytest.mark.parametrize(
    ("generation", "known", "done"), [("0.10", 13.5, 43.7), (QUEUE, 13.5, 43.7), ("2.0", 2.3, 5.5)]
)
def test_the_same_work_waits_for_less(generation: str | Generation, known: float, done: float) -> None:
    """As many operations, elections and requests; a queue alone is as fast as a lock."""
    found = killed(generation)
    assert (len(found.operations), len(found.elections), len(found.requests)) == (214, 30, 12)
    assert {round(ms, 1) for ms in found.leaders.values()} == {known} and round(found.done, 1) == done
    assert len(found.leaders) == 30 and min(found.operations) >= 0
    assert all(0 < answered - sent < 3 for sent, answered in found.requests)


def test_a_moment_that_is_not_there_is_an_error(prose: Prose) -> None:
    with Lab() as lab:
        refuses(BadInput, "'expired'", timing, lab.trace, "expired")
        for broker in lab.brokers:
            lab.kill(broker)
        lab.settle()
        prose.refuses(BadInput, timing, lab.trace, "expired", lab.trace.slice(action="expired")[-1].seq)


def test_lanes_have_one_zero(prose: Prose) -> None:
    """A lane for each run; where ten operations share a round trip, strokes are fewer and higher."""
    runs = {"0.10": killed("0.10", 12), "2.0": killed("2.0", 12)}
    drawing = lanes(runs)
    ElementTree.fromstring(drawing.svg)
    assert repr(drawing).splitlines() == [f"{name}: {run}" for name, run in runs.items()]
    assert "3 elections" in repr(drawing) and "leaders known 1.4 ms" in repr(drawing)
    assert drawing.svg.count("v-5.5") > 20 and drawing.svg.count("<circle") == 3 + 1
    assert lanes(runs, until=1).svg.count("<circle") < 4
    prose.refuses(BadInput, lanes, {})


def test_a_run_without_a_new_leader_says_so() -> None:
    nothing = Timing(0.0, (), (), (), {}, 0.0)
    assert "no new leader" in str(nothing) and "no new leader" in repr(lanes({"quiet": nothing}))


def calls(act: Callable[[], object]) -> int:
    """How many functions are called by something: its work, whatever else the machine does."""
    count = 0

    def called(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def death_and_return(generation: str, partitions: int) -> tuple[float, float]:
    """Calls for each partition as a broker dies, and as it returns."""
    with Lab(brokers=3, generation=generation, seed=1) as lab:
        until_quiet(lab.create_topic, "orders", partitions, 3)
        broker = next(id for id in lab.brokers if id != lab.controller.id)
        kill, start = partial(lab.kill, broker), partial(lab.start, broker)
        died, back = (calls(act) + calls(lab.settle) for act in (kill, start))
        return died / partitions, back / partitions


def test_a_return_is_work_for_each_partition_as_a_death_is(generation: str) -> None:
    """However many there are: four times as many cost four times as much."""
    few, many = (death_and_return(generation, partitions) for partitions in (60, 240))
    assert many[0] < 1.05 * few[0] and many[1] < 1.05 * few[1], (few, many)
    assert many[1] < 1.5 * many[0], many
