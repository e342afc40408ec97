"""The leaders of each partition over time, and the gaps without one: one bar a partition, time running to the right.

Separate from `frames.py` because a view is loaded when it is asked for.
Drawn once from all records; a line marks the present, a veil covers what is still to come. The time axis is that of
space and time: the room between two changes grows with the logarithm of the time between them, so that milliseconds and
hours are both visible. Below the axis are the lengths of the long intervals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from kafka_ctl.trace.model import STATE, TOPIC, ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.views.captions import duration
from kafka_ctl.views.frames import PartState, Picture, View
from kafka_ctl.views.legend import TIMELINE, add_legend
from kafka_ctl.views.scene import Box, Part, Scene, Text, box, shorten, stroke
from kafka_ctl.views.steps import Step, newsworthy
from kafka_ctl.views.time.spacetime import PAUSE, gap

LEFT, WIDTH, ROW, HEAD, MOST = 112.0, 402.0, 24.0, 14.0, 30
"""Pixels of the names, the bars, a row and the space above; the most partitions that are drawn."""

MARGIN = 0.03
"""The room after the last record, as a share of the whole: it shows the last leader."""

NARROW = 3.0
"""Pixels added to `gap` for an interval of any length, before all of them are scaled to the width."""
APART = 62.0
"""Pixels between two labelled ticks, at least."""
SCALE = "Logarithmic between two changes: each power of ten of the time from 10 ms on has the same length"

GONE = -2
"""Instead of a leader: the topic has been deleted, and needs none."""

Key = tuple[str, int]


class Span(NamedTuple):
    """From `begin` to `end` (milliseconds) a broker led; `leader` is None when no broker could answer."""

    begin: float
    end: float
    leader: int | None


class TimelineView(View):
    """Draws a row for the controller and for each partition, those that were unavailable longest first."""

    title = "Who led when"

    def __init__(self, supergraph: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        begin = records[0].time_ms
        if steps and len(records) > 1:
            begin = min(begin, steps[0].time_ms)
        self.begin, self.last = begin, max(records[-1].time_ms, begin + 1)
        self.time = begin
        """The time of the last step that was drawn: it stays there while another run takes a step."""
        self.end = self.last + MARGIN * (self.last - begin)
        ruled, led = spans(records, self.end)
        self.ruled = ruled
        self.lost = {key: sum(s.end - s.begin for s in found if s.leader is None) for key, found in led.items()}
        shown = sorted(led, key=lambda key: (-self.lost[key], key))[:MOST]
        self.led = {key: led[key] for key in sorted(shown)}
        changes = {t for found in (ruled, *self.led.values()) for span in found for t in (span.begin, span.end)}
        self.times = sorted({self.begin, self.last, self.end, *changes})
        """The moments of change: the axis is even between two of these."""
        sizes = [NARROW + gap(after - before) for before, after in pairwise(self.times)]
        whole = sum(sizes[:-1]) / (1 - MARGIN)
        ends = [*accumulate(sizes[:-1], initial=0.0), whole]
        self.places = [LEFT + WIDTH * end / whole for end in ends]

    @classmethod
    def is_relevant(cls, record: Record) -> bool:
        return newsworthy(record) and record.kind in ("zk", "partition", "controller", "fault", "violation", "election")

    def x(self, time_ms: float) -> float:
        """The place of a moment between `begin` and `end`."""
        at = max(0, min(bisect_right(self.times, time_ms), len(self.times) - 1) - 1)
        (t0, t1), (x0, x1) = self.times[at : at + 2], self.places[at : at + 2]
        return x0 + (x1 - x0) * (time_ms - t0) / (t1 - t0)

    @cached_property
    def scene(self) -> Scene:
        """All rows, the scale below them, and the mark of the present."""
        rows = len(self.led) + 1
        bottom = HEAD + ROW * rows
        scene = Scene(LEFT + WIDTH + 24, bottom + 50)
        scene.add(*self._row("controller", "controller", self.ruled, 0))
        for row, (key, found) in enumerate(self.led.items(), 1):
            scene.add(*self._row(f"partition:{key[0]}-{key[1]}", shorten(f"{key[0]}-{key[1]}", 16), found, row))
        veil = box(0, HEAD - 4, WIDTH + 40, ROW * rows + 4, 0)
        scene.add(Part("veil", Box(0, 0, 0, 0), (veil,), styles="veil"))
        line = stroke(f"M0,{HEAD - 8:g}V{bottom + 6:g}")
        scene.add(Part("now", Box(0, 0, 0, 0), (line,), styles="wire now"))
        scene.add(*self._scale(bottom + 6))
        add_legend(scene, TIMELINE)
        return scene

    def _row(self, name: str, title: str, found: Iterable[Span], row: int) -> Iterator[Part]:
        top = HEAD + ROW * row
        text = Text(LEFT - 10, top + 15, title, 12, "end", bold=name == "controller")
        yield Part(f"name:{name}", Box(0, top, LEFT, ROW), (), (text,), "bare", of=name)
        for number, span in enumerate(found):
            x, width = self.x(span.begin), max(self.x(span.end) - self.x(span.begin), 1.2)
            style, title = "plate active" if name == "controller" else "plate leader", str(span.leader)
            if span.leader is None:
                style, title = "plate offline", "no controller" if name == "controller" else "no leader"
            label = (Text(x + 6, top + 15, title, 12, "start"),) if width > 8 * len(title) + 8 else ()
            where, title = Box(x, top + 2, width, ROW - 4), f"{title} for {(span.end - span.begin) / 1000:.3f} s"
            yield Part(f"span:{row}:{number}", where, (box(*where, 3),), label, style, title=title, of=name)

    def _scale(self, top: float) -> Iterator[Part]:
        """The axis: ticks where something changes, as many as have room, and how long the long intervals are."""
        line = stroke(f"M{LEFT:g},{top:g}H{LEFT + WIDTH:g}")
        texts = Text(LEFT - 10, top + 18, "time", 12, "end"), Text(LEFT - 10, top + 34, "length", 12, "end")
        yield Part("axis", Box(LEFT, top, WIDTH, 0), (line,), texts, "wire", title=SCALE)
        last = -APART
        for tick, (time, x) in enumerate(zip(self.times[:-1], self.places, strict=False)):
            if x - last < APART:
                continue
            last = x
            line = stroke(f"M{x:.1f},{top:g}v5")
            label = Text(x, top + 18, f"{time / 1000:.4g} s", 12, "middle" if x > LEFT else "start")
            yield Part(f"tick:{tick}", Box(x, top, 0, 5), (line,), (label,), "wire")
        for number, ((t0, x0), (t1, x1)) in enumerate(pairwise(zip(self.times[:-1], self.places, strict=False))):
            length = duration(t1 - t0)
            if t1 - t0 >= PAUSE and x1 - x0 >= 6.4 * len(length) + 6:
                line = stroke(f"M{x0 + 2:.1f},{top + 23:g}H{x1 - 2:.1f}")
                label = Text((x0 + x1) / 2, top + 34, length, 12)
                where = Box(x0, top + 22, x1 - x0, 14)
                yield Part(f"passes:{number}", where, (line,), (label,), "wire broken", title=f"{length} pass")

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        self.time = time = step.time_ms if step else self.time
        x = self.x(self.end if time >= self.last else max(time, self.begin))
        veil = "veil" if time > self.begin else "veil gone"  # before the first step the whole is shown
        looks = {"now": PartState("wire now", at=(x, 0.0)), "veil": PartState(veil, at=(x, 0.0))}
        lost = [f"{t}-{p}" for t, p in model.leaderless()]
        return Picture(looks, (), f"Without a leader now: {', '.join(lost[:6]) or 'none'}.")


def spans(records: Sequence[Record], end: float) -> tuple[list[Span], dict[Key, list[Span]]]:
    """The controllers, and the leaders of each partition, from when to when.

    A partition counts from its first leader on; under a leader whose process is dead, it has none.
    """
    model = ClusterModel()
    ruled: list[Span] = []
    led: dict[Key, list[Span]] = {}
    gone: set[int] = set()
    for record in records:
        model.apply(record)
        alive = model.controller is not None and model.broker(model.controller).alive
        _extend(ruled, record.time_ms, model.controller if alive else None)
        if record.kind in ("zk", "partition", "fault", "broker"):
            was, gone = gone, {id for id, broker in model.brokers.items() if broker.is_gone}
            for key in list(model.partitions) if gone != was else _concerned(record, model):
                seen = model.partition(*key)
                if seen.leader is not None:
                    _extend(led.setdefault(key, []), record.time_ms, seen.leader if model.leads(seen) else None)
                elif key in led and not seen.replicas:
                    _extend(led[key], record.time_ms, GONE)
    for found in (ruled, *led.values()):
        if found:
            found[-1] = found[-1]._replace(end=end)
    return [s for s in ruled if s.end > s.begin], {
        key: [s for s in found if s.end > s.begin and s.leader != GONE] for key, found in led.items()
    }


def _concerned(record: Record, model: ClusterModel) -> list[Key]:
    """The partitions whose leader a record can change while no broker comes or goes: its own, or those of its topic."""
    topic, partition = record.topic, record.partition
    if record.kind == "zk":
        path = record.path or ""
        if state := STATE.search(path):
            return [(state[1], int(state[2]))]
        topic, partition = (found[1] if (found := TOPIC.search(path)) else None), None
    if topic is not None and partition is not None:
        return [(topic, partition)]
    return [key for key in model.partitions if key[0] == topic]


def _extend(found: list[Span], now: float, leader: int | None) -> None:
    if found and found[-1].leader == leader:
        return
    if found:
        found[-1] = found[-1]._replace(end=now)
    found.append(Span(now, now, leader))
