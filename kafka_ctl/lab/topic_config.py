"""What a topic can be configured with, and what Kafka says to other values.

Kafka 2.4.1: log/LogConfig.scala, LogConfig; clients common/config/ConfigDef.java, parseType, Range, ValidList
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kafka_ctl.errors import ApiException, UnknownName

Wrong = tuple[object, str] | None
"""The value as Kafka repeats it, and what it says of it; None when nothing is wrong."""


def _boolean(value: str) -> Wrong:
    fine = value.strip().lower() in ("true", "false")
    return None if fine else (value, "Expected value to be either true or false")


def _number(kind: str, bits: int, least: int) -> Callable[[str], Wrong]:
    def check(value: str) -> Wrong:
        parse_int = value.strip()
        fits = re.fullmatch(r"[+-]?[0-9]{1,40}", parse_int) and -(2 ** (bits - 1)) <= int(parse_int) < 2 ** (bits - 1)
        if not fits:
            return value, f"Not a number of type {kind}"
        return None if int(parse_int) >= least else (int(parse_int), f"Value must be at least {least}")

    return check


def _list_of(*allowed: str) -> Callable[[str], Wrong]:
    def check(value: str) -> Wrong:
        listed = [part.strip() for part in value.strip().split(",")] if value.strip() else []
        wrong = [part for part in listed if part not in allowed]
        return (wrong[0], f"String must be one of: {', '.join(allowed)}") if wrong else None

    return check


CHECKS: dict[str, Callable[[str], Wrong]] = {
    "unclean.leader.election.enable": _boolean,
    "min.insync.replicas": _number("INT", 32, 1),
    "retention.ms": _number("LONG", 64, -1),
    "cleanup.policy": _list_of("compact", "delete"),
}
"""The configuration keys of topics that the lab knows. (Before 2.2, Kafka took any number for `retention.ms`.)"""


def as_text(config: Mapping[str, Any]) -> dict[str, str]:
    """The configuration as Kafka stores it.

    Raises UnknownName for another key, ApiException (INVALID_CONFIG) for a wrong value.
    """
    for key in config:
        if key not in CHECKS:
            raise UnknownName("topic configuration key", key, CHECKS)
    texts = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in config.items()}
    check_values(texts)
    return texts


def check_values(config: Mapping[str, str]) -> None:
    """ApiException with Kafka's words for a value that one of the known keys cannot have."""
    for key, check in CHECKS.items():
        if key in config and (wrong := check(config[key])):
            raise ApiException("INVALID_CONFIG", f"Invalid value {wrong[0]} for configuration {key}: {wrong[1]}")
