"""A drawing without colours: where everything is, once for all frames.

`parse` reads what Graphviz laid out; what Graphviz does not place (a crown, a star, a lane) is added as parts
by hand. A part is one thing with one id; a frame only says how each part looks and what is written on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from itertools import accumulate, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

from kafka_ctl.views.dot import FAMILY, printable, read_id, to_svg
from kafka_ctl.views.palette import GLYPHS

_NUMBER = re.compile(r"-?\d+\.?\d*")
_SVG = "{http://www.w3.org/2000/svg}"

Point = tuple[float, float]


class Entry(NamedTuple):
    """A mark of the legend: its styles, its kind, its sign, its meaning.

    `kind` is `chip` or `pill` (boxes), `line`, `sign` or `words`.
    """

    styles: str
    kind: str
    glyph: str
    text: str


class Text(NamedTuple):
    """One line of text at a place; `anchor` is `start`, `middle` or `end`."""

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "middle"
    bold: bool = False
    room: float = 0.0
    """Pixels that it has, where a browser shortens it; 0 elsewhere."""


class Shape(NamedTuple):
    """One outline: its slot in the palette, its SVG tag and its geometry."""

    slot: str
    tag: str
    attributes: tuple[tuple[str, str], ...]


class Box(NamedTuple):
    """A place: the upper left corner and the size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Part:
    """One thing in the drawing; `styles` are what it looks like when no frame says otherwise."""

    id: str
    box: Box
    shapes: tuple[Shape, ...] = ()
    texts: tuple[Text, ...] = ()
    styles: str = "plate"
    glyph: tuple[float, float, float] | None = None
    """The place and the size of its sign."""
    sign: str = "none"
    """The sign drawn there when no frame says otherwise."""
    title: str = ""
    """The text of the tooltip."""
    of: str = ""
    """The thing that a click selects, `partition:orders-0`; the part itself when empty."""
    line: str = ""
    """The path of an edge, for what travels along it."""
    pinned: bool = False
    """True if the part stays when the camera moves."""


class Row(NamedTuple):
    """Parts side by side that stretch, shrink and wrap with the room there is.

    `apart` are the pixels between two lines, `frame` is around all, `columns` are those inside of a part, `least` and
    `most` bound its width.
    """

    blocks: tuple[str, ...]
    apart: float = 8.0
    frame: str = ""
    columns: int = 1
    least: float = 80.0
    most: float = 260.0


@dataclass
class Scene:
    """All parts in drawing order; `width` and `height` are what is seen, `offset` where 0,0 is in it.

    A drawing with `rows` is laid out in the browser for the room there is (`flow.js`).
    """

    width: float
    height: float
    offset: Point = (0.0, 0.0)
    legend: float = 0.0
    """Pixels of the height that the legend takes, at the bottom."""
    entries: tuple[Entry, ...] = ()
    """The entries of the legend, in the order of its parts."""
    parts: dict[str, Part] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def add(self, *parts: Part) -> None:
        self.parts.update((part.id, part) for part in parts)


def box(x: float, y: float, width: float, height: float, radius: float = 7, slot: str = "body") -> Shape:
    """A rounded rectangle."""
    values = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
    return Shape(slot, "rect", tuple((k, f"{v:g}") for k, v in values.items()))


def stroke(d: str, slot: str = "body") -> Shape:
    """A path."""
    return Shape(slot, "path", (("d", d),))


def shorten(text: str, longest: int) -> str:
    """The text with its middle left out when it is longer than `longest` characters."""
    text = printable(text).replace("\n", " ").replace("\r", " ")
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return text[: longest - 1 - tail] + "…" + text[len(text) - tail :]


BREAKS = re.compile("[ /_]"), re.compile("(?<=[a-z])(?=[A-Z])")
"""The places at which a text is broken: at a sign, else within `CamelCase`."""


