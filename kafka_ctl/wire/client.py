"""A request sent by hand: its bytes, the way to a broker, and the answer; and an administrator's client.

    message = request("Metadata", 1, {"topics": None})
    answer("Metadata", 1, exchange("127.0.0.1:9092", message))

Fields have the names of the schemas (`schema.py`), or those of Kafka's own tables where these differ: `records` of a
Produce request is `record_set` in Kafka's. The file `field_names.txt` has these.

Bytes begin with their length everywhere. Kafka 2.0.1: clients/NetworkClient.java; common/network/NetworkSend.java;
clients/admin/KafkaAdminClient.java, alterReplicaLogDirs, describeReplicaLogDirs
Kafka 2.4.1: clients/admin/KafkaAdminClient.java, alterPartitionReassignments, listPartitionReassignments
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from io import BufferedIOBase

from kafka_ctl.cluster import ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.errors import ApiException, BadInput, Unavailable, UnknownName, short
from kafka_ctl.paths import blocks
from kafka_ctl.requests import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ApiError,
    DescribeLogDirsRequest,
    ListPartitionReassignmentsRequest,
    LogDirDescription,
    LogDirsRequest,
    Response,
    api_name,
)
from kafka_ctl.wire.codec import Message, decode_message, encode_message, grouped, numbered, parts_of
from kafka_ctl.wire.schema import REQUEST, RESPONSE, Schema, api_key, apis, message_type, name_of

PATIENCE = 10.0
"""Seconds that an answer may take."""


def request(
    api: str, version: int, body: Mapping[str, object], correlation_id: int = 1, client_id: str | None = "me"
) -> bytes:
    """A request as bytes, its length in front; a field that is left out has the schema's default.

    Raises UnknownName for a field that this version does not have, BadInput for a value that its field cannot have.
    """
    kind = message_type(api_key(api), version, REQUEST)
    if not isinstance(body, Mapping):
        raise BadInput(f"{api} request (version {version}): the fields cannot be {short(body)}; they must be a mapping")
    header = {"correlation_id": correlation_id, "client_id": client_id}
    return encode_message(kind, header, _translated(apis()[kind.api_key], version, kind.body, body))


@cache
def _kafkas_names() -> dict[tuple[str, str], dict[str, str]]:
    """By API and place of a structure in its request: the names of the schemas by Kafka's own."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for (line,) in blocks(__package__, "field_names.txt"):
        api, direction, place, kafkas, ours = line.split("\t")
        if direction == REQUEST:
            found.setdefault((api, place), {})[kafkas] = ours
    return found


def _translated(
    api: str, version: int, schema: Schema, given: Mapping[str, object], place: str = ""
) -> dict[str, object]:
    """A structure at this place of a request, with the names of the schemas instead of Kafka's.

    Raises UnknownName for a field that it does not have.
    """
    fields = {field.name: field for field in (*schema.fields, *(field for _, field in schema.tagged))}
    others = {old: new for old, new in _kafkas_names().get((api, place), {}).items() if new in fields}
    of = f"{api} request (version {version})"
    here = f"{place} of {of}" if place else of
    found: dict[str, object] = {}
    for name, value in given.items():
        ours = name if name in fields else others.get(name)
        if ours is None:
            raise UnknownName(f"field of {here}", name, (*fields, *others))
        if ours in found:
            raise BadInput(f"{here}: the field {ours} is given twice, also by Kafka's name for it")
        found[ours] = value
        kind, is_array, inner = fields[ours].kind, fields[ours].is_array, f"{place}.{ours}".lstrip(".")
        if isinstance(kind, str) or value is None:
            continue
        listed = value if is_array else [value]
        if not isinstance(listed, (list, tuple)) or not all(isinstance(one, Mapping) for one in listed):
            wanted = "a list of structures" if is_array else "a structure"
            names = ", ".join(one.name for one in kind.fields)
            raise BadInput(f"{inner} of {of} is {wanted} with the fields {names}; it cannot be {short(value)}")
        translated = [_translated(api, version, kind, one, inner) for one in listed]
        found[ours] = translated if is_array else translated[0]
    return found


def exchange(address: str, message: bytes, seconds: float = PATIENCE) -> bytes:
    """Send bytes to `host:port` on a connection of their own, and return the answer, its length in front.

    `address` may be a list with commas; the first is taken. Raises Unavailable where the connection ends, or nothing
    comes in time.
    """
    host, _, port = address.split(",")[0].rpartition(":")
    if not host or not 0 < (parse_int(port) or 0) < 65536:
        raise BadInput(f"{address!r} is not an address; an example is 127.0.0.1:9092")
    try:
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            connection.sendall(message)
            with connection.makefile("rb") as incoming:
                return read_frame(incoming)
    except (OSError, EOFError) as problem:
        raise Unavailable(f"no answer from {host}:{port}: {problem}") from None


def read_frame(incoming: BufferedIOBase) -> bytes:
    """The next length and so many bytes of a file. Raises EOFError if the file ends before that."""
    head = incoming.read(4)
    data = incoming.read(int.from_bytes(head, "big")) if len(head) == 4 else b""
    if len(head) < 4 or len(data) < int.from_bytes(head, "big"):
        raise EOFError("the connection was closed")
    return bytes(head + data)


