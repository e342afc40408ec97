"""Small pictures for lessons: how an election walks, logs, who believes what, a curve. Each also has a text.

Separate from `widgets.py` because these pictures need no widget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from kafka_ctl import election
from kafka_ctl.balance import BrokerBalance
from kafka_ctl.brokers.log import Entry
from kafka_ctl.brokers.states import DOWN
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import BrokerView, LogView
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, plate, svg

STEP, ROW, CELL = 150, 34, 92
MOST_VALUES = 13
"""The most values that have room below a curve."""
WIDE = 538
"""The width of a curve, that of the kit's views."""


def walk(assignment: Sequence[int], isr: Sequence[int], live: Iterable[int], unclean: bool = False) -> Drawing:
    """The walk of an offline partition's election along the assignment, with two lamps for each replica.

    Raises BadInput for an assignment without replicas.
    """
    if not assignment:
        raise BadInput("the assignment has no replicas; an election needs at least one")
    alive, chosen = frozenset(live), election.offline_leader(assignment, isr, live, unclean)
    stop = len(assignment) if chosen is None else list(assignment).index(chosen.leader)
    parts, lines = [], []
    for place, broker in enumerate(assignment):
        lamps = broker in alive, broker in tuple(isr)
        leads = chosen is not None and place == stop
        parts += _station(place, broker, lamps, leads)
        state = f"{'live' if lamps[0] else 'not live'}, {'in' if lamps[1] else 'not in'} the ISR"
        lines.append(f"{broker}: {state}" + (" -> leads" + " (unclean)" * chosen.unclean if leads and chosen else ""))
    end = "no broker leads" if chosen is None else f"leader {chosen.leader}, ISR {chosen.isr}"
    parts.append(label(20, 128, f"{end}{', unclean' if chosen and chosen.unclean else ''}", "bold"))
    title = f"assignment {tuple(assignment)}, ISR {tuple(isr)}" + ", unclean election allowed" * unclean
    return Drawing(
        svg(max(STEP * len(assignment) + 20, 420), 142, [label(20, 20, title), *parts]), "\n".join([*lines, end])
    )


def _station(place: int, broker: int, lamps: tuple[bool, bool], leads: bool) -> list[str]:
    x, c = 20 + STEP * place, COLOURS
    fill, ink = (c["leader"], c["on_leader"]) if leads else (c["plate"], c["ink"])
    parts = [
        f'<rect x="{x}" y="34" width="110" height="70" rx="8" fill="{fill}" stroke="{c["line"]}" stroke-width="1.5"/>',
        label(x + 10, 54, f"broker {broker}", "bold", ink),
    ]
    for row, (lit, name) in enumerate(zip(lamps, ("live", "in the ISR"), strict=True)):
        mark = "●" if lit else "○"
        parts.append(label(x + 10, 74 + 19 * row, f"{mark} {'' if lit else 'not '}{name}", fill=ink))
    if place:
        parts.append(f'<path d="M{x - 38} 69h30m-7 -5l7 5l-7 5" fill="none" stroke="{c["line"]}" stroke-width="1.5"/>')
    return parts


def logs(found: Sequence[LogView], lost: Iterable[int] = ()) -> Drawing:
    """Replica logs as rows of squares: the value, and the leader epoch below it; a cross through `lost` values.

    A record below the high watermark is filled.
    """
    gone, parts, lines = frozenset(lost), [], []
    longest = max((log.end for log in found), default=0)
    for row, log in enumerate(found):
        y = 26 + (ROW + 16) * row
        parts.append(label(20, y + 22, f"broker {log.broker}", "bold"))
        for offset, entry in enumerate(log.entries, log.start):
            parts += _record(100 + 44 * offset, y, entry, offset < log.high_watermark, entry.value in gone)
        lines.append(f"broker {log.broker}: {log.content}")
    head = label(20, 16, "value, leader epoch; filled: below the high watermark; crossed: lost later")
    return Drawing(svg(max(120 + 44 * longest, WIDE), 34 + (ROW + 16) * len(found), [head, *parts]), "\n".join(lines))


