"""Brokers without a controller: what a death and a new partition cost, and two leaders at a time."""

from collections.abc import Iterator

import pytest
from prose import refuses

from kafka_ctl import BadInput
from kafka_ctl_course.before_the_controller import EarlyCluster


@pytest.fixture
def early() -> Iterator[EarlyCluster]:
    cluster = EarlyCluster(3, 6)
    yield cluster
    cluster.close()


def test_every_replica_that_is_left_tries(early: EarlyCluster) -> None:
    """Each of the two partitions has one new leader, a member of its ISR."""
    begun = sum(broker.tries for broker in early.brokers.values())
    load = early.kill(1)
    assert sum(broker.tries for broker in early.brokers.values()) - begun == 4 and load.watches == 8
    assert [len({*early.believed(number)} - {1}) for number in range(6)] == [1] * 6


def test_a_new_partition_wakes_every_broker() -> None:
    few, many = EarlyCluster(3, 3), EarlyCluster(30, 3)
    assert many.create().watches - few.create().watches == 27
    assert few.believed(3) == many.believed(3) == [1]
    few.close()
    many.close()


def test_a_leader_that_is_cut_off_goes_on(early: EarlyCluster) -> None:
    early.cut_off(1)
    assert len(early.believed(0)) == 2 and 1 in early.believed(0)


@pytest.mark.parametrize("given", [(2, 1), (3, 0)])
def test_a_cluster_has_three_brokers_and_a_partition(given: tuple[int, int]) -> None:
    refuses(BadInput, "3 and 1", EarlyCluster, *given)
