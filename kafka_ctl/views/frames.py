"""The frame model: one scene, one look per part and frame, three renderings made from it.

A film is a scene laid out once for everything that ever appears, and per step a picture: how each part looks
(styles of the palette), what is written on it, where the movers are, what travels. Nothing in a film knows
whether it will be a widget, a script-free SVG or a page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.views.captions import caption
from kafka_ctl.views.options import check_film
from kafka_ctl.views.scene import Point, Scene, point_at
from kafka_ctl.views.steps import Step, lesson, steps
from kafka_ctl.views.supergraph import supergraph


class PartState(NamedTuple):
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
    beside: Point | None = None
    """Where it stands instead, if it would hide a line as short as itself."""

    @property
    def place(self) -> Point:
        """Where it stands in a still picture."""
        return self.beside or point_at(self.line, self.rest)


def pill_width(label: str) -> float:
    """Pixels of the pill that bears a token's label."""
    return 16 + 6.8 * len(label)


class Picture(NamedTuple):
    """One frame's looks by part id (in a film: the new ones), what travels, and the cluster in words.

    `differs` says who has something else than ZooKeeper; `detail` is what a counted picture does not draw: (broker,
    partition) -> how the replica stands (in a film: the new).
    """

    looks: dict[str, PartState]
    tokens: tuple[Token, ...] = ()
    summary: str = ""
    differs: str = ""
    detail: Mapping[tuple[int, str], str] = MappingProxyType({})


@dataclass(frozen=True)
class Frame:
    """One step and its picture; `seqs` are its records, `cause` is the index of the frame that caused it."""

    index: int
    kind: str
    time_ms: float
    caption: str
    picture: Picture
    seqs: tuple[int, ...] = ()
    cause: int | None = None
    lesson: str = ""
    """What is to be learnt from it: see `LESSONS` in `views/steps.py`."""

    @property
    def alt(self) -> str:
        """The frame in words, for who cannot see it."""
        return " ".join(filter(None, (self.caption, self.picture.differs, self.picture.summary)))


class View(Protocol):
    """One way to draw a cluster, made from the union model of all records, the records and the steps.

    A picture may leave out looks that are as in the last picture of the same model.
    """

    title: str

    @staticmethod
    def is_relevant(record: Record) -> bool: ...
    def scene(self) -> Scene: ...
    def picture(self, model: ClusterModel, step: Step | None) -> Picture: ...


VIEWS = {
    "cluster": "kafka_ctl.views.cluster:ClusterView",
    "partition": "kafka_ctl.views.machines:PartitionView",
    "replica": "kafka_ctl.views.machines:ReplicaView",
    "spacetime": "kafka_ctl.views.spacetime:SpaceTimeView",
    "zookeeper": "kafka_ctl.views.zookeeper:ZooKeeperView",
    "queue": "kafka_ctl.views.eventqueue:EventQueueView",
    "timeline": "kafka_ctl.views.timeline:TimelineView",
}
"""View name -> module and class."""


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
    def tracks(self) -> dict[str, list[tuple[int, PartState]]]:
        """Per part, the frames in which its look changes and the new look."""
        found: dict[str, list[tuple[int, PartState]]] = {}
        for frame in self.frames:
            for name, look in frame.picture.looks.items():
                found.setdefault(name, []).append((frame.index, look))
        return found

    def looks(self, index: int) -> dict[str, PartState]:
        """How every part looks in one frame."""
        at = range(len(self))[index]
        return {
            name: track[bisect_right(track, at, key=lambda change: change[0]) - 1][1]
            for name, track in self.tracks.items()
            if track[0][0] <= at
        }

    def described(self, index: int) -> str:
        """One frame's picture as lines: parts in sight (id, styles, words), what travels, who has otherwise."""
        picture = self.frames[index].picture
        lines = [
            f"{name} [{look.styles}] {' / '.join(filter(None, look.texts))}".rstrip()
            for name, look in sorted(self.looks(index).items())
            if "gone" not in look.styles.split()
        ]
        lines += [f"token [{token.styles}] {token.label}" for token in picture.tokens]
        return "\n".join([*lines, f"disagree: {picture.differs}"] if picture.differs else lines)

    def text(self) -> str:
        """The steps as numbered lines: what a reader without pictures gets."""
        lines = [f"{frame.index:>3}  {frame.time_ms:>10.1f} ms  {frame.caption}" for frame in self.frames]
        return f"{self.title}, {len(self)} steps\n" + "\n".join(lines)


