"""The configuration keys of topics and brokers in each release: types, defaults, and Kafka's checks of values.

All of them stand in `config_keys.txt`, read from Kafka's own jars by `python -m tools.kafka_tables`. A lab obeys
those of `generation.Config` and some of `OFFERED`; the others are checked, kept and shown.
Kafka 2.4.1: log/LogConfig.scala, LogConfig.validate; server/DynamicConfig.scala, DynamicBrokerConfig.scala; clients
common/config/ConfigDef.java, parseType, Range, ValidString, ValidList; api/ApiVersion.scala, ApiVersionValidator
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from kafka_ctl.brokers.replication_quota import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
    REPLICAS_FORM,
)
from kafka_ctl.errors import ApiException, BadInput, UnknownName
from kafka_ctl.generation import GENERATIONS, UNCLEAN, Generation
from kafka_ctl.paths import blocks

TOPIC, BROKER = "topic", "broker"
OFFERED = (
    *(UNCLEAN, "min.insync.replicas", "retention.ms", "cleanup.policy"),
    *(LEADER_REPLICAS, FOLLOWER_REPLICAS),
)
"""The keys of topics that a lab's menu offers: those with an effect in a lab, and two well-known ones."""
RATES = (LEADER_RATE, FOLLOWER_RATE)
"""Keys of brokers that can only be set while they run, and that a lab obeys."""
PER_BROKER = "per-broker"
BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
NUMBER, DECIMAL = (
    re.compile(r"[+-]?[0-9]{1,40}"),
    re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?"),
)
VERSIONS = "message.format.version"
REPLICA_LISTS = {
    "0.10": "{key}  must match for format "
    "[partitionId],[brokerId]:[partitionId],[brokerId]:[partitionId],[brokerId] etc",
    "2.0": "{key} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId],[brokerId]:[partitionId],[brokerId]:...",
    "2.4": "{key} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
}
"""Kafka's message about a value that is not a list of throttled replicas (ThrottledReplicaListValidator)."""


class Invalid(Exception):
    """Kafka's ConfigException: the value as it repeats it, and what is wrong with it."""

    def __init__(self, value: object, text: str) -> None:
        self.value, self.text = value, text
        super().__init__(text)


class ConfigKey(NamedTuple):
    """One key of a release."""

    name: str
    type: str
    default: str | None
    """Its value where nothing else is set, as text; None where there is none."""
    valid: str
    """The valid values of a key, as Kafka's validator prints them."""
    server_key: str | None = None
    """Of a topic's key: the broker's key that the default comes from."""
    mode: str | None = None
    """Of a broker's: PER_BROKER or `cluster-wide` where it can be changed while the broker runs."""
    synonyms: tuple[str, ...] = ()
    """The keys that a broker asks in turn for the value, beginning with its own."""

    def parse(self, value: str, generation: str) -> object:
        """The value that a text means; Invalid with Kafka's words for one that this key cannot have."""
        text = value.strip()
        if self.name in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
            _check_replicas(self.name, value, generation)
        match self.type:
            case "BOOLEAN":
                if text.lower() not in ("true", "false"):
                    raise Invalid(value, "Expected value to be either true or false")
                return text.lower() == "true"
            case "INT" | "SHORT" | "LONG" | "DOUBLE":
                return self._in_range(_number(self.type, value))
            case "LIST":
                listed = re.split(r"\s*,\s*", text) if text else []
                for part in listed:
                    self._in_set(part)
                return listed
        self._in_set(text)
        return text

    def _in_range(self, number: int | float) -> int | float:
        """Kafka: ConfigDef.java, Range."""
        if found := re.fullmatch(r"\[([0-9-]+),\.\.\.(?:,([0-9]+))?\]", self.valid):
            least, most = found.groups()
            if number < int(least):
                raise Invalid(number, f"Value must be at least {least}")
            if most is not None and number > int(most):
                raise Invalid(number, f"Value must be no more than {most}")
        return number

    def _in_set(self, text: str) -> None:
        """Kafka: ConfigDef.java, ValidString; api/ApiVersion.scala, apply."""
        is_set = self.valid.startswith("[") and not self.valid.startswith("[partitionId]")
        allowed = self.valid[1:-1].split(", ") if is_set else []
        if self.name == VERSIONS and allowed:
            parts = text.split(".")
            known = {*allowed, *(one.partition("-")[0] for one in allowed)}
            if ".".join(parts[: 3 if text.startswith("0.") else 2]) not in known:
                raise Invalid(text, f"Version `{text}` is not a valid version")
        elif allowed and text not in allowed:
            raise Invalid(text, f"String must be one of: {', '.join(allowed)}")


