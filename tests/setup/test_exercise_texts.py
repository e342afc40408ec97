"""What exercises and guesses say in numbers: each is in their code, in their stories, or in what their lesson shows."""

import ast
import re
from collections.abc import Iterator

import nbformat
import pytest

from kafka_ctl.exercises.exercise import Guess
from kafka_ctl.paths import ROOT
from kafka_ctl_course import GUESSES, LESSONS
from tools import notebooks

NUMBER = re.compile(r"(?<![\w.,/#-])(\d+(?:,\d{3})*(?:\.\d+)?)(?![\w.,]*\d)")
NO_QUANTITY = re.compile(
    r"`[^`]*`|\]\([^)]*\)|^## .*|KAFKA-\d+|Kafka \**\d\S*|lessons? [\d, and]+|\*\*\d\."
    r"|\b\d+ min\.\*|\b0\.\d+\.\d+\b|\b(0\.10|0\.9|[123]\.\d)\b",
    re.MULTILINE,
)
"""Code, links, headings, tickets, releases, numbers of exercises and lessons, and the minutes of an exercise."""
SMALL = 6
"""Below it numbers are ids and counts of a few things, which are in every story."""
STORY = re.compile(r"^lab |\n|config=|run_for|create_topic|produce ")
SUPPOSED = {
    "10": (120,),  # an if: what is not so
    "26": (21, 58_801),  # a delay to try; the gauge that 26.4 begins with
    "22": (70, 1001, 1002, 1010),  # of a public set of logs
}
"""By lesson the numbers that are given and not computed."""


def texts(number: str) -> Iterator[tuple[str, str]]:
    """Every text of a lesson's exercises and guesses, in the package and in the notebook, with a name."""
    for exercise in LESSONS[number].EXERCISES:
        remarks = (getattr(exercise, name, {}).values() for name in ("remarks", "praise", "evades"))
        own = [exercise.title, *exercise.hints, getattr(exercise, "why", ""), *(r for each in remarks for r in each)]
        yield from ((exercise.name, text) for text in own if isinstance(text, str))
    for name in (name for name in GUESSES if name.startswith(number)):
        guess = GUESSES[name]
        answers = (
            [t for o in guess.options for t in o] if isinstance(guess, Guess) else [*guess.hints.values(), guess.why]
        )
        yield from ((name, text) for text in [guess.question, *answers])
    (path,) = notebooks.NOTEBOOKS.glob(f"{number}-*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    begins = next(place for place, cell in enumerate(cells) if cell.source.startswith("## Exercises"))
    for cell in cells[begins:]:
        if cell.source.startswith("## Summary"):
            return
        if cell.cell_type == "markdown":
            yield cell.id, cell.source


def computed(number: str) -> set[float]:
    """Every number in the code and the stories of the exercises, and in what the lesson runs and shows."""
    found: list[str] = []
    code = (ROOT / f"kafka_ctl_course/lesson_{number}.py").read_text("utf-8")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and (not isinstance(node.value, str) or STORY.search(node.value)):
            found.append(str(node.value))
    (path,) = notebooks.NOTEBOOKS.glob(f"{number}-*.ipynb")
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            found.append(cell.source)
            found += [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return {float(each) for each in re.findall(r"\d+(?:\.\d+)?", re.sub("[,_]", "", " ".join(found)))}


def unfounded(found: Iterator[tuple[str, str]], known: set[float]) -> list[str]:
    """The numbers that are not known: as they are, in seconds for milliseconds, or as a share."""
    wrong = []
    for name, text in found:
        for each in NUMBER.finditer(NO_QUANTITY.sub(" ", text)):
            value = each[1].replace(",", "")
            digits = len(value.partition(".")[2])
            if float(value) >= SMALL and not any(
                round(one * scale, digits) == float(value) for one in known for scale in (1, 100, 1000, 0.001)
            ):
                wrong.append(f"{name}: {each[1]}")
    return wrong


@pytest.mark.parametrize("number", LESSONS)
def test_a_number_of_an_exercise_is_in_its_code_or_its_lesson(number: str) -> None:
    assert unfounded(texts(number), computed(number) | {float(each) for each in SUPPOSED.get(number, ())}) == []


def test_a_number_from_nowhere_is_noticed() -> None:
    texts = [
        ("a", "It waits 7.3 s, as `run_for 9` says."),
        ("b", "In 12 ms, of KAFKA-77 in Kafka 2.4."),
        ("c", "17,000"),
    ]
    assert unfounded(iter(texts), {0.012}) == ["a: 7.3", "c: 17,000"]
