"""Questions to histories: known answers on made-up records; plain Python's answers on simulated clusters."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from io import BytesIO
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from history_plain import GONE, NEW, OFFLINE, ONLINE, Run, dicts, same
from history_plain_controllers import equals_plain
from labs import until_quiet
from prose import Prose
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl import PARTITION, REPLICA, BadInput, Lab, Record, Trace, UnknownName
from kafka_ctl.history import plots, questions
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.history.session import spark

SEEDS = range(20, 26)


# Unavailability


def test_unavailability_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Every interval, with its cause, on clusters to which everything happens."""
    plain = equals_plain("unavailability", simulated, clusters)
    assert {row["cause"] for row in plain} >= {"topic creation", "broker crash", "controller crash"}


Intervals = dict[str, list[dict[str, Any]]]
RUNS: dict[str, Run] = {}
"""The histories of the tests below; all are asked about at once, as Spark plans for longer than it computes here."""


@pytest.fixture(scope="module")
def intervals() -> Intervals:
    """The intervals of each run, in the order of partitions and times."""
    tables = [to_arrow(run.records, name) for name, run in RUNS.items()]
    found: Intervals = {name: [] for name in RUNS}
    for row in questions.unavailability(pa.concat_tables(tables)).orderBy("partition", "start_ms").collect():
        found[row.history].append(row.asDict())
    return found


