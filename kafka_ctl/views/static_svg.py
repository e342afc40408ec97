"""Pictures without any script: one frame, or a filmstrip of several, with the colours in every element.

Such a picture needs no style sheet and no script, so it shows wherever SVG shows: an untrusted notebook, a
page made by nbconvert, a code-hosting site, a slide.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from html import escape

from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, Frame, PartState, Token, pill_width
from kafka_ctl.views.legend import PREFIX
from kafka_ctl.views.palette import THEMES, inline
from kafka_ctl.views.scene import Part, Point, glyph_svg, shape_svg, svg_head, text_svg
from kafka_ctl.views.steps import LESSONS

CAPTION, DIFFERS = 46, 30
HEAD = 34.0
"""Pixels of the caption below a picture, of its line about differences, and of the title above a filmstrip."""
SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
"""The first match is the size of a whole picture."""


def static_svg(film: Film, index: int = -1, theme: str = "light", caption: bool = True) -> str:
    """One frame of a film as SVG; the last one by default."""
    frame = film.frames[index]
    height = film.scene.height + (caption_height(film) if caption else 0)
    head = svg_head(film.scene.width, height, f' role="img" aria-label="{escape(printable(frame.alt))}"')
    return head + f"<title>{escape(printable(frame.caption))}</title>" + panel(film, frame, theme, caption) + "</svg>\n"


def panel(film: Film, frame: Frame, theme: str = "light", caption: bool = True, legend: bool = True) -> str:
    """The inside of a picture: ground, parts, what travels, legend, caption."""
    scene, colours = film.scene, THEMES[theme]
    high, looks = scene.height - (0 if legend else scene.legend), film.looks(frame.index)
    height = high + (caption_height(film) if caption else 0)
    camera = looks["camera"].at if "camera" in looks else None
    shown = [part for part in scene.parts.values() if legend or not part.id.startswith(PREFIX)]
    parts: dict[bool, str] = {
        pinned: "".join(
            part_svg(part, looks.get(part.id), theme)
            for part in shown
            if part.pinned is pinned and (pinned or _in_sight(part, high, camera))
        )
        for pinned in (False, True)
    }
    tokens = "".join(token_svg(token, theme) for token in frame.picture.tokens)
    x, y = scene.offset
    dx, dy = camera or (0.0, 0.0)
    inside = [
        f'<rect width="{scene.width:g}" height="{height:g}" fill="{colours["page"]}"/>',
        f'<svg width="{scene.width:g}" height="{high:g}">',
        f'<g transform="translate({x + dx:g} {y + dy:g})">{parts[False]}{tokens}</g>',
        f'<g transform="translate({x:g} {y:g})">{parts[True]}</g></svg>',
    ]
    if caption:
        inside.append(caption_svg(film, frame, theme, high))
    return "".join(inside)


def _in_sight(part: Part, height: float, camera: Point | None) -> bool:
    """Whether a part is in the window; without a camera everything is."""
    if camera is None:
        return True
    top = part.box.y + camera[1]
    return top < height + 40 and top + part.box.height > -40


def caption_height(film: Film) -> int:
    """Pixels below a picture: two more lines where somebody ever has something else than ZooKeeper."""
    return CAPTION + DIFFERS * any(frame.picture.differs for frame in film.frames)


def caption_svg(film: Film, frame: Frame, theme: str, top: float) -> str:
    """Below the picture: the step's number and its sentence, and who has something else than ZooKeeper."""
    colours, width = THEMES[theme], film.scene.width
    number = f"{frame.index}/{len(film) - 1}"
    return (
        f'<path d="M0 {top:g}H{width:g}" stroke="{colours["faint"]}"/>'
        f'<text x="10" y="{top + 18:g}" font-size="11" fill="{colours["dim"]}">{number}</text>'
        + _lines(frame.caption, top + 18, width / 7.4, 12.5, colours["ink"])
        + _lines(frame.picture.differs, top + 51, width / 6.4, 11.5, colours["bad"])
    )


def _lines(text: str, top: float, letters: float, size: float, colour: str) -> str:
    """A text in at most two lines; `letters` are as many as the picture is wide."""
    lines = textwrap.wrap(text, max(int(letters) - 8, 20), max_lines=2, placeholder=" …")
    return "".join(
        f'<text x="66" y="{top + 1.28 * size * i:g}" font-size="{size:g}" fill="{colour}">'
        f"{escape(printable(line))}</text>"
        for i, line in enumerate(lines)
    )


