"""A learner's function has a time, and what it does at its end stays in it."""

from __future__ import annotations

import contextlib
import sys
import time
import weakref
from types import FunctionType

import pytest

from kafka_ctl.errors import UnusableFunction
from kafka_ctl.exercises import answers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SECONDS", 0.05)


def spin(seconds: float) -> int:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass
    return 7


class Thing:
    """Something that is gone when nobody has it any more."""


def test_a_function_that_comes_to_an_end_is_not_disturbed() -> None:
    assert answers.Judging().limited(lambda: spin(0))() == 7


def test_a_function_is_stopped_when_its_time_is_over() -> None:
    with pytest.raises(UnusableFunction, match=r"within 0.05 s"):
        answers.Judging().limited(spin)(1e9)


def test_a_function_cannot_ask_for_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter's prompt would stay open when the time is over, and block the notebook."""
    monkeypatch.setattr("builtins.input", lambda prompt="": "typed")
    with pytest.raises(UnusableFunction, match="asks for input"):
        answers.Judging().limited(lambda: input("?"))()
    assert input() == "typed"


@pytest.mark.parametrize("file", [f"{answers.KIT}/lab/lab.py", contextlib.__file__])
def test_code_of_ours_is_not_interrupted(file: str) -> None:
    """A cluster or a stream would be left half changed; the function is stopped when it goes on itself."""
    ours, done = FunctionType(spin.__code__.replace(co_filename=file), globals()), list[int]()

    def function() -> int:
        done.append(ours(0.2))
        return spin(1e9)

    with pytest.raises(UnusableFunction, match=r"within 0.05 s"):
        answers.Judging().limited(function)()
    assert done == [7]


def test_a_function_is_stopped_where_the_error_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in what Python calls when something is gone: an error of that is printed, and nobody gets it."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)

    def lingers() -> int:
        thing = Thing()
        weakref.finalize(thing, spin, 0.2)
        del thing
        return spin(1e9)

    with pytest.raises(UnusableFunction, match=r"within 0.05 s"):
        answers.Judging().limited(lingers)()
    assert not lost


def test_the_report_of_an_error_in_a_finalizer_is_not_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: done.append(spin(0.2)))

    class Fails:
        def __del__(self) -> None:
            raise ValueError

    def function() -> int:
        Fails()
        return spin(1e9)

    with pytest.raises(UnusableFunction, match=r"within 0.05 s"):
        answers.Judging().limited(function)()
    assert done == [7] and capsys.readouterr().err == ""
