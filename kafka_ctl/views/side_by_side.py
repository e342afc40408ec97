"""Two runs beside each other, stepped together: what both do is one step, what one of them does is a step of its own.

The runs share their beginning; the first step in which they differ is flagged. After that, steps that say the same at
about the same time are still taken together, and the others in the order of their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.trace.record import Recorder
from kafka_ctl.views.captions import caption
from kafka_ctl.views.export import checked, write
from kafka_ctl.views.frames import MACHINES, Film, FilmBuilder, Frame, Picture, Token, interpolate_positions, view_class
from kafka_ctl.views.options import check_film, check_player
from kafka_ctl.views.payload import payload
from kafka_ctl.views.player import Player
from kafka_ctl.views.steps import Step, steps
from kafka_ctl.views.supergraph import Union, join

SIDES = ("left", "right")
TOGETHER = 1000.0
"""Milliseconds by which a step of one run may be later than the same step of the other and still be taken with it."""
PARTED = "Here they part."
OPTIONS = ("index", "speed", "loop", "theme")
"""Of a player, what can be given."""

Pair = tuple[Step | None, Step | None]


class SideBySide(Player):
    """The player of two runs; made by `side_by_side`. `parted` is the step in which they differ first, or None."""

    def __init__(self, films: Sequence[Film], parted: int | None, **options: Any) -> None:
        self.parted = parted
        data = payload(films)
        for number, frame in enumerate(data["frames"]):
            said = [(film.title, film.frames[number].picture.differs) for film in films]
            frame["differs"] = " ".join(f"{title}: {differs}" for title, differs in said if differs)
        super().__init__(films, data | {"beside": list(SIDES), "parted": parted}, **options)

    def export(self, path: str | Path) -> Path:
        """Write both runs as one file that plays by itself: `.html` with the player, `.svg`, `.gif` or `.png`.

        Raises BadInput for another ending, Unavailable when a tool is missing.
        """
        return write(self.films, checked(path), self.film)


def side_by_side(
    left: Any,
    right: Any,
    titles: tuple[str, str] | None = None,
    view: str = "cluster",
    start: tuple[int, int] | None = None,
    limit: int = 300,
    **options: Any,
) -> SideBySide:
    """Two runs beside each other, as a player that steps both: a lab and its fork, or one story in two generations.

    Each is a lab or a trace. `titles` name them; by default their generations do, where these differ. `start` has the
    first record's `seq` of each run that is shown, `limit` the most steps of each. Options are those of a player:
    `index`, `speed`, `loop`, `theme`. Raises BadInput for what is no run and for one without records, UnknownName for
    another view.
    """
    traces = [_trace(one) for one in (left, right)]
    kind = view_class(view)
    _check(titles, start, limit, options)
    first = [_place(trace, at) for trace, at in zip(traces, start or (None, None), strict=True)]
    found = [steps(trace.records, kind.wants, limit, at) for trace, at in zip(traces, first, strict=True)]
    union = join(*(Union().add(trace.records).model() for trace in traces))
    names = titles or _titles(left, right)
    builders = []
    for side, trace, own, at, name in zip(SIDES, traces, found, first, names, strict=True):
        more = {"generation": trace.generation} if view in MACHINES else {}
        builder = FilmBuilder(side, kind(union, trace.records, own, **more), trace.records, at)
        builder.film.title = name
        builders.append(builder)
    parted = _frames(builders, list(_aligned(*found)))
    return SideBySide([builder.film for builder in builders], parted, **options)


def _check(titles: Any, start: Any, limit: Any, options: dict[str, Any]) -> None:
    """BadInput and UnknownName for what cannot be given."""
    for name, value, kind, what in (("titles", titles, str, "names"), ("start", start, int, "record numbers")):
        if value is not None and (
            not isinstance(value, tuple) or len(value) != 2 or not all(type(one) is kind for one in value)
        ):
            raise BadInput(f"{name} cannot be {short(value)}; it is a pair of {what}")
    check_film(SideBySide, None, limit, None, {})
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option", name, ["titles", "view", "start", "limit", *OPTIONS])
    check_player(options)


def _trace(run: Any) -> Recorder:
    trace = run if isinstance(run, Recorder) else getattr(run, "trace", None)
    if not isinstance(trace, Recorder):
        raise BadInput(f"side_by_side needs two labs or traces; {short(run)} is none")
    if not trace.records:
        raise BadInput("nothing to show: the trace has no records yet")
    return trace


def _titles(left: Any, right: Any) -> tuple[str, str]:
    """The generations, where they differ."""
    names = [str(getattr(one, "generation", "")) for one in (left, right)]
    return (f"Kafka {names[0]}", f"Kafka {names[1]}") if names[0] != names[1] else ("Left", "Right")


def _place(trace: Recorder, seq: int | None) -> int:
    """The place of the first record that is shown."""
    records = trace.records
    return 0 if seq is None else next((n for n, record in enumerate(records) if record.seq >= seq), len(records))


def _aligned(left: Sequence[Step], right: Sequence[Step]) -> Iterator[Pair]:
    """The steps of both, those that say the same at about the same time in pairs."""
    says = [[(step.kind, caption(step.records)) for step in side] for side in (left, right)]
    i = j = 0
    for a, b, size in SequenceMatcher(None, says[0], says[1], autojunk=False).get_matching_blocks():
        for n in range(size):
            if abs(left[a + n].time_ms - right[b + n].time_ms) > TOGETHER:
                continue
            yield from _merged(left[i : a + n], right[j : b + n])
            yield left[a + n], right[b + n]
            i, j = a + n + 1, b + n + 1
    yield from _merged(left[i:], right[j:])


def _merged(left: Sequence[Step], right: Sequence[Step]) -> Iterator[Pair]:
    """Steps that only one of the runs takes, in the order of their times."""
    i = j = 0
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i].time_ms <= right[j].time_ms):
            yield left[i], None
            i += 1
        else:
            yield None, right[j]
            j += 1


def _frames(builders: Sequence[FilmBuilder], pairs: Sequence[Pair]) -> int | None:
    """Make the frames of both films, with the same captions; the number of the first in which they differ."""
    frame_of: tuple[list[int], list[int]] = [], []
    parted: int | None = None
    for number, pair in enumerate(pairs, 1):
        step = next(step for step in pair if step is not None)
        text, cause = caption(step.records), None
        for side, own in enumerate(pair):
            if own is not None:
                cause = cause if own.cause is None or cause is not None else frame_of[side][own.cause]
                frame_of[side].append(number)
        pictures = [_picture(builder, own) for builder, own in zip(builders, pair, strict=True)]
        if None in pair:
            text = f"{builders[pair.index(step)].film.title}: {text}"
        differ = builders[0].shown != builders[1].shown or _beside_looks(pictures[0]) != _beside_looks(pictures[1])
        if parted is None and (None in pair or differ):
            parted, text = number, f"{PARTED} {text}"
        for builder, own, picture in zip(builders, pair, pictures, strict=True):
            seqs = own.seqs if own is not None else ()
            builder.film.frames.append(Frame(number, step.kind, step.time_ms, text, picture, seqs, cause))
    for builder in builders:
        vars(builder.film).pop("tracks", None)
        interpolate_positions(builder.film.frames)
    return parted


def _beside_looks(picture: Picture) -> tuple[frozenset[Token], str]:
    """What of a picture is no look of a part: what travels, in whatever order, and who has otherwise."""
    return frozenset(picture.tokens), picture.differs


def _picture(builder: FilmBuilder, step: Step | None) -> Picture:
    """The picture of one run after its step, or as it stands while the other one takes a step."""
    if step is not None:
        builder.move(step)
    return builder.changed(step)
