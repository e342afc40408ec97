"""The functions of right answers are kept, and play the stories of the museum together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_ctl.exercises import EXERCISES, check, my_controller, reset
from kafka_ctl.exercises import progress_file as kept
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.repair import Repair
from tools import editions, notebooks

SURVIVED = (
    "532 708 1170 1382 3085 3670 4443 4229 1211 7482 3143 8286 9212 9866",
    "LINKEDIN-14",
)
"""The tickets of the exhibits whose bug does not show with the course's own answers."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Progress in a folder of the test's own, and a session that begins with it."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    monkeypatch.setattr(kept, "session_code", {})
    return tmp_path


def solved(name: str) -> str:
    """The function of the course's own answer, as source text."""
    (path,) = notebooks.NOTEBOOKS.glob(f"{name[:2]}-*.ipynb")
    sources = (cell.source for cell in notebooks.tagged(notebooks.read(path), notebooks.EXERCISE).values())
    calls = ((source, editions.CHECK.search(source)) for source in sources)
    return next(source[: call.start()].strip() for source, call in calls if call is not None and call["name"] == name)


NONE = -1


def is_remembered(cached: int, written: int) -> int:
    return newest(cached, written)


def newest(*epochs: int, floor: int = NONE) -> int:
    return max(floor, *epochs)


def test_a_right_function_is_kept_with_those_that_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the next program, until the progress is forgotten."""
    check("11.3", is_remembered)
    monkeypatch.setattr(kept, "session_code", {})
    mine = my_controller()
    assert mine.exercises == {"rules.bumped": "11.3"} and mine.given["rules"]["bumped"](1, 2) == 2
    reset()
    assert my_controller().exercises == {}


def test_a_text_that_defines_nothing_by_itself_is_left_out() -> None:
    """The others stay, and the list names it."""
    check("11.3", is_remembered)
    kept.note_check("09.2", True, "def accepts(request_epoch, newest_seen, least=NONE):\n    return True")
    mine = my_controller()
    assert mine.exercises == {"rules.bumped": "11.3"} and mine.left_out.keys() == {"09.2"}
    assert "left out: 09.2 (NameError" in repr(mine)


def test_without_a_file_the_functions_of_the_session_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, "")
    check("11.3", is_remembered)
    assert my_controller().exercises == {"rules.bumped": "11.3"}


@pytest.mark.parametrize("answer", [lambda cached, written: written, newest, min])
def test_what_is_wrong_or_has_no_name_is_not_kept(answer: Any) -> None:
    check("09.2" if answer is newest else "11.3", answer)
    assert my_controller().exercises == {}


def test_the_course_survives_fifteen_of_the_stories() -> None:
    """A function that fails is a loss with a reason; of two for one place the later one counts."""
    for name, exercise in EXERCISES.items():
        if isinstance(exercise, Implement | Repair):
            kept.note_check(name, True, solved(name))
    mine = my_controller()
    assert (len(mine.exercises), mine.exercises["elections.controlled_shutdown"]) == (22, "17.2")
    survey = mine.museum()
    numbers, other = SURVIVED
    assert survey.survived == [*(f"KAFKA-{number}" for number in numbers.split()), other]
    assert len(survey.lost) == 12 and all(survey.lost.values())
    kept.note_check("09.2", True, "def accepts(request_epoch, newest_seen):\n    return unknown")
    assert "NameError" in repr(my_controller().museum())
