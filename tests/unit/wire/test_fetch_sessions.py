"""Fetch sessions (KIP-227): full and incremental requests, forgotten partitions, errors, who is evicted.

Motive: Kafka 2.0.1, FetchSessionTest.scala
"""

from typing import Any

import pytest
from wire_clients import Asking, fetch_of, listening

from kafka_ctl import TopicPartition
from kafka_ctl.wire.fetch_sessions import EVICTION, FINAL, INITIAL, LAST_EPOCH, Asked, FetchSessions, next_epoch
from kafka_ctl.wire.schema import name_of

FOO, BAR, BAZ = (TopicPartition(topic, 0) for topic in ("foo", "bar", "baz"))


class Time:
    """Milliseconds."""

    now = 0


def sessions(slots: int = 10) -> tuple[FetchSessions, Time]:
    time = Time()
    return FetchSessions(lambda: time.now, slots=slots), time


def part(records: bytes = b"", high_watermark: int = 10, error: int = 0) -> dict[str, Any]:
    """What an answer says of a partition."""
    return {"records": records, "high_watermark": high_watermark, "log_start_offset": 0, "error_code": error}


def wanted(*partitions: TopicPartition, offset: int = 0) -> dict[TopicPartition, Asked]:
    return {tp: Asked(offset, 100) for tp in partitions}


def opened(cache: FetchSessions, *partitions: TopicPartition, is_follower: bool = False) -> int:
    """The id of a new session with these partitions."""
    context = cache.context(0, INITIAL, wanted(*partitions), (), is_follower)
    error, id, found = context.answer({tp: part() for tp in partitions})
    assert error is None
    assert list(found) == list(partitions)
    return id


def test_epochs() -> None:
    assert [next_epoch(epoch) for epoch in (FINAL, INITIAL, 1, LAST_EPOCH)] == [FINAL, 1, 2, 1]


def test_an_incremental_answer_has_what_is_new() -> None:
    cache, _ = sessions()
    id = opened(cache, FOO, BAR)
    assert id > 0
    same = {FOO: part(), BAR: part()}
    context = cache.context(id, 1, {}, (), False)
    assert list(context.partitions) == [FOO, BAR]
    assert context.answer(same) == (None, id, {})
    for epoch, news in enumerate((part(b"x"), part(high_watermark=11), part(error=6, high_watermark=-1)), 2):
        assert cache.context(id, epoch, {}, (), False).answer(same | {FOO: news}) == (None, id, {FOO: news})
    assert list(cache.sessions[id].partitions) == [BAR, FOO]  # who had news comes last
    back = cache.context(id, 5, {}, (), False).answer(same | {FOO: part(high_watermark=11)})
    assert back == (None, id, {FOO: part(high_watermark=11)})  # the error has gone: it is sent again


def test_partitions_come_go_and_move_on() -> None:
    cache, _ = sessions()
    id = opened(cache, FOO, BAR)
    context = cache.context(id, 1, wanted(BAR, BAZ, offset=7), [FOO], False)
    assert context.partitions == {BAR: Asked(7, 100), BAZ: Asked(7, 100)}
    assert context.answer({BAR: part(), BAZ: part()}) == (None, id, {BAZ: part()})
    empty = cache.context(id, 2, {}, [BAR, BAZ], False)
    assert (empty.partitions, empty.answer({})) == ({}, (None, 0, {}))
    assert cache.context(id, 3, {}, (), False).answer({}) == ("FETCH_SESSION_ID_NOT_FOUND", 0, {})


def test_errors_of_sessions() -> None:
    cache, _ = sessions()
    id = opened(cache, FOO)
    assert cache.context(id + 1, 1, {}, (), False).answer({}) == ("FETCH_SESSION_ID_NOT_FOUND", 0, {})
    for wrong in (2, 3):
        assert cache.context(id, wrong, {}, (), False).answer({}) == ("INVALID_FETCH_SESSION_EPOCH", 0, {})
    first, second = cache.context(id, 1, {}, (), False), cache.context(id, 2, {}, (), False)
    assert first.answer({FOO: part(b"x")}) == ("INVALID_FETCH_SESSION_EPOCH", id, {})  # another has come meanwhile
    assert second.answer({FOO: part(b"x")}) == (None, id, {FOO: part(b"x")})


