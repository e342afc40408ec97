"""Answers from logs as real clusters leave them: short ones, in which everything can be counted by hand."""
# ruff: noqa: E501 (the lines of logs are as long as Kafka writes them)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from history_plain import plain_departures, plain_unavailability
from history_plain_controllers import plain_deletions, plain_failovers, plain_reassignments
from pyspark.sql import DataFrame

from kafka_ctl.history import import_logs, questions
from kafka_ctl.history.session import spark
from kafka_ctl.history.traces import from_arrow

STATE, CONTROLLER = "state.change.logger", "kafka.controller.KafkaController"
DAY = 86_400_000.0

OLD_STATE = f"""
[2020-10-08 16:50:44,050] TRACE Controller 0 epoch 1 changed partition [t,0] state from NonExistentPartition to NewPartition with assigned replicas 0 ({STATE})
[2020-10-08 16:50:44,070] TRACE Controller 0 epoch 1 changed partition [t,0] from NewPartition to OnlinePartition with leader 0 ({STATE})
[2021-04-28 16:41:33,667] TRACE Controller 1 epoch 58 started leader election for partition [t,0] ({STATE})
[2021-04-28 16:41:33,673] ERROR Controller 1 epoch 58 initiated state change for partition [t,0] from OfflinePartition to OnlinePartition failed ({STATE})
kafka.common.NoReplicaOnlineException: No replica for partition [t,0] is alive. Live brokers are: [Set()], Assigned replicas are: [List(1002)]
\tat kafka.controller.OfflinePartitionLeaderSelector.selectLeader(PartitionLeaderSelector.scala:75)
[2021-04-28 16:41:33,686] ERROR Controller 1 epoch 58 initiated state change for partition [u,1] from OfflinePartition to OnlinePartition failed ({STATE})
kafka.common.NoReplicaOnlineException: No replica for partition [u,1] is alive. Live brokers are: [Set()], Assigned replicas are: [List(1, 2)]
[2021-04-28 16:41:34,100] ERROR Controller 1 epoch 58 initiated state change for partition [t,0] from OfflinePartition to OnlinePartition failed ({STATE})
[2021-04-28 16:41:34,244] TRACE Controller 1 epoch 58 changed partition [u,1] from OfflinePartition to OnlinePartition with leader 1 ({STATE})
"""
"""Kafka 0.10: a partition is assigned to an id that never came back, another finds a leader later."""
OLD_CONTROLLER = f"""
[2020-10-08 16:49:28,422] INFO [Controller 0]: Broker 0 starting become controller state transition ({CONTROLLER})
[2020-10-08 16:49:28,428] INFO [Controller 0]: Controller 0 incremented epoch to 1 ({CONTROLLER})
[2020-10-08 16:49:28,466] INFO [Partition state machine on Controller 0]: Started partition state machine with initial state -> Map() (kafka.controller.PartitionStateMachine)
[2020-10-08 16:49:28,467] INFO [Controller 0]: Broker 0 is ready to serve as the new controller with epoch 1 ({CONTROLLER})
[2020-10-08 16:51:34,220] INFO [Controller 0]: Shutting down broker 0 ({CONTROLLER})
[2020-10-08 16:51:36,026] INFO [Controller 0]: Broker 0 resigned as the controller ({CONTROLLER})
[2020-10-09 10:00:00,000] INFO [Controller 0]: Controller 0 incremented epoch to 2 ({CONTROLLER})
[2020-10-09 10:00:00,100] INFO [Controller 0]: Broker 0 is ready to serve as the new controller with epoch 2 ({CONTROLLER})
[2021-04-28 16:41:33,261] INFO [Controller 1]: Broker 1 starting become controller state transition ({CONTROLLER})
[2021-04-28 16:41:33,265] INFO [Controller 1]: Initialized controller epoch to 57 and zk version 57 ({CONTROLLER})
[2021-04-28 16:41:33,269] INFO [Controller 1]: Controller 1 incremented epoch to 58 ({CONTROLLER})
[2021-04-28 16:41:34,000] INFO [Partition state machine on Controller 1]: Started partition state machine with initial state -> Map([t,0] -> OfflinePartition, [u,1] -> OfflinePartition) (kafka.controller.PartitionStateMachine)
[2021-04-28 16:41:34,040] INFO [Controller 1]: Broker 1 is ready to serve as the new controller with epoch 58 ({CONTROLLER})
"""


