"""Labs whose brokers listen, for tests with clients that nobody here wrote."""

from __future__ import annotations

import select
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_ctl import Lab
from kafka_ctl.wire.codec import Message, decode_message, encode_message
from kafka_ctl.wire.schema import REQUEST, RESPONSE, MessageType, api_key, message_type
from tests import waiting

QUICK = {"zookeeper.session.timeout.ms": 1000, "replica.lag.time.max.ms": 2000}
"""So that a broker's death is noticed within a second."""
PATIENCE = 60.0
"""Seconds that a busy machine is given."""


@contextmanager
def listening(
    generation: str = "2.0", orders: Mapping[int, Sequence[int]] | None = None, **options: Any
) -> Iterator[Lab]:
    """A lab of three brokers, or as many as asked for, that real clients can reach; with `orders` that topic, too."""
    brokers = options.pop("brokers", 3)
    given = options.pop("config", {})
    config = QUICK | given
    costs = {"zookeeper_round_trip": 0.0, "zookeeper_tick": 0.0, "request": 0.0, "boot": 0.0, "request_state": 0.0}
    if options.get("zookeeper", "memory") != "memory":
        config = given
    with Lab(brokers=brokers, generation=generation, wire=True, config=config, costs=costs, **options) as lab:
        if orders is not None:
            lab.create_topic("orders", assignment=orders)
            lab.settle()
        yield lab


def eventually(holds: Callable[[], bool], what: str = "") -> None:
    """Wait for a condition, as long as a busy machine may need."""
    assert waiting.eventually(holds, PATIENCE), f"not within {PATIENCE:g} s: {what or holds}"


def kcat(lab: Lab, *arguments: str, given: str | None = None) -> str:
    """What kcat prints; the test is skipped where there is none."""
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("kcat is not installed: apt-get install kcat")
    done = subprocess.run(
        [program, "-b", lab.bootstrap_servers, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_to_end(lab: Lab, topic: str, level: str = "read_committed", partitions: int = 1) -> list[str]:
    """The records that librdkafka reads from a topic's beginning to the end that it sees."""
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": lab.bootstrap_servers,
            "group.id": "none",
            "isolation.level": level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.assign([confluent.TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[str] = []
    ended: set[int] = set()

    def is_read() -> bool:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                found.append(message.value().decode())
            elif message.error().code() == confluent.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        return len(ended) == partitions

    try:
        eventually(is_read, f"the end of {topic}")
    finally:
        consumer.close()
    return found


def closed_connections(lab: Lab) -> list[tuple[str | None, str | None]]:
    """Why brokers closed connections: Kafka's error, and what it was about."""
    return [(record.error, record.detail) for record in lab.trace.slice(action="closed-connection")]


class Asking:
    """A connection to one broker, and requests by hand."""

    def __init__(self, lab: Lab, broker: int) -> None:
        host, port = lab.bootstrap_servers.split(",")[sorted(lab.brokers).index(broker)].split(":")
        self.connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._types: dict[int, MessageType] = {}

    def send(self, name: str, version: int, number: int = 1, **fields: Any) -> None:
        """Send a request; `receive` brings the answer to the one that was sent first."""
        key = api_key(name)
        self._types[number] = message_type(key, version, RESPONSE)
        header = {"correlation_id": number, "client_id": "test"}
        self.connection.sendall(encode_message(message_type(key, version, REQUEST), header, fields))

    def receive(self) -> Message:
        raw = self._read(int.from_bytes(self._read(4), "big"))
        return decode_message(self._types.pop(int.from_bytes(raw[:4], "big")), raw)[1]

    def _read(self, size: int) -> bytes:
        """So many bytes; real Kafka sends an answer in pieces."""
        data = b""
        while len(data) < size and (part := self.connection.recv(size - len(data))):
            data += part
        return data

    def waits(self, seconds: float = 0.3) -> bool:
        """Whether no answer comes for so long."""
        return not select.select([self.connection], [], [], seconds)[0]

    def ask(self, name: str, version: int, **fields: Any) -> Message:
        """Send a request and return the answer."""
        self.send(name, version, **fields)
        return self.receive()

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


COMMITTED = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 1}
"""The fields of a Fetch by a reader of committed records that does not wait, but for its partitions."""


def fetch_of(*partitions: tuple[str, int, int], most: int = 1 << 20) -> list[Message]:
    """The topics of a Fetch request: topic, partition and offset of each."""
    topics: dict[str, list[Message]] = {}
    for topic, number, offset in partitions:
        part = {"partition": number, "fetch_offset": offset, "partition_max_bytes": most}
        topics.setdefault(topic, []).append(part)
    return [{"topic": topic, "partitions": parts} for topic, parts in topics.items()]
