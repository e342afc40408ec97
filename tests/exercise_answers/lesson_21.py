"""From ZooKeeper to KRaft."""

from __future__ import annotations

from typing import Any

SORTED = {
    "KAFKA-6082": "gone",
    "KAFKA-1211": "stays",
    "KAFKA-7235a": "gone",
    "KAFKA-3670": "stays",
    "KAFKA-9089": "gone",
    "KAFKA-7482": "stays",
}
HABITS = {
    "read /controller": "A",
    "read a state znode": "B",
    "delete /admin/reassign_partitions": "D",
    "delete /controller": "E",
    "remove a topic's znodes": "F",
}


def copies(each: dict) -> set:
    return {copy for copy in each.values() if copy is not None}


def pairwise(found: list) -> int:
    count = 0
    for each in found:
        _, *others = copies(each) or {None}
        count += bool(others)
    return count


RIGHT: dict[str, list[Any]] = {
    "21.1": [SORTED, SORTED | {"KAFKA-7482": "kind"}],
    "21.2": [lambda found: sum(len(copies(each)) > 1 for each in found), pairwise],
    "21.3": [(9000, 2000), [6000, 2000], (3000, 500)],
    "21.4": [HABITS, HABITS | {"read a state znode": "C"}],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "21.1": [
        (SORTED | {"KAFKA-6082": "stays"}, "needs a majority of the quorum"),
        (SORTED | {"KAFKA-1211": "gone"}, "Where is ZooKeeper in that story"),
        (SORTED | {"KAFKA-7235a": "stays"}, "A registration now names its process"),
        (SORTED | {"KAFKA-3670": "gone"}, "not asked where the list is kept"),
        (SORTED | {"KAFKA-9089": "stays"}, "Two stores were needed"),
        (SORTED | {"KAFKA-7482": "gone"}, "it has to hear of the change"),
        (SORTED | {"KAFKA-7482": "lost"}, "is no shelf"),
        ({"KAFKA-6082": "gone"}, "has no shelf yet"),
    ],
    "21.2": [
        (lambda found: sum(len(copies(each)) <= 1 for each in found), "at which all are equal"),
        (lambda found: sum(len(set(each.values())) > 1 for each in found), "cannot contradict"),
        (
            lambda found: sum(sum(c not in (None, each["ZooKeeper"]) for c in each.values()) for each in found),
            "A moment counts once",
        ),
        (
            lambda found: sum(len({c for h, c in e.items() if c and h != "ZooKeeper"}) > 1 for e in found),
            "ZooKeeper's copy is one of them",
        ),
        (lambda found: sum(len({c[0] for c in e.values() if c}) > 1 for e in found), "You compare leaders"),
        (len, "That is every moment"),
        (lambda found: "many", "A whole number"),
        (lambda found: -1, "Collect the different copies"),
    ],
    "21.3": [
        ((1000, 2000), "2000 ms old when all is well; it is fenced at 1000"),
        ((3000, 2000), "4000 ms old when one heartbeat is lost"),
        ((18000, 2000), "without a leader for 18000 ms"),
        ((1000, 10), "much work for one active controller"),
        (9000, "two whole numbers"),
    ],
    "21.4": [
        (HABITS | {"remove a topic's znodes": "G"}, "vote twice in one epoch"),
        (HABITS | {"delete /controller": "H"}, "no two of three run"),
        (HABITS | {"delete /controller": "F", "read a state znode": "H"}, "read a state znode: you take H"),
        (HABITS | {"read a state znode": "A"}, "the last of its records"),
        (HABITS | {"read /controller": "B"}, "asked of the quorum"),
        (HABITS | {"delete /admin/reassign_partitions": "E"}, "a tool takes it back"),
        (HABITS | {"delete /controller": "X"}, "no letter from A to H"),
        ({"read /controller": "A"}, "has no letter yet"),
        ("ABDEF", "no dictionary"),
    ],
}
