"""A lab that begins as a described cluster: the same brokers, assignments, leaders and ISRs.

ZooKeeper is filled before any broker starts. Then all brokers that can be alive start, and none of them competes to
be controller before all have registered: the winner would elect new leaders for those that are still on their way.

    alive      leads, or is in an ISR, or is being added
    down       in the ISR of a partition without a leader (alive, it would lead), or of no use to any partition
    lagging    alive, holds a replica, and is not in its ISR: it would join at once if it kept up
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, short
from kafka_ctl.generation import Config, Generation
from kafka_ctl.lab import topic_config, validate
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.description import Description, PartitionDescription, check_description
from kafka_ctl.lab.settings import MAX_ID
from kafka_ctl.simulation.world import World
from kafka_ctl.zookeeper import json_fields, znodes
from kafka_ctl.zookeeper.store import Create

T = TypeVar("T")
UNCLEAN: Final = "unclean.leader.election.enable"
EPOCH = 1
"""The epoch of the controller that left the cluster as it is described."""
WINDOW = 100
"""Writes in flight while ZooKeeper is filled."""


class BrokerRoles(NamedTuple):
    """Which of the described brokers are down, and what the others lag behind in."""

    down: frozenset[int]
    lagging: dict[int, list[TopicPartition]]


def roles(description: Description, generation: Generation, config: Config) -> BrokerRoles:
    """What must be true of the brokers for the description to hold; BadInput where it cannot."""
    for own in description.configs.values():
        topic_config.check_values(own)
    must_be_down: dict[int, TopicPartition] = {}
    for tp, partition in description.partitions.items():
        if partition.leader is None:
            must_be_down |= dict.fromkeys(_eligible(tp, partition, description, config), tp)
        if partition.adding or partition.removing:
            _check_reassignment(tp, generation)
    needed: set[int] = set()
    for tp, partition in description.partitions.items():
        if partition.leader in must_be_down:
            raise BadInput(
                f"{must_be_down[partition.leader]} has no leader although broker {partition.leader} could lead it; as "
                f"it leads {tp}, it is alive, and an election would follow at once"
            )
        needed.update(partition.isr, partition.adding)
    down = frozenset(must_be_down.keys() | set(description.brokers) - needed)
    lagging: dict[int, list[TopicPartition]] = {}
    for tp, partition in description.partitions.items():
        for broker in partition.replicas:
            if partition.leader is not None and broker not in partition.isr and broker not in down:
                lagging.setdefault(broker, []).append(tp)
    return BrokerRoles(down, lagging)


def _eligible(
    tp: TopicPartition, partition: PartitionDescription, description: Description, config: Config
) -> Sequence[int]:
    """The brokers any of which would be elected if it were alive."""
    own = description.configs.get(tp.topic, {}).get(UNCLEAN)
    unclean = own.lower() == "true" if own is not None else bool(config[UNCLEAN])
    return partition.replicas if unclean else partition.isr


def _check_reassignment(tp: TopicPartition, generation: Generation) -> None:
    if not generation.reassignment.incremental_reassignment:
        raise BadInput(
            f"{tp} is adding or removing replicas (KIP-455), which generation {generation.name} does not know; "
            "open it with generation='2.4'"
        )


def open_cluster(world: World, admin: Admin, description: Description) -> None:
    """Write what is described and start who is alive; returns when all of them have registered."""
    fate = roles(description, world.generation, world.config)
    world.run(_write(admin, description, world))
    starting = [broker for id, broker in world.brokers.items() if id not in fate.down]

    def start() -> None:
        world.expected_brokers.update(broker.id for broker in starting)
        for broker in starting:
            broker.start(world.boot_delay())
            for tp in fate.lagging.get(broker.id, ()):
                broker.as_follower.fall_behind(tp)

    world.clock.call(start)
    world.run_until(lambda: not world.expected_brokers, None)


async def _write(admin: Admin, description: Description, world: World) -> None:
    admin.record_request("from_description", brokers=len(description.brokers), partitions=len(description.partitions))
    there = set(await admin.topics())
    for topic in dict.fromkeys(tp.topic for tp in description.partitions):
        if topic in there:
            raise BadInput(f"topic '{topic}' is described, but exists already in ZooKeeper {world.address}")
    session = (await admin.zk()).client.session
    assert session is not None
    for answer in await session.send(list(creations(description, world.generation)), WINDOW):
        if answer.error != "NODEEXISTS":  # what all clusters have may be there
            answer.checked()


def creations(description: Description, generation: Generation) -> Iterator[Create]:
    """What to create in ZooKeeper, parents first."""
    for path in znodes.PERSISTENT_PATHS:
        yield Create(path)
    yield Create(znodes.ControllerEpochZNode.path(), znodes.ControllerEpochZNode.encode(EPOCH))
    topics: dict[str, dict[int, PartitionDescription]] = {}
    for tp, partition in sorted(description.partitions.items()):
        topics.setdefault(tp.topic, {})[tp.partition] = partition
    version = generation.topic_version
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

CONFIGS = "configs"
FORM = '{"orders":[[[1,2,3],1,[1,2]]]}, for each partition its replicas, leader and ISR'


def encode(description: Description) -> dict[str, object]:
    """The description as a story keeps it: `{topic: [[replicas, leader, isr, adding, removing], ...]}`.

    The last two are left out where nothing moves; a topic with a configuration has it as a last element. Of a topic
    whose partitions are not numbered 0 to n-1 the numbers are kept: `{topic: {"1": [...], "configs": {...}}}`.
    """
    topics: dict[str, dict[int, list[object]]] = {}
    for tp, p in sorted(description.partitions.items()):
        moving = [list(p.adding), list(p.removing)] if p.adding or p.removing else []
        topics.setdefault(tp.topic, {})[tp.partition] = [list(p.replicas), p.leader, list(p.isr), *moving]
    kept: dict[str, object] = {}
    for topic in dict.fromkeys([*topics, *description.configs]):
        numbered, config = topics.get(topic, {}), description.configs.get(topic)
        if list(numbered) == list(range(len(numbered))):
            kept[topic] = [*numbered.values(), *([] if config is None else [dict(config)])]
        else:
            kept[topic] = {str(n): p for n, p in numbered.items()} | ({} if config is None else {CONFIGS: dict(config)})
    return kept


def decode(topics: object) -> Description:
    """The description a story keeps; BadInput when it is none."""
    partitions: dict[TopicPartition, PartitionDescription] = {}
    configs: dict[str, dict[str, str]] = {}
    try:
        for topic, found in _is(dict, topics).items():
            numbered, config = _numbered(found)
            if config is not None:
                configs[topic] = {key: str(value) for key, value in config.items()}
            for number, (replicas, leader, isr, *moving) in numbered.items():
                ids = [tuple(_broker(id) for id in _is(list, each)) for each in (replicas, isr, *moving)]
                tp = TopicPartition(topic, number)
                partitions[tp] = PartitionDescription(
                    ids[0], None if leader in (None, -1) else _broker(leader), *ids[1:]
                )
    except (AttributeError, TypeError, ValueError):
        raise BadInput(f"description={short(topics)}: {FORM}, is expected") from None
    return check_description("description", Description((), partitions, configs))


def _numbered(found: object) -> tuple[dict[int, Any], dict[str, object] | None]:
    """The partitions of a topic by number, and its configuration if it has any."""
    if isinstance(found, dict):
        partitions = {json_fields.number("description", n): p for n, p in found.items() if n != CONFIGS}
        return partitions, _is(dict, found[CONFIGS]) if CONFIGS in found else None
    listed = list(_is(list, found))
    config = listed.pop() if listed and isinstance(listed[-1], dict) else None
    return dict(enumerate(listed)), config


def _is(kind: type[T], value: object) -> T:
    if type(value) is not kind:
        raise TypeError
    return value


def _broker(id: object) -> int:
    return validate.integer("a broker id of the description", id, 0, MAX_ID)
