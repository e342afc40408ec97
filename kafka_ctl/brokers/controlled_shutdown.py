"""Controlled shutdown: a broker asks the controller to move its leaderships away, several times if need be.

Kafka 2.0.1: server/KafkaServer.scala, controlledShutdown

Separate from `broker.py` because lesson 08 shows it by itself.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import ZooKeeperError
from kafka_ctl.requests import ControlledShutdownRequest, Response, api_name
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE


class ShutdownReport(NamedTuple):
    """The outcome of a controlled shutdown: attempts made, partitions that stayed behind, the last error."""

    attempts: int
    remaining: tuple[TopicPartition, ...] = ()
    error: str | None = None


async def ask_to_leave(process: BrokerProcess) -> ShutdownReport:
    """Ask until nothing remains and there is no error, or the attempts are used up."""
    retries = process.config["controlled.shutdown.max.retries"]
    remaining: tuple[TopicPartition, ...] = ()
    error: str | None = None
    for attempt in range(1, retries + 1):
        try:
            response = await _ask_once(process)
        except ZooKeeperError as lost:  # Kafka logs it and stops without asking again
            process.record("controlled-shutdown", error=lost.code, detail=details.write(attempt=attempt, remaining=""))
            return ShutdownReport(attempt, remaining, lost.code)
        error, remaining = response.error, response.remaining
        process.record(
            "controlled-shutdown",
            error=error,
            detail=details.write(attempt=attempt, remaining=details.listed(remaining)),
        )
        if error is None and not remaining:
            return ShutdownReport(attempt)
        await process.clock.sleep(process.config["controlled.shutdown.retry.backoff.ms"] / 1000)
    return ShutdownReport(retries, remaining, error)


async def _ask_once(process: BrokerProcess) -> Response:
    controller = await process.zk.controller_id()
    request = ControlledShutdownRequest(process.id, process.epoch)
    sent = process.trace.add(process.actor, "request", api_name(request), broker=controller, target="sent")
    CAUSE.set(sent)
    if controller == -1:
        return Response("CONTROLLER_NOT_AVAILABLE")
    timeout = process.config["request.timeout.ms"] / 1000
    try:
        async with asyncio.timeout(timeout):
            return (await process.network.call(process.id, controller, request))[0]
    except ConnectionError as error:
        return Response("DISCONNECTED", text=str(error))
    except TimeoutError:
        return Response("REQUEST_TIMED_OUT", text=f"no answer from broker {controller} within {timeout:g} s")
