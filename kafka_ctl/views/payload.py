"""A film as plain data for the browser: the drawing once, then only what changes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, Look, Token
from kafka_ctl.views.palette import GLYPHS
from kafka_ctl.views.scene import Part, glyph_svg, point_at, shape_svg, svg_head, text_svg
from kafka_ctl.views.still import pill_width


def payload(films: Sequence[Film]) -> dict[str, Any]:
    """Films that keep step with one another, as JSON-able data for `player.js`."""
    frames = [
        {
            "kind": f.kind,
            "time": f.time_ms,
            "caption": printable(f.caption),
            "words": printable(f.picture.words),
            "cause": f.cause,
            "seqs": list(f.seqs[:50]),
        }
        for f in films[0].frames
    ]
    return {"frames": frames, "glyphs": GLYPHS, "views": [_view(film) for film in films]}


def _view(film: Film) -> dict[str, Any]:
    tracks = {printable(name): _track(track) for name, track in film.tracks.items()}
    tokens = [[_token(token) for token in frame.picture.tokens] for frame in film.frames]
    return {"view": film.view, "title": film.title, "svg": drawing(film), "tracks": tracks, "tokens": tokens}


def _track(track: Sequence[tuple[int, Look]]) -> list[list[Any]]:
    """Frame, styles, words, sign and place of each change; 0 stands for what stays as it was."""
    rows: list[list[Any]] = []
    before = Look("")
    for index, look in track:
        words = 0 if look.texts == before.texts else list(look.texts)
        sign = 0 if look.glyph == before.glyph else look.glyph
        moved = look.at is not None and look.at != before.at
        place = [round(v, 1) for v in look.at] if look.at is not None and moved else 0
        row = [index, look.styles, words, sign, place]
        while row[-1] == 0 and len(row) > 2:
            row.pop()
        rows.append(row)
        before = look
    return rows


def _token(token: Token) -> list[Any]:
    x, y = point_at(token.line, token.rest)
    return [
        token.line,
        printable(token.label),
        token.styles,
        round(x, 1),
        round(y, 1),
        round(pill_width(token.label), 1),
    ]


def drawing(film: Film) -> str:
    """The scene with classes instead of colours; every part carries its id."""
    scene, (x, y) = film.scene, film.scene.offset
    loose = "".join(part_svg(part) for part in scene.parts.values() if not part.pinned)
    pinned = "".join(part_svg(part) for part in scene.parts.values() if part.pinned)
    inside = f'<g class="part" data-id="camera">{loose}<g class="travel"></g></g>{pinned}'
    head = svg_head(scene.width, scene.height, f' role="img" aria-label="{escape(film.title)}"')
    return f'{head}<g transform="translate({x:g} {y:g})">{inside}</g></svg>'


def part_svg(part: Part) -> str:
    """One part: its outline, its sign and its words, to be dressed by class."""
    pieces = [shape_svg(shape, f' class="{shape.slot}"') for shape in part.shapes]
    if part.glyph:
        pieces.append(glyph_svg(part.glyph, part.sign, ' class="glyph"'))
    pieces += [text_svg(text, text.text, ' class="label"') for text in part.texts]
    classes = " ".join(f"s-{style}" for style in part.styles.split())
    of = f' data-of="{escape(printable(part.of))}"' if part.of else ""
    title = f"<title>{escape(printable(part.title))}</title>" if part.title else ""
    return f'<g class="part {classes}" data-id="{escape(printable(part.id))}"{of}>{title}{"".join(pieces)}</g>'
