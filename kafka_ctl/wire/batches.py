"""Records on the wire: batches (magic 2), as producers send them, logs keep them and consumers get them; and messages.

A leader changes two fields of a batch: the offset of its first record, and its own leader epoch. Both stand before what
the checksum covers, so the rest is passed on as it came, also when it is compressed.

Before batches there were messages: magic 0, and magic 1 with a timestamp (0.10.0, KIP-32). Each has an offset and a
checksum of its own. Compressed ones lie in the value of a wrapping message, whose offset is that of the last one
inside; with magic 1, those inside count from 0.
Kafka 2.0.1: common/record/DefaultRecordBatch.java, DefaultRecord.java (KIP-98)
Kafka 0.10.2.2: common/record/Record.java, LogEntry.java
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.extras import needed_for
from kafka_ctl.wire.codec import Malformed, Reader, read_int32, read_uvarint, read_varint, take, write_varint

MAGIC = 2
HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last timestamp, producer's id
and epoch, base sequence, number of records."""
FIRST, MAGIC_AT, CRC_FROM, LAST_DELTA = struct.Struct(">qii"), 16, 21, 23
"""The fields before the magic byte; its place; the first byte under the checksum; the place of the last offset."""
NO_TIMESTAMP = -1
COMPRESSION = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""The lowest three bits of the attributes."""
SNAPPY_STREAM = b"\x82SNAPPY\0"
"""The beginning of a stream of blocks compressed with snappy."""
CONTROL, TRANSACTIONAL = 0x20, 0x10
SEQUENCE_NUMBERS = 1 << 31
"""Behind the last of them, 2^31 - 1, comes 0."""
LARGEST, MOST_RECORDS = 4 << 20, 100_000
"""Bytes that a batch is unpacked to at most, and the records of one that is compressed: logs have an entry for each."""


class TooLarge(Malformed):
    """Records that would take too much memory, however few bytes they came in."""


class Record(NamedTuple):
    """One record: what its producer gave it, and its offset."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Batch(NamedTuple):
    """One batch as bytes, and what its header says of it."""

    data: bytes
    base_offset: int
    records: int
    leader_epoch: int
    attributes: int
    first_timestamp: int
    max_timestamp: int
    producer: int
    producer_epoch: int
    sequence: int

    @property
    def codec(self) -> str:
        return COMPRESSION.get(self.attributes & 7, "unknown")

    @property
    def is_numbered(self) -> bool:
        """True if its producer has an id: only then the sequence number says which batch it is.

        Producers without idempotence have the id -1, and as sequence number -1 or, in many libraries, 0 in each batch.
        Markers have their producer's id and no sequence number.
        Kafka 2.0.1: common/record/AbstractRecordBatch.java, hasProducerId
        """
        return self.producer >= 0 and not self.attributes & CONTROL

    @property
    def sequences(self) -> tuple[int, int]:
        """The sequence numbers of its first and its last record.

        Kafka 2.0.1: common/record/DefaultRecordBatch.java, baseSequence, lastSequence, incrementSequence
        """
        return self.sequence, (self.sequence + self.records - 1) % SEQUENCE_NUMBERS

    def at(self, offset: int, leader_epoch: int) -> bytes:
        """The batch as a leader of this epoch keeps it from this offset on."""
        return b"".join((FIRST.pack(offset, len(self.data) - 12, leader_epoch), memoryview(self.data)[MAGIC_AT:]))


def checksum(data: bytes) -> int:
    """CRC-32C, as hardware computes it."""
    with needed_for("Kafka's record batches"):
        from crc32c import crc32c
    return int(crc32c(data))


