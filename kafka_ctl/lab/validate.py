"""Checks of what a lab is given: each names the fault in one sentence.

Checks of one argument return its value. All public calls share two things: arguments that fit, and errors that name the
wrong call. A call with too many, too few or unknown arguments, or with anything but true or false where these are
wanted, is refused with its signature. A command gets its arguments as read back from the line that the story keeps of
it, so a replay gets the same.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any, TypeVar, cast

from kafka_ctl.cluster import TopicPartition, broker_ids, parse_int, whole
from kafka_ctl.errors import ApiException, BadInput, UnknownName, short
from kafka_ctl.generation import Config, Generation

F = TypeVar("F")
T = TypeVar("T")
MAX_ID = 2**31 - 1
"""The largest broker id, and the largest number in a configuration: Kafka's are 32-bit integers."""
MOST_CHARACTERS = 1000
"""The longest name: Kafka's topics have 249 characters at most."""
MOST_SECONDS = 1_000_000
"""The longest time that may be asked for: some eleven days, in which brokers look at their ISRs 200,000 times."""

MOST_BITS = 1000
"""The longest whole number that has no other limit, such as a seed; Python writes no numbers of very many digits."""


def integer(what: str, value: object, least: int = 0, most: int | None = None) -> int:
    """`value` as an int, also one of numpy, if it is from `least` to `most` and no bool. Raises BadInput otherwise."""
    number = whole(value)
    if number is None or number < least:
        wanted = f", {least} or more"
    elif number.bit_length() > MOST_BITS:
        wanted = f" of at most {MOST_BITS} bits"
    elif most is not None and number > most:
        wanted = f", {most} or less"
    else:
        return number
    raise BadInput(f"{what} cannot be {short(value)}; it must be a whole number{wanted}")


def seconds(what: str, value: object) -> float:
    """A length of time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        plain = " without an exponent" if isinstance(value, str) and re.fullmatch(r"[\d.]+[eE]\+?\d+", value) else ""
        raise BadInput(f"{what} cannot be {short(value)}; it must be a number of seconds{plain}, 0 or more")
    if value > MOST_SECONDS:
        raise BadInput(f"{what} cannot be {short(value)}; it must be a number of seconds, {MOST_SECONDS} or less")
    return value


def flag(what: str, value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise BadInput(f"{what} cannot be {short(value)}; it must be True or False")
    return value


def name(what: str, value: object) -> str:
    """A name."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_CHARACTERS:
        raise BadInput(f"{what} cannot be {short(value)}; it must be a name")
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
        raise BadInput(f"{what} cannot be {short(value)}; it must be a function of {len(given)} arguments, or None")
    return value


def mapping(what: str, value: object) -> Mapping[Any, object]:
    """Keys and values."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{what} cannot be {short(value)}; it must be a mapping, {{...}}")
    return value


def replicas(what: str, value: object) -> tuple[int, ...]:
    """Broker ids, the preferred leader first."""
    return tuple(integer(f"a broker id among {what}", broker, 0, MAX_ID) for broker in broker_ids(what, value))


def targets(given: Mapping[Any, object]) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas by topic-partition."""
    return {topic_partition(tp): replicas(f"the replicas of {tp}", ids) for tp, ids in given.items()}


def assignment(what: str, value: object) -> dict[int, tuple[int, ...]]:
    """Replicas by partition number; a story's text has the numbers as text."""
    given = mapping(what, value)
    numbers = [n if not isinstance(n, str) or (plain := parse_int(n)) is None else plain for n in given]
    return {
        integer(f"a partition of {what}", n, 0, MAX_ID): replicas(f"the replicas of partition {n}", r)
        for n, r in zip(numbers, given.values(), strict=True)
    }


def topic_partition(given: object) -> TopicPartition:
    """A topic-partition given as a pair or as text, `orders-0`."""
    pair = tuple(given.rpartition("-")[::2]) if isinstance(given, str) else given
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and pair[0]:
        if (number := whole(pair[1])) is not None and number >= 0:
            return TopicPartition(pair[0], number)
        if isinstance(given, str) and (plain := parse_int(str(pair[1]))) is not None:
            return TopicPartition(pair[0], plain)
    raise BadInput(
        f"{short(given)} is not the name of a partition; give a pair such as ('orders', 0) or text such as 'orders-0'"
    )


