"""All 16 moves of a partition, asked of the table and of the machine of a running controller."""

import itertools
from typing import Any

import pytest
from machines import Bench, bench, requests

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller.partition_machine import PartitionStateMachine, no_leader
from kafka_ctl.election import Strategy
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE, PARTITION, PartitionState
from kafka_ctl.trace import Record

MOVES = list(itertools.product(PartitionState, repeat=2))
LEGAL = {
    (NON_EXISTENT, NEW): "assign",
    (NEW, ONLINE): "initialize",
    (ONLINE, ONLINE): "elect",
    (OFFLINE, ONLINE): "elect",
    (NEW, OFFLINE): "mark",
    (ONLINE, OFFLINE): "mark",
    (OFFLINE, OFFLINE): "mark",
    (OFFLINE, NON_EXISTENT): "mark",
}
ORDERS = TopicPartition("orders", 0)


def named(move: tuple[PartitionState, PartitionState]) -> str:
    return f"{move[0]}->{move[1]}"


def put(stage: Bench, name: str, number: int, state: PartitionState) -> TopicPartition:
    """A partition in this state: one of `orders` if it is to have a leader, else one of a topic of its own."""
    tp = TopicPartition("orders", number) if state in (ONLINE, OFFLINE) else stage.plan(name)
    stage.context.partitions[tp] = state
    if state is NON_EXISTENT:
        del stage.context.partitions[tp]
    return tp


@pytest.mark.parametrize("move", MOVES, ids=named)
def test_the_table_and_the_machine(move: tuple[PartitionState, PartitionState], generation: str) -> None:
    """A legal move is made; an illegal one is refused and recorded, and does not keep others from moving."""
    source, target = move
    table = PARTITION[generation]
    assert table.allows(*move) == (move in LEGAL)
    if move in LEGAL:
        assert table.find("orders-0", *move).action == LEGAL[move]
    with bench(generation) as stage:
        tp = put(stage, "parcels", 0, source)
        companion = put(stage, "letters", 1, next(s for s, t in LEGAL if t is target))
        did = stage.partitions([tp, companion], target)
        states = stage.context.partitions
        moved = {(r.topic, r.partition): r for r in did if r.kind == "partition"}
        assert moved[companion].error is None
        assert states[companion] is target
        record = moved[tp]
        assert (record.source, record.target) == move
        assert record.replicas is None or record.replicas == (1, 2, 3)
        if move in LEGAL:
            assert (record.action, record.error) == (LEGAL[move], None)
            assert states[tp] is target
        else:
            assert (record.action, record.error) == ("refuse", "InvalidTransition")
            assert record.detail == str(_refusal(tp, source, target, generation))
            assert states[tp] is source


def _refusal(tp: TopicPartition, source: str, target: str, generation: str) -> str:
    entered = " or ".join(PARTITION[generation].previous(target))
    return f"{tp} cannot move {source} -> {target}; {target} is entered from {entered}"


def test_the_machine_performs_every_action() -> None:
    """`assign` and `mark` only record; the others have methods of their own."""
    assert {a for a in LEGAL.values() if PartitionStateMachine.method_of(a) is None} == {"assign", "mark"}


# Side effects


def reported(did: list[Record], tp: TopicPartition) -> list[tuple[str, int | None]]:
    return [(name, broker) for name, partition, broker in requests(did) if partition == str(tp)]


@pytest.mark.parametrize("move", [m for m, action in LEGAL.items() if action in ("assign", "mark")], ids=named)
def test_assign_and_mark_are_between_the_controller_and_itself(
    stage: Bench, move: tuple[PartitionState, PartitionState]
) -> None:
    """Nothing is written and nobody is told."""
    tp = put(stage, "parcels", 0, move[0])
    assert [r.kind for r in stage.partitions([tp], move[1])] == ["partition"]


def test_the_first_leader(stage: Bench) -> None:
    """The first live replica leads, all live ones are the ISR; it is written, and they are told that it is new."""
    tp = stage.plan("parcels", (3, 1, 2))
    stage.context.partitions[tp] = NEW
    stage.context.shutting_down.add(3)
    did = stage.partitions([tp], ONLINE)
    assert reported(did, tp) == [("LeaderAndIsr", 1), ("LeaderAndIsr", 2), ("UpdateMetadata", None)]
    assert {r.detail for r in did if r.action == "LeaderAndIsr"} == {"is_new"}
    assert stage.context.leadership[tp] == LeaderAndIsr(1, (1, 2), 0, 0, 1)
    data, version, owner = stage.lab.znodes()["/brokers/topics/parcels/partitions/0/state"]
    assert data == b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'
    assert (version, owner) == (0, 0)


