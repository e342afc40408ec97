"""All 49 moves of a replica, asked of the table and of the machine of a running controller."""

import itertools

import pytest
from machines import Bench, bench, requests

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.errors import InvalidTransition
from kafka_ctl.replica import INELIGIBLE, NEW, NON_EXISTENT, OFFLINE, ONLINE, REPLICA, STARTED, SUCCESSFUL, ReplicaState
from kafka_ctl.requests import Response

MOVES = list(itertools.product(ReplicaState, repeat=2))
LEGAL = {
    (NON_EXISTENT, NEW): "create",
    (NEW, ONLINE): "join",
    (ONLINE, ONLINE): "tell",
    (OFFLINE, ONLINE): "tell",
    (INELIGIBLE, ONLINE): "tell",
    (NEW, OFFLINE): "stop",
    (ONLINE, OFFLINE): "stop",
    (OFFLINE, OFFLINE): "stop",
    (INELIGIBLE, OFFLINE): "stop",
    (OFFLINE, STARTED): "delete",
    (STARTED, SUCCESSFUL): "confirm",
    (STARTED, INELIGIBLE): "give_up",
    (SUCCESSFUL, NON_EXISTENT): "forget",
}
"""In 0.10 and 2.0; 2.4 has one more."""
ORDERS = TopicPartition("orders", 0)


def legal(generation: str) -> dict[tuple[ReplicaState, ReplicaState], str]:
    return LEGAL | ({(OFFLINE, INELIGIBLE): "give_up"} if generation == "2.4" else {})


def named(move: tuple[ReplicaState, ReplicaState]) -> str:
    return f"{move[0]}->{move[1]}"


def put(stage: Bench, partition: int, state: ReplicaState, broker: int = 3) -> Replica:
    """The replica of a partition of `orders` on broker 3, a follower, in this state."""
    replica = Replica("orders", partition, broker)
    stage.context.replicas[replica] = state
    if state is NON_EXISTENT:
        del stage.context.replicas[replica]
    return replica


@pytest.mark.parametrize("move", MOVES, ids=named)
def test_the_table_and_the_machine(move: tuple[ReplicaState, ReplicaState], generation: str) -> None:
    """A legal move is made; an illegal one is refused and recorded, and does not keep others from moving."""
    source, target = move
    table = REPLICA[generation]
    assert table.allows(*move) == (move in legal(generation))
    if move in legal(generation):
        assert table.find("orders-0@3", *move).action == legal(generation)[move]
    with bench(generation) as stage:
        replica = put(stage, 0, source)
        companion = put(stage, 1, next(s for s, t in LEGAL if t is target))
        did = stage.replicas([replica, companion], target)
        states = stage.context.replicas
        moved = {Replica(r.topic, r.partition, r.broker): r for r in did if r.kind == "replica"}
        assert moved[companion].error is None
        assert states.get(companion, NON_EXISTENT) is target
        record = moved[replica]
        assert (record.source, record.target) == move
        if move in legal(generation):
            assert (record.action, record.error) == (legal(generation)[move], None)
            assert states.get(replica, NON_EXISTENT) is target
        else:
            refused = InvalidTransition("orders-0@3", source, target, table.previous(target))
            assert (record.action, record.error) == ("refuse", "InvalidTransition")
            assert record.detail == str(refused)
            assert states.get(replica, NON_EXISTENT) is source


def test_the_machine_performs_every_action() -> None:
    """`confirm` and `give_up` only record; the others have methods of their own."""
    assert {a for a in LEGAL.values() if ReplicaStateMachine.method_of(a) is None} == {"confirm", "give_up"}


# Side effects


@pytest.mark.parametrize("move", [m for m, action in LEGAL.items() if action in ("confirm", "give_up")], ids=named)
def test_answers_only_change_the_state(stage: Bench, move: tuple[ReplicaState, ReplicaState]) -> None:
    assert [r.kind for r in stage.replicas([put(stage, 0, move[0])], move[1])] == ["replica"]


