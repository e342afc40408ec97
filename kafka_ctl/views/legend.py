"""The legend under a picture: the meaning of each sign, outline and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafka_ctl.paths import blocks
from kafka_ctl.views.scene import Box, Entry, Part, Scene, Shape, Text, box, stroke

PREFIX = "legend:"
HIGH, APART = 18.0, 8.0
"""Pixels of an entry, and between two."""


def _entry(line: str) -> Entry:
    return Entry(*map(str.strip, line.split("|")))


REPLICAS, MARKS, ZOOKEEPER, SPACE_TIME, TIMELINE, MACHINE = (
    tuple(map(_entry, lines)) for _, *lines in blocks(__package__, "legend.txt")
)
UNCOUNTED = ("preferred", "sent")
"""Marks that are not in a picture of counted replicas."""
COUNTED = (*REPLICAS, *(mark for mark in MARKS if mark.styles.split()[0] not in UNCOUNTED))


def add_legend(scene: Scene, entries: Iterable[Entry], pinned: bool = False) -> None:
    """Put a legend below a picture, in lines as wide as the picture; `pinned` where the picture scrolls above it."""
    scene.entries = tuple(entries)
    if not scene.entries:
        return
    left, top = 8.0 - scene.offset[0], scene.height - scene.offset[1] + 6
    right, x, y = scene.width - scene.offset[0] - 8, left, top
    parts: list[Part] = []
    for number, entry in enumerate(scene.entries):
        part = _part(f"{PREFIX}{number}", entry, x, y)
        if x > left and x + part.box.width > right:
            x, y = left, y + HIGH + 6
            part = _part(part.id, entry, x, y)
        parts.append(replace(part, pinned=pinned))
        x += part.box.width + APART
    if pinned:
        under = Box(left - 8, top - 6, scene.width, y - top + 34)
        scene.add(Part(f"{PREFIX}ground", under, (box(*under, 0),), styles="heading", pinned=True))
    scene.add(*parts)
    scene.legend = y - top + 32
    scene.height += scene.legend


def is_shown(entry: Entry, looks: Iterable[frozenset[str]], words: Iterable[str]) -> bool:
    """True if a picture with these styles and texts has a mark: a line or a pill alone, any other among more styles."""
    all_styles = entry.styles.split()
    own = frozenset(all_styles) - {"plate", "note", "mark"}
    if not own:
        return entry.kind != "words" or any(text.startswith(entry.text.split(":")[0]) for text in words)
    exact = entry.kind in ("line", "pill")
    return any(own <= look and (not exact or len(look - {"parked"}) == len(all_styles)) for look in looks)


def _part(name: str, entry: Entry, x: float, y: float) -> Part:
    """A mark and its words, as wide as these need."""
    is_chip, boxed, has_sign = entry.kind == "chip", entry.kind in ("chip", "pill"), entry.glyph != "none"
    before = {"chip": 20 if has_sign else 7, "pill": 8, "sign": 20, "line": 32, "words": 2}[entry.kind]
    after = {"chip": 10, "pill": 7}.get(entry.kind, 4)
    where = Box(x, y, before + after + len(entry.text) * (6.7 if boxed else 6.4), HIGH)
    shapes: tuple[Shape, ...] = ()
    if boxed:
        shapes = (box(*where, 5 if is_chip else 9),)
    elif entry.kind == "line":
        shapes = (stroke(f"M{x:g},{y + 9:g}h28"),)
    text = Text(x + before, y + 12.5, entry.text, 12, "start")
    sign = (x + (11 if is_chip else 9), y + 9, 0.9 if is_chip else 0.8)
    return Part(name, where, shapes, (text,), entry.styles, sign if has_sign else None, entry.glyph)
