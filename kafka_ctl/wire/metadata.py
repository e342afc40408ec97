"""The cluster as a broker tells it: versions, live brokers and leaders.

All of it is from this broker's own cache, which the controller's UpdateMetadata requests fill.
Kafka 2.0.1: server/KafkaApis.scala, handleTopicMetadataRequest; server/MetadataCache.scala, getTopicMetadata
"""

from __future__ import annotations

import re

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import ApiException, BadInput, KafkaCtlError
from kafka_ctl.requests import PartitionState
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.groups import OFFSETS_TOPIC
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.schema import number_of
from kafka_ctl.wire.service import Service

UNKNOWN_OPERATIONS = -(2**31)
NAMED, SOFTWARE = 3, re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The version of ApiVersions from which on a client's software has a name and a version, and what these look like."""
INTERNAL = (OFFSETS_TOPIC, "__transaction_state")


async def api_versions(service: Service, version: int, request: Message) -> Message:
    """The requests that are understood, with their versions (KIP-35); since KIP-511 clients send their name."""
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
        if request.get("error"):  # a test asked for it
            found.append({"name": name, "error_code": number_of(request["error"])})
        elif name in known:
            partitions = _partitions(service, known[name])
            found.append({"name": name, "is_internal": name in INTERNAL, "partitions": partitions})
        else:
            creates = version < 4 or request["allow_auto_topic_creation"]
            error = await _auto_create(service, name) if creates else "UNKNOWN_TOPIC_OR_PARTITION"
            found.append({"name": name, "error_code": number_of(error)})
    return {
        "brokers": [endpoint(service, id) | {"node_id": id, "rack": _rack(service, id)} for id in broker.live_brokers],
        "cluster_id": broker.world.cluster_id,
        "controller_id": _controller(service),
        "topics": [{"topic_authorized_operations": UNKNOWN_OPERATIONS} | topic for topic in found],
        "cluster_authorized_operations": UNKNOWN_OPERATIONS,
    }


def _controller(service: Service) -> int:
    """The controller as this broker knows it; -1 for none.

    Kafka 2.0.1: common/requests/MetadataResponse.java, getControllerNode, toStruct
    """
    broker = service.broker
    is_hidden = broker.generation.requests.hides_dead_controller and broker.known_controller not in broker.live_brokers
    return -1 if is_hidden else broker.known_controller


def topics_of(service: Service) -> dict[str, list[TopicPartition]]:
    """The topics that this broker knows of, with their partitions."""
    known: dict[str, list[TopicPartition]] = {}
    for tp in service.broker.assigned:
        known.setdefault(tp.topic, []).append(tp)
    return known


def endpoint(service: Service, id: int) -> Message:
    """The address of a broker."""
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
    """Create a topic that a client asked for, as `auto.create.topics.enable` has it by default; the error to answer."""
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


async def describe_acls(service: Service, version: int, request: Message) -> Message:
    """The ACLs of a broker without an authorizer.

    Kafka 2.0.1: server/KafkaApis.scala, handleDescribeAcls
    """
    text = "No Authorizer is configured on the broker"
    return {"error_code": number_of("SECURITY_DISABLED"), "error_message": text, "resources": []}
