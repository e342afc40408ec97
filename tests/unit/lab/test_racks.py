"""Partitions that are added: spread over the racks of the registered brokers, as `kafka-topics --alter` does it."""

import pytest
from labs import lab_of, play, until_quiet
from prose import refuses

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput

CASES = [
    ("a,a,b,b", [[1, 3], [3, 1]], {2: (2, 4), 3: (4, 1), 4: (1, 4), 5: (3, 1)}),
    (
        "a,b,a,b,c,c",
        [[3, 2, 5], [1, 4, 6], [2, 3, 5]],
        {3: (6, 2, 3), 4: (1, 5, 4), 5: (2, 3, 6), 6: (5, 2, 3), 7: (3, 5, 4), 8: (4, 3, 6)},
    ),
    ("b,a,c,a,b", [[4, 1]], {1: (5, 3), 2: (2, 3), 3: (1, 4), 4: (3, 5)}),
    ("a,a,a,b", [[2, 4, 1], [3, 4, 1]], {2: (3, 4, 2), 3: (1, 4, 2), 4: (4, 3, 1)}),
    ("-,-,-", [[2, 1]], {1: (3, 2), 2: (1, 3), 3: (2, 3)}),
]
"""Racks of brokers 1, 2 ..., the topic, and what `AdminUtils.assignReplicasToBrokers` of all three releases gave when
it was called as `addPartitions` calls it."""


@pytest.mark.parametrize(("racks", "topic", "added"), CASES, ids=[racks for racks, _, _ in CASES])
def test_added_partitions_keep_racks_apart(
    generation: str, racks: str, topic: list[list[int]], added: dict[int, tuple[int, ...]]
) -> None:
    brokers = {id: None if rack == "-" else rack for id, rack in enumerate(racks.split(","), 1)}
    with lab_of("orders", dict(enumerate(topic)), brokers=brokers, generation=generation, seed=1) as lab:
        until_quiet(lab.add_partitions, "orders", len(topic) + len(added))
        assert {p.partition: p.replicas for p in lab.partitions() if p.partition >= len(topic)} == added


def test_only_registered_brokers_count(generation: str) -> None:
    """Broker 3 is down: the pattern goes on with those that are there, though one rack is missing then."""
    with Lab(brokers={1: "a", 2: "a", 3: "b"}, generation=generation, seed=1) as lab:
        lab.create_topic("orders", assignment={0: [3, 1]})
        play(lab, "kill 3; settle; add_partitions orders 3; settle")
        assert [p.replicas for p in lab.partitions()] == [(3, 1), (2, 1), (1, 2)]


def test_racks_that_only_some_brokers_have(generation: str) -> None:
    """Refused, and nothing is written; in Kafka's words, who has none at the end."""
    with lab_of("orders", {0: [1, 2]}, brokers={1: "a", 2: None, 3: "b"}, generation=generation, seed=1) as lab:
        before = lab.znodes()
        refuses(BadInput, r"^Not all brokers have rack information.*none for 2$", lab.add_partitions, "orders", 2)
        assert {path for path in lab.znodes() if lab.znodes()[path] != before.get(path)} == set()
