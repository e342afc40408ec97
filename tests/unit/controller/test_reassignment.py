"""Partitions on the move: what ZooKeeper says at each step, dropped and stuck requests, failover, cancelling."""

import json
import re
from collections.abc import Mapping, Sequence

import pytest
from labs import QUIET, acting, by_hand, play, settled, until_quiet
from prose import refuses
from tables import tabled

from kafka_ctl import Generation, Lab, TopicPartition
from kafka_ctl.cluster import ReplicaAssignment
from kafka_ctl.controller import reassignment, reassignment_incremental
from kafka_ctl.errors import ApiException, BadInput, StateChangeFailed
from kafka_ctl.reassign.plan import as_written
from kafka_ctl.trace import Record, Trace
from kafka_ctl.zookeeper.store import Create, Set
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode, TopicZNode

ORDERS = ("orders", 0)
legacy = pytest.mark.parametrize("generation", ["0.10", "2.0"])


def opened(generation: str | Generation, replicas: Sequence[int] = (1, 2, 3), brokers: int = 6) -> Lab:
    """Brokers, of which 1 is controller, and a topic of one partition."""
    return settled(generation, {"orders": {0: list(replicas)}}, brokers, QUIET)


def ask_by_hand(lab: Lab, moves: Mapping[tuple[str, int], Sequence[int]]) -> None:
    """Write a request for moves as somebody with a ZooKeeper shell might, and let the lab settle."""
    path = ReassignPartitionsZNode.path()
    by_hand(lab, (Set if path in lab.znodes() else Create)(path, ReassignPartitionsZNode.encode(moves)))
    lab.settle()


def steps(trace: Trace) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """(AR, leader, ISR) as ZooKeeper has them after each write; sets sorted, so that their order does not matter."""
    assigned, leader, isr = (), 0, ()
    seen = []
    for r in trace.slice(kind="zk", action={"set", "create"}, error=None):
        if (r.path or "").startswith("/brokers/top"):
            content = json.loads(r.detail or "{}")
            assigned = tuple(sorted(content.get("partitions", {"0": assigned})["0"]))
            leader, isr = content.get("leader", leader), tuple(sorted(content.get("isr", isr)))
            if leader and (not seen or seen[-1] != (assigned, leader, isr)):
                seen.append((assigned, leader, isr))
    return seen


def subsequence(few: Sequence[object], many: Sequence[object]) -> bool:
    """Whether the few occur among the many in this order."""
    rest = iter(many)
    return all(item in rest for item in few)


ALL = (1, 2, 3, 4, 5, 6)
TABLE = [
    ((1, 2, 3), 1, (1, 2, 3)),  # the beginning
    (ALL, 1, (1, 2, 3)),  # step 2
    (ALL, 1, ALL),  # step 4
    (ALL, 4, ALL),  # step 7
    (ALL, 4, (4, 5, 6)),  # step 8
    ((4, 5, 6), 4, (4, 5, 6)),  # step 10
]
"""OAR = 1,2,3 and RAR = 4,5,6: AR, leader and ISR at each step, as in Kafka's comment on onPartitionReassignment."""


def test_the_steps_are_those_of_kafkas_own_table(generation: str) -> None:
    with opened(generation) as lab:
        until_quiet(lab.reassign, {ORDERS: [4, 5, 6]}, through="zookeeper")
        seen = steps(lab.trace)
        assert subsequence(TABLE, seen), seen
        assert seen[0] == TABLE[0]
        assert seen[-1] == TABLE[-1]
        between = [state for state in seen if state not in TABLE]  # ISRs that grow and shrink one by one, nothing else
        assert all(ar == ALL for ar, _, _ in between)


