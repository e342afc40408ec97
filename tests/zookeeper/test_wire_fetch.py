"""A fetch over the wire: how far whom the leader lets read, what it waits for, and what releases it."""

from typing import Any

import pytest
from labs import process_of, until_quiet
from wire_clients import Asking, closed_connections, eventually, fetch_of, listening, read_to_end

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.leader import FollowerFetch
from kafka_ctl.wire.batches import TRANSACTIONAL, Record, read_batch, read_records, split, write_batch
from kafka_ctl.wire.schema import name_of

kafka = pytest.importorskip("kafka", reason="needs kafka-python")
ORDERS = TopicPartition("orders", 0)
VERSIONS = {"0.10": 3, "2.0": 8, "2.4": 11}


def request(
    offset: int, *, wait: int = 30_000, least: int = 1, replica: int = -1, isolation: int = 0
) -> dict[str, Any]:
    """A fetch of `orders-0`."""
    return {
        "replica_id": replica,
        "max_wait": wait,
        "min_bytes": least,
        "max_bytes": 1 << 20,
        "isolation_level": isolation,
        "topics": fetch_of(("orders", 0, offset)),
    }


def only(answer: dict[str, Any]) -> dict[str, Any]:
    """The only partition of an answer."""
    (topic,) = answer["responses"]
    (part,) = topic["partitions"]
    return dict(part)


def values(part: dict[str, Any]) -> list[bytes | None]:
    return [r.value for _, raw in split(part["records"]) for r in read_records(read_batch(raw))]


def waiting(lab: Lab, broker: int) -> int:
    """How many fetches from outside wait at a broker."""

    def count() -> int:
        lists = process_of(lab, broker).as_leader.fetch_purgatory.watchers.values()
        found = {op for watchers in lists for op in watchers if not op.is_completed}
        return sum(not isinstance(op, FollowerFetch) for op in found)

    return lab.world.clock.call(count)


@pytest.mark.parametrize("generation", VERSIONS)
def test_a_fetch_waits_until_there_is_something(generation: str) -> None:
    with listening(generation, orders={0: [1, 2]}) as lab, Asking(lab, 1) as broker:
        broker.send("Fetch", VERSIONS[generation], **request(0))
        assert broker.waits()
        assert waiting(lab, 1) == 1
        lab.settle()  # whoever waits for records does not keep the lab busy
        lab.produce("orders", 0)
        assert only(broker.receive())["high_watermark"] == 1
        assert waiting(lab, 1) == 0
        lab.settle()
        shown = lab.metrics(1)
        assert shown["NumDelayedOperations,delayedOperation=Fetch"] == 1  # that of follower 2
        empty = only(broker.ask("Fetch", VERSIONS[generation], **request(1, wait=50)))
        assert (empty["records"], empty["error_code"]) == (b"", 0)


def test_a_fetch_waits_for_as_many_bytes_as_it_wants() -> None:
    with listening(orders={0: [1]}) as lab, Asking(lab, 1) as broker:
        lab.produce("orders", 0)
        size = len(only(broker.ask("Fetch", 8, **request(0)))["records"])
        broker.send("Fetch", 8, **request(0, least=size + 1))
        assert broker.waits()
        lab.produce("orders", 0)
        assert values(only(broker.receive())) == [b"1", b"2"]


def test_who_waits_learns_that_the_leader_has_changed() -> None:
    with listening(orders={0: [1, 2]}) as lab, Asking(lab, 1) as broker:
        broker.send("Fetch", 8, **request(0))
        assert broker.waits()
        until_quiet(lab.reassign, {ORDERS: [2, 1]})
        lab.elect_preferred([ORDERS])
        assert name_of(only(broker.receive())["error_code"]) == "NOT_LEADER_FOR_PARTITION"


def test_a_follower_reads_to_the_end_and_raises_the_high_watermark() -> None:
    """Broker 2 stands still; a follower by hand fetches in its name."""
    with listening(orders={0: [1, 2]}) as lab:
        lab.slow(2, 60)
        lab.produce("orders", 0, records=3, acks=1)
        with Asking(lab, 1) as consumer, Asking(lab, 1) as follower:
            consumer.send("Fetch", 8, **request(0))
            assert consumer.waits()
            reported = only(follower.ask("Fetch", 8, **request(0, replica=2)))
            assert (values(reported), reported["high_watermark"]) == ([b"1", b"2", b"3"], 0)
            assert consumer.waits()
            follower.send("Fetch", 8, **request(3, replica=2))  # it has all three now
            assert values(only(consumer.receive())) == [b"1", b"2", b"3"]
            assert follower.waits()  # in 2.0 a higher high watermark is no news for a follower
            lab.produce("orders", 0, acks=1)
            reported = only(follower.receive())
            assert (values(reported), reported["high_watermark"]) == ([b"4"], 3)


