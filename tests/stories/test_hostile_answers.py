"""No answer to an exercise raises, hangs or floods the notebook, and Ctrl-C still interrupts a check."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kafka_ctl import Lab
from kafka_ctl.exercises import answers, check, checking, trouble
from kafka_ctl.exercises import progress_file as kept
from kafka_ctl.exercises.operate import Operate
from kafka_ctl_course import EXERCISES


class Endless:
    """Whatever is asked of it, by an operator or by name, it never comes to an end."""

    def __forever(self, *_: object) -> Any:
        while True:
            pass

    __eq__ = __hash__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = __lt__ = __contains__ = __forever
    __getattr__ = __getitem__ = __int__ = __index__ = __float__ = __add__ = __forever


class Raising:
    """Whatever is asked of it raises."""

    def __fail(self, *_: object) -> Any:
        raise RuntimeError("x" * 10_000_000)

    __eq__ = __hash__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = __lt__ = __contains__ = __fail
    __getattr__ = __getitem__ = __int__ = __index__ = __float__ = __add__ = __fail


class Leaving(Exception):
    """An error whose text ends the program."""

    def __str__(self) -> str:
        raise SystemExit(7)


class EndlessList(list):
    __iter__ = __len__ = __repr__ = __eq__ = Endless.__len__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def holds_itself() -> list[Any]:
    itself: list[Any] = [1]
    itself.append(itself)
    return itself


def names_itself() -> dict[Any, Any]:
    itself: dict[Any, Any] = {}
    itself["self"] = itself
    return itself


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = (value,)
    return value


def numbers() -> Iterator[int]:
    yield from itertools.count()


VALUES: dict[str, Callable[[], Any]] = {
    "holds itself": holds_itself,
    "a dictionary in itself": names_itself,
    "nested 100,000 deep": lambda: nested(100_000),
    "nested 30 deep": lambda: nested(30),
    "an endless generator": numbers,
    "an endless iterator": itertools.count,
    "a long range": lambda: range(10**30),
    "a million numbers": lambda: list(range(1_000_000)),
    "9,000 numbers": lambda: list(range(9_000)),
    "9,000 pairs": lambda: {n: (n, "x" * 9) for n in range(4_000)},
    "a long text": lambda: "kill 1\n" * 1_000_000,
    "many commands": lambda: "delete_controller\n" * 3_000,
    "long bytes": lambda: bytes(10_000_000),
    "a number of a million digits": lambda: 1 << 3_000_000,
    "a number of 900 digits": lambda: 10**900,
    "numbers that are none": lambda: (float("nan"), float("inf")),
    "endless methods": Endless,
    "raising methods": Raising,
    "a list of those": lambda: [Endless(), Raising()],
    "a pair of those": lambda: (Endless(), Raising()),
    "a list with endless methods": lambda: EndlessList([1, 2]),
    "a dictionary of those": lambda: {"brokers": Endless(), "orders": Raising()},
    "a class": lambda: Raising,
    "a module": lambda: sys,
    "a built-in function": lambda: len,
    "odd text": lambda: "\x00\ud800 'kill 1",
    "odd commands": lambda: "kill x\nrun_for 1e300\nsettle -1\nlab\n",
    "time without end": lambda: "delete_controller\nrun_for 1000000",
    "a znode of garbage": lambda: "write_znode /controller_epoch abc\ndelete_controller",
    "partitions": lambda: "create_topic big partitions=200000\nsettle",
}
"""Answers that are no functions, and what functions return."""


def leaves(*_: object) -> Any:
    raise SystemExit(3)


def interrupts(*_: object) -> Any:
    raise KeyboardInterrupt


def never_ends(*_: object) -> Any:
    while True:
        pass


def sleeps(*_: object) -> Any:
    time.sleep(3_600)


def catches_all(*_: object) -> Any:
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def raises(*_: object) -> Any:
    raise KeyError("orders")


def closes(lab: Lab) -> None:
    lab.close()


def recurses(*given: object) -> Any:
    return recurses(*given)


def floods(*_: object) -> Any:
    for _ in range(1_000):
        print("x" * 1_000)


def says_much(*_: object) -> Any:
    raise ValueError("x" * 10_000_000)


def leaves_in_its_text(*_: object) -> Any:
    raise Leaving


def generates(*_: object) -> Any:
    while True:
        yield 1


FUNCTIONS = [leaves, interrupts, never_ends, sleeps, catches_all, recurses, floods, says_much, leaves_in_its_text,
             generates]  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A tenth of a second for functions and one for clusters instead of ten; progress in a folder of the test's own."""
    monkeypatch.setattr(answers, "SECONDS", 0.1)
    monkeypatch.setattr(answers, "BUSY", 1.0)
    monkeypatch.setattr(answers, "PATIENCE", 1e9)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def tried(name: str, answer: Any, capsys: pytest.CaptureFixture[str], seconds: float = 60) -> str:
    """What was printed about an answer that is none."""
    began, handlers = time.monotonic(), (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM))
    check(name, answer)
    out, err = capsys.readouterr()
    assert time.monotonic() - began < seconds
    assert len(out) < 20_000 and err == ""
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == handlers
    assert threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0] == 0
    return out


