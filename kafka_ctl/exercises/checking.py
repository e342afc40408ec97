"""The calls of a notebook: check an answer, ask for a hint, open the cluster in trouble or the story that went wrong.

Nothing here raises because of an answer, takes long because of it, or prints pages: the rest of the notebook still
runs. Only the learner's own answer is run, and Ctrl-C interrupts it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from importlib.metadata import entry_points
from types import ModuleType
from typing import NamedTuple

from kafka_ctl.display import counted
from kafka_ctl.errors import BadInput, UnknownName, UnusableFunction, nearest, short
from kafka_ctl.exercises import answers, progress_file
from kafka_ctl.exercises.answers import UnusableAnswer, judging
from kafka_ctl.exercises.exercise import OPTION, Exercise, Guess, PictureGuess, Verdict, failed, is_open, source_of
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.progress_file import UNSEEN, Entry, progress
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.simulation.loop import RunTooLong

LESSONS: dict[str, ModuleType] = {}
"""The registered lessons, by number."""
EXERCISES: dict[str, Exercise] = {}
"""Every exercise by its name."""
GUESSES: dict[str, Guess | PictureGuess] = {}
"""Every question to answer before a cell is run, by its name."""
_last: dict[str, Verdict] = {}
"""The verdict on the last answer to each exercise."""
CHANGES = re.compile(r" changes='[^']*'")
"""The fields of a story's generation; of an exhibit they name the one that has to be found."""
WIDTH = 72
"""Columns of what is said, so that a narrow notebook breaks no word in two."""
LINES = 60
"""Lines of a story that is shown."""
MOST = 3_000
"""Characters of what is said."""
hints_given: dict[str, int] = {}
"""The number of hints of each exercise that were asked for since the notebook was started."""


def register(number: str, lesson: ModuleType, guesses: Mapping[str, Guess | PictureGuess]) -> None:
    """Add a lesson: its `EXERCISES`, a sequence of `Exercise`, and its questions by name."""
    LESSONS[number] = lesson
    EXERCISES.update({exercise.name: exercise for exercise in lesson.EXERCISES})
    GUESSES.update(guesses)


def check(name: str, answer: object) -> None:
    """Print whether `answer` to the exercise `name` is right, and what went wrong if it is not.

    Dots, alone or as a part, are not an answer yet.
    """
    exercise = _find(name)
    if exercise is None:
        return
    verdict = _judged(exercise, answer)
    if verdict is None:
        print("No answer yet: put yours in place of the dots, then run the cell again.")
        return
    _last[name] = verdict
    plugs = verdict.right and isinstance(exercise, Implement | Repair)
    progress_file.note_check(name, verdict.right, source_of(answer) if plugs and callable(answer) else "")
    say(("Right. " if verdict.right else "Not yet. ") + verdict.text)
    if not verdict.right:
        print(_next(exercise, verdict))


def _judged(exercise: Exercise, answer: object) -> Verdict | None:
    """The verdict on an answer, whatever the answer does; None where there are still dots in it.

    Raises KeyboardInterrupt where Ctrl-C was pressed meanwhile, and never because the answer raises it.
    """
    with judging() as state:
        try:
            given = state.copied(answer)
            verdict = None if is_open(given) else exercise.judge(given)
        except RunTooLong:
            busy = f"is still busy after {answers.BUSY:g} s of work; it was stopped."
            verdict = Verdict(False, f"With your answer a cluster {busy}")
        except (UnusableAnswer, UnusableFunction) as problem:
            what = "answer" if isinstance(problem, UnusableAnswer) else "function"
            verdict = Verdict(False, f"Your {what} {problem}.")
        except BaseException as error:  # whatever a learner's code can do
            if state.pressed:
                raise
            ended = f"Your answer cannot be judged; it ended in {type(error).__name__}: {error}"
            verdict = Verdict(False, f"Your function {failed(error)}." if error is state.raised else ended)
    if state.pressed:
        raise KeyboardInterrupt
    return verdict


