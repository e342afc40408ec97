"""A reassignment in twelve steps: when each began, and what was then in ZooKeeper and on the disks.

The steps are those of the comment above `onPartitionReassignment`; since 2.4 (KIP-455) the controller has others.
Kafka 2.0.1: controller/KafkaController.scala, onPartitionReassignment

Separate from `reassignment_znodes.py` because that one is of the lists since KIP-455, this one of the twelve steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode, TopicPartitionStateZNode, TopicZNode
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg

STEPS = {
    1: "AR = new + old, in ZooKeeper",
    2: "leader epoch up, LeaderAndIsr to all",
    3: "new replicas: NewReplica",
    4: "wait until the new ones are in the ISR",
    5: "new replicas: OnlineReplica",
    6: "AR = new, in memory",
    7: "a leader of the new ones, epoch up",
    8: "old replicas: Offline, out of the ISR",
    9: "old replicas: deleted, forgotten",
    10: "AR = new, in ZooKeeper",
    11: "the request is removed",
    12: "UpdateMetadata to all",
}
"""The twelve steps in a few words."""
AFTER = {
    0: (1, 5),
    2: (3, 4),
    3: (3, 4),
    5: (5, 6),
    7: (8, 10),
    8: (8, 9),
    9: (9, 10),
}
"""The steps that a record may belong to after these; after another step only the next. A move that adds no replica
begins with 5."""
ROW, CHIP = 26, 17

SIDES = {"both": ("insync", "leader"), "old": ("off", "bad"), "new": ("good_fill", "good")}
"""Colours of a broker that stays, loses its replica, or gets one: fill and edge."""


class Step(NamedTuple):
    """One step: its number, its last record, and when that was, in milliseconds since the request."""

    number: int
    seq: int
    time_ms: float

    @property
    def name(self) -> str:
        return STEPS[self.number]


class Seen(NamedTuple):
    """The state stored at a moment: AR, ISR, leader and its epoch, and the brokers with a copy on their disks."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    copies: frozenset[int]


def steps(lab: Lab, topic: str, partition: int, start: int = 0) -> list[Step]:
    """The steps that are done of the first reassignment of a partition after record `start`.

    Raises BadInput where none has begun, and in 2.4, which has no such steps.
    """
    tp, asked = TopicPartition(topic, partition), _asked(lab, topic, partition, start)
    found: list[Step] = []
    began = max((r.time_ms for r in lab.trace.slice(kind="event", action="reassign") if r.seq < asked.seq), default=0.0)
    for record in lab.trace.slice(start=asked.seq + 1):
        at = found[-1].number if found else 0
        number = next((n for n in AFTER.get(at, (at + 1,)) if _is_step(n, record, tp)), None)
        if number is not None:
            step = Step(number, record.seq, round(record.time_ms - began, 1))
            found[-1 if number == at else len(found) :] = [step]
        if number == len(STEPS):
            break
    return found


def _asked(lab: Lab, topic: str, partition: int, start: int) -> Record:
    """The record with which the controller begins a reassignment."""
    if lab.generation.reassignment.incremental_reassignment:
        raise BadInput(f"Kafka {lab.generation.kafka} moves partitions in other steps than these twelve (KIP-455)")
    tp = TopicPartition(topic, partition)
    for record in lab.trace.slice(start=start, kind="controller", action="handling_reassignment"):
        if _about(record, tp):
            return record
    raise BadInput(f"no reassignment of {tp} has begun after record {start}")


def _about(record: Record, tp: TopicPartition) -> bool:
    """True if a line of the controller is about this partition."""
    return record.kind == "controller" and details.fields(record).get("partition") == str(tp)


def _is_step(number: int, record: Record, tp: TopicPartition) -> bool:
    """True if this record ends a step, if the steps before it are done."""
    its_own = (record.topic, record.partition) == tp
    match number:
        case 3 | 5 | 8 | 9:
            return record.kind == "replica" and its_own and record.target == TARGETS[number]
        case 4:
            missing = details.ids(details.fields(record).get("missing"))  # of the new ones, in the ISR
            return record.action == "reassignment_progress" and _about(record, tp) and not missing
        case 6:
            return record.action.startswith("reassignment_leader_") and _about(record, tp)
        case 7 if record.kind == "partition":
            return its_own and record.target == "OnlinePartition"
        case 11:
            return record.kind == "zk" and not record.error and record.path == ReassignPartitionsZNode.path()
        case 12:
            return record.action == "UpdateMetadata" and record.target is None and record.topic in (None, tp.topic)
        case _:
            return record.action == NOTES[number] and _about(record, tp)


TARGETS = {3: "NewReplica", 5: "OnlineReplica", 8: "OfflineReplica", 9: "NonExistentReplica"}
"""The target replicas of a step."""
NOTES = {1: "assignment_updated", 2: "leader_epoch_updated", 7: "leader_epoch_updated", 10: "assignment_updated"}
"""The controller's message at the end of a step."""


