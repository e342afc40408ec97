"""The source of a decision: a function of this package with the lines that ran when a record was made.

To find these lines, the lab's story is replayed and traced. A run on virtual time repeats exactly, so watching the
replay is as good as having watched the first, and costs nothing until a reader asks. In a loop that has not ended,
only the lines of the present pass count; earlier passes, for other partitions, are no part of the answer.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, Protocol, Self, TypeAlias, TypeVar

from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.paths import blocks
from kafka_ctl.trace.catalogue import Rule, with_part
from kafka_ctl.trace.record import Recorder

T = TypeVar("T")
Function = Callable[..., object]
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


def finding(
    rule: Rule, inputs: Iterable[tuple[str, str]], by: tuple[Function, ...], values: Mapping[str, str] = {}
) -> Finding:
    """The finding of a rule whose texts have `{name}` in the place of a value."""

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    otherwise = tuple((filled(what), filled(then)) for what, then in rule.otherwise)
    return Finding(rule.rule, tuple(inputs), filled(rule.outcome).replace(" ()", ""), otherwise, by)


_TEXTS = {head: lines for head, *lines in blocks(__package__, "rules.txt")}


def texts_of(name: str) -> dict[str, str]:
    """The texts of a block of `rules.txt`, by name."""
    return dict(line.split(" ", 1) for line in _TEXTS[name])


def rules_of(kind: str) -> dict[str, Rule]:
    """The rules of a kind in `rules.txt`, by name; the rule for all other names has the empty name."""
    found = {head.removeprefix(kind).strip(): lines for head, lines in _TEXTS.items() if head.split()[0] == kind}
    return {name: functools.reduce(with_part, lines, Rule("", "")) for name, lines in found.items()}


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
    whole = "".join(text)
    found = re.search(r'^ *""".*?"""', whole, re.DOTALL | re.MULTILINE)
    return range(whole.count("\n", 0, found.start()), whole.count("\n", 0, found.end()) + 1) if found else range(0)


UNSEEN = tuple(
    f"{PACKAGE}/{name}"
    for name in ("simulation/loop.py", "simulation/clock.py", "simulation/world.py", "trace/record.py")
)
"""The modules that carry everything and decide nothing."""
ADD = Recorder.add.__code__


class Call(NamedTuple):
    """One call of a function: its code, and the numbers of the lines that had run when the record was made."""

    code: CodeType
    executed: frozenset[int]


class Run(NamedTuple):
    """The calls behind one record: those under way, the innermost first, and their calls that had returned."""

    stack: tuple[Call, ...]
    done: dict[CodeType, Call]

    def of(self, functions: Iterable[Function]) -> list[Call]:
        """The calls of these functions, as far as they were made."""
        known = self.done | {call.code: call for call in reversed(self.stack)}
        return [known[code] for code in map(code_of, functions) if code in known]


Lines = Callable[[Iterable[int], Iterable[Function]], dict[int, Run]]
"""A search for the calls behind the records with these numbers, and among them those of these functions."""


def code_of(function: Function) -> CodeType:
    code: CodeType = inspect.unwrap(function).__code__
    return code


class Replayable(Protocol):
    """The part of a lab that is needed to see the lines that ran."""

    zookeeper: str

    @property
    def trace(self) -> Recorder: ...

    def fork(self, at: int | None = None) -> Self:
        """The same run again, up to a record."""

    def close(self) -> None:
        """It is not needed any more."""


def lines_of(lab: Replayable) -> Lines | None:
    """A search for the lines that ran in a lab; None on real time, where nothing repeats."""
    return functools.partial(again, lab) if lab.zookeeper == "memory" else None


def again(lab: Replayable, seqs: Iterable[int], functions: Iterable[Function] = ()) -> dict[int, Run]:
    """The calls behind these records of a lab; records that the replay does not make are left out.

    The story is replayed twice: to see which functions it is about, and to follow these line by line.
    """
    wanted = frozenset(seqs)
    first = Watch(wanted, None)
    if not wanted or _replay(lab, wanted, first) is None:
        return {}
    under_way = {call.code for run in first.found.values() for call in run.stack}
    second = Watch(wanted, under_way | set(map(code_of, functions)))
    replay = _replay(lab, wanted, second)
    return {seq: run for seq, run in second.found.items() if replay and replay[seq] == lab.trace[seq]}


def _replay(lab: Replayable, wanted: frozenset[int], watch: Watch) -> Recorder | None:
    """Replay the lab's story as far as needed, traced; None when it cannot be replayed."""
    before = sys.gettrace()
    sys.settrace(watch.called)
    try:
        replay = lab.fork(at=max(wanted))
    except KafkaCtlError:
        return None  # no story has an action that bypassed the lab's commands
    finally:
        sys.settrace(before)
    replay.close()
    return replay.trace


