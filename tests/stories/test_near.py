"""Walks near stories: a story is in them, in part, and they break nothing that is not declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_ctl.cli import commands as cli
from kafka_ctl.errors import BadInput
from kafka_ctl.explore.search import Task, search, summary
from kafka_ctl.explore.walk import stories, walk_near
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.paths import ROOT
from tests.stories.test_explore import FOUND
from tests.stories.test_mechanisms import STORIES

FOLDERS = (str(ROOT / "tests" / "traces"), str(ROOT / "kafka_ctl" / "museum" / "stories"))
STEPS = 60_000
"""How far each generation is searched here; `kafka-ctl explore --near` goes further."""


@pytest.fixture
def found(tmp_path: Path) -> str:
    """What walks have found, a file for each story."""
    for number, found in enumerate((STORIES | FOUND).values()):
        (tmp_path / f"{number:03}.txt").write_text(found.text, "utf-8")
    return str(tmp_path)


def test_a_walk_near_a_story_has_most_of_it(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(
        "# Words.\nlab brokers=5 generation=2.0 seed=7\ncreate_topic orders assignment='{\"0\":[4,5]}'\nkill 4\n"
        "produce orders 0\ndelete_topic orders\nexpire_session 5\n"
    )
    (reported,) = stories((str(path),))
    lines = [str(line) for line in reported.commands]
    assert lines[2] == "produce a 0"  # the names of topics are those that are drawn
    for generation in GENERATIONS:
        walks = [walk_near([reported], generation, seed) for seed in range(60)]
        kept = [sum(line in str(walk.story).splitlines() for line in lines) for walk in walks]
        assert min(kept) >= 2 and sum(kept) / len(kept) > 4
        assert all(len(walk.commands) > len(lines) for walk in walks) and len({w.story for w in walks}) == 60
        assert {len(walk.opening.kwargs["brokers"]) for walk in walks} == {5, 6}
        assert {walk.opening.kwargs["generation"] for walk in walks} == {generation}
        for walk in walks[:10]:
            assert list(map(str, story.parse(walk.story))) == [*map(str, (walk.opening, *walk.commands))]


def test_all_stories_can_be_varied() -> None:
    assert len(stories(FOLDERS)) == sum(len(list(Path(folder).glob("*.txt"))) for folder in FOLDERS) > 50
    assert Task("2.4", 3, near=FOLDERS).walk == Task("2.4", 3, near=FOLDERS).walk != Task("2.4", 4, near=FOLDERS).walk


def test_nothing_is_broken_near_what_was_found(generation: str, found: str) -> None:
    """The same seeds on every machine; what is found here is a mistake of ours, or has to be declared."""
    findings = search(generation, seed=1, steps=STEPS, near=(*FOLDERS, found))
    assert findings.steps >= STEPS and findings.walks > 10
    assert not findings.unknown, summary(findings)


def test_what_is_no_story_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "words.txt").write_text("kill 1\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff")
    wrong = {
        "empty": "there is no story in",
        "words.txt": "does not begin with `lab`",
        "bytes.txt": "not UTF-8 at byte 0",
        "nowhere": "No such file",
    }
    for name, text in wrong.items():
        with pytest.raises(BadInput, match=text):
            search("2.4", steps=1, jobs=1, near=(str(tmp_path / name),))
    assert cli.status(["explore", "--near", str(tmp_path / "nowhere")]) == 2
    assert "--near" in capsys.readouterr().err
    assert cli.status(["explore", "--near", FOLDERS[0], "--exhaustive"]) == 2
