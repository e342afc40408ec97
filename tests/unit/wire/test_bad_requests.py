"""What is no request, or comes in pieces, or never ends: brokers stay up, and the trace says why a connection ended."""

import resource
import socket
import struct
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from labs import until_quiet
from wire_clients import Asking, closed_connections, eventually, fetch_of, listening
from wire_fuzz import connect, crashes, fuzz, packed

from kafka_ctl import Lab
from kafka_ctl.wire.batches import HEADER, Record, write_batch
from kafka_ctl.wire.codec import decode_message, encode, encode_message
from kafka_ctl.wire.schema import RESPONSE, api_key, message_type, name_of, number_of
from kafka_ctl.wire.versions import announced

MANY = 1_100_000
"""Empty names: two bytes each in a request, a quarter of a kilobyte as dictionaries."""
VERSIONS = encode_message(message_type(18, 0), {"correlation_id": 9, "client_id": "t"}, {})


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        yield lab


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer where the connection ends."""
    data = b""
    while len(data) < size:
        try:
            more = connection.recv(size - len(data))
        except ConnectionResetError:
            break
        if not more:
            break
        data += more
    return data


def answer(connection: socket.socket) -> bytes:
    """The next answer without its length; empty where the connection was closed instead."""
    head = received(connection, 4)
    return received(connection, int.from_bytes(head, "big")) if len(head) == 4 else b""


def asked(lab: Lab, frame: bytes) -> bytes:
    with connect(lab) as connection:
        connection.sendall(frame)
        return answer(connection)


def sound(lab: Lab) -> bool:
    """Whether every broker still answers."""
    for place in range(3):
        with connect(lab, place) as connection:
            connection.sendall(VERSIONS)
            if struct.unpack(">i", answer(connection)[:4]) != (9,):
                return False
    return True


def recorded(lab: Lab, error: str, text: str) -> bool:
    return any(e == error and text in (detail or "") for e, detail in closed_connections(lab))


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (b"\xff\xff\xff\xff", "INVALID_RECEIVE", "size = -1"),
        (b"GET / HTTP/1.1\r\n\r\n", "INVALID_RECEIVE", "size = 1195725856 larger than 104857600"),
        (b"\x7f\xff\xff\xff", "INVALID_RECEIVE", "size = 2147483647"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "INVALID_RECEIVE", "size = 369295618"),
        (struct.pack(">i", 0), "INVALID_REQUEST", "a request of 0 bytes"),
        (struct.pack(">ihhi", 8, 999, 0, 1), "INVALID_REQUEST", "API key 999"),
        (struct.pack(">ihhi", 8, -1, 0, 1), "INVALID_REQUEST", "API key -1"),
        (struct.pack(">ihhih", 10, 24, 0, 1, -1), "INVALID_REQUEST", "AddPartitionsToTxn"),
        (struct.pack(">ihhih", 10, 3, 99, 1, -1), "UNSUPPORTED_VERSION", "Metadata in version 99"),
        (struct.pack(">ihhih", 10, 3, -1, 1, -1), "UNSUPPORTED_VERSION", "Metadata in version -1"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1), "INVALID_REQUEST", "an array of 2147483647 elements"),
        (struct.pack(">ihhihi", 14, 3, 1, 1, -1, -2), "INVALID_REQUEST", "an array of -2 elements"),
        pytest.param(
            struct.pack(">ihhihi", 14 + 2 * MANY, 3, 1, 1, -1, MANY) + bytes(2 * MANY),
            "INVALID_REQUEST",
            "268435456 bytes",
            id="empty names",
        ),
        (struct.pack(">ihhih", 10, 3, 1, 1, 3000), "INVALID_REQUEST", "string of length 3000"),
        (struct.pack(">ihhih", 10, 3, 1, 1, -7), "INVALID_REQUEST", "string of length -7"),
        (struct.pack(">ihhih", 10, 0, 0, 1, -1), "INVALID_REQUEST", "Produce version 0"),
    ],
)
def test_what_is_no_request_ends_the_connection(lab: Lab, data: bytes, error: str, text: str) -> None:
    """As in Kafka, without an answer; the broker goes on."""
    assert asked(lab, data) == b""
    eventually(lambda: recorded(lab, error, text), text)
    assert sound(lab)


def test_versions_can_be_asked_for_in_any_version(lab: Lab) -> None:
    """A client newer than the broker is answered in version 0: UNSUPPORTED_VERSION; in 2.4 with the versions of
    ApiVersions itself (KIP-511), before with none.

    Kafka 0.10.2.2, 2.0.1, 2.4.1: common/requests/ApiVersionsRequest.java, ApiVersionsResponse.java
    """
    for version in (99, 4, -3):
        frame = struct.pack(">hhih", 18, version, 77, -1) + b"\x00\x02a\x02b\x00"
        reply = asked(lab, struct.pack(">i", len(frame)) + frame)
        header, body = decode_message(message_type(18, 0, RESPONSE), reply)
        assert header["correlation_id"] == 77
        assert body["error_code"] == number_of("UNSUPPORTED_VERSION") == 35
        spans = {one["api_key"]: (one["min_version"], one["max_version"]) for one in body["api_keys"]}
        assert spans == ({18: (0, 3)} if lab.generation.name == "2.4" else {})


def test_all_that_is_announced_is_what_the_table_says(lab: Lab) -> None:
    _, body = decode_message(message_type(18, 0, RESPONSE), asked(lab, VERSIONS))
    spans = {one["api_key"]: (one["min_version"], one["max_version"]) for one in body["api_keys"]}
    assert body["error_code"] == 0
    assert spans == {api_key(name): span for name, span in announced(lab.generation).items()}


@pytest.mark.parametrize("name", ["", "-kit", "a kit"])
def test_software_has_a_name(lab: Lab, name: str) -> None:
    """Since version 3 of ApiVersions, which 2.4 knows (KIP-511)."""
    if lab.generation.name != "2.4":
        return
    reported = []
    for software in (name, "a-kit.2"):
        body = {"client_software_name": software, "client_software_version": "1.0"}
        request = encode_message(message_type(18, 3), {"correlation_id": 1, "client_id": "t"}, body)
        reported.append(decode_message(message_type(18, 3, RESPONSE), asked(lab, request))[1])
    assert [one["error_code"] for one in reported] == [number_of("INVALID_REQUEST"), 0]
    assert [bool(one["api_keys"]) for one in reported] == [False, True]


def test_half_a_request(lab: Lab) -> None:
    """It is cut short within the length, and within what follows; the trace says how much came."""
    with connect(lab) as connection:
        connection.sendall(VERSIONS[:2])
    eventually(lambda: recorded(lab, "INVALID_RECEIVE", "2 bytes of 4"))
    with connect(lab) as connection:
        connection.sendall(VERSIONS[:9])
    eventually(lambda: recorded(lab, "INVALID_RECEIVE", f"5 bytes of {len(VERSIONS) - 4}"))


def test_a_request_that_comes_byte_by_byte(lab: Lab) -> None:
    """It is a request all the same, and so are two in one piece; answers come in order."""
    with connect(lab) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(len(VERSIONS)):
            connection.sendall(VERSIONS[number : number + 1])
        assert answer(connection)[:4] == struct.pack(">i", 9)
        second = encode_message(message_type(18, 0), {"correlation_id": 10, "client_id": None}, {})
        connection.sendall(VERSIONS + second)
        assert [answer(connection)[:4] for _ in range(2)] == [struct.pack(">i", 9), struct.pack(">i", 10)]


def test_requests_in_the_wrong_order(lab: Lab) -> None:
    """A group is synced before anybody has joined, a member nobody knows sends heartbeats: Kafka's errors."""
    group = {"group_id": "g", "generation_id": 3, "member_id": "nobody"}
    for name in ("SyncGroup", "Heartbeat"):
        request = encode_message(message_type(api_key(name), 0), {"correlation_id": 1}, group)
        _, body = decode_message(message_type(api_key(name), 0, RESPONSE), asked(lab, request))
        assert body["error_code"] == number_of("UNKNOWN_MEMBER_ID")


