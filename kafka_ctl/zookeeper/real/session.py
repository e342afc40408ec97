"""A session on a real ZooKeeper, its operations as records, and the writes that fired each of its watches.

Every session has a kazoo connection with its own thread (`kazoo_connection.py`). Results of that thread reach the event
loop through `_post` alone; all other code here runs on the loop.

The server notifies a watcher of a change at about the moment it answers the writer, over another connection.
zxids settle which write it was: the first one on that znode after the read that armed the watch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial

from kazoo.security import OPEN_ACL_UNSAFE

from kafka_ctl.errors import ConnectionLoss, SessionExpired, Unavailable
from kafka_ctl.ports import RealTime
from kafka_ctl.trace.record import CAUSE, Recorder
from kafka_ctl.zookeeper.real import kazoo_connection
from kafka_ctl.zookeeper.store import (
    CHILDREN_CHANGED,
    CONNECTED,
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
    Session,
    Set,
    StateListener,
    WatchedEvent,
    Watcher,
    parent_of,
    record_write,
)


class Inbox:
    """Answers and fired watches in order: a watch is held until the write that may have fired it is answered."""

    def __init__(self, store: SessionRegistry) -> None:
        self.store = store
        self._waiting: deque[tuple[WatchedEvent | None, int, Callable[[], None]]] = deque()
        self._armed: dict[tuple[str, str], int] = {}

    def arm(self, op: Op, result: Result | None, zxid: int) -> None:
        """Note the watch that an answered read has armed, if any."""
        watches = isinstance(op, (Get, Exists, Children)) and op.watch
        if watches and result is not None and (result.error is None or isinstance(op, Exists)):
            self._armed.setdefault(watch_keys(op)[0], zxid)

    def fired(self, event: WatchedEvent) -> int:
        """The zxid at which the watch that has fired was armed."""
        return min([self._armed.pop(key) for key in watch_keys(event) if key in self._armed], default=0)

    def put(self, act: Callable[[], None], event: WatchedEvent | None = None, armed: int = 0) -> None:
        """Queue up what the server said, and hand on whatever need not wait."""
        self._waiting.append((event, armed, act))
        self.deliver()
        self.store.deliver()

    def deliver(self) -> None:
        """Hand on what need not wait any more."""
        while self._waiting:
            event, armed, act = self._waiting[0]
            if event is not None and self.store.cause(event, armed) is None and self.store.awaits(event):
                return
            self._waiting.popleft()
            try:
                act()
            except Exception as error:  # of a watcher or listener; the rest must still be heard
                self.store.failed(error)


_log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds an operation waits, at most, for a lost connection to come back before it fails."""
CLOSE_SECONDS = 10.0
"""Seconds to wait until the server has closed the session."""