def topic_partitions(what: str, value: object) -> list[TopicPartition]:
    """Several topic-partitions."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {short(value)}; they must be a list such as [('orders', 0)]")
    # A story's text has pairs as lists.
    return [topic_partition(tuple(given) if isinstance(given, list) else given) for given in value]


# The settings that open a lab

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
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it must be {wanted}")
        least = 0 if key in ZERO_IS_FINE else 1
        if not isinstance(value, bool) and value < least:
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it must be {least} or more")
        if value > MAX_ID:
            raise BadInput(f"configuration key {short(key)} cannot be {short(value)}; it must be {MAX_ID} or less")
        config[key] = value
    return cast(Config, config)  # each value is of its default's type


def parse_brokers(brokers: int | Iterable[int] | Mapping[int, str | None]) -> dict[int, str | None]:
    """Broker ids and their racks: 3 means 1, 2, 3; or a list of ids; or {id: rack}.

    In a list, None is a broker that gets its id from ZooKeeper; a number below 0 keeps its place here.
    """
    if (number := whole(brokers)) is not None:
        if not 1 <= number <= 1000:
            raise BadInput(f"brokers={short(brokers)}: a lab has 1 to 1000 brokers; give their number or a list of ids")
        return dict.fromkeys(range(1, number + 1))
    if isinstance(brokers, (str, bytes, bytearray)) or not isinstance(brokers, Iterable):
        raise BadInput(f"brokers={short(brokers)}: give a number, a list of ids, or a mapping of ids to racks")
    given: list[int | None] = list(brokers)
    ids = given if isinstance(brokers, Mapping) else [id for id in given if id is not None]
    racks: dict[int, str | None] = {}
    for id in ids:
        if (number := whole(id)) is None or number < 0:
            raise BadInput(f"broker id {short(id)}: an id is a whole number, 0 or more, or None in a list")
        if number > MAX_ID:
            raise BadInput(f"broker id {short(id)}: an id is {MAX_ID} or less")
        rack = brokers[number] if isinstance(brokers, Mapping) else None
        if not isinstance(rack, (str, NoneType)):
            raise BadInput(f"broker {id} cannot be in rack {short(rack)}; a rack is a name or None")
        racks[number] = utf8("a rack", rack) if rack else rack
    if not given:
        raise BadInput("brokers: a lab needs at least one broker")
    if len(racks) != len(ids):
        raise BadInput(f"brokers={short(ids)}: an id is given twice")
    return dict(sorted(racks.items())) | dict.fromkeys(range(len(ids) - len(given), 0))


# Calls

signature = functools.lru_cache(1024)(inspect.signature)


def form(method: Callable[..., object], name: str | None = None) -> str:
    """A method as it is called: `kill(broker: int)`."""
    parameters = [p for p in signature(method).parameters.values() if p.name not in ("self", "cls")]
    shown = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    typed = []
    for parameter, bare in zip(parameters, shown, strict=True):
        head, equals, default = str(bare).partition("=")
        annotated = parameter.annotation is not inspect.Parameter.empty
        typed.append(f"{head}: {parameter.annotation}{f' = {default}' if equals else ''}" if annotated else f"{bare}")
    return f"{name or method.__name__}({', '.join(typed)})"


def bind(
    method: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], name: str = ""
) -> dict[str, object]:
    """The arguments of a call by name, `self` among them; BadInput with its signature where they do not fit."""
    called = name or method.__name__
    try:
        given = signature(method).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise BadInput(f"{called}: {error}; the call is {form(method, called)}") from None
    for parameter in signature(method).parameters.values():
        if parameter.annotation == "bool" and not isinstance(given.get(parameter.name, True), bool):
            value = short(given[parameter.name])
            raise BadInput(f"{called}: {parameter.name} cannot be {value}; it must be True or False")
    return given


def name_call(error: BadInput, name: str) -> None:
    """Let an error begin with the outermost call that it is about, unless it names that, or a line of a story, anyway.

    Kafka's own words are left as they are.
    """
    if isinstance(error, ApiException) or re.match(r"line \d", str(error)):
        return
    text = error.unnamed = getattr(error, "unnamed", None) or str(error)
    error.args = (text if re.search(rf"\b{name}\b", text) else f"{name}: {text}",)


def call(method: Callable[..., T], name: str = "") -> Callable[..., T]:
    """A public call that is no command."""

    @functools.wraps(method)
    def checked(*args: object, **kwargs: object) -> T:
        bind(method, args, kwargs, name)
        try:
            return method(*args, **kwargs)
        except BadInput as error:
            if not hasattr(method, "names_itself"):
                name_call(error, name or method.__name__)
            raise

    return checked


def calls(cls: type[T]) -> type[T]:
    """Make every public method a `call` unless it is a command; a constructor is named as its class."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        method = found.__func__ if isinstance(found, classmethod) else found
        if name == "__init__":
            setattr(cls, name, call(method, cls.__name__))
        elif inspect.isfunction(method) and not name.startswith("_") and not hasattr(method, "is_command"):
            wrapped = call(method)
            setattr(cls, name, classmethod(wrapped) if isinstance(found, classmethod) else wrapped)
    return cls
