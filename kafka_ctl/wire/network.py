"""The network port over sockets: what controller and brokers send each other travels as Kafka's own bytes.

Separate from `attach.py` because that one only joins a world with what listens and what sends.
Brokers of others, in a cluster that a lab has joined (`Lab(join=True, wire=True)`), are reached where they have
registered themselves; they get the four requests between controller and brokers, and the markers of transactions.

A connection belongs to a thread of the sender, as in Kafka: its controller, or its coordinator of transactions, has one
to each broker and sends a request when the one before has been answered. A marker waits for every replica in sync;
meanwhile the controller may notify the same broker that one of them is dead. The records of the trace travel beside
the request, by the number that it has in common with the response.
Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread;
coordinator/transaction/TransactionMarkerChannelManager.scala, TxnMarkerSenderThread
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count

from kafka_ctl.requests import (
    LeaderAndIsrRequest,
    Request,
    Response,
    UpdateMetadataRequest,
    WriteTxnMarkersRequest,
    api_name,
)
from kafka_ctl.simulation.network import Network
from kafka_ctl.simulation.world import World
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import decode_message
from kafka_ctl.wire.control import Endpoint, Sent, read_response, request_bytes
from kafka_ctl.wire.listeners import HOST, reason
from kafka_ctl.wire.schema import RESPONSE, api_key, message_type
from kafka_ctl.wire.service import Shared
from kafka_ctl.wire.versions import sent_version
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient

FIRST_NUMBER = 1 << 30
"""The first number of a request between brokers: no client counts so far."""


def _named(request: Sent) -> tuple[int, ...]:
    """The brokers whose addresses a request holds."""
    match request:
        case LeaderAndIsrRequest(live_leaders=live) | UpdateMetadataRequest(live_brokers=live):
            return live
    return ()


class Connection:
    """A broker's connection to another."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, host: str, port: int, frame: bytes) -> bytes:
        """Send a request and return the answer without its length.

        Raises ConnectionError if the answer does not come.
        """
        async with self.lock:
            try:
                if self.streams is None:
                    self.streams = await asyncio.open_connection(host, port)
                reader, writer = self.streams
                writer.write(frame)
                return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            except asyncio.IncompleteReadError:
                self.close()
                raise ConnectionResetError("the connection was closed before the answer came") from None
            except OSError as error:
                self.close()
                raise ConnectionRefusedError(f"{host}:{port} cannot be reached: {reason(error)}") from None
            except BaseException:  # also when no caller waits any more: the answer would be taken for the next one
                self.close()
                raise

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].transport.abort()
        self.streams = None


class WireNetwork(Network):
    """Connects the brokers of one lab by TCP."""

    def __init__(self, world: World, shared: Shared) -> None:
        super().__init__(world.clock, world.costs.request, world.network.timeout, world.network.connect)
        self.world, self.shared = world, shared
        self.brokers = world.brokers
        self._numbers = count(FIRST_NUMBER)
        self.connections: dict[tuple[int, int, bool], Connection] = {}
        """By sender, receiver, and whether the sender is a coordinator of transactions."""

    async def _deliver(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        broker = self.brokers.get(target)
        if not isinstance(request, Sent) or (broker is not None and not broker.listening):
            return await super()._deliver(source, target, request)
        endpoints = await self.endpoints(source, (target, *_named(request)))
        if target not in endpoints:
            raise ConnectionRefusedError(f"broker {target} refused the connection of broker {source}")
        host, port, _ = endpoints[target]
        key, version = api_key(api_name(request)), sent_version(api_name(request), self.world.generation)
        number = next(self._numbers)
        frame = request_bytes(request, version, endpoints, number, str(source))
        self.shared.causes[number], self.shared.answered[number] = CAUSE.get(), -1
        try:
            marks = isinstance(request, WriteTxnMarkersRequest)
            connection = self.connections.setdefault((source, target, marks), Connection())
            raw = await connection.exchange(host, port, frame)
            response = read_response(decode_message(message_type(key, version, RESPONSE), raw)[1])
            return response, self._recorded(number, target, api_name(request), response)
        finally:
            self.shared.causes.pop(number, None)
            del self.shared.answered[number]

    def _recorded(self, number: int, target: int, name: str, response: Response) -> int:
        """The `seq` of the record of an answer. Our own brokers have made one; for answers of others we make it. -1 for
        a marker, whose append is recorded."""
        if target in self.brokers or name == "WriteTxnMarkers":
            return self.shared.answered[number]
        error, cause = response.error, CAUSE.get()
        return self.world.trace.add(f"broker-{target}", "response", name, broker=target, error=error, cause=cause)

    async def endpoints(self, source: int, wanted: Iterable[int]) -> dict[int, Endpoint]:
        """Host, port and rack of our brokers, and of those of others that are wanted, as they have registered."""
        own = {id: (HOST, self.shared.ports[id], b.rack) for id, b in self.brokers.items() if id in self.shared.ports}
        others = [id for id in dict.fromkeys(wanted) if id not in self.brokers]
        asking = self.brokers.get(source)
        if not others or asking is None:
            return own
        known = asking.controller.context.brokers
        if any(id not in known for id in others):
            known = await KafkaZkClient(asking.zk).brokers(others)
        return own | {id: (known[id].host, known[id].port, known[id].rack) for id in others if id in known}

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
