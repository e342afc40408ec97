"""Incremental films of a trace that grows: only new frames are sent, and only for visible views.

All views keep step. A view whose drawing has no room for what is new (another topic, another moment on a time
axis) is drawn again; the others only get further frames.
"""

from __future__ import annotations

from typing import Any

from kafka_ctl.generation import Generation
from kafka_ctl.kafka_log.write import KafkaLogs
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Recorder
from kafka_ctl.views.captions import caption
from kafka_ctl.views.differences import Differences
from kafka_ctl.views.explain.why import is_offered
from kafka_ctl.views.frames import DIFFERING, MACHINES, VIEWS, FilmBuilder, interpolate_positions, view_class
from kafka_ctl.views.palette import GLYPHS
from kafka_ctl.views.status import summary
from kafka_ctl.views.steps import Step, newsworthy, steps
from kafka_ctl.views.supergraph import Supergraph
from kafka_ctl.views.widget.payload import LOGS, Data, Rows, add_logs, frame_data, view_data

AT_ONCE = 150
"""The most steps that one command makes; more are joined."""
KEPT = 600
"""The most steps that are kept; when there are more, the older half is left to `lab.player()`."""


class LiveFilm:
    """The frames so far, and the reels of the views that are shown; `read` and `show` give what is new as data."""

    def __init__(self, trace: Recorder, generation: str) -> None:
        self.trace, self.generation = trace, Generation(generation)
        self.first = self.place = 0
        self.supergraph, self.model, self.differences = Supergraph(), ClusterModel(), Differences()
        self.logs = KafkaLogs(tuple(LOGS), generation)
        self.steps: list[Step] = []
        self.frames = [frame_data("start", 0.0, "Before the first step.", "", None, ())]
        self.frame_of: dict[int, int] = {}
        self.builders: dict[str, tuple[FilmBuilder, Rows, tuple[int, int]]] = {}
        self.read(2 * AT_ONCE)

    def film_data(self, views: list[str]) -> Data:
        """Everything so far, with these views."""
        self.builders.clear()
        titles = [[name, view_class(name).title] for name in VIEWS]
        shown = [self.show(name) for name in views]
        return {"frames": self.frames, "glyphs": GLYPHS, "tabs": titles, "views": shown, "asks": True}

    def read(self, most: int = AT_ONCE) -> list[Data]:
        """Take up what has happened since the last time; the new frames."""
        before, new = len(self.frames), self.trace.records[self.place :]
        self.supergraph.add(new)
        for step in steps(new, newsworthy, most):
            self._add(step)
        self.place += len(new)
        seqs = [(), *(step.seqs for step in self.steps)]
        add_logs(self.frames[before:], seqs[before:], self.logs.add(new))
        return self.frames[before:]

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
        text, status = caption(step.records), summary(self.model)
        differs = self.differences.update(self.model).text()
        frame = frame_data(step.kind, step.time_ms, text, status, cause, step.seqs, differs)
        self.frames.append(frame | {"why": is_offered(self.trace, step.seqs, self.generation)})

    def show(self, view: str) -> Data:
        """The view as a whole, with all frames so far."""
        kind, records = view_class(view), self.trace.records
        options = {"generation": self.generation.name} if view in DIFFERING else {}
        builder = FilmBuilder(view, kind(self.supergraph.model(), records, self.steps, **options), records, self.first)
        builder.add(records, self.steps)
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
        builder.add(self.trace.records, self.steps[have - 1 :])
        return rows.add(builder.film.frames[have:])

    def _fits(self, builder: FilmBuilder, size: tuple[int, int]) -> bool:
        """Whether a drawing has room for all there is now."""
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
        opening = self.frames[cut] | {"kind": "start", "caption": "The state before the first step.", "cause": None}
        self.steps, self.frames = later, [opening, *self.frames[cut + 1 :]]
        for frame, step in zip(self.frames[1:], later, strict=True):
            frame["cause"] = None if step.cause is None else step.cause + 1
        self.frame_of = {seq: n for n, step in enumerate(later, 1) for seq in step.seqs}
