"""The bug museum: every exhibit shows its bug, is sound without it, and can be told, listed and found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prose import Prose
from tables import pairs

from kafka_ctl.cli import commands as cli
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import BY_NAME, DEFECTS, FIELDS
from kafka_ctl.invariants import INVARIANTS
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import EXHIBITS, Exhibit, ExhibitRun, Question, find
from kafka_ctl.museum.exhibit import STORIES, describe, verdict
from kafka_ctl.paths import ROOT
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.explain.rules import SHORT, SHOULD
from kafka_ctl.views.explain.why import why
from kafka_ctl.views.frames import film
from kafka_ctl.views.status import Differences
from tests.stories.test_side_by_side import check as check_films
from tests.stories.test_side_by_side import pictured
from tests.stories.test_why_everywhere import check
from tools.museum import PAGE

REPORTS = Path(__file__).parents[1] / "exhibits"
VISIBLE = pairs("museum.txt")
"""By exhibit: what the cluster's picture shows of its bug."""
TICKETS = {field.name: field.ticket for field in FIELDS}
REPORTED = ("KAFKA-7482", "KAFKA-7235a")
"""The reports that are recorded: one with a question, one with an invariant."""


@pytest.fixture(scope="module", params=EXHIBITS, ids=lambda exhibit: exhibit.name)
def run(request: pytest.FixtureRequest) -> Iterator[ExhibitRun]:
    """An exhibit that is shown, for the tests that only look at it."""
    with request.param.show() as run:
        yield run


def test_an_exhibit_shows_its_bug_and_is_sound_without_it(run: ExhibitRun) -> None:
    """What is broken is known under its ticket, if its releases had it; both runs have something to look at."""
    exhibit = run.exhibit
    assert run.is_caught
    assert run.is_sound, run.fixed.violations
    assert {v.known for v in run.violations} <= {exhibit.ticket, None, *map(TICKETS.get, exhibit.fix)}
    assert run.decisive(run.broken) and run.decisive(run.fixed)
    assert 0 < run.start(run.broken) < len(run.broken.trace)
    assert run.broken.generation == exhibit.generation
    assert run.fixed.generation == exhibit.fixed != exhibit.generation
    assert all(exhibit.generation.has(field) is not value for field, value in exhibit.fix.items())
    assert verdict(run).startswith(f"{exhibit.name:<12}  shows, and is sound")


def seen(lab: Lab, pattern: str) -> list[int]:
    """The steps of the cluster's film in whose pictures (a line of `Film.described`) the pattern is."""
    made, wanted = film(lab.trace), re.compile(pattern, re.MULTILINE)
    return [n for n in range(len(made)) if wanted.search(made.described(n))]


def differs(left: list[int], right: list[int], ends: tuple[int, int]) -> bool:
    """Whether pictures show it in the left film only: in none of the right, or else at the end of the left alone."""
    return bool(left) and (not right or (left[-1] == ends[0] and right[-1] < ends[1]))


def test_a_bug_is_visible_in_its_picture(run: ExhibitRun) -> None:
    """What the table says of the picture is there with the bug, after the cluster was set up, and not without it."""
    pattern = VISIBLE[run.exhibit.name]
    films = film(run.broken.trace), film(run.fixed.trace)
    ends = len(films[0]) - 1, len(films[1]) - 1
    broken, fixed = seen(run.broken, pattern), seen(run.fixed, pattern)
    assert differs(broken, fixed, ends), (broken, fixed, ends)
    assert not differs(fixed, broken, (ends[1], ends[0]))
    assert films[0].frames[broken[-1]].seqs[-1] >= run.start(run.broken)
    assert not re.search(pattern, films[0].described(0), re.MULTILINE)


def test_every_why_of_an_exhibit_says_something(run: ExhibitRun) -> None:
    """A broken invariant has its chain, not longer than can be read, and what should have happened."""
    assert check(run.broken) > 20
    for broken in run.violations:
        answer = why(run.broken.trace, broken.seq, run.broken.generation)
        assert 1 <= len(answer.causes) <= SHORT, answer
        assert dict(answer.otherwise)["should have happened"] == SHOULD[broken.invariant]
        assert answer.causes[-1] != answer.title


