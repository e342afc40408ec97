"""Damaged requests that are small as bytes and large in memory: what a request of so many bytes costs is bounded.

Measured with tracemalloc, in bytes of memory for each byte of the request.
"""

import asyncio
import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from labs import until_quiet
from prose import refuses
from wire_clients import Asking, listening
from wire_fuzz import packed

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.wire import batches, codec
from kafka_ctl.wire.batches import Record, write_messages
from kafka_ctl.wire.codec import Malformed, decode, decode_message, encode, encode_message
from kafka_ctl.wire.fetch_sessions import Asked
from kafka_ctl.wire.fetching import Reading
from kafka_ctl.wire.listeners import Room
from kafka_ctl.wire.schema import Field, MessageType, Schema, api_key, message_type
from kafka_ctl.wire.service import Holding, Service
from kafka_ctl.wire.versions import VERSIONS, announced

FIXED = 64 << 10
"""Bytes that a request may cost however small it is."""
ANSWERED = 256
"""Bytes of memory for each byte of a request until it is answered; what `decode` makes of it is a half at most."""
Make = Callable[[int], dict[str, Any]]
"""Fields of a message with an array of so many elements."""


def smallest(field: Field, text: str) -> Any:
    """The value of a field that takes the fewest bytes; `text` for strings."""
    if field.is_array:
        return []
    if isinstance(field.kind, Schema):
        return {one.name: smallest(one, text) for one in field.kind.fields}
    return {"string": text, "legacy_string": text, "bytes": b"", "records": b"", "uuid": None}.get(field.kind, 0)


def arrays(schema: Schema, text: str) -> Iterator[tuple[str, Make]]:
    """Every array of a structure, those in elements as well; of nested ones also many outer elements with one inner."""
    for field in schema.fields:
        if not field.is_array:
            continue
        one = smallest(field._replace(is_array=False), text)
        yield field.name, partial(_filled, field.name, [one])
        if isinstance(field.kind, Schema):
            for name, make in arrays(field.kind, text):
                yield f"{field.name}.{name}", partial(_in_one, field.name, one, make)
                yield f"{field.name} of {name}", partial(_filled, field.name, [one | make(1)])


def _filled(name: str, one: list[Any], number: int) -> dict[str, Any]:
    return {name: one * number}


def _in_one(name: str, one: dict[str, Any], make: Make, number: int) -> dict[str, Any]:
    return {name: [one | make(number)]}


