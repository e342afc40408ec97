"""What can be clicked: each button is one call of the lab, made from the thing that is clicked and what is filled in.

A thing has the id of its part in the picture: `broker:2`, `partition:orders-0`, `zookeeper`; the whole cluster has
the empty one, `tool` is Kafka's reassignment tool, which stands beside the picture, and `time` lets time pass.
The buttons of a command stand above its method, in `@command(...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab.story import Command

T = TypeVar("T")
Given = Mapping[str, str]
"""What was filled in: name of the field -> text."""
Call = tuple[tuple[object, ...], Mapping[str, object]]
"""Arguments by position and by name."""
BROKER, PARTITION, ZOOKEEPER, CLUSTER, TOOL, TIME = THINGS = ("broker", "partition", "zookeeper", "", "tool", "time")
WHEN_UP, WHEN_DOWN = "up", "down"
"""States of a broker in which it has a button."""
MEMORY = "memory"
"""What a button needs that works only in virtual time, or with a ZooKeeper that is simulated."""


# What a field gives


def as_written(given: Given, name: str) -> str:
    return given.get(name, "")


def text(given: Given, name: str) -> str:
    return given.get(name, "").strip()


def number(given: Given, name: str) -> int:
    """BadInput where it is none."""
    return _parsed(given, name, int)


def _parsed(given: Given, name: str, kind: Callable[[str], T]) -> T:
    try:
        return kind(text(given, name))
    except ValueError:
        raise BadInput(f"{name.replace('_', ' ')} cannot be {text(given, name)!r}; it is a number") from None


def seconds(given: Given, name: str) -> float:
    value = _parsed(given, name, float)
    return int(value) if value == int(value) else value


def maybe(given: Given, name: str) -> int | None:
    """A number that may be left out."""
    return number(given, name) if text(given, name) else None


def end(given: Given, name: str) -> int | str:
    """One end of a connection: a broker, or `zookeeper`."""
    return text(given, name) if text(given, name) == ZOOKEEPER else number(given, name)


def replicas(given: Given, name: str) -> list[int]:
    """Broker ids, with commas or spaces between."""
    plain = [parse_int(word) for word in given.get(name, "").replace(",", " ").split()]
    if not plain or None in plain:
        raise BadInput(f"the {name} {given.get(name, '')!r} cannot be read; write broker ids such as 2, 3, 1")
    return [broker for broker in plain if broker is not None]


def partition(name: str) -> tuple[str, int]:
    """Topic and number of a partition called like `orders-0`."""
    topic, _, digits = name.strip().rpartition("-")
    plain = parse_int(digits)
    if not topic or plain is None:
        raise BadInput(f"{name!r} names no partition; one is called like orders-0")
    return topic, plain


class Clickable(Protocol):
    """What decides which buttons a lab has."""

    generation: Generation
    zookeeper: str


class Field(NamedTuple):
    """Something to fill in, and what its text is read as.

    `kind` is `number`, `text`, `optional` (may be left empty), `lines`, `choice` (of what `default` lists, with `|`
    between), or `partition`, `replicas`, `topic`, `brokers`, `plan`, which have suggestions.
    """

    name: str
    label: str
    kind: str
    default: str = ""
    read: Callable[[Given, str], object] = text

    def choice(self, given: Given) -> str:
        """What was chosen; the first when nothing was. UnknownName for what is no choice."""
        known = self.default.split("|")
        chosen = given.get(self.name, "") or known[0]
        if chosen not in known:
            raise UnknownName(self.name, chosen, known)
        return chosen


class Button(NamedTuple):
    """One button for a kind of thing: what it is called, what it means, and the call it makes."""

    thing: str
    label: str
    hint: str
    fields: tuple[Field, ...] = ()
    when: str = ""
    """The state that the broker must be in, `up` or `down`; empty when it does not matter."""
    call: Callable[[str, Given], Call] | None = None
    """The call, where it is not just the thing and then the fields, in their order."""
    needs: str = ""
    """`memory`, or a field of the generation, without which it is not offered."""
    rank: int = 0
    """Smaller ones come first; equal ones in the order of their methods."""
    do: str = ""
    """What a click says, where the thing has another button of the same method."""

    def made(self, name: str, given: Given) -> Call:
        """The arguments for the thing of this name; BadInput for a field that cannot be read."""
        if self.call is not None:
            return self.call(name, given)
        if self.thing == BROKER:
            start: tuple[object, ...] = (int(name),)
        else:
            start = partition(name) if self.thing == PARTITION else ()
        return (*start, *(field.read(given, field.name) for field in self.fields)), {}

    def offered(self, lab: Clickable) -> bool:
        """Whether this lab can do it."""
        if self.needs == MEMORY:
            return lab.zookeeper == MEMORY
        return not self.needs or lab.generation.has(self.needs)


SECONDS = Field("seconds", "Seconds", "number", "20", seconds)
DISK = Field("directory", "Log directory", "choice", "/d0|/d1")


def buttons(lab: type, thing: str) -> Iterator[tuple[str, Button]]:
    """The commands and buttons that a kind of thing has in a class of labs."""
    methods = ((name, method) for cls in reversed(lab.__mro__) for name, method in vars(cls).items())
    found = [(n, b) for n, method in methods for b in getattr(method, "buttons", ()) if b.thing == thing]
    return iter(sorted(found, key=lambda entry: entry[1].rank))


def menu(lab: Clickable) -> dict[str, list[dict[str, object]]]:
    """Kind of thing -> the buttons this lab has for it, as data for the browser."""
    return {
        thing: [
            {"do": b.do or name, "label": b.label, "hint": b.hint, "when": b.when,
             "fields": [{key: value for key, value in f._asdict().items() if key != "read"} for f in b.fields]}
            for name, b in buttons(type(lab), thing) if b.offered(lab)
        ]
        for thing in THINGS
    }  # fmt: skip


def clicked(lab: Clickable, thing: str, do: str, given: Given) -> Command:
    """The call for one click; UnknownName for what the thing does not have, BadInput for a bad field."""
    kind, _, name = thing.partition(":")
    known = {b.do or name: (name, b) for place in (kind, TIME) for name, b in buttons(type(lab), place)}
    if do not in known:
        raise UnknownName(f"action on {thing or 'the cluster'}", do, known)
    if kind == BROKER and parse_int(name) is None:
        raise BadInput(f"{thing!r} is no broker")
    method, button = known[do]
    return Command(method, *button.made(name, given))
