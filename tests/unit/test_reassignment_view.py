"""The twelve steps of a reassignment, found in the trace, with what was stored after each."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from prose import Prose

from kafka_ctl import BadInput, Costs, Lab
from kafka_ctl.views.figures.reassignment import reassignment, steps


def moved(new: list[int], generation: str = "2.0") -> Lab:
    lab = Lab(brokers=6, seed=7, generation=generation, costs=Costs(boot=0.0005))
    lab.create_topic("orders", assignment={0: [1, 2, 3]})
    lab.settle()
    lab.reassign({("orders", 0): new}, through="zookeeper")
    return lab


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_twelve_steps_in_order(generation: str) -> None:
    with moved([2, 3, 4], generation) as lab:
        lab.settle()
        assert [step.number for step in steps(lab, "orders", 0)] == list(range(1, 13))
        text = repr(reassignment(lab, "orders", 0)).splitlines()
        reported = [line.split("AR ")[-1].split() for line in text]
        assert [row[2] for row in reported[2:4]] == ["1,2,3", "1,2,3,4"]
        assert [row[6] for row in reported] == list("0111112333333")
        assert [row[4] for row in reported] == ["1"] * 6 + ["2"] * 7
        assert [row[-1] for row in reported[-2:]] == ["1,2,3,4", "2,3,4"]
        ElementTree.fromstring(reassignment(lab, "orders", 0).svg)


@pytest.mark.parametrize(
    ("new", "left_out"),
    [([1, 2, 3, 4], {8, 9}), ([1, 2], {1, 2, 3, 4}), ([3, 2, 1], {1, 2, 3, 4, 8, 9}), ([4, 5, 6], set())],
)
def test_steps_that_a_move_does_not_need(new: list[int], left_out: set[int]) -> None:
    """Who adds nobody begins with step 5, who removes nobody leaves out 8 and 9."""
    with moved(new) as lab:
        lab.settle()
        assert {*range(1, 13)} - {step.number for step in steps(lab, "orders", 0)} == left_out


def test_a_move_that_waits() -> None:
    with moved([2, 3, 4]) as lab:
        lab.run_for(0.1)
        assert [step.number for step in steps(lab, "orders", 0)] == [1, 2, 3]
        assert "now: step 4 waits" in repr(reassignment(lab, "orders", 0))


def test_where_there_are_no_such_steps(prose: Prose) -> None:
    with moved([2, 3, 4], "2.4") as lab, prose.refused(BadInput):
        steps(lab, "orders", 0)
    with moved([2, 3, 4]) as lab, prose.refused(BadInput):
        steps(lab, "orders", 0, start=len(lab.trace))
