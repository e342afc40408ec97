"""A request sent by hand: its bytes, the way to a broker, and the answer.

    message = request("Metadata", 1, {"topics": None})
    answer("Metadata", 1, exchange("127.0.0.1:9092", message))

Bytes begin with their length everywhere. Kafka 2.0.1: clients/NetworkClient.java; common/network/NetworkSend.java
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from io import BufferedIOBase

from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.wire.codec import Message, decode_message, encode_message
from kafka_ctl.wire.schema import REQUEST, RESPONSE, api_key, message_type

PATIENCE = 10.0
"""Seconds that an answer may take."""


def request(
    api: str, version: int, body: Mapping[str, object], correlation_id: int = 1, client_id: str | None = "me"
) -> bytes:
    """A request as bytes, its length in front; BadInput for a value that its field cannot have."""
    header = {"correlation_id": correlation_id, "client_id": client_id}
    return encode_message(message_type(api_key(api), version, REQUEST), header, body)


def exchange(address: str, message: bytes, seconds: float = PATIENCE) -> bytes:
    """Send bytes to `host:port` on a connection of their own, and return the answer, its length in front.

    `address` may be a list with commas; the first is taken. Raises Unavailable where the connection ends, or nothing
    comes in time.
    """
    host, _, port = address.split(",")[0].rpartition(":")
    if not host or not port.isdecimal():
        raise BadInput(f"{address!r} is no address; one looks like 127.0.0.1:9092")
    try:
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            connection.sendall(message)
            with connection.makefile("rb") as incoming:
                return read_frame(incoming)
    except (OSError, EOFError) as problem:
        raise Unavailable(f"no answer from {host}:{port}: {problem}") from None


def read_frame(incoming: BufferedIOBase) -> bytes:
    """The next length and so many bytes of a file; EOFError where it ends before."""
    head = incoming.read(4)
    data = incoming.read(int.from_bytes(head, "big")) if len(head) == 4 else b""
    if len(head) < 4 or len(data) < int.from_bytes(head, "big"):
        raise EOFError("the connection was closed")
    return bytes(head + data)


def answer(api: str, version: int, message: bytes) -> Message:
    """What a response says: its fields, without the header."""
    return decode_message(message_type(api_key(api), version, RESPONSE), message[4:])[1]


def ask(address: str, api: str, version: int, body: Mapping[str, object]) -> Message:
    """A request by its fields, sent to `host:port`; the fields of the response."""
    return answer(api, version, exchange(address, request(api, version, body)))
