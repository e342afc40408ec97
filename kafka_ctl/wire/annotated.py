"""A message taken apart: each field with its offset, its bytes, its type and its value.

    from kafka_ctl.wire.annotated import annotate
    annotate("00000010 0007 0001 00000005 0002 6331 00000003")

In a notebook the answer is a table; `print` gives the same as text. Reading goes on up to the first byte that cannot be
right, and the last row says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_ctl.display import Table, counted
from kafka_ctl.errors import BadInput
from kafka_ctl.wire import batches
from kafka_ctl.wire.codec import (
    Malformed,
    check_array,
    primitive,
    read_length,
    read_uvarint,
    read_varint,
    read_varlong,
    take,
)
from kafka_ctl.wire.schema import (
    REQUEST,
    RESPONSE,
    Field,
    MessageType,
    Schema,
    api_key,
    apis,
    header_type,
    message_type,
    versions,
)

SHOWN = 16
"""The most bytes of one row that are shown."""


class Part(NamedTuple):
    """One row: the field's path, such as `topics[0].name`; `offset` counts from the first byte that was given."""

    offset: int
    raw: bytes
    field: str
    type: str
    value: object

    @property
    def hex(self) -> str:
        """The bytes, as far as they are shown."""
        return self.raw[:SHOWN].hex(" ") + (" ..." if len(self.raw) > SHOWN else "")


class Remark(str):
    """Instead of a value: the remark on bytes that have none."""

    __slots__ = ()


class Annotated(tuple[Part, ...]):
    """The parts of a message in order; together they are its bytes."""

    title = ""

    def __str__(self) -> str:
        return f"{self.title}\n{self._table().text()}"

    def _repr_html_(self) -> str:
        return self._table().html(self.title)

    def _table(self) -> Table:
        rows = [(str(part.offset), part.hex, part.field, part.type, _value_text(part.value)) for part in self]
        return Table(("offset", "bytes", "field", "type", "value"), rows)


def _value_text(value: object) -> str:
    if isinstance(value, Remark):
        return value
    text = repr(value) if isinstance(value, (str, bytes)) else "" if value is ... else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_bytes(given: bytes | str) -> bytes:
    """The bytes of `given`: bytes, or text of hexadecimal digits with spaces. Raises BadInput for any other text."""
    if isinstance(given, bytes):
        return given
    digits = re.sub(r"\s|0x", "", given)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise BadInput(f"{given[:40]!r} is not text of hexadecimal digits, two for each byte") from None


def annotate(message: bytes | str, api: str | int | None = None, version: int | None = None) -> Annotated:
    """Take a message apart. A request says what it is; for a response, name the `api` and `version` it answers.

    `message` may begin with the four bytes of its length, or not. BadInput where nothing can be recognised.
    """
    data = as_bytes(message)
    framed = len(data) >= 4 and int.from_bytes(data[:4], "big", signed=True) == len(data) - 4
    framed = framed or (api is None and data[:2] == b"\0\0" and not _is_named(data, 0) and _is_named(data, 4))
    at = 4 if framed else 0
    if api is None:
        kind = message_type(*_named(data, at), REQUEST)
    else:
        key = api_key(api)
        if version is None:
            raise BadInput("a response does not say its version: name the version of the request that it answers")
        kind = message_type(key, version, RESPONSE)
    parts = [Part(0, data[:4], "length", "int32", int.from_bytes(data[:4], "big"))] if framed else []
    title = f"{apis()[kind.api_key]} {kind.direction}, version {kind.version}"
    return _collected(title, data, _parts(kind, data, at), parts)


def _is_named(data: bytes, at: int) -> bool:
    """True if a request of a known kind begins at this offset."""
    try:
        return _named(data, at)[1] in versions(_named(data, at)[0])
    except BadInput:
        return False


def _named(data: bytes, at: int) -> tuple[int, int]:
    """API key and version at the beginning of a request."""
    if len(data) < at + 8:
        is_or_are = "is" if len(data) == 1 else "are"
        raise BadInput(f"a request has at least 8 bytes before the client id; here {is_or_are} {_guess(data)}")
    key, version = (int.from_bytes(data[place : place + 2], "big", signed=True) for place in (at, at + 2))
    if key not in apis():
        raise BadInput(f"no request has API key {key}; name api and version of a response. Here are {_guess(data)}")
    return key, version


