"""What a broker tells of its cluster: versions, who is alive and who leads, settings, and where a group is kept.

All of it is from this broker's own cache, which the controller's UpdateMetadata requests fill.
Kafka 2.0.1: server/KafkaApis.scala, handleTopicMetadataRequest, handleDescribeConfigsRequest,
handleFindCoordinatorRequest; server/MetadataCache.scala, getTopicMetadata
"""

from __future__ import annotations

import re

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import ApiException, BadInput, KafkaCtlError
from kafka_ctl.requests import PartitionState
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.service import Service
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

TOPIC, BROKER = 2, 4
"""What the settings of which can be asked for (`ConfigResource.Type`)."""
DYNAMIC_TOPIC, STATIC, DEFAULT = 1, 4, 5
"""Where a setting comes from (`DescribeConfigsResponse.ConfigSource`)."""
UNKNOWN_OPERATIONS = -(2**31)
NAMED, SOFTWARE = 3, re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The version of ApiVersions from which on a client's software has a name and a version, and what these look like."""
INTERNAL = ("__consumer_offsets", "__transaction_state")


async def api_versions(service: Service, version: int, request: Message) -> Message:
    """Which requests are understood, in which versions (KIP-35); since KIP-511 clients say who they are."""
    named = (request.get("client_software_name", "-"), request.get("client_software_version", "-"))
    if version >= NAMED and not all(map(SOFTWARE.fullmatch, named)):
        return {"error_code": number_of("INVALID_REQUEST"), "api_keys": []}
    return {"error_code": 0, "api_keys": service.api_keys()}


async def metadata(service: Service, version: int, request: Message) -> Message:
    """The brokers that are alive, and who leads the partitions of some topics or of all."""
    broker = service.broker
    known = topics_of(service)
    asked = request["topics"]
    every = asked is None or (version == 0 and not asked)
    names = sorted(known) if every else dict.fromkeys(topic["name"] for topic in asked or ())
    found = []
    for name in names:
        if name in known:
            partitions = _partitions(service, known[name])
            found.append({"name": name, "is_internal": name in INTERNAL, "partitions": partitions})
        else:
            creates = version < 4 or request["allow_auto_topic_creation"]
            error = await _auto_create(service, name) if creates else "UNKNOWN_TOPIC_OR_PARTITION"
            found.append({"name": name, "error_code": number_of(error)})
    return {
        "brokers": [endpoint(service, id) | {"node_id": id, "rack": _rack(service, id)} for id in broker.live_brokers],
        "cluster_id": broker.world.cluster_id,
        "controller_id": broker.known_controller if broker.known_controller in broker.live_brokers else -1,
        "topics": [{"topic_authorized_operations": UNKNOWN_OPERATIONS} | topic for topic in found],
        "cluster_authorized_operations": UNKNOWN_OPERATIONS,
    }


def topics_of(service: Service) -> dict[str, list[TopicPartition]]:
    """The topics that this broker knows of, with their partitions."""
    known: dict[str, list[TopicPartition]] = {}
    for tp in service.broker.assigned:
        known.setdefault(tp.topic, []).append(tp)
    return known


def endpoint(service: Service, id: int) -> Message:
    """Where a broker listens."""
    host, port = service.shared.endpoints.get(id, (HOST, -1))
    return {"host": host, "port": service.shared.ports.get(id, port)}


def _rack(service: Service, id: int) -> str | None:
    broker = service.shared.world.brokers.get(id)
    return None if broker is None else broker.rack


def _partitions(service: Service, partitions: list[TopicPartition]) -> list[Message]:
    cache = service.broker
    return [
        _partition(tp, cache.assigned[tp], cache.live_brokers) for tp in sorted(partitions, key=lambda tp: tp.partition)
    ]


def _partition(tp: TopicPartition, sent: PartitionState, live: tuple[int, ...]) -> Message:
    state = sent.state
    led = state.leader in live
    return {
        "error_code": number_of(None if led else "LEADER_NOT_AVAILABLE"),
        "partition_index": tp.partition,
        "leader_id": state.leader if led else -1,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": sent.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": tuple(replica for replica in sent.replicas if replica not in live),
    }


async def _auto_create(service: Service, topic: str) -> str:
    """Create a topic that somebody asked for, as `auto.create.topics.enable` has it by default; the error to answer."""
    world, admin = service.shared.world, service.shared.admin
    try:
        admin.record_request("create_topic", topic=topic)
        await admin.create_topic(
            topic,
            world.config["num.partitions"],
            world.config["default.replication.factor"],
            None,
            None,
            {id: broker.rack for id, broker in world.brokers.items()},
        )
    except ApiException as refused:
        return "LEADER_NOT_AVAILABLE" if refused.code == "TOPIC_ALREADY_EXISTS" else refused.code
    except BadInput:
        return "INVALID_TOPIC_EXCEPTION"
    except KafkaCtlError:
        return "UNKNOWN_SERVER_ERROR"
    return "LEADER_NOT_AVAILABLE"


async def find_coordinator(service: Service, version: int, request: Message) -> Message:
    """The broker that keeps a group: the first of those alive, for every group."""
    live = service.broker.live_brokers
    if request.get("key_type", 0) != 0 or not live:  # transactions have no coordinator here
        error = number_of("COORDINATOR_NOT_AVAILABLE")
        return {"error_code": error, "node_id": -1, "host": "", "port": -1}
    return {"error_code": 0, "error_message": None, "node_id": min(live)} | endpoint(service, min(live))


async def describe_configs(service: Service, version: int, request: Message) -> Message:
    """The settings of topics and of this broker, those that the lab knows; of each once."""
    results = []
    asked = {(one["resource_type"], one["resource_name"]): one["configuration_keys"] for one in request["resources"]}
    for (kind, name), keys in asked.items():
        settings, error, text = await _settings(service, kind, name)
        listed = [one for one in settings if keys is None or one["name"] in keys]
        results.append(
            {
                "error_code": number_of(error),
                "error_message": text,
                "resource_type": kind,
                "resource_name": name,
                "configs": listed,
            }
        )
    return {"results": results}


async def _settings(service: Service, kind: int, name: str) -> tuple[list[Message], str | None, str | None]:
    broker = service.broker
    if kind == TOPIC:
        if name not in topics_of(service):
            return [], "UNKNOWN_TOPIC_OR_PARTITION", None
        answer = await broker.zk.read(ConfigEntityZNode.path("topics", name))
        raw = answer.value if isinstance(answer.value, bytes) else b""
        own = ConfigEntityZNode.decode(raw, "topics", name) if raw else {}
        usual = {key: broker.config[key] for key in ("min.insync.replicas", "unclean.leader.election.enable")}
        return [_setting(key, value, key not in own, DYNAMIC_TOPIC) for key, value in (usual | own).items()], None, None
    if kind == BROKER:
        if name != str(broker.id):
            text = f"Unexpected broker id, expected {broker.id}, but received {name}"
            return [], "INVALID_REQUEST", text
        defaults = broker.generation.config
        listed = {"broker.id": broker.id} | dict(broker.config)
        settings = [_setting(key, value, defaults.get(key) == value, STATIC, True) for key, value in listed.items()]
        return settings, None, None
    return [], "INVALID_REQUEST", f"Unsupported resource type: {kind}"


def _setting(key: str, value: object, is_default: bool, source: int, read_only: bool = False) -> Message:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {
        "name": key,
        "value": text,
        "read_only": read_only,
        "is_default": is_default,
        "config_source": DEFAULT if is_default else source,
    }