class Watch:
    """Takes a note whenever one of the wanted records is made, and follows some functions line by line."""

    def __init__(self, wanted: frozenset[int], followed: set[CodeType] | None) -> None:
        self.wanted, self.followed = wanted, followed or set()
        self.count = 0
        """Records made so far."""
        self.found: dict[int, Run] = {}

    def called(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        """Python calls this at every call, and whenever a coroutine goes on."""
        code = frame.f_code
        if code is ADD:
            if self.count in self.wanted:
                self._note(frame)
            self.count += 1
        if code not in self.followed:
            return None
        if frame.f_trace is not None:
            return frame.f_trace  # a coroutine that goes on
        made = Activation(code)
        outer = frame.f_back
        while outer is not None and _activation(outer) is None:
            outer = outer.f_back
        if outer is not None and (caller := _activation(outer)) is not None:
            caller.calls[code] = outer.f_lineno, made
        return made.went

    def _note(self, frame: FrameType) -> None:
        """Record the calls under way, as far as they are followed, or else all of the package."""
        stack: list[Call] = []
        done: dict[CodeType, Call] = {}
        outer = frame.f_back
        while outer is not None:
            file = outer.f_code.co_filename
            if (here := _activation(outer)) is not None:
                stack.append(here.call())
                here.gather(done)
            elif not self.followed and file.startswith(str(PACKAGE)) and file not in UNSEEN:
                stack.append(Call(outer.f_code, frozenset()))
            outer = outer.f_back
        self.found[self.count] = Run(tuple(stack), done)


class Activation:
    """One call that is followed; Python calls `went` before every line."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.executed: set[int] = set()
        self.calls: dict[CodeType, tuple[int, Activation]] = {}
        """By function: from which line it was called last, and that call."""
        self.loops = {line: loop for line, loop in loops_in(code.co_filename).items() if line >= code.co_firstlineno}
        self.open: list[tuple[Loop, set[int]]] = []
        """The loops that are not over, the outermost first, each with what ran in its earlier passes."""
        self.turned = False

    def went(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if event == "line":
            line = frame.f_lineno
            if self.loops:
                self._turn(line)
            self.executed.add(line)
        return self.went

    def _turn(self, line: int) -> None:
        """Begin a loop, begin its next pass, or leave it."""
        while self.open and not self.open[-1][0].first <= line <= self.open[-1][0].last:
            self.executed |= self.open.pop()[1]
        loop, earlier = self.open[-1] if self.open else (None, set())
        if self.turned and loop is not None and line >= loop.body:
            over = {n for n in self.executed if loop.body <= n <= loop.last}
            earlier |= over
            self.executed -= over
            self.calls = {c: made for c, made in self.calls.items() if not loop.body <= made[0] <= loop.last}
            self.turned = False
        if (entered := self.loops.get(line)) is not None:
            self.turned = loop is entered
            if not self.turned:
                self.open.append((entered, set()))

    def call(self) -> Call:
        return Call(self.code, frozenset(self.executed))

    def gather(self, done: dict[CodeType, Call]) -> None:
        """Add the calls that were made from here, and from there."""
        for code, (_, made) in self.calls.items():
            if code not in done:
                done[code] = made.call()
                made.gather(done)


class Loop(NamedTuple):
    """The lines of a loop: the first, the first of its body, the last."""

    first: int
    body: int
    last: int


@functools.cache
def loops_in(file: str) -> dict[int, Loop]:
    """All loops of a file, by their first line; a loop's `else` is no part of it."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {
        node.lineno: Loop(node.lineno, node.body[0].lineno, node.body[-1].end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While))
    }


def _activation(frame: FrameType | None) -> Activation | None:
    """The search that follows this frame, if any does."""
    owner = getattr(frame and frame.f_trace, "__self__", None)
    return owner if isinstance(owner, Activation) else None
