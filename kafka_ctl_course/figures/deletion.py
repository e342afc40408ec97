"""A topic that is being deleted: what ZooKeeper has, what the controller has in memory, and what is on the disks.

Separate from `lesson_14.py` because a figure is drawn from a trace and knows no exercise.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.lab.lab import Lab
from kafka_ctl.zookeeper.znodes import DeleteTopicsTopicZNode, TopicZNode
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg

COLUMN, LINE, HEAD = 178, 30, 3
"""Pixels of a column and of a line; the lines above the columns."""


class Copy(NamedTuple):
    """One replica: whether its broker runs, its state for the controller, and its records on disk (None: no copy)."""

    name: str
    runs: bool
    state: str
    records: int | None


class Deletion(NamedTuple):
    """A topic in three places."""

    marked: bool
    in_zookeeper: bool
    in_memory: bool | None
    copies: tuple[Copy, ...]


def deletion(lab: Lab, topic: str) -> Drawing:
    """The progress of a topic's deletion: a column for each replica, and the places that should agree.

    A mismatch is red: a request that only ZooKeeper or only the controller knows, and a copy on the disk of a broker
    that is down.
    """
    found = facts(lab, topic)
    memory = "no controller" if found.in_memory is None else "yes" if found.in_memory else "no"
    apart = found.in_memory is not None and found.in_memory != found.marked
    lines = [
        f"/admin/delete_topics/{topic}: {'yes' if found.marked else 'no'}",
        f"to be deleted, in the controller's memory: {memory}{' (!)' if apart else ''}",
        f"/brokers/topics/{topic}: {'yes' if found.in_zookeeper else 'no'}",
    ]
    parts = [
        label(20, 24 + LINE * row, text, "bold" if "(!)" in text else "normal", COLOURS["bad"] if "(!)" in text else "")
        for row, text in enumerate(lines)
    ]
    for column, copy in enumerate(found.copies):
        parts += _column(20 + COLUMN * column, 20 + LINE * HEAD, copy)
        lines.append(f"{copy.name}: {'up' if copy.runs else 'down'}, {copy.state}, disk: {_disk(copy)}")
    if not found.copies:
        lines.append("no replica, no copy")
        parts.append(label(20, 24 + LINE * HEAD, lines[-1]))
    height = 40 + LINE * HEAD + (LINE * 4 if found.copies else 10)
    return Drawing(svg(max(538, 30 + COLUMN * len(found.copies)), height, parts), "\n".join(lines))


def facts(lab: Lab, topic: str) -> Deletion:
    """The same as values."""
    znodes, memory = lab.znodes(), lab.controller_memory()
    states = {(r.partition, r.broker): str(r.state) for r in lab.replicas() if r.topic == topic}
    logs = _records(lab, topic)
    return Deletion(
        DeleteTopicsTopicZNode.path(topic) in znodes,
        TopicZNode.path(topic) in znodes,
        None if memory is None else topic in memory.deleting,
        tuple(
            Copy(
                f"{topic}-{partition} on {broker}",
                lab.brokers[broker].state != DOWN,
                states.get((partition, broker), "unknown"),
                logs.get((partition, broker)),
            )
            for partition, broker in sorted({*states, *logs})
        ),
    )


def _records(lab: Lab, topic: str) -> dict[tuple[int, int], int]:
    """The number of records of each copy on a disk."""
    found = {(at.partition, at.broker): 0 for at in lab.log_dirs() if at.topic == topic}
    return found | {(log.partition, log.broker): len(log.entries) for log in lab.logs() if log.topic == topic}


def _disk(copy: Copy) -> str:
    return "deleted" if copy.records is None else f"{copy.records} record{'s' * (copy.records != 1)}"


def _column(x: int, y: int, copy: Copy) -> list[str]:
    c = COLOURS
    edge = c["line"] if copy.runs else c["bad"]
    dash = "none" if copy.runs else "6 4"
    full = copy.records is not None
    fill, dots = (c["insync"], "none") if full else (c["panel"], "3 3")
    return [
        f'<rect x="{x}" y="{y}" width="{COLUMN - 12}" height="{LINE * 4 - 8}" rx="6" fill="{c["plate"]}" '
        f'stroke="{edge}" stroke-width="1.5" stroke-dasharray="{dash}"/>',
        label(x + 10, y + 22, copy.name + ("" if copy.runs else ", down"), "bold", "" if copy.runs else c["bad"]),
        label(x + 10, y + 22 + LINE, copy.state.replace("ReplicaDeletion", "Deletion"), fill=c["ink"]),
        f'<rect x="{x + 8}" y="{y + 4 + LINE * 2}" width="{COLUMN - 28}" height="{LINE}" rx="4" '
        f'fill="{fill}" stroke="{c["line"]}" stroke-dasharray="{dots}"/>',
        label(x + 16, y + 24 + LINE * 2, f"disk: {_disk(copy)}"),
    ]
