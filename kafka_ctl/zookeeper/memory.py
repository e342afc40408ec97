"""A ZooKeeper in this process: znodes, sessions, ephemerals, one-shot watches, multi and zxids.

It answers as a ZooKeeper 3.9 server does (`tests/test_store.py` runs on both) but lives on the lab's clock:
an operation reaches the server half a round trip after it was sent and its answer takes the other half.
A fired watch travels with the answers, so a client always sees the event before the newer data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from kafka_ctl.errors import SessionExpired
from kafka_ctl.trace import CAUSE, Trace
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.store import (
    Check, Children, Create, Delete, Exists, Get, Multi, Op, Result, Session, Set, Stat, StateListener, Store,
    WatchedEvent, Watcher,
)


class Node:
    """One znode. `created` counts the children ever made: it numbers sequence znodes."""

    __slots__ = ("children", "created", "czxid", "data", "mzxid", "owner", "version")

    def __init__(self, data: bytes, zxid: int, owner: int = 0) -> None:
        self.data, self.czxid, self.mzxid, self.owner = data, zxid, zxid, owner
        self.version = self.created = 0
        self.children: dict[str, None] = {}

    def stat(self) -> Stat:
        cversion = 2 * self.created - len(self.children)  # creations and deletions, as the server shows it
        return Stat(self.czxid, self.mzxid, self.version, cversion, self.owner, len(self.children))


class MemorySession(Session):
    """A session on a `MemoryStore`."""

    def __init__(
        self, server: MemoryStore, number: int, actor: str, timeout: float, watcher: Watcher, listener: StateListener,
    ) -> None:
        self.server, self.id, self.actor, self.timeout = server, number, actor, timeout
        self.watcher, self.listener = watcher, listener
        self.alive = True
        """The server still knows this session."""
        self.listening = True
        """The client still exists to hear of anything."""
        self.ephemerals: dict[str, None] = {}
        self._waiting: dict[asyncio.Future, None] = {}

    async def send(self, ops: Sequence[Op], window: int = 1) -> list[Result]:
        answers: list[Result] = []
        for start in range(0, len(ops), window):
            answers += await self._trip(ops[start : start + window])
        return answers

    def _trip(self, ops: Sequence[Op]) -> asyncio.Future:
        if not self.alive:
            raise SessionExpired(ops[0].path, f"the ZooKeeper session of {self.actor} has expired")
        server = self.server
        answer = server.clock.loop.create_future()
        self._waiting[answer] = None
        server.clock.later(server.half_trip, self._arrive, ops, CAUSE.get(), answer)
        return answer

    def _arrive(self, ops: Sequence[Op], cause: int | None, answer: asyncio.Future) -> None:
        """At the server: apply what came in together, in order."""
        if self.alive:
            server = self.server
            results = [server.apply(self, op, cause) for op in ops]
            server.clock.later(server.half_trip, self._answered, answer, results)

    def _answered(self, answer: asyncio.Future, results: list[Result]) -> None:
        self._waiting.pop(answer, None)
        if not answer.done():
            answer.set_result(results)

    def _hear(self, event: WatchedEvent, seq: int) -> None:
        if self.listening:
            token = CAUSE.set(seq)
            self.watcher(event)
            CAUSE.reset(token)

    def tell(self, state: str, seq: int) -> None:
        if self.listening:
            token = CAUSE.set(seq)
            self.listener(state)
            CAUSE.reset(token)

    def lose(self, error: Exception) -> None:
        """Answer everything outstanding with an error."""
        waiting, self._waiting = self._waiting, {}
        for answer in waiting:
            if not answer.done():
                answer.set_exception(error)

    async def close(self) -> None:
        if self.alive:
            await self.server.clock.sleep(self.server.half_trip)
            self.listening = False
            self.server.end(self, "closed")

    def abandon(self) -> None:
        self.listening = False
        self.server.clock.later(self.timeout, self.server.end, self, "expired")


class MemoryStore(Store):
    """The znode tree and its sessions, on the lab's clock.

    `round_trip` is in seconds. Every operation and every fired watch is recorded in `trace`.
    """

    def __init__(self, clock: Any, trace: Trace, round_trip: float = 0.0002) -> None:
        self.clock, self.trace, self.half_trip = clock, trace, round_trip / 2
        self.zxid = 0
        self.tree: dict[str, Node] = {"/": Node(b"", 0)}
        self.sessions: dict[int, MemorySession] = {}
        self._next_session = 0x1000
        self._data_watches: dict[str, dict[int, None]] = {}
        self._child_watches: dict[str, dict[int, None]] = {}
        self._handlers: dict[type, Any] = {
            Get: self._get, Exists: self._exists, Children: self._children, Create: self._create, Set: self._set,
            Delete: self._delete, Multi: self._multi,
        }

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> MemorySession:
        await self.clock.sleep(2 * self.half_trip)
        session = MemorySession(self, self._next_session, actor, timeout, watcher, listener)
        self._next_session += 1
        self.sessions[session.id] = session
        self.trace.add(actor, "zk", "connect", detail=f"session={session.id:#x} timeout={timeout:g}s")
        return session

    def expire(self, session: MemorySession) -> None:
        """The server forgets a session whose client is alive: its ephemerals go and the client is told."""
        self.end(session, "expired")

    def end(self, session: MemorySession, how: str) -> None:
        """Remove a session and its ephemeral znodes; `how` is `closed` or `expired`."""
        if not session.alive:
            return
        session.alive = False
        del self.sessions[session.id]
        for watches in (self._data_watches, self._child_watches):
            for path in [p for p, holders in watches.items() if session.id in holders]:
                del watches[path][session.id]
        seq = self.trace.add("zookeeper", "zk", how, detail=f"session={session.id:#x} of {session.actor}")
        for path in list(session.ephemerals):
            self._write("zookeeper", session, Delete(path), seq)
        if how == "expired":
            session.lose(SessionExpired(text=f"the ZooKeeper session of {session.actor} has expired"))
            self.clock.later(self.half_trip, session.tell, store.EXPIRED, seq)

    def apply(self, session: MemorySession, op: Op, cause: int | None) -> Result:
        return self._handlers[type(op)](session, op, cause)

    # Reads. Each may arm a watch, and is recorded under the name of ZooKeeper's command.

    def _get(self, session: MemorySession, op: Get, cause: int | None) -> Result:
        node = self.tree.get(op.path)
        if node is None:
            return self._read(session, "get", op, Result(op, "NONODE"), cause)
        if op.watch:
            self._data_watches.setdefault(op.path, {})[session.id] = None
        return self._read(session, "get", op, Result(op, None, node.data, node.stat()), cause)

    def _exists(self, session: MemorySession, op: Exists, cause: int | None) -> Result:
        if op.watch:
            self._data_watches.setdefault(op.path, {})[session.id] = None
        node = self.tree.get(op.path)
        answer = Result(op, "NONODE") if node is None else Result(op, None, None, node.stat())
        return self._read(session, "exists", op, answer, cause)

    def _children(self, session: MemorySession, op: Children, cause: int | None) -> Result:
        node = self.tree.get(op.path)
        if node is None:
            return self._read(session, "children", op, Result(op, "NONODE"), cause)
        if op.watch:
            self._child_watches.setdefault(op.path, {})[session.id] = None
        return self._read(session, "children", op, Result(op, None, sorted(node.children), node.stat()), cause)

    def _read(self, session: MemorySession, action: str, op: Op, answer: Result, cause: int | None) -> Result:
        version = answer.stat.version if answer.stat else None
        self.trace.add(session.actor, "zk", action, path=op.path, zk_version=version, error=answer.error, cause=cause)
        return answer

    # Writes. Each is checked first and changes the tree only when nothing is wrong.

    def _create(self, session: MemorySession, op: Create, cause: int | None) -> Result:
        return self._write(session.actor, session, op, cause)

    _set = _delete = _create

    def _multi(self, session: MemorySession, op: Multi, cause: int | None) -> Result:
        undo: list[Any] = []
        zxid, parts = self.zxid, []
        for part in op.ops:
            error = self._problem(part)
            parts.append(Result(part, error))
            if error:
                break
            if not isinstance(part, Check):
                self.zxid = zxid  # all parts of a transaction share one zxid
                undo.append(self._change(session, part))
        if not parts or parts[-1].error is None:
            for part, (_, path, version, _) in zip([p for p in op.ops if not isinstance(p, Check)], undo, strict=True):
                self._written(session.actor, part, path, version, cause)
            values = iter(undo)
            return Result(op, None, tuple(
                Result(p) if isinstance(p, Check) else self._result(p, next(values)) for p in op.ops
            ))
        for take_back, *_ in reversed(undo):
            take_back()
        self.zxid = zxid
        failed = len(parts) - 1
        error = parts[failed].error
        self.trace.add(session.actor, "zk", "multi", path=parts[failed].op.path, error=error, cause=cause)
        rest = tuple(Result(p, "RUNTIMEINCONSISTENCY") for p in op.ops[failed + 1 :])
        return Result(op, error, (*(Result(p.op, "ROLLEDBACK") for p in parts[:failed]), parts[failed], *rest))

    def _write(self, actor: str, session: MemorySession, op: Create | Set | Delete, cause: int | None) -> Result:
        error = self._problem(op)
        if error:
            self.trace.add(actor, "zk", type(op).__name__.lower(), path=op.path, error=error, cause=cause)
            return Result(op, error)
        change = self._change(session, op)
        self._written(actor, op, change[1], change[2], cause)
        return self._result(op, change)

    def _result(self, op: Create | Set | Delete, change: tuple[Any, str, int | None, Stat | None]) -> Result:
        _, path, _, stat = change
        return Result(op, None, path if isinstance(op, Create) else None, stat)

    def _problem(self, op: Create | Set | Delete | Check) -> str | None:
        """ZooKeeper's code for why this write cannot be done now, or None."""
        if isinstance(op, Create):
            parent = self.tree.get(_parent(op.path))
            if not op.path.startswith("/") or (op.path.endswith("/") and not op.sequence) or "//" in op.path:
                return "BADARGUMENTS"
            if parent is None:
                return "NONODE"
            if parent.owner:
                return "NOCHILDRENFOREPHEMERALS"
            return "NODEEXISTS" if op.path in self.tree and not op.sequence else None
        node = self.tree.get(op.path)
        if node is None:
            return "NONODE"
        if op.version not in (store.ANY_VERSION, node.version):
            return "BADVERSION"
        return "NOTEMPTY" if isinstance(op, Delete) and node.children else None

    def _change(self, session: MemorySession, op: Create | Set | Delete) -> tuple[Any, str, int | None, Stat | None]:
        """Change the tree; returns how to take it back, the path, the new version and the new stat."""
        self.zxid += 1
        tree, path = self.tree, op.path
        if isinstance(op, Set):
            node = tree[path]
            old = node.data, node.version, node.mzxid
            node.data, node.version, node.mzxid = op.data, node.version + 1, self.zxid

            def restore() -> None:
                node.data, node.version, node.mzxid = old

            return restore, path, node.version, node.stat()
        parent = tree[_parent(path)]
        if isinstance(op, Create):
            if op.sequence:
                path = f"{path}{parent.created:010d}"
            name = path.rpartition("/")[2]
            node = tree[path] = Node(op.data, self.zxid, session.id if op.ephemeral else 0)
            parent.children[name] = None
            parent.created += 1
            if op.ephemeral:
                session.ephemerals[path] = None

            def uncreate() -> None:
                del tree[path], parent.children[name]
                parent.created -= 1
                session.ephemerals.pop(path, None)

            return uncreate, path, 0, None
        node, name = tree.pop(path), path.rpartition("/")[2]
        del parent.children[name]
        owner = self.sessions.get(node.owner) if node.owner else None
        (owner or session).ephemerals.pop(path, None)

        def undelete() -> None:
            tree[path] = node
            parent.children[name] = None
            if owner:
                owner.ephemerals[path] = None

        return undelete, path, None, None

    def _written(self, actor: str, op: Create | Set | Delete, path: str, version: int | None, cause: int | None) -> None:
        """Record a write that succeeded and fire the watches it touches."""
        action = type(op).__name__.lower()
        kind = ("ephemeral" if op.ephemeral else "persistent") if isinstance(op, Create) else None
        detail = None if isinstance(op, Delete) else op.data.decode("utf-8", "backslashreplace") or None
        seq = self.trace.add(actor, "zk", action, path=path, target=kind, zk_version=version, cause=cause, detail=detail)
        if isinstance(op, Set):
            self._fire(self._data_watches, path, store.DATA_CHANGED, seq, ())
            return
        deleted = isinstance(op, Delete)
        told = self._fire(self._data_watches, path, store.DELETED if deleted else store.CREATED, seq, ())
        if deleted:
            self._fire(self._child_watches, path, store.DELETED, seq, told)
        self._fire(self._child_watches, _parent(path), store.CHILDREN_CHANGED, seq, ())

    def _fire(self, watches: dict[str, dict[int, None]], path: str, event: str, seq: int, told: Any) -> dict[int, None]:
        """Fire the one-shot watches on a path; each session hears of one event once."""
        holders = watches.pop(path, None) or {}
        for number in holders:
            session = self.sessions.get(number)
            if session is not None and number not in told:
                fired = self.trace.add(session.actor, "watch", "fired", path=path, target=event, cause=seq)
                self.clock.later(self.half_trip, session._hear, WatchedEvent(event, path), fired)
        return holders

    async def dump(self) -> dict[str, tuple[bytes, int, int]]:
        return dict(self.snapshot())

    def snapshot(self) -> Iterator[tuple[str, tuple[bytes, int, int]]]:
        for path in sorted(self.tree):
            node = self.tree[path]
            if path != "/":
                yield path, (node.data, node.version, node.owner)

    async def close(self) -> None:
        """Nothing outlives the lab."""


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"

