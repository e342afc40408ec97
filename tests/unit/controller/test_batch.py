"""The request batch and the channels: what leaves, in which order, to whom, and what becomes of it."""

import json
from contextlib import nullcontext

import pytest
from labs import acting, lab_of, play, settled, until_quiet
from machines import Bench, bench, requests
from prose import Prose, refuses

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.controller.batch import RequestBatch
from kafka_ctl.errors import ApiException, BatchNotEmpty
from kafka_ctl.generation import Generation

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
LED = LeaderAndIsr(1, (1, 2, 3), 4, 4, 1)


def filled(stage: Bench) -> RequestBatch:
    """An open batch of the controller."""
    batch = stage.controller.batch
    batch.open()
    return batch


def sent(stage: Bench, since: int) -> list[tuple[str, int | None, str]]:
    """The requests that left: (name, receiver, how many partitions)."""
    return [
        (r.action, r.broker, (r.detail or "").split()[0].removeprefix("partitions="))
        for r in stage.lab.trace[since:]
        if r.kind == "request" and r.target == "sent"
    ]


def test_the_order_on_the_wire(stage: Bench) -> None:
    """LeaderAndIsr first, StopReplica last, whatever was added first (Kafka's trap 4)."""
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.stop_replica(3, ONE, False, None)
    batch.update_metadata([3], [ONE])
    batch.leader_and_isr([3], ONE, LED, (1, 2, 3), is_new=False)
    batch.send()
    batched = [name for name, _, _ in requests(list(stage.lab.trace[seen:]))]
    assert batched == ["LeaderAndIsr", "UpdateMetadata", "StopReplica"]
    stage.lab.settle()
    on_the_wire = [name for name, broker, _ in sent(stage, seen) if broker == 3]
    assert on_the_wire[:4] == [  # the ISR that has lost a stopped copy is told later
        "LeaderAndIsr",
        "UpdateMetadata",
        "StopReplica",
        "StopReplica",
    ]


def test_who_leads_is_news_for_everybody(stage: Bench) -> None:
    """A LeaderAndIsr for one broker is metadata for all live ones, those that leave included."""
    stage.context.shutting_down.add(2)
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.leader_and_isr([1], ONE, LED, (1, 2, 3), is_new=False)
    batch.send()
    (metadata,) = [r for r in stage.lab.trace[seen:] if r.action == "UpdateMetadata" and r.topic]
    assert metadata.detail == "brokers=1,2,3 offline=2"


def test_metadata_is_the_controllers_own_picture(stage: Bench) -> None:
    """Not what the LeaderAndIsr of the same batch says: that is how epochs grow stale (KAFKA-9212)."""
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.leader_and_isr([1], ONE, LED, (1, 2, 3), is_new=False)
    batch.send()
    reported = {r.action: r.leader_epoch for r in stage.lab.trace[seen:] if r.topic}
    assert reported == {"LeaderAndIsr": 4, "UpdateMetadata": 0}


def test_the_last_word_about_a_partition_holds_but_new_stays_new(stage: Bench) -> None:
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.leader_and_isr([2], ONE, LED, (1, 2, 3), is_new=True)
    batch.leader_and_isr([2], ONE, LED._replace(leader=3, leader_epoch=5), (1, 2, 3), is_new=False)
    batch.send()
    (reported,) = [r for r in stage.lab.trace[seen:] if r.action == "LeaderAndIsr" and r.topic]
    assert (reported.leader, reported.leader_epoch, reported.detail) == (3, 5, "is_new")


def test_nobody_is_reported_nothing(stage: Bench) -> None:
    """Broker -1 is nobody."""
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.leader_and_isr([-1], ONE, LED, (1, 2, 3), is_new=False)
    batch.stop_replica(-1, ONE, False, None)
    batch.send()
    assert {r.action for r in stage.lab.trace[seen:]} == {"UpdateMetadata"}


def test_a_partition_without_leader_is_no_metadata(stage: Bench) -> None:
    tp = stage.plan("parcels")
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.update_metadata([1], [tp])
    batch.send()
    assert [r.action for r in stage.lab.trace[seen:]] == ["leader_not_assigned"]


def test_a_dead_broker_gets_nothing_and_the_log_says_so(stage: Bench) -> None:
    """2.0 sends to whom it may concern; a broker without channel is a warning."""
    batch, seen = filled(stage), len(stage.lab.trace)
    batch.leader_and_isr([9], ONE, LED, (9, 1), is_new=False)
    batch.send()
    (warning,) = [r for r in stage.lab.trace[seen:] if r.kind == "controller"]
    assert (warning.action, json.loads(warning.detail or "")["broker"]) == ("not_sending", 9)


