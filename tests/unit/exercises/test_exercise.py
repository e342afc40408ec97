"""What is said of an answer that cannot be compared with what is asked for."""

from __future__ import annotations

from typing import Any

from tables import tabled

from kafka_ctl.exercises.exercise import unsuited


@tabled
def test_an_answer_of_another_kind_is_refused(answer: Any, example: Any, has: str) -> None:
    problem = unsuited(answer, example)
    assert (has in problem) if problem is not None and has else problem is None and not has, problem
