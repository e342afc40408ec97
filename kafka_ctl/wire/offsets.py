"""ListOffsets and OffsetForLeaderEpoch over the wire: where a log begins and ends, and where a leader epoch does.

A consumer of 2.4 that hears of a new leader asks where the epoch ends that it last read in; if that is before its own
position, the log was truncated (KIP-320).
Kafka 2.0.1, 2.4.1: server/KafkaApis.scala, handleListOffsetRequest, handleOffsetForLeaderEpochRequest;
server/epoch/LeaderEpochFileCache.scala, endOffsetFor; cluster/Partition.scala, fetchOffsetForTimestamp
"""

from __future__ import annotations

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.control import grouped
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.fetching import READ_COMMITTED, readable
from kafka_ctl.wire.service import Service

LATEST, EARLIEST = -1, -2
"""The timestamps that stand for the end and the beginning of a log."""
UNDEFINED = -1
"""An epoch, or an offset, that there is not."""


async def list_offsets(service: Service, version: int, request: Message) -> Message:
    """The first offset, the one behind the last that may be read, or the first of a time."""
    committed = request.get("isolation_level", 0) == READ_COMMITTED
    topics = [
        {
            "name": topic["name"],
            "partitions": [_listed(service, topic["name"], part, committed) for part in topic["partitions"]],
        }
        for topic in request["topics"]
    ]
    return {"topics": topics}


def _listed(service: Service, topic: str, asked: Message, committed: bool) -> Message:
    tp, timestamp = TopicPartition(topic, asked["partition_index"]), asked["timestamp"]
    log, error = readable(service, tp, asked.get("current_leader_epoch", -1))
    offset, time, epoch = -1, -1, UNDEFINED
    if error is None:
        contents, end = service.shared.contents, log.high_watermark
        end = contents.transactions(tp, log).last_stable(end) if committed else end
        epoch = service.broker.hosted[tp].state.leader_epoch
        if timestamp in (LATEST, EARLIEST):
            offset = end if timestamp == LATEST else 0
        elif (found := contents.offset_at(tp, log, end, timestamp)) is not None:
            time, offset = found
        if timestamp != LATEST and log.entries:
            epoch = UNDEFINED if offset < 0 else log.entries[offset].leader_epoch
    return {
        "partition_index": tp.partition,
        "error_code": number_of(error),
        "timestamp": time,
        "offset": offset,
        "old_style_offsets": [offset] if offset >= 0 else [],
        "leader_epoch": epoch,
    }


async def offset_for_leader_epoch(service: Service, version: int, request: Message) -> Message:
    """The last epoch up to the one that is asked for, and the offset at which it ends."""
    parts = {
        TopicPartition(topic["topic"], part["partition"]): _epoch_end(service, topic["topic"], part)
        for topic in request["topics"]
        for part in topic["partitions"]
    }
    return {"topics": grouped(parts.items(), "topic", "partitions")}


def _epoch_end(service: Service, topic: str, asked: Message) -> Message:
    tp, wanted = TopicPartition(topic, asked["partition"]), asked["leader_epoch"]
    log, error = readable(service, tp, asked.get("current_leader_epoch", -1))
    epoch, end = UNDEFINED, UNDEFINED
    if error is None:
        current = service.broker.hosted[tp].state.leader_epoch
        if wanted == current:  # it goes on
            epoch, end = wanted, log.end
        elif 0 <= wanted < current:
            epoch, end = log.end_of(wanted)
    return {"partition": tp.partition, "error_code": number_of(error), "leader_epoch": epoch, "end_offset": end}
