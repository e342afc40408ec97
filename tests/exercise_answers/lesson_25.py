"""Large histories."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kafka_ctl_course.lesson_25 import without_leader


def by_pairs(changes: Any, end: int) -> list[int]:
    ends = [at for at, _ in changes[1:]] + [end]
    parts, longest, run = 0, 0, 0
    for (at, leader), until in zip(changes, ends, strict=True):
        run = run + until - at if leader < 0 else 0
        parts += until - at if leader < 0 else 0
        longest = max(longest, run)
    return [parts, longest]


def without_the_open_one(changes: Any, end: int) -> tuple[int, int]:
    closed = [at for at, leader in changes if leader >= 0]
    return without_leader(changes, closed[-1]) if changes[-1][1] >= 0 else (0, 0)


def since_the_last(changes: Any, end: int) -> tuple[int, int]:
    spans, since = [0], None
    for at, leader in [*changes, (end, 0)]:
        if since is not None and leader >= 0:
            spans.append(at - since)
        since = at if leader < 0 else None
    return sum(spans), max(spans)


def to_the_end(changes: Any, end: int) -> tuple[int, int]:
    spans = [end - at for at, leader in changes if leader < 0]
    return sum(spans), max(spans, default=0)


def longest_piece(changes: Any, end: int) -> tuple[int, int]:
    spans = [until - at for (at, leader), (until, _) in pairwise([*changes, (end, 0)]) if leader < 0]
    return sum(spans), max(spans, default=0)


def no_broker_0(changes: Any, end: int) -> tuple[int, int]:
    return without_leader([(at, leader or -1) for at, leader in changes], end)


def never_ended_by_broker_0(changes: Any, end: int) -> tuple[int, int]:
    spans, since = [0], None
    for at, leader in changes:
        if leader == -1:
            since = at if since is None else since
        elif leader and since is not None:
            spans.append(at - since)
            since = None
    spans.append(end - since if since is not None else 0)
    return sum(spans), max(spans)


RIGHT: dict[str, list[Any]] = {"25.3": [without_leader, by_pairs]}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "25.3": [
        (without_the_open_one, "it counts up to `end`"),
        (since_the_last, "can be written twice"),
        (longest_piece, "(30060, 30052). A leader of -1 can be written twice"),
        (never_ended_by_broker_0, "It is too much: when does an interval end? A broker may have the id 0"),
        (no_broker_0, "A broker may have the id 0"),
        (
            lambda changes, end: tuple(ms / 1000 for ms in without_leader(changes, end)),
            "milliseconds, and so is what is asked for",
        ),
        (lambda changes, end: (without_leader(changes, end)[0], 1), "and the longest interval is longer than yours"),
        (lambda changes, end: (without_leader(changes, end)[0] - 1, 1), "too little: when does an interval begin"),
        (to_the_end, "when does an interval end?"),
        (lambda changes, end: without_leader(changes, end)[::-1], "The sum comes first"),
        (lambda changes, end: without_leader(changes, end)[0], "Two numbers are asked for"),
    ]
}
