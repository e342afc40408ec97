"""Kazoo, with four habits changed.

1. Kazoo hands answers and fired watches to two threads, so that one may overtake the other. Here both are
   handed on in the order the server sent them, straight from the thread that reads the connection.
2. Kazoo forgets its watches when the connection breaks. Here, as in ZooKeeper's own client, they are set
   again on the next connection, and the server fires those whose znode has changed meanwhile.
3. Kazoo opens a new session by itself when the old one has expired. Here an expired session stays dead.
4. Kazoo waits a whole session timeout, shared among the hosts, for the answer to its greeting, which a server
   that is just starting may never give. Here it greets again after `GREETING_SECONDS`.

Everything that leans on kazoo's inner parts (2.10 and 2.11 were read) is in this file and `protocol.py`.

Separate from `session.py` because it repairs a library, which that one uses.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import Callback, KazooState
from kazoo.protocol.states import WatchedEvent as KazooEvent
from kazoo.security import ACL

from kafka_ctl.zookeeper.real.protocol import EVERYBODYS, request
from kafka_ctl.zookeeper.store import CONNECTED, DISCONNECTED, EXPIRED, Exists, Op

Answered = Callable[[Exception | None, object, int], None]
"""Called with an error or None, kazoo's response, and the zxid of the server's answer."""

GREETING_SECONDS = 2.0
"""The time in which a server must answer a new connection before another one is tried."""

# A lab breaks connections on purpose; what kazoo says about that would only clutter a notebook.
_log = logging.getLogger("kafka_ctl.kazoo")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class _DirectHandler(SequentialThreadingHandler):
    """Calls back at once in the connection's thread; our callbacks only pass things on to the event loop."""

    def start(self) -> None:
        """No threads for callbacks: kazoo then runs answers' callbacks where it is."""

    def dispatch_callback(self, callback: Callback) -> None:
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
        acl: list[ACL] = EVERYBODYS,
        auth: Sequence[tuple[str, str]] = (),
    ) -> None:
        retry = {"max_tries": -1, "delay": 0.05, "backoff": 1.5, "max_delay": 0.5}
        again = ",".join([hosts] * max(1, math.ceil(timeout / GREETING_SECONDS / len(hosts.split(",")))))
        super().__init__(again, timeout, handler=_DirectHandler(), connection_retry=retry, logger=_log, auth_data=auth)
        self.servers, self.acl, self._on_event, self._on_state = hosts, acl, on_event, on_state
        self._missing: set[str] = set()  # watched paths at which no znode was
        self._last_event: KazooEvent | None = None
        self._severed = False
        self.granted = timeout
        """The session timeout, in seconds, that the server has agreed to."""
        self._connection._invoke = self._noting_timeout(self._connection._invoke)
        self.final_zxid = 0
        """The zxid of closing the session; 0 before, and when the server could not be reached."""
        self.add_listener(self._state_changed)

    def _noting_timeout(self, invoke: Callable[..., Any]) -> Callable[..., object]:
        def invoked(timeout: float, request: object, *more: object, **options: object) -> object:
            answer = invoke(timeout, request, *more, **options)
            if isinstance(request, wire.Connect):
                self.granted = answer[0].time_out / 1000
            return answer

        return invoked

    def submit(self, op: Op, path: Callable[[str], str], answered: Answered) -> None:
        """Send one operation; `path` turns the operation's paths into the server's."""
        answer = self.handler.async_result()

        def done(_: object) -> None:
            if isinstance(op, Exists) and op.watch and answer.exception is None and answer.value is None:
                self._missing.add(path(op.path))
            answered(answer.exception, answer.value, self.last_zxid)

        answer.rawlink(done)
        self._call(request(op, path, self._watched, self.acl), answer)

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
