"""How things look: one table of colours for two themes, one table of styles.

The hues are those of Okabe and Ito, distinguishable by colour-blind eyes, and none is alone: every state also has
its own sign, outline or word. The same table becomes the style sheet of the player and the attributes of a
picture that has no style sheet, so that the three renderings cannot drift apart.
"""

from __future__ import annotations

from functools import lru_cache

THEMES: dict[str, dict[str, str]] = {
    "light": {
        "page": "#ffffff",
        "panel": "#f5f7f9",
        "plate": "#ffffff",
        "line": "#57606a",
        "faint": "#d0d7de",
        "ink": "#1f2328",
        "dim": "#59636e",
        "leader": "#0072b2",
        "on_leader": "#ffffff",
        "insync": "#d9edf9",
        "lag": "#fff1cc",
        "lag_line": "#a67c00",
        "off": "#fdeae0",
        "off_line": "#8f2d00",
        "off_ink": "#6e2600",
        "good": "#00735a",
        "good_fill": "#d8f1ea",
        "zoo": "#fbeaf3",
        "zoo_line": "#86215f",
        "crown": "#e69f00",
        "hot": "#c26e00",
        "bad": "#c24a00",
        "star": "#f0e442",
        "edge": "#1f2328",
    },
    "dark": {
        "page": "#16191d",
        "panel": "#1e2329",
        "plate": "#262c33",
        "line": "#9aa5b1",
        "faint": "#3d4650",
        "ink": "#e8ebee",
        "dim": "#a9b3bd",
        "leader": "#56b4e9",
        "on_leader": "#0a1c28",
        "insync": "#1d3c52",
        "lag": "#43361a",
        "lag_line": "#f2c14e",
        "off": "#46261a",
        "off_line": "#e2733a",
        "off_ink": "#ffc7a6",
        "good": "#3fc9a0",
        "good_fill": "#173d33",
        "zoo": "#3d2436",
        "zoo_line": "#dd93bd",
        "crown": "#e69f00",
        "hot": "#f0c64a",
        "bad": "#f08a4b",
        "star": "#f0e442",
        "edge": "#14181c",
    },
}
"""Colour names and their values: light and dark have the same names."""

Slots = dict[str, dict[str, str]]

