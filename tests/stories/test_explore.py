"""Random walks: drawn from a seed, played, minimised; and what they find in every generation."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from labs import lab_of
from prose import Prose

from kafka_ctl.cli import commands as cli
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.explore import play as playing
from kafka_ctl.explore.play import CRASH, DOES_NOT_QUIESCE, Failure, play
from kafka_ctl.explore.search import (
    Findings,
    Minimiser,
    Task,
    plainer,
    run,
    search,
    shortest,
    story_text,
    summary,
    write_story,
)
from kafka_ctl.explore.walk import Walk, menu, walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.lab.commands import TOOLS
from kafka_ctl.lab.faults import Faults
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.paths import ROOT
from tests import text_stories
from tests.mutants import mutant as seeded_defect

STEPS = 120_000
"""How far each generation is searched here: walks notice 81 of the 82 mutants of docs/mutants.md in fewer steps.

`kafka-ctl explore` goes further.
"""


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who elects a leader forgets to raise the leader epoch."""
    monkeypatch.setattr(LeaderAndIsr, "led_by", lambda self, leader, isr: self._replace(leader=leader, isr=tuple(isr)))


def reported(text: str) -> Walk:
    """A walk from a story's text."""
    lines = list(story.parse(text))
    return Walk(lines[0], tuple(lines[1:]))


# Walks


def test_a_walk_is_a_story() -> None:
    """Its text reads back as the same walk."""
    for generation in GENERATIONS:
        for seed in range(20):
            drawn = walk(generation, seed)
            assert reported(drawn.story).story == drawn.story
            assert drawn == walk(generation, seed) != walk(generation, seed + 1)


def test_every_fault_can_be_drawn() -> None:
    drawn = {name for name, _ in menu("2.4")}
    faults = {name for name in vars(Faults) if getattr(getattr(Faults, name), "is_command", False)}
    assert drawn <= set(COMMANDS)
    assert faults - {"write_znode", "delete_znode", "add_broker", "set_broker_id", "set_meta"} <= drawn
    assert {*TOOLS, "at_once", "produce"} - {"write_znode", "delete_znode"} <= drawn


def test_the_controller_is_asked_for_leaders_where_it_answers() -> None:
    """KIP-460 came with 2.4: alone, and beside other tools. Walks of older generations draw nothing that is refused."""
    drawn = {g: str([walk(g, seed).commands for seed in range(60)]) for g in GENERATIONS}
    assert {g: "elect_leaders" in text for g, text in drawn.items()} == {"0.10": False, "2.0": False, "2.4": True}
    assert menu("0.10") == menu("2.0")
    together = [line for seed in range(60) for line in walk("2.4", seed).commands if line.name == "at_once"]
    assert any("elect_leaders" in str(line) for line in together)


def test_leaders_are_asked_for_beside_other_tools() -> None:
    """An unclean election and a reassignment of one partition at the same moment: both are answered."""
    with lab_of("a", {0: [1, 2]}, brokers=3, generation="2.4", seed=1) as lab:
        answers = lab.at_once(
            ["elect_leaders unclean '[\"a-0\"]'", "reassign '{\"a-0\":[3]}'", "elect_leaders preferred"]
        )
        assert answers == [None, None, None]
        lab.settle()
        asked = [r for r in lab.trace if r.actor == "admin" and r.action == "elect_leaders"]
        assert len(asked) == 2 and lab.partition("a", 0).leader == 3 and not lab.violations


def test_a_walk_leaves_out_what_cannot_be_done() -> None:
    outcome = play(reported("lab brokers=[1,2] generation=2.0\nstart 1\nkill 9\nkill 2\nkill 2\nsettle\n"))
    assert [str(line) for line in outcome.commands] == ["kill 2", "settle"]
    assert outcome.broken == () and outcome.records > 100


def test_an_actor_that_dies_ends_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError("oops 17")

    monkeypatch.setattr("kafka_ctl.controller.membership.on_broker_failure", wrong)
    outcome = play(reported("lab brokers=[1,2,3] generation=2.0\nkill 2\nsettle\nkill 3\n"))
    assert outcome.broken == (Failure(CRASH, "ZeroDivisionError: oops 17"),)
    assert len(outcome.commands) == 2
    assert outcome.broken[0].kind == Failure(CRASH, "ZeroDivisionError: oops 4").kind


def test_actors_that_die_in_one_moment_end_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("kafka_ctl.brokers.replica_manager.ReplicaManager.leader_and_isr", wrong)
    outcome = play(reported("lab brokers=[1,2,3] generation=2.0\ncreate_topic t partitions=3\nsettle\n"))
    assert outcome.broken == (Failure(CRASH, "ZeroDivisionError: oops"),)


