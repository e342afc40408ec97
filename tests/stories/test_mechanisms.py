"""Mechanisms: each is seen in a story, explains what it has happened to, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from labs import play as commands
from labs import until_quiet

from kafka_ctl.explore import play as playing
from kafka_ctl.explore.play import DOES_NOT_QUIESCE, play
from kafka_ctl.explore.walk import busy
from kafka_ctl.invariants import INVARIANTS, MECHANISMS
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import EXHIBITS
from tests import text_stories
from tests.mutants import mutant
from tests.stories.test_explore import reported

CREATED = "PartitionStateMachine.initializeLeaderAndIsrForPartitions"
STORIES = {story.title: story for story in text_stories.stories(Path(__file__).parent / "mechanisms.txt", "breaks")}
"""What walks have found, and what explains it: the invariant that is broken, and the mechanism's ticket."""


def breaks(name: str) -> set[tuple[str, ...]]:
    """The invariants that a story breaks, each with the ticket of what explains it."""
    return {tuple(note.split(" ", 1)) for note in STORIES[name].notes.get("breaks", [])}


@pytest.mark.parametrize("name", STORIES)
def test_what_walks_have_found_is_explained(name: str) -> None:
    outcome = play(reported(STORIES[name].text))
    broken = {(b.name.split()[0], b.known) for b in outcome.broken}
    assert breaks(name) <= broken
    assert None not in {known for _, known in broken}, outcome.broken


def test_the_damage_of_a_deposed_controller_has_its_ticket() -> None:
    """It goes on creating the states of new partitions; its successor knows nothing of them."""
    with Lab(brokers=3, seed=1, config={"zookeeper.max.in.flight.requests": 1}) as lab:
        lab.create_topic("orders", partitions=48, replication_factor=3)
        lab.run_for(0.0035)
        until_quiet(lab.delete_controller)
        assert {v.known for v in lab.violations} == {"KAFKA-6082"}
        assert {v.invariant for v in lab.violations} == {"I8", "I14", "I18"}


def test_the_answer_to_a_creation_is_lost(generation: str) -> None:
    """The controller asks again, takes the znode for another's, and its partition stays New."""
    seen = set()
    for steps in range(12):
        with Lab(brokers=3, generation=generation, seed=1) as lab:
            lab.create_topic("orders", partitions=1, replication_factor=2)
            if steps:
                lab.step(steps)
            until_quiet(lab.lose, lab.controller.id, "zookeeper", applied=True)
            seen |= {(v.invariant, v.known) for v in lab.violations}
    assert seen == {("I14", CREATED), ("I18", CREATED)}


def test_what_follows_where_the_answer_to_a_creation_is_lost(generation: str) -> None:
    """Whatever happens to the partition then is explained by it."""
    occasions: dict[str, Callable[[Lab], object]] = {
        "moves": lambda lab: lab.reassign({("orders", 0): [1, 2]}),
        "dies": lambda lab: lab.kill(2),
        "leaves": lambda lab: lab.shutdown(2),
        "goes": lambda lab: lab.delete_topic("orders"),
        "grows": lambda lab: lab.add_partitions("orders", 3),
    }
    seen: dict[str, set[tuple[str, str | None]]] = {}
    for name, occasion in occasions.items():
        with Lab(brokers=3, generation=generation, seed=1, config={"delete.topic.enable": True}) as lab:
            lab.create_topic("orders", assignment={0: [2, 3]})
            begun = {"kind": "zk", "action": "create", "path": "/brokers/topics/orders/partitions/0"}
            lab.run_until(lambda now, begun=begun: bool(now.trace.slice(**begun)))
            until_quiet(lab.lose, lab.controller.id, "zookeeper", applied=True)
            occasion(lab)
            lab.settle()
            seen[name] = {(v.invariant, v.known) for v in lab.violations} - {("I14", CREATED), ("I18", CREATED)}
    moves = {("I19", CREATED)} if generation != "2.4" else set()
    goes = {("I19", CREATED)} if generation == "0.10" else set()
    dies = {("I19", CREATED), ("I21", CREATED)}
    assert seen == {"moves": moves, "dies": dies, "leaves": dies, "goes": goes, "grows": set()}


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_follower_slower_than_its_limit_is_no_livelock(generation: str) -> None:
    """It leaves the ISR and comes back as long as it is slow, and comes to rest when that is over."""
    lines = "create_topic b replication_factor=2 partitions=1\nsettle\nproduce b 0\nslow 2 14.4\nsettle limit=300\n"
    slow = play(reported(f"lab brokers=[1,2] generation={generation} seed=1\n{lines}"))
    assert slow.broken == ()
    lines = lines.replace("settle limit=300", "run_for 120")
    with Lab.replay(f"lab brokers=[1,2] generation={generation} seed=1\n{lines}") as lab:
        assert len([r for r in lab.trace if r.action == "shrink-isr"]) > 2
        until_quiet(lab.heal)


