"""Pictures without any script: one frame, a filmstrip, or a film that plays. The colours are in every element.

Such a picture needs no style sheet and no script, so it shows wherever SVG shows: an untrusted notebook, a
page made by nbconvert, a code-hosting site, a slide.

A film draws every look of a part once and shows it by CSS keyframes when its time comes. It also plays inside `<img>`,
where scripts never run.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, Frame, PartState, Token
from kafka_ctl.views.legend import PREFIX, add_legend, is_shown
from kafka_ctl.views.palette import THEMES, inline
from kafka_ctl.views.scene import Part, Point, glyph_svg, point_at, shape_svg, shorten, svg_head, text_svg
from kafka_ctl.views.steps import LESSONS

LIGHT = THEMES["light"]
CAPTION, DIFFERS = 46, 30
HEAD = 34.0
"""Pixels of the caption below a picture, of its line about differences, and of the title above a filmstrip."""
SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
"""The first match is the size of a whole picture."""


def explained(film: Film) -> Film:
    """The film with a legend of only the marks that its frames have."""
    scene = film.scene
    parts = {name: part for name, part in scene.parts.items() if not name.startswith(PREFIX)}
    still = [part for name, part in parts.items() if name not in film.tracks]
    drawn = [PartState(part.styles, tuple(text.text for text in part.texts)) for part in still]
    drawn += [look for track in film.tracks.values() for _, look in track]
    looks = {frozenset(look.styles.split()) for look in drawn if "gone" not in look.styles.split()}
    looks |= {frozenset(token.styles.split()) for frame in film.frames for token in frame.picture.tokens}
    words = {text for look in drawn for text in look.texts}
    pinned = any(part.pinned for name, part in scene.parts.items() if name.startswith(PREFIX))
    smaller = replace(scene, parts=parts, height=scene.height - scene.legend, legend=0.0)
    add_legend(smaller, [entry for entry in scene.entries if is_shown(entry, looks, words)], pinned)
    return replace(film, scene=smaller)


def static_svg(film: Film, index: int = -1, theme: str = "light", caption: bool = True, legend: bool = True) -> str:
    """One frame of a film as SVG; the last one by default."""
    frame = film.frames[index]
    height = film.scene.height - (0 if legend else film.scene.legend) + (caption_height(film) if caption else 0)
    return (
        svg_head(film.scene.width, height, frame.alt)
        + f"<title>{escape(printable(frame.caption))}</title>"
        + panel(film, frame, theme, caption, legend)
        + "</svg>\n"
    )


def panel(film: Film, frame: Frame, theme: str = "light", caption: bool = True, legend: bool = True) -> str:
    """The inside of a picture: ground, parts, messages that travel, legend, caption."""
    scene, colours = film.scene, THEMES[theme]
    high, looks = scene.height - (0 if legend else scene.legend), film.looks(frame.index)
    height = high + (caption_height(film) if caption else 0)
    camera = looks["camera"].at if "camera" in looks else None
    shown = [part for part in scene.parts.values() if legend or not part.id.startswith(PREFIX)]
    pinned = "".join(part_svg(part, looks.get(part.id), theme) for part in shown if part.pinned)
    seen = [part for part in shown if not part.pinned and _in_sight(part, high, camera)]
    moving = "".join(part_svg(part, looks.get(part.id), theme) for part in seen)
    tokens = "".join(token_svg(token, theme) for token in frame.picture.tokens)
    x, y = scene.offset
    dx, dy = camera or (0.0, 0.0)
    inside = [
        f'<rect width="{scene.width:g}" height="{height:g}" fill="{colours["page"]}"/>',
        f'<svg width="{scene.width:g}" height="{high:g}">',
        f'<g transform="translate({x + dx:g} {y + dy:g})">{moving}{tokens}</g>',
        f'<g transform="translate({x:g} {y:g})">{pinned}</g></svg>',
    ]
    if caption:
        inside.append(caption_svg(film, frame, high, theme))
    return "".join(inside)


def _in_sight(part: Part, height: float, camera: Point | None) -> bool:
    """True if a part is in the window; without a camera every part is."""
    if camera is None:
        return True
    top = part.box.y + camera[1]
    return top < height + 40 and top + part.box.height > -40


def caption_height(film: Film) -> int:
    """Pixels below a picture: two more lines if a frame has differences from ZooKeeper."""
    return CAPTION + DIFFERS * any(frame.picture.differs for frame in film.frames)


def caption_svg(film: Film, frame: Frame, top: float, theme: str = "light") -> str:
    """Below the picture: the step's number and its sentence, and the differences from ZooKeeper."""
    colours, width = THEMES[theme], film.scene.width
    number = f"{frame.index}/{len(film) - 1}"
    return (
        f'<path d="M0 {top:g}H{width:g}" stroke="{colours["faint"]}"/>'
        f'<text x="10" y="{top + 18:g}" font-size="12" fill="{colours["dim"]}">{number}</text>'
        + _lines(frame.caption, top + 18, width / 7.4, 12.5, colours["ink"])
        + _lines(frame.picture.differs, top + 51, width / 6.6, 12, colours["bad"])
    )


