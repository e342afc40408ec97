"""From ZooKeeper to KRaft."""

from __future__ import annotations

from typing import Any


def copies(each: dict) -> set:
    return {copy for copy in each.values() if copy is not None}


def pairwise(found: list) -> int:
    count = 0
    for each in found:
        _, *others = copies(each) or {None}
        count += bool(others)
    return count


def differing(found: list, begin: int, end: int) -> int:
    """The moments at which a part of the copies differs."""
    return sum(len({copy[begin:end] for copy in copies(each)}) > 1 for each in found)


RIGHT: dict[str, list[Any]] = {"24.2": [lambda found: sum(len(copies(each)) > 1 for each in found), pairwise]}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "24.2": [
        (lambda found: sum(len(copies(each)) <= 1 for each in found), "the number of moments at which all are equal"),
        (lambda found: sum(len(set(each.values())) > 1 for each in found), "cannot contradict"),
        (
            lambda found: sum(sum(c not in (None, each["ZooKeeper"]) for c in each.values()) for each in found),
            "A moment counts once",
        ),
        (lambda found: sum(len(copies(each)) - 1 for each in found), "4 moments made by hand you count 2. You count"),
        (
            lambda found: sum(bool(each["ZooKeeper"] and copies(each) - {each["ZooKeeper"]}) for each in found),
            "Two others can differ",
        ),
        (
            lambda found: sum(len({c for h, c in e.items() if c and h != "ZooKeeper"}) > 1 for e in found),
            "ZooKeeper's copy is one of them",
        ),
        (lambda found: sum(len({c[0] for c in e.values() if c}) > 1 for e in found), "You compare leaders"),
        (lambda found: sum(len(copies(e)) == 2 for e in found), "more than two copies differ"),
        (lambda found: differing(found, 2, 3), "You compare leaders or leader epochs. The ISR"),
        (lambda found: differing(found, 1, 2), "You compare ISRs"),
        (lambda found: differing(found, 0, 2), "You compare leader and ISR. The leader epoch"),
        (lambda found: [each for each in found if len(copies(each)) > 1], "you count several things. A whole number"),
        (len, "That is every moment"),
        (lambda found: "many", "A whole number"),
        (lambda found: -1, "Collect the different copies"),
    ]
}
