"""The listeners of brokers: one port each on 127.0.0.1, kept for the broker's whole life, closed while it is down.

A request is a length of four bytes and so many bytes. A length that is negative or above `socket.request.max.bytes`
ends the connection. Bytes are kept only as they arrive; a client that announces a large request waits until there is
room for it.
Kafka 2.0.1: network/SocketServer.scala; common/network/NetworkReceive.java
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Coroutine
from contextlib import ExitStack

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.errors import Unavailable
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.service import Handler, Holding, RefusedFrame, Service, Shared

HOST = "127.0.0.1"
LARGEST = 100 << 20
"""Bytes of a request, at most: Kafka's `socket.request.max.bytes`."""
SMALL = 64 << 10
"""The largest request, in bytes, that never waits for room."""
ROOM = 2 * LARGEST
"""Bytes for large requests that are on their way to one broker."""
IDLE = 600.0
"""Seconds that a connection may be silent, also while its request waits: Kafka's `connections.max.idle.ms`."""
SHORT = 1.0
"""Seconds until the next attempt where a connection could not be accepted."""
PATIENCE = 30.0
"""Seconds in which a large request must arrive once there is room, and an answer must be taken."""


class PortTaken(Unavailable):
    """A port was asked for that cannot be listened at."""


def reason(error: OSError) -> str:
    """The system's words for an error; for too many open files, sockets among them, also what raises the limit."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{error.strerror}; `ulimit -n` shows and raises how many one process may have"
    return str(error.strerror)


class Room:
    """A number of bytes that several connections share."""

    def __init__(self, size: int) -> None:
        self.left = size
        self._changed = asyncio.Condition()

    async def take(self, size: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.left >= size)
            self.left -= size

    async def give_back(self, size: int) -> None:
        async with self._changed:
            self.left += size
            self._changed.notify_all()


class Server:
    """The connections of one broker process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.room = Room(ROOM)
        self._tasks: set[asyncio.Task[None]] = set()
        self._at: socket.socket | None = None

    def open(self, at: socket.socket) -> None:
        """Accept connections from now on."""
        at.listen(1024)
        at.setblocking(False)
        self._at = at
        self._spawn(self._accept(at))

    def close(self) -> None:
        """Stop listening and drop every connection, answered or not."""
        assert self._at is not None
        asyncio.get_running_loop().remove_reader(self._at)
        self._at.close()
        for task in self._tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[object, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, at: socket.socket) -> None:
        """Accept one connection after the other; where files are short, try again every second and say so once.

        asyncio's own server prints a traceback each time.
        """
        is_short = False
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(at)
                reader, writer = await asyncio.open_connection(sock=connection)
            except ConnectionError:
                continue  # the client has gone already
            except OSError as error:
                if not is_short:
                    CAUSE.set(None)
                    self.service.refused("UNKNOWN_SERVER_ERROR", f"a connection cannot be accepted: {reason(error)}")
                is_short = True
                await asyncio.sleep(SHORT)
                continue
            is_short = False
            self._spawn(self.serve(reader, writer))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests, one after another, until it ends."""
        CAUSE.set(None)
        holding = Holding(self.service.unsent)
        try:
            while (frame := await self._frame(reader)) is not None:
                async with asyncio.timeout(IDLE):
                    answer = await self.service.answer(frame, holding)
                if answer is not None:
                    holding.hold(len(answer))
                    writer.write(answer)
                    del answer  # the transport has a copy
                    async with asyncio.timeout(PATIENCE):
                        await writer.drain()
                holding.hold(0)
        except RefusedFrame as refused:
            self.service.refused(refused.error, str(refused))
        except asyncio.IncompleteReadError as cut:
            self.service.refused("INVALID_RECEIVE", f"cut short: {len(cut.partial)} bytes of {cut.expected}")
        except TimeoutError:
            large = f"for {PATIENCE:g} s half of a large one came, or an answer was not taken"
            self.service.refused("TIMED_OUT", f"for {IDLE:g} s a request waited or half of one came, or {large}")
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or we go
        except Exception as error:
            self.service.refused("UNKNOWN_SERVER_ERROR", repr(error))
            self.service.shared.world.clock.failed(error)
        finally:
            holding.hold(0)
            writer.transport.abort() if self.service.broker.listening is False else writer.close()

    async def _frame(self, reader: asyncio.StreamReader) -> bytes | None:
        """The next request without its length; None where the connection ends between two."""
        try:
            async with asyncio.timeout(IDLE):
                head = await reader.readexactly(4)
        except asyncio.IncompleteReadError as end:
            if end.partial:
                raise
            return None
        except TimeoutError:
            return None
        size = int.from_bytes(head, "big", signed=True)
        if not 0 <= size <= LARGEST:
            limit = f"size = {size} larger than {LARGEST}" if size > 0 else f"size = {size}"
            raise RefusedFrame("INVALID_RECEIVE", f"Invalid receive ({limit})")
        if size <= SMALL:
            async with asyncio.timeout(IDLE):
                return await reader.readexactly(size)
        await self.room.take(size)
        try:
            async with asyncio.timeout(PATIENCE):
                return await reader.readexactly(size)
        finally:
            await self.room.give_back(size)


class WireListeners:
    """The servers of all brokers of a lab."""

    def __init__(self, shared: Shared, handlers: dict[str, Handler], first_port: int | None = None) -> None:
        self.shared, self.handlers, self.first_port = shared, handlers, first_port
        self._ports: dict[BrokerProcess, int] = {}
        self._bound: dict[BrokerProcess, socket.socket] = {}
        self._servers: dict[BrokerProcess, Server] = {}

    def port(self, broker: BrokerProcess) -> int:
        """The port of a broker: a free one, or the next from `first_port` on; taken when it is first asked for."""
        if broker not in self._ports:
            wanted = 0 if self.first_port is None else self.first_port + len(self._ports)
            bound = self._bound[broker] = _bind(wanted)
            self._ports[broker] = bound.getsockname()[1]
        self.shared.ports[broker.id] = self._ports[broker]
        return self._ports[broker]

    async def open(self, broker: BrokerProcess) -> None:
        assert isinstance(broker, Broker)
        port = self.port(broker)
        bound = self._bound.pop(broker, None) or _bind(port)
        server = self._servers[broker] = Server(Service(broker, self.shared, self.handlers))
        server.open(bound)

    def close(self, broker: BrokerProcess) -> None:
        """Stop listening, if it does."""
        server = self._servers.pop(broker, None)
        if server is not None:
            server.close()
        bound = self._bound.pop(broker, None)
        if bound is not None:
            bound.close()


def _bind(port: int) -> socket.socket:
    if port > 65535:
        raise PortTaken(f"cannot listen on port {port} of {HOST}: the last port is 65535")
    with ExitStack() as stack:
        try:
            bound = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((HOST, port))
        except OSError as error:
            if port:
                raise PortTaken(f"cannot listen on port {port} of {HOST}: {reason(error)}") from None
            raise Unavailable(f"cannot listen on a free port of {HOST}: {reason(error)}") from None
        stack.pop_all()
    return bound
