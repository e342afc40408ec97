r"""A cluster as Kafka's own tools describe it, to be rebuilt in a lab.

Two kinds of text are understood: what `kafka-topics --describe` prints (Kafka 0.10 to 3.x, which differ in
blanks and in what follows the ISR), and the JSON of `kafka-reassign-partitions`, which knows replicas only.

    Topic: orders   PartitionCount: 2   ReplicationFactor: 3   Configs: retention.ms=1000
        Topic: orders   Partition: 0   Leader: 1      Replicas: 1,2,3   Isr: 1,2
        Topic: orders   Partition: 1   Leader: none   Replicas: 2,3,1   Isr: 3

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]}]}

A lab that begins as a described cluster has the same brokers, assignments, leaders and ISRs. ZooKeeper is filled before
any broker starts. Then all brokers that can be alive start, and none of them competes to be controller before all have
registered: the winner would elect new leaders for those that are still on their way.

    alive      leads, or is in an ISR, or is being added
    down       in the ISR of a partition without a leader (alive, it would lead), or of no use to any partition
    lagging    alive, holds a replica, and is not in its ISR: it would join at once if it kept up

Kafka 2.4.1: admin/TopicCommand.scala, printDescription
Kafka 2.4.1: admin/ReassignPartitionsCommand.scala, parsePartitionReassignmentData
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka_ctl.brokers.config_keys import TOPIC, check_values, keys
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.errors import BadInput, short
from kafka_ctl.generation import UNCLEAN, Config, Generation
from kafka_ctl.lab import validate
from kafka_ctl.lab.validate import MAX_ID
from kafka_ctl.zookeeper import json_fields, znodes
from kafka_ctl.zookeeper.store import Create

if TYPE_CHECKING:
    from kafka_ctl.lab.admin import Admin
    from kafka_ctl.simulation.world import World

T = TypeVar("T")

EPOCH = 1
"""The epoch of the controller that left the cluster as it is described."""
MAX_CHARACTERS = 64 * 1024 * 1024
"""Longer texts are refused; 200,000 partitions take a third of this."""

_FIELD = re.compile(r"(?:^|(?<=\s))((?:Adding|Removing) Replicas|[A-Z][A-Za-z]*):")
_ZNODE = re.compile(r"/controller(_epoch)?|/admin/[a-z_]+|/admin/delete_topics/[^/]+|/config/(topics|brokers)/[^/]+")
_BETWEEN_CONFIGS = re.compile(r",(?=[a-z][a-z0-9.]*=)")
_EXPECTED = "the output of `kafka-topics --describe` or the JSON of `kafka-reassign-partitions`"


class PartitionDescription(NamedTuple):
    """The replicas of one partition, its leader (None: no leader) and its ISR.

    `adding` and `removing` are not empty while a KIP-455 reassignment runs. A leader epoch of -1 stands for a partition
    that never had a leader.
    """

    replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = 0
    zk_version: int = 0
    controller_epoch: int = EPOCH


class Description(NamedTuple):
    """A cluster: the brokers mentioned, ascending; its partitions; the configs of topics that have any.

    Where `live` is given, these brokers are alive, and the others down; else it follows from the partitions. `znodes`
    are requests and settings by path. The broker that `/controller` names there becomes controller, with the epoch of
    `/controller_epoch`.
    """

    brokers: tuple[int, ...]
    partitions: dict[TopicPartition, PartitionDescription]
    configs: dict[str, dict[str, str]]
    live: tuple[int, ...] | None = None
    znodes: Mapping[str, str] = MappingProxyType({})


class _Entry(NamedTuple):
    where: str
    partition: TopicPartition
    description: PartitionDescription


def parse_description(path_or_text: str | Path) -> Description:
    """Read a description from a file or from the text itself; partitions come sorted by topic and number.

    The JSON has no leaders: there the first replica leads and all are in sync, as in a topic just created.
    Fields not named in `PartitionDescription` are read over.
    Raises BadInput, naming the line or entry, for text of another kind, for words that are not numbers, for
    what is described twice, for an impossible leader or ISR, and for topics whose partitions are not 0 to n-1.
    """
    source, text = _read(path_or_text)
    counts: dict[str, int] = {}
    configs: dict[str, dict[str, str]] = {}
    is_json = text.lstrip()[:1] in ("{", "[")
    entries = _json_entries(source, text) if is_json else _lines(source, text, counts, configs)
    found: dict[TopicPartition, _Entry] = {}
    for entry in entries:
        _check(entry)
        if entry.partition in found:
            first = found[entry.partition].where
            raise BadInput(f"{entry.where}: {entry.partition} is described twice, first at {first}")
        found[entry.partition] = entry
    _check_topics(source, found, counts)
    return _sorted_description({tp: entry.description for tp, entry in found.items()}, configs)


def check_description(source: str, given: Description) -> Description:
    """A description from outside, in order; BadInput, naming `source`, for what cannot be."""
    try:
        partitions, configs = given.partitions, given.configs
        for id in given.live or ():
            validate.integer(f"{source}: a live broker", id, 0, MAX_ID)
        for (topic, number), state in partitions.items():
            ids = (*state.replicas, *state.isr, *state.adding, *state.removing)
            for id in ids if state.leader is None else (*ids, state.leader):
                validate.integer(f"{source}: a broker of {topic}-{number}", id, 0, MAX_ID)
            for epoch in state[5:]:
                validate.integer(f"{source}: an epoch or version of {topic}-{number}", epoch, -1, MAX_ID)
            validate.integer(f"{source}: a partition of {topic}", number)
            _check(_Entry(source, TopicPartition(topic, number), state))
        for topic, config in configs.items():
            if not znodes.TOPIC_NAME.fullmatch(topic):
                raise _illegal(source, topic)
            for text in (*config.keys(), *config.values()):
                validate.utf8(f"{source}: the configuration of topic {topic}", text)
        for path, text in given.znodes.items():
            if not _ZNODE.fullmatch(path):
                raise BadInput(f"{source}: znode {short(path)}; requests, settings and the controller's are allowed")
            validate.utf8(f"{source}: {path}", text)
        epoch = json_fields.number(f"{source}: {CONTROLLER_EPOCH}", given.znodes.get(CONTROLLER_EPOCH, str(EPOCH)))
        validate.integer(f"{source}: {CONTROLLER_EPOCH}", epoch, 0, MAX_ID - 1)
    except (AttributeError, TypeError, ValueError):
        raise BadInput(
            f"{source} cannot be {short(given)}; it must be a Description, see `parse_description`"
        ) from None
    if not partitions and not configs and given.live is None:
        raise BadInput(f"{source}: nothing in it; {_EXPECTED} is expected")
    copied = {topic: dict(config) for topic, config in configs.items()}
    return _sorted_description(partitions, copied, given.live, dict(given.znodes))


def _sorted_description(
    partitions: Mapping[TopicPartition, PartitionDescription],
    configs: dict[str, dict[str, str]],
    live: tuple[int, ...] | None = None,
    znodes: Mapping[str, str] = MappingProxyType({}),
) -> Description:
    brokers = {b for p in partitions.values() for b in (*p.replicas, *p.adding, *p.removing)} | {*(live or ())}
    ordered = {tp: partitions[tp] for tp in sorted(partitions)}
    return Description(tuple(sorted(brokers)), ordered, configs, live, dict(znodes))


def _read(path_or_text: str | Path) -> tuple[str, str]:
    """The source for error messages, and the text. A text has several lines, or begins like a description."""
    if not isinstance(path_or_text, (str, os.PathLike)):
        raise BadInput(
            f"a description cannot be {short(path_or_text)}; it must be a text, or the path of a file with one"
        )
    given = str(path_or_text).lstrip("\ufeff")
    if isinstance(path_or_text, str) and ("\n" in given or given.lstrip().startswith(("{", "[", "Topic:"))):
        source, text = "description", given
    else:
        source = given
        if not source.strip():
            raise BadInput(f"description: nothing in it; {_EXPECTED} is expected")
        try:
            text = Path(given).read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(f"{source}: not UTF-8 at byte {error.start}; {_EXPECTED} is expected") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadInput(f"{source[:200]!r} is neither a description nor a file that can be read: {reason}") from None
    lines = text.splitlines()
    if found := next((line for line in lines if line.startswith('{"version"')), None):
        text = found if len(lines) > 1 and lines[0] != found else text  # as the reassignment tool prints it
    if len(text) > MAX_CHARACTERS:
        raise BadInput(f"{source}: {len(text)} characters; at most {MAX_CHARACTERS} are read")
    return source, validate.utf8(source, text)


def _json_entries(source: str, text: str) -> Iterator[_Entry]:
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{source}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{source}: JSON with a number too long or nested too deeply") from None
    if type(raw) is not dict or raw.get("version", 1) != 1:
        raise BadInput(f"{source}: {text.strip()[:60]!r}; an object of version 1 is expected")
    for partition, fields in json_fields.Fields(source, raw).partitions():
        replicas = fields.integers("replicas")
        leader = replicas[0] if replicas else None
        yield _Entry(fields.path, partition, PartitionDescription(replicas, leader, replicas))


def _lines(source: str, text: str, counts: dict[str, int], configs: dict[str, dict[str, str]]) -> Iterator[_Entry]:
    """The partition lines; what header lines say goes to `counts` and `configs`."""
    for position, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{source}, line {position}"
        # Odd elements are names, the element after each is its value.
        before, *parts = _FIELD.split(line)
        fields = {name: value.strip() for name, value in zip(parts[::2], parts[1::2], strict=True)}
        topic = fields.get("Topic", "")
        if before.strip() or not topic or " " in topic:
            raise BadInput(f"{where}: {line.strip()[:80]!r}; {_EXPECTED} is expected")
        if "PartitionCount" in fields:
            counts[topic] = json_fields.number(f"{where}, PartitionCount", fields["PartitionCount"])
            if fields.get("Configs"):
                pairs = (pair.partition("=") for pair in _BETWEEN_CONFIGS.split(fields["Configs"]))
                configs[topic] = {key: value for key, _, value in pairs}
        else:
            yield _partition_line(where, topic, fields)


def _partition_line(where: str, topic: str, fields: dict[str, str]) -> _Entry:
    missing = [name for name in ("Partition", "Leader", "Replicas", "Isr") if name not in fields]
    if missing:
        raise BadInput(f"{where}: no {', '.join(missing)}; Partition, Leader, Replicas and Isr are expected")

    def ids(name: str) -> tuple[int, ...]:
        listed = fields.get(name, "").split(",") if fields.get(name) else ()
        return tuple(json_fields.number(f"{where}, {name}", word.strip()) for word in listed)

    leader = None if fields["Leader"] in ("none", "-1") else json_fields.number(f"{where}, Leader", fields["Leader"])
    partition = TopicPartition(topic, json_fields.number(f"{where}, Partition", fields["Partition"]))
    state = PartitionDescription(ids("Replicas"), leader, ids("Isr"), ids("Adding Replicas"), ids("Removing Replicas"))
    return _Entry(where, partition, state)


def _check(entry: _Entry) -> None:
    where, partition, state = entry
    subject = f"{where}: {partition}"
    replicas = ",".join(map(str, state.replicas))
    if not znodes.TOPIC_NAME.fullmatch(partition.topic):
        raise _illegal(where, partition.topic)
    if partition.partition < 0:
        raise BadInput(f"{subject}: partitions are numbered from 0")
    if not state.replicas:
        raise BadInput(f"{subject} has no replicas; at least one is expected")
    if min(state.replicas) < 0:
        raise BadInput(f"{subject} has replicas {replicas}; broker ids are not negative")
    for name in ("replicas", "isr", "adding", "removing"):
        twice = [str(broker) for broker, times in Counter(getattr(state, name)).items() if times > 1]
        if twice:
            raise BadInput(f"{subject} names {', '.join(twice)} twice in its {name}")
    others = (*state.isr, *state.adding, *state.removing)
    strangers = [str(broker) for broker in others if broker not in state.replicas]
    if strangers:
        raise BadInput(f"{subject} names {', '.join(strangers)} beside its replicas {replicas}")
    if state.leader is not None and state.leader not in state.isr:
        isr = ",".join(map(str, state.isr)) or "none"
        raise BadInput(f"{subject} is led by {state.leader}, but in sync are {isr} of replicas {replicas}")


def _illegal(where: str, topic: str) -> BadInput:
    return BadInput(f"{where}: topic {topic[:60]!r}; 1 to 249 of a-z A-Z 0-9 . _ - are allowed")


def _check_topics(source: str, found: dict[TopicPartition, _Entry], counts: dict[str, int]) -> None:
    """A topic with a header has the partitions 0 to PartitionCount - 1; of a topic without one, any may be listed."""
    if not found and not counts:
        raise BadInput(f"{source}: nothing in it; {_EXPECTED} is expected")
    listed = Counter(partition.topic for partition in found)
    for topic, count in counts.items():
        for partition in range(max(count, listed[topic])):
            if TopicPartition(topic, partition) not in found:
                raise BadInput(
                    f"{source}: topic {topic} lacks partition {partition}; partitions are numbered from 0 to "
                    "PartitionCount - 1 without gaps"
                )
        if listed[topic] > count:
            raise BadInput(f"{source}: topic {topic} lists {listed[topic]} partitions; PartitionCount is {count}")


# In a lab

CONTROLLER, CONTROLLER_EPOCH = znodes.ControllerZNode.path(), znodes.ControllerEpochZNode.path()
WINDOW = 100
"""Writes in flight while ZooKeeper is filled."""


class BrokerRoles(NamedTuple):
    """The described brokers that are down, and the partitions in which others lag."""

    down: frozenset[int]
    lagging: dict[int, list[TopicPartition]]


def roles(description: Description, generation: Generation, config: Config) -> BrokerRoles:
    """The roles that brokers must have for the description to hold. Raises BadInput if they cannot."""
    for own in description.configs.values():
        check_values(own, keys(TOPIC, generation.name), generation)
    must_be_down: dict[int, TopicPartition] = {}
    for tp, partition in description.partitions.items():
        if partition.leader is None and description.live is None:
            must_be_down |= dict.fromkeys(_eligible(tp, partition, description, config), tp)
        if partition.adding or partition.removing:
            _check_reassignment(tp, generation)
    needed: set[int] = set(description.live or ())
    for tp, partition in description.partitions.items():
        if partition.leader in must_be_down:
            raise BadInput(
                f"{must_be_down[partition.leader]} has no leader although broker {partition.leader} could lead it; as "
                f"it leads {tp}, it is alive, and an election would follow at once"
            )
        if description.live is None:
            needed.update(partition.isr, partition.adding)
    down = frozenset(must_be_down.keys() | set(description.brokers) - needed)
    lagging: dict[int, list[TopicPartition]] = {}
    for tp, partition in description.partitions.items():
        for broker in partition.replicas:
            if partition.leader is not None and broker not in partition.isr and broker not in down:
                lagging.setdefault(broker, []).append(tp)
    return BrokerRoles(down, lagging)


def with_live(description: Description, generation: Generation, config: Config) -> Description:
    """The description with its live brokers named, as these settings have them: with others, the same are alive."""
    down = roles(description, generation, config).down
    return description._replace(live=tuple(broker for broker in description.brokers if broker not in down))


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
    """Write the described znodes and start the live brokers; returns when all of these have registered."""
    fate = roles(description, world.generation, world.config)
    world.run(_write(admin, description, world))
    starting = [broker for id, broker in world.brokers.items() if id not in fate.down]
    controller = parse_int(description.znodes.get(CONTROLLER, ""))

    def start() -> None:
        world.expected_brokers.update(broker.id for broker in starting)
        for broker in starting:
            delay = world.boot_delay()
            broker.start(2 * world.costs.boot if broker.id == controller else delay)  # the last to register is elected
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
    """The znodes to create, parents first."""
    for path in znodes.PERSISTENT_PATHS:
        yield Create(path)
    given = {CONTROLLER_EPOCH: str(EPOCH), **description.znodes}
    if parse_int(given.pop(CONTROLLER, "")) is not None:  # the one that takes over raises the epoch to that of now
        given[CONTROLLER_EPOCH] = str(int(given[CONTROLLER_EPOCH]) - 1)
    for path, text in sorted(given.items()):
        yield Create(path, text.encode())
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
            if p.leader_epoch < 0:
                continue
            yield Create(znodes.TopicPartitionZNode.path((topic, number)))
            leader = NO_LEADER if p.leader is None else p.leader
            state = LeaderAndIsr(leader, p.isr, p.leader_epoch, p.zk_version, p.controller_epoch)
            path = znodes.TopicPartitionStateZNode.path((topic, number))
            yield Create(path, znodes.TopicPartitionStateZNode.encode(state), version=p.zk_version)


# In a story

CONFIGS = "configs"
LIVE = znodes.BrokerIdsZNode.path()
NEW = (0, 0, EPOCH)
"""Leader epoch, version and controller epoch of a partition that is described without them."""
FORM = '{"orders":[[[1,2,3],1,[1,2]]]}, for each partition its replicas, leader and ISR'


def encode(description: Description) -> dict[str, object]:
    """The description as a story keeps it: `{topic: [[replicas, leader, isr, adding, removing], ...]}`.

    The last two are left out where nothing moves; a topic with a configuration has it as a last element. Of a topic
    whose partitions are not numbered 0 to n-1 the numbers are kept: `{topic: {"1": [...], "configs": {...}}}`. Epochs
    and version follow as a sixth element where they are not those of a new partition. A key that begins with `/` is
    that of a znode; `/brokers/ids` has the live brokers.
    """
    topics: dict[str, dict[int, list[object]]] = {}
    for tp, p in sorted(description.partitions.items()):
        epochs = [list(p[5:])] if p[5:] != NEW else []
        moving = [list(p.adding), list(p.removing), *epochs] if p.adding or p.removing or epochs else []
        topics.setdefault(tp.topic, {})[tp.partition] = [list(p.replicas), p.leader, list(p.isr), *moving]
    kept: dict[str, object] = {}
    for topic in dict.fromkeys([*topics, *description.configs]):
        numbered, config = topics.get(topic, {}), description.configs.get(topic)
        if list(numbered) == list(range(len(numbered))):
            kept[topic] = [*numbered.values(), *([] if config is None else [dict(config)])]
        else:
            kept[topic] = {str(n): p for n, p in numbered.items()} | ({} if config is None else {CONFIGS: dict(config)})
    live: dict[str, object] = {} if description.live is None else {LIVE: list(description.live)}
    return kept | live | dict(description.znodes)


def decode(topics: object) -> Description:
    """The description of a story. Raises BadInput if it is not one."""
    partitions: dict[TopicPartition, PartitionDescription] = {}
    configs: dict[str, dict[str, str]] = {}
    try:
        given = _typed(dict, topics)
        live = tuple(_broker(id) for id in _typed(list, given[LIVE])) if LIVE in given else None
        others = {path: _typed(str, text) for path, text in given.items() if path.startswith("/") and path != LIVE}
        for topic, found in given.items():
            if topic.startswith("/"):
                continue
            numbered, config = _numbered(found)
            if config is not None:
                configs[topic] = {key: str(value) for key, value in config.items()}
            for number, (replicas, leader, isr, *moving) in numbered.items():
                epochs = _typed(list, moving.pop()) if len(moving) == 3 else []
                ids = [tuple(_broker(id) for id in _typed(list, each)) for each in (replicas, isr, *moving)]
                adding, removing = (*ids[2:], (), ())[:2]
                partitions[TopicPartition(topic, number)] = PartitionDescription(
                    ids[0], None if leader in (None, -1) else _broker(leader), ids[1], adding, removing, *epochs
                )
    except (AttributeError, TypeError, ValueError):
        raise BadInput(f"description={short(topics)}: {FORM}, is expected") from None
    return check_description("description", Description((), partitions, configs, live, others))


def _numbered(found: object) -> tuple[dict[int, list[object]], dict[str, object] | None]:
    """The partitions of a topic by number, and its configuration if it has any."""
    if isinstance(found, dict):
        partitions = {json_fields.number("description", n): _typed(list, p) for n, p in found.items() if n != CONFIGS}
        return partitions, _typed(dict, found[CONFIGS]) if CONFIGS in found else None
    listed = list(_typed(list, found))
    config = listed.pop() if listed and isinstance(listed[-1], dict) else None
    return {n: _typed(list, p) for n, p in enumerate(listed)}, config


def _typed(kind: type[T], value: object) -> T:
    if type(value) is not kind:
        raise TypeError
    return value


def _broker(id: object) -> int:
    return validate.integer("a broker id of the description", id, 0, MAX_ID)
