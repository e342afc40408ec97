"""Space and time: a lane for ZooKeeper, each broker and administrators, time running down, messages between them.

The whole diagram is drawn once. A band marks the step shown, a veil covers what is still to come (not before the first
step: then there is nothing else to see), and the picture scrolls with them. Each step stands in words at the right.
The room between two steps grows with the logarithm of the time between them (`gap`), and a long pause shows its
length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import log10
from typing import NamedTuple

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.table import short
from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.captions import duration
from kafka_ctl.views.frames import PartState, Picture, View
from kafka_ctl.views.legend import SPACE_TIME, add_legend
from kafka_ctl.views.scene import Box, Part, Scene, Text, box, halves, shorten, stroke
from kafka_ctl.views.steps import Step

ROW, HEAD, LEFT, LANE, STORE, WORDS, WIDTH = 30.0, 44.0, 68.0, 42.0, 68.0, 142.0, 538.0
"""Pixels of a row, the heading, the time column, a lane, ZooKeeper's lane, the words, and of all at least."""
DIGIT = 7.0
"""Pixels that the time column gets for each digit of a time from 1,000 s on."""
WINDOW = 15 * ROW
"""Pixels of the diagram that are seen at once."""
SHORT, PAUSE = 10.0, 100.0
"""Milliseconds from which on a gap has a length, and from which on it says how long it is."""


def gap(ms: float) -> float:
    """The pixels between two rows that stand for so many milliseconds: 18 for each power of ten from 10 ms on."""
    return 18.0 * log10(ms / SHORT) if ms > SHORT else 0.0


