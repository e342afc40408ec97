"""What a notebook calls: check an answer, ask for a hint, open the cluster in trouble or the story that went wrong.

Nothing here raises because of an answer: the rest of the notebook still runs. Only the learner's own answer is run.
"""

from __future__ import annotations

import re
import textwrap
from importlib import import_module
from pathlib import Path

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.exercises import progress_file
from kafka_ctl.exercises.exercise import Exercise, Guess, PictureGuess, Verdict, is_open
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.lab.lab import Lab

LESSONS = {
    file.stem.removeprefix("lesson_"): import_module(f"kafka_ctl.exercises.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("lesson_*.py"))
}
"""The lessons that have exercises, by their number."""
EXERCISES: dict[str, Exercise] = {each.name: each for lesson in LESSONS.values() for each in lesson.EXERCISES}
"""Every exercise by its name."""
GUESSES: dict[str, Guess | PictureGuess] = {
    name: guess for lesson in LESSONS.values() for name, guess in lesson.GUESSES.items()
}
"""Every question that is to be answered before a cell is run, by its name."""
_last: dict[str, Verdict] = {}
"""What was said of the last answer to each exercise."""
CHANGES = re.compile(r" changes='[^']*'")
"""The fields of a story's generation; of an exhibit they name the one that has to be found."""
WIDTH = 72
"""Columns of what is said, so that a narrow notebook breaks no word in two."""
hints_given: dict[str, int] = {}
"""How many hints of each exercise were asked for since the notebook was started."""


def check(name: str, answer: object) -> None:
    """Print whether `answer` to the exercise `name` is right, and what went wrong if it is not.

    Dots, alone or as a part, are no answer yet.
    """
    exercise = _find(name)
    if exercise is None:
        return
    if is_open(answer):
        print("No answer yet: put yours in place of the dots, then run both cells.")
        return
    try:
        verdict = exercise.judge(answer)
    except Exception as error:  # whatever a learner's code can do
        verdict = Verdict(False, f"Your answer cannot be judged; it ended in {type(error).__name__}: {error}")
    _last[name] = verdict
    progress_file.note_check(name, verdict.right)
    _say(("Right. " if verdict.right else "Not yet. ") + verdict.text)
    if not verdict.right:
        print(_next(exercise, verdict))


def _say(text: str) -> None:
    """Print a text in lines of `WIDTH` columns."""
    lines = (textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False) for line in text.splitlines())
    print(*lines, sep="\n")


def _next(exercise: Exercise, verdict: Verdict) -> str:
    """What a learner can do after a wrong answer."""
    if verdict.story and exercise.kind != "predict":
        text = CHANGES.sub("", verdict.story) if exercise.kind == "repair" else verdict.story
        lines = "".join(f"    {line}\n" for line in text.splitlines())
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
    _say(f"Hint {number} of {len(exercise.hints)}.{last} {exercise.hints[number - 1]}")


def trouble(name: str) -> Lab:
    """The cluster of an exercise of the kind *operate*: a lab of your own, in trouble.

    Raises UnknownName for another name.
    """
    exercise = EXERCISES.get(name)
    if not isinstance(exercise, Operate):
        raise UnknownName("cluster in trouble", name, [n for n, e in EXERCISES.items() if isinstance(e, Operate)])
    return exercise.open()


def counterexample(name: str) -> Lab:
    """The story that showed what was wrong with the last answer, as a lab with the answer in it.

    Raises BadInput where there is none.
    """
    verdict = _last.get(name)
    if verdict is None or verdict.right or not verdict.story:
        raise BadInput(f"no wrong answer to {name!r} was checked here that a story shows")
    return verdict.open()


def _find(name: str) -> Exercise | None:
    """The exercise; None, after saying where they are listed, for another name."""
    if name not in EXERCISES:
        print(f"There is no exercise {name!r}; `kafka-ctl exercises` lists all of them.")
        return None
    return EXERCISES[name]