def test_a_new_replica_is_reported_who_leads(stage: Bench) -> None:
    """LeaderAndIsr, saying that it is new, to it alone; metadata to everybody; nothing is read or written."""
    did = stage.replicas([put(stage, 0, NON_EXISTENT)], NEW)
    assert requests(did) == [("LeaderAndIsr", "orders-0", 3), ("UpdateMetadata", "orders-0", None)]
    assert [r.detail for r in did if r.action == "LeaderAndIsr" and r.topic] == ["is_new"]
    assert not [r for r in did if r.kind == "zk"]


def test_a_new_replica_of_a_partition_without_leader_is_reported_nothing(stage: Bench) -> None:
    tp = stage.plan("parcels")
    replica = Replica(*tp, 3)
    assert requests(stage.replicas([replica], NEW)) == []
    assert stage.context.replicas[replica] is NEW


def test_a_leader_cannot_be_a_new_replica(stage: Bench) -> None:
    did = stage.replicas([put(stage, 0, NON_EXISTENT, broker=1)], NEW)
    (refused,) = [r for r in did if r.kind == "replica"]
    assert (refused.action, refused.error) == ("refuse", "StateChangeFailed")
    assert refused.detail == (
        "Replica 1 for partition orders-0 cannot be moved to NewReplica state as it is being requested to become leader"
    )


def test_joining_makes_it_assigned(stage: Bench) -> None:
    """It has been told already: no request."""
    stage.context.assign(ORDERS, (1, 2))
    assert requests(stage.replicas([put(stage, 0, NEW)], ONLINE)) == []
    assert stage.context.assigned(ORDERS) == (1, 2, 3)
    stage.replicas([put(stage, 0, NEW)], ONLINE)
    assert stage.context.assigned(ORDERS) == (1, 2, 3)


@pytest.mark.parametrize("source", [ONLINE, OFFLINE, INELIGIBLE])
def test_a_replica_that_is_back_is_reported_who_leads(stage: Bench, source: ReplicaState) -> None:
    """What the controller knows, without asking ZooKeeper; it is not new."""
    did = stage.replicas([put(stage, 0, source)], ONLINE)
    assert requests(did) == [("LeaderAndIsr", "orders-0", 3), ("UpdateMetadata", "orders-0", None)]
    assert [r.detail for r in did if r.action == "LeaderAndIsr" and r.topic] == [None]
    assert not [r for r in did if r.kind == "zk"]


@pytest.mark.parametrize("source", [NEW, ONLINE, OFFLINE, INELIGIBLE])
def test_a_stopped_follower_leaves_the_isr(stage: Bench, source: ReplicaState) -> None:
    """It is written; all other replicas are told; the one that stops is told last to stop."""
    did = stage.replicas([put(stage, 0, source)], OFFLINE)
    assert requests(did) == [
        ("LeaderAndIsr", "orders-0", 1),
        ("LeaderAndIsr", "orders-0", 2),
        ("UpdateMetadata", "orders-0", None),
        ("StopReplica", "orders-0", 3),
    ]
    assert stage.context.leadership[ORDERS] == LeaderAndIsr(1, (1, 2), 1, 1, 1)
    view = stage.lab.partition("orders", 0)
    assert (view.leader, view.isr, view.leader_epoch, view.zk_version) == (1, (1, 2), 1, 1)


def test_a_stopped_leader_leaves_nobody_in_its_place(stage: Bench) -> None:
    stage.replicas([put(stage, 0, ONLINE, broker=1)], OFFLINE)
    assert stage.context.leadership[ORDERS][:3] == (-1, (2, 3), 1)


def test_the_last_member_stays_in_the_isr(stage: Bench) -> None:
    """So that it can lead again when it returns. Of three that stop together, Scala takes 2 first and 3 last."""
    stage.replicas([put(stage, 0, ONLINE, broker) for broker in (1, 2, 3)], OFFLINE)
    assert stage.context.leadership[ORDERS][:3] == (-1, (3,), 3)


def test_who_is_not_in_the_isr_is_not_taken_out(stage: Bench) -> None:
    """Nothing is written, but the others are told all the same."""
    stage.replicas([put(stage, 0, ONLINE)], OFFLINE)
    did = stage.replicas([put(stage, 0, OFFLINE)], OFFLINE)
    assert [r.action for r in did if r.kind == "zk"] == ["get"]
    assert requests(did)[:2] == [("LeaderAndIsr", "orders-0", 1), ("LeaderAndIsr", "orders-0", 2)]


