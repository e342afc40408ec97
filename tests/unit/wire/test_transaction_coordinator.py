"""The coordinator of transactions without sockets, on virtual time: its states, who coordinates, and its markers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import cast

import pytest
from prose import refuses

from kafka_ctl import TopicPartition
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.errors import InvalidTransition
from kafka_ctl.requests import Response, WriteTxnMarkersRequest
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.wire import transaction_coordinator
from kafka_ctl.wire.batches import read_batch
from kafka_ctl.wire.contents import ProducerEpochs, coordinator_epoch, marker
from kafka_ctl.wire.groups import offsets_partition
from kafka_ctl.wire.schema import Refusal
from kafka_ctl.wire.transaction_coordinator import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    EXPIRY,
    LAST_EPOCH,
    LONGEST,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    RETRY,
    TRANSACTION,
    TransactionCoordinator,
    TransactionLog,
    TransactionState,
)

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
Answer = Callable[[int, WriteTxnMarkersRequest], Response]


class Network:
    """Records the markers that are sent, and answers them; `fails` names brokers that are not reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.fails: set[int] = set()
        self.errors: dict[TopicPartition, str] = {}

    async def call(self, source: int, target: int, request: WriteTxnMarkersRequest) -> tuple[Response, int]:
        self.sent.append((target, request))
        await asyncio.sleep(0)
        if target in self.fails:
            raise ConnectionRefusedError("nobody is there")
        return Response(errors={tp: self.errors.get(tp) for tp in request.partitions}), -1


class Broker:
    """As much of a broker process as a coordinator sees."""

    def __init__(self, id: int, cluster: Cluster) -> None:
        self.id, self.clock, self.network = id, cluster.clock, cluster.network
        self.metadata = {A: LeaderAndIsr(2, (2,)), B: LeaderAndIsr(3, (3,))}
        self.live_brokers: tuple[int, ...] = ()
        self.tasks: list[asyncio.Task[None]] = []
        self.coordinator = TransactionCoordinator(cast(BrokerProcess, self), cluster.log)

    def spawn(self, coro: Coroutine[object, None, None]) -> asyncio.Task[None]:
        self.tasks.append(self.clock.spawn(coro))
        return self.tasks[-1]

    def hears(self, *live: int) -> TransactionCoordinator:
        """It is told who is alive."""
        self.live_brokers = live
        self.coordinator.metadata_changed()
        return self.coordinator

    def dies(self) -> None:
        for task in self.tasks:
            task.cancel()


class Cluster:
    """Three brokers that have heard of each other."""

    def __init__(self) -> None:
        self.clock, self.log, self.network = VirtualClock(), TransactionLog(), Network()
        self.brokers = {id: Broker(id, self) for id in (1, 2, 3)}
        for broker in self.brokers.values():
            broker.hears(1, 2, 3)
        self.first = self.brokers[1].coordinator

    def begin(self, *partitions: TopicPartition, timeout: float = 60.0) -> tuple[str, int, int]:
        """A transaction that has begun: the id, the producer, its epoch."""
        who = "t", *self.first.init_producer_id("t", timeout)
        if partitions:
            self.first.add_partitions(*who, partitions)
        return who

    @property
    def state(self) -> TransactionState:
        return self.log.ids["t"].state


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.clock.close()


def refused(what: Callable[[], object]) -> str:
    with pytest.raises(Refusal) as error:
        what()
    return str(error.value)


