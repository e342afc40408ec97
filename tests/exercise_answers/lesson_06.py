"""Right and wrong answers to the exercises of lesson 06."""

from __future__ import annotations

import json
from typing import Any


def late(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """Kafka 2.4's rule."""
    return follower_end != leader_end and now - last_caught_up > max_lag


def late_at_the_limit(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """The limit itself counts."""
    if follower_end >= leader_end:
        return False
    return now >= last_caught_up + max_lag


def same(*fields: str) -> Any:
    """A function that compares some fields of the two states."""
    return lambda wanted, stored: all(json.loads(wanted)[each] == json.loads(stored)[each] for each in fields)


RIGHT: dict[str, list[Any]] = {
    "06.2": [late, lambda now, since, mine, end, limit: mine < end and since < now - limit],
    "06.4": [same("leader", "leader_epoch", "isr", "controller_epoch")],
    "06.3": [lambda lab: lab.lag(3, "orders", 0)],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "06.2": [
        (late_at_the_limit, "only *longer* ago than the limit is late"),
        (lambda now, since, mine, end, limit: now - since > limit, "since 2.1 such a follower is not late"),
        (lambda now, since, mine, end, limit: mine != end, "the limit is 10 s. The number of records does not count"),
        (lambda now, since, mine, end, limit: end - mine > 4000, "follower_end=1, leader_end=3"),
        (lambda now, since, mine, end, limit: False, "acks=all waits for it"),
        (
            lambda now, since, mine, end, limit: mine != end and now - since > 1000 * limit,
            "It is behind, and had everything 14988 ms ago",
        ),
        (
            lambda now, since, mine, end, limit: mine < end and now - since > 10_000,
            "had everything 29.999 s ago; the limit is 30 s. hint",
        ),
        (
            lambda now, since, mine, end, limit: mine != end and now - since > 15_000,
            "10001 ms ago, longer than 10000 ms",
        ),
        (lambda now, since, mine, end, limit: None, "end with a `return`"),
        (lambda follower: False, "Its parameters are not those"),
    ],
    "06.3": [
        (lambda lab: (lab.slow(3, 60), lab.run_for(30)), "After `slow 3 60`, when all is quiet again: orders-0 has"),
        (lambda lab: lab.slow(3, 11), "When a slow fetch arrives"),
        ("slow 3 12\nproduce orders 0 acks=1\nrun_for 10", "acks=1`, 3660 s later: orders-0 has leader 1"),
    ],
    "06.4": [
        (same("leader"), 'in the story "another ISR is there": record 88 differs'),
        (same("leader_epoch", "controller_epoch"), 'in the story "another ISR is there"'),
        (same("isr"), 'in the story "the same ISR is there, with another leader epoch"'),
        (same("leader", "isr", "leader_epoch"), 'in the story "the same ISR is there, by another controller"'),
    ],
}
