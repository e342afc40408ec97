"""The street between ZooKeeper and the brokers: lanes and rails, so that no line touches a word.

A broker is a column. Its session runs along its left edge; what arrives comes down beside that, and what it sends goes
up along its right edge. Between these rails stand the pills, above the broker, each beside its own line. Lanes across
lie above all pills: one for each znode, some for the brokers that send.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.views.frames import Token, pill_width
from kafka_ctl.views.scene import Box, Part, Point, Scene, stroke

PILLS, PILL = 2, 20.0
"""The most pills above a broker, and the pixels of each."""
LANES, LANE = 7, 5.0
"""Lanes across, and the pixels from one to the next."""
STREET = LANES * LANE + PILLS * PILL + 9
"""Pixels above a line of brokers."""
SESSION, ARRIVAL, DEPARTURE = 3.0, 8.0, 6.0
"""Pixels of the rails from the left edge of a column, and of the last from the right one."""
RAILS = 22.0
"""Pixels of a column that its rails take from a pill."""


def session(broker: Box, number: int) -> Part:
    """The line of a broker's session."""
    x, top = broker.x + SESSION, broker.y - STREET
    line = f"M{x:.1f},{top:.1f}L{x:.1f},{broker.y:.1f}"
    where, of = Box(x, top, 0, STREET), f"broker:{number}"
    return Part(
        f"session:{number}",
        where,
        (stroke(line),),
        (),
        "wire session",
        title=f"session of broker {number}",
        line=line,
        of=of,
    )


def route(scene: Scene, source: str, target: str) -> str:
    """The way from a part to another, along rails and lanes; "" for an end that is not drawn, and then a short one.

    Empty where a part is missing, or both.
    """
    known = [end for end in (source, target) if end]
    if not known or any(end not in scene.parts for end in known):
        return ""
    lane = _lane(scene, source, target)
    start = _end(scene, source, lane, leaves=True) if source else []
    finish = _end(scene, target, lane, leaves=False)[::-1] if target else []
    around: list[Point] = []
    if start and finish and start[-1][1] != finish[0][1]:  # lines of brokers below one another: past the others
        around = [(scene.width - 2, start[-1][1]), (scene.width - 2, finish[0][1])]
    points = [*start, *around, *finish]
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _lane(scene: Scene, source: str, target: str) -> int:
    znodes = [name for name in scene.parts if name.startswith("znode:")]
    named = next((znodes.index(end) for end in (source, target) if end in znodes), None)
    if named is not None:
        return named
    brokers = [name for name in scene.parts if name.startswith("broker:")]
    return len(znodes) + brokers.index(source or target) % (LANES - len(znodes))


def _end(scene: Scene, part: str, lane: int, leaves: bool) -> list[Point]:
    """The points of a way at a part and in its lane."""
    place = scene.parts[part].box
    if part.startswith("znode:"):
        frame = scene.parts["zookeeper"].box
        x, edge, street = place.middle[0], place.y + place.height, frame.y + frame.height
    else:
        x = place.x + (place.width - DEPARTURE if leaves else ARRIVAL)
        edge, street = place.y, place.y - STREET
    return [(x, edge), (x, street + LANE * (lane + 1))]


def arranged(scene: Scene, found: Iterable[Token]) -> tuple[Token, ...]:
    """These tokens, each with its pill above its broker; the last pill counts those that have no room."""
    columns: dict[str, list[Token]] = {}
    for token in found:
        source, target = token.ends
        columns.setdefault(target if target.startswith("broker:") else source, []).append(token)
    placed: list[Token] = []
    for broker, own in columns.items():
        place = scene.parts[broker].box
        for row, token in enumerate(own[:PILLS]):
            more = f" +{len(own) - PILLS}" if row == PILLS - 1 and len(own) > PILLS else ""
            at = place.middle[0], place.y - 13 - PILL * row
            room = place.width - RAILS
            width = min(pill_width(token.label + more), room)
            placed.append(token._replace(label=token.label + more, beside=at, width=width))
    return tuple(placed)