def _lines(text: str, top: float, letters: float, size: float, colour: str) -> str:
    """A text in at most two lines; `letters` are as many as the picture is wide."""
    lines = textwrap.wrap(text, max(int(letters) - 8, 20), max_lines=2, placeholder=" …")
    return "".join(
        f'<text x="66" y="{top + 1.28 * size * i:g}" font-size="{size:g}" fill="{colour}">'
        f"{escape(printable(line))}</text>"
        for i, line in enumerate(lines)
    )


def part_svg(part: Part, look: PartState | None, theme: str = "light") -> str:
    """One part with its colours inline; a part that is gone is left out."""
    styles = look.styles if look else part.styles
    if "gone" in styles.split():
        return ""
    pieces = [shape_svg(shape, inline(styles, shape.slot, theme)) for shape in part.shapes]
    sign = look.glyph if look and look.glyph else part.sign
    if part.glyph and sign != "none":
        pieces.append(glyph_svg(part.glyph, sign, inline(styles, "glyph", theme)))
    words, dress = (look and look.texts) or [text.text for text in part.texts], inline(styles, "label", theme)
    pieces += [text_svg(text, word, dress) for text, word in zip(part.texts, words, strict=False) if word]
    moved = f' transform="translate({look.at[0]:g} {look.at[1]:g})"' if look and look.at and part.id != "camera" else ""
    title = f"<title>{escape(printable(part.title))}</title>" if part.title else ""
    return f"<g{moved}{inline(styles, 'all', theme)}>{title}{''.join(pieces)}</g>" if pieces else ""


def token_svg(token: Token, theme: str = "light") -> str:
    """Something under way: its line and, at its place of rest, a label in a pill."""
    x, y = token.place
    width, label = token.wide, shorten(token.label, int((token.wide - 10) / 6))
    return (
        f'<path d="{token.line}"{inline(token.styles, "wire", theme)}/>'
        f'<rect x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18" rx="9"'
        f'{inline(token.styles, "body", theme)}/><text x="{x:.1f}" y="{y + 3.9:.1f}" text-anchor="middle" '
        f'font-size="12"{inline(token.styles, "label", theme)}>{escape(printable(label))}</text>'
    )


