"""Replica assignment: against Kafka's own results, and for what an even spread means."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose, refuses, source

from kafka_ctl.assignment import add_partitions, assign
from kafka_ctl.errors import BadInput

RECORDED = (Path(__file__).parents[1] / "data" / "assignments.txt").read_text().split("\n\n")[1].splitlines()[1:]
RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


@pytest.mark.parametrize("line", RECORDED)
def test_kafka_assigns_the_same(line: str) -> None:
    """Every line that Kafka's AdminUtils produced."""
    given_words, outcome = line.split("|")
    names, *numbers = given_words.split()
    partitions, replication_factor, start, first = map(int, numbers)
    racks = {broker: None if rack == "-" else rack for broker, rack in enumerate(names.split(","), 1)}
    expected = [[int(broker) for broker in replicas.split(",")] for replicas in outcome.split()]
    result = assign(racks, partitions, replication_factor, start, first_partition=first, racks=racks)
    assert result == dict(enumerate(expected, first))


def test_the_followers_shift_with_every_round() -> None:
    """The example of Kafka's AdminTest.scala, testReplicaAssignment; it is in the module's docstring too."""
    assert list(assign(range(5), 10, 3).values()) == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 0],
        [4, 0, 1],
        [0, 2, 3],
        [1, 3, 4],
        [2, 4, 0],
        [3, 0, 1],
        [4, 1, 2],
    ]


def test_racks_alternate() -> None:
    """The example of Kafka's AdminRackAwareTest.scala: racks in turn, and the seventh partition differs."""
    assert list(assign(RACKS, 7, 3, start=0, racks=RACKS).values()) == [
        [0, 3, 1],
        [3, 1, 5],
        [1, 5, 4],
        [5, 4, 2],
        [4, 2, 0],
        [2, 0, 3],
        [0, 4, 2],
    ]


def test_start_and_shift_are_separate() -> None:
    """Kafka fixes both to one number or draws both; here each can be given."""
    assert assign([1, 2, 3, 4], 1, 3, start=0, shift=1) == {0: [1, 3, 4]}
    assert assign([1, 2, 3, 4], 1, 3, start=1, shift=1) == {0: [2, 4, 1]}
    assert assign([1, 2, 3, 4], 1, 3, start=1) == {0: [2, 4, 1]}
    assert assign([1, 2, 3, 4], 1, 3, shift=2) == {0: [1, 4, 2]}


def test_the_order_of_brokers_is_no_input() -> None:
    """Brokers stand in a row by id."""
    assert assign([3, 1, 2], 4, 2) == assign(iter([1, 2, 3]), 4, 2)


def test_chance_comes_from_the_generator_given() -> None:
    """Equal seeds draw alike; over many seeds every broker leads partition 0."""
    assert assign(range(9), 20, 3, rng=Random(7)) == assign(range(9), 20, 3, rng=Random(7))
    assert {assign(range(5), 1, 1, rng=Random(seed))[0][0] for seed in range(99)} == set(range(5))
    assert assign(range(5), 3, 2, start=2, rng=Random(1)) == assign(range(5), 3, 2, start=2)


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 9), st.integers(0, 40), st.data())
def test_an_even_spread(size: int, partitions: int, start: int, first: int, data: st.DataObject) -> None:
    """Replicas of a partition are different brokers, and leaders per broker differ by one at most."""
    replication_factor = data.draw(st.integers(1, size))
    result = assign(range(size), partitions, replication_factor, start, first_partition=first)
    assert list(result) == list(range(first, first + partitions))
    assert all(len(set(replicas)) == replication_factor for replicas in result.values())
    leaders = Counter(dict.fromkeys(range(size), 0))
    leaders.update(replicas[0] for replicas in result.values())
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(st.text("abcd", min_size=1, max_size=9), st.integers(1, 20), st.integers(0, 9), st.data())
def test_racks_are_kept_apart(names: str, partitions: int, start: int, data: st.DataObject) -> None:
    """A partition is on as many racks as there can be."""
    racks = dict(enumerate(names))
    replication_factor = data.draw(st.integers(1, len(racks)))
    for replicas in assign(racks, partitions, replication_factor, start, racks=racks).values():
        assert len(set(replicas)) == replication_factor
        assert len({racks[b] for b in replicas}) == min(replication_factor, len(set(names)))


