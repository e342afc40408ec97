"""Records as lines: one fact a line, columns that stay, zeros left out, sets sorted."""

from __future__ import annotations

import pytest
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.errors import UnknownName
from kafka_ctl.trace import KINDS, Record
from kafka_ctl.trace.text import LEVELS, MOST_NAMES, describe, text

P = {"topic": "orders", "partition": 0}
LED = {"leader": 2, "isr": (3, 2), "leader_epoch": 1, "zk_version": 4, "controller_epoch": 7}


def line(actor: str, kind: str, action: str, **columns: object) -> str:
    return describe(Record(5, 6092.2667, actor, kind, action, **columns))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (
            (
                "controller-1",
                "partition",
                "elect",
                P | LED | {"source": "OfflinePartition", "target": "OnlinePartition"},
            ),
            "partition   orders-0      Offline -> Online  leader=2 isr=3,2 leader_epoch=1 zk_version=4",
        ),
        (
            (
                "controller-1",
                "partition",
                "assign",
                P | {"source": "NonExistentPartition", "target": "NewPartition", "replicas": (2, 1)},
            ),
            "partition   orders-0      NonExistent -> New  replicas=2,1",
        ),
        (
            (
                "controller-1",
                "replica",
                "refuse",
                P | {"broker": 3, "source": "NewReplica", "target": "NewReplica", "error": "E", "detail": "why"},
            ),
            "replica     orders-0@3    New -> New  refused: why",
        ),
        (
            (
                "controller-1",
                "election",
                "offline",
                P | LED | {"target": "clean", "replicas": (1, 2), "detail": "live=2"},
            ),
            "election    orders-0      offline: leader=2 isr=3,2 leader_epoch=1  from replicas=1,2 live=2",
        ),
        (
            (
                "controller-1",
                "election",
                "offline",
                P | {"leader": 1, "isr": (1,), "target": "unclean", "replicas": (1, 2), "detail": "live=1"},
            ),
            "election    orders-0      offline: leader=1 isr=1  UNCLEAN  from replicas=1,2 live=1",
        ),
        (
            ("controller-1", "election", "preferred", P | {"error": "NoReplicaOnline", "replicas": (1, 2)}),
            "election    orders-0      preferred: nobody can lead  from replicas=1,2",
        ),
        (
            ("controller-1", "request", "LeaderAndIsr", P | LED | {"broker": 2, "detail": "is_new"}),
            "request     LeaderAndIsr -> 2         orders-0  leader=2 isr=3,2 leader_epoch=1  is_new",
        ),
        (
            ("controller-1", "request", "UpdateMetadata", P | LED | {"detail": "brokers=1,2 offline=3"}),
            "request     UpdateMetadata -> 1,2     orders-0  leader=2 isr=3,2 leader_epoch=1  offline=3",
        ),
        (
            ("controller-1", "request", "StopReplica", P | {"broker": 2, "detail": "delete"}),
            "request     StopReplica -> 2          orders-0  delete",
        ),
        (
            (
                "controller-1",
                "request",
                "StopReplica",
                {"broker": 2, "target": "sent", "detail": "partitions=1 correlation_id=4"},
            ),
            "request     StopReplica -> 2          sent  partitions=1 correlation_id=4",
        ),
        (
            ("broker-2", "response", "LeaderAndIsr", {"broker": 2}),
            "response    LeaderAndIsr <- 2  answered",
        ),
        (
            ("broker-2", "broker", "become-leader", P | LED | {"broker": 2}),
            "broker      orders-0      become-leader  leader=2 isr=3,2 leader_epoch=1",
        ),
        (
            ("broker-2", "broker", "shrink-isr", P | LED | {"broker": 2, "detail": "isr_before=3,2,1"}),
            "broker      orders-0      shrink-isr  leader=2 isr=3,2 leader_epoch=1 zk_version=4  isr_before=3,2,1",
        ),
        (("broker-2", "broker", "registered", {"broker": 2}), "broker      registered"),
        (
            ("broker-2", "zk", "create", {"path": "/controller", "target": "ephemeral", "detail": '{"brokerid":2}'}),
            "zk          create /controller  ephemeral  brokerid=2",
        ),
        (
            ("broker-2", "zk", "create", {"path": "/controller", "error": "NODEEXISTS"}),
            "zk          create /controller  NODEEXISTS",
        ),
        (
            ("broker-2", "zk", "set", {"path": "/controller_epoch", "zk_version": 1, "detail": "2"}),
            "zk          set /controller_epoch  2  zk_version=1",
        ),
        (
            (
                "admin",
                "zk",
                "create",
                {"path": "/r", "detail": '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3]}]}'},
            ),
            "zk          create /r     partitions=t-1:2,3",
        ),
        (
            ("zookeeper", "zk", "expired", {"detail": "session=0x1 of broker-2"}),
            "zk          expired       session=0x1 of broker-2",
        ),
        (
            ("broker-2", "watch", "fired", {"path": "/controller", "target": "NodeDeleted"}),
            "watch       /controller   NodeDeleted",
        ),
        (("controller-2", "event", "BrokerChange", {"target": "started"}), "event       BrokerChange"),
        (
            ("controller-2", "event", "BrokerChange", {"target": "done", "error": "E"}),
            "event       BrokerChange  done  E",
        ),
        (
            ("controller-2", "event", "PartitionModifications", {"topic": "t", "target": "queued"}),
            "event       PartitionModifications  topic=t  queued",
        ),
        (
            ("admin", "event", "create_topic", {"topic": "t", "detail": "topic=t partitions=2"}),
            "event       create_topic  topic=t partitions=2",
        ),
        (
            ("controller-2", "controller", "brokers_changed", {"detail": '{"new": [], "dead": [3], "live": [1, 2]}'}),
            "controller  brokers_changed  dead=3 live=1,2",
        ),
        (("fault", "fault", "lag", P | {"broker": 3}), "fault       lag           broker=3  orders-0"),
        (
            ("invariant", "violation", "leader-in-isr", P | LED),
            "violation   orders-0      leader-in-isr  leader=2 isr=3,2 leader_epoch=1",
        ),
    ],
    ids=lambda value: value[1] + " " + value[2] if isinstance(value, tuple) else "",
)
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
    led = Record(0, 1.0, "controller-1", "request", "LeaderAndIsr", **P, broker=3, **LED, cause=9)  # type: ignore[arg-type]
    other = led._replace(partition=1, leader=3)
    known = led._replace(action="UpdateMetadata", broker=None, detail="brokers=1,2,3")
    assert reported(led, other, led._replace(broker=2), known, known._replace(partition=1)) == [
        "request     LeaderAndIsr -> 2,3       orders-0  leader=2 isr=3,2 leader_epoch=1",
        "request     LeaderAndIsr -> 3         orders-1  leader=3 isr=3,2 leader_epoch=1",
        "request     UpdateMetadata -> 1,2,3   orders-0 orders-1",
    ]


def test_two_batches_stay_two() -> None:
    """Another cause, or the same subject once more, begins a new batch."""
    led = Record(0, 1.0, "controller-1", "request", "LeaderAndIsr", **P, broker=3, **LED, cause=9)  # type: ignore[arg-type]
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
    )  # type: ignore[arg-type]
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
    with prose.refused(UnknownName):
        text([], "loud")
    assert LEVELS == ("story", "all")


def test_a_whole_run_in_both_levels() -> None:
    """Every record has one line at level `all`, no line is blank, and none has blanks at its end."""
    with Lab(brokers=3, seed=1) as lab:
        lab.create_topic("orders", partitions=2, replication_factor=3)
        lab.settle()
        everything, story = lab.trace.text("all").splitlines(), lab.trace.text().splitlines()
        assert len(everything) == len(lab.trace)
        assert 30 < len(story) < len(everything) / 2
        assert all(row == row.rstrip() != "" for row in everything + story)
