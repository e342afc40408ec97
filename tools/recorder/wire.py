"""Clients of Kafka over its own protocol, which produce, consume and ask for metadata; and a broker's log files.

Records are sent once (`retries=0`), each `acks` by itself, so that every outcome can be seen; Kafka's own producer
would hide some. Old versions of the requests that each of the three releases understands.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.wire import batches
from kafka_ctl.wire.client import answer, read_frame, request
from kafka_ctl.wire.codec import Message, parts_of
from kafka_ctl.wire.schema import name_of

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


def connect(port: int) -> socket.socket:
    """A connection to a broker. Raises ConnectionError if it is refused."""
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT + 1)


def _ask(connection: socket.socket, api: str, version: int, body: Message) -> Message:
    """Send one request and return its answer; ConnectionError or TimeoutError without one."""
    connection.sendall(request(api, version, body, client_id="recorder"))
    try:
        with connection.makefile("rb") as incoming:
            return answer(api, version, read_frame(incoming))
    except EOFError as closed:
        raise ConnectionError(str(closed)) from None


def metadata(port: int) -> Cached:
    """A broker's view of the cluster; the leader is -1 where it knows of none that is alive."""
    with connect(port) as connection:
        found = _ask(connection, "Metadata", 1, {"topics": None})
    states = ((tp, part["leader_id"], tuple(part["isr_nodes"])) for tp, part in parts_of(found["topics"]))
    partitions: dict[tuple[str, int], tuple[int, tuple[int, ...]]]
    partitions = {tp: (leader, isr if leader >= 0 else ()) for tp, leader, isr in states}
    return Cached(tuple(sorted(broker["node_id"] for broker in found["brokers"])), partitions)


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
    now = int(time.time() * 1000)
    records = [batches.Record(offset, now, None, str(value).encode()) for offset, value in enumerate(values)]
    part = {"index": partition, "records": batches.write_messages(records)}
    topics = [{"name": topic, "partition_data": [part]}]
    body = {"acks": acks, "timeout": int(TIMEOUT * 1000), "topic_data": topics}
    if acks == 0:
        connection.sendall(request("Produce", 2, body, client_id="recorder"))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # until the broker has read it all and closes
        return None, None
    found = _ask(connection, "Produce", 2, body)
    ((_, done),) = parts_of(found["responses"], of="partition_responses", number="index")
    error = name_of(done["error_code"])
    return (done["base_offset"] if error is None else None), error


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
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [part]}]
    body = {"replica_id": -1, "max_wait": 100, "min_bytes": bytes, "topics": topics}
    ((_, found),) = parts_of(_ask(connection, "Fetch", 2, body)["responses"], "topic")
    return name_of(found["error_code"]) or [record.value for record in _records(found["records"])]


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
    for _, raw in batches.split(data):
        if batches.magic_of(raw) < batches.MAGIC:
            epoch, found = None, batches.read_messages(raw)
        else:
            batch = batches.read_batch(raw)
            epoch, found = batch.leader_epoch, batches.read_records(batch)
        yield from (Record(epoch, (record.value or b"").decode()) for record in found)
