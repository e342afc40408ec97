"""Messages as dictionaries, and as bytes: Kafka's primitive types, and the structures that the schemas make of them.

A message is a dictionary of its fields; a field that is left out has the schema's default, and one that a version does
not have is left out of the bytes, so that one answer serves every version. `decode` reads bytes of any sender:
every length is checked against the bytes that are there, the memory of all elements against a budget, and tagged fields
that are not known are skipped.

A reader takes the bytes, an offset and a budget, which plain values do not need, and returns the value and the offset
behind it. It raises Malformed for what does not fit into the bytes that are there.
Kafka 2.4.1: common/protocol/types/Type.java, Schema.java; common/utils/ByteUtils.java, readUnsignedVarint; KIP-482
(flexible versions)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any
from uuid import UUID

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.wire.schema import REQUEST, Field, MessageType, Schema, header_type, number_of

Reader = Callable[..., tuple[Any, int]]
Writer = Callable[[Any], bytes]
NUMBERS = dict(zip("int8 int16 int32 int64 uint16 uint32 float64 bool".split(), "bhiqHId?", strict=True))
"""The types of a fixed length, and their letters in `struct`."""


class Malformed(BadInput):
    """Bytes that are no message: what was expected, at which offset, and what is there."""


def _number(letter: str) -> tuple[Reader, Writer]:
    packed = struct.Struct(f">{letter}")
    unpack_from, size = packed.unpack_from, packed.size

    def read(data: bytes, at: int, budget: Budget | None = None) -> tuple[object, int]:
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
    value = shift = 0
    for byte in data[at : at + most]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at + shift // 7
    wrong = "goes beyond the end" if at + most > len(data) else f"has more than {most} bytes"
    raise Malformed(f"a varint at offset {at} {wrong}")


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
    try:  # nearly all that records have takes one byte, or two
        if (raw := data[at]) < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + 1
        if (second := data[at + 1]) < 0x80:
            raw = raw & 0x7F | second << 7
            return (raw >> 1) ^ -(raw & 1), at + 2
    except IndexError:
        pass  # `read_uvarint` says what is wrong
    raw, at = read_uvarint(data, at, most)
    return (raw >> 1) ^ -(raw & 1), at


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    return read_varint(data, at, 10)


def write_varint(value: int) -> bytes:
    return write_uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def take(data: bytes, at: int, length: int, what: str) -> tuple[bytes, int]:
    """Take `length` bytes, which are `what`. Raises Malformed where fewer are left."""
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

    def read(data: bytes, at: int, budget: Budget | None = None) -> tuple[object, int]:
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
        raw = value.encode() if isinstance(value, str) else value
        if is_text != isinstance(value, str) or not isinstance(raw, (bytes, bytearray, memoryview)):
            raise BadInput(f"{value!r} does not fit: {'text' if is_text else 'bytes'} expected")
        return write_length(len(raw), kind, flexible) + raw

    return read, write


def _read_uuid(data: bytes, at: int, budget: Budget | None = None) -> tuple[UUID | None, int]:
    raw, at = take(data, at, 16, "uuid")
    return (UUID(bytes=raw) if any(raw) else None), at


def _write_uuid(value: UUID | None) -> bytes:
    if not isinstance(value, UUID | None):
        raise BadInput(f"{value!r} does not fit: a UUID expected")
    return bytes(16) if value is None else value.bytes


_FIXED = {name: _number(letter) for name, letter in NUMBERS.items()} | {"uuid": (_read_uuid, _write_uuid)}
read_int16, write_int16 = _FIXED["int16"]
read_int32, write_int32 = _FIXED["int32"]


def primitive(kind: str, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """The reader and the writer of a type, in a flexible version or an older one."""
    return _FIXED[kind] if kind in _FIXED else _sized(kind, flexible, nullable)


# Messages

MOST_MEMORY, TIMES = 256 << 20, 128
"""Bytes of memory that the elements of all arrays of one message may take, and how many for each of its own bytes."""
VALUE, STRUCTURE = 64, 192
"""Bytes of memory that a value takes, at most, with its place in a list or dictionary, and what a dictionary adds."""
Message = dict[str, Any]
"""A message by the names of its fields; structures inside it are dictionaries, arrays are lists."""


class Budget:
    """The memory in bytes that the elements of one message may still take."""

    def __init__(self, message: int) -> None:
        self.left = self.size = min(MOST_MEMORY, TIMES * message)

    def spend(self, size: int, at: int) -> None:
        """Raise Malformed if that is more than is left."""
        self.left -= size
        if self.left < 0:
            raise Malformed(f"an array at offset {at} for which {self.size} bytes of memory are too few")


def decode(schema: Schema, data: bytes, at: int = 0) -> tuple[Message, int]:
    """The structure that begins at this offset, and the offset behind it. Raises Malformed if there is none."""
    read, _ = _structure(schema)
    message, behind = read(data, at, Budget(len(data)))
    return message, behind


def encode(schema: Schema, message: Mapping[str, object]) -> bytes:
    """The bytes of a structure. Raises BadInput for a value that its field cannot have."""
    _, write = _structure(schema)
    return write(message)


def decode_message(kind: MessageType, data: bytes) -> tuple[Message, Message]:
    """Header and body of a whole request or response, without the four bytes of its length."""
    header, at = decode(header_type(kind.direction, kind.header_version), data)
    return header, decode(kind.body, data, at)[0]


def encode_message(kind: MessageType, header: Mapping[str, object], body: Mapping[str, object]) -> bytes:
    """A whole request or response with its length in front; a request's header names its API and version by itself."""
    named = {"request_api_key": kind.api_key, "request_api_version": kind.version} if kind.direction == REQUEST else {}
    head = encode(header_type(kind.direction, kind.header_version), named | dict(header))
    payload = head + encode(kind.body, body)
    return len(payload).to_bytes(4, "big") + payload


