"""Invariants of the data: the promises of brokers to producers and consumers.

Most come from formal models of Kafka's replication (StrongIsr, ValidHighWatermark, LogMatching, ConsistentRead).

Separate from `checker.py` because that one calls the invariants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_ctl.brokers.fetches import NO_EPOCH, FetchRequest
from kafka_ctl.brokers.log import GONE, Entry
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.invariants.base import Invariant, Reports, State, Subject
from kafka_ctl.invariants.facts import only
from kafka_ctl.invariants.logs import Acknowledged, acknowledged
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import World


class DataInvariant(Invariant):
    """The base of invariants that check one partition after each change of its state or of a log."""

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if new is not None and new.leader != NO_LEADER and tp in self.facts.logs.copies:
            self._check(record, tp, new.leader, new)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        state = self.facts.states.get(tp)
        if state is not None and record.broker is not None:
            leads = record.leader == record.broker  # by its own account
            self._check(record, tp, record.broker if leads else state.leader, state)

    def _check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        if not self.facts.is_deleting(tp):
            self.check(record, tp, leader, state)

    def check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        """Check a partition whose topic is to stay."""
        raise NotImplementedError


class StrongIsr(DataInvariant):
    """The records below a leader's high watermark are the same on every replica in sync."""

    id, name = "I1", "strong-isr"
    motive = "StrongIsr in hachikuji/kafka-specification"

    def check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        own = self.facts.logs.of(tp, leader)
        for replica in state.isr:
            if own.differs(self.facts.logs.of(tp, replica)):
                text = f"broker {replica} is in the ISR of {tp}, but has not what lies below the high watermark "
                text += f"{own.high_watermark} of broker {leader}"
                self.broken(record, text, Subject(tp, replica))


class ValidHighWatermark(DataInvariant):
    """A high watermark never exceeds the end of its replica's log, or, on a leader, of any log in sync."""

    id, name = "I3", "valid-high-watermark"
    motive = "ValidHighWatermark in hachikuji/kafka-specification"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        super().log_changed(record, tp)
        if record.broker is not None:
            own = self.facts.logs.of(tp, record.broker)
            if own.high_watermark > len(own.entries):
                text = f"the high watermark {own.high_watermark} of {tp} on broker {record.broker} is beyond its end"
                self.broken(record, text, Subject(tp, record.broker, aspect="own"))

    def check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        offset = self.facts.logs.of(tp, leader).high_watermark
        if short := [r for r in state.isr if len(self.facts.logs.of(tp, r).entries) < offset]:
            text = f"the high watermark {offset} of {tp} on broker {leader} is beyond the end of the log on {short}"
            self.broken(record, text, Subject(tp, aspect=str(short)))


class NothingAcknowledgedIsLost(DataInvariant):
    """The leader of a partition has every record of it that was acknowledged."""

    id, name = "I4", "nothing-acknowledged-is-lost"
    motive = "KAFKA-1211, KAFKA-7128"

    def answered(self, record: Record) -> None:
        state = self.facts.states.get(record.tp)
        if record.actor == "producer" and state is not None and state.leader != NO_LEADER:
            self._check(record, record.tp, state.leader, state)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action == "truncate":
            super().log_changed(record, tp)

    def check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        own, promised = self.facts.logs.of(tp, leader), self.facts.logs.acknowledged.get(tp, [])
        if lost := [p for p in promised if not own.has(p) and not own.has_deleted(p)]:
            self.facts.logs.acknowledged[tp] = [p for p in promised if p not in lost]
            for acks in dict.fromkeys(p.acks for p in lost):
                values = ",".join(str(p.value) for p in lost if p.acks == acks)
                text = f"broker {leader} leads {tp} without {values}, acknowledged with acks={acks}"
                self.broken(record, text, Subject(tp, leader, aspect=f"{acks} {values}"))


