"""Kazoo, with four habits changed, and our operations in the terms of its protocol.

1. Kazoo hands answers and fired watches to two threads, so that one may overtake the other. Here both are
   handed on in the order the server sent them, straight from the thread that reads the connection.
2. Kazoo forgets its watches when the connection breaks. Here, as in ZooKeeper's own client, they are set
   again on the next connection, and the server fires those whose znode has changed meanwhile.
3. Kazoo opens a new session by itself when the old one has expired. Here an expired session stays dead.
4. Kazoo waits a whole session timeout, shared among the hosts, for the answer to its greeting, which a server
   that is just starting may never give. Here it greets again after `GREETING_SECONDS`.

Everything that leans on kazoo's inner parts (2.10 and 2.11 were read) is in this file.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ZookeeperError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import KazooState
from kazoo.protocol.states import WatchedEvent as KazooEvent
from kazoo.security import OPEN_ACL_UNSAFE

from kafka_ctl.zookeeper.store import (
    CONNECTED,
    DISCONNECTED,
    EXPIRED,
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
)

Answered = Callable[[Exception | None, Any, int], None]
"""Called with an error or None, kazoo's response, and the zxid of the server's answer."""

CODES = {
    0: "ROLLEDBACK",
    -2: "RUNTIMEINCONSISTENCY",
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -7: "OPERATIONTIMEOUT",
    -8: "BADARGUMENTS",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -119: "NOTREADONLY",
    -122: "REQUESTTIMEOUT",
    -125: "QUOTAEXCEEDED",
    -127: "THROTTLEDOP",
}
"""ZooKeeper's error numbers (KeeperException.Code) and their names."""

GREETING_SECONDS = 2.0
"""How long a server may take to answer a new connection before another one is tried."""

# A lab breaks connections on purpose; what kazoo says about that would only clutter a notebook.
_log = logging.getLogger("kafka_ctl.kazoo")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class _DirectHandler(SequentialThreadingHandler):
    """Calls back at once in the connection's thread; our callbacks only pass things on to the event loop."""

    def start(self) -> None:
        """No threads for callbacks: kazoo then runs answers' callbacks where it is."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)


class _Watches(NamedTuple):
    zxid: int
    data: list[str]
    missing: list[str]
    children: list[str]


class _SetWatches(_Watches):
    """ZooKeeper's own request to arm watches again: those whose znode changed after `zxid` fire instead."""

    type = 101

    def serialize(self) -> bytearray:
        message = bytearray(wire.long_struct.pack(self.zxid))
        for paths in (self.data, self.missing, self.children):
            message += wire.int_struct.pack(len(paths))
            for path in paths:
                message += wire.write_string(path)
        return message

    @staticmethod
    def deserialize(message: bytes, offset: int) -> bool:
        return True


