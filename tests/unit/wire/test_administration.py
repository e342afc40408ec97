"""What administrators ask over the wire, in every version: groups, settings, records to be deleted, log directories.

Motive: Kafka 2.4.1, AdminClientIntegrationTest.scala; DescribeLogDirsRequestTest.scala; GroupCoordinatorTest.scala,
testDeleteOffsetsWithConsumerGroup...; AdminManagerTest; DynamicBrokerReconfigurationTest
"""

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from labs import by_hand, play, until_quiet
from wire_clients import Asking, eventually, fetch_of, listening

from kafka_ctl import Lab
from kafka_ctl.brokers.config_keys import BROKER, TOPIC, keys
from kafka_ctl.generation import Generation
from kafka_ctl.wire.batches import Record, write_batch
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.configs import DEFAULT, OF_ALL_BROKERS, OF_BROKER, OF_TOPIC, STATIC
from kafka_ctl.wire.schema import name_of
from kafka_ctl.wire.versions import announced
from kafka_ctl.zookeeper.store import Set

SUBSCRIPTION = struct.pack(">hih6si", 0, 1, 6, b"orders", 0)
"""What a consumer of `orders` says when it joins (ConsumerProtocolSubscription, version 0)."""


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param) as opened:
        opened.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
        until_quiet(opened.create_topic, "kept", assignment={0: [1, 2]}, config={"cleanup.policy": "compact"})
        until_quiet(opened.produce, "orders", 0, records=6)
        yield opened


def versions(lab: Lab, api: str) -> range:
    """The versions in which this generation answers an API; the test is skipped where there are none."""
    spans = announced(Generation(lab.generation.name))
    if api not in spans:
        pytest.skip(f"{lab.generation.name} has no {api}")
    return range(spans[api][0], spans[api][1] + 1)


def ask(lab: Lab, broker: int, api: str, version: int, **fields: Any) -> Message:
    with Asking(lab, broker) as connection:
        return connection.ask(api, version, **fields)


# Records


def test_records_are_deleted_and_read_from_where_the_log_begins(lab: Lab) -> None:
    """In every version; ListOffsets and Fetch go by it on the leader, and who asks for less is out of range."""
    for offset, version in enumerate(versions(lab, "DeleteRecords"), 1):
        parts = [{"partition_index": 0, "offset": offset}, {"partition_index": 9, "offset": 0}]
        topics = [{"name": "orders", "partitions": parts}, {"name": "kept", "partitions": [parts[0]]}]
        answer = ask(lab, 1, "DeleteRecords", version, topics=topics, timeout=20_000)
        found = {(topic["name"], p["partition_index"]): p for topic in answer["topics"] for p in topic["partitions"]}
        assert (found["orders", 0]["low_watermark"], found["orders", 0]["error_code"]) == (offset, 0)
        errors = [name_of(found[key]["error_code"]) for key in (("orders", 9), ("kept", 0))]
        assert errors == ["UNKNOWN_TOPIC_OR_PARTITION", "POLICY_VIOLATION"]
        assert {view.start for view in lab.logs() if view.topic == "orders"} == {offset}
    for version in versions(lab, "ListOffsets")[1:]:
        for timestamp, expected in ((-2, 2), (-1, 6)):
            part = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
            topics = [{"name": "orders", "partitions": [part]}]
            (topic,) = ask(lab, 1, "ListOffsets", version, replica_id=-1, topics=topics)["topics"]
            assert topic["partitions"][0]["offset"] == expected
    for version in versions(lab, "Fetch")[5:]:
        for offset, error in ((1, "OFFSET_OUT_OF_RANGE"), (2, None)):
            request = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
            topics = fetch_of(("orders", 0, offset))
            (topic,) = ask(lab, 1, "Fetch", version, **request, topics=topics)["responses"]
            (part,) = topic["partitions"]
            assert (name_of(part["error_code"]), part["log_start_offset"]) == (error, -1 if error else 2)
    assert not lab.violations


def test_a_deletion_waits_and_times_out(lab: Lab) -> None:
    version = versions(lab, "DeleteRecords")[-1]
    lab.lag(3, "orders", 0)
    try:
        topics = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 3}]}]
        (topic,) = ask(lab, 1, "DeleteRecords", version, topics=topics, timeout=600)["topics"]
        (part,) = topic["partitions"]
        assert (name_of(part["error_code"]), part["low_watermark"]) == ("REQUEST_TIMED_OUT", 2)
    finally:
        lab.catch_up(3)
    eventually(lambda: {view.start for view in lab.logs() if view.topic == "orders"} == {3})