def term(day: int, broker: int, epoch: int, partitions: str = "") -> str:
    """An election of Kafka 2.1 or later, at noon."""
    who = f"[Controller id={broker}]"
    return f"""
[2022-04-{day:02} 12:00:00,000] INFO {who} {broker} successfully elected as the controller. Epoch incremented to {epoch} and epoch zk version is now {epoch} ({CONTROLLER})
[2022-04-{day:02} 12:00:00,010] INFO {who} Initializing controller context ({CONTROLLER})
[2022-04-{day:02} 12:00:00,030] INFO [ReplicaStateMachine controllerId={broker}] Initializing replica state (kafka.controller.ZkReplicaStateMachine)
[2022-04-{day:02} 12:00:00,060] INFO [PartitionStateMachine controllerId={broker}] Initializing partition state (kafka.controller.ZkPartitionStateMachine)
[2022-04-{day:02} 12:00:00,080] DEBUG [PartitionStateMachine controllerId={broker}] Started partition state machine with initial state -> Map({partitions}) (kafka.controller.ZkPartitionStateMachine)
[2022-04-{day:02} 12:00:00,100] INFO {who} Ready to serve as the new controller with epoch {epoch} ({CONTROLLER})
"""


def moved(day: int, seconds: int, epoch: int, move: str, state: str = "", name: str = "t-0") -> str:
    reported, plain = (f" with state LeaderAndIsr({state})", "") if state else ("", " state")
    at = f"12:{seconds // 60:02}:{seconds % 60:02},000"
    return f"[2022-04-{day:02} {at}] TRACE [Controller id=0 epoch={epoch}] Changed partition {name}{plain} from {move}{reported} ({STATE})\n"


