"""Fetch over the wire, and where logs and leader epochs begin and end.

Separate from `attach.py` because that one only says which request has which handler.
A follower reads to the end of the log, a consumer to the high watermark, and a `read_committed` consumer to the last
stable offset. A fetch that cannot be answered at once waits in the broker's purgatory. A consumer of 2.4 that
hears of a new leader asks where the epoch ends that it last read in; if that is before its own position, the log was
truncated (KIP-320).

Kafka 2.0.1, 2.4.1: server/KafkaApis.scala, handleFetchRequest, handleListOffsetRequest,
handleOffsetForLeaderEpochRequest; server/ReplicaManager.scala, fetchMessages, readFromLocalLog;
server/epoch/LeaderEpochFileCache.scala, endOffsetFor; fetchOffsetForTimestamp in 2.0.1 server/KafkaApis.scala and 2.4.1
cluster/Partition.scala
"""

from __future__ import annotations

from collections import Counter

from kafka_ctl.brokers.delayed_operations import DelayedFetch, FetchPartition, LogOffset, LogOffsets
from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.requests import UNKNOWN_PARTITION
from kafka_ctl.wire.batches import end_of
from kafka_ctl.wire.codec import Message, answered, grouped, named, parts_of
from kafka_ctl.wire.contents import Transactions, down_converted
from kafka_ctl.wire.fetch_sessions import FINAL, NO_SESSION, Asked, Found, Wanted
from kafka_ctl.wire.schema import number_of
from kafka_ctl.wire.service import Holding, Service
from kafka_ctl.wire.versions import known_to

FIRST_MAGIC_1, FIRST_MAGIC_2 = 2, 4
"""The versions of Fetch from which on a reader knows these."""
FIRST_WHOLE = 3
"""The version of Fetch from which on the first batch comes whole (KIP-74)."""
MOST = 8 << 20
"""Bytes of one answer to a fetch, whatever the client would take."""
FIRST_ANYWHERE = 11
"""The version of Fetch from which on a consumer may read from a follower (KIP-392)."""
READ_COMMITTED = 1
CONSUMER, DEBUGGING = -1, -2
"""The `replica_id` of a consumer, and of one that looks at the copies of followers."""