class LogsMatch(Invariant):
    """If two replicas have a record of the same leader epoch at the same offset, their logs are equal up to it."""

    id, name = "I5", "logs-match"
    motive = "KAFKA-1211, KAFKA-6361"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action not in ("append", "copy") or record.broker is None:
            return
        copies = self.facts.logs.copies[tp]
        own = copies[record.broker]
        for other, copy in copies.items():
            start, end = max(own.start, copy.start), self._meeting(own.entries, copy.entries)
            if own.entries[start:end] != copy.entries[start:end]:
                pair = sorted((record.broker, other))
                text = f"brokers {pair} have different records of {tp} below offset {end}, where both have one of "
                text += f"leader epoch {own.entries[end - 1].leader_epoch}"
                self.broken(record, text, Subject(tp, aspect=str(pair)))

    def _meeting(self, one: list[Entry], other: list[Entry]) -> int:
        """The last offset, plus one, at which both have a record of the same epoch; 0 if there is none."""
        ends = range(min(len(one), len(other)), 0, -1)
        return next((end for end in ends if one[end - 1].leader_epoch == other[end - 1].leader_epoch), 0)


class ReadsAreConsistent(Invariant):
    """A record that could once be read at an offset, below a leader's high watermark, stays there."""

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
        start, length = own.start, min(len(values), len(before))  # what is deleted is no longer read
        same = values[start:length] == before[start:length]
        for offset, (now, once) in enumerate(() if same else zip(values, before, strict=False)):
            if now != once and offset >= start and once != GONE.value:
                text = f"offset {offset} of {tp} reads {now} from broker {record.broker}; it was {once} before"
                self.broken(record, text, Subject(tp, aspect=str(offset)))
                self.read[tp] = values
                return
        before += values[len(before) :]


class WhoJoinsHasCaughtUp(Invariant):
    """A leader adds a follower to an ISR only when the follower's log reaches the leader's high watermark.

    The check compares how many records there are, not which: in 0.10 logs may differ below the high watermark
    (KIP-101), and that breaks I1.
    """

    id, name = "I22", "who-joins-has-caught-up"
    motive = "Partition.scala, maybeExpandIsr"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if old is None or new is None or self.facts.is_deleting(tp):
            return
        if not self.facts.author(record).startswith("broker-"):
            return
        offset = self.facts.logs.of(tp, new.leader).high_watermark
        for replica in new.isr:
            end = len(self.facts.logs.of(tp, replica).entries)
            if replica not in old.isr and end < offset:
                text = f"broker {replica} joins the ISR of {tp} with a log that ends at {end}, below the high watermark"
                self.broken(record, f"{text} {offset} of broker {new.leader}", Subject(tp, replica))


class WeakIsr(Invariant):
    """The records below a leader's high watermark are the same on every replica that this leader counts as in sync.

    A leader is a broker that acts as one, even if another broker has been elected meanwhile.
    """

    id, name = "I24", "weak-isr"
    motive = "WeakIsr in hachikuji/kafka-specification"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        leading = [b for b in self.checker.world.brokers.values() if b.listening and b.leads(tp)]
        for broker in () if self.facts.is_deleting(tp) else leading:
            own = self.facts.logs.of(tp, broker.id)
            for replica in broker.hosted[tp].state.isr:
                if own.differs(self.facts.logs.of(tp, replica)):
                    text = f"broker {broker.id} leads {tp} and takes {replica} for in sync, which has not what lies "
                    text += f"below the high watermark {own.high_watermark}"
                    self.broken(record, text, Subject(tp, replica))


