"""The frame model: one scene, one look per part and frame, three renderings made from it.

A film is a scene laid out once for everything that ever appears, and per step a picture: how each part looks
(styles of the palette), what is written on it, where the movers are, what travels. Nothing in a film knows
whether it will be a widget, a script-free SVG or a page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.trace import Record
from kafka_ctl.views.captions import caption
from kafka_ctl.views.fold import Model
from kafka_ctl.views.scene import Point, Scene
from kafka_ctl.views.steps import Step, newsworthy, steps


class Look(NamedTuple):
    """How a part looks in one frame: styles, its words (empty: as drawn), its sign, where a mover is."""

    styles: str
    texts: tuple[str, ...] = ()
    glyph: str = ""
    at: Point | None = None


class Token(NamedTuple):
    """Something on its way along a line: a request, a write, a watch that fires, a subject changing state."""

    line: str
    label: str
    styles: str = "parcel"
    rest: float = 0.75
    """The share of the way where it stands in a still picture."""


class Picture(NamedTuple):
    """One frame's looks by part id, what travels, and the state of the cluster in words."""

    looks: dict[str, Look]
    tokens: tuple[Token, ...] = ()
    words: str = ""


class Frame(NamedTuple):
    """One step and its picture; `seqs` are the records it shows, `cause` the index of the frame that caused it."""

    index: int
    kind: str
    time_ms: float
    caption: str
    picture: Picture
    seqs: tuple[int, ...] = ()
    cause: int | None = None

    @property
    def alt(self) -> str:
        """The frame in words, for who cannot see it."""
        return f"{self.caption} {self.picture.words}".strip()


class View(Protocol):
    """One way to draw a cluster. `Union` is a model of everything that ever appears in the records."""

    title: str

    @staticmethod
    def wants(record: Record) -> bool: ...
    def scene(self) -> Scene: ...
    def picture(self, model: Model, step: Step | None) -> Picture: ...


VIEWS = {
    "cluster": "kafka_ctl.views.cluster:ClusterView",
    "partition": "kafka_ctl.views.machines:PartitionView",
    "replica": "kafka_ctl.views.machines:ReplicaView",
}
"""View name -> module and class; each is made from the union model and the list of records."""


@dataclass
class Film:
    """What all three renderings are made from."""

    view: str
    title: str
    scene: Scene
    frames: list[Frame] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def tracks(self) -> dict[str, list[tuple[int, Look]]]:
        """Per part, the frames in which its look changes and the new look."""
        found: dict[str, list[tuple[int, Look]]] = {}
        for frame in self.frames:
            for name, look in frame.picture.looks.items():
                track = found.setdefault(name, [])
                if not track or track[-1][1] != look:
                    track.append((frame.index, look))
        return found

    def text(self) -> str:
        """The steps as numbered lines: what a reader without pictures gets."""
        lines = [f"{frame.index:>3}  {frame.time_ms:>10.1f} ms  {frame.caption}" for frame in self.frames]
        return f"{self.title}, {len(self)} steps\n" + "\n".join(lines)


def film(
    records: Sequence[Record],
    view: str = "cluster",
    *,
    start: int | None = None,
    limit: int = 400,
    wants: Callable[[Record], bool] | None = None,
    **options: Any,
) -> Film:
    """The film of these records in one view.

    `start` is the seq from which frames are made (earlier records only set the scene); `wants` picks the
    records that make a frame, the view's own choice by default; `limit` bounds the number of frames.
    Raises UnknownName for a view that does not exist, BadInput for an empty trace.
    """
    kind = _view_class(view)
    if not isinstance(limit, int) or limit < 1:
        raise BadInput(f"limit cannot be {limit!r}; it is a number of frames, 1 or more")
    records = list(records)
    if not records:
        raise BadInput("nothing to show: the trace has no records yet")
    drawing: View = kind(union(records), records, **options)
    first = next(
        (i for i, r in enumerate(records) if start is not None and r.seq >= start),
        0 if start is None else len(records),
    )
    model = Model().apply_all(records[:first])
    scene = drawing.scene()
    opening = "Before the first step." if first == 0 else "This is how things stood before."
    frames = [
        Frame(
            0,
            "start",
            records[max(first - 1, 0)].time_ms if first else 0.0,
            opening,
            drawing.picture(model, None),
        )
    ]
    place = first
    for step in steps(records, wants or drawing.wants, limit, first):
        model.apply_all(records[place : step.upto])
        place = step.upto
        cause = None if step.cause is None else step.cause + 1
        frames.append(
            Frame(
                len(frames),
                step.kind,
                step.time_ms,
                caption(step.records),
                drawing.picture(model, step),
                step.seqs,
                cause,
            )
        )
    return Film(view, drawing.title, scene, frames)


def wants_of(views: Sequence[str]) -> Callable[[Record], bool]:
    """Wanted by any of these views: what makes them keep step with one another."""
    classes = [_view_class(view) for view in views]
    return lambda record: any(view.wants(record) for view in classes)


def _view_class(view: str) -> Any:
    if view not in VIEWS:
        raise UnknownName("view", view, VIEWS)
    module, _, name = VIEWS[view].partition(":")
    return getattr(import_module(module), name)


def frames(records: Sequence[Record], view: str = "cluster", limit: int = 400) -> list[Frame]:
    """The frames of these records in one view: see `film`."""
    return film(records, view, limit=limit).frames


def union(records: Sequence[Record]) -> Model:
    """A model in which everything that ever appears is there: what a layout must have room for."""
    model, replicas, znodes = Model(), {}, {}
    assigned: dict[tuple[str, int], dict[int, None]] = {}
    for record in records:
        model.apply(record)
        if record.kind == "zk" and record.path in model.znodes:
            znodes.setdefault(record.path, model.znodes[record.path])
        if record.kind in ("zk", "partition"):
            touched = [(record.topic, record.partition)] if record.topic is not None else model.partitions
            for key in touched:
                if key in model.partitions:
                    assigned.setdefault(key, {}).update(dict.fromkeys(model.partitions[key].replicas))  # type: ignore[arg-type]
        elif record.kind == "replica" and None not in (record.topic, record.partition, record.broker):
            replicas[record.topic, record.partition, record.broker] = ""
        for number in (record.broker, *(record.replicas or ())):
            if number is not None and number >= 0:
                model.broker(number)
    for key, brokers in assigned.items():
        model.partitions[key].replicas = tuple(brokers)
        for number in brokers:
            replicas[(*key, number)] = ""  # type: ignore[index]
    for topic, partition, number in replicas:
        model.broker(number)
        model.partition(topic, partition)
    model.replicas, model.znodes = replicas, znodes
    return model


__all__ = ["VIEWS", "Film", "Frame", "Look", "Picture", "Token", "film", "frames", "newsworthy", "union"]
