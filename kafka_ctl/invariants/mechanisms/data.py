"""Mechanisms of the data: how acknowledged records are lost, logs come apart, and replicas join too early."""

from __future__ import annotations

from typing import ClassVar

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.invariants.base import Mechanism, PartitionMechanism, Reports, State, Subject
from kafka_ctl.invariants.facts import only
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

DATA = ("I1", "I3", "I4", "I6", "I24", "I25")


class OfPartition(Mechanism):
    """A mechanism of single partitions, which explains their violations from then on."""

    breaks: ClassVar[tuple[str, ...]] = DATA

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.partitions: set[TopicPartition] = set()
        """To which it has happened."""

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if record.action == "delete":
            self.partitions.discard(tp)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.partition in self.partitions


class LeaderOnly(Mechanism):
    """No bug: the producer had asked only for the leader's acknowledgement (`acks=1`).

    Kafka 2.0.1: clients, org.apache.kafka.clients.producer.ProducerConfig, ACKS_DOC
    """

    ticket = "acks=1"
    breaks = ("I4",)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.aspect.startswith("1 ")


class UncleanElection(OfPartition):
    """A replica out of sync was elected.

    Kafka 2.0.1: controller/PartitionStateMachine.scala, PartitionLeaderElectionAlgorithms
    """

    ticket = "KIP-106"

    def elected(self, record: Record) -> None:
        if record.target == "unclean":
            self.partitions.add(record.tp)


class CancelledMove(OfPartition):
    """A cancelled reassignment had a replica deleted that was in sync.

    Kafka 2.4.1: controller/KafkaController.scala, updateCurrentReassignment
    """

    ticket = "KAFKA-14424"
    field, value = "incremental_reassignment", True

    @only("stop-replica")
    def process(self, record: Record) -> None:
        if record.error is None and "delete" in details.flags(record.detail):
            state, assigned = self.facts.states.get(record.tp), self.facts.assigned(record.tp)
            if state and assigned and record.broker in state.isr and record.broker not in assigned.replicas:
                self.partitions.add(record.tp)


class TruncatedToHighWatermark(OfPartition):
    """A follower dropped records that its new leader also has, or kept some that the leader does not have.

    It truncates to its own high watermark, which it learns one fetch late, and not to where the logs part.
    Kafka 0.10.2.2: server/ReplicaManager.scala, makeFollowers
    """

    ticket = "KIP-101"
    breaks = (*DATA, "I5", "I29")
    field = "truncates_by_epoch"

    def log_changed(self, record: Record, tp: TopicPartition) -> None:
        if record.action not in ("truncate", "copy") or record.leader is None or record.broker is None:
            return
        own, theirs = (self.facts.logs.of(tp, id) for id in (record.broker, record.leader))
        kept, dropped = len(own.entries), own.dropped[:1] if record.action == "truncate" else []
        needless = dropped and theirs.entries[kept : kept + 1] == dropped
        if needless or theirs.entries[:kept] != own.entries:
            self.partitions.add(tp)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        """True as well if a follower has records at offsets at which its leader has others."""
        if super().explains(invariant, about, record) or invariant != "I29" or about.partition is None:
            return about.partition in self.partitions
        tp, state = about.partition, self.facts.states.get(about.partition)
        pair = (self.facts.logs.of(tp, id).entries for id in (about.broker or 0, state.leader if state else NO_LEADER))
        return any(own != theirs for own, theirs in zip(*pair, strict=False))


class JoinedTooEarly(OfPartition):
    """A follower was added to the ISR without all the records that its leader had when it began to lead.

    Kafka 0.10.2.2: cluster/Partition.scala, maybeExpandIsr
    """

    ticket = "KAFKA-7128"
    field = "joins_from_epoch_start"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        super().state_written(record, tp, old, new)
        if old is None or new is None or not self.facts.author(record).startswith("broker-"):
            return
        theirs = self.facts.logs.of(tp, new.leader).entries
        start = sum(entry.leader_epoch < new.leader_epoch for entry in theirs)
        joining = [replica for replica in new.isr if replica not in old.isr]
        if any(len(self.facts.logs.of(tp, replica).entries) < start for replica in joining):
            self.partitions.add(tp)


