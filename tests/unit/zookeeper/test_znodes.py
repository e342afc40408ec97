"""Znodes: the bytes Kafka writes, what they mean, and what is refused."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose
from tables import FOLDER, tabled, tables

from kafka_ctl.cluster import Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.znodes import PERSISTENT_PATHS, sequence_number

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
STATE = LeaderAndIsr(leader=1, isr=(1, 2, 3), leader_epoch=5, zk_version=7, controller_epoch=3)
LEADERLESS = LeaderAndIsr(leader=-1, isr=(), leader_epoch=5, zk_version=0, controller_epoch=3)
MOVING = ReplicaAssignment((1, 2, 3), adding=(2,), removing=(3,))
RACKED = Broker(1, "127.0.0.1", 9092, "r1", 40)
PLAIN = Broker(1, "127.0.0.1", 9092, None, 40)
CONFIG = {"unclean.leader.election.enable": "true"}
NON_ASCII = {"a": 'é"\\\u0001'}
PAIR = '[{"topic":"orders","partition":0},{"topic":"orders","partition":1}]'

# Recorded from kafka_2.12-2.0.1.jar, kafka.zk.ZkData; only version 2 of a topic follows Kafka 2.4.1's source.
BYTES: list[tuple[bytes, str]] = [
    (znodes.ControllerZNode.encode(1, 1500000000000), '{"version":1,"brokerid":1,"timestamp":"1500000000000"}'),
    (znodes.ControllerEpochZNode.encode(12), "12"),
    (
        znodes.TopicPartitionStateZNode.encode(STATE),
        '{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":5,"isr":[1,2,3]}',
    ),
    (
        znodes.TopicPartitionStateZNode.encode(LEADERLESS),
        '{"controller_epoch":3,"leader":-1,"version":1,"leader_epoch":5,"isr":[]}',
    ),
    (
        znodes.BrokerIdZNode.encode(RACKED, 1795224310111),
        '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:9092"],'
        '"rack":"r1","jmx_port":-1,"host":"127.0.0.1","timestamp":"1795224310111","port":9092,"version":4}',
    ),
    (
        znodes.BrokerIdZNode.encode(PLAIN, 1795224310113),
        '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:9092"],'
        '"jmx_port":-1,"host":"127.0.0.1","timestamp":"1795224310113","port":9092,"version":4}',
    ),
    (znodes.TopicZNode.encode({0: [1, 2], 1: (2, 3)}), '{"version":1,"partitions":{"0":[1,2],"1":[2,3]}}'),
    (znodes.TopicZNode.encode({0: MOVING}), '{"version":1,"partitions":{"0":[1,2,3]}}'),
    (
        znodes.TopicZNode.encode({0: MOVING, 1: (2, 3)}, version=2),
        '{"version":2,"partitions":{"0":[1,2,3],"1":[2,3]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[3]}}',
    ),
    (
        znodes.TopicZNode.encode({0: [1]}, version=2),
        '{"version":2,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}',
    ),
    (znodes.IsrChangeNotificationSequenceZNode.encode([ZERO, ONE]), f'{{"version":1,"partitions":{PAIR}}}'),
    (znodes.PreferredReplicaElectionZNode.encode([ZERO, ONE]), f'{{"version":1,"partitions":{PAIR}}}'),
    (znodes.LogDirEventNotificationSequenceZNode.encode(2), '{"version":1,"broker":2,"event":1}'),
    (
        znodes.ReassignPartitionsZNode.encode({ZERO: [1, 2]}),
        '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}',
    ),
    (znodes.ConfigEntityZNode.encode(CONFIG), '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'),
    (znodes.ConfigEntityZNode.encode(NON_ASCII), '{"version":1,"config":{"a":"é\\"\\\\\\u0001"}}'),
    (
        znodes.ConfigChangeNotificationSequenceZNode.encode("topics/orders"),
        '{"version":2,"entity_path":"topics/orders"}',
    ),
    (znodes.ClusterIdZNode.encode("abc"), '{"version":"1","id":"abc"}'),
]


@pytest.mark.parametrize(("encoded", "kafka"), BYTES, ids=[kafka[:50] for _, kafka in BYTES])
def test_bytes_are_kafkas(encoded: bytes, kafka: str) -> None:
    """Same keys in the same order, no blanks, UTF-8."""
    assert encoded.decode() == kafka


@tabled
def test_where_it_is(znode: str, arguments: tuple, path: str) -> None:
    known = [TopicPartition(*one) if isinstance(one, tuple) else one for one in arguments]
    assert getattr(znodes, znode).path(*known) == path


def test_every_znode_is_somewhere() -> None:
    """Of the kinds that the module defines, none is missing in the table."""
    defined = {name for name, kind in vars(znodes).items() if getattr(kind, "__module__", "") == znodes.__name__}
    listed = {row[0] for row in tables(FOLDER / "znodes.txt")["where it is"].rows}
    assert {name for name in defined if name.endswith("ZNode")} == listed


def test_sequence_numbers() -> None:
    """The ten digits lead from a child's name to its path and back."""
    path = znodes.IsrChangeNotificationSequenceZNode.path("0000000007")
    assert path == "/isr_change_notification/isr_change_0000000007"
    assert sequence_number(path) == sequence_number("isr_change_0000000007") == "0000000007"


