"""The administrator: the tools that write requests into ZooKeeper, and what they refuse.

Kafka 2.0.1: zk/AdminZkClient.scala, AdminZkClient; admin/TopicCommand.scala, TopicCommand
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from kafka_ctl.assignment import add_partitions, assign
from kafka_ctl.brokers.config_keys import checked_broker, checked_topic
from kafka_ctl.cluster import ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import topic_names
from kafka_ctl.plugins import Plugins
from kafka_ctl.reassign.plan import as_written
from kafka_ctl.scala_order import tool_order
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE, Recorder
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient, change_config, read_config
from kafka_ctl.zookeeper.store import EXPIRED, Set, Store


class Admin:
    """One administrator with a session of its own."""

    def __init__(self, store: Store, trace: Recorder, random: Random, generation: Generation, plugins: Plugins) -> None:
        self.store, self.trace, self.random, self.generation = store, trace, random, generation
        self.plugins, self.topic_version = plugins, generation.topic_version
        """The version of the topic znodes that this generation's tools write."""
        self._zk: KafkaZkClient | None = None

    async def zk(self) -> KafkaZkClient:
        """The administrator's client, connected at the first need."""
        if self._zk is None:
            client = ZooKeeperClient(window=1)
            client.session = await self.store.connect(
                "admin", 30.0, client.watched, lambda state: self._state(client, state)
            )
            client.connected.set()
            self._zk = KafkaZkClient(client)
        return self._zk

    def _state(self, client: ZooKeeperClient, state: str) -> None:
        client.state_changed(state)
        if state == EXPIRED:  # the next command opens another session
            self._zk = None

    async def close(self) -> None:
        """Close the session, if there is one."""
        if self._zk is not None and (session := self._zk.client.session) is not None:
            await session.close()

    async def topics(self) -> list[str]:
        return sorted(await (await self.zk()).read_children(znodes.TopicsZNode.path()))

    def check_name(self, topic: str) -> None:
        """Raise ApiException for a name that no topic can have."""
        topic_names.check_name(topic, self.generation)

    async def create_topic(
        self,
        topic: str,
        partitions: int | None,
        replication_factor: int | None,
        assignment: Mapping[int, Sequence[int]] | None,
        config: Mapping[str, object] | None,
        racks: Mapping[int, str | None],
        validate_only: bool = False,
    ) -> None:
        """Write the topic's configuration, then its assignment; the controller does the rest.

        With `validate_only`, only what is wrong with them is found.
        """
        self.check_name(topic)
        values = checked_topic(config or {}, self.generation)
        zk = await self.zk()
        topic_names.check_new(topic, await self.topics())
        registered = await zk.broker_ids()
        if assignment is None:
            assert partitions is not None and replication_factor is not None
            chosen = self._assigned(registered, partitions, replication_factor, racks)
        else:
            chosen = check_assignment(assignment)
        if validate_only:
            return
        await zk.set_or_create_config("topics", topic, znodes.ConfigEntityZNode.encode(values))
        data = self._encoded({p: ReplicaAssignment(tuple(r)) for p, r in chosen.items()})
        created = await zk.create(znodes.TopicZNode.path(topic), data)
        if created.error == "NODEEXISTS":  # another client was faster
            topic_names.check_new(topic, [topic])
        created.checked()

    def _assigned(
        self, brokers: Sequence[int], partitions: int, replication_factor: int, racks: Mapping[int, str | None]
    ) -> Mapping[int, Sequence[int]]:
        """The assignment of a new topic's replicas: by the plugged-in rule, or by Kafka's."""
        mine: Callable[..., dict[int, list[int]]] | None = self.plugins.rule("assignment", None)
        if mine is not None:
            return check_assignment(mine(sorted(brokers), partitions, replication_factor))
        known = {broker: racks.get(broker) for broker in brokers}
        return assign(brokers, partitions, replication_factor, racks=known, rng=self.random)

    async def add_partitions(
        self,
        topic: str,
        total: int,
        racks: Mapping[int, str | None],
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Write the topic's assignment, as it has just been read, with more partitions, racks kept apart.

        `assignment` gives the replicas of the new partitions; without it they are chosen. A write of the controller
        between the read and this write is lost. With `validate_only`, only what is wrong is found.
        Kafka 2.4.1: zk/AdminZkClient.scala, addPartitions, getBrokerMetadatas
        """
        zk = await self.zk()
        known = (await zk.assignments([topic])).get(topic)
        if known is None:
            raise UnknownName("topic", topic, await self.topics())
        topic_names.check_growth(topic, self.generation)
        registered = await zk.broker_ids()
        there = {b: racks.get(b) for b in registered}
        old = {number: a.replicas for number, a in known.items()}
        new = add_partitions(old, total, registered, there) if assignment is None else assignment
        if validate_only:
            return
        data = self._encoded({**known, **{p: ReplicaAssignment(tuple(r)) for p, r in new.items()}})
        answer = await zk.write(Set(znodes.TopicZNode.path(topic), data))
        if answer.error == "NONODE":  # deleted since it was read
            raise UnknownName("topic", topic, await self.topics())
        answer.checked()

    def _encoded(self, assignment: Mapping[int, ReplicaAssignment]) -> bytes:
        """The bytes of a topic's znode. 0.10's controller handles the partitions in the order of these bytes."""
        numbers = list(assignment) if self.generation.zookeeper.pipelined else tool_order(assignment)
        return znodes.TopicZNode.encode({n: assignment[n] for n in numbers}, self.topic_version)

    async def alter_config(self, kind: str, name: str, changes: Mapping[str, object]) -> None:
        """Change settings of `topics/orders` or `brokers/1`, None for one to be removed; every broker is notified."""
        zk, wanted = await self.zk(), {key: value for key, value in changes.items() if value is not None}
        if kind == "topics":
            texts = checked_topic(wanted, self.generation)
            if name not in await self.topics():
                raise UnknownName("topic", name, await self.topics())
        else:
            texts = checked_broker(wanted, self.generation)
        missing = [key for key in changes if key not in wanted and key not in await read_config(zk, kind, name)]
        if missing:
            raise BadInput(f"Invalid config(s): {','.join(missing)}")
        await change_config(zk, kind, name, {key: texts.get(key) for key in changes})

    async def delete_topic(self, topic: str, by_request: bool = False) -> None:
        """Ask for a topic's deletion. The tool refuses more than a broker does on request.

        Kafka 2.0.1: admin/TopicCommand.scala, deleteTopic; server/AdminManager.scala, deleteTopics
        """
        zk = await self.zk()
        if topic not in await self.topics():
            raise UnknownName("topic", topic, await self.topics())
        if not by_request:
            topic_names.check_deletion(topic, self.generation)
        answer = await zk.create(znodes.DeleteTopicsTopicZNode.path(topic))
        if answer.error != "NODEEXISTS":
            answer.checked()
        elif not by_request:
            raise BadInput(f"topic {topic} is already marked for deletion")

    async def reassign(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Ask for a reassignment through `/admin/reassign_partitions`; refused while one is running."""
        zk = await self.zk()
        known = await zk.assignments(dict.fromkeys(tp.topic for tp in targets))
        missing = [str(tp) for tp in targets if tp.partition not in known.get(tp.topic, {})]
        if missing:
            raise BadInput(f"The proposed assignment contains non-existent partitions: {', '.join(missing)}")
        check_targets(targets)
        request = znodes.ReassignPartitionsZNode.encode(as_written(targets, self.generation))
        answer = await zk.create(znodes.ReassignPartitionsZNode.path(), request)
        if answer.error == "NODEEXISTS":
            raise BadInput("There is an existing assignment running.")
        answer.checked()

    async def elect_preferred(self, partitions: Sequence[TopicPartition] | None) -> None:
        """Ask for the preferred leaders of these partitions, or of all."""
        zk = await self.zk()
        known = await zk.assignments(await self.topics())
        every = [TopicPartition(topic, number) for topic, numbers in known.items() for number in numbers]
        wanted = every if partitions is None else list(partitions)
        for tp in wanted:
            if tp not in every:
                raise UnknownName("partition", str(tp), map(str, every))
        path = znodes.PreferredReplicaElectionZNode.path()
        answer = await zk.create(path, znodes.PreferredReplicaElectionZNode.encode(wanted))
        if answer.error == "NODEEXISTS":
            raise BadInput("Preferred replica leader election currently in progress. Aborting operation")
        answer.checked()

    def record_refusal(self, error: Exception) -> None:
        """Record that the command was refused, and why."""
        self.trace.add("admin", "event", "refused", error=type(error).__name__, detail=str(error), cause=CAUSE.get())

    def record_request(self, command: str, **fields: object) -> None:
        """Record a command as the cause of what follows."""
        named = fields.get("topic")
        topic = named if isinstance(named, str) else None
        CAUSE.set(self.trace.add("admin", "event", command, topic=topic, detail=details.write(**fields)))


def check_assignment(assignment: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
    """A manual assignment that a topic can be created with; BadInput says what is wrong with it."""
    chosen = {int(p): tuple(r) for p, r in assignment.items()}
    if not chosen or sorted(chosen) != list(range(len(chosen))):
        raise BadInput(f"assignment of partitions {sorted(chosen)}: partitions are numbered from 0 without gaps")
    for number, replicas in chosen.items():
        if not replicas:
            raise BadInput(f"partition {number} has no replicas; it needs at least one")
        if len(set(replicas)) != len(replicas):
            raise BadInput(f"Duplicate replica assignment found: partition {number} has replicas {list(replicas)}")
        if len(replicas) != len(chosen[0]):
            raise BadInput("All partitions should have the same number of replicas")
    return chosen


def check_targets(targets: Mapping[TopicPartition, Sequence[int]]) -> None:
    """BadInput with the reassignment tool's words for what no reassignment can be."""
    if not targets:
        raise BadInput("Partition reassignment data file is empty")
    for tp, replicas in targets.items():
        if not replicas:
            raise BadInput(f"Partition replica list cannot be empty: {tp}")
        twice = sorted({r for r in replicas if list(replicas).count(r) > 1})
        if twice:
            listed = ",".join(map(str, twice))
            raise BadInput(
                "Partition replica lists may not contain duplicate entries: "
                f"{tp} contains multiple entries for {listed}"
            )
