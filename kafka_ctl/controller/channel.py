"""A channel per broker: requests leave one at a time, in order, until each is answered.

A request whose connection fails is sent again, until it is answered or the broker is removed.
Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from kafka_ctl.controller.failures import failure
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.requests import ControlRequest, Response, StopReplicaRequest
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

RETRY_BACKOFF = 0.1
"""Seconds between two attempts of a channel to deliver the same request."""

Callback = Callable[[int, Response], None]
"""Called with the broker that answered and its answer."""


class Channel:
    """The queue of requests for one broker and the task that delivers them."""

    def __init__(self, process: ControllerProcess, broker: int) -> None:
        self.process, self.broker = process, broker
        self.queue: deque[tuple[ControlRequest, Callback | None, int]] = deque()
        self._arrived = asyncio.Event()
        self._correlation_id = 0
        self.task = process.spawn(self.deliver())

    def put(self, request: ControlRequest, callback: Callback | None) -> None:
        self.queue.append((request, callback, CAUSE.get() or 0))
        self._arrived.set()

    async def deliver(self) -> None:
        process = self.process
        while True:
            while not self.queue:
                self._arrived.clear()
                await self._arrived.wait()
            request, callback, cause = self.queue[0]
            CAUSE.set(cause)
            detail = details.write(partitions=len(request.partitions), correlation_id=self._correlation_id)
            self._correlation_id += 1
            epoch, receiver = request.controller_epoch, self.broker
            sent = process.record(
                "request", request.name, broker=receiver, target="sent", controller_epoch=epoch, detail=detail
            )
            CAUSE.set(sent)
            response, answered = await self._until_answered(request)
            self.queue.popleft()
            if callback is not None:
                CAUSE.set(answered)
                callback(self.broker, response)

    async def _until_answered(self, request: ControlRequest) -> tuple[Response, int]:
        """Send and, when the connection fails, wait and send again; cancelled when the broker is removed."""
        process, name, failed = self.process, request.name, False
        while True:
            try:
                return await process.network.call(process.id, self.broker, request)
            except ConnectionError as error:
                if not failed:
                    process.record("response", name, broker=self.broker, error="DISCONNECTED", detail=str(error))
                failed = True
                await process.clock.sleep(RETRY_BACKOFF)


class Channels:
    """One channel for each registered broker.

    Kafka 2.0.1: controller/ControllerChannelManager.scala, ControllerChannelManager
    """

    def __init__(self, process: ControllerProcess) -> None:
        self.process = process
        self.open = False
        self._by_broker: dict[int, Channel] = {}

    def start(self, brokers: Iterable[int]) -> None:
        """Open a channel to each of these brokers.

        Channels of an earlier term exist only if 0.10 was forced to resign: it deletes nothing but `/controller`
        then. They stay, and their metrics forbid new ones, so that StateChangeFailed ends every attempt
        of this broker to act as controller.
        Kafka 0.10.2.2: controller/ControllerChannelManager.scala, addNewBroker; server/ZookeeperLeaderElector.scala,
        resign
        """
        if not self.process.generation.failover.resigns_before_moving and self._by_broker:
            raise failure("already_connected")
        self.close()
        self.open = True
        for broker in brokers:
            self.add(broker)

    def add(self, broker: int) -> None:
        if broker not in self._by_broker:
            self._by_broker[broker] = Channel(self.process, broker)

    def remove(self, broker: int) -> None:
        """Remove a broker; requests that are still queued for it are lost."""
        channel = self._by_broker.pop(broker, None)
        if channel is not None:
            channel.task.cancel()

    def send(self, broker: int, request: ControlRequest, callback: Callback | None = None) -> None:
        if (channel := self._by_broker.get(broker)) is not None:
            channel.put(request, callback)
            return
        fields = {"delete": request.delete} if isinstance(request, StopReplicaRequest) else {}
        partitions = [str(tp) for tp in request.partitions]
        self.process.log("not_sending", request=request.name, broker=broker, partitions=partitions, **fields)

    def queued(self) -> list[tuple[int, list[ControlRequest]]]:
        """By broker, the requests that wait for it."""
        return [(broker, [request for request, *_ in c.queue]) for broker, c in self._by_broker.items()]

    def close(self) -> None:
        """Close all channels; the requests in them are lost."""
        self.open = False
        for broker in list(self._by_broker):
            self.remove(broker)

    @property
    def waiting(self) -> int:
        """Requests queued or under way."""
        return sum(len(channel.queue) for channel in self._by_broker.values())