def split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The batches or messages that bytes consist of: offset and bytes of each. One cut short at the end is left out,
    as a broker may send it so."""
    at = 0
    while at + 17 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + 12
        if size < 26:
            raise Malformed(f"a batch of {size} bytes at offset {at}")
        if at + size > len(data):
            return
        yield at, data[at : at + size]
        at += size


def read_batch(data: bytes) -> Batch:
    """The header of a batch. Raises Malformed if length, magic or checksum is wrong."""
    if len(data) < HEADER.size:
        raise Malformed(f"a batch of {len(data)} bytes; its header alone has {HEADER.size}")
    fields = HEADER.unpack_from(data)
    base, length, epoch, magic, crc, attributes, _, first_time = fields[:8]
    max_time, producer, producer_epoch, sequence, count = fields[8:]
    if magic != MAGIC:
        raise Malformed(f"a batch of magic {magic}, not {MAGIC}")
    if length + 12 != len(data):
        raise Malformed(f"a batch has {len(data)} bytes, but its header gives {length + 12}")
    if checksum(data[CRC_FROM:]) != crc:
        raise Malformed(f"a batch has the checksum {crc:#010x}, but its bytes give {checksum(data[CRC_FROM:]):#010x}")
    return Batch(data, base, count, epoch, attributes, first_time, max_time, producer, producer_epoch, sequence)


def end_of(base: int, data: bytes) -> int:
    """The offset behind the last record of a batch."""
    return base + int.from_bytes(data[LAST_DELTA : LAST_DELTA + 4], "big") + 1


def unpack(codec: str, data: bytes, most: int = LARGEST) -> bytes:
    """Uncompressed bytes; TooLarge for more than `most`, Malformed for what is not compressed so.

    Only gzip is in Python's library; the others are pyarrow's.
    """
    if codec == "none":
        return data
    if codec == "gzip":
        unpacker = zlib.decompressobj(31)
        try:
            out = unpacker.decompress(data, most + 1)
        except zlib.error as error:
            raise Malformed(f"gzip: {error}") from None
        if not unpacker.eof and len(out) <= most:
            raise Malformed("gzip: cut short")
    elif codec == "snappy":
        out = _unpack_snappy(data, most)
    elif codec in ("lz4", "zstd"):
        out = _unpack_stream(codec, data, most)
    else:
        raise BadInput(f"codec {codec}: {', '.join(COMPRESSION.values())}")
    if len(out) > most:
        raise TooLarge(f"records that unpack to more than {most} bytes")
    return out


def _unpack_stream(codec: str, data: bytes, most: int) -> bytes:
    with needed_for(f"a record compressed with {codec}"):
        import pyarrow
    try:
        with pyarrow.input_stream(pyarrow.py_buffer(data), compression=codec) as stream:
            return bytes(stream.read(most + 1))
    except OSError as error:
        raise Malformed(f"{codec}: {error}") from None


def _unpack_snappy(data: bytes, most: int) -> bytes:
    """One block, or the stream of blocks that Java's clients write: a header, then the length of each block before it.

    A block begins with the length that it unpacks to.
    Kafka 2.0.1: common/record/CompressionType.java, SNAPPY; org.xerial.snappy.SnappyInputStream
    """
    with needed_for("a record compressed with snappy"):
        import pyarrow
    out = b""
    for block in _snappy_blocks(data):
        length, _ = read_uvarint(block, 0)
        if len(out) + length > most:
            raise TooLarge(f"records that unpack to more than {most} bytes")
        try:
            out += pyarrow.Codec("snappy").decompress(block, decompressed_size=length, asbytes=True)
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise Malformed(f"snappy: {error}") from None
    return out


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(SNAPPY_STREAM):
        yield data
        return
    at = len(SNAPPY_STREAM) + 8  # and the version, and the oldest one that can read it
    while at < len(data):
        size, at = read_int32(data, at)
        block, at = take(data, at, size, "a block compressed with snappy")
        yield block


def read_records(batch: Batch) -> list[Record]:
    """The records of a batch. Raises Malformed where lengths or the number of records do not fit the bytes."""
    return list(_each_record(batch, unpack(batch.codec, batch.data[HEADER.size :])))


def check_records(batch: Batch) -> None:
    """Raise Malformed where `read_records` does. A leader checks all that producers send, and keeps no record."""
    data = unpack(batch.codec, batch.data[HEADER.size :])
    if not are_plain(data, batch.records):
        deque(_each_record(batch, data), maxlen=0)


def are_plain(data: bytes, number: int) -> bool:
    """True if bytes are so many well-formed records, each without headers and with short fields only.

    Short are lengths and timestamps of at most two bytes, and offsets of at most three. False is no verdict:
    `_each_record` decides then. Most records are plain, and this takes a third of its time.
    A varint's second byte counts 128 times; the highest bit of the first one is no part of its value.
    """
    at = 0
    try:
        for _ in range(number):
            if (length := data[at]) > 0x7F:
                at += 1
                length += (data[at] - 1) << 7
            end = at + 1 + (length >> 1)
            at += 2 if data[at + 2] < 0x80 else 3  # the attributes, and all of the timestamp but its last byte
            if length & 1 or length > 0x3FFF or data[at] > 0x7F:
                return False
            at += 1
            if data[at] > 0x7F:
                at += 1 if data[at + 1] < 0x80 else 2
                if data[at] > 0x7F:
                    return False
            at += 1
            if (key := data[at]) != 1:  # -1 stands for no key
                if key > 0x7F:
                    at += 1
                    key += (data[at] - 1) << 7
                if key & 1 or key > 0x3FFF:
                    return False
                at += key >> 1
            at += 1
            if (value := data[at]) > 0x7F:
                at += 1
                value += (data[at] - 1) << 7
            at += 1 + (value >> 1)
            if value & 1 or value > 0x3FFF or data[at] or at + 1 != end:  # the last byte is the number of headers
                return False
            at = end
    except IndexError:
        return False
    return at == len(data)


def _each_record(batch: Batch, data: bytes) -> Iterator[Record]:
    """The records of a batch one by one, from its bytes uncompressed.

    `tuple` makes a record without a Python call, which Record's constructor needs.
    Kafka 2.0.1: common/record/DefaultRecord.java, readFrom
    """
    if not 0 <= batch.records <= len(data):
        raise Malformed(f"{batch.records} records in {len(data)} bytes")
    at, base, first, record = 0, batch.base_offset, batch.first_timestamp, tuple.__new__
    for _ in range(batch.records):
        length, at = read_varint(data, at)
        end = at + length
        if length < 1 or end > len(data):
            raise Malformed(f"a record of length {length} at offset {at}, where {len(data) - at} bytes are left")
        time, at = read_varint(data, at + 1, 10)  # behind a byte of attributes, which nothing uses
        offset, at = read_varint(data, at)
        key, at = _blob(data, at)
        value, at = _blob(data, at)
        number, at = read_varint(data, at)
        headers, at = _read_headers(data, at, number, length) if number else ((), at)
        if at != end:
            raise Malformed(f"a record of length {length} that ends at offset {end}, but its fields at {at}")
        yield record(Record, (base + offset, first + time, key, value, headers))
    if at < len(data):
        raise Malformed(f"{len(data) - at} bytes behind the {batch.records} records of a batch")


def _read_headers(data: bytes, at: int, number: int, length: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    """So many headers of a record of this length, and the offset behind them."""
    if not 0 <= number <= length:
        raise Malformed(f"{number} headers in a record of {length} bytes")
    headers = []
    for _ in range(number):
        size, at = read_varint(data, at)
        name, at = take(data, at, size, "a header's key")
        content, at = _blob(data, at)
        headers.append((name.decode("utf-8", "replace"), content))
    return tuple(headers), at


def _blob(data: bytes, at: int, read_length: Reader = read_varint) -> tuple[bytes | None, int]:
    length, at = read_length(data, at)
    return (None, at) if length == -1 else take(data, at, length, "bytes")


def _packed_blob(value: bytes | None) -> bytes:
    return write_varint(-1) if value is None else write_varint(len(value)) + value


def write_record(record: Record, base_offset: int, first_timestamp: int) -> bytes:
    """One record of a batch that begins at this offset and time."""
    body = b"\0" + write_varint(record.timestamp - first_timestamp) + write_varint(record.offset - base_offset)
    body += _packed_blob(record.key) + _packed_blob(record.value) + write_varint(len(record.headers))
    body += b"".join(_packed_blob(name.encode()) + _packed_blob(content) for name, content in record.headers)
    return write_varint(len(body)) + body


def write_batch(
    records: Sequence[Record],
    leader_epoch: int = -1,
    codec: str = "none",
    producer: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """One batch of these records, whose offsets follow one another; `codec` is none or gzip.

    `attributes` are those beside the codec: CONTROL, TRANSACTIONAL.
    """
    first, base = records[0].timestamp, records[0].offset
    packed = b"".join(write_record(record, base, first) for record in records)
    if codec == "gzip":
        packed = gzip.compress(packed, mtime=0)
    elif codec != "none":
        raise BadInput(f"codec {codec}: the codec must be none or gzip")
    attributes |= next(number for number, name in COMPRESSION.items() if name == codec)
    last, newest = len(records) - 1, max(record.timestamp for record in records)
    header = attributes, last, first, newest, producer, producer_epoch, sequence, len(records)
    covered = struct.pack(">hiqqqhii", *header) + packed
    return FIRST.pack(base, len(covered) + 9, leader_epoch) + struct.pack(">bI", MAGIC, checksum(covered)) + covered


# Messages

OLD_COMPRESSION = ("none", "gzip", "snappy", "lz4")
"""The codecs by the lowest three bits of a message's attributes."""
CODEC_AT, TIME_AT = MAGIC_AT + 1, MAGIC_AT + 2


