"""Right and wrong answers to the exercises of lesson 10."""

from __future__ import annotations

from random import Random
from typing import Any

from kafka_ctl.assignment import assign

THREE_COPIES = {("orders", 0): [1, 4], ("orders", 1): [2, 4], ("orders", 2): [4, 1]}


def kafkas_assignment(brokers: list, partitions: int, replication_factor: int) -> dict:
    return assign(brokers, partitions, replication_factor)


def round_by_round(brokers: list, partitions: int, replication_factor: int) -> dict:
    """Another one that is even."""
    n = len(brokers)
    return {
        p: [brokers[p % n], *(brokers[(p + 1 + (p // n + d) % (n - 1)) % n] for d in range(replication_factor - 1))]
        for p in range(partitions)
    }


def neighbours(brokers: list, partitions: int, replication_factor: int) -> dict:
    return {p: [brokers[(p + d) % len(brokers)] for d in range(replication_factor)] for p in range(partitions)}


def places(brokers: list, partitions: int, replication_factor: int) -> dict:
    """Places in the row of brokers, which are no ids."""
    return {p: [(p + d) % len(brokers) for d in range(replication_factor)] for p in range(partitions)}


def drawn(brokers: list, partitions: int, replication_factor: int) -> dict:
    rng = Random(1)
    return {p: rng.sample(brokers, replication_factor) for p in range(partitions)}


def shifted_leader(brokers: list, partitions: int, replication_factor: int) -> dict:
    n = len(brokers)
    return {p: [brokers[(p + p // n + d) % n] for d in range(replication_factor)] for p in range(partitions)}


def wrong_modulus(brokers: list, partitions: int, replication_factor: int) -> dict:
    n = len(brokers)
    return {
        p: [brokers[p % n], *(brokers[(p + 1 + (p // n + d) % n) % n] for d in range(replication_factor - 1))]
        for p in range(partitions)
    }


def generated(lab: Any) -> None:
    lab.execute_reassignment(lab.generate_reassignment(["orders"], [1, 2, 3, 4]))


def by_racks(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    while len(chosen) < wanted:
        used = {rack_of[id] for id in (leader, *chosen)}
        left = [id for id in others if id not in chosen]
        chosen.append(([id for id in left if rack_of[id] not in used] or left)[0])
    return chosen


def by_racks_sorted(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    """The same, by a count of the brokers of the same rack that come before."""
    before = {id: sum(rack_of[o] == rack_of[id] for o in (leader, *others[: others.index(id)])) for id in others}
    return sorted(others, key=lambda id: before[id])[:wanted]


def never_twice(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    for id in others:
        if rack_of[id] not in {rack_of[o] for o in (leader, *chosen)}:
            chosen.append(id)
    return chosen[:wanted]


def stops(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    chosen: list = []
    for id in others[:wanted]:
        if rack_of[id] in {rack_of[o] for o in (leader, *chosen)}:
            break
        chosen.append(id)
    return chosen


def not_the_leaders(leader: int, others: list, rack_of: dict, wanted: int) -> list:
    fit = [id for id in others if rack_of[id] != rack_of[leader]]
    return (fit + [id for id in others if id not in fit])[:wanted]


RIGHT: dict[str, list[Any]] = {
    "10.2": [kafkas_assignment, round_by_round],
    "10.3": [by_racks, by_racks_sorted],
    "10.4": [lambda lab: lab.execute_reassignment(THREE_COPIES), generated, lambda lab: lab.reassign(THREE_COPIES)],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "10.2": [
        (neighbours, "after broker 1 died, broker 2 leads 10 and broker 3 leads 5"),
        (places, "partition 0 is on broker 0; `brokers` is [1, 2, 3, 4, 5, 6]."),
        (drawn, "are the first ones taken in turn?"),
        (shifted_leader, "after broker 1 died, broker 2 leads 10"),
        (wrong_modulus, "Duplicate replica"),
        (lambda *given: {p + 1: ids for p, ids in assign(*given).items()}, "numbered from 0"),
        (lambda brokers, partitions, rf: dict.fromkeys(range(partitions), brokers[:rf]), "broker 1 leads 30"),
        (lambda brokers, partitions, rf: [[1, 2]], "a dictionary such as {0: [1, 2]} is expected"),
    ],
    "10.3": [
        (lambda leader, others, rack_of, wanted: others[:wanted], "the first is partition"),
        (never_twice, "so 2 brokers. When every rack"),
        (stops, "so 1 broker. When every rack"),
        (not_the_leaders, "have two copies in one rack while another rack has none"),
        (lambda leader, others, *rest: by_racks(leader, sorted(others), *rest), "take the first that fits"),
        (lambda leader, others, rack_of, wanted: others, "so 5 brokers."),
        (lambda leader, others, rack_of, wanted: None, "returned None; a list"),
    ],
    "10.4": [
        (lambda lab: lab.generate_reassignment(["orders"], [1, 2, 3, 4]), "it has not been executed"),
        (lambda lab: {}[lab.now], "Your function raised KeyError"),
        (lambda lab: lab.reassign({("orders", 0): [1, 2, 4]}), "partition 0 has the replicas [1, 2, 4]"),
        (lambda lab: lab.reassign({("orders", 0): [1, 4]}), "broker 4 holds 1 replica of"),
    ],
}
