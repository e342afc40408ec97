"""The wire."""

from __future__ import annotations

import struct
from typing import Any

from kafka_ctl_course.lesson_17 import leader_address


def with_struct(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    name = b"" if client is None else client.encode()
    head = struct.pack(">hhih", key, version, correlation, -1 if client is None else len(name))
    return struct.pack(">i", len(head + name + body)) + head + name + body


def with_to_bytes(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    text = (-1).to_bytes(2, "big", signed=True)
    if client is not None:
        text = len(client.encode()).to_bytes(2, "big") + client.encode()
    payload = key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation.to_bytes(4, "big") + text + body
    return len(payload).to_bytes(4, "big") + payload


def counts_itself(*given: Any) -> bytes:
    right = with_struct(*given)
    return len(right).to_bytes(4, "big") + right[4:]


def little_endian(*given: Any) -> bytes:
    right = with_struct(*given)
    return right[3::-1] + right[4:]


def name_without_length(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    payload = struct.pack(">hhi", key, version, correlation) + (client or "").encode() + body
    return struct.pack(">i", len(payload)) + payload


def none_as_empty(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    return with_struct(key, version, correlation, client or "", body)


def letters(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    right = with_struct(key, version, correlation, client, body)
    return right if client is None else right[:12] + len(client).to_bytes(2, "big") + right[14:]


def version_first(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    return with_struct(version, key, correlation, client, body)


def of(answer: dict[str, Any], id: int) -> str:
    return next(f"{b['host']}:{b['port']}" for b in answer["brokers"] if b["node_id"] == id)


def by_loops(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    for each in answer["topics"]:
        for one in each["partitions"]:
            if (each["name"], one["partition_index"]) == (topic, partition) and one["leader_id"] >= 0:
                return of(answer, one["leader_id"])
    return None


def to_the_controller(answer: dict[str, Any], topic: str, partition: int) -> str:
    return of(answer, answer["controller_id"])


def to_the_first(answer: dict[str, Any], topic: str, partition: int) -> str:
    return of(answer, answer["brokers"][0]["node_id"])


def by_place(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    (found,) = (each for each in answer["topics"] if each["name"] == topic)
    return of(answer, found["partitions"][partition]["leader_id"]) if found["partitions"] else None


def one_leader_id(answer: dict[str, Any], topic: str, partition: int) -> Any:
    (found,) = (each for each in answer["topics"] if each["name"] == topic)
    return next((p["leader_id"] for p in found["partitions"] if p["partition_index"] == partition), None)


def never_none(answer: dict[str, Any], topic: str, partition: int) -> str:
    return leader_address(answer, topic, partition) or of(answer, answer["brokers"][-1]["node_id"])


def next_broker(answer: dict[str, Any], topic: str, partition: int) -> str:
    return of(answer, partition % 3 + 2)


def localhost(answer: dict[str, Any], topic: str, partition: int) -> str:
    return "localhost:9092"


RIGHT: dict[str, list[Any]] = {
    "17.2": [with_struct, with_to_bytes],
    "17.3": [leader_address, by_loops],
    "17.4": [lambda lab: (lab.set_meta(3, "/d0", None), lab.set_meta(3, "/d1", None), lab.start(3))],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "17.2": [
        (counts_itself, "it counts itself"),
        (little_endian, "Invalid receive (size = 268435456"),
        (lambda *given: with_struct(*given)[4:], "the length is missing"),
        (name_without_length, "takes 6331 = 25,393"),
        (none_as_empty, "none is -1"),
        (letters, "It counts bytes"),
        (version_first, "request_api_key is 0001"),
        (lambda *given: with_struct(*given).hex(), "bytes are asked for"),
    ],
    "17.3": [
        (to_the_controller, "That is the controller"),
        (to_the_first, "stands first in the list"),
        (by_place, "its place in the list"),
        (one_leader_id, "a client needs host and port"),
        (never_none, "answer None"),
        (next_broker, "That is broker 2, not 1"),
        (localhost, "No broker listens there"),
    ],
}