@legacy
def test_the_twelve_steps_in_order(generation: str) -> None:
    """What the controller does, from the request to the last UpdateMetadata."""
    with opened(generation, (1, 2), brokers=3) as lab:
        since = len(lab.trace)
        until_quiet(lab.reassign, {ORDERS: [2, 3]})
        reported = [did for r in lab.trace[since:] if (did := step(r))]
        assert reported == [
            "AR=2,3,1 in ZooKeeper",  # 1
            "LeaderAndIsr to 2 epoch=1", "LeaderAndIsr to 3 epoch=1", "LeaderAndIsr to 1 epoch=1",  # 2
            "UpdateMetadata epoch=0",
            "3 NonExistentReplica -> NewReplica",  # 3
            f"LeaderAndIsr to 3 epoch={0 if generation == '2.0' else 1}", "UpdateMetadata epoch=0",
            "2 OnlineReplica -> OnlineReplica",  # 5, after the waiting of 4
            "LeaderAndIsr to 2 epoch=0", "UpdateMetadata epoch=0",
            "3 NewReplica -> OnlineReplica",
            "elected 2 epoch=2",  # 7, with AR = 2,3 in memory: 6
            "LeaderAndIsr to 2 epoch=2", "LeaderAndIsr to 3 epoch=2", "UpdateMetadata epoch=2",
            "1 OnlineReplica -> OfflineReplica",  # 8
            "LeaderAndIsr to 2 epoch=3", "LeaderAndIsr to 3 epoch=3", "UpdateMetadata epoch=3", "StopReplica to 1",
            "1 OfflineReplica -> ReplicaDeletionStarted", "StopReplica to 1 delete",  # 9
            "1 ReplicaDeletionStarted -> ReplicaDeletionSuccessful",
            "1 ReplicaDeletionSuccessful -> NonExistentReplica",
            "AR=2,3 in ZooKeeper",  # 10
            "request deleted",  # 11
            "UpdateMetadata epoch=3",  # 12
            "UpdateMetadata epoch=3",  # of the leader's ISR change notification, later
        ]  # fmt: skip
        assert lab.brokers[1].leads == lab.brokers[1].follows == ()


def step(r: Record) -> str | None:
    """One step in a few words; None for what is no step."""
    if r.kind == "zk" and r.actor == "broker-1" and r.path == "/brokers/topics/orders" and r.action == "set":
        return "AR=" + ",".join(map(str, json.loads(r.detail or "")["partitions"]["0"])) + " in ZooKeeper"
    if r.kind == "zk" and r.path == "/admin/reassign_partitions" and r.action == "delete":
        return "request deleted"
    if r.kind == "replica":
        return f"{r.broker} {r.source} -> {r.target}"
    if r.kind == "partition":
        return f"elected {r.leader} epoch={r.leader_epoch}"
    if r.kind == "request" and r.topic:
        words = [r.action]
        words += [f"to {r.broker}"] if r.action != "UpdateMetadata" else []
        words += [f"epoch={r.leader_epoch}"] if r.leader is not None else []
        return " ".join(words + ["delete"] * (r.detail == "delete"))
    return None


# The stale leader epoch, KAFKA-9212


def epochs_reported(lab: Lab, since: int) -> tuple[set[int | None], int | None]:
    """The leader epochs of the first batch: those of its LeaderAndIsr, and that of its UpdateMetadata."""
    records = [r for r in lab.trace[since:] if r.kind == "request" and r.topic]
    end = next(n for n, r in enumerate(records) if r.action == "UpdateMetadata")
    return {r.leader_epoch for r in records[:end]}, records[end].leader_epoch


@legacy
def test_metadata_has_the_old_leader_epoch_until_the_move_ends(generation: str) -> None:
    """Brokers that lead and follow know epoch 1, everybody else is told 0: clients with epochs are fenced."""
    with opened(generation, (1, 2), brokers=4) as lab:
        since = len(lab.trace)
        lab.reassign({ORDERS: [1, 2, 3]})
        assert lab.run_until(lambda lab: lab.partition(*ORDERS).leader_epoch == 1) is None
        lab.run_for(0.05)
        assert epochs_reported(lab, since) == ({1}, 0)
        assert {b.metadata[ORDERS].leader_epoch for b in lab.brokers.values()} == {0}
        assert lab.partition(*ORDERS).leader_epoch == 1
        lab.settle()  # the move is over: leader 1 stays, which raises the epoch once more
        assert {b.metadata[ORDERS].leader_epoch for b in lab.brokers.values()} == {lab.partition(*ORDERS).leader_epoch}


