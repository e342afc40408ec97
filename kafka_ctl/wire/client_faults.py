"""Faults between clients and the brokers of a lab: connections that are cut, slow or throttled, and errors as answers.

Separate from `service.py` because that answers requests, and these come before an answer. Brokers of the lab are not
concerned; the faults between them are commands of the lab (`lab/faults.py`).
Kafka 2.4.1: common/requests/AbstractRequest.java, getErrorResponse, and what overrides it
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.schema import RESPONSE, Schema, api_key, message_type, number_of

KINDS = (
    *("Produce", "Fetch", "ListOffsets", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat"),
    *("LeaveGroup", "OffsetCommit", "OffsetFetch", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("TxnOffsetCommit", "EndTxn", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords"),
)
"""The requests that can be answered with an error on demand."""
KEYS = ("name", "index", "partition_index")
"""The names that messages have for the name of a topic and the number of a partition."""


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

        Raises UnknownName for an unknown kind or error, BadInput for NONE: the request would only seem to be done.
        """
        if kind not in KINDS:
            raise UnknownName("kind of request", kind, KINDS)
        if error == "NONE":
            raise BadInput("error cannot be NONE, which is success; an example is NOT_LEADER_FOR_PARTITION")
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

    def heal(self) -> None:
        """End all of them."""
        self.cut, self.delays, self.throttles, self.errors = set(), {}, {}, []
        self._healed.set()
        self._healed = asyncio.Event()


def error_response(kind: str, version: int, request: Mapping[str, object], error: str) -> Message:
    """The answer to a request that fails as a whole: each topic and partition that it names has the error."""
    return _failed(message_type(api_key(kind), version, RESPONSE).body, request, number_of(error))


def _failed(schema: Schema, asked: Mapping[str, object], code: int) -> Message:
    """A structure with the error, and -1 for every number but the throttle time, as Kafka has it."""
    numbers = [one.name for one in schema.fields if not one.is_array and str(one.kind).startswith("int")]
    message: Message = {name: 0 if name.startswith("throttle_time") else -1 for name in numbers}
    message |= {name: code for name in numbers if name.endswith("error_code")}
    for field in schema.fields:
        if field.name in KEYS and field.name in asked:
            message[field.name] = asked[field.name]
        elif field.is_array and isinstance(field.kind, Schema):
            given = _elements(asked, field.name)
            message |= {field.name: [_failed(field.kind, one, code) for one in given]} if given is not None else {}
    return message


def _elements(asked: Mapping[str, object], answer: str) -> list[Message] | None:
    """The topics or partitions of a request, or of its topic, that an array of the answer is about; None for others."""
    word = "partition" if "partition" in answer else "topic"
    if not any(known in answer for known in ("partition", "topic", "responses", "results")):
        return None
    for name, listed in asked.items():
        if word in name and isinstance(listed, (list, tuple)):
            return [one if isinstance(one, dict) else dict.fromkeys(KEYS, one) for one in listed]
    return None