LED = "leader=0, leaderEpoch=1, isr=List(0), zkVersion=1"
WIPED_STATE = (
    moved(1, 10, 1, "NonExistentPartition to NewPartition")
    + moved(1, 11, 1, "NewPartition to OnlinePartition", LED)
    + moved(4, 0, 2, "OfflinePartition to OnlinePartition", LED)
    + moved(9, 10, 1, "NonExistentPartition to NewPartition")
    + moved(9, 13, 1, "NewPartition to OnlinePartition", LED)
    + moved(9, 20, 1, "OnlinePartition to OfflinePartition", name="gone-0")
    + moved(9, 20, 1, "OfflinePartition to NonExistentPartition", name="gone-0")
    + moved(12, 0, 2, "OfflinePartition to OnlinePartition", LED).replace(",000]", ",070]")
)
WIPED_CONTROLLER = (
    term(1, 0, 1)
    + f"[2022-04-01 13:00:00,000] INFO [Controller id=0] Shutting down broker 0 ({CONTROLLER})\n"
    + term(4, 0, 2, "t-0 -> OfflinePartition").replace(" 12:", " 11:")
    + f"[2022-04-04 13:00:00,000] INFO [Controller id=0] Shutting down broker 0 ({CONTROLLER})\n"
    + term(9, 0, 1)
    + f"[2022-04-09 12:30:00,000] INFO [Controller id=0] Retaining last ISR 7 of partition t-0 since unclean leader election is disabled ({CONTROLLER})\n"
    + f"[2022-04-09 12:40:00,000] INFO [Controller id=0] Mark replicas t-0 on broker 9 as offline ({STATE})\n"
    + f"[2022-04-09 13:00:00,000] INFO [Controller id=0] Shutting down broker 0 ({CONTROLLER})\n"
    + f"[2022-04-09 13:00:05,000] INFO [Controller id=0] Shutting down broker 0 ({CONTROLLER})\n"
    + term(12, 0, 2, "t-0 -> OfflinePartition")
    + f"[2022-04-12 13:00:00,000] INFO [Controller id=0] Shutting down broker 0 ({CONTROLLER})\n"
)
"""Four shutdowns of one broker, the cluster of a single broker; its ZooKeeper is wiped between the second and third."""
ROLLING = "".join(
    f"[2022-05-0{day} 12:{minute:02}:00,000] INFO [Controller id=3] {words} ({CONTROLLER})\n"
    for day in (1, 7)
    for minute, words in (
        (0, "Shutting down broker 1"),
        (1, "Newly added brokers: , deleted brokers: 1, bounced brokers: , all live brokers: 2,3"),
        (5, "Newly added brokers: 1, deleted brokers: , bounced brokers: , all live brokers: 1,2,3"),
        (6, "Shutting down broker 2"),
        (7, "Newly added brokers: , deleted brokers: 2, bounced brokers: , all live brokers: 1,3"),
        (11, "Newly added brokers: 2, deleted brokers: , bounced brokers: , all live brokers: 1,2,3"),
        (30, "Newly added brokers: , deleted brokers: 2, bounced brokers: , all live brokers: 1,3"),
        (31, "Newly added brokers: 2, deleted brokers: , bounced brokers: , all live brokers: 1,2,3"),
    )
)
"""Twice brokers 1 and 2 one after the other, six days apart; after each, 2 crashes too."""
OLD_REQUESTS = "".join(
    f"[2016-03-01 10:{minute:02}:00,000] INFO {who} {words} ({CONTROLLER})\n"
    for minute, who, words in (
        (0, "[Controller 1]:", "Handling reassignment of partition [a.b-c,1] to new replicas 3,2"),
        (
            1,
            "[Controller 1]:",
            "New replicas 3,2 for partition [a.b-c,1] being reassigned not yet caught up with the leader",
        ),
        (2, "[Controller 1]:", "Updated assigned replicas for partition [a.b-c,1] being reassigned to 3,2,1 "),
        (3, "[Controller 1]:", "Updated leader epoch for partition [a.b-c,1] to 4"),
        (
            4,
            "[Controller 1]:",
            "Leader 2 for partition [a.b-c,1] being reassigned, is already in the new list of replicas 3,2 and is alive",
        ),
        (5, "[Controller 1]:", "Removed partition [a.b-c,1] from the list of reassigned partitions in zookeeper"),
        (6, "[Controller 1]:", "Handling reassignment of partition [stuck,0] to new replicas 9"),
        (7, "[Controller 1]:", "Handling reassignment of partition [wrong,0] to new replicas 8"),
        (8, "[Controller 1]:", "Error completing reassignment of partition [wrong,0]"),
        (9, "[DeleteTopicsListener on Controller 1]:", "Starting topic deletion for topics done,never"),
        (10, "[Topic Deletion Manager 1],", "Handling deletion for topics done,never"),
        (11, "[delete-topics-thread-1],", "Deletion of topic done (re)started"),
        (12, "[delete-topics-thread-1],", "Deletion of topic done successfully completed"),
        (
            13,
            "[delete-topics-thread-1],",
            "Not retrying deletion of topic never at this time since it is marked ineligible for deletion",
        ),
        (14, "[Controller 1]:", "List of topics to be deleted: never"),
    )
)
NEW_REQUESTS = "".join(
    f"[2023-03-01 10:{minute:02}:00,000] INFO [Controller id=1] {words} ({CONTROLLER})\n"
    for minute, words in (
        (
            0,
            "Successfully updated assignment of partition a.b-c-1 to ReplicaAssignment(replicas=3,2,1, addingReplicas=3, removingReplicas=1)",
        ),
        (1, "Updated leader epoch for partition a.b-c-1 to 4, zkVersion=7"),
        (2, "Target replicas List(3, 2) have all caught up with the leader for reassigning partition a.b-c-1"),
        (
            3,
            "Leader 1 for partition a.b-c-1 being reassigned, is not in the new list of replicas 3,2. Re-electing leader",
        ),
        (
            4,
            "Successfully updated assignment of partition a.b-c-1 to ReplicaAssignment(replicas=3,2, addingReplicas=, removingReplicas=)",
        ),
        (4, "Removing partitions Set(a.b-c-1) from the list of reassigned partitions in zookeeper"),
        (
            6,
            "Successfully updated assignment of partition stuck-0 to ReplicaAssignment(replicas=9,1, addingReplicas=9, removingReplicas=1)",
        ),
        (7, "Updated leader epoch for partition stuck-0 to 2, zkVersion=3"),
        (8, "Starting topic deletion for topics done,never"),
        (9, "Deletion of topic done (re)started"),
        (9, "Deletion of topic never (re)started"),
        (10, "Deletion of topic done successfully completed"),
        (11, "Deletion of topic never (re)started"),
    )
)
BETWEEN = "".join(
    f"[2018-03-01 10:{minute:02}:00,000] INFO [Controller id=1] {words} ({CONTROLLER})\n"
    for minute, words in (
        (0, "Handling reassignment of partition a-1 to new replicas 2,3"),
        (1, "Removing partition a-1 from the list of reassigned partitions in zookeeper"),  # 1.1
        (2, "Handling reassignment of partition a-1 to new replicas 1,2"),
        (2, "Handling reassignment of partition b-0 to new replicas 1,2"),
        (3, "Removing partitions Set(b-0, a-1) from the list of reassigned partitions in zookeeper"),  # 2.0 and later
    )
)
LOGS = {
    "old": {"state-change.log": OLD_STATE, "controller.log": OLD_CONTROLLER},
    "wiped": {"state-change.log": WIPED_STATE, "controller.log": WIPED_CONTROLLER},
    "rolling": {"controller.log": ROLLING},
    "0.10": {"controller.log": OLD_REQUESTS},
    "2.0": {"controller.log": BETWEEN},
    "2.8": {"controller.log": NEW_REQUESTS},
}


