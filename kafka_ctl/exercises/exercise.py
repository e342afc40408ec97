"""Exercises, and the verdicts on answers."""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any, ClassVar, NamedTuple

from kafka_ctl.errors import PluginFailed, UnusableFunction, raised, short
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins

Function = Callable[..., Any]
"""A learner's function."""
LONGEST = 10_000
"""Characters of a source text that is kept."""


class Verdict(NamedTuple):
    """True if an answer is right, what to say about it, and the story that shows it, if one does."""

    right: bool
    text: str
    story: str = ""
    plugins: Plugins | None = None
    """The learner's functions, for a story that needs them."""

    def open(self) -> Lab:
        """The story as a lab, up to where a function of the learner's failed."""
        if self.plugins is None:
            return Lab.replay(self.story)
        opening, *commands = self.story.splitlines()
        try:
            lab = Lab.replay(opening, **self.plugins.given)
        except PluginFailed:  # at once, when the brokers start: this is the moment before
            (line,) = story.parse(opening)
            return Lab(**story.opening(line, self.plugins) | {"settle": False})
        with suppress(Exception):  # of the function, or of a cluster that cannot go on with what it returned
            for command in commands:
                lab.do(command)
        return lab


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise. `name` is lesson and number, `05.1`; `hints` become more exact: the last one leaves one step.

    `core` marks the two core exercises of a lesson; the others are stretch. `given` is the function that
    learners begin with, as text: with a bug, or with dots in some places; without it they get dots alone.
    """

    kind: ClassVar[str]
    name: str
    title: str
    hints: tuple[str, ...]
    core: bool = False
    given: str = ""

    def judge(self, answer: object) -> Verdict:
        """The verdict on this answer; it may raise whatever the learner's own code raises."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FunctionExercise(Exercise):
    """An exercise whose answer is a function; `why` explains a right one."""

    kind: ClassVar[str] = "implement"
    why: str

    def judge(self, answer: object) -> Verdict:
        """The verdict on a function; anything else is refused."""
        if callable(answer):
            return self.judge_function(answer)
        return Verdict(False, f"{short(answer)} is not a function; give the function's name, without brackets.")

    def judge_function(self, function: Function) -> Verdict:
        """The verdict on this function; it may raise whatever the function raises."""
        raise NotImplementedError


def failed(error: BaseException) -> str:
    """The act of a learner's function that ended in this error, beginning with the verb."""
    return str(error) if isinstance(error, UnusableFunction) else raised(error)


