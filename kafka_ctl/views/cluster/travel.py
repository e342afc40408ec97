"""Messages that travel in the cluster picture, the lines they take, and the clocks of waiting requests and followers.

Between ZooKeeper and the brokers is a street of lanes and rails, so that no line touches a word. A broker is a column.
Its session runs along its left edge; what arrives comes down beside that, and what it sends goes up along its right
edge. Between these rails stand the pills, above the broker, each beside its own line. Lanes across lie above all pills:
one for each znode, some for the brokers that send.

Separate from `picture.py` because it follows from requests and from the time;
the rest of the picture follows from the model.
The clocks are those of requests without an answer and of followers that lag.
Kafka 2.0.1: controller/ControllerChannelManager.scala, addNewBroker; cluster/Partition.scala,
getOutOfSyncReplicas.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from kafka_ctl.generation import DEFAULTS, REQUEST_TIMEOUT, Generation
from kafka_ctl.requests import API_TIMEOUT, PRODUCE_TIMEOUT
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import Key
from kafka_ctl.views.frames import Token, pill_width
from kafka_ctl.views.scene import Box, Part, Point, Scene, shorten, stroke

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
    name, title, of = f"session:{number}", f"session of broker {number}", f"broker:{number}"
    return Part(name, Box(x, top, 0, STREET), (stroke(line),), (), "wire session", title=title, line=line, of=of)


def route(scene: Scene, source: str, target: str) -> str:
    """The way from a part to another, along rails and lanes; shorter if an end is "", which is not drawn.

    Empty if both ends are "", or if a part is missing.
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


def tokens(
    scene: Scene, records: Sequence[Record], deposed: Container[int], waits: Iterable[Wait], seq: int, now: float
) -> tuple[Token, ...]:
    """Requests between brokers, writes to ZooKeeper and the watches that fire: one token for each line.

    `deposed` are brokers whose controllers write though another has been elected. Requests that wait stay where they
    arrive, and say how long they have waited.
    """
    found: dict[str, Token] = {}
    for record in records:
        actor = number_of(record.actor)
        if (token := _token(record, actor)) is None or not (line := route(scene, *token.ends)):
            continue
        if record.kind == "zk" and actor in deposed and not record.error and znode_of(record.path) == "state":
            token = token._replace(label=f"{token.label}: stale controller", styles="parcel refused")
        found.setdefault(line, token._replace(line=line, label=shorten(token.label, 26)))
    new = {record.seq for record in records}
    for wait in waits:
        sender = number_of(wait.sender)
        ends = "" if sender is None else f"broker:{sender}", f"broker:{wait.broker}"
        if not (line := route(scene, *ends)):
            continue
        styles = "parcel waiting" if wait.first in new else "parcel waiting parked"
        other = found.get(line)
        place = line if other is None or other.label.startswith(wait.name) else f"{line} {wait.first}"
        found[place] = Token(line, wait.text(now, seq), styles, ends=ends)
    return arranged(scene, found.values())


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


def _token(record: Record, actor: int | None) -> Token | None:
    """A record's message, still without its line; an end that is not drawn is empty."""
    here, there, znode = f"broker:{actor}", f"broker:{record.broker}", f"znode:{znode_of(record.path)}"
    if record.kind == "response" and record.broker is not None:
        if record.error == "DISCONNECTED" and actor is not None:  # noted by who asked
            return Token("", "disconnected", "parcel refused", ends=(there, here))
        # The record does not name the sender, a client or a controller.
        return Token("", f"{record.action}: {record.error}", "parcel refused", ends=(there, ""))
    if actor is None:
        return None
    if record.kind == "request" and record.broker is not None:
        partitions = details.named(record.detail).get("partitions")
        return Token("", record.action + (f" ({partitions})" if partitions is not None else ""), ends=(here, there))
    if record.kind == "election" and record.error is not None:
        return Token("", f"{record.topic}-{record.partition}: no leader", "parcel refused", ends=(here, here))
    if record.kind == "zk" and record.path:
        styles = "parcel refused" if record.error else "parcel write"
        return Token("", record.error or record.action, styles, ends=(here, znode))
    if record.kind == "watch" and record.path:
        return Token("", record.target or "watch", "parcel watch", ends=(znode, here))
    return None


