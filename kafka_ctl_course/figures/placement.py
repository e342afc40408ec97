"""The placement of replicas: a grid of brokers and partitions, racks as bands, and what each broker leads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg

ROW, WIDE, MOST = 28, 24, 60
"""Pixels of a row, and of a wide column; the most partitions that are drawn."""


class Row(NamedTuple):
    """One broker: what of it is in each column, how many partitions it leads now, how many replicas it holds."""

    broker: int
    rack: str | None
    down: bool
    cells: tuple[str, ...]
    leads: int
    holds: int

    @property
    def name(self) -> str:
        return f"{self.broker}{f' ({self.rack})' if self.rack else ''}{' down' if self.down else ''}"


def placement(lab: Lab, topic: str) -> Drawing:
    """The replicas of a topic in a lab, and who leads now. Raises UnknownName where there is no such topic."""
    found = [p for p in lab.partitions() if p.topic == topic]
    if not found:
        raise UnknownName("topic", topic, sorted({p.topic for p in lab.partitions()}))
    return grid(
        {p.partition: p.replicas for p in found},
        {p.partition: p.leader for p in found},
        {id: view.rack for id, view in lab.brokers.items()},
        [id for id, view in lab.brokers.items() if view.state == DOWN],
    )


def grid(
    assignment: Mapping[int, Sequence[int]],
    leaders: Mapping[int, int] | None = None,
    racks: Mapping[int, str | None] | None = None,
    down: Collection[int] = (),
) -> Drawing:
    """An assignment, `{partition: [ids]}`: a row for each broker, a column for each partition.

    `P` marks the preferred leader, a dot another replica, a star who leads now, if that is not the preferred one.
    Without `leaders` every preferred one leads. `racks` gives the brokers that are to be drawn, also empty ones.
    Raises BadInput for no partition or more than 60.
    """
    if not 1 <= len(assignment) <= MOST:
        raise BadInput(f"a grid shows 1 to {MOST} partitions; these are {len(assignment)}")
    now = leaders if leaders is not None else {p: ids[0] for p, ids in assignment.items()}
    rows = _rows(assignment, now, dict(racks or {}), down)
    column = WIDE if len(assignment) <= 12 else 16 if len(assignment) <= 32 else 14
    left = max(130, 30 + 7 * max(len(f"broker {row.name}") for row in rows))
    width = left + column * len(assignment) + 120
    parts = [label(20, 20, "P: preferred leader; dot: other replica; star: leads now instead of the preferred one")]
    parts += [
        label(left + column * n + column // 8, 42, f"{p}", fill=COLOURS["dim"])
        for n, p in enumerate(assignment)
        if column == WIDE or n % 2 == 0  # two digits need more than a narrow column
    ]
    bands = list(dict.fromkeys(row.rack for row in rows))
    for number, row in enumerate(rows):
        shaded = bands.index(row.rack) % 2 == 1  # every second rack
        parts += _drawn(row, 50 + ROW * number, left, column, shaded)
    without = sum(leader < 0 for leader in now.values())
    end = _ending(rows, without)
    parts.append(label(20, 74 + ROW * len(rows), end, "bold", COLOURS["bad"] if without else ""))
    lines = [f"{row.name}: {''.join(row.cells)}  leads {row.leads}, holds {row.holds}" for row in rows]
    return Drawing(svg(max(width, 538), 90 + ROW * len(rows), parts), "\n".join([*lines, end]))


def _rows(
    assignment: Mapping[int, Sequence[int]], now: Mapping[int, int], racks: dict[int, str | None], down: Collection[int]
) -> list[Row]:
    """The brokers by rack and id."""
    brokers = {*racks, *(id for ids in assignment.values() for id in ids)}
    return [
        Row(
            id,
            racks.get(id),
            id in down,
            tuple(_cell(id, ids, now[p]) for p, ids in assignment.items()),
            sum(leader == id for leader in now.values()),
            sum(id in ids for ids in assignment.values()),
        )
        for id in sorted(brokers, key=lambda id: (racks.get(id) or "", id))
    ]


def _cell(broker: int, replicas: Sequence[int], leader: int) -> str:
    """The sign of one cell: `P`, `*`, `o`, or `.` for no replica."""
    if broker not in replicas:
        return "."
    return "P" if broker == replicas[0] else "*" if broker == leader else "o"


def _drawn(row: Row, y: int, left: int, column: int, shaded: bool) -> list[str]:
    c = COLOURS
    whole = left + column * len(row.cells)
    ink = c["bad"] if row.down else c["ink"]
    parts = [f'<rect x="10" y="{y}" width="{whole + 120}" height="{ROW}" fill="{c["panel"]}"/>'] if shaded else []
    parts.append(label(20, y + 19, f"broker {row.name}", "bold" if row.down else "normal", ink))
    for number, cell in enumerate(row.cells):
        x, size = left + column * number, column - 3
        if cell == ".":
            continue
        fill = c["off"] if row.down else {"P": c["leader"], "*": c["crown"], "o": c["insync"]}[cell]
        edge = c["bad"] if row.down else c["leader"]
        parts.append(
            f'<rect x="{x}" y="{y + 3}" width="{size}" height="{ROW - 6}" rx="3" fill="{fill}" stroke="{edge}"/>'
        )
        text, half = {"P": ("P", 4), "*": ("★", 6), "o": ("·", 2)}[cell]
        colour = c["on_leader"] if cell == "P" and not row.down else c["ink"]
        parts.append(label(x + size / 2 - half, y + 19, text, "bold", colour))
    parts.append(label(whole + 10, y + 19, f"leads {row.leads}, holds {row.holds}", fill=ink))
    return parts


def _ending(rows: Sequence[Row], without: int) -> str:
    """The most and least loaded brokers that run, and what has no leader."""
    up = [row for row in rows if not row.down] or rows
    leads, holds = [row.leads for row in up], [row.holds for row in up]
    text = f"each broker that runs leads {_span(leads)} partitions and holds {_span(holds)} replicas"
    return text + (f"; {without} without a leader" if without else "")


def _span(counts: Sequence[int]) -> str:
    """`5 to 7`, or `6` for all."""
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
