"""Electing a controller."""

from __future__ import annotations

from typing import Any

from kafka_ctl import Lab
from kafka_ctl.trace import Trace


def number(record: Any) -> int:
    return int(record.actor.rpartition("-")[2])


def creates(records: Trace) -> list[Any]:
    return [r for r in records if r.path == "/controller" and r.action in ("create", "multi")]


def created(records: Trace) -> int:
    return next(number(r) for r in creates(records) if r.error is None)


def lowest(records: Trace) -> int:
    return min(number(r) for r in records.slice(action="start"))


def first_of(action: str) -> Any:
    return lambda records: number(records.slice(action=action)[0])


def in_turn(*order: int, way: str = "shutdown") -> Any:
    """A rolling restart in this order."""

    def restart(lab: Lab) -> None:
        for broker in order:
            getattr(lab, way)(broker)
            lab.settle()
            lab.start(broker)
            lab.settle()

    return restart


def without_waiting(lab: Lab) -> None:
    """A broker that was killed is started at once, and waits for its session; so three brokers wait together."""
    for broker in (1, 2, 4, 3):
        lab.kill(broker)
        lab.start(broker)


def all_at_once(lab: Lab) -> None:
    for broker in (1, 2, 4, 3):
        lab.shutdown(broker)
    lab.settle()
    for broker in (1, 2, 4, 3):
        lab.start(broker)


RIGHT: dict[str, list[Any]] = {
    "01.2": [created, lambda records: number(records.slice(action="elected")[0])],
    "01.4": [in_turn(1, 2, 4, 3), in_turn(4, 1, 2, 3), in_turn(1, 2, 4, 3, way="kill")],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "01.2": [
        (lowest, "has the lowest id and was started first"),
        (lambda records: number(creates(records)[-1]), "tried, too, and was refused"),
        (first_of("connect"), "opened its session first"),
        (first_of("registered"), "That is another race"),
        (lambda records: [2], "your function returned [2]; the broker's number"),
        (lambda records: 2, "can succeed for one broker only"),
        (lambda records: records.slice(action="elected")[0].actor, "the broker's number is asked for"),
    ],
    "01.4": [
        (in_turn(1, 2, 3, 4), "the controller changed 2 times: 3 → "),
        (in_turn(4, 3, 2, 1), "the controller changed 3 times: 3 → "),
        (all_at_once, "were down at the same time"),
        (without_waiting, "broker-1 and broker-2 were out of the cluster at the same time"),
        (in_turn(1, 2, 4), "not restarted and running again: broker 3"),
    ],
}
