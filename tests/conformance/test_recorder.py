"""The recorder's own parts, without Kafka: what it refuses, how it reads logs and cuts connections."""

import socket
import struct
import threading
import time
import zlib
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.kafka_log.read import parse_lines
from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.lab import COMMANDS
from kafka_ctl.wire.batches import checksum
from tests import text_stories
from tests.conformance import normal, truth
from tests.conformance.replay import error_name, replay
from tests.conformance.story import STORIES, Story, blocks
from tools.recorder import playing, wire
from tools.recorder.cluster import Cluster, Process, SessionLost
from tools.recorder.playing import Unplayable
from tools.recorder.proxy import Proxy
from tools.recorder.watcher import Watcher


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


@tabled
def test_arguments_that_cannot_be_played_are_refused(commands, logged):
    with pytest.raises(Unplayable, match=logged):
        check(commands)


@pytest.mark.parametrize("first", ["lab brokers=3 costs={}", "lab brokers=3 settle=false", "lab brokers=3 racks=2"])
def test_a_first_line_that_cannot_be_played_is_refused(first):
    with pytest.raises(Unplayable, match=first.split()[-1].partition("=")[0]):
        check("kill 1", first)


def test_racks_reach_the_brokers(tmp_path, monkeypatch):
    from tools.recorder.release import RELEASES

    cluster = Cluster(RELEASES["2.0"], {1: "a", 2: None}, {})
    monkeypatch.setattr(cluster.zookeeper, "port", 2181)
    assert cluster.properties(1, 9092, "a", tmp_path)["broker.rack"] == "a"
    assert "broker.rack" not in cluster.properties(2, 9092, None, tmp_path)


@tabled
def test_why_a_broker_did_not_start(log, why, tmp_path):
    broker = Process(3, tmp_path / "3", {})
    (broker.folder / "server.log").write_text(f"[1] INFO starting\n[2] FATAL Fatal error\n{log}\n\tat x\n")
    assert broker.why_ended() == why


def test_an_isr_change_in_vain_is_none(tmp_path):
    """A leader whose znode somebody else has written tries again every few seconds."""
    watcher = Watcher(SimpleNamespace(brokers={1: Process(1, tmp_path / "1", {})}))
    before = watcher.isr_changed
    log = tmp_path / "1" / "server.log"
    shrinks = "INFO [Partition orders-0 broker=1] Shrinking ISR from 1,2,3 to 1,2 (kafka.cluster.Partition)\n"
    vain = "INFO [Partition orders-0 broker=1] Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR\n"
    log.write_text(shrinks + vain)
    watcher.look()
    assert watcher.isr_changed == before
    log.write_text(shrinks + vain + shrinks)
    watcher.look()
    assert watcher.isr_changed > before


@pytest.mark.parametrize("story", ["first_election", "reassign_failover", "six_brokers", "seven_brokers_racks"])
def test_brokers_of_a_story_come_in_ascending_order(story, generation):
    """As the recorder starts them: three, five, six and seven."""
    opening, *_ = stories_language.parse(STORIES[story].text(generation))
    with Lab(**stories_language.opening(opening)) as lab:
        came = [r.broker for r in lab.trace.records if r.kind == "broker" and r.action == "registered"]
    assert came == [*range(1, len(came) + 1)] and len(came) == len(lab.brokers)


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
    covered = struct.pack(">hiqqqhii", 0, len(values) - 1, 0, 0, -1, -1, -1, len(values)) + records
    inside = struct.pack(">ibI", epoch, 2, checksum(covered)) + covered
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


def test_what_brokers_hold_is_reported_when_it_changes():
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


def test_a_misspelt_note_of_a_story_is_refused(tmp_path):
    file = tmp_path / "stories.txt"
    file.write_text("# A broker dies.\n# name: dies\n# gnerations: 2.4\nlab brokers=3\nkill 1\n")
    with pytest.raises(ValueError, match=r"no note \['gnerations'\]"):
        text_stories.stories(file, "name", "seed")
    (story,) = text_stories.stories(file, "name", "gnerations")
    assert story == ("A broker dies.", {"name": ["dies"], "gnerations": ["2.4"]}, "lab brokers=3\nkill 1\n")


