"""Right and wrong answers to the exercises of lesson 13."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any


def counted(megabytes: int, writes: int, seconds: int, in_sync: int, added: int) -> float:
    """Every byte that the leader sends."""
    return added * megabytes / seconds + (in_sync + added) * writes


def throttled(lab: Any, *steps: str) -> None:
    """Work on exercise 13.2."""
    for step in steps:
        match step:
            case "cancel":
                lab.cancel_reassignment([("orders", 0)])
            case "start":
                lab.start(4)
            case "config":
                lab.delete_znode("/config/brokers/4")
            case "verify":
                lab.verify_reassignment({("orders", 0): [1, 2, 3]})
            case "verify nothing":
                lab.verify_reassignment('{"version":1,"partitions":[]}')
            case _:
                lab.verify_reassignment({("orders", 0): [1, 2, 4]})
        lab.settle()


RIGHT: dict[str, list[Any]] = {
    "13.1": [counted, lambda *given: math.ceil(1.1 * counted(*given)), lambda *given: Fraction(counted(*given))],
    "13.2": [
        lambda lab: throttled(lab, "cancel", "start", "verify"),
        lambda lab: throttled(lab, "cancel", "verify", "start", "verify"),
        lambda lab: throttled(lab, "cancel", "config", "verify", "start"),
    ],
}

WRONG: dict[str, list[tuple[Any, str]]] = {
    "13.1": [
        (lambda mb, w, s, i, a: mb / s, "While records are written, the leader sends these, too"),
        (lambda mb, w, s, i, a: mb / s + w, "but the bytes that the leader sends them count"),
        (lambda mb, w, s, i, a: mb / s + i * w, "The new replica also needs what is written"),
        (lambda mb, w, s, i, a: mb / s + (i + a) * w, "to *each* new replica"),
        (lambda mb, w, s, i, a: 7, "Which bytes does the leader count in a second, for each of 2 followers"),
        (lambda *given: 1000, "Clients pay for each MB/s that is not needed"),
        (lambda *given: 10**6 * counted(*given), "is no rate in MB a second"),
        (lambda *given: "8", "is text"),
        (lambda mb, w, s: mb / s, "raised TypeError"),
    ],
    "13.2": [
        (lambda lab: throttled(lab, "cancel", "verify", "start"), "broker 4 was not"),
        (lambda lab: throttled(lab, "cancel"), "the controller leaves them"),
        (lambda lab: throttled(lab, "verify"), "the plan *you give it*"),
        (lambda lab: throttled(lab, "start", "verify the new"), "AR is [1, 2, 4]."),
        (lambda lab: throttled(lab, "start"), "Was it cancelled before?"),
        (
            lambda lab: throttled(lab, "cancel", "start", "verify nothing"),
            "The lists of a topic that is not in your plan",
        ),
        (lambda lab: lab.delete_znode("/admin/reassign_partitions"), "the plan is also in the topic's znode"),
        (
            lambda lab: lab.delete_znode("/config/brokers/4"),
            "broker 4 is down. A throttle is in each broker's settings",
        ),
        (lambda lab: lab.reassign({("orders", 0): [1, 2, 3]}), "A move changes AR."),
    ],
}
