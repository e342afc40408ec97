"""The requests of a transaction by hand, one after another: a lab answers as Kafka 2.0.1 and 2.4.1 do.

The answers stand here as they came from real Kafka; they are compared with both. Needs Java, and Maven once.
"""

import pytest
from real_broker import asking_kafka
from tables import text
from wire_clients import Asking, closed_connections, listening
from zookeepers import beside_kafka

from tests.conformance.transaction_stories import Producer

ANSWERS = text("transactions_beside_kafka_answers.txt")
"""What Kafka 2.0.1 answered: a request, and its error, or what it brought."""
NEWER = {"TxnOffsetCommit 'g' orders 10: None": "TxnOffsetCommit 'g' orders 10: INVALID_PRODUCER_EPOCH"}
"""What 2.4.1 answered otherwise (KAFKA-9144)."""
LONGEST = 900_000
"""Milliseconds: Kafka's `transaction.max.timeout.ms`."""


def play(broker: Asking) -> list[str]:
    """What a broker answers; it is the coordinator of all, and leads `orders-0`."""
    one = Producer(broker)
    one.coordinator()
    one.init("")
    one.init(timeout=LONGEST + 1)
    one.init(timeout=0)
    one.init()
    one.add("orders", id=one.id + 1000)
    one.add("orders", epoch=5)
    one.add("orders", name="unknown")
    one.add("orders", name="")
    one.add("orders", "nothing")
    one.add("orders", "__consumer_offsets")
    one.end(True)
    one.end(True, name="unknown")
    one.add("orders")
    one.add("orders")
    one.write(0)
    one.write(0)
    one.write(1)
    one.fetched(stable=False)
    old = one.epoch
    one.note("a second producer asks", "it fences the first")
    one.init(waits=True)
    one.fetched(stable=True)
    one.end(True, epoch=old)
    one.add("orders", epoch=old)
    one.write(2, epoch=old)
    one.write(2, epoch=old + 1)
    one.write(5)
    one.add("orders")
    one.write(0)
    one.end(True)
    one.fetched(stable=True)
    one.end(True)
    one.end(False)
    one.add("orders")
    one.write(1)
    one.end(False)
    one.fetched(stable=True)
    one.end(False)
    one.end(True)
    one.mark("orders", epoch=old)
    one.mark("orders", coordinator=-1)
    one.mark("nothing")
    one.coordinator(kind=0)
    one.add_offsets("g")
    one.commit_offset("g", 5)
    one.commit_offset("g", 6, topic="nothing")
    one.offsets("g")
    one.end(True)
    one.offsets("g", expected=5)
    one.add_offsets("g")
    one.commit_offset("g", 7)
    one.end(False)
    one.add_offsets("g")
    one.commit_offset("g", 8)
    one.commit_alone("g", 9)
    one.end(True)
    one.end(True)
    one.offsets("g")
    one.init()
    one.commit_offset("g", 10, epoch=old)
    one.add_offsets("g", epoch=old)
    one.init(None)
    return one.answers


def expected(generation: str) -> list[str]:
    lines = ANSWERS.splitlines()
    return [NEWER.get(line, line) for line in lines] if generation == "2.4" else lines


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_lab_answers(generation: str) -> None:
    with listening(generation, orders={0: [1, 2]}) as lab:
        with Asking(lab, 1) as broker:
            assert play(broker) == expected(generation)
        assert closed_connections(lab) == []


@beside_kafka
@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_real_kafka_answers(generation: str) -> None:
    with asking_kafka(generation) as broker:
        assert play(broker) == expected(generation)