def full_of(kind: MessageType, text: str, size: int) -> Iterator[tuple[str, bytes]]:
    """Requests of about `size` bytes, each filled with the smallest elements of one array."""
    base = {field.name: smallest(field, text) for field in kind.body.fields}
    for name, make in arrays(kind.body, text):
        lengths = [len(encode_message(kind, {"client_id": "t"}, base | make(number))) for number in (1, 2)]
        yield name, encode_message(kind, {"client_id": "t"}, base | make(size // (lengths[1] - lengths[0])))


def cost(work: Callable[[], object]) -> int:
    """The bytes of memory that work takes at its height."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    work()
    return tracemalloc.get_traced_memory()[1] - before


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def test_what_a_request_is_decoded_to_is_bounded_by_its_size() -> None:
    """Every array of every request in every version: at most TIMES bytes for each byte."""
    frames = {
        (api, version, name): (message_type(api_key(api), version), frame[4:])
        for api, spans in VERSIONS.items()
        for version in range(min(span[0] for span in spans if span), max(span[1] for span in spans if span) + 1)
        for name, frame in full_of(message_type(api_key(api), version), "", 2048)
    }
    for kind, frame in frames.values():
        decode_message(kind, frame)
    with traced():
        dear = {what: cost(partial(decode_message, *given)) / len(given[1]) for what, given in frames.items()}
    assert len(dear) > 200
    most = max(dear, key=lambda one: dear[one])
    assert 32 < dear[most] < codec.TIMES, (most, dear[most])


def nested(outer: int, inner: int) -> bytes:
    """The body of a CreateTopics request: topics with as many assignments, of no replicas, each."""
    topic = {"name": "t", "assignments": [{"partition_index": 0, "broker_ids": []}] * inner, "configs": []}
    return encode(message_type(19, 0).body, {"topics": [topic] * outer, "timeout": 0})


@pytest.mark.parametrize(("outer", "inner"), [(1, 10_000), (100, 100), (10_000, 1)])
def test_arrays_in_arrays_have_one_budget(monkeypatch: pytest.MonkeyPatch, outer: int, inner: int) -> None:
    """A large request costs no more than MOST_MEMORY, however its elements are divided among arrays."""
    data = nested(outer, inner)
    schema = message_type(19, 0).body
    assert len(decode(schema, data)[0]["topics"]) == outer
    monkeypatch.setattr(codec, "MOST_MEMORY", 3 << 20)
    refuses(Malformed, "3145728 bytes of memory", decode, schema, data)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with listening("2.4", orders={0: [1, 2, 3]}) as lab:
        yield lab
        lab.settle()  # raises what a broker has died of


def cost_of_answer(lab: Lab, frame: bytes) -> int:
    """The bytes of memory that the lab and one client need for a request, until it is answered or refused."""
    with Asking(lab, 1) as client:
        client.connection.settimeout(0.5)

        def exchange() -> None:
            client.connection.sendall(frame)
            try:
                left = int.from_bytes(client.connection.recv(4), "big")
                while left > 0 and (more := client.connection.recv(min(left, 1 << 16))):
                    left -= len(more)
            except TimeoutError:
                pass  # a group's member that waits

        return cost(exchange)


def test_what_an_answer_costs_is_bounded_by_the_size_of_the_request(lab: Lab) -> None:
    """Every array of every request, filled with nothing and with the topic's name: at most ANSWERED bytes for each."""
    frames = [
        (api, name, text, frame)
        for api, (_, version) in announced(lab.generation).items()
        for text in ("", "orders")
        for name, frame in full_of(message_type(api_key(api), version), text, 4096)
    ]
    cost_of_answer(lab, frames[0][-1])
    with traced():
        dear = {tuple(what): cost_of_answer(lab, frame) - FIXED for *what, frame in frames}
    most = max(dear, key=lambda one: dear[one])
    assert dear[most] < ANSWERED * 4096, (most, dear[most])


def test_what_records_unpack_to_is_bounded(lab: Lab) -> None:
    """What gzip makes of 200 MB, one batch or many messages in one set, takes a few megabytes.

    Of what cannot be unpacked here, a header that promises two thousand million records is not believed.
    """
    plenty = gzip.compress(bytes(batches.LARGEST * 50), 9)
    one = packed(plenty, attributes=1)
    inside = write_messages([Record(number, 5, None, bytes(100_000)) for number in range(20)], codec="gzip")
    bombs = [(5, one), (2, inside * 500)] + [(7, packed(b"?", 2**31 - 1, attributes=codec)) for codec in (2, 3, 4)]
    for version, data in bombs:
        topic = {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
        kind, fields = message_type(0, version), {"acks": 1, "timeout": 1000, "topic_data": [topic]}
        frame = encode_message(kind, {"client_id": "t"}, fields)
        with traced():
            assert cost_of_answer(lab, frame) < 8 * batches.LARGEST
        refused = lab.trace.slice(action="refused-records")[-1]
        assert refused.error == "MESSAGE_TOO_LARGE", refused
    assert not lab.trace.slice(action="append")


def test_the_room_of_a_broker_can_be_taken_whole() -> None:
    """By one request, which need not wait for anything."""

    async def taken(size: int) -> int:
        room = Room(5)
        await asyncio.wait_for(room.take(size), 30)
        return room.left

    assert asyncio.run(taken(5)) == 0


def test_what_one_fetch_has_read_the_next_may_not_read() -> None:
    """The bytes of an answer count from the moment they are read, not only from when they are sent.

    Many fetches that end in one moment would each take the whole share otherwise.
    """
    with listening(brokers=1) as lab:
        until_quiet(lab.create_topic, "a", assignment={0: [1]})
        until_quiet(lab.produce, "a", 0, size=1000)
        world, tp = lab.world, TopicPartition("a", 0)
        service = Service(world.brokers[1], world.network.shared, {})
        holdings = [Holding(service.unsent), Holding(service.unsent)]
        readings = [
            Reading(service, 7, {"replica_id": -1, "min_bytes": 1, "holding": holding}, {tp: Asked(0, 1 << 20)})
            for holding in holdings
        ]

        def read(reading: Reading) -> int:
            return len(reading.read()[tp]["records"])

        first, second = (world.clock.call(partial(read, reading)) for reading in readings)
        assert first == second > 0
        assert [holding.size for holding in holdings] == [first, second]
        assert service.unsent.size == first + second
