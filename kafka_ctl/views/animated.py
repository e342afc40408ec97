"""An SVG that plays by itself: every look a part ever has is drawn once and shown when its time comes.

CSS keyframes only: no script, so it also plays inside `<img>`, where scripts never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, Frame, PartState
from kafka_ctl.views.palette import THEMES
from kafka_ctl.views.scene import Part, point_at, svg_head
from kafka_ctl.views.static_svg import caption_height, caption_svg, part_svg, stacked, token_svg

FADE = 0.35
"""Seconds a change takes."""


def animated(films: Film | Sequence[Film], seconds: float | None = None, theme: str = "light") -> str:
    """Films as one SVG that plays again and again, several of them below one another and in step.

    `seconds` a frame are by default 2.4, and less in long films.
    """
    together = [films] if isinstance(films, Film) else list(films)
    wait = seconds or max(1.2, min(2.4, 150 / len(together[0])))
    return stacked(together, [_playing(film, wait, theme, chr(ord("k") + n)) for n, film in enumerate(together)], theme)


def _playing(film: Film, seconds: float, theme: str, names: str) -> str:
    """One film as SVG; `names` begins the names of its keyframes."""
    movie = _Movie(film, seconds, theme, names)
    scene, (x, y) = film.scene, film.scene.offset
    height = scene.height + caption_height(film) + 4
    loose = "".join(movie.part(part) for part in scene.parts.values() if not part.pinned)
    pinned = "".join(movie.part(part) for part in scene.parts.values() if part.pinned)
    body = (
        f'<rect width="{scene.width:g}" height="{height:g}" fill="{THEMES[theme]["page"]}"/>'
        f'<g transform="translate({x:g} {y:g})">{movie.camera(loose + movie.tokens())}{pinned}</g>'
        f"{movie.captions()}{movie.progress(height)}"
    )
    alt = escape(printable(f"{film.title}, {len(film)} steps. {film.frames[-1].alt}"))
    reduced_motion = "@media (prefers-reduced-motion:reduce){*{animation:none!important}}"
    sheet = "".join(movie.rules) + reduced_motion
    head = svg_head(scene.width, height, f' role="img" aria-label="{alt}"')
    return f"{head}<style>{sheet}</style>{body}</svg>\n"


class _Movie:
    """Collects the keyframes while the parts are drawn; equal spans of time share one rule."""

    def __init__(self, film: Film, seconds: float, theme: str, prefix: str) -> None:
        self.film, self.theme, self.prefix = film, theme, prefix
        self.count = len(film)
        self.total = seconds * self.count
        self.fade = FADE / self.total * 100
        self.rules: list[str] = []
        self.names: dict[str, str] = {}

    def at(self, frame: float) -> float:
        return frame / self.count * 100

    def rule(self, keyframes: str, resting: str) -> str:
        """The class of an animation; `resting` is what holds without it."""
        key = keyframes + resting
        if key not in self.names:
            name = self.names[key] = f"{self.prefix}{len(self.names)}"
            self.rules.append(
                f"@keyframes {name}{{{keyframes}}}.{name}{{{resting}animation:{name} {self.total:g}s linear infinite}}"
            )
        return self.names[key]

    def seen(self, spans: list[tuple[int, int]]) -> str:
        """The class of what is seen from frame to frame (the second not included)."""
        points: dict[float, str] = {}
        for first, after in spans:
            begin, end = self.at(first), self.at(after)
            if first > 0:
                points[begin], points[min(begin + self.fade, 100)] = "0", "1"
            if after < self.count:
                points[end], points[min(end + self.fade, 100)] = "1", "0"
        points.setdefault(0.0, "1" if any(first == 0 for first, _ in spans) else "0")
        points.setdefault(100.0, "1" if any(after == self.count for _, after in spans) else "0")
        frames = "".join(f"{place:.4g}%{{opacity:{value}}}" for place, value in sorted(points.items()))
        last = any(after == self.count for _, after in spans)
        return self.rule(frames, f"opacity:{int(last)};")

    def only(self, frame: Frame) -> str:
        """The class of what is seen in one frame."""
        return self.seen([(frame.index, frame.index + 1)])

    def part(self, part: Part) -> str:
        """A part with one drawing for each of its looks; one that never changes is drawn plainly."""
        track = self.film.tracks.get(part.id, [])
        if len(track) < 2:
            return part_svg(part, track[0][1] if track else None, self.theme)
        spans: dict[PartState, list[tuple[int, int]]] = {}
        ends = [index for index, _ in track[1:]] + [self.count]
        for (index, look), end in zip(track, ends, strict=True):
            bare = look._replace(at=None)
            found = spans.setdefault(bare, [])
            if found and found[-1][1] == index:
                found[-1] = (found[-1][0], end)
            else:
                found.append((index, end))
        drawn = "".join(
            f'<g class="{self.seen(when)}">{svg}</g>' if when != [(0, self.count)] else svg
            for look, when in spans.items()
            if (svg := part_svg(part, look, self.theme))
        )
        return f'<g class="{self.moved(track)}">{drawn}</g>' if track[0][1].at else drawn

    def moved(self, track: list[tuple[int, PartState]], fade: float = 1.6) -> str:
        """The class of what glides from place to place."""
        points: list[tuple[float, str]] = []
        place = track[0][1].at or (0.0, 0.0)
        points.append((0, f"translate({place[0]:g}px,{place[1]:g}px)"))
        for index, look in track[1:]:
            target = look.at or place
            if target != place:
                begin = self.at(index)
                points.append((begin, f"translate({place[0]:g}px,{place[1]:g}px)"))
                points.append((min(begin + self.fade * fade, 100), f"translate({target[0]:g}px,{target[1]:g}px)"))
                place = target
        last = f"translate({place[0]:g}px,{place[1]:g}px)"
        points.append((100, last))
        frames = "".join(f"{p:.4g}%{{transform:{value}}}" for p, value in points)
        return self.rule(frames, f"transform:{last};")

    def camera(self, inside: str) -> str:
        track = self.film.tracks.get("camera")
        return f'<g class="{self.moved(track)}">{inside}</g>' if track else f"<g>{inside}</g>"

    def tokens(self) -> str:
        drawn = []
        for frame in self.film.frames:
            for token in frame.picture.tokens:
                way = [*(point_at(token.line, token.rest * i / 6) for i in range(6)), token.place]
                moved = "" if "parked" in token.styles else self._way(frame.index, way)
                wire, _, pill = token_svg(token, self.theme).partition("/>")
                drawn.append(f'<g class="{self.only(frame)}">{wire}/><g class="{moved}">{pill}</g></g>')
        return "".join(drawn)

    def _way(self, index: int, points: list[tuple[float, float]]) -> str:
        begin, length, rest = self.at(index), self.at(0.35), points[-1]
        steps = [(begin + length * i / 6, x - rest[0], y - rest[1]) for i, (x, y) in enumerate(points)]
        first = f"0%,{begin:.4g}%{{transform:translate({steps[0][1]:.1f}px,{steps[0][2]:.1f}px)}}"
        rows = "".join(f"{p:.4g}%{{transform:translate({x:.1f}px,{y:.1f}px)}}" for p, x, y in steps[1:])
        return self.rule(first + rows + "100%{transform:none}", "")

    def captions(self) -> str:
        return "".join(
            f'<g class="{self.only(frame)}">{caption_svg(self.film, frame, self.theme, self.film.scene.height)}</g>'
            for frame in self.film.frames
        )

    def progress(self, height: float) -> str:
        name = self.rule("0%{transform:scaleX(0)}100%{transform:scaleX(1)}", "")
        place = f'y="{height - 4:g}" width="{self.film.scene.width:g}" height="4"'
        return f'<rect class="{name}" {place} fill="{THEMES[self.theme]["leader"]}"/>'
