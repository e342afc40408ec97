"""A message taken apart: each field with its offset, its bytes, its type and its value.

    from kafka_ctl.wire.annotated import annotate
    annotate("00000010 0007 0001 00000005 0002 6331 00000003")

In a notebook the answer is a table; `print` gives the same as text. Reading goes on up to the first byte that cannot be
right, and the last row says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from kafka_ctl.display import Table, counted
from kafka_ctl.errors import BadInput
from kafka_ctl.wire import batches
from kafka_ctl.wire.codec import (
    Malformed,
    check_array,
    primitive,
    read_int32,
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

T = TypeVar("T")
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
            raise BadInput(
                "a response does not say its version: give the version of its request, as --version 1 or version=1"
            )
        kind = message_type(key, version, RESPONSE)
    title = f"{apis()[kind.api_key]} {kind.direction}, version {kind.version}"
    parts = Parts(data)
    if framed:
        parts.read(read_int32, "length", "int32")
    return parts.annotated(title, lambda: parts.message(kind))


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


class Parts:
    """The parts of some bytes, in order: `at` is the place of the next, `start` the offset of the first byte."""

    def __init__(self, data: bytes, at: int = 0, start: int = 0, found: list[Part] | None = None) -> None:
        self.data, self.at, self.start = data, at, start
        self.found: list[Part] = [] if found is None else found

    def annotated(self, title: str, read: Callable[[], None]) -> Annotated:
        """The parts that are read up to the first bytes that cannot be right, and what is wrong with these."""
        try:
            read()
        except Malformed as error:
            at = self.found[-1].offset + len(self.found[-1].raw) if self.found else 0
            self.found.append(Part(at, self.data[at:], "", "", Remark(f"cannot be read: {error}")))
        whole = Annotated(self.found)
        whole.title = f"{title}, {counted(len(self.data), 'byte')}"
        return whole

    def add(self, behind: int, field: str, type: str, value: object) -> None:
        """Add the part that ends at the place `behind`."""
        self.found.append(Part(self.start + self.at, self.data[self.at : behind], field, type, value))
        self.at = behind

    def read(self, reader: Callable[[bytes, int], tuple[T, int]], field: str, type: str) -> T:
        """Add the part that a reader of the codec finds, and return its value."""
        value, behind = reader(self.data, self.at)
        self.add(behind, field, type, value)
        return value

    # Messages

    def message(self, kind: MessageType) -> None:
        """Header and body of a request or response."""
        for schema in (header_type(kind.direction, kind.header_version), kind.body):
            self._structure(schema, "")
        if (more := len(self.data) - self.at) > 0:
            self.add(len(self.data), "", "", Remark(f"{more} bytes more than the message has"))

    def _structure(self, schema: Schema, path: str) -> None:
        for field in schema.fields:
            self._field(field, schema.flexible, f"{path}{field.name}")
        if schema.flexible:
            self._tagged(dict(schema.tagged), path)

    def _tagged(self, known: Mapping[int, Field], path: str) -> None:
        for _ in range(self.read(read_uvarint, f"{path}tagged fields", "uvarint")):
            tag, behind = read_uvarint(self.data, self.at)
            length, behind = read_uvarint(self.data, behind)
            raw, end = take(self.data, behind, length, f"tagged field {tag}")
            name = f"{path}{known[tag].name if tag in known else f'tag {tag}'}"
            self.add(behind, name, "tag, length", f"{tag}, {length}")
            if tag in known:
                Parts(self.data[:end], behind, self.start, self.found)._field(known[tag], True, name)
            elif raw:
                self.add(end, name, "bytes", raw)
            self.at = end

    def _field(self, field: Field, flexible: bool, path: str) -> None:
        if field.is_array:
            length = self._length("array", flexible, path, f"{'compact ' * flexible}array")
            if length == -1 and field.nullable:
                return
            check_array(length, self.data, self.at)
            one = field._replace(is_array=False, nullable=False)
            for number in range(length):
                self._field(one, flexible, f"{path}[{number}]")
        elif not isinstance(field.kind, str):
            if field.nullable:
                marker, behind = take(self.data, self.at, 1, path)
                self.add(behind, path, "int8", None if marker == b"\xff" else ...)
                if marker == b"\xff":
                    return
            self._structure(field.kind, f"{path}.")
        elif field.kind == "records":
            length = self._length("records", flexible, path, "length")
            if length != -1 or not field.nullable:
                self.records(take(self.data, self.at, length, "records")[0], f"{path}.")
        else:
            kind = field.kind.removeprefix("legacy_")
            compact = flexible and field.kind in ("string", "bytes")
            read = primitive(field.kind, flexible, field.nullable)[0]
            self.read(read, path, f"compact {kind}" if compact else kind)

    def _length(self, kind: str, flexible: bool, path: str, type: str) -> int:
        length, behind = read_length(kind, flexible)(self.data, self.at)
        self.add(behind, path, type, None if length == -1 else length)
        return length

    # Records

    def records(self, raw: bytes, path: str = "") -> None:
        """The batches, or messages of older magic, that the next bytes, `raw`, consist of."""
        begin, end = self.at, self.at + len(raw)
        for at, batch in batches.split(raw):
            inner = Parts(batch, 0, self.start + begin + at, self.found)
            if batches.magic_of(batch) >= batches.MAGIC:
                inner._batch(path)
            else:
                inner._message(path)
            self.at = begin + at + len(batch)
        if self.at < end:
            self.add(end, f"{path}rest", "bytes", Remark("a batch that is cut short"))

    def _batch(self, path: str) -> None:
        header = {
            name: self.read(primitive(kind, False, True)[0], f"{path}{name}", kind)
            for name, kind in FIELD.findall(BATCH_FIELDS)
        }
        codec = batches.COMPRESSION.get(header["attributes"] & 7, "unknown")
        if codec != "none":
            self.add(len(self.data), f"{path}records", codec, Remark(f"{header['count']} records, compressed"))
        else:
            for number in range(header["count"]):
                self._record(f"{path}record[{number}].")
            if self.at < len(self.data):
                self.add(len(self.data), f"{path}records", "bytes", Remark("more than the records have"))

    def _record(self, path: str) -> None:
        count = 0
        for name, kind in FIELD.findall(RECORD_FIELDS):
            if kind == "blob":
                self._blob(path, name)
            else:
                read = VARINTS.get(kind) or primitive(kind, False, False)[0]
                count = self.read(read, f"{path}{name}", "varint" if kind in VARINTS else kind)
        for number in range(count):
            for name in ("key", "value"):
                self._blob(path, f"header[{number}].{name}")

    def _blob(self, path: str, name: str) -> None:
        """Bytes with a varint for their length in front."""
        length, behind = read_varint(self.data, self.at)
        value, end = (None, behind) if length == -1 else take(self.data, behind, length, name)
        self.add(end, f"{path}{name}", "varint, bytes", value)

    def _message(self, path: str) -> None:
        """A message of magic 0 or 1."""
        stamped = "timestamp:int64 " * batches.magic_of(self.data)
        for name, kind in FIELD.findall(f"{MESSAGE_FIELDS} {stamped}key:bytes value:bytes"):
            self.read(primitive(kind, False, True)[0], f"{path}{name}", kind)


def show_records(given: bytes | str) -> Annotated:
    """Take apart record batches, or messages of older magic, that stand alone, as in a log segment."""
    parts = Parts(as_bytes(given))
    return parts.annotated("records", lambda: parts.records(parts.data))