def znode_of(path: str | None) -> str:
    """The drawn znode that stands for a path."""
    path = path or ""
    if path in ("/controller", "/controller_epoch"):
        return path
    if path.startswith("/brokers/ids"):
        return "/brokers/ids"
    return "state" if path.startswith("/brokers/topics/") else "other"


TAKEN = frozenset(("request", "response", "fault", "broker", "controller"))
"""The kinds of records that begin and end waits."""
LONG = 100.0
"""Milliseconds from which on a wait is shown: what is answered sooner is under way for the time of its step only."""


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
        if self.again is not None and self.again <= seq:
            return f"{self.name} again, {max(0.0, now - self.since) / 1000:.1f} s"
        return lag_text(self.since, now, self.limit, self.name)


class Waits:
    """The long waits of a trace that may still grow."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.read = records, 0
        self.open: dict[int, Wait] = {}
        self.ended: list[Wait] = []
        self.request_timeout = float(DEFAULTS[REQUEST_TIMEOUT])
        self.causes: dict[int, int | None] = {}
        """The record that caused the writing of records: an answer to their producer has that cause."""

    def at(self, seq: int) -> Iterator[Wait]:
        """The long waits of requests that are open after the record `seq`."""
        for record in self.records[self.read :]:
            if record.kind in TAKEN:
                self._take(record)
        self.read = len(self.records)
        for wait in (*self.ended, *self.open.values()):
            if wait.first <= seq < wait.last and wait.until - wait.since >= LONG:
                yield wait

    def _take(self, record: Record) -> None:
        """Note a request, an answer and its causes, the end of a sender, a receiver that a controller removes."""
        broker, action = record.broker, record.action
        match record.kind, action:
            case "broker", "append":
                self.causes[record.seq] = record.cause
            case "request", _ if record.target == "sent" or action == "Produce":
                if broker is not None and broker >= 0:
                    limit = self._limit(record)
                    self.open[record.seq] = Wait(record.actor, broker, action, record.seq, record.time_ms, limit)
            case "response", _:
                self._answered(record)
            case "broker", "start":
                given = details.named(record.detail).get(REQUEST_TIMEOUT)
                self.request_timeout = float(given or self.request_timeout)
            case ("fault", "kill" | "bounce") | ("broker", "stopped") if record.topic is None:
                gone = (f"broker-{broker}", f"controller-{broker}")
                self._end([wait for wait in self.open.values() if wait.sender in gone], record)
            case ("broker", "controlled-shutdown") | ("controller", "resigned"):
                self._end([wait for wait in self.open.values() if wait.sender == record.actor], record)
            case "controller", "brokers_changed":
                fields = details.fields(record)
                removed = {*details.ids(fields.get("dead")), *details.ids(fields.get("bounced"))}
                own = (wait for wait in self.open.values() if wait.sender == record.actor)
                self._end([wait for wait in own if wait.broker in removed], record)

    def _limit(self, record: Record) -> float:
        if record.action == "Produce":
            return 1000 * PRODUCE_TIMEOUT
        return 1000 * API_TIMEOUT if number_of(record.actor) is None else self.request_timeout

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
            self._end([wait], record)

    def _cause(self, record: Record) -> Wait | None:
        """The open wait among the causes of an answer."""
        first, seq = min(self.open, default=inf), record.cause
        while seq is not None and seq >= first:
            if seq in self.open:
                return self.open[seq]
            seq = self.causes.get(seq)
        return None

    def _end(self, waits: Sequence[Wait], record: Record) -> None:
        for wait in waits:
            wait.last, wait.until = record.seq, record.time_ms
        self.open = {seq: wait for seq, wait in self.open.items() if wait.last == inf}
        self.ended += [wait for wait in waits if wait.until - wait.since >= LONG]


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


def lag_text(since: float, now: float, limit: float, name: str = "lag") -> str:
    """The time that a follower has been behind, or a request has waited, and its limit: `lag 3.2 of 10 s`."""
    passed = max(0.0, now - since)
    most = f" of {limit / 1000:g} s" if passed <= limit else " s"
    return f"{name} {passed / 1000:.1f}{most}"
