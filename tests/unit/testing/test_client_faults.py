"""A cluster for tests: faults of clients' connections, a kill in mid-write, and what is kept."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import Prose, refuses
from wire_clients import eventually

from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable, UnknownName
from kafka_ctl.jupyter.launch import free_port
from kafka_ctl.testing import cluster as testing_cluster
from kafka_ctl.testing.cluster import KafkaCluster
from kafka_ctl.wire.batches import Record, write_batch
from kafka_ctl.wire.client import ask
from kafka_ctl.wire.client_faults import KINDS, error_response
from kafka_ctl.wire.codec import Message, decode_message, encode_message
from kafka_ctl.wire.schema import RESPONSE, api_key, message_type, number_of
from kafka_ctl.wire.versions import VERSIONS

NOT_LEADER = "NOT_LEADER_FOR_PARTITION"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster() as cluster:
        cluster.create_topic("orders")
        yield cluster


def produce(cluster: KafkaCluster, value: str, leader: int | None = None) -> int:
    """Send one record to the leader by hand; the error's number in the answer."""
    batch = write_batch([Record(0, 0, None, value.encode())])
    body = {
        "acks": -1,
        "timeout": 5000,
        "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": batch}]}],
    }
    answer = ask(address(cluster, leader or cluster.leader("orders")), "Produce", 8, body)
    return int(answer["responses"][0]["partition_responses"][0]["error_code"])


def address(cluster: KafkaCluster, broker: int) -> str:
    return cluster.bootstrap_servers.split(",")[broker - 1]


def fetch(cluster: KafkaCluster) -> Message:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
    body = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "session_epoch": -1,
        "topics": [{"topic": "orders", "partitions": [part]}],
    }
    answer = ask(address(cluster, cluster.leader("orders")), "Fetch", 11, body)
    return dict(answer["responses"][0]["partitions"][0])


def test_a_leader_dies_in_mid_write(cluster: KafkaCluster) -> None:
    """The record that makes the log long enough is not acknowledged; the next leader goes on without it."""
    leader = cluster.leader("orders")
    cluster.kill_leader("orders", after=3)
    assert [produce(cluster, f"v{number}") for number in range(2)] == [0, 0]
    with pytest.raises(Unavailable):
        produce(cluster, "v2")
    cluster.wait_until(lambda: cluster.lab.partition("orders", 0).leader not in (leader, -1))
    assert cluster.lab.story.splitlines()[-1] == f"kill {leader}"
    cluster.assert_kept("orders", ["v0", "v1"])
    refuses(AssertionError, r"lost 1 of 2 .* b'v2'", cluster.assert_kept, "orders", ["v0", "v2"])
    assert [record.offset for record in cluster.records("orders")] == [0, 1]


