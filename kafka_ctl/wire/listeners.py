"""Where brokers listen: one port each on 127.0.0.1, kept for the broker's whole life, closed while it is down.

What comes is a length of four bytes and so many bytes. A length that is negative or above `socket.request.max.bytes`
ends the connection. Bytes are kept only as they arrive; who announces a large request waits until there is room for it.
Kafka 2.0.1: network/SocketServer.scala; common/network/NetworkReceive.java
"""

from __future__ import annotations

import asyncio
import socket

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.errors import Unavailable
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.service import Handler, Holding, RefusedFrame, Service, Shared

HOST = "127.0.0.1"
LARGEST = 100 << 20
"""Bytes of a request, at most: Kafka's `socket.request.max.bytes`."""
SMALL = 64 << 10
"""Bytes of a request for which nobody has to wait for room."""
ROOM = 2 * LARGEST
"""Bytes for large requests that are on their way to one broker."""
IDLE = 600.0
"""Seconds that a connection may be silent, also while its request waits: Kafka's `connections.max.idle.ms`."""
PATIENCE = 30.0
"""Seconds in which a large request must arrive once there is room, and an answer must be taken."""


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
        self._connections: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    async def open(self, at: socket.socket) -> None:
        self._listening = await asyncio.start_server(self._accept, sock=at, backlog=1024)

    def close(self) -> None:
        """Stop listening and drop every connection, answered or not."""
        assert self._listening is not None
        self._listening.close()
        for task in self._connections:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

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

    def __init__(self, shared: Shared, handlers: dict[str, Handler]) -> None:
        self.shared, self.handlers = shared, handlers
        self._ports: dict[BrokerProcess, int] = {}
        self._bound: dict[BrokerProcess, socket.socket] = {}
        self._servers: dict[BrokerProcess, Server] = {}

    def port(self, broker: BrokerProcess) -> int:
        """The port of a broker: a free one that is taken when it is first asked for."""
        if broker not in self._ports:
            bound = self._bound[broker] = _bind(0)
            self._ports[broker] = bound.getsockname()[1]
        self.shared.ports[broker.id] = self._ports[broker]
        return self._ports[broker]

    async def open(self, broker: BrokerProcess) -> None:
        """Listen at the broker's port."""
        assert isinstance(broker, Broker)
        port = self.port(broker)
        bound = self._bound.pop(broker, None) or _bind(port)
        server = self._servers[broker] = Server(Service(broker, self.shared, self.handlers))
        await server.open(bound)

    def close(self, broker: BrokerProcess) -> None:
        """Stop listening, if it does."""
        server = self._servers.pop(broker, None)
        if server is not None:
            server.close()
        bound = self._bound.pop(broker, None)
        if bound is not None:
            bound.close()


def _bind(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
    except OSError as error:
        bound.close()
        raise Unavailable(f"port {port} of {HOST} cannot be listened at: {error.strerror}") from None
    return bound