def _field_codec(field: Field, flexible: bool) -> tuple[Reader, Writer]:
    """The reader and the writer of a field's value."""
    if field.is_array:
        return _array(field, flexible)
    if isinstance(field.kind, str):
        return primitive(field.kind, flexible, field.nullable)
    read, write = _structure(field.kind)
    return (partial(_read_optional, read), partial(_write_optional, write)) if field.nullable else (read, write)


def _read_optional(read: Reader, data: bytes, at: int, budget: Budget) -> tuple[object, int]:
    """A structure that may be null begins with a byte that says so (KIP-893)."""
    marker, behind = take(data, at, 1, "a structure")
    return (None, behind) if marker == b"\xff" else read(data, behind, budget)


def _write_optional(write: Writer, value: object) -> bytes:
    return b"\xff" if value is None else b"\x01" + write(value)


def _memory(field: Field) -> int:
    """Bytes of memory that a value of a field, or an element of an array, takes without the arrays inside."""
    if isinstance(field.kind, str):
        return VALUE
    listed = [*field.kind.fields, *(one for _, one in field.kind.tagged)]
    return STRUCTURE + sum(VALUE if one.is_array else _memory(one) for one in listed)


def _array(field: Field, flexible: bool) -> tuple[Reader, Writer]:
    read_one, write_one = _field_codec(field._replace(is_array=False, nullable=False), flexible)
    read_size, memory = read_length("array", flexible), _memory(field)

    def read(data: bytes, at: int, budget: Budget) -> tuple[object, int]:
        length, behind = read_size(data, at)
        if length == -1 and field.nullable:
            return None, behind
        check_array(length, data, behind)
        budget.spend(length * memory, at)
        found = []
        for _ in range(length):
            one, behind = read_one(data, behind, budget)
            found.append(one)
        return found, behind

    def write(values: Any) -> bytes:
        if values is None:
            if not field.nullable:
                raise BadInput(f"{field.name} cannot be null")
            return write_length(-1, "array", flexible)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            raise BadInput(f"{field.name} cannot be {values!r}; it must be a list")
        return write_length(len(values), "array", flexible) + b"".join(map(write_one, values))

    return read, write


def check_array(length: int, data: bytes, at: int) -> None:
    """Raise Malformed if there cannot be so many elements, as each has at least a byte."""
    if not 0 <= length <= len(data) - at:
        raise Malformed(f"an array of {length} elements at offset {at}, where {max(0, len(data) - at)} bytes are left")


