"""Every znode of a Kafka cluster, one class each: where it is, what it holds, how that is written as bytes.

`path` gives the place, `encode` the bytes Kafka writes (same keys, same order, no spaces), `decode` the
meaning of bytes that another program wrote. Mappings and lists are written in the order given: Kafka's own order of
a topic's partitions is that of a Scala hash map, and no reader depends on it.

    /brokers  ids/N  topics/T/partitions/P/state  seqid     who is there, who copies and who leads what
    /controller  /controller_epoch                          who decides, and how often that changed
    /admin  reassign_partitions  preferred_replica_election  delete_topics/T      requests of administrators
    /config  topics brokers clients users  changes/config_change_N                settings
    /isr_change_notification  /log_dir_event_notification   messages from brokers to the controller
    /cluster/id                                             the name of the cluster

Messages that end in a sequence number are made again each time, and deleted once they are understood.

A `decode` raises BadInput, naming the path and the field, for whatever Kafka could not have written.
Kafka 2.0.1: zk/ZkData.scala, ZkData
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from kafka_ctl.cluster import Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.zookeeper.json_fields import Fields, FixedZNode, NotJson, SequentialZNode, encode_json, number

TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Kafka 2.0.1: internals/Topic.java, containsValidPattern"""
TOPICS, BROKERS = "topics", "brokers"
"""The kinds of entities with settings; there are others."""


class ControllerZNode(FixedZNode):
    """The broker that is controller; ephemeral, so it vanishes with that broker's session.

    `{"version":1,"brokerid":1,"timestamp":"1500000000000"}`; the first releases wrote the plain id, `1`. Version 2
    (Kafka 3.4) adds `kraftControllerEpoch`, which is -1 unless the cluster migrates to KRaft.
    """

    PATH = "/controller"

    @staticmethod
    def encode(broker: int, timestamp: int) -> bytes:
        """`timestamp` in milliseconds."""
        return b'{"version":1,"brokerid":%d,"timestamp":"%d"}' % (broker, timestamp)

    @staticmethod
    def decode(data: bytes) -> int:
        """The controller's broker id."""
        if data.isdigit():
            return number(ControllerZNode.path(), data)
        return Fields.read(ControllerZNode.path(), data, versions=(1, 2)).integer("brokerid")

    @staticmethod
    def named(data: bytes) -> int | None:
        """The controller's broker id; None where something else is written there."""
        with suppress(BadInput):
            return ControllerZNode.decode(data)
        return None


class ControllerEpochZNode(FixedZNode):
    """The number of controllers so far: a plain integer, `1`."""

    PATH = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return b"%d" % epoch

    @staticmethod
    def decode(data: bytes) -> int:
        return number(ControllerEpochZNode.path(), data)


class BrokerIdsZNode(FixedZNode):
    """The parent of the registered brokers; empty, its children are what matters."""

    PATH = "/brokers/ids"

    @staticmethod
    def ids(children: Iterable[str]) -> list[int]:
        """The broker ids among the names of the children, ascending."""
        return sorted(number("/brokers/ids", name) for name in children)


class BrokerIdZNode:
    """One registered broker; ephemeral. Its czxid is the broker's epoch since Kafka 2.2.

    `{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],"rack":"r1",
    "jmx_port":-1,"host":"h","timestamp":"1500000000000","port":9092,"version":4}`, `rack` only if it has one.
    Version 1 has no endpoints, 2 no rack, 3 no protocol map; 5 (Kafka 2.7) adds `features`.
    """

    @staticmethod
    def path(broker: int) -> str:
        return f"/brokers/ids/{broker}"

    @staticmethod
    def encode(broker: Broker, timestamp: int) -> bytes:
        """Version 4, with one PLAINTEXT listener; `timestamp` in milliseconds."""
        rack = {} if broker.rack is None else {"rack": broker.rack}
        return encode_json(
            {
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
                "endpoints": [f"PLAINTEXT://{broker.host}:{broker.port}"],
                **rack,
                "jmx_port": -1,
                "host": broker.host,
                "timestamp": str(timestamp),
                "port": broker.port,
                "version": 4,
            }
        )

    @staticmethod
    def decode(data: bytes, broker: int, czxid: int = -1) -> Broker:
        """Versions 1 to 5. Host and port are those of the plaintext listener, else of the first one."""
        path = BrokerIdZNode.path(broker)
        fields = Fields.read(path, data, versions=(1, 2, 3, 4, 5))
        rack = None if fields.get("rack") is None else fields.text("rack")
        if fields.get("host") is not None:
            return Broker(broker, fields.text("host"), fields.integer("port"), rack, czxid)
        endpoint = (fields.texts("endpoints") or [""])[0]
        host, colon, port = endpoint.rpartition("://")[2].rpartition(":")
        if not colon or not port.isdecimal():
            raise BadInput(f"{path}: endpoint {endpoint!r}; LISTENER://host:port is expected")
        return Broker(broker, host.strip("[]"), number(path, port), rack, czxid)


