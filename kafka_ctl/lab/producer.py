"""A producer: it asks a broker who leads a partition, and sends its records there, once.

It keeps its metadata until an error shows that it is stale, or until that broker's process is gone. It does
not send again by itself (`retries=0`, the default before Kafka 2.1), so that every outcome can be seen.
Kafka 2.0.1: clients/producer/KafkaProducer.java, send; clients/NetworkClient.java, leastLoadedNode
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.leader import ALL
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.errors import BadInput, short
from kafka_ctl.lab import menu, validate, view
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import PARTITIONS, Drawn
from kafka_ctl.lab.menu import PARTITION, Button, Call, Field, Given
from kafka_ctl.lab.settings import MAX_ID
from kafka_ctl.requests import PRODUCE_TIMEOUT, ProduceRequest, Response
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import World

PRODUCER, NOBODY = "producer", -1
"""The actor's name; what stands for it where the network wants a broker's id."""
ACKS = {0: 0, 1: 1, ALL: ALL, "all": ALL}
"""How `acks` can be given, and what the request says."""


class Produced(NamedTuple):
    """What became of some records: their values, the broker asked, the offset of the first, the error if any.

    Without an offset nothing was acknowledged; the records may be in a log all the same.
    """

    values: tuple[int, ...]
    leader: int
    offset: int | None
    error: str | None

    @property
    def acknowledged(self) -> bool:
        return self.offset is not None

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
        if known == NO_LEADER or not brokers[known].listening:
            asked = next((b for b in brokers.values() if b.listening and b.paused_since == math.inf), None)
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
        offset = answer.offset if acks else None
        outcome = details.write(**sent, offset=offset)
        add(PRODUCER, "response", "Produce", *tp, leader, error=answer.error, detail=outcome)
        return Produced(tuple(values), leader, offset, answer.error)

    async def _ask(self, leader: int, request: ProduceRequest) -> Response:
        if leader == NO_LEADER:
            return Response("LEADER_NOT_AVAILABLE")
        call = self.world.network.call(NOBODY, leader, request)
        if request.acks == 0:  # whatever becomes of it
            self.world.clock.spawn(_unheard(call))
            return Response()
        try:  # the broker gives up first, unless it stands still
            async with asyncio.timeout(PRODUCE_TIMEOUT + 1):
                return (await call)[0]
        except ConnectionError:
            return Response("NETWORK_EXCEPTION")
        except TimeoutError:
            return Response("REQUEST_TIMED_OUT")


async def _unheard(call: Awaitable[object]) -> None:
    try:
        await call
    except ConnectionError:
        return


MOST = 100_000
"""The most records that one command produces."""
LARGEST = 1 << 30
"""The most bytes of a record."""


ACKS_FIELD = Field("acks", "Acks", "choice", "all|1|0")


def _clicked(name: str, given: Given) -> Call:
    acks = ACKS_FIELD.choice(given)
    records = menu.number(given, "records")
    size = {"size": bytes} if (bytes := menu.maybe(given, "size")) else {}
    return menu.partition(name), {"records": records, "acks": int(acks) if acks.isdecimal() else acks} | size


class ProducerCommands(Commands):
    """The part of a lab that writes records and shows where they are."""

    _producer: Producer

    @command(
        Button(PARTITION, "Produce…", "a producer sends so many records to its leader",
               (Field("records", "Records", "number", "1"), Field("size", "Bytes of each", "optional"), ACKS_FIELD),
               call=_clicked),
        drawn=Drawn(6, lambda d: (
            (d.topic(), d.rng.randrange(PARTITIONS)), {"records": d.rng.randint(1, 3)}
            | ({"acks": 1} if d.maybe(1 / 3) else {}) | ({"wait": False} if d.maybe(0.6) else {}))),
    )  # fmt: skip
    def produce(
        self,
        topic: str,
        partition: int,
        records: int = 1,
        acks: int | str = "all",
        wait: bool = True,
        size: int = 0,
    ) -> Produced | None:
        """Let a producer send the next values to the leader: 1, 2, 3 and so on, in every partition by itself.

        `acks`: `all` (or -1) is answered when every in-sync replica has the records, 1 when the leader has, 0 not at
        all. Time passes until the outcome is known; with `wait=False` the records have only been sent. `size`: bytes of
        each record; copying them takes followers time, and can be throttled. What goes wrong is part of the outcome;
        UnknownName for a partition that does not exist, BadInput for what cannot be sent.
        """
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        count = validate.integer("the number of records", records, 1)
        if count > MOST:
            raise BadInput(f"the number of records cannot be {count}; one command produces {MOST} at most")
        if isinstance(acks, bool) or acks not in ACKS:
            raise BadInput(f"acks cannot be {short(acks)}; it is 0, 1 or all")
        bytes = validate.integer("the size of a record", size, 0, LARGEST)
        self.partition(*tp)
        sending = self._producer.send(tp, count, ACKS[acks], bytes)
        if wait:
            return self._world.run(sending)
        self._world.clock.call(lambda: self._world.clock.spawn(sending))
        return None

    def logs(self) -> list[view.LogView]:
        """The log of every replica that was ever written to, by topic, partition and broker."""
        return self._world.clock.call(lambda: view.logs(self._world.brokers))

    def log(self, topic: str, partition: int) -> list[view.LogView]:
        """The logs of one partition, by broker; none while nobody has produced. UnknownName if it does not exist."""
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        found = [log for log in self.logs() if log[:2] == tp]
        if not found:
            self.partition(topic, partition)
        return found
