"""The files of the reassignment tool, what it proposes, and who is throttled while partitions move.

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}
    {"version":1,"topics":[{"topic":"orders"}]}

The first kind is a plan, the second names topics for which one is to be proposed. `log_dirs` came with Kafka 1.1 and
may be left out. A faulty file is a BadInput with the tool's own words.
Kafka 2.0.1: admin/ReassignPartitionsCommand.scala, ReassignPartitionsCommand
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from kafka_ctl.assignment import assign
from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.scala_order import case_hash, java_hash, map_order, set_order, set_order_by, text_hash

T = TypeVar("T")
ANY = "any"
"""The log directory of a replica that may lie in any."""
COMPLETED, IN_PROGRESS, FAILED = "completed successfully", "is still in progress", "failed"
"""The progress of a plan."""
Assignment = Mapping[TopicPartition, tuple[int, ...]]


class Plan(NamedTuple):
    """The requested replicas by partition, and the replicas that are to lie in a certain log directory."""

    partitions: dict[TopicPartition, tuple[int, ...]]
    log_dirs: dict[Replica, str]


def read_plan(text: str, generation: Generation, check: bool = False) -> Plan:
    """The plan in a file. Raises BadInput in Kafka's words if it is no plan or, with `check`, an impossible one."""
    listed: list[tuple[TopicPartition, tuple[int, ...]]] = []
    log_dirs: dict[Replica, str] = {}
    for entry in _entries(text, "partitions", generation):
        tp = TopicPartition(_field(entry, "topic", str), _field(entry, "partition", int))
        replicas = tuple(_each(_field(entry, "replicas", list), int))
        listed.append((tp, replicas))
        if "log_dirs" in entry and generation.log_dirs.moves_between_log_dirs:
            dirs = _each(_field(entry, "log_dirs", list), str)
            if len(dirs) != len(replicas):
                raise BadInput(
                    f"Size of replicas list {_buffer(replicas)} is different from size of log dirs list "
                    f"{_buffer(dirs)} for partition {tp}"
                )
            moved = zip(replicas, dirs, strict=True)
            log_dirs |= {Replica(*tp, broker): path for broker, path in moved if path != ANY}
    if check:
        check_plan(listed, generation)
    return Plan(dict(listed), log_dirs)


def check_plan(listed: Sequence[tuple[TopicPartition, Sequence[int]]], generation: Generation) -> None:
    """Raise BadInput, in the tool's words, for a plan that is empty or names something twice."""
    if not listed:
        raise BadInput("Partition reassignment data file is empty")
    if generation.tool.refuses_empty_replicas and not all(replicas for _, replicas in listed):
        raise BadInput("Partition replica list cannot be empty")
    if twice := duplicates([tp for tp, _ in listed]):
        names = ",".join(name(tp, generation) for tp in twice)
        raise BadInput(f"Partition reassignment contains duplicate topic partitions: {names}")
    repeated = [(tp, again) for tp, replicas in listed if (again := duplicates(replicas))]
    if repeated:
        texts = ". ".join(
            f"{name(tp, generation)} contains multiple entries for {','.join(map(str, again))}"
            for tp, again in repeated
        )
        raise BadInput(f"Partition replica lists may not contain duplicate entries: {texts}")


def check_exists(plan: Iterable[TopicPartition], existing: Collection[TopicPartition], generation: Generation) -> None:
    """Raise BadInput for partitions that the cluster does not have."""
    if missing := [name(tp, generation) for tp in plan if tp not in existing]:
        listed = "ListBuffer" if generation.log_dirs.moves_between_log_dirs else "List"
        raise BadInput(f"The proposed assignment contains non-existent partitions: {listed}({', '.join(missing)})")


def as_written(plan: Assignment, generation: Generation) -> dict[TopicPartition, tuple[int, ...]]:
    """A plan in the order in which the tool writes it into ZooKeeper: that of Scala's immutable maps.

    Since KAFKA-5928 it groups the partitions by topic before.
    Kafka 2.4.1, 2.0.1, 0.10.2.2: admin/ReassignPartitionsCommand.scala, executeAssignment, reassignPartitions
    """
    hash_of = java_hash if generation.log_dirs.moves_between_log_dirs else case_hash
    order = set_order_by(plan, hash_of)
    if generation.tool.groups_plans_by_topic:
        topics = set_order_by(map_order((tp.topic for tp in order), text_hash), text_hash)
        groups = (set_order_by((tp for tp in order if tp.topic == topic), hash_of) for topic in topics)
        order = set_order_by((tp for group in groups for tp in group), hash_of)
    return {tp: plan[tp] for tp in order}