def part_svg(part: Part, look: PartState | None, theme: str) -> str:
    """One part with its colours inline; a part that is gone is left out."""
    styles = look.styles if look else part.styles
    if "gone" in styles.split():
        return ""
    pieces = [shape_svg(shape, inline(styles, shape.slot, theme)) for shape in part.shapes]
    sign = look.glyph if look and look.glyph else part.sign
    if part.glyph and sign != "none":
        pieces.append(glyph_svg(part.glyph, sign, inline(styles, "glyph", theme)))
    pieces += texts_svg(part, look, inline(styles, "label", theme))
    moved = f' transform="translate({look.at[0]:g} {look.at[1]:g})"' if look and look.at and part.id != "camera" else ""
    title = f"<title>{escape(printable(part.title))}</title>" if part.title else ""
    return f"<g{moved}{inline(styles, 'all', theme)}>{title}{''.join(pieces)}</g>" if pieces else ""


def texts_svg(part: Part, look: PartState | None, attributes: str = "") -> list[str]:
    texts = look.texts if look and look.texts else tuple(t.text for t in part.texts)
    return [text_svg(text, content, attributes) for text, content in zip(part.texts, texts, strict=False) if content]


def token_svg(token: Token, theme: str) -> str:
    """Something under way: its line and, at its place of rest, a label in a pill."""
    x, y = token.place
    width = pill_width(token.label)
    return (
        f'<path d="{token.line}"{inline(token.styles, "wire", theme)}/>'
        f'<rect x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18" rx="9"'
        f'{inline(token.styles, "body", theme)}/><text x="{x:.1f}" y="{y + 3.9:.1f}" text-anchor="middle" '
        f'font-size="11.5"{inline(token.styles, "label", theme)}>{escape(printable(token.label))}</text>'
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


def filmstrip(film: Film, most: int | None = None, columns: int = 2, theme: str = "light") -> str:
    """Small multiples of the key frames, as one SVG: six, or four of large pictures; below them one legend for all."""
    most = most or (6 if len(film.scene.parts) < 150 else 4)
    shown = key_frames(film, most)
    columns = max(1, min(columns, len(shown)))
    scene, gap = film.scene, 14
    width, height = scene.width, scene.height - scene.legend + caption_height(film)
    rows = -(-len(shown) // columns)
    bottom = rows * (height + gap) + gap
    whole = (columns * (width + gap) + gap, bottom + scene.legend)
    alt = f"{film.title} in {len(shown)} pictures. " + " ".join(f"{f.index}: {f.alt}" for f in shown)
    out = [
        svg_head(*whole, f' role="img" aria-label="{escape(printable(alt))}"'),
        f"<title>{escape(film.title)}</title>",
        f'<rect width="{whole[0]:g}" height="{whole[1]:g}" fill="{THEMES[theme]["panel"]}"/>',
    ]
    for place, frame in enumerate(shown):
        x, y = gap + place % columns * (width + gap), gap + place // columns * (height + gap)
        inside = panel(film, frame, theme, legend=False)
        out.append(f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}">{inside}</svg>')
    x, y = gap + scene.offset[0], bottom - (scene.height - scene.legend) + scene.offset[1]
    legend = (part_svg(part, None, theme) for part in scene.parts.values() if part.id.startswith(PREFIX))
    out.append(f'<g transform="translate({x:g} {y:g})">{"".join(legend)}</g>')
    return "".join(out) + "</svg>\n"


def filmstrips(films: Sequence[Film], theme: str = "light") -> str:
    """The filmstrips of several films below one another, each under its title; of one film just its own."""
    return stacked(films, [filmstrip(film, theme=theme) for film in films], theme)


def stacked(films: Sequence[Film], pictures: Sequence[str], theme: str = "light") -> str:
    """Pictures of several films below one another, each under the film's title; of one film just its own."""
    if len(pictures) == 1:
        return pictures[0]
    sizes = [tuple(map(float, SIZE.findall(picture)[0])) for picture in pictures]
    width, height = max(w for w, _ in sizes), sum(h + HEAD for _, h in sizes)
    alt = f"{', '.join(film.title for film in films)}: the same steps in {len(films)} pictures."
    out = [svg_head(width, height, f' role="img" aria-label="{escape(printable(alt))}"')]
    out.append(f'<rect width="{width:g}" height="{height:g}" fill="{THEMES[theme]["panel"]}"/>')
    top = 0.0
    for film, picture, (_, high) in zip(films, pictures, sizes, strict=True):
        title = f'<text x="14" y="{top + 26:g}" font-size="18" font-weight="700" fill="{THEMES[theme]["ink"]}">'
        out += [f"{title}{escape(film.title)}</text>", picture.replace("<svg ", f'<svg y="{top + HEAD:g}" ', 1)]
        top += high + HEAD
    return "".join(out) + "</svg>\n"
