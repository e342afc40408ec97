"""Damaged requests of every kind, for a test of seconds and a benchmark of minutes."""

from __future__ import annotations

import random
import socket
import struct
import time
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.wire.batches import FIRST, HEADER, MAGIC, Record, checksum, write_batch
from kafka_ctl.wire.codec import encode_message
from kafka_ctl.wire.schema import Field, Schema, api_key, message_type
from kafka_ctl.wire.versions import announced

BETWEEN = 100
"""Connections after which the brokers are waited for."""
CONTROL_REQUESTS = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")


def connect(lab: Lab, place: int = 0) -> socket.socket:
    """A connection to one of the brokers."""
    host, port = lab.bootstrap_servers.split(",")[place].split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A message with something wrong in it: cut, longer, or with some of its bytes changed."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data = data[: max(at, 1)]
            case 1:
                wrong = rng.choice((-1, -2, -(2**31), 2**31 - 1, 1 << 28, 0, 255))
                data = data[:at] + struct.pack(">i", wrong) + data[at + 4 :]
            case 2:
                data = data[:at] + rng.randbytes(2) + data[at + 2 :]
            case _:
                data = data[:at] + rng.randbytes(9) + data[at:]
    return data


def await_answers(lab: Lab) -> None:
    """Wait until every broker has answered a sound request, the controller after all that waits in its queue.

    Without that, connections whose requests wait become more and more, until the system allows no more open files.
    """
    kind = message_type(api_key("ControlledShutdown"), 1)
    request = encode_message(kind, {"correlation_id": 7, "client_id": "fuzz"}, {"broker_id": 999})
    for place in range(3):
        with connect(lab, place) as connection:
            connection.sendall(request)
            answer = connection.recv(8, socket.MSG_WAITALL)
            assert answer[4:] == struct.pack(">i", 7), f"broker {place + 1} does not answer: {answer!r}"


def fuzz(lab: Lab, seconds: float, seed: int, least: int = 0) -> int:
    """Send damaged requests of every kind for so long, and so many at least; returns how many."""
    rng, opened, sent, end = random.Random(seed), 0, 0, time.monotonic() + seconds
    spans = list(announced(lab.generation).items())
    while time.monotonic() < end or sent < least:
        if opened % BETWEEN == 0:
            await_answers(lab)
        opened += 1
        with connect(lab, rng.randrange(3)) as connection:
            connection.settimeout(5)
            for _ in range(rng.randrange(1, 5)):
                name, (low, high) = rng.choice(spans)
                kind = message_type(api_key(name), rng.randint(low, high))
                header = {"correlation_id": rng.randrange(100), "client_id": "fuzz"}
                frame = encode_message(kind, header, plausible(name, kind.body, rng))[4:]
                frame = damaged(frame, rng) if rng.random() < 0.7 else frame
                size = rng.choice((len(frame),) * 9 + (rng.randrange(-5, 1 << 20),))
                try:
                    connection.sendall(struct.pack(">i", size) + frame)
                except OSError:
                    break
                sent += 1
    return sent


def crashes(lab: Lab) -> list[str]:
    """What ended connections in a request handler that failed.

    A batch with an unknown codec has the same error in Kafka, and with acks=0 it ends the connection: no failure.
    """
    closed = [
        record.detail or "" for record in lab.trace.slice(action="closed-connection", error="UNKNOWN_SERVER_ERROR")
    ]
    return [detail for detail in closed if not detail.startswith("error during produce request with ack=0: ")]


def plausible(name: str, body: Schema, rng: random.Random) -> dict[str, object]:
    """Fields that make a request reach what answers it; what a version does not have is left out.

    What only a controller sends is nearly empty: with its epochs anybody can unseat it, in Kafka as well.
    """
    harmless = {
        "timeout": rng.choice((0, 10)),
        "timeout_ms": 10,
        "max_wait": 10,
        "rebalance_timeout": 100,
        "session_timeout": 100,
    }
    if name in CONTROL_REQUESTS:
        return {}
    return {field.name: drawn(field, rng) for field in body.fields if rng.random() < 0.95} | harmless


def drawn(field: Field, rng: random.Random) -> Any:
    """A value for a field, of which names and numbers often mean something."""
    if field.nullable and rng.random() < 0.1:
        return None
    if field.is_array:
        return [drawn(field._replace(is_array=False, nullable=False), rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    if isinstance(field.kind, Schema):
        return {one.name: drawn(one, rng) for one in field.kind.fields}
    match field.kind:
        case "string" | "legacy_string":
            return rng.choice(("orders", "orders", "g", "m", "1", "", "a b", "min.insync.replicas", "x" * 300))
        case "records" | "bytes":
            return records(rng)
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.random()
        case "uuid":
            return None
        case "int8" | "uint16" | "uint32":
            return rng.choice((0, 0, 1, 2, 4, 100))
        case _:
            return rng.choice((0, 0, 0, 1, 1, 2, 3, 5, -1, -1, -2, 100, 1 << 14))


def records(rng: random.Random) -> bytes:
    """Records for a produce request: sound ones, and others behind a checksum that is right."""
    sound = write_batch([Record(number, 5, b"k", b"value") for number in range(rng.randrange(1, 5))])
    content = sound[HEADER.size :]
    return rng.choice(
        (
            sound,
            rng.randbytes(80),
            packed(content, rng.choice((-1, 0, 1, 3, 1 << 30))),
            packed(rng.randbytes(30)),
            packed(damaged(content, rng), len(content) // 12, attributes=rng.choice((0, 0, 1, 2, 7, 0x20, 0x10))),
            packed(content, producer=rng.randrange(-1, 3), sequence=rng.choice((-1, 0, 3, 1 << 30)), attributes=0x10),
        )
    )


def packed(
    content: bytes,
    count: int = 3,
    last: int | None = None,
    attributes: int = 0,
    base: int = 0,
    producer: int = -1,
    sequence: int = -1,
) -> bytes:
    """A batch whose checksum is right, whatever it holds."""
    last = count - 1 if last is None else last
    covered = struct.pack(">hiqqqhii", attributes, last, 5, 5, producer, -1, sequence, count) + content
    front = FIRST.pack(base, len(covered) + 9, -1)
    return front + struct.pack(">bI", MAGIC, checksum(covered)) + covered
