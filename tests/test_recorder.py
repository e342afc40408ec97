"""The recorder's own parts, without Kafka: what it refuses, how it reads logs and cuts connections."""

import socket
import struct
import threading
import zlib

import pytest

from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.lab import COMMANDS
from tests.conformance import playing, truth, wire
from tests.conformance.playing import Unplayable
from tests.conformance.proxy import Proxy
from tests.conformance.replay import replay
from tests.conformance.stories import STORIES
from tests.conformance.story import Story, blocks


def check(commands, first="lab brokers=3"):
    opening, *rest = stories_language.parse(Story("x", "x", first, commands).text("2.0"))
    playing.check(opening, rest)


def test_every_story_can_be_played():
    for story in STORIES.values():
        opening, *commands = stories_language.parse(story.text(story.generations[0]))
        playing.check(opening, commands)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(playing.COMMANDS)))
def test_a_command_that_cannot_be_played_is_refused_by_its_name(name):
    with pytest.raises(Unplayable, match=f"cannot play {name}"):
        check(f"{name} 1")


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ("kill 1 2 3", "this kill"),
        ("kill 1 softly=true", "softly"),
        ("kill 1 waits=false", "waits"),
        ("shutdown 1 wait=false", "wait"),
        ("produce t 0 wait=false", "wait"),
        ("disconnect 1 2 one_way=true", "one_way"),
        ("create_topic orders partitions=3", "draws where"),
        ('at_once ["kill\\u00201"]', "not kill"),
        ('at_once ["slow\\u00201\\u00202"]', "slow"),
    ],
)
def test_arguments_that_cannot_be_played_are_refused(commands, said):
    with pytest.raises(Unplayable, match=said):
        check(commands)


@pytest.mark.parametrize("first", ["lab brokers=3 costs={}", "lab brokers=3 settle=false", "lab brokers=3 racks=2"])
def test_a_first_line_that_cannot_be_played_is_refused(first):
    with pytest.raises(Unplayable, match=first.split()[-1].partition("=")[0]):
        check("kill 1", first)


def test_racks_reach_the_brokers(tmp_path, monkeypatch):
    from tests.conformance.cluster import Cluster
    from tests.conformance.release import RELEASES

    cluster = Cluster(RELEASES["2.0"], {1: "a", 2: None}, {})
    monkeypatch.setattr(cluster.zookeeper, "port", 2181)
    assert cluster._properties(1, 9092, "a", tmp_path)["broker.rack"] == "a"
    assert "broker.rack" not in cluster._properties(2, 9092, None, tmp_path)


def message_set(values, offset=0):
    found = b""
    for number, value in enumerate(values, offset):
        inside = struct.pack(">bbqii", 1, 0, 0, -1, len(value)) + value
        inside = struct.pack(">I", zlib.crc32(inside)) + inside
        found += struct.pack(">qi", number, len(inside)) + inside
    return found


def batch(epoch, offset, values):
    records = b""
    for number, value in enumerate(values):
        record = bytes([0, 0, number * 2, 1, len(value) * 2]) + value + b"\0"
        records += bytes([len(record) * 2]) + record
    inside = struct.pack(">ibIhiqqqhii", epoch, 2, 0, 0, len(values) - 1, 0, 0, -1, -1, -1, len(values)) + records
    return struct.pack(">qi", offset, len(inside)) + inside


def test_logs_of_both_formats_are_read(tmp_path):
    (tmp_path / "0.log").write_bytes(message_set([b"1", b"22"]))
    assert wire.log(tmp_path) == [(None, "1"), (None, "22")]
    (tmp_path / "0.log").write_bytes(batch(3, 0, [b"1", b"22"]) + batch(4, 2, [b"3"]) + b"cut off")
    assert wire.log(tmp_path) == [(3, "1"), (3, "22"), (4, "3")]


def test_a_cut_ends_connections_and_makes_no_new_ones():
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.sendall(b"hello")

    threading.Thread(target=serve, daemon=True).start()
    proxy = Proxy(server.getsockname()[1], lambda *_: 2)

    def hear(connection):
        connection.settimeout(10)
        try:
            return connection.recv(10)
        except ConnectionError:
            return b""

    with socket.create_connection(("127.0.0.1", proxy.port)) as first:
        assert hear(first) == b"hello"
        proxy.cut(2)
        assert hear(first) == b""
    with socket.create_connection(("127.0.0.1", proxy.port)) as second:
        assert hear(second) == b""
    proxy.heal()
    with socket.create_connection(("127.0.0.1", proxy.port)) as third:
        assert hear(third) == b"hello"
    proxy.close()
    server.close()


def test_what_brokers_hold_is_told_when_it_changes():
    before = {("log", "t", 0, 1): "1@0 |", ("cache", 1, "t-0", 1): "leader=1", ("cache", 1, "t-0", 2): "leader=1"}
    after = {("cache", 1, "t-0", 1): "leader=2", ("cache", 1, "t-0", 2): "leader=2", ("fetches", 2): "nothing"}
    assert truth.changed(before, after) == [
        "broker 2 fetches: nothing",
        "cache of 1,2: t-0 leader=2",
        "log t-0 on 1: gone",
    ]


def test_a_story_can_ask_for_no_other_truth():
    with pytest.raises(ValueError, match="gossip"):
        truth.asked("# Compared too: gossip.\n", [])


def test_commands_that_do_not_wait_are_one_block():
    story = Story("x", "x", "lab brokers=3", "kill 1 # meanwhile\nshutdown 3\nstart 1")
    lines = story.text("2.0").splitlines()[1:]
    assert blocks(lines) == [["kill 1 # meanwhile", "shutdown 3"], ["start 1"]]


def test_replay_tells_of_records():
    text = Story("x", "x", "lab brokers=2", 'create_topic t assignment={"0":[1,2]}\nproduce t 0 records=2').text("2.0")
    golden = "# x\n" + "\n".join(f"{line}\n----\n" for line in [*text.splitlines(), "settle"])
    told = replay(golden)
    for line in ("produced 1,2 by 1: offset 0", "log t-0 on 2: 1@0 2@0 |", "read t-0: 1 2"):
        assert line in told.splitlines()