@pytest.mark.parametrize("generation", ["2.4", Generation("2.0").but(caches_bumped_epoch=True)], ids=str)
def test_2_4_tells_everybody_the_same_epoch(generation: str | Generation) -> None:
    """So does 2.0 with what KAFKA-9212 changed, and nothing else."""
    with opened(generation, (1, 2), brokers=4) as lab:
        since = len(lab.trace)
        lab.reassign({ORDERS: [1, 2, 3]})
        lab.run_for(0.05)
        assert epochs_reported(lab, since) == ({1}, 1)
        assert {b.metadata[ORDERS].leader_epoch for b in lab.brokers.values()} == {1}


# Epochs, orders, dead targets


@legacy
@tabled
def test_how_often_the_leader_epoch_rises(
    generation: str, replicas: tuple[int, ...], target: list[int], raised: int
) -> None:
    with opened(generation, replicas) as lab:
        until_quiet(lab.reassign, {ORDERS: target})
        assert lab.partition(*ORDERS).replicas == tuple(target)
        assert lab.partition(*ORDERS).leader_epoch == raised


def test_another_order_makes_another_preferred_leader_and_moves_nothing(generation: str) -> None:
    with opened(generation) as lab:
        since = len(lab.trace)
        until_quiet(lab.reassign, {ORDERS: [3, 1, 2]})
        view = lab.partition(*ORDERS)
        assert (view.replicas, view.leader, set(view.isr)) == ((3, 1, 2), 1, {1, 2, 3})
        assert not [r for r in lab.trace[since:] if r.action == "StopReplica"]
        assert all(r.source == r.target for r in lab.trace[since:] if r.kind == "replica")
        until_quiet(lab.elect_preferred, [ORDERS])
        assert lab.partition(*ORDERS).leader == 3


def test_a_move_waits_for_a_dead_target_and_goes_on_when_it_is_there(generation: str) -> None:
    with opened(generation, (1, 2)) as lab:
        until_quiet(lab.kill, 4)
        until_quiet(lab.reassign, {ORDERS: [3, 4]}, through="zookeeper")
        (waiting,) = lab.reassignments()
        assert waiting.target == (3, 4)
        assert waiting.waiting == (4,)
        assert set(waiting.replicas) == {1, 2, 3, 4}
        assert lab.partition(*ORDERS).leader_epoch == 1
        assert "/admin/reassign_partitions" in lab.znodes()
        until_quiet(lab.start, 4)
        view = lab.partition(*ORDERS)
        assert (view.replicas, set(view.isr), view.leader) == ((3, 4), {3, 4}, 3)
        assert lab.reassignments() == []
        assert view.leader_epoch == 5  # begun twice, one election, two that leave
        assert "/admin/reassign_partitions" not in lab.znodes()


@pytest.mark.parametrize("goes", ["kill 1", "delete_controller"])
def test_the_next_controller_goes_on(generation: str, goes: str) -> None:
    """The controller dies, or is another one, while the new replicas catch up."""
    with opened(generation, (2, 3)) as lab:
        until_quiet(lab.kill, 5)
        until_quiet(lab.reassign, {ORDERS: [4, 5]}, through="zookeeper")
        play(lab, f"{goes}; settle")
        assert lab.controller.epoch == 2
        assert [r.waiting for r in lab.reassignments()] == [(5,)]
        until_quiet(lab.start, 5)
        assert lab.partition(*ORDERS).replicas == (4, 5)
        assert lab.reassignments() == []


@pytest.mark.parametrize("moments", range(0, 60, 6))
def test_the_controller_may_die_at_any_moment_of_a_move(generation: str, moments: int) -> None:
    """AR is written last, so that the next controller can go on from any point."""
    with opened(generation, (2, 3)) as lab:
        lab.reassign({ORDERS: [3, 4]}, through="zookeeper")
        lab.step(moments)
        until_quiet(lab.kill, 1)
        view = lab.partition(*ORDERS)
        assert (view.replicas, set(view.isr), view.leader) == ((3, 4), {3, 4}, 3)
        assert lab.reassignments() == []
        assert {r.broker for r in lab.replicas()} == {3, 4}


# Requests that are dropped


