"""Mechanisms of requests to brokers: sent to an earlier process, never sent, or stale."""

from __future__ import annotations

import math

from kafka_ctl.cluster import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from kafka_ctl.invariants.base import MOVE, Mechanism, PartitionMechanism, Subject
from kafka_ctl.invariants.facts import BROKER, CONFIG, TOPIC, notified
from kafka_ctl.invariants.past import START
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode


class NoControllerEpochs(Mechanism):
    """A broker carries out the requests of any controller.

    Kafka before 0.8.0 (commit 8e7b0d40169): server/KafkaApis.scala
    """

    ticket = "KAFKA-532"
    breaks = ("I9",)
    field = "checks_controller_epoch"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        return about.aspect.endswith(" controller")


class ReadsConfigAfterCheck(Mechanism):
    """A request is compared with the broker's epoch when it arrives; then its topics' configurations are read.

    Reading waits for ZooKeeper. A broker that registers again meanwhile goes on with a request for its earlier session.
    Kafka 2.4.1: server/KafkaApis.scala, handleLeaderAndIsrRequest; cluster/Partition.scala, createLog
    """

    ticket = "KafkaApis.handleLeaderAndIsrRequest"
    breaks = ("I9",)
    field, value = "broker_epochs", True
    aspect = "LeaderAndIsr broker"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        registered, actor = self.past.last("zk", "create", f"{BROKER}{about.broker}"), f"broker-{about.broker}"
        topics = {**self.facts.assignments, **self.facts.topic_configs}  # also those that have been deleted since
        return any(True for t in topics for _ in self.past.of("zk", "get", CONFIG + t, registered, actor=actor))


class NoBrokerEpochs(Mechanism):
    """A broker restarted before the controller noticed, or carried out a request for its process before the restart.

    Requests that the earlier process received are lost and not sent again; so are changes that it had to announce.
    Kafka 2.0.1: controller/KafkaController.scala, BrokerChange, which compares ids; server/KafkaApis.scala
    """

    ticket = "KAFKA-7235"
    breaks = ("I9", "I14", "I18", "I19", "I23")
    field = "broker_epochs"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if invariant == "I9":
            return about.aspect.endswith(" broker")
        tp = about.partition
        if tp is None:
            return about.topic is not None and self._lost_disk(about.topic)
        if invariant == "I23":  # the brokers that could lead count as leaving
            return bool(about.brokers) and all(map(self._taken_for_leaving, about.brokers))
        if invariant == "I14":
            return self._not_sent(tp, about.broker or 0)
        if invariant == "I18":
            broker = about.broker
            stale = broker is not None and (self._not_announced(tp, broker) or self._sent_late(tp, broker))
            return stale or self._announcement_lost(tp)
        state = self.facts.states.get(tp)
        if about.aspect == MOVE and state is not None:
            return any(self._not_sent(tp, broker) for broker in (state.leader, *about.brokers))
        return any(self._disk_works_again(tp, broker) or self._taken_for_leaving(broker) for broker in about.brokers)

    def _unnoticed(self, broker: int) -> bool:
        return not self.past.noticed(broker, self.facts.acting)

    def _taken_for_leaving(self, broker: int) -> bool:
        """True if it counts as leaving because an earlier process of it had asked for that."""
        life = self.past.life(broker)
        for logged, fields in self.past.logged("shutting_down_broker", actor=self.facts.acting):
            if fields["broker"] == broker:
                return logged.seq < life or self.past.asked(logged) < life
        return False

    def _not_sent(self, tp: TopicPartition, broker: int) -> bool:
        """True if no request has brought the partition's state to the present process of a broker."""
        state = self.facts.states.get(tp)
        if state is None or not (self._unnoticed(broker) or self._taken_for_leaving(broker)):
            return False
        life = self.past.life(broker)
        sent = any(r.leader_epoch == state.leader_epoch for r in self.past.sent(tp, broker, life))
        return not sent or self.past.ignored_leader(tp, broker, state, life)

    def _not_announced(self, tp: TopicPartition, broker: int) -> bool:
        """True if the present process of a broker was sent no metadata with the partition's state."""
        state = self.facts.states.get(tp)
        sent = self.past.announced(tp, broker, self.past.life(broker))
        arrived = any(state is not None and request.leader_epoch == state.leader_epoch for request in sent)
        return not arrived and self._unnoticed(broker)

    def _sent_late(self, tp: TopicPartition, broker: int) -> bool:
        """True if the last state of a partition that a broker received was sent before it registered again."""
        cached = next(self.past.of("broker", "cached", tp, broker=broker), None)
        if cached is None:
            return False
        made = self.past.of("zk", "create", f"{BROKER}{broker}", self.past.asked(cached))
        return any(r.error is None and r.seq < cached.seq for r in made)

    def _announcement_lost(self, tp: TopicPartition) -> bool:
        """True if a leader changed the ISR last, and ended unnoticed before it announced that."""
        state = self.facts.states.get(tp)
        wrote = next(self.past.of("zk", "set", TopicPartitionStateZNode.path(tp)), None)
        if state is None or wrote is None or not self.facts.author(wrote).startswith("broker-"):
            return False
        if self.past.last("broker", "start", state.leader) < wrote.seq or not self._unnoticed(state.leader):
            return False
        return not any(tp in notified(made) for made in self.facts.notifications if made.seq > wrote.seq)

    def _lost_disk(self, topic: str) -> bool:
        """True if a topic is not deleted because of a disk that works again."""
        copies = self.facts.partitions(topic).items()
        return any(self._disk_works_again(tp, id) for tp, assignment in copies for id in assignment.replicas)

    def _disk_works_again(self, tp: TopicPartition, broker: int) -> bool:
        """True if an earlier process had lost the partition's disk, which the controller still takes for lost."""
        life, logged = self.past.life(broker), self.messages("replicas_offline")
        lost = (r for r, fields in logged if fields["broker"] == broker and str(tp) in fields["partitions"])
        return any(r.seq < life or self._answered(r) < life for r in lost) and self._unnoticed(broker)

    def _answered(self, offline: Record) -> int:
        """The record of the answer by which a controller considers replicas offline."""
        records, event = self.past.records, offline.cause
        queued = records[event].cause if event is not None else None
        answer = records[queued].cause if queued is not None else None
        return offline.seq if answer is None else answer


