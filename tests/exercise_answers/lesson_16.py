"""Right and wrong answers to the exercises of lesson 16."""

from __future__ import annotations

from typing import Any


def by_division(expiration: int, tick: int, n: int, now: int) -> tuple:
    """Kafka's place."""
    return expiration // tick % n, expiration // tick * tick


def by_remainder(expiration: int, tick: int, n: int, now: int) -> tuple:
    """The same, written otherwise."""
    return expiration % (tick * n) // tick, expiration - expiration % tick


RIGHT: dict[str, list[Any]] = {
    "16.1": [[(3, 1), (2, 2), (1, 17)], ((3, 1), (2, 2), (1, 17))],
    "16.2": [by_division, by_remainder, lambda e, tick, n, now: ((e - now) // tick % n, e // tick * tick)],
    "16.3": [["try", "watch", "try", "timer"], ("watch", "try", "timer"), ["try", "watch", "try", "try", "timer"]],
    "16.4": [{"purge_interval": 100}, {"partitions": 10}],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "16.1": [
        ([(3, 1), (2, 2), (1, 10)], "That is for clock 0"),
        ([(2, 2), (3, 1), (1, 17)], "yours goes up again"),
        ([(3, 1), (1, 17)], "57 ms are left"),
        ([(1, 17)], "457 is 450 ms ahead"),
        ([(3, 1)], "Where is the task when that bucket has expired"),
        ([(3, 1), (2, 3), (1, 17)], "Look again at place 2"),
        ([(3, 1, 400), (2, 2, 440)], "is no list of pairs"),
    ],
    "16.2": [
        (lambda e, tick, n, now: ((e - now) // tick % n, (e - now) // tick * tick), "neither a distance nor a number"),
        (lambda e, tick, n, now: (e // tick % n, e // tick), "expires at 1, the clock shows 1"),
        (lambda e, tick, n, now: (round(e / tick) % n, round(e / tick) * tick), "52 of 100 tasks run late"),
        (lambda e, tick, n, now: (e // tick % n, (e // tick + 1) * tick), "100 of 100 tasks run late"),
        (lambda e, tick, n, now: (0, e // tick * tick), "too many are put into one bucket"),
        (lambda e, tick, n, now: None, "it is a pair: the bucket"),
        (by_division(1, 1, 1, 1), "is no function"),
    ],
    "16.3": [
        (["try", "watch", "timer"], "between 'try' and 'watch', and nobody notices: it was not on a list yet"),
        (["try", "timer", "watch"], "between 'try' and 'timer', and nobody notices: it was not"),
        (["try", "watch", "try"], "nothing ends it"),
        (["try", "timer", "watch", "try"], "put into the timer in vain"),
        (["try", "timer"], "the request is on none"),
        (["watch", "timer"], "before the first step"),
        (["lock", "try"], "is no list of steps"),
    ],
    "16.4": [
        ({"purge_interval": 10000}, "more to collect now"),
        ({"wait": 100}, "Nothing waits"),
        ({"requests": 100}, "it only begins anew"),
        ({"purge_interval": 500}, "until the next purge"),
        ({"partitions": 100}, "it is on more lists"),
        ({"partitions": 0}, "a whole number, 1 or more"),
        ({"heap": 8}, "is no dictionary of changes"),
    ],
}
