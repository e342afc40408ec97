"""Kafka's error messages of the controller: a name in `failures.txt`, and the values of its fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kafka_ctl.errors import StateChangeFailed
from kafka_ctl.paths import blocks
from kafka_ctl.requests import UNKNOWN_PARTITION, ApiError

UNKNOWN = ApiError(UNKNOWN_PARTITION, "The partition does not exist.")
"""The answer to administrators for a partition that the controller does not know."""


@cache
def _templates() -> dict[str, str]:
    """The messages by name."""
    return {name: " ".join(lines) for name, *lines in blocks(__package__, "failures.txt")}


def text(message: str, /, **fields: object) -> str:
    """A message with its fields filled in."""
    return _templates()[message].format(**fields)


def failure(message: str, kind: type[StateChangeFailed] = StateChangeFailed, /, **fields: object) -> StateChangeFailed:
    """The error with this message."""
    return kind(text(message, **fields))


def joined(values: Iterable[object], mark: str = ", ") -> str:
    """Values as Scala's `mkString` joins them."""
    return mark.join(map(str, values))
