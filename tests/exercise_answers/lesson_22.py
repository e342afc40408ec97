"""Reading a real incident."""

from __future__ import annotations

from typing import Any

from kafka_ctl_course.lesson_22 import never_led


def backwards(records: Any) -> set:
    seen, found = set(), set()
    for record in reversed(list(records)):
        tp = record.topic, record.partition
        if tp not in seen and record.leader is None:
            found.add(tp)
        seen.add(tp)
    return found


def refused(records: Any) -> list:
    return [(r.topic, r.partition) for r in records if r.leader is None]


def falsy(records: Any) -> set:
    """Broker 0 taken for no broker."""
    return {tp for tp, leader in {(r.topic, r.partition): r.leader for r in records}.items() if not leader}


RIGHT: dict[str, list[Any]] = {
    "22.2": [never_led, backwards, lambda records: sorted(never_led(records))],
    "22.3": [lambda lab: lab.start(1002)],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "22.2": [
        (lambda records: set(refused(records)), "only the last line of a partition counts"),
        (lambda records: len(refused(records)), "You counted lines"),
        (falsy, "('orders', 1)"),
        (lambda records: set(), "found no leader: theirs is None"),
        (lambda records: {("netflow", 0)}, "netflow-1 is missing"),
        (lambda records: never_led(records) | {("other", 9)}, "No election of ('other', 9) is among the records"),
        (lambda records: {("netflow", str(n)) for n in range(3)}, "such as {('orders', 0)}: a name and a number"),
        (refused, "A partition is in it twice"),
        (lambda records: "netflow", "you return 'netflow'. A set of pairs is asked for, such as"),
    ]
}
