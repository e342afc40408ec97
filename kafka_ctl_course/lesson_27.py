"""Exercises of lesson 27, on call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from kafka_ctl.errors import KafkaCtlError, short
from kafka_ctl.exercises.answers import UnknownObject
from kafka_ctl.exercises.exercise import Exercise, Function, FunctionExercise, Verdict, failed, returned_none
from kafka_ctl.incidents.incident import Incident, Score, on_call

TITLE = "On call"
LIVING, FROM_LOGS, SHOWN = 19, 14, 30
"""The seeds of the two core exercises, and of the incident that the lesson solves."""


@dataclass(frozen=True, kw_only=True)
class Solve(FunctionExercise):
    """An incident that a learner's function solves: it is given the incident of `seed` and returns (cause, component).

    Each call opens the incident from its beginning. With a living cluster the symptom has to be gone, too.
    `why` explains a right answer.
    """

    seed: int
    logs_only: bool = False

    def judge_function(self, function: Function) -> Verdict:
        """Let the function work on the incident, and look at the score."""
        incident = on_call(self.seed, logs_only=self.logs_only)
        try:
            found = function(incident)
        except Exception as error:  # whatever a learner's code can do
            return Verdict(False, f"Your function {failed(error)}.")
        if incident.score is not None:
            return Verdict(False, "Your function called `answer`; return the cause and the component instead.")
        return self._scored(incident, function, found)

    def _scored(self, incident: Incident, function: Callable[..., object], found: object) -> Verdict:
        if found is None:
            return Verdict(False, returned_none(function))
        if not isinstance(found, tuple | list) or len(found) != 2:
            return Verdict(False, f"{short(found)} is not a cause and a component, such as ('broker-down', 3).")
        if isinstance(found[1], tuple | list | set):
            return Verdict(False, f"{short(found[1])} is not one component; of a connection, one broker is enough.")
        cause, component = (
            each if isinstance(each, str | int | float | None) else UnknownObject(each) for each in found
        )
        named = "-".join(cause.casefold().replace("_", " ").split()) if isinstance(cause, str) else short(cause)
        try:
            score = incident.answer(named, component)
        except KafkaCtlError as error:
            return Verdict(False, f"Your answer cannot be scored: {error}")
        if problem := _problem(score):
            return Verdict(False, f"You say {found[0]}, {found[1]}. {problem}")
        return Verdict(True, f"{score.percent} of 100. {self.why}")


def _problem(score: Score) -> str | None:
    """The first thing that is wrong, without the answer."""
    remarks = {
        "cause": "It is another cause: which of the others have the same symptom, and what tells them apart?",
        "component": "The cause is right, the component is not.",
        "repair": "The answer is right, but the symptom is still there. Repair it before you answer, and let time pass "
        "(`incident.lab.run_for(60)`) until `incident.alert` is False.",
    }
    return next((remarks[part.part] for part in score if part.part in remarks and not part.points), None)


class Tonight(Exercise):
    """An incident of any seed, answered by the learner."""

    kind: ClassVar[str] = "operate"

    def judge(self, answer: object) -> Verdict:
        """Look at the score of an incident."""
        if not isinstance(answer, Incident):
            return Verdict(False, f"{short(answer)} is not an incident; give what `on_call` returned.")
        if answer.seed in (LIVING, FROM_LOGS, SHOWN):
            return Verdict(False, "That is an incident of this lesson; open `on_call('today')`.")
        if answer.score is None:
            return Verdict(False, "This incident has no answer yet: call its `answer(cause, component)`.")
        if problem := _problem(answer.score):
            return Verdict(False, f"{answer.score.percent} of 100. {problem} Its `solution()` is open now.")
        return Verdict(True, f"{answer.score.percent} of 100. Share it: {answer.link()}")


EXERCISES: tuple[Exercise, ...] = (
    Solve(
        name="27.1",
        title="A partition without a leader",
        core=True,
        hints=(
            "Who is in the ISR, and is its process running? `incident.lab.partition(...)`, `incident.lab.brokers`",
            "Is it registered? Its znode would be in `incident.lab.znodes()`, below /brokers/ids.",
            "A process that runs and is not registered: what does its own log say, `incident.logs('server', broker)`?",
        ),
        seed=LIVING,
        why="A process that is cut off writes that its session timed out; one that stands still writes nothing.",
    ),
    Solve(
        name="27.2",
        title="Refused writes",
        core=True,
        hints=(
            "Which replica is missing in the ISR? Is its broker registered, and does its process run?",
            "Which other partitions miss it, and which brokers lead these?",
            "One leader misses it, or all of them; its directories are in `incident.lab.log_dirs()`.",
        ),
        seed=FROM_LOGS,
        logs_only=True,
        why="The pattern over all partitions tells a bad connection from a slow broker; one partition does not.",
    ),
    Tonight(
        name="27.3",
        title="The incident of today",
        hints=(
            "Read the page again: which causes can have this symptom?",
            "Compare what colleagues remember with the moment at which the symptom began.",
            "Read the last lines of each broker's server.log before the page.",
        ),
    ),
)
