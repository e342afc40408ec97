"""Which requests each generation's brokers understand, in which versions, and what its controller sends.

Only what the lab's brokers speak is listed and announced; real brokers announce more.
Kafka 0.10.2.2: common/protocol/Protocol.java; 2.0.1: common/requests/*Request.java, schemaVersions;
2.4.1: clients/src/main/resources/common/message/*Request.json, validVersions
"""

from __future__ import annotations

from kafka_ctl.generation import GENERATIONS, Generation

# fmt: off
VERSIONS: dict[str, tuple[tuple[int, int] | None, ...]] = {
    "Produce":                    ((0, 2), (0, 6), (0, 8)),
    "Fetch":                      ((0, 3), (0, 8), (0, 11)),
    "ListOffsets":                ((0, 1), (0, 3), (0, 5)),
    "Metadata":                   ((0, 2), (0, 6), (0, 9)),
    "LeaderAndIsr":               ((0, 0), (0, 1), (0, 4)),
    "StopReplica":                ((0, 0), (0, 0), (0, 2)),
    "UpdateMetadata":             ((0, 3), (0, 4), (0, 6)),
    "ControlledShutdown":         ((1, 1), (0, 1), (0, 3)),
    "OffsetCommit":               ((0, 2), (0, 4), (0, 8)),
    "OffsetFetch":                ((0, 2), (0, 4), (0, 6)),
    "FindCoordinator":            ((0, 0), (0, 2), (0, 3)),
    "JoinGroup":                  ((0, 1), (0, 3), (0, 6)),
    "Heartbeat":                  ((0, 0), (0, 2), (0, 4)),
    "LeaveGroup":                 ((0, 0), (0, 2), (0, 4)),
    "SyncGroup":                  ((0, 0), (0, 2), (0, 4)),
    "ApiVersions":                ((0, 0), (0, 2), (0, 3)),
    "CreateTopics":               ((0, 1), (0, 3), (0, 5)),
    "DeleteTopics":               ((0, 0), (0, 2), (0, 4)),
    "InitProducerId":             (None,   (0, 1), (0, 2)),
    "OffsetForLeaderEpoch":       (None,   (0, 1), (0, 3)),
    "WriteTxnMarkers":            (None,   (0, 0), (0, 0)),
    "DescribeConfigs":            (None,   (0, 2), (0, 2)),
    "CreatePartitions":           (None,   (0, 1), (0, 1)),
    "ElectLeaders":               (None,   None,   (0, 2)),
    "AlterPartitionReassignments": (None,  None,   (0, 0)),
    "ListPartitionReassignments": (None,   None,   (0, 0)),
}
"""By API: the lowest and highest version in each of GENERATIONS; None before there was such a request."""

SENT: dict[str, tuple[int, ...]] = {
    "LeaderAndIsr":       (0, 1, 4),
    "StopReplica":        (0, 0, 2),
    "UpdateMetadata":     (3, 4, 6),
    "ControlledShutdown": (1, 1, 3),
}
"""The versions in which brokers of each generation send these to each other (`inter.broker.protocol.version`)."""
# fmt: on


def announced(generation: Generation) -> dict[str, tuple[int, int]]:
    """The versions that this generation's brokers announce, by API."""
    column = list(GENERATIONS).index(generation.name)
    return {name: span for name, spans in VERSIONS.items() if (span := spans[column]) is not None}


def sent_version(name: str, generation: Generation) -> int:
    """The version in which a broker of this generation sends this request to another."""
    column = list(GENERATIONS).index(generation.name)
    if name in SENT:
        return SENT[name][column]
    return announced(generation)[name][1]
