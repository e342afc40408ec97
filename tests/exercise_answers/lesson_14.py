"""Right and wrong answers to the exercises of lesson 14."""

from __future__ import annotations

from typing import Any

from kafka_ctl.controller.deletion import next_move

SUCCESSFUL = "ReplicaDeletionSuccessful"


AUDIT = {("audit", 0): [1, 2, 4]}


def by_count(states: dict, alive: frozenset, halted: bool) -> str:
    found = [state.removeprefix("ReplicaDeletion") for state in states.values()]
    if found.count("Successful") == len(found):
        return "complete"
    return "wait" if halted or found.count("Started") else "start"


def forgets_the_dead(states: dict, alive: frozenset, halted: bool) -> str:
    left = {replica: state for replica, state in states.items() if replica[1] in alive}
    return next_move(left, alive, halted)


def starts_twice(states: dict, alive: frozenset, halted: bool) -> str:
    found = next_move(states, alive, halted)
    return "start" if found == "wait" and not halted else found


def never_completes(states: dict, alive: frozenset, halted: bool) -> str:
    found = next_move(states, alive, halted)
    return "wait" if found == "complete" else found


RIGHT: dict[str, list[Any]] = {
    "14.2": [next_move, by_count],
    "14.4": [
        lambda lab: (lab.delete_controller(), lab.settle(), lab.execute_reassignment(AUDIT)),
        lambda lab: (lab.bounce(4), lab.settle(), lab.execute_reassignment(AUDIT)),
    ],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "14.2": [
        (lambda states, alive, halted: "complete" if SUCCESSFUL in states.values() else "start", "is not deleted, and"),
        (forgets_the_dead, "a topic that no controller knows (KAFKA-10548)"),
        (lambda states, alive, halted: next_move(states, alive, False), "asks the same once more"),
        (starts_twice, "An answer is still on its way"),
        (lambda states, alive, halted: "wait", "this deletion would never start"),
        (never_completes, "so the topic would stay"),
        (lambda states, alive, halted: "retry", "one of complete, wait, start is expected"),
        (lambda states, alive: "wait", "Its parameters are not those"),
    ],
    "14.4": [
        (lambda lab: lab.execute_reassignment(AUDIT), "There is an existing assignment running"),
        (
            lambda lab: (lab.delete_znode("/admin/reassign_partitions"), lab.execute_reassignment(AUDIT)),
            "its watch of this znode fired when it wrote the znode",
        ),
    ],
}