@legacy
def test_requests_that_cannot_be_are_taken_out_of_the_znode(generation: str) -> None:
    """A topic being deleted, an unknown partition, and replicas that are there already; the others go on."""
    topics = {topic: {0: [1, 2]} for topic in ("doomed", "settled", "moving")}
    with settled(generation, topics, 4, QUIET | {"delete.topic.enable": True}) as lab:
        play(lab, "kill 2; settle; delete_topic doomed; settle")  # waits for broker 2
        since = len(lab.trace)
        ask_by_hand(lab, {("doomed", 0): [3, 4], ("settled", 0): [1, 2], ("moving", 0): [1, 3], ("nowhere", 0): [1]})
        logged = {r.action for r in lab.trace[since:] if r.kind == "controller"}
        if generation == "2.0":
            assert {"reassignment_skipped", "reassignment_unknown"} <= logged
            (needless,) = [r.detail for r in lab.trace[since:] if r.action == "reassignment_not_needed"]
            assert json.loads(needless or "")["replicas"] == [1, 2]
        else:
            failed = lab.trace.slice(since, action="reassignment_failed")
            texts = [json.loads(r.detail or "{}")["error"] for r in failed]
            assert "reassignment_skipped" in logged
            assert sorted(texts) == [
                "Attempt to reassign partition [nowhere,0] that doesn't exist",
                "Partition [settled,0] to be reassigned is already assigned to replicas 1,2. Ignoring request for "
                "partition reassignment",
            ]
        assert lab.partition("moving", 0).replicas == (1, 3)
        assert lab.partition("settled", 0).replicas == (1, 2)
        assert not [r for r in lab.trace[since:] if r.kind in ("partition", "replica") and r.topic == "settled"]
        assert "/admin/reassign_partitions" not in lab.znodes()


def test_2_4_says_why_requests_are_dropped() -> None:
    with opened("2.4", (1, 2)) as lab:
        since = len(lab.trace)
        ask_by_hand(lab, {("nowhere", 0): [1], ORDERS: [1, 3]})
        (reported,) = [json.loads(r.detail or "") for r in lab.trace[since:] if r.action == "zk_reassignment_failed"]
        assert reported["partitions"] == {"nowhere-0": "UNKNOWN_TOPIC_OR_PARTITION"}
        assert lab.partition(*ORDERS).replicas == (1, 3)
        assert "/admin/reassign_partitions" not in lab.znodes()


@pytest.mark.parametrize(("generation", "replicas"), [("0.10", (1, 3)), ("2.0", (1, 2))])
def test_0_10_takes_new_partitions_from_a_request_that_is_changed_and_2_0_does_not(
    generation: str, replicas: tuple[int, ...]
) -> None:
    """KAFKA-6146: since 1.1 only the creation of the znode counts."""
    with settled(generation, {"orders": {0: [1, 2], 1: [1, 2]}}, 4, QUIET) as lab:
        until_quiet(lab.kill, 4)
        until_quiet(lab.reassign, {ORDERS: [3, 4]})
        ask_by_hand(lab, {ORDERS: [3, 4], ("orders", 1): [1, 3]})
        assert lab.partition("orders", 1).replicas == replicas
        assert set(lab.partition("orders", 0).replicas) == {1, 2, 3, 4}  # still waits for 4


@legacy
def test_0_10_takes_finished_partitions_out_one_by_one_and_2_0_remembers_the_rest(generation: str) -> None:
    """KAFKA-6617: reads of the request while three partitions finish."""
    with settled(generation, {"orders": {n: [1, 2] for n in range(3)}}, 3, QUIET) as lab:
        since = len(lab.trace)
        until_quiet(lab.reassign, {("orders", n): [1, 3] for n in range(3)})
        read = lab.trace.slice(since, kind="zk", action="get", path="/admin/reassign_partitions")
        reads = len([r for r in read if r.actor != "admin"])
        assert {p.replicas for p in lab.partitions()} == {(1, 3)}
        # in 0.10 each is read to be taken out, and by the listener that its own write wakes
        assert reads == 1 if generation == "2.0" else reads >= 2 * 3


# KIP-455


def test_adding_and_removing_stand_in_the_topics_znode() -> None:
    with opened("2.4") as lab:
        lab.reassign({ORDERS: [3, 4]})
        view = lab.partition(*ORDERS)
        assert (view.replicas, view.adding, view.removing) == ((3, 4, 1, 2), (4,), (1, 2))
        assert json.loads(lab.znodes()["/brokers/topics/orders"][0]) == {
            "version": 2,
            "partitions": {"0": [3, 4, 1, 2]},
            "adding_replicas": {"0": [4]},
            "removing_replicas": {"0": [1, 2]},
        }
        assert "/admin/reassign_partitions" not in lab.znodes()  # the API leaves no request behind
        lab.settle()
        view = lab.partition(*ORDERS)
        assert (view.replicas, view.adding, view.removing) == ((3, 4), (), ())


