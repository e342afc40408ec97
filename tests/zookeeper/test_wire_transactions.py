"""Transactional producers that nobody here wrote, and what readers of committed records see of them.

Transactions are committed, aborted, fenced and left open; their coordinator dies, and the leader of a partition.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from labs import until_quiet
from wire_clients import COMMITTED, Asking, closed_connections, eventually, fetch_of, listening, read_to_end

from kafka_ctl import Lab

kafka = pytest.importorskip("kafka", reason="needs kafka-python")
confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
GENERATIONS = ["2.0", "2.4"]
COORDINATOR = 1
"""The live broker with the lowest id."""


@pytest.fixture(scope="module", params=GENERATIONS)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param) as lab:
        yield lab
        assert closed_connections(lab) == []


@pytest.fixture
def topic(request: pytest.FixtureRequest, lab: Lab) -> str:
    """A topic for one test: a partition on brokers 2 and 3."""
    name = request.function.__name__
    created(lab, name)
    return name


def created(lab: Lab, topic: str) -> None:
    until_quiet(lab.create_topic, topic, assignment={0: [3, 2]})


class Confluent:
    """A transactional producer of librdkafka."""

    def __init__(self, lab: Lab, id: str, timeout: int = 60_000) -> None:
        self._producer = confluent.Producer(
            {
                "bootstrap.servers": lab.bootstrap_servers,
                "transactional.id": id,
                "transaction.timeout.ms": timeout,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(30)
        self.begin, self.commit = self._producer.begin_transaction, self._producer.commit_transaction
        self.abort = self._producer.abort_transaction
        self.failed = confluent.KafkaException

    def send(self, topic: str, *values: str) -> None:
        """Write records, and wait until they are acknowledged."""
        for value in values:
            self._producer.produce(topic, value, partition=0)
        assert self._producer.flush(30) == 0

    def send_offset(self, consumer: Any, topic: str, offset: int) -> None:
        offsets = [confluent.TopicPartition(topic, 0, offset)]
        self._producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)

    def error(self, what: Callable[[], object]) -> str:
        """The name of the final error that a call raises."""
        with pytest.raises(confluent.KafkaException) as raised:
            what()
        error = raised.value.args[0]
        assert error.fatal() and not error.retriable()
        return str(error.name())

    def close(self) -> None:
        with suppress(confluent.KafkaException):
            self._producer.abort_transaction(5)


class KafkaPython:
    """A transactional producer of kafka-python."""

    def __init__(self, lab: Lab, id: str, timeout: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=lab.bootstrap_servers.split(","), transactional_id=id, transaction_timeout_ms=timeout
        )
        self._producer.init_transactions()
        self.begin, self.commit = self._producer.begin_transaction, self._producer.commit_transaction
        self.abort, self.close = self._producer.abort_transaction, self._producer.close

    def send(self, topic: str, *values: str) -> None:
        for value in values:
            self._producer.send(topic, value.encode(), partition=0).get(30)


def leader(lab: Lab, topic: str) -> int:
    return lab.partition(topic, 0).leader


def end_offsets(lab: Lab, topic: str) -> tuple[int, int]:
    """The last stable offset and the high watermark, as the leader tells a reader."""
    with Asking(lab, leader(lab, topic)) as asking:
        reported = asking.ask("Fetch", 4, **COMMITTED, topics=fetch_of((topic, 0, 0)))
    part = reported["responses"][0]["partitions"][0]
    if part["error_code"]:  # it has not heard yet that it leads
        return -1, 0
    return part["last_stable_offset"], part["high_watermark"]


def decided(lab: Lab, topic: str) -> int:
    """Where the topic ends once nothing in it is undecided."""
    eventually(lambda: len(set(end_offsets(lab, topic))) == 1, f"{topic} is decided")
    return end_offsets(lab, topic)[0]


@pytest.mark.parametrize("client", [Confluent, KafkaPython])
def test_commit_is_read_and_abort_is_not(lab: Lab, client: Any) -> None:
    """While a transaction goes on the last stable offset stands at its first record; who reads all sees all."""
    topic = client.__name__
    created(lab, topic)
    producer = client(lab, topic)
    producer.begin()
    producer.send(topic, "a", "b")
    assert end_offsets(lab, topic) == (0, 2)
    assert read_to_end(lab, topic) == []
    assert read_to_end(lab, topic, "read_uncommitted") == ["a", "b"]
    producer.commit()
    assert decided(lab, topic) == 3
    producer.begin()
    producer.send(topic, "c")
    assert end_offsets(lab, topic) == (3, 4)
    producer.abort()
    assert decided(lab, topic) == 5
    producer.begin()
    producer.send(topic, "d")
    producer.commit()
    assert decided(lab, topic) == 7
    assert read_to_end(lab, topic) == ["a", "b", "d"]
    assert read_to_end(lab, topic, "read_uncommitted") == ["a", "b", "c", "d"]
    producer.close()


def test_a_second_producer_fences_the_first(lab: Lab, topic: str) -> None:
    """It aborts what the first has begun, and the first is told that it is over."""
    first = Confluent(lab, topic)
    first.begin()
    first.send(topic, "first")
    second = Confluent(lab, topic)
    assert decided(lab, topic) == 2
    second.begin()
    second.send(topic, "second")
    assert first.error(lambda: first.commit(30)) == "_FENCED"
    second.commit()
    decided(lab, topic)
    assert read_to_end(lab, topic) == ["second"]


def test_a_transaction_that_is_left_open_is_aborted(lab: Lab, topic: str) -> None:
    """After its time-out; its producer is fenced by the next epoch, and others need not wait for it any more."""
    slow, other = Confluent(lab, topic, timeout=1000), Confluent(lab, f"{topic}-other")
    slow.begin()
    slow.send(topic, "slow")
    other.begin()
    other.send(topic, "other")
    other.commit()
    eventually(lambda: end_offsets(lab, topic) == (0, 3), "the other's marker")
    assert decided(lab, topic) == 4
    assert read_to_end(lab, topic) == ["other"]
    assert slow.error(lambda: slow.commit(30)) == "_FENCED"


def test_a_cut_between_brokers_holds_the_marker_back(lab: Lab, topic: str) -> None:
    producer = Confluent(lab, topic)
    producer.begin()
    producer.send(topic, "a")
    lab.disconnect(COORDINATOR, leader(lab, topic))
    producer.commit(30)
    assert end_offsets(lab, topic) == (0, 1)
    lab.heal()
    assert decided(lab, topic) == 2
    assert read_to_end(lab, topic) == ["a"]


def test_offsets_are_committed_with_the_transaction(lab: Lab, topic: str) -> None:
    """What a group has consumed counts when what was made of it does."""
    consumer = confluent.Consumer(
        {"bootstrap.servers": lab.bootstrap_servers, "group.id": topic, "log_level": 0, "enable.auto.commit": False}
    )
    producer = Confluent(lab, topic)

    def committed() -> int:
        (found,) = consumer.committed([confluent.TopicPartition(topic, 0)], 30)
        return int(found.offset)

    try:
        producer.begin()
        producer.send(topic, "a")
        producer.send_offset(consumer, topic, 5)
        assert committed() == confluent.OFFSET_INVALID
        producer.abort()
        producer.begin()
        producer.send_offset(consumer, topic, 7)
        assert committed() == confluent.OFFSET_INVALID
        producer.commit()
        eventually(lambda: committed() == 7, "the offset of the transaction")
    finally:
        consumer.close()


def back(lab: Lab, broker: int) -> None:
    """Start a broker, and wait until it is in sync."""
    lab.start(broker)
    eventually(lambda: len(lab.partition("orders", 0).isr) == 2, "both in sync")


def killed_leader(lab: Lab) -> int:
    """The leader, which is dead now."""
    broker = leader(lab, "orders")
    lab.kill(broker)
    return broker


def decided_by_another(lab: Lab, dead: int) -> int:
    """Where the topic ends once another broker leads it, and nothing in it is undecided."""
    eventually(lambda: leader(lab, "orders") not in (dead, -1), "another leader")
    return decided(lab, "orders")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_brokers_die_within_transactions(generation: str) -> None:
    """The coordinator, the leader that is to write the marker, and both: each time what was committed is read."""
    with listening(generation) as lab:
        created(lab, "orders")
        producer = Confluent(lab, "t")
        producer.begin()
        producer.send("orders", "a")
        lab.kill(COORDINATOR)
        producer.send("orders", "b")
        producer.commit(60)
        assert decided(lab, "orders") == 3
        back(lab, COORDINATOR)
        producer.begin()
        producer.send("orders", "c")
        dead = killed_leader(lab)
        producer.commit(60)
        assert decided_by_another(lab, dead) == 5
        back(lab, dead)
        producer.begin()
        producer.send("orders", "d")
        dead = killed_leader(lab)
        producer.commit(60)  # it is decided, and nobody can write the marker
        lab.kill(COORDINATOR)
        assert decided_by_another(lab, dead) == 7
        assert read_to_end(lab, "orders") == ["a", "b", "c", "d"]
        assert read_to_end(lab, "orders", "read_uncommitted") == ["a", "b", "c", "d"]


@pytest.mark.parametrize("client", [Confluent, KafkaPython])
def test_there_are_no_transactions_in_0_10(client: Any) -> None:
    """A client is told at once and for good."""
    with listening("0.10") as lab:
        if client is KafkaPython:
            with pytest.raises(kafka.errors.KafkaError) as raised:
                client(lab, "t")
            assert not raised.value.retriable
        else:
            with pytest.raises(confluent.KafkaException) as found:
                client(lab, "t")
            error = found.value.args[0]
            assert (error.name(), error.fatal(), error.retriable()) == ("_UNSUPPORTED_FEATURE", True, False)
