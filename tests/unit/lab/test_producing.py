"""Records in a lab: who has them, what an acknowledgement is worth, and how it can be lost."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from labs import lab_of, play, process_of, until_quiet
from prose import Prose, refuses

from kafka_ctl import BadInput, Generation, Lab, TopicPartition, UnknownName
from kafka_ctl.brokers.fetches import FetchRequest
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab.comparison import compare
from kafka_ctl.lab.lab import COMMANDS
from kafka_ctl.requests import ProduceRequest

CLEAN = {"unclean.leader.election.enable": False, "auto.leader.rebalance.enable": False}


def lab_with(replicas: list[int], generation: str | Generation = "2.0", config: dict[str, Any] | None = None) -> Lab:
    """A lab with one partition, orders-0, on these brokers."""
    return lab_of("orders", {0: replicas}, brokers=3, generation=generation, seed=7, config=CLEAN | (config or {}))


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_with([1, 2]) as lab:
        yield lab


def values(lab: Lab) -> dict[int, list[int]]:
    """By broker, the values in its log."""
    return {log.broker: [entry.value for entry in log.entries] for log in lab.log("orders", 0)}


def test_many_records_are_shown_by_the_first_and_the_last(lab: Lab) -> None:
    assert repr(lab.produce("orders", 0, 2)) == "Produced(values=(1, 2), leader=1, offset=0, error=None)"
    assert repr(lab.produce("orders", 0, 5000)) == "Produced(values=(3, ..., 5002), leader=1, offset=2, error=None)"


def reported(lab: Lab, action: str) -> list[tuple[int | None, str | None]]:
    return [(r.broker, r.detail) for r in lab.trace if r.kind == "broker" and r.action == action]


def test_every_replica_gets_what_was_produced(prose: Prose, generation: str) -> None:
    with lab_with([1, 2, 3], generation) as lab:
        assert lab.log("orders", 0) == [] == lab.logs()
        outcome = lab.produce("orders", 0, records=2)
        assert outcome == ((1, 2), 1, 0, None)
        assert outcome.acknowledged
        prose(lab.produce("orders", 0))
        assert values(lab) == {1: [1, 2, 3], 2: [1, 2, 3], 3: [1, 2, 3]}
        lab.settle()
        assert [str(log) for log in lab.logs()] == [f"orders-0@{id}  1@0 2@0 3@0 |" for id in (1, 2, 3)]
        assert lab.violations == ()


def test_followers_learn_the_high_watermark_one_fetch_later() -> None:
    """And since KAFKA-8443 at once, not when their fetch has waited for half a second."""
    seconds = {}
    for generation in GENERATIONS:
        with lab_with([1, 2], generation) as lab:
            lab.produce("orders", 0)
            acknowledged = lab.now
            assert [log.high_watermark for log in lab.log("orders", 0)] == [1, 0]
            lab.run_until(lambda lab=lab: lab.log("orders", 0)[1].high_watermark == 1)
            seconds[generation] = lab.now - acknowledged
    assert seconds["2.4"] < 0.01 < 0.4 < seconds["2.0"] == pytest.approx(seconds["0.10"])


@pytest.mark.parametrize(("acks", "waits"), [(0, False), (1, False), ("all", True), (-1, True)])
def test_what_an_acknowledgement_waits_for(acks: int | str, waits: bool, lab: Lab) -> None:
    """With `all`, for a follower that lags until its leader takes it out of the ISR."""
    lab.lag(2, "orders", 0)
    before = lab.now
    outcome = lab.produce("orders", 0, acks=acks)
    assert (lab.now - before > 5) is waits
    assert outcome.acknowledged is (acks != 0)
    lab.settle()
    assert values(lab) == {1: [1]}
    until_quiet(lab.catch_up, 2)
    assert values(lab) == {1: [1], 2: [1]}
    assert lab.partition("orders", 0).isr == (1, 2)


def test_too_few_in_sync_replicas_are_refused() -> None:
    """`min.insync.replicas` of the topic counts; whoever asks for less is served."""
    with Lab(brokers=2, seed=7, config=CLEAN) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]}, config={"min.insync.replicas": 2})
        lab.lag(2, "orders", 0)
        assert lab.produce("orders", 0).error == "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        refused = lab.produce("orders", 0)
        assert refused.error == "NOT_ENOUGH_REPLICAS"
        assert str(refused) == "records 2 by broker 1: NOT_ENOUGH_REPLICAS"
        assert lab.produce("orders", 0, acks=1).acknowledged
        assert values(lab) == {1: [1, 3]}


def test_a_producer_learns_of_another_leader_by_an_error(lab: Lab) -> None:
    play(lab, "produce orders 0; kill 1")
    assert lab.produce("orders", 0).error == "NETWORK_EXCEPTION"
    play(lab, "settle; start 1; settle")
    assert lab.partition("orders", 0).leader == 2
    served = lab.produce("orders", 0)
    assert (served.leader, served.acknowledged) == (2, True)
    until_quiet(lab.elect_preferred)
    assert lab.produce("orders", 0).error == "NOT_LEADER_FOR_PARTITION"
    again = lab.produce("orders", 0)
    assert (again.leader, again.acknowledged) == (1, True)


@pytest.mark.parametrize(
    ("generation", "absent", "failed"),
    [
        ("0.10", "UNKNOWN_TOPIC_OR_PARTITION", None),
        ("2.0", "NOT_LEADER_FOR_PARTITION", "KAFKA_STORAGE_ERROR"),
        ("2.4", "NOT_LEADER_FOR_PARTITION", "KAFKA_STORAGE_ERROR"),
    ],
)
def test_a_broker_that_has_no_copy_says_why(generation: str, absent: str, failed: str | None) -> None:
    """It never had one (KAFKA-6796), there is no such topic, or its log directory has failed.

    Kafka 0.10.2.2: server/ReplicaManager.scala, appendToLocalLog; 2.0.1: getPartitionAndLeaderReplicaIfLocal
    """
    with lab_with([2, 3], generation) as lab:
        asked = [ProduceRequest(TopicPartition(topic, 0), (9,), 1, ()) for topic in ("orders", "none")]
        answers = [lab.world.run(lab.world.network.call(-1, 1, request))[0].error for request in asked]
        assert answers == [absent, "UNKNOWN_TOPIC_OR_PARTITION"]
        if failed:
            play(lab, "produce orders 0; disconnect 2 zookeeper; fail_log_dir 2")
            assert lab.produce("orders", 0).error == failed


@pytest.mark.parametrize(
    ("generation", "lost", "error", "seconds"),
    [
        ("0.10", "delete_topic orders", "REQUEST_TIMED_OUT", 30),
        ("2.0", "delete_topic orders", "REQUEST_TIMED_OUT", 30),
        ("2.4", "delete_topic orders", "UNKNOWN_TOPIC_OR_PARTITION", 1),
        ("2.0", "disconnect 2 zookeeper; fail_log_dir 2", "REQUEST_TIMED_OUT", 30),
        ("2.4", "disconnect 2 zookeeper; fail_log_dir 2", "REQUEST_TIMED_OUT", 30),
    ],
)
def test_a_producer_waits_at_a_leader_that_loses_its_copy(generation: str, lost: str, error: str, seconds: int) -> None:
    """The answer comes when its time is up; since KAFKA-9198 at once where the copy is deleted.

    Kafka 2.4.1: server/ReplicaManager.scala, stopReplica, handleLogDirFailure
    """
    with lab_with([2, 3], generation, {"delete.topic.enable": True}) as lab:
        play(lab, "produce orders 0; lag 3 orders 0")
        asked = lab.now
        play(lab, f"produce orders 0 wait=false; run_for 1; {lost}; run_for 40")
        answer = [r for r in lab.trace if r.action == "Produce"][-1]
        assert (answer.error, answer.time_ms / 1000 - asked) == (error, pytest.approx(seconds, abs=0.1))


def test_without_a_leader_nothing_is_produced() -> None:
    """Not yet, or not any more."""
    with Lab(brokers=2, seed=7, config=CLEAN) as lab:
        lab.create_topic("orders", assignment={0: [1]})
        early = lab.produce("orders", 0)
        assert (early.leader, early.error) == (-1, "LEADER_NOT_AVAILABLE")
        play(lab, "settle; kill 1; settle")
        late = lab.produce("orders", 0)
        assert (late.leader, late.error) == (-1, "LEADER_NOT_AVAILABLE")
        assert lab.logs() == []


def test_a_leader_that_stands_still_answers_nobody_in_time(lab: Lab) -> None:
    play(lab, "produce orders 0; pause 1 60")
    before = lab.now
    assert lab.produce("orders", 0).error == "REQUEST_TIMED_OUT"
    assert 30 <= lab.now - before <= 32


def test_producing_need_not_be_waited_for() -> None:
    with lab_with([1, 2, 3]) as lab:
        assert lab.produce("orders", 0, records=3, wait=False) is None
        assert lab.logs() == []
        lab.settle()
        assert values(lab) == {id: [1, 2, 3] for id in (1, 2, 3)}


def restart_behind_a_leader_that_stands_still(generation: str | Generation) -> Lab:
    """The first scenario of KIP-101: a follower restarts before it has learned the high watermark, then must lead."""
    lab = lab_with([1, 2], generation)
    assert lab.produce("orders", 0, records=3)
    play(lab, "pause 1 20; bounce 2; run_for 15")
    assert lab.partition("orders", 0).leader == 2
    return lab


def test_truncation_to_the_high_watermark_loses_acknowledged_records(generation: str) -> None:
    """KIP-101 ended that: a follower drops nothing before it has asked its leader."""
    with restart_behind_a_leader_that_stands_still(generation) as lab:
        lost = not Generation(generation).records.truncates_by_epoch
        assert values(lab) == {1: [1, 2, 3], 2: [] if lost else [1, 2, 3]}
        assert reported(lab, "truncate") == ([(2, "offset=0 records=1@0,2@0,3@0 by=high-watermark")] if lost else [])


def test_a_follower_ahead_of_its_leader_stops_rather_than_lose_records() -> None:
    """KAFKA-3410: 0.10 with unclean election off."""
    with restart_behind_a_leader_that_stands_still("0.10") as lab:
        lab.settle()
        stopped = [(r.broker, r.error) for r in lab.trace.slice(action="stopped") if r.error]
        assert stopped == [(1, "OFFSET_OUT_OF_RANGE")]
        assert lab.brokers[1].state == "down"
        assert values(lab)[1] == [1, 2, 3]


def test_unclean_election_loses_acknowledged_records(generation: str) -> None:
    """The one in sync dies, the one that lagged leads. What the first one had goes when it returns; in 0.10 only what
    makes it longer than its leader goes, and the two logs stay different (KIP-101)."""
    with lab_with([1, 2], generation, {"unclean.leader.election.enable": True}) as lab:
        play(lab, "produce orders 0; settle; lag 2 orders 0; settle")
        assert lab.produce("orders", 0, records=2) == ((2, 3), 1, 1, None)
        until_quiet(lab.kill, 1)
        assert lab.partition("orders", 0).leader == 2
        assert lab.produce("orders", 0) == ((4,), 2, 1, None)
        until_quiet(lab.start, 1)
        by_epoch = Generation(generation).records.truncates_by_epoch
        assert values(lab) == {1: [1, 4] if by_epoch else [1, 2], 2: [1, 4]}
        dropped = "offset=1 records=2@0,3@0 by=leader-epoch" if by_epoch else "offset=2 records=3@0 by=leader-end"
        assert reported(lab, "truncate") == [(1, dropped)]


def test_what_one_leader_acknowledged_alone_can_be_lost(lab: Lab) -> None:
    """`acks=1`: the follower had no time to copy it."""
    lab.disconnect(1, 2)
    assert lab.produce("orders", 0, acks=1).acknowledged
    play(lab, "kill 1; run_for 8")
    assert lab.partition("orders", 0).leader == 2
    play(lab, "heal; start 1; settle")
    assert values(lab) == {1: [], 2: []}
    assert reported(lab, "truncate") == [(1, "offset=0 records=1@0 by=leader-epoch")]


@pytest.mark.parametrize("joins_early", [True, False])
def test_who_may_join_the_isr(joins_early: bool) -> None:
    """KAFKA-7128: below its high watermark a new leader has records that are on no other replica yet."""
    generation = Generation("2.0").but(joins_from_epoch_start=not joins_early)
    with lab_with([1, 2], generation) as lab:
        leader = process_of(lab, 1).as_leader
        play(lab, "disconnect 1 2; produce orders 0 records=3 acks=1")
        tp = next(iter(leader.process.disk.logs))
        leader.lead(tp)
        leader.fetch(FetchRequest(tp, 2, offset=0))
        assert leader.can_join_isr(tp, 2) is joins_early
        leader.fetch(FetchRequest(tp, 2, offset=3))
        assert leader.can_join_isr(tp, 2)


def test_a_follower_joins_at_the_high_watermark(generation: str) -> None:
    """Of 50 records below it and 50 above it, each a fetch, only the first 50 must be copied before.

    Kafka 2.0.1: cluster/Partition.scala, maybeExpandIsr, at each fetch; 2.4.1: isFollowerInSync
    """
    with lab_with([1, 2, 3], generation) as lab:
        play(lab, "kill 3; run_for 10; produce orders 0 records=50 size=1048576; settle; lag 2 orders 0")
        play(lab, "produce orders 0 records=50 size=1048576 acks=1; start 3; run_for 9")
        steps = [r.action for r in lab.trace if (r.action, r.broker) in (("copy", 3), ("expand-isr", 1))]
        assert (steps.index("expand-isr"), steps.count("copy")) == (50, 100)


def test_a_silent_follower_leaves_the_isr_when_there_is_something_it_lacks(generation: str) -> None:
    """In every generation, so that producers need not wait for ever; without records see KAFKA-7152."""
    with lab_with([1, 2], generation) as lab:
        lab.disconnect(1, 2)
        assert lab.produce("orders", 0).acknowledged
        assert lab.partition("orders", 0).isr == (1,)
        until_quiet(lab.heal)
        assert lab.partition("orders", 0).isr == (1, 2)
        assert values(lab) == {1: [1], 2: [1]}


def test_records_wait_while_a_new_isr_is_being_written(generation: str) -> None:
    """Without ZooKeeper that takes long: the producer gives up, and the records are appended then.

    Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr (write lock), appendRecordsToLeader (read lock)
    """
    with lab_with([2, 3], generation) as lab:
        play(lab, "produce orders 0; settle; stop_zookeeper; lag 3 orders 0; run_for 20")
        assert lab.produce("orders", 0, acks=1).error == "REQUEST_TIMED_OUT"
        assert values(lab)[2] == [1]
        play(lab, "start_zookeeper; settle")
        assert (values(lab)[2], lab.partition("orders", 0).isr) == ([1, 2], (2,))


def test_a_deleted_topic_takes_its_records_along(lab: Lab) -> None:
    play(lab, "produce orders 0; delete_topic orders; settle")
    assert lab.logs() == []


def test_a_run_with_records_is_reported_again_exactly() -> None:
    with lab_with([1, 2, 3]) as lab:
        play(lab, "produce orders 0 records=3 acks=1; kill 1; settle")
        assert "\nproduce orders 0 records=3 acks=1\n" in lab.story
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)
            assert again.logs() == lab.logs()


def test_two_runs_are_compared_by_their_records_as_well() -> None:
    """KIP-101 is the whole difference between these two."""
    plain = restart_behind_a_leader_that_stands_still("2.0")
    with plain as kept, plain.fork(generation=Generation("2.0").but(truncates_by_epoch=False)) as lost:
        differ = {d.what: (d.left, d.right) for d in compare(kept, lost).differences}
        assert differ["log of orders-0 on broker 2"] == ("1@0 2@0 3@0 |", "|")
        assert differ["I4 nothing-acknowledged-is-lost orders-0"][0] is None


def test_without_a_producer_there_are_no_logs(generation: str) -> None:
    with lab_with([1, 2, 3], generation) as lab:
        until_quiet(lab.kill, 1)
        assert all(not broker.disk.logs and not broker.as_leader.follower_ends for broker in lab.world.brokers.values())


def test_a_lab_that_is_dropped_in_the_middle_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    gc.collect()  # labs that other tests have dropped
    recwarn.clear()
    lab_with([1, 2, 3]).produce("orders", 0, acks=0)
    gc.collect()
    assert recwarn.list == []


def test_what_cannot_be_produced_is_refused(prose: Prose, lab: Lab) -> None:
    reported = lab.story
    prose.refuses(UnknownName, lab.produce, "orders", 7)
    refuses(UnknownName, "unknown partition 'nothing-0'", lab.log, "nothing", 0)
    for wrong in ({"acks": 2}, {"acks": True}, {"records": 0}, {"records": 100_001}, {"size": -1}):
        prose.refuses(BadInput, lab.produce, "orders", 0, **wrong)
    assert lab.story == reported
    assert "produce" in COMMANDS
