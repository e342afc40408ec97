"""Kazoo, with five habits changed; our operations in its terms, and its answers as our results.

1. Kazoo hands answers and fired watches to two threads, so that one may overtake the other. Here both are
   handed on in the order the server sent them, straight from the thread that reads the connection.
2. Kazoo forgets its watches when the connection breaks. Here, as in ZooKeeper's own client, they are set
   again on the next connection, and the server fires those whose znode has changed meanwhile.
3. Kazoo opens a new session by itself when the old one has expired. Here an expired session stays dead.
4. Kazoo waits a whole session timeout, shared among the hosts, for the answer to its greeting, which a server
   that is just starting may never give. Here it greets again after `GREETING_SECONDS`.
5. Kazoo needs some twenty system calls for an operation: it waits before each read and write, with a new `epoll` each
   time. Here it takes what has come in one call, sends what is to go out in one, and waits when there is neither.

Everything that leans on kazoo's inner parts (2.10 and 2.11 were read) is in this file.

Separate from `session.py` because it repairs a library, which that one uses.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kazoo.client import CLOSED_STATES, KazooClient
from kazoo.exceptions import ConnectionClosedError, ConnectionDropped, ZookeeperError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import Callback, KazooState, KeeperState, ZnodeStat
from kazoo.protocol.states import WatchedEvent as KazooEvent
from kazoo.retry import KazooRetry
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions

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
    Made,
    Multi,
    Op,
    Result,
    Set,
    Stat,
)

LABS = [ACL(Permissions.ALL & ~Permissions.ADMIN, ANYONE_ID_UNSAFE), ACL(Permissions.ADMIN, ANYONE_ID_UNSAFE)]
"""The rights that Kafka and most others give a znode (`OPEN_ACL_UNSAFE`: every client may do everything), in two
entries, which no other program writes: how a lab's znodes are recognised, whatever happens to the lab.
ZooKeeper 3.9.3: server/PrepRequestProcessor.java, fixupACL keeps the entries as they were given."""

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


def request(
    op: Op | Check, path: Callable[[str], str], watched: Callable[[KazooEvent], None], acl: list[ACL]
) -> object:
    """Our operation as kazoo's request; `acl` is for what it creates.

    A znode without content has no data at all, as Kafka makes it: a broker that finds an empty text in
    `/latest_producer_id_block` does not start. Kafka 2.0.1: zk/KafkaZkClient.scala, makeSurePersistentPathExists
    """
    match op:
        case Get():
            return wire.GetData(path(op.path), watched if op.watch else None)
        case Exists():
            return wire.Exists(path(op.path), watched if op.watch else None)
        case Children():
            return wire.GetChildren2(path(op.path), watched if op.watch else None)
        case Made():
            return wire.GetACL(path(op.path))
        case Create():
            flags = op.ephemeral * 1 + op.sequence * 2
            return wire.Create(path(op.path), op.data or None, acl, flags)
        case Set():
            return wire.SetData(path(op.path), op.data, op.version)
        case Delete():
            return wire.Delete(path(op.path), op.version)
        case Check():
            return wire.CheckVersion(path(op.path), op.version)
        case Multi():
            return wire.Transaction([request(part, path, watched, acl) for part in op.ops])


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
            return Result(op, None, list(response[0]), _stat(response[1]))
        case Made():
            return Result(op, None, response[0] == LABS, _stat(response[1]))
        case Create():
            return Result(op, None, path(response))
        case Set():
            return Result(op, None, None, _stat(response))
        case Multi():
            parts = tuple(
                result(part, answer if isinstance(answer, Exception) else None, answer, path)
                for part, answer in zip(op.ops, response, strict=True)
            )
            wrong = [part.error for part in parts if part.error not in (None, "ROLLEDBACK", "RUNTIMEINCONSISTENCY")]
            return Result(op, wrong[0] if wrong else None, parts)
        case _:
            return Result(op)


def code_name(error: Exception) -> str:
    """ZooKeeper's name for kazoo's exception."""
    return CODES.get(error.code, "SYSTEMERROR") if isinstance(error, ZookeeperError) else "SYSTEMERROR"


def _stat(kazoo: ZnodeStat) -> Stat:
    return Stat(
        kazoo.czxid,
        kazoo.mzxid,
        kazoo.version,
        kazoo.cversion,
        kazoo.ephemeralOwner,
        kazoo.numChildren,
        kazoo.ctime,
        kazoo.mtime,
        kazoo.pzxid,
        kazoo.dataLength,
        kazoo.aversion,
    )


Answered = Callable[[Exception | None, object, int], None]
"""Called with an error or None, kazoo's response, and the zxid of the server's answer."""

GREETING_SECONDS = 2.0
"""The time in which a server must answer a new connection before another one is tried."""

BLOCK = 65_536
"""The most bytes that are read from a socket at once."""
LAST_XID = 2**31 - 1
"""The last number of a request; then counting starts at 1 again."""

# A lab breaks connections on purpose; what kazoo says about that would only clutter a notebook.
_log = logging.getLogger("kafka_ctl.kazoo")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class _DirectHandler(SequentialThreadingHandler):
    """Calls back at once in the connection's thread; our callbacks only pass things on to the event loop."""

    at_hand: Callable[[], list[socket.socket]]

    def start(self) -> None:
        """No threads for callbacks: kazoo then runs answers' callbacks where it is."""

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        """The sockets that wake the connection's thread: it reads from the first, and need not wait there."""
        reads, writes = super().create_socket_pair()
        reads.setblocking(False)
        return reads, writes

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def select(self, read: list[socket.socket], *more: object) -> tuple[list[socket.socket], ...]:
        """The sockets that are ready. No wait while there is work at hand.

        Only kazoo's main loop asks for two sockets. Its other code waits for the rest of a message.
        """
        at_hand = self.at_hand() if len(read) > 1 else []
        return (at_hand, [], []) if at_hand else super().select(read, *more)


