"""Right and wrong answers to the exercises of lesson 14."""

from __future__ import annotations

from typing import Any


def slices(operations: list, window: int) -> list:
    """So many at a time, one list after the other."""
    rest, found = list(operations), []
    while rest:
        found.append(rest[:window])
        del rest[:window]
    return found


RIGHT: dict[str, list[Any]] = {
    "14.1": [8, 8],
    "14.2": [
        slices,
        lambda operations, window: [operations[n : n + window] for n in range(0, len(operations), window)],
    ],
    "14.3": ["fails_waiters_at_expiry", {"fails_waiters_at_expiry": True}],
    "14.4": [{"generation": "2.0"}, {"pipelined": True}, {"partitions": 30}, {"zookeeper_round_trip": 0.001}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "14.1": [
        (62, "So it is one by one, in 0.10"),
        (60, "That is a number of operations"),
        (2, "thirty writes three more"),
        (6, "find out who has gone"),
        (7, "have to be answered before anything is decided"),
        (1.6, "1.6 is no whole number"),
    ],
    "14.2": [
        (lambda operations, window: [operations], "operations are in flight together"),
        (lambda operations, window: [[each] for each in operations], "10 at a time"),
        (lambda operations, window: slices(operations, window + 1), "Kafka holds a semaphore"),
        (lambda operations, window: slices(operations[::-1], window), "every operation once and in order"),
        (lambda operations, window: operations, "rules['pipeline'] returned ["),
        (lambda operations, window: None, "rules['pipeline'] returned None"),
    ],
    "14.3": [
        ("ends_with_session", "pending ZooKeeper requests fail"),
        ("fences_writes", "`fences_writes` is about something else"),
        ("preempts_queue", "`preempts_queue` is about something else"),
        ("pipelined", "`pipelined` is about something else"),
        ("fails_waiters", "'fails_waiters'"),
    ],
    "14.4": [
        ({"window": 50}, "Before 1.1 there is no window"),
        ({"retries": 9}, "A retry would take 5 s more"),
        ({"stop": "kill"}, "no leader before the session ends"),
        ({"session_timeout": 2000}, "Nobody waits for a session here"),
        ({"partitions": 40}, "How many fit into 300 ms?"),
        ({"generation": "2.0", "pipelined": False}, "Without pipelining a newer controller"),
        ({"kafka": "2.0"}, "is no dictionary of changes"),
        ({"generation": "0.10"}, "Nothing is changed yet"),
    ],
}
