"""Exercises of the kind *operate*: a cluster in trouble is to be brought back; only the outcome counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kafka_ctl.errors import ConditionNotMet, KafkaCtlError, short
from kafka_ctl.exercises.exercise import Exercise, Verdict
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.lab.story import UNTIL, Command

WAITS = ("settle", "run_for", "step", UNTIL, "run_until_violation")
"""What is not counted: time that passes."""
Remark = str | Callable[[Lab], str | None]


@dataclass(frozen=True, kw_only=True)
class Operate(Exercise):
    """A cluster as `begin` (a story) leaves it.

    The answer is a lab in which somebody worked, a function of a lab, or commands as text. `missing` says what is still
    wrong at the end, None if nothing is; `best` is how few commands are enough. `remarks` tell, by command, why it did
    not help; `praise` tells, by command, what to say of a way that works.
    """

    kind: ClassVar[str] = "operate"
    begin: str
    missing: Callable[[Lab], str | None]
    best: int
    remarks: Mapping[str, Remark]
    praise: Mapping[str, str] = field(default_factory=dict)
    why: str

    def open(self) -> Lab:
        """The cluster in trouble, as a lab of the learner's own."""
        return Lab.replay(self.begin)

    def judge(self, answer: object) -> Verdict:
        """Play the commands after the beginning, wait, and look."""
        try:
            lab = self._worked(answer)
        except _CannotPlay as problem:
            return Verdict(False, str(problem))
        with lab:
            given = self._given(lab)
            if not given:
                return Verdict(False, "No command was given to the lab yet; time alone does not help.")
            self._wait(lab)
            text, wrong = lab.story, self.missing(lab)
            if wrong is not None:
                return Verdict(False, f"After {_listed(given)}: {wrong}{self._remark(lab, given)}", text)
            return Verdict(True, self._praised(given), text)

    def _worked(self, answer: object) -> Lab:
        """A lab of our own in which the answer's commands were carried out."""
        if isinstance(answer, Lab):
            text = answer.story
            with self.open() as fresh:
                begins = text.startswith(fresh.story)
            if not begins:
                raise _CannotPlay(
                    f"This lab did not begin with this trouble; trouble({self.name!r}) opens one that does."
                )
            return Lab.replay(text)
        lab = self.open()
        try:
            if callable(answer):
                answer(lab)
            else:
                for line in _lines(answer):
                    lab.do(line)
        except (KafkaCtlError, AttributeError, TypeError) as error:
            if not isinstance(error, ConditionNotMet):
                lab.close()
                raise _CannotPlay(f"Your commands cannot be carried out: {error}") from None
        return lab

    def _given(self, lab: Lab) -> list[Command]:
        """The commands beyond the beginning, without time that passes."""
        begin = len(list(story.parse(self.begin))) - 1
        return [each for each in lab.commands[begin:] if each.name not in WAITS]

    @staticmethod
    def _wait(lab: Lab) -> None:
        try:
            lab.settle()
        except KafkaCtlError:
            lab.run_for(60)

    def _remark(self, lab: Lab, given: Sequence[Command]) -> str:
        """What is known of a command that was tried, of the last one first."""
        for each in reversed(given):
            remark = self.remarks.get(_named(each), self.remarks.get(each.name))
            text = remark(lab) if callable(remark) else remark
            if text:
                return f"\n{text}"
        return ""

    def _praised(self, given: Sequence[Command]) -> str:
        number = f"{len(given)} command{'s' * (len(given) != 1)}"
        fewer = "" if len(given) <= self.best else f"; {self.best} would have been enough"
        praises = [text for each in given if (text := self.praise.get(_named(each), self.praise.get(each.name)))]
        return " ".join(dict.fromkeys([f"{number}{fewer}.", *praises, self.why]))


class _CannotPlay(Exception):
    """What the learner gave is no way to work on the lab; the text says why."""


def _lines(answer: object) -> list[str]:
    lines = answer.splitlines() if isinstance(answer, str) else answer
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        known = ", ".join(name for name in COMMANDS if name not in WAITS)
        raise _CannotPlay(
            f"{short(answer)} is no way to work on a lab; give the lab, or a function of it. Commands: {known}"
        )
    return [line for line in lines if line.strip()]


def _named(command: Command) -> str:
    """A command with its first argument, `start 1`."""
    return " ".join([command.name, *map(str, command.args[:1])])


def _listed(given: Sequence[Command]) -> str:
    return ", ".join(f"`{each}`" if len(str(each)) <= 60 else f"`{each.name}`" for each in given)
