"""Kafka's log messages as data: the templates of each generation in `messages.txt`.

A template is compiled both ways: `fill` writes the line's text from values, `read` finds the values in such a text.
A field is `{leader}` or `{isr:List}`. The word after the colon is a row of `SHAPES`; without one, the field's name
decides (`BY_NAME`). A pattern takes what any release prints in that place: a partition in either spelling, a collection
of any of Scala's classes. So a template reads the same line of other releases too.

`write.py` knows when which line is due, `records.py` which record of the trace a line stands for.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from kafka_ctl.errors import UnknownName
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.paths import text_in
from kafka_ctl.scala_order import flat_set_order, java_sized_set_order

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"
"""The values of a field, as in a record's columns or in the JSON of a controller's message."""
Parse: TypeAlias = Callable[[str], Value]


APIS = {"LeaderAndIsr": "LEADER_AND_ISR", "UpdateMetadata": "UPDATE_METADATA", "StopReplica": "STOP_REPLICA"}
"""Kafka's names of the requests in the trace."""
REQUESTS = {name: api for api, name in APIS.items()}


class Shape(NamedTuple):
    """The text of a field; the pattern of that text, with one group; and the value of that group.

    A shape that is not `read` has a pattern without a group: the line holds that value elsewhere as well, or in a print
    that does not lead back to it.
    """

    write: Callable[[Any], str]
    pattern: str
    read: Parse | None


# Writing


def plain(value: object) -> str:
    """A value without a shape of its own: collections as `1,2`, truth and nothing as Java prints them."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return joined(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def joined(values: Iterable[object]) -> str:
    return ",".join(map(plain, values))


def _pair(tp: object) -> str:
    return "[{},{}]".format(*str(tp).rsplit("-", 1))


def _collection(name: str) -> Callable[[Iterable[object]], str]:
    return lambda values: f"{name}({', '.join(map(plain, values))})"


def _map(entries: Mapping[object, object], key: Callable[[object], str] = str, sequence: str = "Vector") -> str:
    return f"Map({', '.join(_entries(entries, key, sequence))})"


def _entries(entries: Mapping[object, object], key: Callable[[object], str], sequence: str = "Vector") -> Iterator[str]:
    for name, value in entries.items():
        if isinstance(value, Mapping):
            text = _map(value, key, sequence)
        else:
            text = _collection(sequence)(value) if isinstance(value, (list, tuple)) else plain(value)
        yield f"{name if isinstance(name, int) else key(name)} -> {text}"


def _replicas(replicas: Iterable[Iterable[object]]) -> str:
    return ",".join("[Topic={},Partition={},Replica={}]".format(*replica) for replica in replicas)


def _assignment(fields: Mapping[str, Iterable[object]]) -> str:
    replicas, adding, removing = (joined(fields.get(name, ())) for name in ("replicas", "adding", "removing"))
    return f"ReplicaAssignment(replicas={replicas}, addingReplicas={adding}, removingReplicas={removing})"


def _assignments(entries: Mapping[object, Iterable[object]]) -> str:
    texts = {tp: _assignment({"replicas": ids}) for tp, ids in entries.items()}
    return f"Map({', '.join(f'{tp} -> {text}' for tp, text in texts.items())})"


def _contexts(entries: Mapping[object, Iterable[int]]) -> str:
    lists = {tp: _collection("List")(ids) for tp, ids in entries.items()}
    return _map({tp: f"ReassignedPartitionsContext({ids},null)" for tp, ids in lists.items()}, _pair)


def _stop_infos(infos: Iterable[Sequence[object]]) -> str:
    return ",".join(f"StopReplicaRequestInfo({_replicas([info[:3]])},{plain(info[3])})" for info in infos)


# Reading

PARTITION = re.compile(r"\[[\w.-]+,\d+\]|(?<![\w.-])[\w.-]+-\d+")
"""A partition in either spelling, `[orders,0]` or `orders-0`."""
MEMBER = re.compile(r"\[Topic=([\w.-]+),Partition=(\d+),Replica=(\d+)\]")
ENTRY = re.compile(rf"({PARTITION.pattern}) -> ")
WRAPPED = re.compile(r"\w+\((.*)\)$")
"""A Scala collection, `Set(1, 2)`."""
NUMBERS = re.compile(r"-?\d+")
STATE = re.compile(r" -> \w+Partition\b")
COUNTED = 99_000
"""Characters of a list whose members are counted; longer lines are cut when they are read (`log_files.LONGEST`)."""


def topic_partition(text: str) -> tuple[str, int]:
    """`[orders,0]` or `orders-0` as ("orders", 0)."""
    topic, _, number = text.strip("[]").rpartition("," if text.startswith("[") else "-")
    return topic, int(number)


def partition(text: str) -> str:
    """`[orders,0]` or `orders-0` as "orders-0", as the trace's words have it."""
    return "{}-{}".format(*topic_partition(text))