def test_both_runs_stand_side_by_side(run: ExhibitRun) -> None:
    """The bug is seen after they have parted."""
    shown = run.side_by_side()
    check_films(shown, (run.broken, run.fixed), (run.start(run.broken), run.start(run.fixed)))
    assert shown.parted is not None and 0 < shown.parted < len(shown)
    frame = shown.films[0].frames[shown.parted]
    assert frame.caption.startswith("First difference. ")
    one_side = [bool(film.frames[shown.parted].seqs) for film in shown.films] != [True, True]
    one, other = pictured(shown, shown.parted)
    assert one_side or one != other
    assert [film.title for film in shown.films] == ["With the bug", "With the fix"]


def test_all_agree_in_the_end_of_a_sound_run(run: ExhibitRun) -> None:
    """While it runs they differ, again and again; a fold that is given the records in pieces says the same."""
    records = run.fixed.trace.records
    model, found, differed = ClusterModel(), Differences(), 0
    for place in range(0, len(records), 7):
        model.apply_all(records[place : place + 7])
        logged = found.update(model).text()
        assert logged == Differences().update(model).text()
        differed += bool(logged)
    assert differed > 5
    assert found.text() == ""


def test_a_picture_that_shows_no_bug_is_noticed() -> None:
    """The same run twice shows nothing; nor does what both runs have, or neither."""
    exhibit = find("KAFKA-7235a")
    with exhibit.show() as run:
        broken, end = seen(run.broken, VISIBLE[exhibit.name]), len(film(run.broken.trace)) - 1
        assert broken and not differs(broken, broken, (end, end))
        ends = end, len(film(run.fixed.trace)) - 1
        for pattern in ("^crown ", "^role:orders-0@9 "):
            assert not differs(seen(run.broken, pattern), seen(run.fixed, pattern), ends)


def test_the_collection() -> None:
    """Bugs that must be there, a story for each and none without an exhibit, and no defect that is never shown."""
    wanted = "532 1382 2300 3143 3670 4443 5310 6082 7235a 7235b 7482 8286 8294 9212".split()
    names = [exhibit.name for exhibit in EXHIBITS]
    assert {f"KAFKA-{number}" for number in wanted} <= set(names)
    assert len(set(names)) == len(names)
    assert {path.stem for path in STORIES.iterdir()} == set(names) == set(VISIBLE)
    unseen = {"names_no_controller_state"}  # the value of a gauge that 0.10.1.0 removed
    assert {f.name for f in DEFECTS} - unseen <= {field for exhibit in EXHIBITS for field in exhibit.fix}
    for exhibit in EXHIBITS:
        named = {TICKETS[field] for field in exhibit.fix}
        assert exhibit.ticket in named or all(ticket.startswith("KIP-") for ticket in named)
        assert (ROOT / "kafka_ctl" / exhibit.source).is_file()
        if not isinstance(exhibit.caught_by, Question):
            assert exhibit.caught_by in {invariant.id for invariant in INVARIANTS}


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_an_exhibit_has_its_words(exhibit: Exhibit) -> None:
    """A title for the list, one sentence, a story, a task; the module it names asks for its field."""
    assert 8 <= len(exhibit.title) <= 60 and not exhibit.title.endswith(".")
    assert re.fullmatch(r"[A-Z][^.]*\.", exhibit.sentence)
    assert len(exhibit.description) > 150 and exhibit.description.endswith((".", ")"))
    assert re.fullmatch(r"Now you: [a-z].*(\?|try\.)", exhibit.task)
    assert exhibit.commands.startswith("lab ") and "#" not in exhibit.commands
    source = (ROOT / "kafka_ctl" / exhibit.source).read_text("utf-8")
    assert all(re.search(rf"\.{BY_NAME[field].bug or field}\b", source) for field in exhibit.fix)


@pytest.mark.parametrize("name", REPORTED)
def test_an_exhibit_is_reported_as_it_was_recorded(name: str, pytestconfig: pytest.Config) -> None:
    """`pytest --rewrite` records it anew."""
    with find(name).show() as run:
        reported = describe(run) + "\n"
    path = REPORTS / f"{name}.txt"
    if pytestconfig.getoption("--rewrite"):
        path.write_text(reported, "utf-8")
    assert reported.splitlines() == path.read_text("utf-8").splitlines()