def shown(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of the intervals in which a leader was lost."""
    return [tuple(row[name] for name in columns) for row in rows if row["leader"] is not None]


crash = RUNS["crash"] = Run().move(GONE, NEW, 0).move(NEW, ONLINE, 10, leader=2)
crash.record("fault", "kill", 4000, actor="fault", broker=2)
crash.move(ONLINE, OFFLINE, 10_000).move(OFFLINE, ONLINE, 11_000, leader=3)


def test_a_crash_is_felt_from_its_moment(intervals: Intervals) -> None:
    """The controller sees one second, a producer seven."""
    created, crashed = intervals["crash"]
    assert (created["cause"], created["duration_ms"], created["outage_ms"]) == ("topic creation", 10, 10)
    assert crashed == {
        "history": "crash", "topic": "orders", "partition": 0, "start_ms": 10_000, "end_ms": 11_000,
        "duration_ms": 1000, "restored": True, "election_refused": False, "leader": 2,
        "cause": "broker crash", "cause_seq": 2, "lost_ms": 4000, "outage_ms": 7000,
    }  # fmt: skip


several = RUNS["several"] = Run().move(NEW, ONLINE, leader=1)
several.record("fault", "expire_session", broker=1).record("fault", "kill", broker=2)
several.move(ONLINE, OFFLINE).record("fault", "kill", broker=1).move(OFFLINE, ONLINE, leader=1)


def test_only_the_departure_of_the_leader_counts(intervals: Intervals) -> None:
    """Another broker's crash in between is not to blame, nor one that came later."""
    assert shown(intervals["several"], "cause", "cause_seq") == [("session expiry", 1)]


old = RUNS["old"] = Run().record("broker", "lost", 0, broker=1).move(OFFLINE, ONLINE, 9000, leader=1)
old.move(ONLINE, OFFLINE, 60_000).move(OFFLINE, ONLINE, 60_500, leader=2)


def test_an_old_departure_is_not_to_blame(intervals: Intervals) -> None:
    """In logs nobody says that a controller died: it had left before, but came back and led."""
    assert shown(intervals["old"], "cause", "lost_ms", "outage_ms") == [(None, 60_000, 500)]


late = RUNS["late"] = Run().record("fault", "kill", 0, broker=1).move(OFFLINE, ONLINE, 3000, leader=1)
late.move(ONLINE, OFFLINE, 6000).move(OFFLINE, ONLINE, 6001, leader=2)


def test_a_leader_elected_after_its_own_crash(intervals: Intervals) -> None:
    """Nobody had noticed the crash: the partition lost its leader when it got it."""
    assert shown(intervals["late"], "lost_ms", "outage_ms") == [(3000, 3001)]


failover = RUNS["failover"] = Run().record("controller", "elected", 0, broker=1, controller_epoch=0)
failover.record("controller", "ready", 10, broker=1, controller_epoch=1)
failover.move(NEW, ONLINE, 1000, leader=1, controller_epoch=1).record("fault", "kill", 2000, broker=1)
failover.record("controller", "elected", 8000, broker=2, controller_epoch=1)
failover.record("controller", "reading", 8010, broker=2, controller_epoch=2)
failover.move(OFFLINE, ONLINE, 8050, leader=2, controller_epoch=2)


def test_a_new_controller_finds_partitions_offline(intervals: Intervals) -> None:
    """The interval starts with its epoch, though no record says Offline."""
    columns = ("start_ms", "end_ms", "cause", "outage_ms")
    assert shown(intervals["failover"], *columns) == [(8010, 8050, "controller crash", 6050)]


FAILED = {"error": "StateChangeFailed"}
alone = RUNS["alone"] = Run().move(NEW, ONLINE, leader=1).move(ONLINE, OFFLINE).move(OFFLINE, ONLINE, **FAILED)
alone.move(OFFLINE, ONLINE, leader=1).move(ONLINE, OFFLINE).move(OFFLINE, ONLINE, leader=2)
alone.move(OFFLINE, ONLINE, partition=1, **FAILED)


def test_an_interval_in_which_nobody_else_was_in_sync(intervals: Intervals) -> None:
    """Its elections are refused, also in an interval that has not ended; the next interval is another one."""
    assert [row["election_refused"] for row in intervals["alone"] if row["cause"] is None] == [True, False, True]
    grouped = questions.unavailability_by(to_arrow(alone.records), "election_refused").collect()
    assert {row.election_refused: row.intervals for row in grouped} == {True: 2, False: 2}


ended = RUNS["ended"] = Run().move(NEW, ONLINE, leader=1)
ended.move(ONLINE, OFFLINE).move(OFFLINE, OFFLINE).move(OFFLINE, ONLINE, **FAILED).move(OFFLINE, GONE)
ended.move(NEW, ONLINE, partition=1, leader=2).move(ONLINE, ONLINE, partition=1, leader=-1)


def test_how_intervals_end(intervals: Intervals) -> None:
    """By the deletion of the topic, or not at all; refused moves and repeated marks change nothing."""
    columns = ("partition", "start_ms", "end_ms", "duration_ms", "restored", "cause")
    assert shown(intervals["ended"], *columns) == [
        (0, 1000, 4000, 3000, False, None),
        (1, 6000, None, None, None, None),
    ]


def test_the_lesson_of_the_first_notebook() -> None:
    """A controlled shutdown costs nothing, a crash the session timeout, a lone replica all its downtime."""
    with Lab(brokers=3, seed=1, costs={"zookeeper_tick": 0}) as lab:
        lab.create_topic("orders", partitions=6, replication_factor=3)
        until_quiet(lab.create_topic, "lonely", assignment={0: [2]})
        lab.shutdown(1)
        lab.start(1)
        lab.run_for(60)
        until_quiet(lab.elect_preferred)
        before = len(questions.unavailability(lab.trace).where("leader IS NOT NULL").collect())
        lab.kill(2)
        lab.run_for(30)
        until_quiet(lab.start, 2)
        answer = questions.unavailability(lab.trace).where("leader IS NOT NULL")
        rows = dicts(answer, "topic", "partition", "cause", "outage_ms")
    assert before == 0
    lonely, *orders = rows
    assert lonely["topic"] == "lonely"
    assert 30_000 < lonely["outage_ms"] < 31_000
    assert {row["cause"].split()[-1] for row in rows} == {"crash"}
    assert orders
    assert all(6000 <= row["outage_ms"] < 6200 for row in orders)


# Departures


def test_departures_equal_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Broker, cause and record of each."""
    equals_plain("departures", simulated, clusters)


def test_a_shutdown_that_asks_again_is_one_departure() -> None:
    """The attempts are counted, and what stayed behind, if it is known; the next shutdown is another departure."""
    run, ask = Run(), "controlled-shutdown"
    for detail in ("attempt=1 remaining=orders-0,orders-1", "attempt=2 remaining=orders-0,orders-1"):
        run.record("broker", ask, broker=1, detail=detail)
    run.record("broker", ask, broker=2, detail="attempt=1 remaining=")
    run.record("broker", ask, broker=1, detail="attempt=3 remaining=orders-0")
    run.record("broker", ask, broker=1, detail="attempt=1 remaining=")
    run.record("broker", ask, broker=3, detail="attempt=1 remaining=", error="DISCONNECTED")
    assert dicts(questions.departures(to_arrow(run.records)), "cause_seq", "attempts", "remaining") == [
        {"cause_seq": 2, "attempts": 1, "remaining": 0},
        {"cause_seq": 3, "attempts": 3, "remaining": 1},
        {"cause_seq": 4, "attempts": 1, "remaining": 0},
        {"cause_seq": 5, "attempts": 1, "remaining": None},
    ]


# Transitions


def test_transition_counts_equal_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Made and refused; every legal edge has its row, also when it was never taken."""
    made, refused = Counter[tuple](), Counter[tuple]()
    for r in (r for trace in clusters.values() for r in trace if r.kind in ("partition", "replica") and r.source):
        (refused if r.error else made)[r.kind, r.source, r.target] += 1
    rows = [row.asDict() for row in questions.transition_counts(simulated).collect()]
    keys = [(row["machine"], row["source"], row["target"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {k: row["made"] for k, row in zip(keys, rows, strict=True) if row["made"]} == made
    assert {k: row["refused"] for k, row in zip(keys, rows, strict=True) if row["refused"]} == refused
    tables = {"partition": PARTITION["2.0"], "replica": REPLICA["2.0"]}
    assert {k for k, row in zip(keys, rows, strict=True) if row["legal"]} == {
        (name, str(move.source), str(move.target)) for name, table in tables.items() for move in table.rows
    }


def test_an_illegal_pair_is_shown() -> None:
    """As what it is, refused or made."""
    run = Run().move(GONE, ONLINE, error="InvalidTransition").move(GONE, ONLINE)
    rows = dicts(questions.transition_counts(to_arrow(run.records)).where("NOT legal"))
    assert rows == [
        {
            "machine": "partition",
            "source": GONE,
            "target": ONLINE,
            "legal": False,
            "action": None,
            "made": 1,
            "refused": 1,
        }
    ]


# Leaders


def test_leader_churn_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """By partition."""
    plain = []
    for name, trace in clusters.items():
        elections: dict[tuple, list[Record]] = defaultdict(list)
        for r in trace:
            if r.kind == "partition" and not r.error and r.leader is not None and r.leader >= 0:
                elections[r.topic, r.partition].append(r)
        for (topic, partition), all_of in elections.items():
            leaders = [r.leader for r in all_of]
            moves = [(a.leader, b) for a, b in pairwise(all_of) if a.leader != b.leader]
            replaced = [old for old, _ in moves]
            plain.append(
                {
                    "history": name,
                    "topic": topic,
                    "partition": partition,
                    "elections": len(leaders),
                    "changes": len(moves),
                    "leaders": len(set(leaders)),
                    "returns": sum(old == r.leader for old, (_, r) in zip(replaced, moves[1:], strict=False)),
                    "preferred_changes": sum(r.leader == (r.replicas or (None,))[0] for _, r in moves),
                    "hours": (all_of[-1].time_ms - all_of[0].time_ms) / 3_600_000,
                }
            )
    same(questions.leader_churn(simulated), plain)


def test_a_flapping_leader() -> None:
    """1, 2, 1, 1, 3, 1: four changes, two of them back."""
    run = Run()
    for leader in (1, 2, 1, 1, 3, 1):
        run.move(ONLINE, ONLINE, leader=leader, replicas=(1, 2, 3))
    assert dicts(questions.leader_churn(to_arrow(run.records))) == [
        {
            "history": "lab",
            "topic": "orders",
            "partition": 0,
            "elections": 6,
            "changes": 4,
            "returns": 2,
            "leaders": 3,
            "preferred_changes": 2,
            "hours": 5 / 3600,
        }
    ]


def test_a_topic_that_is_created_again_has_a_first_leader_again() -> None:
    """It is no change, and the time between the two topics does not count."""
    run = Run()
    for leader in (1, 2, 1):
        run.move(GONE, NEW, replicas=(leader, 3)).move(NEW, ONLINE, leader=leader, replicas=(leader, 3))
        run.move(ONLINE, ONLINE, leader=3).move(ONLINE, OFFLINE).move(OFFLINE, GONE)
    (row,) = dicts(questions.leader_churn(to_arrow(run.records)))
    assert (row["elections"], row["changes"], row["returns"], row["leaders"]) == (6, 3, 0, 3)
    assert (row["preferred_changes"], row["hours"]) == (0, 3 / 3600)
    run.record("fault", "kill", broker=3)
    assert dicts(questions.broker_churn(to_arrow(run.records)), "won", "lost") == [{"won": 3, "lost": 0}]
    with Lab(brokers=3, seed=1, generation="2.4", config={"delete.topic.enable": True}) as lab:
        for leader in (1, 2):
            until_quiet(lab.create_topic, "orders", assignment={0: [leader, 3]})
            until_quiet(lab.delete_topic, "orders")
        assert dicts(questions.leader_churn(lab.trace), "elections", "changes") == [{"elections": 2, "changes": 0}]


# What may be asked, and plots


def test_anything_else_is_refused(prose: Prose) -> None:
    """With the value, with the columns that are missing, or with the type of one."""
    pandas = to_arrow([]).to_pandas()
    for wrong in (spark().range(3), [], None, "a path", pandas, to_arrow([]).drop_columns(["kind"])):
        prose.refuses(BadInput, questions.unavailability, wrong)


def test_columns_of_another_type_are_refused(prose: Prose) -> None:
    """In an Arrow table as in a DataFrame; another type of number is no fault."""
    table = to_arrow(Run().move(NEW, ONLINE, leader=1).records)
    for name, value in (("time_ms", "now"), ("isr", "1,2")):
        other = table.set_column(table.column_names.index(name), name, pa.array([value]))
        prose.refuses(BadInput, questions.unavailability, other)
        prose.refuses(BadInput, questions.unavailability, spark().createDataFrame(other))
    whole = spark().createDataFrame(table).withColumn("time_ms", fn.col("time_ms").cast("bigint"))
    assert questions.leader_churn(whole).count() == 1


@pytest.mark.parametrize("minutes", [-1, math.nan, math.inf, 10**400, "5", None, True])
def test_what_is_no_number_of_minutes(minutes: Any) -> None:
    """It would become a part of the query."""
    with pytest.raises(BadInput, match="gap_minutes="):
        questions.rolling_restarts(Trace(), minutes)
    with pytest.raises(BadInput, match="within_minutes="):
        questions.broker_churn(Trace(), minutes)


def test_an_empty_history_has_empty_answers() -> None:
    """No row, and no error."""
    for question in (questions.unavailability, questions.departures, questions.leader_churn):
        assert question(Trace()).collect() == []
    assert {row.made for row in questions.transition_counts(Trace()).collect()} == {0}


def test_the_plot_shows_every_cause(prose: Prose, simulated: DataFrame) -> None:
    """With its number of intervals, on a logarithmic axis, the same bytes every time."""
    answer = questions.unavailability(simulated).cache()
    rows = answer.collect()
    counts = Counter(row.cause for row in rows)
    figure = plots.unavailability_by_cause(answer)
    axes = figure.axes[0]
    labels = [text.get_text() for text in axes.texts]
    assert sorted(labels) == sorted(f"{cause} ({count:,})" for cause, count in counts.items())
    assert axes.get_xscale() == "log"
    for line, label in zip(axes.get_lines(), labels, strict=True):
        cause = label.rsplit(" (", 1)[0]
        outages = sorted(row.outage_ms for row in rows if row.cause == cause and row.end_ms is not None)
        assert (line.get_xdata()[0], line.get_xdata()[-1]) == (max(0.1, outages[0]), outages[-1])
        assert line.get_ydata()[-1] == pytest.approx(100 * len(outages) / counts[cause])
    pictures = [BytesIO(), BytesIO()]
    figure.savefig(pictures[0])
    plots.unavailability_by_cause(answer).savefig(pictures[1])
    assert pictures[0].getvalue() == pictures[1].getvalue()
    prose.refuses(UnknownName, plots.unavailability_by_cause, answer, "colour")
