"""Mechanisms of administrators' requests: reassignments that do not end, and assignments that change."""

from __future__ import annotations

from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.invariants.base import Mechanism, Subject
from kafka_ctl.invariants.facts import REASSIGN, TOPIC
from kafka_ctl.invariants.past import START, isr_before
from kafka_ctl.replica import NEW, NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.trace.record import Record

DELETION, MOVE = "deletion", "move"


class RequestOutlivesTopic(Mechanism):
    """A reassignment in `/admin/reassign_partitions` was asked for before its topic was deleted and made again.

    A topic that moves is deleted all the same, for it is marked as ineligible before it is queued; what was asked for
    stays, and nobody looks at it when there is a topic of that name again. Or it is carried out then, for a partition
    that the new topic does not have.
    Kafka 2.0.1: controller/KafkaController.scala, TopicDeletion; controller/ControllerContext.scala, removeTopic; the
    same in 0.10.2.2 and 2.4.1
    """

    ticket = "KafkaController.TopicDeletion"
    breaks = ("I19", "I23")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp = about.partition
        if tp is None or tp not in self.facts.requested or (about.aspect != MOVE and invariant != "I23"):
            return False
        made = next((r.seq for r in self.past.of("zk", "create", TOPIC + tp.topic) if r.error is None), -1)
        return self.facts.requested[tp] < made


class _RequestRemoved(Mechanism):
    """Violations after `/admin/reassign_partitions` was deleted by another client than the controller."""

    breaks = ("I16", "I19")
    field = "requests_begin_when_created"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp, acting = about.partition, self.facts.acting
        if about.aspect != MOVE or tp is None:
            return False
        gone = self.past.of("zk", "delete", REASSIGN, self.past.term(acting))
        by_hand = [r.seq for r in gone if r.error is None and self.facts.author(r) != acting]
        if invariant == "I16":
            return any(self._goes_on(tp, about.broker, seq) for seq in by_hand)
        asked = self.facts.requested.get(tp, START)
        return any(self._missed(tp, seq) for seq in by_hand if seq < asked)

    def _goes_on(self, tp: TopicPartition, broker: int | None, removed: int) -> bool:
        """True if a move that takes the partition from a broker had begun when the request was removed."""
        assigned = self.facts.assigned(tp)
        if assigned is not None and assigned.is_being_reassigned:
            return broker not in assigned.target
        begun, target = self._begun(tp)
        return START < begun < removed and broker not in target

    def _begun(self, tp: TopicPartition) -> tuple[int, tuple[int, ...]]:
        """The record at which the acting controller last began to move the partition, and the target brokers."""
        logged = self.past.logged("handling_reassignment", self.past.term(self.facts.acting), self.facts.acting)
        found = ((r.seq, tuple(fields["replicas"])) for r, fields in logged if fields["partition"] == str(tp))
        return next(found, (START, ()))

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        """True if the acting controller misses the requests since then."""
        raise NotImplementedError


class RequestIgnored(_RequestRemoved):
    """A request was deleted by hand; the controller goes on with it, and leaves out of the next what it is moving.

    So it deletes what is to stay, and what the next one asks for is not done.
    Kafka 0.10.2.2: controller/KafkaController.scala, PartitionsReassignedListener.doHandleDataChange
    """

    ticket = "PartitionsReassignedListener.doHandleDataChange"

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        return START < self._begun(tp)[0] < removed


class RequestUnwatched(_RequestRemoved):
    """A request was deleted by hand, which used up the watch; the controller notices no request that is made then.

    It looks for one, and watches, when it has deleted the znode itself, or is elected. What it has begun it goes on
    with, and deletes what is to stay.
    Kafka 2.0.1, 2.4.1: controller/KafkaController.scala, PartitionReassignmentHandler (no handleDeletion)
    """

    ticket = "KafkaController.PartitionReassignmentHandler"
    value = True

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        looked = self.past.of("zk", "exists", REASSIGN, removed)
        return not any(r.actor == f"broker-{self.facts.controller}" for r in looked)


