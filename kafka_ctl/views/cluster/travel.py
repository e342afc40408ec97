"""Messages that travel in the cluster picture, the lines they take, and the clocks of what waits.

Apart from `picture.py` because it follows from requests and from the time, and the rest of the picture from the model.
The clocks are those of requests without an answer and of followers that lag.
Kafka 2.0.1: controller/ControllerChannelManager.scala, controllerSocketTimeout; cluster/Partition.scala,
getOutOfSyncReplicas.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from kafka_ctl.generation import DEFAULTS, SOCKET_TIMEOUT, Generation
from kafka_ctl.requests import API_TIMEOUT, PRODUCE_TIMEOUT
from kafka_ctl.trace import details
from kafka_ctl.trace.beliefs import Key
from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.frames import Token, pill_width
from kafka_ctl.views.scene import Scene, shorten

GAP = 92
"""The height at which the bend of an arc between brokers is aimed; the arc itself rises half of it."""
LINE = 19
"""Pixels from one pill to another above it."""
_HEIGHTS = re.compile(r",(-?[\d.]+)")
ROOM = 60
"""The least distance of the middle of a label from the edge."""


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


LONG = 100.0
"""Milliseconds from which on a wait is shown: what is answered sooner is under way for the time of its step only."""

DECISIVE: dict[str, frozenset[str] | None] = {
    "request": None,
    "response": None,
    "fault": frozenset({"kill", "bounce"}),
    "broker": frozenset({"start", "stopped", "controlled-shutdown", "append"}),
    "controller": frozenset({"resigned", "brokers_changed"}),
}
"""The records that begin and end waits, by kind and action; None for every action."""


@dataclass
class Wait:
    """One request and its answer; times in milliseconds, `first` and `last` are the records that begin and end it."""

    sender: str
    broker: int
    name: str
    first: int
    since: float
    limit: float
    last: float = inf
    until: float = inf
    again: int | None = None
    """The record by which it failed once: it is sent again until it is answered."""

    def text(self, now: float, seq: int) -> str:
        """The time that it has waited, and its limit: `LeaderAndIsr 3.2 of 30 s`."""
        passed = max(0.0, now - self.since)
        if self.again is not None and self.again <= seq:
            return f"{self.name} again, {passed / 1000:.1f} s"
        most = f" of {self.limit / 1000:g} s" if passed <= self.limit else " s"
        return f"{self.name} {passed / 1000:.1f}{most}"


class Waits:
    """The long waits of a trace that may still grow."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.read = records, 0
        self.open: dict[int, Wait] = {}
        self.ended: list[Wait] = []
        self.socket = float(DEFAULTS[SOCKET_TIMEOUT])
        self.causes: dict[int, int | None] = {}
        """The record that caused the writing of records: an answer to their producer has that cause."""

    def at(self, seq: int) -> Iterator[Wait]:
        """The requests that wait after the record `seq`, those of them that wait long."""
        for record in self.records[self.read :]:
            actions = DECISIVE.get(record.kind, ())
            if actions is None or record.action in actions:
                self._take(record)
        self.read = len(self.records)
        for wait in (*self.ended, *self.open.values()):
            if wait.first <= seq < wait.last and wait.until - wait.since >= LONG:
                yield wait

    def _take(self, record: Record) -> None:
        kind, action = record.kind, record.action
        if action == "append":
            self.causes[record.seq] = record.cause
        elif kind == "request" and record.broker is not None and record.broker >= 0:
            if record.target == "sent" or action == "Produce":
                limit = self._limit(record)
                self.open[record.seq] = Wait(record.actor, record.broker, action, record.seq, record.time_ms, limit)
        elif kind == "response":
            self._answered(record)
        elif kind == "broker" and action == "start" and (given := details.named(record.detail).get(SOCKET_TIMEOUT)):
            self.socket = float(given)
        elif self.open:
            self._given_up(record)

    def _limit(self, record: Record) -> float:
        if record.action == "Produce":
            return 1000 * PRODUCE_TIMEOUT
        return 1000 * API_TIMEOUT if number_of(record.actor) is None else self.socket

    def _answered(self, record: Record) -> None:
        """An answer ends the wait that caused it; a failed attempt of a controller is made again."""
        wait = self._cause(record)
        if record.error == "DISCONNECTED" and record.actor.startswith("controller"):
            if wait is None:  # the answer was on its way, and did not arrive
                asked = (w for w in reversed(self.ended) if (w.sender, w.broker) == (record.actor, record.broker))
                if (lost := next(asked, None)) is None or lost.name != record.action:
                    return
                wait = Wait(lost.sender, lost.broker, lost.name, record.seq, lost.since, lost.limit)
                self.open[lost.first] = wait
            wait.again = wait.again or record.seq
        elif wait is not None:
            self._end(wait, record)

    def _cause(self, record: Record) -> Wait | None:
        """The open wait among the causes of an answer."""
        first, seq = min(self.open, default=inf), record.cause
        while seq is not None and seq >= first:
            if seq in self.open:
                return self.open[seq]
            seq = self.causes.get(seq)
        return None

    def _end(self, wait: Wait, record: Record) -> None:
        for seq in [seq for seq, one in self.open.items() if one is wait]:
            del self.open[seq]
        wait.last, wait.until = record.seq, record.time_ms
        if wait.until - wait.since >= LONG:
            self.ended.append(wait)

    def _given_up(self, record: Record) -> None:
        """True if the sender ended, timed out or removed the receiver from its brokers."""
        gone, removed, broker = set[str](), set[int](), record.broker
        match record.kind, record.action:
            case ("fault", "kill" | "bounce") | ("broker", "stopped") if record.topic is None:
                gone = {f"broker-{broker}", f"controller-{broker}"}
            case ("broker", "controlled-shutdown") | ("controller", "resigned"):
                gone = {record.actor}
            case "controller", "brokers_changed":
                fields = details.fields(record)
                removed = {*details.ids(fields.get("dead")), *details.ids(fields.get("bounced"))}
        for wait in list(self.open.values()) if gone or removed else ():
            if wait.sender in gone or (wait.sender == record.actor and wait.broker in removed):
                self._end(wait, record)