def test_errors_on_demand(cluster: KafkaCluster) -> None:
    """So many requests of a kind get the error and do nothing; then all is as before."""
    cluster.errors("Produce", NOT_LEADER, requests=2)
    assert [produce(cluster, f"v{number}") for number in range(3)] == [number_of(NOT_LEADER)] * 2 + [0]
    assert [record.value for record in cluster.records("orders")] == [b"v2"]
    cluster.errors("Fetch", "OFFSET_OUT_OF_RANGE", broker=cluster.leader("orders"))
    assert [fetch(cluster)["error_code"] for _ in range(2)] == [number_of("OFFSET_OUT_OF_RANGE"), 0]
    cluster.errors("Metadata", "LEADER_NOT_AVAILABLE")
    asked = {"topics": [{"name": "orders"}]}
    answers = [ask(cluster.bootstrap_servers, "Metadata", 9, asked)["topics"][0] for _ in range(2)]
    assert [one["error_code"] for one in answers] == [number_of("LEADER_NOT_AVAILABLE"), 0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_request_can_fail(kind: str) -> None:
    """In each version: the answer names every topic and partition of the request, with the error."""
    low, high = next(span for span in reversed(VERSIONS[kind]) if span is not None)
    for version in range(low, high + 1):
        schema = message_type(api_key(kind), version)
        request: Message = {field.name: [] if field.is_array else None for field in schema.body.fields}
        topics = next((name for name in request if "topic" in name), None)
        part = {"index": 3, "partition_index": 3, "partition": 3}
        listed = {"name": "t", "topic": "t", "partitions": [part], "partition_data": [part], "partition_indexes": [3]}
        if topics is not None:
            request[topics] = ["t"] if kind == "DeleteTopics" else [listed]
        if kind == "AddPartitionsToTxn":
            listed["partitions"] = [3]
        kind_of_answer = message_type(api_key(kind), version, RESPONSE)
        answer = error_response(kind, version, request, NOT_LEADER)
        sent = encode_message(kind_of_answer, {"correlation_id": 1}, answer)
        text = repr(decode_message(kind_of_answer, sent[4:])[1])
        assert f"error_code': {number_of(NOT_LEADER)}" in text, (kind, version)
        assert topics is None or "'t'" in text or kind in ("Fetch", "Metadata")


def test_clients_are_cut_off_and_late(cluster: KafkaCluster) -> None:
    """A request waits until the cut is healed; the brokers among themselves notice nothing."""
    leader = cluster.leader("orders")
    cluster.cut(broker=leader)
    outcomes: list[int] = []
    waiting = threading.Thread(target=lambda: outcomes.append(produce(cluster, "late", leader)))
    waiting.start()
    cluster.lab.run_for(0.3)
    assert outcomes == [] and sorted(cluster.lab.partition("orders", 0).isr) == [1, 2, 3]
    cluster.heal()
    waiting.join(20)
    assert outcomes == [0]
    cluster.delay(0.2, broker=leader)
    began = time.monotonic()
    assert produce(cluster, "later") == 0
    assert time.monotonic() - began >= 0.2


def test_a_throttled_client_gets_the_time(cluster: KafkaCluster) -> None:
    """In the answer, as since KIP-219."""
    cluster.throttle(cluster.leader("orders"), 0.05)
    asked = {"topics": [{"name": "orders"}]}
    assert ask(address(cluster, cluster.leader("orders")), "Metadata", 9, asked)["throttle_time"] == 50


def test_a_paused_broker_loses_its_leadership(cluster: KafkaCluster) -> None:
    """Its session ends; it answers again when it has resumed, and follows."""
    leader = cluster.leader("orders")
    cluster.do("pause", broker=leader, seconds=2.5)
    eventually(lambda: cluster.lab.partition("orders", 0).leader not in (-1, leader), "another leader")
    eventually(lambda: sorted(cluster.lab.partition("orders", 0).isr) == [1, 2, 3], "it is in sync again")
    assert produce(cluster, "v") == 0


def test_zookeeper_can_be_cut_off(cluster: KafkaCluster) -> None:
    leader = cluster.leader("orders")
    cluster.cut(source=leader, target="zookeeper")
    eventually(lambda: cluster.lab.partition("orders", 0).leader not in (-1, leader), "another leader")
    cluster.heal()
    eventually(lambda: sorted(cluster.lab.partition("orders", 0).isr) == [1, 2, 3], "it is in sync again")


@pytest.mark.kafka(2, "2.0")
def test_the_mark_takes_positional_arguments_too(kafka: KafkaCluster) -> None:
    assert (len(kafka.lab.brokers), kafka.lab.generation.name) == (2, "2.0")


def test_the_state_has_every_fault(cluster: KafkaCluster) -> None:
    """Those between brokers, to ZooKeeper and of processes as well, and kills that wait; `heal` ends them."""
    leader = cluster.leader("orders")
    one, other = sorted({1, 2, 3} - {leader})
    healthy = cluster.state()["faults"]
    lists = {name: [] for name in ("cut", "errors", "kills", "paused", "links")}
    assert healthy == lists | {"delays": {}, "throttles": {}}
    cluster.kill_leader("orders", after=100)
    cluster.cut(source=one, target=other)
    cluster.delay(0.25, source=other, target=leader)
    cluster.delay(0.25, source=other, target="zookeeper")
    cluster.do("disconnect", source=one, target="zookeeper", one_way=True)
    cluster.do("pause", broker=leader, seconds=60)
    faults = cluster.state()["faults"]
    assert isinstance(faults, dict)
    assert {(link["source"], link["target"]): (link["cut"], link["delay"]) for link in faults["links"]} == {
        (one, other): (True, 0),
        (other, one): (True, 0),
        (other, leader): (False, 0.25),
        (other, "zookeeper"): (False, 0.25),
        (one, "zookeeper"): (True, 0),
    }
    assert faults["kills"] == [{"topic": "orders", "partition": 0, "after": 100}]
    assert faults["paused"] == [leader]
    cluster.heal()
    assert cluster.state()["faults"] == healthy


def test_nobody_alive_can_lead(cluster: KafkaCluster, prose: Prose, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all replicas are dead, the error names the partition and how long it was waited for."""
    monkeypatch.setattr(testing_cluster, "PATIENCE", 0.2)
    for broker in (1, 2, 3):
        cluster.kill(broker)
    for call in (lambda: cluster.leader("orders"), lambda: cluster.assert_kept("orders", ["v"])):
        prose.refuses(ConditionNotMet, call)


def test_what_cannot_be_kept_is_refused(cluster: KafkaCluster, prose: Prose) -> None:
    """A topic that there is not, and one text instead of a list, which would be taken letter by letter."""
    prose.refuses(UnknownName, cluster.assert_kept, "order", [])
    for values in ("order-1", b"order-1", 7, [1], [["order-1"]], [bytearray()]):
        prose.refuses(BadInput, cluster.assert_kept, "orders", values)


def test_arguments_that_exclude_each_other_are_refused(cluster: KafkaCluster, prose: Prose, tmp_path: Path) -> None:
    """A broker and a connection; a story and what its first line has; ports that are none."""
    for wrong in ({"target": 2}, {"source": 2}, {"source": 1, "target": 2}):
        prose.refuses(BadInput, cluster.cut, broker=1, **wrong)
        prose.refuses(BadInput, cluster.delay, 1, broker=1, **wrong)
    story = tmp_path / "story.txt"
    story.write_text("lab brokers=1 generation=2.0\n")
    for options in ({"brokers": 5}, {"generation": "2.0"}, {"config": {}}, {"port": 65536}, {"port": "9092"}):
        prose.refuses(BadInput, KafkaCluster, story=story, **options)
    for port in (-1, 65534, 99999, True):
        prose.refuses(BadInput, KafkaCluster, port=port)


def test_port_0_is_a_free_one() -> None:
    with KafkaCluster(brokers=1, port=0) as one, KafkaCluster(brokers=1, port=0) as other:
        assert one.bootstrap_servers != other.bootstrap_servers


def test_what_cannot_be_is_refused(cluster: KafkaCluster, prose: Prose) -> None:
    """With what is allowed."""
    prose.refuses(BadInput, cluster.errors, "Produce", "NONE")
    refuses(UnknownName, "unknown call 'kil'", cluster.do, "kil", broker=1)
    refuses(BadInput, "the call is", cluster.do, "kill", brokr=1)
    refuses(UnknownName, "known: 1, 2, 3", cluster.throttle, 9, 1)
    refuses(UnknownName, "kind of request 'Produc'", cluster.errors, "Produc", NOT_LEADER)
    refuses(UnknownName, "error of Kafka", cluster.errors, "Produce", "NOT_LEADR")
    refuses(BadInput, "source and a target", cluster.cut)
    refuses(BadInput, "brokers", KafkaCluster, brokers=0)
    for config in (5, [1]):
        refuses(BadInput, "a config cannot be", KafkaCluster, config=config)
    refuses(AssertionError, "lost 1 of 1", cluster.assert_kept, "orders", ["\ud800"])


def test_fixed_ports_and_a_story(tmp_path: Path) -> None:
    """The ports follow each other; a port that is taken is named."""
    port, story = free_port(20000), tmp_path / "story.txt"
    story.write_text(
        "lab brokers=2 generation=2.0 seed=7\ncreate_topic made partitions=2 replication_factor=2\nsettle\n"
    )
    with KafkaCluster(story=story, port=port) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port},127.0.0.1:{port + 1}"
        assert cluster.lab.generation.name == "2.0" and len(cluster.lab.partitions()) == 2
        assert repr(cluster).startswith(f"KafkaCluster at 127.0.0.1:{port},127.0.0.1:{port + 1}: Lab of Kafka 2.0")
        refuses(Unavailable, rf"port {port} of .*; port 0 ", KafkaCluster, port=port)
