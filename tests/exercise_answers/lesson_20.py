"""Produce, Fetch and requests that wait."""

from __future__ import annotations

import struct
from typing import Any

from kafka_ctl_course.lesson_20 import fields_of


def with_struct(data: bytes) -> tuple[int, ...]:
    (length,) = struct.unpack_from(">h", data, 12)
    replica, _, _, _, level, session, epoch = struct.unpack_from(">iiiibii", data, 14 + max(0, length))
    return replica, level, session, epoch


def unsigned(data: bytes) -> tuple[int, ...]:
    replica, level, session, epoch = fields_of(data)
    return replica % 2**32, level, session, epoch


def none_is_one_letter(data: bytes) -> tuple[int, ...]:
    (length,) = struct.unpack_from(">h", data, 12)
    replica, _, _, _, level, session, epoch = struct.unpack_from(">iiiibii", data, 14 + length)
    return replica, level, session, epoch


def without_level(data: bytes) -> tuple[int, ...]:
    (length,) = struct.unpack_from(">h", data, 12)
    replica, _, _, _, session, epoch = struct.unpack_from(">iiiiii", data, 14 + max(0, length))
    return replica, 0, session, epoch


def without_own_length(data: bytes) -> tuple[int, ...]:
    """Offsets in the request, used on bytes with the length in front."""
    (length,) = struct.unpack_from(">h", data, 8)
    replica, _, _, _, level, session, epoch = struct.unpack_from(">iiiibii", data + bytes(99), 10 + max(0, length))
    return replica, level, session, epoch


def all_empty(lab: Any) -> None:
    """Each broker starts with an empty disk."""
    for command in (lab.kill, lambda broker: lab.start(broker, empty=True)):
        for broker in (1, 2, 3):
            command(broker)


RIGHT: dict[str, list[Any]] = {
    "20.2": [fields_of, with_struct, lambda data: list(with_struct(data))],
    "20.3": [
        lambda lab: lab.catch_up(3),
        lambda lab: lab.bounce(3),
        lambda lab: lab.kill(3),
        lambda lab: lab.shutdown(3),
        lambda lab: lab.reassign({"orders-0": [1]}),
        lambda lab: (lab.kill(1), lab.run_for(60), lab.catch_up(3)),
        lambda lab: lab.fail_log_dir(3),
    ],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "20.2": [
        (unsigned, "it has a sign"),
        (none_is_one_letter, "no client id, and no letters"),
        (without_level, "Count the bytes"),
        (without_own_length, "replica_id is 65544, not -1"),
        (lambda data: fields_of(data)[0], "are asked for"),
        (
            lambda data: tuple(value or False for value in fields_of(data)),
            "4 parts are asked for: False is not a whole number",
        ),
    ],
    "20.3": [
        (lambda lab: lab.kill(1), "waits for the same follower"),
        (lambda lab: lab.bounce(1), "The new leader waits"),
        (lambda lab: lab.bounce(2), "That broker does not lag"),
        (lambda lab: lab.catch_up(2), "shows which one does"),
        (lambda lab: lab.disconnect(3, 1), "in the ISR for a day"),
        (lambda lab: (lab.kill(1), lab.settle(), lab.catch_up(3)), "Nothing after `settle` was carried out: the lab"),
        (lambda lab: lab.produce("orders", 0, wait=False), "More records do not help"),
        (lambda lab: lab.delete_controller(), "does not touch high watermarks"),
        (lambda lab: (lab.kill(1), lab.kill(2)), "records are gone"),
        (all_empty, "the leader's log ends at 0: records are gone"),
        (lambda lab: (lab.kill(1), lab.kill(2), lab.kill(3)), "no client can read"),
    ],
}
