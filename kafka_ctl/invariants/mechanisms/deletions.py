"""Mechanisms of deletions that do not end, and of traces that a deletion leaves in the controller."""

from __future__ import annotations

import re
from typing import ClassVar

from kafka_ctl.invariants.base import DELETION, Mechanism, Subject
from kafka_ctl.invariants.facts import TO_DELETE, TOPIC, decoded
from kafka_ctl.invariants.past import START
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import TopicZNode


class PartitionsAddedToDeletion(Mechanism):
    """Partitions were added to a topic that is being deleted; they are never created, and the deletion never ends.

    Kafka 0.10.2.2: controller/PartitionStateMachine.scala, PartitionModificationsListener
    """

    ticket = "KAFKA-6612"
    breaks = ("I19",)
    field = "restores_assignments"
    aspect = DELETION

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        asked = self.past.last("zk", "create", f"{TO_DELETE}{about.topic}")
        return any(fields["topic"] == about.topic for _, fields in self.past.logged("partitions_not_added", asked))


class NeverLed(Mechanism):
    """A partition never had a leader, so that its replicas cannot go offline and are not deleted.

    Kafka 0.10.2.2: controller/ReplicaStateMachine.scala, handleStateChange (OfflineReplica)
    """

    ticket = "KAFKA-6650"
    breaks = ("I19",)
    field = "tolerates_missing_state"
    aspect = DELETION

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return not self.facts.partitions(about.topic or "").keys() <= self.facts.states.keys()


class MoveDropped(Mechanism):
    """A topic could not be deleted because it moved; its reassignment is dropped, and the deletion is not resumed.

    Kafka 2.0.1: controller/KafkaController.scala, maybeTriggerPartitionReassignment
    """

    ticket = "KafkaController.maybeTriggerPartitionReassignment"
    breaks = ("I19",)
    aspect = DELETION

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        skipped = self.past.logged("reassignment_skipped", self.past.last("controller", "elected"))
        return about.topic in (fields["partition"].rpartition("-")[0] for _, fields in skipped)


class StaysIneligible(Mechanism):
    """A topic was deleted while it was marked as ineligible for deletion; the next topic of that name has the mark.

    A halted deletion may end all the same: a replica on a broker that is dead by now may have been deleted before.
    Kafka 2.4.1: controller/TopicDeletionManager.scala, completeDeleteTopic (topicsIneligibleForDeletion is not
    touched); 0.10.2.2 and 2.0.1 alike
    """

    ticket = "TopicDeletionManager.completeDeleteTopic"
    breaks = ("I19",)
    aspect = DELETION

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        topic = about.topic
        deleted = self.last_message("deletion_completed", lambda fields: fields["topic"] == topic)
        halted = self.last_message("deletion_halted", lambda fields: topic in fields["topics"])
        found = self.last_message("initializing_deletion", lambda fields: topic in fields["ineligible"])
        resumed = self.last_message(
            "deletion_can_resume", lambda fields: topic in [name for name, *_ in fields["replicas"]]
        )
        return max(START, resumed) < max(halted, found) < deleted


class TopicGone(Mechanism):
    """The delete-topics thread has ended at a request for a topic that is gone; the deletions behind it are not begun.

    A controller that dies between the last two znodes of a deletion leaves such a request.
    Kafka 0.10.2.2: controller/PartitionStateMachine.scala, deregisterPartitionChangeListener
    """

    ticket = "PartitionStateMachine.deregisterPartitionChangeListener"
    breaks = ("I19",)
    field = "has_own_thread"
    value = True
    aspect = DELETION

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        ended = (fields["error"] for _, fields in self.messages("thread_died"))
        return any(re.fullmatch(r"key not found: [\w.-]+", error) for error in ended)