# Topics and their brokers


@pytest.mark.parametrize("name", ["0.10", "2.0", "2.4"])
def test_a_topic_whose_deletion_waits_may_be_deleted_again(name: str) -> None:
    """Each request waits until the topic is gone; one of Kafka's own topics is deleted, too.

    The controller does not see the request after an operator has deleted the znode above it.
    Kafka 0.10.2.2, 2.0.1, 2.4.1: server/AdminManager.scala, deleteTopics (TopicAlreadyMarkedForDeletionException)
    """
    with listening(name, config={"delete.topic.enable": True}) as lab:
        for topic in ("orders", "__consumer_offsets"):
            until_quiet(lab.create_topic, topic, assignment={0: [1, 2]})

        def delete(topic: str, timeout: int) -> list[str | None]:
            assert lab.controller is not None
            answer = ask(lab, lab.controller.id, "DeleteTopics", 0, topic_names=[topic], timeout=timeout)
            return [name_of(one["error_code"]) for one in answer["responses"]]

        assert delete("__consumer_offsets", 20_000) == [None]
        lab.settle()
        lab.delete_znode("/admin/delete_topics")
        assert [delete("orders", 100) for _ in range(2)] == [["REQUEST_TIMED_OUT"]] * 2


@pytest.mark.parametrize("name", ["0.10", "2.0", "2.4"])
def test_the_copy_of_a_follower_can_be_read(name: str) -> None:
    """By who looks at copies (replica id -2); since KIP-392 by every consumer, from version 11 of Fetch on.

    Kafka 2.0.1, 2.4.1: server/ReplicaManager.scala, fetchMessages; server/KafkaApis.scala, handleListOffsetRequest
    """
    part = {"partition": 0, "partition_index": 0, "fetch_offset": 0, "partition_max_bytes": 99, "timestamp": -1}
    topics = [{"topic": "orders", "name": "orders", "partitions": [part | {"current_leader_epoch": -1}]}]
    more = {"max_wait": 0, "min_bytes": 1, "max_bytes": 99, "session_epoch": -1}
    leader = "NOT_LEADER_FOR_PARTITION"
    with listening(name, orders={0: [1, 2]}) as lab:
        until_quiet(lab.produce, "orders", 0, records=2)
        eventually(lambda: {view.high_watermark for view in lab.logs()} == {2})
        for version in versions(lab, "ListOffsets"):
            for broker, replica, error in ((2, -1, leader), (2, -2, None), (3, -2, "REPLICA_NOT_AVAILABLE")):
                answer = ask(lab, broker, "ListOffsets", version, topics=topics, replica_id=replica)
                (found,) = answer["topics"][0]["partitions"]
                assert name_of(found["error_code"]) == error
                assert (found["offset"] if version else max(found["old_style_offsets"], default=-1)) == (
                    -1 if error else 2
                )
        for version in versions(lab, "Fetch"):
            for replica in (-1, -2):
                answer = ask(lab, 2, "Fetch", version, topics=topics, replica_id=replica, **more)
                (found,) = answer["responses"][0]["partitions"]
                may = version >= 11 if name == "2.4" else replica == -2
                assert (name_of(found["error_code"]), found["high_watermark"]) == ((None, 2) if may else (leader, -1))
                assert bool(found["records"]) == may


def test_a_follower_compares_leader_epochs_first() -> None:
    """Kafka 2.4.1: cluster/Partition.scala, getLocalLog"""
    with listening("2.4") as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
        until_quiet(lab.expire_session, 1)
        until_quiet(lab.elect_preferred)
        part = lab.partition("orders", 0)
        assert part.leader == 1 and part.leader_epoch > 0
        for epoch, error in (
            (-1, "NOT_LEADER_FOR_PARTITION"),
            (0, "FENCED_LEADER_EPOCH"),
            (99, "UNKNOWN_LEADER_EPOCH"),
        ):
            fields = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9, "current_leader_epoch": epoch}
            topics = [{"topic": "orders", "partitions": [fields]}]
            more = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 9, "session_epoch": -1}
            answer = ask(lab, 2, "Fetch", 10, topics=topics, **more)
            (found,) = answer["responses"][0]["partitions"]
            assert name_of(found["error_code"]) == error


