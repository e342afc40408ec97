"""Messages as they were before batches: magic 0, and magic 1 with a timestamp (0.10.0, KIP-32).

Each message has an offset and a checksum of its own. Compressed ones lie in the value of a wrapping message, whose
offset is that of the last one inside; with magic 1, those inside count from 0.
Kafka 0.10.2.2: common/record/Record.java, LogEntry.java
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence

from kafka_ctl.errors import BadInput
from kafka_ctl.wire.batches import COMPRESSION, LARGEST, MAGIC_AT, NO_TIMESTAMP, Record, split, unpack
from kafka_ctl.wire.primitives import Malformed, read_int32, take

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

    What is compressed is unpacked to LARGEST bytes in all.
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
    key, at = _blob(raw, at)
    value, at = _blob(raw, at)
    return Record(offset, time, key, value), COMPRESSION.get(attributes & 7, "unknown")


def _blob(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_int32(data, at)
    return (None, at) if length == -1 else take(data, at, length, "bytes")


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
