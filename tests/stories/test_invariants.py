"""The invariants: what each says, that a broken one is told once and marked if it is known, and the page about them."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from labs import lab_of, play, until_quiet
from prose import Prose

from kafka_ctl import BadInput, Generation, Lab
from kafka_ctl.invariants import INVARIANTS, MECHANISMS, Violation
from kafka_ctl.paths import ROOT
from tests.mutants import MUTANTS, mutant
from tools.invariants import PAGE

CLEAN = {"unclean.leader.election.enable": False, "auto.leader.rebalance.enable": False}


def two_copies(generation: str, unclean: bool = False) -> Lab:
    """Three brokers; orders-0 is on 1 and 2."""
    config = CLEAN | {"unclean.leader.election.enable": unclean}
    return lab_of("orders", {0: [1, 2]}, brokers=3, generation=generation, seed=7, config=config)


def broken(lab: Lab) -> set[tuple[str, str | None]]:
    return {(violation.invariant, violation.known) for violation in lab.violations}


def mechanism(lab: Lab, ticket: str) -> Any:
    """A mechanism as it watches a lab."""
    return next(m for m in lab.checker.mechanisms if m.ticket == ticket)  # type: ignore[attr-defined]


def test_there_are_twenty_and_more() -> None:
    """All of I1 to I20, each in words of its own."""
    numbers = [int(invariant.id.removeprefix("I")) for invariant in INVARIANTS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 20
    for invariant in INVARIANTS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", invariant.name)
        assert len(invariant.sentence) > 30
        assert invariant.sentence.endswith(".")
        assert invariant.motive


def test_an_unclean_election_loses_records_and_that_is_known(prose: Prose, generation: str) -> None:
    """KIP-106 made clean elections the default; in 0.10 what marks the loss first is KIP-101."""
    with two_copies(generation, unclean=True) as lab:
        until_quiet(lab.lag, 2, "orders", 0)
        lab.produce("orders", 0)
        assert lab.violations == ()
        until_quiet(lab.kill, 1)
        assert broken(lab) == {("I4", "KIP-106")}
        (violation,) = lab.violations
        prose(violation.text)
        assert str(violation).endswith("(known: KIP-106)")
        record = lab.trace[violation.seq]
        assert (record.kind, record.action, record.error) == ("violation", violation.name, "KIP-106")
        assert (record.topic, record.partition, record.broker) == ("orders", 0, 2)
        lab.produce("orders", 0)
        assert ("I6", "KIP-106") in broken(lab)


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_only_the_election_makes_a_loss_known_not_the_setting(generation: str) -> None:
    with two_copies(generation, unclean=True) as lab, mutant("one-is-all"):
        lab.disconnect(1, 2)
        lab.produce("orders", 0)
        lab.kill(1)
        lab.run_for(8)
        assert broken(lab) == {("I4", None)}


def test_what_the_leader_alone_acknowledged_may_be_lost_and_that_is_reported_once() -> None:
    with two_copies("2.4") as lab:
        lab.disconnect(1, 2)
        lab.produce("orders", 0, records=2, acks=1)
        lab.kill(1)
        lab.run_for(8)
        assert broken(lab) == {("I4", "acks=1")}
        lab.heal()
        for _ in range(3):
            until_quiet(lab.start, 1)
            lab.produce("orders", 0, acks=1)
            until_quiet(lab.kill, 1)
        assert len(lab.violations) == 1


def test_a_deleted_topic_owes_nobody_its_records(generation: str) -> None:
    with Lab(brokers=2, generation=generation, seed=7, config=CLEAN | {"delete.topic.enable": True}) as lab:
        for _ in range(2):
            until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
            assert lab.produce("orders", 0)
            until_quiet(lab.delete_topic, "orders")
        assert lab.violations == ()


def test_the_checker_stops_at_the_first_bad_step() -> None:
    with mutant("sent-is-received"), two_copies("2.0") as lab:
        lab.produce("orders", 0, wait=False)
        violation = lab.run_until_violation()
        assert isinstance(violation, Violation)
        assert violation.invariant in ("I1", "I3")
        assert lab.trace[-1].kind == "violation"
        cause = lab.trace[lab.trace[violation.seq].cause or 0]
        assert (cause.action, cause.detail) == ("high-watermark", "offset=1")


def test_records_and_trouble_break_nothing_unknown(generation: str) -> None:
    """Random trouble for one topic while somebody produces; with 2.0 and later nothing acknowledged by all is lost."""
    rng = Random(5)
    settings = CLEAN | {"min.insync.replicas": 2}
    with lab_of(
        "orders", {0: [1, 2, 3], 1: [2, 3, 4]}, brokers=4, generation=generation, seed=3, config=settings
    ) as lab:
        for _ in range(150):
            one, other = rng.sample(range(1, 5), 2)
            trouble = rng.choice(
                [
                    lambda one=one: lab.kill(one),
                    lambda one=one: lab.start(one),
                    lambda one=one: lab.bounce(one),
                    lambda one=one: lab.pause(one, 9),
                    lambda one=one: lab.lag(one, "orders", rng.randrange(2)),
                    lambda one=one, other=other: lab.disconnect(one, other),
                    lab.heal,
                    lab.heal,
                    lab.elect_preferred,
                    lambda one=one: lab.shutdown(one, wait=False),
                    lambda one=one: lab.expire_session(one),
                ]
            )
            lab.produce("orders", rng.randrange(2), acks=rng.choice([1, "all", "all"]), wait=rng.random() < 0.5)
            try:
                trouble()
            except BadInput:
                continue
            lab.run_for(rng.choice([0.001, 0.01, 1, 7]))
        assert max(log.end for log in lab.logs()) > 10
        assert [violation for violation in lab.violations if violation.known is None] == []


def test_a_cancelled_reassignment_can_cost_the_last_copy_and_that_is_known() -> None:
    """KAFKA-14424: the replica that was being added is the only one in sync, and goes, as nobody wants it any more."""
    with lab_of("orders", {0: [1]}, brokers=3, generation="2.4", seed=7, config=CLEAN) as lab:
        lab.reassign({("orders", 0): [2, 3]})
        play(lab, "kill 3; settle; kill 1; settle")
        assert lab.partition("orders", 0).isr == (2,)
        lab.produce("orders", 0)
        until_quiet(lab.cancel_reassignment, [("orders", 0)])
        assert lab.logs() == []
        assert broken(lab) == {("I12", "KAFKA-9672"), ("I25", "KAFKA-14424")}
        assert mechanism(lab, "KAFKA-14424").partitions == {("orders", 0)}


# The page


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_broker_with_a_lost_disk_takes_no_replica_and_that_is_known(generation: str) -> None:
    """Told that a replica is not new it refuses it, for a log of it may have been on the lost disk (KAFKA-10314)."""

    def moved(kind: Generation) -> list[tuple[str, str | None]]:
        with lab_of("orders", {0: [1]}, brokers=3, generation=kind) as lab:
            lab.fail_log_dir(3)
            until_quiet(lab.reassign, {("orders", 0): [3]})
            return [(v.invariant, v.known) for v in lab.violations if v.invariant == "I19"]

    assert moved(Generation(generation)) == [("I19", "KAFKA-10314")]
    assert moved(Generation("2.4").but(announces_new_replicas=True)) == []


def test_why_a_broker_was_not_to_be_added_to_an_isr(prose: Prose) -> None:
    """It is in a controlled shutdown when its leader adds broker 2; another story has one that is not registered."""
    with mutant("everybody-is-in-sync"), Lab(brokers=3) as lab:
        until_quiet(lab.create_topic, "a", assignment={0: [1, 2, 3]})
        play(lab, "kill 2; settle; start 2; run_for 0.25; shutdown 3")
        prose(*(violation.text for violation in lab.violations if violation.invariant == "I15"))


def test_nobody_wants_leaders_back_on_a_disk_that_failed() -> None:
    """The only copy is unreadable: however often the balance is checked, its broker cannot lead."""
    config = {"leader.imbalance.check.interval.seconds": 10}
    with lab_of("orders", {0: [1]}, brokers=2, generation="2.0", seed=1, config=config) as lab:
        lab.fail_log_dir(1)
        lab.run_for(60)
        assert lab.partition("orders", 0).leader == -1
        assert not lab.violations


def test_a_topic_without_any_partition_left_owes_nobody_its_end() -> None:
    """2.0 restores the assignment of a dying topic from its partitions' znodes; this one had none yet."""
    with Lab(brokers=3, seed=20149) as lab:
        lab.kill(3)
        until_quiet(lab.create_topic, "orders", assignment={0: [3]})
        until_quiet(lab.at_once, ["add_partitions orders 2", "delete_topic orders"])
        assert lab.znodes()["/brokers/topics/orders"][0] == b'{"version":1,"partitions":{}}'
        assert "/admin/delete_topics/orders" in lab.znodes()
        assert lab.violations == ()
        until_quiet(lab.start, 3)
        assert "/brokers/topics/orders" not in lab.znodes()


