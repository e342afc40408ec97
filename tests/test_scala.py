"""Orders that Scala gives to sets and groups, as seen in Kafka's logs."""

import pytest

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.scala import (
    MASK,
    case_hash,
    group_order,
    java_hash,
    partition_map_order,
    partition_set_order,
    product_hash,
    set_order,
)


@pytest.mark.parametrize(
    ("added", "walked"),
    [
        ([3, 1, 2], (3, 1, 2)),
        ([4, 1, 1, 3, 2], (4, 1, 3, 2)),
        (range(1, 7), (5, 1, 6, 2, 3, 4)),
        (range(1, 6), (5, 1, 2, 3, 4)),
        (range(100, 105), (101, 102, 103, 104, 100)),
    ],
)
def test_a_set_of_up_to_four_keeps_its_order_and_a_larger_one_is_a_trie(
    added: list[int], walked: tuple[int, ...]
) -> None:
    assert set_order(added) == walked


@pytest.mark.parametrize(
    ("brokers", "walked"),
    [([1, 2], (2, 1)), ([1, 2, 3], (2, 1, 3)), ([4, 3, 2, 1], (2, 4, 1, 3)), (range(1, 6), (5, 1, 2, 3, 4))],
)
def test_groups_are_walked_in_the_order_of_a_hash_table(brokers: list[int], walked: tuple[int, ...]) -> None:
    assert group_order(brokers) == walked


def partitions(*numbers: int) -> list[TopicPartition]:
    return [TopicPartition("orders", number) for number in numbers]


def test_a_leaving_broker_of_0_10_gives_up_its_partitions_in_the_order_of_a_map() -> None:
    """As in real logs: 2 and 1 share a place, where the one added last comes first; 0 lies before them."""
    assert partition_map_order(partitions(0, 1, 2), case_hash) == partitions(2, 1, 0)
    assert partition_map_order(partitions(0, 1), case_hash) == partitions(1, 0)


def test_two_reassignments_of_2_4_begin_in_the_order_of_a_map() -> None:
    """As in real logs, where orders-1 went before orders-0."""
    assert partition_map_order(partitions(0, 1), java_hash) == partitions(1, 0)


def test_a_growing_table_and_a_large_set_are_walked_as_scala_does() -> None:
    """The numbers on the right were printed by Scala 2.12.6, for keys with the same hashes."""
    walked = partition_map_order(partitions(*range(40)), java_hash)
    printed = """
        8,19,35,2,13,24,5,32,21,10,37,29,7,18,34,23,15,4,26,31,9,20,12,1,6,17,39,28,36,25,3,14,30,33,22,0,11,38,27,16
    """
    assert [tp.partition for tp in walked] == [int(number) for number in printed.split(",")]
    assert partition_set_order(partitions(*range(9)), java_hash) == partitions(8, 0, 3, 1, 5, 6, 2, 7, 4)
    assert partition_set_order(partitions(3, 1, 2, 0), java_hash) == partitions(3, 1, 2, 0)


def test_hashes_are_those_of_the_jvm() -> None:
    """In jshell, `"orders".hashCode()` is -1008770331 and `new scala.Tuple2(1, 2).hashCode()` 1411956066."""
    assert java_hash(TopicPartition("orders", 0)) == (31 * 31 - 1008770331) & MASK
    assert product_hash(1, 2) == 1411956066
