"""The source of a decision: a function of this package with the lines that ran."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias, TypeVar

from kafka_ctl.errors import KafkaCtlError

T = TypeVar("T")
TraceFunction: TypeAlias = "Callable[[FrameType, str, object], TraceFunction | None]"
"""A function that Python calls for each line, as `sys.settrace` takes it."""
_CITED = re.compile(r"Kafka \d+(\.\d+)+: \S")
PACKAGE = Path(__file__).parents[2]


class Finding(NamedTuple):
    """The rule behind a record, and its inputs."""

    rule: str
    inputs: tuple[tuple[str, str], ...]
    decided: str
    otherwise: tuple[tuple[str, str], ...] = ()
    by: tuple[Callable[..., object], ...] = ()
    """The functions that decide."""
    executed: Collection[int] = ()
    """The numbers of the lines that ran, where that is known without a replay."""
    at: int | None = None
    """The record that shows the decision, where it is another one."""
    kafka: str = ""
    """The place in Kafka's source, where the functions do not name it."""
    chain: tuple[str, ...] | None = None
    """The causes, where they are not the chain of causes."""


class SourceLine(NamedTuple):
    """One line of a file; `ran` if it is known to have been executed."""

    number: int
    text: str
    executed: bool


class Source(NamedTuple):
    """Part of a file of the package, by the name of the function it holds."""

    name: str
    lines: tuple[SourceLine, ...]

    def __str__(self) -> str:
        rows = [f"{'>' if line.executed else ' '} {line.number:>4}  {line.text}" for line in self.lines]
        return "\n".join([self.name, *rows])


def watched(function: Callable[..., T], *args: object) -> tuple[T | None, set[int]]:
    """Call a function. Returns its result (None after a KafkaCtlError) and the lines of its module that ran."""
    executed: set[int] = set()
    file = function.__code__.co_filename

    def trace(frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            executed.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*args), executed
    except KafkaCtlError:
        return None, executed
    finally:
        sys.settrace(before)


def source(code: CodeType, executed: Iterable[int] = ()) -> Source:
    """The text of a function without its docstring; marked are the lines that ran."""
    marked = set(executed)
    text, first = inspect.getsourcelines(code)
    hidden = _docstring(text)
    lines = [
        SourceLine(first + place, line.rstrip("\n"), first + place in marked)
        for place, line in enumerate(text)
        if place not in hidden
    ]
    file = Path(code.co_filename).relative_to(PACKAGE.parent)
    return Source(f"{code.co_qualname} in {file.as_posix()}", tuple(lines))


def cited(functions: Iterable[Callable[..., object] | CodeType]) -> str:
    """The place in Kafka's source of these functions: from their docstrings, or their class's, or their module's."""
    for function in functions:
        module = inspect.getmodule(function)
        code = function if isinstance(function, CodeType) else function.__code__
        own = next((text for text in code.co_consts[:1] if isinstance(text, str)), "")
        outer = getattr(module, code.co_qualname.partition(".")[0], None)
        for doc in (own, getattr(outer, "__doc__", None), getattr(module, "__doc__", None)):
            if found := citation(doc or ""):
                return found
    return ""


def citation(doc: str) -> str:
    """The last paragraph of a docstring from `Kafka 2.0.1: ` on; empty if it has none."""
    begun = _CITED.search(doc)
    return " ".join(doc[begun.start() :].split("\n\n")[0].split()) if begun else ""


def _docstring(text: list[str]) -> range:
    """The places of a function's docstring among its lines."""
    first = next((n for n, line in enumerate(text) if line.lstrip().startswith('"""')), None)
    if first is None:
        return range(0)
    if text[first].count('"""') > 1:
        return range(first, first + 1)
    last = next(n for n, line in enumerate(text[first + 1 :], first + 1) if '"""' in line)
    return range(first, last + 1)
