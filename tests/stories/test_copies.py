"""Who holds which copy of a partition's leader, and what became of the museum's bugs with KRaft."""

from __future__ import annotations

import pytest
from labs import until_quiet

from kafka_ctl import BadInput, Costs, Lab, UnknownName
from kafka_ctl.museum import EXHIBITS
from kafka_ctl_course.figures.copies import Moment, as_one_log, copies_over_time, moment, moments
from kafka_ctl_course.kraft import KRAFT, SHELVES, shelf


def after(command: str) -> list[Moment]:
    """The moments of orders-0 around a failure; broker 4 is the controller."""
    config = {"auto.leader.rebalance.enable": False}
    lab = Lab(brokers=4, seed=7, costs=Costs(boot=0.0005, zookeeper_tick=0), config=config)
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    lab.do(command)
    lab.run_for(5.99)
    return moments(lab, "orders", 0, steps=150)


def test_copies_change_one_after_the_other() -> None:
    """ZooKeeper first, then the controller's, then each broker's; those who are down hold nothing."""
    found = after("kill 1")
    assert [each.agree for each in found] == [True, False, False, False, False, True]
    assert list(found[1].copies) == ["ZooKeeper", "controller", "broker 2", "broker 3", "broker 4"]
    newest = (2, (2, 3), 1)
    changed = [[holder for holder, copy in each.copies.items() if copy == newest] for each in found]
    assert changed[1:3] == [["ZooKeeper"], ["ZooKeeper", "controller"]] and len(changed[-1]) == 5


def test_who_holds_nothing_contradicts_nobody() -> None:
    found = after("kill 4")
    assert any(each.copies["controller"] is None and each.agree for each in found)
    assert "controller -" in repr(copies_over_time(found))


def test_pictures_say_who_differs() -> None:
    found = after("kill 1")
    assert repr(copies_over_time(found)).splitlines()[1].count("(!)") == 4
    drawn = as_one_log(found, at=2)
    assert "drawn, not simulated" in drawn.svg and repr(drawn).splitlines()[0] == "controller has read 2 of 2"
    assert "broker 3 has read 1 of 2" in repr(drawn)
    for draw in (copies_over_time, as_one_log):
        with pytest.raises(BadInput, match="no moment"):
            draw([])
    with Lab() as lab, pytest.raises(UnknownName):
        moment(lab, "none", 0)


def test_every_exhibit_stands_on_a_shelf() -> None:
    assert list(KRAFT) == [exhibit.name for exhibit in EXHIBITS]
    assert {entry.shelf for entry in KRAFT.values()} == set(SHELVES)
    assert all(entry.source for entry in KRAFT.values() if entry.shelf == "kind")
    with pytest.raises(UnknownName, match="KAFKA-1"):
        shelf("KAFKA-1")
