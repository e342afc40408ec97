"""The nouns: how they print, compare and change, and the algebra of a reassignment."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from kafka_ctl.cluster import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    Broker,
    LeaderAndIsr,
    Replica,
    ReplicaAssignment,
    TopicPartition,
)


def test_they_print_as_in_kafka() -> None:
    """A partition as Kafka's logs name it, a replica with its broker."""
    assert str(TopicPartition("orders", 0)) == "orders-0"
    assert f"{TopicPartition('a-b', 12)}" == "a-b-12"
    assert str(Replica("orders", 0, 1)) == "orders-0@1"


def test_a_replica_knows_its_partition() -> None:
    """It is the same partition, equal and hashed alike."""
    partition = Replica("orders", 3, 1).topic_partition
    assert partition == TopicPartition("orders", 3) == ("orders", 3)
    assert {partition: "found"}[TopicPartition("orders", 3)] == "found"


def test_partitions_sort_by_number() -> None:
    """9 comes before 10, unlike in ZooKeeper's names."""
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert list(map(str, sorted(partitions))) == ["a-9", "a-10", "b-0"]


@pytest.mark.parametrize(
    "noun",
    [TopicPartition("orders", 0), Replica("orders", 0, 1), Broker(1), LeaderAndIsr(1, (1,)), ReplicaAssignment((1,))],
)
def test_they_are_values(noun: tuple) -> None:
    """Nothing in them changes, and a copy is equal and hashes alike."""
    copy = pickle.loads(pickle.dumps(noun))
    assert copy == noun
    assert hash(copy) == hash(noun)
    assert type(copy) is type(noun)
    with pytest.raises(AttributeError):
        setattr(noun, type(noun)._fields[0], 9)


def test_no_broker_is_mistaken_for_nobody() -> None:
    """The stand-ins for a leader are no broker ids, and Kafka's own numbers."""
    assert (NO_LEADER, LEADER_DURING_DELETE) == (-1, -2)
    assert LeaderAndIsr(NO_LEADER, ()).leader_epoch == 0


def test_a_new_leader_has_a_new_epoch() -> None:
    """Leader and ISR change, the leader epoch rises by one; the rest stays until the znode is written."""
    before = LeaderAndIsr(1, (1, 2), leader_epoch=4, zk_version=9, controller_epoch=2)
    assert before.led_by(2, [2]) == LeaderAndIsr(2, (2,), leader_epoch=5, zk_version=9, controller_epoch=2)
    assert before.led_by(1, iter((1, 2))).leader_epoch == 5
    assert before.leader == 1


@tabled
def test_reassign_to(before: tuple, target: list, after: tuple) -> None:
    """The target first, then what is still to leave."""
    assert ReplicaAssignment(*map(tuple, before)).reassign_to(target) == ReplicaAssignment(*map(tuple, after))


brokers = st.lists(st.integers(0, 6), unique=True, min_size=1, max_size=6)


@given(brokers, brokers, brokers)
def test_the_algebra_of_a_reassignment(origin: list, target: list, second: list) -> None:
    """On the way both ends can be told from the assignment alone, however often the target changes."""
    at_rest = ReplicaAssignment(tuple(origin))
    assert at_rest.target == at_rest.origin == at_rest.replicas
    assert not at_rest.is_being_reassigned
    moving = at_rest.reassign_to(target)
    assert moving.target == tuple(target)
    assert set(moving.origin) == set(origin)
    assert set(moving.replicas) == set(origin) | set(target)
    assert not set(moving.adding) & set(moving.removing)
    assert moving.is_being_reassigned == (set(origin) != set(target))
    again = moving.reassign_to(second)
    assert again.target == tuple(second)
    assert set(again.origin) == set(origin)
    assert moving.reassign_to(target) == moving


@given(brokers, brokers)
def test_cancelling_leads_back(origin: list, target: list) -> None:
    """Reassigning to the origin leaves nothing to add and nothing to remove."""
    moving = ReplicaAssignment(tuple(origin)).reassign_to(target)
    cancelled = moving.reassign_to(moving.origin)
    assert set(cancelled.replicas) == set(origin)
    assert not cancelled.is_being_reassigned
