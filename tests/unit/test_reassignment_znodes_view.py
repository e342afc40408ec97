"""The lists of a partition that moves, and the throttles, as they stand in ZooKeeper."""

from __future__ import annotations

from xml.etree import ElementTree

from kafka_ctl import Costs, Lab
from kafka_ctl.views.figures.reassignment_znodes import lists, settings, throttles


def moving(**options: object) -> Lab:
    """A move of orders-0 to 3, 4, 2 that waits for broker 4."""
    lab = Lab(brokers=4, seed=7, generation="2.4", costs=Costs(boot=0.0005))
    lab.create_topic("orders", assignment={0: [1, 2, 3]})
    lab.settle()
    lab.slow(4, 60)
    lab.execute_reassignment({("orders", 0): [3, 4, 2]}, **options)
    lab.run_for(1)
    return lab


def test_three_lists_and_what_follows_from_them() -> None:
    with moving() as lab:
        drawing = lists(lab, "orders", 0)
        assert repr(drawing).splitlines() == [
            "replicas: 3, 4, 2, 1",
            "adding_replicas: 4",
            "removing_replicas: 1",
            "origin = replicas - adding: 3, 2, 1",
            "target = replicas - removing: 3, 4, 2",
            "/admin/reassign_partitions: there; leader 1",
        ]
        ElementTree.fromstring(drawing.svg)
        lab.cancel_reassignment()
        assert "adding_replicas: none" in repr(lists(lab, "orders", 0))


def test_a_throttle_stays_until_it_is_verified() -> None:
    """Two rates on each of four brokers, two lists of the topic."""
    with moving(throttle=1000) as lab:
        assert len(settings(lab)) == 10 and settings(lab)[0].value == "1000"
        lab.run_for(100)
        assert lab.reassignments() == [] and "10 throttle settings" in repr(throttles(lab))
        ElementTree.fromstring(throttles(lab).svg)
        lab.verify_reassignment({("orders", 0): [3, 4, 2]})
        assert repr(throttles(lab)) == "0 throttle settings below /config"
