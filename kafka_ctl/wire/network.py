"""The network port over sockets: what controller and brokers send each other travels as Kafka's own bytes.

Each pair of brokers has one connection, as in Kafka: a request is sent when the one before has been answered. The
records of the trace travel beside it, by the number that request and response have in common.
Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from kafka_ctl.requests import Request, Response
from kafka_ctl.simulation.network import Network
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import decode_message
from kafka_ctl.wire.control import Sent, read_response, request_bytes
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.schema import RESPONSE, api_key, message_type
from kafka_ctl.wire.service import Shared
from kafka_ctl.wire.versions import sent_version

FIRST_NUMBER = 1 << 30
"""The first number of a request between brokers: no client counts so far."""


class Connection:
    """A broker's connection to another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, port: int, frame: bytes) -> bytes:
        """Send a request and return the answer without its length; ConnectionError when that does not come."""
        async with self.lock:
            try:
                if self.streams is None:
                    self.streams = await asyncio.open_connection(HOST, port)
                reader, writer = self.streams
                writer.write(frame)
                return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            except asyncio.IncompleteReadError:
                self.close()
                raise ConnectionResetError("the connection was closed before the answer came") from None
            except BaseException:  # also when nobody waits any more: the answer would be taken for the next one
                self.close()
                raise

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].transport.abort()
        self.streams = None


class WireNetwork(Network):
    """Connects the brokers of one lab by TCP."""

    def __init__(self, world: Any, shared: Shared) -> None:
        super().__init__(world.clock, world.costs.request, world.network.timeout)
        self.world, self.shared = world, shared
        self.brokers = world.brokers
        self._numbers = count(FIRST_NUMBER)
        self._connections: dict[tuple[int, int], Connection] = {}

    async def _deliver(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        broker = self.brokers.get(target)
        port = self.shared.ports.get(target)
        if not isinstance(request, Sent) or broker is None or not broker.listening or port is None:
            return await super()._deliver(source, target, request)
        key, version = api_key(request.name), sent_version(request.name, self.world.generation)
        number = next(self._numbers)
        frame = request_bytes(request, version, self._endpoints(), number, str(source))
        self.shared.causes[number], self.shared.answered[number] = CAUSE.get(), -1
        try:
            connection = self._connections.setdefault((source, target), Connection())
            raw = await connection.exchange(port, frame)
            _, answer = decode_message(message_type(key, version, RESPONSE), raw)
            return read_response(answer), self.shared.answered[number]
        finally:
            self.shared.causes.pop(number, None)
            del self.shared.answered[number]

    def _endpoints(self) -> dict[int, tuple[str, int, str | None]]:
        return {id: (HOST, self.shared.ports.get(id, -1), broker.rack) for id, broker in self.brokers.items()}

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
