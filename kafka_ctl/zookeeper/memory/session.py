"""A session on the ZooKeeper in this process, and what can become of its connection.

A request takes half a round trip to the server, and the answer takes the other half. A session outlives its connection:
while there is none, the client waits and the server counts; when it has heard nothing for the session's timeout, the
session expires, and the client learns that when it is connected again.

When a session expires: an idle client sends a ping every third of the timeout, so the server may have got its last
ping up to a third of the timeout before the client stopped sending; and the server checks sessions once a tick, so it
notices up to a tick late. A session therefore ends between two thirds of its timeout and the timeout plus one tick.
ZooKeeper 3.4.14: ClientCnxn.SendThread.run; server/SessionTrackerImpl.roundToInterval
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Protocol, TypeVar, TypeVarTuple

from kafka_ctl.errors import ConnectionLoss, SessionExpired, ZooKeeperError
from kafka_ctl.ports import Clock, Timer
from kafka_ctl.trace.record import CAUSE, Recorder
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.store import Children, Exists, Get, Op, Result, Session, StateListener, WatchedEvent, Watcher

Args = TypeVarTuple("Args")
What = TypeVar("What", str, WatchedEvent)
UP, DOWN = "up", "down"
"""The directions of a message: to the server, and from it."""
BEFORE, AFTER = "before", "after"
"""The moment of a break: before or after the server has applied the write."""
PING = 1 / 3
"""The part of its timeout after which a client that has sent nothing sends a ping."""
READ_TIMEOUT_FRACTION = 2 / 3
"""The part of its timeout after which a client gives up a connection on which it receives nothing."""


class Server(Protocol):
    """The part of the server that a session needs."""

    clock: Clock
    trace: Recorder
    half_trip: float
    tick: float
    tick_phase: float
    up: bool
    slow: dict[tuple[str, str], float]

    def apply(self, session: MemorySession, op: Op, cause: int | None) -> Result:
        """Carry out one operation of this session."""

    def end(self, session: MemorySession, how: str, cause: int | None = None) -> None:
        """Remove a session and its ephemeral znodes; `how` is `closed` or `expired`."""

    def reconnect_later(self, session: MemorySession) -> None:
        """Let a client whose connection the server has closed connect again, after the client's delay."""