def test_a_new_target_replaces_the_old_one_and_drops_its_replicas_at_once() -> None:
    with opened("2.4", (1, 2)) as lab:
        lab.reassign({ORDERS: [3, 4]})
        lab.run_for(0.01)
        since = len(lab.trace)
        until_quiet(lab.reassign, {ORDERS: [3, 5]})
        gone = [r.target for r in lab.trace[since:] if r.kind == "replica" and r.broker == 4]
        assert gone == ["OfflineReplica", "ReplicaDeletionStarted", "ReplicaDeletionSuccessful", "NonExistentReplica"]
        assert lab.partition(*ORDERS).replicas == (3, 5)


def test_a_cancelled_move_may_come_back_in_another_order() -> None:
    """[1,2,3] -> [3,4,2] runs as [3,4,2,1]; what is cancelled is [3,2,1]."""
    with opened("2.4") as lab:
        lab.reassign({ORDERS: [3, 4, 2]})
        assert lab.partition(*ORDERS).replicas == (3, 4, 2, 1)
        assert lab.cancel_reassignment([ORDERS]) is None
        lab.settle()
        view = lab.partition(*ORDERS)
        assert (view.replicas, view.adding, view.removing, set(view.isr)) == ((3, 2, 1), (), (), {1, 2, 3})


def test_the_api_takes_over_from_the_request_and_a_failover_does_not_revert_it() -> None:
    """KAFKA-9089: the partition leaves the znode before the API's target is begun."""
    with opened("2.4", (2, 3)) as lab:
        until_quiet(lab.kill, 6)
        until_quiet(lab.reassign, {ORDERS: [4, 6]}, through="zookeeper")
        lab.reassign({ORDERS: [4, 5]})
        play(lab, "kill 1; settle; start 6; settle")
        assert lab.partition(*ORDERS).replicas == (4, 5)
        assert "/admin/reassign_partitions" not in lab.znodes()


@pytest.mark.parametrize("requested", ['{"version":1,"partitions":[]}', "no json"])
def test_a_request_for_nothing_does_not_outlive_the_next_move(requested: str) -> None:
    """2.4 asks whether the znode exists, not whether it names a partition; the tool can write the next one then."""
    with opened("2.4", (2, 3)) as lab:
        until_quiet(lab.write_znode, "/admin/reassign_partitions", requested)
        assert "/admin/reassign_partitions" in lab.znodes()
        until_quiet(lab.reassign, {ORDERS: [4, 5]})
        assert "/admin/reassign_partitions" not in lab.znodes()
        until_quiet(lab.reassign, {ORDERS: [2, 3]}, through="zookeeper")
        assert lab.partition(*ORDERS).replicas == (2, 3)


@tabled
def test_the_api_refuses_with_kafkas_errors(target: list[int], code: str, text: str) -> None:
    with opened("2.4") as lab:
        assert refuses(ApiException, re.escape(text), lab.reassign, {ORDERS: target}).code == code
        refusal = refuses(ApiException, r"The partition does not exist.", lab.reassign, {("nowhere", 0): [1]})
        assert refusal.code == "UNKNOWN_TOPIC_OR_PARTITION"
        assert "\nreassign" not in lab.story


def test_what_is_refused_in_part_is_returned() -> None:
    with opened("2.4") as lab:
        refused = lab.reassign({ORDERS: [3, 4], ("nowhere", 0): [1]})
        assert refused == {"nowhere-0": "UNKNOWN_TOPIC_OR_PARTITION: The partition does not exist."}
        lab.settle()
        assert lab.partition(*ORDERS).replicas == (3, 4)