def plain(value: object) -> Any:
    """An answer with lists as tuples and mappings as dictionaries, so that equal answers are equal."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    return value


def fitted(answer: object, expected: object) -> object:
    """An answer in the type of what is expected, where only the type differs: a list or a tuple of different members
    for a set, a bytearray for bytes."""
    if isinstance(expected, set) and isinstance(answer, list | tuple | frozenset):
        with suppress(TypeError):  # members that no set can have
            return set(answer) if len(set(answer)) == len(answer) else answer
    return bytes(answer) if isinstance(expected, bytes) and isinstance(answer, bytearray) else answer


def same(answer: object, expected: object) -> bool:
    """Equality of plain values that tells True from 1; 18.0 is 18."""
    if isinstance(answer, bool) or isinstance(expected, bool):
        return answer is expected
    if isinstance(answer, int | float) and isinstance(expected, int | float):
        return answer == expected
    if isinstance(answer, str) and isinstance(expected, str):
        return answer == expected
    if type(answer) is not type(expected):
        return False
    if isinstance(answer, tuple) and isinstance(expected, tuple):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    if isinstance(answer, dict) and isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(same(answer[key], expected[key]) for key in expected)
    return answer == expected


def returned_none(function: Callable[..., object], asked: str = "") -> str:
    """The reply to a function that returned None where a value is asked for, by whether it has a `return` at all.

    `asked` says with what it was asked.
    """
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType):
        return "Your function returned None."
    if function.__name__ == "<lambda>" or _returns_something(function):
        return f"Your function returned None here{asked}. Which way through it ends without a value?"
    return "Your function returned None. Is there a `return`?"


def source_of(function: Callable[..., object]) -> str:
    """The functions, imports and constants of the cell, or of the file, that a function was written in, that function
    last; "" where its text is not known, is long, or is no `def` of its own."""
    with suppress(OSError, TypeError, SyntaxError, IndexError):
        lines, _ = inspect.findsource(function)
        text, name = "".join(lines), getattr(function, "__name__", "")
        whole = (ast.FunctionDef, ast.Import, ast.ImportFrom)
        kept = [node for node in ast.parse(text).body if isinstance(node, whole) or _sets_constant(node)]
        kept.sort(key=lambda node: getattr(node, "name", "") == name)
        code = "\n\n".join("".join(lines[node.lineno - 1 : node.end_lineno]).rstrip() for node in kept)
        return code if len(code) <= LONGEST and getattr(kept[-1], "name", "") == name else ""
    return ""


def _sets_constant(node: ast.stmt) -> bool:
    """True for an assignment that calls nothing and reads no name."""
    return isinstance(node, ast.Assign) and not any(
        isinstance(each, ast.Call) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
        for each in ast.walk(node)
    )


def _returns_something(function: FunctionType) -> bool:
    """True if some `return` of a function has a value; the end of its code returns None by itself."""
    steps = [step for step in dis.get_instructions(function) if step.opname not in ("NOP", "CACHE", "RESUME")]
    for before, step in pairwise(steps):
        if step.opname == "RETURN_VALUE" and not (before.opname == "LOAD_CONST" and before.argval is None):
            return True
    return any(step.opname == "RETURN_CONST" and step.argval is not None for step in steps)


def is_open(answer: object) -> bool:
    """True if there are still dots where an answer should be; in a function, among what it may return."""
    if isinstance(answer, FunctionType):
        return _has_dots(getattr(answer, "__wrapped__", answer))
    if isinstance(answer, list | tuple | set):
        return any(map(is_open, answer))
    if isinstance(answer, dict):
        return any(map(is_open, answer.values()))
    return answer is ...


def _has_dots(function: FunctionType) -> bool:
    """True if there are dots in a function: as a value, or as its last statement. Those of a type are no answer's."""
    made: ast.stmt | None = None
    with suppress(OSError, TypeError, ValueError, SyntaxError):
        (made,) = ast.parse(dedent(inspect.getsource(function))).body
    if not isinstance(made, ast.FunctionDef):  # a lambda, or of unknown source
        return _code_has_dots(function.__code__)
    nodes = [node for statement in made.body for node in ast.walk(statement)]
    passed: list[ast.AST] = [node.value for node in nodes if isinstance(node, ast.Expr) and node is not made.body[-1]]
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            passed += node.slice.elts  # tuple[int, ...]
    return any(isinstance(each, ast.Constant) and each.value is ... and each not in passed for each in nodes)


def _code_has_dots(code: CodeType) -> bool:
    """True if there are dots in the code of a function, or of a function or a generator expression within it."""
    return any(each is ... or (isinstance(each, CodeType) and _code_has_dots(each)) for each in code.co_consts)


def kind_of(example: object) -> str:
    """The kind of value that an example stands for, with its article."""
    if isinstance(example, bool):
        return "True or False"
    if isinstance(example, tuple):
        return {1: "a tuple", 2: "a pair"}.get(len(example), f"{len(example)} parts")
    kinds = ((int, "a whole number"), (float, "a number"), (str, "text"), (dict, "a dictionary"), (set, "a set"))
    return next((kind for each, kind in kinds if isinstance(example, each)), f"a value such as {example!r}")