def _guess(data: bytes) -> str:
    """The likely protocol of bytes that are no request: clients of other protocols often reach a broker's port."""
    text = counted(len(data), "byte")
    if len(data) < 4:
        return text
    begun = data[:4]
    text += f", whose first four are {int.from_bytes(begun, 'big', signed=True)} as a length"
    if all(32 <= byte < 127 for byte in begun):
        text += f" and {begun.decode()!r} as text"
    elif begun.startswith(b"\x16\x03"):
        text += " and the beginning of a TLS handshake"
    return text


def _parts(kind: MessageType, data: bytes, at: int) -> Iterator[Part]:
    for schema in (header_type(kind.direction, kind.header_version), kind.body):
        for part in _structure(schema, data, at, ""):
            yield part
            at = part.offset + len(part.raw)
    if at < len(data):
        yield Part(at, data[at:], "", "", Remark(f"{len(data) - at} bytes more than the message has"))


def _collected(title: str, data: bytes, found: Iterator[Part], begun: Iterable[Part] = ()) -> Annotated:
    """The parts up to the first bytes that cannot be right, and what is wrong with these."""
    parts = [*begun]
    try:
        for part in found:
            parts.append(part)
    except Malformed as error:
        at = parts[-1].offset + len(parts[-1].raw) if parts else 0
        parts.append(Part(at, data[at:], "", "", Remark(f"cannot be read: {error}")))
    whole = Annotated(parts)
    whole.title = f"{title}, {len(data)} bytes"
    return whole


def _structure(schema: Schema, data: bytes, at: int, path: str) -> Iterator[Part]:
    for field in schema.fields:
        for part in _field(field, schema.flexible, data, at, f"{path}{field.name}"):
            yield part
            at = part.offset + len(part.raw)
    if schema.flexible:
        yield from _tagged(schema, data, at, path)


def _tagged(schema: Schema, data: bytes, at: int, path: str) -> Iterator[Part]:
    number, behind = read_uvarint(data, at)
    yield Part(at, data[at:behind], f"{path}tagged fields", "uvarint", number)
    known = dict(schema.tagged)
    for _ in range(number):
        at = behind
        tag, behind = read_uvarint(data, at)
        length, behind = read_uvarint(data, behind)
        raw, end = take(data, behind, length, f"tagged field {tag}")
        name = known[tag].name if tag in known else f"tag {tag}"
        yield Part(at, data[at:behind], f"{path}{name}", "tag, length", f"{tag}, {length}")
        if tag in known:
            yield from _field(known[tag], True, data[:end], behind, f"{path}{name}")
        elif raw:
            yield Part(behind, raw, f"{path}{name}", "bytes", raw)
        behind = end


def _field(field: Field, flexible: bool, data: bytes, at: int, path: str) -> Iterator[Part]:
    if field.is_array:
        yield from _array(field, flexible, data, at, path)
    elif not isinstance(field.kind, str):
        if field.nullable:
            marker, behind = take(data, at, 1, path)
            yield Part(at, marker, path, "int8", None if marker == b"\xff" else ...)
            at = behind
            if marker == b"\xff":
                return
        yield from _structure(field.kind, data, at, f"{path}.")
    elif field.kind == "records":
        yield from _records_field(field, flexible, data, at, path)
    else:
        value, behind = primitive(field.kind, flexible, field.nullable)[0](data, at)
        kind = field.kind.removeprefix("legacy_")
        compact = flexible and field.kind in ("string", "bytes")
        yield Part(at, data[at:behind], path, f"compact {kind}" if compact else kind, value)


def _array(field: Field, flexible: bool, data: bytes, at: int, path: str) -> Iterator[Part]:
    length, behind = read_length("array", flexible)(data, at)
    yield Part(at, data[at:behind], path, f"{'compact ' * flexible}array", None if length == -1 else length)
    if length == -1 and field.nullable:
        return
    check_array(length, data, behind)
    one = field._replace(is_array=False, nullable=False)
    for number in range(length):
        for part in _field(one, flexible, data, behind, f"{path}[{number}]"):
            yield part
            behind = part.offset + len(part.raw)


