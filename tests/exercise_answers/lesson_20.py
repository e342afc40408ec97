"""Reading a real incident."""

from __future__ import annotations

from typing import Any

from kafka_ctl.exercises.lesson_20 import never_led


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


RIGHT: dict[str, list[Any]] = {
    "20.1": [(1002,), [1002]],
    "20.2": [never_led, backwards],
    "20.3": ["start 1002", "start 1001\nsettle\nstart 1002", lambda lab: lab.start(1002)],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "20.1": [
        ((1, 1002), "Broker 1 is alive"),
        ((2,), "Broker 2 may be the same machine"),
        ((1001, 1002), "assigned to the topic offsets"),
        ((3,), "Broker 3 is alive, and not assigned"),
        ((), "Somebody is assigned"),
        (1002, "a tuple of one has a comma: (1002,)"),
    ],
    "20.2": [
        (lambda records: set(refused(records)), "only the last line of a partition counts"),
        (lambda records: len(refused(records)), "You counted lines"),
        (lambda records: set(), "found nobody: their leader is None"),
        (lambda records: {("netflow", 0)}, "netflow-1 is missing"),
        (lambda records: never_led(records) | {("other", 9)}, "has a leader by its last line"),
        (lambda records: "netflow", "A set of pairs is asked for, such as"),
    ],
    "20.3": [
        ("start 1001", "Who else is assigned"),
        ("delete_controller", "nobody who is assigned is alive"),
        ("elect_preferred", "The preferred leaders are the assigned ones"),
        ("""reassign '{"netflow-0":[2]}'""", "nobody to copy from"),
        ("set_broker_id 1002 7\nstart 1002", "does not start"),
        ("add_broker", "A new broker holds nothing"),
    ],
}