class _Answer:
    """The part of kazoo's `AsyncResult` that a connection needs: a callback, without a lock for threads that wait."""

    __slots__ = ("_done",)

    def __init__(self, done: Callable[[Exception | None, object], None]) -> None:
        self._done = done

    def set(self, response: object) -> None:
        self._done(None, response)

    def set_exception(self, error: Exception) -> None:
        self._done(error, None)


class _Pipeline(ConnectionHandler):
    """The socket of a connection, read and written in blocks.

    `_received` holds the bytes that were read and not yet taken. It is cleared before the next connection is made. A
    request is in `client._queue` until it is sent, and then in `client._pending` until it is answered.
    """

    client: Connection
    _xid: int

    def __init__(self, client: Connection, retry: KazooRetry) -> None:
        super().__init__(client, retry, _log)
        self._received = bytearray()

    def wake(self) -> None:
        """End the thread's wait for something to do."""
        with suppress(OSError, AttributeError):  # there may be no socket
            self._write_sock.send(b"\0")

    def _connect(self, *address: object) -> object:
        self._received.clear()
        return super()._connect(*address)

    def _invoke(self, timeout: float, request: object, xid: int | None = None) -> object:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, wire.Connect):
            self.client.granted = answer[0].time_out / 1000
        return answer

    def at_hand(self) -> list[socket.socket]:
        """The sockets with work that is known without a system call: answers to read, requests to send."""
        return [self._socket] * bool(self._received) + [self._read_sock] * bool(self.client._queue)

    def _read(self, length: int, timeout: float) -> bytes:
        with self._socket_error_handling():
            while len(self._received) < length:
                try:
                    block = self._socket.recv(BLOCK)
                except BlockingIOError:
                    if not self.handler.select([self._socket], [], [], timeout)[0]:
                        raise self.handler.timeout_exception("socket time-out during read") from None
                    continue
                if not block:
                    raise ConnectionDropped("socket connection broken")
                self._received += block
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def _write(self, message: bytes | bytearray, timeout: float) -> None:
        with self._socket_error_handling():
            try:
                sent = self._socket.send(message)
            except BlockingIOError:
                sent = 0
        if sent < len(message):
            super()._write(message[sent:], timeout)

    def _send_request(self, read_timeout: float, connect_timeout: float) -> None:
        """Read the bytes that woke the thread, and send all requests that are queued: there may be none any more."""
        with suppress(BlockingIOError):
            self._read_sock.recv(BLOCK)
        queue, sent, message = self.client._queue, [], bytearray()
        for position in range(len(queue)):
            request, answer = queue[position]
            self._xid = self._xid % LAST_XID + 1
            body = wire.int_struct.pack(self._xid) + wire.int_struct.pack(request.type) + request.serialize()
            message += wire.int_struct.pack(len(body)) + body
            sent.append((request, answer, self._xid))
        if not sent:  # a write of nothing fails on a broken connection, whose answers have yet to be read
            return
        self._write(message, connect_timeout)
        for each in sent:
            queue.popleft()
            self.client._pending.append(each)


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
    Disconnected and Expired. They and `submit`'s callbacks run in the connection's thread and must not block. A request
    that cannot be sent is answered at once, in the thread that made it.
    """

    def __init__(
        self,
        hosts: str,
        timeout: float,
        on_event: Callable[[str, str], None],
        on_state: Callable[[str], None],
        acl: list[ACL] = OPEN_ACL_UNSAFE,
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
        self._connection = _Pipeline(self, self._conn_retry.copy())
        self.handler.at_hand = self._connection.at_hand
        self.final_zxid = 0
        """The zxid of closing the session; 0 before, and when the server could not be reached."""
        self.add_listener(self._state_changed)

    def submit(self, op: Op, path: Callable[[str], str], answered: Answered) -> None:
        """Send one operation; `path` turns the operation's paths into the server's."""

        def done(error: Exception | None, response: object) -> None:
            if isinstance(op, Exists) and op.watch and error is None and response is None:
                self._missing.add(path(op.path))
            answered(error, response, self.last_zxid)

        self._call(request(op, path, self._watched, self.acl), _Answer(done))

    def _call(self, request: object, answer: _Answer) -> None:
        """Queue a request. Only the first one in the queue need wake the connection's thread.

        This holds because one thread alone, that of the event loop, queues requests while the session lives.
        """
        if self._state != KeeperState.CONNECTED or not self._queue:
            super()._call(request, answer)
            return
        self._queue.append((request, answer))
        if len(self._queue) == 1:  # those before it were sent just now
            self._connection.wake()
        if self._state in CLOSED_STATES:  # it was closed just now, and this request came too late to be failed
            answer.set_exception(ConnectionClosedError())

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

    def expire(self) -> None:
        """Make the server end this session, by closing it over a second connection.

        Blocks until it has ended: a moment, or, while there is no server, until there is one again or we stop.
        """
        while not self._stopped.is_set():
            identity = self._session_id, self._session_passwd
            second = KazooClient(self.servers, self._session_timeout / 1000, identity, logger=_log)
            with suppress(self.handler.timeout_exception):  # the server is gone
                second.start(2)
                second.stop()
            second.close()
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
