"""Mechanisms of controllers: replaced ones that go on, unnoticed elections, brokers whose death was missed."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.invariants.base import MOVE, Mechanism, PartitionMechanism, Subject
from kafka_ctl.invariants.facts import CONTROLLER, EPOCH, NOTIFICATION, REASSIGN, TO_DELETE, TOPIC, notified
from kafka_ctl.invariants.past import START
from kafka_ctl.partition import OFFLINE, ONLINE
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode


class DeposedControllerWrote(Mechanism):
    """A controller that does not know that another has been elected has written to the znode in question.

    The successor had read that znode before, and its copy is wrong until it writes or reads the znode again.
    Kafka 2.0.1: controller/PartitionStateMachine.scala, initializeLeaderAndIsrForPartitions; zk/KafkaZkClient.scala,
    updateLeaderAndIsr (neither looks at the controller epoch)
    """

    ticket = "KAFKA-6082"
    breaks = ("I8", "I14", "I16", "I18", "I19", "I21", "I23")
    field = "fences_writes"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if invariant == "I8":
            return True
        since = self.past.term(self.facts.acting)
        raised = next((r.seq for r, _ in self.past.logged("epoch_incremented", actor=self.facts.acting)), since)
        known = {EPOCH: min(raised, since)}  # it has read the epoch before all else
        return any(self.facts.deposed.get(path, -1) > known.get(path, since) for path in self._paths(about))

    def _paths(self, about: Subject) -> Iterator[str]:
        """The znodes that the subject depends on."""
        topic = about.partition.topic if about.partition else about.topic
        if about.partition:
            yield TopicPartitionStateZNode.path(about.partition)
            yield from self._notifications(about.partition)
        if about.topic is not None:
            yield from map(TopicPartitionStateZNode.path, self.facts.partitions(about.topic))
        if topic is not None:
            yield TOPIC + topic
            yield TO_DELETE + topic
        if about.aspect == MOVE:
            yield REASSIGN
        if about.aspect == "controller":
            yield CONTROLLER
        yield EPOCH  # raised by another: a broker that has received it no longer obeys the acting controller

    def _notifications(self, tp: TopicPartition) -> Iterator[str]:
        """Notifications of the partition's ISR: who deletes one must have sent it to the brokers."""
        for path in self.facts.deposed:
            if path.startswith(NOTIFICATION):
                made = (record for record in self.past.of("zk", "create", path) if record.error is None)
                yield from (path for record in made if tp in notified(record))


class MissedWatch(Mechanism):
    """`/controller` changed again before the notified brokers read it, so no watch reported the second change.

    A watch fires once: every broker's had fired when the znode was made, and was set again when it was gone.
    Kafka 2.0.1: controller/KafkaController.scala, ControllerChange, which only `elect`s where the znode was deleted
    """

    ticket = "KAFKA-13407"
    breaks = ("I19",)
    field = "reports_missed_deletion"
    aspect = "controller"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if self.past.wrote("create", CONTROLLER) > self.past.wrote("delete", CONTROLLER):
            return False
        return bool(self.facts.registered) and all(map(self._looked_too_late, self.facts.registered))

    def _looked_too_late(self, broker: int) -> bool:
        """True if a broker was notified that the znode was made, and not that it was deleted, and found it gone."""
        actor, gone = f"broker-{broker}", self.past.wrote("delete", CONTROLLER)
        notified = next((r for r in self.past.of("watch", "fired", actor=actor) if r.path == CONTROLLER), None)
        looked = self.past.of("zk", "exists", CONTROLLER, gone, actor=actor)
        return notified is not None and notified.cause != gone and any(r.error == "NONODE" for r in looked)


class ResignedAfterElection(Mechanism):
    """A broker resigns for its new session, though it has just been elected in it, and keeps `/controller`.

    Kafka 0.10.2.2: controller/KafkaController.scala, SessionExpirationListener.handleNewSession
    """

    ticket = "KAFKA-4229"
    breaks = ("I19",)
    field = "single_threaded"
    aspect = "controller"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        resigned = next((record for record, _ in self.past.logged("resigned", actor=self.facts.acting)), None)
        if self.facts.controller is None or resigned is None or resigned.cause is None:
            return False
        return self.past.records[resigned.cause].action == "RegisterBrokerAndReelect"


class NeverWoken(Mechanism):
    """An operation that waits when the session expires gets no answer, so the broker does not register again.

    Kafka 1.1.0: zookeeper/ZooKeeperClient.scala, StateChangeHandler
    """

    ticket = "KAFKA-6879"
    breaks = ("I19",)
    field = "fails_waiters_at_expiry"
    aspect = "registered"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        last = self.past.last
        return all(last("broker", "session-expired", id) > last("broker", "registered", id) for id in about.brokers)


class DeadLeaderStays(PartitionMechanism):
    """A leader that leaves the ISR stays leader, and the ISR may become empty.

    Kafka before 0.8.0 (commit eb0d5a7f815): controller/KafkaController.scala, removeReplicaFromIsr
    """

    ticket = "KAFKA-708"
    breaks = ("I2", "I12", "I21")
    field = "resets_dead_leader"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        return about.aspect != "strangers" and state.leader not in state.isr


class LastMemberLeaves(Mechanism):
    """The last member leaves the ISR with its broker, if a replica out of sync may lead anyway.

    Kafka 0.10.2.2: controller/KafkaController.scala, removeReplicaFromIsr
    """

    ticket = "KAFKA-5083"
    breaks = ("I12",)
    field = "keeps_last_isr_member"
    aspect = "empty"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.state is None or about.partition is None or record is None:
            return False
        ours = self.facts.author(record).startswith("controller-")
        return ours and len(about.state.isr) == 1 and self.facts.unclean(about.partition.topic, self.config)


