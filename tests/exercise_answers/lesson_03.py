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


LEGAL = {
    "NonExistent": ["New"],
    "New": ["Online", "Offline"],
    "Online": ["Online", "Offline"],
    "Offline": ["Online", "Offline", "NonExistent"],
}


def but(source: str, target: str) -> Any:
    """The table with one move the other way round."""
    return lambda a, b: (b in LEGAL[a]) != ((a, b) == (source, target))


def by_previous(source: str, target: str) -> bool:
    """The table, by what may come before."""
    previous = {"New": ("NonExistent",), "NonExistent": ("Offline",)}
    return source in previous.get(target, ("New", "Online", "Offline"))


def states_as_text(records: list) -> dict:
    return {name: str(state) for name, state in states(records).items()}


def refused_too(records: list) -> dict:
    found = {f"{r.topic}-{r.partition}": r.target for r in records}
    return {name: state for name, state in found.items() if state != "NonExistentPartition"}


def moves_only(records: list) -> dict:
    return states([r for r in records if r.source])


def with_the_gone(records: list) -> dict:
    return {f"{r.topic}-{r.partition}": r.target for r in records if not r.error}


def by_leader(records: list) -> dict:
    found = dict.fromkeys(states(records), "OfflinePartition")
    for r in records:
        if r.leader is not None and f"{r.topic}-{r.partition}" in found:
            found[f"{r.topic}-{r.partition}"] = "OnlinePartition"
    return found


RIGHT: dict[str, list[Any]] = {
    "03.2": [lambda a, b: b in LEGAL[a], by_previous],
    "03.3": [states, states_as_text],
    "03.4": [lambda lab: (lab.delete_controller(), lab.settle(), lab.start(1))],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "03.2": [
        (but("New", "NonExistent"), "that state is entered from Offline only"),
        (but("Online", "Online"), "a preferred election moves the leader"),
        (but("Offline", "Offline"), "a second death marks a partition"),
        (but("New", "Offline"), "deleted before it ever had a leader"),
        (but("Offline", "New"), "New is for a partition that never had a leader"),
        (but("NonExistent", "Online"), "first the controller has to learn of its replicas"),
        (lambda a, b: None, "end with a `return`"),
        (lambda a, b: 1, "True or False is expected"),
    ],
    "03.3": [
        (refused_too, "a move that was refused"),
        (moves_only, "A new controller *sets* states without a move"),
        (with_the_gone, "it is gone, its last move was to NonExistent"),
        (by_leader, "the last that happened to it is"),
        (lambda records: {}, "your answer does not have alone-0"),
        (lambda records: [], "a dictionary is expected"),
        (lambda records: records["orders"], "raised TypeError"),
    ],
}
