"""The znodes that carry messages: from brokers and administrators to the controller, and to every broker.

Those that end in a sequence number are made anew for each message and deleted once it is understood.

    /admin  reassign_partitions  preferred_replica_election  delete_topics/T    requests of administrators
    /isr_change_notification/isr_change_N                                       a leader changed its ISR
    /log_dir_event_notification/log_dir_event_N                                 a broker lost a disk
    /config  topics/T brokers/N clients/C users/U  changes/config_change_N      settings; they changed

Kafka 2.0.1: zk/ZkData.scala, IsrChangeNotificationSequenceZNode
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.zookeeper.json_fields import Fields, FixedZNode, SequentialZNode, encode_json


def sequence_number(name: str) -> str:
    """The digits ZooKeeper put behind a sequential name or path: `isr_change_0000000007` -> `0000000007`."""
    return name.rpartition("_")[2]


def _named(partitions: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]


class IsrChangeNotificationZNode(FixedZNode):
    """The parent of messages about changed ISRs; empty."""

    PATH = "/isr_change_notification"


class IsrChangeNotificationSequenceZNode(SequentialZNode):
    """A leader's notification of the partitions whose ISR it changed; sequential, read and deleted by the controller.

    `{"version":1,"partitions":[{"topic":"orders","partition":0}]}`
    """

    PREFIX = "/isr_change_notification/isr_change_"

    @staticmethod
    def encode(partitions: Iterable[tuple[str, int]]) -> bytes:
        return encode_json({"version": 1, "partitions": _named(partitions)})

    @staticmethod
    def decode(data: bytes, sequence: str = "N") -> list[TopicPartition]:
        path = IsrChangeNotificationSequenceZNode.path(sequence)
        return [partition for partition, _ in Fields.read(path, data).partitions()]


class LogDirEventNotificationZNode(FixedZNode):
    """The parent of messages about failed disks; empty. Since Kafka 1.0."""

    PATH = "/log_dir_event_notification"


class LogDirEventNotificationSequenceZNode(SequentialZNode):
    """A broker's notification that a log directory failed; sequential.

    `{"version":1,"broker":1,"event":1}`, where event 1 is the failure, the only one there is.
    """

    PREFIX = "/log_dir_event_notification/log_dir_event_"

    @staticmethod
    def encode(broker: int) -> bytes:
        return b'{"version":1,"broker":%d,"event":1}' % broker

    @staticmethod
    def decode(data: bytes, sequence: str = "N") -> int:
        """The broker whose disk failed."""
        return Fields.read(LogDirEventNotificationSequenceZNode.path(sequence), data).integer("broker")


class DeleteTopicsZNode(FixedZNode):
    """The parent of the topics to delete; empty."""

    PATH = "/admin/delete_topics"


class DeleteTopicsTopicZNode:
    """The request to delete one topic; empty, its presence says it all."""

    @staticmethod
    def path(topic: str) -> str:
        return f"/admin/delete_topics/{topic}"


class ReassignPartitionsZNode(FixedZNode):
    """The request to move partitions to other brokers; the controller takes out what is done.

    `{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}`
    """

    PATH = "/admin/reassign_partitions"

    @staticmethod
    def encode(targets: Mapping[TopicPartition, Iterable[int]]) -> bytes:
        """`{partition: target replicas}`"""
        return encode_json(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": partition, "replicas": tuple(replicas)}
                    for (topic, partition), replicas in targets.items()
                ],
            }
        )

    @staticmethod
    def decode(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
        fields = Fields.read(ReassignPartitionsZNode.path(), data)
        return {partition: entry.integers("replicas") for partition, entry in fields.partitions()}


class PreferredReplicaElectionZNode(FixedZNode):
    """The request that partitions be led by their first replica again.

    `{"version":1,"partitions":[{"topic":"orders","partition":0}]}`
    """

    PATH = "/admin/preferred_replica_election"

    @staticmethod
    def encode(partitions: Iterable[tuple[str, int]]) -> bytes:
        return encode_json({"version": 1, "partitions": _named(partitions)})

    @staticmethod
    def decode(data: bytes) -> list[TopicPartition]:
        fields = Fields.read(PreferredReplicaElectionZNode.path(), data)
        return [partition for partition, _ in fields.partitions()]


class ConfigEntityZNode:
    """The settings of one entity, such as `topics/orders`, `brokers/1`, `clients/app` or `users/alice`.

    `{"version":1,"config":{"unclean.leader.election.enable":"true"}}`
    """

    @staticmethod
    def path(kind: str, name: str) -> str:
        return f"/config/{kind}/{name}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        return encode_json({"version": 1, "config": dict(config)})

    @staticmethod
    def decode(data: bytes, kind: str = "topics", name: str = "T") -> dict[str, str]:
        return Fields.read(ConfigEntityZNode.path(kind, name), data).text_map("config")


class ConfigChangeNotificationSequenceZNode(SequentialZNode):
    """Notifies every broker whose settings changed; sequential.

    `{"version":2,"entity_path":"topics/orders"}`; version 1 had `entity_type` and `entity_name` instead.
    """

    PREFIX = "/config/changes/config_change_"

    @staticmethod
    def encode(entity_path: str) -> bytes:
        return encode_json({"version": 2, "entity_path": entity_path})

    @staticmethod
    def decode(data: bytes, sequence: str = "N") -> str:
        """The entity as `topics/orders`."""
        fields = Fields.read(ConfigChangeNotificationSequenceZNode.path(sequence), data, versions=(2, 1))
        if fields.get("entity_path") is None and fields.get("version") == 1:
            return f"{fields.text('entity_type')}/{fields.text('entity_name')}"
        return fields.text("entity_path")