@pytest.mark.parametrize(
    ("groups", "wanted"), [(False, ["0", "1", "1", "1"]), (True, ["1", "2"])], ids=["one by one", "grouped"]
)
def test_stop_replica_requests(groups: bool, wanted: list[str]) -> None:
    """One each and an empty one first in 2.0; where they are grouped, two: first what is deleted (KAFKA-8294)."""
    with bench(Generation("2.0").but(groups_stop_replica=groups)) as stage:
        batch, seen = filled(stage), len(stage.lab.trace)
        batch.stop_replica(3, ONE, False, None)
        batch.stop_replica(3, TWO, False, None)
        batch.stop_replica(3, TopicPartition("orders", 2), True, None)
        batch.send()
        stage.lab.settle()
        assert [partitions for name, _, partitions in sent(stage, seen) if name == "StopReplica"] == wanted


def test_a_batch_left_behind_makes_the_controller_resign(stage: Bench, prose: Prose) -> None:
    """Nothing can be trusted then: another controller shall start afresh (KAFKA-2300)."""
    controller = stage.controller
    filled(stage).stop_replica(3, ONE, False, None)
    prose.refuses(BatchNotEmpty, controller.batch.open)
    refuses(BatchNotEmpty, "might be lost", stage.carry_out, controller.send_update_metadata())
    logged = [r.action for r in stage.lab.trace if r.kind == "controller" and r.actor == controller.actor]
    assert logged[-2:] == ["forcing_resignation", "resigned"]
    stage.lab.settle()
    assert stage.lab.controller.epoch == 2


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_move_that_meets_a_batch_left_behind_fails(generation: str) -> None:
    """The controller resigns; the move has failed as after any other error, so its administrator has an answer.

    Kafka 2.4.1: controller/KafkaController.scala, maybeTriggerPartitionReassignment
    """
    with lab_of("orders", {0: [1, 2]}, brokers=3, generation=generation, seed=1) as lab:
        acting(lab).batch.stop_replica(3, ONE, False, None)
        seen = len(lab.trace)
        with pytest.raises(ApiException, match="UNKNOWN_SERVER_ERROR") if generation == "2.4" else nullcontext():
            lab.reassign({"orders-0": [2, 3]})
        lab.settle()
        logged = [r.action for r in lab.trace[seen:] if r.kind == "controller"]
        assert logged.index("forcing_resignation") < logged.index("reassignment_failed")
        assert [r for r in lab.trace[seen:] if r.error == "BatchNotEmpty"] == []
        assert lab.controller.epoch == 2


@pytest.mark.parametrize(
    ("partitions", "missing"),
    [
        (1, "key not found: orders-0"),
        (2, "Initiating reassign replicas for partition orders-1 not present in partitionsBeingReassigned: "),
    ],
)
def test_2_0_leaves_a_request_for_moves_to_the_next_controller_where_it_had_to_resign(
    partitions: int, missing: str
) -> None:
    """It has forgotten the moves: the next one is not found, nor the one that failed, and the request stays.

    Kafka 2.0.1: controller/KafkaController.scala, maybeTriggerPartitionReassignment (IllegalStateException),
    removePartitionsFromReassignedPartitions (NoSuchElementException)
    """
    with lab_of("orders", {number: [1, 2] for number in range(partitions)}, brokers=3, seed=1) as lab:
        acting(lab).batch.stop_replica(3, ONE, False, None)
        until_quiet(lab.reassign, {f"orders-{number}": [2, 3] for number in range(partitions)})
        errors = [json.loads(r.detail or "")["error"] for r in lab.trace.slice(action="error_processing")]
        assert errors == [missing]
        assert lab.controller.epoch == 2
        assert [p.replicas for p in lab.partitions()] == [(2, 3)] * partitions


def test_a_channel_delivers_in_order_one_at_a_time(stage: Bench) -> None:
    """The next request leaves when the last was answered; correlation ids count up."""
    seen = len(stage.lab.trace)
    for _ in range(4):
        stage.carry_out(stage.controller.send_update_metadata())
    stage.lab.settle()
    for broker in (1, 2, 3):
        reported = [
            (r.kind, r.detail)
            for r in stage.lab.trace[seen:]
            if r.kind in ("request", "response") and r.topic is None and r.broker == broker
        ]
        assert [kind for kind, _ in reported] == ["request", "response"] * 4
        ids = [int((detail or "").split("correlation_id=")[1]) for kind, detail in reported if kind == "request"]
        assert ids == list(range(ids[0], ids[0] + 4))