class _StartFails(Mechanism):
    """A broker starts and the controller fails at it: it does not get to deletions and to dead brokers."""

    breaks = ("I19", "I21")
    field = "incremental_reassignment"
    failure: ClassVar[re.Pattern[str]]
    """The controller's message about its failure."""

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.aspect == DELETION:
            copies = self.facts.partitions(about.topic or "").values()
            started = self._failed("broker_startup", "brokers", *(id for a in copies for id in a.replicas))
            return self.past.last("zk", "create", f"{TO_DELETE}{about.topic}") < started
        state = self.facts.states.get(about.partition) if about.partition else None
        if state is None or about.aspect != "":
            return False
        return self._failed("brokers_changed", "dead", state.leader) > START

    def _failed(self, message: str, word: str, *brokers: int) -> int:
        """The last record of this message about one of these brokers; START if the controller did not fail by it."""
        about = ((r, fields) for r, fields in self.messages(message) if not set(fields[word]).isdisjoint(brokers))
        for logged, _ in about:
            errors = self.past.logged("error_processing", logged.seq, self.facts.acting)
            failed = any(e.cause == logged.cause and self.failure.match(text["error"]) for e, text in errors)
            return logged.seq if failed else START
        return START


class StartFailsOverDeletedTopic(_StartFails):
    """A broker starts that a reassignment of a deleted topic waits for; the controller fails at it, and stops there.

    It does not get to deletions that wait for the broker, and to brokers that are gone.
    Kafka 0.10.2.2: controller/KafkaController.scala, onBrokerStartup, onPartitionReassignment (the map
    partitionReplicaAssignment has no such partition); 2.0.1: updateAssignedReplicasForPartition (IllegalStateException)
    """

    ticket = "linkedin/kafka#14"
    failure = re.compile(r"key not found: \[(?!Topic=)|Topic \S+ doesn't exist")


class StartFailsOverMove(_StartFails):
    """A broker starts for which a failed reassignment waits; it fails again, and with it the work for the start.

    The partition has no state, whose epoch the reassignment would raise. The controller does not get to deletions of
    other topics that wait for the broker, and to brokers that are gone. Before 2.4 a reassignment that failed was
    forgotten; since then it counts as under way, and is resumed with each of its brokers that starts.
    Kafka 2.4.1: controller/KafkaController.scala, onBrokerStartup (maybeResumeReassignments comes before
    resumeDeletionForTopics), updateCurrentReassignment (partitionsBeingReassigned), updateLeaderEpoch
    (IllegalStateException, outside of the try in updateLeaderEpochAndSendRequest), processBrokerChange
    """

    ticket = "KafkaController.onBrokerStartup"
    value = True
    failure = re.compile(r"Cannot update leader epoch for partition \S+ as leaderAndIsr path is empty")


class MoveOutlivesTopic(Mechanism):
    """A topic was deleted while a partition of it moved; its controller goes on waiting for the move.

    While it knows of any move, it returns no leadership to a preferred replica. A deletion that a move halts is
    resumed all the same by a broker that starts.
    Kafka 2.4.1: controller/KafkaController.scala, onBrokerStartup, checkAndTriggerAutoLeaderRebalance;
    controller/ControllerContext.scala, removeTopic (partitionsBeingReassigned is not touched)
    """

    ticket = "ControllerContext.removeTopic"
    breaks = ("I20",)
    field, value = "incremental_reassignment", True

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return any(self._moved(f["topic"], logged.seq) for logged, f in self.messages("deletion_completed"))

    def _moved(self, topic: str, deleted: int) -> bool:
        """True if a partition of the topic moved when it was deleted, as its znode said."""
        written = (r for action in ("set", "create") for r in self.past.of("zk", action, TOPIC + topic))
        before = [r for r in written if r.error is None and r.seq < deleted]
        last = max(before, key=lambda r: r.seq, default=None)
        assigned = decoded(lambda data: TopicZNode.decode(data, topic), last) if last else None
        return any(assignment.is_being_reassigned for assignment in (assigned or {}).values())