SHARE = 12
"""Each exercise gets one of so many of these answers; each answer goes to exercises of all kinds."""
PLACES = {name: place for place, name in enumerate(EXERCISES)}
IMPLEMENTED = [n for n, exercise in EXERCISES.items() if exercise.kind == "implement"]


def share(name: str, some: Iterable[Any]) -> list[Any]:
    return [each for number, each in enumerate(some) if (number + PLACES[name]) % SHARE == 0]


@pytest.mark.parametrize("name", EXERCISES)
def test_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for make in share(name, VALUES.values()):
        assert tried(name, make(), capsys).startswith("Not yet.")


@pytest.mark.parametrize("name", EXERCISES)
def test_functions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for function in share(name, FUNCTIONS):
        assert "Not yet." in tried(name, function, capsys)
        assert "Not yet." in tried(name, [function], capsys)


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_gets_functions_that_raise_never_end_or_close_the_lab(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for function in (raises, never_ends, closes):
        assert "Not yet." in tried(name, function, capsys)


@pytest.mark.parametrize("name", IMPLEMENTED)
def test_what_functions_return(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for make in share(name, VALUES.values()):
        assert tried(name, lambda *_, make=make: make(), capsys).startswith("Not yet.")


def test_a_function_that_never_ends_is_stopped_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """In every kind of exercise with a function, in another thread as well; ten seconds are what it may take."""
    assert answers.SECONDS == 0.1
    for name in ("01.2", "05.2", "07.2", "10.2", "26.2"):
        if EXERCISES[name].kind != "implement":
            continue
        out = " ".join(tried(name, never_ends, capsys).split())
        assert "within 0.1 s" in out or "still busy" in out
    reported: list[str] = []
    thread = threading.Thread(target=lambda: reported.append(tried("05.2", never_ends, capsys)))
    thread.start()
    thread.join(30)
    assert "within 0.1 s" in " ".join(reported[0].split())


@pytest.mark.parametrize("name", ["05.2", "01.2", "05.4"])
def test_ctrl_c_interrupts_a_check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a function that would go on for long, and never as an answer that was wrong."""
    monkeypatch.setattr(answers, "SECONDS", 60.0)

    def pressed(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(3_600)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        check(name, pressed)
    assert time.monotonic() - began < 30
    assert name not in kept.progress()


def test_a_lab_whose_cluster_is_busy_for_ever_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The time is that of each cluster; a right answer on a slow machine needs more of them, not longer ones."""
    name = next(n for n, exercise in EXERCISES.items() if isinstance(exercise, Operate))
    with trouble(name) as lab:
        assert isinstance(lab, Lab)
    out = tried(name, "kill 2" + "\nrun_for 1000000" * 20, capsys)
    assert "still busy" in " ".join(out.split())


def test_a_long_text_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    checking.say("word " * 100_000)
    out = capsys.readouterr().out
    assert len(out) < 4_000 and "more characters)" in " ".join(out.split())
