"""The requests of the reassignment tool to brokers whose copies shall lie in a certain log directory (KIP-113).

Kafka 2.0.1: admin/ReassignPartitionsCommand.scala, alterReplicaLogDirsIgnoreReplicaNotAvailable,
checkIfReplicaReassignmentSucceeded
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.errors import ApiException
from kafka_ctl.reassign.plan import COMPLETED, FAILED, IN_PROGRESS
from kafka_ctl.requests import (
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    LogDirDescription,
    LogDirsRequest,
    Response,
)

TIMEOUT, RETRY_BACKOFF = 10.0, 0.1
"""Seconds that the tool gives the brokers to take up a plan (`--timeout`), and between two attempts."""
NOT_YET = "REPLICA_NOT_AVAILABLE"
"""The answer of a broker that has no copy yet; it makes one in the directory that it was asked for."""

Call = Callable[[int, LogDirsRequest], Awaitable[Response]]
"""Sends a request to a broker. Raises ConnectionError if it does not answer."""


class Clock(Protocol):
    """The time by which the tool waits."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Move(NamedTuple):
    """The progress of a copy to its directory, and the tool's complaint."""

    replica: Replica
    status: str
    problem: str | None


class LogDirs:
    """The tool's way to the brokers; `timeout` is in seconds."""

    def __init__(self, call: Call, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._call, self._clock, self._timeout = call, clock, timeout

    def deadline(self) -> float:
        """The time at which the tool gives up, if it begins now."""
        return self._clock.now() + self._timeout

    async def alter(self, wanted: Mapping[Replica, str], until: float) -> set[Replica]:
        """Ask each broker once to move its copies; which of them lie there or are on their way.

        A copy that is not there yet is not an error. Raises ApiException for any other.
        """
        there: set[Replica] = set()
        for broker, replicas in _by_broker(wanted).items():
            request = AlterReplicaLogDirsRequest({r.topic_partition: wanted[r] for r in replicas})
            response = await self._ask(broker, request, until)
            for replica in replicas:
                error = response.error or response.errors[replica.topic_partition]
                if error is None:
                    there.add(replica)
                elif error != NOT_YET:
                    text = f"Failed to alter dir for {replica_name(replica)} to {wanted[replica]}: {error}"
                    raise ApiException(error, text)
        return there

    async def alter_all(self, wanted: Mapping[Replica, str], until: float) -> bool:
        """Ask again and again until every copy lies in its directory or is on its way; whether that was so in time."""
        waiting = dict(wanted)
        while waiting and self._clock.now() < until:
            for replica in await self.alter(waiting, until):
                del waiting[replica]
            await self._clock.sleep(RETRY_BACKOFF)
        return not waiting

    async def statuses(self, wanted: Mapping[Replica, str]) -> list[Move]:
        """The progress of each copy, by topic, partition and broker."""
        found: dict[Replica, LogDirDescription] = {}
        until = self.deadline()
        for broker, replicas in _by_broker(wanted).items():
            request = DescribeLogDirsRequest(tuple(r.topic_partition for r in replicas))
            log_dirs_described = (await self._ask(broker, request, until)).log_dirs_described
            found |= {r: log_dirs_described.get(r.topic_partition, LogDirDescription(None, None)) for r in replicas}
        return [_judged(replica, found[replica], wanted[replica]) for replica in sorted(wanted)]

    async def _ask(self, broker: int, request: LogDirsRequest, until: float) -> Response:
        """The answer of a broker, also of one that is reached at a later attempt.

        Raises ApiException if the answer is too late.
        """
        while True:
            try:
                async with asyncio.timeout(until - self._clock.now()):
                    return await self._call(broker, request)
            except (ConnectionError, TimeoutError):
                if self._clock.now() >= until:
                    text = f"broker {broker} did not answer {request.name} within {self._timeout:g} s"
                    raise ApiException("REQUEST_TIMED_OUT", text) from None
            await self._clock.sleep(RETRY_BACKOFF)


def replica_name(replica: Replica) -> str:
    """A copy as the tool prints it: topic, partition, broker."""
    return f"{replica.topic}-{replica.partition}-{replica.broker}"


def _by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    found: dict[int, list[Replica]] = {}
    for replica in sorted(replicas):
        found.setdefault(replica.broker, []).append(replica)
    return found


def _judged(replica: Replica, log_dirs_described: LogDirDescription, wanted: str) -> Move:
    tp, current, future = (
        TopicPartition(replica.topic, replica.partition),
        log_dirs_described.current,
        log_dirs_described.future,
    )
    where = f"Partition {tp} on broker {replica.broker}"
    if current is None:
        problem = f"Partition {tp} is not found in any live log dir on broker {replica.broker}. "
        return Move(replica, FAILED, problem + "There is likely offline log directory on the broker.")
    if future == wanted:
        return Move(replica, IN_PROGRESS, None)
    if future is not None:
        return Move(replica, FAILED, f"{where} is being moved to log dir {future} instead of {wanted}")
    if current == wanted:
        return Move(replica, COMPLETED, None)
    return Move(replica, FAILED, f"{where} is not being moved from log dir {current} to {wanted}")
