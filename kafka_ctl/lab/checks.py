"""What a person may give a lab: each check returns the value it was given, or says in one sentence what is wrong."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper.fields import digits

MOST_SECONDS = 1_000_000
"""The longest time that may be asked for: some eleven days, in which brokers look at their ISRs 200,000 times."""


def whole(what: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number that is not too small, nor too large where there is a limit; True and False are no numbers."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{what} cannot be {_short(value)}; it is a whole number, {least} or more")
    if most is not None and value > most:
        raise BadInput(f"{what} cannot be {_short(value)}; it is a whole number, {most} or less")
    return value


def seconds(what: str, value: Any) -> float:
    """A length of time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise BadInput(f"{what} cannot be {_short(value)}; it is a number of seconds, 0 or more")
    if value > MOST_SECONDS:
        raise BadInput(f"{what} cannot be {_short(value)}; it is a number of seconds, {MOST_SECONDS} or less")
    return value


def _short(value: Any) -> str:
    """What was given, as far as it is worth repeating."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number too long to be written
        return "a number of very many digits"


def text(what: str, value: Any) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        raise BadInput(f"{what} cannot be {_short(value)}; it is a name")
    return writable(what, value)


def writable(what: str, value: str) -> str:
    """A text that UTF-8 can hold; half of a surrogate pair, which JSON can name, is none."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{what} cannot be {_short(value)}; character {error.start} cannot be written") from None
    return value


def mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """Keys and values."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{what} cannot be {value!r}; it is a mapping, {{...}}")
    return value


def replicas(what: str, value: Any) -> tuple[int, ...]:
    """Broker ids, the preferred leader first."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {value!r}; they are broker ids, such as [1, 2, 3]")
    return tuple(whole(f"a broker id among {what}", broker) for broker in value)


def assignment(what: str, value: Any) -> dict[int, tuple[int, ...]]:
    """Replicas by partition number; a story's text has the numbers as text."""
    given = mapping(what, value)
    numbers = [n if not isinstance(n, str) or (plain := digits(n)) is None else plain for n in given]
    return {
        whole(f"a partition of {what}", n): replicas(f"the replicas of partition {n}", r)
        for n, r in zip(numbers, given.values(), strict=True)
    }


def topic_partition(given: Any) -> TopicPartition:
    """A topic-partition given as a pair or as text, `orders-0`."""
    pair = tuple(given.rpartition("-")[::2]) if isinstance(given, str) else given
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and pair[0]:
        if isinstance(pair[1], int) and not isinstance(pair[1], bool) and pair[1] >= 0:
            return TopicPartition(*pair)
        if isinstance(given, str) and (plain := digits(str(pair[1]))) is not None:
            return TopicPartition(pair[0], plain)
    raise BadInput(f"{given!r} names no partition; a pair such as ('orders', 0) or text such as 'orders-0' does")


def topic_partitions(what: str, value: Any) -> list[TopicPartition]:
    """Several topic-partitions."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {value!r}; they are a list such as [('orders', 0)]")
    return [topic_partition(list_or_pair(given)) for given in value]


def list_or_pair(given: Any) -> Any:
    """A story's text has pairs as lists."""
    return tuple(given) if isinstance(given, list) else given