MACHINES = ("partition", "replica")
"""The views that draw a transition table, which differs between generations."""
DIFFERING = (*MACHINES, "cluster")
"""The views that have the option `generation`."""


def film(
    records: Sequence[Record],
    view: str = "cluster",
    *,
    start: int | None = None,
    limit: int = 400,
    is_relevant: Callable[[Record], bool] | None = None,
    **options: object,
) -> Film:
    """The film of these records in one view.

    `start` is the seq from which frames are made (earlier records only set the scene); `is_relevant` picks the
    records that make a frame, the view's own choice by default; `limit` bounds the number of frames.
    Raises UnknownName for a view that does not exist, BadInput for an empty trace.
    """
    kind = view_class(view)
    if view not in DIFFERING:
        options.pop("generation", None)
    check_film(kind, start, limit, is_relevant, options)
    records = list(records)
    if not records:
        raise BadInput("nothing to show: the trace has no records yet")
    first = 0
    if start is not None:
        first = next((place for place, record in enumerate(records) if record.seq >= start), len(records))
    found = steps(records, is_relevant or kind.is_relevant, limit, first)
    builder = FilmBuilder(view, kind(supergraph(records), records, found, **options), records, first)
    builder.add(records, found)
    interpolate_positions(builder.film.frames)
    return builder.film


class FilmBuilder:
    """A film that can grow: the model it has reached, and how every part was shown last."""

    def __init__(self, view: str, drawing: View, records: Sequence[Record], first: int) -> None:
        self.drawing, self.place, self.records = drawing, first, records
        self.model, self.shown = ClusterModel().apply_all(records[:first]), dict[str, PartState]()
        self.detail: Mapping[tuple[int, str], str] = {}
        self.film = Film(view, drawing.title, drawing.scene())
        opening = "The state before the first step." if first else "Before the first step."
        time = records[first - 1].time_ms if first else 0.0
        self.film.frames.append(Frame(0, "start", time, opening, self.changed(None)))

    def add(self, records: Sequence[Record], found: Iterable[Step]) -> None:
        """Go on with these steps; each frame keeps the looks that are new in it."""
        frames = self.film.frames
        self.records = records
        for step in found:
            self.move(step)
            cause = None if step.cause is None else step.cause + 1
            picture, text = self.changed(step), caption(step.records)
            frames.append(Frame(len(frames), step.kind, step.time_ms, text, picture, step.seqs, cause, lesson(step)))
        vars(self.film).pop("tracks", None)

    def move(self, step: Step) -> None:
        """Take the model to the end of this step."""
        self.model.apply_all(self.records[self.place : step.upto])
        self.place = step.upto

    def changed(self, step: Step | None) -> Picture:
        """The picture of a step, or of how things stand without one: the looks that are new in it."""
        picture = self.drawing.picture(self.model, step)
        shown = self.shown
        new = {
            name: look
            for name, look in picture.looks.items()
            if (before := shown.get(name)) is not look and before != look
        }
        self.shown.update(new)
        detail = {key: style for key, style in picture.detail.items() if self.detail.get(key) != style}
        detail.update(dict.fromkeys(self.detail.keys() - picture.detail.keys(), ""))
        self.detail = picture.detail
        return picture._replace(looks=new, detail=detail)


def interpolate_positions(made: Sequence[Frame]) -> None:
    """Keep what is out of sight where it was last seen, or before that where it will first be seen."""
    changes: dict[str, list[dict[str, PartState]]] = {}
    for frame in made:
        for name, look in frame.picture.looks.items():
            if look.at is not None or "gone" in look.styles:
                changes.setdefault(name, []).append(frame.picture.looks)
    for name, looks in changes.items():
        place = next((there[name].at for there in looks if there[name].at is not None), None)
        for there in looks:
            place = there[name].at or place
            there[name] = there[name]._replace(at=place)


def relevant_to(views: Sequence[str]) -> Callable[[Record], bool]:
    """Wanted by any of these views: what makes them keep step with one another."""
    classes = [view_class(view) for view in views]
    return lambda record: any(view.is_relevant(record) for view in classes)


def view_class(view: str) -> Any:
    """The class that draws a view; UnknownName when there is none."""
    if not isinstance(view, str) or view not in VIEWS:
        raise UnknownName("view", view, VIEWS)
    module, _, name = VIEWS[view].partition(":")
    return getattr(import_module(module), name)


def frames(records: Sequence[Record], view: str = "cluster", limit: int = 400) -> list[Frame]:
    """The frames of these records in one view: see `film`."""
    return film(records, view, limit=limit).frames
