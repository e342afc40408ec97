"""Exercises of the kind *operate*: a cluster in trouble is to be brought back; only the outcome counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import ConditionNotMet, KafkaCtlError, Unavailable, UnusableFunction, short
from kafka_ctl.exercises import answers
from kafka_ctl.exercises.exercise import Exercise, Verdict, failed
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import REFUSED, UNTIL, Command
from kafka_ctl.simulation.loop import RunTooLong

WAITS = ("settle", "run_for", "step", UNTIL, "run_until_violation")
"""The commands that are not counted: time that passes."""
Remark = str | Callable[[Lab], str | None]


@dataclass(frozen=True, kw_only=True)
class Operate(Exercise):
    """A cluster as `begin` (a story) leaves it.

    The answer is a lab that was worked in, a function of a lab, or commands as text. `missing` says what is still
    wrong at the end, None if nothing is; `best` is how few commands are enough, `most` how many there may be. `remarks`
    tell, by command, why it did not help; `praise` tells, by command, what to say of a way that works, and `why` what
    made it work. A way that wrote a broker's or a partition's znode by hand works at a risk, which is said instead of
    the praise.
    """

    kind: ClassVar[str] = "operate"
    begin: str
    missing: Callable[[Lab], str | None]
    best: int
    most: int | None = None
    remarks: Mapping[str, Remark]
    praise: Mapping[str, Remark] = field(default_factory=dict)
    why: Remark

    def open(self) -> Lab:
        """The cluster in trouble, as a lab of the learner's own."""
        return Lab.replay(self.begin)

    @cached_property
    def _begun(self) -> tuple[str, frozenset[tuple[str, int]]]:
        """The story and the topics at the beginning; the same each time."""
        with self.open() as lab:
            return lab.story, _topics(lab)

    def judge(self, answer: object) -> Verdict:
        """Play the commands after the beginning, wait, and look."""
        try:
            lab, busy, cut = self._worked(answer)
        except _CannotPlay as problem:
            return Verdict(False, str(problem))
        with lab:
            given = self._given(lab)
            waited = "" if busy or not given else self._waited(lab)
            if busy or waited is None:
                after = f"After {_listed(given)} the cluster" if given else "The cluster"
                text = f"{after} is still busy after {answers.BUSY:g} s of work; it was stopped."
                return Verdict(False, text + self._remark(lab, given))
            if not given:
                return Verdict(False, f"No command was carried out in the lab yet; time alone does not help.{cut}")
            if self.most is not None and len(given) > self.most:
                enough = f"{self.most} are enough, besides time that passes."
                return Verdict(False, f"These are {len(given)} commands; {enough}")
            text, wrong = lab.story, self._missing(lab)
            if wrong is not None:
                return Verdict(False, f"After {_listed(given)}{waited}: {wrong}{self._remark(lab, given)}{cut}", text)
            return Verdict(True, self._praised(lab, given) + cut, text)

    def _missing(self, lab: Lab) -> str | None:
        """The fault that is left; the commands may also have removed its subject, or a topic that was to stay.

        A topic that was deleted and created again has none of its records.
        """
        try:
            wrong = self.missing(lab)
        except (KafkaCtlError, LookupError, StopIteration, ValueError) as error:
            gone = error.args[0] if isinstance(error, KeyError) and error.args else error
            return f"what this exercise asks about cannot be found any more ({gone})."
        if wrong is not None:
            return wrong
        left = _topics(lab)
        if not (lost := sorted(self._begun[1] - left)):
            return None
        how = "was deleted" if lost[0][0] in dict(left) else "is gone"
        return f"the topic {lost[0][0]} {how}, and what it held with it."

    def _worked(self, answer: object) -> tuple[Lab, bool, str]:
        """A lab of our own that carried out the commands of the answer; True if one of them ran too long; and a
        sentence where a wait that did not end was the last command of more."""
        if isinstance(answer, Lab):
            text = answer.story
            if not text.startswith(self._begun[0]):
                raise _CannotPlay(
                    f"This lab did not begin with this trouble; trouble({self.name!r}) opens one that does."
                )
            try:
                return Lab.replay(text), False, ""
            except (ConditionNotMet, Unavailable):  # the last command; before another one it is passed over
                return Lab.replay(f"{text}run_for 0\n"), False, ""
        lines = [] if callable(answer) else _lines(answer)
        lab = self.open()
        try:
            if callable(answer):
                answer(lab)
            while lines:
                lab.do(lines.pop(0))
        except RunTooLong:
            return lab, True, ""
        except ConditionNotMet as problem:
            last = not callable(answer) and not lines
            return lab, False, "" if last else f"\nNothing after `{lab.commands[-1]}` was carried out: {problem}."
        except Exception as error:  # whatever a learner's code can do
            lab.close()
            refused = isinstance(error, KafkaCtlError) and not isinstance(error, UnusableFunction)
            text = f"Your commands cannot be carried out: {error}" if refused else f"Your function {failed(error)}."
            raise _CannotPlay(text) from None
        return lab, False, ""

    def _given(self, lab: Lab) -> list[Command]:
        begin = len(list(story.parse(self.begin))) - 1
        return [each for each in lab.commands[begin:] if each.name not in (*WAITS, REFUSED)]

    @staticmethod
    def _waited(lab: Lab) -> str | None:
        """The time in words until a lab came to rest, or a minute has passed in it; None if it is busy without an end.

        Where an election fails, and the next one begins at once, a minute brings nothing but elections.
        """
        begun, since = len(lab.trace), lab.now
        try:
            try:
                lab.settle()
            except KafkaCtlError:
                if not lab.trace.slice(begun, kind="controller", action="election_failed"):
                    lab.run_for(60)
                return f", {lab.now - since:.0f} s later" if lab.now - since >= 1 else ""
        except RunTooLong:
            return None
        return ", when all is quiet again" if lab.now > since else ""

    def _remark(self, lab: Lab, given: Sequence[Command]) -> str:
        """The remarks on commands that were tried, on the last one first."""
        for each in reversed(given):
            if text := _about(_on(each, self.remarks), lab):
                return f"\n{text}"
        return ""

    def _praised(self, lab: Lab, given: Sequence[Command]) -> str:
        number = f"{len(given)} command{'s' * (len(given) != 1)}"
        fewer = "" if len(given) <= self.best else f"; {self.best} would have been enough"
        praises = [_about(_on(each, self.praise), lab) for each in given]
        edited = [str(each.args[0]) for each in given if each.name in ("write_znode", "delete_znode")]
        if states := [path for path in edited if path.startswith("/brokers/")]:  # which Kafka's own processes write
            praises = [
                f"But you changed {states[0]} by hand, past every check: the next controller believes whatever is "
                "there. On a real cluster ask the controller instead."
            ]
        return " ".join(dict.fromkeys([f"{number}{fewer}.", *filter(None, praises), _about(self.why, lab)]))


