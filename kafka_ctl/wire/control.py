"""Requests that brokers send each other: as messages, and as the values that the actors use.

Each `write_` makes a message of a request or response, each `read_` the reverse; versions that group by topic and those
that do not are both served.
Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java,
ControlledShutdownRequest.java; 2.4.1: LeaderAndIsrRequest.json ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.requests import (
    UNKNOWN_EPOCH,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    WriteTxnMarkersRequest,
)
from kafka_ctl.wire.codec import Message, encode_message
from kafka_ctl.wire.error_codes import name_of, number_of
from kafka_ctl.wire.schema import REQUEST, api_key, message_type

Sent = (
    LeaderAndIsrRequest
    | UpdateMetadataRequest
    | StopReplicaRequest
    | ControlledShutdownRequest
    | WriteTxnMarkersRequest
)
"""The requests that brokers send each other over the wire."""
Endpoint = tuple[str, int, str | None]
"""Host, port and rack of a broker."""
LISTENER, PLAINTEXT = "PLAINTEXT", 0
GROUPED = {"LeaderAndIsr": 2, "UpdateMetadata": 5, "StopReplica": 1}
"""The versions from which on partitions are grouped by topic."""


def grouped(partitions: Iterable[tuple[TopicPartition, Message]], name: str, of: str) -> list[Message]:
    """Partitions by topic, in the order in which the topics come first."""
    topics: dict[str, list[Message]] = {}
    for tp, sent in partitions:
        topics.setdefault(tp.topic, []).append(sent)
    return [{name: topic, of: listed} for topic, listed in topics.items()]


def errors_by_topic(
    errors: Mapping[TopicPartition, str | None], name: str = "name", of: str = "partitions", code: str = "error_code"
) -> list[Message]:
    """The outcome of each partition, by topic."""
    parts = ((tp, {"partition_index": tp.partition, code: number_of(error)}) for tp, error in errors.items())
    return grouped(parts, name, of)


def parts_of(
    topics: Iterable[Message], name: str = "name", of: str = "partitions", number: str = "partition_index"
) -> Iterator[tuple[TopicPartition, Message]]:
    """The other way: every partition under its topic, with its part of the message."""
    for topic in topics:
        for part in topic[of]:
            yield TopicPartition(topic[name], part[number]), part


def named(topics: Iterable[Message], name: str = "name", of: str = "partitions") -> tuple[TopicPartition, ...]:
    """The partitions that are named by their numbers under their topics, each once."""
    return tuple(dict.fromkeys(TopicPartition(topic[name], number) for topic in topics for number in topic[of]))


def write_request(request: Sent, version: int, endpoints: Mapping[int, Endpoint]) -> Message:
    """A request as a message; `endpoints` are host, port and rack of each broker."""
    if isinstance(request, ControlledShutdownRequest):
        return {"broker_id": request.broker, "broker_epoch": request.broker_epoch}
    if isinstance(request, WriteTxnMarkersRequest):
        return {"markers": [_marker(request)]}
    message: Message = {
        "controller_id": request.controller,
        "controller_epoch": request.controller_epoch,
        "broker_epoch": request.broker_epoch,
    }
    groups = version >= GROUPED[request.name]
    match request:
        case StopReplicaRequest(partitions=partitions, delete=delete):
            message["delete_partitions"] = delete
            if groups:
                topics: dict[str, list[int]] = {}
                for tp in partitions:
                    topics.setdefault(tp.topic, []).append(tp.partition)
                return message | {"topics": [{"name": n, "partition_indexes": p} for n, p in topics.items()]}
            listed = [{"topic_name": tp.topic, "partition_index": tp.partition} for tp in partitions]
            return message | {"ungrouped_partitions": listed}
        case LeaderAndIsrRequest():
            message["live_leaders"] = [
                {"broker_id": id, "host_name": endpoints[id][0], "port": endpoints[id][1]}
                for id in request.live_leaders
            ]
        case UpdateMetadataRequest():
            message["live_brokers"] = [_live(id, *endpoints[id]) for id in request.live_brokers]
    states = [(tp, _state(tp, sent)) for tp, sent in request.partitions.items()]
    if groups:
        return message | {"topic_states": grouped(states, "topic_name", "partition_states")}
    return message | {"ungrouped_partition_states": [sent for _, sent in states]}


def _marker(request: WriteTxnMarkersRequest) -> Message:
    topics: dict[str, list[int]] = {}
    for tp in request.partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return {
        "producer_id": request.producer,
        "producer_epoch": request.producer_epoch,
        "transaction_result": request.commits,
        "coordinator_epoch": request.coordinator_epoch,
        "topics": [{"name": name, "partition_indexes": numbers} for name, numbers in topics.items()],
    }


def read_endpoints(message: Message) -> dict[int, tuple[str, int]]:
    """The addresses of the live brokers of an UpdateMetadata request."""
    found = {}
    for one in message.get("live_brokers", ()):
        there = (
            one["endpoints"][0]
            if one.get("endpoints")
            else {"host": one.get("v0_host", ""), "port": one.get("v0_port", -1)}
        )
        found[one["id"]] = there["host"], there["port"]
    return found


def request_bytes(
    request: Sent,
    version: int,
    endpoints: Mapping[int, tuple[str, int, str | None]],
    correlation_id: int = 1,
    client_id: str = "",
) -> bytes:
    """A request as it travels, its length in front."""
    kind = message_type(api_key(request.name), version, REQUEST)
    header = {"correlation_id": correlation_id, "client_id": client_id}
    return encode_message(kind, header, write_request(request, version, endpoints))


def _live(id: int, host: str, port: int, rack: str | None) -> Message:
    there = {"port": port, "host": host, "listener": LISTENER, "security_protocol": PLAINTEXT}
    return {"id": id, "endpoints": [there], "rack": rack, "v0_host": host, "v0_port": port}


def _state(tp: TopicPartition, sent: PartitionState) -> Message:
    state = sent.state
    return {
        "topic_name": tp.topic,
        "partition_index": tp.partition,
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "partition_epoch": state.zk_version,
        "zk_version": state.zk_version,
        "replicas": sent.replicas,
        "is_new": sent.is_new,
        "offline_replicas": sent.offline,
        "adding_replicas": sent.adding,
        "removing_replicas": sent.removing,
    }


def read_request(name: str, message: Message) -> Sent:
    """The request that a message is. Raises BadInput for one with impossible partitions."""
    epoch = message.get("broker_epoch", UNKNOWN_EPOCH)
    if name == "ControlledShutdown":
        return ControlledShutdownRequest(message["broker_id"], epoch)
    controller = message["controller_id"], message["controller_epoch"]
    if name == "StopReplica":
        plain, topics = message.get("ungrouped_partitions", ()), message.get("topics", ())
        listed = [TopicPartition(one["topic_name"], one["partition_index"]) for one in plain]
        listed += [TopicPartition(topic["name"], number) for topic in topics for number in topic["partition_indexes"]]
        return StopReplicaRequest(*controller, tuple(listed), message["delete_partitions"], epoch)
    states = dict(_read_state(one["topic_name"], one) for one in message.get("ungrouped_partition_states", ()))
    for topic in message.get("topic_states", ()):
        states.update(_read_state(topic["topic_name"], one) for one in topic["partition_states"])
    if name == "LeaderAndIsr":
        leaders = tuple(one["broker_id"] for one in message["live_leaders"])
        return LeaderAndIsrRequest(*controller, states, leaders, epoch)
    if name != "UpdateMetadata":
        raise BadInput(f"{name} is not a request between brokers")
    return UpdateMetadataRequest(*controller, states, tuple(one["id"] for one in message["live_brokers"]), epoch)


def _read_state(topic: str, sent: Message) -> tuple[TopicPartition, PartitionState]:
    version: int = sent["partition_epoch"] if "partition_epoch" in sent else sent["zk_version"]
    state = LeaderAndIsr(sent["leader"], tuple(sent["isr"]), sent["leader_epoch"], version, sent["controller_epoch"])
    lists = [tuple(sent.get(name, ())) for name in ("offline_replicas", "adding_replicas", "removing_replicas")]
    of = PartitionState(state, tuple(sent["replicas"]), sent.get("is_new", False), *lists)
    return TopicPartition(topic, sent["partition_index"]), of


def write_response(response: Response) -> Message:
    """The answer to any of them."""
    named = response.errors.items()
    return {
        "error_code": number_of(response.error),
        "partition_errors": [
            {"topic_name": tp.topic, "partition_index": tp.partition, "error_code": number_of(error)}
            for tp, error in named
        ],
        "remaining_partitions": [
            {"topic_name": tp.topic, "partition_index": tp.partition} for tp in response.remaining
        ],
    }


def read_response(message: Message) -> Response:
    """The contents of an answer."""
    if "markers" in message:
        topics = [topic for marker in message["markers"] for topic in marker["topics"]]
        return Response(errors={tp: name_of(part["error_code"]) for tp, part in parts_of(topics)})
    errors = {
        TopicPartition(one["topic_name"], one["partition_index"]): name_of(one["error_code"])
        for one in message.get("partition_errors", ())
    }
    remaining = tuple(
        TopicPartition(one["topic_name"], one["partition_index"]) for one in message.get("remaining_partitions", ())
    )
    return Response(name_of(message["error_code"]), errors, remaining)
