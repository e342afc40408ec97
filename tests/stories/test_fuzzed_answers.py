"""Answers beside the ones that a lesson thinks of: the faults that a review found, and mutations of every right answer.

No answer ends in an error of ours, hangs, floods or is told what is not so, and no wrong one is accepted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from exercise_answers import RIGHT, made
from tables import tabled

from kafka_ctl.exercises import EXERCISES, answers, check, implement
from kafka_ctl.exercises import progress_file as kept
from kafka_ctl.exercises.exercise import returned_none
from kafka_ctl.exercises.operate import Operate

UNJUDGED = re.compile(r"cannot be judged|it ended in|Traceback|That is not what happens")
"""What no answer may lead to."""
VALUES = {name: [a for a in right if not callable(a)] for name, right in RIGHT.items()}
FUNCTIONS = {
    name: next(a for a in right if callable(a))
    for name, right in RIGHT.items()
    if EXERCISES[name].kind != "operate" and any(map(callable, right))
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Time enough on a busy machine; stories are hardly shortened; progress in a folder of the test's own."""
    monkeypatch.setattr(implement, "ATTEMPTS", 2)
    monkeypatch.setattr(answers, "SECONDS", 30.0)
    monkeypatch.setattr(answers, "BUSY", 20.0)
    monkeypatch.setattr(answers, "PATIENCE", 1e9)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))


def printed(name: str, answer: object, capsys: pytest.CaptureFixture[str]) -> str:
    """What a check prints, in one line; short, and without an error of ours."""
    check(name, answer)
    out, err = capsys.readouterr()
    assert err == "" and len(out) < 8_000, answer
    flat = " ".join(out.split())
    assert flat.startswith(("Right. ", "Not yet. ")) and not UNJUDGED.search(flat), (answer, flat[:400])
    return flat


