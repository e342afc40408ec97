"""The operations of sessions on a real ZooKeeper, as records, and the writes that fired each watch.

The server notifies a watcher of a change at about the moment it answers the writer, over another connection.
zxids settle which write it was: the first one on that znode after the read that armed the watch.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.store import (
    CHILDREN_CHANGED,
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
    WatchedEvent,
)

Key = tuple[str, str]
"""The key of a watch: (`data` or `children`, path)."""


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def watch_keys(op_or_event: Op | WatchedEvent) -> tuple[Key, ...]:
    """The key of a read's watch, or of the watches that an event uses up (the likeliest first)."""
    data, children = ("data", op_or_event.path), ("children", op_or_event.path)
    if isinstance(op_or_event, WatchedEvent):
        return (children,) if op_or_event.type == CHILDREN_CHANGED else (data, children)
    return (children,) if isinstance(op_or_event, Children) else (data,)


def touched(op: Op | Check) -> Iterator[Key]:
    """The watches a write may fire."""
    if isinstance(op, Multi):
        for part in op.ops:
            yield from touched(part)
    elif isinstance(op, (Create, Set, Delete)):
        yield "data", op.path
        if not isinstance(op, Set):
            yield "children", parent(op.path)


class OperationRecorder:
    """Puts the answers of one store's sessions into its trace; without a trace it does nothing."""

    def __init__(self, trace: Recorder | None) -> None:
        self.trace = trace
        self._flying: Counter[Key] = Counter()
        self._writes: dict[Key, deque[tuple[int, int]]] = {}

    def sent(self, op: Op) -> None:
        """Record that this operation is on its way."""
        if self.trace is not None:
            self._flying.update(touched(op))

    def answered(self, actor: str, op: Op, result: Result | None, zxid: int, cause: int | None) -> None:
        """Record an answer; `result` is None when the connection broke before it came."""
        if self.trace is None:
            return
        for key in touched(op):
            self._flying[key] -= 1
            if not self._flying[key]:
                del self._flying[key]
        if result is None:
            return
        if not isinstance(op, Multi):
            self._record(actor, result, zxid, cause)
        elif result.error:
            refused = next((part for part in _parts(result) if part.error == result.error), result)
            self.trace.add(actor, "zk", "multi", path=refused.op.path, error=result.error, cause=cause)
        else:
            for part in _parts(result):
                if not isinstance(part.op, Check):
                    self._record(actor, part, zxid, cause)

    def _record(self, actor: str, result: Result, zxid: int, cause: int | None) -> None:
        assert self.trace is not None
        op, action = result.op, type(result.op).__name__.lower()
        if result.error or isinstance(op, (Get, Exists, Children)):
            version = result.stat.version if result.stat else None
            self.trace.add(actor, "zk", action, path=op.path, zk_version=version, error=result.error, cause=cause)
            return
        path, version, kind, detail = op.path, None, None, None
        if isinstance(op, Create):
            path, version, kind = str(result.value), 0, "ephemeral" if op.ephemeral else "persistent"
        if isinstance(op, Set) and result.stat:
            version = result.stat.version
        if isinstance(op, (Create, Set)):
            detail = op.data.decode("utf-8", "backslashreplace") or None
        seq = self.trace.add(
            actor, "zk", action, path=path, target=kind, zk_version=version, cause=cause, detail=detail
        )
        self._remember(Delete(path) if kind or isinstance(op, Delete) else op, zxid, seq)

    def ended(self, actor: str, session: int, how: str, gone: Multi, zxid: int) -> int | None:
        """Record that a session was `closed` or has `expired`, and that the ephemerals in `gone` went too."""
        if self.trace is None:
            return None
        end = self.trace.add("zookeeper", "zk", how, detail=f"session={session:#x} of {actor}")
        for op in gone.ops:
            seq = self.trace.add("zookeeper", "zk", "delete", path=op.path, cause=end)
            self._remember(op, zxid, seq)
        return end

    def _remember(self, op: Op | Check, zxid: int, seq: int) -> None:
        for key in touched(op):
            self._writes.setdefault(key, deque(maxlen=8)).append((zxid, seq))

    def cause(self, event: WatchedEvent, armed: int) -> int | None:
        """The record of the write that fired a watch armed at zxid `armed`; None if no client of this lab made it."""
        writes = self._writes.get(watch_keys(event)[0], ())
        return next((seq for zxid, seq in writes if zxid > armed), None)

    def awaits(self, event: WatchedEvent) -> bool:
        """True if a write that may have fired this watch is still unanswered."""
        return watch_keys(event)[0] in self._flying

    def fired(self, actor: str, event: WatchedEvent, cause: int | None) -> int | None:
        if self.trace is None:
            return None
        return self.trace.add(actor, "watch", "fired", path=event.path, target=event.type, cause=cause)


def _parts(result: Result) -> tuple[Result, ...]:
    return result.value if isinstance(result.value, tuple) else ()