class Reading:
    """One fetch, as the purgatory and the leader's logs see it: who reads, which partitions, from where."""

    def __init__(self, service: Service, version: int, request: Message, asked: Wanted) -> None:
        self.service, self.version, self.asked = service, version, asked
        self.leader, self.contents = service.broker.as_leader, service.shared.contents
        self.replica: int = request["replica_id"]
        self.read_committed = request.get("isolation_level", 0) == READ_COMMITTED
        self.min_bytes: int = request["min_bytes"]
        self.most = min(request.get("max_bytes", MOST), MOST)
        self.holding: Holding = request["holding"]
        self.error: str | None = request.get("error")
        """The error that a test asked for on this request."""

    @property
    def is_follower(self) -> bool:
        return self.replica >= 0

    @property
    def anywhere(self) -> bool:
        """True if the copy of a follower may be read, too.

        Kafka 2.0.1, 2.4.1: server/ReplicaManager.scala, fetchMessages (fetchOnlyFromLeader)
        """
        if self.service.broker.generation.requests.reads_followers:
            return self.version >= FIRST_ANYWHERE and not self.is_follower
        return self.replica == DEBUGGING

    def operation(self, milliseconds: int) -> DelayedFetch:
        """A fetch that waits for more bytes."""
        wanted = self.asked.items()
        partitions = {tp: FetchPartition(LogOffset(one.offset), one.most, one.leader_epoch) for tp, one in wanted}
        return DelayedFetch(
            milliseconds,
            self.min_bytes,
            partitions,
            self,
            replica=self.replica,
            read_committed=self.read_committed,
            passes_on_high_watermark=self.service.broker.generation.records.passes_on_high_watermark,
        )

    # The purgatory's questions

    def log_offsets(self, tp: TopicPartition, leader_epoch: int) -> LogOffsets | str:
        """The ends of the log, each with the bytes from the beginning of this fetch."""
        log, error = readable(self.service, tp, leader_epoch, self.anywhere)
        if error is not None:
            return error
        ends = log.end, log.high_watermark, self.contents.transactions(tp, log).last_stable(log.high_watermark)
        places = {end: self._place(tp, log, end) for end in set(ends)}
        return LogOffsets(*(places[end] for end in ends))

    def _place(self, tp: TopicPartition, log: Log, end: int) -> LogOffset:
        start, enough = self.asked[tp].offset, max(1, self.min_bytes)
        if end <= start:
            return LogOffset(end)
        return LogOffset(end, 0, self.contents.size(tp, log, start, end, enough))

    def is_throttled(self, tp: TopicPartition, replica: int) -> bool:
        """True if a follower may not be sent more of it now (KIP-73)."""
        return self.is_follower and self.leader.throttles(tp, replica)

    def last_sent_high_watermark(self, tp: TopicPartition, replica: int) -> int:
        """The state of this follower by our answers."""
        return self.service.sent_high_watermarks.get((tp, replica), 0)

    def read(self, fetch: DelayedFetch | None = None) -> Found:
        """The data for every partition by now; each leader learns the follower's log end."""
        found, size, share = Found(), 0, self.holding.unsent.share
        most = min(self.most, share)
        for tp, asked in self.asked.items():
            part = found[tp] = self._read(tp, asked, min(asked.most, most - size), size == 0 and share > 0)
            size += len(part["records"])
        self.holding.hold(size)
        if self.is_follower:
            for tp, part in found.items():
                self._note(tp, part)
        return found

    def _note(self, tp: TopicPartition, part: Message) -> None:
        """Remember how far a follower's log reaches, and what was sent to it.

        Kafka 2.0.1: server/ReplicaManager.scala, updateFollowerLogReadResults
        """
        hosted = self.service.broker.hosted.get(tp)
        if part["error_code"] or hosted is None or self.replica not in hosted.replicas:
            return
        self.leader.note_fetch(tp, self.replica, self.asked[tp].offset)
        self.leader.deletion.note_start(tp, self.replica, self.asked[tp].log_start)
        self.leader.try_to_join(tp, self.replica, hosted.state.leader_epoch)
        self.service.sent_high_watermarks[tp, self.replica] = part["high_watermark"]
        self.service.broker.quotas.leader.record(tp, len(part["records"]))

    # Reading

    def _end(self, log: Log, known: Transactions) -> int:
        """The offset up to which the requester may read."""
        if self.is_follower:
            return log.end
        return known.last_stable(log.high_watermark) if self.read_committed else log.high_watermark

    def _read(self, tp: TopicPartition, asked: Asked, most: int, first: bool) -> Message:
        """The data of one partition; at least one batch where no other was found (KIP-74)."""
        log, error = readable(self.service, tp, asked.leader_epoch, self.anywhere)
        error = self.error or error
        if error is None and not log.start <= asked.offset <= log.end:
            error = "OFFSET_OUT_OF_RANGE"
        if error is not None:
            return nothing(known_to("Fetch", self.version, error))
        known = self.contents.transactions(tp, log)
        batches: list[tuple[int, bytes]] = []
        try:
            if (most > 0 or first) and not self.is_throttled(tp, self.replica):
                batches = self.contents.read(tp, log, asked.offset, self._end(log, known), most)
                if not first and batches and len(batches[0][1]) > most and self.version >= FIRST_WHOLE:
                    batches = []
            magic = 2 if self.version >= FIRST_MAGIC_2 else int(self.version >= FIRST_MAGIC_1)
            data = down_converted(batches, magic, most, asked.offset)
            if self.version < FIRST_WHOLE:
                data = data[: max(0, most)]
        except BadInput:
            return nothing("UNSUPPORTED_COMPRESSION_TYPE")
        committed = self.read_committed and not self.is_follower
        names_stable = committed or self.service.broker.generation.requests.names_stable_offset
        aborted = None
        if committed:
            read_to = end_of(*batches[-1]) if batches else asked.offset
            between = known.aborted_between(asked.offset, read_to)
            aborted = [{"producer_id": one.producer, "first_offset": one.first} for one in between]
        return {
            "error_code": 0,
            "high_watermark": log.high_watermark,
            "last_stable_offset": known.last_stable(log.high_watermark) if names_stable else -1,
            "log_start_offset": log.start,
            "aborted_transactions": aborted,
            "preferred_read_replica": -1,
            "records": data,
        }


