"""Stories with transactions: a lab answers, and its logs hold, what was recorded of real Kafka."""

from __future__ import annotations

import pytest

from tests.conformance import transaction_stories as transactions
from tests.wire_clients import closed_connections

RECORDINGS = [(generation, story) for generation in transactions.GENERATIONS for story in transactions.STORIES]


@pytest.mark.parametrize(("generation", "story"), RECORDINGS)
def test_a_lab_plays_what_was_recorded(generation: str, story: str) -> None:
    with transactions.on_the_kit(generation) as kit:
        assert transactions.played(story, kit) == transactions.recorded(generation, story)
        assert closed_connections(kit.lab) == []


def test_both_replicas_hold_markers_in_the_recordings() -> None:
    """So that equal texts say something: a commit and an abort, in each copy."""
    for generation, story in RECORDINGS:
        lines = transactions.recorded(generation, story)
        for broker in (2, 3):
            start = lines.index(f"log of orders-0 on {broker}") + 1
            log = lines[start : start + (4 if story == "leader_dies" else 7)]
            assert {line.split()[1] for line in log} >= {"commit", "abort"}, (generation, story, broker)