def test_what_goes_on_for_ever_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that no controller can fulfil: known, in every generation."""
    monkeypatch.setattr(playing, "BUDGET", 3000)
    for generation in GENERATIONS:
        lines = "kill 2\ncreate_topic b\nelect_preferred\nsettle\n"
        outcome = play(reported(f"lab brokers=[1,2] generation={generation}\n{lines}"))
        assert [(b.name, b.known) for b in outcome.broken if b.name == DOES_NOT_QUIESCE] in (
            [],
            [(DOES_NOT_QUIESCE, playing.FAILS_IN_PREFERRED_ELECTION)],
            [(DOES_NOT_QUIESCE, playing.FAILS_IN_CHANNELS)],
        )
        assert outcome.records < 5000


def test_a_move_that_no_controller_can_resume_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.4 looks for unfinished reassignments when it takes over, also of a partition that has no state."""
    monkeypatch.setattr(playing, "BUDGET", 3000)
    lines = """disconnect zookeeper 4\ncreate_topic b partitions=1 replication_factor=1\nsettle
at_once '["reassign '"'"'{\\"b-0\\":[1,2]}'"'"'","create_topic c partitions=3 replication_factor=3"]'
delete_topic b\nkill 1\nsettle\n"""
    outcome = play(reported(f"lab brokers=[1,2,3,4] generation=2.4 seed=81400170\n{lines}"))
    assert (DOES_NOT_QUIESCE, playing.FAILS_IN_REASSIGNMENT) in [(b.name, b.known) for b in outcome.broken]
    assert None not in [b.known for b in outcome.broken]


SCRIPT = """
import hashlib
from kafka_ctl.explore import play as playing
from kafka_ctl.explore.walk import walk
from kafka_ctl.lab.lab import Lab
digest, close = hashlib.sha256(), Lab.close
def closed(lab):
    digest.update(repr((lab.trace.records, lab.story)).encode())
    close(lab)
Lab.close = closed
for generation in ("0.10", "2.0", "2.4"):
    for seed in range(3):
        playing.play(walk(generation, seed))
with Lab(brokers=2) as lab:
    for topic in "abcde":
        lab.create_topic(topic)
    lab.reassign({f"{topic}-0": [1, 2] for topic in "abcde"})
print(digest.hexdigest())
"""


@cache
def digest(python: str, seed: str) -> str:
    """Of everything that happens in some walks, and as one request moves partitions of several topics."""
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    command = [python, "-c", SCRIPT]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_walk_is_the_same_in_every_process(python: str) -> None:
    """Every record and the story, whatever the hash seed and the version of Python are."""
    assert digest(python, "1") == digest(sys.executable, "2")


# Minimising


def test_what_is_found_is_made_short(defect: None, tmp_path: Path) -> None:
    """The story that is written breaks the same invariant, and no command of it can be spared."""
    findings = search("2.4", steps=3000, jobs=1)
    assert findings.unknown
    found = next(f for f in shortest(findings) if f.broken.name.startswith("I10"))
    assert len(found.walk.commands) <= 7 < len(found.task.walk.commands)
    path = write_story(found, tmp_path / "new")
    assert path.read_text("utf-8") == story_text(found)
    other = found._replace(broken=found.broken._replace(text="another one of the same invariant and seed"))
    assert [write_story(each, path.parent).stem for each in (found, other)] == [path.stem, f"{path.stem}-2"]
    with Lab.replay(path) as lab:
        assert [v.invariant for v in lab.violations if not v.known][:1] == ["I10"]
    for place in range(len(found.walk.commands)):
        rest = (*found.walk.commands[:place], *found.walk.commands[place + 1 :])
        assert found.broken.kind not in [b.kind for b in play(found.walk._replace(commands=rest)).broken]


def test_a_walk_that_breaks_nothing_stays_as_it_is() -> None:
    drawn = walk("2.4", 3)
    minimiser = Minimiser(Failure("I99", "nothing of the kind"))
    assert minimiser.minimise(drawn) == drawn and minimiser.runs == 1


@pytest.mark.parametrize(
    ("brokers", "left"),
    [
        ("""'{"1":"a","2":"b","3":"a"}'""", ("lab brokers=[1,2,3] generation=2.0",)),
        ("3", ("lab brokers=2 generation=2.0",)),
        ("[1,2,3]", ("lab brokers=[1,2] generation=2.0",)),
    ],
)
def test_an_opening_in_any_form_is_made_plainer(brokers: str, left: tuple[str, ...]) -> None:
    """Racks go, then brokers; an opening may leave out what is usual."""
    text = (
        f"lab brokers={brokers} generation=2.0\ncreate_topic t assignment='{{\"0\":[1,2]}}'\nsettle\nkill 1\nsettle\n"
    )
    opening, *commands = story.parse(text)
    with Lab.replay(text) as lab:
        assert lab.partition("t", 0).leader == 2
    drawn = Walk(opening, tuple(commands))
    simpler = {str(each) for each in plainer(drawn.opening)}
    assert {*left} <= simpler
    broken = Failure("I99", "nothing of the kind")
    assert Minimiser(broken).minimise(drawn) == drawn


# Searching