def _number(kind: str, value: str) -> int | float:
    text, wrong = value.strip(), Invalid(value, f"Not a number of type {kind}")
    if kind == "DOUBLE":
        if not DECIMAL.fullmatch(text):
            raise wrong
        return float(text.rstrip("dDfF"))
    bits = BITS[kind]
    if not NUMBER.fullmatch(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise wrong
    return int(text)


def _check_replicas(key: str, value: str, generation: str) -> None:
    """A list of throttled replicas. Kafka 2.0.1: server/ConfigHandler.scala, ThrottledReplicaListValidator"""
    parts = [part.strip() for part in value.split(",")]
    if parts[0] != "*" and not all(REPLICAS_FORM.fullmatch(part) for part in parts):
        raise Invalid(f"[{', '.join(parts)}]", REPLICA_LISTS[generation].format(key=key))


@cache
def keys(scope: str, generation: str) -> Mapping[str, ConfigKey]:
    """All keys of topics or brokers in the release of a generation, in the order in which Kafka checks them."""
    names, found = list(GENERATIONS), dict[str, ConfigKey]()
    for (line,) in blocks(__package__, "config_keys.txt"):
        first, last, where, name, kind, default, valid, other, synonyms = line.split("\t")
        if where == scope and names.index(first) <= names.index(generation) <= names.index(last):
            listed = tuple(synonyms.split(",")) if synonyms != "-" else (name,)
            text = None if default == "-" else json.loads(default)
            one = None if other == "-" else other
            server, mode = (one, None) if scope == TOPIC else (None, one)
            found[name] = ConfigKey(name, kind, text, valid, server, mode, listed)
    return found


@cache
def dynamic_keys(generation: str) -> Mapping[str, ConfigKey]:
    """The keys of brokers that can be changed while they run; of 0.10 only the two rates (KIP-226 is of 1.1)."""
    updated = {name: key for name, key in keys(BROKER, generation).items() if key.mode is not None}
    names = (*RATES, LOG_DIRS_RATE) if updated else RATES
    quotas = {name: ConfigKey(name, "LONG", str(2**63 - 1), "[0,...]", mode=PER_BROKER) for name in names}
    return quotas | updated


def check_values(config: Mapping[str, str], known: Mapping[str, ConfigKey], generation: Generation) -> None:
    """Raise ApiException (INVALID_CONFIG), with Kafka's text, if one of the known keys has an invalid value."""
    parsed = {}
    for name, key in known.items():
        if name in config:
            try:
                parsed[name] = key.parse(config[name], generation.name)
            except Invalid as wrong:
                text = f"Invalid value {_java(wrong.value)} for configuration {name}: {wrong.text}"
                raise ApiException("INVALID_CONFIG", text) from None
    _check_lags(parsed, known)


def _check_lags(parsed: Mapping[str, object], known: Mapping[str, ConfigKey]) -> None:
    """Raise ApiException if the shortest lag is above the longest. Kafka 2.4.1: log/LogConfig.scala, validateValues"""
    shortest, longest = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if longest in known and known[longest].server_key is not None:
        least, most = (int(str(parsed.get(key, known[key].default))) for key in (shortest, longest))
        if least > most:
            text = f"conflict topic config setting {shortest} ({least}) > {longest} ({most})"
            raise ApiException("INVALID_CONFIG", text)


def _java(value: object) -> object:
    """A number as Java prints it."""
    if not isinstance(value, float) or not value or 1e-3 <= abs(value) < 1e7:
        return value
    if not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    negative, (first, *others), exponent = Decimal(repr(value)).normalize().as_tuple()
    mantissa = f"{first}.{''.join(map(str, others)) or 0}"
    return f"{'-' * negative}{mantissa}E{int(exponent) + len(others)}"


def as_text(config: Mapping[str, object]) -> dict[str, str]:
    """Settings as Kafka stores them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}


def checked_topic(config: Mapping[str, object], generation: Generation) -> dict[str, str]:
    """A topic's settings as Kafka stores them. Raises UnknownName for another key, ApiException for a wrong value."""
    return _checked(config, keys(TOPIC, generation.name), generation, "topic configuration key")


def checked_broker(config: Mapping[str, object], generation: Generation) -> dict[str, str]:
    """Settings of a running broker as Kafka stores them.

    Raises BadInput for a key that can only be set at its start, UnknownName for one that does not exist.
    """
    known = dynamic_keys(generation.name)
    for key in config:
        if key not in known and key in keys(BROKER, generation.name):
            raise BadInput(f"{key} cannot be changed while a broker runs")
    return _checked(config, known, generation, "broker configuration key")


def _checked(
    config: Mapping[str, object], known: Mapping[str, ConfigKey], generation: Generation, what: str
) -> dict[str, str]:
    for key in config:
        if key not in known:
            raise UnknownName(what, key, known)
    texts = as_text(config)
    check_values(texts, known, generation)
    return texts
