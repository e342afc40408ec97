"""What a leader remembers of producers; what a reader of committed records is told at the edges of its fetch."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from labs import until_quiet
from tables import tabled
from wire_clients import Asking, eventually, fetch_of, listening

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.fetches import first_bytes
from kafka_ctl.brokers.log import Entry, Log, entries_of
from kafka_ctl.wire import batches
from kafka_ctl.wire.attach import committed_records
from kafka_ctl.wire.batches import TRANSACTIONAL, Batch, Record, read_batch, write_batch
from kafka_ctl.wire.client import ask
from kafka_ctl.wire.contents import REMEMBERED, Aborted, Contents, Kept, Transactions, marker, sent_before
from kafka_ctl.wire.produce import produce
from kafka_ctl.wire.schema import name_of
from kafka_ctl.wire.service import Service

TP = TopicPartition("orders", 0)
LARGEST_SEQUENCE = 2**31 - 1
"""Kafka's Integer.MAX_VALUE: behind it comes 0."""


def batch_of(text: str, producer: int, sequence: int, records: int = 1, epoch: int = -1) -> bytes:
    """A batch as a producer numbers it."""
    made = [Record(number, 5, None, f"{text}{number}".encode()) for number in range(records)]
    return batches.write_batch(made, producer=producer, producer_epoch=epoch, sequence=sequence)


