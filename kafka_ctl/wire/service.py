"""The answer of a broker to one request that came over the wire.

A request that cannot be understood ends its connection, as in Kafka; `RefusedFrame` says why, and the trace repeats it.
One exception: a client that sends ApiVersions in a version that we do not know gets an error, in version 0.
Kafka 2.0.1: common/requests/RequestContext.java, parseRequest; network/SocketServer.scala, processCompletedReceives
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.client_faults import ClientFaults, error_response
from kafka_ctl.wire.codec import Malformed, Message, decode_message, encode_message
from kafka_ctl.wire.contents import Contents, Kept
from kafka_ctl.wire.fetch_sessions import FetchSessions
from kafka_ctl.wire.schema import REQUEST, RESPONSE, Refusal, api_key, apis, message_type, number_of
from kafka_ctl.wire.transaction_coordinator import TransactionCoordinator, TransactionLog
from kafka_ctl.wire.versions import announced

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.simulation.world import World
    from kafka_ctl.wire.groups import Groups

API_VERSIONS = 18
LOOK = 0.02
"""Seconds between two looks whether a paused process has resumed, or a batch has been appended."""
MOST_UNSENT = 64 << 20
"""Bytes of answers on their way from one broker; with more, fetches are answered without records."""
MOST_REFUSALS = 1000
"""So many refusals of one process are recorded; more are only counted."""
LEVELS = """
    root=INFO org.apache.zookeeper=INFO kafka=INFO org.apache.kafka=INFO kafka.request.logger=WARN
    kafka.network.RequestChannel$=WARN kafka.controller=TRACE kafka.log.LogCleaner=INFO state.change.logger=TRACE
    kafka.authorizer.logger=INFO
"""
LOGGERS: dict[str, str] = dict(re.findall(r"(\S+)=(\S+)", LEVELS))
"""The loggers of a broker and their levels. Kafka 2.4.1: config/log4j.properties"""


class RefusedFrame(Refusal):
    """A request that this broker does not understand: its connection is closed."""


class Unsent:
    """Bytes of answers of one broker that no client has taken yet, so that slow clients do not fill its memory."""

    def __init__(self) -> None:
        self.size = 0

    @property
    def share(self) -> int:
        """The part that the next answer may have; none where all is taken."""
        return max(0, MOST_UNSENT - self.size) // 4


class Holding:
    """The bytes of one connection's last answer, counted in `Unsent`."""

    def __init__(self, unsent: Unsent) -> None:
        self.unsent, self.size = unsent, 0
        self.muted_until = 0.0
        """The time until which the connection is muted because it was throttled."""

    def hold(self, size: int) -> None:
        """So many bytes are to be sent, and no others."""
        self.unsent.size += size - self.size
        self.size = size


