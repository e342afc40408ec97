"""The exercises: what is right, what is wrong and what is said to it, hints, progress."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from exercise_answers import RIGHT, WRONG, made
from exercise_answers.lesson_14 import forgets_the_dead
from prose import Prose

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.cli.commands import status
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.exercises import answers, implement, progress, reset
from kafka_ctl.exercises import progress_file as kept
from kafka_ctl.exercises.implement import shortest
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.museum import find
from kafka_ctl.paths import COURSE_LIST, ROOT
from kafka_ctl_course import EXERCISES, check, counterexample, hint, trouble

KINDS = {"predict", "implement", "repair", "operate"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Progress in a folder of the test's own; no sign of life of a check on a slow machine."""
    monkeypatch.setattr(answers, "PATIENCE", 1e9)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def flat(text: str) -> str:
    """What was printed, in one line."""
    return " ".join(text.split())


MALFORMED = re.compile(
    r"`return`|parameters are|(is|are) asked for|\bis no |raised|Each part is|is expected|names no|Error|cannot be "
    r"carried|o command|^'\w+'$|has \d parts|a dictionary|a list|is text"
)
"""Messages for answers that cannot be understood: of another type, or a name that does not exist."""


def test_every_exercise_has_answers_that_are_tried() -> None:
    """The solution and another right one; wrong ones, each with a reply of its own, of which four at least are mistakes
    about Kafka and not slips of the hand; three hints or two; a known kind."""
    for name, exercise in EXERCISES.items():
        replies = [text for _, text in WRONG[name]]
        assert len(RIGHT[name]) >= 2, name
        assert len([text for text in replies if not MALFORMED.search(text)]) >= 4, name
        assert len({*replies}) == len(replies), name
        assert exercise.kind in KINDS and len(exercise.hints) >= 2, name


AGAIN = {exercise.kind: name for name, exercise in EXERCISES.items()}.values()
"""An exercise of each kind."""