def _record(x: int, y: int, entry: Entry, committed: bool, lost: bool) -> list[str]:
    c = COLOURS
    fill = c["off"] if lost else c["insync"] if committed else c["plate"]
    parts = [
        f'<rect x="{x}" y="{y}" width="38" height="{ROW + 6}" rx="4" fill="{fill}" stroke="{c["line"]}"/>',
        label(x + 14, y + 17, str(entry.value), "bold"),
        label(x + 8, y + 34, f"e {entry.leader_epoch}", fill=c["dim"]),
    ]
    if lost:
        parts.append(
            f'<path d="M{x} {y}l38 {ROW + 6}m0 -{ROW + 6}l-38 {ROW + 6}" stroke="{c["bad"]}" stroke-width="2"/>'
        )
    return parts


def beliefs(lab: Lab, topic: str, partition: int) -> Drawing:
    """The beliefs about one partition: ZooKeeper's state, and of each running broker its role and its leader.

    *does* is whether its replica leads, or which broker it follows; *says* is the leader that its metadata names. A
    cell that does not fit ZooKeeper is red. Raises UnknownName when there is no such partition.
    """
    stored, tp = lab.partition(topic, partition).leader, TopicPartition(topic, partition)
    running = [view for view in lab.brokers.values() if view.state != DOWN]
    cells = [("ZooKeeper", "", f"leader {stored}", False, False)]
    for view in running:
        does, says = _belief(lab, view, tp)
        right = ("leads",) if view.id == stored else (f"follows {stored}", "no replica")
        cells.append((f"broker {view.id}", does, f"says {says}", does not in right, says not in (stored, "-")))
    parts, lines = [label(20, 20, f"{tp}: what each does and what it says; red: not as in ZooKeeper", "bold")], []
    for column, (name, does, says, wrong, stale) in enumerate(cells):
        parts.append(label(20 + CELL * column, 46, name, "bold"))
        for row, (text, red) in enumerate(((does, wrong), (says, stale))):
            parts += _belief_cell(20 + CELL * column, 54 + ROW * row, text, red) if text else []
        held = ", ".join(text + " (!)" * red for text, red in ((does, wrong), (says, stale)) if text)
        lines.append(f"{name}: {held}")
    return Drawing(svg(max(20 + CELL * len(cells), 460), 132, parts), "\n".join(lines))


def _belief(lab: Lab, view: BrokerView, tp: TopicPartition) -> tuple[str, int | str]:
    """The role of a broker for a partition, and the leader that it names; `-` where it knows none."""
    does = "leads" if tp in view.leads else "no replica"
    if tp in view.follows:
        obeyed = lab.trace.slice(action="become-follower", **tp._asdict(), broker=view.id, error=None)
        does = f"follows {obeyed[-1].leader if len(obeyed) else '-'}"
    return does, view.metadata[tp].leader if tp in view.metadata else "-"


def _belief_cell(x: int, y: int, text: str, red: bool) -> list[str]:
    colour, weight = (COLOURS["bad"], "bold") if red else ("", "normal")
    return [plate(x, y, CELL - 10, ROW - 4, red), label(x + 8, y + 20, text, weight, colour)]