def partitions(text: str) -> list[str]:
    """All partitions in a text, in order, as `orders-0`."""
    return [partition(found) for found in PARTITION.findall(text)]


def names(text: str) -> list[str]:
    """`a,b`, `Set(a, b)` or znodes `/admin/delete_topics/a` as sorted names."""
    inner = found[1] if (found := WRAPPED.match(text)) else text
    return sorted(name.rpartition("/")[2] for name in re.split(r"[,\s]+", inner) if name)


def numbers(text: str) -> tuple[int, ...]:
    """`1,2` or `1, 2` as numbers."""
    return tuple(map(int, text.split(","))) if text.strip() else ()


def members(text: str) -> list[list[Value]]:
    """`[Topic=orders,Partition=0,Replica=2]` and more of them as topic, partition and broker."""
    return [[topic, int(number), int(broker)] for topic, number, broker in MEMBER.findall(text)]


def assignment(text: str) -> dict[str, list[int]]:
    """The replicas of each partition in `Map([orders,0] -> List(1, 2))` and what other Scala maps print."""
    found = list(ENTRY.finditer(text))
    assigned: dict[str, list[int]] = {}
    for one, after in zip_longest(found, found[1:]):
        value = text[one.end() : after.start() if after else None]
        ids = re.search(r"\breplicas=([\d,]*)|\(([-\d, ]*)\)", value)
        assigned[partition(one[1])] = [int(id) for id in NUMBERS.findall(ids[1] or ids[2] or "")] if ids else []
    return assigned


def _errors(text: str) -> dict[str, str]:
    """`Map(orders-0 -> InvalidReplicaAssignmentException)`."""
    found = WRAPPED.match(text)
    entries = (entry.partition(" -> ") for entry in (found[1] if found else "").split(", ") if entry)
    return {tp: error for tp, _, error in entries}


def _results(text: str) -> dict[str, str]:
    """`Map(orders-0 -> Right(2), orders-1 -> Left(ApiError(...)))`."""
    found = list(ENTRY.finditer(text))
    ends = [*(after.start() - len(", ") for after in found[1:]), len(text) - len(")")]
    return {partition(one[1]): text[one.end() : end] for one, end in zip(found, ends, strict=True)} if found else {}


def _epochs(text: str) -> dict[str, int]:
    """`Map(1 -> 25, 2 -> 44)`."""
    return {broker: int(epoch) for broker, epoch in re.findall(r"(\d+) -> (\d+)", text)}


def _states(text: str) -> int | None:
    """The number of partition states in a map; None for a map that was cut."""
    return len(STATE.findall(text)) if len(text) < COUNTED else None


def _error(text: str) -> str | None:
    """The first error code in a response that is none of success."""
    found = re.search(r"error_?[cC]ode=(-?[1-9]\d*)", text)
    return found[1] if found else None


def _api(text: str) -> str:
    """The kind of a request in any print of it."""
    for name, api in REQUESTS.items():
        if api.replace("AndIsr", "AndIs") in text or name in text:
            return api
    return text


