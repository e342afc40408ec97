"""Right and wrong answers to the exercises of lesson 03."""

from __future__ import annotations

from typing import Any


def states(records: list) -> dict:
    """The state of every partition, with the gone ones left out."""
    found: dict = {}
    for r in records:
        if r.error:
            continue
        found[f"{r.topic}-{r.partition}"] = r.target
        if r.target == "NonExistentPartition":
            del found[f"{r.topic}-{r.partition}"]
    return found


def shrunk(leader: int, isr: tuple, gone: int) -> tuple:
    return (-1 if leader == gone else leader), ([r for r in isr if r != gone] or isr)


def with_index(leader: int, isr: tuple, gone: int) -> tuple:
    """The same, written otherwise."""
    members = list(isr)
    if len(members) > 1:
        members.remove(gone)
    return {gone: -1}.get(leader, leader), tuple(members)


def refused_too(records: list) -> dict:
    found = {f"{r.topic}-{r.partition}": r.target for r in records}
    return {name: state for name, state in found.items() if state != "NonExistentPartition"}


def with_the_gone(records: list) -> dict:
    return {f"{r.topic}-{r.partition}": r.target for r in records if not r.error}


def by_leader(records: list) -> dict:
    found = dict.fromkeys(states(records), "OfflinePartition")
    for r in records:
        if r.leader is not None and f"{r.topic}-{r.partition}" in found:
            found[f"{r.topic}-{r.partition}"] = "OnlinePartition"
    return found


RIGHT: dict[str, list[Any]] = {
    "03.2": [shrunk, with_index],
    "03.3": [states, lambda records: {name: str(state) for name, state in states(records).items()}],
    "03.4": [lambda lab: (lab.delete_controller(), lab.settle(), lab.start(1))],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "03.2": [
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
    ],
    "03.3": [
        (refused_too, "a move that was refused"),
        (lambda records: states([r for r in records if r.source]), "A new controller *sets* states without a move"),
        (with_the_gone, "it is gone, its last move was to NonExistent"),
        (by_leader, "the last that happened to it is"),
        (lambda records: {}, "your answer does not have alone-0"),
        (
            lambda records: {(r.topic, 0): r.target for r in records},
            "('alone', 0) is a pair; name the partition as text",
        ),
        (lambda records: [], "a dictionary is expected"),
        (lambda records: records["orders"], "raised TypeError"),
    ],
}
