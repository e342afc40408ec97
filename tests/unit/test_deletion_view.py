"""The picture of a deletion: ZooKeeper, the controller's memory and the disks, and where they differ."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kafka_ctl import Costs, Lab
from kafka_ctl.views.deletion import deletion, facts


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


def test_three_places_of_a_deletion(stuck: Lab) -> None:
    drawing = deletion(stuck, "orders")
    assert repr(drawing).splitlines() == [
        "/admin/delete_topics/orders: yes",
        "to be deleted, in the controller's memory: yes",
        "/brokers/topics/orders: yes",
        "orders-0 on 1: down, OfflineReplica, disk: 5 records",
        "orders-0 on 2: up, ReplicaDeletionSuccessful, disk: deleted",
        "orders-0 on 3: up, ReplicaDeletionSuccessful, disk: deleted",
    ]
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


def test_without_a_controller_there_is_no_memory(stuck: Lab) -> None:
    for broker in (2, 3):
        stuck.kill(broker)
    stuck.settle()
    assert stuck.controller_memory() is None
    assert "memory: no controller" in repr(deletion(stuck, "orders"))
    assert "orders-0 on 1: down, unknown, disk: 5 records" in repr(deletion(stuck, "orders"))
