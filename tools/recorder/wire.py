"""Clients of Kafka over its own protocol, which produce, consume and ask for metadata; and a broker's log files.

Records are sent once (`retries=0`), each `acks` by itself, so that every outcome can be seen; Kafka's own producer
would hide some. Old versions of the requests that each of the three releases understands.
Kafka 2.4.1: clients/src/main/resources/common/message; clients common/record/LegacyRecord.java, DefaultRecordBatch.java
"""

from __future__ import annotations

import socket
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ERRORS = {
    1: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_FOR_PARTITION",
    7: "REQUEST_TIMED_OUT",
    9: "REPLICA_NOT_AVAILABLE",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    56: "KAFKA_STORAGE_ERROR",
}
"""Kafka's names of its error codes, as far as stories meet them."""
PRODUCE, FETCH, METADATA = 0, 1, 3
TIMEOUT = 30.0
"""Seconds a leader waits for the ISR, as Kafka's producer asks it to."""


class Record(NamedTuple):
    """One record of a log: its leader epoch (None before KIP-101) and its value."""

    leader_epoch: int | None
    value: str


class Cached(NamedTuple):
    """The content of a broker's metadata cache: live brokers, and of each partition leader and ISR."""

    brokers: tuple[int, ...]
    partitions: dict[tuple[str, int], tuple[int, tuple[int, ...]]]


class Reader:
    """Takes Kafka's types from bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, kind: str) -> Any:
        (value,) = struct.unpack_from(f">{kind}", self.data, self.at)
        self.at += struct.calcsize(f">{kind}")
        return value

    def bytes(self, length: int) -> bytes:
        self.at += max(0, length)
        return self.data[self.at - max(0, length) : self.at]

    def string(self) -> str:
        return self.bytes(self.take("h")).decode()

    def integers(self) -> tuple[int, ...]:
        return tuple(self.take("i") for _ in range(self.take("i")))

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def connect(port: int) -> socket.socket:
    """A connection to a broker. Raises ConnectionError if it is refused."""
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT + 1)


def ask(connection: socket.socket, key: int, version: int, body: bytes, answered: bool = True) -> Reader:
    """Send one request and return its answer; ConnectionError or TimeoutError without one."""
    request = struct.pack(">hhi", key, version, 0) + _string("recorder") + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    if not answered:
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # until the broker has read it all and closes
        return Reader(b"")
    (length,) = struct.unpack(">i", _receive(connection, 4))
    answer = Reader(_receive(connection, length))
    answer.take("i")  # the correlation id
    return answer


def _call(port: int, key: int, version: int, body: bytes) -> Reader:
    """The same over a connection of its own."""
    with connect(port) as connection:
        return ask(connection, key, version, body)


def _receive(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        if not (more := connection.recv(length - len(data))):
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def metadata(port: int) -> Cached:
    """A broker's view of the cluster; the leader is -1 where it knows of none that is alive."""
    answer = _call(port, METADATA, 1, struct.pack(">i", -1))
    brokers = []
    for _ in range(answer.take("i")):
        brokers.append(answer.take("i"))
        answer.string(), answer.take("i"), answer.string()  # host, port, rack
    answer.take("i")  # the controller
    found = {}
    for _ in range(answer.take("i")):
        answer.take("h")
        topic = answer.string()
        answer.take("b")
        for _ in range(answer.take("i")):
            _, partition, leader = answer.take("h"), answer.take("i"), answer.take("i")
            _, isr = answer.integers(), answer.integers()
            found[topic, partition] = leader, isr if leader >= 0 else ()
    return Cached(tuple(sorted(brokers)), found)


def produce(port: int, topic: str, partition: int, values: Sequence[int], acks: int) -> tuple[int | None, str | None]:
    """Send records to a broker as one request; the offset of the first, or the error (neither with acks 0)."""
    try:
        with connect(port) as connection:
            return produce_over(connection, topic, partition, values, acks)
    except ConnectionError:
        return None, None if acks == 0 else "NETWORK_EXCEPTION"
    except TimeoutError:
        return None, "REQUEST_TIMED_OUT"


