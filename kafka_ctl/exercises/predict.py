"""Exercises of the kind *predict*: what will happen? The truth is found by letting it happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Verdict, first, plain, same, unsuited, unsuited_member
from kafka_ctl.lab.lab import Lab

Truth = TypeVar("Truth")
Remark = Callable[[Truth, Truth], str | None]
"""The reply to an answer beside the truth, both of one shape; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Predict(Exercise, Generic[Truth]):
    """A prediction of the end of `story`: `ask` reads the answer from the lab at its end.

    `example` is an answer of the right shape that is not the right one. `parts` names the parts of an answer that is a
    tuple. Words are compared without regard to capital letters; `names` has other spellings of them, `read` takes an
    answer for what it means, and `no_broker` is written instead of None. The functions in `wrong` are called in order;
    the first text is the reply. Without a text, the reply names the wrong parts. `also` accepts what is right for
    another reason and says which; `why` explains a right answer.
    """

    kind: ClassVar[str] = "predict"
    story: str
    ask: Callable[[Lab], Truth]
    example: object
    parts: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[object], object] = plain
    no_broker: str = ""
    wrong: Sequence[Remark[Truth]] = ()
    also: Remark[Truth] = lambda answer, truth: None
    why: str

    def judge(self, answer: object) -> Verdict:
        """Let it happen and compare."""
        given = self.read(plain(answer))
        example = f"An answer looks like {self.example!r}."
        if (problem := _unsuited(given, self.example, self.parts)) is not None:
            none = f"; no broker is {self.no_broker}" * (bool(self.no_broker) and "None" in problem)
            return Verdict(False, f"{problem}{none}. {example}")
        truth = self._truth
        known = {word: word for word in [*_words(truth), *_words(self.example)]} | dict(self.names)
        given = _spelled(given, {word.casefold(): name for word, name in known.items()})
        if same(given, truth):
            return Verdict(True, self.why, self.story)
        if (remark := _remark(self.also, given, truth)) is not None:
            return Verdict(True, f"{remark} {self.why}", self.story)
        hint = first(_remark(each, given, truth) for each in self.wrong)
        return Verdict(False, f"You say {given!r}. {hint or self._differs(given, truth)}", self.story)

    @cached_property
    def _truth(self) -> object:
        """The right answer; the same each time."""
        with Lab.replay(self.story) as lab:
            return plain(self.ask(lab))

    def _differs(self, answer: object, truth: object) -> str:
        """The parts of an answer that are wrong, without saying what is right."""
        if isinstance(answer, int | float) and isinstance(truth, int | float):
            return f"That is too {'large' if answer > truth else 'small'}."
        if isinstance(answer, dict) and isinstance(truth, dict):
            wrong = [f"{key!r} (you say {value!r})" for key, value in answer.items() if not same(value, truth.get(key))]
            return f"Look again at: {', '.join(wrong)}." if wrong else "Something is missing."
        if not isinstance(truth, tuple) or not isinstance(answer, tuple):
            return f"It is not {answer!r}."
        if not self.parts:
            extra = [str(part) for part in answer if part not in truth]
            return f"Look again at: {', '.join(extra)}." if extra else "Something is missing, or in another order."
        pairs = zip(self.parts, answer, truth, strict=True)
        wrong = [f"{name} (you say {mine!r})" for name, mine, its in pairs if not same(mine, its)]
        return f"Look again at: {', '.join(wrong)}."


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | tuple):
        for part in [*value.keys(), *value.values()] if isinstance(value, dict) else value:
            yield from _words(part)


def _spelled(value: object, known: Mapping[str, str]) -> object:
    """An answer with its words as the kit spells them: a known word in other capitals, or with spaces around it."""
    if isinstance(value, str):
        return known.get(value.strip().casefold(), value)
    if isinstance(value, tuple):
        return tuple(_spelled(part, known) for part in value)
    if isinstance(value, dict):
        return {_spelled(key, known): _spelled(part, known) for key, part in value.items()}
    return value


def _remark(remark: Callable[..., str | None], answer: object, truth: object) -> str | None:
    """The remark on an answer; an answer of another shape within it has none."""
    try:
        return remark(answer, truth)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def _unsuited(answer: object, example: object, parts: tuple[str, ...]) -> str | None:
    if isinstance(answer, int) and not parts and isinstance(example, tuple):
        return _no_tuple(answer)
    if (problem := unsuited(answer, example)) is not None:
        return problem
    if not isinstance(example, tuple) or not isinstance(answer, tuple):
        return None
    if parts and len(answer) != len(example):
        given = f"{len(answer)} part{'s' * (len(answer) != 1)}"
        return f"{short(answer)} has {given}; {len(example)} are asked for: {', '.join(parts)}"
    examples = example if parts else example[:1] * len(answer)
    return first(map(_unsuited_part, answer, examples))


def _unsuited_part(answer: object, example: object) -> str | None:
    """The same for one part; if the part is a tuple of values of several types, each member is checked, too."""
    is_row = isinstance(example, tuple) and len({type(each) for each in example}) == 1
    if is_row and isinstance(answer, int):
        return _no_tuple(answer)
    if is_row and answer is None:
        return "None is no answer; a tuple is asked for"
    problem = unsuited(answer, example)
    return problem if problem is not None or is_row else unsuited_member(answer, example)


def _no_tuple(answer: int) -> str:
    """The reply to a number where a tuple of any length is asked for."""
    return f"{answer} is one value; a tuple is asked for; a tuple of one has a comma: ({answer},)"