def test_a_dying_topic_whose_move_is_dropped_at_failover_waits_and_that_is_known() -> None:
    """It moved, so it was not deleted; it dies, so it need not move; and nobody looks again until a broker starts."""
    with lab_of("orders", {0: [2]}, brokers=3, seed=0) as lab:
        acting = lab.controller.id
        lab.at_once(["reassign '{\"orders-0\":[2,3]}' through=zookeeper", "delete_topic orders"])
        until_quiet(lab.kill, acting)
        assert broken(lab) == {("I19", "KafkaController.maybeTriggerPartitionReassignment")}
        until_quiet(lab.start, acting)


def test_a_move_to_a_broker_that_was_bounced_is_done() -> None:
    """It was sent its new replica and bounced before anybody noticed; 2.4 sends it again.

    The epoch that it knows is too old, but that is looked at only since KIP-320, in the first fetch of a session.
    """

    def moved(generation: str) -> set[tuple[str, str | None]]:
        with lab_of("orders", {0: [2]}, brokers=3, generation=generation, seed=0, config=CLEAN) as lab:
            lab.reassign({("orders", 0): [1, 3]})
            until_quiet(lab.bounce, 1)
            return {(v.invariant, v.known) for v in lab.violations if v.invariant in ("I14", "I19")}

    assert moved("2.0") == moved("2.4") == set()


