"""The listening brokers of a world: every kind of request with its handler.

Separate from `lab.py` because only a lab with `wire=True` loads it.
"""

from __future__ import annotations

import sys

from kafka_ctl.brokers.config_keys import BROKER, keys
from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import Unavailable
from kafka_ctl.extras import needed_for
from kafka_ctl.simulation.world import World
from kafka_ctl.wire import configs, control, coordinator_requests, fetching, metadata, produce
from kafka_ctl.wire.batches import CONTROL, Record, read_batch, read_records
from kafka_ctl.wire.client_faults import ClientFaults
from kafka_ctl.wire.groups import Groups
from kafka_ctl.wire.listeners import HOST, WireListeners
from kafka_ctl.wire.network import WireNetwork
from kafka_ctl.wire.schema import apis
from kafka_ctl.wire.service import Administrator, Handler, Shared
from kafka_ctl.wire.versions import VERSIONS

HANDLERS: dict[str, Handler] = {
    "Produce": produce.produce,
    "Fetch": fetching.fetch,
    "ListOffsets": fetching.list_offsets,
    "OffsetForLeaderEpoch": fetching.offset_for_leader_epoch,
    "InitProducerId": coordinator_requests.init_producer_id,
    "AddPartitionsToTxn": coordinator_requests.add_partitions_to_txn,
    "AddOffsetsToTxn": coordinator_requests.add_offsets_to_txn,
    "TxnOffsetCommit": coordinator_requests.txn_offset_commit,
    "EndTxn": coordinator_requests.end_txn,
    "WriteTxnMarkers": produce.write_txn_markers,
    "DeleteRecords": control.delete_records,
    "DescribeLogDirs": control.describe_log_dirs,
    "AlterReplicaLogDirs": control.alter_replica_log_dirs,
    "Metadata": metadata.metadata,
    "ApiVersions": metadata.api_versions,
    "DescribeAcls": metadata.describe_acls,
    "DescribeConfigs": configs.describe_configs,
    "AlterConfigs": configs.alter_configs,
    "IncrementalAlterConfigs": configs.incremental_alter_configs,
    "FindCoordinator": coordinator_requests.find_coordinator,
    "JoinGroup": coordinator_requests.join_group,
    "SyncGroup": coordinator_requests.sync_group,
    "Heartbeat": coordinator_requests.heartbeat,
    "LeaveGroup": coordinator_requests.leave_group,
    "OffsetCommit": coordinator_requests.offset_commit,
    "OffsetFetch": coordinator_requests.offset_fetch,
    "ListGroups": coordinator_requests.list_groups,
    "DescribeGroups": coordinator_requests.describe_groups,
    "DeleteGroups": coordinator_requests.delete_groups,
    "OffsetDelete": coordinator_requests.offset_delete,
    "CreateTopics": metadata.create_topics,
    "DeleteTopics": metadata.delete_topics,
    "CreatePartitions": metadata.create_partitions,
    "ElectLeaders": control.elect_leaders,
    "AlterPartitionReassignments": control.alter_reassignments,
    "ListPartitionReassignments": control.list_reassignments,
    **{
        name: control.between_brokers(name)
        for name in ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
    },
}
"""The handler of each kind of request."""
assert HANDLERS.keys() == VERSIONS.keys()


def attach(world: World, admin: Administrator, first_port: int | None = None) -> None:
    """Let the brokers that this world will have listen on 127.0.0.1, and send each other Kafka's bytes.

    They listen at free ports, or at `first_port` and those after it.
    """
    with needed_for("wire=True"):
        import crc32c
    del crc32c
    apis()
    longest = keys(BROKER, world.generation.name)["group.max.session.timeout.ms"].default
    groups = Groups(int(longest or 0) / 1000, world.generation.requests.gathers_first_members)
    shared = Shared(world, admin, groups)
    world.network = WireNetwork(world, shared)
    world.listeners = WireListeners(shared, HANDLERS, first_port)


def client_faults(world: World) -> ClientFaults:
    """The faults between the clients and the brokers of a world whose brokers listen."""
    return _shared(world).client_faults


def committed_records(world: World, tp: TopicPartition) -> list[Record]:
    """The records of a partition up to its leader's high watermark. Raises Unavailable if no broker leads it."""
    contents = _shared(world).contents

    def look() -> list[Record]:
        leader = next((one for one in world.brokers.values() if one.listening and one.leads(tp)), None)
        if leader is None:
            raise Unavailable(f"no broker leads {tp}")
        log = leader.disk.logs.get(tp, Log())
        found = contents.read(tp, log, log.start, log.high_watermark, sys.maxsize)
        batches = [read_batch(data) for _, data in found]
        return [record for one in batches if not one.attributes & CONTROL for record in read_records(one)]

    return world.clock.call(look)


def bootstrap_servers(world: World) -> str:
    """The bootstrap addresses: every broker, those that are down as well."""
    ports = _shared(world).ports
    return ",".join(f"{HOST}:{ports[id]}" for id in sorted(world.brokers) if id in ports)


def _shared(world: World) -> Shared:
    assert isinstance(world.listeners, WireListeners)
    return world.listeners.shared