def asked_for(example: object) -> str:
    """The request for an answer of the kind of an example."""
    wanted = kind_of(example)
    return f"{wanted} {'are' if wanted.endswith('parts') else 'is'} asked for"


def unsuited(answer: object, example: object) -> str | None:
    """The reason why an answer cannot be compared with an example of what is asked for; None if it can."""
    if isinstance(answer, str) and not isinstance(example, str):
        more = "leave the quotes out" if _is_quoted(answer, example) else asked_for(example)
        return f"{short(answer)} is text; {more}"
    if isinstance(example, dict):
        if not isinstance(answer, dict):
            return f"{short(answer)} is not a dictionary"
        shape = next(iter(example.items()), ())
        return first(problem for item in answer.items() for problem in map(unsuited, item, shape))
    if isinstance(example, tuple):
        if isinstance(answer, set | frozenset):
            return f"{short(answer)} is a set, which has no order; give a tuple"
        kind = "no answer" if answer is None else "a dictionary" if isinstance(answer, dict) else "one value"
        return None if isinstance(answer, tuple) else f"{short(answer)} is {kind}; {asked_for(example)}"
    return _unsuited_value(answer, example) if isinstance(example, int | float | str) else None


def unsuited_member(answer: object, example: object) -> str | None:
    """The reason for the first unsuited member of a tuple; None if all suit, or the example has not as many."""
    if not isinstance(answer, tuple) or not isinstance(example, tuple) or len(answer) != len(example):
        return None
    return first(map(unsuited, answer, example))


def first(found: Iterable[str | None]) -> str | None:
    """The first text; None without any."""
    return next((text for text in found if text is not None), None)


def _unsuited_value(answer: object, example: object) -> str | None:
    """The same where one value is asked for."""
    if isinstance(answer, tuple) and len(answer) == 1:
        return f"{short(answer[0])} is in brackets; give the value alone: {answer[0]!r}"
    if isinstance(answer, tuple | dict | set | frozenset):
        return f"{short(answer)} has several parts; one is asked for"
    if isinstance(example, str):
        return None if isinstance(answer, str) else f"{short(answer)} is not text; give text, in quotes"
    if isinstance(example, bool):
        return None if isinstance(answer, bool) else f"{short(answer)} is neither True nor False"
    is_whole = isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer())
    fits = isinstance(answer, int | float) if isinstance(example, float) else is_whole
    return None if fits and not isinstance(answer, bool) else f"{short(answer)} is not {kind_of(example)}"


def _is_quoted(text: str, example: object) -> bool:
    """True if a text is what is asked for, with quotes around it."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return isinstance(ast.literal_eval(text), type(example) if not isinstance(example, float) else (int, float))
    return False


class PictureGuess(NamedTuple):
    """A question that is answered by clicking in the picture of a cluster; the answer is what a run shows.

    `before` is the story of the lab that is shown, `run` has the commands that are asked about, and `outcome` reads the
    right answers from its end: `broker:2`, `partition:orders-0`, or `none`. `kind` is `broker` or `partition`; of
    partitions several can be right. `hints` answer wrong guesses, `why` is the reason, given after the run.
    """

    question: str
    kind: str
    before: str
    run: str
    outcome: Callable[[Lab], frozenset[str]]
    hints: Mapping[str, str]
    why: str

    @property
    def text(self) -> str:
        """The question."""
        several = ": all that it is true of" if self.kind == "partition" else ""
        return f"{self.question} (Click in the picture{several}.)"


OPTION = "  ( ) "
"""An option of a question that stands as text, before its words."""


class Guess(NamedTuple):
    """A question to be answered before a cell is run; `options` with what is said to each; the right one is `right`.

    Nothing is judged by a run here: the next cells are the run. So a test compares these with it.
    """

    question: str
    options: tuple[tuple[str, str], ...]
    right: int

    @property
    def text(self) -> str:
        """The question and its options, without what is said to them."""
        return "\n".join([self.question, *(OPTION + option for option, _ in self.options)])
