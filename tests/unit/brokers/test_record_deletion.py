"""Records that are deleted: the log start offset of leaders and followers, and who waits for it.

Motive: Kafka 2.0.1, AdminClientIntegrationTest.scala, testLogStartOffsetCheckpoint,
testReplicaCanFetchFromLogStartOffsetAfterDeleteRecords, testInvalidAlterConfigs; DelayedDeleteRecords.scala
"""

from collections.abc import Coroutine
from typing import Any

import pytest
from labs import lab_of, play, process_of, until_quiet
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.brokers.delayed_operations import DelayedDeleteRecords, Deleted
from kafka_ctl.brokers.log import GONE, Entry, Log
from kafka_ctl.brokers.purgatory import Purgatory
from kafka_ctl.brokers.timing_wheel import TimingWheel
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.requests import DeleteRecordsRequest, Response

TP = TopicPartition("orders", 0)
GENERATIONS = pytest.mark.parametrize("generation", ["2.0", "2.4"])


def lab_with(records: int = 5, generation: str = "2.0", replicas: list[int] | None = None, **config: Any) -> Lab:
    """Three brokers; broker 1 leads the partition."""
    lab = Lab(brokers=3, generation=generation, seed=1)
    until_quiet(lab.create_topic, "orders", assignment={0: replicas or [1, 2, 3]}, config=config)
    until_quiet(lab.produce, "orders", 0, records=records)
    return lab


def asked(lab: Lab, offset: int, broker: int = 1, seconds: float = 30.0) -> Coroutine[Any, Any, tuple[str | None, int]]:
    """The error that a broker answers to DeleteRecords, and the low watermark."""

    async def ask() -> tuple[str | None, int]:
        request = DeleteRecordsRequest({TP: offset}, seconds)
        response: Response = (await process_of(lab, broker).receive(request, None))[0]
        return response.errors[TP], response.low_watermarks[TP]

    return ask()


def deleted(lab: Lab, offset: int, broker: int = 1, seconds: float = 30.0) -> tuple[str | None, int]:
    return lab.world.run(asked(lab, offset, broker, seconds))


def starts(lab: Lab) -> dict[int, int]:
    return {view.broker: view.start for view in lab.logs()}


@GENERATIONS
def test_all_replicas_delete_and_the_request_waits_for_them(generation: str) -> None:
    """A follower learns of it when its fetch has waited for half a second; its next fetch tells the leader."""
    with lab_with(generation=generation) as lab:
        before = lab.now
        assert deleted(lab, 3) == (None, 3)
        assert 0.4 < lab.now - before < 0.7
        assert starts(lab) == {1: 3, 2: 3, 3: 3}
        assert [view.content for view in lab.logs()] == ["from 3: 4@0 5@0 |"] * 3
        raised = lab.trace.slice(action="log-start")
        assert [(r.broker, r.detail) for r in raised] == [
            (1, "offset=3 by=delete-records"),
            (2, "offset=3 by=leader"),
            (3, "offset=3 by=leader"),
        ]
        assert deleted(lab, 2) == (None, 3)  # it never goes back, and answers at once
        assert deleted(lab, -1) == (None, 5)
        until_quiet(lab.produce, "orders", 0)
        assert [view.content for view in lab.logs()] == ["from 5: 6@0 |"] * 3
        assert not lab.violations


@GENERATIONS
def test_what_cannot_be_deleted(generation: str) -> None:
    with lab_with(generation=generation) as lab:
        assert deleted(lab, 6) == ("OFFSET_OUT_OF_RANGE", -1)
        assert deleted(lab, -2) == ("OFFSET_OUT_OF_RANGE", -1)
        assert deleted(lab, 1, broker=2) == ("NOT_LEADER_FOR_PARTITION", -1)
        until_quiet(lab.alter_config, "topics", "orders", {"cleanup.policy": "compact"})
        assert deleted(lab, 1) == ("POLICY_VIOLATION", -1)
        assert set(starts(lab).values()) == {0}


def test_nothing_was_ever_written() -> None:
    with lab_of("orders", {0: [1, 2]}, brokers=3) as lab:
        assert deleted(lab, 0) == (None, 0) == deleted(lab, -1)
        assert deleted(lab, 1) == ("OFFSET_OUT_OF_RANGE", -1)
        assert deleted(lab, 0, broker=3) == ("NOT_LEADER_FOR_PARTITION", -1)


def test_a_follower_that_lags_makes_the_request_time_out() -> None:
    """The records are deleted all the same; it counts no more when its broker is dead."""
    with lab_with() as lab:
        lab.lag(2, "orders", 0)
        assert deleted(lab, 2, seconds=2.0) == ("REQUEST_TIMED_OUT", 0)
        assert starts(lab) == {1: 2, 2: 0, 3: 2}
        until_quiet(lab.kill, 2)
        assert deleted(lab, 3, seconds=2.0) == (None, 3)