def test_nobody_to_lead_first(stage: Bench) -> None:
    """It stays New, and others go on."""
    dead, fine = stage.plan("dead", (8, 9)), stage.plan("fine", (1,))
    stage.context.partitions |= {dead: NEW, fine: NEW}
    did = stage.partitions([dead, fine], ONLINE)
    refused, moved = sorted((r for r in did if r.kind == "partition"), key=lambda r: r.topic or "")
    assert (refused.error, refused.action, moved.action) == ("StateChangeFailed", "refuse", "initialize")
    assert refused.detail == (
        f"Controller {stage.controller.id} epoch 1 encountered error during state change of partition dead-0 from "
        "New to Online, assigned replicas are [], live brokers are [Set(1, 2, 3)]. No assigned replica is alive."
    )
    assert (stage.context.partitions[dead], stage.context.partitions[fine]) == (NEW, ONLINE)


def test_somebody_wrote_the_first_state_already(stage: Bench) -> None:
    """NODEEXISTS: it stays New, and the controller's picture of it as well."""
    stage.context.partitions[ORDERS] = NEW
    known = stage.context.leadership.pop(ORDERS)
    did = stage.partitions([ORDERS], ONLINE)
    assert [(r.action, r.error) for r in did if r.kind == "partition"] == [("refuse", "NodeExists")]
    assert stage.context.partitions[ORDERS] is NEW
    assert ORDERS not in stage.context.leadership
    assert known.leader == 1


@pytest.mark.parametrize("state", [ONLINE, OFFLINE])
def test_an_election(stage: Bench, state: PartitionState) -> None:
    """Read, elect, write on condition of the version read; the live replicas are told, and it is not new to them."""
    stage.context.partitions[ORDERS] = state
    stage.context.shutting_down.add(1)
    did = stage.partitions([ORDERS], ONLINE, Strategy.OFFLINE)
    election = next(r for r in did if r.kind == "election")
    assert (election.action, election.leader, election.isr, election.target) == ("offline", 2, (2, 3), "clean")
    assert stage.context.leadership[ORDERS] == LeaderAndIsr(2, (2, 3), 1, 1, 1)
    assert reported(did, ORDERS) == [("LeaderAndIsr", 2), ("LeaderAndIsr", 3), ("UpdateMetadata", None)]
    assert {r.detail for r in did if r.action == "LeaderAndIsr" and r.topic} == {None}
    assert [r.action for r in did if r.kind == "zk"] == ["get", "set"]
    assert stage.lab.partition("orders", 0).leader == 2


RECEIVERS = {
    # Strategy, brokers shutting down: leader, ISR, who is told. Replicas 1,2,3, ISR 1,2,3.
    (Strategy.PREFERRED, ()): (1, (1, 2, 3), [1, 2, 3]),
    (Strategy.PREFERRED, (2,)): (1, (1, 2, 3), [1, 2, 3]),
    (Strategy.CONTROLLED_SHUTDOWN, (1,)): (2, (2, 3), [2, 3]),
    (Strategy.CONTROLLED_SHUTDOWN, (1, 2)): (3, (3,), [3]),
    (Strategy.OFFLINE, (2,)): (1, (1, 3), [1, 3]),
}


@pytest.mark.parametrize(("asked", "wanted"), RECEIVERS.items(), ids=lambda v: "-".join(map(str, v)) if v else "")
def test_who_leads_and_who_is_reported(asked: tuple[Strategy, tuple[int, ...]], wanted: tuple[int, Any, Any]) -> None:
    """By strategy, as Kafka 2.0 has it; in a controlled shutdown the one that leaves is not told (KAFKA-7482)."""
    (strategy, leaving), (leader, isr, receivers) = asked, wanted
    with bench() as stage:
        stage.context.shutting_down |= set(leaving)
        did = stage.partitions([ORDERS], ONLINE, strategy)
        assert stage.context.leadership[ORDERS][:3] == (leader, isr, 1)
        assert [broker for name, broker in reported(did, ORDERS) if name == "LeaderAndIsr"] == receivers


def test_a_preferred_leader_is_elected_again_and_the_epoch_rises(stage: Bench) -> None:
    """In 2.0; one field of the generation says so."""
    before = stage.context.leadership[ORDERS]
    stage.partitions([ORDERS], ONLINE, Strategy.PREFERRED)
    assert stage.context.leadership[ORDERS] == before._replace(leader_epoch=1, zk_version=1)


