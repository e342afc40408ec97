"""Right and wrong answers to the exercises of lesson 12."""

from __future__ import annotations

from typing import Any

from kafka_ctl_course.lesson_12 import usual


def three_lists(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
    origin = [r for r in replicas if r not in adding]
    full = [*target, *(r for r in origin if r not in target)]
    return full, [r for r in full if r not in origin], [r for r in full if r not in target]


def two_lists(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
    """By sets; the order of those that are added or removed is another one."""
    origin = dict.fromkeys(r for r in replicas if r not in adding)
    return tuple(dict.fromkeys([*target, *origin])), {*target} - {*origin}, {*origin} - {*target}


def origin_first(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
    _, more, less = three_lists(replicas, adding, removing, target)
    return [*(r for r in replicas if r not in adding), *more], more, less


def from_replicas(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
    """Added for an older target, and kept."""
    _, more, _ = three_lists(replicas, adding, removing, target)
    full = [*target, *(r for r in replicas if r not in target)]
    return full, more, [r for r in full if r not in target]


RIGHT: dict[str, list[Any]] = {
    "12.2": [three_lists, two_lists],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "12.2": [
        (origin_first, "the target, [3, 5, 2], comes first and in its own order"),
        (lambda r, a, d, t: usual(r, (), (), t), "and is still being added: it belongs in `adding`"),
        (from_replicas, "does not count any more, and it would stay"),
        (lambda r, a, d, t: (t, [x for x in t if x not in r], []), "those that leave still have a copy"),
        (lambda r, a, d, t: ([*t, *r], *usual(r, a, d, t)[1:]), "is in the replicas twice"),
        (lambda r, a, d, t: (*usual(r, a, d, t)[:2], []), "Removed are the replicas that are not in the target"),
        (lambda r, a, d, t: (sorted(usual(r, a, d, t)[0]), *usual(r, a, d, t)[1:]), "the preferred leader"),
        (lambda r, a, d, t: t, "three lists of broker ids are expected"),
        (lambda r, a, t: t, "Its parameters are not those"),
    ],
}
