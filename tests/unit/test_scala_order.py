"""Orders that Scala gives to sets and groups, as seen in Kafka's logs."""

import pytest
from tables import tabled

from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.scala_order import (
    MASK,
    HashMap,
    case_hash,
    flat_set_order,
    group_order,
    java_hash,
    java_replica_hash,
    java_sized_set_order,
    map_order,
    product_hash,
    replica_hash,
    set_order,
    set_order_by,
    trie_order,
)
from kafka_ctl.zookeeper.memory.tree import Tree
from kafka_ctl.zookeeper.store import Create, Delete


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
    assert map_order(partitions(0, 1, 2), case_hash) == partitions(2, 1, 0)
    assert map_order(partitions(0, 1), case_hash) == partitions(1, 0)


def test_two_reassignments_of_2_4_begin_in_the_order_of_a_map() -> None:
    """As in real logs, where orders-1 went before orders-0."""
    assert map_order(partitions(0, 1), java_hash) == partitions(1, 0)


def test_a_growing_table_and_a_large_set_are_walked_as_scala_does() -> None:
    """The numbers on the right were printed by Scala 2.12.6, for keys with the same hashes."""
    walked = map_order(partitions(*range(40)), java_hash)
    printed = """
        8,19,35,2,13,24,5,32,21,10,37,29,7,18,34,23,15,4,26,31,9,20,12,1,6,17,39,28,36,25,3,14,30,33,22,0,11,38,27,16
    """
    assert [tp.partition for tp in walked] == [int(number) for number in printed.split(",")]
    assert set_order_by(partitions(*range(9)), java_hash) == partitions(8, 0, 3, 1, 5, 6, 2, 7, 4)
    assert set_order_by(partitions(3, 1, 2, 0), java_hash) == partitions(3, 1, 2, 0)


def test_hashes_are_those_of_the_jvm() -> None:
    """In jshell, `"orders".hashCode()` is -1008770331 and `new scala.Tuple2(1, 2).hashCode()` 1411956066."""
    assert java_hash(TopicPartition("orders", 0)) == (31 * 31 - 1008770331) & MASK
    assert product_hash(1, 2) == 1411956066


def test_a_hash_map_is_walked_as_scala_does() -> None:
    """Each line was printed by Scala 2.12.1 with Kafka 0.10.2.2's TopicAndPartition."""

    def named(table: HashMap[TopicPartition, int]) -> str:
        return " ".join(map(str, table))

    def partition(topic: str, number: int) -> tuple[TopicPartition, int]:
        return TopicPartition(topic, number), 0

    topics = {"orders": 10, "payments": 9, "users": 9}
    table = HashMap(case_hash, (partition(topic, n) for topic, count in topics.items() for n in range(count)))
    assert named(table) == (
        "users-2 users-8 orders-3 orders-7 orders-2 orders-1 orders-6 users-5 payments-8 payments-2 orders-8 users-4 "
        "orders-9 users-3 orders-4 payments-6 users-1 users-6 payments-1 orders-5 orders-0 payments-3 users-7 users-0 "
        "payments-5 payments-4 payments-0 payments-7"
    )
    table = table.filter(lambda tp, _: tp.topic != "payments")
    assert named(table) == (
        "users-2 users-8 orders-3 orders-7 orders-2 orders-1 orders-6 users-5 orders-8 users-4 orders-9 users-3 "
        "orders-4 users-1 users-6 orders-0 orders-5 users-0 users-7"
    )
    del table[TopicPartition("users", 3)]
    table[TopicPartition("orders", 2)] = 5
    table.update(partition("later", n) for n in range(3))
    assert named(table) == (
        "users-2 later-1 users-8 orders-3 orders-7 orders-2 orders-1 orders-6 users-5 later-0 orders-8 users-4 "
        "orders-9 orders-4 users-1 users-6 orders-0 orders-5 users-0 users-7 later-2"
    )
    table.clear()
    table.update(partition("orders", n) for n in range(8))
    assert named(table) == "orders-3 orders-7 orders-2 orders-1 orders-6 orders-4 orders-5 orders-0"
    del table[TopicPartition("orders", 7)]  # so few in so large a table are sorted, not looked for in each place
    assert named(table) == "orders-3 orders-2 orders-1 orders-6 orders-4 orders-5 orders-0"