def nothing(error: str | None) -> Message:
    """The answer for a partition that cannot be read."""
    numbers = dict.fromkeys(("high_watermark", "last_stable_offset", "log_start_offset", "preferred_read_replica"), -1)
    return numbers | {"error_code": number_of(error), "aborted_transactions": None, "records": b""}


def readable(service: Service, tp: TopicPartition, leader_epoch: int, anywhere: bool = False) -> tuple[Log, str | None]:
    """The log of a partition that we lead in this epoch (-1: in any), and why there is none.

    With `anywhere` a follower's copy will do.

    Kafka 2.4.1: server/ReplicaManager.scala, getPartitionOrError; cluster/Partition.scala, getLocalLog
    """
    broker = service.broker
    if tp in broker.hosted and (error := broker.as_leader.wrong_epoch(tp, leader_epoch)):
        return Log(), error
    if broker.leads(tp) or (anywhere and tp in broker.hosted):
        return broker.disk.logs.get(tp, Log()), None
    is_known = tp in broker.metadata or not broker.generation.requests.reads_followers
    absent = anywhere and is_known and tp not in broker.offline
    return Log(), "REPLICA_NOT_AVAILABLE" if absent else broker.refusal(tp)


async def fetch(service: Service, version: int, request: Message) -> Message:
    """Records of some partitions, or of all of a fetch session; waits until there are `min_bytes`, for `max_wait`."""
    wanted = {
        tp: Asked(
            part["fetch_offset"],
            part["partition_max_bytes"],
            part.get("current_leader_epoch", -1),
            part.get("log_start_offset", -1),
        )
        for tp, part in parts_of(request["topics"], "topic", number="partition")
    }
    forgotten = named(request.get("forgotten_topics_data", ()), "topic")
    session = request.get("session_id", NO_SESSION), request.get("session_epoch", FINAL)
    context = service.fetch_sessions.context(*session, wanted, forgotten, request["replica_id"] >= 0)
    found = Found() if context.error else await _found(service, version, request, context.partitions)
    error, id, parts = context.answer(found)
    return {"error_code": number_of(error), "session_id": id, "responses": grouped(parts.items(), "topic")}


async def _found(service: Service, version: int, request: Message, asked: Wanted) -> Found:
    """The data, when there is enough or time is up; unknown partitions come last."""
    known = {tp: one for tp, one in asked.items() if tp in service.broker.metadata}
    unknown = {tp: nothing(UNKNOWN_PARTITION) for tp in asked if tp not in known}
    if not known:
        return unknown
    reading = Reading(service, version, request, known)
    found, milliseconds = reading.read(), request["max_wait"]
    size = sum(len(part["records"]) for part in found.values())
    failed = any(part["error_code"] for part in found.values())
    if milliseconds > 0 and size < reading.min_bytes and not failed:
        operation = reading.operation(milliseconds)
        try:
            service.broker.as_leader.fetch_purgatory.try_complete_else_watch(operation, list(known))
            found = await operation
        finally:
            operation.force_complete()  # the connection may have ended
    return found | unknown


LATEST, EARLIEST = -1, -2
"""The timestamps that stand for the end and the beginning of a log."""
FIRST_LATE = 5
"""The version of ListOffsets from which on a client knows OFFSET_NOT_AVAILABLE."""
UNDEFINED = -1
"""An epoch, or an offset, that there is not."""
NAMED_TWICE = {"error_code": number_of("INVALID_REQUEST"), "timestamp": -1, "offset": -1, "leader_epoch": UNDEFINED}
"""The answer for a partition that a request names more than once, from version 1 on."""


