"""Exercises of the kind *repair*: a controller of the museum; which of its fields has to be the other way round?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kafka_ctl.errors import BadInput, KafkaCtlError, short
from kafka_ctl.exercises.exercise import Exercise, Verdict
from kafka_ctl.generation import BY_NAME, Generation
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import find
from kafka_ctl.museum.exhibit import Exhibit
from kafka_ctl.museum.questions import Question


@dataclass(frozen=True, kw_only=True)
class Repair(Exercise):
    """The exhibit `ticket`: its story is played with the field that the answer names set the other way round.

    An answer is a field's name, several names, or a whole `Generation`. `why` explains a right one. `evades` says, by
    field, why the violation is not seen with it, though what is wrong still is.
    """

    kind: ClassVar[str] = "repair"
    ticket: str
    why: str
    evades: Mapping[str, str] = field(default_factory=dict)

    def judge(self, answer: object) -> Verdict:
        """Play the story with the repair, and look for the violation, or ask the exhibit's question."""
        exhibit = find(self.ticket)
        try:
            repaired, names = _repaired(exhibit.generation, answer)
        except BadInput as error:
            return Verdict(False, str(error))
        try:
            with Lab.replay(exhibit.story) as broken, broken.fork(generation=repaired) as lab:
                left, text = _left(exhibit, broken, lab), lab.story
        except (KafkaCtlError, LookupError, AttributeError, TypeError, ValueError) as error:
            missing = error.args[0] if isinstance(error, KeyError) and error.args else error
            left, text = f"this story cannot be played to its end any more ({missing})", exhibit.story
        if left is None and len(names) == 1 and names[0] in self.evades:
            evaded = f"With `{names[0]}` changed, the story does not show it. {self.evades[names[0]]}"
            return Verdict(False, evaded)
        if left is None:
            return Verdict(True, self.why, text)
        about = " ".join(f"`{name}` is about something else: {_sentence(name)}." for name in names)
        return Verdict(False, f"With {' and '.join(f'`{n}`' for n in names)} changed, {left}.\n{about}", text)


def _left(exhibit: Exhibit, broken: Lab, lab: Lab) -> str | None:
    """The fault that is left in a repaired run; None if there is none."""
    if isinstance(exhibit.caught_by, Question):
        asked = exhibit.caught_by
        answer = asked.ask(lab)
        with broken.fork(generation=exhibit.fixed) as fixed:
            is_right = answer == asked.ask(fixed)
        return None if is_right else f"this does not repair the story. {asked.text} {answer}"
    first = next((v for v in lab.violations if v.invariant == exhibit.caught_by), None)
    return f"the story still breaks {first.invariant}: {first.text} (record {first.seq})" if first else None


def _repaired(generation: Generation, answer: object) -> tuple[Generation, list[str]]:
    """The generation with what the answer changes, and the fields that are changed."""
    if isinstance(answer, Generation):
        return answer, [name for name in BY_NAME if answer.has(name) != generation.has(name)]
    names = [answer] if isinstance(answer, str) else list(answer) if isinstance(answer, list | tuple | set) else []
    names = [name.strip().lower() if isinstance(name, str) else name for name in names]
    changes = (
        dict(answer) if isinstance(answer, Mapping) else {n: n not in BY_NAME or not generation.has(n) for n in names}
    )
    if not changes or not all(isinstance(name, str) for name in changes):
        raise BadInput(f"{short(answer)} is not the name of a field; give the name of a field of Generation, as text")
    if same := [name for name, value in changes.items() if name in BY_NAME and generation.has(name) is value]:
        raise BadInput(f"`{same[0]}` is {changes[same[0]]} in this story already; what has to be the other way round?")
    return generation.but(**changes), list(changes)


def _sentence(name: str) -> str:
    return BY_NAME[name].doc if name in BY_NAME else ""