def halves(text: str, room: int) -> list[str]:
    """A text in one or two lines of at most `room` small letters, broken as `BREAKS` says, or anywhere."""
    first = _prefix(text, room)
    if first == len(text):
        return [text]
    places = [[m.start() for m in sign.finditer(text[:first]) if m.start() > first // 2] for sign in BREAKS]
    at = next((found[-1] for found in places if found), first)
    rest = text[at:].lstrip()
    return [text[:at].rstrip(), shorten(rest, max(_prefix(rest, room), 2))]


def _prefix(text: str, room: int) -> int:
    """The number of small letters that fit into a width; capitals take a third more."""
    sizes = accumulate(4 / 3 if sign.isupper() or sign in "_@" else 1.0 for sign in text)
    return sum(size <= room for size in sizes)


def text_svg(text: Text, shown: str, look: str = "") -> str:
    """One `<text>` element; `shown` replaces the text of the drawing, `look` is a class or colours."""
    weight = ' font-weight="700"' if text.bold and "font-weight" not in look else ""
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    place = f'x="{text.x:g}" y="{text.y:g}" font-size="{text.size:g}"'
    return f"<text {place}{anchor}{weight}{look}>{escape(printable(shown))}</text>"


def shape_svg(shape: Shape, look: str = "") -> str:
    """One outline, with a class or colours."""
    geometry = "".join(f' {k}="{escape(v)}"' for k, v in shape.attributes)
    return f"<{shape.tag}{geometry}{look}/>"


def glyph_svg(place: tuple[float, float, float], name: str, look: str = "") -> str:
    """One sign of the palette, with a class or colours."""
    x, y, scale = place
    size = f" scale({scale:g})" if scale != 1 else ""
    return f'<path transform="translate({x:g} {y:g}){size}" d="{GLYPHS[name]}"{look}/>'


@lru_cache(maxsize=32)
def parse(dot: str) -> tuple[float, float, Point, tuple[Part, ...]]:
    """Width, height, offset and parts of a laid out DOT text; parts have the `id` that it gives them."""
    root = ElementTree.fromstring(to_svg(dot))
    width, height = (float(v) for v in root.get("viewBox", "0 0 0 0").split()[2:])
    graph = root.find(f"{_SVG}g")
    assert graph is not None
    moved = re.search(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", graph.get("transform", ""))
    offset = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)
    parts = [_part(g) for g in graph.findall(f"{_SVG}g")]
    order = {"cluster": 0, "edge": 1, "node": 2}
    parts.sort(key=lambda found: order.get(found[0], 3))
    return width, height, offset, tuple(part for _, part in parts)


def _part(group: ElementTree.Element) -> tuple[str, Part]:
    kind = group.get("class", "node").split()[0]
    line, shapes, texts = "", list[Shape](), list[Text]()
    corners: list[Point] = []
    for child in group.iter():
        tag = child.tag.removeprefix(_SVG)
        if tag == "text":
            x, y, size = (float(child.get(name, "")) for name in ("x", "y", "font-size"))
            bold = child.get("font-weight") == "bold"
            texts.append(Text(x, y, child.text or "", size, child.get("text-anchor", "middle"), bold))
        elif tag in ("path", "polygon", "polyline", "ellipse"):
            geometry = {k: v for k, v in child.attrib.items() if k in ("d", "points", "cx", "cy", "rx", "ry")}
            slot = "head" if kind == "edge" and tag != "path" else "body"
            line = line or geometry.get("d", "")
            mine = list(_corners(geometry))
            corners += mine
            rounded = kind == "node" and "C" in geometry.get("d", "")
            shapes.append(box(*_bounds(mine)) if rounded else Shape(slot, tag, tuple(geometry.items())))
    corners = corners or [(t.x, t.y) for t in texts] or [(0.0, 0.0)]
    styles = {"cluster": "frame", "edge": "wire"}.get(kind, "plate")
    name, line = read_id(group.get("id", "")), line if kind == "edge" else ""
    return kind, Part(name, _bounds(corners), tuple(shapes), tuple(texts), styles, line=line)


def _bounds(corners: list[Point]) -> Box:
    left, top = min(x for x, _ in corners), min(y for _, y in corners)
    right, bottom = max(x for x, _ in corners), max(y for _, y in corners)
    return Box(left, top, round(right - left, 2), round(bottom - top, 2))


def _corners(geometry: dict[str, str]) -> Iterable[Point]:
    if "cx" in geometry:
        x, y, rx, ry = (float(geometry[k]) for k in ("cx", "cy", "rx", "ry"))
        return [(x - rx, y - ry), (x + rx, y + ry)]
    numbers = [float(n) for n in _NUMBER.findall(geometry.get("d") or geometry.get("points", ""))]
    return zip(numbers[::2], numbers[1::2], strict=False)


def point_at(line: str, share: float) -> Point:
    """The point at `share` (0 to 1) of a path made of M, C, Q and L with absolute numbers, by parameter."""
    numbers = [float(n) for n in _NUMBER.findall(line)]
    points = list(zip(numbers[::2], numbers[1::2], strict=False))
    step = 3 if "C" in line else 2 if "Q" in line else 1
    pieces = (len(points) - 1) // step
    if pieces < 1:
        return points[0] if points else (0.0, 0.0)
    piece = min(int(share * pieces), pieces - 1)
    curve, t = points[piece * step : piece * step + step + 1], share * pieces - piece
    while len(curve) > 1:
        curve = [(a + (c - a) * t, b + (d - b) * t) for (a, b), (c, d) in pairwise(curve)]
    return curve[0]


def svg_head(width: float, height: float, alt: str) -> str:
    """The tag that opens a picture; `alt` is the picture in words."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="{FAMILY}" role="img" aria-label="{escape(printable(alt))}">'
    )