def say(text: str) -> None:
    """Print a text in lines of `WIDTH` columns, `MOST` characters of it."""
    if len(text) > MOST:
        text = f"{text[:MOST]} … ({len(text) - MOST:,} more characters)"
    print(in_columns(text))


def in_columns(text: str) -> str:
    """A text in lines of at most `WIDTH` columns, where its words allow it; the options of a question stay indented."""
    filled = textwrap.TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = list[str]()
    for line in text.splitlines():
        filled.subsequent_indent = " " * len(OPTION) if line.startswith(OPTION) else ""
        lines.append(filled.fill(line))
    return "\n".join(lines)


def _next(exercise: Exercise, verdict: Verdict) -> str:
    if verdict.story and exercise.kind != "predict":
        text = CHANGES.sub("", verdict.story) if exercise.kind == "repair" else verdict.story
        shown = text.splitlines()
        shown[LINES:] = [f"... ({len(shown) - LINES:,} more lines)"] * (len(shown) > LINES)
        lines = "".join(f"    {line[:MOST]}\n" for line in shown)
        return f"A story that shows it; counterexample({exercise.name!r}) opens it as a lab:\n{lines}".rstrip()
    return f"hint({exercise.name!r}) gives a hint."


def hint(name: str) -> None:
    """Print the next hint of an exercise; asked again, the one after it. None of them is the answer."""
    exercise = _find(name)
    if exercise is None:
        return
    number = min(hints_given.get(name, 0) + 1, len(exercise.hints))
    hints_given[name] = number
    progress_file.note_hint(name, number)
    last = " It is the last." if number == len(exercise.hints) else ""
    say(f"Hint {number} of {len(exercise.hints)}.{last} {exercise.hints[number - 1]}")


def trouble(name: str) -> Lab:
    """The cluster of an exercise of the kind *operate*: a lab of your own, in trouble.

    Raises UnknownName for another name.
    """
    exercise = EXERCISES.get(name) if isinstance(name, str) else None
    if not isinstance(exercise, Operate):
        raise UnknownName("cluster in trouble", name, [n for n, e in EXERCISES.items() if isinstance(e, Operate)])
    return exercise.open()


def counterexample(name: str) -> Lab:
    """The story that showed what was wrong with the last answer, as a lab with the answer in it.

    Raises UnknownName for another name, BadInput where there is none.
    """
    if not isinstance(name, str) or name not in EXERCISES:
        raise UnknownName("exercise", name, EXERCISES)
    verdict = _last.get(name)
    if verdict is None or verdict.right or not verdict.story:
        raise BadInput(f"no wrong answer to {name!r} was checked here that a story shows")
    return verdict.open()


def _find(name: str) -> Exercise | None:
    """The exercise; None, after saying where they are listed, for another name."""
    if not isinstance(name, str) or name not in EXERCISES:
        near = f"; nearest: {', '.join(nearest(name, EXERCISES, 3, 0))}" if EXERCISES else ""
        print(f"There is no exercise {short(name)}{near}; `kafka-ctl exercises` lists all of them.")
        return None
    return EXERCISES[name]


class Row(NamedTuple):
    """One exercise and what became of it."""

    name: str
    lesson: str
    kind: str
    title: str
    state: str
    solved: bool


def rows() -> list[Row]:
    """Every exercise in order."""
    for course in entry_points(group="kafka_ctl.exercises"):
        course.load()  # it registers its lessons
    known = progress()
    return [
        Row(name, LESSONS[name[:2]].TITLE, each.kind, each.title, _state(entry), entry["solved"])
        for name, each in EXERCISES.items()
        for entry in (known.get(name, UNSEEN),)
    ]


def summary(rows: list[Row]) -> str:
    """The number of solved exercises, in one sentence."""
    return f"{sum(row.solved for row in rows)} of {len(rows)} exercises solved"


def _state(entry: Entry) -> str:
    if not entry["checks"] and not entry["hints"]:
        return "not tried yet"
    counts = [counted(entry["checks"], "check")] + [counted(entry["hints"], "hint")] * bool(entry["hints"])
    return f"{'solved' if entry['solved'] else 'open'} ({', '.join(counts)})"
