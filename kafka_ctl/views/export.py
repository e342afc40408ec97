"""A film as a file of its own: an SVG that plays without script, or one HTML page with the whole player.

Neither needs a network, a kernel or another file. The SVG plays inside `<img>` too; a reader who asks for
reduced motion, and any program that does not know CSS animation, sees its last frame.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from kafka_ctl.errors import BadInput
from kafka_ctl.trace import Record
from kafka_ctl.views.animated import animated
from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, film, wants_of
from kafka_ctl.views.palette import THEMES, css
from kafka_ctl.views.payload import payload

HERE = Path(__file__).parent
KINDS = (".svg", ".html", ".png", ".gif")


def export(
    records: Sequence[Record], path: str | Path, view: str | Sequence[str] = "cluster", **options: Any
) -> Path:
    """Write the film of these records to a file and return its path; the ending says what it becomes.

    `.svg`: plays by itself, no script; `.html`: the player, one file; `.png`, `.gif`: drawn by a Chromium that
    Playwright can drive. Options are those of `player`. Raises BadInput for another ending, Unavailable when
    a tool is missing.
    """
    path = Path(path)
    if path.suffix not in KINDS:
        raise BadInput(
            f"cannot export {path.name}: its ending is {path.suffix or 'missing'}; it may be {', '.join(KINDS)}"
        )
    views = (view,) if isinstance(view, str) else tuple(view)
    if len(views) > 1:
        options.setdefault("wants", wants_of(views))
    films = [film(records, name, **options) for name in views]
    if path.suffix == ".svg":
        path.write_text(animated(films[0]), encoding="utf-8")
    elif path.suffix == ".html":
        path.write_text(page(films), encoding="utf-8")
    else:
        from kafka_ctl.views.raster import gif, png

        path.write_bytes((png if path.suffix == ".png" else gif)(films[0]))
    return path


def page(films: Sequence[Film]) -> str:
    """One HTML page that plays films in any browser."""
    data = json.dumps(payload(films), separators=(",", ":")).replace("<", "\\u003c")
    script = (HERE / "player.js").read_text(encoding="utf-8")
    sheet = (HERE / "player.css").read_text(encoding="utf-8") + css()
    title = escape(printable(f"{films[0].title}: {len(films[0])} steps"))
    steps = "".join(f"<li value={f.index}>{escape(printable(f.caption))}</li>" for f in films[0].frames)
    grounds = "".join(
        f"@media (prefers-color-scheme: {name}) {{ body {{ background: {THEMES[name]['page']}; color: {THEMES[name]['ink']} }} }}"
        for name in THEMES
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
        "style-src 'unsafe-inline'; img-src data:\">\n"
        f"<style>\n{sheet}body {{ margin: 12px auto; max-width: 1400px; padding: 0 12px }}\n{grounds}</style></head>\n"
        f'<body><div id="player"></div><noscript><ol>{steps}</ol></noscript>\n<script type="module">\n{script}\n'
        f"const state = {{ film: {data},\n  index: 0, playing: false, speed: 1, loop: false, selected: '', theme: 'auto' }};\n"
        f"{SHIM}</script></body></html>\n"
    )


SHIM = """const listeners = {};
const model = {
  get: (name) => state[name], save_changes() {}, off() {}, send() {},
  on: (event, act) => (listeners[event] ??= []).push(act),
  set: (name, value) => {
    if (state[name] === value) return;
    state[name] = value;
    (listeners["change:" + name] ?? []).forEach((act) => act());
  },
};
render({ model, el: document.getElementById("player") });
"""
"""Stands in for the notebook's kernel."""
