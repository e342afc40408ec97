"""Damaged requests of every kind, for a test of seconds and a benchmark of minutes."""

from __future__ import annotations

import random
import socket
import struct
import time

from kafka_ctl import Lab
from kafka_ctl.wire.codec import encode_message
from kafka_ctl.wire.schema import api_key, message_type
from kafka_ctl.wire.versions import announced


def connect(lab: Lab, place: int = 0) -> socket.socket:
    """A connection to one of the brokers."""
    host, port = lab.bootstrap_servers.split(",")[place].split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A request with something wrong in it."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data = data[: max(at, 1)]
            case 1:
                data = data[:at] + struct.pack(">i", rng.choice((-1, -(2**31), 2**31 - 1, 0, 255))) + data[at + 4 :]
            case 2:
                data = data[:at] + rng.randbytes(2) + data[at + 2 :]
            case _:
                data = data[:at] + rng.randbytes(9) + data[at:]
    return data


def fuzz(lab: Lab, seconds: float, seed: int) -> int:
    """Send damaged requests of every kind for so long; returns how many."""
    rng, sent, end = random.Random(seed), 0, time.monotonic() + seconds
    spans = list(announced(lab.generation).items())
    while time.monotonic() < end:
        with connect(lab, rng.randrange(3)) as connection:
            connection.settimeout(5)
            for _ in range(rng.randrange(1, 5)):
                name, (low, high) = rng.choice(spans)
                kind = message_type(api_key(name), rng.randint(low, high))
                header = {"correlation_id": rng.randrange(100), "client_id": "fuzz"}
                frame = damaged(encode_message(kind, header, plausible(name, kind.body.name, rng))[4:], rng)
                size = rng.choice((len(frame),) * 9 + (rng.randrange(-5, 1 << 20),))
                try:
                    connection.sendall(struct.pack(">i", size) + frame)
                except OSError:
                    break
                sent += 1
    return sent


def plausible(name: str, schema: str, rng: random.Random) -> dict[str, object]:
    """Fields that make a request reach what answers it; what a version does not have is left out."""
    number = rng.randrange(3)
    harmless = {"timeout": rng.choice((0, 10)), "max_wait": 10, "group_id": "g", "member_id": "m", "key": "g"}
    parts = {"index": number, "partition": number, "partition_index": number, "records": rng.randbytes(80)}
    topic = {"name": "orders", "topic": "orders", "partition_data": [parts], "partitions": [parts]}
    if name in ("Produce", "Fetch", "ListOffsets"):
        return harmless | {"acks": 1, "topic_data": [topic], "topics": [topic]}
    return harmless