def test_a_dead_broker_in_the_metadata(lab: Lab) -> None:
    """Version 0 has an error in its place. Where no leader lives, there is no leader epoch either, and no ISR before
    2.4; from version 6 on a broker blames a listener.

    Kafka 2.0.1, 2.4.1: server/MetadataCache.scala, getPartitionMetadata; 0.10.2.2: the same
    """
    until_quiet(lab.create_topic, "lone", assignment={0: [3]})
    until_quiet(lab.kill, 3)
    assert lab.controller is not None
    asked = {"topics": [{"name": "orders"}, {"name": "lone"}], "allow_auto_topic_creation": False}
    for version in versions(lab, "Metadata"):
        topics = ask(lab, 1, "Metadata", version, **asked)["topics"]
        led, lone = (topic["partitions"][0] for topic in topics)
        error, replicas = (None, [1, 2, 3]) if version else ("REPLICA_NOT_AVAILABLE", [1, 2])
        assert (name_of(led["error_code"]), [*led["replica_nodes"]]) == (error, replicas)
        missed = "LISTENER_NOT_FOUND" if version >= 6 else "LEADER_NOT_AVAILABLE"
        assert (name_of(lone["error_code"]), lone["leader_id"]) == (missed, -1)
        assert lone.get("leader_epoch", -1) == -1
        assert [*lone["isr_nodes"]] == ([3] if lab.generation.name == "2.4" and version else [])
    fields = {"num_partitions": -1, "replication_factor": -1, "configs": []}
    assignments = [{"partition_index": 0, "broker_ids": [3]}]
    topics = [{"name": f"late{n}", "assignments": assignments} | fields for n in range(9)]
    began = time.monotonic()
    answers = ask(lab, lab.controller.id, "CreateTopics", 1, topics=topics, timeout=500)["topics"]
    assert {name_of(one["error_code"]) for one in answers} == {"REQUEST_TIMED_OUT"}
    assert time.monotonic() - began < 4  # all of them wait at the same time: server/DelayedCreatePartitions.scala
    until_quiet(lab.start, 3)


LATE = ("LEADER_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE")
"""The errors of ListOffsets up to version 4 and since."""


def listed(lab: Lab, version: int, timestamp: int, replica: int = -1, most: int = 1, leader: int = 1) -> Message:
    """ListOffsets of ends-0."""
    part = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1, "max_num_offsets": most}
    topics = [{"name": "ends", "partitions": [part]}]
    (topic,) = ask(lab, leader, "ListOffsets", version, replica_id=replica, topics=topics)["topics"]
    (part,) = topic["partitions"]
    return part


@pytest.mark.parametrize(("generation", "late"), [("2.0", (None, None)), ("2.4", LATE)])
def test_a_new_leader_does_not_know_where_consumers_may_be(generation: str, late: tuple[str | None, ...]) -> None:
    """Until its high watermark has come to the beginning of its epoch (KIP-207).

    Kafka 2.4.1: cluster/Partition.scala, fetchOffsetForTimestamp; server/KafkaApis.scala, handleListOffsetRequest
    """
    with listening(generation, config={"replica.lag.time.max.ms": 60_000}) as lab:
        until_quiet(lab.create_topic, "ends", assignment={0: [1, 2, 3]})
        play(lab, "produce ends 0; settle; slow 3 60; produce ends 0 acks=1")
        eventually(lambda: lab.log("ends", 0)[1].end == 2, "the other follower has it")
        lab.kill(1)
        eventually(lambda: ("ends", 0) in lab.brokers[2].leads)
        for version in versions(lab, "ListOffsets"):
            error = None if version == 0 else late[version >= 5]
            for timestamp in (5, -1):
                assert name_of(listed(lab, version, timestamp, leader=2)["error_code"]) == error
            of_others = listed(lab, version, -2, leader=2), listed(lab, version, -1, replica=3, leader=2)
            assert [name_of(part["error_code"]) for part in of_others] == [None, None]
        lab.kill(3)
        last = versions(lab, "ListOffsets")[-1]
        eventually(lambda: listed(lab, last, -1, leader=2)["offset"] == 2)


def test_where_a_log_ends(generation: str) -> None:
    """For a consumer at the high watermark; version 0 has the first offset of the segment behind it.

    Kafka 2.0.1: server/KafkaApis.scala, handleListOffsetRequestV1AndAbove, fetchOffsetsBefore; 2.4.1:
    cluster/Partition.scala, fetchOffsetForTimestamp
    """
    with listening(generation, brokers=2, config={"replica.lag.time.max.ms": 60_000}) as lab:
        until_quiet(lab.create_topic, "ends", assignment={0: [1, 2]})
        for version in versions(lab, "ListOffsets")[4:]:
            found = [listed(lab, version, time) for time in (5, -1, -2)]
            assert [(part["offset"], part["leader_epoch"]) for part in found] == [(-1, -1), (0, 0), (0, 0)]
        play(lab, "slow 2 60; produce ends 0 acks=1")
        for version in versions(lab, "ListOffsets"):
            found = [listed(lab, version, -1, replica) for replica in (-1, 2, -2)]
            assert [part["offset"] if version else part["old_style_offsets"][0] for part in found] == [0, 1, 1]
        of_a_follower = [listed(lab, 0, -1, 2, most) for most in (0, 1, 5)]
        assert [part["old_style_offsets"] for part in of_a_follower] == [[], [1], [1, 0]]