def test_a_newer_high_watermark_is_news_for_a_follower_of_2_4() -> None:
    with listening("2.4", orders={0: [1, 2, 3]}) as lab:
        for broker in (2, 3):
            lab.slow(broker, 60)
        lab.produce("orders", 0, acks=1)
        with Asking(lab, 1) as two, Asking(lab, 1) as three:
            two.send("Fetch", 11, **request(1, replica=2))
            assert two.waits()
            three.send("Fetch", 11, **request(1, replica=3))
            reported = only(two.receive())
            assert (reported["records"], reported["high_watermark"]) == (b"", 1)


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, None), (0, None), (1, "UNKNOWN_LEADER_EPOCH"), (-2, "FENCED_LEADER_EPOCH")]
)
def test_a_reader_of_2_4_names_the_leader_epoch(epoch: int, error: str | None) -> None:
    asked = request(0, wait=0)
    asked["topics"][0]["partitions"][0]["current_leader_epoch"] = epoch
    with listening("2.4", orders={0: [1]}) as lab, Asking(lab, 1) as broker:
        assert name_of(only(broker.ask("Fetch", 11, **asked))["error_code"]) == error


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_where_a_leader_epoch_ends(generation: str) -> None:
    """A consumer asks after each change of leaders, and kafka-python's stops where nobody answers.

    Motive: Kafka 2.4.1, OffsetsForLeaderEpochRequestTest.scala; LeaderEpochFileCacheTest.scala
    """
    with listening(generation, orders={0: [1, 2, 3]}) as lab:
        lab.produce("orders", 0, records=2)
        lab.kill(1)
        eventually(lambda: lab.partition("orders", 0).leader == 2)
        lab.settle()
        lab.produce("orders", 0)
        now = lab.partition("orders", 0).leader_epoch
        assert now > 0

        def ends(broker: Asking, epoch: int, topic: str = "orders", current: int = -1) -> tuple[str | None, int, int]:
            part = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}
            asked = [{"topic": topic, "partitions": [part]}]
            version = 3 if generation == "2.4" else 1
            reported = broker.ask("OffsetForLeaderEpoch", version, topics=asked)["topics"][0]["partitions"][0]
            return name_of(reported["error_code"]), reported["leader_epoch"], reported["end_offset"]

        with Asking(lab, 2) as leader, Asking(lab, 3) as follower:
            assert [ends(leader, epoch) for epoch in (-1, 0, now, now + 1)] == [
                (None, -1, -1),
                (None, 0, 2),
                (None, now, 3),
                (None, -1, -1),
            ]
            assert ends(follower, 0) == ("NOT_LEADER_FOR_PARTITION", -1, -1)
            assert ends(leader, 0, "nothing") == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1)
            if generation == "2.4":
                errors = [ends(leader, 0, current=epoch)[0] for epoch in (0, now, now + 1)]
                assert errors == ["FENCED_LEADER_EPOCH", None, "UNKNOWN_LEADER_EPOCH"]
                listed = [{"partition_index": 0, "timestamp": time, "current_leader_epoch": now} for time in (-2, -1)]
                found = [
                    leader.ask("ListOffsets", 5, replica_id=-1, topics=[{"name": "orders", "partitions": [one]}])
                    for one in listed
                ]
                parts = [one["topics"][0]["partitions"][0] for one in found]
                assert [(part["offset"], part["leader_epoch"]) for part in parts] == [(0, 0), (3, now)]


# Transactions, as readers see them


def answered(broker: Asking, records: bytes, **fields: Any) -> tuple[str | None, int, int]:
    """Write a batch with acks=all; the error of the answer, the base offset and the log start offset."""
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    reported = broker.ask("Produce", 6, **{"acks": -1, "timeout": 5000, "topic_data": topics} | fields)
    part = reported["responses"][0]["partition_responses"][0]
    return name_of(part["error_code"]), part["base_offset"], part["log_start_offset"]


def produced(broker: Asking, records: bytes, **fields: Any) -> str | None:
    """Write a batch with acks=all; the error of the answer."""
    return answered(broker, records, **fields)[0]


def written(broker: Asking, producer: int, *texts: str) -> None:
    """A producer's first batch within a transaction."""
    records = [Record(at, 1000, None, text.encode()) for at, text in enumerate(texts)]
    batch = write_batch(records, producer=producer, producer_epoch=0, sequence=0, attributes=TRANSACTIONAL)
    assert produced(broker, batch, transactional_id="t") is None


