"""The bug museum."""

from __future__ import annotations

from typing import Any

from kafka_ctl import Lab
from kafka_ctl.exercises.lesson_18 import unaware

ONE = """create_topic orders assignment='{"0":[2]}'\nsettle\n"""
BROKEN_BY_HAND = (
    """write_znode /brokers/topics/orders/partitions/0/state '{"controller_epoch":1,"leader":3,"version":1,"""
    """"leader_epoch":1,"isr":[3]}'\nsettle\n"""
)


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


def everything(lab: Lab) -> list:
    return [p[:2] for p in lab.partitions()]


RIGHT: dict[str, list[Any]] = {
    "18.1": [(1, 0), [1, 0]],
    "18.2": ["shutdown_prefers_order", {"shutdown_prefers_order": True}],
    "18.3": [unaware, by_loops],
    "18.4": [ONE + "kill 2\nsettle\n", ONE + "shutdown 2\nsettle\n"],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "18.1": [
        ((0, 1), "mixed up"),
        ((1, 1), "So it would be without the bug"),
        ((0, 0), "at its first step"),
        ((2, 0), "Look again at: the epoch in ZooKeeper"),
    ],
    "18.2": [
        ("fences_writes", "fail once another has been elected"),
        ("broker_epochs", "each life of a broker"),
        ("clears_batches", "`clears_batches` is about something else"),
        ("accepts_own_isr", "`accepts_own_isr` is about something else"),
    ],
    "18.3": [
        (from_metadata, "What a broker knows of others"),
        (with_the_dead, "It is not unaware"),
        (with_nobody, "that is known, not a leader on paper"),
        (everything, "does lead orders-0"),
        (lambda lab: [f"{p.topic}-{p.partition}" for p in lab.partitions()], "A list of pairs is asked for"),
    ],
    "18.4": [
        ("create_topic orders partitions=1 replication_factor=3\nsettle\nkill 2\nsettle", "another member of its ISR"),
        (ONE + "delete_controller\nsettle", "No replica went Offline in it"),
        (ONE + BROKEN_BY_HAND, "with the fix, too"),
        ("kill 1\nkill 2\nkill 3\nstart 1\nstart 2\nsettle", "These are 5 commands"),
        ("kill 9", "The story cannot be played"),
        (["kill 1"], "is no story"),
    ],
}
