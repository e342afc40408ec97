"""Answers from logs as real clusters leave them: short ones, in which everything can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_plain_controllers import PLAIN, equals_plain
from pyspark.sql import DataFrame

from kafka_ctl.history import import_logs, questions
from kafka_ctl.history.session import spark
from kafka_ctl.history.traces import from_arrow

DAY = 86_400_000.0
FOLDER = Path(__file__).parent / "logs"
LOGS = ("old", "wiped", "rolling", "0.10", "2.0", "2.8")
"""Folders of logs. In `old`, of 0.10, a partition is assigned to an id that never came back, and another finds a leader
later. In `wiped`, of 2.1 or later, a cluster of one broker is shut down four times, and its ZooKeeper is wiped between
the second and third. In `rolling`, brokers 1 and 2 leave one after the other, twice, six days apart, and after each 2
crashes too. The others have requests as those releases log them; `2.0` also the words of 1.1."""


def ms(day: str, time: str) -> float:
    """Milliseconds since 1970."""
    from datetime import UTC, datetime

    return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC).timestamp() * 1000


@pytest.fixture(scope="module")
def logs() -> DataFrame:
    found = import_logs(spark(), {history: FOLDER / history for history in LOGS})
    assert found.rejected.collect() == []
    return found.records.cache()


def rows(answer: DataFrame, history: str, *columns: str) -> list[tuple]:
    """Of one history, in the order of these columns."""
    found = answer.where(f"history = '{history}'").select(*columns).collect()
    return sorted((tuple(row) for row in found), key=lambda row: [(value is not None, value) for value in row])


def test_who_is_controller_in_logs_of_0_10(logs: DataFrame) -> None:
    """The winner is named elsewhere; the epochs between 2 and 58 are missing, so who was before is not known."""
    columns = ("epoch", "controller", "previous", "partitions", "elected_ms", "failover_ms", "detection_ms")
    first, second, last = (
        ms(f"{day}", time)
        for day, time in (
            ("2020-10-08", "16:49:28.428"),
            ("2020-10-09", "10:00:00.000"),
            ("2021-04-28", "16:41:33.269"),
        )
    )
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
    assert rows(answer, "2.8", *columns) == [("a.b-c", 1, [3, 2], 240_000.0, 1, 1), ("stuck", 0, [9], None, 1, 1)]


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
    named = {name: from_arrow(table, name) for name in LOGS}
    for question in PLAIN:
        equals_plain(question, logs, named)
    assert questions.departures(logs).where("attempts IS NOT NULL OR remaining IS NOT NULL").collect() == []
