"""Faults between clients and the brokers of a lab: connections that are cut, slow or throttled, and errors as answers.

Separate from `service.py` because that answers requests, and these come before an answer. Brokers of the lab are not
concerned; the faults between them are commands of the lab (`lab/faults.py`).
Kafka 2.4.1: common/requests/AbstractRequest.java, getErrorResponse, and what overrides it
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_ctl.errors import UnknownName
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.schema import REQUEST, RESPONSE, Field, Schema, api_key, message_type, number_of

KINDS = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat"),
    *("LeaveGroup", "OffsetCommit", "OffsetFetch", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("TxnOffsetCommit", "EndTxn", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords"),
)
"""The requests that can be answered with an error on demand."""
INDEXES = ("index", "partition_index")
"""The names that messages have for the number of a partition."""


@dataclass
class RequestedErrors:
    """So many requests of a kind that shall be answered with an error, by this broker or (None) by any."""

    kind: str
    error: str
    requests: int
    broker: int | None


class ClientFaults:
    """Faults between the clients and the brokers of a lab, by broker."""

    def __init__(self) -> None:
        self.cut: set[int] = set()
        """Brokers that answer no client; what they are asked waits."""
        self.delays: dict[int, float] = {}
        """Seconds that each answer is later."""
        self.throttles: dict[int, float] = {}
        """Seconds that each answer names as `throttle_time_ms`, and after it the connection is muted (KIP-219)."""
        self.errors: list[RequestedErrors] = []
        self._healed = asyncio.Event()

    def demand(self, kind: str, error: str, requests: int, broker: int | None) -> None:
        """Answer the next requests of a kind with an error.

        Raises UnknownName for an unknown kind or error.
        """
        if kind not in KINDS:
            raise UnknownName("kind of request", kind, KINDS)
        number_of(error)
        self.errors.append(RequestedErrors(kind, error, requests, broker))

    async def reached(self, broker: int) -> None:
        """Wait while a broker is cut off."""
        while broker in self.cut:
            await self._healed.wait()

    def error_for(self, kind: str, broker: int) -> str | None:
        """The error for this request, which counts as one of those that were demanded; None for none."""
        for demanded in self.errors:
            if demanded.kind == kind and demanded.broker in (None, broker):
                demanded.requests -= 1
                self.errors = [one for one in self.errors if one.requests]
                return demanded.error
        return None

    def heal(self, broker: int | None = None) -> None:
        """End the cuts (of one broker, or of all and everything else as well)."""
        self.cut = set() if broker is None else self.cut - {broker}
        if broker is None:
            self.delays, self.throttles, self.errors = {}, {}, []
        self._healed.set()
        self._healed = asyncio.Event()


def error_response(kind: str, version: int, request: Mapping[str, object], error: str) -> Message:
    """The answer to a request that fails as a whole: each topic and partition that it names has the error."""
    asked = message_type(api_key(kind), version, REQUEST).body
    answer = message_type(api_key(kind), version, RESPONSE).body
    code = number_of(error)
    topics = _array(answer, ("topic", "responses", "results"))
    named = _array(asked, ("topic",))
    message = _failed(answer, code)
    if topics is not None and named is not None:
        message[topics.name] = [_topic(topics, one, code) for one in _elements(request[named.name])]
    return message


def _failed(schema: Schema, code: int) -> Message:
    """A structure with the error, and -1 for every number but the throttle time, as Kafka has it."""
    numbers = {one.name: -1 for one in schema.fields if not one.is_array and str(one.kind).startswith("int")}
    codes = {name: code for name in numbers if name.endswith("error_code")}
    return numbers | {name: 0 for name in numbers if name.startswith("throttle_time")} | codes


def _topic(field: Field, given: object, code: int) -> Message:
    assert isinstance(field.kind, Schema)
    topic = given if isinstance(given, dict) else {"name": given}
    message = _failed(field.kind, code) | {"name": topic["name"]}
    partitions = _array(field.kind, ("partition",))
    if partitions is not None and isinstance(partitions.kind, Schema):
        names = [one.name for one in partitions.kind.fields]
        key = next(name for name in INDEXES if name in names)
        asked = next(value for name, value in topic.items() if "partition" in name)
        message[partitions.name] = [_failed(partitions.kind, code) | {key: _number(one)} for one in _elements(asked)]
    return message


def _number(partition: object) -> int:
    """The number of a partition, which a request names alone or in a structure."""
    if isinstance(partition, dict):
        return int(partition[next(name for name in INDEXES if name in partition)])
    return int(str(partition))


def _array(schema: Schema, words: Iterable[str]) -> Field | None:
    """The first array whose name has one of these words."""
    return next((one for one in schema.fields if one.is_array and any(word in one.name for word in words)), None)


def _elements(array: object) -> Iterator[object]:
    yield from array if isinstance(array, (list, tuple)) else ()