def test_up_to_version_2_a_fetch_has_no_more_than_its_limit(lab: Lab) -> None:
    """Since then its first batch is whole (KIP-74). Kafka 2.0.1: server/ReplicaManager.scala, hardMaxBytesLimit"""
    until_quiet(lab.create_topic, "limited", assignment={0: [2], 1: [2]})
    for number in (0, 1):
        until_quiet(lab.produce, "limited", number)
    for version in versions(lab, "Fetch"):
        topics = fetch_of(("limited", 0, 0), ("limited", 1, 0), most=10)
        request = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
        (topic,) = ask(lab, 2, "Fetch", version, **request, topics=topics)["responses"]
        first, second = (len(part["records"]) for part in topic["partitions"])
        assert (first, second) == (10, 10) if version < 3 else (first > 10, second) == (True, 0)


# Log directories


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_partitions_whose_directory_has_failed(generation: str) -> None:
    """Clients that do not know the error hear of no leader.

    Kafka 2.0.1: server/ReplicaManager.scala, getPartitionAndLeaderReplicaIfLocal; 2.4.1: the same, getPartitionOrError
    """
    with listening(generation, brokers=2) as lab:
        until_quiet(lab.create_topic, "a", assignment={number: [1] for number in range(3)})
        until_quiet(lab.fail_log_dir, 1)
        (topic,) = ask(lab, 2, "Metadata", 5, topics=[{"name": "a"}], allow_auto_topic_creation=False)["topics"]
        offline = {one["partition_index"] for one in topic["partitions"] if [*one["offline_replicas"]] == [1]}
        assert 0 < len(offline) < 3
        number = min(offline)
        fields = {"partition": number, "partition_index": number, "timestamp": -1, "leader_epoch": 0}
        fields |= {"fetch_offset": 0, "partition_max_bytes": 9, "current_leader_epoch": -1}
        topics = [{"topic": "a", "name": "a", "partitions": [fields]}]
        more = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 9, "session_epoch": -1}
        for api in ("Fetch", "ListOffsets", "OffsetForLeaderEpoch"):
            for version in versions(lab, api):
                answer = ask(lab, 1, api, version, topics=topics, **more)
                (topic,) = answer["responses" if api == "Fetch" else "topics"]
                error = "NOT_LEADER_FOR_PARTITION" if api == "Fetch" and version < 6 else "KAFKA_STORAGE_ERROR"
                assert [name_of(part["error_code"]) for part in topic["partitions"]] == [error]


def test_where_copies_lie_and_that_they_move(lab: Lab) -> None:
    for version in versions(lab, "DescribeLogDirs"):
        results = ask(lab, 1, "DescribeLogDirs", version, topics=None)["results"]
        assert [(one["error_code"], one["log_dir"]) for one in results] == [(0, "/d0"), (0, "/d1")]
        there = {
            (topic["name"], part["partition_index"]): one["log_dir"]
            for one in results
            for topic in one["topics"]
            for part in topic["partitions"]
        }
        assert set(there) == {("orders", 0), ("orders", 1), ("kept", 0)}
        other = "/d1" if there["orders", 0] == "/d0" else "/d0"
        for path, error in (("/nowhere", "LOG_DIR_NOT_FOUND"), (other, None)):
            dirs = [{"path": path, "topics": [{"name": "orders", "partitions": [0]}]}]
            (topic,) = ask(lab, 1, "AlterReplicaLogDirs", version, dirs=dirs)["results"]
            assert [name_of(part["error_code"]) for part in topic["partitions"]] == [error]

        def is_in(path: str = other, version: int = version) -> bool:
            asked = [{"topic": "orders", "partitions": [0]}]
            results = ask(lab, 1, "DescribeLogDirs", version, topics=asked)["results"]
            found = {one["log_dir"]: one["topics"] for one in results}
            parts = [part for topic in found[path] for part in topic["partitions"]]
            return [(part["offset_lag"], part["is_future_key"]) for part in parts] == [(0, False)]

        eventually(is_in)