def test_what_goes_on_beside_a_slow_follower_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else who leaves and comes back for ever is not excused by it."""
    monkeypatch.setattr("kafka_ctl.explore.play.replicas_of_change", lambda record: {1, 2})
    lines = "create_topic b replication_factor=2 partitions=1\nsettle\nproduce b 0\nslow 2 14.4\nsettle limit=300\n"
    outcome = play(reported(f"lab brokers=[1,2] generation=2.4 seed=1\n{lines}"))
    assert [b.name for b in outcome.broken] == [DOES_NOT_QUIESCE]


@pytest.mark.parametrize(
    ("budget", "periods", "least"), [(playing.BUDGET, 10, 20_000), (2100, 3, 6800), (3150, 3, 6800), (6300, 3, 6800)]
)
def test_checks_that_are_made_up_for_are_no_livelock(
    budget: int, periods: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.10 looks at the balance at fixed times: after an hour without ZooKeeper, some thousand times at once.

    With a smaller budget, the last look comes just before so many records are there.
    """
    monkeypatch.setattr(playing, "BUDGET", budget)
    lines = (
        "create_topic a partitions=3 replication_factor=3\nsettle\nrun_for 10\nkill 2\nsettle\nstart 2\nrun_for 0.1\n"
        "stop_zookeeper\n" + "settle limit=300\n" * periods + "start_zookeeper\nsettle limit=300\nrun_for 10\nsettle\n"
    )
    config = """config='{"leader.imbalance.check.interval.seconds":1}'"""
    outcome = play(reported(f"lab brokers=[1,2,3] generation=0.10 seed=0 {config}\n{lines}"))
    assert outcome.records > least and outcome.broken == ()


def test_a_slow_follower_may_be_the_preferred_leader() -> None:
    """It is elected when it comes back into an ISR, and leaves and enters the other ones as before."""
    lines = (
        "create_topic c partitions=2 replication_factor=2\nslow 3 12.1342\nsettle\nproduce c 0 records=2\npause 3 10\n"
    )
    outcome = play(reported(f"lab brokers=[1,2,3] generation=2.4 seed=1\n{lines}settle limit=300\n"))
    assert outcome.broken == ()


# What a mechanism does not explain


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
@pytest.mark.parametrize("name", ["followers-untold", "cache-never-updated"])
def test_a_defect_is_not_taken_for_a_bug_that_has_happened_elsewhere(name: str, generation: str) -> None:
    """A reassignment makes the cache stale for one partition (KAFKA-9212); the other partition is not excused by it."""
    with Lab(brokers=3, generation=generation, seed=0, config={"auto.leader.rebalance.enable": False}) as lab:
        commands(lab, """create_topic orders assignment='{"0":[1,2],"1":[1,2]}'; settle""")
        commands(lab, """reassign '{"orders-0":[1,2,3]}'; settle""")
        assert {v.known for v in lab.violations} <= {"KAFKA-9212"}
        with mutant(name):
            commands(lab, "kill 1; settle; start 1; settle; kill 2; settle")
        assert any("orders-1" in v.text for v in lab.violations if not v.known)


def test_a_controller_written_by_hand_is_no_bug_of_kafka(generation: str) -> None:
    """Who was controller resigns, and nobody competes while the znode is there: KAFKA-13407 is where it is not."""
    with Lab(brokers=3, generation=generation, seed=1) as lab:
        until_quiet(lab.write_znode, "/controller", '{"version":1,"brokerid":9,"timestamp":"1"}')
        assert [(v.invariant, v.known) for v in lab.violations] == [("I19", None)]


def test_every_mechanism_says_what_it_is_and_breaks_invariants_there_are() -> None:
    known = {invariant.id for invariant in INVARIANTS}
    for mechanism in MECHANISMS:
        assert set(mechanism.breaks) <= known and mechanism.breaks
        assert "\n\n" in mechanism.sentence and "Kafka " in mechanism.sentence
        assert mechanism.ticket


ELSEWHERE = {
    "acks=1",
    "KIP-106",
    "KAFKA-14424",
    "KAFKA-9672",
    "KafkaController.maybeTriggerPartitionReassignment",
    "KAFKA-9038",
    "KAFKA-13407",
}
"""Seen in the tests of the invariants, of orders, and of walks."""
IN_WALKS = {4: {"KAFKA-14140"}, 5: {"KIP-101"}, 27: {"KAFKA-5083"}}
"""Seen in walks of a cluster of 0.10 that is in use, by seed."""
UNSEEN = {"KAFKA-7128"}
"""Told by Kafka's source; no walk has come to it by itself yet, for KIP-101 loses the same records first."""


@pytest.mark.parametrize("seed", IN_WALKS)
def test_what_is_seen_in_walks(seed: int) -> None:
    broken = {b.known for b in play(busy("0.10", seed)).broken}
    assert None not in broken and broken >= IN_WALKS[seed]


def test_every_mechanism_has_been_seen() -> None:
    """In a story here, in another test, in the museum, or in a walk."""
    seen = {ticket for name in STORIES for _, ticket in breaks(name)} | {CREATED} | ELSEWHERE
    seen |= {exhibit.ticket for exhibit in EXHIBITS}.union(*IN_WALKS.values())
    assert {mechanism.ticket for mechanism in MECHANISMS} - seen == UNSEEN