def test_a_move_of_a_partition_that_never_had_a_leader_fails_and_so_does_its_end() -> None:
    """Its replica has been dead since before it was made: Kafka finds no leader of it in its cache.

    Kafka 2.4.1: controller/KafkaController.scala, maybeTriggerPartitionReassignment (ApiError without a message)
    """
    general = "late-0: UNKNOWN_SERVER_ERROR: The server experienced an unexpected error when processing the request."
    with opened("2.4") as lab:
        until_quiet(lab.kill, 3)
        until_quiet(lab.create_topic, "late", assignment={0: [3]})
        for work in (lambda: lab.reassign({("late", 0): [4]}), lambda: lab.cancel_reassignment([("late", 0)])):
            with pytest.raises(ApiException) as refusal:
                work()
            assert (refusal.value.code, str(refusal.value)) == ("UNKNOWN_SERVER_ERROR", general)
        logged = [r.detail or "" for r in lab.trace.slice(kind="controller", action="reassignment_failed")]
        assert "reassign a partition that doesn't exist" in logged[0] and "key not found: late-0" in logged[1]
        with pytest.raises(ApiException, match="late-0: NO_REASSIGNMENT_IN_PROGRESS"):
            lab.cancel_reassignment([("late", 0), ("late", 0)])  # named twice, it is one
        until_quiet(lab.start, 3)
        assert lab.partition("late", 0).leader == 3


def test_what_is_on_its_way_in_a_partition_added_by_hand_is_not_read() -> None:
    """Kafka 2.4.1: controller/KafkaController.scala, processPartitionModifications: getReplicaAssignmentForTopics."""
    with opened("2.4") as lab:
        added = TopicZNode.encode({0: ReplicaAssignment((1, 2, 3)), 1: ReplicaAssignment((1, 2), (2,), (1,))}, 2)
        by_hand(lab, Set("/brokers/topics/orders", added))
        lab.settle()
        assert acting(lab).context.assignment(TopicPartition("orders", 1)) == ReplicaAssignment((1, 2))


def test_0_10_moves_a_partition_to_no_broker_and_still_knows_it() -> None:
    """So did 0.10.2.2: all copies go. Since KAFKA-6630 a partition without replicas is one that is not there.

    Kafka 0.10.2.2: controller/PartitionLeaderSelector.scala, ReassignedPartitionLeaderSelector;
    controller/PartitionStateMachine.scala, PartitionModificationsListener
    """
    with opened("0.10") as lab:
        ask_by_hand(lab, {ORDERS: []})
        (refused,) = [r for r in lab.trace if r.kind == "partition" and r.action == "refuse"]
        assert "partition  [orders,0] is empty" in (refused.detail or "")
        assert lab.partition("orders", 0).replicas == () and "/admin/reassign_partitions" not in lab.znodes()
        assert not lab.trace.slice(action="partitions_added")
        until_quiet(lab.write_znode, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [], "1": [2]}})
        (added,) = lab.trace.slice(action="partitions_added")
        assert json.loads(added.detail or "") == {"assignment": {"orders-1": [2]}}


def test_0_10_opens_the_batch_before_it_writes_a_leader_epoch() -> None:
    """Kafka 0.10.2.2: controller/KafkaController.scala, updateLeaderEpochAndSendRequest: no `try` around newBatch."""
    with opened("0.10") as lab:
        acting(lab).batch.stop_replica(2, TopicPartition(*ORDERS), False, None)
        lab.write_znode("/admin/reassign_partitions", ReassignPartitionsZNode.encode({ORDERS: [1, 4]}))
        lab.run_for(1)
        assert lab.partition(*ORDERS).leader_epoch == 0
        assert "might be lost" in lab.trace.slice(action="reassignment_failed").text()
        assert not lab.trace.slice(action="forcing_resignation")


def test_the_api_looks_for_the_controller_of_the_moment() -> None:
    """The controller has just died: the client waits until there is another one."""
    with opened("2.4", (2, 3)) as lab:
        lab.kill(1)
        assert lab.reassign({ORDERS: [3, 4]}) is None
        lab.settle()
        assert lab.partition(*ORDERS).replicas == (3, 4)


def test_a_move_that_is_running_stops_a_second_request(generation: str) -> None:
    with opened(generation, (1, 2)) as lab:
        until_quiet(lab.kill, 4)
        lab.reassign({ORDERS: [3, 4]}, through="zookeeper")
        with pytest.raises(BadInput, match="There is an existing assignment running"):
            lab.reassign({ORDERS: [3, 5]}, through="zookeeper")