@tabled
def test_faults_of_checks(
    number: int, name: str, answer: str, verdict: str, has: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answers with which reviews found faults, as source text: the verdict, what is said, and what is not."""
    out = printed(name, eval(answer), capsys)
    assert out.startswith(verdict) and has in out and (not lacks or lacks not in out), out[:600]


def without_return(number: int) -> None:
    number + 1


def with_return(number: int) -> int | None:
    if number > 0:
        return number
    return None


@pytest.mark.parametrize(
    ("function", "asks"),
    [(without_return, True), (with_return, False), (lambda number: None, False), (print, False)],
)
def test_a_return_that_is_there_is_not_asked_for(function: Callable[..., object], asks: bool) -> None:
    assert ("Is there a `return`?" in returned_none(function)) is asks


def meaning(value: Any) -> Any:
    """A value without what does not count: the kind of a sequence, capital letters, spaces at the ends."""
    if isinstance(value, str):
        return " ".join(value.replace("|", " | ").split()).casefold()
    if isinstance(value, list | tuple):
        return tuple(map(meaning, value))
    if isinstance(value, dict):
        return {meaning(key): meaning(each) for key, each in value.items()}
    return (type(value) is bool, value)


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return getattr(value, "_make", type(value))(texts(part, change) for part in value)
    if isinstance(value, dict):
        return {texts(key, change): texts(each, change) for key, each in value.items()}
    return value


def mutations(value: Any) -> Iterator[Any]:
    """Values of other types, in other letters, with other parts, longer and shorter."""
    for change in (str.upper, str.title, lambda text: f" {text} ", lambda text: text[:-1]):
        yield texts(value, change)
    yield from (str(value), [value], (value,), {"answer": value}, None, True, -1, 2.5, "", b"\0")
    if isinstance(value, list | tuple):
        yield from (
            list(value),
            tuple(value),
            value[:-1],
            [*value, value[-1]],
            list(reversed(value)),
            dict(enumerate(value)),
            set(map(str, value)),
            frozenset(map(str, value)),
        )
        for place in range(len(value)):
            for other in (None, True, "x", 1.5, [], {}, "12", 10**30, str(value[place])):
                yield [*value[:place], other, *value[place + 1 :]]
    if isinstance(value, dict):
        yield from (list(value.items()), {str(key): each for key, each in value.items()}, dict(list(value.items())[1:]))
        for key in value:
            for other in (None, True, "x", 1.5, [], {}, "12"):
                yield value | {key: other}


@pytest.mark.parametrize("name", [name for name, values in VALUES.items() if values])
def test_mutated_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A prediction is accepted only if it means a right answer."""
    exercise = EXERCISES[name]
    values = [*map(made, VALUES[name])]
    right = [*map(meaning, values)]
    for mutated in mutations(values[0]):
        out = printed(name, mutated, capsys)
        if not out.startswith("Right. "):
            continue
        if exercise.kind == "predict" and name not in ANY_ORDER:
            assert meaning(mutated) in right, mutated


ANY_ORDER = {"11.1", "24.1"}
"""Predictions with more right answers than those of the tests: an ISR in any order, a shelf that may be argued for."""


class Returning:
    """The function with each of its results changed; these results are kept."""

    def __init__(self, function: Callable[..., Any], change: Callable[[Any, int], Any]) -> None:
        self.function, self.change = function, change
        self.results: list[Any] = []

    def __call__(self, *given: Any) -> Any:
        self.results.append(deepcopy(self.function(*given)))
        return self.change(self.results[-1], len(self.results))


def differs(change: Callable[[Any, int], Any], results: list[Any]) -> bool:
    """True if the change leaves one of these results another value, or one of another type."""
    changed = ((change(result, call), result) for call, result in enumerate(results, 1))
    return any((type(new), new) != (type(old), old) for new, old in changed)


def raising(error: type[Exception]) -> Callable[[Any, int], Any]:
    def change(result: Any, call: int) -> Any:
        raise error("orders")

    return change


CHANGES: dict[str, Callable[[Any, int], Any]] = {
    "a list": lambda result, call: list(result) if isinstance(result, tuple | set | frozenset) else result,
    "a tuple": lambda result, call: tuple(result) if isinstance(result, list | set | frozenset) else result,
    "None now and then": lambda result, call: None if call % 2 else result,
    "a set": lambda result, call: set(map(str, result)) if isinstance(result, list | tuple) else result,
    "text": lambda result, call: str(result),
    "capitals": lambda result, call: texts(result, str.swapcase),
    "0 for False": lambda result, call: int(result) if isinstance(result, bool) else result,
    "in a list": lambda result, call: [result],
    "a number": lambda result, call: 10**20,
    "True": lambda result, call: "yes" if result is True else True,
    "a dictionary": lambda result, call: {"result": result},
    "with None inside": lambda result, call: [None, None, None, None],
    "pairs of text": lambda result, call: [("a", "b"), ("c", "d")],
}
ERRORS = (KeyError, StopIteration, AssertionError, RecursionError, OSError)
"""What a function raises; of each exercise one of them, in turn."""
ONLY_THE_KIND = ("a list", "a tuple")
"""Changes of the kind of container, which no rule of Kafka asks about."""


@pytest.mark.parametrize(("turn", "name"), list(enumerate(FUNCTIONS)))
def test_functions_that_raise(turn: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    function = Returning(FUNCTIONS[name], raising(ERRORS[turn % len(ERRORS)]))
    assert printed(name, lambda *given: function(*given), capsys).startswith("Not yet. ")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_mutated_results(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two random walks are enough for a change that every call makes; one that changes no result is not tried again."""
    monkeypatch.setattr(implement, "WALKS", 2)
    unchanged: list[Any] | None = None
    for change, changed in CHANGES.items():
        if unchanged is not None and not differs(changed, unchanged):
            continue
        function = Returning(FUNCTIONS[name], changed)
        out = printed(name, lambda *given, function=function: function(*given), capsys)
        is_changed = differs(changed, function.results)
        unchanged = unchanged if is_changed else function.results
        if out.startswith("Right. "):
            assert change in ONLY_THE_KIND or not is_changed or name in TRUTHY.get(change, ()), (change, out)
        elif change in ONLY_THE_KIND:
            assert "cannot go on" not in out, change


TRUTHY: dict[str, tuple[str, ...]] = {"text": ("14.2",), "a set": ("14.5",), "capitals": ("27.1", "27.2")}
"""Changes with which a function means the same."""

GARBAGE = (
    "abc",
    "",
    "{}",
    "[1]",
    '{"version":1}',
    '{"version":1,"partitions":3,"brokerid":"x","leader":null}',
    "\\x00",
)
MOST = 14
"""Znodes of a cluster in trouble that are changed by hand, evenly spread over all of them."""
TIRED = 0.3
"""Seconds of work after which a cluster that never comes to rest is given up here."""


def disturbed(exercise: Operate, turn: int) -> Iterator[str]:
    """Commands that nobody should give: topics that are deleted, znodes that are deleted or hold garbage, all dead.

    Each znode is deleted or holds garbage, in turn; the garbage in the two znodes of requests is another in each turn.
    """
    with exercise.open() as lab:
        topics = sorted({p.topic for p in lab.partitions()})
        paths = sorted(path for path in lab.znodes() if not path.startswith("/zookeeper"))
        brokers = sorted(lab.brokers)
    yield from (f"delete_topic {topic}" for topic in topics)
    yield "\n".join(f"kill {broker}" for broker in brokers)
    yield "\n".join(f"start {broker}" for broker in brokers)
    for number, path in enumerate(paths[:: len(paths) // MOST + 1], turn):
        change = f"write_znode {path} {GARBAGE[number % len(GARBAGE)]!r}" if number % 2 else f"delete_znode {path}"
        yield f"{change}\ndelete_controller"
    for number in (turn, turn + 3):
        yield f"write_znode /controller_epoch {GARBAGE[number % len(GARBAGE)]!r}\nbounce {brokers[0]}"
        yield f"write_znode /admin/reassign_partitions {GARBAGE[number % len(GARBAGE)]!r}"


OPERATED = {name: each for name, each in EXERCISES.items() if isinstance(each, Operate)}


@pytest.mark.parametrize(("turn", "name"), list(enumerate(OPERATED)))
def test_clusters_that_were_disturbed(
    turn: int, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "BUSY", TIRED)
    for commands in disturbed(OPERATED[name], turn):
        printed(name, commands, capsys)


def destroyed(exercise: Operate) -> Iterator[str]:
    """Ways to have no trouble any more: nobody is left, every topic is deleted, ZooKeeper is empty."""
    with exercise.open() as lab:
        topics = sorted({p.topic for p in lab.partitions()})
        paths = sorted((path for path in lab.znodes() if not path.startswith("/zookeeper")), reverse=True)
        brokers = sorted(lab.brokers)
    yield "\n".join(f"kill {broker}" for broker in brokers)
    yield "\n".join(
        [*(f"delete_topic {topic}" for topic in topics), "settle", *(f"bounce {broker}" for broker in brokers)]
    )
    yield "\n".join(f"delete_znode {path}" for path in paths if path != "/") + "\ndelete_controller"


@pytest.mark.parametrize("name", OPERATED)
def test_destruction_is_no_repair(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "BUSY", TIRED)
    for commands in destroyed(OPERATED[name]):
        if "delete_znode" not in commands or name not in TO_GO:
            assert printed(name, commands, capsys).startswith("Not yet. "), commands


TO_GO = ("14.3",)
"""Exercises whose one topic is to go: who removes all znodes by hand is told at which risk."""


def test_a_slow_check_shows_that_it_lives(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints what it is about, each time that so many seconds have passed; a quick one prints nothing."""
    monkeypatch.setattr(answers, "PATIENCE", -1.0)
    check("09.2", RIGHT["09.2"][0])
    out = capsys.readouterr().out
    assert "(still running: the story" in out and "(still running: random walk 10 of 10)" in out
    monkeypatch.setattr(answers, "PATIENCE", 1e9)
    assert "still running" not in printed("09.2", RIGHT["09.2"][0], capsys)


def test_every_exercise_is_fuzzed() -> None:
    assert {*(name for name, values in VALUES.items() if values), *FUNCTIONS, *OPERATED} == EXERCISES.keys()


def test_answers_in_the_table_are_source_text() -> None:
    assert isinstance(ast.parse("lambda lab: []", mode="eval").body, ast.Lambda)
