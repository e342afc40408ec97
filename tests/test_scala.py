"""Orders that Scala gives to sets and groups, as seen in Kafka's logs."""

import pytest

from kafka_ctl.scala import group_order, set_order


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
