"""The grid of brokers and partitions: who is preferred, who leads now, what is counted."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kafka_ctl import BadInput, Costs, Lab
from kafka_ctl.assignment import assign
from kafka_ctl.views.placement import grid, placement


def test_a_grid_has_a_row_for_each_broker_and_a_column_for_each_partition() -> None:
    drawing = grid({0: [1, 2], 1: [2, 3]}, racks={1: "a", 2: "b", 3: "a", 4: None})
    assert repr(drawing).splitlines() == [
        "4: ..  leads 0, holds 0",
        "1 (a): P.  leads 1, holds 1",
        "3 (a): .o  leads 0, holds 1",
        "2 (b): oP  leads 1, holds 2",
        "each broker that runs leads 0 to 1 partitions and holds 0 to 2 replicas",
    ]
    ElementTree.fromstring(drawing.svg)


def test_who_leads_instead_of_a_dead_preferred_leader() -> None:
    """And what nobody leads is said."""
    with Lab(brokers=3, seed=7, costs=Costs(boot=0.0005)) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [1, 3]})
        lab.lag(3, "orders", 1)
        lab.settle()
        lab.kill(1)
        lab.settle()
        lines = repr(placement(lab, "orders")).splitlines()
        assert lines[0] == "1 down: PP  leads 0, holds 2" and lines[1] == "2: *.  leads 1, holds 1"
        assert lines[-1].endswith("; 1 without a leader")
        with pytest.raises(BadInput, match="no topic 'order'; there are orders"):
            placement(lab, "order")


@pytest.mark.parametrize("number", [0, 61])
def test_a_grid_has_a_limit(number: int) -> None:
    with pytest.raises(BadInput, match=f"these are {number}"):
        grid(assign(range(3), number, 2) if number else {})
