"""Mechanisms of administrators' requests: reassignments that do not end, and assignments that change."""

from __future__ import annotations

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.invariants.base import DELETION, MOVE, Mechanism, PartitionMechanism, Subject
from kafka_ctl.invariants.facts import REASSIGN, TOPIC
from kafka_ctl.invariants.past import START, isr_before
from kafka_ctl.replica import NEW, NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import Record


class MoveFailedHalfWay(Mechanism):
    """A reassignment failed after its replicas had been assigned; the state machine knows nothing of them.

    They get no LeaderAndIsr request when their brokers start, for they cannot go from NonExistent to Online; the topic
    is not deleted, nor are those behind it, for they have no state; and the reassignment is not begun again. It fails
    where the partition has no state, and none is made before the next broker starts, though a new replica could lead.
    One that leads then, and dies, stays the leader in ZooKeeper: it cannot go from NonExistent to Offline.
    Kafka 2.0.1: controller/KafkaController.scala, onPartitionReassignment, updateLeaderEpoch (IllegalStateException);
    0.10.2.2: initiateReassignReplicasForTopicPartition
    """

    ticket = "KafkaController.onPartitionReassignment"
    breaks = ("I14", "I19", "I21", "I23")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.aspect == DELETION:
            failed = (f for name in ("error_processing", "thread_died") for _, f in self.messages(name))
            stuck = any("key not found: [Topic=" in fields["error"] for fields in failed)
            return stuck or any(map(self._refused, self.facts.partitions(about.topic or "")))
        if about.partition is None:
            return False
        if about.aspect == MOVE or invariant == "I23":
            return self._failed(about.partition) > START
        target = str(OFFLINE if invariant == "I21" else ONLINE)
        return any((r.broker, r.target) == (about.broker, target) for r in self._refused(about.partition))

    def _failed(self, tp: TopicPartition) -> int:
        """Since when a reassignment of the partition has failed that the present controller had begun, or START."""
        return self.last_message("reassignment_failed", lambda fields: fields["partition"] == str(tp))

    def _refused(self, tp: TopicPartition) -> list[Record]:
        """The moves of NonExistent replicas that were refused since."""
        since = self._failed(tp)
        refused = () if since == START else self.past.of("replica", "refuse", tp, since)
        return [r for r in refused if r.source == str(NON_EXISTENT)]


class MoveBegunTwice(PartitionMechanism):
    """A reassignment was begun, and its request read once more: it counts as done, and new replicas stay New.

    If no replica is removed, the assignment equals the requested one from the first step on. A broker that was down at
    that time gets no request when it starts, because nothing is sent to a replica that moves from New to Online.
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

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        waiting, ignored = "reassignment_waiting", "reassignment_not_needed"
        begun, again = (self.last_message(m, lambda fields: fields["partition"] == str(tp)) for m in (waiting, ignored))
        if about.broker is None or not START < begun < again:
            return False
        joined = self.past.of("replica", "join", tp, again, broker=about.broker)
        sent = self.past.sent(tp, about.broker, self.past.life(about.broker))
        is_new = any(r.source == str(NEW) for r in joined)
        return is_new and not any(r.leader_epoch == state.leader_epoch for r in sent)


class MoveWithoutElection(PartitionMechanism):
    """A reassignment ended while none of its replicas could lead; the partition counts as online and is not elected.

    Kafka 2.0.1: controller/KafkaController.scala, moveReassignedPartitionLeaderIfRequired (what the state machine
    refuses is logged, and the old replicas go all the same); 0.10.2.2 and 2.4.1 alike
    """

    ticket = "KafkaController.moveReassignedPartitionLeaderIfRequired"
    breaks = ("I19",)
    aspect = ""

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        last = next(self.past.of("election", "reassign", tp, self.past.term(self.facts.acting)), None)
        return state.leader == NO_LEADER and last is not None and last.leader is None


class RequestOutlivesTopic(Mechanism):
    """A reassignment in `/admin/reassign_partitions` was asked for before its topic was deleted and made again.

    A topic that moves is deleted all the same, for it is marked as ineligible before it is queued; what was asked for
    stays, and is not read when there is a topic of that name again. Or it is carried out then, for a partition
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
        return self.facts.requested[tp] < self.past.wrote("create", TOPIC + tp.topic)


class _RequestRemoved(Mechanism):
    """Violations after `/admin/reassign_partitions` was deleted by another client than the controller."""

    breaks = ("I16", "I19")
    field = "requests_begin_when_created"
    aspect = MOVE

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp, acting = about.partition, self.facts.acting
        if tp is None:
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
        logged = self.messages("handling_reassignment")
        found = ((r.seq, tuple(fields["replicas"])) for r, fields in logged if fields["partition"] == str(tp))
        return next(found, (START, ()))

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        """True if the acting controller misses the requests since then."""
        raise NotImplementedError


class RequestIgnored(_RequestRemoved):
    """A request was deleted by hand; the controller goes on with it, and ignores its partitions in the next request.

    So it deletes copies that are to stay, and does not do what the next request asks for.
    Kafka 0.10.2.2: controller/KafkaController.scala, PartitionsReassignedListener.doHandleDataChange
    """

    ticket = "PartitionsReassignedListener.doHandleDataChange"

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        return START < self._begun(tp)[0] < removed