class RemoteSession(Session):
    """A session on a real server. Use timeouts of one second and more: kazoo pings no faster."""

    def __init__(
        self, store: SessionRegistry, actor: str, timeout: float, watcher: Watcher, listener: StateListener
    ) -> None:
        self.store, self.actor, self.timeout = store, actor, timeout
        self.watcher, self.listener = watcher, listener
        self.id = 0
        self.state = ""
        self.ended = False
        """True once its owner has closed or abandoned it."""
        self.private = False
        """The store's own session: its paths are the server's, chroot and all, and it leaves no records."""
        self._loop = asyncio.get_running_loop()
        self._up = asyncio.Event()
        self._calls: dict[asyncio.Future[Result], tuple[Op, int | None]] = {}
        """By the future of its answer, each operation that is on its way, and its cause."""
        self._posted: deque[Callable[[], None]] = deque()
        self._woken = False
        """True while the loop has yet to come to the calls in `_posted`."""
        self.inbox = Inbox(store)
        self.connection = kazoo_connection.Connection(
            store.servers,
            timeout,
            partial(self._post, self._event),
            partial(self._post, self._state_changed),
            store.acl,
            store.auth,
        )

    async def open(self) -> None:
        """Connect. Raises Unavailable if no server answers in time."""
        self.connection.start_async()
        try:
            await asyncio.wait_for(self._up.wait(), self.store.connect_seconds)
        except BaseException as error:
            self.abandon()
            if not isinstance(error, TimeoutError):
                raise
            raise Unavailable(f"ZooKeeper at {self.store.servers} does not answer; {self.store.advice}") from None

    @property
    def granted(self) -> float:
        """The timeout, in seconds, that the server has agreed to."""
        return self.connection.granted

    async def send(self, ops: Sequence[Op], window: int = 1) -> list[Result]:
        if not self._up.is_set() and not self.over:
            await self._reconnected()
        flying: deque[asyncio.Future[Result]] = deque()
        answers: list[Result] = []
        self.store.foreground(+1)
        try:
            for op in ops:
                if len(flying) >= window:
                    answers.append(await flying.popleft())
                flying.append(self._submit(op))
            while flying:
                answers.append(await flying.popleft())
        except (ConnectionLoss, SessionExpired) as lost:
            lost.answers = tuple(answers)
            raise
        finally:
            self.store.foreground(-1)
            for future in flying:
                if not future.cancel() and not future.cancelled():
                    future.exception()  # the first one is raised; asyncio need not complain of the others
        return answers

    async def caught_up(self) -> None:
        """Return when the session has received all that the server had sent by now; leaves no record."""
        heard = asyncio.Event()
        # Answers and fired watches come in the order in which the server sent them, so any answer will do.
        self.connection.submit(Exists("/"), self.store.inside, lambda *_: self._post(heard.set))
        await heard.wait()

    async def close(self) -> None:
        if self.over:
            self.ended = True
            return
        # For the watchers of our ephemerals, closing is one transaction that deletes them.
        gone = Multi(tuple(Delete(path) for path, owner in self.store.ephemerals.items() if owner == self.id))
        reached = self._up.is_set()
        self.ended = True
        self.store.sent(self, gone)
        await asyncio.wait([self._blocking(self.connection.shut)], timeout=CLOSE_SECONDS)
        self.store.answered(self, gone, None, 0, None)
        if reached and self.connection.final_zxid:
            self.store.session_ended(self, "closed", gone, self.connection.final_zxid)
        self._leave()

    def abandon(self) -> None:
        if not self.over:
            self.ended = True
            self.store.orphans |= {path: owner for path, owner in self.store.ephemerals.items() if owner == self.id}
            self.connection.sever()
            self._leave()
            self._blocking(self.connection.shut)

    def expire(self) -> None:
        """Have the server end this session while the client lives. Returns at once."""
        self._blocking(self.connection.expire)

    @property
    def over(self) -> bool:
        return self.ended or self.state == EXPIRED

    def _leave(self) -> None:
        self.store.sessions.discard(self)
        for path in [path for path, owner in self.store.ephemerals.items() if owner == self.id]:
            del self.store.ephemerals[path]
        self.store.deliver()

    def _blocking(self, work: Callable[[], object]) -> asyncio.Future[None]:
        """Run something that blocks in a thread; the future is done when it is, whatever came of it."""
        future: asyncio.Future[None] = self._loop.create_future()

        def finish() -> None:
            if not future.done():
                future.set_result(None)

        def run() -> None:
            try:
                work()
            except Exception as error:
                _log.debug("leaving ZooKeeper: %r", error)
            self._post(finish)

        try:
            threading.Thread(target=run, name=f"zookeeper-{self.actor}", daemon=True).start()
        except RuntimeError:  # a program that ends starts no threads (since Python 3.12)
            run()
        return future

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        """Cross over to the event loop, from any thread; a loop that has ended needs nothing.

        The loop is woken once for all calls that are posted until it comes to them. It makes them in order, and in an
        empty context: they are caused by what the server says, not by the task that posted the first of them.
        """
        if self._loop.is_closed():
            return
        self._posted.append(partial(callback, *args))
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # it closed just now
                self._loop.call_soon_threadsafe(self._make_calls, context=Context())

    def _make_calls(self) -> None:
        self._woken = False  # before the first call is taken, or one that is posted now would wait for the next
        try:
            while self._posted:
                self._posted.popleft()()
        finally:
            if self._posted:  # a call has failed, or another one was posted just now
                self._loop.call_soon(self._make_calls, context=Context())

    # Sending.

    async def _reconnected(self) -> None:
        """Give a lost connection a moment to come back, as ZooKeeper's own client does."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._up.wait(), min(PATIENCE, self.timeout / 3))

    def _submit(self, op: Op) -> asyncio.Future[Result]:
        if self.over:
            raise SessionExpired(op.path, f"the ZooKeeper session of {self.actor} has expired")
        if not self._up.is_set():
            raise ConnectionLoss(op.path)
        future: asyncio.Future[Result] = self._loop.create_future()
        self._calls[future] = op, CAUSE.get()
        self.store.sent(self, op)
        inside = str if self.private else self.store.inside
        self.connection.submit(op, inside, partial(self._post, self._answer, future))
        return future

    # Receiving. Each of these runs on the loop, in the order of the server's messages.

    def _answer(self, future: asyncio.Future[Result], error: Exception | None, response: object, zxid: int) -> None:
        if future not in self._calls:
            return
        op, cause = self._calls.pop(future)
        failed = kazoo_connection.code_name(error) if error is not None else ""
        lost = failed in ("CONNECTIONLOSS", "SESSIONEXPIRED")
        if failed == "CONNECTIONLOSS":
            self._up.clear()  # kazoo reports the loss only when no operation is left; one more would delay that
        outside = str if self.private else self.store.outside
        result = None if lost else kazoo_connection.result(op, error, response, outside)
        self.store.answered(self, op, result, zxid, cause)
        self.inbox.arm(op, result, zxid)
        self.inbox.put(partial(self._settle, future, op, result))

    def _settle(self, future: asyncio.Future[Result], op: Op, result: Result | None) -> None:
        if future.done():
            pass
        elif result is not None:
            future.set_result(result)
        else:
            future.set_exception(SessionExpired(op.path) if self.over else ConnectionLoss(op.path))

    def _event(self, kind: str, path: str) -> None:
        event = WatchedEvent(kind, self.store.outside(path))
        after = self.inbox.fired(event)
        self.inbox.put(partial(self._deliver, event, after), event, after)

    def _deliver(self, event: WatchedEvent, armed: int) -> None:
        if self.over:
            return
        token = CAUSE.set(self.store.fired(self.actor, event, self.store.cause(event, armed)))
        try:
            self.watcher(event)
        finally:
            CAUSE.reset(token)

    def _state_changed(self, state: str) -> None:
        if self.over:
            return
        first, self.state = not self.state, state
        cause = None
        if state == CONNECTED:
            if first:
                assert self.connection.client_id is not None
                self.id = self.connection.client_id[0]
            self._up.set()
        else:
            self._up.clear()
            for future, (op, _) in self._calls.items():  # sent while the connection was breaking
                self._settle(future, op, None)
        if state == EXPIRED:
            self._up.set()  # the tasks that wait for the connection must wake up
            cause = self.store.session_ended(self, "expired", Multi(()), 0)
            self._leave()
            self._blocking(self.connection.shut)
        if not first:
            # One turn later: a task that has yet to learn of the loss must not learn of the return first.
            self._loop.call_soon(self.inbox.put, partial(self._call, state, cause))

    def _call(self, state: str, cause: int | None) -> None:
        if self.ended:
            return
        token = CAUSE.set(cause)
        try:
            self.listener(state)
        finally:
            CAUSE.reset(token)


Key = tuple[str, str]
"""The key of a watch: (`data` or `children`, path)."""


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
            yield "children", parent_of(op.path)


class SessionRegistry:
    """The sessions of a store, the znodes that they made, and the records of what they did.

    A session reports here. `chroot` is where the paths of the lab begin. Without a `trace` nothing is recorded.
    """

    acl = OPEN_ACL_UNSAFE
    """Of the znodes that this store makes."""
    auth: Sequence[tuple[str, str]] = ()
    """The credentials of its sessions, each a scheme and its data."""
    advice = "start one with `kafka-ctl zookeeper`, or write `embedded` instead of the address"
    """The last part of the error where no server answers."""

    def __init__(
        self, servers: str, chroot: str, clock: RealTime | None, trace: Recorder | None, connect_seconds: float
    ) -> None:
        self.servers, self.chroot, self.connect_seconds = servers, chroot, connect_seconds
        self.clock, self.trace = clock, trace
        self.sessions: set[RemoteSession] = set()
        self.created: dict[str, int] = {}
        """The persistent znodes that sessions of this store made: path -> czxid."""
        self.doubtful: set[str] = set()
        """Those whose creation was under way when a connection broke: they may be ours, so they are left."""
        self.written: dict[str, int] = {}
        """The last writes of this store's sessions: path -> mzxid."""
        self.ephemerals: dict[str, int] = {}
        """Their ephemeral ones: path -> session id."""
        self.orphans: dict[str, int] = {}
        """Those of abandoned sessions: the server keeps them until it finds out."""
        self._flying: Counter[Key] = Counter()
        self._writes: dict[Key, deque[tuple[int, int]]] = {}

    def inside(self, path: str) -> str:
        """The server's path for one of ours. A malformed path stays malformed, and below the chroot."""
        if not path.startswith("/"):
            return f"{self.chroot}//{path}"
        return self.chroot + path if path != "/" else self.chroot or "/"

    def outside(self, path: str) -> str:
        """Our path for one of the server's."""
        return path.removeprefix(self.chroot) or "/"

    def failed(self, error: Exception) -> None:
        """A watcher or listener failed: report it to the driver of the clock, or else to the event loop."""
        if self.clock is not None:
            self.clock.failed(error)
        else:
            asyncio.get_running_loop().call_exception_handler({"message": str(error), "exception": error})

    def deliver(self) -> None:
        """An answer came in: sessions whose watches waited for it may go on."""
        for session in list(self.sessions):
            session.inbox.deliver()

    def foreground(self, change: int) -> None:
        """Let the clock know of operations on their way."""
        if self.clock is not None:
            self.clock.pending += change

    def sent(self, session: RemoteSession, op: Op) -> None:
        if self.trace is not None and not session.private:
            self._flying.update(touched(op))

    def answered(self, session: RemoteSession, op: Op, result: Result | None, zxid: int, cause: int | None) -> None:
        """Record an answer and note what it changed; None means that the connection broke first."""
        if session.private:
            return
        if self.trace is not None:
            for key in touched(op):  # one by one: `-=` of a Counter goes through all that it has
                self._flying[key] -= 1
                if not self._flying[key]:
                    del self._flying[key]
        if result is None:
            asked = op.ops if isinstance(op, Multi) else (op,)
            self.doubtful.update(part.path for part in asked if isinstance(part, Create) and not part.ephemeral)
            return
        parts = result.value if isinstance(op, Multi) and isinstance(result.value, tuple) else (result,)
        if isinstance(op, Multi) and result.error:
            refused = next((part for part in parts if part.error == result.error), result)
            if self.trace is not None:
                self.trace.add(session.actor, "zk", "multi", path=refused.op.path, error=result.error, cause=cause)
            return
        for part in parts:
            if part.error is None:
                self._note(part, session.id, zxid)
            if self.trace is not None and not isinstance(part.op, (Check, Multi)):
                self._record(self.trace, session.actor, part, zxid, cause)

    def _note(self, done: Result, session: int, zxid: int) -> None:
        """Note what a session has made, written or deleted."""
        op = done.op
        if isinstance(op, Create):
            if op.ephemeral:
                self.ephemerals[str(done.value)] = session
            else:
                self.created[str(done.value)] = zxid
        elif isinstance(op, Set) and done.stat:
            self.written[op.path] = done.stat.mzxid
        elif isinstance(op, Delete):
            self.created.pop(op.path, None)
            self.ephemerals.pop(op.path, None)

    def _record(self, trace: Recorder, actor: str, result: Result, zxid: int, cause: int | None) -> None:
        op, version = result.op, result.stat.version if result.stat else None
        if isinstance(op, (Create, Set, Delete)) and not result.error:
            path = op.path
            if isinstance(op, Create):
                path, version = str(result.value), 0
            seq = record_write(trace, actor, op, path, version, cause)
            self._remember(op._replace(path=path), zxid, seq)
        else:
            action = type(op).__name__.lower()
            trace.add(actor, "zk", action, path=op.path, zk_version=version, error=result.error, cause=cause)

    def session_ended(self, session: RemoteSession, how: str, gone: Multi, zxid: int) -> int | None:
        """Record that a session was `closed` or has `expired`, and that the ephemerals in `gone` went too."""
        if self.trace is None or session.private:
            return None
        end = self.trace.add("zookeeper", "zk", how, detail=f"session={session.id:#x} of {session.actor}")
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
