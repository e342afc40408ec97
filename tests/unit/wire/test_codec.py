"""Messages as bytes: against bytes written by hand, and against two codecs that nobody here wrote."""

import contextlib
import gzip
import io
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow
import pytest
from prose import Prose, refuses, source
from tables import tabled
from wire_fuzz import damaged

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.requests import DescribeLogDirsRequest
from kafka_ctl.wire import batches
from kafka_ctl.wire.annotated import Annotated, annotate, show_records
from kafka_ctl.wire.batches import CODEC_AT, NO_TIMESTAMP, Record, TooLarge, read_messages, write_messages
from kafka_ctl.wire.client import read_answer, request
from kafka_ctl.wire.codec import Malformed, decode, decode_message, encode, encode_message
from kafka_ctl.wire.schema import REQUEST, RESPONSE, Field, Schema, api_key, message_type, versions
from kafka_ctl.wire.versions import VERSIONS, announced, sent_version

SPOKEN = [(api_key(name), name) for name in VERSIONS]


def some(field: Field, rng: random.Random) -> Any:
    """A value that a field can have."""
    if field.nullable and rng.random() < 0.2:
        return None
    if field.is_array:
        return [some(field._replace(is_array=False, nullable=False), rng) for _ in range(rng.randrange(3))]
    if isinstance(field.kind, Schema):
        return filled(field.kind, rng)
    match field.kind:
        case "string" | "legacy_string":
            return rng.choice(("", "orders", "größer"))
        case "bytes" | "records":
            return rng.randbytes(rng.randrange(5))
        case "bool":
            return rng.random() < 0.5
        case "uuid":
            return UUID(int=rng.getrandbits(128) | 1)
        case "float64":
            return rng.random()
        case "int64":  # kio drops the milliseconds of what it takes for a time
            return rng.randrange(0, 50) * 1000
        case _:
            return rng.randrange(0, 50)


def filled(schema: Schema, rng: random.Random) -> dict[str, Any]:
    """A message with something in every field."""
    return {field.name: some(field, rng) for field in (*schema.fields, *(field for _, field in schema.tagged))}


@pytest.mark.parametrize(("key", "name"), SPOKEN, ids=lambda value: str(value))
def test_what_is_written_is_read_back_and_taken_apart(key: int, name: str) -> None:
    """In every version that there is, requests and responses; the annotated parts are all the bytes."""
    rng = random.Random(key)
    for version in versions(key):
        for direction in (REQUEST, RESPONSE):
            kind = message_type(key, version, direction)
            header = {"correlation_id": 7} | ({"client_id": "me"} if direction == REQUEST else {})
            body = filled(kind.body, rng)
            data = encode_message(kind, header, body)
            header, found = decode_message(kind, data[4:])
            assert header["correlation_id"] == 7
            assert found == body
            parts = annotate(data) if direction == REQUEST else annotate(data, name, version)
            if b"records" not in repr(kind.body).encode():  # random bytes are no batches
                assert b"".join(part.raw for part in parts) == data


@pytest.mark.parametrize(("key", "name"), SPOKEN, ids=lambda value: str(value))
def test_kio_writes_the_same_bytes(key: int, name: str) -> None:
    """The tables are kio's, the reading and writing are not: its own reader and writer agree with ours."""
    from kio.index import load_payload_module
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    rng = random.Random(key)
    for version in versions(key):
        for direction, what in ((REQUEST, EntityType.request), (RESPONSE, EntityType.response)):
            entity = getattr(load_payload_module(key, version, what), f"{name}{direction.title()}")
            schema = message_type(key, version, direction).body
            data = encode(schema, filled(schema, rng))
            theirs, size = entity_reader(entity)(data, 0)
            assert size == len(data)
            out = io.BytesIO()
            entity_writer(entity)(out, theirs)
            assert out.getvalue() == data


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of how it reads its files
def test_kafka_python_writes_the_same_bytes() -> None:
    """Another codec, which reads Kafka's own schema files."""
    from kafka.protocol.metadata import MetadataRequest

    for version in range(14 - 1):
        theirs = MetadataRequest[version](topics=None) if version else MetadataRequest[0](topics=[])
        theirs.with_header(correlation_id=3, client_id="me")
        header, body = decode_message(message_type(3, version), bytes(theirs.encode(header=True)))
        assert header["client_id"] == "me"
        assert body["topics"] == ([] if version == 0 else None)