def down(lab: Lab) -> list[int]:
    """The brokers that do not run."""
    return [broker.id for broker in lab.brokers.values() if broker.state != RUNNING]


def _topics(lab: Lab) -> frozenset[tuple[str, int]]:
    """The topics of a cluster that are not to be deleted, each with the zxid that created it."""
    znodes = lab.znodes()
    names = {partition.topic for partition in lab.partitions()}
    kept = [name for name in names if f"/admin/delete_topics/{name}" not in znodes]
    return frozenset((name, lab.stat(path).czxid) for name in kept if (path := f"/brokers/topics/{name}") in znodes)


def _about(remark: Remark | None, lab: Lab) -> str:
    """A remark on what a lab has become; "" where it has nothing to say, or what it is about is gone."""
    with suppress(KafkaCtlError, LookupError, TypeError, ValueError):
        return (remark(lab) if callable(remark) else remark) or ""
    return ""


class _CannotPlay(Exception):
    """The answer cannot be applied to the lab; the text says why."""


def _lines(answer: object) -> list[str]:
    lines = answer.splitlines() if isinstance(answer, str) else answer
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise _CannotPlay(
            f"Your commands cannot be carried out: {short(answer)} is neither a lab nor a function of a lab; give a "
            "lab with your commands, a function such as `lambda lab: lab.settle()`, or lines of a story. "
            "docs/reference.md lists the commands of a lab."
        )
    return [line for line in lines if line.strip()]


def _on(command: Command, remarks: Mapping[str, Remark]) -> Remark | None:
    """The remark on a command with its first argument, `start 1`, or with any.

    To delete the znode `/controller` is `delete_controller`.
    """
    named = " ".join([command.name, *map(str, command.args[:1])])
    name = "delete_controller" if named == "delete_znode /controller" else command.name
    return remarks.get(named, remarks.get(name))


def _listed(given: Sequence[Command]) -> str:
    return ", ".join(f"`{each}`" if len(str(each)) <= 60 else f"`{each.name}`" for each in given)