@pytest.fixture(scope="module", params=["2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param, orders={0: [1, 2, 3]}) as lab:
        yield lab


def sent(leader: Asking, data: bytes, acks: int = -1) -> tuple[str | None, int]:
    """What a leader answers to a batch: the error, and the offset of the first record."""
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
    answer = leader.ask("Produce", 5, acks=acks, timeout=5000, topic_data=[topic])
    (part,) = answer["responses"][0]["partition_responses"]
    return name_of(part["error_code"]), part["base_offset"]


def leads_with(contents: Contents, *kept: Kept) -> Callable[[Batch], tuple[tuple[int, Kept] | None, str | None]]:
    """What a leader that has these batches in its log takes a batch for."""
    log = Log(Entry(0, value) for one in kept for value in one.values)
    return lambda batch: sent_before(batch, contents.of_producer(TP, log, batch))


def test_a_batch_that_was_not_appended_fences_nobody() -> None:
    contents = Contents({})
    old, new = (read_batch(batch_of("a", 7, 0, epoch=epoch)) for epoch in (0, 1))
    contents.keep(TP, old)
    contents.withdraw(TP, contents.keep(TP, new))
    assert contents.fences(TP, read_batch(batch_of("b", 7, 1, epoch=0))) is None
    assert contents.fences(TP, read_batch(batch_of("b", 7, 500, epoch=1))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    contents.withdraw(TP, contents.keep(TP, read_batch(batch_of("c", 8, 0, epoch=3))))
    assert contents.fences(TP, read_batch(batch_of("c", 8, 0, epoch=2))) is None


@pytest.mark.parametrize(("appended", "next_one"), [(0, "UNKNOWN_PRODUCER_ID"), (5, "OUT_OF_ORDER_SEQUENCE_NUMBER")])
def test_a_batch_that_was_not_appended_can_be_sent_again(appended: int, next_one: str) -> None:
    """So can the five that a producer had in flight.

    Kafka 2.0.1, 2.4.1: log/ProducerStateManager.scala, checkSequence: a refused append leaves no state
    """
    contents = Contents({})
    sent = [read_batch(batch_of("a", 7, sequence, epoch=0)) for sequence in range(appended + REMEMBERED + 1)]
    kept = [contents.keep(TP, batch) for batch in sent[:-1]]
    for one in kept[appended:]:
        contents.withdraw(TP, one)
    leader = leads_with(contents, *kept[:appended])
    assert leader(sent[appended + 1]) == (None, next_one)
    assert leader(sent[appended]) == (None, None)


def test_batches_that_only_the_last_leader_had_do_not_count() -> None:
    """The five that were in flight when it died; and one of two records in which the first two were sent again.

    Kafka 2.0.1, 2.4.1: log/ProducerStateManager.scala, checkSequence: the state of a producer is that of the log
    """
    contents = Contents({})
    first, *lost = [contents.keep(TP, read_batch(batch_of("a", 7, n, epoch=0))) for n in range(1 + REMEMBERED)]
    leader = leads_with(contents, first)
    assert leader(lost[0].batch) == (None, None)
    assert leader(lost[1].batch) == (None, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    again = contents.keep(TP, read_batch(batch_of("b", 7, 1, records=2, epoch=0)))
    leader = leads_with(contents, first, again, lost[2])
    assert leader(lost[3].batch) == (None, None)
    assert leader(again.batch) == ((1, again), None)


def test_a_follower_gets_whole_batches() -> None:
    """Two batches of 420 kB fit in an answer of 1 MiB, and a record of the third would, too."""
    contents = Contents({})
    kept = [contents.keep(TP, read_batch(batch_of("x" * 60_000, 7, 7 * n, records=7, epoch=0))) for n in range(3)]
    entries = [entry for one in kept for entry in entries_of(0, one.values, one.sizes)]
    assert len(first_bytes(entries)) == 14


@pytest.mark.parametrize("sequence", [-1, 0], ids=["kafka-python", "sarama franz-go kafkajs aiokafka"])
def test_the_producer_id_decides_whether_a_batch_is_a_retry(lab: Lab, sequence: int) -> None:
    """Producers without idempotence write the producer id -1; some of them number every batch from 0 on."""
    with Asking(lab, 1) as leader:
        first = max((log.end for log in lab.log("orders", 0)), default=0)
        answers = [sent(leader, batch_of(text, -1, sequence)) for text in "abc"]
    assert answers == [(None, first), (None, first + 1), (None, first + 2)]
    assert [log.end for log in lab.log("orders", 0)] == [first + 3] * 3


def test_a_retry_has_both_ends_of_its_batch(lab: Lab) -> None:
    """The same range of sequence numbers is a retry; another that begins there is out of order."""
    with Asking(lab, 1) as leader:
        (error, offset) = sent(leader, batch_of("a", 7, 0, records=2, epoch=0))
        assert error is None
        assert sent(leader, batch_of("a", 7, 0, records=2, epoch=0)) == (None, offset)
        assert sent(leader, batch_of("a", 7, 0, records=3, epoch=0)) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
        assert sent(leader, batch_of("b", 7, 3, epoch=0)) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
        assert sent(leader, batch_of("b", 7, 2, epoch=0)) == (None, offset + 2)


def at_once(lab: Lab, leader: int, data: bytes, times: int) -> set[tuple[str | None, int]]:
    """What a leader answers to one batch that comes over so many connections at the same moment."""
    listeners: Any = lab.world.listeners
    broker: Any = lab.world.brokers[leader]
    service = Service(broker, listeners.shared, listeners.handlers)
    request = {"acks": 1, "timeout": 5000}
    request |= {"topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": data}]}]}

    async def asked() -> list[Any]:
        return await asyncio.gather(*(produce(service, 5, request) for _ in range(times)))

    parts = [topic["partition_responses"][0] for one in lab.world.run(asked()) for topic in one["responses"]]
    return {(name_of(part["error_code"]), part["base_offset"]) for part in parts}


def test_a_retry_comes_before_its_batch_is_appended(lab: Lab) -> None:
    """On another connection; a new ISR on its way to ZooKeeper holds both up."""
    ((error, _),) = at_once(lab, 1, batch_of("a", 70, 0, epoch=0), 2)
    assert error is None