def shares(found: Sequence[BrokerBalance]) -> Drawing:
    """Of each broker, `lab.balance()`: how many leaderships it should have (outline) and has (filled), and the verdict.

    The verdict is what an automatic rebalance does about it.
    """
    c, lines = COLOURS, []
    parts = [label(20, 20, "outline: prefers this broker; filled: led by it", fill=c["dim"])]
    longest = max(27, *(len(each.verdict) for each in found)) if found else 27
    unit = 180 / max((max(each.prefers, each.leads) for each in found), default=1)
    for row, each in enumerate(found):
        y = 34 + (ROW + 12) * row
        text = f"prefers {each.prefers}, leads {each.leads}, ratio {each.ratio:.3g}: {each.verdict}"
        parts += [
            label(20, y + 20, f"broker {each.broker}", "bold"),
            f'<rect x="90" y="{y + 6}" width="{unit * each.leads:.1f}" height="20" fill="{c["leader"]}"/>',
            f'<rect x="90" y="{y}" width="{unit * each.prefers:.1f}" height="32" fill="none" stroke="{c["line"]}" '
            'stroke-width="2"/>',
            label(285, y + 14, text.partition(": ")[0]),
            label(285, y + 32, each.verdict, "bold"),
        ]
        lines.append(f"broker {each.broker}: {text}")
    return Drawing(svg(305 + 13 * longest // 2, 44 + (ROW + 12) * len(found), parts), "\n".join(lines))


LOOKS = (("leader", "none"), ("bad", "7 4"), ("good", "2 4"), ("zoo_line", "10 4 2 4"))
"""A colour and a dash for each line of a curve."""


def curve(
    title: str, across: str, values: Sequence[float], lines: Mapping[str, Sequence[float]], at: int | None = None
) -> Drawing:
    """Numbers that depend on a parameter: a line with its name at its end, a mark at value number `at`.

    The values are the steps of a slider and lie equally far apart; where they are not, the picture says so.
    Raises BadInput where a line has another length than the values.
    """
    if any(len(line) != len(values) for line in lines.values()) or len(values) < 2 or len(lines) > len(LOOKS):
        raise BadInput(f"a curve needs two values or more, and 1 to {len(LOOKS)} lines as long as they are")
    top = max(max(line) for line in lines.values()) or 1
    valued = at is not None
    named = max(len(name) + valued * (2 + max(len(f"{y:g}") for y in line)) for name, line in lines.items())
    left, right, base = max(60, 20 + 7 * len(f"{top:g}")), WIDE - 38 - 13 * named // 2, 200
    xs = [left + (right - left) * n / (len(values) - 1) for n in range(len(values))]
    below = across if len({round(b - a, 9) for a, b in pairwise(values)}) == 1 else f"{across} (not to scale)"
    parts = [label(20, 20, title, "bold"), *_axes(xs, values, below, top, base, left, right + 10)]
    beside = _apart({name: base - 150 * line[-1] / top for name, line in lines.items()}, base)
    for number, (name, line) in enumerate(lines.items()):
        colour, dash = LOOKS[number][0], LOOKS[number][1]
        points = " ".join(f"{x:.1f},{base - 150 * y / top:.1f}" for x, y in zip(xs, line, strict=True))
        look = f'stroke="{COLOURS[colour]}" stroke-width="2.5" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" fill="none" {look}/>')
        parts.append(
            f'<path d="M{right} {base - 150 * line[-1] / top:.1f}L{right + 20} {beside[name]:.1f}" fill="none" {look}/>'
        )
        value = "" if at is None else f": {line[at]:g}"
        parts.append(label(right + 26, round(beside[name], 1) + 4, f"{name}{value}"))
    if at is not None:
        parts.append(f'<path d="M{xs[at]:.1f} 40V{base}" stroke="{COLOURS["hot"]}" stroke-width="2"/>')
    rows = [f"{across}: {', '.join(f'{value:g}' for value in values)}"]
    rows += [f"{name}: {', '.join(f'{y:g}' for y in line)}" for name, line in lines.items()]
    return Drawing(svg(WIDE, base + 52, parts), "\n".join([title, *rows]))


def _apart(ends: Mapping[str, float], base: float) -> dict[str, float]:
    """The places of names beside the ends of their lines: in their order, 18 pixels or more apart, above `base`."""
    places, order = dict[str, float](), sorted(ends, key=lambda name: ends[name])
    for number, name in enumerate(order):
        above = places[order[number - 1]] + 18 if number else 0.0
        places[name] = min(max(ends[name], above), base - 18 * (len(order) - 1 - number))
    return places


def _axes(
    xs: Sequence[float], values: Sequence[float], across: str, top: float, base: int, left: int, end: int
) -> list[str]:
    c = COLOURS
    parts = [f'<path d="M{left} 44V{base}H{end}" fill="none" stroke="{c["line"]}"/>']
    every = math.ceil(len(values) / MOST_VALUES)
    parts += [
        label(x - 4 * len(f"{value:g}"), base + 17, f"{value:g}")
        for x, value in list(zip(xs, values, strict=True))[::every]
    ]
    parts += [
        label(14, base + 4, "0"),
        label(14, 54, f"{top:g}"),
        label(left, base + 36, across, fill=c["dim"]),
    ]
    return parts
