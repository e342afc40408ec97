"""Copying takes time: sizes of records, throttled rates (KIP-73), and when a move under a throttle ends."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labs import lab_of, play, process_of, until_quiet

from kafka_ctl import BadInput, Lab, TopicPartition, UnknownName
from kafka_ctl.brokers.replication_quota import ALL, ReplicationQuota, SimpleRate, throttled_partitions
from kafka_ctl.errors import ApiException
from kafka_ctl.trace import details

ORDERS = TopicPartition("orders", 0)
MB = 1_000_000
RATE, REPLICAS = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"


def two_copies(generation: str = "2.0") -> Lab:
    """Three brokers; orders-0 is on 1 and 2."""
    return lab_of("orders", {0: [1, 2]}, brokers=3, generation=generation, seed=1)


def seconds_of(lab: Lab, action: str, broker: int) -> list[float]:
    """When a broker did something to `orders-0`."""
    return [r.time_ms / 1000 for r in lab.trace.slice(action=action, topic="orders") if r.broker == broker]


# The quota by itself


def test_a_rate_is_what_kafka_measures() -> None:
    """Kafka 2.0.1: ReplicationQuotaManagerTest, shouldExceedQuotaThenReturnBackBelowBoundAsTimePasses."""
    now = [0.0]
    quota = ReplicationQuota(lambda: now[0])
    quota.bound, quota.throttled["orders"] = 100, ALL
    assert not quota.is_exceeded
    now[0] = 1.5
    for size, exceeded in ((1, False), (149, False), (1, True)):
        quota.record(ORDERS, size)
        assert quota.is_exceeded is exceeded
    assert quota.rate == 151 / 1.5
    now[0] = 2.0
    assert (quota.rate, quota.is_exceeded) == (151 / 2, False)
    now[0] = 2.5
    quota.record(ORDERS, 99)
    assert (quota.rate, quota.is_exceeded) == (250 / 2.5, False)
    quota.record(ORDERS, 1)
    assert (quota.rate, quota.is_exceeded) == (251 / 2.5, True)
    now[0] = 4.5
    assert (quota.rate, quota.is_exceeded) == (251 / 4.5, False)


def test_what_is_older_than_eleven_seconds_does_not_count() -> None:
    rate = SimpleRate()
    for second in range(30):
        rate.record(100, 1000 * second)
    assert rate.measure(29_000) == 1100 / 10
    assert rate.measure(29_000 + 11_000) == 0


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 10**6)), max_size=80))
def test_a_rate_counts_each_byte_once_for_ten_seconds(steps: list[tuple[int, int]]) -> None:
    """Whatever comes when: what was recorded in the last ten seconds is there, what is older than twelve is not."""
    rate, now, reported = SimpleRate(), 0, []
    for wait, value in steps:
        now += wait
        rate.record(value, now)
        reported.append((now, value))
        measured = rate.measure(now)
        counted = round(measured * max(now - min(s.since for s in rate.samples), 1000) / 1000)
        assert sum(v for at, v in reported if now - at < 10_000) <= counted + 1
        assert counted <= sum(v for at, v in reported if now - at < 12_000) + 1


def test_throttled_replicas_as_a_topic_lists_them() -> None:
    assert throttled_partitions("0:1,1:2,2:1", 1) == {0, 2}
    assert throttled_partitions("", 1) == frozenset()
    assert throttled_partitions("*", 1) is ALL
    quota = ReplicationQuota(lambda: 0.0)
    quota.throttled["orders"] = ALL
    assert quota.is_throttled(ORDERS) and not quota.is_throttled(TopicPartition("other", 0))


# Sizes


def test_each_byte_takes_its_time() -> None:
    """100 MB over a link of 1 Gbit/s: 0.8 s, and a round trip for each MiB; a record without a size takes none."""
    with two_copies() as lab:
        start = lab.now
        until_quiet(lab.produce, "orders", 0, records=100, size=MB)
        copies = seconds_of(lab, "copy", 2)
        assert len(copies) == 100
        assert copies[-1] - start == pytest.approx(100 * MB * 8e-9 + 100 * 0.001, abs=0.01)
        now = lab.now
        lab.produce("orders", 0, records=100)
        assert lab.now - now < 0.01


def test_a_hundred_thousand_records_are_no_trouble() -> None:
    began = time.process_time()
    with two_copies() as lab:
        done = lab.produce("orders", 0, records=100_000, size=1000)
        assert done is not None and done.acknowledged
        lab.settle()
        assert [log.end for log in lab.log("orders", 0)] == [100_000, 100_000]
        (written,) = lab.trace.slice(action="append")
        assert written.detail == "offset=0 records=1..100000@0 bytes=100000000"
        assert lab.violations == ()
    assert time.process_time() - began < 60


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=30))
def test_many_records_are_written_as_runs_and_read_again(steps: list[tuple[int, int]]) -> None:
    values, epochs, value = [], [], 0
    for step, epoch in steps:
        for _ in range(30):
            value += step if not values or len(values) % 30 == 0 else 1
            values.append(value)
            epochs.append(epoch)
    assert details.records(details.runs(values, epochs)) == list(zip(values, epochs, strict=True))
    assert details.records(details.runs(values)) == [(value, 0) for value in values]


def test_who_copies_for_too_long_leaves_the_isr() -> None:
    """2 GB over 1 Gbit/s take 16 s; a follower that has not caught up for 10 s is not in sync."""
    with two_copies() as lab:
        until_quiet(lab.produce, "orders", 0, records=2000, size=MB, acks=1)
        (left,), (back,) = seconds_of(lab, "shrink-isr", 1), seconds_of(lab, "expand-isr", 1)
        assert 10 < left < 16 < back < 20
        assert lab.partition("orders", 0).isr == (1, 2)
        assert lab.violations == ()


# Throttles


@pytest.mark.parametrize(("records", "rate"), [(100, MB), (300, 10 * MB)])
def test_a_throttled_move_ends_when_it_was_computed_to(generation: str, records: int, rate: int) -> None:
    """Bytes by rate; Kafka looks once a second, and measures over ten, so that it is a little slower."""
    with two_copies(generation) as lab:
        until_quiet(lab.produce, "orders", 0, records=records, size=MB)
        computed = records * MB / rate
        lab.execute_reassignment({ORDERS: [1, 3]}, throttle=rate)
        lab.run_for(computed / 2)
        assert lab.partition("orders", 0).isr == (1, 2)  # it can be watched
        half = next(log.end for log in lab.log("orders", 0) if log.broker == 3)
        assert half == pytest.approx(records / 2, rel=0.25)
        lab.settle()
        took = seconds_of(lab, "copy", 3)[-1] - seconds_of(lab, "become-follower", 3)[0]
        assert computed - 1.5 < took < computed * 1.1 + 1.5
        assert lab.partition("orders", 0).isr == (1, 3)
        assert "Throttle was removed." in lab.verify_reassignment({ORDERS: [1, 3]})
        lab.settle()
        assert lab.violations == ()
        quotas = [broker.quotas for broker in lab.world.brokers.values()]
        assert {quota.bound for pair in quotas for quota in pair} == {None}
        assert not any(quota.is_throttled(ORDERS) for pair in quotas for quota in pair)
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_either_side_slows_a_move_down(side: str) -> None:
    with two_copies() as lab:
        lab.produce("orders", 0, records=50, size=MB)
        lab.alter_config("topics", "orders", {f"{side}.replication.throttled.replicas": "*"})
        lab.alter_config("brokers", 1 if side == "leader" else 3, {f"{side}.replication.throttled.rate": 5 * MB})
        lab.settle()
        start = lab.now
        until_quiet(lab.reassign, {ORDERS: [1, 3]})
        assert 8.5 < seconds_of(lab, "copy", 3)[-1] - start < 13


def test_a_replica_in_sync_is_not_throttled() -> None:
    """Else it would leave the ISR, and be further behind when it comes back (KIP-73)."""
    with two_copies() as lab:
        for broker in (1, 2):
            lab.alter_config(
                "brokers", broker, {f"{side}.replication.throttled.rate": 1000 for side in ("leader", "follower")}
            )
        until_quiet(
            lab.alter_config,
            "topics",
            "orders",
            {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")},
        )
        start = lab.now
        for _ in range(5):
            lab.produce("orders", 0, size=MB)
        assert lab.now - start < 1
        assert lab.partition("orders", 0).isr == (1, 2)


def test_a_rate_can_be_changed_while_partitions_move() -> None:
    with two_copies() as lab:
        until_quiet(lab.produce, "orders", 0, records=200, size=MB)
        start = lab.now
        lab.execute_reassignment({ORDERS: [1, 3]}, throttle=MB)
        lab.run_for(20)
        assert lab.partition("orders", 0).isr == (1, 2)
        printed = lab.execute_reassignment({ORDERS: [1, 3]}, throttle=100 * MB)
        assert "There is an existing assignment running." in printed
        lab.settle()
        took = seconds_of(lab, "copy", 3)[-1] - start
        assert 20 < took < 40


def test_a_broker_that_starts_reads_what_is_set() -> None:
    with two_copies() as lab:
        with pytest.raises(UnknownName, match="unknown entity type 'users'; known: topics, brokers"):
            lab.alter_config("users", "orders", {REPLICAS: "0:3"})
        lab.alter_config("topics", "orders", {REPLICAS: "0:3"})
        until_quiet(lab.alter_config, "brokers", 3, {RATE: 5 * MB})
        play(lab, "kill 3; settle; start 3; settle")
        quota = process_of(lab, 3).quotas.follower
        assert (quota.bound, quota.is_throttled(ORDERS)) == (5 * MB, True)
        until_quiet(lab.expire_session, 3)
        until_quiet(lab.alter_config, "brokers", 3, {RATE: MB})
        assert quota.bound == MB


# Settings that change while they are used


def test_a_topics_setting_changes_while_it_is_used(generation: str) -> None:
    with two_copies(generation) as lab:
        until_quiet(lab.kill, 2)
        one = lab.produce("orders", 0)
        assert one is not None and one.acknowledged
        until_quiet(lab.alter_config, "topics", "orders", {"min.insync.replicas": 2})
        changed = lab.trace.slice(action="config-changed")
        assert {(r.broker, r.topic, r.detail) for r in changed} == {
            (broker, "orders", 'config={"min.insync.replicas":"2"}') for broker in (1, 3)
        }
        assert lab.produce("orders", 0).error == "NOT_ENOUGH_REPLICAS"  # type: ignore[union-attr]
        assert (
            lab.znodes()["/config/changes/config_change_0000000000"][0]
            == b'{"version":2,"entity_path":"topics/orders"}'
        )
        until_quiet(lab.alter_config, "topics", "orders", {"min.insync.replicas": None})
        assert lab.produce("orders", 0).acknowledged  # type: ignore[union-attr]
        with Lab.replay(lab.story) as again, lab.fork() as other:
            assert again.trace.text() == lab.trace.text() == other.trace.text()


def test_what_cannot_be_set_is_refused() -> None:
    with two_copies() as lab:
        reported = lab.story
        for entity, name, config, error, logged in (
            ("users", "me", {}, UnknownName, "unknown entity type"),
            ("topics", "nothing", {"retention.ms": 1}, UnknownName, "unknown topic 'nothing'"),
            ("topics", "orders", {"colour": 1}, UnknownName, "unknown topic configuration key 'colour'"),
            ("topics", "orders", {"min.insync.replicas": 0}, ApiException, "Value must be at least 1"),
            ("topics", "orders", {REPLICAS: "1:2:3"}, ApiException, "must be the literal '.' or a list of replicas"),
            ("topics", "orders", {"retention.ms": None}, BadInput, r"Invalid config\(s\): retention.ms"),
            ("brokers", 1, {"colour": 3}, UnknownName, "unknown broker configuration key 'colour'"),
            ("brokers", 1, {"broker.id": 3}, BadInput, r"broker\.id cannot be changed while a broker runs"),
            ("brokers", 1, {RATE: "fast"}, ApiException, "Not a number of type LONG"),
            ("brokers", "one", {RATE: 1}, BadInput, "a broker id cannot be 'one'"),
        ):
            with pytest.raises(error, match=logged):
                lab.alter_config(entity, name, config)  # type: ignore[arg-type]
        assert all(line in reported or line.startswith("refused") for line in lab.story.splitlines())


def test_without_a_change_nobody_watches() -> None:
    """So a run without changes is what it was before brokers could do this."""
    with two_copies() as lab:
        assert not lab.trace.slice(path="/config/changes", action="children")
        lab.write_znode("/config/changes/config_change_0000000007", {"version": 2, "entity_path": "topics/orders"})
        lab.settle()
        assert {r.broker for r in lab.trace.slice(action="config-changed")} == {1, 2, 3}


def notifications(lab: Lab) -> list[str]:
    return [path[-2:] for path in lab.znodes() if path.startswith("/config/changes/")]


def test_old_notifications_are_purged_with_the_next_change(generation: str) -> None:
    """Those that are older than 15 minutes, by whichever broker is first; nobody looks before something changes."""
    with two_copies(generation) as lab:
        for value in (1, 2):
            lab.alter_config("topics", "orders", {"retention.ms": value})
            lab.run_for(8 * 60)
        assert notifications(lab) == ["00", "01"]
        lab.run_for(60)
        until_quiet(lab.alter_config, "topics", "orders", {"retention.ms": 3})
        assert notifications(lab) == ["01", "02"]
        purged = [r for r in lab.trace.slice(action="delete") if (r.path or "").startswith("/config/changes/")]
        assert (purged[0].path, purged[0].error) == ("/config/changes/config_change_0000000000", None)
        assert {r.error for r in purged[1:]} <= {"NONODE"}
        lab.run_for(60 * 60)
        assert notifications(lab) == ["01", "02"]
        changed = [r.detail for r in lab.trace.slice(action="config-changed")]
        assert [changed.count(f'config={{"retention.ms":"{value}"}}') for value in (1, 2, 3)] == [3, 3, 3]
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


# Copies between log directories

LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
able = pytest.mark.parametrize("generation", ["2.0", "2.4"])


def to_other_directory(*topics: str) -> str:
    """A plan by which broker 1 has its copy of partition 0 of these topics in `/d1`."""
    entries = [{"topic": topic, "partition": 0, "replicas": [1, 2], "log_dirs": ["/d1", "any"]} for topic in topics]
    return json.dumps({"version": 1, "partitions": entries})


def swapped(lab: Lab) -> dict[str | None, float]:
    """By topic the second at which broker 1 put a future copy in place."""
    return {r.topic: r.time_ms / 1000 for r in lab.trace.slice(action="log-dir-swapped") if r.broker == 1}


@able
@pytest.mark.parametrize(
    ("size", "rate", "least", "most"),
    [(0, None, 0.2, 0.21), (30, None, 0.4, 0.5), (30, MB, 28, 31), (300, 10 * MB, 28, 33)],
)
def test_a_move_between_log_directories_takes_the_time_of_its_throttle(
    generation: str, size: int, rate: int | None, least: float, most: float
) -> None:
    """MB by bytes a second. Without a throttle: the time of a follower that comes back, and 8 ns a byte."""
    with two_copies(generation) as lab:
        if size:
            until_quiet(lab.produce, "orders", 0, records=size, size=MB)
        start, plan = lab.now, to_other_directory("orders")
        until_quiet(lab.execute_reassignment, plan, replica_alter_log_dirs_throttle=rate)
        assert least < swapped(lab)["orders"] - start < most
        assert lab.partition("orders", 0).isr == (1, 2)  # the copies between brokers are not slowed down
        if rate is not None:
            assert lab.verify_reassignment(plan).endswith("Throttle was removed.")
            lab.settle()
        assert {broker.quotas.alter_log_dirs.bound for broker in lab.world.brokers.values()} == {None}
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


def test_the_rate_of_a_broker_counts_for_its_own_copies_only_and_changes_while_they_move() -> None:
    with two_copies() as lab:
        lab.produce("orders", 0, records=60, size=MB)
        lab.alter_config("brokers", 2, {LOG_DIRS_RATE: 1000})
        until_quiet(lab.alter_config, "brokers", 1, {LOG_DIRS_RATE: MB})
        start = lab.now
        lab.execute_reassignment(to_other_directory("orders"))
        lab.run_for(20)
        assert lab.log_dirs()[0].future == "/d1"
        until_quiet(lab.alter_config, "brokers", 1, {LOG_DIRS_RATE: None})
        assert 20 < swapped(lab)["orders"] - start < 23


@able
def test_a_thread_moves_one_partition_at_a_time(generation: str) -> None:
    """`a-0` and `c-0` have the same thread, as both hashes are odd. 2.0 takes the last by name first, 2.4 the first."""
    with Lab(brokers=2, generation=generation, seed=1) as lab:
        for topic in ("a", "b", "c"):  # b-0 takes the place in /d1
            until_quiet(lab.create_topic, topic, assignment={0: [1, 2]})
            until_quiet(lab.produce, topic, 0, records=10, size=MB)
        start = lab.now
        until_quiet(lab.execute_reassignment, to_other_directory("a", "c"), replica_alter_log_dirs_throttle=MB)
        took = {topic: at - start for topic, at in swapped(lab).items()}
        first, second = ("a", "c") if generation == "2.4" else ("c", "a")
        assert 8 < took[first] < 11 and 18 < took[second] < 21


@able
def test_two_threads_share_the_rate_of_their_broker(generation: str) -> None:
    """`a-0` and `d-0` have different threads: both move at once, and share 1 MB/s."""
    with Lab(brokers=2, generation=generation, seed=1) as lab:
        for topic in ("a", "b", "d"):
            until_quiet(lab.create_topic, topic, assignment={0: [1, 2]})
            until_quiet(lab.produce, topic, 0, records=10, size=MB)
        start = lab.now
        until_quiet(lab.execute_reassignment, to_other_directory("a", "d"), replica_alter_log_dirs_throttle=MB)
        assert all(16 < at - start < 21 for at in swapped(lab).values())


def test_a_move_that_begins_again_goes_on_where_it_was() -> None:
    """The future copy outlives the process; what the leader has not is dropped from it as from the present copy."""
    with two_copies() as lab:
        until_quiet(lab.produce, "orders", 0, records=30, size=MB)
        lab.execute_reassignment(to_other_directory("orders"), replica_alter_log_dirs_throttle=MB)
        lab.run_for(20)
        before = process_of(lab, 1).disk.logs[ORDERS].future_end
        assert 15 < before < 25
        lab.kill(1)
        lab.run_for(10)
        lab.start(1)
        lab.run_for(1)
        assert process_of(lab, 1).disk.logs[ORDERS].future_end >= before
        start = lab.now
        lab.settle()
        assert swapped(lab)["orders"] - start < 15
        assert process_of(lab, 1).disk.logs[ORDERS].future_end == 0
