"""A picture that a lesson draws by itself: SVG with a text that says the same."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from kafka_ctl.views.dot import FAMILY
from kafka_ctl.views.palette import THEMES

COLOURS = THEMES["light"]


class Drawing:
    """A picture as SVG with a text: shown in a notebook, trusted or not."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg, self.text = svg, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        coded = base64.b64encode(self.svg.encode()).decode()
        alt = escape(self.text, quote=True)
        picture = f'<img alt="{alt}" style="max-width:none" src="data:image/svg+xml;base64,{coded}">'
        return {"text/html": picture, "image/svg+xml": self.svg, "text/plain": self.text}


def label(x: float, y: float, text: str, weight: str = "normal", fill: str = "") -> str:
    """A line of text; `y` is its base line."""
    colour = fill or COLOURS["ink"]
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'


def plate(x: int, y: int, width: int, height: int, differs: bool, edge: str = "line", radius: int = 4) -> str:
    """A box for a value; what differs from the others has a thick edge in the colour of errors."""
    stroke, thick = (COLOURS["bad"], 3) if differs else (COLOURS[edge], 1)
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="{COLOURS["plate"]}" '
        f'stroke="{stroke}" stroke-width="{thick}"/>'
    )


def svg(width: int, height: int, parts: Iterable[str]) -> str:
    """A picture of these parts on a page, `width` by `height` pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{FAMILY}" font-size="13"><rect width="100%" height="100%" fill="{COLOURS["page"]}"/>'
        + "".join(parts)
        + "</svg>"
    )
