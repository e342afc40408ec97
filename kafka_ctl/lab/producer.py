"""A producer: it asks a broker who leads a partition, and sends its records there, once.

It keeps its metadata until an error shows that it is stale, or until that broker's process is gone. It does
not send again by itself (`retries=0`, the default before Kafka 2.1), so that every outcome can be seen.
Kafka 2.0.1: clients/producer/KafkaProducer.java, send; clients/NetworkClient.java, leastLoadedNode
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.requests import ALL, PRODUCE_TIMEOUT, ProduceRequest, Response
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import World

PRODUCER, CLIENT = "producer", -1
"""The actor's name; what stands for it where the network wants a broker's id."""
ACKS = {0: 0, 1: 1, ALL: ALL, "all": ALL}
"""The forms of `acks`, and the value in the request."""


class Produced(NamedTuple):
    """The outcome of some records: their values, the broker asked, the offset of the first, the error if any.

    Without an offset nothing was acknowledged; the records may be in a log all the same.
    """

    values: tuple[int, ...]
    leader: int
    offset: int | None
    error: str | None

    @property
    def acknowledged(self) -> bool:
        return self.offset is not None

    def __repr__(self) -> str:
        values = f"{self.values}" if len(self.values) <= 20 else f"({self.values[0]}, ..., {self.values[-1]})"
        return f"Produced(values={values}, leader={self.leader}, offset={self.offset}, error={self.error!r})"

    def __str__(self) -> str:
        outcome = f"at offset {self.offset}" if self.acknowledged else self.error or "not waited for"
        return f"records {details.runs(self.values)} by broker {self.leader}: {outcome}"


class Producer:
    """One producer for one lab; the values of its records count up in every partition."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._leaders: dict[TopicPartition, int] = {}

    def _leader(self, tp: TopicPartition) -> int:
        """The leader by our cache, else by that of the first broker that answers."""
        brokers = self.world.brokers
        known = self._leaders.get(tp, NO_LEADER)
        if known == NO_LEADER or (known in brokers and not brokers[known].listening):  # it may be of another process
            asked = next((b for b in brokers.values() if b.listening and not b.is_paused), None)
            state = asked.metadata.get(tp) if asked else None
            self._leaders[tp] = known = state.leader if state else NO_LEADER
        return known

    async def send(self, tp: TopicPartition, records: int, acks: int, size: int = 0) -> Produced:
        """Produce the next so many values, as records of so many bytes each."""
        first = self.world.last_value.get(tp, 0) + 1
        self.world.last_value[tp] = first + records - 1
        values, leader = range(first, first + records), self._leader(tp)
        sent = {"records": details.runs(values), "acks": "all" if acks == ALL else acks}
        sent |= {"bytes": records * size} if size else {}
        add = self.world.trace.add
        CAUSE.set(add(PRODUCER, "request", "Produce", *tp, leader, detail=details.write(**sent)))
        answer = await self._ask(leader, ProduceRequest(tp, values, acks, [size] * records if size else ()))
        if answer.error is not None:
            self._leaders.pop(tp, None)
        offset = answer.offset if acks and answer.error is None else None
        outcome = details.write(**sent, offset=offset)
        add(PRODUCER, "response", "Produce", *tp, leader, error=answer.error, detail=outcome)
        return Produced(tuple(values), leader, offset, answer.error)

    async def _ask(self, leader: int, request: ProduceRequest) -> Response:
        if leader == NO_LEADER:
            return Response("LEADER_NOT_AVAILABLE")
        call = partial(self.world.network.call, CLIENT, leader, request)
        if request.acks == 0:  # whatever becomes of it
            self.world.clock.spawn(_unheard(call))
            return Response()
        import asyncio

        try:  # the broker gives up first, unless it stands still
            async with asyncio.timeout(PRODUCE_TIMEOUT + 1):
                return (await call())[0]
        except ConnectionError:
            return Response("NETWORK_EXCEPTION")
        except TimeoutError:
            return Response("REQUEST_TIMED_OUT")


async def _unheard(call: Callable[[], Awaitable[object]]) -> None:
    try:
        await call()
    except ConnectionError:
        return


MOST = 100_000
"""The most records that one command produces."""
LARGEST = 1 << 30
"""The most bytes of a record."""
