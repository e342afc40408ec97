"""The copies of a partition's leader, ISR and leader epoch, by holder, moment by moment.

With ZooKeeper there are several: the znode, the controller's own, and one in the metadata of each broker. They change
one after the other.

Separate from `lesson_24.py` because a figure is drawn from a trace and knows no exercise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, plate, svg

Copy = tuple[int, tuple[int, ...], int]
"""Leader, ISR and leader epoch."""
LEFT, CELL, ROW = 92, 79, 30


class Moment(NamedTuple):
    """The copies of all running holders: `ZooKeeper`, `controller` or `broker 2`; None for no copy."""

    time_ms: float
    copies: dict[str, Copy | None]

    @property
    def agree(self) -> bool:
        """True if all copies are equal."""
        return len({copy for copy in self.copies.values() if copy is not None}) <= 1


def moment(lab: Lab, topic: str, partition: int) -> Moment:
    """The copies now; UnknownName for an unknown partition."""
    tp, stored = TopicPartition(topic, partition), lab.partition(topic, partition)
    has_state = f"/brokers/topics/{topic}/partitions/{partition}/state" in lab.znodes()
    held: dict[str, Copy | None] = {
        "ZooKeeper": (stored.leader, stored.isr, stored.leader_epoch) if has_state else None
    }
    acting = lab.controller_leadership(topic, partition)
    held["controller"] = None if acting is None else (acting.leader, acting.isr, acting.leader_epoch)
    for id, view in lab.brokers.items():
        if view.state != "down":
            found = view.metadata.get(tp)
            held[f"broker {id}"] = None if found is None else (found.leader, found.isr, found.leader_epoch)
    return Moment(round(1000 * lab.now, 1), held)


def moments(lab: Lab, topic: str, partition: int, steps: int) -> list[Moment]:
    """The copies now, and after each of `steps` steps of the lab in which a copy has changed."""
    found = [moment(lab, topic, partition)]
    for _ in range(steps):
        lab.step()
        if (now := moment(lab, topic, partition)).copies != found[-1].copies:
            found.append(now)
    return found


def copies_over_time(found: Sequence[Moment]) -> Drawing:
    """A row for each holder, a column for each moment; what differs from ZooKeeper has a thick edge.

    Raises BadInput where there is no moment.
    """
    if not found:
        raise BadInput("no moment to draw")
    holders = list(dict.fromkeys(holder for each in found for holder in each.copies))
    parts = [label(20, 20, "leader and leader epoch that each holds; thick edge: not as in ZooKeeper", "bold")]
    lines = []
    for column, each in enumerate(found):
        x = LEFT + CELL * column
        parts.append(label(x, 44, f"{each.time_ms:g} ms"))
        entries = []
        for row, holder in enumerate(holders):
            text, differs = _held(each, holder)
            parts += _cell(x, 52 + ROW * row, text, differs)
            entries.append(f"{holder} {text}" + " (!)" * differs)
        lines.append(f"{each.time_ms:g} ms: {', '.join(entries)}")
    parts += [label(20, 71 + ROW * row, holder, "bold") for row, holder in enumerate(holders)]
    return Drawing(svg(max(LEFT + CELL * len(found) + 6, 480), 66 + ROW * len(holders), parts), "\n".join(lines))


def _held(each: Moment, holder: str) -> tuple[str, bool]:
    """A copy as text, and whether it differs from ZooKeeper's."""
    copy = each.copies.get(holder)
    if copy is None:
        return "-", False
    return f"{copy[0]}, epoch {copy[2]}", copy != each.copies["ZooKeeper"]


def _cell(x: int, y: int, text: str, differs: bool) -> list[str]:
    box = plate(x, y, CELL - 6, ROW - 6, differs, "faint")
    return [box, label(x + 2, y + 17, text, "bold" if differs else "normal")]


def as_one_log(found: Sequence[Moment], at: int = -1) -> Drawing:
    """The decisions of these moments as one log, and how far each holder has read at one of them.

    Drawn, not simulated: so KRaft keeps them. Raises BadInput where there is no moment.
    """
    if not found:
        raise BadInput("no moment to draw")
    decisions = list(dict.fromkeys(copy for each in found if (copy := each.copies["ZooKeeper"]) is not None))
    parts = [label(20, 20, "the same decisions as one log (drawn, not simulated)", "bold")]
    for offset, (leader, _, epoch) in enumerate(decisions):
        x = LEFT + (CELL + 60) * offset
        parts.append(
            f'<rect x="{x}" y="34" width="{CELL + 52}" height="{ROW}" rx="4" fill="{COLOURS["insync"]}" '
            f'stroke="{COLOURS["leader"]}"/>'
        )
        parts.append(label(x + 8, 54, f"{offset}: leader {leader}, epoch {epoch}"))
    lines = []
    readers = {holder: copy for holder, copy in found[at].copies.items() if holder != "ZooKeeper"}
    for row, (holder, copy) in enumerate(readers.items()):
        read = decisions.index(copy) + 1 if copy in decisions else 0
        y = 88 + 22 * row
        text = f"{holder} has read {read} of {len(decisions)}"
        reach = (CELL + 60) * read - 8 * bool(read)
        parts.append(f'<path d="M{LEFT} {y - 4}h{reach}" stroke="{COLOURS["good"]}" stroke-width="4"/>')
        parts += [
            label(20, y, holder, "bold"),
            label(LEFT + (CELL + 60) * len(decisions) + 8, y, f"{read} of {len(decisions)}"),
        ]
        lines.append(text)
    size = LEFT + (CELL + 60) * len(decisions) + 90
    return Drawing(svg(max(size, 480), 84 + 22 * len(readers), parts), "\n".join(lines))