PREVIOUS = {
    EMPTY: {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    ONGOING: {ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    PREPARE_COMMIT: {ONGOING},
    PREPARE_ABORT: {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: {PREPARE_COMMIT},
    COMPLETE_ABORT: {PREPARE_ABORT},
    DEAD: {EMPTY, COMPLETE_ABORT, COMPLETE_COMMIT},
    PREPARE_EPOCH_FENCE: {ONGOING},
}
"""Kafka 2.0.1: coordinator/transaction/TransactionMetadata.scala, validPreviousStates"""


def test_the_moves_are_kafkas() -> None:
    """And the coordinator has a method for each."""
    assert {state: set(TRANSACTION.previous(state)) for state in TransactionState} == PREVIOUS
    assert TRANSACTION.problems(TransactionCoordinator) == []


def test_a_transaction_makes_no_other_move(cluster: Cluster) -> None:
    cluster.begin()
    refuses(InvalidTransition, "transaction t", cluster.first.move, cluster.log.ids["t"], COMPLETE_COMMIT)
    assert cluster.state == EMPTY


@pytest.mark.parametrize(
    ("commits", "prepared", "complete"),
    [(True, PREPARE_COMMIT, COMPLETE_COMMIT), (False, PREPARE_ABORT, COMPLETE_ABORT)],
)
def test_each_leader_gets_its_markers(
    cluster: Cluster, commits: bool, prepared: TransactionState, complete: TransactionState
) -> None:
    """It is decided at once; complete, when every partition has its marker. The group's partition is with broker 1."""
    who = cluster.begin(A, B)
    group = offsets_partition("g")
    cluster.first.add_partitions(*who, [group, A])
    assert cluster.log.ids["t"].partitions == {A, B, group}
    cluster.first.end(*who, commits)
    assert (cluster.state, cluster.network.sent) == (prepared, [])
    assert refused(lambda: cluster.first.end(*who, commits)) == "CONCURRENT_TRANSACTIONS"
    assert refused(lambda: cluster.first.add_partitions(*who, [A])) == "CONCURRENT_TRANSACTIONS"
    assert refused(lambda: cluster.first.init_producer_id("t", 1.0)) == "CONCURRENT_TRANSACTIONS"
    cluster.clock.run_for(0.01)
    _, producer, epoch = who
    expected = [
        (id, WriteTxnMarkersRequest(producer, epoch, commits, 0, (tp,))) for id, tp in ((1, group), (2, A), (3, B))
    ]
    assert (cluster.state, cluster.network.sent) == (complete, expected)
    cluster.first.end(*who, commits)
    assert refused(lambda: cluster.first.end(*who, not commits)) == "INVALID_TXN_STATE"
    cluster.first.add_partitions(*who, [B])
    assert (cluster.state, cluster.log.ids["t"].partitions) == (ONGOING, {B})


def test_markers_are_sent_until_they_are_written(cluster: Cluster) -> None:
    """To the new leader, too; a partition that was deleted needs none, and one without a leader waits."""
    who = cluster.begin(A, B)
    network, metadata = cluster.network, cluster.brokers[1].metadata
    network.fails, network.errors = {2}, {B: "NOT_LEADER_FOR_PARTITION"}
    cluster.first.end(*who, True)
    cluster.clock.run_for(0.9 * RETRY)
    assert [target for target, _ in network.sent] == [2, 3]
    assert (cluster.state, cluster.log.ids["t"].partitions) == (PREPARE_COMMIT, {A, B})
    network.errors = {}
    cluster.clock.run_for(RETRY)
    assert [target for target, _ in network.sent] == [2, 3, 2, 3]
    assert cluster.log.ids["t"].partitions == {A}
    metadata[A] = LeaderAndIsr(-1, (2,))
    cluster.clock.run_for(RETRY)
    assert len(network.sent) == 4
    metadata[A] = LeaderAndIsr(3, (3,))
    cluster.clock.run_for(RETRY)
    assert (cluster.state, network.sent[4][0]) == (COMPLETE_COMMIT, 3)
    cluster.first.add_partitions(*who, [A])
    cluster.first.end(*who, True)
    del metadata[A]
    cluster.clock.run_for(RETRY)
    assert (cluster.state, len(network.sent)) == (COMPLETE_COMMIT, 5)


@pytest.mark.parametrize("error", ["INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED"])
def test_a_marker_that_is_too_old_is_not_sent_again(cluster: Cluster, error: str) -> None:
    who = cluster.begin(A)
    cluster.network.errors = {A: error}
    cluster.first.end(*who, True)
    cluster.clock.run_for(10)
    assert (cluster.state, len(cluster.network.sent)) == (PREPARE_COMMIT, 1)


def test_who_asks_again_fences_who_asked_before(cluster: Cluster) -> None:
    """What goes on is aborted with the next epoch; the second producer gets the one after that."""
    old = cluster.begin(A)
    assert old[2] == 0
    assert refused(lambda: cluster.first.init_producer_id("t", 60.0)) == "CONCURRENT_TRANSACTIONS"
    assert (cluster.state, cluster.log.ids["t"].epoch) == (PREPARE_ABORT, 1)
    cluster.clock.run_for(0.01)
    assert cluster.network.sent == [(2, WriteTxnMarkersRequest(old[1], 1, False, 0, (A,)))]
    new = cluster.begin()
    assert new == ("t", old[1], 2)
    for epoch in (0, 1, 3):
        who = "t", old[1], epoch
        assert refused(lambda who=who: cluster.first.end(*who, True)) == "INVALID_PRODUCER_EPOCH"
        assert refused(lambda who=who: cluster.first.add_partitions(*who, [A])) == "INVALID_PRODUCER_EPOCH"
    cluster.first.add_partitions(*new, [A])


def test_what_takes_too_long_is_aborted(cluster: Cluster) -> None:
    """After its time-out, at the next look; time counts from its first partition."""
    cluster.begin(timeout=5.5)
    cluster.clock.run_for(100.25)
    who = cluster.begin(A, timeout=5.5)
    cluster.clock.run_for(3)
    cluster.first.add_partitions(*who, [B])
    cluster.clock.run_for(2.6)  # 5.6 s are over, the next look comes after 5.75
    assert cluster.state == ONGOING
    cluster.clock.run_for(0.2)
    assert cluster.state == COMPLETE_ABORT
    assert refused(lambda: cluster.first.end(*who, True)) == "INVALID_PRODUCER_EPOCH"
    assert cluster.begin()[2] == who[2] + 2


def test_an_id_that_is_not_used_is_forgotten(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a week; a transaction counts as a use."""
    monkeypatch.setattr(transaction_coordinator, "CHECK_INTERVAL", 1800.0)
    who = cluster.begin()
    cluster.first.init_producer_id("u", 60.0)
    cluster.clock.run_for(EXPIRY / 2)
    cluster.first.add_partitions(*who, [A])
    cluster.first.end(*who, True)
    cluster.clock.run_for(EXPIRY / 2 + 3600)
    assert list(cluster.log.ids) == ["t"]
    cluster.clock.run_for(EXPIRY / 2)
    assert cluster.log.ids == {}
    assert refused(lambda: cluster.first.end(*who, True)) == "INVALID_PRODUCER_ID_MAPPING"


def test_the_last_epoch_is_followed_by_another_producer_id(cluster: Cluster) -> None:
    _, producer, _ = cluster.begin()
    cluster.log.ids["t"].epoch = LAST_EPOCH - 1
    assert cluster.begin() == ("t", producer, LAST_EPOCH)
    assert cluster.begin() == ("t", producer + 1, 0)


def test_time_outs_that_may_be(cluster: Cluster) -> None:
    for timeout in (0.0, -1.0, LONGEST + 0.001):
        assert refused(lambda t=timeout: cluster.first.init_producer_id("t", t)) == "INVALID_TRANSACTION_TIMEOUT"
    assert cluster.log.ids == {}
    cluster.first.init_producer_id("t", LONGEST)
    cluster.first.init_producer_id("u", 0.001)


def test_another_broker_takes_over(cluster: Cluster) -> None:
    """With the next epoch; it writes the markers that are missing, and aborts what takes too long."""
    who = cluster.begin(A, B)
    open_producer, _ = cluster.first.init_producer_id("open", 3.0)
    cluster.first.add_partitions("open", open_producer, 0, [A])
    cluster.network.fails = {2}
    cluster.first.end(*who, True)
    cluster.clock.run_for(0.01)
    cluster.brokers[1].dies()
    cluster.network.sent.clear()
    cluster.network.fails = set()
    second = cluster.brokers[2].hears(2, 3)
    cluster.clock.run_for(0.01)
    assert cluster.network.sent == [(2, WriteTxnMarkersRequest(who[1], 0, True, 1, (A,)))]
    assert cluster.state == COMPLETE_COMMIT
    second.end(*who, True)
    cluster.clock.run_for(5)
    assert cluster.log.ids["open"].state == COMPLETE_ABORT


def test_only_the_last_that_took_over_coordinates(cluster: Cluster) -> None:
    """A broker that has not heard of its end answers nobody, and finds out when its next marker is written."""
    who = cluster.begin(A)
    second, third = cluster.brokers[2].coordinator, cluster.brokers[3].coordinator
    assert refused(lambda: second.end(*who, True)) == "NOT_COORDINATOR"
    cluster.network.fails = {2}
    cluster.first.end(*who, True)
    cluster.clock.run_for(0.01)
    cluster.brokers[2].hears(2, 3)  # broker 1 is cut off, and has not heard
    cluster.clock.run_for(0.01)
    cluster.network.sent.clear()
    cluster.network.fails = set()
    cluster.clock.run_for(1)
    assert [request.coordinator_epoch for _, request in cluster.network.sent] == [0, 1]
    cluster.clock.run_for(1)
    assert len(cluster.network.sent) == 2
    assert refused(lambda: cluster.first.init_producer_id("t", 1.0)) == "NOT_COORDINATOR"
    assert refused(lambda: third.init_producer_id("t", 1.0)) == "NOT_COORDINATOR"
    second.add_partitions(*who, [B])
    cluster.brokers[2].hears(1, 2, 3)  # broker 1 is back
    assert refused(lambda: second.end(*who, True)) == "NOT_COORDINATOR"
    cluster.first.end(*who, True)
    assert cluster.log.coordinator_epoch == 2
    cluster.clock.run_for(1)
    assert cluster.state == COMPLETE_COMMIT


@pytest.mark.parametrize("partitions", [[], [B]], ids=["", "another has begun"])
def test_a_coordinator_that_was_replaced_while_it_waited_ends_nothing(
    cluster: Cluster, partitions: list[TopicPartition]
) -> None:
    """The next one has written the marker and ended the transaction before the first one tries again.

    Nor does the first one end the transaction that has begun then.
    """
    who = cluster.begin(A)
    cluster.network.fails = {2}
    cluster.first.end(*who, True)
    cluster.clock.run_for(RETRY / 2)
    cluster.network.fails = set()
    second = cluster.brokers[2].hears(2, 3)  # broker 1 is cut off, and has not heard
    cluster.clock.run_for(RETRY / 4)
    assert cluster.state == COMPLETE_COMMIT
    if partitions:
        second.add_partitions(*who, partitions)
    cluster.network.sent.clear()
    cluster.clock.run_for(1)  # raises what a task has died of
    assert cluster.network.sent == []
    assert cluster.state == (ONGOING if partitions else COMPLETE_COMMIT)


def test_old_epochs_are_fenced_by_a_partition() -> None:
    """Of producers, and of the coordinators whose markers it gets; a new epoch begins with sequence 0."""
    epochs = ProducerEpochs()
    assert epochs.fences(7, 0) is None
    assert epochs.fences(8, -2) == "INVALID_PRODUCER_EPOCH"  # lower than the -1 of a producer without an epoch
    epochs.note(7, 1)
    for epoch, sequence, error in (
        (0, 0, "INVALID_PRODUCER_EPOCH"),
        (1, 5, None),
        (2, 0, None),
        (2, 5, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ):
        assert epochs.fences(7, epoch, sequence=sequence) == error
    epochs.note(7, 1, 4)
    assert epochs.fences(7, 1, 3) == "TRANSACTION_COORDINATOR_FENCED"
    assert epochs.fences(7, 1, 4) is None
    assert epochs.fences(8, 0, 3) is None
    assert coordinator_epoch(read_batch(marker(7, 1, True, 4))) == 4