# Settings


def described(lab: Lab, version: int, kind: int, name: str, broker: int = 1, **more: Any) -> dict[str, Message]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = ask(lab, broker, "DescribeConfigs", version, resources=[resource], **more)
    (result,) = answer["results"]
    assert result["error_code"] == 0, result["error_message"]
    return {one["name"]: one for one in result["configs"]}


def altered(lab: Lab, kind: int, name: str, *ops: tuple[str, int, str | None], only: bool = False) -> tuple[Any, Any]:
    """The error that IncrementalAlterConfigs is answered, and its text."""
    version = versions(lab, "IncrementalAlterConfigs")[-1]
    configs = [{"name": key, "config_operation": op, "value": value} for key, op, value in ops]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = ask(lab, 1, "IncrementalAlterConfigs", version, resources=[resource], validate_only=only)
    (result,) = answer["responses"]
    return name_of(result["error_code"]), result["error_message"]


def test_all_keys_of_the_release_are_shown(lab: Lab) -> None:
    for version in versions(lab, "DescribeConfigs"):
        generation = lab.generation.name
        of_topic = described(lab, version, 2, "kept")
        assert of_topic.keys() == keys(TOPIC, generation).keys()
        assert (of_topic["cleanup.policy"]["value"], of_topic["segment.bytes"]["value"]) == ("compact", "1073741824")
        of_broker = described(lab, version, 4, "1", include_synonyms=True)
        assert of_broker.keys() == keys(BROKER, generation).keys()
        timeout = of_broker["zookeeper.session.timeout.ms"]
        assert (timeout["value"], timeout["read_only"]) == ("1000", True)
        assert of_broker["ssl.key.password"]["is_sensitive"] and of_broker["ssl.key.password"]["value"] is None
        if version == 0:
            assert not of_topic["cleanup.policy"]["is_default"] and of_topic["segment.bytes"]["is_default"]
        else:
            assert (of_topic["cleanup.policy"]["config_source"], timeout["config_source"]) == (OF_TOPIC, STATIC)
            assert [one["source"] for one in timeout["synonyms"]] == [STATIC, DEFAULT]


def test_settings_are_replaced(lab: Lab) -> None:
    """AlterConfigs gives all that is to be set; brokers hear of it."""
    for version in versions(lab, "AlterConfigs"):
        for key, value in (("max.message.bytes", "7"), ("min.insync.replicas", "2")):
            configs = [{"name": key, "value": value}]
            resource = {"resource_type": 2, "resource_name": "orders", "configs": configs}
            answer = ask(lab, 1, "AlterConfigs", version, resources=[resource], validate_only=False)
            assert [one["error_code"] for one in answer["responses"]] == [0]
            own = {one["name"] for one in described(lab, 1, 2, "orders").values() if one["config_source"] == OF_TOPIC}
            assert own == {key}
        eventually(lambda: bool(lab.trace.slice(action="config-changed", topic="orders")))
        wrong = {
            ("orders", "segment.bytes", "1"): (
                "INVALID_REQUEST",
                "Invalid config value for resource ConfigResource(type=TOPIC, name='orders'): "
                "Invalid value 1 for configuration segment.bytes: Value must be at least 14",
            ),
            ("orders", "nonsense", "1"): ("INVALID_CONFIG", "Unknown topic config name: nonsense"),
            ("nowhere", "segment.bytes", "14"): ("UNKNOWN_SERVER_ERROR", 'Topic "nowhere" does not exist.'),
        }
        for (name, key, value), expected in wrong.items():
            resource = {"resource_type": 2, "resource_name": name, "configs": [{"name": key, "value": value}]}
            (one,) = ask(lab, 1, "AlterConfigs", version, resources=[resource], validate_only=False)["responses"]
            assert (name_of(one["error_code"]), one["error_message"]) == expected


