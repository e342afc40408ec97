"""The requests between controller and brokers, and their answers.

Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java,
ControlledShutdownRequest.java; 2.4.1: AlterPartitionReassignmentsRequest.java, ListPartitionReassignmentsRequest.java;
2.0.1: AlterReplicaLogDirsRequest.java, DescribeLogDirsRequest.java, DeleteRecordsRequest.java; 2.4.1:
ElectLeadersRequest.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_ctl.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.election import ElectionType

UNKNOWN_EPOCH = -1
"""The broker epoch in a request whose sender knows nothing of broker epochs (before 2.2)."""
PRODUCE_TIMEOUT = 30.0
"""Seconds a produce request waits for the in-sync replicas: the producer's `request.timeout.ms`."""
ALL = -1
"""The value of `acks=all` in a produce request."""
NOT_LEADER, UNKNOWN_PARTITION = "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"
STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
FENCED, UNKNOWN_LEADER_EPOCH = "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"
API_TIMEOUT = 30.0
"""Seconds an administrator's request to the controller waits for its answer."""


class PartitionState(NamedTuple):
    """One partition's part of a LeaderAndIsr request.

    LeaderAndIsr fills `is_new`, `adding` and `removing`, UpdateMetadata `offline` (assigned replicas not online).
    """

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    is_new: bool = False
    offline: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class LeaderAndIsrRequest(NamedTuple):
    """You lead, or follow, these partitions."""

    controller: int
    controller_epoch: int
    partitions: Mapping[TopicPartition, PartitionState]
    live_leaders: tuple[int, ...] = ()
    broker_epoch: int = UNKNOWN_EPOCH


class UpdateMetadataRequest(NamedTuple):
    """These brokers are alive, and so the partitions are led."""

    controller: int
    controller_epoch: int
    partitions: Mapping[TopicPartition, PartitionState]
    live_brokers: tuple[int, ...] = ()
    broker_epoch: int = UNKNOWN_EPOCH


class StopReplicaRequest(NamedTuple):
    """Stop copying these partitions, and delete them if `delete` says so."""

    controller: int
    controller_epoch: int
    partitions: tuple[TopicPartition, ...]
    delete: bool = False
    broker_epoch: int = UNKNOWN_EPOCH


class ControlledShutdownRequest(NamedTuple):
    """I want to leave: please take my leaderships."""

    broker: int
    broker_epoch: int = UNKNOWN_EPOCH


class ProduceRequest(NamedTuple):
    """A producer's records for one partition; `acks` is 0, 1, or -1 for all in-sync replicas, for which it waits
    `timeout` seconds at most. `sizes` has the bytes of each record, or nothing where they have none."""

    partition: TopicPartition
    values: Sequence[int]
    acks: int
    sizes: Sequence[int] = ()
    timeout: float = PRODUCE_TIMEOUT


class WriteTxnMarkersRequest(NamedTuple):
    """A coordinator has decided: end this producer's transaction in your partitions (Kafka 0.11, KIP-98)."""

    producer: int
    producer_epoch: int
    commits: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]


class DeleteRecordsRequest(NamedTuple):
    """An administrator wants all records below these offsets gone, -1 for the high watermark (Kafka 0.11, KIP-107).

    The answer waits `timeout` seconds at most until every live replica's log begins there.
    """

    offsets: Mapping[TopicPartition, int]
    timeout: float


class AlterPartitionReassignmentsRequest(NamedTuple):
    """An administrator wants these replicas, or with None the original ones again (Kafka 2.4, KIP-455)."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]


class ListPartitionReassignmentsRequest(NamedTuple):
    """An administrator asks which of these partitions are moving; None asks for all (Kafka 2.4, KIP-455)."""

    partitions: tuple[TopicPartition, ...] | None = None


class ElectLeadersRequest(NamedTuple):
    """An administrator wants elections for these partitions, or for all if None (Kafka 2.4, KIP-460).

    The answer waits `timeout` seconds at most for the new leaders to be known.
    """

    kind: ElectionType
    partitions: tuple[TopicPartition, ...] | None
    timeout: float


class AlterReplicaLogDirsRequest(NamedTuple):
    """An administrator wants your copies of these partitions in these log directories (Kafka 1.1, KIP-113)."""

    dirs: Mapping[TopicPartition, str]


class DescribeLogDirsRequest(NamedTuple):
    """A request for the log directories of a broker's copies of these partitions (Kafka 1.0, KIP-113)."""

    partitions: tuple[TopicPartition, ...]


class LogDirDescription(NamedTuple):
    """The log directory of a copy, and of the future copy that is to replace it; None where there is none to read."""

    current: str | None
    future: str | None


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
LogDirsRequest = AlterReplicaLogDirsRequest | DescribeLogDirsRequest
AdminRequest = (
    AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | ElectLeadersRequest
    | LogDirsRequest
    | DeleteRecordsRequest
)
Request = ControlRequest | ControlledShutdownRequest | AdminRequest | ProduceRequest | WriteTxnMarkersRequest


def api_name(request: Request) -> str:
    """Kafka's name of a request's API: `LeaderAndIsr`."""
    return type(request).__name__.removesuffix("Request")


class ApiError(NamedTuple):
    """Kafka's name of an error, and what it means here."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


NOT_CONTROLLER = ApiError("NOT_CONTROLLER", "This is not the correct controller for this cluster.")


class Response(NamedTuple):
    """An answer: an error for the whole request, errors by partition, the partitions that remain, those that move,
    those that may not, the offset of the first record, where copies lie, what came of elections, low watermarks."""

    error: str | None = None
    errors: Mapping[TopicPartition, str | None] = {}
    remaining: tuple[TopicPartition, ...] = ()
    text: str | None = None
    moving: Mapping[TopicPartition, ReplicaAssignment] = {}
    refused: Mapping[TopicPartition, ApiError] = {}
    offset: int | None = None
    log_dirs_described: Mapping[TopicPartition, LogDirDescription] = {}
    elections: Mapping[TopicPartition, ApiError | None] = {}
    low_watermarks: Mapping[TopicPartition, int] = {}
