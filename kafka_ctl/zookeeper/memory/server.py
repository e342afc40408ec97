"""A ZooKeeper in this process: znodes, sessions, ephemerals, one-shot watches, multi and zxids.

It answers as a ZooKeeper 3.9 server does (`tests/zookeeper/test_store.py` runs on both) but lives on the lab's clock:
an operation reaches the server half a round trip after it was sent and its answer takes the other half.
A fired watch travels with the answers, so a client always sees the event before the newer data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterator

from kafka_ctl.errors import SessionExpired
from kafka_ctl.ports import Clock
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.memory.session import MemorySession
from kafka_ctl.zookeeper.memory.tree import Change, Tree
from kafka_ctl.zookeeper.store import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Op,
    Result,
    Set,
    Stat,
    StateListener,
    Store,
    WatchedEvent,
    Watcher,
    Write,
    parent_of,
)

SPIN_DELAY, RECONNECT_SPREAD = 1.0, 1.0
"""Seconds that a client waits before it connects again to its only server, and the most that it adds at random."""


class MemoryStore(Store):
    """The znode tree and its sessions, on the lab's clock.

    `round_trip` and `tick` are in seconds. `draw` gives numbers in [0, 1): the part of a tick that passes before the
    first one, and the part of a second that clients wait before they connect again. With a tick of 0, a session ends
    exactly its timeout after its client's last ping. Every operation and every fired watch is recorded in `trace`.
    """

    def __init__(
        self,
        clock: Clock,
        trace: Recorder,
        round_trip: float = 0.0002,
        tick: float = 0.0,
        draw: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.clock, self.trace, self.half_trip = clock, trace, round_trip / 2
        self.tick, self.tick_phase, self.draw = tick, draw(), draw
        self.tree = Tree(clock.wall)
        self.sessions: dict[int, MemorySession] = {}
        self._unaware: dict[int, MemorySession] = {}
        """Sessions that expired while their clients had no connection."""
        self.up = True
        """The server answers."""
        self.cut: dict[str, tuple[bool, bool]] = {}
        """Actors that cannot reach the server, or that it cannot reach: whether they can send, and receive."""
        self.slow: dict[tuple[str, str], float] = {}
        """By actor and direction: the extra seconds of a message; 0 after the fault, so that none overtakes another."""
        self._changed = asyncio.Event()
        self._next_session = 0x1000
        self.data_watches: dict[str, dict[int, None]] = {}
        self.child_watches: dict[str, dict[int, None]] = {}
        """By path, the sessions that are to be notified; in the order in which they asked."""

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> MemorySession:
        await self.clock.sleep(2 * self.half_trip)
        while not self.up or actor in self.cut:
            await self._changed.wait()
        session = MemorySession(self, self._next_session, actor, timeout, watcher, listener)
        self._next_session += 1
        self.sessions[session.id] = session
        self.trace.add(actor, "zk", "connect", detail=f"session={session.id:#x} timeout={timeout:g}s")
        return session

    def expire(self, session: MemorySession) -> None:
        """The server ends a session whose client is alive: its ephemerals go, and its connection is closed.

        The client learns that its session is over when it connects again. Where there is a single server, it waits a
        second for that, and up to another one at random.
        ZooKeeper 3.4.14: server/FinalRequestProcessor (closeSession); client/StaticHostProvider.next (spinDelay);
        ClientCnxn.SendThread.startConnect (r.nextInt(1000))
        """
        self.end(session, "expired", closes=True)
        self.reconnect_later(session)

    def reconnect_later(self, session: MemorySession) -> None:
        """A client whose connection the server has closed connects again, as said in `expire`."""
        self.clock.later(SPIN_DELAY + self.draw() * RECONNECT_SPREAD, session.reconnect)

    def end(self, session: MemorySession, how: str, cause: int | None = None, closes: bool = False) -> None:
        """Remove a session and its ephemeral znodes; `how` is `closed` or `expired`; `closes` its connection first."""
        if not session.alive:
            return
        session.alive = False
        del self.sessions[session.id]
        for watches in (self.data_watches, self.child_watches):
            for path in [p for p, holders in watches.items() if session.id in holders]:
                del watches[path][session.id]
        seq = self.trace.add("zookeeper", "zk", how, cause=cause, detail=f"session={session.id:#x} of {session.actor}")
        for path in list(self.tree.ephemerals.pop(session.id, ())):
            self._write("zookeeper", session, Delete(path), seq)
        if closes:
            session.disconnect()
        if how == "expired":
            session.fail_pending(SessionExpired(text=f"the ZooKeeper session of {session.actor} has expired"))
            session.state_changed(store.EXPIRED, seq)
            self._unaware[session.id] = session

    # Faults

    def cut_off(self, actor: str, sends: bool, receives: bool) -> None:
        """From now on an actor can or cannot send to the server, and receive from it."""
        if sends and receives:
            self.cut.pop(actor, None)
        else:
            self.cut[actor] = sends, receives
        for session in self._clients():
            if session.actor == actor:
                session.cut(sends, receives)
        self._notify()

    @property
    def is_healthy(self) -> bool:
        """True if the server answers all clients at the usual speed."""
        return self.up and not self.cut and not any(self.slow.values())

    def heal(self) -> None:
        """Nothing is wrong any more, nor about to be."""
        for actor in list(self.cut):
            self.cut_off(actor, True, True)
        self.slow = dict.fromkeys(self.slow, 0.0)
        for session in self._clients():
            session.fails_next_write = None
        self.start()

    def _clients(self) -> list[MemorySession]:
        """Every session that its client still believes to be open."""
        self._unaware = {id: s for id, s in self._unaware.items() if s.listening}
        return [*self.sessions.values(), *self._unaware.values()]

    def stop(self) -> None:
        """The server goes down; its znodes and sessions are on its disk."""
        self.up = False
        for session in list(self.sessions.values()):
            session.disconnect()

    def start(self) -> None:
        """Start again: each client that still exists reconnects, and has a whole session timeout for that."""
        was_up, self.up = self.up, True
        for session in self._clients():
            session.reconnect()
        if not was_up:
            for session in self.sessions.values():
                session.server_restarted()
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def apply(self, session: MemorySession, op: Op, cause: int | None) -> Result:
        match op:
            case Get() | Exists() | Children():
                return self._read(session, op, cause)
            case Multi():
                return self._multi(session, op, cause)
            case Create() | Set() | Delete():
                return self._write(session.actor, session, op, cause)
        raise TypeError(f"{type(op).__name__} is for a real ZooKeeper")

    def _read(self, session: MemorySession, op: Get | Exists | Children, cause: int | None) -> Result:
        """Answer a read, and arm its watch: of a missing znode, only that of Exists."""
        node, error, version = self.tree.nodes.get(op.path), None, None
        if op.watch and (node is not None or isinstance(op, Exists)):
            watches = self.child_watches if isinstance(op, Children) else self.data_watches
            watches.setdefault(op.path, {})[session.id] = None
        if node is None:
            error, answer = "NONODE", Result(op, "NONODE")
        else:
            version = node.version
            value = node.data if isinstance(op, Get) else node.names() if isinstance(op, Children) else None
            answer = Result(op, None, value, node.stat())
        action = type(op).__name__.lower()
        self.trace.add(session.actor, "zk", action, path=op.path, zk_version=version, error=error, cause=cause)
        return answer

    # Writes. Each is checked first and changes the tree only when nothing is wrong.

    def _multi(self, session: MemorySession, op: Multi, cause: int | None) -> Result:
        """Make all changes, or take them back when a part fails."""
        zxid, changes, parts = self.tree.zxid, list[tuple[Write, Change]](), list[Result]()
        for part in op.ops:
            if error := self.tree.problem(part):
                for _, change in reversed(changes):
                    change.undo()
                self.tree.zxid = zxid
                self.trace.add(session.actor, "zk", "multi", path=part.path, error=error, cause=cause)
                before = [Result(done.op, "ROLLEDBACK") for done in parts]
                after = [Result(later, "RUNTIMEINCONSISTENCY") for later in op.ops[len(parts) + 1 :]]
                return Result(op, error, (*before, Result(part, error), *after))
            if isinstance(part, Check):
                parts.append(Result(part))
                continue
            self.tree.zxid = zxid  # all parts of a transaction share one zxid
            changes.append((part, self.tree.change(part, session.id)))
            parts.append(_done(*changes[-1]))
        for part, change in changes:
            self._written(session.actor, part, change, cause)
        return Result(op, None, tuple(parts))

    def _write(self, actor: str, session: MemorySession, op: Write, cause: int | None) -> Result:
        error = self.tree.problem(op)
        if error:
            self.trace.add(actor, "zk", type(op).__name__.lower(), path=op.path, error=error, cause=cause)
            return Result(op, error)
        change = self.tree.change(op, session.id)
        self._written(actor, op, change, cause)
        return _done(op, change)

    def _written(self, actor: str, op: Write, change: Change, cause: int | None) -> None:
        """Record a write that succeeded and fire the watches it touches."""
        path = change.path
        seq = store.record_write(self.trace, actor, op, path, change.version, cause)
        if isinstance(op, Set):
            self._fire(self.data_watches, path, store.DATA_CHANGED, seq, ())
            return
        deleted = isinstance(op, Delete)
        notified = self._fire(self.data_watches, path, store.DELETED if deleted else store.CREATED, seq, ())
        if deleted:
            self._fire(self.child_watches, path, store.DELETED, seq, notified)
        self._fire(self.child_watches, parent_of(path), store.CHILDREN_CHANGED, seq, ())

    def _fire(
        self, watches: dict[str, dict[int, None]], path: str, event: str, seq: int, notified: Container[int]
    ) -> dict[int, None]:
        """Fire the one-shot watches on a path; each session gets one event once."""
        holders = watches.pop(path, None) or {}
        for number in holders:
            session = self.sessions.get(number)
            if session is not None and number not in notified:
                fired = self.trace.add(session.actor, "watch", "fired", path=path, target=event, cause=seq)
                session.deliver(WatchedEvent(event, path), fired)
        return holders

    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        below = root.rstrip("/") + "/"
        return {path: znode for path, znode in self.snapshot() if path == root or path.startswith(below)}

    async def stat(self, path: str) -> Stat | None:
        return self.stat_now(path)

    def stat_now(self, path: str) -> Stat | None:
        node = self.tree.nodes.get(path)
        return None if node is None else node.stat()

    def snapshot(self) -> Iterator[tuple[str, tuple[bytes, int, int]]]:
        for path in sorted(self.tree.nodes):
            node = self.tree.nodes[path]
            if path != "/":
                yield path, (node.data, node.version, node.owner)

    async def close(self) -> None:
        """Nothing outlives the lab."""


def _done(op: Write, change: Change) -> Result:
    return Result(op, None, change.path if isinstance(op, Create) else None, change.stat)