class RequestUnwatched(_RequestRemoved):
    """A request was deleted by hand, which fired the watch; the controller does not notice the next request.

    It looks for one, and watches, when it has deleted the znode itself, or is elected. It goes on with the request that
    it has begun, and deletes replicas that are to stay.
    Kafka 2.0.1, 2.4.1: controller/KafkaController.scala, PartitionReassignmentHandler (no handleDeletion)
    """

    ticket = "KafkaController.PartitionReassignmentHandler"
    value = True

    def _missed(self, tp: TopicPartition, removed: int) -> bool:
        looked = self.past.of("zk", "exists", REASSIGN, removed, actor=f"broker-{self.facts.controller}")
        return not any(True for _ in looked)


class DiskRefuses(Mechanism):
    """A broker that has lost a disk refuses a replica that is not marked as new, and all later requests about it.

    Kafka 2.0.1: controller/KafkaController.scala, updateLeaderEpochAndSendRequest; log/LogManager.scala,
    getOrCreateLog; server/ReplicaManager.scala, becomeLeaderOrFollower (OfflinePartition)
    """

    ticket = "KAFKA-10314"
    breaks = ("I19",)
    field = "announces_new_replicas"
    aspect = MOVE

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.partition is not None and any(self._refused(about.partition, broker) for broker in about.brokers)

    def _refused(self, tp: TopicPartition, broker: int) -> bool:
        """True if the present process of a broker refused the partition for its failed disk."""
        failed = self.past.last("broker", "log-dir-failed", broker)
        if failed < self.past.last("broker", "start", broker):
            return False
        ignored = self.past.of("broker", "ignored", tp, failed, broker=broker)
        return any(r.error == "KAFKA_STORAGE_ERROR" for r in ignored)


class DiskFailedUnderNewReplica(PartitionMechanism):
    """A disk failed under a replica that was still New for the controller, which sends requests only to the others.

    Kafka 2.0.1: controller/ReplicaStateMachine.scala, doHandleStateChanges (NewReplica to OnlineReplica sends nothing)
    """

    ticket = "ReplicaStateMachine.doHandleStateChanges"
    breaks = ("I19",)
    field, value = "marks_new_replicas", True
    aspect = ""

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        term = self.past.term(self.facts.acting)
        for move in self.past.of("replica", "join", tp, term, broker=state.leader):
            event = self.past.records[move.cause] if move.cause is not None else None
            if event is not None and event.action == "LogDirEventNotification":
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
        resigned = next((r.seq for r, _ in self.past.logged("resigned", actor=record.actor)), START)
        started = self.past.last("broker", "start", number_of(record.actor))
        began = self.past.logged("handling_reassignment", started, record.actor)
        earlier = (fields for r, fields in began if r.seq < resigned and fields["partition"] == str(about.partition))
        return any(about.broker not in fields["replicas"] for fields in earlier)


class Overwritten(Mechanism):
    """A tool that adds partitions also writes back the other assignments as it read them, before they moved.

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


class AssignmentShrinksFirst(Mechanism):
    """A reassignment ends in two steps: first the assignment gets smaller, then the ISR.

    Kafka 2.4.1: controller/KafkaController.scala, onPartitionReassignment
    """

    ticket = "KAFKA-9672"
    breaks = ("I12",)
    field, value = "incremental_reassignment", True
    aspect = "strangers"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.state is not None and set(about.brokers) <= set(about.state.isr)


class LeaderKnowsOldReplicas(Mechanism):
    """A leader adds a follower that is no longer a replica to the ISR, because it did not get the new assignment.

    The reassignment had nothing to write into the state, so the version that the leader expects is still right.
    Kafka 0.10.2.2: cluster/Partition.scala, maybeExpandIsr; controller/KafkaController.scala, onPartitionReassignment
    """

    ticket = "Partition.maybeExpandIsr"
    breaks = ("I12",)
    aspect = "strangers"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.partition is None or record is None:
            return False
        tp, author = about.partition, self.facts.author(record)
        stay = set(about.state.isr) & self._added(tp) if about.state else set()
        return set(about.brokers) <= stay | self._replicas(tp, author, record.seq)

    def _replicas(self, tp: TopicPartition, author: str, before: int) -> set[int]:
        """The replicas of a partition as its leader has heard of them."""
        led = self.past.of("broker", "become-leader", tp, actor=author)
        last = next((r for r in led if r.seq < before and not r.error), None)
        return set(last.replicas or ()) if last else set()

    def _added(self, tp: TopicPartition) -> set[int]:
        """The brokers that leaders have added in this way, and that are still in the ISR."""
        grown = [r for r in self.past.of("broker", "expand-isr", tp) if r.error is None]
        added = [(r, set(r.isr or ()) - set(isr_before(r))) for r in grown]
        return {id for r, ids in added for id in ids & self._replicas(tp, r.actor, r.seq)}
