"""The grid of brokers and partitions: who is preferred, who leads now, what is counted."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from prose import Prose

from kafka_ctl import BadInput, Costs, Lab, UnknownName
from kafka_ctl.assignment import assign
from kafka_ctl.views.figures.placement import grid, placement


def test_a_grid_has_a_row_for_each_broker_and_a_column_for_each_partition(prose: Prose) -> None:
    drawing = grid({0: [1, 2], 1: [2, 3]}, racks={1: "a", 2: "b", 3: "a", 4: None})
    prose(repr(drawing))
    ElementTree.fromstring(drawing.svg)


def test_who_leads_instead_of_a_dead_preferred_leader(prose: Prose) -> None:
    """And what nobody leads is said."""
    with Lab(brokers=3, seed=7, costs=Costs(boot=0.0005)) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [1, 3]})
        lab.lag(3, "orders", 1)
        lab.settle()
        lab.kill(1)
        lab.settle()
        prose(repr(placement(lab, "orders")))
        with prose.refused(UnknownName):
            placement(lab, "order")


@pytest.mark.parametrize("number", [0, 61])
def test_a_grid_has_a_limit(prose: Prose, number: int) -> None:
    with prose.refused(BadInput):
        grid(assign(range(3), number, 2) if number else {})
