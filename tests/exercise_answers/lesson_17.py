"""The bug museum."""

from __future__ import annotations

from typing import Any

from kafka_ctl import Lab
from kafka_ctl_course.lesson_17 import unaware


def by_loops(lab: Lab) -> list:
    found = []
    for p in lab.partitions():
        view = lab.brokers.get(p.leader)
        if view is not None and view.state == "running" and (p.topic, p.partition) not in view.leads:
            found.append((p.topic, p.partition))
    return found


def from_metadata(lab: Lab) -> list:
    return [
        p[:2]
        for p in lab.partitions()
        if (view := lab.brokers.get(p.leader)) is not None
        and view.state == "running"
        and p[:2] in view.metadata
        and view.metadata[p[:2]].leader != p.leader
    ]


def with_the_dead(lab: Lab) -> list:
    return [p[:2] for p in lab.partitions() if p.leader >= 0 and p[:2] not in lab.brokers[p.leader].leads]


def with_nobody(lab: Lab) -> list:
    return [*unaware(lab), *(p[:2] for p in lab.partitions() if p.leader < 0)]


RIGHT: dict[str, list[Any]] = {"17.3": [unaware, by_loops]}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "17.3": [
        (from_metadata, "Its `metadata`, which names all leaders"),
        (with_the_dead, "It is not unaware"),
        (lambda lab: [], "you return []. There are more"),
        (lambda lab: [("orders", 7)], "you return [('orders', 7)]. There is no partition"),
        (with_nobody, "has no leader in ZooKeeper: that is known"),
        (lambda lab: [p[:2] for p in lab.partitions()], "does lead orders-0"),
        (lambda lab: [f"{p.topic}-{p.partition}" for p in lab.partitions()], "A list of pairs is asked for"),
    ]
}
