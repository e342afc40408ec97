"""Kafka's log messages as data: the templates of each generation in `messages.txt`.

A template is compiled both ways: `fill` writes the line's text from values, `read` finds the values in such a text.
`write.py` knows when which line is due, `records.py` which record of the trace a line stands for.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka_ctl.errors import UnknownName
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.kafka_log.shapes import Parse, Shape, Value, shape_of
from kafka_ctl.paths import text_in

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

    def read(self, sentence: str) -> dict[str, Value] | None:
        """The values in a sentence, without those that have no way back; None if it is not of this form.

        Raises ValueError for an impossible value, such as `isr=[3,,4]`.
        """
        found = self.pattern.fullmatch(sentence)
        if found is None:
            return None
        return {name: read(text) for (name, read, _), text in zip(self.readers, found.groups(), strict=True)}

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

    def lines(self, name: str) -> list[Template]:
        """The lines that this generation writes when `name` happens."""
        return self.templates.get(name, [])

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
def book(generation: str) -> LogTemplates:
    """The lines of a generation. Raises UnknownName for one that has none."""
    if generation not in GENERATIONS:
        raise UnknownName("generation", generation, GENERATIONS)
    return LogTemplates(generation)