TP = rf"({PARTITION.pattern})"
IDS = r"(?:[\w.]+\(|\[)?([-\d, ]*)[)\]]?"
NAMES = r"(\w+\([^)]*\)|[^\s()]*)"
ANYTHING = r".*?"
"""The end of a line, or a mark that only the text behind it ends it."""

NUMBER = Shape(plain, r"(-?\d+)", int)
WORD = Shape(plain, r"([\w.-]+)", str)
TEXT = Shape(plain, r"(.*?)", str)
SEQUENCE = Shape(plain, IDS, numbers)
BROKERS = Shape(plain, IDS, lambda text: tuple(sorted(numbers(text))))
"""Brokers that Kafka prints from a set."""
PARTITIONS = Shape(plain, r"(.*?)", partitions)
TOPICS = Shape(plain, NAMES, names)

BY_NAME: dict[str, Shape] = {
    **dict.fromkeys(("adding", "isr", "numbers", "removing", "replicas"), SEQUENCE),
    **dict.fromkeys(("bounced", "brokers", "dead", "live", "missing", "new", "offline"), BROKERS),
    **dict.fromkeys(("ineligible", "topics"), TOPICS),
    **dict.fromkeys(("detail", "error", "event", "path", "reason", "state_text", "text"), TEXT),
    **dict.fromkeys(("role", "topic", "type"), WORD),
    "trigger": Shape(plain, r"((?!AdminClientTriggered)\w+)", str),  # that one is election_starting
    **dict.fromkeys(("source", "target"), Shape(plain, r"(\w*(?:Partition|Replica)\w*)", str)),
    "api": Shape(lambda api: APIS.get(api, api), r"(\w+)", lambda text: REQUESTS.get(text, text)),
    **dict.fromkeys(("candidates", "children", "data"), Shape(plain, ANYTHING, None)),
    **dict.fromkeys(("delete", "is_new"), Shape(plain, r"(true|false)", "true".__eq__)),
    **dict.fromkeys(("host", "leader_host", "old_host"), Shape(plain, r"([^,\s]+?)", str)),
    "partition": Shape(plain, TP, partition),
    "partitions": PARTITIONS,
    "rack": Shape(plain, r"[^)]*", None),
    "ratio": Shape(plain, r"(\d[-.\dE]*|NaN)", float),
    "request": Shape(plain, r"(.*)", _api),
    "response": Shape(plain, r"(.*?)", _error),
    "tp": Shape(plain, TP, topic_partition),
}
"""The shapes of fields that have none in the template; all others are numbers."""