@pytest.mark.parametrize(("name", "answer"), [(n, a) for n, answers in RIGHT.items() for a in answers])
def test_right_answers(name: str, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """They are explained, with the ticket of a bug; of one exercise of each kind the first one again and again."""
    exercise, times = EXERCISES[name], 2 if answer is RIGHT[name][0] and name in AGAIN else 1
    given = made(answer)
    for _ in range(times):
        check(name, given)
        reported = printed(capsys)
        assert reported.startswith("Right. ") and len(reported) > 40
        assert not isinstance(exercise, Repair) or find(exercise.ticket).link in flat(reported)
    assert progress()[name] | {"code": ""} == {"solved": True, "checks": times, "hints": 0, "code": ""}


@pytest.mark.parametrize(("name", "answer", "text"), [(n, a, t) for n, rows in WRONG.items() for a, t in rows])
def test_wrong_answers(
    name: str, answer: Any, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has an answer of its own, and a story to play or a hint to ask for; the story is hardly shortened here."""
    monkeypatch.setattr(implement, "ATTEMPTS", 2)
    check(name, made(answer))
    reported = printed(capsys)
    assert reported.startswith("Not yet. ") and text in flat(reported)
    assert "counterexample(" in reported or "hint(" in reported
    assert not progress()[name]["solved"]
    if "counterexample(" in reported:
        with counterexample(name) as lab:
            assert _commands(reported)[: len(lab.commands)] == [
                str(each).removeprefix("refused ") for each in lab.commands
            ]


def _commands(reported: str) -> list[str]:
    """The commands of the story that a check printed."""
    return [line[4:] for line in reported.split("opens it as a lab:\n")[1].splitlines() if line.startswith("    ")][1:]


@pytest.mark.parametrize("name", [name for name, exercise in EXERCISES.items() if exercise.given])
def test_the_given_function_is_not_an_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the bug the bug shows, and its ticket is not named yet; with dots there is no answer."""
    exercise = EXERCISES[name]
    given: dict[str, Any] = {}
    exec(exercise.given, given)
    check(name, list(given.values())[-1])
    reported = printed(capsys)
    if not isinstance(exercise, Repair):
        assert reported.startswith("No answer yet")
        return
    assert reported.startswith("Not yet. ") and exercise.ticket not in reported
    assert not any(exercise.ticket in text for text in (exercise.title, *exercise.hints))


@pytest.mark.parametrize("name", EXERCISES)
def test_no_answer_at_all_raises(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in (None, 3, "three", [], {}, object(), lambda: 1 // 0, (1, [2]), "(1, 2)", {1: 2}, -1.5):
        check(name, answer)
        assert printed(capsys).startswith("Not yet. "), answer


@pytest.mark.parametrize(
    "answer", [..., (1, ...), [..., 2], {1: ...}, lambda *_: ..., lambda *rows: any(row == ... for row in rows)]
)
def test_dots_are_no_answer_yet(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    check("05.1", answer)
    assert printed(capsys).startswith("No answer yet") and progress() == {}


@pytest.mark.parametrize(
    ("way", "replica"), [("catch_up 2\nshutdown 1", 2), ("reassign '{\"pair-0\":[1,3]}'\nsettle\nshutdown 1", 3)]
)
def test_praise_is_about_the_way_that_was_taken(way: str, replica: int, capsys: pytest.CaptureFixture[str]) -> None:
    check("08.3", way)
    assert f"Replica {replica} was in the ISR" in flat(printed(capsys))


GENERATED = "generate_reassignment '[\"orders\"]' [2,3,4]\n"
WRITTEN = (
    """write_znode /brokers/topics/orders '{"version":1,"partitions":"""
    """{"0":[1,4],"1":[2,4],"2":[3,1],"3":[1,3],"4":[2,1],"5":[3,2]}}'\ndelete_controller"""
)
WAYS = (
    ("04.4", "reassign '{\"orders-0\":[1,2,3]}'"),
    ("06.1", (("controller", True), ("broker 1", False), ("broker-1", False))),
    ("06.3", "run_for 7\nlag 3 orders 0"),
    ("07.3", "bounce 1"),
    ("07.3", "heal\nkill 3"),
    ("07.3", "heal\nbounce 3"),
    ("07.3", "kill 1\nstart 2"),
    ("07.3", "kill 1\nelect_preferred"),
    (
        "07.3",
        'write_znode /config/topics/orders \'{"version":1,"config":{"unclean.leader.election.enable":"true"}}\'\n'
        "kill 1",
    ),
    ("08.3", "kill 1\ncatch_up 2"),
    ("08.3", "catch_up 2\nsettle\nshutdown 1\nshutdown 2"),
    ("08.3", "delete_topic pair\nshutdown 1"),
    ("08.3", "shutdown 1 grace=2"),
    ("10.4", "execute_reassignment '{\"orders-0\":[1,4]}'\nsettle\nexecute_reassignment '{\"orders-0\":[1,2]}'"),
    ("10.4", WRITTEN),
    ("10.4", GENERATED + """execute_reassignment '{"orders-0":[1,4],"orders-1":[2,4]}'"""),
    ("10.4", GENERATED + """execute_reassignment '{"orders-0":[1,4],"orders-1":[2,4],"orders-2":[4,1]}'"""),
    ("11.4", "expire_session 3\ndelete_znode /admin/reassign_partitions"),
    (
        "11.4",
        "delete_znode /admin/reassign_partitions\ndelete_controller\nsettle\n"
        "execute_reassignment '{\"orders-0\":[1,2]}'",
    ),
    ("12.4", "heal\nsettle\nreassign '{\"orders-0\":[1,2,3]}'"),
    (
        "12.4",
        """write_znode /brokers/topics/orders '{"version":2,"partitions":{"0":[1,2,3]},"adding_replicas":{},"""
        """"removing_replicas":{}}'\ndelete_controller""",
    ),
    (
        "14.4",
        "delete_znode /admin/reassign_partitions\ndelete_controller\nsettle\n"
        """execute_reassignment '{"audit-0":[1,2,4]}'""",
    ),
    ("17.1", "kill 2\nsettle\nproduce orders 0\nkill 1"),
    ("17.1", "kill 1\nkill 2\nstart 2 empty=true"),
    ("17.1", "bounce 2\nkill 1"),
    ("19.4", "set_meta 3 /d1 null\nstart 3 empty=true"),
    ("19.4", "set_meta 3 /d1 null\nstart 3\nsettle\nshutdown 3"),
    ("19.4", "set_meta 3 /d1 null\nstart 3\nsettle\nkill 3"),
    (
        "22.3",
        """write_znode /brokers/topics/netflow '{"version":1,"partitions":{"0":[2],"1":[2],"2":[2]}}'\n"""
        "delete_controller",
    ),
)


def test_commands_that_were_refused_are_not_counted(prose: Prose, capsys: pytest.CaptureFixture[str]) -> None:
    with trouble("17.1") as lab:
        for line in ("write_znode /nope/x 1", "delete_znode /nope", "bounce 2", "kill 1"):
            with suppress(BadInput):
                lab.do(line)
            if line == "delete_znode /nope":
                check("17.1", lab)
        check("17.1", lab)
    prose(printed(capsys))


def test_a_reply_is_true_of_the_way_that_was_taken(prose: Prose, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where another way has the same last command."""
    for name, way in WAYS:
        check(name, way)
        prose(flat(printed(capsys).partition("A story that shows it")[0]))


@pytest.mark.parametrize(
    ("name", "begins"), [("02.2", ": your function"), ("13.1", "Not yet. Your"), ("27.1", "Not yet. Your")]
)
def test_a_sentence_about_no_value_begins_in_upper_case(
    name: str, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(name, lambda *_: None)
    assert begins in flat(printed(capsys))


def test_an_exercise_that_there_is_not_is_no_error(
    prose: Prose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check("99.1", 1)
    hint("99.1")
    monkeypatch.setattr("kafka_ctl.exercises.checking.EXERCISES", {})
    check("01.1", 1)
    prose(printed(capsys))


def test_hints_come_one_by_one_and_are_not_the_answer(
    prose: Prose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_ctl.exercises.checking.hints_given", {})
    for _ in range(4):
        hint("05.1")
    prose(*printed(capsys).splitlines())
    assert progress()["05.1"] == {"solved": False, "checks": 0, "hints": 3}


def test_a_wait_without_an_end_may_be_the_last_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The button "Go on until quiet" gives it; what was done before it is judged."""
    with trouble("20.3") as lab:
        lab.catch_up(3)
        for _ in range(2):
            with pytest.raises(ConditionNotMet):
                lab.settle()
        check("20.3", lab)
    assert "Right. 1 command" in printed(capsys)


def test_trouble_is_a_lab_of_ones_own(prose: Prose, capsys: pytest.CaptureFixture[str]) -> None:
    """What was done in it, also by clicks, is what is judged."""
    with trouble("05.4") as lab:
        check("05.4", lab)
        prose(printed(capsys))
        lab.start(1)
        check("05.4", lab)
        prose(printed(capsys))
    with Lab() as other:
        check("05.4", other)
    prose(printed(capsys))
    for name in ("05.1", [1]):
        with prose.refused(UnknownName):
            trouble(name)  # type: ignore[arg-type]


def test_a_counterexample_has_the_answer_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    def preferred(assignment: tuple, isr: tuple, live: frozenset, unclean: bool) -> tuple | None:
        return (assignment[-1], isr) if assignment[-1] in live else None

    check("05.2", preferred)
    with counterexample("05.2") as lab:
        assert lab.plugins.names == ["elections.offline"] and lab.partition("orders", 0).leader == 3
    check("05.2", RIGHT["05.2"][0])
    with pytest.raises(BadInput, match="no wrong answer"):
        counterexample("05.2")
    for name in ("99.1", [1]):
        with pytest.raises(UnknownName, match=r"unknown exercise ('99\.1'|\[1\])"):
            counterexample(name)  # type: ignore[arg-type]


def test_an_answer_that_empties_its_arguments_spoils_no_later_answer(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        check("24.2", lambda found: [each.clear() for each in found] and 0)
        assert printed(capsys).startswith("Not yet. ")
        check("24.2", RIGHT["24.2"][0])
        assert printed(capsys).startswith("Right. ")


def test_ends_of_a_story_are_those_of_the_story_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """And two equal ones are not a difference."""

    def from_now(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
        origin = [broker for broker in replicas if broker not in adding]
        full = [*target, *(broker for broker in origin if broker not in target)]
        return full, [each for each in full if each not in replicas], [each for each in full if each not in target]

    check("12.2", from_now)
    reported = flat(printed(capsys))
    with counterexample("12.2") as lab:
        assert f"ends with orders-0: AR {list(lab.partition('orders', 0).replicas)}, adding" in reported
    check("14.2", lambda states, alive, halted: "complete" if any("Success" in s for s in states.values()) else "start")
    assert "ends with" not in printed(capsys)


def test_what_no_case_and_no_story_asks_is_found_by_walks(capsys: pytest.CaptureFixture[str]) -> None:
    from kafka_ctl.election import offline_leader

    def of_two_or_three(*case: Any) -> Any:
        return offline_leader(*case) if len(case[0]) in (2, 3) else None

    check("05.2", of_two_or_three)
    assert "a random walk: asked with assignment=" in flat(printed(capsys))


def test_the_shortest_story_keeps_what_matters() -> None:
    text = "lab brokers=3\ncreate_topic a partitions=1\nsettle\nkill 1\nsettle\nrun_for 1\nkill 2\n"
    assert shortest(text, lambda less: "kill 2" in less and "create" in less) == (
        "lab brokers=3\ncreate_topic a partitions=1\nsettle\nkill 2\n"
    )


def test_the_shortest_story_of_a_deletion_has_the_copy_that_is_left(prose: Prose) -> None:
    """Broker 1 has it before it dies."""
    prose(EXERCISES["14.2"].judge(forgets_the_dead).text)


def test_progress_is_kept_in_a_file_and_forgotten(folder: Path) -> None:
    check("05.1", (1, 2))
    check("05.1", (1, (2, 1)))
    check("05.1", (1, 2))
    stored = json.loads((folder / "progress.json").read_text())
    assert stored == {"05.1": {"checks": 3, "hints": 0, "solved": True}}
    reset()
    assert progress() == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"05.1": 3}', '{"05.1": {"checks": "x"}}'])
def test_a_file_that_cannot_be_read_is_no_error(folder: Path, text: str) -> None:
    (folder / "progress.json").write_text(text)
    assert not any(entry["solved"] for entry in progress().values())
    check("05.1", (1, 2))
    assert progress()["05.1"]["checks"] == 1


def test_where_nothing_can_be_written_exercises_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the folder should be; or nothing is to be kept at all."""
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path / "file" / "below"), ""):
        monkeypatch.setenv(kept.FOLDER, place)
        check("05.1", (1, (2, 1)))
        assert printed(capsys).startswith("Right.") and progress() == {}


@pytest.mark.parametrize(
    ("system", "variable", "ending"),
    [
        ("linux", "XDG_DATA_HOME", "kafka_ctl/progress.json"),
        ("win32", "APPDATA", "kafka_ctl/progress.json"),
        ("darwin", None, "Library/Application Support/kafka_ctl/progress.json"),
    ],
)
def test_the_place_is_the_one_of_the_system(
    system: str, variable: str | None, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kept.FOLDER)
    monkeypatch.setattr(kept, "IN_CHECKOUT", False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    assert kept.place() == tmp_path / ending


def test_progress_belongs_to_the_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the learner's copy around the folder of the notebook, else to the checkout."""
    monkeypatch.delenv(kept.FOLDER)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert kept.place() == ROOT / kept.NAME
    (tmp_path / COURSE_LIST).write_text("{}")
    assert kept.place() == tmp_path / kept.NAME


def test_the_command_tells_progress(prose: Prose, capsys: pytest.CaptureFixture[str]) -> None:
    check("05.1", (1, (2, 1)))
    hint("05.2")
    printed(capsys)
    assert status(["exercises"]) == 0
    reported = printed(capsys)
    assert f"1 of {len(EXERCISES)} exercises solved" in reported
    assert "solved (1 check)" in reported and "open (0 checks, 1 hint)" in reported and "not tried yet" in reported
    assert status(["exercises", "05"]) == 0
    assert "1 of 5 exercises solved" in printed(capsys)
    assert status(["exercises", "99"]) == 2
    prose(capsys.readouterr().err)
    assert status(["exercises", "--reset"]) == 0
    assert f"0 of {len(EXERCISES)} exercises solved" in printed(capsys)


def test_the_widget_follows_and_resets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does to notebooks is in tests/setup/test_editions.py."""
    monkeypatch.setattr("kafka_ctl.jupyter.exercises.restore_notebooks", str)
    from kafka_ctl.jupyter.exercises import ProgressWidget

    widget = ProgressWidget()
    assert f"0 of {len(EXERCISES)}" in widget.table.value
    check("05.1", (1, (2, 1)))
    assert f"1 of {len(EXERCISES)}" in widget.table.value and "✓ solved (1 check)" in widget.table.value
    widget.button.click()
    widget.sure.click()
    assert progress() == {} and f"0 of {len(EXERCISES)}" in repr(widget)
    before: list[Callable[[], None]] = list(kept.listeners)
    widget.close()
    assert len(kept.listeners) == len(before) - 1
