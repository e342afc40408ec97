"""Every recording of real Kafka, replayed by the kit in memory: the same transitions, requests, states and znodes."""

import difflib
import json
import re

import pytest

from kafka_ctl.paths import ROOT
from tests.conformance.story import STORIES
from tools.recorder import fidelity, playing

RECORDINGS = fidelity.golden_files()


@pytest.mark.parametrize(("generation", "story"), RECORDINGS, ids=lambda word: word)
def test_kit_does_what_kafka_did(generation, story):
    kafka, kit = fidelity.golden(generation, story), fidelity.replayed(generation, story)
    difference = difflib.unified_diff(kafka.splitlines(), kit.splitlines(), "Kafka", "the kit", lineterm="")
    assert kafka == kit, "\n".join(difference)


def test_recordings_are_of_their_stories():
    for generation, story in RECORDINGS:
        recorded = [line for block in fidelity.golden(generation, story).split("\n\n") for line in _commands(block)]
        assert recorded == [*STORIES[story].text(generation).splitlines(), "settle"], (generation, story)


def _commands(block):
    return [line for line in block.partition("\n----\n")[0].splitlines() if not line.startswith("#")]


def test_every_story_is_recorded():
    wanted = {(g, name) for name, story in STORIES.items() for g in story.generations}
    assert set(RECORDINGS) == wanted


def test_every_command_of_the_recorder_is_in_a_recording():
    assert [command for command in playing.COMMANDS if not fidelity.played(command)] == []


def test_a_changed_recording_is_noticed():
    """The comparison can fail: a recording in which Kafka had chosen another leader is not what the kit does."""
    text = fidelity.golden("2.0", "broker_killed")
    assert "leader=1" in text
    assert fidelity.replay(text) != text.replace("leader=1", "leader=2")


def test_the_front_page_has_the_numbers() -> None:
    """README says how faithful the kit is, with the numbers of `docs/fidelity.md`."""
    page = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
    found = re.search(r"(\d+) recordings of (\d+) stories: (\d+) exact", page)
    recordings, stories, exact = found.groups()
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"{stories} stories of the tests" in readme and f"{exact} of the {recordings} recordings" in readme


def test_who_says_exactly_says_a_number() -> None:
    """Where a page or a lesson says `exactly` or `line for line` of Kafka, the same paragraph has a number."""
    reported = {path: path.read_text("utf-8").split("\n\n") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "markdown"]
        reported[path] = [part for cell in cells for part in "".join(cell["source"]).split("\n\n")]
    claims = [
        (path, part)
        for path, parts in reported.items()
        for part in parts
        if "Kafka" in part and re.search(r"\bexactly\b|line (?:for|by) line", part, re.IGNORECASE)
    ]
    assert claims
    number = re.compile(r"\d|\b(?:one|once|two|three|five|six|ten)\b", re.IGNORECASE)
    assert [(path.name, part) for path, part in claims if not number.search(part)] == []


def test_the_table_in_the_docs_is_fresh():
    assert fidelity.page() == fidelity.PAGE.read_text(encoding="utf-8"), "run: python -m tools.recorder.fidelity"