def test_commands_that_do_not_wait_are_one_block():
    story = Story("x", "x", "lab brokers=3", "kill 1 # meanwhile\nshutdown 3\nstart 1")
    lines = story.text("2.0").splitlines()[1:]
    assert blocks(lines) == [["kill 1 # meanwhile", "shutdown 3"], ["start 1"]]


def test_replay_tells_of_records():
    text = Story("x", "x", "lab brokers=2", "create_topic t assignment='{\"0\":[1,2]}'\nproduce t 0 records=2").text(
        "2.0"
    )
    golden = "# x\n" + "\n".join(f"{line}\n----\n" for line in [*text.splitlines(), "settle"])
    reported = replay(golden)
    for line in ("produced 1,2 by 1: offset 0", "log t-0 on 2: 1@0 2@0 |", "read t-0: 1 2"):
        assert line in reported.splitlines()


def test_a_described_cluster_is_opened_without_who_is_down():
    """Its znodes are written, and everybody starts but the broker that must be dead; who leads wins the race."""
    given = stories_language.opening(next(stories_language.parse(STORIES["described"].text("2.0"))))
    written, started = [], []
    zk = SimpleNamespace(create=lambda path, *_, **__: written.append(path))
    address = SimpleNamespace(address="127.0.0.1:1")
    cluster = SimpleNamespace(zk=zk, zookeeper=address, config={}, brokers=dict.fromkeys((1, 2, 3, 4)))
    player = playing.Player(cluster, "2.0")
    player.start = lambda id: (started.append(id), player.order.append(id))
    player.delete_controller = lambda: None
    player.open_described(given["described"], 2)
    assert started == [1, 2, 3]
    assert player.order == [2, 1, 3]
    assert "/brokers/topics/orders" in written
    assert written[-1] == "/controller"


def test_an_error_of_0_10_that_two_lines_tell_of_is_one_refusal():
    """As when a topic is created while all of its brokers are dead."""
    begin = "[2020-01-02 03:04:05,678] ERROR Controller 1 epoch 1"
    lines = [
        f"{begin} encountered error during state change of partition [a,0] from New to Online, assigned replicas are "
        "[2], live brokers are [Set(1)]. No assigned replica is alive. (state.change.logger)",
        f"{begin} initiated state change for partition [a,0] from NewPartition to OnlinePartition failed "
        "(state.change.logger)",
    ]
    items = list(parse_lines(lines))
    assert len(items) == 2
    assert normal.facts(items, "0.10") == ["refused: partition a-0 New -> Online"]


ASKED = ["orders-0", "orders-1"]


def test_what_the_election_tool_prints_is_read():
    """The line about valid replicas names those that were elected (2.4.1), so who is not named needed no election."""
    printed = """Successfully completed leader election (UNCLEAN) for partitions orders-0
Valid replica already elected for partitions orders-0
"""
    assert playing.read_elections(printed, ASKED) == {"orders-0": "elected", "orders-1": "ElectionNotNeeded"}
    both = "Successfully completed leader election (PREFERRED) for partitions orders-1, orders-0\n"
    assert playing.read_elections(both, ASKED) == dict.fromkeys(ASKED, "elected")
    error = "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: Failed to elect leader"
    printed = f"Error completing leader election (PREFERRED) for partition: orders-1: {error}\n"
    assert playing.read_elections(printed, ["orders-1"]) == {"orders-1": "PreferredLeaderNotAvailable"}
    error = "org.apache.kafka.common.errors.InvalidTopicException: The topic is being deleted"
    printed = f"Error completing leader election (PREFERRED) for partition: orders-1: {error}\n"
    assert playing.read_elections(printed, ["orders-1"]) == {"orders-1": "InvalidTopic"}
    assert error_name("INVALID_TOPIC_EXCEPTION") == "InvalidTopic"  # as the kit's player calls it
    with pytest.raises(RuntimeError, match="Timeout waiting"):
        playing.read_elections("Timeout waiting for election results\n", ASKED)