SHAPES: dict[str, Shape] = {
    "Assignment": Shape(_assignment, ANYTHING, None),
    "AssignmentMap": Shape(_assignments, r"(.*)", assignment),
    "ArrayBuffer": Shape(_collection("ArrayBuffer"), IDS, numbers),
    "List": Shape(_collection("List"), IDS, numbers),
    "Map": Shape(_map, r"(.*)", assignment),
    "BrokerMap": Shape(_map, r"(\w*Map\(.*\))", _epochs),
    "BufferMap": Shape(lambda entries: _map(entries, sequence="Buffer"), r"(\w*Map\(.*\))", assignment),
    "ContextMap": Shape(_contexts, r"(.*)", assignment),
    "Entries": Shape(lambda entries: ",".join(_entries(entries, str)), ANYTHING, None),
    "ErrorMap": Shape(_map, r"(\w*Map\(.*\))", _errors),
    "PairEntries": Shape(lambda entries: ",".join(_entries(entries, _pair)), ANYTHING, None),
    "PairMap": Shape(lambda entries: _map(entries, _pair, "List"), r"(.*)", assignment),
    "PairSet": Shape(lambda values: f"Set({', '.join(map(_pair, values))})", r"(.*?)", partitions),
    "PartitionSet": Shape(_collection("Set"), r"(.*?)", partitions),
    "PartitionBuffer": Shape(_collection("ArrayBuffer"), r"(.*?)", partitions),
    "Replicas": Shape(_replicas, r"(.*?)", members),
    "Set": Shape(_collection("Set"), IDS, BROKERS.read),
    "ResultMap": Shape(_map, r"(\w*Map\(.*\))", _results),
    "StateMap": Shape(_map, r"(.*Map\(.*\))", _states),
    "StatePairMap": Shape(lambda entries: _map(entries, _pair), r"(.*Map\(.*\))", _states),
    "StopInfos": Shape(_stop_infos, r"(.*?)", members),
    "TopicSet": Shape(_collection("Set"), NAMES, names),
    "Vector": Shape(_collection("Vector"), IDS, BROKERS.read),
    "blank": Shape(lambda _: " ", " ?", None),
    "braces": Shape(lambda entries: f"{{{', '.join(f'{k}={plain(v)}' for k, v in entries.items())}}}", ANYTHING, None),
    "count": Shape(lambda values: str(len(list(values))), r"\d+", None),
    "hashset": Shape(lambda values: f"[{', '.join(map(plain, java_sized_set_order(values)))}]", IDS, numbers),
    "javaset": Shape(lambda values: joined(java_sized_set_order(values)), IDS, numbers),
    "flatset": Shape(lambda values: joined(flat_set_order(values)), IDS, numbers),
    "list": Shape(lambda values: f"[{', '.join(map(plain, values))}]", r"\[([-\d, ]*)\]", numbers),
    "number": NUMBER,
    "numbers": BROKERS,
    "pair": Shape(_pair, TP, partition),
    "pairs": Shape(lambda values: ",".join(map(_pair, values)), r"(.*?)", partitions),
    "sixth": Shape(lambda value: format(value, ".6f"), r"(\d[-.\dE]*|NaN)", float),
    "text": TEXT,
    "topic": Shape(lambda tp: str(tp).rsplit("-", 1)[0], r"[\w.-]+", None),
}
"""The print of a field when a template asks for a shape: `{isr:List}` is `List(1, 2)`."""


def shape_of(name: str, shape: str) -> Shape:
    """The shape of a field. Raises KeyError for one that has no row."""
    if not shape:
        return BY_NAME.get(name, NUMBER)
    found = SHAPES[shape]
    return found._replace(read=topic_partition) if name == "tp" and found.read is partition else found


PART = "<<", ">>"
"""Around what is the `detail` of the record, where that is a part of the line's own words."""
SPEAKER = "Controller {id} epoch {epoch} "
"""The beginnings of a few texts that repeat their component's prefix; a reader has taken both off."""

GROUP = re.compile(r"(?<!\\)\((?!\?)")
"""The beginning of a group in a shape's pattern."""


class Field(NamedTuple):
    """A place in a text."""

    name: str
    shape: Shape


class Component(NamedTuple):
    """A writer: its file, its logger, and the beginning of its messages."""

    file: str
    logger: str
    prefix: str


class Text:
    """A text with fields, `{name}` or `{name:shape}`, in which a generation's own values stand as well."""

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        self.text, self._values = text, values

    @functools.cached_property
    def pieces(self) -> tuple[str | Field, ...]:
        """Literal texts and fields in turn, values replaced by what they are made of."""
        return tuple(self._split(self.text))

    def _split(self, text: str) -> Iterator[str | Field]:
        for literal, name, shape, _ in string.Formatter().parse(text):
            if literal:
                yield literal
            if name is not None and not shape and name in self._values:
                yield from self._split(self._values[name])
            elif name is not None:
                yield Field(name, shape_of(name, shape or ""))

    def fill(self, fields: Mapping[str, object]) -> str:
        """The text with its fields written in; one that is not given is empty."""
        return "".join(
            piece if isinstance(piece, str) else piece.shape.write(fields.get(piece.name, "")) for piece in self._plain
        )

    @functools.cached_property
    def _plain(self) -> list[str | Field]:
        return [p.replace(PART[0], "").replace(PART[1], "") if isinstance(p, str) else p for p in self.pieces]

    @functools.cached_property
    def source(self) -> tuple[str, tuple[Field, ...]]:
        """The pattern of such texts, without a speaker and with a capital letter first, and what its groups are.

        Of a field that stands there twice the first is read. `detail` is the text between the two marks of `PART`.
        """
        pattern, groups = "", list[Field]()
        for piece in Text(self.sentence, self._values).pieces:
            if isinstance(piece, str):
                groups += [Field("detail", shape_of("detail", ""))] * piece.count(PART[0])
                pattern += re.escape(piece).replace(PART[0], "(").replace(PART[1], ")")
            elif piece.shape.read is None or piece.name in {group.name for group in groups}:
                pattern += GROUP.sub("(?:", piece.shape.pattern)
            else:
                groups.append(piece)
                pattern += piece.shape.pattern
        return pattern, tuple(groups)

    @property
    def sentence(self) -> str:
        """The text as a reader has it: without a speaker, with a capital letter first."""
        return capital(self.text.removeprefix(SPEAKER))

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source[0], re.DOTALL)

    @property
    def readers(self) -> list[tuple[str, Parse, int]]:
        """Name, reader and number of each group."""
        groups = enumerate(self.source[1], 1)
        return [(name, shape.read, number) for number, (name, shape) in groups if shape.read is not None]