class Administrator(Protocol):
    """The changes of topics that brokers make on request."""

    def check_name(self, topic: str) -> None:
        """Raise ApiException for a name that no topic can have."""

    async def create_topic(
        self,
        topic: str,
        partitions: int | None,
        replication_factor: int | None,
        assignment: Mapping[int, Sequence[int]] | None,
        config: Mapping[str, object] | None,
        racks: Mapping[int, str | None],
        validate_only: bool = False,
    ) -> None:
        """Create a topic, by numbers or by an assignment."""

    async def add_partitions(
        self,
        topic: str,
        total: int,
        racks: Mapping[int, str | None],
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Give a topic more partitions."""

    async def delete_topic(self, topic: str, by_request: bool = False) -> None:
        """Mark a topic for deletion; on request also one that is marked, and one of Kafka's own."""

    def record_request(self, command: str, **fields: object) -> None:
        """Record a command as the cause of what follows."""


class Shared:
    """The state that the brokers of a lab share for clients: records, groups, transactions, an administrator, and their
    ports."""

    def __init__(self, world: World, admin: Administrator, groups: Groups) -> None:
        self.world, self.admin, self.groups = world, admin, groups
        self.contents = Contents(world.last_value)
        self.ports: dict[int, int] = {}
        self.endpoints: dict[int, tuple[str, int]] = {}
        """Host and port of every broker that was announced last, others' too."""
        self.causes: dict[int, int | None] = {}
        """By correlation id: the record that caused a request of another broker of this lab."""
        self.answered: dict[int, int] = {}
        """By correlation id: the record of the answer to it."""
        self.transaction_log = TransactionLog()
        self.client_faults = ClientFaults()

    def forget_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the batches of those of the partitions of which no broker has a log any more."""
        disks = [broker.disk for broker in self.world.brokers.values()]
        self.contents.forget({tp for tp in partitions if not any(tp in disk.logs for disk in disks)})


class Service:
    """One broker process as its clients see it."""

    def __init__(self, broker: Broker, shared: Shared, handlers: dict[str, Handler]) -> None:
        self.broker, self.shared, self.handlers = broker, shared, handlers
        self.versions = announced(broker.generation)
        self.refusals = 0
        self.unsent = Unsent()
        self.coordinator = TransactionCoordinator(broker, shared.transaction_log)
        self.loggers = dict(LOGGERS)
        """The levels of this process's loggers."""
        self.fetch_sessions = FetchSessions(lambda: int(broker.clock.now() * 1000), broker.id)
        self.sent_high_watermarks: dict[tuple[TopicPartition, int], int] = {}
        """By partition and follower: the high watermark that was sent last."""
        self.appending: list[tuple[TopicPartition, Kept]] = []
        """The batches that requests are appending."""

    async def answer(self, frame: bytes, holding: Holding) -> bytes | None:
        """The whole response to a request, None where none is wanted.

        Raises RefusedFrame for what is no request, and for a response with a text that is longer than a message allows.
        """
        if len(frame) < 8:
            raise RefusedFrame("INVALID_REQUEST", f"a request of {len(frame)} bytes")
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        name = apis().get(key, "")
        if name not in self.versions:
            raise RefusedFrame("INVALID_REQUEST", f"API key {key}{f' ({name})' * bool(name)} is unknown")
        low, high = self.versions[name]
        if not low <= version <= high:
            if key == API_VERSIONS:
                return self._versions_unsupported(frame)
            raise RefusedFrame("UNSUPPORTED_VERSION", f"{name} in version {version}; known: {low} to {high}")
        kind = message_type(key, version, REQUEST)
        try:
            header, request = decode_message(kind, frame)
        except Malformed as error:
            raise RefusedFrame("INVALID_REQUEST", f"{name} version {version}: {error}") from None
        number = header["correlation_id"]
        CAUSE.set(self.shared.causes.pop(number, None))
        request |= {"correlation_id": number, "client_id": header.get("client_id"), "holding": holding}
        await self._resumed()
        if number in self.shared.answered:  # another broker of this lab asks
            response = await self.handlers[name](self, version, request)
        else:
            response = await self._client_answer(name, version, request)
        await self._resumed()
        if response is None:
            return None
        try:
            return encode_message(message_type(key, version, RESPONSE), {"correlation_id": number}, response)
        except BadInput as error:
            raise RefusedFrame("UNKNOWN_SERVER_ERROR", f"{name} version {version}, the response: {error}") from None

    async def _resumed(self) -> None:
        """Wait while this process is paused."""
        while self.broker.is_paused:
            await self.broker.clock.sleep(LOOK, background=True)

    async def _client_answer(self, name: str, version: int, request: Message) -> Message | None:
        """The answer to a client, subject to the faults between clients and this broker."""
        faults, clock, holding = self.shared.client_faults, self.broker.clock, request["holding"]
        if holding.muted_until > clock.now():
            await asyncio.sleep(holding.muted_until - clock.now())
        await faults.reached(self.broker.id)
        request["error"] = error = faults.error_for(name, self.broker.id)
        if error is None or name in ("Fetch", "Metadata"):  # they heed it themselves
            response = await self.handlers[name](self, version, request)
        elif request.get("acks") == 0:
            raise RefusedFrame(error, "error during produce request with ack=0")
        else:
            response = error_response(name, version, request, error)
        await asyncio.sleep(faults.delays.get(self.broker.id, 0.0))
        await faults.reached(self.broker.id)
        if response is not None and (seconds := faults.throttles.get(self.broker.id)):
            response["throttle_time"] = int(seconds * 1000)
            holding.muted_until = clock.now() + seconds
        return response

    def _versions_unsupported(self, frame: bytes) -> bytes:
        """The answer UNSUPPORTED_VERSION, in version 0; since 2.4 it names the versions of ApiVersions (KIP-511).

        Kafka 2.4.1: common/requests/ApiVersionsRequest.java, getErrorResponse
        """
        number = int.from_bytes(frame[4:8], "big", signed=True)
        known = [one for one in self.api_keys() if one["api_key"] == API_VERSIONS]
        named = known if self.broker.generation.requests.names_supported_versions else []
        body = {"error_code": number_of("UNSUPPORTED_VERSION"), "api_keys": named}
        return encode_message(message_type(API_VERSIONS, 0, RESPONSE), {"correlation_id": number}, body)

    def api_keys(self) -> list[Message]:
        """The versions that this broker announces."""
        spans = {api_key(name): span for name, span in self.versions.items()}
        return [{"api_key": key, "min_version": spans[key][0], "max_version": spans[key][1]} for key in sorted(spans)]

    def refused(self, error: str, text: str, action: str = "closed-connection") -> None:
        """Record that a connection was closed because of what came over it, or that records were refused."""
        self.refusals += 1
        if self.refusals <= MOST_REFUSALS:
            CAUSE.set(None)
            self.broker.record(action, error=error, detail=text)


Handler = Callable[[Service, int, Message], Awaitable[Message | None]]
"""Answers one kind of request, given its version; None where the client wants no answer."""