def test_a_running_broker_takes_some_settings(lab: Lab) -> None:
    assert altered(lab, 4, "1", ("log.cleaner.threads", 0, "2")) == (None, None)
    assert altered(lab, 4, "", ("log.cleaner.threads", 0, "3"), ("log.retention.ms", 0, "5")) == (None, None)
    mine = described(lab, 2, 4, "1", include_synonyms=True)["log.cleaner.threads"]
    assert (mine["value"], mine["config_source"], mine["read_only"]) == ("2", OF_BROKER, False)
    assert [(one["value"], one["source"]) for one in mine["synonyms"]] == [
        ("2", OF_BROKER),
        ("3", OF_ALL_BROKERS),
        ("1", DEFAULT),
    ]
    assert described(lab, 2, 4, "")["log.retention.ms"]["value"] == "5"
    of_topic = described(lab, 2, 2, "orders", include_synonyms=True)["retention.ms"]
    assert (of_topic["value"], of_topic["config_source"]) == ("5", OF_ALL_BROKERS)
    where = "Invalid config value for resource ConfigResource(type=BROKER, name='{}'): {}"
    refused = altered(lab, 4, "1", ("broker.id", 0, "7"))
    assert refused == ("INVALID_REQUEST", where.format(1, "Cannot update these configs dynamically: Set(broker.id)"))
    refused = altered(lab, 4, "", ("listeners", 0, "PLAINTEXT://:1"))
    text = "Cannot update these configs at default cluster level, broker id must be specified: Set(listeners)"
    assert refused == ("INVALID_REQUEST", where.format("", text))
    refused = altered(lab, 4, "2", ("log.cleaner.threads", 0, "2"))
    assert refused == ("INVALID_REQUEST", "Unexpected broker id, expected 1, but received 2")
    assert altered(lab, 4, "1", ("log.cleaner.threads", 1, None)) == (None, None)
    assert described(lab, 2, 4, "1")["log.cleaner.threads"]["value"] == "3"
    assert altered(lab, 4, "", ("log.cleaner.threads", 1, None), ("log.retention.ms", 1, None)) == (None, None)
    assert described(lab, 2, 4, "") == {}


def test_lists_grow_and_shrink(lab: Lab) -> None:
    assert altered(lab, 2, "kept", ("cleanup.policy", 2, "delete")) == (None, None)
    assert described(lab, 2, 2, "kept")["cleanup.policy"]["value"] == "compact,delete"
    assert altered(lab, 2, "kept", ("cleanup.policy", 3, "delete"), only=True) == (None, None)
    assert described(lab, 2, 2, "kept")["cleanup.policy"]["value"] == "compact,delete"
    assert altered(lab, 2, "kept", ("cleanup.policy", 3, "delete")) == (None, None)
    assert described(lab, 2, 2, "kept")["cleanup.policy"]["value"] == "compact"
    refused = altered(lab, 2, "kept", ("segment.bytes", 2, "7"))
    assert refused == ("INVALID_REQUEST", "Config value append is not allowed for config key: segment.bytes")
    refused = altered(lab, 2, "kept", ("segment.ms", 0, "7"), ("segment.ms", 1, None))
    assert refused == ("INVALID_REQUEST", "Error due to duplicate config keys : segment.ms")


def test_loggers_have_levels(lab: Lab) -> None:
    assert altered(lab, 8, "1", ("kafka.controller", 0, "DEBUG")) == (None, None)
    assert described(lab, 2, 8, "1")["kafka.controller"]["value"] == "DEBUG"
    assert altered(lab, 8, "1", ("kafka.controller", 1, None)) == (None, None)
    assert described(lab, 2, 8, "1")["kafka.controller"]["value"] == "INFO"
    where = "Invalid config value for resource ConfigResource(type=BROKER_LOGGER, name='1'): "
    refused = altered(lab, 8, "1", ("nonsense", 0, "DEBUG"))
    assert refused == ("INVALID_REQUEST", where + "Logger nonsense does not exist!")
    assert altered(lab, 8, "1", ("root", 0, "LOUD"))[1].startswith(where + "Cannot set the log level of root to LOUD")
    refused = altered(lab, 8, "1", ("root", 1, None))
    assert refused == ("INVALID_REQUEST", "Removing the log level of the root logger is not allowed")


# Groups