def capital(text: str) -> str:
    """With a capital letter first: before 1.0 texts begin with a small one, as there they come after a name."""
    return text[:1].upper() + text[1:]


class Template(NamedTuple):
    """One line: what it is written for, its level, the component that writes it, its text without and with prefix."""

    name: str
    level: str
    component: Component
    text: Text
    whole: Text

    def message(self, fields: Mapping[str, object]) -> str:
        """`LEVEL message (logger)`."""
        return f"{self.level} {self.whole.fill(fields)} ({self.component.logger})"


class LogTemplates:
    """The lines of one generation."""

    def __init__(self, generation: str) -> None:
        self.generation = generation
        self.components: dict[str, Component] = {}
        self.values: dict[str, str] = {}
        self.templates: dict[str, list[Template]] = {}
        """The lines that this generation writes, by what has happened."""
        rows: dict[str, list[tuple[str, str, str]]] = {}
        self._load(generation, rows)
        for name, lines in rows.items():
            self.templates[name] = [self._template(name, *line) for line in lines]

    def _template(self, name: str, level: str, component: str, text: str) -> Template:
        by = self.components[component]
        return Template(name, level, by, Text(text, self.values), Text(by.prefix + text, self.values))

    def _load(self, generation: str, rows: dict[str, list[tuple[str, str, str]]]) -> None:
        here: dict[str, list[tuple[str, str, str]]] = {}
        for line in sections()[generation].splitlines():
            match line.split(None, 1):
                case [] | ["#", *_]:
                    continue
                case ["from", other]:
                    self._load(other, rows)
                case ["without", name]:
                    del rows[name]
                case ["value", rest]:
                    name, text = rest.split(None, 1)
                    self.values[name] = text
                case ["component", rest]:
                    name, file, logger, *prefix = rest.split(None, 3)
                    self.components[name] = Component(file, logger, f"{prefix[0].strip()} " if prefix else "")
                case [name, rest]:
                    level, component, text = rest.split(None, 2)
                    here.setdefault(name, []).append((level, component, text))
        rows |= here

    @functools.cached_property
    def texts(self) -> dict[str, Text]:
        """The values, as texts of their own."""
        return {name: Text(text, self.values) for name, text in self.values.items()}


@functools.cache
def sections() -> dict[str, str]:
    """The templates of each generation, from the file. For Spark's workers it is in a zip file, without a path."""
    text = text_in(__package__, "messages.txt")
    _, *listed = re.split(r"^generation (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(listed[::2], listed[1::2], strict=True))


@functools.cache
def templates_of(generation: str) -> LogTemplates:
    """The lines of a generation. Raises UnknownName for one that has none."""
    if not isinstance(generation, str) or generation not in GENERATIONS:
        raise UnknownName("generation", generation, GENERATIONS)
    return LogTemplates(generation)