_HALO = {"stroke": "$page", "stroke-width": "3", "paint-order": "stroke"}
"""Keeps a label readable where it meets a line."""
_PLAIN = {"stroke-dasharray": "none", "stroke-width": "1.2"}
STYLES: dict[str, Slots] = {
    "frame": {"body": {"fill": "$panel", "stroke": "$faint", **_PLAIN}, "label": {"fill": "$dim"}},
    "plate": {
        "body": {"fill": "$plate", "stroke": "$line", **_PLAIN},
        "label": {"fill": "$ink"},
        "glyph": {"fill": "$dim"},
    },
    "bare": {"body": {"fill": "none", "stroke": "none"}, "label": {"fill": "$ink"}},
    "lost": {"label": {"fill": "$off_ink"}},
    "note": {"label": {"fill": "$dim"}},
    # Replicas.
    "leader": {
        "body": {"fill": "$leader", "stroke": "$leader"},
        "label": {"fill": "$on_leader", "font-weight": "700"},
        "glyph": {"fill": "$star"},
    },
    "insync": {"body": {"fill": "$insync", "stroke": "$leader"}, "glyph": {"fill": "$leader"}},
    "lagging": {
        "body": {"fill": "$lag", "stroke": "$lag_line", "stroke-dasharray": "5 3"},
        "glyph": {"fill": "none", "stroke": "$lag_line", "stroke-width": "1.6"},
    },
    "offline": {
        "body": {"fill": "$off", "stroke": "$off_line", "stroke-dasharray": "1.5 2.5"},
        "label": {"fill": "$off_ink"},
        "glyph": {"fill": "$off_line"},
    },
    "new": {
        "body": {"fill": "$plate", "stroke": "$dim", "stroke-dasharray": "2 3"},
        "glyph": {"fill": "$dim"},
    },
    "deleting": {
        "body": {"fill": "$panel", "stroke": "$dim", "stroke-dasharray": "8 3 2 3"},
        "label": {"fill": "$dim", "text-decoration": "line-through"},
        "glyph": {"fill": "$dim"},
    },
    # Brokers, states and znodes.
    "up": {"body": {"fill": "$panel", "stroke": "$line"}},
    "active": {"body": {"fill": "$good_fill", "stroke": "$good", "stroke-width": "2"}},
    "down": {
        "body": {"fill": "$off", "stroke": "$off_line", "stroke-dasharray": "1.5 2.5"},
        "label": {"fill": "$off_ink"},
    },
    "absent": {"body": {"fill": "none", "stroke": "$dim", "stroke-dasharray": "2 3"}, "label": {"fill": "$dim"}},
    "doubtful": {"body": {"fill": "$lag", "stroke": "$lag_line", "stroke-dasharray": "5 3"}},
    "zoo": {
        "body": {"fill": "$zoo", "stroke": "$zoo_line"},
        "label": {"fill": "$zoo_line"},
        "glyph": {"fill": "$zoo_line"},
    },
    "ephemeral": {"body": {"stroke-dasharray": "5 3"}},
    # Lines.
    "wire": {
        "body": {"fill": "none", "stroke": "$line", "stroke-width": "1.2"},
        "head": {"fill": "$line", "stroke": "none"},
        "label": {"fill": "$dim", **_HALO},
    },
    "legal": {
        "body": {"stroke": "$leader", "stroke-width": "1.8", "stroke-dasharray": "6 3"},
        "head": {"fill": "$leader"},
        "label": {"fill": "$leader", **_HALO},
    },
    "taken": {
        "body": {"stroke": "$good", "stroke-width": "3"},
        "head": {"fill": "$good"},
        "label": {"fill": "$good", "font-weight": "700", **_HALO},
    },
    "broken": {"body": {"stroke": "$off_line", "stroke-dasharray": "2 4"}},
    "event": {"body": {"fill": "$good", "stroke": "none"}},
    "mark": {
        "glyph": {"fill": "$good"},
        "label": {"fill": "$ink", **_HALO},
    },
    "alarm": {
        "glyph": {"fill": "$bad"},
        "body": {"fill": "$bad", "stroke": "none"},
        "label": {"fill": "$bad", "font-weight": "700"},
    },
    # Space and time.
    "life": {"body": {"fill": "none", "stroke": "$line", "stroke-width": "1.6"}},
    "ruling": {"body": {"stroke": "$good", "stroke-width": "6"}},
    "dead": {"body": {"stroke": "$off_line", "stroke-dasharray": "1.5 4"}},
    "expiring": {
        "body": {"stroke": "$lag_line", "stroke-width": "3", "stroke-dasharray": "7 4"},
        "label": {"fill": "$ink"},
    },
    "session": {"body": {"stroke-width": "2.4", "stroke-dasharray": "0.1 5", "stroke-linecap": "round"}},
    "ask": {
        "body": {"fill": "none", "stroke": "$good", "stroke-width": "1.8"},
        "head": {"fill": "$good"},
        "label": {"fill": "$good", **_HALO},
    },
    "put": {
        "glyph": {"fill": "$zoo_line"},
        "body": {"fill": "none", "stroke": "$zoo_line", "stroke-width": "1.6"},
        "head": {"fill": "$zoo_line"},
        "label": {"fill": "$zoo_line", **_HALO},
    },
    "blue": {"glyph": {"fill": "$leader"}},
    "heading": {"body": {"fill": "$page", "stroke": "none"}},
    "band": {"body": {"fill": "$lag", "stroke": "none"}},
    "veil": {"body": {"fill": "$page", "stroke": "none", "opacity": "0.82"}},
    "now": {"body": {"stroke": "$hot", "stroke-width": "2.5"}},
    "held": {"body": {"stroke": "$zoo_line"}},
    # What somebody has otherwise than ZooKeeper, and what agrees with it.
    "differs": {
        "body": {"stroke": "$bad", "stroke-width": "2.6", "stroke-dasharray": "none"},
        "glyph": {"fill": "$bad"},
    },
    "sent": {"body": {"fill": "none", "stroke": "none"}, "label": {"fill": "$dim"}},
    "late": {"body": {"fill": "$lag", "stroke": "none"}, "label": {"fill": "$ink"}},
    "otherwise": {
        "body": {"fill": "$off", "stroke": "none"},
        "label": {"fill": "$off_ink", "font-weight": "700"},
        "glyph": {"fill": "$bad"},
    },
    "badge": {
        "body": {"fill": "$page", "stroke": "$bad", "stroke-width": "1.6"},
        "glyph": {"fill": "$bad"},
        "label": {"fill": "$bad", "font-weight": "700"},
    },
    # What has just changed, and what is not there.
    "hot": {"body": {"stroke": "$hot", "stroke-width": "3"}},
    "chosen": {"body": {"stroke": "$ink", "stroke-width": "3"}},
    "faded": {"all": {"opacity": "0.4"}},
    "gone": {"all": {"opacity": "0"}},
    # What moves.
    "star": {"glyph": {"fill": "$star", "stroke": "$edge", "stroke-width": "0.8"}},
    "preferred": {"glyph": {"fill": "none", "stroke": "$dim", "stroke-width": "1"}},
    "on_leader": {"glyph": {"stroke": "$on_leader"}},
    "crown": {"glyph": {"fill": "$crown", "stroke": "$edge", "stroke-width": "0.8"}},
    "parcel": {
        "body": {"fill": "$plate", "stroke": "$good", "stroke-width": "1.6"},
        "label": {"fill": "$ink"},
        "wire": {"fill": "none", "stroke": "$good", "stroke-width": "1.6", "stroke-dasharray": "4 3"},
    },
    "watch": {
        "body": {"fill": "$zoo", "stroke": "$zoo_line", "stroke-dasharray": "2 2"},
        "label": {"fill": "$zoo_line"},
        "wire": {"stroke": "$zoo_line"},
    },
    "write": {
        "body": {"fill": "$zoo", "stroke": "$zoo_line"},
        "label": {"fill": "$zoo_line"},
        "wire": {"stroke": "$zoo_line"},
    },
    "waiting": {
        "body": {"fill": "$lag", "stroke": "$lag_line"},
        "wire": {"stroke": "$lag_line"},
    },
    "parked": {},
    "refused": {
        "body": {"fill": "$off", "stroke": "$off_line"},
        "head": {"fill": "$off_line"},
        "glyph": {"fill": "$off_line"},
        "label": {"fill": "$off_ink"},
        "wire": {"stroke": "$off_line"},
    },
}
"""Style -> slot -> SVG attributes; `$name` is a colour of the theme. A later style of this table wins."""