def joined(lab: Lab, connection: Asking, group: str = "readers", kind: str = "consumer") -> str:
    """A member that is alone in its group; its id."""
    request = {
        "group_id": group,
        "session_timeout": 30_000,
        "member_id": "",
        "protocol_type": kind,
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    member = connection.ask("JoinGroup", 0, **request)
    assert member["error_code"] == 0
    given = [{"member_id": member["member_id"], "assignment": b"mine"}]
    connection.ask("SyncGroup", 0, group_id=group, generation_id=1, member_id=member["member_id"], assignments=given)
    return str(member["member_id"])


def commit(lab: Lab, group: str, member: str, generation: int) -> None:
    parts = [{"partition_index": n, "committed_offset": 2, "committed_metadata": ""} for n in (0, 1)]
    topics = [{"name": name, "partitions": parts[: 1 + (name == "orders")]} for name in ("orders", "kept")]
    answer = ask(
        lab,
        1,
        "OffsetCommit",
        2,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        retention_time_ms=-1,
        topics=topics,
    )
    assert {part["error_code"] for topic in answer["topics"] for part in topic["partitions"]} == {0}


def test_groups_are_listed_and_described(lab: Lab) -> None:
    with Asking(lab, 1) as connection:
        member = joined(lab, connection)
        for version in versions(lab, "ListGroups"):
            groups = ask(lab, 1, "ListGroups", version)["groups"]
            assert groups == [{"group_id": "readers", "protocol_type": "consumer"}]
            assert ask(lab, 2, "ListGroups", version)["groups"] == []
        for version in versions(lab, "DescribeGroups"):
            known, unknown = ask(lab, 1, "DescribeGroups", version, groups=["readers", "nobody"])["groups"]
            assert (known["group_state"], known["protocol_type"], known["protocol_data"]) == (
                "Stable",
                "consumer",
                "range",
            )
            (one,) = known["members"]
            assert (one["member_id"], one["client_id"], one["client_host"]) == (member, "test", "/127.0.0.1")
            assert (one["member_metadata"], one["member_assignment"]) == (SUBSCRIPTION, b"mine")
            assert (unknown["error_code"], unknown["group_state"], unknown["members"]) == (0, "Dead", [])
            (elsewhere,) = ask(lab, 2, "DescribeGroups", version, groups=["readers"])["groups"]
            assert name_of(elsewhere["error_code"]) == "NOT_COORDINATOR"
        for version in versions(lab, "OffsetFetch"):
            topics = [{"name": "orders", "partition_indexes": [0]}]
            elsewhere = ask(lab, 2, "OffsetFetch", version, group_id="readers", topics=topics)
            parts = [part for topic in elsewhere["topics"] for part in topic["partitions"]]
            assert len(parts) == (version < 2)  # OffsetFetchRequest.java, getErrorResponse
            assert name_of((parts or [elsewhere])[0]["error_code"]) == "NOT_COORDINATOR"
        connection.ask("LeaveGroup", 0, group_id="readers", member_id=member)
    eventually(lambda: ask(lab, 1, "DescribeGroups", 0, groups=["readers"])["groups"][0]["group_state"] == "Empty")


def test_a_group_is_deleted_when_nobody_is_in_it(lab: Lab) -> None:
    for version in versions(lab, "DeleteGroups"):
        with Asking(lab, 1) as connection:
            member = joined(lab, connection, "going")

            def deleted(*groups: str, broker: int = 1, version: int = version) -> list[str | None]:
                results = ask(lab, broker, "DeleteGroups", version, groups_names=groups)["results"]
                return [name_of(one["error_code"]) for one in results]

            assert deleted("going", "nobody") == ["NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"]
            assert deleted("going", broker=2) == ["NOT_COORDINATOR"]
            connection.ask("LeaveGroup", 0, group_id="going", member_id=member)
            eventually(lambda: deleted("going") == [None])
            assert "going" not in [one["group_id"] for one in ask(lab, 1, "ListGroups", 0)["groups"]]


def test_offsets_are_deleted_but_not_of_topics_that_are_read(lab: Lab) -> None:
    versions(lab, "OffsetDelete")

    def deleted(group: str, broker: int = 1) -> Any:
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("orders", "kept", "nowhere")]
        answer = ask(lab, broker, "OffsetDelete", 0, group_id=group, topics=topics)
        if answer["error_code"]:
            return name_of(answer["error_code"])
        return [name_of(part["error_code"]) for topic in answer["topics"] for part in topic["partitions"]]

    with Asking(lab, 1) as connection:
        member = joined(lab, connection, "some")
        commit(lab, "some", member, 1)
        assert deleted("some") == ["GROUP_SUBSCRIBED_TO_TOPIC", None, "UNKNOWN_TOPIC_OR_PARTITION"]
        connection.ask("LeaveGroup", 0, group_id="some", member_id=member)
        joined(lab, connection, "others", kind="connect")
    assert deleted("others") == "NON_EMPTY_GROUP"
    assert [deleted(""), deleted("nobody")] == ["INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND"]
    assert deleted("some", broker=2) == "NOT_COORDINATOR"
    eventually(lambda: deleted("some") == [None, None, "UNKNOWN_TOPIC_OR_PARTITION"])
    (left,) = ask(lab, 1, "OffsetFetch", 2, group_id="some", topics=None)["topics"]
    assert (left["name"], [part["partition_index"] for part in left["partitions"]]) == ("orders", [1])