class BrokerSequenceIdZNode(FixedZNode):
    """The source of generated broker ids: each write raises the data version, the next id. Empty."""

    PATH = "/brokers/seqid"


class TopicsZNode(FixedZNode):
    """The parent of the topics; empty, its children are their names."""

    PATH = "/brokers/topics"


class TopicZNode:
    """The brokers that hold the partitions of one topic.

    Version 1: `{"version":1,"partitions":{"0":[1,2],"1":[2,3]}}`. Version 2 (Kafka 2.4), while 0 moves:
    `{"version":2,"partitions":{"0":[1,2,3]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[3]}}`.
    Later ones add a `topic_id`, which is read over.
    """

    @staticmethod
    def path(topic: str) -> str:
        return f"/brokers/topics/{topic}"

    @staticmethod
    def encode(assignment: Mapping[int, ReplicaAssignment | Iterable[int]], version: int = 1) -> bytes:
        """Encode `{partition: replicas or ReplicaAssignment}` in version 1 or 2; version 1 has only the replicas."""
        full = {
            str(p): a if isinstance(a, ReplicaAssignment) else ReplicaAssignment(tuple(a))
            for p, a in assignment.items()
        }
        replicas = {p: a.replicas for p, a in full.items()}
        content: dict[str, object] = {"version": version, "partitions": replicas}
        if version >= 2:
            content["adding_replicas"] = {p: a.adding for p, a in full.items() if a.adding}
            content["removing_replicas"] = {p: a.removing for p, a in full.items() if a.removing}
        return encode_json(content)

    @staticmethod
    def decode(data: bytes, topic: str = "T", ascending: bool = True) -> dict[int, ReplicaAssignment]:
        """Versions 1 to 3 as `{partition: ReplicaAssignment}`, ascending by partition or in the order of the znode."""
        fields = Fields.read(TopicZNode.path(topic), data, versions=(1, 2, 3))
        replicas = fields.replica_lists("partitions")
        adding = fields.replica_lists("adding_replicas", required=False)
        removing = fields.replica_lists("removing_replicas", required=False)
        return {
            p: ReplicaAssignment(all_of_p, adding.get(p, ()), removing.get(p, ()))
            for p, all_of_p in (sorted(replicas.items()) if ascending else replicas.items())
        }


class TopicPartitionsZNode:
    """The parent of a topic's partitions; empty. A child appears when a partition gets its first leader."""

    @staticmethod
    def path(topic: str) -> str:
        return f"/brokers/topics/{topic}/partitions"


class TopicPartitionZNode:
    """The parent of one partition's state; empty."""

    @staticmethod
    def path(partition: tuple[str, int]) -> str:
        return f"/brokers/topics/{partition[0]}/partitions/{partition[1]}"


_AS_ENCODED = re.compile(
    '{"controller_epoch":(N),"leader":(-?N),"version":1,"leader_epoch":(N),"isr":\\[((?:N(?:,N)*)?)]}'.replace(
        "N", "(?:0|[1-9][0-9]{0,8})"
    ).encode()
)


class TopicPartitionStateZNode:
    """The leader and the ISR of a partition. The controller writes it, and so does the leader.

    `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}`
    """

    @staticmethod
    def path(partition: tuple[str, int]) -> str:
        return f"/brokers/topics/{partition[0]}/partitions/{partition[1]}/state"

    @staticmethod
    def encode(state: LeaderAndIsr) -> bytes:
        # A failover writes thousands of these, hence no JSON encoder here.
        leader, isr, leader_epoch, _, controller_epoch = state
        return (
            f'{{"controller_epoch":{controller_epoch},"leader":{leader},"version":1,'
            f'"leader_epoch":{leader_epoch},"isr":[{",".join(map(str, isr))}]}}'
        ).encode()

    @staticmethod
    def decode(data: bytes, zk_version: int = 0, partition: tuple[str, int] = ("T", 0)) -> LeaderAndIsr:
        """The state, with the data version its znode had; `partition` is for the text of an error."""
        if plain := _AS_ENCODED.fullmatch(data):  # nor a parser here, for what was written as `encode` writes it
            leader, isr = int(plain[2]), tuple(map(int, plain[4].split(b","))) if plain[4] else ()
            return LeaderAndIsr(leader, isr, int(plain[3]), zk_version, int(plain[1]))
        fields = Fields.read(TopicPartitionStateZNode.path(partition), data)
        return LeaderAndIsr(
            fields.integer("leader"),
            fields.integers("isr"),
            fields.integer("leader_epoch"),
            zk_version,
            fields.integer("controller_epoch"),
        )


