"""The requests of controllers and brokers to each other, and of administrators: as bytes, as values, and their answers.

Each `write_` makes a message of a request or response, each `read_` the reverse; versions that group by topic and those
that do not are both served. The handlers let the broker do what is asked.
Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java,
ControlledShutdownRequest.java; server/KafkaApis.scala, handleLeaderAndIsrRequest ... handleControlledShutdownRequest;
2.4.1: LeaderAndIsrRequest.json ...; handleElectReplicaLeader, handleAlterPartitionReassignmentsRequest,
handleListPartitionReassignmentsRequest, handleDeleteRecordsRequest, handleDescribeLogDirsRequest,
handleAlterReplicaLogDirsRequest; server/ReplicaManager.scala, describeLogDirs (KIP-107, KIP-113)
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_ctl.brokers.apis import TIMED_OUT
from kafka_ctl.brokers.delayed_operations import NO_LOW_WATERMARK
from kafka_ctl.cluster import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import BadInput
from kafka_ctl.requests import (
    STORAGE_ERROR,
    UNKNOWN_EPOCH,
    UNKNOWN_PARTITION,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ApiError,
    ControlledShutdownRequest,
    DeleteRecordsRequest,
    ElectLeadersRequest,
    LeaderAndIsrRequest,
    ListPartitionReassignmentsRequest,
    PartitionState,
    Request,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    WriteTxnMarkersRequest,
    api_name,
)
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import Message, encode_message, errors_by_topic, grouped, named, numbered, parts_of
from kafka_ctl.wire.schema import REQUEST, api_key, message_type, name_of, number_of
from kafka_ctl.wire.service import Handler, Service

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
KINDS = (ElectionType.PREFERRED, ElectionType.UNCLEAN)
"""The election types by number (`ElectionType`)."""


# Requests between brokers


def request_bytes(
    request: Sent, version: int, endpoints: Mapping[int, Endpoint], correlation_id: int = 1, client_id: str = ""
) -> bytes:
    """A request as it travels, its length in front."""
    kind = message_type(api_key(api_name(request)), version, REQUEST)
    header = {"correlation_id": correlation_id, "client_id": client_id}
    return encode_message(kind, header, write_request(request, version, endpoints))


def write_request(request: Sent, version: int, endpoints: Mapping[int, Endpoint]) -> Message:
    """A request as a message; `endpoints` are host, port and rack of each broker."""
    if isinstance(request, ControlledShutdownRequest):
        return {"broker_id": request.broker, "broker_epoch": request.broker_epoch}
    if isinstance(request, WriteTxnMarkersRequest):
        topics = numbered(request.partitions, of="partition_indexes")
        marker = {"producer_id": request.producer, "producer_epoch": request.producer_epoch, "topics": topics}
        end = {"transaction_result": request.commits, "coordinator_epoch": request.coordinator_epoch}
        return {"markers": [marker | end]}
    message: Message = {
        "controller_id": request.controller,
        "controller_epoch": request.controller_epoch,
        "broker_epoch": request.broker_epoch,
    }
    groups = version >= GROUPED[api_name(request)]
    match request:
        case StopReplicaRequest(partitions=partitions, delete=delete):
            message["delete_partitions"] = delete
            if groups:
                return message | {"topics": numbered(partitions, of="partition_indexes")}
            return message | {"ungrouped_partitions": [_place(tp) for tp in partitions]}
        case LeaderAndIsrRequest(live_leaders=live):
            there = [(id, *endpoints[id][:2]) for id in live]
            message["live_leaders"] = [{"broker_id": id, "host_name": host, "port": port} for id, host, port in there]
        case UpdateMetadataRequest(live_brokers=live):
            message["live_brokers"] = [_live(id, *endpoints[id]) for id in live]
    states = [(tp, _place(tp) | _state(sent)) for tp, sent in request.partitions.items()]
    if groups:
        return message | {"topic_states": grouped(states, "topic_name", "partition_states")}
    return message | {"ungrouped_partition_states": [sent for _, sent in states]}


def _place(tp: TopicPartition) -> Message:
    """A partition where none are grouped by topic."""
    return {"topic_name": tp.topic, "partition_index": tp.partition}


def _placed(message: Message) -> TopicPartition:
    """The partition that such a structure names."""
    return TopicPartition(message["topic_name"], message["partition_index"])


def _live(id: int, host: str, port: int, rack: str | None) -> Message:
    there = {"port": port, "host": host, "listener": LISTENER, "security_protocol": PLAINTEXT}
    return {"id": id, "endpoints": [there], "rack": rack, "v0_host": host, "v0_port": port}


def read_endpoints(message: Message) -> dict[int, tuple[str, int]]:
    """The addresses of the live brokers of an UpdateMetadata request."""
    found = {}
    for one in message.get("live_brokers", ()):
        old = {"host": one.get("v0_host", ""), "port": one.get("v0_port", -1)}
        there = one["endpoints"][0] if one.get("endpoints") else old
        found[one["id"]] = there["host"], there["port"]
    return found


def _state(sent: PartitionState) -> Message:
    state = sent.state
    return {
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


def _read_state(sent: Message) -> PartitionState:
    version: int = sent["partition_epoch"] if "partition_epoch" in sent else sent["zk_version"]
    state = LeaderAndIsr(sent["leader"], tuple(sent["isr"]), sent["leader_epoch"], version, sent["controller_epoch"])
    lists = [tuple(sent.get(name, ())) for name in ("offline_replicas", "adding_replicas", "removing_replicas")]
    return PartitionState(state, tuple(sent["replicas"]), sent.get("is_new", False), *lists)


def read_request(name: str, message: Message) -> Sent:
    """The request that a message is. Raises BadInput for one with impossible partitions."""
    epoch = message.get("broker_epoch", UNKNOWN_EPOCH)
    if name == "ControlledShutdown":
        return ControlledShutdownRequest(message["broker_id"], epoch)
    controller = message["controller_id"], message["controller_epoch"]
    if name == "StopReplica":
        plain = tuple(dict.fromkeys(map(_placed, message.get("ungrouped_partitions", ()))))
        listed = plain + named(message.get("topics", ()), of="partition_indexes")
        return StopReplicaRequest(*controller, listed, message["delete_partitions"], epoch)
    states = {_placed(one): _read_state(one) for one in message.get("ungrouped_partition_states", ())}
    by_topic = parts_of(message.get("topic_states", ()), "topic_name", "partition_states")
    states |= {tp: _read_state(one) for tp, one in by_topic}
    if name == "LeaderAndIsr":
        leaders = tuple(one["broker_id"] for one in message["live_leaders"])
        return LeaderAndIsrRequest(*controller, states, leaders, epoch)
    if name != "UpdateMetadata":
        raise BadInput(f"{name} is not a request between brokers")
    return UpdateMetadataRequest(*controller, states, tuple(one["id"] for one in message["live_brokers"]), epoch)


def write_response(response: Response) -> Message:
    """The answer to any of them."""
    return {
        "error_code": number_of(response.error),
        "partition_errors": [_place(tp) | {"error_code": number_of(error)} for tp, error in response.errors.items()],
        "remaining_partitions": [_place(tp) for tp in response.remaining],
    }


def read_response(message: Message) -> Response:
    """The contents of an answer."""
    if "markers" in message:
        topics = [topic for marker in message["markers"] for topic in marker["topics"]]
        return Response(errors={tp: name_of(part["error_code"]) for tp, part in parts_of(topics)})
    errors = {_placed(one): name_of(one["error_code"]) for one in message.get("partition_errors", ())}
    remaining = tuple(_placed(one) for one in message.get("remaining_partitions", ()))
    return Response(name_of(message["error_code"]), errors, remaining)


# Handlers


async def _received(service: Service, request: Request, number: int = -1) -> Response:
    """Let the broker handle it; a broker of this lab that has asked learns of the record of the answer."""
    response, seq = await service.broker.receive(request, CAUSE.get())
    if number in service.shared.answered:
        service.shared.answered[number] = seq
    return response


def between_brokers(name: str) -> Handler:
    """The handler of a request that brokers send each other."""

    async def handle(service: Service, version: int, request: Message) -> Message:
        if name == "UpdateMetadata":
            service.shared.endpoints |= read_endpoints(request)
        sent = read_request(name, request)
        response = await _received(service, sent, request["correlation_id"])
        if isinstance(sent, StopReplicaRequest) and sent.delete:
            service.shared.forget_deleted(sent.partitions)
        if isinstance(sent, UpdateMetadataRequest):
            if response.error is None:
                leaders = {tp: each.state.leader for tp, each in sent.partitions.items()}
                service.shared.groups.forget(tp for tp, leader in leaders.items() if leader == LEADER_DURING_DELETE)
            service.coordinator.metadata_changed()
        return write_response(response)

    return handle


async def elect_leaders(service: Service, version: int, request: Message) -> Message:
    """Elect the preferred leaders, or unclean ones, of some partitions or of all (KIP-460)."""
    asked = request["topic_partitions"]
    partitions = None if asked is None else named(asked, "topic")
    number = request.get("election_type", 0)
    if number not in range(len(KINDS)):
        wrong = _error_fields(ApiError("UNKNOWN_SERVER_ERROR", f"Value {number} must be one of [PREFERRED, UNCLEAN]"))
        refused = grouped([(tp, wrong) for tp in partitions or ()], "topic", "partition_result", "partition_id")
        return {"error_code": wrong["error_code"], "replica_election_results": refused}
    response = await _received(service, ElectLeadersRequest(KINDS[number], partitions, request["timeout"] / 1000))
    results = [(tp, _error_fields(error)) for tp, error in response.elections.items()]
    return {
        "error_code": number_of(response.error),
        "replica_election_results": grouped(results, "topic", "partition_result", "partition_id"),
    }


async def alter_reassignments(service: Service, version: int, request: Message) -> Message:
    """Move partitions, or with null replicas take that back (KIP-455)."""
    targets = {
        tp: None if part["replicas"] is None else tuple(part["replicas"]) for tp, part in parts_of(request["topics"])
    }
    response = await _received(service, AlterPartitionReassignmentsRequest(targets))
    results = [(tp, _error_fields(response.refused.get(tp))) for tp in targets]
    return {
        "error_code": number_of(response.error),
        "error_message": response.text or "",
        "responses": grouped(results) if response.error is None else [],
    }


async def list_reassignments(service: Service, version: int, request: Message) -> Message:
    """The partitions that are being moved (KIP-455)."""
    asked = request["topics"]
    partitions = None if asked is None else named(asked, "name", "partition_indexes")
    response = await _received(service, ListPartitionReassignmentsRequest(partitions))
    moving = [
        (tp, {"replicas": found.replicas, "adding_replicas": found.adding, "removing_replicas": found.removing})
        for tp, found in response.moving.items()
    ]
    return {"error_code": number_of(response.error), "error_message": response.text or "", "topics": grouped(moving)}


def _error_fields(error: ApiError | None) -> Message:
    """An error as it is sent; a timeout is sent without a text, as clients have their own.

    Kafka 2.4.1: server/DelayedElectLeader.scala, onComplete
    """
    text = error.text if error and error != TIMED_OUT else None
    return {"error_code": number_of(error.code if error else None), "error_message": text}


async def delete_records(service: Service, version: int, request: Message) -> Message:
    """Let logs begin at other offsets; answered when all live replicas have done so, or the time is over."""
    asked = {tp: part["offset"] for tp, part in parts_of(request["topics"])}
    known = {tp: offset for tp, offset in asked.items() if tp in service.broker.metadata}
    response = await _received(service, DeleteRecordsRequest(known, max(0, request["timeout"]) / 1000))
    marks = {tp: response.low_watermarks.get(tp, NO_LOW_WATERMARK) for tp in asked}
    errors = {tp: response.errors.get(tp, UNKNOWN_PARTITION) for tp in asked}
    parts = [(tp, {"low_watermark": marks[tp], "error_code": number_of(errors[tp])}) for tp in asked]
    return {"topics": grouped(parts)}


async def describe_log_dirs(service: Service, version: int, request: Message) -> Message:
    """Every log directory with its copies, those that are asked for or all, and their sizes.

    The bytes of deleted records count: the segment that they are in is still there.
    """
    asked = request["topics"]
    wanted = None if asked is None else named(asked, "topic")
    results = []
    for path, copies in service.broker.log_dirs.directories(wanted).items():
        parts = [
            (one.partition, {"partition_size": one.size, "offset_lag": one.lag, "is_future_key": one.is_future})
            for one in copies or ()
        ]
        error = number_of(STORAGE_ERROR if copies is None else None)
        results.append({"error_code": error, "log_dir": path, "topics": grouped(parts)})
    return {"results": results}


async def alter_replica_log_dirs(service: Service, version: int, request: Message) -> Message:
    dirs = {tp: path["path"] for path in request["dirs"] for tp in named(path["topics"])}
    response = await _received(service, AlterReplicaLogDirsRequest(dirs))
    return {"results": errors_by_topic(response.errors, "topic_name")}
