"""What Kafka writes into its logs, as data: one file of lines for each generation in `loglines/`.

`book("2.0").lines("elected", words)` are what says the lines for one thing that happened. How Scala and Java print
values and collections is in the files and in `SHAPES`; `kafka_log/write.py` says when which line is due.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka_ctl.errors import UnknownName
from kafka_ctl.scala_order import flat_set_order, java_sized_set_order

FILES = Path(__file__).parent / "messages"
GENERATIONS = tuple(sorted(path.stem for path in FILES.glob("*.txt")))
"""The generations whose lines are known."""


class Component(NamedTuple):
    """Who writes: into which file, under which logger, and how its messages begin."""

    file: str
    logger: str
    prefix: str


class Template(NamedTuple):
    """One line: its level, the component that writes it, and its text with `{words}`."""

    level: str
    component: str
    text: str


def _pair(tp: object) -> str:
    return "[{},{}]".format(*str(tp).rsplit("-", 1))


def _joined(values: Iterable[Any]) -> str:
    return ",".join(map(_plain, values))


def _collection(name: str) -> Callable[[Iterable[Any]], str]:
    return lambda values: f"{name}({', '.join(map(_plain, values))})"


def _map(entries: Mapping[Any, Any], key: Callable[[Any], str] = str, sequence: str = "Vector") -> str:
    return f"Map({', '.join(_entries(entries, key, sequence))})"


def _entries(entries: Mapping[Any, Any], key: Callable[[Any], str], sequence: str = "Vector") -> Iterator[str]:
    for name, value in entries.items():
        if isinstance(value, Mapping):
            text = _map(value, key, sequence)
        else:
            text = _collection(sequence)(value) if isinstance(value, (list, tuple)) else _plain(value)
        yield f"{name if isinstance(name, int) else key(name)} -> {text}"


def _replicas(replicas: Iterable[Iterable[Any]]) -> str:
    return ",".join("[Topic={},Partition={},Replica={}]".format(*replica) for replica in replicas)


def _assignment(fields: Mapping[str, Iterable[Any]]) -> str:
    replicas, adding, removing = (_joined(fields.get(name, ())) for name in ("replicas", "adding", "removing"))
    return f"ReplicaAssignment(replicas={replicas}, addingReplicas={adding}, removingReplicas={removing})"


def _assignments(entries: Mapping[Any, Iterable[Any]]) -> str:
    texts = {tp: _assignment({"replicas": ids}) for tp, ids in entries.items()}
    return f"Map({', '.join(f'{tp} -> {text}' for tp, text in texts.items())})"


def _contexts(entries: Mapping[Any, Iterable[int]]) -> str:
    lists = {tp: _collection("List")(ids) for tp, ids in entries.items()}
    return _map({tp: f"ReassignedPartitionsContext({ids},null)" for tp, ids in lists.items()}, _pair)


SHAPES: dict[str, Callable[[Any], str]] = {
    "Assignment": _assignment,
    "AssignmentMap": _assignments,
    "ArrayBuffer": _collection("ArrayBuffer"),
    "List": _collection("List"),
    "Map": _map,
    "BufferMap": lambda entries: _map(entries, sequence="Buffer"),
    "ContextMap": _contexts,
    "Entries": lambda entries: ",".join(_entries(entries, str)),
    "PairEntries": lambda entries: ",".join(_entries(entries, _pair)),
    "PairMap": lambda entries: _map(entries, _pair, "List"),
    "PairSet": lambda values: f"Set({', '.join(map(_pair, values))})",
    "Replicas": _replicas,
    "Set": _collection("Set"),
    "Vector": _collection("Vector"),
    "StopInfos": lambda infos: ",".join(f"StopReplicaRequestInfo({_replicas([i[:3]])},{_plain(i[3])})" for i in infos),
    "blank": lambda _: " ",
    "braces": lambda entries: f"{{{', '.join(f'{k}={_plain(v)}' for k, v in entries.items())}}}",
    "count": lambda values: str(len(list(values))),
    "hashset": lambda values: f"[{', '.join(map(_plain, java_sized_set_order(values)))}]",
    "javaset": lambda values: _joined(java_sized_set_order(values)),
    "flatset": lambda values: _joined(flat_set_order(values)),
    "list": lambda values: f"[{', '.join(map(_plain, values))}]",
    "pair": _pair,
    "pairs": lambda values: ",".join(map(_pair, values)),
    "topic": lambda tp: str(tp).rsplit("-", 1)[0],
}
"""How a word is printed when a template asks for a shape: `{isr:List}` is `List(1, 2)`."""


def _plain(value: Any) -> str:
    """A word without a shape: collections as `1,2`, truth and nothing as Java prints them."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return _joined(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


class LogTemplates(string.Formatter):
    """The lines of one generation."""

    def __init__(self, generation: str) -> None:
        self.generation = generation
        self.components: dict[str, Component] = {}
        self.values: dict[str, str] = {}
        self.templates: dict[str, list[Template]] = {}
        self._read(generation)

    def _read(self, generation: str) -> None:
        here: dict[str, list[Template]] = {}
        for line in (FILES / f"{generation}.txt").read_text("utf-8").splitlines():
            match line.split(None, 1):
                case [] | ["#", *_]:
                    continue
                case ["from", other]:
                    self._read(other)
                case ["without", name]:
                    del self.templates[name]
                case ["value", rest]:
                    name, text = rest.split(None, 1)
                    self.values[name] = text
                case ["component", rest]:
                    name, file, logger, *prefix = rest.split(None, 3)
                    self.components[name] = Component(file, logger, f"{prefix[0].strip()} " if prefix else "")
                case [name, rest]:
                    level, component, text = rest.split(None, 2)
                    here.setdefault(name, []).append(Template(level, component, text))
        self.templates |= here

    def lines(self, name: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], str]]]:
        """(file, what says `LEVEL message (logger)`) for each line this generation writes when `name` happens."""
        for level, component, text in self.templates.get(name, ()):
            file, logger, prefix = self.components[component]
            yield file, functools.partial(self._line, level, prefix + text, logger, fields)

    def _line(self, level: str, text: str, logger: str, fields: Mapping[str, Any]) -> str:
        return f"{level} {self.fill(text, fields)} ({logger})"

    def fill(self, text: str, fields: Mapping[str, Any]) -> str:
        """A template with its words filled in."""
        return self.vformat(text, (), fields)

    def get_value(self, key: int | str, args: Any, fields: Mapping[str, Any]) -> Any:
        """A word as given; else a value made of other words; else nothing."""
        if key not in fields and str(key) in self.values:
            return self.fill(self.values[str(key)], fields)
        return fields.get(str(key), "")

    def format_field(self, value: Any, spec: str) -> str:
        if spec in SHAPES:
            return SHAPES[spec](value)
        return format(value, spec) if spec else _plain(value)


@functools.cache
def book(generation: str) -> LogTemplates:
    """The lines of a generation; UnknownName for one that has none."""
    if generation not in GENERATIONS:
        raise UnknownName("generation", generation, GENERATIONS)
    return LogTemplates(generation)