def produce_v6() -> bytes:
    """The chapter's Produce request, version 6, field by field."""
    records = batches.write_batch([Record(0, 1000, b"k", b"hello", (("h", b"x"),))])
    body = struct.pack(">h", -1)  # transactional_id: null
    body += struct.pack(">h", -1) + struct.pack(">i", 30000)  # acks, timeout
    body += struct.pack(">i", 1) + struct.pack(">h", 6) + b"orders"  # topic_data, topic
    body += struct.pack(">i", 1) + struct.pack(">i", 0)  # data, partition
    body += struct.pack(">i", len(records)) + records
    head = struct.pack(">hhi", 0, 6, 1) + struct.pack(">h", 2) + b"c1"
    return struct.pack(">i", len(head + body)) + head + body


def test_a_produce_request_of_the_chapter() -> None:
    """Version 6, as Kafka 2.0 has it: api key 0; transactional id, acks, timeout, then topics and partitions."""
    records = batches.write_batch([Record(0, 1000, b"k", b"hello", (("h", b"x"),))])
    data = encode_message(
        message_type(0, 6),
        {"correlation_id": 1, "client_id": "c1"},
        {
            "acks": -1,
            "timeout": 30000,
            "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}],
            "transactional_id": None,
        },
    )
    assert data == produce_v6()
    parts = annotate(data)
    assert b"".join(part.raw for part in parts) == data
    assert [part.field for part in parts[:9]] == (
        "length request_api_key request_api_version correlation_id client_id transactional_id acks timeout topic_data"
    ).split()
    assert next(part.value for part in parts if part.field.endswith("record[0].value")) == b"hello"


def test_a_fetch_request_of_the_chapter() -> None:
    """Version 8: 24 bytes for each partition that is asked for, and none once a session knows them (KIP-227)."""
    asked = {"partition": 0, "fetch_offset": 5, "log_start_offset": -1, "partition_max_bytes": 1 << 20}
    body = struct.pack(">iiiib", -1, 500, 1, 50 << 20, 0)  # replica, max wait, min and max bytes, isolation
    body += struct.pack(">ii", 0, -1)  # session id and epoch
    body += struct.pack(">i", 1) + struct.pack(">h", 6) + b"orders" + struct.pack(">i", 1)
    partition = struct.pack(">iqqi", 0, 5, -1, 1 << 20)
    assert len(partition) == 24
    head = struct.pack(">hhi", 1, 8, 2) + struct.pack(">h", 2) + b"c1"
    whole = head + body + partition + struct.pack(">i", 0)  # no forgotten topics
    message = {
        "max_wait": 500,
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "session_epoch": -1,
        "replica_id": -1,
        "topics": [{"topic": "orders", "partitions": [asked]}],
    }
    data = encode_message(message_type(1, 8), {"correlation_id": 2, "client_id": "c1"}, message)
    assert data == struct.pack(">i", len(whole)) + whole
    assert b"".join(part.raw for part in annotate(data)) == data


@tabled
def test_controlled_shutdown_by_hand(version: int, body: dict[str, int], digits: str) -> None:
    """The bytes of lesson 18."""
    data = encode_message(message_type(7, version), {"correlation_id": 5, "client_id": "c1"}, body)
    assert data == bytes.fromhex(digits)
    assert annotate(digits)[-1 if version == 1 else -3].value == 3


def test_versions_that_are_announced_have_schemas() -> None:
    """And what brokers send each other is among them."""
    for name in VERSIONS:
        for generation in map(Generation, GENERATIONS):
            low, high = announced(generation).get(name, (0, 0))
            assert {low, high} <= set(versions(api_key(name)))
    for name, sent in SENT.items():
        assert tuple(sent_version(name, generation) for generation in map(Generation, GENERATIONS)) == sent