class LateReplicas:
    """Followers in the ISR that their leaders count as behind, from picture to picture."""

    def __init__(self, generation: str) -> None:
        self.expels_silent = Generation(generation).isr.expels_silent_followers
        self._silent: frozenset[int] = frozenset()
        self._held: list[Key] = []

    def at(self, model: ClusterModel, changed: bool) -> dict[Key, dict[int, float]]:
        """Partition -> follower -> since when, in milliseconds; `changed`: some partition did since the last time."""
        lags = model.lags
        ends = (int(end) for pair in lags.cuts for end in pair if end.isdecimal())
        silent = frozenset((*lags.halted, *lags.slow, *ends))
        if changed or silent != self._silent:
            self._silent = silent
            self._held = [key for key, seen in model.partitions.items() if not silent.isdisjoint(seen.isr)]
        found: dict[Key, dict[int, float]] = {}
        for key in dict.fromkeys((*self._held, *(key for key, _ in (*lags.fallen, *lags.behind)))):
            seen = model.partitions.get(key)
            if seen is None or seen.leader is None or not model.leads(seen):
                continue
            for broker in seen.isr:
                since = lags.since(key, broker, seen.leader, self.expels_silent) if broker != seen.leader else None
                if since is not None and ((key, broker) not in lags.behind or model.time_ms - since >= LONG):
                    found.setdefault(key, {})[broker] = since
        return found


def lag_text(since: float, now: float, limit: float) -> str:
    """The time that a follower has been behind, and its limit: `lag 3.2 of 10 s`."""
    passed = max(0.0, now - since)
    return f"lag {passed / 1000:.1f} of {limit / 1000:g} s" if passed <= limit else f"lag {passed / 1000:.1f} s"
