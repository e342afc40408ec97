"""Figures that step without a kernel: a story is run when the site is built, and its film lies in the page."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import zlib
from hashlib import sha256
from html import escape
from pathlib import Path

from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.views.frames import Film, film
from kafka_ctl.views.svg import static_svg
from kafka_ctl.views.widget.payload import all_answers, with_log
from tools.site.layout import write_file

FOLDER = "figures"
THEMES = ("light", "dark")


def is_story(text: str) -> bool:
    """True for a text whose first line that is not prose opens a lab."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return re.match(r"(quiet )?lab( \w+=|$)", next(lines, "")) is not None


def figure(text: str, out: Path, root: str, alone: bool = False) -> str:
    """The film of a story as HTML, its first picture as files of the site in `out`, to which `root` leads.

    It opens at the first broken invariant, or else at the first fault, or else at the end. A figure that is `alone` on
    its page also has the answers to "why?".
    """
    with _run(text) as lab:
        made, options = film(lab.trace), {"generation": lab.generation.name}
        data, runs = with_log([made], lab.trace, options)
        if alone:
            data |= all_answers([made], runs)
        address = lab.link()
    kinds = [frame.kind for frame in made.frames]
    index = next((kinds.index(kind) for kind in ("violation", "fault") if kind in kinds), len(kinds) - 1)
    return (
        f'<figure class="run" data-index="{index}"><div>{picture(made, index, out, root)}</div>'
        f'<script type="text/plain">{pack(data | {"asks": alone})}</script>'
        f'<figcaption>{len(kinds)} steps. <a href="{root}{escape(address)}">Open this run as a living cluster</a>.'
        "</figcaption></figure>\n"
    )


def _run(text: str) -> Lab:
    """The lab after a story; a command that is refused is left out."""
    opening, *commands = story.parse(text)
    lab = Lab(**story.opening(opening))
    for command in commands:
        with contextlib.suppress(KafkaCtlError):
            lab.do(command)
    return lab


def picture(made: Film, index: int, out: Path, root: str) -> str:
    """One frame as an image in both themes, which shows before any script has run, and without scripts."""
    light, dark = (_file(static_svg(made, index, theme), out) for theme in THEMES)
    width, height = round(made.scene.width), round(made.scene.height)
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{root}{dark}">'
        f'<img src="{root}{light}" width="{width}" height="{height}" loading="lazy" '
        f'alt="{escape(made.frames[index].alt)}"></picture>'
    )


def _file(svg: str, out: Path) -> str:
    name = f"{FOLDER}/{sha256(svg.encode()).hexdigest()[:16]}.svg"
    write_file(out / name, svg)
    return name


def pack(data: object) -> str:
    """Data as text that needs no escapes in a page; `unpack` in `figures.mjs` reads it."""
    text = json.dumps(data, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