def test_a_replica_without_leadership_only_stops(stage: Bench) -> None:
    """KAFKA-6650."""
    tp = stage.plan("parcels")
    replica = Replica(*tp, 3)
    stage.context.replicas[replica] = ONLINE
    assert requests(stage.replicas([replica], OFFLINE)) == [("StopReplica", "parcels-0", 3)]
    assert stage.context.replicas[replica] is OFFLINE


def test_a_newer_controller_has_written(stage: Bench) -> None:
    """The replica keeps its state, and its broker is told to stop all the same: that was batched before."""
    stage.context.epoch = 0
    replica = put(stage, 0, ONLINE)
    did = stage.replicas([replica], OFFLINE)
    (refused,) = [r for r in did if r.kind == "replica"]
    assert refused.error == "StateChangeFailed"
    assert "Aborting state change by this controller" in (refused.detail or "")
    assert stage.context.replicas[replica] is ONLINE
    assert requests(did) == [("StopReplica", "orders-0", 3)]


def test_a_missing_state_znode_is_a_failure(stage: Bench) -> None:
    tp = stage.plan("parcels")
    stage.context.leadership[tp] = LeaderAndIsr(1, (1, 2, 3))
    replica = Replica(*tp, 3)
    stage.context.replicas[replica] = ONLINE
    (refused,) = [r for r in stage.replicas([replica], OFFLINE) if r.kind == "replica"]
    assert refused.detail == (
        "Failed to change state of replica 3 for partition parcels-0 since the leader and isr path in zookeeper is "
        "empty"
    )


def test_a_deletion_is_asked_of_the_broker() -> None:
    """And its answer comes to whoever asked for it."""
    answers: list[tuple[int, Response]] = []
    with bench() as stage:
        replica = put(stage, 0, OFFLINE)
        machine = stage.controller.replica_machine
        did = stage.carry_out(machine.handle([replica], STARTED, lambda *answer: answers.append(answer)))
        assert requests(did) == [("StopReplica", "orders-0", 3)]
        assert [r.detail for r in did if r.kind == "request" and r.topic] == ["delete"]
        stage.lab.settle()
        assert [(broker, answer.errors) for broker, answer in answers] == [(3, {ORDERS: None})]
        assert "orders-0" not in map(str, stage.lab.brokers[3].follows)


def test_a_forgotten_replica_is_no_longer_assigned(stage: Bench) -> None:
    stage.replicas([put(stage, 0, SUCCESSFUL)], NON_EXISTENT)
    assert stage.context.assigned(ORDERS) == (1, 2)
    assert Replica("orders", 0, 3) not in stage.context.replicas


# Batches


def test_replicas_go_broker_by_broker(stage: Bench) -> None:
    """In the order of Scala's groups, whatever was asked first; the requests of all leave together."""
    order = [Replica("orders", n, b) for n, b in ((0, 3), (0, 2), (1, 3), (1, 2))]
    did = stage.replicas(order, ONLINE)
    assert [(r.broker, r.partition) for r in did if r.kind == "replica"] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    assert [r.kind for r in did] == ["replica"] * 4 + ["request"] * 6


def test_stop_replica_requests_are_not_grouped(stage: Bench) -> None:
    """In 2.0 an empty request leaves first, then one for each replica (KAFKA-8294)."""
    stage.replicas([put(stage, n, ONLINE) for n in (0, 1, 2)], OFFLINE)
    seen = len(stage.lab.trace)
    stage.lab.settle()
    sent = [r for r in stage.lab.trace[seen:] if r.action == "StopReplica" and r.target == "sent"]
    sent += [r for r in stage.lab.trace[:seen] if r.action == "StopReplica" and r.target == "sent"]
    assert sorted((r.detail or "").split()[0] for r in sent) == ["partitions=0"] + ["partitions=1"] * 3


def test_nothing_to_move_is_no_batch(stage: Bench) -> None:
    assert stage.replicas([], ONLINE) == []
