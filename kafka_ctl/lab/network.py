"""The network port: requests from one broker to another, and what they cost.

A request to a broker whose process is not running is refused; one under way when it dies is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_ctl.brokers.requests import Request, Response
from kafka_ctl.trace import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker


class Network:
    """Connects the brokers of one lab; `delay` is the seconds one way takes."""

    def __init__(self, clock: Any, delay: float) -> None:
        self.clock, self.delay = clock, delay
        self.brokers: dict[int, Broker] = {}

    async def call(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver a request and bring the answer, with the `seq` of its record.

        Raises ConnectionError if the target is not there or goes away before it answers.
        """
        await self.clock.sleep(self.delay)
        broker = self.brokers.get(target)
        if broker is None or not broker.listening:
            raise ConnectionRefusedError(f"broker {target} refused the connection of broker {source}")
        answer = await broker.receive(request, CAUSE.get())
        await self.clock.sleep(self.delay)
        return answer