class EpochLearnedLate(PartitionMechanism):
    """A broker registered again, and a request came before it knew its new epoch: it failed, and is not sent again.

    Kafka 2.4.1: server/KafkaApis.scala, isBrokerEpochStale; controller/KafkaController.scala,
    processRegisterBrokerAndReelect
    """

    ticket = "KAFKA-9839"
    breaks = ("I14", "I18")
    field, value = "broker_epochs", True

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        broker = about.broker or 0
        made = self.past.sent(tp, broker, START) if invariant == "I14" else self.past.announced(tp, broker)
        last = next(made, None)
        if last is None or last.leader_epoch != state.leader_epoch:
            return False
        failed = self.past.of("broker", "ignored", broker, last.seq)
        return any(r.error == "UNKNOWN_SERVER_ERROR" for r in failed)


class BumpNotCached(PartitionMechanism):
    """The leader epoch was raised for a reassignment in ZooKeeper, but not in the controller's cache.

    The controller's requests about the partition have the old epoch, until it reads the state again for another reason.
    Kafka 2.0.1: controller/KafkaController.scala, updateLeaderEpoch
    """

    ticket = "KAFKA-9212"
    breaks = ("I14", "I18")
    field = "caches_bumped_epoch"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        updated = self.past.logged("leader_epoch_updated")
        raised = ((r.seq, fields["leader_epoch"]) for r, fields in updated if fields["partition"] == str(tp))
        seq, epoch = next(raised, (START, START))
        if about.state is None or not about.state.leader_epoch < epoch == state.leader_epoch:
            return False
        sent = self.past.sent(tp, about.broker or 0, seq)
        return invariant == "I18" or any(request.leader_epoch == about.state.leader_epoch for request in sent)


class BrokersUnknown(PartitionMechanism):
    """A broker got LeaderAndIsr before the UpdateMetadata that lists its leader as live, and ignored it.

    Kafka 0.10.1.1: controller/KafkaController.scala, onControllerFailover
    """

    ticket = "KAFKA-4443"
    breaks = ("I14",)
    field = "introduces_brokers_first"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        return self.past.ignored_leader(tp, about.broker or 0, state)


class BatchNotCleared(Mechanism):
    """A batch of requests was left half sent, so that the controller can send nothing any more.

    Kafka 0.8.2: controller/ControllerChannelManager.scala, ControllerBrokerRequestBatch
    """

    ticket = "KAFKA-2300"
    breaks = ("I14", "I18")
    field = "clears_batches"

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        failures = ("error_processing", "error_moving_partitions", "error_moving_replicas")
        logged = (fields for message in failures for _, fields in self.messages(message))
        return any("batch is not empty" in fields.get("error", "") for fields in logged)


class OwnIsrNotAccepted(PartitionMechanism):
    """A leader's ISR was written, the answer was lost, and the leader considers its own write another client's.

    Kafka 0.8.1.1: cluster/Partition.scala, updateIsr
    """

    ticket = "KAFKA-1382"
    breaks = ("I18",)
    field = "accepts_own_isr"

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        acts = ("shrink-isr", "expand-isr")
        changes = (r for act in acts for r in self.past.of("broker", act, tp, broker=state.leader))
        wrote = next(self.past.of("zk", "set", TopicPartitionStateZNode.path(tp)), None)
        own = wrote is not None and self.facts.author(wrote) == f"broker-{state.leader}"
        return own and any(r.error == "BADVERSION" for r in changes)