def read_topics(text: str, generation: Generation) -> list[str]:
    """The topics named in a file. Raises BadInput for one that is named twice."""
    topics = [_field(entry, "topic", str) for entry in _entries(text, "topics", generation)]
    if twice := duplicates(topics):
        raise BadInput(f"List of topics to reassign contains duplicate entries: {','.join(twice)}")
    return topics


def write_plan(assignment: Assignment, generation: Generation) -> str:
    """A plan as the tool prints it, ordered by topic and partition."""
    entries: list[dict[str, object]] = []
    for (topic, partition), replicas in sorted(assignment.items()):
        entries.append({"topic": topic, "partition": partition, "replicas": list(replicas)})
        if generation.log_dirs.moves_between_log_dirs:
            entries[-1]["log_dirs"] = [ANY] * len(replicas)
    return json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"), ensure_ascii=False)


def propose(
    current: Assignment, brokers: Iterable[int], racks: Mapping[int, str | None], rng: Random | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """New replicas for all these partitions on these brokers: as many as the first partition of a topic has."""
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    wanted = sorted(set(brokers))
    for topic in dict.fromkeys(tp.topic for tp in current):
        partitions = [tp for tp in current if tp.topic == topic]
        spread = assign(
            wanted, len(partitions), len(current[partitions[0]]), racks={b: racks.get(b) for b in wanted}, rng=rng
        )
        proposed |= {TopicPartition(topic, number): tuple(replicas) for number, replicas in spread.items()}
    return proposed


def throttled(topic: str, existing: Assignment, plan: Assignment) -> tuple[str, str]:
    """The throttled replicas of a topic, as its configuration has them: leaders', followers'.

    All replicas that a partition has before it gains one are throttled as leaders, for any of them may lead; those
    that it gains are throttled as followers. The form is `partition:broker,partition:broker`.
    """
    leaders, followers = [], []
    for tp, before in existing.items():
        if tp.topic == topic and tp in plan and set(plan[tp]) - set(before):
            leaders += [f"{tp.partition}:{broker}" for broker in before]
    for tp, after in plan.items():
        if tp.topic == topic:
            new = (broker for broker in set_order(after) if broker not in existing.get(tp, ()))
            followers += [f"{tp.partition}:{broker}" for broker in new]
    return ",".join(leaders), ",".join(followers)


def name(tp: TopicPartition, generation: Generation) -> str:
    """A partition as the tool of that generation prints it: `orders-0`, in 0.10 `[orders,0]`."""
    return str(tp) if generation.tool.prints_short_names else f"[{tp.topic},{tp.partition}]"


def listed(assignment: Assignment) -> str:
    """A plan as the tool prints one that it could not start: `ListBuffer((orders-0,ArrayBuffer(1, 2)))`."""
    return f"ListBuffer({', '.join(f'({tp},{_buffer(replicas)})' for tp, replicas in assignment.items())})"


def duplicates(values: Sequence[T]) -> list[T]:
    """The values that stand there more than once."""
    return [v for v in dict.fromkeys(values) if values.count(v) > 1]


# JSON, with the errors of Kafka's parsers


def _entries(text: str, kind: str, generation: Generation) -> list[dict[str, object]]:
    """The objects of a file's list; 0.10 took what is no JSON for an empty list."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        if generation.tool.checks_files:
            raise BadInput("The input string is not a valid JSON") from None
        return []
    if not isinstance(found, dict):
        raise BadInput(f"Expected JSON object, received {_json(found)}")
    if generation.tool.checks_files and (version := _each([found.get("version", 1)], int)[0]) != 1:
        raise BadInput(f"Not supported version field value {version}")
    entries = found.get(kind, [])
    if not isinstance(entries, list):
        raise BadInput(f"Expected JSON array, received {_json(entries)}")
    if wrong := [entry for entry in entries if not isinstance(entry, dict)]:
        raise BadInput(f"Expected JSON object, received {_json(wrong[0])}")
    return entries


_INT32 = range(-(2**31), 2**31)
TYPES = {str: "`String` value", int: "`Int` value", list: "JSON array"}


def _field(entry: Mapping[str, object], key: str, kind: type[T]) -> T:
    if key not in entry:
        raise BadInput(f"No such field exists: `{key}`")
    return _each([entry[key]], kind)[0]


def _each(values: Sequence[object], kind: type[T]) -> list[T]:
    found: list[T] = []
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value not in _INT32):
            raise BadInput(f"Expected {TYPES[kind]}, received {_json(value)}")
        found.append(value)
    return found


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _buffer(values: Iterable[object]) -> str:
    return f"ArrayBuffer({', '.join(map(str, values))})"
