"""Deletion of records: a leader raises its log start offset, and waits until its followers have done the same.

A follower's fetch says where its log begins. The *low watermark* is the lowest log start offset of the replicas whose
brokers are alive; a DeleteRecords request is answered when it has come to the offset that was asked for.
Kafka 2.4.1: server/ReplicaManager.scala, deleteRecords; cluster/Partition.scala, deleteRecordsOnLeader,
lowWatermarkIfLeader (KIP-107)

Separate from `leader.py` because 0.10 has none of it.
"""

from __future__ import annotations

from kafka_ctl.brokers.configs import TopicConfigs
from kafka_ctl.brokers.delayed_operations import DelayedDeleteRecords, Deleted
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.purgatory import ClockTimer, Purgatory
from kafka_ctl.cluster import INTERNAL, TopicPartition
from kafka_ctl.requests import NOT_LEADER, STORAGE_ERROR, UNKNOWN_PARTITION, DeleteRecordsRequest, Response
from kafka_ctl.trace.record import CAUSE

HIGH_WATERMARK = -1
"""The offset that stands for the high watermark (DeleteRecordsRequest.HIGH_WATERMARK)."""
UNKNOWN_START = -1
"""The log start offset of a follower that has not fetched yet."""
PURGE_INTERVAL = 1
"""`delete.records.purgatory.purge.interval.requests`."""
OUT_OF_RANGE, POLICY = "OFFSET_OUT_OF_RANGE", "POLICY_VIOLATION"


class RecordDeletion:
    """The leader's side of one broker process, as far as records are deleted."""

    def __init__(self, process: BrokerProcess, configs: TopicConfigs, fetches: Purgatory) -> None:
        self.process, self.configs, self._fetches = process, configs, fetches
        self.starts: dict[TopicPartition, dict[int, int]] = {}
        """The log start of each follower, as of its last fetch."""
        self.purgatory = Purgatory(ClockTimer(process.clock), PURGE_INTERVAL)
        """DeleteRecords requests that wait until all live replicas have deleted as much."""

    async def delete_records(self, request: DeleteRecordsRequest) -> Response:
        """Raise the log start offset of each partition; the low watermarks when they are there, or an error of each."""
        if not request.offsets:
            return Response(errors={}, low_watermarks={})
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        refused: dict[TopicPartition, Deleted] = {}
        for tp, offset in request.offsets.items():
            deleted = self._delete(tp, offset)
            if isinstance(deleted, str):
                refused[tp] = Deleted(error=deleted)
            else:
                wanted[tp] = deleted
        operation = DelayedDeleteRecords(round(request.timeout * 1000), wanted, refused, self.low_watermark)
        try:
            self.purgatory.try_complete_else_watch(operation, list(request.offsets))
            results = await operation
        finally:
            operation.cancel()  # the process may have ended
        return Response(
            errors={tp: result.error for tp, result in results.items()},
            low_watermarks={tp: result.low_watermark for tp, result in results.items()},
        )

    def _delete(self, tp: TopicPartition, offset: int) -> tuple[int, int] | str:
        """The offset that the log is to begin at, and the low watermark by now; or Kafka's error."""
        process = self.process
        if tp.topic in INTERNAL:
            return "INVALID_TOPIC_EXCEPTION"
        if isinstance(low := self.low_watermark(tp), str):
            return low
        if "delete" not in self.configs.cleanup_policy(tp):
            return POLICY
        log = process.disk.logs.get(tp)
        high_watermark = log.high_watermark if log is not None else 0
        offset = high_watermark if offset == HIGH_WATERMARK else offset
        if not 0 <= offset <= high_watermark:
            return OUT_OF_RANGE
        if log is not None and offset > log.start:
            cause = CAUSE.get()
            process.raise_log_start(tp, log, offset, "delete-records")
            self._fetches.check_and_complete(tp)
            CAUSE.set(cause)
        return offset, self._lowest(tp)

    def low_watermark(self, tp: TopicPartition) -> int | str:
        """The lowest log start offset of the live replicas; an error where this broker does not lead."""
        process = self.process
        if tp in process.offline:
            return STORAGE_ERROR
        if tp not in process.hosted:
            return NOT_LEADER if tp in process.metadata else UNKNOWN_PARTITION
        return self._lowest(tp) if process.leads(tp) else NOT_LEADER

    def _lowest(self, tp: TopicPartition) -> int:
        process, known = self.process, self.starts.get(tp, {})
        log = process.disk.logs.get(tp)
        if log is None:  # nothing was ever written, and all logs begin at 0
            return 0
        followers = (id for id in process.hosted[tp].replicas if id != process.id and id in process.live_brokers)
        return min([log.start, *(known.get(id, UNKNOWN_START) for id in followers)])

    def note_start(self, tp: TopicPartition, follower: int, offset: int) -> None:
        """A follower's fetch says where its log begins.

        Kafka 2.0.1: cluster/Partition.scala, updateReplicaLogReadResult
        """
        known = self.starts.setdefault(tp, {})
        if known.get(follower) != offset:
            known[follower] = offset
            self.purgatory.check_and_complete(tp)

    def release(self, tp: TopicPartition) -> None:
        """Forget the followers' log starts; deletions that wait time out, as they are looked at only by a leader.

        Kafka 2.0.1: cluster/Partition.scala, tryCompleteDelayedRequests
        """
        self.starts.pop(tp, None)
