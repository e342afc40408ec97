"""Kafka's errors by number, as they stand on the wire."""

from __future__ import annotations

from functools import cache

from kafka_ctl.errors import UnknownName

RENAMED = {"NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER", "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION"}
"""Names that Kafka has changed since, numbers that it has not."""


@cache
def codes() -> dict[str, int]:
    """The number of every error; NONE is 0."""
    from kio.schema.errors import ErrorCode

    numbers = {error.name.upper(): int(error) for error in ErrorCode}
    return numbers | {old: numbers[new] for old, new in RENAMED.items() if new in numbers}


def number_of(error: str | None) -> int:
    """The number of an error by Kafka's name for it, 0 for None."""
    if error is None:
        return 0
    if error not in codes():
        raise UnknownName("error of Kafka", error, codes())
    return codes()[error]


def name_of(number: int) -> str | None:
    """Kafka's name of an error, of 2.4's time; None for 0."""
    if number == 0:
        return None
    found = next((name for name, known in codes().items() if known == number), f"error {number}")
    return next((old for old, new in RENAMED.items() if new == found), found)