class MoveFailedHalfWay(Mechanism):
    """A reassignment failed after its replicas had been assigned; the state machine knows nothing of them.

    They get no LeaderAndIsr request when their brokers start, for they cannot go from NonExistent to Online; the topic
    is not deleted, for they cannot be either; and nobody begins the reassignment again. It fails where the partition
    has no state, and nobody makes that either before the next broker starts, though a new replica could lead. One that
    leads then, and dies, stays the leader in ZooKeeper: it cannot go from NonExistent to Offline.
    Kafka 2.0.1: controller/KafkaController.scala, onPartitionReassignment, updateLeaderEpoch (IllegalStateException);
    0.10.2.2: initiateReassignReplicasForTopicPartition
    """

    ticket = "KafkaController.onPartitionReassignment"
    breaks = ("I14", "I19", "I21", "I23")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.aspect == DELETION:
            numbers = self.facts.assignments.get(about.topic or "", {})
            return any(self._refused(TopicPartition(about.topic or "", number)) for number in numbers)
        if about.partition is None:
            return False
        if about.aspect == MOVE or invariant == "I23":
            return self._failed(about.partition) is not None
        target = str(OFFLINE if invariant == "I21" else ONLINE)
        return any((r.broker, r.target) == (about.broker, target) for r in self._refused(about.partition))

    def _failed(self, tp: TopicPartition) -> int | None:
        """Since when a reassignment of the partition has failed that the present controller had begun."""
        acting = self.facts.acting
        failed = self.past.logged("reassignment_failed", self.past.term(acting), acting)
        return next((record.seq for record, fields in failed if fields["partition"] == str(tp)), None)

    def _refused(self, tp: TopicPartition) -> list[Record]:
        """The moves of NonExistent replicas that were refused since."""
        since = self._failed(tp)
        refused = () if since is None else self.past.of("replica", "refuse", tp, since)
        return [r for r in refused if r.source == str(NON_EXISTENT)]


class MoveBegunTwice(Mechanism):
    """A reassignment was begun, and its request looked at once more: it counts as done, and new replicas stay New.

    The assignment is the one asked for from the first step on. A broker that was down then gets no request when it
    starts, for a replica that moves from New to Online is sent nothing.
    Kafka 2.0.1: controller/KafkaController.scala, PartitionReassignment, maybeTriggerPartitionReassignment,
    removePartitionsFromReassignedPartitions (which queues the event again)
    """

    ticket = "KafkaController.PartitionReassignment"
    breaks = ("I14",)
    field = "incremental_reassignment"

    @classmethod
    def possible(cls, generation: Generation) -> bool:
        """A notification of a changed request leaves out the partitions that are moving already."""
        return super().possible(generation) and generation.reassignment.requests_begin_when_created

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp, broker = about.partition, about.broker
        state = self.facts.states.get(tp) if tp else None
        if tp is None or broker is None or state is None:
            return False
        begun = self._last_logged("reassignment_waiting", tp)
        ignored = self._last_logged("reassignment_not_needed", tp)
        if not START < begun < ignored:
            return False
        joined = [
            r for r in self.past.of("replica", "join", tp, ignored) if r.broker == broker and r.source == str(NEW)
        ]
        sent = self.past.sent(tp, broker, self.past.life(broker))
        return bool(joined) and not any(r.leader_epoch == state.leader_epoch for r in sent)

    def _last_logged(self, message: str, tp: TopicPartition) -> int:
        """The last record of the acting controller's term with this message on the partition; START if none."""
        logged = self.past.logged(message, self.past.term(self.facts.acting), self.facts.acting)
        return next((r.seq for r, fields in logged if fields["partition"] == str(tp)), START)


class MoveElectsNobody(Mechanism):
    """A reassignment ended while none of its replicas could lead; the partition counts as online and is not elected.

    Kafka 2.0.1: controller/KafkaController.scala, moveReassignedPartitionLeaderIfRequired (what the state machine
    refuses is logged, and the old replicas go all the same); 0.10.2.2 and 2.4.1 alike
    """

    ticket = "KafkaController.moveReassignedPartitionLeaderIfRequired"
    breaks = ("I19",)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        state = self.facts.states.get(about.partition) if about.partition else None
        if state is None or state.leader != NO_LEADER or about.aspect != "":
            return False
        held = self.past.of("election", "reassign", about.partition, self.past.term(self.facts.acting))
        last = next(held, None)
        return last is not None and last.leader is None


class DiskRefuses(Mechanism):
    """A broker that has lost a disk refuses a replica that is not marked as new, and all later requests about it.

    Kafka 2.0.1: controller/KafkaController.scala, updateLeaderEpochAndSendRequest; log/LogManager.scala,
    getOrCreateLog; server/ReplicaManager.scala, becomeLeaderOrFollower (OfflinePartition)
    """

    ticket = "KAFKA-10314"
    breaks = ("I19",)
    field = "announces_new_replicas"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp = about.partition
        if tp is None or about.aspect != MOVE:
            return False
        return any(self._refused(tp, broker) for broker in about.brokers)

    def _refused(self, tp: TopicPartition, broker: int) -> bool:
        """True if the present process of a broker refused the partition for its failed disk."""
        failed = self.past.last("broker", "log-dir-failed", broker)
        if failed < self.past.last("broker", "start", broker):
            return False
        ignored = (r for r in self.past.of("broker", "ignored", tp, failed) if r.broker == broker)
        return any(r.error == "KAFKA_STORAGE_ERROR" for r in ignored)