def ms(day: str, time: str) -> float:
    """Milliseconds since 1970."""
    from datetime import UTC, datetime

    return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC).timestamp() * 1000


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder: Path = tmp_path_factory.mktemp("logs")
    for history, files in LOGS.items():
        (folder / history).mkdir()
        for name, text in files.items():
            (folder / history / name).write_text(text.lstrip())
    found = import_logs(spark(), {history: folder / history for history in LOGS})
    assert found.rejected.collect() == []
    return found.records.cache()


def rows(answer: DataFrame, history: str, *columns: str) -> list[tuple]:
    """Of one history, in the order of these columns."""
    found = answer.where(f"history = '{history}'").select(*columns).collect()
    return sorted((tuple(row) for row in found), key=lambda row: [(value is not None, value) for value in row])


def test_who_is_controller_in_logs_of_0_10(logs: DataFrame) -> None:
    """The winner is named elsewhere; the epochs between 2 and 58 are missing, so who was before is not known."""
    columns = ("epoch", "controller", "previous", "partitions", "elected_ms", "failover_ms", "detection_ms")
    first, second, last = (ms(f"{day}", time) for day, time in (
        ("2020-10-08", "16:49:28.428"), ("2020-10-09", "10:00:00.000"), ("2021-04-28", "16:41:33.269")
    ))  # fmt: skip
    gone = ms("2020-10-08", "16:51:36.026")
    assert rows(questions.failover_time(logs), "old", *columns) == [
        (1, 0, None, 0, first, 39.0, None),
        (2, 0, 0, 1, second, 100.0, second - gone),
        (58, 1, None, 2, last, 771.0, None),
    ]


def test_each_term_has_the_controller_and_the_epoch_it_was_elected_with(logs: DataFrame) -> None:
    """Whatever other brokers its lines name, and whatever epochs were before ZooKeeper was wiped."""
    columns = ("elected_ms", "controller", "epoch", "previous", "partitions")
    at = [
        ms(f"2022-04-{day}", time) for day, time in (("01", "12:00"), ("04", "11:00"), ("09", "12:00"), ("12", "12:00"))
    ]
    assert rows(questions.failover_time(logs), "wiped", *columns) == [
        (at[0], 0, 1, None, 0),
        (at[1], 0, 2, 0, 1),
        (at[2], 0, 1, None, 0),
        (at[3], 0, 2, 0, 1),
    ]
    stages = ("taking_over_ms", "reading_ms", "replica_ms", "partition_ms", "failover_ms")
    assert set(rows(questions.failover_time(logs), "wiped", *stages)) == {(10.0, 20.0, 30.0, 40.0, 100.0)}


def test_refused_elections_leave_partitions_without_a_leader(logs: DataFrame) -> None:
    """From the first one on, until somebody leads; for ever, if nobody does."""
    columns = ("topic", "start_ms", "end_ms", "restored", "leader")
    created = ms("2020-10-08", "16:50:44.050")
    assert rows(questions.unavailability(logs), "old", *columns) == [
        ("t", created, created + 20, True, None),
        ("t", ms("2021-04-28", "16:41:33.673"), None, None, 0),
        ("u", ms("2021-04-28", "16:41:33.686"), ms("2021-04-28", "16:41:34.244"), True, None),
    ]


def test_epochs_that_come_again_are_no_outage(logs: DataFrame) -> None:
    """What a new controller finds begins with its own epoch, not with the same number eight days before."""
    columns = ("start_ms", "end_ms", "duration_ms", "lost_ms")
    found, again = ms("2022-04-04", "11:00"), ms("2022-04-12", "12:00")
    left, left_again = ms("2022-04-01", "13:00"), ms("2022-04-09", "13:00:05")
    assert rows(questions.unavailability(logs).where("leader = 0"), "wiped", *columns) == [
        (found, found + 3_600_000, 3_600_000.0, left),
        (again, again + 70, 70.0, left_again),
    ]


