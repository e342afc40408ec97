"""The picture of a deletion: ZooKeeper, the controller's memory and the disks, and where they differ."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from prose import Prose

from kafka_ctl import Costs, Lab
from kafka_ctl.views.figures.deletion import deletion, facts


@pytest.fixture
def stuck() -> Lab:
    """Broker 1 is down with five records of a topic that is to be deleted."""
    lab = Lab(brokers=3, seed=7, costs=Costs(boot=0.0005))
    lab.create_topic("orders", assignment={0: [1, 2, 3]})
    lab.settle()
    lab.produce("orders", 0, records=5)
    lab.kill(1)
    lab.settle()
    lab.delete_topic("orders")
    lab.settle()
    return lab


def test_three_places_of_a_deletion(prose: Prose, stuck: Lab) -> None:
    drawing = deletion(stuck, "orders")
    prose(repr(drawing))
    ElementTree.fromstring(drawing.svg)


def test_a_request_that_only_the_controller_knows_is_marked(stuck: Lab) -> None:
    """Its memory is no znode."""
    stuck.delete_znode("/admin/delete_topics/orders")
    stuck.settle()
    memory = stuck.controller_memory()
    assert memory is not None and memory.deleting == ("orders",)
    assert "memory: yes (!)" in repr(deletion(stuck, "orders"))
    stuck.start(1)
    stuck.settle()
    assert facts(stuck, "orders") == (False, False, False, ())
    assert repr(deletion(stuck, "orders")).endswith("no replica, no copy")


def test_without_a_controller_there_is_no_memory(prose: Prose, stuck: Lab) -> None:
    for broker in (2, 3):
        stuck.kill(broker)
    stuck.settle()
    assert stuck.controller_memory() is None
    prose(repr(deletion(stuck, "orders")))
