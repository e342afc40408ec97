"""The frame model: one scene, one look per part and frame, three renderings made from it.

A film is a scene laid out once for everything that ever appears, and per step a picture: how each part looks
(styles of the palette), what is written on it, where the movers are, what travels. Nothing in a film knows
whether it will be a widget, a script-free SVG or a page.
"""

from __future__ import annotations

import inspect
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.views.captions import caption
from kafka_ctl.views.scene import Point, Scene, point_at
from kafka_ctl.views.steps import Step, lesson, newsworthy, steps, supergraph

THEMES = ("auto", "light", "dark")
GIVEN = 3
"""The arguments of every view: the union of all models, the records, the steps."""


def views_of(view: object) -> tuple[str, ...]:
    """The names of one view or of several. Raises BadInput if there is none."""
    views = (view,) if isinstance(view, str) else tuple(view) if isinstance(view, Iterable) else ()
    if not views and isinstance(view, Iterable):
        raise BadInput("a film needs a view; give a name such as 'cluster', or a list of names")
    if not views or not all(isinstance(name, str) for name in views):
        raise BadInput(f"a view cannot be {short(view)}; it must be a name such as 'cluster', or a list of names")
    return views


def check_film(
    kind: type, start: object, limit: object, is_relevant: object, options: Mapping[str, object], more: Sequence[str]
) -> None:
    """Check the options of `film`: `options` are those of the view, and `more` are names that the caller takes."""
    _integer("limit", limit, 1, "a number of frames")
    if start is not None:
        _integer("start", start, 0, "the number of a record")
    if is_relevant is not None and not callable(is_relevant):
        raise BadInput(f"is_relevant cannot be {short(is_relevant)}; it must be a function of a record")
    own = list(inspect.signature(kind).parameters)[GIVEN:]
    for name, value in options.items():
        if name not in own:
            free = [one for one in own if one != "generation" or one not in options]  # a lab gives its own generation
            raise UnknownName("option", name, [*more, "start", "limit", "is_relevant", *free])
        if name != "generation":
            _integer(name, value, 0, "a number of partitions")


def check_player(options: Mapping[str, object]) -> None:
    """Check the options of a player, without those of its films."""
    for name, value in options.items():
        match name:
            case "index":
                if not isinstance(value, int) or isinstance(value, bool):
                    raise BadInput(f"index cannot be {short(value)}; it must be the number of a step, -1 for the last")
            case "speed":
                fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1000
                if not fine:
                    raise BadInput(f"speed cannot be {short(value)}; it must be a number above 0, 1000 at most")
            case "theme":
                check_theme(value)
            case _ if not isinstance(value, bool):
                raise BadInput(f"{name} cannot be {short(value)}; it must be True or False")


def check_theme(theme: object) -> None:
    if not isinstance(theme, str) or theme not in THEMES:
        raise UnknownName("theme", theme, THEMES)


def check_own(call: str, options: Mapping[str, object]) -> None:
    """The options that a lab passes to a film by itself; its calls refuse them."""
    for name in ("generation", "lines"):
        if name in options:
            raise BadInput(f"{call}: {name} is that of the lab; it cannot be given")


