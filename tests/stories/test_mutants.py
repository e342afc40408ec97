"""Every invariant can fail: each has a mutant and a short story that shows it, and that is sound without the defect."""

from __future__ import annotations

import json
from itertools import product

import pytest
from prose import Prose

from kafka_ctl import Lab, UnknownName
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.invariants import INVARIANTS
from tests.mutants import IMPOSSIBLE, MUTANTS, mutant

THREE = """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
TWO = """create_topic orders assignment='{"0":[1,2]}'\nsettle\n"""
CUT_OFF = "disconnect 1 2\nproduce orders 0 acks={}\nkill 1\nrun_for 8\nheal\nsettle\n"
"""Broker 1 leads, cannot reach its follower, takes a record, and dies; broker 2 is elected."""

ABOUT_TO_JOIN = "run_for 0.2017\nproduce orders 0 wait=false\nsettle\n"
"""The follower has fetched all there is, and its leader has not heard that yet, when one more record comes."""

STORIES = {
    "majority-is-enough": THREE + "lag 3 orders 0\nproduce orders 0\n",
    "leader-out-of-sync": THREE + "lag 2 orders 0\nsettle\nkill 1\nsettle\n",
    "sent-is-received": THREE + "produce orders 0\n",
    "one-is-all": TWO + CUT_OFF.format("all"),
    "epochs-unchecked": TWO + CUT_OFF.format(1) + "produce orders 0\nstart 1\nsettle\nproduce orders 0\nsettle\n",
    "reads-uncommitted": TWO + CUT_OFF.format(1) + "produce orders 0\n",
    "epoch-inherited": THREE + "kill 1\nsettle\n",
    "fence-dropped": "create_topic a partitions=12 replication_factor=3\nrun_for 0.0035\ndelete_controller\nsettle\n",
    "obeys-old-controllers": THREE + "delay 1 3 20\nkill 4\nrun_for 9\npause 1 10\nsettle\n",
    "leader-raises-epoch": THREE + "lag 3 orders 0\nsettle\n",
    "epoch-of-one-bit": THREE + "kill 1\nsettle\nkill 2\nsettle\n",
    "empty-isr": TWO + "kill 1\nsettle\nkill 2\nsettle\n",
    "move-forgotten": THREE.replace("1,2,3", "2,3,1") + "kill 2\nsettle\nstart 2\nsettle\n",
    "followers-untold": THREE,
    "everybody-is-in-sync": THREE + "lag 2 orders 0\nsettle\nkill 3\nsettle\ncatch_up 2\nsettle\n",
    "stop-is-delete": THREE + "shutdown 3\n",
    "newest-first": THREE + "create_topic other\nkill 3\nrun_for 5.999\nadd_partitions other 3\nsettle\n",
    "cache-never-updated": THREE + "kill 1\nsettle\n",
    "deaf-to-requests": THREE + "reassign '{\"orders-0\":[2,3]}' through=zookeeper\nsettle\n",
    "only-looks": THREE + "kill 1\nsettle\nstart 1\nsettle\nrun_for 100\n",
    "joins-at-once": TWO + "lag 2 orders 0\nsettle\nproduce orders 0\ncatch_up 2\n" + ABOUT_TO_JOIN,
    "conflict-is-final": THREE + "kill 3\nlose 1 zookeeper applied=true\nsettle\n",
    "stays-new": THREE,
    "counts-cached-isr": THREE + "lag 3 orders 0\nsettle\ncatch_up 3\nrun_for 0.5\nlag 3 orders 0\nproduce orders 0\n",
    "leader-begins-empty": TWO.replace("1,2", "2") + "produce orders 0\nkill 2\nsettle\nstart 2\nsettle\n",
    "expansion-forgotten": THREE + "lag 3 orders 0\nsettle\ncatch_up 3\nsettle\n",
    "asks-another-replica": THREE + "produce orders 0 wait=false\nrun_for 1\n",
    "connection-loss-unnoticed": TWO + "lag 2 orders 0\nproduce orders 0 wait=false\nrun_for 0.1\nkill 1\nsettle\n",
    "answer-forgotten": THREE + "produce orders 0\nsettle\nproduce orders 0 acks=1\nsettle\n",
    "dead-leader-stays": TWO + "kill 1\nsettle\nkill 2\nsettle\n",
}
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
