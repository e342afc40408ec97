"""Invariants of the data: what brokers promise to those who write and read.

Most come from formal models of Kafka's replication (StrongIsr, ValidHighWatermark, LogMatching, ConsistentRead).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_ctl.brokers.log import Entry
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.invariants.base import Invariant, Reports, Subject
from kafka_ctl.trace.record import Record

State = LeaderAndIsr | None


class DataInvariant(Invariant):
    """What the invariants of this file share: the logs, and a check of one partition when its ISR or a log changed."""

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if new is not None and new.leader != NO_LEADER and tp in self.facts.logs.copies:
            self.check(record, tp, new.leader, new)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        state = self.facts.states.get(tp)
        if state is None or record.broker is None:
            return
        leads = record.leader == record.broker  # by its own account
        self.check(record, tp, record.broker if leads else state.leader, state)

    def check(self, record: Record, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None: ...


class StrongIsr(DataInvariant):
    """Whatever lies below a leader's high watermark is the same on every replica in sync."""

    id, name = "I1", "strong-isr"
    motive = "StrongIsr in hachikuji/kafka-specification"

    def check(self, record: Record, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        if tp.topic in self.facts.topics_to_be_deleted:
            return
        own = self.facts.logs.of(tp, leader)
        safe = own.entries[: own.high_watermark]
        for replica in state.isr:
            if self.facts.logs.of(tp, replica).entries[: len(safe)] != safe:
                text = f"broker {replica} is in the ISR of {tp}, but has not what lies below the high watermark "
                text += f"{own.high_watermark} of broker {leader}"
                self.broken(record, text, Subject(tp, replica))


class ValidHighWatermark(DataInvariant):
    """A high watermark never lies beyond the end of a log: not of the own one, nor, a leader's, of one in sync."""

    id, name = "I3", "valid-high-watermark"
    motive = "ValidHighWatermark in hachikuji/kafka-specification"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        super().log_changed(record, tp)
        if record.broker is not None:
            own = self.facts.logs.of(tp, record.broker)
            if own.high_watermark > len(own.entries):
                text = f"the high watermark {own.high_watermark} of {tp} on broker {record.broker} is beyond its end"
                self.broken(record, text, Subject(tp, record.broker, aspect="own"))

    def check(self, record: Record, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        offset = self.facts.logs.of(tp, leader).high_watermark
        short = [r for r in state.isr if len(self.facts.logs.of(tp, r).entries) < offset]
        if short and tp.topic not in self.facts.topics_to_be_deleted:
            text = f"the high watermark {offset} of {tp} on broker {leader} is beyond the end of the log on {short}"
            self.broken(record, text, Subject(tp, aspect=str(short)))


class NothingAcknowledgedIsLost(DataInvariant):
    """Whoever leads a partition has every record of it that was acknowledged."""

    id, name = "I4", "nothing-acknowledged-is-lost"
    motive = "KAFKA-1211, KAFKA-7128"

    def answered(self, record: Record) -> None:
        if record.actor == "producer" and record.topic is not None and record.partition is not None:
            tp = TopicPartition(record.topic, record.partition)
            state = self.facts.states.get(tp)
            if state is not None and state.leader != NO_LEADER:
                self.check(record, tp, state.leader, state)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action == "truncate":
            super().log_changed(record, tp)

    def check(self, record: Record, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        logs = self.facts.logs
        there, promised = logs.of(tp, leader).entries, logs.acknowledged.get(tp, [])
        lost = [p for p in promised if p.offset >= len(there) or there[p.offset].value != p.value]
        if lost and tp.topic not in self.facts.topics_to_be_deleted:
            logs.acknowledged[tp] = [p for p in promised if p not in lost]
            for acks in dict.fromkeys(p.acks for p in lost):
                values = ",".join(str(p.value) for p in lost if p.acks == acks)
                text = f"broker {leader} leads {tp} without {values}, acknowledged with acks={acks}"
                self.broken(record, text, Subject(tp, leader, aspect=f"{acks} {values}"))


class LogsMatch(DataInvariant):
    """Where two replicas have a record of the same leader epoch at the same offset, they are the same up to there."""

    id, name = "I5", "logs-match"
    motive = "KAFKA-1211, KAFKA-6361"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action not in ("append", "copy") or record.broker is None:
            return
        copies = self.facts.logs.copies[tp]
        mine = copies[record.broker].entries
        for other, copy in copies.items():
            for end in self._meeting(mine, copy.entries):
                if mine[:end] != copy.entries[:end]:
                    pair = sorted((record.broker, other))
                    text = f"brokers {pair} have different records of {tp} below offset {end}, where both have one of "
                    text += f"leader epoch {mine[end - 1].leader_epoch}"
                    self.broken(record, text, Subject(tp, aspect=str(pair)))

    def _meeting(self, one: list[Entry], other: list[Entry]) -> Iterator[int]:
        """The last offset, plus one, at which both have a record of the same epoch, if there is any."""
        for end in range(min(len(one), len(other)), 0, -1):
            if one[end - 1].leader_epoch == other[end - 1].leader_epoch:
                yield end
                return


class ReadsAreConsistent(DataInvariant):
    """What could once be read at an offset, below a leader's high watermark, is what is read there ever after."""

    id, name = "I6", "reads-are-consistent"
    motive = "ConsistentReadProperty in Vanlightly/kafka-tlaplus"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.read: dict[TopicPartition, list[int]] = {}

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if new is None:
            self.read.pop(tp, None)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action != "high-watermark" or record.leader != record.broker or record.broker is None:
            return
        own = self.facts.logs.of(tp, record.broker)
        values = [entry.value for entry in own.entries[: own.high_watermark]]
        before = self.read.setdefault(tp, [])
        length = min(len(values), len(before))
        changed = [] if values[:length] == before[:length] else zip(values, before, strict=False)
        for offset, (now, once) in enumerate(changed):
            if now != once:
                text = f"offset {offset} of {tp} reads {now} from broker {record.broker}; it was {once} before"
                self.broken(record, text, Subject(tp, aspect=str(offset)))
                self.read[tp] = values
                return
        before += values[len(before) :]


class WhoJoinsHasCaughtUp(DataInvariant):
    """A leader adds a follower to an ISR only when the follower's log reaches the leader's high watermark.

    It counts records, so that what KIP-101 leaves different below the high watermark in 0.10 does not hide it.
    """

    id, name = "I22", "who-joins-has-caught-up"
    motive = "Partition.scala, maybeExpandIsr"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if old is None or new is None or tp.topic in self.facts.topics_to_be_deleted:
            return
        if not self.facts.author(record).startswith("broker-"):
            return
        offset = self.facts.logs.of(tp, new.leader).high_watermark
        for replica in new.isr:
            end = len(self.facts.logs.of(tp, replica).entries)
            if replica not in old.isr and end < offset:
                text = (
                    f"broker {replica} joins the ISR of {tp} with a log that ends at {end}, below the high watermark "
                )
                self.broken(record, f"{text}{offset} of broker {new.leader}", Subject(tp, replica))


INVARIANTS = (
    StrongIsr, ValidHighWatermark, NothingAcknowledgedIsLost, LogsMatch, ReadsAreConsistent, WhoJoinsHasCaughtUp,
)  # fmt: skip
