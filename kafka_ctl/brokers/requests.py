"""The requests between controller and brokers, and their answers.

Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java,
ControlledShutdownRequest.java
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition

UNKNOWN_EPOCH = -1
"""The broker epoch in a request whose sender knows nothing of broker epochs (before 2.2)."""


class PartitionState(NamedTuple):
    """What a broker is told of one partition.

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

    @property
    def name(self) -> str:
        return "LeaderAndIsr"


class UpdateMetadataRequest(NamedTuple):
    """These brokers are alive, and so the partitions are led."""

    controller: int
    controller_epoch: int
    partitions: Mapping[TopicPartition, PartitionState]
    live_brokers: tuple[int, ...] = ()
    broker_epoch: int = UNKNOWN_EPOCH

    @property
    def name(self) -> str:
        return "UpdateMetadata"


class StopReplicaRequest(NamedTuple):
    """Stop copying these partitions, and delete them if told so."""

    controller: int
    controller_epoch: int
    partitions: tuple[TopicPartition, ...]
    delete: bool = False
    broker_epoch: int = UNKNOWN_EPOCH

    @property
    def name(self) -> str:
        return "StopReplica"


class ControlledShutdownRequest(NamedTuple):
    """I want to leave: please take my leaderships."""

    broker: int
    broker_epoch: int = UNKNOWN_EPOCH

    @property
    def name(self) -> str:
        return "ControlledShutdown"


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Request = ControlRequest | ControlledShutdownRequest


class Response(NamedTuple):
    """An answer: an error for the whole request, errors by partition, or the partitions that remain."""

    error: str | None = None
    errors: Mapping[TopicPartition, str | None] = {}
    remaining: tuple[TopicPartition, ...] = ()
    text: str | None = None
