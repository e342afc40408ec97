"""The wire."""

from __future__ import annotations

import struct
from typing import Any

from kafka_ctl_course.lesson_18 import common_version


def with_struct(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    name = b"" if client is None else client.encode()
    head = struct.pack(">hhih", key, version, correlation, -1 if client is None else len(name))
    return struct.pack(">i", len(head + name + body)) + head + name + body


def none_as_empty(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    return with_struct(key, version, correlation, client or "", body)


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


def letters(key: int, version: int, correlation: int, client: str | None, body: bytes) -> bytes:
    right = with_struct(key, version, correlation, client, body)
    return right if client is None else right[:12] + len(client).to_bytes(2, "big") + right[14:]


Listed = list[dict[str, int]]


def by_sets(known: tuple[int, int], listed: Listed, key: int) -> int | None:
    spans = {each["api_key"]: range(each["min_version"], each["max_version"] + 1) for each in listed}
    return max({*range(known[0], known[1] + 1)} & {*spans.get(key, range(0))}, default=None)


def the_brokers_highest(known: tuple[int, int], listed: Listed, key: int) -> int | None:
    return next((each["max_version"] for each in listed if each["api_key"] == key), None)


def lower_of_both(known: tuple[int, int], listed: Listed, key: int) -> int | None:
    highest = the_brokers_highest(known, listed, key)
    return None if highest is None else min(known[1], highest)


def lowest_common(known: tuple[int, int], listed: Listed, key: int) -> int | None:
    if by_sets(known, listed, key) is None:
        return None
    return max(known[0], next(each["min_version"] for each in listed if each["api_key"] == key))


def by_place(known: tuple[int, int], listed: Listed, key: int) -> int:
    return min(known[1], listed[key]["max_version"])


def unlisted(known: tuple[int, int], listed: Listed, key: int) -> int | None:
    return common_version(known, listed, key) if key in {each["api_key"] for each in listed} else known[1]


RIGHT: dict[str, list[Any]] = {
    "18.2": [with_struct, with_to_bytes],
    "18.3": [common_version, by_sets],
    "18.4": [
        lambda lab: (lab.bounce(1), lab.settle(), lab.delete_controller(), lab.settle(), lab.elect_preferred()),
        lambda lab: (lab.bounce(3), lab.settle(), lab.elect_preferred()),
        lambda lab: (lab.shutdown(3), lab.start(3), lab.settle(), lab.elect_preferred()),
        lambda lab: (lab.kill(3), lab.start(3), lab.settle(), lab.elect_preferred([("orders", 2)])),
    ],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "18.2": [
        (counts_itself, "it counts itself"),
        (little_endian, "Invalid receive (size = 268435456"),
        (lambda *given: with_struct(*given)[4:], "the length is missing"),
        (name_without_length, "takes 6331 = 25,393"),
        (none_as_empty, "none is -1"),
        (letters, "It counts bytes"),
        (lambda key, version, *rest: with_struct(version, key, *rest), "request_api_key is 0001"),
        (lambda *given: with_struct(*given).hex(), "bytes are asked for"),
        (lambda *given: with_struct(*given[:4], b""), "the body is missing"),
        (lambda *given: with_struct(*given) + b"\0", "1 byte follows the request; the broker takes it"),
        (lambda *given: with_struct(*given) + b"\0\0", "2 bytes follow the request; the broker takes them"),
    ],
    "18.3": [
        (lambda known, listed, key: known[1], "and closes the connection"),
        (the_brokers_highest, "the client cannot write that version"),
        (lower_of_both, "cannot write that version"),
        (lowest_common, "and a newer one, too"),
        (by_place, "If you took place 3 of the list: it has API key"),
        (
            lambda known, listed, key: 0 if key == 7 else common_version(known, listed, key),
            "a client uses only what a broker announces",
        ),
        (unlisted, "does not list this key"),
        (lambda known, listed, key: None, "you return None. The broker knows 0 to 2"),
        (lambda known, listed, key: "2", "A version is a number"),
    ],
    "18.4": [
        (
            lambda lab: lab.bounce(3),
            "After `bounce 3`, when all is quiet again: orders-2 is led by broker 1; it "
            "prefers broker 3. Every replica",
        ),
        (lambda lab: (lab.bounce(3), lab.settle(), lab.reassign({"orders-2": [3]})), "orders-2 has 1 of 3 copies"),
        (lambda lab: (lab.shutdown(3), lab.start(3)), "an administrator asks"),
        (lambda lab: lab.delete_controller(), "takes the epochs, and starts no fetcher"),
        (lambda lab: lab.expire_session(3), "starts no fetcher"),
        (lambda lab: lab.elect_preferred(), "nothing was elected"),
        (lambda lab: (lab.bounce(3), lab.elect_preferred()), "was not in the ISR of orders-2 yet"),
        (
            lambda lab: (lab.bounce(1), lab.settle(), lab.elect_preferred()),
            "Broker 3 is in the ISR, but this controller counts it as leaving",
        ),
        (lambda lab: (lab.elect_preferred(), lab.bounce(3)), "before that: ask again"),
        (lambda lab: lab.catch_up(3), "does not fetch at all"),
        (lambda lab: lab.shutdown(3), "broker 3 is not running"),
    ],
}