class MemorySession(Session):
    """A session on a `MemoryStore`; it is part of the process that opened it, and stands still with it.

    `tests/unit/test_relations.py` asserts the relations named below.
    """

    def __init__(
        self, server: Server, number: int, actor: str, timeout: float, watcher: Watcher, listener: StateListener
    ) -> None:
        self.server, self.id, self.actor, self.timeout = server, number, actor, timeout
        self.watcher, self.listener = watcher, listener
        self.alive = True
        """The server still knows this session; once False, it stays False, and no ephemeral znode is its own."""
        self.listening = True
        """The client still exists and receives events; once False, it stays False."""
        self.connected = self.sends = self.receives = self.running = True
        """There is a connection, messages arrive in both directions, and the client's process does not stand still.

        Without a connection no request is in `_waiting`: each has got an error.
        """
        self.fails_next_write: str | None = None
        """The moment at which the connection breaks at the next write; None if it does not."""
        self._arrival: dict[str, float] = {}
        """The arrival of the last message in each direction, where one is or was slow."""
        self._context = copy_context()
        self._waiting: dict[asyncio.Future[list[Result]], None] = {}
        """The answers that are outstanding; the server applies nothing of a request that is not among them."""
        self._missed: list[tuple[bool, Callable[[], None]]] = []
        """Pairs: True for a change of state, False for an event; and the call that would notify the client."""
        self._expiry: Timer | None = None
        """Pending while the server hears nothing of a session that is alive, as without a connection."""
        self._cuts = 0
        """The number of times that a connection which was whole was cut."""
        self._sent = server.clock.now()
        """The last time that the client sent something other than a ping."""

    @property
    def waiting(self) -> int:
        """The number of answers that the client waits for."""
        return len(self._waiting)

    @property
    def missed(self) -> int:
        """The number of events and changes of state of which the client was not notified."""
        return len(self._missed)

    # Sending

    async def send(self, ops: Sequence[Op], window: int = 1) -> list[Result]:
        answers: list[Result] = []
        try:
            for start in range(0, len(ops), window):
                answers += await self._trip(ops[start : start + window])
        except ZooKeeperError as lost:
            lost.answers = tuple(answers)
            raise
        return answers

    def _trip(self, ops: Sequence[Op]) -> asyncio.Future[list[Result]]:
        if not self.connected and self.listening:
            raise ConnectionLoss(ops[0].path)
        if not self.alive or not self.listening:
            raise SessionExpired(ops[0].path, f"the ZooKeeper session of {self.actor} has expired")
        server = self.server
        answer = server.clock.loop.create_future()
        self._waiting[answer] = None
        if self.sends:
            self._sent = server.clock.now()
            self._transmit(UP, self._arrive, ops, CAUSE.get(), answer)
        return answer

    def _transmit(
        self, direction: str, callback: Callable[[*Args], None], *args: *Args, context: Context | None = None
    ) -> None:
        """Call when what is sent now gets there: half a round trip later or more, and not before earlier messages."""
        server = self.server
        when = server.clock.now() + server.half_trip
        if server.slow:
            when = max(when + server.slow.get((self.actor, direction), 0.0), self._arrival.get(direction, 0.0))
            self._arrival[direction] = when
        server.clock.at(when, callback, *args, context=context)

    def _arrive(self, ops: Sequence[Op], cause: int | None, answer: asyncio.Future[list[Result]]) -> None:
        """At the server: apply what came in together, in order, unless the connection broke on the way."""
        if answer not in self._waiting:
            return
        if not self.alive:
            self.fail_pending(SessionExpired(ops[0].path, f"the ZooKeeper session of {self.actor} is over"))
            return
        moment = self.fails_next_write if self.fails_next_write and any(map(_writes, ops)) else None
        if moment == BEFORE:
            self.break_connection()
            return
        server = self.server
        results = [server.apply(self, op, cause) for op in ops]
        if moment == AFTER:
            self.break_connection()
        elif self.receives:
            self._transmit(DOWN, self._answered, answer, results)

    def _answered(self, answer: asyncio.Future[list[Result]], results: list[Result]) -> None:
        self._waiting.pop(answer, None)
        if not answer.done():
            answer.set_result(results)

    def fail_pending(self, error: Exception) -> None:
        """Answer everything outstanding with an error."""
        waiting, self._waiting = self._waiting, {}
        for answer in waiting:
            if not answer.done():
                answer.set_exception(error)

    # Hearing

    def deliver(self, event: WatchedEvent, seq: int) -> None:
        """A watch has fired: the client is notified half a round trip later."""
        self._deliver_later(self.watcher, event, seq)

    def state_changed(self, state: str, seq: int | None) -> None:
        self._deliver_later(self.listener, state, seq)

    def _deliver_later(self, listener: Callable[[What], None], what: What, seq: int | None) -> None:
        self._transmit(DOWN, self._call, listener, what, seq, context=self._context)

    def _call(self, listener: Callable[[What], None], what: What, seq: int | None) -> None:
        if not (self.connected and self.receives):
            again = partial(self._deliver_later, listener, what, seq)
            self._missed.append((listener is self.listener, again))
        elif self.listening:
            CAUSE.set(seq)
            if what == store.EXPIRED:
                self.listening = False  # the client has done with this session, whatever becomes of its connection
            listener(what)

    # The connection

    def break_connection(self) -> None:
        """The connection breaks and, a tenth of a second later, is there again."""
        self.fails_next_write = None
        self.disconnect()
        self.server.clock.later(0.1, self.reconnect)

    def disconnect(self) -> None:
        """Lose the connection: pending requests fail, and the server starts its expiry timer."""
        if self.connected and self.listening:
            self.connected = False
            self.server.trace.add(self.actor, "zk", "disconnected", detail=f"session={self.id:#x}")
            self.server.clock.loop.call_soon(self.listener, store.DISCONNECTED, context=self._context)
            self.fail_pending(ConnectionLoss())
            self.start_expiry_timer()

    def reconnect(self) -> None:
        """Connect again, if nothing is cut: the client learns what it has missed."""
        free = self.sends and self.receives and self.running and self.server.up
        if self.connected or not self.listening or not free:
            return
        self.connected = True
        self.server.trace.add(self.actor, "zk", "reconnected", detail=f"session={self.id:#x}")
        self.cancel_expiry_timer()
        missed, self._missed = self._missed, []
        if self.alive:
            self.state_changed(store.CONNECTED, None)
        for is_state, deliver in missed:
            if self.alive or is_state:
                deliver()

    def cut(self, sends: bool, receives: bool) -> None:
        """Messages are lost in one direction or in both, until further notice; the client finds out after a while."""
        whole = self.sends and self.receives
        self.sends, self.receives = sends, receives
        if not (sends and receives):
            self._cuts += whole
            self.server.clock.later(self.timeout * READ_TIMEOUT_FRACTION, self._give_up, self._cuts)
            if not sends:
                self.start_expiry_timer()
        elif not whole:
            self.disconnect()
            self.reconnect()

    def _give_up(self, cut: int) -> None:
        """Give up the connection unless it was healed after this cut."""
        if cut == self._cuts and not (self.sends and self.receives):
            self.disconnect()

    def pause(self) -> None:
        self.running = False
        self.start_expiry_timer()

    def resume(self) -> None:
        self.running = True
        if self.connected and self.listening and not self.alive:  # the server has closed the connection meanwhile
            self.disconnect()
            self.server.reconnect_later(self)
            return
        if self.connected and self.sends:
            self.cancel_expiry_timer()
        self.reconnect()

    def start_expiry_timer(self) -> None:
        """The server receives no heartbeat: unless that changes, the session expires."""
        if self._expiry is None and self.alive:
            now, ping = self.server.clock.now(), self.timeout * PING
            exact = not self.server.tick
            heard = now if exact else self._sent + (now - self._sent) // ping * ping
            self._expire_after(heard)

    def _expire_after(self, heard: float) -> None:
        """Let the session expire at the first tick at which its timeout has passed since the server heard of it."""
        server, end = self.server, heard + self.timeout
        if server.tick:
            tick = min(server.tick, self.timeout / 2)  # a ZooKeeper grants no session shorter than two of its ticks
            phase = server.tick_phase * tick
            end = phase + ((end - phase) // tick + 1) * tick
        self._expiry = server.clock.later(end - server.clock.now(), self._timed_out, CAUSE.get())

    def cancel_expiry_timer(self) -> None:
        self._sent = self.server.clock.now()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def server_restarted(self) -> None:
        """A server that starts gives every session its whole timeout again."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expire_after(self.server.clock.now())

    def _timed_out(self, cause: int | None) -> None:
        self._expiry = None
        if self.server.up:
            self.server.end(self, "expired", cause)
        else:
            self._expire_after(self.server.clock.now())

    # The end

    async def close(self) -> None:
        if self.alive and self.listening and self.connected:
            await self.server.clock.sleep(self.server.half_trip)
            self.listening = False
            self.server.end(self, "closed")
        self.listening = False

    def abandon(self) -> None:
        self.listening = False
        self.start_expiry_timer()


def _writes(op: Op) -> bool:
    return not isinstance(op, (Get, Exists, Children))