@pytest.mark.parametrize("known", [False, True])
def test_only_what_this_leader_has_comes_before_a_batch(known: bool) -> None:
    """Five batches that the last leader alone had: without the first one the second is out of order.

    Kafka 2.0.1, 2.4.1: log/ProducerStateManager.scala, checkSequence: the state of a producer is that of the log
    """
    config = {"replica.lag.time.max.ms": 30_000}
    with listening("2.0", brokers=2, config=config, orders={0: [1, 2]}) as lab:
        first, *others = (batch_of(text, 7, known + place, epoch=0) for place, text in enumerate("abcde"))
        second = others[0]
        with Asking(lab, 1) as leader:
            if known:
                assert sent(leader, batch_of("x", 7, 0, epoch=0)) == (None, 0)
            lab.slow(2, 60)
            assert [sent(leader, data, acks=1)[1] - known for data in (first, *others)] == [0, 1, 2, 3, 4]
        lab.kill(1)
        eventually(lambda: ("orders", 0) in lab.brokers[2].leads)
        with Asking(lab, 2) as leader:
            early = "OUT_OF_ORDER_SEQUENCE_NUMBER" if known else "UNKNOWN_PRODUCER_ID"
            assert sent(leader, second, acks=1) == (early, -1)
            assert at_once(lab, 2, first, 2) == {(None, known)}
            assert [sent(leader, data, acks=1) for data in others] == [(None, n + known) for n in range(1, 5)]


def test_too_small_an_isr_is_noticed_before_the_order(lab: Lab) -> None:
    """Kafka 2.0.1, 2.4.1: cluster/Partition.scala, appendRecordsToLeader"""
    with Asking(lab, 1) as leader:
        data = batch_of("a", 71, 0, epoch=0)
        error, offset = sent(leader, data)
        assert error is None
        until_quiet(lab.alter_config, "topics", "orders", {"min.insync.replicas": 4})
        assert sent(leader, data) == sent(leader, batch_of("c", 71, 7, epoch=0)) == ("NOT_ENOUGH_REPLICAS", -1)
        assert sent(leader, data, acks=1) == (None, offset)
        until_quiet(lab.alter_config, "topics", "orders", {"min.insync.replicas": 1})


@pytest.mark.parametrize(
    ("first", "records", "following"),
    [
        (LARGEST_SEQUENCE, 1, 0),
        (LARGEST_SEQUENCE - 1, 1, LARGEST_SEQUENCE),
        (LARGEST_SEQUENCE - 1, 2, 0),
        (LARGEST_SEQUENCE - 1, 3, 1),  # it wraps within the batch
        (0, 1, 1),
    ],
)
def test_behind_the_largest_sequence_number_comes_0(first: int, records: int, following: int) -> None:
    """Kafka 2.4.1: common/record/DefaultRecordBatch.java, incrementSequence; ProducerAppendInfo, inSequence"""
    contents = Contents({})
    before, after = (read_batch(batch_of("a", 7, *numbers, epoch=0)) for numbers in ((first, records), (following, 1)))
    kept = contents.keep(TP, before)
    leader = leads_with(contents, kept)
    assert leader(before) == ((0, kept), None)
    for sequence in {0, 1, 2, LARGEST_SEQUENCE} - {following}:
        assert leader(read_batch(batch_of("b", 7, sequence, epoch=0))) != (None, None), sequence
    assert leader(after) == (None, None)
    leader = leads_with(contents, kept, contents.keep(TP, after))
    assert leader(after)[0] is not None
    assert leader(before) == ((0, kept), None)


def test_a_marker_takes_no_sequence_number() -> None:
    """The end of a transaction has the producer's id, and is neither a retry nor before what comes next."""
    contents = Contents({})
    first = contents.keep(TP, read_batch(batch_of("a", 7, 0, epoch=0)))
    ended = [contents.keep(TP, read_batch(marker(7, 0, True, 0))) for _ in range(2 * REMEMBERED)]
    assert not ended[0].batch.is_numbered
    leader = leads_with(contents, first, *ended)
    assert leader(read_batch(batch_of("b", 7, 1, epoch=0))) == (None, None)
    assert leader(first.batch) == ((0, first), None)