class SpaceTimeView(View):
    """Draws all steps of a film at once."""

    title = "Space and time"

    def __init__(self, supergraph: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        self.records, self.steps = records, steps
        asked = any(lane_of(r.actor) == ADMIN for step in steps for r in step.records)
        self.lanes = [*([ADMIN] if asked else ()), "zookeeper", *(f"broker-{b}" for b in sorted(supergraph.brokers))]
        widths = [STORE if lane == "zookeeper" else LANE for lane in self.lanes]
        longest = max((len(_time(step)) for step in steps), default=0)
        self.left = LEFT + DIGIT * max(0, longest - len("999.9999 s"))
        ends = list(accumulate(widths, initial=self.left))
        self.place = {lane: (x0 + x1) / 2 for lane, (x0, x1) in zip(self.lanes, pairwise(ends), strict=True)}
        self.text_x = ends[-1] + 8
        self.width = max(WIDTH, self.text_x + WORDS)
        self.row_of: dict[tuple[int, ...], int] = {step.seqs: row for row, step in enumerate(steps)}
        self.row = -1
        """The row of the last step that was drawn: there it stays while another run takes one."""
        self.pauses = [0.0, *(after.time_ms - before.time_ms for before, after in pairwise(steps))]
        self.tops = list(accumulate((gap(ms) + ROW for ms in self.pauses), initial=HEAD))
        """The beginning of the gap before each row, and the end of all; `tops[row + 1] - ROW` is a row's own top."""

    @cached_property
    def scene(self) -> Scene:
        """All events, and the mark of the present."""
        scene = Scene(self.width, HEAD + min(self.tops[-1] - HEAD + ROW, WINDOW))
        below = self.tops[-1] + WINDOW
        ground = box(0, 0, self.width, ROW, 0)
        scene.add(Part("band", Box(0, 0, self.width, below), (ground,), styles="band"))
        scene.add(*self._lives())
        for row, step in enumerate(self.steps):
            scene.add(*self._pause(row), *self._row(row, step))
        veil = box(0, ROW, self.width, below, 0)
        scene.add(Part("veil", Box(0, 0, self.width, below), (veil,), styles="veil"))
        scene.add(Part("ground", Box(0, 0, 0, 0), (box(0, 0, self.width, HEAD, 0),), styles="heading", pinned=True))
        time = Text(self.left - 8, 25.5, "time", 12, "end")
        scene.add(Part("axis", Box(0, 0, self.left, HEAD), (), (time,), "note", pinned=True, title=SCALE))
        scene.add(*(self._lane(lane, x) for lane, x in self.place.items()))
        add_legend(scene, SPACE_TIME, pinned=True)
        return scene

    def _lane(self, lane: str, x: float) -> Part:
        wide = (STORE if lane == "zookeeper" else LANE) - 2
        where = Box(x - wide / 2, 4, wide, 34)
        number = number_of(lane)
        texts: tuple[Text, ...] = (Text(x, 25.5, "ZooKeeper" if lane == "zookeeper" else "admin", 12, bold=True),)
        if number is not None:
            texts = Text(x, 18, "Broker", 12), Text(x, 32, str(number), 12.5, bold=True)
        of = f"broker:{number}" if number is not None else ""
        return Part(f"lane:{lane}", where, (box(*where),), texts, "plate", of=of, pinned=True)

    def _top(self, row: int) -> float:
        """The beginning of a row, after the time that has passed since the one before; -1 is just above the first."""
        return self.tops[row + 1] - ROW

    def _y(self, row: int) -> float:
        return self._top(row) + ROW / 2

    def _pause(self, row: int) -> Iterator[Part]:
        """A long time without a step: a dotted line through it that says how long."""
        if self.pauses[row] < PAUSE:
            return
        top, high = self.tops[row], gap(self.pauses[row])
        y, label = top + high / 2, f"{duration(self.pauses[row])} pass"
        line = stroke(f"M{self.left:g},{y:g}H{self.text_x - 4:g}")
        text = Text(self.text_x, y + 4, label, 12, "start")
        where = Box(self.left, top, self.width - self.left, high)
        yield Part(f"pause:{row}", where, (line,), (text,), "wire broken", title=label)

    def _lives(self) -> Iterator[Part]:
        """The life lines: plain in life, bold for the controller, dashed while only the session of a broker lives."""
        model, place = ClusterModel(), 0
        now = {lane: ("life dead" if lane.startswith("broker") else "life", HEAD) for lane in self.lanes}
        for row, step in enumerate(self.steps):
            model.apply_all(self.records[place : step.upto])
            place = step.upto
            for number, seen in model.brokers.items():
                style = "life expiring" if seen.registered else "life dead"
                if seen.alive:
                    style = "life ruling" if model.controller == number else "life"
                lane = f"broker-{number}"
                if now[lane][0] != style:
                    yield self._life(lane, *now[lane], self._top(row))
                    now[lane] = (style, self._top(row))
        for lane, (style, since) in now.items():
            yield self._life(lane, style, since, self.tops[-1] + ROW)

    def _life(self, lane: str, style: str, top: float, bottom: float) -> Part:
        x = self.place[lane]
        line = stroke(f"M{x:g},{top:g}V{bottom:g}")
        title = "its process is dead, its session is not" if "expiring" in style else ""
        return Part(f"life:{lane}:{top:g}", Box(x, top, 0, bottom - top), (line,), styles=style, title=title)

    def _row(self, row: int, step: Step) -> Iterator[Part]:
        y = self._y(row)
        if row == 0 or step.time_ms != self.steps[row - 1].time_ms:
            time = Text(self.left - 8, y + 4, _time(step), 12, "end")
            yield Part(f"time:{row}", Box(0, y, self.left, ROW), (), (time,), "note", of=f"step:{row + 1}")
        seen: dict[tuple[str, str, str], list[str]] = {}
        for style, source, target, label in sorted(map(message, step.records), key=lambda m: m.source == m.target):
            if source in self.place:
                seen.setdefault((style, source, target), []).append(label)
        for number, ((style, source, target), labels) in enumerate(seen.items(), 1):
            way = self._arrow if target in self.place and target != source else self._dot
            yield way(f"row:{row}:{number}", row, style, source, target, "; ".join(dict.fromkeys(labels)))
        if seen:
            first = {labels[0]: f" (+{n})" if (n := len(dict.fromkeys(labels)) - 1) else "" for labels in seen.values()}
            yield self._label_part(row, next(iter(seen))[0], [label + more for label, more in first.items()])

    def _label_part(self, row: int, style: str, labels: Sequence[str]) -> Part:
        """The words of this row, in at most two lines at the right."""
        y, room = self._y(row), int((self.width - self.text_x - 4) / 6.4)
        whole = "; ".join(labels)
        lines = halves(whole, room)
        first = y + 4 if len(lines) == 1 else y - 2.5
        texts = tuple(Text(self.text_x, first + 13 * n, line, 12, "start") for n, line in enumerate(lines))
        where = Box(self.text_x, y - ROW / 2, self.width - self.text_x, ROW)
        return Part(f"said:{row}", where, (), texts, f"{style} mark", title=whole, of=f"step:{row + 1}")

    def _arrow(self, name: str, row: int, style: str, source: str, target: str, title: str) -> Part:
        y, x0, x1 = self._y(row), self.place[source], self.place[target]
        way = 1 if x1 > x0 else -1
        end, tip = x1 - 3 * way, y + 6
        shapes = (
            stroke(f"M{x0:g},{y - 6:g}L{end - 6 * way:g},{tip - 1:g}"),
            stroke(f"M{end:g},{tip:g}l{-9 * way},-4.5v9Z", "head"),
        )
        where = Box(min(x0, x1), y - 8, abs(x1 - x0), 16)
        return Part(name, where, shapes, (), style, title=title, of=f"step:{row + 1}")

    def _dot(self, name: str, row: int, style: str, lane: str, target: str, title: str) -> Part:
        """A mark in one lane."""
        y, x = self._y(row), self.place[lane]
        sign = {"alarm": "cross", "event crown": "crown"}.get(style, "dot")
        size = 1.2 if sign != "crown" else 0.9
        where = Box(x - 6, y - 6, 12, 12)
        return Part(name, where, (), (), f"{style} mark", (x, y, size), sign, title=title, of=f"step:{row + 1}")

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        self.row = row = self.row_of[step.seqs] if step else self.row
        y = self._top(row)
        scroll = max(0.0, min(y + 5 * ROW - HEAD - WINDOW, self.tops[-1] + ROW - HEAD - WINDOW))
        looks = {
            "band": PartState("band" if step else "band gone", at=(0.0, y)),
            "veil": PartState("veil" if row >= 0 else "veil gone", at=(0.0, y)),
            "camera": PartState("", at=(0.0, -scroll)),
        }
        messages = dict.fromkeys(map(sentence, step.records if step else ()))
        return Picture(looks, (), f"Row {row + 1} of {len(self.steps)}. {' '.join(list(messages)[:4])}".strip())


SCALE = "Between two steps: 18 pixels for each power of ten of the time that passes, from 10 ms on"
ADMIN = "admin"
"""The lane of administrators and of the reassignment tool."""


def lane_of(actor: str) -> str:
    """The lane of an actor: a controller lives on its broker."""
    number = number_of(actor)
    if number is not None and actor.startswith(("broker", "controller")):
        return f"broker-{number}"
    return ADMIN if actor in ("admin", "tool", "producer") else actor


class Message(NamedTuple):
    """The look of a record: its style, the lane it starts in, the one it ends in (maybe the same), its words."""

    style: str
    source: str
    target: str
    title: str


def message(record: Record) -> Message:
    """The place of a record: a message between two lanes, or an event in one."""
    lane = lane_of(record.actor)
    about = f"{record.topic}-{record.partition}" if record.partition is not None else ""
    match record.kind:
        case "request":
            return Message("ask", lane, f"broker-{record.broker}", record.action)
        case "response":
            error = "disconnected" if record.error == "DISCONNECTED" else record.error
            return Message("ask refused", lane, lane, f"{record.action}: {error}")
        case "zk":
            return _operation(record, lane)
        case "watch":
            return Message("put ephemeral", "zookeeper", lane, f"{record.target} {record.path}")
        case "partition" | "replica":
            who = f"{about}@{record.broker}" if record.kind == "replica" else about
            before = f"{short(record.source)} → " if record.source else ""
            move = f"{before}{short(record.target or '')}" + (" fails" if record.error else "")
            return Message("event blue", lane, lane, f"{who}: {move}")
        case "election":
            chosen = "no leader" if record.leader in (None, NO_LEADER) else f"elects {record.leader}"
            return Message("event blue", lane, lane, f"{chosen} for {about}")
        case "controller" if record.action == "elected":
            return Message("event crown", lane, lane, "is controller")
        case "fault" | "violation":
            where = f"broker-{record.broker}" if record.broker is not None else "zookeeper"
            return Message("alarm", where, where, record.action)
        case "event" if record.actor == "admin":
            return Message("event", ADMIN, ADMIN, f"command {record.action.replace('_', ' ')}")
    title = VERBS.get(record.action, record.action.replace("_", " "))
    return Message("event", lane, lane, f"{title} {about}".strip())


def _time(step: Step) -> str:
    """The time of a row, as it stands at its left."""
    return f"{step.time_ms / 1000:.4f} s"


def sentence(record: Record) -> str:
    """The arrow as a sentence: both ends, and the message."""
    _, source, target, title = message(record)
    way = f" to {target}" if target != source else ""
    return f"{source}{way}: {shorten(title, 60)}."


VERBS = {"become-leader": "leads", "become-follower": "follows", "ignored": "ignores"}
"""The acts of a broker, as short as the room between two lanes."""


def _operation(record: Record, lane: str) -> Message:
    """Something done in ZooKeeper, by a client or by itself."""
    if record.action in ("connect", "expired", "closed"):
        title = "opens a session" if record.action == "connect" else f"session {record.action}"
        return Message("put", lane, "zookeeper", title)
    style = "put" if record.error is None else "put refused"
    failed = f": {record.error}" if record.error else ""
    return Message(style, lane, "zookeeper", f"{record.action} {record.path}{failed}")
