"""Exercises of the kind *implement* whose function looks at a lab: what it finds is compared with what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, TypeVarTuple

from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import (
    Exercise,
    Verdict,
    failed,
    fitted,
    kind_of,
    not_callable,
    plain,
    returned_none,
    same,
)
from kafka_ctl.lab.lab import Lab

Given = TypeVarTuple("Given")
Truth = TypeVar("Truth")


@dataclass(frozen=True, kw_only=True)
class Compute(Exercise, Generic[*Given, Truth]):
    """A function that is called after each of `stories`, with what `give` takes from the lab: tuples of arguments.

    `truth` is the right answer to one of them, `explain` says what is wrong with another one. Where the arguments say
    all, and a story would show nothing, `shows_story` is off. Where None may be right, `none` is on, so that a wrong
    None is explained like any other answer.
    """

    kind: ClassVar[str] = "implement"
    stories: Mapping[str, str]
    give: Callable[[Lab], list[tuple[*Given]]]
    truth: Callable[[*Given], Truth]
    explain: Callable[[tuple[*Given], object, Truth], str]
    why: str
    shows_story: bool = True
    none: bool = False

    def judge(self, answer: object) -> Verdict:
        """Call it after every story; the first difference is reported."""
        if not callable(answer):
            return not_callable(answer)
        for title, text in self.stories.items():
            with Lab.replay(text) as lab:
                problem = next(
                    (problem for given in self.give(lab) if (problem := self._wrong(answer, given)) is not None), None
                )
            if problem is not None and not self.shows_story:
                return Verdict(False, problem[:1].upper() + problem[1:])
            if problem is not None:
                return Verdict(False, f'In the story "{title}": {problem}', text)
        return Verdict(True, self.why)

    def _wrong(self, answer: Callable[..., object], given: tuple[*Given]) -> str | None:
        expected = plain(self.truth(*given))
        try:
            got = fitted(plain(answer(*given)), expected)
        except Exception as error:  # whatever a learner's code can do
            return f"your function {failed(error)}."
        if got is None and expected is not None and not self.none:
            return returned_none(answer)
        if same(got, expected):
            return None
        try:
            return self.explain(given, got, expected)
        except (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError):  # of another shape
            return f"your function returned {short(got)}; {kind_of(expected)} is asked for."
