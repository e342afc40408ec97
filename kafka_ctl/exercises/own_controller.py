"""A controller of the learner's own: the functions that solved exercises, together, in the stories of the museum.

Their source text is kept with the progress. So they outlive their notebooks, also in a browser, and need not be copied.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, cast

from kafka_ctl.exercises.checking import EXERCISES
from kafka_ctl.exercises.exercise import Function
from kafka_ctl.exercises.implement import Implement, played, with_rows
from kafka_ctl.exercises.progress_file import kept_code
from kafka_ctl.exercises.repair import Repair, left
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import EXHIBITS
from kafka_ctl.museum.exhibit import Exhibit
from kafka_ctl.plugins import Plugins

SHOWN = 200
"""Characters of a reason."""


class Survey(NamedTuple):
    """The exhibits whose bug does not show with a controller, and the others with the reason."""

    survived: list[str]
    lost: dict[str, str]

    def __repr__(self) -> str:
        number = len(self.survived) + len(self.lost)
        lines = [f"It survives {len(self.survived)} of {number} stories: {', '.join(self.survived) or 'none'}."]
        return "\n".join([*lines, *(f"  {name:<12} {reason}" for name, reason in self.lost.items())])


@dataclass(frozen=True)
class OwnController:
    """Functions by what asks for them, as `Lab` takes them, `Lab(**mine.given)`; `exercises` has the source of each.

    `left_out` has the error, by exercise, of each function whose text defines nothing by itself.
    """

    given: dict[str, dict[str, Function]]
    exercises: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = ", ".join(f"{what} ({name})" for what, name in self.exercises.items())
        text = f"A controller with functions of your own: {parts or 'none yet, solve an exercise that asks for one'}"
        return "\n".join([text, *(f"  left out: {name} ({error})" for name, error in self.left_out.items())])

    def museum(self) -> Survey:
        """Play every exhibit, bug included, with these functions in the places where a lab asks them."""
        plugins, survived, lost = Plugins(**self.given), list[str](), dict[str, str]()
        repairs = {
            each.ticket: f" Exercise {name} is about it."
            for name, each in EXERCISES.items()
            if isinstance(each, Repair) and name not in self.exercises.values()
        }
        for exhibit in EXHIBITS:
            reason = played(exhibit.story, plugins, partial(_loss, exhibit))
            if reason is None:
                survived.append(exhibit.name)
            else:
                text = textwrap.shorten(reason, SHOWN, placeholder=" …")
                lost[exhibit.name] = text + "." * (not text.endswith((".", "…"))) + repairs.get(exhibit.name, "")
        return Survey(survived, lost)


def _loss(exhibit: Exhibit, lab: Lab) -> str | None:
    """The fault in an exhibit's story; None if there is none but those that Kafka of that time has as well."""
    first = next((each for each in lab.violations if each.known is None), None)
    return left(exhibit, lab) or (f"it breaks {first.invariant}: {first.text}." if first else None)


def my_controller() -> OwnController:
    """The functions of the exercises that were solved; of two for one place, the one of the later exercise."""
    given: dict[str, dict[str, Function]] = {}
    names, left_out = dict[str, str](), dict[str, str]()
    for name, code in sorted(kept_code().items()):
        exercise = EXERCISES.get(name)
        if isinstance(exercise, Implement | Repair):
            try:
                function = _defined(name, code)
            except Exception as error:  # of the learner's code, such as a default that the cell before defined
                left_out[name] = f"{type(error).__name__}: {error}"
                continue
            lists = isinstance(exercise, Implement) and exercise.lists
            given.setdefault(exercise.what, {})[exercise.occasion] = with_rows(function) if lists else function
            names[f"{exercise.what}.{exercise.occasion}"] = name
    return OwnController(given, names, left_out)


def _defined(name: str, code: str) -> Function:
    defined: dict[str, object] = {}
    exec(compile(code, f"exercise {name}", "exec"), defined)
    return cast(Function, defined[cast(ast.FunctionDef, ast.parse(code).body[-1]).name])
