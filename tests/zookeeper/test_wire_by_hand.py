"""Requests sent by hand, a bootstrap server that is no broker, and their pictures."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from wire_clients import eventually, listening

from kafka_ctl import BadInput, Lab, Unavailable
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.requests import LeaderAndIsrRequest, PartitionState, UpdateMetadataRequest
from kafka_ctl.wire.client import ask, exchange, request
from kafka_ctl.wire.control import request_bytes
from kafka_ctl.wire.metadata_server import MetadataServer
from kafka_ctl_course.figures.message_bytes import message_bytes

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
kafka = pytest.importorskip("kafka", reason="needs kafka-python")
LEAVE = bytes.fromhex("00000010 0007 0001 00000005 0002 6331 00000003")
PLACES = {id: ("127.0.0.1", 9090 + id, None) for id in (1, 2, 3)}
STATE = PartitionState(LeaderAndIsr(3, (3, 1), 1, 1, 1), (2, 3, 1))
SENT = LeaderAndIsrRequest(1, 1, {TopicPartition("orders", 1): STATE}, (3,))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with listening(orders={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}) as lab:
        yield lab


def addresses(lab: Lab) -> dict[int, str]:
    found = ask(lab.bootstrap_servers, "Metadata", 1, {"topics": None})["brokers"]
    return {node["node_id"]: f"{node['host']}:{node['port']}" for node in found}


def test_a_host_that_is_advertised_is_what_clients_get(lab: Lab) -> None:
    """Of every broker, and with its own port."""
    with MetadataServer(lab.bootstrap_servers, advertised="kafka-1.invalid") as bootstrap:
        brokers = ask(bootstrap.address, "Metadata", 1, {"topics": None})["brokers"]
    assert {broker["host"] for broker in brokers} == {"kafka-1.invalid"}
    assert [str(b["port"]) for b in brokers] == [each.split(":")[1] for each in lab.bootstrap_servers.split(",")]


def test_a_producer_needs_its_bootstrap_server_once(lab: Lab) -> None:
    """It writes to the leaders, before and after the server is stopped."""
    with MetadataServer(lab.bootstrap_servers) as bootstrap:
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap.address, acks="all")
        assert [producer.send("orders", b"a", partition=n).get(timeout=30).offset for n in range(3)] == [0, 0, 0]
    assert [producer.send("orders", b"b", partition=n).get(timeout=30).offset for n in range(3)] == [1, 1, 1]
    producer.close()
    assert {"ApiVersions", "Metadata"} == set(bootstrap.asked)
    with pytest.raises(Unavailable, match="no answer from"):
        ask(bootstrap.address, "Metadata", 1, {"topics": None})


def test_it_answers_nothing_else(lab: Lab) -> None:
    with MetadataServer(lab.bootstrap_servers) as bootstrap:
        assert ask(bootstrap.address, "Metadata", 5, {"topics": [{"name": "none"}]})["topics"] == []
        for message in (request("ListOffsets", 1, {"replica_id": -1, "topics": []}), b"GET / HTTP/1.1\r\n\r\n"):
            with pytest.raises(Unavailable):
                exchange(bootstrap.address, message, seconds=0.5)
        assert bootstrap.asked == ["Metadata"]


@pytest.mark.parametrize("message", ["00000004 0003 0001", "0000000a 0012 0009 00000001 ffff", "00000002 0003"])
def test_a_request_that_cannot_be_read_ends_its_connection(lab: Lab, message: str, capfd: Any) -> None:
    """Cut short, or of a version that there is not; other connections are served."""
    with MetadataServer(lab.bootstrap_servers) as bootstrap:
        with pytest.raises(Unavailable, match="the connection was closed"):
            exchange(bootstrap.address, bytes.fromhex(message))
        assert ask(bootstrap.address, "Metadata", 1, {"topics": []})["topics"] == []
    assert capfd.readouterr().err == ""


def test_anybody_can_say_that_a_broker_leaves(lab: Lab) -> None:
    """The controller moves its leaders; the broker itself runs on."""
    answer = ask(addresses(lab)[lab.controller.id], "ControlledShutdown", 1, {"broker_id": 3})
    assert answer == {"error_code": 0, "remaining_partitions": []}
    eventually(lambda: [p.leader for p in lab.partitions()] == [1, 2, 1])
    assert lab.brokers[3].state == "running"


@pytest.mark.parametrize("address", ["", "9092", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:99999"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(BadInput, match="is not an address"):
        exchange(address, LEAVE)


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\0\x09abc"])
def test_an_answer_that_is_cut_short(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Unavailable, match="no answer from 127"):
            exchange(f"127.0.0.1:{server.getsockname()[1]}", LEAVE)
        thread.join()


def test_bytes_of_requests_between_brokers() -> None:
    """The sizes of one partition in each version, and of many."""
    assert request("ControlledShutdown", 1, {"broker_id": 3}, 5, "c1") == LEAVE
    assert [len(request_bytes(SENT, version, PLACES)) for version in range(5)] == [105, 106, 118, 126, 108]
    for version, each in ((4, 56), (5, 48), (6, 40)):
        many = [UpdateMetadataRequest(1, 1, {TopicPartition("orders", n): STATE for n in range(k)}) for k in (100, 200)]
        first, second = (len(request_bytes(one, version, PLACES)) for one in many)
        assert round((second - first) / 100) == each + 4  # three replicas and two in the ISR: one id more


def test_a_picture_frames_what_a_version_has_added() -> None:
    messages = [request_bytes(SENT, version, PLACES) for version in range(5)]
    found = message_bytes(messages[3], messages[2])
    assert [line for line in found.text.splitlines() if line.startswith("new:")] == [
        "new: topic_states[0].partition_states[0].adding_replicas",
        "new: topic_states[0].partition_states[0].removing_replicas",
    ]
    assert found.svg.count("<rect") > len(messages[3]) and found.svg.count("(new)") == 2
    assert "new:" not in message_bytes(messages[3]).text
    with pytest.raises(BadInput, match="'GET ' as text"):
        message_bytes(b"GET / HTTP/1.1")


def test_the_picture_of_a_message_fits_beside_the_list_of_files_in_a_window_of_1024_pixels() -> None:
    messages = [request_bytes(SENT, version, PLACES) for version in range(5)]
    pictures = [message_bytes(new, old).svg for old, new in pairwise(messages)]
    assert all(int(picture.partition('width="')[2].partition('"')[0]) <= 570 for picture in pictures)


def test_a_message_in_versions_follows_its_slider() -> None:
    from kafka_ctl_course.widgets import MessageWidget

    widget = MessageWidget({version: request_bytes(SENT, version, PLACES) for version in (1, 0, 2)})
    assert repr(widget) == "version 0: 105 bytes\nversion 1: 106 bytes\nversion 2: 118 bytes"
    before = widget.picture.value
    widget.slider.value = 0
    assert widget.picture.value != before and "version 2, 118 bytes" in widget.drawing(2).text
    with pytest.raises(BadInput, match="no version"):
        MessageWidget({})


SHORT_OF_FILES = """
import os, resource, socket
from kafka_ctl import Lab
from kafka_ctl.wire.client import ask

