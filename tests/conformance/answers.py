"""Brokers answer StopReplica as fast as they can: which one is first differs from run to run, and log lines with it.

Each broker's answers come in a fixed order, and what the controller writes of one answer stands together; but whose
answer is next is a race. So the answers of one round of a deletion are put in the order of their brokers. What the
controller writes after each answer about the replicas that have not been deleted yet follows from the answers before
it: where it does, that is all that is compared of it; where it does not, the line is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ROUND, ANSWERED = "Deletion started for replicas", "Delete topic callback invoked"
DELETED, MOVED = "Deletion successfully completed for replicas", "Invoking state change to ReplicaDeletionSuccessful"
WAITING = re.compile(r"(?<=Deletion for )replicas ([\d,]+) for partition (\S+)(?= of topic ([\w.-]+) in progress)")
STATE = re.compile(r"(\[Topic=[^\]]*\]) -> ReplicaDeletion(Started|Successful)")
REPLICA = re.compile(r"\[Topic=([\w.-]+),Partition=(\d+),Replica=(\d+)\]")
PARTITION = re.compile(r"topic=([\w.-]+),partition=(\d+)|\[([\w.-]+),(\d+)\]|([A-Za-z][\w.-]*)-(\d+)")
Replica = tuple[str, str, str]
"""Topic, partition and broker."""


def by_broker(lines: Iterable[str]) -> list[str]:
    """A broker's masked log, with the answers of each round in the order of the brokers that gave them."""
    reported, order = list(lines), list[int]()
    deleting: set[Replica] = set()
    deleted: set[Replica] = set()
    asked: list[int] = []
    answers: list[tuple[int, list[int]]] = []
    for place, line in enumerate(reported):
        replicas = _replicas(line)
        if ROUND in line:
            order, answers, asked = order + _sorted(answers), [], []
            deleting, deleted = deleting | replicas, deleted - replicas
        elif ANSWERED in line:
            asked.append(place)
        elif DELETED in line:
            deleting, deleted = deleting - replicas, deleted | replicas
            if (answer := _answer(reported, asked, place)) and len({r[2] for r in replicas}) == 1:
                answers.append((int(min(r[2] for r in replicas)), answer))
        reported[place] = _without_what_follows(line, deleting, deleted)
    order += _sorted(answers)
    moved = dict(zip(sorted(order), order, strict=True))
    return [reported[moved.get(place, place)] for place in range(len(reported))]


def _sorted(answers: list[tuple[int, list[int]]]) -> list[int]:
    """The places of all lines about the answers of a round, by broker; each broker's answers keep their order."""
    return [place for _, places in sorted(answers, key=lambda answer: answer[0]) for place in places]


def _answer(reported: list[str], asked: list[int], place: int) -> list[int]:
    """The lines about the answer that ends with these deletions: its arrival, taken from `asked`, and what follows."""
    partitions = {r[:2] for r in _replicas(reported[place])}
    arrived = next((a for a in asked if _partitions(reported[a]) == partitions), None)
    if arrived is None:
        return []
    asked.remove(arrived)
    return [arrived, place, *([place + 1] if place + 1 < len(reported) and MOVED in reported[place + 1] else [])]


def _replicas(line: str) -> set[Replica]:
    return set(REPLICA.findall(line))


def _partitions(text: str) -> set[tuple[str, str]]:
    return {(one[0] or one[2] or one[4], one[1] or one[3] or one[5]) for one in PARTITION.findall(text)}


def _without_what_follows(line: str, deleting: set[Replica], deleted: set[Replica]) -> str:
    """A line without what it says of the replicas that are deleted and of those that are not yet, where it is right."""
    if found := WAITING.search(line):
        left = {replica for replica in deleting if replica[0] == found[3]}
        if set(found[1].split(",")) == {r[2] for r in left} and _partitions(found[2]) == {r[:2] for r in left}:
            return WAITING.sub("what has not been deleted", line)
    holds = {"Started": deleting, "Successful": deleted}
    return STATE.sub(lambda one: f"{one[1]} -> as answered" if _replicas(one[1]) <= holds[one[2]] else one[0], line)
