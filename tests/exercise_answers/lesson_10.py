"""Right and wrong answers to the exercises of lesson 10."""

from __future__ import annotations

from typing import Any

from kafka_ctl.controller.deletion import next_move

SUCCESSFUL = "ReplicaDeletionSuccessful"


WAITING = {1: "OfflineReplica", 2: SUCCESSFUL, 3: SUCCESSFUL}


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
    "10.1": [WAITING, {**WAITING}],
    "10.2": [next_move, by_count],
    "10.3": ["start 1", "delete_controller\nsettle\nstart 1"],
    "10.4": [
        lambda lab: (lab.delete_controller(), lab.settle(), lab.execute_reassignment(AUDIT)),
        lambda lab: (lab.bounce(4), lab.settle(), lab.execute_reassignment(AUDIT)),
    ],
    "10.5": [
        "deletion_waits_for_reassignment",
        {"deletion_waits_for_reassignment": True},
        ["deletion_waits_for_reassignment", "drops_requests_together"],
    ],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "10.1": [
        ({**WAITING, 1: "ReplicaDeletionIneligible"}, "2.4 takes it back"),
        ({**WAITING, 1: "ReplicaDeletionStarted"}, "is sent no request"),
        ({**WAITING, 1: "OnlineReplica"}, "Broker 1 had left before"),
        (dict.fromkeys((1, 2, 3), "OfflineReplica"), "it does not wait until all are there"),
        ({**WAITING, 2: "NonExistentReplica"}, "only when all of the topic are deleted"),
        ({**WAITING, 3: "OnlineReplica"}, "Brokers 2 and 3 live and have answered"),
        ({1: "OfflineReplica"}, "One state for each"),
        ("OfflineReplica", "is text"),
    ],
    "10.2": [
        (lambda states, alive, halted: "complete" if SUCCESSFUL in states.values() else "start", "is not deleted, and"),
        (forgets_the_dead, "a topic that nobody knows (KAFKA-10548)"),
        (lambda states, alive, halted: next_move(states, alive, False), "asks the same once more"),
        (starts_twice, "An answer is still on its way"),
        (lambda states, alive, halted: "wait", "nobody would ever start"),
        (never_completes, "so the topic would stay for ever"),
        (lambda states, alive, halted: "retry", "one of complete, wait, start is expected"),
        (lambda states, alive: "wait", "Its parameters are not those"),
    ],
    "10.3": [
        ("delete_znode /admin/delete_topics/orders", "still on its list, in memory"),
        ("delete_znode /admin/delete_topics/orders\nsettle\nstart 1", "the topic is gone, but I16 is broken"),
        (
            "delete_znode /admin/delete_topics/orders\nsettle\ndelete_controller\nsettle\nstart 1",
            "the topic is there again, but I4 is broken",
        ),
        ("delete_controller", "waits for the same broker"),
        ("delete_topic orders", "already marked for deletion"),
        ("bounce 3", "orders-0 on 1"),
        ("delete_znode /brokers/topics/orders", "NOTEMPTY"),
    ],
    "10.4": [
        (lambda lab: lab.execute_reassignment(AUDIT), "There is an existing assignment running"),
        (
            lambda lab: (lab.delete_znode("/admin/reassign_partitions"), lab.execute_reassignment(AUDIT)),
            "its watch of this znode was used up",
        ),
        ("delete_controller", "Nobody has asked to move audit yet"),
        ("""reassign '{"audit-0":[1,2,4]}'""", "cannot be carried out: There is an existing assignment running"),
        ("""create_topic orders assignment='{"0":[1,2,4]}'""", "the old request does not move it"),
    ],
    "10.5": [
        ("incremental_reassignment", "its move stays in the controller's memory"),
        ("halts_deletions_for_elections", "waits for its preferred elections"),
        ("drops_requests_together", "`drops_requests_together` is about something else"),
        ("partitions_leave_first", "`partitions_leave_first` is about something else"),
        ("restores_assignments", "`restores_assignments` is about something else"),
        ({"deletion_waits_for_reassignment": False}, "is False in this story already"),
        ("deletion_waits", "'deletion_waits'"),
        ([], "names no field"),
    ],
}
