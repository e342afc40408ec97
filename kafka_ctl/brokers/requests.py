"""The requests between controller and brokers, and their answers.

Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java,
ControlledShutdownRequest.java
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition


class PartitionState(NamedTuple):
    """What a broker is told of one partition.

    LeaderAndIsr fills `is_new`, UpdateMetadata fills `offline` (assigned replicas that are not online).
    """

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    is_new: bool = False
    offline: tuple[int, ...] = ()


class LeaderAndIsrRequest(NamedTuple):
    """You lead, or follow, these partitions."""

    controller: int
    controller_epoch: int
    partitions: Mapping[TopicPartition, PartitionState]
    live_leaders: tuple[int, ...] = ()

    name = "LeaderAndIsr"


class UpdateMetadataRequest(NamedTuple):
    """These brokers are alive, and so the partitions are led."""

    controller: int
    controller_epoch: int
    partitions: Mapping[TopicPartition, PartitionState]
    live_brokers: tuple[int, ...] = ()

    name = "UpdateMetadata"


class StopReplicaRequest(NamedTuple):
    """Stop copying these partitions, and delete them if told so."""

    controller: int
    controller_epoch: int
    partitions: tuple[TopicPartition, ...]
    delete: bool = False

    name = "StopReplica"


class ControlledShutdownRequest(NamedTuple):
    """I want to leave: please take my leaderships."""

    broker: int

    name = "ControlledShutdown"


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Request = ControlRequest | ControlledShutdownRequest


class Response(NamedTuple):
    """An answer: an error for the whole request, errors by partition, or the partitions that remain."""

    error: str | None = None
    errors: Mapping[TopicPartition, str | None] = {}
    remaining: tuple[TopicPartition, ...] = ()
    text: str | None = None