def test_a_full_request_ends_the_session_that_it_names() -> None:
    cache, _ = sessions()
    first = opened(cache, FOO)
    again = cache.context(first, INITIAL, wanted(FOO), (), False).answer({FOO: part()})[1]
    assert again not in (0, first)
    assert list(cache.sessions) == [again]
    assert cache.context(again, FINAL, wanted(FOO), (), False).answer({FOO: part()}) == (None, 0, {FOO: part()})
    assert cache.sessions == {}


def test_who_is_evicted() -> None:
    """A consumer evicts only what is old; a follower also the consumer with the fewest partitions."""
    cache, time = sessions(slots=2)
    small, large = opened(cache, FOO), opened(cache, FOO, BAR)
    assert opened(cache, FOO, BAR, BAZ) == 0
    time.now = 1
    follower = opened(cache, FOO, is_follower=True)
    assert list(cache.sessions) == [large, follower]
    assert small not in cache.sessions
    time.now = EVICTION
    assert opened(cache, FOO) == 0
    time.now = EVICTION + 1
    newest = opened(cache, FOO)
    assert list(cache.sessions) == [follower, newest]
    second = opened(cache, FOO, is_follower=True)
    assert list(cache.sessions) == [follower, second]
    assert cache.evictions == 3


@pytest.mark.parametrize(("generation", "version"), [("2.0", 8), ("2.4", 11)])
def test_a_session_over_the_wire(generation: str, version: int) -> None:
    with listening(generation, orders={0: [1], 1: [1]}) as lab:
        lab.produce("orders", 0)
        with Asking(lab, 1) as broker:
            common = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20}

            def fetch(id: int, epoch: int, topics: Any = (), forgotten: Any = ()) -> tuple[str | None, int, list[Any]]:
                reported = broker.ask(
                    "Fetch",
                    version,
                    **common,
                    session_id=id,
                    session_epoch=epoch,
                    topics=topics,
                    forgotten_topics_data=forgotten,
                )
                parts = [p["partition_index"] for topic in reported["responses"] for p in topic["partitions"]]
                return name_of(reported["error_code"]), reported["session_id"], parts

            error, id, parts = fetch(0, INITIAL, fetch_of(("orders", 0, 0), ("orders", 1, 0)))
            assert (error, id > 0, parts) == (None, True, [0, 1])
            assert fetch(id, 1, fetch_of(("orders", 0, 1))) == (None, id, [])
            lab.produce("orders", 1, records=2)
            assert fetch(id, 2) == (None, id, [1])
            assert fetch(id, 3, (), [{"topic": "orders", "partitions": [1]}]) == (None, id, [])
            assert fetch(id, 3) == ("INVALID_FETCH_SESSION_EPOCH", 0, [])
            assert fetch(id + 1, 1) == ("FETCH_SESSION_ID_NOT_FOUND", 0, [])
            assert fetch(id, FINAL, fetch_of(("orders", 1, 0))) == (None, 0, [1])
            assert fetch(id, 4) == ("FETCH_SESSION_ID_NOT_FOUND", 0, [])


def test_a_fetch_that_waits_while_its_session_ends() -> None:
    """Another request of the session forgets its last partition: the one that waits has the wrong epoch."""
    cache, _ = sessions()
    id = opened(cache, FOO)
    waiting = cache.context(id, 1, {}, (), False)
    assert cache.context(id, 2, {}, [FOO], False).answer({}) == (None, 0, {})
    assert waiting.answer({FOO: part(b"x")}) == ("INVALID_FETCH_SESSION_EPOCH", id, {})
