"""The requests that each generation's brokers understand, with their versions, and those that its controller sends.

Only what the lab's brokers speak is listed and announced; real brokers announce more.
Kafka 0.10.2.2: common/protocol/Protocol.java; 2.0.1: common/requests/*Request.java, schemaVersions;
2.4.1: clients/src/main/resources/common/message/*Request.json, validVersions
"""

from __future__ import annotations

from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.requests import NOT_LEADER, STORAGE_ERROR

TABLE = """
    Produce                     0-2   0-6   0-8
    Fetch                       0-3   0-8   0-11
    ListOffsets                 0-1   0-3   0-5
    Metadata                    0-2   0-6   0-9
    LeaderAndIsr                0-0   0-1   0-4
    StopReplica                 0-0   0-0   0-2
    UpdateMetadata              0-3   0-4   0-6
    ControlledShutdown          1-1   0-1   0-3
    OffsetCommit                0-2   0-4   0-8
    OffsetFetch                 0-2   0-4   0-6
    FindCoordinator             0-0   0-2   0-3
    JoinGroup                   0-1   0-3   0-6
    Heartbeat                   0-0   0-2   0-4
    LeaveGroup                  0-0   0-2   0-4
    SyncGroup                   0-0   0-2   0-4
    ListGroups                  0-0   0-2   0-3
    DescribeGroups              0-0   0-2   0-5
    DeleteGroups                -     0-1   0-2
    OffsetDelete                -     -     0-0
    ApiVersions                 0-0   0-2   0-3
    CreateTopics                0-1   0-3   0-5
    DeleteTopics                0-0   0-2   0-4
    InitProducerId              -     0-1   0-2
    OffsetForLeaderEpoch        -     0-1   0-3
    AddPartitionsToTxn          -     0-1   0-1
    AddOffsetsToTxn             -     0-1   0-1
    EndTxn                      -     0-1   0-1
    WriteTxnMarkers             -     0-0   0-0
    TxnOffsetCommit             -     0-1   0-2
    DescribeAcls                -     0-1   0-1
    DeleteRecords               -     0-1   0-1
    DescribeConfigs             -     0-2   0-2
    AlterConfigs                -     0-1   0-1
    IncrementalAlterConfigs     -     -     0-1
    CreatePartitions            -     0-1   0-1
    AlterReplicaLogDirs         -     0-1   0-1
    DescribeLogDirs             -     0-1   0-1
    ElectLeaders                -     -     0-2
    AlterPartitionReassignments -     -     0-0
    ListPartitionReassignments  -     -     0-0
"""


def _span(text: str) -> tuple[int, int] | None:
    """`0-8` as the lowest and the highest version."""
    lowest, _, highest = text.partition("-")
    return (int(lowest), int(highest)) if lowest else None


VERSIONS = {name: tuple(map(_span, spans)) for name, *spans in map(str.split, TABLE.strip().splitlines())}
"""By API: the lowest and highest version in each of GENERATIONS; None before there was such a request."""
ANNOUNCED = {
    generation: {name: span for name, spans in VERSIONS.items() if (span := spans[column]) is not None}
    for column, generation in enumerate(GENERATIONS)
}


def announced(generation: Generation) -> dict[str, tuple[int, int]]:
    """The versions that this generation's brokers announce, by API."""
    return ANNOUNCED[generation.name]


KNOWS_STORAGE_ERROR = {"Produce": 4, "Fetch": 6}
"""The versions from which on a client is sent the error of a failed log directory, and not `NOT_LEADER`."""


def known_to(name: str, version: int, error: str | None) -> str | None:
    """The error as a client that asks in this version is sent it.

    Kafka 2.0.1: common/requests/ProduceResponse.java, toStruct; FetchResponse.java, toStruct
    """
    return NOT_LEADER if error == STORAGE_ERROR and version < KNOWS_STORAGE_ERROR[name] else error


def sent_version(name: str, generation: Generation) -> int:
    """The version in which a broker of this generation sends this request to another: the highest that it knows.

    That is the default of `inter.broker.protocol.version`.
    """
    return announced(generation)[name][1]