@pytest.mark.parametrize("producer", [-1, 7])
def test_what_the_next_leader_has_copied_keeps_its_bytes(producer: int) -> None:
    """The old leader, which has no replica any more, refuses the batch that it had appended; 3 has it, and knows a
    retry."""
    with listening("2.4", config={"replica.lag.time.max.ms": 60_000}, orders={0: [1, 2]}) as lab:
        lab.slow(2, 60)
        data = batch_of("a", producer, 0, epoch=0)
        topics = [{"name": "orders", "partition_data": [{"index": 0, "records": data}]}]
        with Asking(lab, 1) as before, Asking(lab, 3) as leader:
            before.send("Produce", 5, acks=-1, timeout=30_000, topic_data=topics)
            eventually(lambda: bool(lab.trace.slice(action="append")), "appended")
            lab.reassign({TP: [3, 2]})
            (part,) = before.receive()["responses"][0]["partition_responses"]
            assert name_of(part["error_code"]) == "NOT_LEADER_FOR_PARTITION"
            eventually(lambda: [log.broker for log in lab.logs() if log.end] == [3], "only 3 has it")
            asked = fetch_of(("orders", 0, 0))
            answer = leader.ask("Fetch", 11, replica_id=2, max_wait=0, min_bytes=1, max_bytes=1 << 20, topics=asked)
            (part,) = answer["responses"][0]["partitions"]
            assert [record.value for record in batches.read_records(batches.read_batch(part["records"]))] == [b"a0"]
            if producer >= 0:
                answer = leader.ask("Produce", 5, acks=1, timeout=5000, topic_data=topics)
                (part,) = answer["responses"][0]["partition_responses"]
                assert (name_of(part["error_code"]), part["base_offset"]) == (None, 0)
                assert [log.end for log in lab.logs() if log.broker == 3] == [1]


GIVEN_UP = Aborted(producer=7, first=2, last=5)
"""Records at 2 to 4, the marker at 5."""


@tabled
def test_the_aborted_transactions_of_a_fetch(start: int, end: int, is_listed: bool) -> None:
    """Those whose marker is not before the first offset, and whose first record is before the end.

    Kafka 2.0.1: log/TransactionIndex.scala, collectAbortedTxns
    """
    assert Transactions(None, (GIVEN_UP,)).aborted_between(start, end) == ([GIVEN_UP] if is_listed else [])


@pytest.mark.parametrize(("high_watermark", "stable"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 5)])
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_is_decided_when_its_marker_is_below_the_high_watermark(
    high_watermark: int, stable: int, commits: bool
) -> None:
    """One record, two of a transaction, its marker at offset 3, another record; not yet with the marker at the high
    watermark.

    Kafka 2.0.1: log/ProducerStateManager.scala, firstUnstableOffset, onHighWatermarkUpdated
    """
    contents = Contents({})
    of_a_transaction = [Record(0, 5, None, b"b"), Record(1, 5, None, b"c")]
    plain = write_batch([Record(0, 5, None, b"a")])
    batches = [
        plain,
        write_batch(of_a_transaction, producer=7, producer_epoch=0, sequence=0, attributes=TRANSACTIONAL),
        marker(7, 0, commits, 0),
        plain,
    ]
    kept = [contents.keep(TP, read_batch(data)) for data in batches]
    log = Log([Entry(0, value) for one in kept for value in one.values], high_watermark)
    known = contents.transactions(TP, log)
    assert known.last_stable(log.high_watermark) == stable
    assert known.aborted == (() if commits else (Aborted(7, 1, 3),))