def test_the_paths_a_broker_makes_sure_of() -> None:
    """Parents come before children, and what Kafka 2.0.1 creates is all there, in its order."""
    for position, path in enumerate(PERSISTENT_PATHS):
        assert path.rpartition("/")[0] in ("", *PERSISTENT_PATHS[:position])
    recorded = (
        "/consumers /brokers/ids /brokers/topics /config/changes /admin/delete_topics /brokers/seqid "
        "/isr_change_notification /latest_producer_id_block /log_dir_event_notification "
        "/config/topics /config/clients /config/users /config/brokers"
    )
    parents = {path.rpartition("/")[0] for path in PERSISTENT_PATHS}
    assert " ".join(path for path in PERSISTENT_PATHS if path not in parents) == recorded


def test_what_was_written_is_read_again() -> None:
    """Decoding gives the values back, completed by what only ZooKeeper knows."""
    assert znodes.ControllerZNode.decode(znodes.ControllerZNode.encode(4, 1)) == 4
    assert znodes.ControllerEpochZNode.decode(znodes.ControllerEpochZNode.encode(12)) == 12
    for broker in (RACKED, PLAIN):
        assert znodes.BrokerIdZNode.decode(znodes.BrokerIdZNode.encode(broker, 1), 1, czxid=40) == broker
    topic = {1: ReplicaAssignment((2, 3)), 0: MOVING}
    assert znodes.TopicZNode.decode(znodes.TopicZNode.encode(topic, version=2), "orders") == topic
    assert list(znodes.TopicZNode.decode(znodes.TopicZNode.encode(topic))) == [0, 1]
    assert znodes.TopicPartitionStateZNode.decode(znodes.TopicPartitionStateZNode.encode(STATE), 7) == STATE
    assert znodes.TopicPartitionStateZNode.decode(znodes.TopicPartitionStateZNode.encode(LEADERLESS)) == LEADERLESS
    for messages in (znodes.IsrChangeNotificationSequenceZNode, znodes.PreferredReplicaElectionZNode):
        assert messages.decode(messages.encode([ONE, ZERO])) == [ONE, ZERO]
    failed, moves = znodes.LogDirEventNotificationSequenceZNode, znodes.ReassignPartitionsZNode
    assert failed.decode(failed.encode(2)) == 2
    assert moves.decode(moves.encode({ZERO: [2, 1]})) == {ZERO: (2, 1)}
    for config in ({}, CONFIG, NON_ASCII):
        assert znodes.ConfigEntityZNode.decode(znodes.ConfigEntityZNode.encode(config)) == config
    changed = znodes.ConfigChangeNotificationSequenceZNode
    assert changed.decode(changed.encode("brokers/<default>")) == "brokers/<default>"
    assert znodes.ClusterIdZNode.decode(znodes.ClusterIdZNode.encode("abc")) == "abc"