SLOTS = ("all", "body", "head", "wire", "glyph", "label")
"""What a thing is made of: its outline, its arrow head, its line, its sign, its words; `all` is the whole."""

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


def graph_attributes(styles: str, theme: str = "light") -> dict[str, str]:
    """The same for a node of Graphviz: fill, line, dashes and colour of the text."""
    body, text = attributes(styles, "body", theme), attributes(styles, "label", theme)
    dashed = ",dashed" if body.get("stroke-dasharray", "none") != "none" else ""
    return {
        "style": f"rounded,filled{dashed}",
        "fillcolor": body.get("fill", "none").replace("none", "transparent"),
        "color": body.get("stroke", "none").replace("none", "transparent"),
        "fontcolor": text.get("fill", THEMES[theme]["ink"]),
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


def css(root: str = ".kc") -> str:
    """The style sheet of both themes: `.kc` is a picture, `.kc[data-theme=dark]` one on dark ground."""

    def variables(theme: str) -> str:
        return ";".join(f"--kc-{name.replace('_', '-')}:{colour}" for name, colour in THEMES[theme].items())

    def value(text: str) -> str:
        return f"var(--kc-{text[1:].replace('_', '-')})" if text.startswith("$") else text

    rules = [f"{root}{{{variables('light')}}}", f'{root}[data-theme="dark"]{{{variables("dark")}}}']
    for style, slots in STYLES.items():
        for slot, attributes in slots.items():
            inside = "" if slot == "all" else f">.{slot}"
            values = ";".join(f"{name}:{value(text)}" for name, text in attributes.items())
            rules.append(f"{root} .s-{style}{inside}{{{values}}}")
    return "\n".join(rules) + "\n"
