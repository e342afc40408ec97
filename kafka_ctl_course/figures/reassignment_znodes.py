"""The contents of ZooKeeper while partitions move since KIP-455: three lists for each, and throttles.

Kafka 2.4.1: controller/ControllerContext.scala, ReplicaAssignment; admin/ReassignPartitionsCommand.scala, maybeLimit

Separate from `lesson_13.py` because a figure is drawn from a trace and knows no exercise.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.cluster import ReplicaAssignment
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg
from kafka_ctl_course.figures.reassignment import SIDES

ROW, CHIP, LEFT = 32, 28, 270


def lists(lab: Lab, topic: str, partition: int) -> Drawing:
    """The lists of one partition in the topic's znode, and the two that follow from them.

    The first broker of a list is the preferred leader and has a bold frame. Raises UnknownName for another partition.
    """
    found = lab.partition(topic, partition)
    stored = ReplicaAssignment(found.replicas, found.adding, found.removing)
    rows = {
        "replicas": stored.replicas,
        "adding_replicas": stored.adding,
        "removing_replicas": stored.removing,
        "origin = replicas - adding": stored.origin,
        "target = replicas - removing": stored.target,
    }
    request = ReassignPartitionsZNode.path() in lab.znodes()
    parts, lines = [label(20, 22, f"{topic}-{partition} in /brokers/topics/{topic}", "bold")], []
    for number, (name, ids) in enumerate(rows.items()):
        y = 34 + ROW * number
        parts.append(label(20, y + 20, name, fill=COLOURS["dim"] if "=" in name else ""))
        for place, broker in enumerate(ids):
            parts += _chip(LEFT + (CHIP + 6) * place, y, broker, stored, not place and "ing_" not in name)
        lines.append(f"{name}: {', '.join(map(str, ids)) or 'none'}")
    end = f"{ReassignPartitionsZNode.path()}: {'there' if request else 'not there'}; leader {found.leader}"
    parts.append(label(20, 54 + ROW * len(rows), end))
    return Drawing(svg(538, 74 + ROW * len(rows), parts), "\n".join([*lines, end]))


def _chip(x: int, y: int, broker: int, stored: ReplicaAssignment, preferred: bool) -> list[str]:
    c = COLOURS
    side = "new" if broker in stored.adding else "old" if broker in stored.removing else "both"
    fill, edge = SIDES[side]
    return [
        f'<rect x="{x}" y="{y + 2}" width="{CHIP}" height="{ROW - 8}" rx="4" fill="{c[fill]}" stroke="{c[edge]}" '
        f'stroke-width="{3 if preferred else 1}"/>',
        label(x + 10, y + 20, f"{broker}", "bold"),
    ]


class Throttle(NamedTuple):
    """One setting of a throttle: the znode, the name and the value."""

    path: str
    name: str
    value: str


def settings(lab: Lab) -> list[Throttle]:
    """Every throttle below `/config`, by znode and name."""
    return [
        Throttle(path, name, str(value))
        for path, (data, *_) in sorted(lab.znodes().items())
        if path.startswith("/config/")
        for name, value in sorted(details.json_object(data.decode()).get("config", {}).items())
        if "throttled" in name
    ]


def throttles(lab: Lab) -> Drawing:
    """The throttles as a table: which znode, which setting, which value."""
    found = settings(lab)
    head = f"{len(found)} throttle setting{'s' * (len(found) != 1)} below /config"
    parts = [label(20, 22, head, "bold", COLOURS["bad"] if found else "")]
    width = 408 + 6 * max((len(each.value) for each in found), default=0)
    for number, throttle in enumerate(found):
        y = 34 + 24 * number
        if number % 2 == 0:
            parts.append(f'<rect x="10" y="{y}" width="{width - 20}" height="24" fill="{COLOURS["panel"]}"/>')
        parts += [label(x, y + 17, text) for x, text in zip((20, 168, 388), throttle, strict=True)]
    lines = [head, *(f"{each.path} {each.name}={each.value}" for each in found)]
    return Drawing(svg(width, 50 + 24 * len(found), parts), "\n".join(lines))