ids = st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple)


@given(st.integers(-2, 99), ids, st.integers(0, 2**31 - 1), st.integers(0, 99), st.integers(0, 99))
def test_every_state_survives(leader: int, isr: tuple, epoch: int, version: int, controller: int) -> None:
    """The hand-written encoder makes JSON that any reader understands."""
    state = LeaderAndIsr(leader, isr, epoch, version, controller)
    encoded = znodes.TopicPartitionStateZNode.encode(state)
    assert znodes.TopicPartitionStateZNode.decode(encoded, version) == state
    assert json.loads(encoded)["isr"] == list(isr)
    assert b" " not in encoded


@given(st.dictionaries(st.integers(0, 999), st.builds(ReplicaAssignment, ids, ids, ids)))
def test_every_topic_survives(topic: dict) -> None:
    """Whatever replicas come and go."""
    assert znodes.TopicZNode.decode(znodes.TopicZNode.encode(topic, version=2)) == topic


def test_older_and_newer_forms() -> None:
    """What other releases wrote: a plain id, later versions, listeners without plaintext."""
    assert znodes.ControllerZNode.decode(b"3") == 3
    old = b'{"jmx_port":9999,"timestamp":"1","host":"h","version":1,"port":9}'
    assert znodes.BrokerIdZNode.decode(old, 5) == Broker(5, "h", 9)
    new = b'{"features":{"f":{}},"rack":null,"host":"h","port":9,"endpoints":["X://h:9"],"version":5}'
    assert znodes.BrokerIdZNode.decode(new, 5) == Broker(5, "h", 9)
    ssl = b'{"endpoints":["CLIENT://[::1]:9093","B://b:1"],"jmx_port":1,"host":null,"port":-1,"version":4}'
    assert znodes.BrokerIdZNode.decode(ssl, 7) == Broker(7, "::1", 9093)
    newer = b'{"version":3,"topic_id":"x","partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}'
    assert znodes.TopicZNode.decode(newer) == {0: ReplicaAssignment((1,))}
    change = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
    assert znodes.ConfigChangeNotificationSequenceZNode.decode(change) == "topics/orders"
    assert znodes.ReassignPartitionsZNode.decode(b'{"partitions":[]}') == {}


def test_broker_ids_are_numbers(prose: Prose) -> None:
    """Names of znodes sort as texts, brokers as numbers."""
    assert znodes.BrokerIdsZNode.ids(["10", "9", "1"]) == [1, 9, 10]
    prose.refuses(BadInput, znodes.BrokerIdsZNode.ids, ["1", "x"])


DECODERS: dict[str, Callable[[bytes], object]] = {
    "/controller": znodes.ControllerZNode.decode,
    "/controller_epoch": znodes.ControllerEpochZNode.decode,
    "/brokers/ids/5": lambda data: znodes.BrokerIdZNode.decode(data, 5),
    "/brokers/topics/orders": lambda data: znodes.TopicZNode.decode(data, "orders"),
    "/brokers/topics/orders/partitions/1/state": lambda data: znodes.TopicPartitionStateZNode.decode(data, 0, ONE),
    "/isr_change_notification/isr_change_07": lambda d: znodes.IsrChangeNotificationSequenceZNode.decode(d, "07"),
    "/log_dir_event_notification/log_dir_event_07": (
        lambda data: znodes.LogDirEventNotificationSequenceZNode.decode(data, "07")
    ),
    "/admin/reassign_partitions": znodes.ReassignPartitionsZNode.decode,
    "/admin/preferred_replica_election": znodes.PreferredReplicaElectionZNode.decode,
    "/config/topics/orders": lambda data: znodes.ConfigEntityZNode.decode(data, "topics", "orders"),
    "/config/changes/config_change_07": lambda d: znodes.ConfigChangeNotificationSequenceZNode.decode(d, "07"),
    "/cluster/id": znodes.ClusterIdZNode.decode,
}
STATE_PATH = "/brokers/topics/orders/partitions/1/state"