def produce_over(
    connection: socket.socket, topic: str, partition: int, values: Sequence[int], acks: int
) -> tuple[int | None, str | None]:
    """The same over a connection that stays open; ConnectionError or TimeoutError without an answer."""
    records = b""
    for offset, value in enumerate(map(str, values)):
        message = struct.pack(">bbqii", 1, 0, int(time.time() * 1000), -1, len(value)) + value.encode()
        message = struct.pack(">I", zlib.crc32(message)) + message
        records += struct.pack(">qi", offset, len(message)) + message
    body = struct.pack(">hii", acks, int(TIMEOUT * 1000), 1) + _string(topic)
    body += struct.pack(">iii", 1, partition, len(records)) + records
    answer = ask(connection, PRODUCE, 2, body, answered=acks != 0)
    if acks == 0:
        return None, None
    answer.take("i"), answer.string(), answer.take("i"), answer.take("i")
    error, offset = answer.take("h"), answer.take("q")
    return (None, ERRORS.get(error, f"error {error}")) if error else (offset, None)


def consume(port: int, topic: str, partition: int) -> list[str] | str:
    """The values a consumer reads from the beginning, or the error."""
    values: list[str] = []
    while True:
        with connect(port) as connection:
            batch = fetch_over(connection, topic, partition, len(values))
        if isinstance(batch, str):
            return batch
        if not batch:
            return values
        values += batch


def fetch_over(connection: socket.socket, topic: str, partition: int, offset: int, bytes: int = 0) -> list[str] | str:
    """The values from an offset on, or the error; the broker waits a tenth of a second for so many bytes."""
    body = (
        struct.pack(">iiii", -1, 100, bytes, 1) + _string(topic) + struct.pack(">iiqi", 1, partition, offset, 1 << 20)
    )
    answer = ask(connection, FETCH, 2, body)
    answer.take("i"), answer.take("i"), answer.string(), answer.take("i"), answer.take("i")
    error = answer.take("h")
    answer.take("q")  # the high watermark
    if error:
        return ERRORS.get(error, f"error {error}")
    return [record.value for record in _records(answer.bytes(answer.take("i")))]


def log(directory: Path) -> list[Record]:
    """The records of a replica's log files."""
    segments = sorted(directory.glob("*.log"))
    return [record for segment in segments for record in _records(segment.read_bytes())]


def high_watermarks(directory: Path) -> dict[tuple[str, int], int]:
    """The high watermarks that a broker last wrote into a log directory."""
    path = directory / "replication-offset-checkpoint"
    lines = path.read_text(encoding="utf-8").splitlines()[2:] if path.exists() else []
    return {(topic, int(number)): int(offset) for topic, number, offset in (line.split() for line in lines)}


def _records(data: bytes) -> Iterator[Record]:
    """The records of message sets (magic 0 and 1) and record batches (magic 2); a last one cut short is left out."""
    at = 0
    while at + 17 <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        end = at + 12 + length
        if end > len(data):
            return
        inside = Reader(data[at + 12 : end])
        if data[at + 16] < 2:
            inside.at = 6 if data[at + 16] == 0 else 14
            inside.bytes(inside.take("i"))
            yield Record(None, inside.bytes(inside.take("i")).decode())
        else:
            epoch = inside.take("i")
            inside.at = 45
            for _ in range(inside.take("i")):
                yield Record(epoch, _one(inside))
        at = end


def _one(batch: Reader) -> str:
    """The value of the next record in a batch."""
    end = batch.varint() + batch.at
    batch.take("b"), batch.varint(), batch.varint()  # attributes, timestamp, offset
    batch.bytes(batch.varint())
    value = batch.bytes(batch.varint()).decode()
    batch.at = end
    return value