def test_a_channel_tries_until_its_broker_is_gone() -> None:
    """Then it is closed, and what it held is lost."""
    with Lab(brokers=3, seed=1) as lab:
        controller = lab.controller
        victim = next(b for b in (1, 2, 3) if b != controller.id)
        lab.kill(victim)
        lab.create_topic("orders", assignment={0: [victim, controller.id]})
        lab.run_for(3)
        assert acting(lab).channels.waiting == 2
        lab.settle()
        assert acting(lab).channels.waiting == 0
        assert lab.partition("orders", 0).leader == controller.id


def absent_partition(generation: str) -> Lab:
    """A controller that has never read `orders-1`, whose ISR then changes; nobody can join one before `heal`."""
    config = {"replica.lag.time.max.ms": 4000, "auto.leader.rebalance.enable": False}
    lab = lab_of("orders", {0: [3, 2], 1: [3, 2]}, brokers=3, generation=generation, seed=18883, config=config)
    until_quiet(lab.write_znode, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [3, 2]}})
    play(lab, "delete_controller; settle; disconnect 2 3; settle")
    return lab


def test_0_10_stumbles_over_a_partition_that_the_topic_no_longer_has_and_resigns_at_the_next_request() -> None:
    """The recording `isr_of_absent_partition`; it ends there, as who wins the race for `/controller` is chance."""
    with absent_partition("0.10") as lab:
        first, since = lab.controller.id, len(lab.trace)
        log = [r for r in lab.trace if r.kind == "controller" and r.action == "error_processing"]
        assert [json.loads(r.detail or "")["error"] for r in log] == ["key not found: [orders,1]"]
        until_quiet(lab.heal)
        acts = [(r.actor, r.action) for r in lab.trace[since:] if r.kind == "controller"]
        assert (f"controller-{first}", "forcing_resignation") in acts
        assert lab.controller is not None and lab.controller.id != first and lab.controller.epoch == 3


def test_0_10_keeps_the_leaders_of_a_topic_that_vanished_and_stumbles_over_them() -> None:
    """Kafka 0.10.2.2: controller/PartitionStateMachine.scala, TopicChangeListener: partitionLeadershipInfo stays."""
    with settled(
        "0.10", {"gone": {0: [1, 2]}, "orders": {0: [3, 1]}}, 3, {"auto.leader.rebalance.enable": False}
    ) as lab:
        lab.world.run(acting(lab).zk.delete_tree("/brokers/topics/gone"))
        play(lab, "settle; kill 2; settle; start 2; settle")
        errors = [json.loads(r.detail or "")["error"] for r in lab.trace.slice(action="error_processing")]
        assert errors[0] == "key not found: [gone,0]"
        assert "[BrokerChangeListener on Controller 1]: Error while handling broker changes" in lab.trace.kafka_log(
            "controller"
        )
        assert lab.trace.slice(action="forcing_resignation") and lab.controller and lab.controller.epoch == 2


def test_0_10_cannot_act_again_where_it_was_forced_to_resign() -> None:
    """Its channels stay open, and their metrics forbid others: it is elected, fails and resigns until another wins.

    So broker 1 of 0.10.2.2 did 20 times within half a second.
    """
    with absent_partition("0.10") as lab:
        since = len(lab.trace)
        lab.heal()
        for broker in (2, 3):
            lab.delay("zookeeper", broker, 0.05)
        lab.settle()
        failed = [r for r in lab.trace[since:] if r.kind == "controller" and r.action == "election_failed"]
        assert len(failed) > 1 and {r.actor for r in failed} == {"controller-1"}
        assert all("already exists" in (r.detail or "") for r in failed)
        assert lab.controller is not None and lab.controller.id != 1


def test_2_0_sends_such_a_partition_without_replicas() -> None:
    with absent_partition("2.0") as lab:
        sent = [r for r in lab.trace if r.kind == "request" and r.action == "UpdateMetadata" and r.partition == 1]
        assert sent[-1].replicas == () and sent[-1].isr == (3,)
        assert not [r for r in lab.trace if r.action == "error_processing"]