NONSENSE = (
    *b'|{|{}|[]|null|true|1.5|"1"|NaN|99999999999|1_0|\xef\xbb\xbf1|\xff{}'.split(b"|"),
    *("\uff11".encode(), b"[" * 100_000, b"9" * 5000, b" " * 2_000_000),
    *(b'{"version":9}', b'{"version":true}', b'{"version":[1]}'),
    b'{"version":1,"partitions":null,"config":3,"broker":"1","brokerid":1.0,"id":2}',
)


@pytest.mark.parametrize("path", DECODERS)
def test_nonsense_is_refused_everywhere(path: str) -> None:
    """Each decoder answers with BadInput that begins with the path and stays short."""
    for data in NONSENSE:
        with pytest.raises(BadInput) as refusal:
            DECODERS[path](data)
        assert str(refusal.value).startswith(path), data[:24]
        assert len(str(refusal.value)) < 300, data[:24]


plain = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats()
names = st.sampled_from("version partitions isr leader brokerid id config host port 0 topic".split())
things = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5))


@pytest.mark.parametrize("path", DECODERS)
@given(data=st.binary() | things.map(lambda value: json.dumps(value).encode()))
def test_no_other_error_escapes(path: str, data: bytes) -> None:
    """Whatever the bytes, a decoder returns or raises BadInput with its path."""
    try:
        DECODERS[path](data)
    except BadInput as refusal:
        refused = str(refusal)
    else:
        refused = path
    assert refused.startswith(path)


def state(**changes: object) -> bytes:
    return json.dumps({**json.loads(BYTES[2][1]), **changes}).encode()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (STATE_PATH, BYTES[2][0][:30]), (STATE_PATH, b"\xff"), (STATE_PATH, state(leader="1")),
        (STATE_PATH, state(leader=True)), (STATE_PATH, state(leader_epoch=2**31)),
        (STATE_PATH, state(isr=[1, "2"])), (STATE_PATH, state(isr="12")),
        (STATE_PATH, b'{"version":1,"leader":1}'), ("/controller", b'{"version":1}'), ("/controller", b"one"),
        ("/controller_epoch", b"first"), ("/brokers/topics/orders", b'{"partitions":{"zero":[1]}}'),
        ("/brokers/topics/orders", b'{"partitions":{"0":"1,2"}}'), ("/brokers/topics/orders", b'{"version":4}'),
        ("/brokers/ids/5", b'{"version":4,"endpoints":["nowhere"]}'),
        ("/brokers/ids/5", b'{"version":4,"endpoints":[]}'), ("/brokers/ids/5", b'{"version":0}'),
        ("/admin/reassign_partitions", b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong(prose: Prose, path: str, data: bytes) -> None:
    """The path, the field, what it holds and what is expected."""
    with prose.refused(BadInput) as refusal:
        DECODERS[path](data)
    assert str(refusal.value).startswith(path)


@pytest.mark.parametrize("number", [0, -1, -2, 7, 10, 999_999_999, 1_000_000_000, 2**31 - 1, 2**31, -(2**31) - 1])
@pytest.mark.parametrize("isr", [(), (0,), (1, 2, 30)])
def test_a_state_as_encoded_is_read_as_any_other_json(number: int, isr: tuple[int, ...]) -> None:
    """What `encode` writes is read without a parser of JSON, and with one where a space is added: equal, errors too."""
    read = []
    written = znodes.TopicPartitionStateZNode.encode(LeaderAndIsr(number, isr, 3, 0, number))
    for data in (written, written.replace(b":", b": ")):
        try:
            read.append(znodes.TopicPartitionStateZNode.decode(data, 5, ("orders", 0)))
        except BadInput as error:
            read.append(str(error))
    assert read[0] == read[1]
    assert isinstance(read[0], LeaderAndIsr) == (abs(number + 0.5) < 2**31)
