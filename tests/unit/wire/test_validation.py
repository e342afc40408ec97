"""Records that a leader does not append, and what a producer gets instead: Kafka's error, or the end of the connection.

Motive: Kafka 2.0.1, ProduceRequestTest.scala, LogValidatorTest.scala, DefaultRecordBatchTest.java
"""

import gzip
import struct
import sys
import zlib
from collections.abc import Iterator

import pyarrow
import pytest
from labs import play
from wire_clients import Asking, closed_connections, eventually, fetch_of, listening
from wire_fuzz import packed

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.log import Entry, Log
from kafka_ctl.wire import batches
from kafka_ctl.wire.batches import Record, read_messages
from kafka_ctl.wire.contents import Contents
from kafka_ctl.wire.produce import MOST_BYTES
from kafka_ctl.wire.schema import name_of

GZIP, SNAPPY, LZ4, ZSTD, UNKNOWN = 1, 2, 3, 4, 7


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param, orders={0: [1, 2, 3]}) as lab:
        yield lab
        lab.settle()  # raises what a broker has died of


SOUND = batches.write_batch([Record(number, 5, None, b"value") for number in range(3)])
CONTENT = SOUND[batches.HEADER.size :]
LONGER = CONTENT[:-12] + b"\x18" + CONTENT[-11:] + b"?"
"""The last record has a byte behind its fields."""
BY_SNAPPY = pyarrow.compress(CONTENT, "snappy", asbytes=True)
OLD = struct.pack(">qiIbb", 0, 14, 0, 0, 0) + struct.pack(">ii", -1, -1)
"""A message of magic 0 whose checksum is wrong."""
LARGE = batches.write_batch([Record(0, 5, None, bytes(MOST_BYTES))])
FAILED = "KAFKA_STORAGE_ERROR"
HUGE = packed(gzip.compress(bytes(batches.LARGEST + 1)), attributes=GZIP)
BY_CHECKSUM = SOUND[:-1] + b"?"


def sent(lab: Lab, version: int, data: bytes | None, acks: int = -1) -> tuple[str | None, int] | str:
    """What one partition is answered; where the connection was closed instead, the error that was noted."""
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
    before = len(closed_connections(lab))
    with Asking(lab, 1) as leader:
        leader.send("Produce", version, acks=acks, timeout=1000, topic_data=[topic])
        if acks == 0:
            leader.send("Metadata", 1, number=2, topics=None)
        if not leader.connection.recv(1, 2):  # MSG_PEEK
            eventually(lambda: len(closed_connections(lab)) > before, "a record of the connection's end")
            return str(closed_connections(lab)[-1][0])
        if acks == 0:
            leader.receive()
            return None, -1
        (part,) = leader.receive()["responses"][0]["partition_responses"]
    return name_of(part["error_code"]), part["base_offset"]


