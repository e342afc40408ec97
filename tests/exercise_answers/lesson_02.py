"""Right and wrong answers to the exercises of lesson 02."""

from __future__ import annotations

from typing import Any

from kafka_ctl.cluster import TopicPartition

ORDERS = TopicPartition("orders", 0)


STATE = "/brokers/topics/orders/partitions/0/state"


FIRST = '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'


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


RIGHT: dict[str, list[Any]] = {
    "02.1": [(3, 6), [3, 6]],
    "02.2": [stale, stale_by_epoch],
    "02.3": ["""elect_preferred '["orders-0"]'""", "bounce 1", "kill 2"],
    "02.4": ["introduces_brokers_first", {"introduces_brokers_first": True}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "02.1": [
        ((4, 6), "Four counts replicas"),
        ((2, 6), "Two counts partitions"),
        ((3, 3), "Clients may ask brokers 4 to 6"),
        ((6, 6), "hold no replica"),
        ((3, 12), "carries both partitions"),
        ((3, 7), "Look again at: UpdateMetadata"),
    ],
    "02.2": [
        (dead_too, "It is down: no client gets an answer"),
        (by_what_they_do, "which is in its metadata, not what it *does*"),
        (by_each_other, "all brokers agree with each other"),
        (by_who_leads, "who really leads is not asked"),
        (without_asking, "raised KeyError"),
        (unknown_too, "It has just started and names no leader"),
        (lambda lab: sorted(stale(lab)), "a set of broker ids is expected"),
    ],
    "02.3": [
        (f"write_znode {STATE} '{FIRST}'", "nobody has read it"),
        ("delete_controller", "leader epoch 0 once more"),
        ("bounce 2", "both lead with epoch 0"),
        ("bounce 4", "no election was necessary"),
        ("create_topic more partitions=1", "Nothing was sent about orders-0"),
        ("add_broker 9", "the same metadata as all the others"),
    ],
    "02.4": [
        ("metadata_to_all_on_broker_change", "`metadata_to_all_on_broker_change` is about something else"),
        ("checks_controller_epoch", "`checks_controller_epoch` is about something else"),
        ("groups_stop_replica", "`groups_stop_replica` is about something else"),
        ("fences_writes", "`fences_writes` is about something else"),
    ],
}
