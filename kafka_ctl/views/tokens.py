"""What travels between the things of the cluster picture, and along which line."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from kafka_ctl.trace import details
from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.frames import Token, pill_width
from kafka_ctl.views.scene import Scene, shorten
from kafka_ctl.views.waits import Wait

GAP = 92
"""How high the bend of an arc between brokers is aimed; the arc itself rises half of it."""
LINE = 19
"""Pixels from one pill to another above it."""
_HEIGHTS = re.compile(r",(-?[\d.]+)")
ROOM = 60
"""How far from the edge the middle of a label must stay."""


def tokens(scene: Scene, records: Sequence[Record], deposed: Container[int] = ()) -> tuple[Token, ...]:
    """Requests between brokers, writes to ZooKeeper and the watches that fire: one token for each line.

    `deposed` are brokers whose controllers write though another has been elected.
    """
    found: dict[str, Token] = {}
    for record in records:
        actor = number_of(record.actor)
        line, label, styles = _token(scene, record, actor)
        if record.kind == "zk" and actor in deposed and styles == "parcel write" and znode_of(record.path) == "state":
            label, styles = f"{label}: stale controller", "parcel refused"
        if line:
            found.setdefault(line, Token(line, shorten(label, 26), styles))
    return tuple(found.values())


def with_waits(
    scene: Scene, found: Sequence[Token], waits: Iterable[Wait], seq: int, now: float, records: Sequence[Record]
) -> tuple[Token, ...]:
    """These tokens, and those of requests that wait: they stay where they arrive, and say how long they have waited."""
    new, shown = {record.seq for record in records}, {token.line: token for token in found}
    heights: dict[int, int] = {}
    for wait in waits:
        sender = number_of(wait.sender)
        source, target = f"broker:{sender}", f"broker:{wait.broker}"
        line = _above(scene, target, arrives=True) if sender is None else arc(scene, source, target)
        if not line:
            continue
        styles = "parcel waiting" if wait.first in new else "parcel waiting parked"
        token = Token(line, wait.text(now, seq), styles)
        above = heights[wait.broker] = heights.get(wait.broker, -1) + 1
        if above:
            x, y = token.place
            token = token._replace(beside=(x, y - 20 * above))
        other = shown.get(line)
        shown[line if other is None or other.label.startswith(wait.name) else f"{line} {wait.first}"] = token
    return tuple(shown.values())


def apart(found: Iterable[Token]) -> Iterator[Token]:
    """The same tokens; one that would lie on another stands above or below it. `player.js` does so, too."""
    placed: list[tuple[float, float, float]] = []
    for token in found:
        (x, y), half = token.place, pill_width(token.label) / 2
        lowest = max(float(end) for end in _HEIGHTS.findall(token.line))
        free = (
            by
            for by in (0, LINE, -LINE, 2 * LINE, -2 * LINE)
            if (by <= 0 or y + by + LINE / 4 <= lowest)
            and all(abs(x - a) >= half + b or abs(y + by - c) >= LINE for a, c, b in placed)
        )
        by = next(free, 0)
        placed.append((x, y + by, half))
        yield token._replace(beside=(x, y + by)) if by else token


def _above(scene: Scene, part: str, arrives: bool) -> str:
    """A short way from above to a part, or up from it: for requests and answers whose other end is not drawn."""
    if part not in scene.parts:
        return ""
    x, y = scene.parts[part].box.middle[0], scene.parts[part].box.y
    start, end = (y - 52, y) if arrives else (y, y - 52)
    return f"M{x:.1f},{start:.1f}L{x:.1f},{end:.1f}"


def _token(scene: Scene, record: Record, actor: int | None) -> tuple[str, str, str]:
    if record.kind == "request" and record.broker is not None and actor is not None:
        partitions = details.named(record.detail).get("partitions")
        count = f" ({partitions})" if partitions is not None else ""
        return arc(scene, f"broker:{actor}", f"broker:{record.broker}"), record.action + count, "parcel"
    if record.kind == "election" and record.error is not None and actor is not None:
        label = f"{record.topic}-{record.partition}: nobody"
        return arc(scene, f"broker:{actor}", f"broker:{actor}"), label, "parcel refused"
    if record.kind == "response" and record.broker is not None:
        if record.error == "DISCONNECTED" and actor is not None:  # noted by who asked
            return arc(scene, f"broker:{record.broker}", f"broker:{actor}"), "disconnected", "parcel refused"
        # Who asked, a client or a controller, is not in the record.
        line = _above(scene, f"broker:{record.broker}", arrives=False)
        return line, f"{record.action}: {record.error}", "parcel refused"
    if record.kind == "zk" and record.path and actor is not None:
        line = straight(scene, f"broker:{actor}", f"znode:{znode_of(record.path)}")
        return line, record.error or record.action, "parcel refused" if record.error else "parcel write"
    if record.kind == "watch" and record.path and actor is not None:
        line = straight(scene, f"znode:{znode_of(record.path)}", f"broker:{actor}")
        return line, record.target or "watch", "parcel watch"
    return "", "", ""


def znode_of(path: str | None) -> str:
    """The drawn znode that stands for a path."""
    path = path or ""
    if path in ("/controller", "/controller_epoch"):
        return path
    if path.startswith("/brokers/ids"):
        return "/brokers/ids"
    return "state" if path.startswith("/brokers/topics/") else "other"


def straight(scene: Scene, source: str, target: str) -> str:
    """A straight line from a part down (or up) to another; empty when one of them is not drawn."""
    if source not in scene.parts or target not in scene.parts:
        return ""
    a, b = scene.parts[source].box, scene.parts[target].box
    down = a.y < b.y
    start = a.y + a.height if down else a.y
    end = b.y if down else b.y + b.height
    return f"M{a.middle[0]:.1f},{start:.1f}L{b.middle[0]:.1f},{end:.1f}"


def arc(scene: Scene, source: str, target: str) -> str:
    """An arc over the brokers between two of them, a small loop from one to itself."""
    if source not in scene.parts or target not in scene.parts:
        return ""
    a, b = scene.parts[source].box, scene.parts[target].box
    (x0, _), (x1, _) = a.middle, b.middle
    if source == target:
        near, far, top = x0 - 8, x0 - 62, a.y - 52
        if far < ROOM - scene.offset[0]:  # no room for the label at the left
            near, far = x0 + 8, x0 + 62
        return f"M{near:.1f},{a.y:.1f}C{near:.1f},{top:.1f} {far:.1f},{top:.1f} {far:.1f},{a.y:.1f}"
    return f"M{x0:.1f},{a.y:.1f}Q{(x0 + x1) / 2:.1f},{min(a.y, b.y) - GAP:.1f} {x1:.1f},{b.y:.1f}"