BY_HAND = {
    "/brokers/ids/9": '{"endpoints":["PLAINTEXT://h:9092"],"host":"h","port":9092,"version":4}',
    "/brokers/topics/orders/partitions/0/state": '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":1,'
    '"isr":[9,1]}',
    "/brokers/topics/orders": '{"version":1,"partitions":{"0":[9,1],"1":[]}}',
    "/brokers/topics/orders/partitions/1": "",
    "/brokers/topics/orders/partitions/1/state": '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,'
    '"isr":[1]}',
}


def test_what_an_administrator_wrote_by_hand_is_looked_at_as_well(generation: str) -> None:
    """A controller that is named again, a broker without a process that is preferred, a partition without replicas."""
    with Lab(brokers=2, generation=generation, config={"leader.imbalance.check.interval.seconds": 10}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1]})
        named = {"version": 1, "brokerid": lab.controller.id, "timestamp": "1"}
        until_quiet(lab.write_znode, "/controller", json.dumps(named))
        assert lab.violations == ()
        for path, data in BY_HAND.items():
            lab.write_znode(path, data)
        lab.run_for(30)
        assert lab.trace.slice(action="AutoPreferredReplicaLeaderElection", target="done")


def test_a_controller_whose_epoch_was_overwritten_is_named_with_both(prose: Prose) -> None:
    with Lab(brokers=3, seed=7) as lab:
        until_quiet(lab.write_znode, "/controller_epoch", "7")
        prose(*(violation.text for violation in lab.violations))


def test_a_request_for_no_replicas_asks_for_that() -> None:
    """The tool of 0.10 takes it; the copies that it leaves no room for may be deleted. Kafka 0.10.2.2:
    admin/ReassignPartitionsCommand.scala, parseAndValidate
    """
    with two_copies("0.10") as lab:
        plan = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[]}]}'
        until_quiet(lab.execute_reassignment, plan)
        lab.run_for(400)
        assert "I16" not in {violation.invariant for violation in lab.violations}


def test_the_page_is_fresh() -> None:
    assert PAGE.check(ROOT / "docs") == []


def test_the_page_has_every_invariant_with_its_mutant_and_where_kafka_breaks_it() -> None:
    text = PAGE.text()
    assert text.count("\n## I") == len(INVARIANTS)
    assert text.count("\n- Its mutant: `") == len(MUTANTS)
    assert "where `fences_writes` is off (0.10, 2.0): KAFKA-6082" in text
    assert "in every generation here: KAFKA-7362, KAFKA-14140\n" in text
    assert "in every generation here: KIP-106" in text
    assert text.count("\n- Source: Kafka ") == len(MECHANISMS) == text.count("\n### ")
    assert "- Only where `single_threaded`" in text


def test_every_invariant_has_its_name_in_the_trace_format() -> None:
    legend = (ROOT / "docs" / "trace-format.md").read_text("utf-8")
    assert [invariant.name for invariant in INVARIANTS if f"`{invariant.name}`" not in legend] == []
