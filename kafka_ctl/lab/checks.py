"""What a person may give a lab: each check returns the value it was given, or says in one sentence what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput


def whole(what: str, value: Any, least: int = 0) -> int:
    """A whole number that is not too small; True and False are no numbers."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{what} cannot be {value!r}; it is a whole number, {least} or more")
    return value


def seconds(what: str, value: Any) -> float:
    """A length of time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise BadInput(f"{what} cannot be {value!r}; it is a number of seconds, 0 or more")
    return value


def text(what: str, value: Any) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        raise BadInput(f"{what} cannot be {value!r}; it is a name")
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
    numbers = [int(n) if isinstance(n, str) and n.isdigit() else n for n in given]
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
        if isinstance(given, str) and str(pair[1]).isdigit():
            return TopicPartition(pair[0], int(pair[1]))
    raise BadInput(f"{given!r} names no partition; a pair such as ('orders', 0) or text such as 'orders-0' does")


def topic_partitions(what: str, value: Any) -> list[TopicPartition]:
    """Several topic-partitions."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {value!r}; they are a list such as [('orders', 0)]")
    return [topic_partition(list_or_pair(given)) for given in value]


def list_or_pair(given: Any) -> Any:
    """A story's text has pairs as lists."""
    return tuple(given) if isinstance(given, list) else given