class ReadTwice(PartitionMechanism):
    """A broker that stopped between two reads of the brokers counts neither as dead nor as alive.

    Kafka 0.9.0: controller/ReplicaStateMachine.scala, BrokerChangeListener
    """

    ticket = "KAFKA-3085"
    breaks = ("I19", "I21")
    field = "reads_brokers_once"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        if about.aspect == MOVE or state.leader in self.facts.registered:
            return False
        fields = next((fields for _, fields in self.past.logged("brokers_changed", actor=self.facts.acting)), None)
        return fields is not None and state.leader not in (*fields["live"], *fields["dead"])


class DeathMissed(PartitionMechanism):
    """A broker died before the acting controller took over; the states of its partitions stay as they were.

    A broker that is asked to follow a dead leader does not.
    Kafka 2.0.1: controller/ReplicaStateMachine.scala, startup (no replica goes to OfflineReplica);
    server/ReplicaManager.scala, makeFollowers
    """

    ticket = "KAFKA-3143"
    breaks = ("I14", "I21")
    field = "stops_dead_replicas_at_startup"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        if state.leader in (NO_LEADER, *self.facts.registered):
            return False
        if invariant == "I14":
            first = next(self.past.of("broker", "become-follower", tp, broker=about.broker), None)
            if first is None or (first.error, first.leader) != ("LEADER_NOT_AVAILABLE", state.leader):
                return False
        found: list[int] = next((fields["brokers"] for _, fields in self.messages("active_brokers")), [])
        died = any(state.leader in fields["dead"] for _, fields in self.messages("brokers_changed"))
        return state.leader not in found and not died


class PreferredIsDead(PartitionMechanism):
    """A preferred election marks a partition online whose dead leader is the preferred one; there is no other election.

    A broker that did not follow the dead leader gets no new request when that returns, and a reassignment waits.
    Kafka 0.10.2.2: controller/PartitionLeaderSelector.scala, PreferredReplicaPartitionLeaderSelector, whose
    LeaderElectionNotNeededException is swallowed by PartitionStateMachine.electLeaderForPartition
    """

    ticket = "PartitionStateMachine.electLeaderForPartition"
    breaks = ("I14", "I19", "I21")
    field = "elects_already_preferred"

    @classmethod
    def possible(cls, generation: Generation) -> bool:
        """Since KAFKA-5692 such partitions are left out before."""
        return super().possible(generation) and not generation.election.skips_needless_elections

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        if not self._marked(tp, state, self.past.term(self.facts.acting)):
            return False
        if invariant == "I14":
            return self.past.ignored_leader(tp, about.broker or 0, state)
        return about.aspect != MOVE or any(self.past.ignored_leader(tp, id, state) for id in about.brokers)

    def _marked(self, tp: TopicPartition, state: LeaderAndIsr, term: int) -> bool:
        """True if the partition came online without an election, and there has been none since."""
        moves = self.past.of("partition", "elect", tp, term, actor=self.facts.acting)
        last = next((m for m in moves if (m.source, m.target) == (str(OFFLINE), str(ONLINE))), None)
        if last is None or last.leader != state.leader:
            return False
        sent = self.past.of("request", "LeaderAndIsr", tp, last.seq, actor=self.facts.acting)
        epochs = {last.leader_epoch, *(r.leader_epoch for r in sent if r.leader == last.leader)}
        held = (e for kind in ("offline", "preferred", "reassign") for e in self.past.of("election", kind, tp, term))
        return state.leader_epoch in epochs and not any(e.leader_epoch in epochs for e in held)


class AddedBeforeWatch(Mechanism):
    """Partitions were added to a topic after the controller had read its assignment, and before it watched the topic.

    The controller notices them when the topic changes again, or when another controller takes over.
    Kafka 0.10.2.2: controller/PartitionStateMachine.scala, TopicChangeListener.doHandleChildChange, which reads a new
    topic's assignment; controller/KafkaController.scala, onNewTopicCreation, which subscribes after that, and
    onControllerFailover, which subscribes after initializeControllerContext and the state machines' startup
    """

    ticket = "KafkaController.onNewTopicCreation"
    breaks = ("I23",)
    field = "watches_before_reading"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp, broker, term = about.partition, f"broker-{self.facts.controller}", self.past.term(self.facts.acting)
        if tp is None:
            return False
        path = TOPIC + tp.topic
        reads = [r.seq for r in self.past.of("zk", "get", path, term, actor=broker)]
        logged = ((r.seq, fields) for r, fields in self.messages("topics_changed"))
        new = next(((seq, fields["assignment"]) for seq, fields in logged if tp.topic in fields["new"]), None)
        if new is not None and str(tp) in new[1]:
            return False
        since = next((seq for seq in reads if seq < new[0]), START) if new else min(reads, default=START)
        watches = [r.seq for r in self.past.of("zk", "exists", path, new[0] if new else since, actor=broker)]
        return START < since < self.past.wrote("set", path) < min(watches, default=len(self.past.records))


class ElectionNeverEnds(Mechanism):
    """A request for preferred leaders failed over a partition without a leader, and counts as under way from then on.

    While a partition counts as under way, the automatic rebalance elects no leader.
    Kafka 0.10.2.2: controller/KafkaController.scala, removePartitionsFromPreferredReplicaElection, where
    partitionLeadershipInfo has no such partition, and checkAndTriggerPartitionRebalance
    """

    ticket = "KafkaController.removePartitionsFromPreferredReplicaElection"
    breaks = ("I20",)
    field, value = "halts_deletions_for_elections", True

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        failed = (fields["event"] for _, fields in self.messages("error_processing"))
        return "PreferredReplicaLeaderElection" in failed