def _is_given(value: object, default: object) -> bool:
    return (tuple(value) if isinstance(value, list) else value) != default


@cache
def _structure(schema: Schema) -> tuple[Reader, Writer]:
    parts = [(field.name, field.default, *_field_codec(field, schema.flexible)) for field in schema.fields]
    readers = [(name, read_one) for name, _, read_one, _ in parts]
    writers = [(name, default, write_one) for name, default, _, write_one in parts]
    tagged = {tag: (field.name, field.default, *_field_codec(field, True)) for tag, field in sorted(schema.tagged)}

    def read(data: bytes, at: int, budget: Budget) -> tuple[Message, int]:
        message: Message = {}
        for name, read_one in readers:
            message[name], at = read_one(data, at, budget)
        if not schema.flexible:
            return message, at
        message |= {name: [] if default == () else default for name, default, _, _ in tagged.values()}
        number, at = read_uvarint(data, at)
        for _ in range(number):
            tag, at = read_uvarint(data, at)
            length, at = read_uvarint(data, at)
            raw, at = take(data, at, length, f"tagged field {tag}")
            if tag in tagged:
                name, _, read_one, _ = tagged[tag]
                message[name], _ = read_one(raw, 0, budget)
        return message, at

    def write(message: Mapping[str, object]) -> bytes:
        out = [write_one(message.get(name, default)) for name, default, write_one in writers]
        if schema.flexible:
            given = [
                (tag, write_one(message[name]))
                for tag, (name, default, _, write_one) in tagged.items()
                if _is_given(message.get(name, default), default)
            ]
            out.append(write_uvarint(len(given)))
            out += [write_uvarint(tag) + write_uvarint(len(raw)) + raw for tag, raw in given]
        return b"".join(out)

    return read, write


# Topics and their partitions in messages


def _by_topic(parts: Iterable[tuple[TopicPartition, object]], name: str, of: str) -> list[Message]:
    """The parts that a message has of partitions, by topic, in the order in which the topics come first."""
    topics: dict[str, list[object]] = {}
    for tp, part in parts:
        topics.setdefault(tp.topic, []).append(part)
    return [{name: topic, of: listed} for topic, listed in topics.items()]


def grouped(
    parts: Iterable[tuple[TopicPartition, Message]],
    name: str = "name",
    of: str = "partitions",
    number: str = "partition_index",
) -> list[Message]:
    """Group the parts of a message by topic; each gets the number of its partition."""
    return _by_topic(((tp, {number: tp.partition} | part) for tp, part in parts), name, of)


def numbered(partitions: Iterable[TopicPartition], name: str = "name", of: str = "partitions") -> list[Message]:
    """The numbers of partitions, by topic."""
    return _by_topic(((tp, tp.partition) for tp in partitions), name, of)


def errors_by_topic(
    errors: Mapping[TopicPartition, str | None], name: str = "name", of: str = "partitions", code: str = "error_code"
) -> list[Message]:
    """The outcome of each partition, by topic."""
    return grouped(((tp, {code: number_of(error)}) for tp, error in errors.items()), name, of)


def parts_of(
    topics: Iterable[Message], name: str = "name", of: str = "partitions", number: str = "partition_index"
) -> Iterator[tuple[TopicPartition, Message]]:
    """Each partition of a message, with its part of it."""
    for topic in topics:
        for part in topic[of]:
            yield TopicPartition(topic[name], part[number]), part


def named(topics: Iterable[Message], name: str = "name", of: str = "partitions") -> tuple[TopicPartition, ...]:
    """The partitions that are named by their numbers under their topics, each once."""
    return tuple(dict.fromkeys(TopicPartition(topic[name], number) for topic in topics for number in topic[of]))


def answered(
    topics: Iterable[Message],
    answer: Callable[[TopicPartition, Message], Message],
    of: str = "partitions",
    number: str = "partition_index",
    to: str = "partitions",
) -> list[Message]:
    """By topic, one answer for each partition of a request, to its last entry for that partition."""
    asked = dict(parts_of(topics, of=of, number=number))
    return grouped(((tp, answer(tp, part)) for tp, part in asked.items()), of=to, number=number)