def seen(lab: Lab, topic: str, partition: int, moments: Iterable[int]) -> Iterator[Seen]:
    """The state stored after each of these records; they ascend."""
    tp, now = TopicPartition(topic, partition), Seen((), (), -1, -1, frozenset())
    records = iter(lab.trace)
    for moment in moments:
        for record in records:
            now = _after(now, record, tp)
            if record.seq >= moment:
                break
        yield now


def _after(now: Seen, record: Record, tp: TopicPartition) -> Seen:
    """The state stored after one more record."""
    if record.kind == "zk" and record.action in ("set", "create") and not record.error:
        if record.path == TopicZNode.path(tp.topic):
            stored = details.json_object(record.detail).get("partitions", {}).get(str(tp.partition), ())
            return now._replace(assignment=tuple(stored))
        if record.path == TopicPartitionStateZNode.path(tp):
            state = details.json_object(record.detail)
            return now._replace(isr=tuple(state["isr"]), leader=state["leader"], leader_epoch=state["leader_epoch"])
    if record.kind == "broker" and (record.topic, record.partition) == tp and record.broker is not None:
        if record.action in ("become-leader", "become-follower"):
            return now._replace(copies=now.copies | {record.broker})
        if record.action == "stop-replica" and record.detail == "delete":
            return now._replace(copies=now.copies - {record.broker})
    return now


def reassignment(lab: Lab, topic: str, partition: int, start: int = 0) -> Drawing:
    """The steps as rows: when each was done, and what was stored then; in the last row, what is stored now.

    Brokers that are only in the old assignment are orange with a dashed edge, those only in the new one green with a
    thick edge, and those in both blue.
    """
    asked, found = _asked(lab, topic, partition, start), steps(lab, topic, partition, start)
    old, *states = seen(lab, topic, partition, [asked.seq, *(step.seq for step in found), len(lab.trace) - 1])
    sets = frozenset(old.assignment), frozenset(details.ids(details.fields(asked).get("replicas")))
    whole = bool(found) and found[-1].number == len(STEPS)
    waits = found and found[-1].number in (2, 3)
    names = [(f"{step.number}", step.name, f"{step.time_ms:g}") for step in found]
    names.append(("", "now" if whole else "now: step 4 waits" if waits else "now: not finished", ""))
    longest = max(len(ids) for state in states for ids in (state.assignment, state.isr, state.copies))
    wide = max(118, (CHIP + 2) * longest + 6)
    leader = LEFT + 2 * wide
    places = (16, 286, LEFT, LEFT + wide, leader, leader + 46, leader + 94)
    width = places[-1] + wide
    parts = [label(x, 20, text, "bold") for x, text in zip(places, HEADS, strict=True)]
    lines = []
    for number, (name, state) in enumerate(zip(names, states, strict=True)):
        parts += _row(34 + ROW * number, name, state, sets, places)
        if number % 2 == 0:
            shade = f'width="{width - 16}" height="{ROW}" fill="{COLOURS["panel"]}"'
            parts.insert(0, f'<rect x="8" y="{32 + ROW * number}" {shade}/>')
        ar, isr, disks = (",".join(map(str, ids)) for ids in (state.assignment, state.isr, sorted(state.copies)))
        lines.append(
            f"{name[0]:>2} {name[2]:>7} {name[1]:<40} AR {ar:<12} ISR {isr:<12} leader {state.leader} epoch "
            f"{state.leader_epoch} copies {disks}"
        )
    return Drawing(svg(width, 50 + ROW * len(names), parts), "\n".join(lines))


HEADS = ("step", "ms", "AR in ZooKeeper", "ISR", "leader", "epoch", "on disks")
Sides = tuple[frozenset[int], frozenset[int]]
LEFT = 336
"""The place of the first column with ids of brokers; those are as wide as the most ids need."""


def _row(y: int, name: tuple[str, str, str], state: Seen, sets: Sides, places: tuple[int, ...]) -> list[str]:
    step, ms, assigned, isr, leader, epoch, disks = places
    parts = [
        label(step, y + 16, name[0], "bold"),
        label(step + 24, y + 16, name[1], "normal" if name[0] else "bold"),
        label(ms, y + 16, name[2]),
        label(leader + 10, y + 16, f"{state.leader}", "bold"),
        label(epoch + 10, y + 16, f"{state.leader_epoch}"),
    ]
    for x, ids in ((assigned, state.assignment), (isr, state.isr), (disks, sorted(state.copies))):
        for place, broker in enumerate(ids):
            parts += _chip(x + (CHIP + 2) * place, y, broker, sets)
    return parts


def _chip(x: int, y: int, broker: int, sets: Sides) -> list[str]:
    """A broker's id on the colour of the side that it belongs to."""
    c, (old, new) = COLOURS, sets
    side = "both" if broker in old & new else "old" if broker in old else "new"
    fill, edge = SIDES[side]
    look = {"both": "", "old": 'stroke-dasharray="4 2"', "new": 'stroke-width="2.5"'}[side]
    return [
        f'<rect x="{x}" y="{y + 1}" width="{CHIP}" height="{ROW - 6}" rx="4" fill="{c[fill]}" stroke="{c[edge]}" '
        f"{look}/>",
        label(x + (CHIP - 7 * len(f"{broker}")) // 2, y + 16, f"{broker}", "bold"),
    ]
