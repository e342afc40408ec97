"""The legend under a picture: what each sign, outline and line means, so that nothing has to be remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka_ctl.views.scene import Box, Part, Scene, Shape, Text, box

PREFIX = "legend:"
HIGH, APART = 18.0, 8.0
"""Pixels of an entry, and between two."""


class Entry(NamedTuple):
    """A mark: its styles, its sign, what it means. `kind` is `chip` or `pill` (boxes), `line`, `sign` or `words`."""

    styles: str
    glyph: str
    text: str
    kind: str = "chip"


REPLICAS = (
    Entry("plate leader", "star", "leader"),
    Entry("plate insync", "dot", "in sync"),
    Entry("plate lagging", "ring", "out of sync"),
    Entry("plate offline", "cross", "offline"),
    Entry("plate new", "plus", "new"),
    Entry("plate deleting", "minus", "being deleted"),
)
MARKS = (
    Entry("preferred note", "star", "preferred leader", "sign"),
    Entry("crown note", "crown", "controller", "sign"),
    Entry("otherwise note", "differs", "differs from ZooKeeper", "sign"),
    Entry("zoo ephemeral", "none", "ephemeral znode"),
    Entry("plate doubtful", "none", "silent or cut off"),
    Entry("plate hot", "none", "in this step"),
    Entry("wire session", "none", "session", "line"),
    Entry("wire session expiring", "none", "session without heartbeats", "line"),
    Entry("parcel", "none", "request", "pill"),
    Entry("parcel waiting", "none", "no answer yet", "pill"),
    Entry("parcel refused", "none", "refused", "pill"),
    Entry("parcel write", "none", "write", "pill"),
    Entry("parcel watch", "none", "watch", "pill"),
    Entry("sent", "none", "below: what the broker was sent", "words"),
)
UNCOUNTED = ("preferred", "sent")
"""Marks that a picture does not have that counts replicas."""


def add_legend(scene: Scene, counted: bool = False) -> None:
    """Put the legend of the cluster picture below it, in lines as wide as the picture."""
    left, top = 8.0 - scene.offset[0], scene.height - scene.offset[1] + 6
    right, x, y = scene.width - scene.offset[0] - 8, left, top
    marks = [mark for mark in MARKS if not counted or mark.styles.split()[0] not in UNCOUNTED]
    for number, entry in enumerate((*REPLICAS, *marks)):
        wide = _width(entry)
        if x > left and x + wide > right:
            x, y = left, y + HIGH + 6
        scene.add(_part(f"{PREFIX}{number}", entry, Box(x, y, wide, HIGH)))
        x += wide + APART
    scene.height += y - top + 32


def _width(entry: Entry) -> float:
    return (
        _before(entry) + {"chip": 10, "pill": 7}.get(entry.kind, 4) + len(entry.text) * (6.5 if _boxed(entry) else 6.2)
    )


def _before(entry: Entry) -> float:
    """Pixels before the words."""
    return {"chip": 20 if entry.glyph != "none" else 7, "pill": 8, "sign": 20, "line": 32, "words": 2}[entry.kind]


def _boxed(entry: Entry) -> bool:
    return entry.kind in ("chip", "pill")


def _part(name: str, entry: Entry, where: Box) -> Part:
    x, y = where.x, where.y
    text = Text(x + _before(entry), y + 12.5, entry.text, 11.5, "start")
    sign = (x + (11 if entry.kind == "chip" else 9), y + 9, 0.9 if entry.kind == "chip" else 0.8)
    glyph = sign if entry.glyph != "none" else None
    return Part(name, where, tuple(_shapes(entry, where)), (text,), entry.styles, glyph, entry.glyph)


def _shapes(entry: Entry, where: Box) -> Iterator[Shape]:
    if _boxed(entry):
        yield box(*where, 5 if entry.kind == "chip" else 9)
    elif entry.kind == "line":
        yield Shape("body", "path", (("d", f"M{where.x:g},{where.y + 9:g}h28"),))