lab = Lab(brokers=1, wire=True)
lab.settle()
host, port = lab.bootstrap_servers.split(":")
assert ask(lab.bootstrap_servers, "Metadata", 1, {"topics": None})["brokers"]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, hard))
clients = []
try:
    while True:
        clients.append(socket.create_connection((host, int(port))))
except OSError as error:
    print(error.strerror)
lab.run_until(lambda: bool(lab.trace.slice(action="closed-connection")))
for client in clients:
    client.close()
assert ask(lab.bootstrap_servers, "Metadata", 1, {"topics": None})["brokers"]
print(*[record.detail for record in lab.trace.slice(action="closed-connection")], sep="\\n")
lab.close()
"""
TOO_MANY = "Too many open files; `ulimit -n` shows and raises how many one process may have"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it counts the files in /proc")
def test_too_many_open_files() -> None:
    """One sentence, in the trace or as an error; a broker accepts connections again when others have been closed."""
    done = subprocess.run([sys.executable, "-c", SHORT_OF_FILES], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == ["Too many open files", f"a connection cannot be accepted: {TOO_MANY}"]
    many = "import kafka_ctl, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)); "
    many += "kafka_ctl.Lab(brokers=100, wire=True)"
    done = subprocess.run([sys.executable, "-c", many], capture_output=True, text=True, timeout=60)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("kafka_ctl.errors.Unavailable: ") and last.endswith(f": {TOO_MANY}")