class ExpansionNotConfirmed(OfPartition):
    """A leader's ISR expansion was written, the answer was lost, and the leader goes on with the smaller ISR.

    Its high watermark does not wait for a follower that ZooKeeper has in the ISR, and that the controller may elect.
    Kafka 2.4.1: cluster/Partition.scala, maybeExpandIsr, updateIsr; ended by the maximal ISR of KIP-497
    """

    ticket = "KIP-497"
    breaks = (*DATA, "I26")

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.written_by: dict[TopicPartition, str] = {}
        """The followers whose expansion was written and has not been confirmed yet."""

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        super().state_written(record, tp, old, new)
        if old is not None and new is not None and set(new.isr) > set(old.isr):
            self.written_by[tp] = self.facts.author(record)

    @only("expand-isr")
    def process(self, record: Record) -> None:
        if self.written_by.get(record.tp) == record.actor:
            if record.error is None:
                del self.written_by[record.tp]
            else:
                self.partitions.add(record.tp)


class StrayLog(OfPartition):
    """A partition was created again, and one of its brokers still had the log of the earlier partition.

    That broker was down when its copy was to be deleted, and it gets no request when it starts.
    Kafka 2.0.1: log/LogManager.scala, getOrCreateLog (takes the log that is there); ended by topic ids (KIP-516)
    """

    ticket = "KAFKA-7362"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        super().state_written(record, tp, old, new)
        if old is None and new is not None and any(self._has_stray_log(tp, replica) for replica in new.isr):
            self.partitions.add(tp)

    def _has_stray_log(self, tp: TopicPartition, broker: int) -> bool:
        """True if a broker has records of the partition from before it registered itself last."""
        if not self.facts.logs.of(tp, broker).entries:
            return False
        written = [r.seq for act in ("append", "copy") for r in self.past.of("broker", act, tp, broker=broker)]
        registered = self.past.last("broker", "registered", broker)
        return all(seq < registered for seq in written)


class ReplacedDisk(OfPartition):
    """A broker of the ISR came back with empty disks: the controller does not check whether it still has its records.

    Kafka 2.0.1: controller/PartitionStateMachine.scala, offlinePartitionLeaderElection (asks for the ISR alone); ended
    by KIP-966
    """

    ticket = "KIP-966"
    breaks = (*DATA, "I5", "I22")

    @only("start")
    def process(self, record: Record) -> None:
        if record.kind == "fault" and "empty" in details.flags(record.detail):
            self.partitions.update(tp for tp, state in self.facts.states.items() if record.broker in state.isr)


class JoinedWhileLeaving(PartitionMechanism):
    """A follower had caught up, and its leader added it to the ISR without knowing that it leaves, or has left.

    Kafka 2.4.1: cluster/Partition.scala, maybeExpandIsr (the leader does not ask who is alive); the
    follower may have missed the leader's epoch, which is not sent to a broker that is considered dead (a fetch session
    does not check it, KAFKA-9338), and goes on with its fetcher where the request named no leader
    (server/ReplicaManager.scala, makeFollowers)
    """

    ticket = "KAFKA-14140"
    breaks = ("I15",)

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        epochs = {state.leader_epoch}
        for followed in self.past.of("broker", "become-follower", tp, broker=about.broker):
            if followed.error is None:
                epochs.add(followed.leader_epoch or 0)
                if "fetcher=kept" not in (followed.detail or ""):
                    break
        caught_up = self.past.of("broker", "caught-up", tp, broker=about.broker)
        return any(r.leader == state.leader and r.leader_epoch in epochs for r in caught_up)