def appended(lab: Lab) -> int:
    return len(lab.trace.slice(action="append"))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, None),
        (b"", None),
        (b"junk", None),
        (SOUND[:-1], None),
        (bytes(61), "CORRUPT_MESSAGE"),
        (b"\0" * 8 + struct.pack(">i", -5) + bytes(60), "CORRUPT_MESSAGE"),
        (b"\0" * 8 + struct.pack(">i", 60) + bytes(4) + b"\x03" + bytes(60), "CORRUPT_MESSAGE"),
        (OLD, "CORRUPT_MESSAGE"),
    ],
    ids=["null", "nothing", "junk", "cut short", "too small", "negative size", "magic 3", "wrong checksum"],
)
def test_records_of_an_old_request(lab: Lab, data: bytes, error: str | None) -> None:
    """Up to version 2: what is not whole is passed over, what is wrong is CORRUPT_MESSAGE; the connection stays.

    Null closes it; in 2.4 also what does not begin with a whole batch, as each was with real 2.4.1.
    """
    before = appended(lab)
    closes = data is None or (lab.generation.name == "2.4" and data != OLD)
    assert sent(lab, 2, data) == ("INVALID_REQUEST" if closes else (error, -1))
    assert appended(lab) == before
    assert closes or bool(error) == bool(lab.trace.slice(action="refused-records")[-1:]) or error is None


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "INVALID_RECORD"),
        (SOUND[:-1], "INVALID_RECORD"),
        (OLD, "INVALID_RECORD"),
        (SOUND + SOUND, "INVALID_RECORD"),
        (bytes(61), "CORRUPT_MESSAGE"),
        (packed(b"?", attributes=ZSTD), "UNSUPPORTED_COMPRESSION_TYPE"),
    ],
    ids=["nothing", "cut short", "magic 0", "two", "too small", "zstd"],
)
def test_a_request_of_version_3_and_later_has_one_batch(lab: Lab, data: bytes, error: str) -> None:
    """2.4 answers with the error (KAFKA-7549) where a whole batch comes first; in 2.0 the request itself is wrong, but
    zstd a type it does not know."""
    if lab.generation.name == "0.10":
        assert sent(lab, 3, data) == "UNSUPPORTED_VERSION"
    elif lab.generation.name == "2.4" and data not in (b"", SOUND[:-1], bytes(61)):
        assert sent(lab, 3, data) == (error, -1)
    elif error == "UNSUPPORTED_COMPRESSION_TYPE":
        assert sent(lab, 3, data) == ("UNKNOWN_SERVER_ERROR", -1)
    else:
        assert sent(lab, 3, data) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (BY_CHECKSUM, "CORRUPT_MESSAGE"),
        (packed(b"\xff" * 40), "INVALID_RECORD"),
        (packed(CONTENT, count=2), "INVALID_RECORD"),
        (packed(CONTENT, count=4), "INVALID_RECORD"),
        (packed(CONTENT, last=7), "INVALID_RECORD"),
        (packed(LONGER), "INVALID_RECORD"),
        (packed(CONTENT, count=0), "INVALID_RECORD"),
        (packed(CONTENT, count=-1, last=2), "INVALID_RECORD"),
        (packed(CONTENT, count=2**31 - 1), "INVALID_RECORD"),
        (packed(CONTENT, base=7), "INVALID_RECORD"),
        (packed(CONTENT, producer=3), "INVALID_RECORD"),
        (packed(CONTENT, attributes=batches.CONTROL), "INVALID_RECORD"),
        (packed(CONTENT, attributes=GZIP), "INVALID_RECORD"),
        (packed(BY_SNAPPY[:-1], attributes=SNAPPY), "INVALID_RECORD"),
        (packed(BY_SNAPPY, count=2, attributes=SNAPPY), "INVALID_RECORD"),
        (packed(CONTENT, attributes=LZ4), "INVALID_RECORD"),
        (HUGE, "MESSAGE_TOO_LARGE"),
        (packed(b"?", count=2**31 - 1, attributes=SNAPPY), "MESSAGE_TOO_LARGE"),
        (packed(CONTENT, attributes=UNKNOWN), "UNKNOWN_SERVER_ERROR"),
        (LARGE, "MESSAGE_TOO_LARGE"),
    ],
    ids=(
        "checksum garbage fewer more range longer none negative enormous base sequence control gzip snappy less lz4 "
        "bomb count codec large"
    ).split(),
)
def test_records_that_are_none(lab: Lab, data: bytes, error: str) -> None:
    """A batch with a right checksum that holds something else: nothing is appended, and nobody reads it later."""
    if lab.generation.name == "0.10":
        assert sent(lab, 2, data) == ("CORRUPT_MESSAGE", -1)  # it does not know batches
        return
    before = appended(lab)
    older = "CORRUPT_MESSAGE" if lab.generation.name == "2.0" and error == "INVALID_RECORD" else error
    assert sent(lab, 5, data) == (older, -1)
    assert appended(lab) == before
    assert lab.trace.slice(action="refused-records")[-1].error == older
    with Asking(lab, 1) as leader:
        listed = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": 1}]}]
        assert leader.ask("ListOffsets", 1, replica_id=-1, topics=listed)["topics"]


def test_codecs_of_a_package_that_is_missing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of its own since zstd is known (KIP-110), before it the one for all else; gzip is read all the same."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    error = "UNSUPPORTED_COMPRESSION_TYPE" if lab.generation.name == "2.4" else "UNKNOWN_SERVER_ERROR"
    old = batches.write_messages([Record(0, 5, None, b"value")], codec="gzip")
    with_snappy = bytearray(old)
    with_snappy[batches.CODEC_AT] = SNAPPY
    with_snappy[12:16] = struct.pack(">I", zlib.crc32(with_snappy[batches.MAGIC_AT :]))
    assert sent(lab, 2, bytes(with_snappy)) == (error, -1)
    if lab.generation.name != "0.10":
        for codec in (SNAPPY, LZ4):
            assert sent(lab, 5, packed(b"?", attributes=codec)) == (error, -1)
    refused = lab.trace.slice(action="refused-records")[-1]
    assert refused.error == error and "the package pyarrow" in str(refused.detail)
    assert sent(lab, 2, old)[0] is None


def test_who_wants_no_answer_loses_the_connection_instead(lab: Lab) -> None:
    """With acks=0 an error closes it, so that the producer asks for the metadata anew.

    Kafka 2.0.1: server/KafkaApis.scala, handleProduceRequest, sendResponseCallback
    """
    old = struct.pack(">qi", 0, 22) + OLD[12:]  # longer than it is: passed over
    assert sent(lab, 2, old, acks=0) == ("INVALID_REQUEST" if lab.generation.name == "2.4" else (None, -1))
    assert sent(lab, 2, OLD, acks=0) == "CORRUPT_MESSAGE"
    assert "orders-0 -> CORRUPT_MESSAGE" in str(closed_connections(lab)[-1][1])