def test_adding_partitions_keeps_what_is_moving(generation: str) -> None:
    """The tool writes back what it has read: since 2.4 also what is being added and removed."""
    with opened(generation, [1, 2], brokers=3) as lab:
        lab.disconnect(1, 3)
        lab.reassign({("orders", 0): [1, 3]})
        lab.run_for(2)
        before = TopicZNode.decode(lab.znodes()["/brokers/topics/orders"][0])
        assert before[0].is_being_reassigned is (generation == "2.4") and before[0].replicas == (1, 3, 2)
        lab.add_partitions("orders", 2)
        after = TopicZNode.decode(lab.znodes()["/brokers/topics/orders"][0])
        assert (sorted(after), after[0]) == ([0, 1], before[0])
        until_quiet(lab.heal)
        assert lab.partition("orders", 0).replicas == (1, 3) and lab.violations == ()


@pytest.mark.parametrize(("generation", "logged"), [("0.10", "key not found: [c,0]"), ("2.0", "Topic c doesn't exist")])
def test_a_reassignment_that_outlives_its_topic_stops_the_greeting_of_a_broker(generation: str, logged: str) -> None:
    """The controller fails over it; 2.0 has taken the partition into its picture by then, and knows the topic when it
    is made again."""
    config = {"delete.topic.enable": True} | QUIET
    with settled(generation, {"c": {0: [1]}}, 3, config) as lab:
        until_quiet(lab.kill, 3)
        lab.reassign({("c", 0): [1, 2, 3]})
        play(lab, "delete_topic c; settle; start 3; settle; kill 3; settle")
        assert acting(lab).context.topics == {}
        news = play(lab, "start 3; settle")
        errors = news.slice(action="error_processing")
        assert [json.loads(r.detail or "")["error"] for r in errors] == [logged]
        assert list(acting(lab).context.topics) == ["c"] * (generation == "2.0")
        assert acting(lab).context.all_topics == []
        until_quiet(lab.create_topic, "c", assignment={0: [2]})
        assert lab.partition("c", 0).leader == 2


@tabled
def test_2_4_groups_a_plan_by_topic_before_it_is_written(generation: str, plan: str, written: str) -> None:
    """As the recordings of `reassign_several_topics` show; `Aa` and `BB` have one hash code."""
    targets = {TopicPartition(topic, 0): (2, 1) for topic in plan.split()}
    assert [tp.topic for tp in as_written(targets, Generation(generation))] == written.split()


def test_the_assignment_of_a_topic_whose_znode_has_just_gone(generation: str) -> None:
    """Kafka 0.10.2.2: utils/ZkUtils.scala, updatePersistentPath creates it; 2.0.1: setTopicAssignmentRaw fails.

    Kafka 2.4.1: controller/KafkaController.scala, updateCurrentReassignment: ZooKeeper first, then memory.
    """
    with opened(generation) as lab:
        env = acting(lab)
        lab.world.run(env.zk.delete_tree("/brokers/topics/orders"))
        tp, moved = TopicPartition(*ORDERS), env.context.assignment(TopicPartition(*ORDERS)).reassign_to((4,))
        if generation == "0.10":
            lab.world.run(reassignment.assign(env, tp, (1, 2, 3)))
            assert json.loads(lab.znodes()["/brokers/topics/orders"][0])["partitions"] == {"0": [1, 2, 3]}
        elif generation == "2.0":
            with pytest.raises(StateChangeFailed, match="Topic orders doesn't exist"):
                lab.world.run(reassignment.assign(env, tp, (1, 2, 3)))
        else:
            with pytest.raises(StateChangeFailed, match="for orders-0 since the topic"):
                lab.world.run(reassignment_incremental.on_reassignment(env, tp, moved))
            assert 4 not in env.context.assigned(tp)


def test_the_version_of_a_request_is_not_looked_at(generation: str) -> None:
    """Kafka 2.0.1: zk/ZkData.scala, ReassignPartitionsZNode.decode; 0.10.2.2: utils/ZkUtils.scala,
    parsePartitionReassignmentData."""
    with settled(generation, {"orders": {0: [2, 3]}}, 4, QUIET) as lab:
        plan = {"version": 2, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 4]}]}
        until_quiet(lab.write_znode, "/admin/reassign_partitions", plan)
        assert lab.partition("orders", 0).replicas == (2, 4)