def ended(broker: Asking, producer: int, commits: bool, topic: str = "orders") -> str | None:
    """What a coordinator does."""
    marker = {
        "producer_id": producer,
        "producer_epoch": 0,
        "transaction_result": commits,
        "coordinator_epoch": 0,
        "topics": [{"name": topic, "partition_indexes": [0]}],
    }
    reported = broker.ask("WriteTxnMarkers", 0, markers=[marker])
    return name_of(reported["markers"][0]["topics"][0]["partitions"][0]["error_code"])


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_committed_records_are_what_lies_below_the_last_stable_offset(generation: str) -> None:
    version = VERSIONS[generation]
    with listening(generation, orders={0: [1, 2]}) as lab:
        with Asking(lab, 1) as broker, Asking(lab, 1) as reader:

            def seen(isolation: int) -> tuple[int, int, int]:
                part = only(broker.ask("Fetch", version, **request(0, wait=0, isolation=isolation)))
                return part["high_watermark"], part["last_stable_offset"], len(values(part))

            lab.produce("orders", 0)
            written(broker, 7, "a", "b")
            written(broker, 8, "c")
            assert seen(0) == (4, 1 if generation == "2.4" else -1, 4)  # 2.4.1 names it to every reader
            assert seen(1) == (4, 1, 1)
            reader.send("Fetch", version, **request(1, isolation=1))
            assert reader.waits()
            assert ended(broker, 8, commits=True) is None
            assert seen(1) == (5, 1, 1)  # 7 began earlier, and goes on
            assert reader.waits()
            assert ended(broker, 7, commits=False) is None
            assert seen(1) == (6, 6, 6)
            part = only(reader.receive())
            assert part["aborted_transactions"] == [{"producer_id": 7, "first_offset": 1}]
            later = only(broker.ask("Fetch", version, **request(6, wait=0, isolation=1)))
            assert later["aborted_transactions"] == []
            plain = only(broker.ask("Fetch", version, **request(1, wait=0)))
            assert plain["aborted_transactions"] is None
            for isolation, end in ((0, 8), (1, 6)):
                if isolation == 0:
                    written(broker, 9, "d", "e")
                topics = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
                reported = broker.ask("ListOffsets", 2, replica_id=-1, isolation_level=isolation, topics=topics)
                assert reported["topics"][0]["partitions"][0]["offset"] == end
        assert closed_connections(lab) == []


def test_real_consumers_read_what_was_committed() -> None:
    with listening(orders={0: [1, 2]}) as lab:
        with Asking(lab, 1) as broker:
            written(broker, 7, "given up")
            written(broker, 8, "kept")
            ended(broker, 7, commits=False)
            ended(broker, 8, commits=True)
            written(broker, 9, "undecided")
        assert read_to_end(lab, "orders") == ["kept"]
        assert read_to_end(lab, "orders", "read_uncommitted") == ["given up", "kept", "undecided"]
        plain = kafka.KafkaConsumer(
            "orders",
            bootstrap_servers=lab.bootstrap_servers.split(","),
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            metadata_max_age_ms=1000,
        )
        heard: list[bytes] = []
        eventually(lambda: bool(heard.extend(r.value for b in plain.poll(200).values() for r in b) or heard))
        assert heard == [b"kept"]
        plain.close()


def test_a_producer_cannot_end_a_transaction_itself() -> None:
    from kafka_ctl.wire.contents import marker

    with listening(orders={0: [1]}) as lab, Asking(lab, 1) as broker:
        assert produced(broker, marker(7, 0, True, 0)) == "CORRUPT_MESSAGE"
        assert ended(broker, 1, commits=True, topic="nothing") == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("when", ["before", "after"])
def test_too_few_in_sync_replicas(when: str) -> None:
    """NOT_ENOUGH_REPLICAS keeps the records out; ..._AFTER_APPEND and REQUEST_TIMED_OUT mean that they are in the log
    all the same: their offset stands beside the error. Kafka 2.0.1: server/DelayedProduce.scala, tryComplete
    """
    with listening() as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]}, config={"min.insync.replicas": 2})
        batch = write_batch([Record(0, 1000, None, b"x")])
        with Asking(lab, 1) as broker:
            if when == "before":
                lab.kill(2)
                eventually(lambda: lab.partition("orders", 0).isr == (1,))
                lab.settle()
                assert (answered(broker, batch), lab.logs()) == (("NOT_ENOUGH_REPLICAS", -1, 0), [])
            else:
                lab.slow(2, 60)
                assert answered(broker, batch, timeout=1) == ("REQUEST_TIMED_OUT", 0, 0)
                assert answered(broker, batch, timeout=30_000) == ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 1, 0)
                assert [log.end for log in lab.log("orders", 0) if log.broker == 1] == [2]