def test_new_partitions_continue_the_pattern() -> None:
    """The placements that Kafka's AddPartitionsTest.scala expects."""
    assert add_partitions({0: [0, 1]}, 3, range(4)) == {1: [1, 2], 2: [2, 3]}
    assert add_partitions({0: [2, 3, 0, 1]}, 7, range(4)) == {
        1: [3, 2, 0, 1],
        2: [0, 3, 1, 2],
        3: [1, 0, 2, 3],
        4: [2, 3, 0, 1],
        5: [3, 0, 1, 2],
        6: [0, 1, 2, 3],
    }


@given(st.integers(2, 6), st.integers(1, 12), st.integers(1, 12), st.integers(0, 5))
def test_growing_gives_what_creating_gives(size: int, before: int, more: int, start: int) -> None:
    """A topic that grew looks like one made at once; only the rounds it had before are not counted again."""
    start %= size
    whole = assign(range(size), before + more, 2, start)
    grown = add_partitions({p: whole[p] for p in range(before)}, before + more, range(size))
    assert [replicas[0] for replicas in grown.values()] == [whole[p][0] for p in grown]
    if before <= size:
        assert grown == {p: whole[p] for p in range(before, before + more)}


def test_a_dead_first_leader_is_replaced_by_the_next_higher() -> None:
    """The start is the first live broker from partition 0's leader on, and the lowest if none is higher."""
    assert add_partitions({0: [2, 3]}, 2, [1, 3, 4])[1][0] == 4
    assert add_partitions({0: [9, 1]}, 2, [1, 3, 4])[1][0] == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: assign(3, 2, 2),
        lambda: add_partitions({0: [1]}, 2, "12"),
        lambda: assign([1, 1, 2], 2, 2),
        lambda: assign([1, 2], "2", 1),
        lambda: assign([1, 2], True, 1),
        lambda: assign([1, 2], 2**31, 1),
        lambda: assign([1, "2"], 2, 1),
        lambda: assign([1, 2], 2, None),
        lambda: assign([1, 2, 3], 2, 2, racks=["a", "b", "c"]),
        lambda: assign([1, 2], 2, 2, racks={1: ["a"], 2: "b"}),
        lambda: assign([1, 2], 2, 2, start="1"),
        lambda: assign([1, 2], 2, 2, first_partition="x"),
        lambda: add_partitions(5, 2, [1]),
        lambda: add_partitions({0: [1]}, 1.5, [1]),
        lambda: add_partitions({0: 1}, 2, [1]),
    ],
    ids=source,
)
def test_wrong_arguments(prose: Prose, call: Callable[[], object]) -> None:
    """The error names the argument and its form."""
    prose.refuses(BadInput, call)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: assign([1, 2], 0, 1), "number of partitions must be larger than 0; 0 asked"),
        (lambda: assign([1, 2], 1, 0), "replication factor must be larger than 0; 0 asked"),
        (lambda: assign([1, 2], 1, 3), "replication factor: 3 larger than available brokers: 2"),
        (lambda: assign([], 1, 1), "replication factor: 1 larger than available brokers: 0"),
        (
            lambda: assign([1, 2, 3], 1, 1, racks={1: "a", 2: None}),
            "Not all brokers have rack information for replica rack aware assignment; none for 2, 3",
        ),
        (
            lambda: add_partitions({0: [1]}, 1, [1]),
            "The number of partitions for a topic can only be increased: 1 asked, 1 are there",
        ),
        (lambda: add_partitions({0: []}, 2, [1]), "replication factor must be larger than 0; 0 asked"),
        (lambda: add_partitions({1: [1]}, 2, [1]), "the topic does not have partition with id 0"),
    ],
)
def test_refusals(call: object, text: str) -> None:
    """Kafka's words, then what was asked."""
    refuses(BadInput, f"^{re.escape(text)}", call)