def _integer(name: str, value: object, least: int, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 10**12:
        raise BadInput(f"{name} cannot be {short(value)}; it must be {what}, {least} or more")


class PartState(NamedTuple):
    """The look of a part in one frame: styles, words (empty: as drawn), sign, and the place of a mover."""

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
    """The place beside its line."""
    width: float = 0.0
    """Pixels of its pill, where these are bounded."""
    ends: tuple[str, str] = ("", "")
    """The parts between which it is on its way, where a browser moves them."""

    @property
    def place(self) -> Point:
        """The place in a still picture."""
        return self.beside or point_at(self.line, self.rest)

    @property
    def wide(self) -> float:
        """Pixels of its pill."""
        return self.width or pill_width(self.label)


def pill_width(label: str) -> float:
    """Pixels of the pill that bears a token's label."""
    return 16 + sum(8.4 if letter.isupper() else 6.8 for letter in label)


class Picture(NamedTuple):
    """One frame's looks by part id (in a film: the new ones), the messages that travel, and the cluster in words.

    `differs` says who has something else than ZooKeeper; `gauges` are those of `views/gauges.py`; `detail` is what a
    counted picture does not draw: (broker, partition) -> how the replica stands (in a film: the new).
    """

    looks: dict[str, PartState]
    tokens: tuple[Token, ...] = ()
    summary: str = ""
    differs: str = ""
    gauges: Sequence[tuple[str, str, str]] = ()
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
    """The lesson of a frame: see `LESSONS` in `views/steps.py`."""

    @property
    def alt(self) -> str:
        """The frame in words, for readers who cannot see it."""
        return " ".join(filter(None, (self.caption, self.picture.differs, self.picture.summary)))


class View:
    """One way to draw a cluster, made from the union model of all records, the records and the steps.

    A picture may leave out looks that are as in the last picture of the same model.
    """

    title: str

    @classmethod
    def is_relevant(cls, record: Record) -> bool:
        """True if a record makes a step of this view."""
        return newsworthy(record)

    @cached_property
    def scene(self) -> Scene:
        """All that is ever drawn."""
        raise NotImplementedError

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        """The looks after a step, or before the first one."""
        raise NotImplementedError


VIEWS = {
    "cluster": "kafka_ctl.views.cluster.picture:ClusterView",
    "partition": "kafka_ctl.views.machines:PartitionView",
    "replica": "kafka_ctl.views.machines:ReplicaView",
    "spacetime": "kafka_ctl.views.time.spacetime:SpaceTimeView",
    "zookeeper": "kafka_ctl.views.zookeeper:ZooKeeperView",
    "queue": "kafka_ctl.views.time.event_queue:EventQueueView",
    "timeline": "kafka_ctl.views.time.timeline:TimelineView",
}
"""View name -> module and class."""


@dataclass
class Film:
    """The data from which all three renderings are made."""

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
        """The look of every part in one frame."""
        at = range(len(self))[index]
        return {
            name: track[bisect_right(track, at, key=lambda change: change[0]) - 1][1]
            for name, track in self.tracks.items()
            if track[0][0] <= at
        }

    def described(self, index: int) -> str:
        """One frame's picture as lines: parts in sight (id, styles, words), messages that travel, differences."""
        picture = self.frames[index].picture
        lines = [
            f"{name} [{look.styles}] {' / '.join(filter(None, look.texts))}".rstrip()
            for name, look in sorted(self.looks(index).items())
            if "gone" not in look.styles.split()
        ]
        lines += [f"token [{token.styles}] {token.label}" for token in picture.tokens]
        return "\n".join([*lines, f"disagree: {picture.differs}"] if picture.differs else lines)

    def text(self) -> str:
        """The steps as numbered lines, for a reader without pictures."""
        lines = [f"{frame.index:>3}  {frame.time_ms:>10.1f} ms  {frame.caption}" for frame in self.frames]
        return f"{self.title}, {len(self)} steps\n" + "\n".join(lines)


MACHINES = ("partition", "replica")
"""The views that draw a transition table, which differs between generations."""
DIFFERING = (*MACHINES, "cluster")
"""The views that have the option `generation`."""


def film(
    records: Sequence[Record],
    view: str = "cluster",
    more: Sequence[str] = (),
    /,
    *,
    start: int | None = None,
    limit: int = 400,
    is_relevant: Callable[[Record], bool] | None = None,
    **options: object,
) -> Film:
    """The film of these records in one view.

    `start` is the seq from which frames are made (earlier records only set the scene); `is_relevant` picks the
    records that make a frame, the view's own choice by default; `limit` bounds the number of frames. `more` are
    the options that the caller has besides these.
    Raises UnknownName for a view that does not exist, BadInput for an empty trace.
    """
    kind = view_class(view)
    if view not in DIFFERING:
        options.pop("generation", None)
    check_film(kind, start, limit, is_relevant, options, more)
    records = list(records)
    if not records:
        raise BadInput("nothing to show: the trace has no records yet")
    first = place_of(records, start)
    found = steps(records, is_relevant or kind.is_relevant, limit, first)
    builder = FilmBuilder(view, kind(supergraph(records), records, found, **options), records, first, gauged=True)
    builder.add(records, found)
    interpolate_positions(builder.film.frames)
    return builder.film


def place_of(records: Sequence[Record], start: int | None) -> int:
    """The place of the first record from this seq on. Raises BadInput for one that is not even the next."""
    if start is not None and start > records[-1].seq + 1:
        raise BadInput(f"start cannot be {short(start)}; the last record is {records[-1].seq}")
    return 0 if start is None else next((n for n, r in enumerate(records) if r.seq >= start), len(records))


class FilmBuilder:
    """A film that can grow: the model it has reached, and how every part was shown last."""

    def __init__(self, view: str, drawing: View, records: Sequence[Record], first: int, gauged: bool = False) -> None:
        self.gauges = import_module("kafka_ctl.views.gauges").Gauges(records) if gauged else None
        self.drawing, self.place, self.records = drawing, first, records
        of_logs = bool(records) and not any(record.kind == "zk" for record in records)
        self.model, self.shown = ClusterModel(of_logs=of_logs).apply_all(records[:first]), dict[str, PartState]()
        self.detail: Mapping[tuple[int, str], str] = {}
        self.film = Film(view, drawing.title, drawing.scene)
        opening = "The state before the first step." if first else "Before the first step."
        time = records[first - 1].time_ms if first else 0.0
        self.film.frames.append(Frame(0, "start", time, opening, self.changed(None)))

    def add(self, records: Sequence[Record], found: Sequence[Step], captions: Sequence[str] = ()) -> None:
        """Go on with these steps; each frame keeps the looks that are new in it. `captions` are written if missing."""
        frames = self.film.frames
        self.records = records
        texts = captions or [caption(step.records, records) for step in found]
        for step, text in zip(found, texts, strict=True):
            self.move(step)
            cause = None if step.cause is None else step.cause + 1
            picture = self.changed(step)
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
        now = step.time_ms if step else self.model.time_ms
        gauges = self.gauges.at(self.model, now) if self.gauges else ()
        return picture._replace(looks=new, detail=detail, gauges=gauges)


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
    """A test for the records that any of these views draws, so that the views keep step with one another."""
    classes = [view_class(view) for view in views]
    return lambda record: any(view.is_relevant(record) for view in classes)


def view_class(view: str) -> Any:
    """The class that draws a view. Raises UnknownName if there is none."""
    if not isinstance(view, str) or view not in VIEWS:
        raise UnknownName("view", view, VIEWS)
    module, _, name = VIEWS[view].partition(":")
    return getattr(import_module(module), name)


Where = str | int | Callable[[Record], bool]
"""A step: words of its caption, the `seq` of one of its records, or a question that one of its records answers."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def find_marks(film: Film, records: Sequence[Record], marks: Mapping[str, Where]) -> dict[str, int]:
    """Name -> number of the first step that it fits; BadInput if a name or place is unknown, or no step fits."""
    if not isinstance(marks, Mapping):
        raise BadInput(f"marks cannot be {short(marks)}; it must be a dict such as {{'race-lost': 'already elected'}}")
    by_seq = {record.seq: record for record in records}
    found = {}
    for name, where in marks.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(f"a mark's name cannot be {short(name)}; it has only a to z, 0 to 9, -: 'race-lost'")
        fits, wanted = _question(where, by_seq)
        frame = next(filter(fits, film.frames), None)
        if frame is None:
            raise BadInput(f"the mark {name!r} fits no step: {wanted} is in none of the {len(film)} steps")
        found[name] = frame.index
    return found


def _question(where: Where, by_seq: Mapping[int, Record]) -> tuple[Callable[[Frame], bool], str]:
    """The test of a frame for a place, and the place in words."""
    if isinstance(where, str) and where:
        return lambda frame: where in frame.caption, short(where)
    if isinstance(where, int) and not isinstance(where, bool):
        return lambda frame: where in frame.seqs, f"record {short(where)}"
    if callable(where):
        return lambda frame: any(where(by_seq[seq]) for seq in frame.seqs), f"what {short(where)} asks for"
    raise BadInput(f"a mark cannot stand at {short(where)}; give words of a caption, a record's seq, or a function")
