"""Right and wrong answers to the exercises of lesson 16."""

from __future__ import annotations

from typing import Any


def slices(operations: list, window: int) -> list:
    """So many at a time, one list after the other."""
    rest, found = list(operations), []
    while rest:
        found.append(rest[:window])
        del rest[:window]
    return found


def balanced(operations: list, window: int) -> list:
    """As few lists as possible, of nearly the same length."""
    number, size = -(-len(operations) // window), len(operations)
    return [operations[n * size // number : (n + 1) * size // number] for n in range(number)]


def taken_out(operations: list, window: int) -> list:
    """The same lists as `slices`; nothing is left of the argument."""
    found = []
    while operations:
        found.append([operations.pop(0) for _ in range(min(window, len(operations)))])
    return found


RIGHT: dict[str, list[Any]] = {
    "16.2": [
        slices,
        lambda operations, window: [operations[n : n + window] for n in range(0, len(operations), window)],
        balanced,
        taken_out,
    ]
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "16.2": [
        (lambda operations, window: [operations], "operations are in flight together"),
        (lambda operations, window: [[each] for each in operations], "10 at a time"),
        (lambda operations, window: slices(operations, window + 1), "Kafka holds a semaphore"),
        (lambda operations, window: slices(operations[::-1], window), "every operation once and in order"),
        (
            lambda operations, window: [operations[n : n + window] for n in range(0, len(operations) + 1, window)],
            "none of them empty",
        ),
        (lambda operations, window: operations, "rules['pipeline'] returned ["),
        (lambda operations, window: None, "rules['pipeline'] returned None"),
    ]
}