def test_a_story_can_be_run_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a story like any other, and gives the same records."""
    exhibit = find("KAFKA-3143")
    assert cli.status(["run", str(exhibit.path)]) == 0
    with exhibit.show() as run:
        assert capsys.readouterr().out == run.broken.trace.text() + "\n"


def test_an_exhibit_is_found_by_number_name_or_ticket(prose: Prose) -> None:
    assert find("1") is find(1) is EXHIBITS[0]
    assert find(" kafka-7235A ") is find("7235a") is next(e for e in EXHIBITS if e.name == "KAFKA-7235a")
    assert find("7482").link.endswith("/KAFKA-7482")
    assert find("KAFKA-7235b").ticket == "KAFKA-7235"
    assert find("linkedin-14") is find("linkedin/kafka#14") is find(str(len(EXHIBITS)))
    assert (find("linkedin-14").ticket, find("linkedin-14").link.partition("linkedin/")[2]) == (
        "linkedin/kafka#14",
        "kafka/pull/14",
    )
    prose.refuses(BadInput, find, "7235")
    with prose.refused(BadInput):
        find([])  # type: ignore[arg-type]
    for wrong in ("0", "999", "KAFKA-1", "mermaid", ""):
        prose.refuses(UnknownName, find, wrong)


def test_what_a_question_asks_is_answered_by_both_runs() -> None:
    with find("KAFKA-7482").show() as run:
        assert run.answers == ("15023.2 ms", "0.0 ms")
        assert run.violations == ()
    with find("KAFKA-3143").show() as run:
        assert run.answers is None
        assert [v.invariant for v in run.violations] == ["I21"]
    assert run.broken.closed and run.fixed.closed


def test_an_exhibit_that_shows_nothing_says_so() -> None:
    """Nothing is caught where the bug is not there, and what is broken in spite of the fix is told."""
    exhibit = find("KAFKA-3143")
    harmless = replace(exhibit, caught_by="I7")
    with harmless.show() as run:
        assert not run.is_caught
        assert "Nothing: invariant I7 holds." in describe(run)
        assert "DOES NOT SHOW, and is sound" in verdict(run)
    unhealed = replace(exhibit, fix={"caches_bumped_epoch": True})
    with unhealed.show() as run:
        assert not run.is_sound
        assert "I21 no-dead-leader" in describe(run).split("The same story")[1]
        assert "NOT SOUND" in verdict(run)


def test_a_showing_that_fails_leaves_no_lab_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(Lab, "fork", lambda self, **_: 1 / 0)
    monkeypatch.setattr(Lab, "close", lambda self: closed.append(self))
    with pytest.raises(ZeroDivisionError):
        ExhibitRun(EXHIBITS[0])
    assert len(closed) == 1


# The command


def reported(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = cli.status(["museum", *words])
    return status, *capsys.readouterr()


def test_the_command_lists_and_tells(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = reported(capsys)
    assert status == 0
    assert re.findall(r"^ +(\d+)  (\S+) ", out, re.M) == [(str(n), e.name) for n, e in enumerate(EXHIBITS, 1)]
    status, out, err = reported(capsys, "7482")
    assert (status, err) == (0, "")
    assert out == (REPORTS / "KAFKA-7482.txt").read_text("utf-8")
    status, out, err = reported(capsys, "KAFKA-1")
    assert (status, out) == (2, "") and err.startswith("kafka-ctl: unknown exhibit 'KAFKA-1'; ")


def test_a_story_can_be_taken_home(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(capsys, "3143", "--story") == (0, find("3143").story, "")
    for words in (["--story"], ["3143", "--story", "--check"]):
        status, out, err = reported(capsys, *words)
        assert (status, out) == (2, "") and "--story goes with the NAME" in err


def test_the_check_ends_with_1_when_an_exhibit_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = (find("KAFKA-7482"), find("KAFKA-3143"))
    monkeypatch.setattr("kafka_ctl.museum.EXHIBITS", some)
    status, out, _ = reported(capsys, "--check")
    assert status == 0 and out.count("shows, and is sound") == 2
    monkeypatch.setattr("kafka_ctl.museum.EXHIBITS", (some[0], replace(some[1], caught_by="I7")))
    status, out, _ = reported(capsys, "--check")
    assert status == 1 and "KAFKA-3143    DOES NOT SHOW" in out


# The page


def test_the_page_is_fresh() -> None:
    assert PAGE.check(ROOT / "docs") == []
