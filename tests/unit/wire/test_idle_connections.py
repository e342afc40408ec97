"""Connections on which nothing happens, in virtual time: how long a broker keeps them.

Kafka 2.0.1: common/network/Selector.java, maybeCloseOldestConnection
"""

import asyncio
import struct
from collections.abc import Iterator
from typing import cast

import pytest
from labs import lab_of

from kafka_ctl import Lab
from kafka_ctl.wire.attach import HANDLERS
from kafka_ctl.wire.codec import encode_message
from kafka_ctl.wire.groups import Groups
from kafka_ctl.wire.listeners import IDLE, PATIENCE, SMALL, Server
from kafka_ctl.wire.schema import message_type
from kafka_ctl.wire.service import Administrator, Service, Shared

VERSIONS = encode_message(message_type(18, 0), {"correlation_id": 9, "client_id": "t"}, {})


class Client:
    """The other end of a connection: what was sent to it, and whether it was closed. It may take nothing."""

    def __init__(self, lab: Lab, takes: bool = True) -> None:
        self.lab, self.takes, self.received, self.ended = lab, takes, b"", False
        world = lab.world
        shared = Shared(world, cast(Administrator, None), Groups())
        self.sending = asyncio.StreamReader(loop=world.clock.loop)
        service = Service(world.brokers[1], shared, HANDLERS)
        world.clock.spawn(Server(service).serve(self.sending, cast(asyncio.StreamWriter, self)))

    def send(self, data: bytes) -> None:
        self.lab.world.clock.call(lambda: self.sending.feed_data(data))

    @property
    def closed(self) -> bool:
        """Whether the server has closed the connection."""
        return self.ended

    def why(self) -> list[str | None]:
        """What the trace tells of ends of connections."""
        return [record.error for record in self.lab.trace.slice(action="closed-connection")]

    # As the server's writer

    def write(self, data: bytes) -> None:
        self.received += data

    async def drain(self) -> None:
        if not self.takes:
            await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        self.ended = True


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_of("orders", {0: [1, 2, 3]}, brokers=3) as lab:
        yield lab


def test_a_silent_connection_is_closed_after_ten_minutes(lab: Lab) -> None:
    """`connections.max.idle.ms`; every request begins them anew, and nothing was wrong."""
    client = Client(lab)
    for number in (1, 2):
        lab.run_for(IDLE - 1)
        assert not client.closed
        client.send(VERSIONS)
        lab.run_for(0.5)
        assert client.received.count(struct.pack(">i", 9)) == number
    lab.run_for(IDLE - 1)
    assert not client.closed
    lab.run_for(1)
    assert (client.closed, client.why()) == (True, [])


@pytest.mark.parametrize(("size", "seconds"), [(100, IDLE), (SMALL + 1, PATIENCE)], ids=["small", "large"])
def test_half_a_request_is_waited_for(lab: Lab, size: int, seconds: float) -> None:
    """A large one for half a minute only: it takes the room of others."""
    client = Client(lab)
    client.send(struct.pack(">i", size) + bytes(50))
    lab.run_for(seconds - 1)
    assert not client.closed
    lab.run_for(2)
    assert (client.closed, client.why()) == (True, ["TIMED_OUT"])


def test_an_answer_that_nobody_takes(lab: Lab) -> None:
    client = Client(lab, takes=False)
    client.send(VERSIONS)
    lab.run_for(PATIENCE - 1)
    assert not client.closed
    lab.run_for(2)
    assert (client.closed, client.why()) == (True, ["TIMED_OUT"])


def test_a_request_that_waits_for_days(lab: Lab) -> None:
    """A fetch may ask to wait for 24 days: its connection is silent, and is closed as others are; nothing waits on."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    wanted = {"replica_id": -1, "max_wait": 2**31 - 1, "min_bytes": 1}
    topics = [{"topic": "orders", "partitions": [partition]}]
    client, purgatory = Client(lab), lab.world.brokers[1].as_leader.fetch_purgatory
    client.send(encode_message(message_type(1, 4), {"correlation_id": 1}, wanted | {"topics": topics}))
    before = purgatory.delayed
    lab.run_for(IDLE - 1)
    assert client.received == b"" and not client.closed
    assert purgatory.delayed == before + 1
    lab.run_for(2)
    assert (client.closed, client.why()) == (True, ["TIMED_OUT"])
    assert purgatory.delayed == before