class CommittedIsSomewhere(Invariant):
    """Every record acknowledged with `acks=all` is in the log of a broker, also while its partition has no leader."""

    id, name = "I25", "committed-is-somewhere"
    motive = "NoCommittedRecordLostGlobally in Vanlightly/kafka-tlaplus"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.promised: dict[TopicPartition, list[Acknowledged]] = {}

    def answered(self, record: Record) -> None:
        if record.actor == "producer" and (promised := [p for p in acknowledged(record) if p.acks == "all"]):
            self.promised.setdefault(record.tp, []).extend(promised)
            self._look(record, record.tp)

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if new is None:
            self.promised.pop(tp, None)

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action == "truncate":
            self._look(record, tp)

    @only("stop-replica", "start")
    def process(self, record: Record) -> None:
        if record.action == "stop-replica":
            self._look(record, record.tp)
        elif record.kind == "fault" and "empty" in details.flags(record.detail):
            for tp in list(self.promised):
                self._look(record, tp)

    def _look(self, record: Record, tp: TopicPartition) -> None:
        promised = self.promised.get(tp, [])
        copies = self.facts.logs.copies.get(tp, {}).values()
        lost = [p for p in promised if not any(copy.has(p) or copy.has_deleted(p) for copy in copies)]
        if lost and not self.facts.is_deleting(tp):
            self.promised[tp] = [p for p in promised if p not in lost]
            values = ",".join(str(p.value) for p in lost)
            text = f"no broker has {values} of {tp} any more, acknowledged with acks=all"
            self.broken(record, text, Subject(tp, aspect=values))


class MaximalIsr(DataInvariant):
    """The leader of a partition waits for every broker that ZooKeeper has in the ISR of the same leader epoch.

    While it writes a new ISR, its high watermark stays as it is. So every member of an ISR may be elected.
    """

    id, name = "I26", "maximal-isr"
    motive = "ReplicationQuorumSupersetProperty in Vanlightly/kafka-tlaplus (KIP-497)"

    def check(self, record: Record | None, tp: TopicPartition, leader: int, state: LeaderAndIsr) -> None:
        broker = self.checker.world.brokers.get(state.leader)
        if broker is None or not broker.listening or not broker.leads(tp) or broker.as_leader.is_writing(tp):
            return
        own = broker.hosted[tp].state
        missing = tuple(replica for replica in state.isr if replica not in own.isr)
        if own.leader_epoch == state.leader_epoch and missing:
            text = f"broker {state.leader} leads {tp} and counts {list(own.isr)} as its ISR; ZooKeeper has "
            self.broken(record, f"{text}{list(state.isr)}", Subject(tp, state.leader, brokers=missing))

    def quiescent(self, world: World) -> None:
        for tp, state in self.facts.states.items():
            self._check(None, tp, state.leader, state)


class FetchesAsAssigned(Invariant):
    """A follower fetches from the leader, and in the leader epoch, that it was given last.

    A fetch may name no epoch: in 0.10 and 2.0, and within a fetch session of 2.4.
    """

    id, name = "I27", "fetches-as-assigned"
    motive = "ValidFetcherState in Vanlightly/kafka-tlaplus"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.given: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        """The leader and leader epoch that each follower was given."""

    @only("start", "become-follower", "become-leader", "stop-replica")
    def process(self, record: Record) -> None:
        if record.action == "start":
            self.given = {key: assigned for key, assigned in self.given.items() if key[1] != record.broker}
        elif record.broker is None or record.error is not None:
            return
        elif record.action == "become-follower":
            leader = -1 if record.leader is None else record.leader
            self.given[record.tp, record.broker] = leader, record.leader_epoch or 0
        else:
            self.given.pop((record.tp, record.broker), None)

    def fetched(self, leader: int, request: FetchRequest) -> None:
        assigned = self.given.get((request.partition, request.replica))
        if assigned is None or assigned[0] != leader or request.leader_epoch not in (NO_EPOCH, assigned[1]):
            named = "no leader" if assigned is None else f"broker {assigned[0]} in leader epoch {assigned[1]}"
            epoch = "" if request.leader_epoch == NO_EPOCH else f" in leader epoch {request.leader_epoch}"
            text = f"broker {request.replica} fetches {request.partition} from broker {leader}{epoch}; it was sent "
            self.broken(None, f"{text}{named}", Subject(request.partition, request.replica))
