"""Two runs beside each other, stepped together: a common step is one step, a step of one run is a step of its own.

The runs share their beginning; the first step in which they differ is flagged. After that, steps that say the same at
about the same time are still taken together, and the others in the order of their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from heapq import merge
from pathlib import Path
from typing import Any

from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.generation import Generation
from kafka_ctl.lab.recorded_run import RecordedRun
from kafka_ctl.trace.record import Recorder
from kafka_ctl.views import frames
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import printable
from kafka_ctl.views.explain.source import lines_of
from kafka_ctl.views.explain.why import Explainer, is_offered
from kafka_ctl.views.export import checked, write
from kafka_ctl.views.steps import Step, steps, supergraph
from kafka_ctl.views.widget.payload import all_answers, payload
from kafka_ctl.views.widget.player import Player

SIDES = ("left", "right")
TOGETHER = 1000.0
"""Milliseconds by which a step of one run may be later than the same step of the other and still be taken with it."""
PARTED = "First difference."
OPTIONS = ("index", "speed", "loop", "theme")
"""The options of a player that may be given."""

Pair = tuple[Step | None, Step | None]


class SideBySide(Player):
    """The player of two runs; made by `side_by_side`. `parted` is the step in which they differ first, or None."""

    def __init__(
        self, films: Sequence[frames.Film], parted: int | None, runs: Sequence[Explainer] = (), **options: Any
    ) -> None:
        self.parted = parted
        data = payload(films)
        for number, frame in enumerate(data["frames"]):
            pictures = [film.frames[number].picture for film in films]
            frame["differs"] = _by_run(films, [picture.differs for picture in pictures])
            summaries = [printable(picture.summary) for picture in pictures]
            frame["summary"] = summaries[0] if len(set(summaries)) == 1 else _by_run(films, summaries)
            seqs = [film.frames[number].seqs for film in films]
            offered = [n for n, run in enumerate(runs) if is_offered(run.trace, seqs[n], run.generation)]
            frame["why"] = offered or False
        data |= {"beside": list(SIDES), "parted": parted, "asks": bool(runs)}
        super().__init__(films, data, runs, **options)

    def export(self, path: str | Path, step: int | None = None) -> Path:
        """Write both runs as one file that plays by itself: `.html` with the player, `.svg`, `.gif` or `.png`.

        With `step`, `.svg` and `.png` are that step alone. Raises BadInput for another ending or step, Unavailable when
        a tool is missing.
        """
        path = checked(path, step)
        answers = all_answers(self.films, self.runs) if path.suffix == ".html" else {}
        return write(self.films, path, self.film | answers, step)


def side_by_side(
    left: object,
    right: object,
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
    kind = frames.view_class(view)
    _check(titles, start, limit, options)
    first = [frames.place_of(trace.records, at) for trace, at in zip(traces, start or (None, None), strict=True)]
    found = [steps(trace.records, kind.is_relevant, limit, at) for trace, at in zip(traces, first, strict=True)]
    drawn = supergraph(*(trace.records for trace in traces))
    names = titles or _titles(left, right)
    builders = []
    for side, trace, own, at, name in zip(SIDES, traces, found, first, names, strict=True):
        more = {"generation": trace.generation} if view in frames.DIFFERING else {}
        builder = frames.FilmBuilder(side, kind(drawn, trace.records, own, **more), trace.records, at)
        builder.film.title = name
        builders.append(builder)
    parted = _frames(builders, list(_aligned(found, traces)))
    whole = all(trace.records[0].seq == 0 for trace in traces)
    runs = [_run(*run) for run in zip((left, right), traces, names, strict=True)] if whole else ()
    return SideBySide([builder.film for builder in builders], parted, runs, **options)


def _by_run(films: Sequence[frames.Film], texts: Sequence[str]) -> str:
    """The words about each run, after its title."""
    return " ".join(f"{film.title}: {text}" for film, text in zip(films, texts, strict=True) if text)


def _check(titles: object, start: object, limit: object, options: dict[str, object]) -> None:
    """Raise BadInput or UnknownName if an argument is wrong."""
    for name, value, kind, what in (("titles", titles, str, "names"), ("start", start, int, "record numbers")):
        is_pair = isinstance(value, tuple) and len(value) == 2 and all(type(one) is kind for one in value)
        if value is not None and not is_pair:
            raise BadInput(f"{name} cannot be {short(value)}; it must be a pair of {what}")
    for at in start if isinstance(start, tuple) else (None,):
        frames.check_film(SideBySide, at, limit, None, {}, ())
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option", name, ["titles", "view", "start", "limit", *OPTIONS])
    frames.check_player(options)


def _run(given: object, trace: Recorder, title: str) -> Explainer:
    if isinstance(given, RecordedRun):
        return Explainer(trace, given.generation, lines_of(given), f"{title}: ")
    return Explainer(trace, Generation(trace.generation), None, f"{title}: ")


def _trace(run: object) -> Recorder:
    trace = run if isinstance(run, Recorder) else getattr(run, "trace", None)
    if not isinstance(trace, Recorder):
        raise BadInput(f"side_by_side needs two labs or traces; {short(run)} is neither")
    if not trace.records:
        raise BadInput("nothing to show: the trace has no records yet")
    return trace


def _titles(left: object, right: object) -> tuple[str, str]:
    """The generations, if they differ."""
    names = [str(getattr(one, "generation", "")) for one in (left, right)]
    return (f"Kafka {names[0]}", f"Kafka {names[1]}") if names[0] != names[1] else ("Left", "Right")


def _aligned(found: Sequence[Sequence[Step]], traces: Sequence[Recorder]) -> Iterator[Pair]:
    """The steps of both, those that say the same at about the same time in pairs."""
    says = [
        [(step.kind, caption(step.records, trace.records)) for step in side]
        for side, trace in zip(found, traces, strict=True)
    ]
    left, right = found
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
    runs: tuple[Iterator[Pair], Iterator[Pair]] = ((step, None) for step in left), ((None, step) for step in right)
    return merge(*runs, key=lambda pair: next(step for step in pair if step is not None).time_ms)


def _frames(builders: Sequence[frames.FilmBuilder], pairs: Sequence[Pair]) -> int | None:
    """Make the frames of both films, with the same captions; the number of the first in which they differ."""
    frame_of: tuple[list[int], list[int]] = [], []
    parted: int | None = None
    for number, pair in enumerate(pairs, 1):
        step = next(step for step in pair if step is not None)
        text, cause = caption(step.records, builders[pair.index(step)].records), None
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
            builder.film.frames.append(frames.Frame(number, step.kind, step.time_ms, text, picture, seqs, cause))
    for builder in builders:
        vars(builder.film).pop("tracks", None)
        frames.interpolate_positions(builder.film.frames)
    return parted


def _beside_looks(picture: frames.Picture) -> tuple[frozenset[frames.Token], str]:
    """The parts of a picture besides the looks: movers, in any order, and the differences.

    Where a pill stands to leave another one readable depends on the order of both, which is no difference.
    """
    return frozenset(token._replace(beside=None) for token in picture.tokens), picture.differs


def _picture(builder: frames.FilmBuilder, step: Step | None) -> frames.Picture:
    """The picture of one run after its step, or as it stands while the other one takes a step."""
    if step is not None:
        builder.move(step)
    return builder.changed(step)