async def list_offsets(service: Service, version: int, request: Message) -> Message:
    """The first offset, the one behind the last that may be read, or the first of a time.

    Kafka 2.0.1: server/KafkaApis.scala, handleListOffsetRequestV1AndAbove, duplicatePartitions
    """
    named = Counter(tp for tp, _ in parts_of(request["topics"]))

    def listed(tp: TopicPartition, asked: Message) -> Message:
        twice = version > 0 and named[tp] > 1
        return NAMED_TWICE if twice else _listed(service, version, request, tp, asked)

    return {"topics": answered(request["topics"], listed)}


def _late(service: Service, version: int, tp: TopicPartition, log: Log) -> str | None:
    """The error while a new leader does not know how far the last one had come (KIP-207).

    Kafka 2.4.1: cluster/Partition.scala, fetchOffsetForTimestamp; server/KafkaApis.scala, handleListOffsetRequest
    """
    lags = service.broker.as_leader.epoch_start.get(tp, 0) > log.high_watermark
    if version == 0 or not lags or service.versions["ListOffsets"][1] < FIRST_LATE:
        return None
    return "OFFSET_NOT_AVAILABLE" if version >= FIRST_LATE else "LEADER_NOT_AVAILABLE"


def _listed(service: Service, version: int, request: Message, tp: TopicPartition, asked: Message) -> Message:
    committed, consumer = request.get("isolation_level", 0) == READ_COMMITTED, request["replica_id"] == CONSUMER
    timestamp, most = asked["timestamp"], max(0, asked.get("max_num_offsets", 1))
    log, error = readable(service, tp, asked.get("current_leader_epoch", -1), request["replica_id"] == DEBUGGING)
    offset, time, epoch = -1, -1, UNDEFINED
    if error is None:
        contents, end = service.shared.contents, log.high_watermark if consumer else log.end
        end = contents.transactions(tp, log).last_stable(end) if committed and consumer else end
        epoch = service.broker.hosted[tp].state.leader_epoch
        if timestamp in (LATEST, EARLIEST):
            offset = end if timestamp == LATEST else log.start
        elif version == 0:  # asks for segments that are older; the only one is in use
            offset = end if timestamp >= service.broker.clock.wall() else -1
        elif (found := contents.offset_at(tp, log, end, timestamp)) is not None:
            time, offset = found
        if consumer and (offset < 0 or timestamp == LATEST) and (error := _late(service, version, tp, log)):
            offset = -1
        if offset < 0:
            epoch = UNDEFINED
        elif timestamp != LATEST and offset < log.end:
            epoch = log.entries[offset].leader_epoch
    return {
        "error_code": number_of(error),
        "timestamp": time,
        "offset": offset,
        "old_style_offsets": sorted({offset, log.start}, reverse=True)[:most] if offset >= 0 else [],
        "leader_epoch": epoch,
    }


async def offset_for_leader_epoch(service: Service, version: int, request: Message) -> Message:
    """The last epoch up to the one that is asked for, and the offset at which it ends."""
    asked = parts_of(request["topics"], "topic", number="partition")
    parts = {tp: _epoch_end(service, tp, part) for tp, part in asked}
    return {"topics": grouped(parts.items(), "topic", number="partition")}


def _epoch_end(service: Service, tp: TopicPartition, asked: Message) -> Message:
    wanted = asked["leader_epoch"]
    log, error = readable(service, tp, asked.get("current_leader_epoch", -1))
    epoch, end = UNDEFINED, UNDEFINED
    if error is None:
        current = service.broker.hosted[tp].state.leader_epoch
        if wanted == current:  # it goes on
            epoch, end = wanted, log.end
        elif 0 <= wanted < current:
            epoch, end = log.end_of(wanted)
    return {"error_code": number_of(error), "leader_epoch": epoch, "end_offset": end}
