"""What a lab is opened with: Kafka's configuration, and the brokers there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import cast

from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.generation import Config, Generation
from kafka_ctl.lab import validate

MAX_ID = 2**31 - 1
"""The largest broker id, and the largest number in a configuration: Kafka's are 32-bit integers."""
ZERO_IS_FINE = (
    "controlled.shutdown.retry.backoff.ms",
    "leader.imbalance.per.broker.percentage",
    "reserved.broker.max.id",
)
"""Configuration keys that may be 0; the others are intervals, sizes and counts."""


def parse_config(generation: Generation, given: Mapping[str, object] | None) -> Config:
    """Kafka's configuration with the generation's defaults; UnknownName or BadInput for what it cannot be."""
    config: dict[str, object] = dict(generation.config)
    for key, value in (given or {}).items():
        if key not in config:
            raise UnknownName("configuration key", key, sorted(config))
        default = config[key]
        if isinstance(default, bool) is not isinstance(value, bool) or not isinstance(value, (bool, int)):
            wanted = "True or False" if isinstance(default, bool) else "a whole number"
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it is {wanted}")
        least = 0 if key in ZERO_IS_FINE else 1
        if not isinstance(value, bool) and value < least:
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it is {least} or more")
        if value > MAX_ID:
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it is {MAX_ID} or less")
        config[key] = value
    return cast(Config, config)  # each value is of its default's type


def parse_brokers(brokers: int | Iterable[int] | Mapping[int, str | None]) -> dict[int, str | None]:
    """Broker ids and their racks: 3 means 1, 2, 3; or a list of ids; or {id: rack}.

    In a list, None is a broker that gets its id from ZooKeeper; a number below 0 keeps its place here.
    """
    if isinstance(brokers, int) and not isinstance(brokers, bool):
        if not 1 <= brokers <= 1000:
            raise BadInput(f"brokers={short(brokers)}: a lab has 1 to 1000 brokers; give their number or a list of ids")
        return dict.fromkeys(range(1, brokers + 1))
    if isinstance(brokers, (str, bytes)) or not isinstance(brokers, Iterable):
        raise BadInput(f"brokers={short(brokers)}: give a number, a list of ids, or a mapping of ids to racks")
    listed = brokers if isinstance(brokers, Mapping) else list(brokers)
    unnamed: dict[int, str | None] = {}
    if isinstance(listed, list):
        known = [broker for broker in listed if broker is not None]
        unnamed, listed = dict.fromkeys(range(len(known) - len(listed), 0)), known
    for broker in listed:
        if not isinstance(broker, int) or isinstance(broker, bool) or broker < 0:
            raise BadInput(f"broker id {short(broker)}: an id is a whole number, 0 or more, or None in a list")
        if broker > MAX_ID:
            raise BadInput(f"broker id {short(broker)}: an id is {MAX_ID} or less")
    racks = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
    if not racks and not unnamed:
        raise BadInput("brokers: a lab needs at least one broker")
    for broker, rack in racks.items():
        if not isinstance(rack, (str, NoneType)):
            raise BadInput(f"broker {broker} cannot be in rack {short(rack)}; a rack is a name or None")
        validate.utf8("a rack", rack or "")
    if len(racks) != len(listed):
        raise BadInput(f"brokers={short(listed)}: an id is given twice")
    return dict(sorted(racks.items())) | unnamed