class ClusterIdZNode(FixedZNode):
    """The name of the cluster, from the first broker: `{"version":"1","id":"vQ0wAwXZSoWnW5yPVOWp2A"}`."""

    PATH = "/cluster/id"

    @staticmethod
    def encode(cluster: str) -> bytes:
        return encode_json({"version": "1", "id": cluster})

    @staticmethod
    def decode(data: bytes) -> str:
        return Fields.read(ClusterIdZNode.path(), data, versions=("1", 1)).text("id")


PERSISTENT_PATHS = (
    "/consumers",
    "/brokers",
    "/brokers/ids",
    "/brokers/topics",
    "/config",
    "/config/changes",
    "/admin",
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
)
"""The znodes that every broker makes sure of when it starts: empty znodes, parents first.

Kafka 2.0.1: zk/ZkData.scala, PersistentZkPaths
"""


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
        entries = [{"topic": t, "partition": p, "replicas": tuple(ids)} for (t, p), ids in targets.items()]
        return encode_json({"version": 1, "partitions": entries})

    @staticmethod
    def decode(data: bytes, by_class: bool = False) -> dict[TopicPartition, tuple[int, ...]]:
        """`by_class` is how Kafka reads it since 1.1: with Jackson, into a class that has these fields and no others.

        Kafka 2.0.1: zk/ZkData.scala, ReassignPartitionsZNode.PartitionAssignment; utils/Json.scala, parseBytesAs
        """
        fields = Fields.read(ReassignPartitionsZNode.path(), data)
        if by_class:
            fields.check_known("version", "partitions")
            if fields.get("version") is not None:
                fields.integer("version")
            if fields.get("partitions") is None:
                raise KafkaCtlError("java.lang.NullPointerException")
            for _, entry in fields.partitions():
                entry.check_known("topic", "partition", "replicas")
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
        return Fields.read(ConfigEntityZNode.path(kind, name), data, versions=(1,)).text_map("config")


class ConfigChangeNotificationSequenceZNode(SequentialZNode):
    """Notifies every broker whose settings changed; sequential.

    `{"version":2,"entity_path":"topics/orders"}`; version 1 had `entity_type` and `entity_name` instead.
    """

    PARENT = "/config/changes"
    PREFIX = f"{PARENT}/config_change_"

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


def malformed(found: Mapping[str, tuple[bytes, int, int]]) -> Iterator[str]:
    """The faults in `{path: (data, version, ephemeral owner)}`: the path, its data, the expected data.

    Where Kafka reads something malformed it mostly fails, and its brokers elect one controller after the other. Data
    that is not JSON it often treats as empty: such a znode is not malformed.
    """
    for path, (data, _, owner) in found.items():
        try:
            _check(path, data, owner)
        except NotJson:
            continue
        except BadInput as error:
            yield str(error)


def _check(path: str, data: bytes, owner: int) -> None:
    match path.split("/")[1:]:
        case ["controller"] | ["brokers", "ids", _] if not owner:
            if path != ControllerZNode.path():
                number(BrokerIdsZNode.path(), path.rpartition("/")[2])
            there = data[:60].decode("utf-8", "backslashreplace")
            raise BadInput(f"{path}: {there!r} is not an ephemeral znode, so no broker can replace it")
        case ["brokers", "topics", topic]:
            TopicZNode.decode(data, topic)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            where = topic, number(TopicPartitionsZNode.path(topic), partition)
            TopicPartitionStateZNode.decode(data, 0, where)
        case ["config", "topics", topic]:
            ConfigEntityZNode.decode(data, "topics", topic)
        case ["controller_epoch"]:
            ControllerEpochZNode.decode(data)
        case ["admin", "preferred_replica_election"]:
            PreferredReplicaElectionZNode.decode(data)
