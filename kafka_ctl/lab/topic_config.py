"""What a topic can be configured with, and what Kafka says to other values.

Kafka 2.4.1: log/LogConfig.scala, LogConfig; clients common/config/ConfigDef.java, parseType, Range, ValidList
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kafka_ctl.brokers.replication_quota import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    REPLICAS_FORM,
)
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


def _replicas(key: str) -> Callable[[str], Wrong]:
    """A list of throttled replicas. Kafka 2.0.1: server/ConfigHandler.scala, ThrottledReplicaListValidator"""

    def check(value: str) -> Wrong:
        parts = [part.strip() for part in value.split(",")]
        if parts[0] == "*" or all(REPLICAS_FORM.fullmatch(part) for part in parts):
            return None
        form = "[partitionId],[brokerId]:[partitionId],[brokerId]:..."
        return value, f"{key} must be the literal '*' or a list of replicas in the following format: {form}"

    return check


CHECKS: dict[str, Callable[[str], Wrong]] = {
    "unclean.leader.election.enable": _boolean,
    "min.insync.replicas": _number("INT", 32, 1),
    "retention.ms": _number("LONG", 64, -1),
    "cleanup.policy": _list_of("compact", "delete"),
    LEADER_REPLICAS: _replicas(LEADER_REPLICAS),
    FOLLOWER_REPLICAS: _replicas(FOLLOWER_REPLICAS),
}
"""The configuration keys of topics that the lab knows. (Before 2.2, Kafka took any number for `retention.ms`.)"""
OF_BROKERS: dict[str, Callable[[str], Wrong]] = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), _number("LONG", 64, 0))
"""Those of brokers that can be changed while they run."""


def as_text(
    config: Mapping[str, object],
    checks: Mapping[str, Callable[[str], Wrong]] = CHECKS,
    what: str = "topic configuration key",
) -> dict[str, str]:
    """The configuration as Kafka stores it.

    Raises UnknownName for another key, ApiException (INVALID_CONFIG) for a wrong value.
    """
    for key in config:
        if key not in checks:
            raise UnknownName(what, key, checks)
    texts = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in config.items()}
    check_values(texts, checks)
    return texts


def check_values(config: Mapping[str, str], checks: Mapping[str, Callable[[str], Wrong]] = CHECKS) -> None:
    """ApiException with Kafka's words for a value that one of the known keys cannot have."""
    for key, check in checks.items():
        if key in config and (wrong := check(config[key])):
            raise ApiException("INVALID_CONFIG", f"Invalid value {wrong[0]} for configuration {key}: {wrong[1]}")
