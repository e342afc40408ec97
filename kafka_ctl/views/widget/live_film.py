"""The film of a run that goes on, and the living picture of a watched cluster, which takes no clicks.

A living film grows while records come. Beside its frames stand the things that can be clicked in a lab, with their
states, which decide what is offered for them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import takewhile
from threading import Lock
from typing import Any

from kafka_ctl.generation import Generation
from kafka_ctl.kafka_log.write import KafkaLogs
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.trace.seen import Key
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import printable
from kafka_ctl.views.explain.why import is_offered
from kafka_ctl.views.frames import DIFFERING, MACHINES, VIEWS, FilmBuilder, interpolate_positions, view_class
from kafka_ctl.views.gauges import Gauge, Gauges
from kafka_ctl.views.palette import GLYPHS
from kafka_ctl.views.status import Differences, summary
from kafka_ctl.views.steps import Step, Supergraph, newsworthy, steps
from kafka_ctl.views.widget.payload import LOGS, Data, Rows, add_logs, frame_data, view_data
from kafka_ctl.views.widget.player import Widget

AT_ONCE = 150
"""The most steps that one command makes; more are joined."""
KEPT = 600
"""The most steps that are kept; when there are more, the older half is left to `lab.player()`."""
MOST_STEPS = 40
"""The most steps that one look at the trace adds; more are joined."""
Things = Mapping[str, Sequence[str]]
"""Id -> its state and, of a partition, its replicas as a form has them. A broker and ZooKeeper are `up` or `down`, a
partition `leaderless` and the cluster `faulty` or nothing."""


def things(model: ClusterModel, leaderless: Container[Key]) -> Things:
    """The things of a model; `leaderless` are its partitions without a leader."""
    found = {"": ["faulty" if model.is_faulty else "", ""]}
    found["zookeeper"] = ["down" if model.zookeeper_down else "up", ""]
    for broker, seen in sorted(model.brokers.items()):
        found[f"broker:{broker}"] = ["up" if seen.alive else "down", ""]
    for key, partition in sorted(model.partitions.items()):
        if partition.replicas and f"/brokers/topics/{key[0]}" in model.znodes:
            name = printable(f"partition:{key[0]}-{key[1]}")
            found[name] = ["leaderless" if key in leaderless else "", ", ".join(map(str, partition.replicas))]
    return found


def changes(before: Things, now: Things) -> Data:
    """The things that have changed, as a frame has them; None for one that is gone. Empty if there are none."""
    changed = {name: now.get(name) for name in [*before, *now] if before.get(name) != now.get(name)}
    return {"things": changed} if changed else {}


def together(frames: Sequence[Data]) -> Things:
    """The things at the last of these frames."""
    found: Data = {}
    for frame in frames:
        found |= frame.get("things", {})
    return {name: thing for name, thing in found.items() if thing is not None}


def shared(one: Sequence[Record], other: Sequence[Record]) -> int:
    """The number of records with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class LiveFilm:
    """The frames so far, and the reels of the views that are shown; `read` and `show` give what is new as data.

    The first frame shows the state after `first` records. `before` is the film of a run that began in the same way:
    the steps that both have are taken from it.
    """

    def __init__(self, trace: Recorder, generation: str, first: int = 0, before: LiveFilm | None = None) -> None:
        self.trace, self.generation = trace, Generation(generation)
        self.first = self.place = first
        self.supergraph, self.model, self.differences = Supergraph(sizes_only=True), ClusterModel(), Differences()
        self.gauges, self.gauged = Gauges(trace), list[Gauge]()
        self.supergraph.add(trace.records[:first])
        self.model.apply_all(trace.records[:first])
        self.logs = KafkaLogs(tuple(LOGS), generation)
        self.steps: list[Step] = []
        opening = frame_data("start", 0.0, "Before the first step.", "", None, ())
        self.things = things(self.model, ())
        self.frames = [opening | changes({}, self.things)]
        self.frame_of: dict[int, int] = {}
        self.builders: dict[str, tuple[FilmBuilder, Rows, tuple[int, int]]] = {}
        if before is not None:
            self._begin_as(before)
        self.known = len(self.frames)
        """The frames that the film before had, too."""
        self.read(2 * AT_ONCE)

    def _begin_as(self, before: LiveFilm) -> None:
        both = shared(before.trace.records, self.trace.records)
        known = [step for step in before.steps if step.upto <= both]
        if known:
            self.first, self.frames = before.first, before.frames[:1]
            self.things = together(self.frames)
            self._take(known, self.trace.records[: known[-1].upto])

    def film_data(self, views: list[str]) -> Data:
        """Everything so far, with these views."""
        self.builders.clear()
        titles = [[name, view_class(name).title] for name in VIEWS]
        shown = [self.show(name) for name in views]
        return {"frames": self.frames, "glyphs": GLYPHS, "tabs": titles, "views": shown, "asks": True}

    def read(self, most: int = AT_ONCE) -> list[Data]:
        """Read the records since the last time; returns the new frames."""
        new = self.trace.records[self.place :]
        return self._take(steps(new, newsworthy, most), new)

    def _take(self, found: list[Step], new: list[Record]) -> list[Data]:
        before = len(self.frames)
        self.supergraph.add(new)
        for step in found:
            self._add(step)
        self.place += len(new)
        seqs = [(), *(step.seqs for step in self.steps)]
        logs = {
            name: [(seq, line) for seq, line in own if seq >= self.first] for name, own in self.logs.add(new).items()
        }
        add_logs(self.frames[before:], seqs[before:], logs)
        return self.frames[before:]

    def moment(self, frame: int) -> tuple[int, int] | None:
        """The last record of what a frame shows, and the first of the next step; None for the last frame: the end."""
        if frame >= len(self.steps):
            return None
        upto = self.steps[frame - 1].upto if frame else self.first
        return max(0, upto - 1), self.steps[frame].records[0].seq

    def _add(self, step: Step) -> None:
        """Count a step of the new records into those of all records."""
        records = self.trace.records
        seq = step.records[0].cause
        while seq is not None and seq not in self.frame_of:
            seq = records[seq].cause
        upto = self.place + step.upto
        cause = None if seq is None else self.frame_of[seq]
        self.model.apply_all(records[self.model.seq + 1 : upto])
        self.frame_of.update(dict.fromkeys(step.seqs, len(self.frames)))
        self.steps.append(step._replace(upto=upto, cause=None if cause is None else cause - 1))
        text, status = caption(step.records, records), summary(self.model)
        differs = self.differences.update(self.model).text()
        before, self.gauged = self.gauged, self.gauges.at(self.model, step.time_ms)
        gauges = None if before == self.gauged else self.gauged
        known, self.things = self.things, things(self.model, self.gauges.leaderless.since)
        frame = frame_data(step.kind, step.time_ms, text, status, cause, step.seqs, differs, gauges)
        frame |= {"why": is_offered(self.trace, step.seqs, self.generation)}
        self.frames.append(frame | changes(known, self.things))

    def show(self, view: str) -> Data:
        """The view as a whole, with all frames so far."""
        kind, records = view_class(view), self.trace.records
        options = {"generation": self.generation.name} if view in DIFFERING else {}
        builder = FilmBuilder(view, kind(self.supergraph.model(), records, self.steps, **options), records, self.first)
        builder.add(records, self.steps, [frame["caption"] for frame in self.frames[1:]])
        interpolate_positions(builder.film.frames)
        rows = Rows()
        self.builders[view] = builder, rows, self.supergraph.size
        return view_data(builder.film, rows)

    def grow(self, view: str) -> Data | None:
        """The frames that a view does not have yet; None when it must be shown anew."""
        builder, rows, size = self.builders[view]
        if not self._fits(builder, size):
            return None
        have = len(builder.film)
        builder.add(self.trace.records, self.steps[have - 1 :], [frame["caption"] for frame in self.frames[have:]])
        return rows.add(builder.film.frames[have:])

    def _fits(self, builder: FilmBuilder, size: tuple[int, int]) -> bool:
        """True if a drawing has room for all there is now."""
        view = builder.film.view
        if view == "zookeeper":
            before: Any = builder.drawing
            now = view_class(view)(self.supergraph.model(), self.trace.records, self.steps)
            return bool(now.drawn == before.drawn)
        return view in MACHINES or (view == "cluster" and self.supergraph.size[0] == size[0])

    @property
    def too_long(self) -> bool:
        return len(self.steps) > KEPT

    def forget(self) -> None:
        """Leave out the older half of the steps; frames are counted anew."""
        cut = len(self.steps) - KEPT // 2
        self.first = self.steps[cut - 1].upto
        later = [s._replace(cause=s.cause - cut if s.cause and s.cause >= cut else None) for s in self.steps[cut:]]
        gauges = next(frame["gauges"] for frame in self.frames[cut::-1] if "gauges" in frame)
        opening = (
            self.frames[cut]
            | {"gauges": gauges, "things": together(self.frames[: cut + 1])}
            | {"kind": "start", "caption": "The state before the first step.", "cause": None}
        )
        self.steps, self.frames = later, [opening, *self.frames[cut + 1 :]]
        for frame, step in zip(self.frames[1:], later, strict=True):
            frame["cause"] = None if step.cause is None else step.cause + 1
        self.frame_of = {seq: n for n, step in enumerate(later, 1) for seq in step.seqs}


class Watching(Widget):
    """A player of all steps so far; `refresh` adds those of new records. It stays at the end if it was there.

    `views` are the views that can be turned to. `first` is the number of records about the cluster as it was found.
    """

    def __init__(self, trace: Recorder, first: int, views: tuple[str, ...] = ("cluster",)) -> None:
        self._lock = Lock()
        self.live_film, self.views = LiveFilm(trace, trace.generation, first), list(views)
        super().__init__(film=self._all(), index=len(self.live_film.frames) - 1)

    def _all(self) -> dict[str, object]:
        return self.live_film.film_data(self.views) | {"asks": False}

    def refresh(self) -> None:
        """Show all records since the last time; any thread may ask for it."""
        with self._lock:
            last, live_film = len(self) - 1, self.live_film
            live_film.read(MOST_STEPS)
            if live_film.too_long:
                live_film.forget()
            end = len(live_film.frames) - 1
            if end != last:
                with self.hold_trait_notifications():
                    self.film = self._all()
                    self.index = end if self.index == last else min(self.index, end)
