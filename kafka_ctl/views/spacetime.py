"""Space and time: a lane for ZooKeeper and for each broker, time running down, messages between the lanes.

The whole diagram is drawn once. A band marks the step shown, a veil covers what is still to come, and the
picture scrolls with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka_ctl.table import short
from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.frames import PartState, Picture
from kafka_ctl.views.scene import Box, Part, Scene, Shape, Text, box, shorten
from kafka_ctl.views.steps import Step, newsworthy

ROW, HEAD, LEFT, LANE, RIGHT, WINDOW = 30.0, 44.0, 84.0, 176.0, 56.0, 15
"""Pixels of a row, of the heading, of the time column, of a lane and beside the last one; rows seen at once."""
FITS = 23
"""The most characters between one lane and the next, or beside the last one."""


class SpaceTimeView:
    """Draws all steps of a film at once."""

    title = "Space and time"

    def __init__(self, union: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        self.records, self.steps = records, steps
        self.lanes = ["zookeeper", *(f"broker-{b}" for b in sorted(union.brokers))]
        self.place = {lane: LEFT + LANE * (i + 0.5) for i, lane in enumerate(self.lanes)}
        self.width = LEFT + LANE * len(self.lanes) + RIGHT
        self.row_of: dict[tuple[int, ...], int] = {step.seqs: row for row, step in enumerate(steps)}

    @staticmethod
    def wants(record: Record) -> bool:
        return newsworthy(record)

    def scene(self) -> Scene:
        """Everything that ever happens, and what marks the present."""
        rows = max(len(self.steps), 1)
        scene = Scene(self.width, HEAD + ROW * min(rows + 1, WINDOW))
        ground = box(0, 0, self.width, ROW, 0)
        scene.add(Part("band", Box(0, 0, self.width, ROW * (rows + WINDOW)), (ground,), styles="band"))
        scene.add(*self._lives(rows))
        for row, step in enumerate(self.steps):
            scene.add(*self._row(row, step))
        veil = box(0, ROW, self.width, ROW * (rows + WINDOW), 0)
        scene.add(Part("veil", Box(0, 0, self.width, ROW * (rows + WINDOW)), (veil,), styles="veil"))
        scene.add(Part("ground", Box(0, 0, 0, 0), (box(0, 0, self.width, HEAD, 0),), styles="heading", pinned=True))
        for lane, x in self.place.items():
            name = "ZooKeeper" if lane == "zookeeper" else lane.replace("broker-", "Broker ")
            shape = box(x - 56, 8, 112, 26)
            scene.add(
                Part(
                    f"lane:{lane}",
                    Box(x - 56, 8, 112, 26),
                    (shape,),
                    (Text(x, 25.5, name, 13, bold=True),),
                    "plate",
                    of=f"broker:{number_of(lane)}" if lane != "zookeeper" else "",
                    pinned=True,
                )
            )
        return scene

    def _y(self, row: int) -> float:
        return HEAD + ROW * (row + 0.5)

    def _lives(self, rows: int) -> Iterator[Part]:
        """The life lines: plain while a broker lives, bold while it rules, dotted while it is dead."""
        model, place = ClusterModel(), 0
        now = dict.fromkeys(self.lanes, ("life dead", 0))
        now["zookeeper"] = ("life", 0)
        for row, step in enumerate(self.steps):
            model.apply_all(self.records[place : step.upto])
            place = step.upto
            for number, seen in model.brokers.items():
                style = (
                    "life ruling"
                    if model.controller == number and seen.alive
                    else "life"
                    if seen.alive
                    else "life dead"
                )
                lane = f"broker-{number}"
                if now[lane][0] != style:
                    yield self._life(lane, *now[lane], row)
                    now[lane] = (style, row)
        for lane, (style, since) in now.items():
            yield self._life(lane, style, since, rows + 1)

    def _life(self, lane: str, style: str, since: int, until: int) -> Part:
        x, top, bottom = self.place[lane], HEAD + ROW * since, HEAD + ROW * until
        line = Shape("body", "path", (("d", f"M{x:g},{top:g}V{bottom:g}"),))
        return Part(f"life:{lane}:{since}", Box(x, top, 0, bottom - top), (line,), styles=style)

    def _row(self, row: int, step: Step) -> Iterator[Part]:
        y = self._y(row)
        if row == 0 or step.time_ms != self.steps[row - 1].time_ms:
            time = Text(LEFT - 14, y + 4, f"{step.time_ms / 1000:.4f} s", 11.5, "end")
            yield Part(f"time:{row}", Box(0, y, LEFT, ROW), (), (time,), "note", of=f"step:{row + 1}")
        seen: set[tuple[str, str, str]] = set()
        labelled: set[str] = set()
        messages = sorted(map(message, step.records), key=lambda m: m.source == m.target)  # arrows get the words
        dotted = {m.source for m in messages if m.source == m.target}
        for style, source, target, label in messages:
            if (style, source, target) in seen or source not in self.place:
                continue
            seen.add((style, source, target))
            title = "" if label in labelled else label
            labelled.add(label)
            name = f"row:{row}:{len(seen)}"
            if target in self.place and target != source:
                yield self._arrow(name, row, style, source, target, title)
            else:
                yield self._dot(name, row, style, source, title, dotted)

    def _arrow(self, name: str, row: int, style: str, source: str, target: str, title: str) -> Part:
        y, x0, x1 = self._y(row), self.place[source], self.place[target]
        way = 1 if x1 > x0 else -1
        end, tip = x1 - 5 * way, y + 7
        shapes = (
            Shape("body", "path", (("d", f"M{x0:g},{y - 5:g}L{end - 6 * way:g},{tip:g}"),)),
            Shape("head", "path", (("d", f"M{end:g},{tip:g}l{-9 * way},-4.5v9Z"),)),
        )
        text = (Text(x0 + way * 10, y - 9, shorten(title, 46), 11.5, "start" if way > 0 else "end"),) if title else ()
        return Part(
            name,
            Box(min(x0, x1), y - 8, abs(x1 - x0), 16),
            shapes,
            text,
            style,
            title=title,
            of=f"step:{row + 1}",
        )

    def _dot(self, name: str, row: int, style: str, lane: str, title: str, dotted: set[str]) -> Part:
        """A mark in one lane, its words at its right; in the last lane long ones at its left, where there is room."""
        y, x, number = self._y(row), self.place[lane], self.lanes.index(lane)
        after, before = (self.lanes[n] if 0 <= n < len(self.lanes) else "" for n in (number + 1, number - 1))
        left = not after and number > 1 and len(title) > FITS and before not in dotted
        room = 46 if left or (after and after not in dotted) else FITS
        aside = 16 if "crown" in style else 11
        text = Text(x - aside if left else x + aside, y + 4, shorten(title, room), 11.5, "end" if left else "start")
        sign = {"alarm": "cross", "event crown": "crown"}.get(style, "dot")
        size = 1.2 if sign != "crown" else 0.9
        return Part(
            name,
            Box(x - 6, y - 6, 12, 12),
            (),
            (text,) if title else (),
            f"{style} mark",
            (x, y, size),
            sign,
            title=title,
            of=f"step:{row + 1}",
        )

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        row = self.row_of[step.seqs] if step else -1
        scroll = max(0, min(row - WINDOW + 5, len(self.steps) - WINDOW + 1))
        y = HEAD + ROW * row
        looks = {
            "band": PartState("band" if step else "band gone", at=(0.0, y)),
            "veil": PartState("veil", at=(0.0, y)),
            "camera": PartState("", at=(0.0, -ROW * scroll)),
        }
        messages = dict.fromkeys(map(sentence, step.records if step else ()))
        return Picture(looks, (), f"Row {row + 1} of {len(self.steps)}. {' '.join(list(messages)[:4])}".strip())


def lane_of(actor: str) -> str:
    """The lane of an actor: a controller lives on its broker."""
    number = number_of(actor)
    return f"broker-{number}" if number is not None and actor.startswith(("broker", "controller")) else actor


class Message(NamedTuple):
    """How a record is drawn: its style, the lane it starts in, the one it ends in (maybe the same), its words."""

    style: str
    source: str
    target: str
    title: str


def message(record: Record) -> Message:
    """What a record is in space: a message between two lanes, or something that happens in one."""
    lane = lane_of(record.actor)
    about = f"{record.topic}-{record.partition}" if record.partition is not None else ""
    match record.kind:
        case "request":
            return Message("ask", lane, f"broker-{record.broker}", record.action)
        case "response":
            return Message("ask refused", lane, lane, f"{record.action}: {record.error}")
        case "zk":
            return _operation(record, lane)
        case "watch":
            return Message("put ephemeral", "zookeeper", lane, f"{record.target} {record.path}")
        case "partition" | "replica":
            who = f"{about}@{record.broker}" if record.kind == "replica" else about
            before = f"{short(record.source)} → " if record.source else ""
            move = f"{before}{short(record.target or '')}"
            return Message("event blue", lane, lane, f"{who}: {move}")
        case "election":
            return Message("event blue", lane, lane, f"elects {record.leader} for {about}")
        case "controller" if record.action == "elected":
            return Message("event crown", lane, lane, "is controller")
        case "fault" | "violation":
            where = f"broker-{record.broker}" if record.broker is not None else "zookeeper"
            return Message("alarm", where, where, record.action)
        case "event" if record.actor == "admin":
            return Message("event", "zookeeper", "zookeeper", f"admin: {record.action}")
    title = VERBS.get(record.action, record.action.replace("_", " "))
    return Message("event", lane, lane, f"{title} {about}".strip())


def sentence(record: Record) -> str:
    """The same as a sentence: from where to where, and what."""
    _, source, target, title = message(record)
    way = f" to {target}" if target != source else ""
    return f"{source}{way}: {shorten(title, 60)}."


VERBS = {"become-leader": "leads", "become-follower": "follows", "ignored": "ignores"}
"""What a broker does, as short as there is room between two lanes."""


def _operation(record: Record, lane: str) -> Message:
    """Something done in ZooKeeper, by a client or by itself."""
    if record.action in ("connect", "expired", "closed"):
        title = "opens a session" if record.action == "connect" else f"session {record.action}"
        return Message("put", lane, "zookeeper", title)
    style = "put" if record.error is None else "put refused"
    failed = f": {record.error}" if record.error else ""
    return Message(style, lane, "zookeeper", f"{record.action} {record.path}{failed}")
