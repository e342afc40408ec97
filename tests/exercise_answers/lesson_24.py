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


RIGHT: dict[str, list[Any]] = {"24.2": [lambda found: sum(len(copies(each)) > 1 for each in found), pairwise]}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "24.2": [
        (lambda found: sum(len(copies(each)) <= 1 for each in found), "at which all are equal"),
        (lambda found: sum(len(set(each.values())) > 1 for each in found), "cannot contradict"),
        (
            lambda found: sum(sum(c not in (None, each["ZooKeeper"]) for c in each.values()) for each in found),
            "A moment counts once",
        ),
        (lambda found: sum(len(copies(each)) - 1 for each in found), "4 moments made by hand you count 3. You count"),
        (
            lambda found: sum(bool(each["ZooKeeper"] and copies(each) - {each["ZooKeeper"]}) for each in found),
            "Two others can differ",
        ),
        (
            lambda found: sum(len({c for h, c in e.items() if c and h != "ZooKeeper"}) > 1 for e in found),
            "ZooKeeper's copy is one of them",
        ),
        (lambda found: sum(len({c[0] for c in e.values() if c}) > 1 for e in found), "You compare leaders"),
        (len, "That is every moment"),
        (lambda found: "many", "A whole number"),
        (lambda found: -1, "Collect the different copies"),
    ]
}