def test_old_versions_do_not_name_a_failed_log_directory() -> None:
    """Kafka 2.0.1: common/requests/ProduceResponse.java, toStruct; FetchResponse.java, toStruct"""
    with listening("2.4", orders={0: [1, 2]}) as lab:
        play(lab, "disconnect 1 zookeeper; fail_log_dir 1")
        assert [sent(lab, version, SOUND) for version in (3, 4)] == [("NOT_LEADER_FOR_PARTITION", -1), (FAILED, -1)]
        with Asking(lab, 1) as leader:
            asked = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "topics": fetch_of(("orders", 0, 0))}
            found = [leader.ask("Fetch", version, **asked)["responses"][0] for version in (5, 6)]
        errors = [name_of(topic["partitions"][0]["error_code"]) for topic in found]
        assert errors == ["NOT_LEADER_FOR_PARTITION", FAILED]


def test_a_time_that_no_record_has() -> None:
    """A header may promise a younger record than there is."""
    with listening(orders={0: [1, 2]}) as lab:
        promising = batches.FIRST.pack(0, len(SOUND) - 12, -1)
        covered = bytearray(SOUND[batches.CRC_FROM :])
        covered[14:22] = struct.pack(">q", 1000)  # the largest timestamp
        promising += struct.pack(">bI", batches.MAGIC, batches.checksum(bytes(covered))) + bytes(covered)
        assert sent(lab, 5, promising) == (None, 0)
        assert sent(lab, 5, packed(BY_SNAPPY, attributes=SNAPPY)) == (None, 3)
        with Asking(lab, 1) as leader:
            for timestamp, offset in ((5, 0), (6, -1), (1000, -1)):
                listed = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
                reported = leader.ask("ListOffsets", 1, replica_id=-1, topics=listed)
                assert reported["topics"][0]["partitions"][0]["offset"] == offset
        lab.settle()


@pytest.mark.parametrize(
    ("codec", "error"), [("snappy", None), ("lz4", None), ("zstd", "UNSUPPORTED_COMPRESSION_TYPE")]
)
def test_readers_who_know_no_batches_get_messages(codec: str, error: str | None) -> None:
    """Unpacked; what is compressed with zstd is not down-converted.

    Kafka 2.4.1: common/record/RecordsUtil.java, downConvert
    """
    attributes = next(number for number, name in batches.COMPRESSION.items() if name == codec)
    with listening("2.4", orders={0: [1, 2, 3]}) as lab:
        data = packed(pyarrow.compress(CONTENT, codec, asbytes=True), attributes=attributes)
        assert sent(lab, 8, data) == (None, 0)
        with Asking(lab, 1) as leader:
            old = leader.ask("Fetch", 2, replica_id=-1, max_wait=0, min_bytes=1, topics=fetch_of(("orders", 0, 0)))
            (part,) = old["responses"][0]["partitions"]
            assert name_of(part["error_code"]) == error
            assert [record.value for record in read_messages(part["records"])] == ([] if error else [b"value"] * 3)


def test_bytes_are_counted_without_being_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fetch that waits counts at every append: whole batches below the end, until there are enough."""
    tp, contents = TopicPartition("orders", 0), Contents({})
    one, other = (contents.keep(tp, batches.read_batch(SOUND)) for _ in range(2))
    log = Log([Entry(0, value) for kept in (one, other) for value in kept.values])
    read = sum(len(data) for _, data in contents.read(tp, log, 0, 6, 1 << 20))
    monkeypatch.setattr(batches.Batch, "at", None)
    assert [contents.size(tp, log, 0, end, 1 << 20) for end in (0, 2, 3, 5, 6)] == [0, 0, len(SOUND), len(SOUND), read]
    assert contents.size(tp, log, 0, 6, 1) == len(SOUND)
    assert contents.size(tp, log, 0, 6, len(SOUND) + 1) == read
    assert contents.size(tp, log, 4, 6, 1 << 20) == len(SOUND)


def test_a_batch_stays_whole() -> None:
    """Nobody gets a part of one because the high watermark lies in it; what a log has of one only in part is packed
    anew."""
    tp, contents = TopicPartition("orders", 0), Contents({})
    for attributes, content in ((0, CONTENT), (SNAPPY, BY_SNAPPY)):
        contents.forget({tp})
        kept = contents.keep(tp, batches.read_batch(packed(content, attributes=attributes)))
        log = Log([Entry(0, value) for value in kept.values])
        assert contents.read(tp, log, 0, 2, 1 << 20) == []
        assert contents.offset_at(tp, log, 2, 1) is None
        ((offset, whole),) = contents.read(tp, log, 1, 3, 1 << 20)
        assert (offset, whole[batches.MAGIC_AT :]) == (0, packed(content, attributes=attributes)[batches.MAGIC_AT :])
        del log.entries[2:]
        ((offset, part),) = contents.read(tp, log, 0, 2, 1 << 20)
        assert [record.value for record in batches.read_records(batches.read_batch(part))] == [b"value"] * 2
