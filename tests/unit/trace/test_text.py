"""Records as lines: one fact a line, columns that stay, zeros left out, sets sorted."""

import pytest
from labs import until_quiet
from prose import Prose
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.errors import UnknownName
from kafka_ctl.trace import KINDS, Record
from kafka_ctl.trace.text import LEVELS, MOST_NAMES, describe, text

P = {"topic": "orders", "partition": 0}
LED = {"leader": 2, "isr": (3, 2), "leader_epoch": 1, "zk_version": 4, "controller_epoch": 7}


def line(actor: str, kind: str, action: str, **columns: object) -> str:
    return describe(Record(5, 6092.2667, actor, kind, action, **columns))


@tabled(ids=lambda value: value[1] + " " + value[2] if isinstance(value, tuple) else "")
def test_a_line(record: tuple[str, str, str, dict[str, object]], wanted: str) -> None:
    actor, kind, action, columns = record
    assert line(actor, kind, action, **columns) == f"t=6092.3    {actor:<12}  {wanted}"


def test_every_kind_has_a_line() -> None:
    for kind in KINDS:
        assert kind in line("controller-1", kind, "anything")


def reported(*records: Record, level: str = "story") -> list[str]:
    return [row[26:] for row in text([r._replace(seq=i) for i, r in enumerate(records)], level).splitlines()]


def test_one_batch_is_one_line_for_each_thing_it_says() -> None:
    """The same state for several brokers, and several partitions for the same brokers."""
    led = Record(0, 1.0, "controller-1", "request", "LeaderAndIsr", **P, broker=3, **LED, cause=9)
    other = led._replace(partition=1, leader=3)
    known = led._replace(action="UpdateMetadata", broker=None, detail="brokers=1,2,3")
    assert reported(led, other, led._replace(broker=2), known, known._replace(partition=1)) == [
        "request     LeaderAndIsr -> 2,3       orders-0  leader=2 isr=3,2 leader_epoch=1",
        "request     LeaderAndIsr -> 3         orders-1  leader=3 isr=3,2 leader_epoch=1",
        "request     UpdateMetadata -> 1,2,3   orders-0 orders-1",
    ]


def test_two_batches_stay_two() -> None:
    """Another cause, or the same subject once more, begins a new batch."""
    led = Record(0, 1.0, "controller-1", "request", "LeaderAndIsr", **P, broker=3, **LED, cause=9)
    assert len(reported(led, led._replace(broker=2, cause=10))) == 2
    known = led._replace(action="UpdateMetadata", broker=None, detail="brokers=1")
    again = known._replace(partition=1, leader=1)
    assert reported(known, again, known) == [
        "request     UpdateMetadata -> 1       orders-0 orders-1",
        "request     UpdateMetadata -> 1       orders-0  leader=2 isr=3,2 leader_epoch=1",
    ]


def test_replicas_of_one_partition_that_move_alike_share_a_line() -> None:
    moved = Record(
        0, 1.0, "controller-1", "replica", "create", **P, broker=3, source="NonExistentReplica", target="NewReplica"
    )
    assert reported(moved, moved._replace(broker=1)) == ["replica     orders-0@1,3  NonExistent -> New"]


def test_many_partitions_are_counted() -> None:
    stop = Record(0, 1.0, "controller-1", "request", "StopReplica", topic="t", partition=0, broker=3)
    (row,) = reported(*(stop._replace(partition=n) for n in range(MOST_NAMES + 5)))
    assert row.endswith(f"t-{MOST_NAMES - 1} and 5 more")


def test_repetitions_are_counted() -> None:
    logged = Record(0, 1.0, "controller-1", "controller", "not_sending", detail='{"broker": 3}')
    assert reported(logged, logged, logged) == ["controller  not_sending   broker=3  (3 times)"]


@pytest.mark.parametrize(
    "record",
    [
        Record(0, 0.0, "broker-1", "zk", "get", path="/controller"),
        Record(0, 0.0, "broker-1", "zk", "create", path="/brokers", target="persistent"),
        Record(0, 0.0, "broker-1", "zk", "create", path="/brokers", error="NODEEXISTS"),
        Record(0, 0.0, "broker-1", "zk", "delete", path="/admin/reassign_partitions", error="NONODE"),
        Record(0, 0.0, "controller-1", "event", "TopicChange", target="queued"),
        Record(0, 0.0, "controller-1", "event", "TopicChange", target="done"),
        Record(0, 0.0, "controller-1", "event", "LeaderAndIsrResponseReceived", target="started"),
        Record(0, 0.0, "controller-1", "controller", "registering_handlers"),
        Record(0, 0.0, "controller-1", "controller", "shutting_brokers", detail='{"brokers": []}'),
        Record(0, 0.0, "controller-1", "request", "LeaderAndIsr", broker=1, target="sent", detail="partitions=1"),
        Record(0, 0.0, "broker-1", "response", "LeaderAndIsr", broker=1),
        Record(0, 0.0, "broker-1", "broker", "cached", topic="t", partition=0),
    ],
    ids=lambda record: f"{record.kind} {record.action}",
)
def test_a_story_leaves_out(record: Record) -> None:
    assert text([record]) == ""
    assert text([record], "all") == describe(record)


@pytest.mark.parametrize(
    "record",
    [
        Record(0, 0.0, "broker-1", "zk", "create", path="/controller", error="NODEEXISTS"),
        Record(0, 0.0, "broker-1", "zk", "create", path="/admin/delete_topics/t", target="persistent"),
        Record(0, 0.0, "controller-1", "event", "TopicChange", target="done", error="StateChangeFailed"),
        Record(0, 0.0, "controller-1", "event", "TopicChange", source="queued", target="dropped"),
        Record(0, 0.0, "controller-1", "controller", "resigned"),
        Record(0, 0.0, "broker-1", "request", "ControlledShutdown", broker=2, target="sent"),
        Record(0, 0.0, "controller-1", "response", "LeaderAndIsr", broker=1, error="DISCONNECTED"),
    ],
    ids=lambda record: f"{record.kind} {record.action}",
)
def test_a_story_does_not_leave_out(record: Record) -> None:
    assert text([record]) == describe(record)


def test_an_unknown_level_names_the_known_ones(prose: Prose) -> None:
    prose.refuses(UnknownName, text, [], "loud")
    assert LEVELS == ("story", "all")


def test_a_whole_run_in_both_levels() -> None:
    """Every record has one line at level `all`, no line is blank, and none has blanks at its end."""
    with Lab(brokers=3, seed=1) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        everything, story = lab.trace.text("all").splitlines(), lab.trace.text().splitlines()
        assert len(everything) == len(lab.trace)
        assert 30 < len(story) < len(everything) / 2
        assert all(row == row.rstrip() != "" for row in everything + story)
