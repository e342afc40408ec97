"""The menu: each button is one call of the lab, made from the clicked thing and the values of a form.

A thing has the id of its part in the picture: `broker:2`, `partition:orders-0`, `zookeeper`; the whole cluster has
the empty one, `tool` is Kafka's reassignment tool, which stands beside the picture, and `time` lets time pass.
`menu.txt` has the buttons of each command, and how random walks (`explore/walk.py`) draw it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka_ctl.brokers.config_keys import OFFERED, RATES
from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.lab.story import Command
from kafka_ctl.paths import blocks

if TYPE_CHECKING:
    from kafka_ctl.lab.recorded_run import RecordedRun

T = TypeVar("T")
Given = Mapping[str, str]
"""The values of a form: name of the field -> text."""
Call = tuple[tuple[object, ...], Mapping[str, object]]
"""Arguments by position and by name."""
BROKER, PARTITION, ZOOKEEPER, _, _, TIME = THINGS = ("broker", "partition", "zookeeper", "", "tool", "time")
CLUSTER = "cluster"
"""The word of `menu.txt` for the whole cluster."""
MEMORY = "memory"
"""The need of a button: virtual time, or a simulated ZooKeeper."""


class Form(NamedTuple):
    """A filled form: the name of the clicked thing and the texts; its methods read one, or make a call of all."""

    name: str
    given: Given

    def text(self, field: str) -> str:
        return self.as_written(field).strip()

    def as_written(self, field: str) -> str:
        return self.given.get(field, "")

    def number(self, field: str) -> int:
        """Raise BadInput if it is not one."""
        return self._parsed(field, int)

    def seconds(self, field: str) -> float:
        value = self._parsed(field, float)
        return int(value) if value.is_integer() else value

    def _parsed(self, field: str, kind: Callable[[str], T]) -> T:
        text = self.text(field)
        try:
            return kind(text)
        except ValueError:
            raise BadInput(f"{field.replace('_', ' ')} cannot be {short(text)}; it must be a number") from None

    def maybe(self, field: str) -> int | None:
        """A number that may be left out."""
        return self.number(field) if self.text(field) else None

    def end(self, field: str = "other") -> int | str:
        """One end of a connection: a broker, or `zookeeper`."""
        return self.text(field) if self.text(field) == ZOOKEEPER else self.number(field)

    def replicas(self, field: str = "replicas") -> list[int]:
        """Broker ids, with commas or spaces between."""
        written = self.as_written(field)
        plain = [parse_int(word) for word in written.replace(",", " ").split()]
        if not plain or None in plain:
            raise BadInput(f"the {field} {short(written)} cannot be read; write broker ids such as 2, 3, 1")
        return [broker for broker in plain if broker is not None]

    def choice(self, field: Field) -> str:
        """The chosen value; the first when there is none. UnknownName for a value that is no choice."""
        known = field.default.split("|")
        chosen = self.as_written(field.name) or known[0]
        if chosen not in known:
            raise UnknownName(field.name, chosen, known)
        return chosen

    @property
    def broker(self) -> int:
        return int(self.name)

    @property
    def partition(self) -> tuple[str, int]:
        return _partition(self.name)

    # Calls, which `menu.txt` names

    def start_empty(self) -> Call:
        return (self.broker,), {"empty": True}

    def stop_within(self) -> Call:
        return (self.broker,), {"grace": self.seconds("seconds")}

    def lag(self) -> Call:
        return (self.broker, *_partition(self.as_written("partition"))), {}

    def disconnect(self) -> Call:
        ends, direction = (self.broker, self.end()), self.choice(FIELDS["lost"])
        one_way = {} if direction == "both ways" else {"one_way": True}
        return (ends[::-1] if direction == "only what it receives" else ends), one_way

    def lose(self) -> Call:
        after = self.choice(FIELDS["breaks"]) == "after it is applied"
        return (self.broker, self.end()), {"applied": True} if after else {}

    def produce(self) -> Call:
        acks = self.choice(FIELDS["acks"])
        records = self.number("records")
        size = {"size": bytes} if (bytes := self.maybe("size")) else {}
        return self.partition, {"records": records, "acks": int(acks) if acks.isdecimal() else acks} | size

    def alter_broker(self) -> Call:
        return ("brokers", self.broker, {self.choice(FIELDS["rate"]): self.text("rate") or None}), {}

    def alter_topic(self) -> Call:
        return ("topics", self.partition[0], {self.choice(FIELDS["setting"]): self.text("value") or None}), {}

    def set_meta(self) -> Call:
        cluster = self.text("cluster")
        args = self.broker, self.choice(FIELDS["disk"]), self.maybe("broker_id")
        return (*args, cluster) if cluster else args, {}

    def add_broker(self) -> Call:
        rack = self.text("rack")
        return (self.maybe("broker"),), {"rack": rack} if rack else {}

    def create_topic(self) -> Call:
        return (self.text("topic"),), {name: self.number(name) for name in ("partitions", "replication_factor")}

    def add_partitions(self) -> Call:
        return (self.partition[0], self.number("total")), {}

    def its_topic(self) -> Call:
        return (self.partition[0],), {}

    def one_partition(self) -> Call:
        """The call of a command that takes a list of partitions, with one in it."""
        return ([self.partition],), {}

    def elect_unclean(self) -> Call:
        return ("unclean", [self.partition]), {}

    def reassign(self) -> Call:
        return ({self.partition: self.replicas()},), {}

    def propose(self) -> Call:
        spread = {} if self.choice(FIELDS["spread"]) == "over racks" else {"rack_aware": False}
        return (self.as_written("topics").replace(",", " ").split(), self.replicas("brokers")), spread

    def execute(self) -> Call:
        throttles = {name: self.maybe(name) for name in ("throttle", "replica_alter_log_dirs_throttle")}
        return (self.as_written("plan"),), {name: rate for name, rate in throttles.items() if rate is not None}

    def move_copy(self) -> Call:
        """A plan that leaves the replicas where they are, and moves one of them to another log directory."""
        topic, number = self.partition
        broker, replicas = self.number("broker"), self.replicas()
        if broker not in replicas:
            raise UnknownName(f"replica of {topic}-{number} on broker", broker, replicas)
        dirs = [self.choice(FIELDS["disk"]) if replica == broker else "any" for replica in replicas]
        entry = {"topic": topic, "partition": number, "replicas": replicas, "log_dirs": dirs}
        return (json.dumps({"version": 1, "partitions": [entry]}, separators=(",", ":")),), {}

    def at_once(self) -> Call:
        return ([line for line in self.as_written("commands").splitlines() if line.strip()],), {}


def _partition(name: str) -> tuple[str, int]:
    """Topic and number of a partition called like `orders-0`."""
    topic, _, digits = name.strip().rpartition("-")
    plain = parse_int(digits)
    if not topic or plain is None:
        raise BadInput(f"{short(name)} is not the name of a partition; an example is orders-0")
    return topic, plain


class Field(NamedTuple):
    """Something to fill in, and what its text is read as.

    `kind` is `number`, `text`, `optional` (may be left empty), `lines`, `choice` (of what `default` lists, with `|`
    between), or `partition`, `replicas`, `topic`, `brokers`, `plan`, which have suggestions.
    """

    name: str
    label: str
    kind: str
    default: str = ""
    read: Callable[[Form, str], object] = Form.text


class Button(NamedTuple):
    """One button for a kind of thing: what it is called, what it means, and the call it makes."""

    thing: str
    label: str
    hint: str
    fields: tuple[Field, ...] = ()
    when: str = ""
    """The state that the thing must be in, such as `up` or `leaderless`; empty when it does not matter."""
    call: Callable[[Form], Call] | None = None
    """The method that makes the call, where that does not get just the thing and then the fields, in their order."""
    needs: str = ""
    """`memory`, or a field of the generation, without which it is not offered."""
    do: str = ""
    """The value of a click, where the thing has another button of the same method."""
    group: str = ""
    """The kind of thing that it touches, such as `network`; empty for the usual ones."""

    def made(self, name: str, given: Given) -> Call:
        """The arguments for the thing of this name. Raises BadInput for a field that cannot be read."""
        form = Form(name, given)
        if self.call is not None:
            return self.call(form)
        if self.thing == BROKER:
            start: tuple[object, ...] = (form.broker,)
        else:
            start = form.partition if self.thing == PARTITION else ()
        return (*start, *(field.read(form, field.name) for field in self.fields)), {}

    def offered(self, lab: RecordedRun) -> bool:
        """True if this lab can do it."""
        if self.needs == MEMORY:
            return lab.zookeeper == MEMORY
        return not self.needs or lab.generation.has(self.needs)

    def data(self, command: str) -> dict[str, object]:
        """The button of a command, as data for the browser."""
        fields = [{key: value for key, value in field._asdict().items() if key != "read"} for field in self.fields]
        do = self.do or command
        words = {"label": self.label, "hint": self.hint, "when": self.when, "group": self.group}
        return {"do": do, **words, "fields": fields}


# Draws

TOPICS = ("a", "b", "c")
PARTITIONS = 3
"""The most partitions of a topic in a walk."""


class Draw:
    """Random draws for a cluster of so many brokers: of one value, and of the arguments of a command."""

    def __init__(self, rng: Random, brokers: int, tools: Sequence[tuple[str, Drawn]] = ()) -> None:
        self.rng, self.brokers, self.tools = rng, brokers, tools

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def seconds(self, most: float) -> float:
        """A time, short ones as likely as long ones."""
        return round(most ** self.rng.uniform(-2.5, 1), 4)

    def broker(self) -> int:
        return self.rng.randint(1, self.brokers)

    def ends(self) -> list[int | str]:
        """Two ends of a connection."""
        return self.rng.sample([*range(1, self.brokers + 1), ZOOKEEPER], 2)

    def topic(self) -> str:
        return self.rng.choice(TOPICS)

    def partition(self) -> str:
        return f"{self.topic()}-{self.rng.randrange(PARTITIONS)}"

    def tool(self) -> Command:
        """A command of one administrator."""
        name, drawn = self.rng.choice(self.tools)
        return Command(name, *drawn.arguments(self))

    # Arguments, which `menu.txt` names

    def nothing(self) -> Call:
        return (), {}

    def one_broker(self) -> Call:
        return (self.broker(),), {}

    def one_topic(self) -> Call:
        return (self.topic(),), {}

    def shutdown(self) -> Call:
        return (self.broker(),), {"wait": False} if self.maybe(0.6) else {}

    def pause(self) -> Call:
        return (self.broker(), self.seconds(20)), {}

    def slow(self) -> Call:
        return (self.broker(), self.seconds(15)), {}

    def lag(self) -> Call:
        return (self.broker(), self.topic(), self.rng.randrange(PARTITIONS)), {}

    def disconnect(self) -> Call:
        return (*self.ends(),), {"one_way": True} if self.maybe(0.5) else {}

    def delay(self) -> Call:
        return (*self.ends(), self.seconds(3.9)), {}

    def lose(self) -> Call:
        return (self.broker(), self.ends()[1]), {"applied": True} if self.maybe(0.5) else {}

    def produce(self) -> Call:
        place = self.topic(), self.rng.randrange(PARTITIONS)
        records: dict[str, object] = {"records": self.rng.randint(1, 3)}
        acks: dict[str, object] = {"acks": 1} if self.maybe(1 / 3) else {}
        return place, records | acks | ({"wait": False} if self.maybe(0.6) else {})

    def reassign(self) -> Call:
        partition = self.partition()
        targets = self.rng.sample(range(1, self.brokers + 1), self.rng.randint(1, self.brokers))
        return ({partition: targets},), {"through": ZOOKEEPER} if self.maybe(0.3) else {}

    def create_topic(self) -> Call:
        topic, partitions = self.topic(), self.rng.randint(1, PARTITIONS)
        return (topic,), {"partitions": partitions, "replication_factor": self.rng.randint(1, self.brokers)}

    def add_partitions(self) -> Call:
        return (self.topic(), self.rng.randint(2, PARTITIONS)), {}

    def elect_leaders(self) -> Call:
        kind = self.rng.choice(("preferred", "unclean"))
        return (kind,), {"partitions": [self.partition()]} if self.maybe(0.5) else {}

    def at_once(self) -> Call:
        return ([str(self.tool()) for _ in range(self.rng.randint(2, 3))],), {}


class Drawn(NamedTuple):
    """The frequency of a command, beside the others, and the draw of its arguments."""

    weight: float
    arguments: Callable[[Draw], Call] = Draw.nothing
    needs: str = ""
    """A field of the generation without which it is not drawn."""


# The table


class Row(NamedTuple):
    """One command: its buttons, and how walks draw it; None for one that they do not draw."""

    buttons: tuple[Button, ...]
    drawn: Drawn | None


def _field(line: str) -> Field:
    _, name, label, kind, default, reader, *_ = [*map(str.strip, line.split("| ")), "", ""]
    default = default.format(rates="|".join(RATES), settings="|".join(OFFERED)).replace("\\n", "\n")
    return Field(name, label, kind, default, getattr(Form, reader or "text"))


def _button(line: str) -> Button:
    place, label, hint, fields, words, *_ = [*map(str.strip, line.split("|")), "", ""]
    thing, _, when = place.partition(" ")
    given = dict(word.split("=") for word in words.split())
    call = getattr(Form, given["call"]) if "call" in given else None
    listed = tuple(FIELDS[name] for name in fields.split())
    thing = "" if thing == CLUSTER else thing
    more = (given.get(name, "") for name in ("needs", "do", "group"))
    return Button(thing, label, hint, listed, when, call, *more)


def _drawn(words: Sequence[str]) -> Drawn:
    weight, method, *needs = [*words, "nothing"] if len(words) == 1 else words
    return Drawn(int(weight), getattr(Draw, method), *needs)


def _row(lines: Sequence[str]) -> Row:
    buttons = tuple(_button(line) for line in lines if not line.startswith("drawn "))
    return Row(buttons, next((_drawn(line.split()[1:]) for line in lines if line.startswith("drawn ")), None))


_blocks = blocks(__package__, "menu.txt")
_commands = _blocks.index(["[commands]"])
FIELDS = {line.partition(" ")[0]: _field(line) for (line,) in _blocks[1:_commands]}
MENU = {name: _row(lines) for name, *lines in _blocks[_commands + 1 :]}
"""The row of each command, by method."""


# The data for the browser, and its clicks


def buttons(thing: str) -> Iterator[tuple[str, Button]]:
    """The commands and buttons that a kind of thing has."""
    return ((name, button) for name, row in MENU.items() for button in row.buttons if button.thing == thing)


def menu(lab: RecordedRun) -> dict[str, list[dict[str, object]]]:
    """Kind of thing -> the buttons this lab has for it, as data for the browser."""
    return {thing: [b.data(name) for name, b in buttons(thing) if b.offered(lab)] for thing in THINGS}


def clicked(thing: str, do: str, given: Given) -> Command:
    """The call for one click.

    Raises UnknownName for an action that the thing does not have, BadInput for a bad field.
    """
    kind, _, name = thing.partition(":")
    known = {b.do or method: (method, b) for place in (kind, TIME) for method, b in buttons(place)}
    if do not in known:
        raise UnknownName(f"action on {thing or 'the cluster'}", do, known)
    if kind == BROKER and parse_int(name) is None:
        raise BadInput(f"{short(thing)} is not a broker")
    method, button = known[do]
    return Command(method, *button.made(name, given))
