"""What an exercise is, and what is said of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from kafka_ctl.errors import PluginFailed, short
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins


class Verdict(NamedTuple):
    """Whether an answer is right, what to say about it, and the story that shows it, if one does."""

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
    """One exercise. `name` is lesson and number, `05.1`; `hints` go from a nudge to the last step but one."""

    kind: ClassVar[str]
    name: str
    title: str
    hints: tuple[str, ...]

    def judge(self, answer: object) -> Verdict:
        """What is to be said of this answer; it may raise whatever the learner's own code raises."""
        raise NotImplementedError


def not_callable(answer: object) -> Verdict:
    """What is to be said of an answer that should be a function and is none."""
    return Verdict(False, f"{short(answer)} is no function; give the function's name, without brackets.")


def plain(value: object) -> Any:
    """An answer with lists as tuples and mappings as dictionaries, so that equal answers are equal."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    return value


def is_open(answer: object) -> bool:
    """Whether there are still dots where an answer should be; in a function, among what it may return."""
    if (code := getattr(answer, "__code__", None)) is not None:
        return any(constant is ... for constant in code.co_consts)
    if isinstance(answer, list | tuple | set):
        return any(map(is_open, answer))
    if isinstance(answer, dict):
        return any(map(is_open, answer.values()))
    return answer is ...


def unsuited(answer: object, example: object) -> str | None:
    """Why an answer cannot be compared with what is asked for, by an example of its shape; None if it can."""
    if isinstance(answer, str) and not isinstance(example, str):
        return f"{short(answer)} is text; leave the quotes out"
    if isinstance(example, tuple) and not isinstance(answer, tuple):
        return f"{short(answer)} has one part; {len(example)} are asked for"
    if isinstance(example, dict) and not isinstance(answer, dict):
        return f"{short(answer)} is no dictionary"
    if isinstance(example, int | str) and isinstance(answer, tuple | dict | set):
        return f"{short(answer)} has several parts; one is asked for"
    if isinstance(example, int) and not isinstance(example, bool) and not isinstance(answer, int):
        return f"{short(answer)} is no whole number"
    return None


class PictureGuess(NamedTuple):
    """A question that is answered by clicking in the picture of a cluster; the answer is what a run shows.

    `before` makes the lab that is shown, `run` does to a fork of it what is asked about, and `outcome` reads the right
    things off that: `broker:2`, `partition:orders-0`, or `nobody`. `kind` is `broker` or `partition`; of partitions
    several can be right. `hints` answer wrong guesses, `why` is the reason, given after the run.
    """

    question: str
    kind: str
    before: Callable[[], Lab]
    run: Callable[[Lab], None]
    outcome: Callable[[Lab], frozenset[str]]
    hints: Mapping[str, str]
    why: str

    @property
    def text(self) -> str:
        """The question."""
        several = ": all that it is true of" if self.kind == "partition" else ""
        return f"{self.question} (Click in the picture{several}.)"


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
        return "\n".join([self.question, *(f"  ( ) {option}" for option, _ in self.options)])
