"""The legend under a picture: the meaning of each sign, outline and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafka_ctl.views.scene import Box, Entry, Part, Scene, Shape, Text, box, stroke

PREFIX = "legend:"
HIGH, APART = 18.0, 8.0
"""Pixels of an entry, and between two."""


REPLICAS = (
    Entry("plate leader", "star", "leader"),
    Entry("plate insync", "dot", "in sync"),
    Entry("plate lagging", "ring", "out of sync"),
    Entry("plate offline", "cross", "offline"),
    Entry("plate new", "plus", "new"),
    Entry("plate deleting", "minus", "being deleted"),
    Entry("plate offline leaderless", "cross", "its partition has no leader"),
)
HOT = Entry("plate hot", "none", "in this step")
EPHEMERAL = Entry("zoo ephemeral", "none", "ephemeral znode")
REFUSED = Entry("parcel refused", "none", "refused", "pill")
WRITE = Entry("parcel write", "none", "write", "pill")
WATCH = Entry("parcel watch", "none", "watch", "pill")
MARKS = (
    Entry("preferred note", "star", "preferred leader", "sign"),
    Entry("crown note", "crown", "controller", "sign"),
    Entry("otherwise note", "differs", "differs from ZooKeeper", "sign"),
    EPHEMERAL,
    Entry("plate doubtful", "none", "silent, cut off, starting or stopping"),
    Entry("note", "none", "recovering: reads its logs again after an unclean shutdown", "words"),
    Entry("note", "none", "pending shutdown: asks the controller, and answers", "words"),
    Entry("note", "none", "shutting down: answers nothing, closes its logs", "words"),
    HOT,
    Entry("wire session", "none", "session", "line"),
    Entry("wire session expiring", "none", "session without heartbeats", "line"),
    Entry("parcel", "none", "request", "pill"),
    Entry("parcel waiting", "none", "no answer yet", "pill"),
    REFUSED,
    WRITE,
    WATCH,
    Entry("sent", "none", "below: what the broker was sent", "words"),
)
UNCOUNTED = ("preferred", "sent")
"""Marks that a picture does not have that counts replicas."""
COUNTED = (*REPLICAS, *(mark for mark in MARKS if mark.styles.split()[0] not in UNCOUNTED))
ZOOKEEPER = (
    Entry("zoo", "none", "persistent znode"),
    EPHEMERAL,
    Entry("zoo leaderless", "none", "its partition has no leader"),
    Entry("plate new faded", "none", "not there"),
    HOT,
    Entry("wire ephemeral held", "none", "its session owns the znode", "line"),
    WRITE,
    REFUSED,
    WATCH,
)
SPACE_TIME = (
    Entry("life", "none", "process runs", "line"),
    Entry("life ruling", "none", "controller", "line"),
    Entry("life expiring", "none", "process dead, session alive", "line"),
    Entry("life dead", "none", "process dead", "line"),
    Entry("ask", "none", "request", "line"),
    Entry("put", "none", "ZooKeeper operation", "line"),
    Entry("put ephemeral", "none", "watch fires", "line"),
    Entry("put refused", "none", "refused", "line"),
    Entry("wire broken", "none", "time passes", "line"),
    Entry("event crown mark", "crown", "becomes controller", "sign"),
    Entry("event blue mark", "dot", "change of state, election", "sign"),
    Entry("put mark", "dot", "in ZooKeeper", "sign"),
    Entry("event mark", "dot", "other event", "sign"),
    Entry("ask refused mark", "dot", "request fails", "sign"),
    Entry("alarm mark", "cross", "fault or violated invariant", "sign"),
    Entry("band", "none", "this step"),
)
TIMELINE = (
    Entry("plate active", "none", "controller"),
    Entry("plate leader", "none", "leader"),
    Entry("plate offline", "none", "no controller, no leader"),
    Entry("wire now", "none", "this step", "line"),
)
MACHINE = (
    Entry("plate active", "none", "occupied"),
    Entry("plate down", "none", "occupied, offline or ineligible"),
    Entry("plate leaderless", "none", "a partition has no leader"),
    Entry("plate", "none", "empty"),
    Entry("plate new", "none", "initial state"),
    Entry("plate hot", "none", "entered in this step"),
    Entry("wire taken", "none", "made in this step", "line"),
    Entry("wire legal", "none", "legal from here", "line"),
    Entry("wire", "none", "other legal transition", "line"),
    Entry("parcel", "none", "controller of this step", "pill"),
)


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