class DeletionMissed(Mechanism):
    """A broker was away, or the controller ended, before the broker learned that a partition had been deleted.

    Metadata of a partition only leaves the cache when a request names it with leader -2, and no later one does.
    Kafka 2.4.1: server/MetadataCache.scala, updateMetadata; 2.0.1: updateCache
    """

    ticket = "MetadataCache.scala, updateCache"
    breaks = ("I18",)

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp, broker = about.partition, about.broker
        if tp is None or broker is None or tp in self.facts.states or about.state is None:
            return False
        cached = next((r.seq for r in self.past.of("broker", "cached", tp, broker=broker)), START)
        if self.past.last("zk", "delete", TopicPartitionStateZNode.path(tp)) == START:
            return False
        if not any(r.leader == LEADER_DURING_DELETE for r in self.past.of("request", "UpdateMetadata", tp)):
            return False
        sent = (r for r in self.past.announced(tp, broker, cached) if r.leader == LEADER_DURING_DELETE)
        return not any(self._arrives(r, broker) for r in sent)

    def _arrives(self, request: Record, broker: int) -> bool:
        """True if nothing kept a request from a broker: neither of the two has ended or been cut off since."""
        if self.past.ended(request.actor, request.seq) or self.facts.registered.get(broker, START) > request.seq:
            return False
        return self.past.last("broker", "start", broker) < request.seq


class CreationNotAccepted(Mechanism):
    """The answer to a create of a partition's state was lost; the controller considers the znode another client's.

    The partition stays New until another controller takes over. No broker learns who leads it, and when that broker
    dies, there is no election: the controller only tries to make the state again. A reassignment of it does not end,
    for the controller does not find who leads (until KAFKA-9212, controller/KafkaController.scala,
    moveReassignedPartitionLeaderIfRequired).
    Kafka 2.4.1: controller/PartitionStateMachine.scala, initializeLeaderAndIsrForPartitions; zookeeper's client asks
    again in zk/KafkaZkClient.scala, retryRequestsUntilConnected
    """

    ticket = "PartitionStateMachine.initializeLeaderAndIsrForPartitions"
    breaks = ("I14", "I18", "I19", "I21")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        if about.partition is not None:
            return self.has_happened(about.partition)
        stuck = not self.generation.isr.tolerates_missing_state  # its replicas cannot go offline, and are not deleted
        return stuck and any(map(self.has_happened, self.facts.partitions(about.topic or "")))

    def has_happened(self, tp: TopicPartition) -> bool:
        """True if the acting controller has made the partition's state and does not know it."""
        acting, term = self.facts.acting, self.past.term(self.facts.acting)
        tries = self.past.of("zk", "create", TopicPartitionStateZNode.path(tp), term)
        made = any(r.error is None and self.facts.author(r) == acting for r in tries)
        refused = self.past.of("partition", "refuse", tp, term, actor=acting)
        moved = any(True for _ in self.past.of("partition", "initialize", tp, term, actor=acting))
        return made and any(r.error == "NodeExists" for r in refused) and not moved


class OldCopyStays(Mechanism):
    """A broker was down when its copy was deleted; the topic was created again: the broker considers its requests old.

    The leader epochs of the new topic begin again, and the broker refuses them until they are higher than that of the
    old one. If it led the old one, it changes an ISR that is not there any more: where the version happens to be right,
    it overwrites the new state. Ended by topic ids (KIP-516).
    Kafka 2.4.1: server/ReplicaManager.scala, becomeLeaderOrFollower; cluster/Partition.scala, updateIsr
    """

    ticket = "KAFKA-7362"
    breaks = ("I2", "I10", "I11", "I12", "I14", "I15", "I18", "I19", "I21")

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp = about.partition
        if tp is None:
            return False
        made = self.past.wrote("create", TOPIC + tp.topic)
        for wrote in self.past.of("zk", "set", TopicPartitionStateZNode.path(tp), made):
            author = self.facts.author(wrote)
            if author.startswith("broker-") and self._is_old(tp, int(author.removeprefix("broker-")), wrote.seq):
                return True
        brokers = about.brokers if about.aspect == MOVE else (about.broker or 0,) * (invariant == "I14")
        return any(self._is_old(tp, broker) and self._refused(tp, broker) for broker in brokers)

    def _is_old(self, tp: TopicPartition, broker: int, before: float = math.inf) -> bool:
        """True if the request to make a broker's copy, accepted before a record, is older than the topic."""
        started, acts = self.past.last("broker", "start", broker), ("become-leader", "become-follower")
        became = (r for act in acts for r in self.past.of("broker", act, tp, started, broker=broker))
        asked = max((self.past.asked(r) for r in became if r.error is None and r.seq < before), default=START)
        return START < asked < self.past.wrote("create", TOPIC + tp.topic)

    def _refused(self, tp: TopicPartition, broker: int) -> bool:
        """True if it has refused metadata of the new topic."""
        ignored = self.past.of("broker", "ignored", tp, self.past.wrote("create", TOPIC + tp.topic), broker=broker)
        return next((r.error for r in ignored), None) == "STALE_CONTROLLER_EPOCH"