def test_offsets_go_with_their_topic(generation: str) -> None:
    """Whoever deletes it; a DeleteTopics that does not wait is answered with a timeout.

    Kafka 2.0.1: server/KafkaApis.scala, handleUpdateMetadataRequest; server/AdminManager.scala, deleteTopics
    """
    with listening(generation, config={"delete.topic.enable": True}) as lab:

        def kept() -> list[int]:
            answer = ask(lab, 1, "OffsetFetch", 1, group_id="g", topics=[{"name": "gone", "partition_indexes": [0]}])
            return [topic["partitions"][0]["committed_offset"] for topic in answer["topics"]]

        def kept_of_a_new_topic() -> list[int]:
            until_quiet(lab.create_topic, "gone", assignment={0: [2, 3]})
            topics = [{"name": "gone", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
            of = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
            ask(lab, 1, "OffsetCommit", 2, group_id="g", topics=topics, **of)
            return kept()

        assert kept_of_a_new_topic() == [7]
        until_quiet(lab.delete_topic, "gone")
        assert kept() == [-1]
        assert kept_of_a_new_topic() == [7]
        assert lab.controller is not None
        answer = ask(lab, lab.controller.id, "DeleteTopics", 0, topic_names=["gone"], timeout=0)
        assert [name_of(one["error_code"]) for one in answer["responses"]] == ["REQUEST_TIMED_OUT"]
        lab.settle()
        assert kept() == [-1]


def test_topics_that_may_not_be_deleted(generation: str) -> None:
    """Before KIP-322 no broker looks at the setting: the controller removes the request, whose time runs out.

    Kafka 0.10.2.2, 2.0.1, 2.4.1: server/KafkaApis.scala, handleDeleteTopicsRequest
    """
    with listening(generation, brokers=2, config={"delete.topic.enable": False}, orders={0: [1]}) as lab:
        assert lab.controller is not None
        for version in versions(lab, "DeleteTopics"):
            refused = ["TOPIC_DELETION_DISABLED" if version >= 3 else "INVALID_REQUEST"] * 2
            errors = refused if generation == "2.4" else ["REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PARTITION"]
            for broker in (1, 2):
                answer = ask(lab, broker, "DeleteTopics", version, topic_names=["orders", "nowhere"], timeout=100)
                found = [name_of(one["error_code"]) for one in answer["responses"]]
                assert found == (errors if broker == lab.controller.id else ["NOT_CONTROLLER"] * 2)
        lab.settle()
        assert lab.partition("orders", 0).leader == 1


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_no_client_writes_to_an_internal_topic(lab: Lab, topic: str) -> None:
    """Kafka 2.0.1: server/ReplicaManager.scala, appendToLocalLog"""
    for version in versions(lab, "Metadata")[4:]:
        answer = ask(lab, 1, "Metadata", version, topics=[{"name": topic}], allow_auto_topic_creation=False)
        assert answer["topics"][0]["is_internal"]
        assert answer["topics"][0].get("topic_authorized_operations", 0) == 0  # 2.4.1: MetadataResponse.java
        assert answer.get("cluster_authorized_operations", 0) == 0
    if topic not in {p.topic for p in lab.partitions()}:
        until_quiet(lab.create_topic, topic, assignment={0: [1, 2]})
    partitions = [{"index": 0, "records": write_batch([Record(0, 0, None, b"x")])}]
    topics = [{"name": topic, "partition_data": partitions}]
    answer = ask(lab, 1, "Produce", versions(lab, "Produce")[-1], acks=1, timeout=1000, topic_data=topics)
    part = answer["responses"][0]["partition_responses"][0]
    assert part["error_code"] == 17  # INVALID_TOPIC_EXCEPTION
    assert not lab.log(topic, 0)


def test_settings_that_somebody_wrote_wrong_are_an_error_of_their_topic(lab: Lab) -> None:
    """Other topics are described all the same, and the lab goes on."""
    until_quiet(lab.create_topic, "wrong", assignment={0: [1]})
    path, topic = "/config/topics/wrong", {"resource_type": 2, "configuration_keys": None}
    by_hand(lab, Set(path, b'{"version":1,"config":5}'))
    resources = [topic | {"resource_name": name} for name in ("wrong", "kept")]
    for version in versions(lab, "DescribeConfigs"):
        results = ask(lab, 1, "DescribeConfigs", version, resources=resources)["results"]
        assert [name_of(one["error_code"]) for one in results] == ["UNKNOWN_SERVER_ERROR", None]
        assert "'config' is 5" in results[0]["error_message"]
    by_hand(lab, Set(path, b'{"version":1,"config":{}}'))
    lab.settle()
