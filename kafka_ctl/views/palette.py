"""Colours and styles: the table `palette.css`, and the signs.

The same table is the style sheet of the player and becomes the attributes of a picture that has no style sheet, so that
the three renderings cannot drift apart.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

SHEET = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
"""The table: both themes as variables of `.kc`, a picture, and a rule for each style and slot."""
RULES = [
    (rule[1].strip(), dict(line.strip().split(": ") for line in rule[2].replace("\n", "").split(";") if line.strip()))
    for rule in re.finditer(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", SHEET, flags=re.S))
]
"""The rules of the table in order: selector, and its declarations."""
_COLOUR = re.compile(r"(?:var\()?--kc-([a-z-]+)\)?")


def _slots() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {}
    for selector, declarations in RULES[2:]:
        style, _, slot = selector.removeprefix(".kc .s-").partition(">.")
        values = {name: _COLOUR.sub(_named, value) for name, value in declarations.items()}
        found.setdefault(style, {})[slot or "all"] = values
    return found


def _named(colour: re.Match[str]) -> str:
    return f"${colour[1].replace('-', '_')}"


THEMES = {
    name: {_COLOUR.sub(_named, colour)[1:]: value for colour, value in declarations.items()}
    for name, (_, declarations) in zip(("light", "dark"), RULES, strict=False)
}
"""Colour names and their values: light and dark have the same names."""
STYLES = _slots()
"""Style -> slot -> SVG attributes; `$name` is a colour of the theme. A later style of this table wins."""

GLYPHS = {
    "star": "M0-6L1.8-2 6-1.8 2.8 1 3.8 5.2 0 2.9-3.8 5.2-2.8 1-6-1.8-1.8-2Z",
    "crown": "M-8 6L-9-5-4.2-.5 0-7 4.2-.5 9-5 8 6Z",
    "dot": "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0-3.6 0Z",
    "ring": "M-3.4 0A3.4 3.4 0 1 0 3.4 0A3.4 3.4 0 1 0-3.4 0Z",
    "cross": "M-4-2.6L-2.6-4 0-1.4 2.6-4 4-2.6 1.4 0 4 2.6 2.6 4 0 1.4-2.6 4-4 2.6-1.4 0Z",
    "plus": "M-1-4.2H1V-1H4.2V1H1V4.2H-1V1H-4.2V-1H-1Z",
    "minus": "M-4-1H4V1H-4Z",
    "differs": "M-4-2.9H4V-1.1H-4ZM-4 1.1H4V2.9H-4ZM1.7-5L3-4.4-1.7 5-3 4.4Z",
    "none": "M0 0",
}
"""Signs, drawn around 0,0 in a box of about 12: they need no font."""


@lru_cache(maxsize=4096)
def inline(styles: str, slot: str, theme: str = "light") -> str:
    """The attributes of one slot under these styles, as they stand in an SVG element: ` fill="#fff" ...`."""
    values = attributes(styles, slot, theme)
    return "".join(f' {k}="{v}"' for k, v in values.items() if (k, v) != ("stroke-dasharray", "none"))


def graph_attributes(styles: str) -> dict[str, str]:
    """The same for a node of Graphviz: fill, line, dashes and colour of the text."""
    body, text = attributes(styles, "body", "light"), attributes(styles, "label", "light")
    dashed = ",dashed" if body.get("stroke-dasharray", "none") != "none" else ""
    return {
        "style": f"rounded,filled{dashed}",
        "fillcolor": body.get("fill", "none").replace("none", "transparent"),
        "color": body.get("stroke", "none").replace("none", "transparent"),
        "fontcolor": text.get("fill", THEMES["light"]["ink"]),
        "penwidth": body.get("stroke-width", "1"),
    }


def attributes(styles: str, slot: str, theme: str) -> dict[str, str]:
    """The SVG attributes of one slot under these styles, colours as values."""
    colours, merged = THEMES[theme], dict[str, str]()
    asked = set(styles.split())
    for name, slots in STYLES.items():
        if name in asked:
            merged.update(slots.get(slot, {}))
    return {k: colours[v[1:]] if v.startswith("$") else v for k, v in merged.items()}


def css() -> str:
    """The style sheet of both themes: `.kc` is a picture, `.kc[data-theme=dark]` one on dark ground."""
    return "".join(f"{selector}{{{';'.join(map(':'.join, values.items()))}}}\n" for selector, values in RULES)