def key_frames(film: Film, most: int = 6) -> list[Frame]:
    """The frames of the lesson, in order: one of each kind after the first fault, then more of each, and the last.

    Where there are too few of them, frames from between fill the room.
    """
    inner = film.frames[1:]
    if len(inner) <= most:
        return inner or film.frames
    fault = next((f.index for f in inner if f.lesson in ("violation", "fault")), 0)
    by_lesson = {name: [f.index for f in inner[:-1] if f.lesson == name] for name in LESSONS}
    queues = [sorted(found, key=lambda index: (index < fault, index)) for found in by_lesson.values()]
    picked = {inner[-1].index}
    for turn in range(max(map(len, queues), default=0)):
        for queue in queues:
            if turn < len(queue) and len(picked) < most:
                picked.add(queue[turn])
    for i in range(1, most + 1):
        if len(picked) < most:
            picked.add(inner[(len(inner) - 1) * i // (most + 1)].index)
    return [film.frames[i] for i in sorted(picked)]


def filmstrip(film: Film, most: int | None = None) -> str:
    """Small multiples of the key frames, as one SVG: six, or four of large pictures; below them one legend for all."""
    shown = key_frames(film, most or (6 if len(film.scene.parts) < 150 else 4))
    columns = min(2, len(shown))
    scene, gap = film.scene, 14
    width, height = scene.width, scene.height - scene.legend + caption_height(film)
    rows = -(-len(shown) // columns)
    bottom = rows * (height + gap) + gap
    whole = (columns * (width + gap) + gap, bottom + scene.legend)
    alt = f"{film.title} in {len(shown)} pictures. " + " ".join(f"{f.index}: {f.alt}" for f in shown)
    out = [
        svg_head(*whole, alt),
        f"<title>{escape(film.title)}</title>",
        f'<rect width="{whole[0]:g}" height="{whole[1]:g}" fill="{LIGHT["panel"]}"/>',
    ]
    for place, frame in enumerate(shown):
        x, y = gap + place % columns * (width + gap), gap + place // columns * (height + gap)
        inside = panel(film, frame, legend=False)
        out.append(f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}">{inside}</svg>')
    x, y = gap + scene.offset[0], bottom - (scene.height - scene.legend) + scene.offset[1]
    legend = (part_svg(part, None) for part in scene.parts.values() if part.id.startswith(PREFIX))
    out.append(f'<g transform="translate({x:g} {y:g})">{"".join(legend)}</g>')
    return "".join(out) + "</svg>\n"


def filmstrips(films: Sequence[Film]) -> str:
    """The filmstrips of several films below one another, each under its title; of one film just its own."""
    return stacked(films, [*map(filmstrip, films)])


def stacked(films: Sequence[Film], pictures: Sequence[str]) -> str:
    """Pictures of several films below one another, each under the film's title; of one film just its own."""
    if len(pictures) == 1:
        return pictures[0]
    sizes = [tuple(map(float, SIZE.findall(picture)[0])) for picture in pictures]
    width, height = max(w for w, _ in sizes), sum(h + HEAD for _, h in sizes)
    alt = f"{', '.join(film.title for film in films)}: the same steps in {len(films)} pictures."
    out = [svg_head(width, height, alt), f'<rect width="{width:g}" height="{height:g}" fill="{LIGHT["panel"]}"/>']
    top = 0.0
    for film, picture, (_, high) in zip(films, pictures, sizes, strict=True):
        title = f'<text x="14" y="{top + 26:g}" font-size="14" font-weight="700" fill="{LIGHT["ink"]}">'
        out += [f"{title}{escape(film.title)}</text>", picture.replace("<svg ", f'<svg y="{top + HEAD:g}" ', 1)]
        top += high + HEAD
    return "".join(out) + "</svg>\n"


FADE = 0.35
"""Seconds a change takes."""


def animated(films: Film | Sequence[Film]) -> str:
    """One or more films as one SVG that plays again and again; several stand one below another and play together."""
    together = [films] if isinstance(films, Film) else list(films)
    return stacked(together, [_Movie(film, chr(ord("k") + n)).svg() for n, film in enumerate(together)])


class _Movie:
    """Collects the keyframes while the parts are drawn; equal spans of time share one rule.

    A frame takes 2.4 seconds, less in long films. `prefix` begins the names of keyframes.
    """

    def __init__(self, film: Film, prefix: str) -> None:
        self.film, self.prefix, self.count = film, prefix, len(film)
        self.total = max(1.2, min(2.4, 150 / self.count)) * self.count
        self.fade = FADE / self.total * 100
        self.rules: list[str] = []
        self.names: dict[str, str] = {}

    def svg(self) -> str:
        """The whole film."""
        film, scene, (x, y) = self.film, self.film.scene, self.film.scene.offset
        height = scene.height + caption_height(film) + 4
        loose = "".join(self.part(part) for part in scene.parts.values() if not part.pinned)
        pinned = "".join(self.part(part) for part in scene.parts.values() if part.pinned)
        tokens, camera = self.tokens(), film.tracks.get("camera")
        moved = f' class="{self.moved(camera)}"' if camera else ""
        body = (
            f'<rect width="{scene.width:g}" height="{height:g}" fill="{LIGHT["page"]}"/>'
            f'<g transform="translate({x:g} {y:g})"><g{moved}>{loose}{tokens}</g>{pinned}</g>'
            f"{self.captions()}{self.progress(height)}"
        )
        head = svg_head(scene.width, height, f"{film.title}, {len(film)} steps. {film.frames[-1].alt}")
        reduced_motion = "@media (prefers-reduced-motion:reduce){*{animation:none!important}}"
        return f"{head}<style>{''.join(self.rules)}{reduced_motion}</style>{body}</svg>\n"

    def at(self, frame: float) -> float:
        return frame / self.count * 100

    def rule(self, keyframes: str, resting: str) -> str:
        """The class of an animation; `resting` is its style at rest."""
        key = keyframes + resting
        if key not in self.names:
            name = self.names[key] = f"{self.prefix}{len(self.names)}"
            self.rules.append(
                f"@keyframes {name}{{{keyframes}}}.{name}{{{resting}animation:{name} {self.total:g}s linear infinite}}"
            )
        return self.names[key]

    def seen(self, spans: list[tuple[int, int]]) -> str:
        """The class of parts that are seen from frame to frame (the second not included)."""
        points: dict[float, str] = {}
        for first, after in spans:
            begin, end = self.at(first), self.at(after)
            if first > 0:
                points[begin], points[min(begin + self.fade, 100)] = "0", "1"
            if after < self.count:
                points[end], points[min(end + self.fade, 100)] = "1", "0"
        begins, last = any(first == 0 for first, _ in spans), any(after == self.count for _, after in spans)
        points.setdefault(0.0, str(int(begins)))
        points.setdefault(100.0, str(int(last)))
        frames = "".join(f"{place:.4g}%{{opacity:{value}}}" for place, value in sorted(points.items()))
        return self.rule(frames, f"opacity:{int(last)};")

    def only(self, frame: Frame) -> str:
        """The class of parts that are seen in one frame."""
        return self.seen([(frame.index, frame.index + 1)])

    def part(self, part: Part) -> str:
        """A part with one drawing for each of its looks; one that never changes is drawn plainly."""
        track = self.film.tracks.get(part.id, [])
        if len(track) < 2:
            return part_svg(part, track[0][1] if track else None)
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
            if (svg := part_svg(part, look))
        )
        return f'<g class="{self.moved(track)}">{drawn}</g>' if track[0][1].at else drawn

    def moved(self, track: list[tuple[int, PartState]]) -> str:
        """The class of parts that glide from place to place."""
        place = track[0][1].at or (0.0, 0.0)
        points = [(0.0, place)]
        for index, look in track[1:]:
            if (target := look.at or place) != place:
                begin = self.at(index)
                points += [(begin, place), (min(begin + self.fade * 1.6, 100), target)]
                place = target
        moves = [(p, f"transform:translate({x:g}px,{y:g}px)") for p, (x, y) in [*points, (100.0, place)]]
        return self.rule("".join(f"{p:.4g}%{{{move}}}" for p, move in moves), f"{moves[-1][1]};")

    def tokens(self) -> str:
        drawn = []
        for frame in self.film.frames:
            for token in frame.picture.tokens:
                way = [*(point_at(token.line, token.rest * i / 6) for i in range(6)), token.place]
                moved = "" if "parked" in token.styles else self._way(frame.index, way)
                wire, _, pill = token_svg(token).partition("/>")
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
            f'<g class="{self.only(frame)}">{caption_svg(self.film, frame, self.film.scene.height)}</g>'
            for frame in self.film.frames
        )

    def progress(self, height: float) -> str:
        name = self.rule("0%{transform:scaleX(0)}100%{transform:scaleX(1)}", "")
        place = f'y="{height - 4:g}" width="{self.film.scene.width:g}" height="4"'
        return f'<rect class="{name}" {place} fill="{LIGHT["leader"]}"/>'
