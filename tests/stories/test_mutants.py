"""Every invariant can fail: each has a mutant and a short story that shows it, and that is sound without the defect."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from prose import Prose

from kafka_ctl import Lab, UnknownName
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.invariants import INVARIANTS
from tests import text_stories
from tests.mutants import IMPOSSIBLE, MUTANTS, mutant

STORIES = {story.title: story.text for story in text_stories.stories(Path(__file__).parent / "mutants.txt")}
"""What follows the first line."""
NO_TICK = '{"zookeeper_tick":0}'
"""Sessions end exactly at their timeout, as some of the stories count on."""


SOUND: dict[tuple[str, str], tuple[str, ...]] = dict.fromkeys(product(["one-is-all"], ["0.10", "2.0"]), ("KAFKA-3143",))
"""What a story breaks in a generation without the defect."""
POSSIBLE = [pair for pair in product(MUTANTS, GENERATIONS) if pair not in IMPOSSIBLE]


def tell(name: str, generation: str) -> set[tuple[str, str | None]]:
    """The invariants that a mutant's story breaks in a generation, and the tickets. Broker 1 is the controller."""
    brokers = 4 if name == "obeys-old-controllers" else 3
    config = {"leader.imbalance.check.interval.seconds": 20, "zookeeper.max.in.flight.requests": 1}
    config |= {"unclean.leader.election.enable": False, "auto.leader.rebalance.enable": name == "only-looks"}
    opening = f"lab brokers={brokers} generation={generation} seed=1 config='{json.dumps(config)}' costs='{NO_TICK}'\n"
    with Lab.replay(opening + STORIES[name]) as lab:
        return {(violation.invariant, violation.known) for violation in lab.violations if violation.known != "acks=1"}


@pytest.mark.parametrize(("name", "generation"), POSSIBLE)
def test_a_mutant_is_caught_in_every_generation(name: str, generation: str) -> None:
    """By its invariant, and not taken for a bug that is known."""
    with mutant(name) as seeded:
        broken = tell(name, generation)
        assert (seeded.invariant, None) in broken, broken
    sound = tell(name, generation)
    assert {known for _, known in sound} <= {*SOUND.get((name, generation), ())}, sound


def test_every_invariant_has_a_mutant() -> None:
    assert {seeded.invariant for seeded in MUTANTS.values()} == {invariant.id for invariant in INVARIANTS}
    assert STORIES.keys() == MUTANTS.keys()


def test_a_mutant_says_what_is_wrong_and_leaves_no_trace(prose: Prose) -> None:
    assert all(len(seeded.sentence) > 20 for seeded in MUTANTS.values())
    before = {name: getattr(seeded.place, seeded.function) for name, seeded in MUTANTS.items()}
    for name, seeded in MUTANTS.items():
        with pytest.raises(ConditionNotMet), mutant(name):
            raise ConditionNotMet(getattr(seeded.place, seeded.function) is not before[name])
        assert getattr(seeded.place, seeded.function) is before[name]
    with prose.refused(UnknownName), mutant("zombie"):
        pass