def test_what_is_named_twice_is_answered_once(lab: Lab) -> None:
    """In Kafka these are sets; a topic that is to be created or to grow twice is refused. In 2.4, each entry of
    CreateTopics and DeleteTopics is answered (KAFKA-7832, KAFKA-8034).

    Kafka 2.0.1: server/KafkaApis.scala, handleTopicMetadataRequest, handleDeleteTopicsRequest,
    handleCreateTopicsRequest, handleCreatePartitionsRequest, handleDescribeConfigsRequest
    """
    newest = {name: high for name, (_, high) in announced(lab.generation).items()}
    assert lab.controller is not None
    with Asking(lab, lab.controller.id) as client:

        def answers(name: str, of: str, error: str = "error_code", **fields: object) -> list[str | None]:
            return [name_of(one[error]) for one in client.ask(name, newest[name], **fields)[of]]

        orders, gone = {"name": "orders"}, "UNKNOWN_TOPIC_OR_PARTITION"
        times = 2 if lab.generation.requests.answers_each_entry else 1
        new = {"name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        assert answers("Metadata", "topics", topics=[orders] * 3) == [None]
        assert answers("DeleteTopics", "responses", topic_names=["no", "no"], timeout=0) == [gone] * times
        assert answers("CreateTopics", "topics", topics=[new] * 2, timeout=0) == ["INVALID_REQUEST"] * times
        many = new | {"num_partitions": 2**31 - 1}
        assert answers("CreateTopics", "topics", topics=[many], timeout=0) == ["INVALID_PARTITIONS"]
        if "CreatePartitions" in newest:
            more = {"name": "orders", "count": 3, "assignments": None}
            asked = {"timeout": 0, "validate_only": True}
            assert answers("CreatePartitions", "results", topics=[more] * 2, **asked) == ["INVALID_REQUEST"]
            many = more | {"count": 2**31 - 1}
            assert answers("CreatePartitions", "results", topics=[many], **asked) == ["INVALID_PARTITIONS"]
            topic = {"resource_type": 2, "resource_name": "orders", "configuration_keys": None}
            assert answers("DescribeConfigs", "results", resources=[topic] * 3) == [None]


def test_offsets_of_a_partition_named_twice(lab: Lab) -> None:
    """Refused from version 1 on; answered once. Kafka 2.0.1: requests/ListOffsetRequest.java, duplicatePartitions"""
    part = {"partition_index": 0, "max_num_offsets": 1, "current_leader_epoch": -1}
    twice = [{"name": "orders", "partitions": [part | {"timestamp": at}]} for at in (-1, -2)]
    with Asking(lab, lab.partition("orders", 0).leader) as leader:
        for version in range(announced(lab.generation)["ListOffsets"][1] + 1):
            [topic] = leader.ask("ListOffsets", version, replica_id=-1, isolation_level=0, topics=twice)["topics"]
            error = "INVALID_REQUEST" if version else None
            assert [name_of(part["error_code"]) for part in topic["partitions"]] == [error]


def test_offsets_of_partitions_that_there_are_not(lab: Lab) -> None:
    """They are not kept; 0.10.2.2 looks only for the topic.

    Kafka 2.0.1, 0.10.2.2: server/KafkaApis.scala, handleOffsetCommitRequest"""
    parts = [{"partition_index": number, "committed_offset": 5, "committed_metadata": ""} for number in (0, 7)]
    with Asking(lab, 1) as coordinator:
        version = announced(lab.generation)["OffsetCommit"][1]
        found = coordinator.ask("OffsetCommit", version, group_id="g", topics=[{"name": "orders", "partitions": parts}])
        errors = [name_of(part["error_code"]) for part in found["topics"][0]["partitions"]]
        assert errors == [None, None if lab.generation.name == "0.10" else "UNKNOWN_TOPIC_OR_PARTITION"]


def test_half_open_connections_hold_nobody_up() -> None:
    """A thousand connections, some silent, some with half a request, some that ask for megabytes and never read:
    others are answered, and memory is bounded."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * 1000 + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a thousand connections need {wanted} open files; this system allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    everything = encode_message(message_type(3, 1), {"correlation_id": 1}, {"topics": None})
    large = struct.pack(">i", 100 << 20)
    wanted_bytes = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 50 << 20}
    asked_for = fetch_of(("orders", 0, 0), most=50 << 20)
    fetch = encode_message(message_type(1, 4), {"correlation_id": 2}, wanted_bytes | {"topics": asked_for})
    records = write_batch([Record(number, 5, None, bytes(900)) for number in range(1000)])
    connections: list[socket.socket] = []
    try:
        with listening() as lab:
            until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
            leader = lab.partition("orders", 0).leader
            topic = {"name": "orders", "partition_data": [{"index": 0, "records": records}]}
            with Asking(lab, leader) as producer:
                for _ in range(5):
                    producer.ask("Produce", 6, acks=-1, timeout=10_000, topic_data=[topic])
            tracemalloc.start()
            for number in range(1000):
                sends = fetch if number % 10 == 9 else (b"", VERSIONS[:7], everything * 20, large)[number % 4]
                connection = connect(lab, leader - 1 if sends is fetch else number % 3)
                connections.append(connection)
                connection.sendall(sends)
            began = time.monotonic()
            assert sound(lab)
            assert time.monotonic() - began < 60
            assert tracemalloc.get_traced_memory()[0] < 100 << 20
            lab.settle()
            assert lab.controller is not None
    finally:
        tracemalloc.stop()
        for connection in connections:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_damaged_requests_do_no_harm(lab: Lab) -> None:
    """Two seconds of every kind of request with something wrong in it: no crash, and all answer afterwards."""
    fuzz(lab, 2.0, seed=14, least=1000)
    eventually(lambda: sound(lab), "all brokers answer")
    lab.settle()
    assert crashes(lab) == []
    assert encode(message_type(18, 0).body, {}) == b""


def test_a_response_that_cannot_be_sent_ends_its_connection_only(generation: str) -> None:
    """A name grows threefold when it is decoded, and is then too long for a text of the protocol."""
    frame = struct.pack(">ihhihih", 16 + 20_000, 3, 1, 1, -1, 1, 20_000) + b"\xff" * 20_000
    with listening(generation) as lab:
        assert asked(lab, frame) == b""
        assert recorded(lab, "UNKNOWN_SERVER_ERROR", "60000 does not fit")
        assert sound(lab)
        assert lab.partitions() == []


def test_an_unknown_codec_with_acks_0_is_no_crash() -> None:
    """Kafka's error for it is that of an unexpected exception; the connection ends, and nothing failed here."""
    with listening("2.4", orders={0: [1, 2, 3]}) as lab:
        unknown = packed(write_batch([Record(0, 5, None, b"x")])[HEADER.size :], 1, attributes=7)
        topics = [{"name": "orders", "partition_data": [{"index": 0, "records": unknown}]}]
        fields = {"acks": 0, "timeout": 1000, "topic_data": topics}
        frame = encode_message(message_type(0, 5), {"correlation_id": 1, "client_id": "t"}, fields)
        assert asked(lab, frame) == b""
        assert recorded(lab, "UNKNOWN_SERVER_ERROR", "ack=0: orders-0 -> UNKNOWN_SERVER_ERROR")
        assert crashes(lab) == []
        lab.settle()