class DiskFailedUnderNewReplica(Mechanism):
    """A disk failed under a replica that was still New for the controller, which asks only the others for answers.

    Kafka 2.0.1: controller/ReplicaStateMachine.scala, doHandleStateChanges (NewReplica to OnlineReplica sends nothing)
    """

    ticket = "ReplicaStateMachine.doHandleStateChanges"
    breaks = ("I19",)
    field = "marks_new_replicas"
    value = True

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        state = self.facts.states.get(about.partition) if about.partition else None
        if state is None or about.aspect != "" or about.partition is None:
            return False
        for move in self.past.of("replica", "join", about.partition, self.past.term(self.facts.acting)):
            event = self.past.records[move.cause] if move.cause is not None else None
            if move.broker == state.leader and event is not None and event.action == "LogDirEventNotification":
                return self.past.last("broker", "start", state.leader) < move.seq
        return False


class RemembersOldMoves(Mechanism):
    """A controller that was elected again goes on with a reassignment of its earlier term, whatever has happened since.

    Kafka 0.10.2.2: controller/KafkaController.scala, onControllerResignation
    """

    ticket = "KAFKA-5310"
    breaks = ("I16",)
    field = "forgets_on_resignation"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if record is None or about.partition is None:
            return False
        resigned = next((r.seq for r, _ in self.past.logged("resigned", actor=record.actor)), -1)
        started = self.past.last("broker", "start", int(record.actor.rpartition("-")[2]))
        targets = [
            fields["replicas"]
            for r, fields in self.past.logged("handling_reassignment", started, record.actor)
            if r.seq < resigned and fields["partition"] == str(about.partition)
        ]
        return any(about.broker not in target for target in targets)


class AssignmentShrinksFirst(Mechanism):
    """A reassignment ends in two steps: first the assignment gets smaller, then the ISR.

    Kafka 2.4.1: controller/KafkaController.scala, onPartitionReassignment
    """

    ticket = "KAFKA-9672"
    breaks = ("I12",)
    field = "incremental_reassignment"
    value = True

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.aspect == "strangers" and about.state is not None and set(about.brokers) <= set(about.state.isr)


class LeaderKnowsOldReplicas(Mechanism):
    """A leader adds a follower to the ISR that is no replica any more, for it did not receive the new assignment.

    The reassignment had nothing to write into the state, so the version that the leader expects is still right.
    Kafka 0.10.2.2: cluster/Partition.scala, maybeExpandIsr; controller/KafkaController.scala, onPartitionReassignment
    """

    ticket = "Partition.maybeExpandIsr"
    breaks = ("I12",)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.aspect != "strangers" or about.partition is None or record is None:
            return False
        tp, author = about.partition, self.facts.author(record)
        stay = set(about.state.isr) & self._added(tp) if about.state else set()
        return set(about.brokers) <= stay | self._replicas(tp, author, record.seq)

    def _replicas(self, tp: TopicPartition, author: str, before: int) -> set[int]:
        """The replicas of a partition as its leader has heard of them."""
        led = (r for r in self.past.of("broker", "become-leader", tp) if r.actor == author and not r.error)
        last = next((r for r in led if r.seq < before), None)
        return set(last.replicas or ()) if last else set()

    def _added(self, tp: TopicPartition) -> set[int]:
        """The brokers that leaders have added so, and that nobody has taken out of the ISR yet."""
        grown = [r for r in self.past.of("broker", "expand-isr", tp) if r.error is None]
        added = [(r, set(r.isr or ()) - set(isr_before(r))) for r in grown]
        return {id for r, ids in added for id in ids & self._replicas(tp, r.actor, r.seq)}


class Overwritten(Mechanism):
    """A tool that adds partitions writes back what it had read of the others; a controller had moved them since.

    Kafka 2.0.1: zk/AdminZkClient.scala, addPartitions
    """

    ticket = "KAFKA-9038"
    breaks = ("I12", "I16")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        before = self.facts.overwritten.get(about.partition) if about.partition else None
        if before is None:
            return False
        if invariant == "I16":
            return about.broker not in before.target
        return about.aspect == "strangers" and set(about.brokers) <= set(before.replicas)


MECHANISMS = (
    *(MoveFailedHalfWay, MoveBegunTwice, MoveElectsNobody, RequestOutlivesTopic, RequestIgnored, RequestUnwatched),
    *(DiskRefuses, DiskFailedUnderNewReplica, RemembersOldMoves, Overwritten, AssignmentShrinksFirst),
    LeaderKnowsOldReplicas,
)
