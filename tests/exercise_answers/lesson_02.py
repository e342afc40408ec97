"""Right and wrong answers to the exercises of lesson 02."""

from __future__ import annotations

from typing import Any

from kafka_ctl.cluster import TopicPartition

ORDERS = TopicPartition("orders", 0)


def up(lab: Any) -> dict[int, Any]:
    return {id: view for id, view in lab.brokers.items() if view.state != "down"}


def names(view: Any) -> Any:
    return view.metadata[ORDERS].leader if ORDERS in view.metadata else None


def stale(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if names(view) not in (None, stored)}


def stale_by_epoch(lab: Any) -> set[int]:
    """The same by leader and leader epoch."""
    stored, found = lab.partition("orders", 0), set()
    for id, view in up(lab).items():
        known = view.metadata.get(ORDERS)
        if known and (known.leader, known.leader_epoch) != (stored.leader, stored.leader_epoch):
            found.add(id)
    return found


def dead_too(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in lab.brokers.items() if names(view) not in (None, stored)}


def by_what_they_do(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if ORDERS in view.leads and id != stored}


def by_each_other(lab: Any) -> set[int]:
    reported = [names(view) for view in up(lab).values()]
    return {id for id, view in up(lab).items() if names(view) not in (None, max(reported, key=reported.count))}


def by_who_leads(lab: Any) -> set[int]:
    leading = next((id for id, view in up(lab).items() if ORDERS in view.leads), names(lab.brokers[2]))
    return {id for id, view in up(lab).items() if names(view) not in (None, leading)}


def without_asking(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if view.metadata[ORDERS].leader != stored}


def unknown_too(lab: Any) -> set[int]:
    stored = lab.partition("orders", 0).leader
    return {id for id, view in up(lab).items() if names(view) != stored}


RIGHT: dict[str, list[Any]] = {"02.2": [stale, stale_by_epoch, lambda lab: sorted(stale(lab))]}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "02.2": [
        (dead_too, "It is down: no client gets an answer"),
        (by_what_they_do, "to clients (its `metadata`)"),
        (by_each_other, "all brokers agree with each other"),
        (by_who_leads, "which broker really leads is not asked"),
        (without_asking, "raised KeyError"),
        (unknown_too, "It has just started and names no leader"),
        (lambda lab: (stale(lab) and lab.settle()) or set(), "your function changed the cluster"),
        (lambda lab: {str(id) for id in stale(lab)} or {"none"}, "a set of broker ids is expected"),
        (lambda lab: {*stale(lab), 99}, "a set of broker ids is expected: 99 is none"),
    ]
}
