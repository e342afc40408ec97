"""The context of a controller: every mutable fact of its memory, in one place.

Only the state machines, the request batch and the controller read and write it. It is filled
from ZooKeeper at failover and emptied at resignation.
Kafka 2.0.1: controller/ControllerContext.scala, ControllerContext
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from kafka_ctl.cluster import Broker, LeaderAndIsr, Replica, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import StateChangeFailed
from kafka_ctl.partition import PartitionState
from kafka_ctl.replica import ReplicaState
from kafka_ctl.scala_order import (
    HashMap,
    Orders,
    case_hash,
    filter_not,
    java_hash,
    java_replica_hash,
    map_order,
    parsed,
    product_hash,
    replica_hash,
    set_order,
    set_order_by,
    trie_order,
)

SURVIVORS = ("reassigning", "preferred_elections")
"""Fields that 0.10 kept across a resignation and did not read again at the next election (KAFKA-5310)."""


@dataclass
class Context:
    """The controller's picture of the cluster.

    The relations named below hold whenever the acting controller has done an event (`tests/unit/test_relations.py`).
    "Known" is a partition that is in `topics`.
    """

    in_tables: bool = False
    """True if partitions are processed one after the other (0.10): then in the order of Scala's hash tables."""
    epoch: int = 0
    """No `controller_epoch` in `leadership` is higher."""
    epoch_zk_version: int = 0
    elected: bool = False
    """True if this controller won the race and raised the epoch; False if its id was only written by hand."""
    brokers: dict[int, Broker] = field(default_factory=dict)
    """Every registered broker, those shutting down included."""
    shutting_down: set[int] = field(default_factory=set)
    """All of them are in `brokers`."""
    topics: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    revived: set[str] = field(default_factory=set)
    """Deleted topics re-created in memory by a running reassignment: in `topics`, not in `all_topics`."""
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    """Of partitions that have had a leader, in 0.10 also of vanished topics. Every ISR is part of the assignment."""
    partitions: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    """The states: a partition here is known, or NonExistent. An Online partition is in `leadership`."""
    replicas: dict[Replica, ReplicaState] = field(default_factory=dict)
    """A replica that is not here is NonExistent. The broker of an Online replica is in the assignment."""
    reassigning: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Known partitions on the move and their target replicas (RAR); in 2.4 the target of the assignment."""
    preferred_elections: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions whose preferred replica is being elected just now; empty between events."""
    topics_to_be_deleted: dict[str, None] = field(default_factory=dict)
    """All of them are in `topics` until the last replica is deleted."""
    topics_ineligible: set[str] = field(default_factory=set)
    """Topics to be deleted whose deletion must wait: a replica is dead or failed, or a reassignment runs."""
    deletion_started: set[str] = field(default_factory=set)
    """Topics to be deleted whose deletion has begun: their partitions leave the brokers' metadata."""
    partitions_to_be_deleted: set[TopicPartition] = field(default_factory=set)
    """Partitions of topics to be deleted; LeaderAndIsr for them is not sent."""
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """By broker in `brokers`: the partitions whose log directory there has failed."""
    table: HashMap[TopicPartition, None] = field(default_factory=lambda: HashMap(case_hash), repr=False)
    """The keys of 0.10's `partitionReplicaAssignment`: where there are tables, exactly the known partitions."""

    _of_topic: dict[str, list[Replica]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The answers of `replicas_of_topic`, forgotten at each change of `topics` or `table`."""

    def __post_init__(self) -> None:
        self.orders = Orders(self.in_tables)
        if self.in_tables:
            self.leadership, self.partitions = HashMap(case_hash), HashMap(case_hash)
            self.replicas, self.reassigning = HashMap(replica_hash), HashMap(case_hash)

    # Begin and end of a term

    def begin(self, topics: Iterable[str]) -> None:
        """Start again with these topics, whose partitions are not known yet."""
        self.topics, self.table = {name: {} for name in topics}, HashMap(case_hash)
        self._of_topic.clear()

    def load(self, assignments: Mapping[str, dict[int, ReplicaAssignment]]) -> None:
        """Take over the assignments of all topics; leaders and brokers that are shutting down are forgotten."""
        self.topics |= assignments
        self._of_topic.clear()
        if self.in_tables:
            read = (TopicPartition(topic, number) for topic, numbers in self.topics.items() for number in numbers)
            self.table, self.leadership = HashMap(case_hash, ((tp, None) for tp in read)), HashMap(case_hash)
        self.leadership.clear()
        self.shutting_down.clear()

    def clear(self, kept: Collection[str] = ()) -> None:
        """Forget all but the fields in `kept`. In 0.10 the tables of states are emptied and keep their size."""
        fresh = vars(Context(self.in_tables))
        if self.in_tables:
            self.partitions.clear()
            self.replicas.clear()
            kept = (*kept, "partitions", "replicas")
        for name in fresh.keys() - set(kept):
            setattr(self, name, fresh[name])

    # Brokers

    @property
    def live(self) -> frozenset[int]:
        """Brokers that are registered and not shutting down."""
        return frozenset(self.brokers.keys() - self.shutting_down)

    @property
    def live_or_shutting_down(self) -> list[int]:
        return sorted(self.brokers)

    def online(self, broker: int, partition: TopicPartition, shutting_down_too: bool = False) -> bool:
        """True if this broker's copy of the partition can serve."""
        there = broker in self.brokers and (shutting_down_too or broker not in self.shutting_down)
        return there and partition not in self.offline_dirs.get(broker, ())

    # Partitions

    def has(self, partition: TopicPartition) -> bool:
        """True if a partition is known; it may have no replicas."""
        return partition.partition in self.topics.get(partition.topic, ())

    def assigned(self, partition: TopicPartition) -> tuple[int, ...]:
        """The replicas (AR) of a partition; none if it is unknown."""
        assignment = self.topics.get(partition.topic, {}).get(partition.partition)
        return assignment.replicas if assignment else ()

    def leader_of(self, partition: TopicPartition) -> int:
        """The leader of a partition. Raises StateChangeFailed, with the text of Scala's maps, if it never had one.

        In Kafka the lookup in the controller's cache fails there too, and with it the operation that needed the leader.
        """
        if partition not in self.leadership:
            raise StateChangeFailed(f"key not found: {partition}")
        return self.leadership[partition].leader

    def preferred(self, partition: TopicPartition) -> int:
        """The first replica of a partition. Raises StateChangeFailed, with the text of Scala, if it has none."""
        if not (replicas := self.assigned(partition)):
            raise StateChangeFailed("head of empty list")
        return replicas[0]

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The assignment with the replicas being added and removed; an empty one if the partition is unknown."""
        return self.topics.get(partition.topic, {}).get(partition.partition, ReplicaAssignment(()))

    def assign(self, partition: TopicPartition, replicas: Iterable[int]) -> None:
        """Change the replicas of a partition; one that loses all of them is still known, with none."""
        self.update_assignment(partition, self.assignment(partition)._replace(replicas=tuple(replicas)))
        if self.in_tables:
            self.table[partition] = None

    def update_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Change the assignment of a partition; a partition of a deleted topic becomes known again.

        Kafka 2.4.1: controller/ControllerContext.scala, updatePartitionFullReplicaAssignment (getOrElseUpdate)
        """
        if partition.topic not in self.topics:
            self.revived.add(partition.topic)
        self.topics.setdefault(partition.topic, {})[partition.partition] = assignment
        self._of_topic.clear()

    def add(self, assignments: Mapping[str, Mapping[int, ReplicaAssignment]]) -> list[TopicPartition]:
        """Add these partitions, and return them in the order in which they are processed."""
        self._of_topic.clear()
        for topic, added in assignments.items():
            self.topics.setdefault(topic, {}).update(added)
        partitions = [TopicPartition(topic, number) for topic, added in assignments.items() for number in added]
        if self.in_tables:
            partitions = map_order(partitions, case_hash)
            self.table.update((tp, None) for tp in partitions)
        return partitions

    @property
    def all_topics(self) -> list[str]:
        """The topics that ZooKeeper has, as far as we know."""
        return [topic for topic in self.topics if topic not in self.revived]

    def all_partitions(self) -> Iterator[TopicPartition]:
        if self.in_tables:
            return iter(self.table)
        return (TopicPartition(topic, number) for topic, numbers in self.topics.items() for number in numbers)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        partitions = [TopicPartition(topic, number) for number in self.topics.get(topic, ())]
        return set_order_by(self.table.ordered(partitions), case_hash) if self.in_tables else partitions

    # Replicas

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        """The replicas of a topic that are in this state."""
        found = [r for r in self.replicas_of_topic(topic) if self.replicas.get(r) is state]
        if isinstance(self.replicas, HashMap):
            return map_order(self.replicas.ordered(found), replica_hash)
        return found

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        """The replicas of a topic. A deletion asks for them at each answer of a broker, and they seldom change."""
        if topic not in self._of_topic:
            self._of_topic[topic] = self.replicas_of(self.partitions_of(topic))
        return self._of_topic[topic]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        replicas = [Replica(tp.topic, tp.partition, broker) for tp in partitions for broker in self.assigned(tp)]
        return self.orders.replica_set(replicas)

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        """Every replica assigned to one of these brokers."""
        if self.in_tables:
            on = ((tp, broker) for broker in set_order(brokers) for tp in self.partitions_on(broker))
            return set_order_by((Replica(*tp, broker) for tp, broker in on), replica_hash)
        wanted = frozenset(brokers)
        assigned = ((tp, broker) for tp in self.all_partitions() for broker in self.assigned(tp))
        return [Replica(*tp, broker) for tp, broker in assigned if broker in wanted]

    def online_replicas(self, topic: str) -> list[Replica]:
        """The replicas of a topic on brokers that live, in the order of the set of all that are online.

        Kafka 2.0.1: controller/ControllerContext.scala, allLiveReplicas
        """
        if self.in_tables:
            return [r for r in self.replicas_on(sorted(self.live)) if r.topic == topic]
        order = {broker: place for place, broker in enumerate(set_order(sorted(self.live)))}
        partitions = [TopicPartition(topic, number) for number in map_order(self.topics.get(topic, ()), int)]
        found = [r for r in self.replicas_of(partitions) if self.online(r.broker, r.topic_partition)]
        others = (r for r in self.replicas_on(self.live) if self.online(r.broker, r.topic_partition))
        if len(list(islice(others, 5))) > 4:
            return trie_order(found, java_replica_hash)
        return sorted(found, key=lambda replica: order[replica.broker])

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        return [tp for tp in self.all_partitions() if broker in self.assigned(tp)]

    def remove_topics(self, topics: Collection[str], vanished: bool = False) -> None:
        """Forget topics; 0.10 keeps the leaders of those that vanished from ZooKeeper."""
        self._of_topic.clear()
        for topic in topics:
            self.topics.pop(topic, None)
        self.table = self.table.filter(lambda tp, _: tp.topic not in topics)
        if not (vanished and self.in_tables):
            kept = {tp: state for tp, state in self.leadership.items() if tp.topic not in topics}
            self.leadership = HashMap(case_hash, kept.items()) if self.in_tables else kept

    def moving(self) -> list[TopicPartition]:
        """The partitions under reassignment in the order of their map."""
        return list(self.reassigning) if self.in_tables else map_order(self.reassigning, java_hash)

    def assignment_of(self, topic: str) -> dict[int, ReplicaAssignment]:
        """The assignment of a topic in the order in which it is written into its znode."""
        known = self.topics[topic]
        if not self.in_tables:
            return known
        table = map_order(self.table.ordered(TopicPartition(topic, number) for number in known), case_hash)
        return parsed({tp.partition: known[tp.partition] for tp in table})

    def replicas_at_startup(self) -> list[Replica]:
        """All replicas; in 0.10 those on live brokers, set by set."""
        return self.replicas_on(sorted(self.live)) if self.in_tables else list(self.replicas)

    def replication_factors(self, broker: int) -> dict[TopicPartition, int]:
        """The partitions on a broker and their numbers of replicas, in the order of a set of such pairs."""
        found = {tp: len(self.assigned(tp)) for tp in self.partitions_on(broker)}
        return {tp: found[tp] for tp in set_order_by(found, lambda tp: product_hash(case_hash(tp), found[tp]))}

    def partitions_without(self, topics: Collection[str]) -> list[TopicPartition]:
        """All partitions without those of these topics."""
        if self.in_tables:
            return filter_not(self.table, lambda tp: tp.topic in topics)
        return [tp for tp in self.all_partitions() if tp.topic not in topics]