def test_nothing_is_broken_that_is_not_declared(generation: str) -> None:
    """The same seeds on every machine; what is found here is a mistake of ours, or has to be declared."""
    findings = search(generation, seed=1, steps=STEPS)
    assert findings.steps >= STEPS and findings.walks > 10
    assert not findings.unknown, summary(findings)


def test_a_search_by_steps_does_not_depend_on_the_machine() -> None:
    one, two = (search("2.4", seed=5, steps=3000, jobs=jobs) for jobs in (1, 2))
    one.seconds = two.seconds = 0.0
    assert one == two and one.walks > 1


def test_known_violations_are_counted_apart() -> None:
    findings, task = Findings("2.0"), Task("2.0", 7)
    played = run(Task("2.0", 7, length=3))
    known, new = Failure("I9 x", "of 1", "KAFKA-1"), Failure("I2 y", "of 1")
    findings.add(played._replace(task=task, broken=(known, known, new)))
    findings.add(played._replace(task=Task("2.0", 8), broken=(new._replace(text="of 2"),)))
    assert findings.known == {("I9 x", "KAFKA-1"): 1}
    assert [(times, first.seed) for times, first, _ in findings.unknown.values()] == [(2, 7)]
    text = summary(findings)
    assert "known        1 walk   I9 x: KAFKA-1" in text and "BROKEN       2 walks  I2 y: of 1  (seed 7)" in text


def test_an_unknown_generation() -> None:
    with pytest.raises(UnknownName, match=r"unknown generation '9\.9'"):
        search("9.9", steps=1)


@pytest.mark.parametrize("wrong", [{"seed": "x"}, {"steps": 0}, {"steps": "x"}, {"seconds": -1}, {"jobs": -1}])
def test_numbers_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="cannot be"):
        search("2.4", **{"steps": 1, "jobs": 1, **wrong})


def test_a_mutant_is_found_and_made_short(prose: Prose) -> None:
    """A seeded defect of `tests/mutants`, by its name."""
    findings = search("2.4", steps=6000, jobs=1, mutant="cache-never-updated")
    found = next(f for f in shortest(findings) if f.broken.name.startswith("I18 "))
    assert len(found.walk.commands) <= 8 and "; with the mutant cache-never-updated\n" in story_text(found)
    with Lab.replay(found.walk.story) as lab:  # without the defect
        assert not [v for v in lab.violations if v.invariant == "I18" and not v.known]
    prose.refuses(UnknownName, search, "2.4", steps=1, jobs=1, mutant="nope")


@pytest.mark.parametrize(
    ("generation", "mutant", "invariant"),
    [
        *((generation, "joins-at-once", "I22") for generation in GENERATIONS),
        *((generation, "conflict-is-final", "I18") for generation in ("2.0", "2.4")),
    ],
)
def test_walks_meet_the_moments_that_matter(generation: str, mutant: str, invariant: str) -> None:
    """A record just as a follower joins an ISR; an answer lost when ISRs are written after somebody died."""
    with seeded_defect(mutant):
        broken = (b for seed in range(150) for b in play(walk(generation, seed)).broken)
        assert any(b.name.startswith(f"{invariant} ") and b.known is None for b in broken)


FOUND = {story.title: story for story in text_stories.stories(Path(__file__).parent / "walks.txt", "breaks")}
"""What walks have found, with the tickets that may tell why it breaks something."""


@pytest.mark.parametrize("name", FOUND)
def test_what_walks_have_found_stays_found(name: str) -> None:
    outcome = play(reported(FOUND[name].text))
    assert {b.known for b in outcome.broken} <= {*FOUND[name].notes.get("breaks", [])}, outcome.broken


# The command


def test_explore_says_what_it_did(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["explore", "--generation", "2.4", "--steps", "3000", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert cli.status(words) == 0
    assert "nothing else was broken" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_explore_fails_on_what_is_not_declared(
    defect: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["explore", "--generation", "2.4", "--steps", "900", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.status(words) == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out and "\nlab brokers=[1,2" in out
    assert [str(path) for path in tmp_path.iterdir() if str(path) not in out] == []


def test_explore_prints_what_it_cannot_write(defect: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    words = ["explore", "--generation", "2.4", "--steps", "900", "--jobs", "1", "--out", str(tmp_path / "file" / "out")]
    assert cli.status(words) == 2
    printed = capsys.readouterr()
    assert "\nlab brokers=[1,2" in printed.out and str(tmp_path / "file" / "out") in printed.err


def test_what_explore_finds_goes_into_a_folder_that_git_ignores() -> None:
    from kafka_ctl.cli.explore import explore

    folder = next(option.default for option in explore.params if option.name == "out")
    assert f"{folder}/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


@pytest.mark.parametrize("words", [["--generation", "3"], ["--steps", "0"], ["--seconds", "x"], ["--jobs", "0"], ["x"]])
def test_explore_refuses_a_wrong_call(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["explore", *words]) == 2
    assert "Error" in capsys.readouterr().err