SENT = {
    "LeaderAndIsr": (0, 1, 4),
    "StopReplica": (0, 0, 2),
    "UpdateMetadata": (3, 4, 6),
    "ControlledShutdown": (1, 1, 3),
}
"""The versions in which brokers of each generation send these to each other (`inter.broker.protocol.version`)."""


def test_batches_of_every_magic() -> None:
    """What kafka-python packs we read, and it reads what we pack."""
    from kafka.record import MemoryRecords, MemoryRecordsBuilder

    for magic in (0, 1, 2):
        for codec, name in ((0, "none"), (1, "gzip")):
            packed = MemoryRecordsBuilder(magic=magic, compression_type=codec, batch_size=1 << 16)
            for number in range(20):
                headers = [("h", b"x")] if magic == 2 else []
                packed.append(timestamp=1000 + number, key=b"k" if number % 2 else None, value=b"v", headers=headers)
            packed.close()
            data = bytes(packed.buffer())
            if magic == 2:
                found = batches.read_records(batches.read_batch(data))
                again = batches.write_batch(found, codec=name)
            else:
                found = [r._replace(offset=i) for i, r in enumerate(batches.read_messages(data))]
                again = batches.write_messages(found, magic, name)
            assert [r.key for r in found] == [b"k" if n % 2 else None for n in range(20)]
            theirs = [record for batch in MemoryRecords(again) for record in batch]
            assert [(r.offset, r.key, r.value) for r in theirs] == [(r.offset, r.key, r.value) for r in found]
            if magic:
                assert [r.timestamp for r in theirs] == [r.timestamp for r in found] == list(range(1000, 1020))
            assert b"".join(part.raw for part in show_records(again)) == again


