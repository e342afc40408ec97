"""Right and wrong answers to the exercises of lesson 04."""

from __future__ import annotations

from typing import Any


def shrunk(leader: int, isr: tuple, gone: int) -> tuple:
    return (-1 if leader == gone else leader), ([r for r in isr if r != gone] or isr)


def with_index(leader: int, isr: tuple, gone: int) -> tuple:
    """The same, written otherwise."""
    members = list(isr)
    if len(members) > 1:
        members.remove(gone)
    return {gone: -1}.get(leader, leader), tuple(members)


RIGHT: dict[str, list[Any]] = {
    "04.1": [(2, 2, 2), [2, 2, 2]],
    "04.2": [shrunk, with_index],
    "04.3": ["start 3", "delete_controller\nsettle\nstart 3"],
    "04.4": ["resets_dead_leader", {"resets_dead_leader": True}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "04.1": [
        ((2, 2, 3), "the replica's move finds nothing to write"),
        ((2, 6, 2), "Six counts all replicas"),
        ((4, 2, 2), "orders-1 is led by broker 2"),
        ((1, 2, 2), "are two moves"),
        ((2, 2, 1), "The ISR of orders-1 has to be written"),
        ((2, 1, 2), "Broker 1 holds two replicas"),
        ((2, 2), "has 2 parts; 3 are asked for"),
    ],
    "04.2": [
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], [r for r in isr if r != gone]), "An empty ISR"),
        (lambda leader, isr, gone: (leader, shrunk(leader, isr, gone)[1]), "that was KAFKA-708"),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], isr), "would wait for it"),
        (lambda leader, isr, gone: (-1, shrunk(leader, isr, gone)[1]), "no reason to take that away"),
        (
            lambda leader, isr, gone: (shrunk(leader, isr, gone)[1][0], shrunk(leader, isr, gone)[1]),
            "Nobody is elected",
        ),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], shrunk(leader, isr, gone)[1][::-1]), "another order"),
        (lambda leader, isr, gone: shrunk(leader, isr, gone)[1], "and the ISR are expected"),
    ],
    "04.3": [
        ("delete_controller", "The new controller begins anew"),
        ("bounce 1", "its replica has been deleted"),
        ("add_broker 9", "A new broker has no replica"),
        ("delete_znode /brokers/topics/bills/partitions/0/state", "a znode less does not change that"),
        ("delete_topic bills", "already marked for deletion"),
    ],
    "04.4": [
        ("clears_isr_notifications", "deletes the notifications meant for the last one"),
        ("keeps_last_isr_member", "`keeps_last_isr_member` is about something else"),
        ("shrinks_stored_isr", "`shrinks_stored_isr` is about something else"),
        ("accepts_own_isr", "`accepts_own_isr` is about something else"),
        ("resets_dead_leaders", "'resets_dead_leaders'"),
    ],
}