@pytest.mark.parametrize(
    ("strategy", "unclean", "error", "text"),
    [
        (Strategy.OFFLINE, False, "NoReplicaOnline",
         "No broker in ISR for partition [orders,0] is alive. Live brokers are: [Set(1, 2, 3)], "
         "ISR brokers are: [9]"),
        (Strategy.OFFLINE, True, "NoReplicaOnline",
         "No replica for partition [orders,0] is alive. Live brokers are: [Set(1, 2, 3)], "
         "Assigned replicas are: [List(8, 9)]"),
        (Strategy.REASSIGN, False, "NoReplicaOnline",
         "None of the reassigned replicas for partition [orders,0] are in-sync with the leader. Current leader and "
         'ISR: [{"leader":9,"leader_epoch":0,"isr":[9]}]'),
        (Strategy.PREFERRED, False, "StateChangeFailed",
         "encountered error while electing leader for partition [orders,0] due to: Preferred replica 8 for partition "
         "[orders,0] is either not alive or not in the isr. Current leader and ISR: "
         '[{"leader":9,"leader_epoch":0,"isr":[9]}].'),
        (Strategy.CONTROLLED_SHUTDOWN, False, "StateChangeFailed",
         "encountered error while electing leader for partition [orders,0] due to: No other replicas in ISR 9 for "
         "[orders,0] besides shutting down brokers 3."),
    ],
)  # fmt: skip
def test_each_selector_of_0_10_says_in_its_own_words_that_nobody_can_win(
    strategy: Strategy, unclean: bool, error: str, text: str
) -> None:
    with bench("0.10") as stage:
        context, tp = stage.context, TopicPartition("orders", 0)
        context.assign(tp, (8, 9))
        context.reassigning[tp] = (8, 9)
        context.shutting_down = {3} if strategy is Strategy.CONTROLLED_SHUTDOWN else set()
        failed = no_leader(stage.controller, tp, strategy, LeaderAndIsr(9, (9,)), {"orders": unclean})
        assert (type(failed).__name__, str(failed)) == (error, text)


def test_an_election_that_nobody_can_win(stage: Bench) -> None:
    """The partition stays Offline, nothing is written, nobody is told, and the others are elected."""
    lost, fine = TopicPartition("orders", 0), TopicPartition("orders", 1)
    stage.context.partitions |= {lost: OFFLINE, fine: OFFLINE}
    stage.context.offline_dirs = {broker: {lost} for broker in (1, 2, 3)}
    did = stage.partitions([lost, fine], ONLINE)
    refused = next(r for r in did if r.action == "refuse")
    assert (refused.topic, refused.partition, refused.error) == ("orders", 0, "StateChangeFailed")
    assert refused.detail == (
        "Failed to elect leader for partition orders-0 under strategy OfflinePartitionLeaderElectionStrategy"
    )
    assert (stage.context.partitions[lost], stage.context.partitions[fine]) == (OFFLINE, ONLINE)
    assert reported(did, lost) == []
    assert stage.lab.partition("orders", 0).leader_epoch == 0


def test_an_unclean_election_is_asked_for_by_topic(stage: Bench) -> None:
    stage.lab.create_topic("risky", assignment={0: [1, 2]}, config={"unclean.leader.election.enable": True})
    stage.lab.settle()
    tp = TopicPartition("risky", 0)
    stage.lab.lag(2, "risky", 0)
    stage.lab.settle()
    stage.context.partitions[tp] = OFFLINE
    stage.context.offline_dirs = {1: {tp}}
    did = stage.partitions([tp], ONLINE)
    election = next(r for r in did if r.kind == "election")
    assert (election.leader, election.isr, election.target) == (2, (2,), "unclean")


def test_a_newer_controller_has_written(stage: Bench) -> None:
    """The election is given up: somebody else is controller."""
    stage.context.partitions[ORDERS] = OFFLINE
    stage.context.epoch = 0
    did = stage.partitions([ORDERS], ONLINE)
    (refused,) = [r for r in did if r.kind == "partition"]
    assert (refused.error, stage.context.partitions[ORDERS]) == ("StateChangeFailed", OFFLINE)
    assert "went through a soft failure and another controller was elected with epoch 1" in (refused.detail or "")


def test_a_partition_without_state_cannot_be_elected(stage: Bench) -> None:
    tp = stage.plan("parcels")
    stage.context.partitions[tp] = OFFLINE
    (refused,) = [r for r in stage.partitions([tp], ONLINE) if r.kind == "partition"]
    assert refused.detail == "LeaderAndIsr information doesn't exist for partition parcels-0 in OfflinePartition state"


def test_nothing_to_move_is_no_batch(stage: Bench) -> None:
    assert stage.partitions([], ONLINE) == []