def answer(api: str, version: int, message: bytes) -> Message:
    """The fields of a response, without the header."""
    return decode_message(message_type(api_key(api), version, RESPONSE), message[4:])[1]


def ask(address: str, api: str, version: int, body: Mapping[str, object], client_id: str | None = "me") -> Message:
    """A request by its fields, sent to `host:port`; the fields of the response."""
    return answer(api, version, exchange(address, request(api, version, body, client_id=client_id)))


class AdminClient:
    """The requests of the reassignment tool to the brokers of a cluster, each on a connection of its own.

    `bootstrap` is a list of `host:port` with commas, of which one must answer. Connections are neither encrypted nor
    authenticated.
    """

    def __init__(self, bootstrap: str, client_id: str = "reassign-partitions-tool") -> None:
        self.bootstrap, self.client_id = [part.strip() for part in bootstrap.split(",") if part.strip()], client_id

    async def call(self, broker: int, asked: LogDirsRequest) -> Response:
        """Ask one broker. Raises ConnectionError if it is not known, or does not answer."""
        return await asyncio.to_thread(self._call, broker, asked)

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, ApiError]:
        """Ask the controller to move partitions, or with None to cancel; its refusals."""
        response = await asyncio.to_thread(self._ask_controller, AlterPartitionReassignmentsRequest(targets))
        return dict(response.refused)

    async def list_reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """Ask the controller for the partitions that are moving."""
        response = await asyncio.to_thread(self._ask_controller, ListPartitionReassignmentsRequest())
        return dict(response.moving)

    def _metadata(self) -> tuple[dict[int, str], int]:
        """The address of each broker, and the controller. Raises Unavailable if no bootstrap server answers."""
        trouble = Unavailable("--bootstrap-server names no broker; give a list such as 127.0.0.1:9092")
        for address in self.bootstrap:
            try:
                found = ask(address, "Metadata", 1, {"topics": []}, self.client_id)
            except Unavailable as error:
                trouble = error
                continue
            return {b["node_id"]: f"{b['host']}:{b['port']}" for b in found["brokers"]}, found["controller_id"]
        raise trouble

    def _call(self, broker: int, asked: LogDirsRequest) -> Response:
        try:
            address = self._metadata()[0].get(broker)
            if address is None:
                raise ConnectionRefusedError(f"broker {broker} is not in the metadata of the cluster")
            return self._ask(address, asked)
        except Unavailable as error:
            raise ConnectionResetError(str(error)) from None

    def _ask(self, address: str, asked: Asked) -> Response:
        return read_answer(asked, ask(address, api_name(asked), 0, write_body(asked), self.client_id))

    def _ask_controller(self, asked: Asked) -> Response:
        brokers, controller = self._metadata()
        if controller not in brokers:
            raise Unavailable("the cluster has no controller now")
        response = self._ask(brokers[controller], asked)
        if response.error is not None:
            raise ApiException(response.error, response.text or response.error)
        return response


Asked = LogDirsRequest | AlterPartitionReassignmentsRequest | ListPartitionReassignmentsRequest
"""The requests of an administrator that `write_body` writes, all in version 0."""


def write_body(asked: Asked) -> Message:
    """A request as the fields of its version 0."""
    match asked:
        case AlterReplicaLogDirsRequest(dirs):
            paths = {
                path: [tp for tp, wanted in dirs.items() if wanted == path] for path in dict.fromkeys(dirs.values())
            }
            return {"dirs": [{"path": path, "topics": numbered(tps)} for path, tps in paths.items()]}
        case DescribeLogDirsRequest(partitions):
            return {"topics": numbered(partitions, "topic")}
        case AlterPartitionReassignmentsRequest(targets):
            entries = [(tp, {"replicas": to}) for tp, to in targets.items()]
            return {"timeout": int(1000 * PATIENCE), "topics": grouped(entries)}
    return {"timeout": int(1000 * PATIENCE), "topics": None}


def read_answer(asked: Asked, message: Message) -> Response:
    """The response of version 0 to a request."""
    error, text = name_of(message.get("error_code", 0)), message.get("error_message")
    match asked:
        case AlterReplicaLogDirsRequest():
            results = parts_of(message["results"], "topic_name")
            return Response(errors={tp: name_of(part["error_code"]) for tp, part in results})
        case DescribeLogDirsRequest():
            return Response(log_dirs_described=_described(message["results"]))
        case AlterPartitionReassignmentsRequest():
            refused = {
                tp: ApiError(code, part["error_message"] or "")
                for tp, part in parts_of(message["responses"])
                if (code := name_of(part["error_code"])) is not None
            }
            return Response(error, text=text, refused=refused)
    lists = "replicas", "adding_replicas", "removing_replicas"
    moving = {tp: ReplicaAssignment(*(tuple(part[name]) for name in lists)) for tp, part in parts_of(message["topics"])}
    return Response(error, text=text, moving=moving)


def _described(dirs: Iterable[Message]) -> dict[TopicPartition, LogDirDescription]:
    """By partition, the log directories of its copy and of its future copy, as far as they can be read."""
    found: dict[TopicPartition, LogDirDescription] = {}
    for each in dirs:
        for tp, part in parts_of(each["topics"]) if each["error_code"] == 0 else ():
            known = found.get(tp, LogDirDescription(None, None))
            place = "future" if part["is_future_key"] else "current"
            found[tp] = known._replace(**{place: each["log_dir"]})
    return found
