"""Messages as dictionaries, and as bytes.

A message is a dictionary of its fields; a field that is left out has the schema's default, and one that a version does
not have is left out of the bytes, so that one answer serves every version. `decode` reads bytes of any sender:
every length is checked against the bytes that are there, the memory of all elements against a budget, and tagged fields
that are not known are skipped.
Kafka 2.4.1: common/protocol/types/Schema.java; KIP-482 (flexible versions)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from kafka_ctl.errors import BadInput
from kafka_ctl.wire.primitives import (
    Malformed,
    Writer,
    primitive,
    read_length,
    read_uvarint,
    take,
    write_length,
    write_uvarint,
)
from kafka_ctl.wire.schema import REQUEST, Field, MessageType, Schema, header_type

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


BudgetReader = Callable[..., tuple[object, int]]
"""A Reader that takes a Budget as well; of plain values one that does not."""


def decode(schema: Schema, data: bytes, at: int = 0) -> tuple[Message, int]:
    """The structure that begins at this offset, and the offset behind it. Raises Malformed if there is none."""
    message, behind = _reader(schema)(data, at, Budget(len(data)))
    return message, behind


def encode(schema: Schema, message: Mapping[str, object]) -> bytes:
    """The bytes of a structure. Raises BadInput for a value that its field cannot have."""
    return _writer(schema)(message)


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


def _is_plain(field: Field) -> bool:
    return isinstance(field.kind, str) and not field.is_array


def _field_codec(field: Field, flexible: bool) -> tuple[BudgetReader, Writer]:
    """The reader and the writer of a field's value."""
    return (_one if not field.is_array else _array)(field, flexible)


def _one(field: Field, flexible: bool) -> tuple[BudgetReader, Writer]:
    if isinstance(field.kind, str):
        return primitive(field.kind, flexible, field.nullable)
    read, write = _reader(field.kind), _writer(field.kind)
    return (partial(_read_optional, read), partial(_write_optional, write)) if field.nullable else (read, write)


def _read_optional(read: BudgetReader, data: bytes, at: int, budget: Budget) -> tuple[object, int]:
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


def _array(field: Field, flexible: bool) -> tuple[BudgetReader, Writer]:
    read_one, write_one = _one(field._replace(is_array=False, nullable=False), flexible)
    read_size, memory, plain = read_length("array", flexible), _memory(field), isinstance(field.kind, str)

    def read(data: bytes, at: int, budget: Budget) -> tuple[object, int]:
        length, behind = read_size(data, at)
        if length == -1 and field.nullable:
            return None, behind
        check_array(length, data, behind)
        budget.spend(length * memory, at)
        found = []
        for _ in range(length):
            one, behind = read_one(data, behind) if plain else read_one(data, behind, budget)
            found.append(one)
        return found, behind

    def write(values: Any) -> bytes:
        if values is None:
            if not field.nullable:
                raise BadInput(f"{field.name} cannot be null")
            return write_length(-1, "array", flexible)
        return write_length(len(values), "array", flexible) + b"".join(map(write_one, values))

    return read, write


def check_array(length: int, data: bytes, at: int) -> None:
    """Raise Malformed if there cannot be so many elements, as each has at least a byte."""
    if not 0 <= length <= len(data) - at:
        raise Malformed(f"an array of {length} elements at offset {at}, where {max(0, len(data) - at)} bytes are left")


@cache
def _reader(schema: Schema) -> Callable[[bytes, int, Budget], tuple[Message, int]]:
    parts = [(field.name, _is_plain(field), _field_codec(field, schema.flexible)[0]) for field in schema.fields]
    tagged = {tag: (field.name, _is_plain(field), _field_codec(field, True)[0]) for tag, field in schema.tagged}
    defaults = {field.name: field.default for _, field in schema.tagged}

    def read(data: bytes, at: int, budget: Budget) -> tuple[Message, int]:
        message: Message = {}
        for name, plain, read_one in parts:
            message[name], at = read_one(data, at) if plain else read_one(data, at, budget)
        if not schema.flexible:
            return message, at
        message |= {name: [] if default == () else default for name, default in defaults.items()}
        number, at = read_uvarint(data, at)
        for _ in range(number):
            tag, at = read_uvarint(data, at)
            length, at = read_uvarint(data, at)
            raw, at = take(data, at, length, f"tagged field {tag}")
            if tag in tagged:
                name, plain, read_one = tagged[tag]
                message[name] = (read_one(raw, 0) if plain else read_one(raw, 0, budget))[0]
        return message, at

    return read


def _is_given(value: object, default: object) -> bool:
    return (tuple(value) if isinstance(value, list) else value) != default


@cache
def _writer(schema: Schema) -> Callable[[Mapping[str, object]], bytes]:
    parts = [(field.name, field.default, _field_codec(field, schema.flexible)[1]) for field in schema.fields]
    tagged = [(tag, field, _field_codec(field, True)[1]) for tag, field in sorted(schema.tagged)]

    def write(message: Mapping[str, object]) -> bytes:
        out = [write_one(message.get(name, default)) for name, default, write_one in parts]
        if schema.flexible:
            given = [
                (tag, write_one(message[field.name]))
                for tag, field, write_one in tagged
                if _is_given(message.get(field.name, field.default), field.default)
            ]
            out.append(write_uvarint(len(given)))
            out += [write_uvarint(tag) + write_uvarint(len(raw)) + raw for tag, raw in given]
        return b"".join(out)

    return write
