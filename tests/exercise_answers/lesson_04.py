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


RIGHT: dict[str, list[Any]] = {"04.2": [shrunk, with_index]}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "04.2": [
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], [r for r in isr if r != gone]), "An empty ISR"),
        (lambda leader, isr, gone: (leader, shrunk(leader, isr, gone)[1]), "that was KAFKA-708"),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], isr), "would wait for it"),
        (lambda leader, isr, gone: (-1, shrunk(leader, isr, gone)[1]), "no reason to take that away"),
        (
            lambda leader, isr, gone: (shrunk(leader, isr, gone)[1][0], shrunk(leader, isr, gone)[1]),
            "No leader is elected",
        ),
        (lambda leader, isr, gone: (shrunk(leader, isr, gone)[0], shrunk(leader, isr, gone)[1][::-1]), "another order"),
        (lambda leader, isr, gone: shrunk(leader, isr, gone)[1], "and the ISR are expected"),
    ]
}
