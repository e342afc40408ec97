"""What a person may give a lab: each check returns the value it was given, or says in one sentence what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from kafka_ctl.cluster import TopicPartition, parse_int
from kafka_ctl.errors import BadInput, short

F = TypeVar("F")
MOST_CHARACTERS = 1000
"""The longest name: Kafka's topics have 249 characters at most."""
MOST_SECONDS = 1_000_000
"""The longest time that may be asked for: some eleven days, in which brokers look at their ISRs 200,000 times."""

MOST_BITS = 1000
"""The longest whole number that has no other limit, such as a seed; Python writes no numbers of very many digits."""


def integer(what: str, value: object, least: int = 0, most: int | None = None) -> int:
    """`value` if it is an int (not a bool) from `least` to `most`; BadInput otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{what} cannot be {short(value)}; it is a whole number, {least} or more")
    if value.bit_length() > MOST_BITS:
        raise BadInput(f"{what} cannot be {short(value)}; it is a whole number of at most {MOST_BITS} bits")
    if most is not None and value > most:
        raise BadInput(f"{what} cannot be {short(value)}; it is a whole number, {most} or less")
    return value


def seconds(what: str, value: object) -> float:
    """A length of time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise BadInput(f"{what} cannot be {short(value)}; it is a number of seconds, 0 or more")
    if value > MOST_SECONDS:
        raise BadInput(f"{what} cannot be {short(value)}; it is a number of seconds, {MOST_SECONDS} or less")
    return value


def flag(what: str, value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise BadInput(f"{what} cannot be {short(value)}; it is True or False")
    return value


def name(what: str, value: object) -> str:
    """A name."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_CHARACTERS:
        raise BadInput(f"{what} cannot be {short(value)}; it is a name")
    return utf8(what, value)


def utf8(what: str, value: str) -> str:
    """A text that UTF-8 can hold; half of a surrogate pair, which JSON can name, is none."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{what} cannot be {short(value)}; character {error.start} cannot be written") from None
    return value


def function(what: str, value: F, *given: object) -> F:
    """Something that can be called with what it is given, or None."""
    fine = value is None or callable(value)
    if callable(value):
        try:
            inspect.signature(value).bind(*given)
        except TypeError:
            fine = False
        except ValueError:  # a builtin without a signature
            pass
    if not fine:
        raise BadInput(f"{what} cannot be {short(value)}; it is a function of {len(given)} arguments, or None")
    return value


def mapping(what: str, value: object) -> Mapping[Any, object]:
    """Keys and values."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{what} cannot be {short(value)}; it is a mapping, {{...}}")
    return value


def replicas(what: str, value: object) -> tuple[int, ...]:
    """Broker ids, the preferred leader first."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {short(value)}; they are broker ids, such as [1, 2, 3]")
    return tuple(integer(f"a broker id among {what}", broker) for broker in value)


def assignment(what: str, value: object) -> dict[int, tuple[int, ...]]:
    """Replicas by partition number; a story's text has the numbers as text."""
    given = mapping(what, value)
    numbers = [n if not isinstance(n, str) or (plain := parse_int(n)) is None else plain for n in given]
    return {
        integer(f"a partition of {what}", n): replicas(f"the replicas of partition {n}", r)
        for n, r in zip(numbers, given.values(), strict=True)
    }


def topic_partition(given: object) -> TopicPartition:
    """A topic-partition given as a pair or as text, `orders-0`."""
    pair = tuple(given.rpartition("-")[::2]) if isinstance(given, str) else given
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and pair[0]:
        if isinstance(pair[1], int) and not isinstance(pair[1], bool) and pair[1] >= 0:
            return TopicPartition(*pair)
        if isinstance(given, str) and (plain := parse_int(str(pair[1]))) is not None:
            return TopicPartition(pair[0], plain)
    raise BadInput(f"{short(given)} names no partition; a pair such as ('orders', 0) or text such as 'orders-0' does")


def topic_partitions(what: str, value: object) -> list[TopicPartition]:
    """Several topic-partitions."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {short(value)}; they are a list such as [('orders', 0)]")
    return [topic_partition(list_or_pair(given)) for given in value]


def list_or_pair(given: object) -> object:
    """A story's text has pairs as lists."""
    return tuple(given) if isinstance(given, list) else given