def test_a_hash_map_is_a_dictionary() -> None:
    table = HashMap(case_hash, [(tp, n) for n, tp in enumerate(partitions(0, 1, 2))])
    assert table == dict(zip(partitions(0, 1, 2), range(3), strict=True))
    assert dict(table) == table and list(dict(table)) == list(table)
    assert [*table.items()] == [(tp, table[tp]) for tp in table]
    assert (table.pop(partitions(1)[0]), table.pop(partitions(1)[0], None)) == (1, None)
    assert table.setdefault(partitions(5)[0], 7) == 7 and table.get(partitions(9)[0]) is None
    table |= {partitions(0)[0]: 4}
    assert sorted(table.values()) == [2, 4, 7] and table.ordered(reversed(list(table))) == list(table)


def children(znodes: Tree) -> str:
    return " ".join(znodes.nodes["/"].names())


def test_a_server_names_children_as_a_hash_set_of_java_does() -> None:
    """As `java.util.HashSet`, made for 8, printed them (OpenJDK 17): it grows with the seventh, and never shrinks."""
    znodes = Tree(lambda: 0)

    def add(names: str) -> None:
        for name in names.split():
            znodes.change(Create(f"/{name}"), 1)

    add("alone orders payments users void empty")
    assert children(znodes) == "alone orders void users payments empty"
    add("Aa BB zeta a b c d")
    assert children(znodes) == "Aa BB zeta a b void c d payments users empty alone orders"
    for name in "orders users void Aa a b c d zeta".split():
        znodes.change(Delete(f"/{name}"), 1)
    assert children(znodes) == "BB payments empty alone"
    add("Aa users")
    assert children(znodes) == "BB Aa payments users empty alone"


def test_a_deletion_that_is_taken_back_leaves_the_children_in_their_order() -> None:
    znodes = Tree(lambda: 0)
    for name in ("Aa", "BB"):
        znodes.change(Create(f"/{name}"), 1)
    znodes.change(Delete("/Aa"), 1).undo()
    assert children(znodes) == "Aa BB"


@tabled
def test_children_that_fall_into_one_place_make_the_table_grow(added: str, listed: str) -> None:
    """As Java printed them: the ninth in one place doubles a small table."""
    znodes = Tree(lambda: 0)
    for name in added.split():
        znodes.change(Create(f"/{name}"), 1)
    assert children(znodes) == listed


def test_the_hash_of_a_replica_of_0_10() -> None:
    assert replica_hash(Replica("orders", 0, 1)) == -1222613289 & MASK


def test_the_replicas_of_0_10_are_walked_as_in_its_log() -> None:
    """As Kafka 0.10.2.2 printed them: "Deletion started for replicas [Topic=orders,Partition=0,Replica=1],..."."""
    printed = [(0, 1), (1, 2), (1, 3), (0, 2), (1, 1), (0, 3)]
    replicas = [Replica("orders", partition, broker) for partition in (0, 1) for broker in (1, 2, 3)]
    assert [(r.partition, r.broker) for r in set_order_by(replicas, replica_hash)] == printed
    assert set_order_by(replicas[:4], replica_hash) == replicas[:4]


def test_the_replicas_of_2_x_are_walked_as_in_its_log() -> None:
    """As Kafka 2.0.1 printed them: "Deletion started for replicas [Topic=orders,Partition=0,Replica=3],..."."""
    printed = [(0, 3), (0, 2), (1, 1), (1, 3), (0, 1), (1, 2)]
    replicas = [Replica("orders", partition, broker) for partition in (0, 1) for broker in (1, 2, 3)]
    assert [(r.partition, r.broker) for r in set_order_by(replicas, java_replica_hash)] == printed
    assert trie_order(replicas[:3], java_replica_hash) == [replicas[2], replicas[1], replicas[0]]


@pytest.mark.parametrize(
    ("added", "walked"),
    [([3, 1, 2], (1, 2, 3)), ([2, 1], (1, 2)), ([5, 4, 3, 2, 1], (1, 5, 2, 3, 4)), (range(20), None)],
)
def test_a_mutable_set_is_walked_from_its_first_place(added: list[int], walked: tuple[int, ...] | None) -> None:
    """[3, 1, 2] as 0.10 printed it: "AllReplicas:1,2,3"."""
    assert flat_set_order(added) == (walked or flat_set_order(reversed(added)))
    assert sorted(flat_set_order(added)) == sorted(added)


@tabled
def test_a_java_set_is_walked_by_the_last_bits(added: list[int], walked: tuple[int, ...]) -> None:
    """[2, 3, 1] as 0.10 printed it: "replicas=[1, 2, 3]"."""
    assert java_sized_set_order(added) == walked