def test_a_batch_moves_without_a_new_checksum() -> None:
    """A leader gives it an offset and its epoch, and changes nothing else."""
    batch = batches.read_batch(batches.write_batch([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")]))
    kept = batches.read_batch(batch.at(100, 7))
    assert (kept.base_offset, kept.leader_epoch) == (100, 7)
    assert kept.data[21:] == batch.data[21:]
    assert [record.offset for record in batches.read_records(kept)] == [100, 101]


def random_record(number: int, rng: random.Random) -> Record:
    """A record with or without key, value and headers, whose fields are short or long."""
    blobs = [rng.choice((None, b"", bytes(rng.choice((3, 63, 64, 500, 8191, 8192, 9000))))) for _ in range(2)]
    time = 5 + rng.choice((0, 1, 63, 64, 8191, 8192, -1, 1 << 40))
    headers = (("h", b"x"),) if rng.random() < 0.1 else ()
    return Record(number, time, blobs[0], blobs[1], headers)


def refusal(check: Callable[[batches.Batch], object], batch: batches.Batch) -> str | None:
    """Why a check refuses a batch; None where it does not."""
    try:
        check(batch)
    except Malformed as error:
        return str(error)
    return None


def test_records_are_checked_as_they_are_read() -> None:
    """What a leader checks without making records, it accepts and refuses as it would when it makes them."""
    rng, plain = random.Random(3), Counter[tuple[bool, bool]]()
    for turn in range(4000):
        small = turn % 2 == 0
        given = [random_record(number, rng) for number in range(rng.randrange(1, 4))]
        if small:
            given = [Record(n, 5, rng.choice((None, b"key")), b"v" * rng.choice((0, 3, 70))) for n in range(3)]
        given = [record._replace(offset=record.offset + rng.choice((0, 0, 64, 8192, 1 << 20))) for record in given]
        body = b"".join(batches.write_record(record, 0, 5) for record in given)
        if rng.random() < 0.7:
            place = rng.randrange(min(len(body), 40))
            body = body[:place] + rng.choice((b"", bytes([rng.randrange(256)]))) + body[place + 1 :]
        header = batches.read_batch(batches.write_batch([Record(0, 5, None, b"")]))
        number = len(given) + rng.choice((0, 0, 0, -1, 1))
        batch = header._replace(data=header.data[: batches.HEADER.size] + body, records=number)
        wrong = refusal(batches.check_records, batch)
        assert wrong == refusal(batches.read_records, batch)
        plain[batches.are_plain(body, number), wrong is None] += 1
    assert not plain[True, False]
    assert min(plain[True, True], plain[False, True], plain[False, False]) > 300, plain


def stream(*blocks: bytes) -> bytes:
    """Blocks compressed with snappy as Java's clients write them, kafka-python and sarama as well."""
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return batches.SNAPPY_STREAM + struct.pack(">ii", 1, 1) + framed


def compressed(codec: str, data: bytes) -> bytes:
    """What another library makes of it; `snappy stream` in two blocks."""
    if codec == "gzip":
        return gzip.compress(data)
    if codec == "snappy stream":
        half = len(data) // 2
        return stream(*(pyarrow.compress(part, "snappy", asbytes=True) for part in (data[:half], data[half:])))
    return bytes(pyarrow.compress(data, codec, asbytes=True))


CODECS = ("gzip", "snappy", "snappy stream", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_every_compression_is_read(codec: str, prose: Prose) -> None:
    """Up to a limit; what is cut short or something else is refused."""
    data = bytes(range(256)) * 40
    packed, name = compressed(codec, data), codec.split()[0]
    assert batches.unpack(name, packed) == data
    assert batches.unpack(name, packed, len(data)) == data
    with pytest.raises(TooLarge):
        batches.unpack(name, packed, len(data) - 1)
    with pytest.raises(TooLarge):
        batches.unpack(name, compressed(codec, bytes(batches.LARGEST + 1)))
    for wrong in (b"?" * 40, packed[: len(packed) // 2]):
        with pytest.raises(Malformed):
            batches.unpack(name, wrong)
    prose.refuses(BadInput, batches.unpack, "unknown", packed)


@pytest.mark.parametrize("codec", CODECS[:-1])
@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_are_read(codec: str, magic: int, prose: Prose) -> None:
    """The value of the wrapping message is what was compressed; zstd is younger than messages."""
    records = [Record(number, 5 if magic else NO_TIMESTAMP, None, b"value" * 9) for number in range(3)]
    number = next(number for number, name in batches.COMPRESSION.items() if name == codec.split()[0])
    inner = compressed(codec, write_messages(records, magic))
    wrapped = bytearray(write_messages([Record(2, 5, None, inner)], magic))
    wrapped[CODEC_AT] |= number
    wrapped[12:16] = struct.pack(">I", zlib.crc32(wrapped[batches.MAGIC_AT :]))
    assert read_messages(bytes(wrapped)) == records
    wrapped[CODEC_AT] = 4
    wrapped[12:16] = struct.pack(">I", zlib.crc32(wrapped[batches.MAGIC_AT :]))
    prose.refuses(BadInput, read_messages, bytes(wrapped))


def test_damaged_messages_are_refused_and_nothing_else() -> None:
    """Truncated, with negative and enormous lengths, with random bytes: Malformed, and little memory."""
    rng = random.Random(14)
    for key, _ in SPOKEN:
        for version in versions(key):
            kind = message_type(key, version)
            data = encode(kind.body, filled(kind.body, rng)) or b"\0"
            for _ in range(20):
                with contextlib.suppress(Malformed):
                    decode(kind.body, damaged(data, rng))
    for _ in range(500):
        batch = batches.write_batch(
            [Record(n, n, None, b"value") for n in range(3)], codec=rng.choice(("none", "gzip"))
        )
        bad = damaged(batch, rng)
        with contextlib.suppress(Malformed):
            for _, raw in batches.split(bad):
                batches.read_records(batches.read_batch(raw))
        show_records(bad)
        damaged_request = damaged(produce_v6(), rng)
        with contextlib.suppress(BadInput):
            assert b"".join(part.raw for part in annotate(damaged_request)) == damaged_request


def test_more_elements_than_any_lab_has_are_refused(prose: Prose) -> None:
    """Before they are made: 20 MB of empty names would become gigabytes."""
    many = 10_000_000
    prose.refuses(Malformed, decode, message_type(3, 1).body, struct.pack(">i", many) + bytes(2 * many))


def test_wrong_bytes_are_explained(prose: Prose) -> None:
    """Text sent to a broker's port, and a version that there is not."""
    prose.refuses(BadInput, annotate, b"GET / HTTP/1.1\r\n\r\n")
    refuses(BadInput, "TLS", annotate, "16030100 00000000 0000")
    refuses(UnknownName, "version of ControlledShutdown 9", annotate, "0007 0009 00000005 0002 6331")
    refuses(BadInput, "hexadecimal", annotate, "no digits")
    refuses(BadInput, "--version 1 or version=1", annotate, "0000", "Metadata")
    assert show_records("00").title == "records, 1 byte"


def test_a_notebook_shows_a_table() -> None:
    """One row for each part, with what is text escaped."""
    shown = annotate(encode_message(message_type(3, 1), {"client_id": "<b>"}, {"topics": None}))
    assert isinstance(shown, Annotated)
    page = shown._repr_html_()
    assert page.count("<tr") == len(shown) + 1
    assert "<b>" not in page
    assert "Metadata request, version 1" in str(shown)
    listed = annotate(encode_message(message_type(3, 1), {"client_id": "a"}, {"topics": [{"name": "orders"}]}))
    assert "topics[0].<wbr>name" in listed._repr_html_() and "topics[0].name" in str(listed)


def test_a_request_that_was_cut_short_has_its_length_all_the_same() -> None:
    """Four bytes that are no request, before bytes that are one; a request without them may look alike further on."""
    whole = request("Metadata", 1, {"topics": [{"name": "orders"}]}, correlation_id=7)
    parts = annotate(whole[:-2])
    assert [part.field for part in parts[:3]] == ["length", "request_api_key", "request_api_version"]
    assert parts[-1].field == "" and sum(len(part.raw) for part in parts) == len(whole) - 2
    unframed = request("Produce", 7, {"topic_data": []}, correlation_id=0x0003_0001)[4:]
    assert annotate(unframed).title.startswith("Produce request, version 7")


def test_the_elements_of_an_array_that_may_be_null_are_taken_apart() -> None:
    named = annotate(request("Metadata", 1, {"topics": [{"name": "orders"}]}))
    assert {part.field: part.value for part in named}["topics[0].name"] == "orders"
    assert annotate(request("Metadata", 1, {"topics": None}))[-1].value is None


def test_a_time_that_is_not_known_is_minus_1() -> None:
    """As in Kafka's schema, where the answer leaves it out."""
    kind = message_type(api_key("Produce"), 2, RESPONSE)
    left_out = {"responses": [{"name": "a", "partition_responses": [{}]}]}
    (topic,) = decode(kind.body, encode(kind.body, left_out))[0]["responses"]
    assert topic["partition_responses"][0]["log_append_time"] == -1


def test_a_structure_that_may_be_null() -> None:
    """A byte says whether it is (KIP-893): the cursor of DescribeTopicPartitions."""
    kind = message_type(api_key("DescribeTopicPartitions"), 0, REQUEST)
    for cursor in (None, {"topic_name": "orders", "partition_index": 3}):
        body = {"topics": [], "response_partition_limit": 5, "cursor": cursor}
        data = encode_message(kind, {"correlation_id": 1, "client_id": "me"}, body)
        assert decode_message(kind, data[4:])[1] == body
        shown = {part.field: (part.raw, part.value) for part in annotate(data)}
        assert shown["cursor"] == ((b"\xff", None) if cursor is None else (b"\x01", ...))
        assert ("cursor.topic_name" in shown) is (cursor is not None)


def test_the_directories_of_copies_and_of_future_copies() -> None:
    """Of the directories that can be read; a copy that moves is in two."""

    def listed(path: str, error: int, *copies: tuple[int, bool]) -> dict[str, Any]:
        parts = [{"partition_index": number, "is_future_key": future} for number, future in copies]
        return {"log_dir": path, "error_code": error, "topics": [{"name": "a", "partitions": parts}]}

    results = [listed("/d1", 0, (0, False), (1, False)), listed("/d2", 0, (0, True)), listed("/d3", 56, (2, False))]
    found = read_answer(DescribeLogDirsRequest(()), {"results": results}).log_dirs_described
    places = {tp.partition: (one.current, one.future) for tp, one in found.items()}
    assert places == {0: ("/d1", "/d2"), 1: ("/d1", None)}


def test_less_than_a_request_is_refused(prose: Prose) -> None:
    prose.refuses(BadInput, annotate, "00030001")


def test_the_command_takes_a_message_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """`kafka-ctl wire` with a request, a response, records, and nothing."""
    from kafka_ctl.cli.commands import main

    def status(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["wire", *words])
        return int(ended.value.code or 0)

    assert status("00000010", "0007", "0001", "00000005", "0002", "6331", "00000003") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["16", "00", "00", "00", "03", "broker_id", "int32", "3"]
    assert status("--answers", "ControlledShutdown", "--version", "1", "00000005", "0000", "00000000") == 0
    assert "remaining_partitions" in capsys.readouterr().out
    assert status("--records", batches.write_batch([Record(0, 1, None, b"hi")]).hex()) == 0
    assert "b'hi'" in capsys.readouterr().out
    assert status() == 0
    assert "LeaderAndIsr" in capsys.readouterr().out
    assert status("47455420") == 2
    assert "'GET ' as text" in capsys.readouterr().err
    assert status("--version", "1", "00") == 2


KAFKAS: dict[str, Any] = {
    "acks": 1,
    "timeout": 30_000,
    "topic_data": [{"topic": "t", "data": [{"partition": 1, "record_set": b"xx"}]}],
}
OURS: dict[str, Any] = {
    "acks": 1,
    "timeout": 30_000,
    "topic_data": [{"name": "t", "partition_data": [{"index": 1, "records": b"xx"}]}],
}


@tabled
def test_a_request_takes_the_names_of_kafkas_own_tables(
    api: str, version: int, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert request(api, version, one) == request(api, version, other)


def test_a_request_refuses_a_value_of_another_type(prose: Prose) -> None:
    """Text where bytes belong, a number where text does; a number as bytes would be so many zeros."""
    for api, fields in (
        ("Heartbeat", {"group_id": 5}),
        ("SyncGroup", {"assignments": [{"member_id": "a", "assignment": "text"}]}),
        ("SyncGroup", {"assignments": [{"member_id": "a", "assignment": 5}]}),
    ):
        prose.refuses(BadInput, request, api, 0, fields)


@pytest.mark.parametrize("names", ["abc", b"abc", 5, {"a": 1}], ids=source)
def test_a_request_refuses_what_is_no_list(prose: Prose, names: object) -> None:
    """A text would be an array of its characters."""
    prose.refuses(BadInput, request, "DeleteTopics", 1, {"topic_names": names, "timeout": 0})


def test_a_request_refuses_unknown_fields(prose: Prose) -> None:
    """Also deep inside, those of other versions, and what is no structure where one has to be."""
    prose.refuses(UnknownName, request, "Produce", 2, {"nonsense": 1})
    with prose.refused(UnknownName):
        request("Produce", 2, {"topic_data": [{"topic": "t", "data": [{"partition": 1, "records_set": b""}]}]})
    prose.refuses(UnknownName, request, "Produce", 2, {"transactional_id": None})
    for odd in ("orders", "", b""):
        prose.refuses(BadInput, request, "Produce", 2, {"topic_data": odd})
    prose.refuses(BadInput, request, "Produce", 2, {"topic_data": [{"topic": "t", "name": "t"}]})
    for fields in (None, ["topics"]):
        prose.refuses(BadInput, request, "Metadata", 1, fields)
