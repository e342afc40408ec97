"""Kafka's primitive types: how each is read from received bytes, and written.

A reader takes the bytes and an offset and returns the value and the offset behind it. It raises Malformed for what does
not fit into the bytes that are there, and never makes more room than these have.
Kafka 2.4.1: common/protocol/types/Type.java; common/utils/ByteUtils.java, readUnsignedVarint
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kafka_ctl.errors import BadInput

Reader = Callable[[bytes, int], tuple[Any, int]]
Writer = Callable[[Any], bytes]
NUMBERS = dict(zip("int8 int16 int32 int64 uint16 uint32 float64 bool".split(), "bhiqHId?", strict=True))
"""The types of a fixed length, and their letters in `struct`."""


class Malformed(BadInput):
    """Bytes that are no message: what was expected, at which offset, and what is there."""


def _number(letter: str) -> tuple[Reader, Writer]:
    packed = struct.Struct(f">{letter}")
    unpack_from, size = packed.unpack_from, packed.size

    def read(data: bytes, at: int) -> tuple[object, int]:
        if at + size > len(data):
            raise Malformed(f"{size} bytes expected at offset {at}, where {len(data) - at} are left")
        return unpack_from(data, at)[0], at + size

    def write(value: object) -> bytes:
        try:
            return packed.pack(value)
        except struct.error as error:
            raise BadInput(f"{value!r} does not fit: {error}") from None

    return read, write


def read_uvarint(data: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    value = 0
    for place in range(most):
        if at + place >= len(data):
            raise Malformed(f"a varint at offset {at} goes beyond the end")
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise Malformed(f"a varint at offset {at} has more than {most} bytes")


def write_uvarint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """A signed varint: 0, -1, 1, -2 are 0, 1, 2, 3."""
    if at < len(data) and data[at] < 0x80:  # nearly all that records have
        raw, at = data[at], at + 1
    else:
        raw, at = read_uvarint(data, at, most)
    return (raw >> 1) ^ -(raw & 1), at


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    return read_varint(data, at, 10)


def write_varint(value: int) -> bytes:
    return write_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def take(data: bytes, at: int, length: int, what: str) -> tuple[bytes, int]:
    """So many bytes."""
    if length < 0 or at + length > len(data):
        raise Malformed(f"{what} of length {length} at offset {at}, where {max(0, len(data) - at)} bytes are left")
    return data[at : at + length], at + length


def read_length(kind: str, flexible: bool) -> Reader:
    """The length of a string, of bytes, or of an array; -1 for null."""
    if flexible and kind != "legacy_string":
        return _compact_length
    return read_int16 if kind in ("string", "legacy_string") else read_int32


def _compact_length(data: bytes, at: int) -> tuple[int, int]:
    length, at = read_uvarint(data, at)
    return length - 1, at


def write_length(length: int, kind: str, flexible: bool) -> bytes:
    """The length, -1 for null."""
    if flexible and kind != "legacy_string":
        return write_uvarint(length + 1)
    return write_int16(length) if kind in ("string", "legacy_string") else write_int32(length)


def _sized(kind: str, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    read_size, is_text = read_length(kind, flexible), kind in ("string", "legacy_string")

    def read(data: bytes, at: int) -> tuple[object, int]:
        length, behind = read_size(data, at)
        if length == -1 and nullable:
            return None, behind
        raw, behind = take(data, behind, length, kind.removeprefix("legacy_"))
        return (raw.decode("utf-8", "replace") if is_text else raw), behind

    def write(value: Any) -> bytes:
        if value is None:
            if not nullable:
                raise BadInput(f"a {kind} cannot be null here")
            return write_length(-1, kind, flexible)
        raw = value.encode() if is_text else bytes(value)
        return write_length(len(raw), kind, flexible) + raw

    return read, write


def _read_uuid(data: bytes, at: int) -> tuple[UUID | None, int]:
    raw, at = take(data, at, 16, "uuid")
    return (UUID(bytes=raw) if any(raw) else None), at


def _write_uuid(value: UUID | None) -> bytes:
    return bytes(16) if value is None else value.bytes


_FIXED = {name: _number(letter) for name, letter in NUMBERS.items()} | {"uuid": (_read_uuid, _write_uuid)}
read_int16, write_int16 = _FIXED["int16"]
read_int32, write_int32 = _FIXED["int32"]


def primitive(kind: str, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """The reader and the writer of a type, in a flexible version or an older one."""
    return _FIXED[kind] if kind in _FIXED else _sized(kind, flexible, nullable)