def znode(text):
    return text.encode(), 0


def test_znodes_without_json_are_written_down_and_ask_for_nothing():
    tree = {"/brokers/topics/broken": znode("nonsense"), "/brokers/topics/half": znode('{"version":1')}
    assert normal.znodes(tree) == [
        "/brokers/topics/broken version=0 nonsense",
        '/brokers/topics/half version=0 {"version":1',
    ]
    tree |= {
        "/controller": znode('{"version":1,"brokerid":1,"timestamp":"0"}'),
        "/admin/reassign_partitions": znode("nonsense"),
        "/admin/delete_topics/broken": znode(""),
    }
    cluster = SimpleNamespace(brokers={1: SimpleNamespace(died=False, running=True)}, tree=lambda: tree, cut_off=set())
    cluster.registered = lambda: [1]
    problem = Watcher(cluster).problem({1})
    assert problem == "broken is being deleted"
    del tree["/admin/delete_topics/broken"]
    assert Watcher(cluster).problem({1}) == ""


class Bystanders(Cluster):
    """Two brokers that only stand still; `sessions` are theirs."""

    def __init__(self):
        self.brokers = {id: SimpleNamespace(paused=False, running=True, pid=20 + id) for id in (1, 2)}
        self.sessions, self.stood = {1: 11, 2: 12}, {}

    def session(self, id):
        return self.sessions.get(id)

    def pause(self, id):
        self.brokers[id].paused = True

    def resume(self, id):
        self.brokers[id].paused = False


def test_a_bystander_that_loses_its_session_makes_the_recording_worthless():
    """Also when that ends a moment after it goes on; not one that has been started anew."""
    cluster = Bystanders()
    with cluster.paused([1, 2]):
        assert cluster.brokers[1].paused
    cluster.check_bystanders()
    with cluster.paused([1, 2]):
        pass
    cluster.sessions[2] = 13
    cluster.brokers[1].pid, cluster.sessions[1] = 33, 14
    assert not cluster.brokers[2].paused
    with pytest.raises(SessionLost, match=r"brokers \[2\]"):
        cluster.check_bystanders()
    cluster.check_bystanders()


@pytest.mark.parametrize("quick", ["a", "b"])
def test_tools_at_once_work_side_by_side_and_finish_in_the_order_of_the_story(quick):
    """The first waits until the second works; a recording in which the second finishes first is made again."""
    cluster = SimpleNamespace(zookeeper=SimpleNamespace(address="127.0.0.1:1"), paused=lambda _: nullcontext())
    player, started = playing.Player(cluster, "2.0"), threading.Barrier(2)
    finished = threading.Event()

    def create(topic, **_):
        started.wait(10)
        if topic == quick:
            finished.set()
        else:
            assert finished.wait(10)
            time.sleep(0.05)

    player.create_topic = create
    commands = [f"""create_topic {topic} assignment='{{"0":[1]}}'""" for topic in ("a", "b")]
    with nullcontext() if quick == "a" else pytest.raises(playing.OtherOrder, match="create_topic b"):
        player.at_once(commands)


def test_a_full_directory_and_one_that_is_a_file_have_failed_until_the_next_start(tmp_path):
    process = Process(1, tmp_path / "1", {"log.dirs": f"{tmp_path}/1/d0,{tmp_path}/1/d1"})
    for directory in process.directories:
        directory.mkdir()
    (process.directories[0] / "orders-0").mkdir()
    process.fail_directory()
    assert process.failed == {process.directories[0]} and process.directories[0].is_file()
    assert (process.content(process.directories[0]) / "orders-0").is_dir()
    process.repair()
    assert not process.failed and (process.directories[0] / "orders-0").is_dir()
