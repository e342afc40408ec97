"""Exercises of the kind *predict*: what will happen? The truth is found by letting it happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Verdict, plain, unsuited
from kafka_ctl.lab.lab import Lab

Truth = TypeVar("Truth")
Remark = Callable[[Truth, Truth], str | None]
"""What to say of an answer beside the truth, both of one shape; None where it has nothing to say."""


@dataclass(frozen=True, kw_only=True)
class Predict(Exercise, Generic[Truth]):
    """What will happen in `story`? `ask` reads the answer from the lab at its end.

    `example` is an answer of the right shape that is not the right one. `parts` names the parts of an answer that is a
    tuple. `wrong` are asked in order what to say; where none has anything to say, the parts that are wrong are named.
    `also` accepts what is right for another reason and says which; `why` explains a right answer.
    """

    kind: ClassVar[str] = "predict"
    story: str
    ask: Callable[[Lab], Truth]
    example: object
    parts: tuple[str, ...] = ()
    wrong: Sequence[Remark[Truth]] = ()
    also: Remark[Truth] = lambda answer, truth: None
    why: str

    def judge(self, answer: object) -> Verdict:
        """Let it happen and compare."""
        given = plain(answer)
        example = f"An answer looks like {self.example!r}."
        if (problem := _unsuited(given, self.example, self.parts)) is not None:
            return Verdict(False, f"{problem}. {example}")
        with Lab.replay(self.story) as lab:
            truth = plain(self.ask(lab))
        if given == truth:
            return Verdict(True, self.why, self.story)
        if (remark := self.also(given, truth)) is not None:
            return Verdict(True, f"{remark} {self.why}", self.story)
        hint = next((text for each in self.wrong if (text := each(given, truth)) is not None), None)
        return Verdict(False, f"You say {given!r}. {hint or self._differs(given, truth)}", self.story)

    def _differs(self, answer: Truth, truth: Truth) -> str:
        """Which parts of an answer are wrong, without saying what is right."""
        if not isinstance(truth, tuple) or not isinstance(answer, tuple) or not self.parts:
            return "That is not what happens."
        wrong = [name for name, mine, its in zip(self.parts, answer, truth, strict=True) if mine != its]
        return f"Look again at: {', '.join(wrong)}."


def _unsuited(answer: object, example: object, parts: tuple[str, ...]) -> str | None:
    if isinstance(example, tuple) and isinstance(answer, int) and not parts:
        return f"{answer} is one number, and a tuple is asked for; a tuple of one has a comma: ({answer},)"
    if (problem := unsuited(answer, example)) is not None:
        return problem
    if isinstance(example, tuple) and isinstance(answer, tuple) and parts:
        if len(answer) != len(example):
            return f"{short(answer)} has {len(answer)} parts; {len(example)} are asked for: {', '.join(parts)}"
        inside = (unsuited(mine, its) for mine, its in zip(answer, example, strict=True))
        return next((problem for problem in inside if problem is not None), None)
    return None