def _records_field(field: Field, flexible: bool, data: bytes, at: int, path: str) -> Iterator[Part]:
    length, behind = read_length("records", flexible)(data, at)
    yield Part(at, data[at:behind], path, "length", None if length == -1 else length)
    if length == -1 and field.nullable:
        return
    raw, _ = take(data, behind, length, "records")
    yield from annotate_records(raw, behind, f"{path}.")


def annotate_records(data: bytes, start: int = 0, path: str = "") -> Iterator[Part]:
    """The batches, or messages of older magic, that these bytes consist of; offsets count from `start`."""
    end = 0
    for at, raw in batches.split(data):
        old = batches.magic_of(raw) < batches.MAGIC
        for part in (_message if old else _batch)(raw):
            yield part._replace(offset=part.offset + start + at, field=path + part.field)
        end = at + len(raw)
    if end < len(data):
        yield Part(start + end, data[end:], f"{path}rest", "bytes", Remark("a batch that is cut short"))


FIELD = re.compile(r"(\w+):(\w+)")
VARINTS = {"varint": read_varint, "varlong": read_varlong}
BATCH_FIELDS = """
    base_offset:int64 batch_length:int32 partition_leader_epoch:int32 magic:int8 crc:uint32 attributes:int16
    last_offset_delta:int32 base_timestamp:int64 max_timestamp:int64 producer_id:int64 producer_epoch:int16
    base_sequence:int32 count:int32
"""
MESSAGE_FIELDS = "offset:int64 message_size:int32 crc:uint32 magic:int8 attributes:int8"
RECORD_FIELDS = (
    "length:varint attributes:int8 timestamp_delta:varlong offset_delta:varint key:blob value:blob headers:varint"
)


def _plain(fields: str, data: bytes, at: int = 0) -> Iterator[Part]:
    """The values of these fields, `name:type`, one after the other."""
    for name, kind in FIELD.findall(fields):
        value, behind = primitive(kind, False, True)[0](data, at)
        yield Part(at, data[at:behind], name, kind, value)
        at = behind


def _batch(data: bytes) -> Iterator[Part]:
    parts = {part.field: part for part in _plain(BATCH_FIELDS, data)}
    yield from parts.values()
    count, attributes = parts["count"].value, parts["attributes"].value
    assert isinstance(count, int) and isinstance(attributes, int)
    at = batches.HEADER.size
    codec = batches.COMPRESSION.get(attributes & 7, "unknown")
    if codec != "none":
        yield Part(at, data[at:], "records", f"{codec}", Remark(f"{count} records, compressed"))
        return
    for number in range(count):
        for part in _record(data, at):
            yield part._replace(field=f"record[{number}].{part.field}")
            at = part.offset + len(part.raw)
    if at < len(data):
        yield Part(at, data[at:], "records", "bytes", Remark("more than the records have"))


def _record(data: bytes, at: int) -> Iterator[Part]:
    count = 0
    for name, kind in FIELD.findall(RECORD_FIELDS):
        if kind == "blob":
            part = _blob(name, data, at)
        else:
            count, behind = (VARINTS.get(kind) or primitive(kind, False, False)[0])(data, at)
            part = Part(at, data[at:behind], name, "varint" if kind in VARINTS else kind, count)
        yield part
        at = part.offset + len(part.raw)
    for number in range(count):
        for name in ("key", "value"):
            part = _blob(f"header[{number}].{name}", data, at)
            yield part
            at = part.offset + len(part.raw)


def _blob(name: str, data: bytes, at: int) -> Part:
    """Bytes with a varint for their length in front."""
    length, behind = read_varint(data, at)
    value, end = (None, behind) if length == -1 else take(data, behind, length, name)
    return Part(at, data[at:end], name, "varint, bytes", value)


def _message(data: bytes) -> Iterator[Part]:
    magic = batches.magic_of(data)
    yield from _plain(f"{MESSAGE_FIELDS} {'timestamp:int64 ' * magic}key:bytes value:bytes", data)


def show_records(given: bytes | str) -> Annotated:
    """Take apart record batches, or messages of older magic, that stand alone, as in a log segment."""
    data = as_bytes(given)
    return _collected("records", data, annotate_records(data))