def magic_of(data: bytes) -> int:
    """The magic byte of the batch or message that these bytes begin with."""
    if len(data) <= MAGIC_AT:
        raise Malformed(f"a batch of {len(data)} bytes has no magic byte")
    return data[MAGIC_AT]


def read_messages(data: bytes, nested: bool = False) -> list[Record]:
    """The messages of a set, those inside of compressed ones as well. Raises Malformed if a checksum is wrong.

    Compressed messages are unpacked to LARGEST bytes in all.
    """
    found: list[Record] = []
    room = LARGEST
    for _, raw in split(data):
        record, codec = _read_message(raw)
        if codec == "none":
            found.append(record)
        elif codec not in OLD_COMPRESSION:
            raise BadInput(f"codec {codec}: messages are compressed with {', '.join(OLD_COMPRESSION[1:])}, or not")
        elif nested:
            raise Malformed("a compressed message inside another compressed message")
        else:
            unpacked = unpack(codec, record.value or b"", room)
            room -= len(unpacked)
            inner = read_messages(unpacked, nested=True)
            shift = record.offset - inner[-1].offset if inner and magic_of(raw) == 1 else 0
            found += [one._replace(offset=one.offset + shift) for one in inner]
    return found


def _read_message(raw: bytes) -> tuple[Record, str]:
    """One message, and how its value is compressed."""
    offset, _, crc, magic, attributes = struct.unpack_from(">qiIbb", raw)
    if magic not in (0, 1):
        raise Malformed(f"a message of magic {magic}, not 0 or 1")
    if zlib.crc32(raw[MAGIC_AT:]) != crc:
        raise Malformed(
            f"a message has the checksum {crc:#010x}, but its bytes give {zlib.crc32(raw[MAGIC_AT:]):#010x}"
        )
    at, time = TIME_AT, NO_TIMESTAMP
    if magic == 1:
        head, at = take(raw, at, 8, "a timestamp")
        time = int.from_bytes(head, "big", signed=True)
    key, at = _blob(raw, at, read_int32)
    value, at = _blob(raw, at, read_int32)
    return Record(offset, time, key, value), COMPRESSION.get(attributes & 7, "unknown")


def write_messages(records: Sequence[Record], magic: int = 1, codec: str = "none") -> bytes:
    """A set of these messages, without their headers, which only batches have; `codec` is none or gzip."""
    if magic not in (0, 1):
        raise BadInput(f"magic {magic}: the magic of a message must be 0 or 1")
    if codec == "none":
        return b"".join(_write_message(record, magic, 0) for record in records)
    if codec != "gzip":
        raise BadInput(f"codec {codec}: the codec must be none or gzip")
    numbered = [r._replace(offset=i) for i, r in enumerate(records)] if magic else records
    inner = b"".join(_write_message(record, magic, 0) for record in numbered)
    newest = max(record.timestamp for record in records)
    return _write_message(Record(records[-1].offset, newest, None, gzip.compress(inner, mtime=0)), magic, 1)


def _write_message(record: Record, magic: int, attributes: int) -> bytes:
    covered = struct.pack(">bb", magic, attributes) + (struct.pack(">q", record.timestamp) if magic else b"")
    for part in (record.key, record.value):
        covered += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", record.offset, len(covered) + 4, zlib.crc32(covered)) + covered
