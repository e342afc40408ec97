"""Right and wrong answers to the exercises of lesson 15."""

from __future__ import annotations

from typing import Any

from kafka_ctl.balance import candidates


def rebalanced(
    compare: Any = lambda ratio, limit: ratio > limit,
    fit: Any = None,
    share: Any = None,
    counted: Any = lambda p: not p.deleting,
) -> Any:
    """What a rebalance elects, with a comparison, tests of a partition and a share of one's own."""

    def chosen(partitions: list, live: frozenset, moving: frozenset, percentage: int) -> list:
        found = []
        for broker in {p.preferred for p in partitions}:
            mine = [p for p in partitions if p.preferred == broker and counted(p)]
            away = [p for p in mine if p.leader != broker]
            of = partitions if share == "all" else mine
            if away and compare(len(away) / len(of), percentage / 100):
                surplus = away[: max(1, round(len(away) - len(of) * percentage / 100))]
                found += surplus if share == "surplus" else away
        return [p for p in found if (fit or elected)(p, live, moving)]

    return chosen


def elected(p: Any, live: frozenset, moving: frozenset) -> bool:
    return p.preferred in live and p.preferred in p.isr and not moving


def by_leader_only(partitions: list, live: frozenset, moving: frozenset, percentage: int) -> list:
    """Groups by who leads now."""
    found = []
    for broker in {p.leader for p in partitions}:
        mine = [p for p in partitions if p.leader == broker and not p.deleting]
        away = [p for p in mine if p.preferred != broker]
        found += away if mine and len(away) / len(mine) > percentage / 100 else []
    return [p for p in found if elected(p, live, moving)]


RIGHT: dict[str, list[Any]] = {
    "15.2": [candidates, rebalanced(), rebalanced(fit=lambda p, live, moving: p.preferred in live and not moving)]
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "15.2": [
        (rebalanced(lambda ratio, limit: ratio >= limit), "is exactly 10 %"),
        (rebalanced(share="all"), "not of all"),
        (rebalanced(share="surplus"), "not only the surplus"),
        (rebalanced(fit=lambda p, live, moving: p.preferred in live), "while any partition moves"),
        (rebalanced(fit=lambda p, live, moving: not moving), "is dead, and cannot lead"),
        (lambda *given: [], "has a ratio, too"),
        (lambda partitions, live, moving, percentage: partitions, "leads it already"),
        (rebalanced(lambda ratio, limit: ratio > 100 * limit), "It lies between 0 and 1, `percentage` between 0 and"),
        (
            rebalanced(fit=lambda p, live, moving: elected(p, live, moving) and not p.deleting, counted=bool),
            "that are to be deleted do not count",
        ),
        (
            lambda *given: [] if given[3] == 50 else candidates(*given),
            "In a case without a story: asked with partitions=[<t1-0",
        ),
        (by_leader_only, "of the 10 that prefer broker 1, 1 is led elsewhere: that is exactly 10 %"),
        (lambda *given: None, "a list of some of the partitions"),
    ]
}