@GENERATIONS
def test_a_new_replica_begins_where_the_leaders_log_does(generation: str) -> None:
    """OFFSET_OUT_OF_RANGE: it asks where that is, drops what it has, and goes on from there."""
    with lab_with(generation=generation, replicas=[1, 2]) as lab:
        assert deleted(lab, 4) == (None, 4)
        until_quiet(lab.reassign, {("orders", 0): [1, 2, 3]})
        assert lab.partition("orders", 0).isr == (1, 2, 3)
        assert [(view.broker, view.content) for view in lab.logs()][-1] == (3, "from 4: 5@0 |")
        assert [r.detail for r in lab.trace.slice(action="log-start") if r.broker == 3] == ["offset=4 by=leader-start"]
        assert not lab.violations


@GENERATIONS
def test_a_follower_comes_back_and_all_it_has_is_deleted(generation: str) -> None:
    with lab_with(generation=generation) as lab:
        play(lab, "kill 3; settle; produce orders 0 records=3; settle")
        assert deleted(lab, 7) == (None, 7)
        until_quiet(lab.start, 3)
        assert {view.content for view in lab.logs()} == {"from 7: 8@1 |"}
        dropped = [r.detail for r in lab.trace.slice(action="truncate") if r.broker == 3]
        assert dropped == ["offset=0 records=1@0,2@0,3@0,4@0,5@0 by=leader-start"]
        play(lab, "kill 1; settle; produce orders 0; settle")
        written = f"from 7: 8@1 9@{lab.partition('orders', 0).leader_epoch} |"
        assert {view.content for view in lab.logs() if view.broker != 1} == {written}
        until_quiet(lab.start, 1)
        assert {view.content for view in lab.logs()} == {written}
        assert not lab.violations


def test_a_request_that_waits_times_out_when_the_leader_has_gone() -> None:
    """Kafka 2.0.1: server/ReplicaManager.scala, makeFollowers, stopReplica: neither looks at waiting deletions."""
    with lab_with() as lab:
        lab.lag(2, "orders", 0)
        task = lab.world.clock.loop.create_task(asked(lab, 2))
        lab.run_for(1)
        lab.reassign({("orders", 0): [3]})
        lab.run_for(9)
        assert lab.partition("orders", 0).replicas == (3,) and not task.done()
        lab.run_for(20.1)
        assert task.result() == ("REQUEST_TIMED_OUT", 0)


# The parts


def test_a_delayed_deletion_completes_when_every_partition_is_there_or_refused() -> None:
    other = TopicPartition("orders", 1)
    wanted, lows = {TP: (2, 0), other: (3, 0)}, dict[TopicPartition, Any]({TP: 0, other: 0})
    purgatory = Purgatory(TimingWheel())
    operation = DelayedDeleteRecords(1000, wanted, {}, lows.__getitem__)
    assert not purgatory.try_complete_else_watch(operation, [TP, other])
    lows[TP] = 2
    assert purgatory.check_and_complete(TP) == 0
    lows[other] = "NOT_LEADER_FOR_PARTITION"
    assert purgatory.check_and_complete(other) == 1
    assert operation.result == {TP: Deleted(2), other: Deleted(-1, "NOT_LEADER_FOR_PARTITION")}


@tabled
def test_where_an_epoch_ends_in_a_log_that_does_not_begin_at_0(
    epochs: str, start: int, asked: int, answer: tuple[int, int]
) -> None:
    """Kafka 2.0.1: LeaderEpochFileCacheTest.scala, shouldReturnEpochOffsetForFirstEpochAfterTruncateFromStart"""
    log = Log((Entry(int(epoch), value) for value, epoch in enumerate(epochs)), len(epochs))
    log.start_at(start)
    assert log.end_of(asked) == answer


def test_a_log_that_ends_below_its_new_start_is_empty() -> None:
    log = Log([Entry(0, 1), Entry(0, 2)], 1)
    log.start_at(1)
    assert (log.start, log.end, log.high_watermark) == (1, 2, 1)
    log.start_at(4)
    assert (log.start, log.end, log.high_watermark, log.entries) == (4, 4, 4, [GONE] * 4)
    assert log.common_end(lambda epoch: (epoch, 9)) == 4
    log.entries.append(Entry(1, 7))
    assert log.truncate(3) == [GONE, Entry(1, 7)]
    assert (log.start, log.end, log.high_watermark) == (3, 3, 3)