class Connection(KazooClient):
    """One session with a ZooKeeper.

    `on_event(type, path)` gets every fired watch, `on_state(state)` each change of state: Connected,
    Disconnected and Expired. They and `submit`'s callbacks run in the connection's thread and must not block.
    """

    def __init__(
        self,
        hosts: str,
        timeout: float,
        on_event: Callable[[str, str], None],
        on_state: Callable[[str], None],
    ) -> None:
        retry = {"max_tries": -1, "delay": 0.05, "backoff": 1.5, "max_delay": 0.5}
        again = ",".join([hosts] * max(1, math.ceil(timeout / GREETING_SECONDS / len(hosts.split(",")))))
        super().__init__(again, timeout, handler=_DirectHandler(), connection_retry=retry, logger=_log)
        self.servers, self._on_event, self._on_state = hosts, on_event, on_state
        self._missing: set[str] = set()  # watched paths at which no znode was
        self._last_event: KazooEvent | None = None
        self._severed = False
        self.final_zxid = 0
        """The zxid of closing the session; 0 before, and when the server could not be reached."""
        self.add_listener(self._state_changed)

    def submit(self, op: Op, path: Callable[[str], str], answered: Answered) -> None:
        """Send one operation; `path` turns the operation's paths into the server's."""
        answer = self.handler.async_result()

        def done(_: Any) -> None:
            if isinstance(op, Exists) and op.watch and answer.exception is None and answer.value is None:
                self._missing.add(path(op.path))
            answered(answer.exception, answer.value, self.last_zxid)

        answer.rawlink(done)
        self._call(_request(op, path, self._watched), answer)

    def shut(self) -> None:
        """Close the session, if the server can be reached, and free everything. May block for ten seconds."""
        self.stop()
        self._safe_close()
        self.close()

    def sever(self) -> None:
        """Drop the connection without closing the session, for good. `shut` then frees the rest."""
        self._severed = True
        self._stopped.set()
        self.cut()

    def steal(self) -> None:
        """Make the server end this session, by closing it over a second connection.

        Blocks until it has ended: a moment, or, while there is no server, until there is one again or we stop.
        """
        while not self._stopped.is_set():
            identity = self._session_id, self._session_passwd
            thief = KazooClient(self.servers, self._session_timeout / 1000, identity, logger=_log)
            with suppress(self.handler.timeout_exception):  # the server is gone
                thief.start(2)
                thief.stop()
            thief.close()
            self._stopped.wait(1)

    def cut(self) -> None:
        """Break the connection; a session that was not severed connects again."""
        with suppress(OSError, AttributeError):  # there may be no socket
            self._connection._socket.shutdown(socket.SHUT_RDWR)

    def _watched(self, event: KazooEvent) -> None:
        """Pass a fired watch on; kazoo reports a deletion to the data watch and to the child watch."""
        if event is not self._last_event and event.path:
            self._last_event = event
            self._on_event(_EVENTS[event.type], event.path)
            self._missing.discard(event.path)

    def _reset_watchers(self) -> None:
        """Kazoo drops all watches here, when the connection breaks. We keep them."""

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            if self._severed:
                self.cut()
                return
            for request in self._lost_watches():
                self._call(request, self.handler.async_result())
            self._on_state(CONNECTED)
        elif state == KazooState.SUSPENDED:
            self._on_state(DISCONNECTED)
        elif self._stopped.is_set():
            self.final_zxid = self.last_zxid
        else:
            self._stopped.set()  # or kazoo would go on to open another session
            self._on_state(EXPIRED)

    def _lost_watches(self, at_once: int = 1000) -> Iterator[_SetWatches]:
        """Requests for all watches held, a thousand paths each: a request has at most one megabyte."""
        data = sorted(path for path, held in self._data_watchers.items() if held)
        children = sorted(path for path, held in self._child_watchers.items() if held)
        present = [path for path in data if path not in self._missing]
        missing = [path for path in data if path in self._missing]
        for position, paths in enumerate((present, missing, children)):
            for start in range(0, len(paths), at_once):
                three: list[list[str]] = [[], [], []]
                three[position] = paths[start : start + at_once]
                yield _SetWatches(self.last_zxid, *three)


_EVENTS = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}


def _request(op: Op | Check, path: Callable[[str], str], watched: Callable[[KazooEvent], None]) -> Any:
    """Our operation as kazoo's request."""
    match op:
        case Get():
            return wire.GetData(path(op.path), watched if op.watch else None)
        case Exists():
            return wire.Exists(path(op.path), watched if op.watch else None)
        case Children():
            return wire.GetChildren2(path(op.path), watched if op.watch else None)
        case Create():
            flags = op.ephemeral * 1 + op.sequence * 2
            return wire.Create(path(op.path), op.data, OPEN_ACL_UNSAFE, flags)
        case Set():
            return wire.SetData(path(op.path), op.data, op.version)
        case Delete():
            return wire.Delete(path(op.path), op.version)
        case Check():
            return wire.CheckVersion(path(op.path), op.version)
        case Multi():
            return wire.Transaction([_request(part, path, watched) for part in op.ops])


def result(op: Op | Check, error: Exception | None, response: Any, path: Callable[[str], str]) -> Result:
    """Kazoo's response as our result; `path` turns the server's paths into the operation's."""
    if error is not None:
        return Result(op, code_name(error))
    match op:
        case Get():
            return Result(op, None, response[0] or b"", _stat(response[1]))
        case Exists():
            return Result(op, "NONODE") if response is None else Result(op, None, None, _stat(response))
        case Children():
            return Result(op, None, sorted(response[0]), _stat(response[1]))
        case Create():
            return Result(op, None, path(response))
        case Set():
            return Result(op, None, None, _stat(response))
        case Multi():
            parts = tuple(_part(part, answer, path) for part, answer in zip(op.ops, response, strict=True))
            wrong = [part.error for part in parts if part.error not in (None, "ROLLEDBACK", "RUNTIMEINCONSISTENCY")]
            return Result(op, wrong[0] if wrong else None, parts)
        case _:
            return Result(op)


def _part(op: Op | Check, answer: Any, path: Callable[[str], str]) -> Result:
    failed = isinstance(answer, Exception)
    return result(op, answer if failed else None, None if failed else answer, path)


def code_name(error: Exception) -> str:
    """ZooKeeper's name for kazoo's exception."""
    return CODES.get(error.code, "SYSTEMERROR") if isinstance(error, ZookeeperError) else "SYSTEMERROR"


def _stat(kazoo: Any) -> Stat:
    return Stat(kazoo.czxid, kazoo.mzxid, kazoo.version, kazoo.cversion, kazoo.ephemeralOwner, kazoo.numChildren)
