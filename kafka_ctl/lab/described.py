"""A lab that begins as a described cluster: the same brokers, assignments, leaders and ISRs.

ZooKeeper is filled before any broker starts. Then all brokers that can be alive start, and none of them competes to
be controller before all have registered: the winner would elect new leaders for those that are still on their way.

    alive      leads, or is in an ISR, or is being added
    down       in the ISR of a partition without a leader (alive, it would lead), or of no use to any partition
    lagging    alive, holds a replica, and is not in its ISR: it would join at once if it kept up
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.lab import topic_config
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.description import Description, PartitionDescription, parse_description
from kafka_ctl.lab.world import World
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.store import Create

UNCLEAN = "unclean.leader.election.enable"
EPOCH = 1
"""The epoch of the controller that left the cluster as it is described."""
WINDOW = 100
"""Writes in flight while ZooKeeper is filled."""


class Fates(NamedTuple):
    """Which of the described brokers are down, and what the others lag behind in."""

    down: frozenset[int]
    lagging: dict[int, list[TopicPartition]]


def fates(description: Description, generation: Generation, config: Mapping[str, Any]) -> Fates:
    """What must be true of the brokers for the description to hold; BadInput where it cannot."""
    for own in description.configs.values():
        topic_config.check_values(own)
    doomed: dict[int, TopicPartition] = {}
    for tp, partition in description.partitions.items():
        if partition.leader is None:
            doomed |= dict.fromkeys(_eligible(tp, partition, description, config), tp)
        if partition.adding or partition.removing:
            _check_reassignment(tp, generation)
    needed: set[int] = set()
    for tp, partition in description.partitions.items():
        if partition.leader in doomed:
            raise BadInput(
                f"{doomed[partition.leader]} has no leader although broker {partition.leader} could lead it; as it "
                f"leads {tp}, it is alive, and an election would follow at once"
            )
        needed.update(partition.isr, partition.adding)
    down = frozenset(doomed.keys() | set(description.brokers) - needed)
    lagging: dict[int, list[TopicPartition]] = {}
    for tp, partition in description.partitions.items():
        for broker in partition.replicas:
            if partition.leader is not None and broker not in partition.isr and broker not in down:
                lagging.setdefault(broker, []).append(tp)
    return Fates(down, lagging)


def _eligible(
    tp: TopicPartition, partition: PartitionDescription, description: Description, config: Mapping[str, Any]
) -> Sequence[int]:
    """The brokers any of which would be elected if it were alive."""
    own = description.configs.get(tp.topic, {}).get(UNCLEAN)
    unclean = own.lower() == "true" if own is not None else bool(config[UNCLEAN])
    return partition.replicas if unclean else partition.isr


def _check_reassignment(tp: TopicPartition, generation: Generation) -> None:
    if not generation.incremental_reassignment:
        raise BadInput(
            f"{tp} is adding or removing replicas (KIP-455), which generation {generation.name} does not know; "
            "open it with generation='2.4'"
        )


def open_cluster(world: World, admin: Admin, description: Description) -> None:
    """Write what is described and start who is alive; returns when all of them have registered."""
    fate = fates(description, world.generation, world.config)
    world.run(_write(admin, description, world))
    starting = [broker for id, broker in world.brokers.items() if id not in fate.down]

    def start() -> None:
        world.awaited.update(broker.id for broker in starting)
        for broker in starting:
            broker.start(world.boot_delay())
            for tp in fate.lagging.get(broker.id, ()):
                broker.replication.fall_behind(tp)

    world.clock.call(start)
    world.run_until(lambda: not world.awaited, None)


async def _write(admin: Admin, description: Description, world: World) -> None:
    admin.asks("from_description", brokers=len(description.brokers), partitions=len(description.partitions))
    there = set(await admin.topics())
    for topic in dict.fromkeys(tp.topic for tp in description.partitions):
        if topic in there:
            raise BadInput(f"topic '{topic}' is described, but exists already in ZooKeeper {world.address}")
    session = (await admin.zk()).client.session
    assert session is not None
    for answer in await session.send(list(_creations(description, world.generation)), WINDOW):
        if answer.error != "NODEEXISTS":  # what all clusters have may be there
            answer.checked()


def _creations(description: Description, generation: Generation) -> Iterator[Create]:
    """What to create in ZooKeeper, parents first."""
    for path in znodes.PERSISTENT_PATHS:
        yield Create(path)
    yield Create(znodes.ControllerEpochZNode.path(), znodes.ControllerEpochZNode.encode(EPOCH))
    topics: dict[str, dict[int, PartitionDescription]] = {}
    for tp, partition in sorted(description.partitions.items()):
        topics.setdefault(tp.topic, {})[tp.partition] = partition
    version = 2 if generation.incremental_reassignment else 1
    for topic, partitions in topics.items():
        if config := description.configs.get(topic):
            path = znodes.ConfigEntityZNode.path("topics", topic)
            yield Create(path, znodes.ConfigEntityZNode.encode(config))
        full = {n: ReplicaAssignment(p.replicas, p.adding, p.removing) for n, p in partitions.items()}
        yield Create(znodes.TopicZNode.path(topic), znodes.TopicZNode.encode(full, version))
        yield Create(znodes.TopicPartitionsZNode.path(topic))
        for number, p in partitions.items():
            yield Create(znodes.TopicPartitionZNode.path((topic, number)))
            state = LeaderAndIsr(NO_LEADER if p.leader is None else p.leader, p.isr, controller_epoch=EPOCH)
            path = znodes.TopicPartitionStateZNode.path((topic, number))
            yield Create(path, znodes.TopicPartitionStateZNode.encode(state))


# In a story


def compact(description: Description) -> dict[str, Any]:
    """The description as a story keeps it: `{topic: [[replicas, leader, isr, adding, removing], ...]}`.

    The last two are left out where nothing moves; a topic with a configuration has it as a last element.
    """
    topics: dict[str, list[Any]] = {}
    for tp, p in sorted(description.partitions.items()):
        moving = [list(p.adding), list(p.removing)] if p.adding or p.removing else []
        topics.setdefault(tp.topic, []).append([list(p.replicas), p.leader, list(p.isr), *moving])
    for topic, config in description.configs.items():
        topics.setdefault(topic, []).append(config)
    return topics


def expand(topics: object) -> Description:
    """The description a story keeps; BadInput when it is none."""
    try:
        return parse_description("\n".join(_lines(topics)) + "\n")
    except (AttributeError, TypeError, ValueError, IndexError):
        form = '{"orders":[[[1,2,3],1,[1,2]]]}, for each partition its replicas, leader and ISR'
        raise BadInput(f"description={str(topics)[:80]}: {form}, is expected") from None


def _lines(topics: Any) -> Iterator[str]:
    """The lines `kafka-topics --describe` would print."""
    for topic, found in topics.items():
        config = found[-1] if found and isinstance(found[-1], dict) else {}
        partitions = [p for p in found if isinstance(p, list)]
        pairs = ",".join(f"{key}={value}" for key, value in config.items())
        yield f"Topic: {topic}\tPartitionCount: {len(partitions)}\tConfigs: {pairs}"
        for number, (replicas, leader, isr, *moving) in enumerate(partitions):
            line = f"Topic: {topic}\tPartition: {number}\tLeader: {'none' if leader is None else leader}"
            line += f"\tReplicas: {_ids(replicas)}\tIsr: {_ids(isr)}"
            for name, ids in zip(("Adding", "Removing"), moving, strict=False):
                line += f"\t{name} Replicas: {_ids(ids)}"
            yield line


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