def test_shutdowns_of_different_lives_of_a_broker(logs: DataFrame) -> None:
    """Four, of which one was asked for twice in five seconds."""
    columns = ("at_ms", "began_ms", "cause")
    at = [ms(f"2022-04-{day}", "13:00") for day in ("01", "04", "09", "12")]
    assert rows(questions.departures(logs), "wiped", *columns) == [
        (at[0], at[0], "controlled shutdown"),
        (at[1], at[1], "controlled shutdown"),
        (at[2] + 5000, at[2], "controlled shutdown"),
        (at[3], at[3], "controlled shutdown"),
    ]
    assert rows(questions.rolling_restarts(logs), "wiped", "brokers") == []


def test_rolling_restarts_in_logs(logs: DataFrame) -> None:
    """Two, of six minutes each, and no departure of six days; that a broker is gone after it is not another one."""
    first, second = ms("2022-05-01", "12:00"), ms("2022-05-07", "12:00")
    assert rows(questions.rolling_restarts(logs), "rolling", "start_ms", "duration_ms", "brokers") == [
        (first, 360_000.0, [1, 2]),
        (second, 360_000.0, [1, 2]),
    ]
    found = rows(questions.departures(logs), "rolling", "at_ms", "began_ms", "broker", "cause")
    assert found == [
        (day + minute * 60_000, day + minute * 60_000, broker, cause)
        for day in (first, second)
        for minute, broker, cause in (
            (0, 1, "controlled shutdown"),
            (6, 2, "controlled shutdown"),
            (30, 2, "broker loss"),
        )
    ]


def test_reassignments_in_logs(logs: DataFrame) -> None:
    """Of every release, begun, done, given up and stuck."""
    answer = questions.reassignments(logs)
    columns = ("topic", "partition", "replicas", "duration_ms", "tries", "extra_epochs")
    assert rows(answer, "0.10", *columns) == [
        ("a.b-c", 1, [3, 2], 300_000.0, 1, 1),
        ("stuck", 0, [9], None, 1, 0),
        ("wrong", 0, [8], 60_000.0, 1, 0),
    ]
    assert rows(answer, "2.0", *columns) == [
        ("a", 1, [1, 2], 60_000.0, 1, 0),
        ("a", 1, [2, 3], 60_000.0, 1, 0),
        ("b", 0, [1, 2], 60_000.0, 1, 0),
    ]
    assert rows(answer, "2.8", *columns) == [
        ("a.b-c", 1, [3, 2], 240_000.0, 1, 1),
        ("stuck", 0, [9], None, 1, 1),
    ]


def test_deletions_in_logs(logs: DataFrame) -> None:
    """Those that were begun, and those that never ended."""
    columns = ("topic", "asked_ms", "started_ms", "completed_ms", "tries", "duration_ms")
    begin = ms("2016-03-01", "10:00")
    assert rows(questions.deletions(logs), "0.10", *columns) == [
        ("done", begin + 540_000, begin + 660_000, begin + 720_000, 1, 180_000.0),
        ("never", begin + 540_000, None, None, 0, None),
    ]
    begin = ms("2023-03-01", "10:00")
    assert rows(questions.deletions(logs), "2.8", *columns) == [
        ("done", begin + 480_000, begin + 540_000, begin + 600_000, 1, 120_000.0),
        ("never", begin + 480_000, begin + 540_000, None, 2, None),
    ]


def test_all_of_it_equals_the_plain_computation(logs: DataFrame) -> None:
    """For every log here."""
    table = logs.toArrow()
    answers: dict[str, Any] = {
        "failover_time": plain_failovers, "reassignments": plain_reassignments, "deletions": plain_deletions,
        "unavailability": lambda trace: plain_unavailability(trace, trace.history),
        "departures": lambda trace: [
            {"broker": b, "cause": d.cause, "cause_seq": d.seq, "at_ms": d.at, "began_seq": d.began_seq,
             "began_ms": d.began, "attempts": None, "remaining": None} for b, d in plain_departures(trace)
        ],
    }  # fmt: skip
    for question, plain in answers.items():
        found = [row.asDict() for row in getattr(questions, question)(logs).collect()]
        expected = [{"history": name, **row} for name in LOGS for row in plain(from_arrow(table, name))]
        reported = [sorted(repr(sorted(row.items())) for row in each) for each in (found, expected)]
        assert reported[0] == reported[1], question
        assert found
