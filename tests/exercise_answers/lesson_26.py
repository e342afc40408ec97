"""Right and wrong answers to the exercises of lesson 26."""

from __future__ import annotations

from typing import Any


def by_division(expiration: int, tick: int, n: int, now: int) -> tuple:
    """Kafka's place."""
    return expiration // tick % n, expiration // tick * tick


def by_remainder(expiration: int, tick: int, n: int, now: int) -> tuple:
    """The same, written otherwise."""
    return expiration % (tick * n) // tick, expiration - expiration % tick


RIGHT: dict[str, list[Any]] = {"26.2": [by_division, by_remainder]}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "26.2": [
        (lambda e, tick, n, now: ((e - now) // tick % n, (e - now) // tick * tick), "neither a distance nor a number"),
        (lambda e, tick, n, now: ((e - now) // tick % n, e // tick * tick), "3 times the work"),
        (lambda e, tick, n, now: (e // tick % n, e // tick), "expires at 1, the clock shows 1"),
        (lambda e, tick, n, now: (round(e / tick) % n, round(e / tick) * tick), "52 of 100 tasks run late"),
        (lambda e, tick, n, now: (e // tick % n, (e // tick + 1) * tick), "100 of 100 tasks run late"),
        (
            lambda e, tick, n, now: (0, e // tick * tick),
            "Your function was called 20,000 times for 100 tasks: too many",
        ),
        (
            lambda e, tick, n, now: None,
            "Your place(166, 20, 20, 0) gives None; expected is a pair of whole numbers: the bucket",
        ),
    ]
}