@pytest.mark.parametrize(("generation", "named"), [("0.10", 2), ("2.0", -1), ("2.4", 2)])
def test_a_controller_that_is_not_alive(generation: str, named: int) -> None:
    """Broker 1 hears from controller 2 that 1 and 3 are alive; 2.0 then names no controller.

    Kafka 2.0.1: common/requests/MetadataResponse.java, toStruct; 2.4.1: the same, prepareResponse
    """
    versions = {"0.10": (3, 2), "2.0": (4, 6), "2.4": (6, 9)}
    with listening(generation) as lab, Asking(lab, 1) as broker:
        update, metadata = versions[generation]
        before = broker.ask("Metadata", metadata, topics=None)
        assert before["controller_id"] == lab.controller.id
        live = [
            {
                "id": node["node_id"],
                "endpoints": [
                    {"port": node["port"], "host": node["host"], "listener": "PLAINTEXT", "security_protocol": 0}
                ],
                "rack": None,
            }
            for node in before["brokers"]
            if node["node_id"] != 2
        ]
        answer = broker.ask(
            "UpdateMetadata",
            update,
            controller_id=2,
            controller_epoch=100,
            broker_epoch=-1,
            live_brokers=live,
            ungrouped_partition_states=[],
            topic_states=[],
        )
        assert answer["error_code"] == 0
        after = broker.ask("Metadata", metadata, topics=None)
        assert [node["node_id"] for node in after["brokers"]] == [1, 3]
        assert after["controller_id"] == named


def deleted_by_the_lab(lab: Lab) -> None:
    lab.delete_topic("orders")


def deleted_by_a_client(lab: Lab) -> None:
    ask(lab.bootstrap_servers, "DeleteTopics", 1, {"topic_names": ["orders"], "timeout": 5000})


def deleted_without_waiting(lab: Lab) -> None:
    ask(lab.bootstrap_servers, "DeleteTopics", 1, {"topic_names": ["orders"], "timeout": 0})


@pytest.mark.parametrize("delete", [deleted_by_the_lab, deleted_by_a_client, deleted_without_waiting])
def test_a_topic_of_the_same_name_begins_without_batches(delete: Callable[[Lab], None]) -> None:
    """A batch with the numbers of one in the deleted topic is no retry of that one."""
    with listening(brokers=1) as lab:
        for text in ("a", "b"):
            until_quiet(lab.create_topic, "orders", assignment={0: [1]})
            with Asking(lab, 1) as leader:
                assert sent(leader, batch_of(text, 7, 0, epoch=0)) == (None, 0)
            assert [record.value for record in committed_records(lab.world, TP)] == [f"{text}0".encode()]
            delete(lab)
            lab.settle()
        until_quiet(lab.create_topic, "orders", assignment={0: [1]})
        with Asking(lab, 1) as leader:
            assert sent(leader, batch_of("c", 7, 1, epoch=0)) == ("UNKNOWN_PRODUCER_ID", -1)


def test_a_partition_that_leaves_one_broker_keeps_its_batches() -> None:
    """The broker that it moves from deletes its copy; the others have the records."""
    with listening(orders={0: [1, 2]}) as lab:
        with Asking(lab, 1) as leader:
            assert sent(leader, batch_of("a", 7, 0, epoch=0)) == (None, 0)
        until_quiet(lab.reassign, {TP: [2, 3]})
        assert sorted(log.broker for log in lab.logs()) == [2, 3]
        assert [record.value for record in committed_records(lab.world, TP)] == [b"a0"]


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_topic_is_deleted_while_a_producer_waits(generation: str) -> None:
    """Its batch is in no log any more; the producer gets an error, and the lab goes on."""
    with listening(generation, orders={0: [1, 2]}) as lab:
        lab.lag(2, "orders", 0)
        topics = [{"name": "orders", "partition_data": [{"index": 0, "records": batch_of("a", 7, 0, epoch=0)}]}]
        with Asking(lab, 1) as leader:
            leader.send("Produce", 5, acks=-1, timeout=5000, topic_data=topics)
            eventually(lambda: bool(lab.trace.slice(action="append")), "appended")
            with Asking(lab, lab.controller.id) as controller:
                controller.ask("DeleteTopics", 1, topic_names=["orders"], timeout=5000)
            (part,) = leader.receive()["responses"][0]["partition_responses"]
        assert part["error_code"] != 0
        lab.settle()
