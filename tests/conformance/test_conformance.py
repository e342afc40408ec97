"""Every recording of real Kafka, replayed by the kit in memory: the same transitions, requests, states and znodes."""

import difflib
import re

import pytest

from kafka_ctl.paths import ROOT
from tests.conformance import fidelity
from tests.conformance.stories import STORIES

RECORDINGS = fidelity.golden_files()


@pytest.mark.parametrize(("generation", "story"), RECORDINGS, ids=lambda word: word)
def test_kit_does_what_kafka_did(generation, story):
    if lacks := fidelity.missing(generation, story):
        pytest.skip(lacks)
    kafka, kit = fidelity.golden(generation, story), fidelity.replayed(generation, story)
    if reason := fidelity.KNOWN_DIFFERENT.get((generation, story)):
        assert kafka != kit, f"this is exact now; take it out of KNOWN_DIFFERENT: {reason}"
        pytest.xfail(reason)
    difference = difflib.unified_diff(kafka.splitlines(), kit.splitlines(), "Kafka", "the kit", lineterm="")
    assert kafka == kit, "\n".join(difference)


@pytest.mark.parametrize(("generation", "story"), RECORDINGS, ids=lambda word: word)
def test_recording_is_of_the_story(generation, story):
    recorded = [line for block in fidelity.golden(generation, story).split("\n\n") for line in _commands(block)]
    assert recorded == [*STORIES[story].text(generation).splitlines(), "settle"]


def _commands(block):
    return [line for line in block.partition("\n----\n")[0].splitlines() if not line.startswith("#")]


def test_every_story_is_recorded():
    wanted = {(g, name) for name, story in STORIES.items() for g in story.generations}
    assert set(RECORDINGS) == wanted - fidelity.NOT_RECORDED
    assert wanted >= fidelity.NOT_RECORDED


def test_known_differences_are_of_recordings():
    assert set(fidelity.KNOWN_DIFFERENT) <= set(RECORDINGS)


def test_a_changed_recording_is_noticed():
    """The comparison can fail: a recording in which Kafka had chosen another leader is not what the kit does."""
    text = fidelity.golden("2.0", "broker_killed")
    assert "leader=1" in text
    assert fidelity.replay(text) != text.replace("leader=1", "leader=2")


def test_the_front_page_has_the_numbers() -> None:
    """README says how faithful the kit is, with the numbers of `docs/fidelity.md`."""
    page = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
    found = re.search(r"(\d+) recordings of (\d+) stories: (\d+) exact", page)
    assert found is not None
    recordings, stories, exact = found.groups()
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"played {stories} stories of the tests; the kit replays {exact} of the {recordings} recordings" in readme


def test_the_table_in_the_docs_is_fresh():
    assert fidelity.page() == fidelity.PAGE.read_text(encoding="utf-8"), "run: python -m tests.conformance.fidelity"
