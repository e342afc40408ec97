"""How a broker leaves in good order: it asks the controller to move its leaderships away, several times if need be.

Kafka 2.0.1: server/KafkaServer.scala, controlledShutdown
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.requests import ControlledShutdownRequest, Response
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import ZooKeeperError
from kafka_ctl.trace.record import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker


class ShutdownReport(NamedTuple):
    """How a controlled shutdown went: attempts made, partitions that stayed behind, the last error."""

    attempts: int
    remaining: tuple[TopicPartition, ...] = ()
    error: str | None = None


async def ask_to_leave(broker: Broker) -> ShutdownReport:
    """Ask until nothing remains and there is no error, or the attempts are used up."""
    retries = broker.config["controlled.shutdown.max.retries"]
    remaining: tuple[TopicPartition, ...] = ()
    error: str | None = None
    for attempt in range(1, retries + 1):
        try:
            response = await _ask_once(broker)
        except ZooKeeperError as lost:  # Kafka logs it and stops without asking again
            broker.record("controlled-shutdown", error=lost.code, detail=f"attempt={attempt} remaining=")
            return ShutdownReport(attempt, remaining, lost.code)
        error, remaining = response.error, response.remaining
        broker.record(
            "controlled-shutdown",
            error=error,
            detail=f"attempt={attempt} remaining={','.join(map(str, remaining))}",
        )
        if error is None and not remaining:
            return ShutdownReport(attempt)
        await broker.clock.sleep(broker.config["controlled.shutdown.retry.backoff.ms"] / 1000)
    return ShutdownReport(retries, remaining, error)


async def _ask_once(broker: Broker) -> Response:
    controller = await broker.zk.controller_id()
    request = ControlledShutdownRequest(broker.id, broker.epoch)
    sent = broker.trace.add(broker.actor, "request", request.name, broker=controller, target="sent")
    CAUSE.set(sent)
    if controller == -1:
        return Response("CONTROLLER_NOT_AVAILABLE")
    timeout = broker.config["controller.socket.timeout.ms"] / 1000
    try:
        async with asyncio.timeout(timeout):
            return (await broker.network.call(broker.id, controller, request))[0]
    except ConnectionError as error:
        return Response("DISCONNECTED", text=str(error))
    except TimeoutError:
        return Response("REQUEST_TIMED_OUT", text=f"no answer from broker {controller} within {timeout:g} s")
