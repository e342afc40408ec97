"""ZooKeeper is wiped, a cluster begins anew in the history of another: no question looks from one into the other."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from history_plain import BUSY, GONE, NEW, ONLINE, Run, dicts, frames, plain_lives, wiped
from history_plain_controllers import PLAIN, equals_plain
from labs import lab_of, until_quiet
from pyspark.sql import DataFrame

from kafka_ctl import Lab, Trace
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.history import import_logs, questions, simulate, write_logs
from kafka_ctl.history.live.folds import Imbalance, Leaders, UnderReplicated
from kafka_ctl.history.questions.frames import frame
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.history.session import spark
from kafka_ctl.history.traces import from_arrow
from kafka_ctl.trace import Record

EVERYTHING = {"delete.topic.enable": True, "auto.leader.rebalance.enable": False}


def elected(run: Run, epoch: int, controller: int, generation: str, at: float | None = None) -> Run:
    """What a controller says when it is elected; in logs of 0.10 the election itself is missing."""
    who = {"actor": f"controller-{controller}", "broker": controller}
    if generation == "2.4":
        return run.record(
            "controller", "elected", at, controller_epoch=epoch, detail=json.dumps({"epoch": epoch}), **who
        )
    if generation == "2.0":
        run.record("controller", "elected", at, controller_epoch=0, **who)
    return run.record(
        "controller", "epoch_incremented", at, controller_epoch=epoch, detail=json.dumps({"epoch": epoch}), **who
    )


# What a life is


LIVES = (
    ([1, 2, 1, 1, 3], [0, 0, 1, 2, 2]),
    ([4, 6, 5, 7, 7], [0, 0, 0, 0, 1]),  # one is written down late
    ([58, 3, 4, 1], [0, 1, 1, 2]),
    ([2, 1], [0, 1]),
    ([4, 6, 8, 5, 7, 9, 4], [0, 0, 0, 0, 0, 0, 1]),  # the clock of a broker is behind
    ([1, 2, 4, 5, 3, 1, 3, 2, 3], [0, 0, 0, 0, 0, 1, 1, 1, 2]),
)
"""Epochs of controllers in the order of their elections, and the life of each."""


@pytest.fixture(scope="module")
def begun() -> dict[str, tuple[list[Record], dict[int, int]]]:
    """The records of `LIVES` in each generation, and the life of each by `seq`; one DataFrame has all of them."""
    runs = {f"{generation} {epochs}": Run() for generation in GENERATIONS for epochs, _ in LIVES}
    for name, run in runs.items():
        generation, _, epochs = name.partition(" ")
        for number, epoch in enumerate(json.loads(epochs)):
            elected(run, epoch, number % 2 + 1, generation).move(ONLINE, ONLINE)
    found: dict[str, dict[int, int]] = {name: {} for name in runs}
    for row in frame(pa.concat_tables([to_arrow(run.records, name) for name, run in runs.items()])).collect():
        found[row.history][row.seq] = row.life
    return {name: (run.records, found[name]) for name, run in runs.items()}


@pytest.mark.parametrize(("epochs", "lives"), LIVES)
def test_epochs_that_fall_begin_a_life(
    generation: str, epochs: list[int], lives: list[int], begun: dict[str, tuple[list[Record], dict[int, int]]]
) -> None:
    """With the election, whoever is elected; a controller that is elected again is no new cluster."""
    records, found = begun[f"{generation} {epochs}"]
    assert [found[r.seq] for r in records if r.kind == "partition"] == lives
    firsts = [r for r in records if r.action == ("epoch_incremented" if generation == "0.10" else "elected")]
    assert [found[r.seq] for r in firsts] == lives
    assert [len(life) for life in plain_lives(records)] == [*Counter(found.values()).values()]


def test_an_epoch_that_was_named_before_is_of_the_same_life(generation: str) -> None:
    """The first controller's clock is ahead: other brokers have named its epoch before any controller announced one."""
    run = Run().move(NEW, ONLINE, controller_epoch=2)
    for number, epoch in enumerate((3, 4, 2, 5, 1)):
        elected(run, epoch, number % 2 + 1, generation).move(ONLINE, ONLINE, controller_epoch=epoch)
    found = {row.seq: row.life for row in frame(to_arrow(run.records)).collect()}
    in_spark = {row.seq: row.life for row in frame(spark().createDataFrame(to_arrow(run.records))).collect()}
    assert [found[r.seq] for r in run.records if r.kind == "partition"] == [0, 0, 0, 0, 0, 1]
    assert in_spark == found
    assert [len(life) for life in plain_lives(run.records)] == [*Counter(found.values()).values()]
    fold = Leaders()
    assert [r.controller_epoch or 1 for r in run.records if fold.begins(r)] == [1]


def test_the_same_line_twice_is_no_new_life() -> None:
    """As when two collectors have taken the same log."""
    run = elected(elected(Run(), 3, 1, "2.4", at=5), 3, 1, "2.4", at=5)
    assert {row.life for row in frame(to_arrow(run.records)).collect()} == {0}


def test_simulated_clusters_have_one_life() -> None:
    """Whatever happens to them, as datasets are not searched for more."""
    for generation in GENERATIONS:
        for seed in range(40, 44):
            trace = simulate(seed, 24, generation, BUSY)
            assert len(plain_lives(trace)) == 1
            fold = Leaders()
            assert not any(map(fold.begins, trace))


def test_nobody_comes_home_to_another_cluster() -> None:
    """A broker that was lost before ZooKeeper was wiped is not the one that is seen after it."""
    run = elected(Run(), 5, 2, "2.4").move(NEW, ONLINE, leader=1, replicas=(1, 2)).record("broker", "lost", broker=1)
    elected(run, 1, 2, "2.4").record("controller", "brokers_changed", detail=json.dumps({"new": [1], "dead": []}))
    run.record("broker", "lost", broker=1)
    records = to_arrow(run.records)
    assert questions.preferred_leader_recovery(records).collect() == []
    assert dicts(questions.broker_churn(records), "departures", "flaps", "shortest_ms") == [
        {"departures": 2, "flaps": 0, "shortest_ms": None}
    ]
    assert dicts(questions.departures(records), "cause_seq") == [{"cause_seq": 2}, {"cause_seq": 5}]


# Two lives of one cluster


def story(generation: str, seed: int) -> Trace:
    """Brokers leave in every way; reassignments and deletions end, or cannot."""
    with Lab(brokers=4, seed=seed, generation=generation, config=EVERYTHING) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
        lab.create_topic("gone", assignment={0: [1, 2], 1: [2, 3]})
        until_quiet(lab.create_topic, "stays", assignment={0: [4], 1: [1]})
        for broker in (2, 3):
            lab.shutdown(broker)
            lab.start(broker)
            lab.run_for(30)
        lab.reassign({("orders", 0): [3, 2], ("orders", 1): [3, 2]})
        lab.run_for(60)
        lab.delete_topic("gone")
        lab.run_for(60)
        lab.reassign({("orders", 2): [1, 4]})
        lab.run_for(0.05)
        until_quiet(lab.kill, 4)
        lab.delete_topic("stays")
        lab.run_for(5)
        controller = lab.controller.id
        lab.kill(controller)
        lab.run_for(60)
        lab.start(controller)
        lab.run_for(60)
        until_quiet(lab.elect_preferred)
        return lab.trace


@pytest.fixture(scope="module")
def lives() -> dict[str, tuple[Trace, Trace, Trace]]:
    """For each generation the history of both lives, and each by itself."""
    found = {}
    for generation in GENERATIONS:
        first, second = story(generation, 1), story(generation, 7)
        both, later = wiped(first, second, hours=150)
        found[generation] = (both, first, later)
    return found


@pytest.fixture(scope="module")
def records(lives: dict[str, tuple[Trace, Trace, Trace]]) -> DataFrame:
    return frames(
        {
            f"{generation} {name}": trace
            for generation, traces in lives.items()
            for name, trace in zip(("both", "one", "two"), traces, strict=True)
        }
    )


EVENTS = (
    "departures",
    "unavailability",
    "shutdown_vs_failure",
    "rolling_restarts",
    "failover_time",
    "reassignments",
    "deletions",
    "isr_states",
    "unclean_exposure",
    "imbalance",
)
"""The questions that answer with what happened, one row each, and not with sums."""


@pytest.mark.parametrize("question", EVENTS)
def test_two_lives_are_two_clusters(question: str, records: DataFrame) -> None:
    """In one history they have the answers that they have each by itself."""
    rows = [row.asDict() for row in getattr(questions, question)(records).collect()]
    reported: dict[str, list[str]] = {}
    for row in rows:
        reported.setdefault(row.pop("history"), []).append(repr(sorted(row.items())))
    for generation in GENERATIONS:
        both, one, two = (sorted(reported.get(f"{generation} {name}", [])) for name in ("both", "one", "two"))
        assert both == sorted(one + two), generation
        assert both or question == "unclean_exposure", generation


def test_sums_over_two_lives(records: DataFrame) -> None:
    """Nothing is counted between them, and every partition and broker still has one row."""
    sums = {
        "leader_churn": ("elections", "changes", "returns", "preferred_changes"),
        "isr_churn": ("shrinks", "shrinks_by_leader", "expansions"),
        "broker_churn": ("departures", "flaps", "won", "lost"),
        "request_amplification": ("events", "requests", "states"),
    }
    for question, columns in sums.items():
        answer = getattr(questions, question)(records)
        keys = answer.columns[: answer.columns.index(columns[0])]
        rows = [row.asDict() for row in answer.collect()]
        assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows)
        for generation in GENERATIONS:
            total = {
                name: [
                    sum(row[column] for row in rows if row["history"] == f"{generation} {name}") for column in columns
                ]
                for name in ("both", "one", "two")
            }
            assert total["both"] == [a + b for a, b in zip(total["one"], total["two"], strict=True)], question


def test_two_lives_equal_the_plain_computation(
    lives: dict[str, tuple[Trace, Trace, Trace]], records: DataFrame
) -> None:
    """In every generation."""
    both = records.where("history LIKE '%both'").cache()
    named = {f"{generation} both": traces[0] for generation, traces in lives.items()}
    for question in PLAIN:
        equals_plain(question, both, named)


def test_what_administrators_asked_for(generation: str, records: DataFrame) -> None:
    """Two reassignments are done, one is stuck, whoever is controller; so are the deletions."""
    mine = records.where(f"history = '{generation} one'")
    done = questions.reassignments(mine)
    assert dicts(done.where("end_ms IS NOT NULL"), "topic", "partition", "replicas", "tries") == [
        {"topic": "orders", "partition": 0, "replicas": [3, 2], "tries": 1},
        {"topic": "orders", "partition": 1, "replicas": [3, 2], "tries": 1},
    ]
    (stuck,) = done.where("end_ms IS NULL").collect()
    assert (stuck.topic, stuck.partition, stuck.replicas, stuck.duration_ms) == ("orders", 2, [1, 4], None)
    gone, stays = sorted(questions.deletions(mine).collect(), key=lambda row: row.topic)
    assert (gone.topic, gone.duration_ms > 0, stays.topic, stays.completed_ms) == ("gone", True, "stays", None)


def test_a_reassignment_of_2_4_is_followed_to_its_end() -> None:
    """Replaced by another one, resumed by another controller, cancelled, and a mere change of the order."""
    with lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=5, seed=3, generation="2.4", config=EVERYTHING) as lab:
        lab.reassign({("orders", 0): [1, 5], ("orders", 1): [3, 2]})
        lab.run_for(0.05)
        lab.reassign({("orders", 0): [2, 5]})
        lab.run_for(0.02)
        until_quiet(lab.kill, 5)
        controller = lab.controller.id
        lab.kill(controller)
        lab.run_for(60)
        stuck = dicts(questions.reassignments(lab.trace).where("partition = 0"), "replicas", "tries", "end_ms")
        lab.start(5)
        lab.run_for(120)
        rows = questions.reassignments(lab.trace).orderBy("partition").collect()
        trace = lab.trace
    assert stuck == [{"replicas": [2, 5], "tries": 3, "end_ms": None}]
    done, order = rows
    assert (done.replicas, done.tries, done.end_ms is not None) == ([2, 5], 3, True)
    assert (order.replicas, order.tries) == ([3, 2], 1)
    assert order.duration_ms < 1000 < 60_000 < done.duration_ms
    equals_plain("reassignments", trace, {"lab": trace})


# The same from logs


@pytest.fixture(scope="module")
def imported(lives: dict[str, tuple[Trace, Trace, Trace]], tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The logs that all brokers of both lives leave in one place."""
    folder = tmp_path_factory.mktemp("lives")
    for generation, (both, _, _) in lives.items():
        write_logs(both, folder / generation)
    return import_logs(spark(), {generation: folder / generation for generation in lives}).records.cache()


def reported(rows: list[dict[str, Any]], begin: float, *columns: str) -> list[tuple]:
    """Rows as tuples; their times, which count from `begin`, in whole milliseconds."""

    def value(name: str, found: Any) -> Any:
        return int(found - begin) if found is not None and name.endswith("_ms") else found

    return sorted((tuple(value(name, row[name]) for name in columns) for row in rows), key=repr)


EPOCH = 1540425600000.0
FROM_LOGS = {
    "failover_time": ("controller", "epoch", "previous", "ready_ms"),
    "reassignments": ("topic", "partition", "replicas", "start_ms", "end_ms", "tries", "extra_epochs"),
    "deletions": ("topic", "started_ms", "completed_ms", "tries"),
    "unavailability": ("topic", "partition", "end_ms", "restored", "leader"),
}


@pytest.mark.parametrize("question", FROM_LOGS)
def test_logs_give_the_answers_that_traces_give(
    question: str, lives: dict[str, tuple[Trace, Trace, Trace]], records: DataFrame, imported: DataFrame
) -> None:
    """In every generation, but for what no log tells."""
    columns = FROM_LOGS[question]
    both = dicts(getattr(questions, question)(records.where("history LIKE '%both'")))
    logs = dicts(getattr(questions, question)(imported))
    assert {row["history"] for row in logs} == set(lives)
    for generation in GENERATIONS:
        expected = reported([row for row in both if row["history"] == f"{generation} both"], 0.0, *columns)
        assert reported([row for row in logs if row["history"] == generation], EPOCH, *columns) == expected, generation
        assert expected


def test_logs_equal_the_plain_computation(imported: DataFrame) -> None:
    """What is said of both lives in files of several brokers."""
    table = imported.toArrow()
    named = {generation: from_arrow(table, generation) for generation in GENERATIONS}
    for question in PLAIN:
        equals_plain(question, imported, named)


# Live


def test_what_is_known_now_ends_with_its_cluster(lives: dict[str, tuple[Trace, Trace, Trace]]) -> None:
    """Nobody leads what is there no more; the rest is what the second life alone would say."""
    for both, _, later in lives.values():
        leaders = {row[:2]: row[4:6] for row in Leaders().rows(both)}
        assert leaders == {row[:2]: row[4:6] for row in Leaders().rows(later)}
        begin = next(r for r in later if r.action in ("elected", "epoch_incremented") and "epoch" in (r.detail or ""))
        assert [*Leaders().rows(both[: begin.seq + 1])][-1][3] == begin.seq
        missing = {row[:2]: row[4] for row in UnderReplicated().rows(both)}
        assert {k: ids for k, ids in missing.items() if ids} == {
            row[:2]: row[4] for row in {r[:2]: r for r in UnderReplicated().rows(later)}.values() if row[4]
        }
        reported = [(row[0], row[1], *row[3:]) for row in Imbalance().rows(both)]
        answer = questions.imbalance(both).drop("history")
        assert sorted(reported) == sorted(tuple(row) for row in answer.collect())


def test_partitions_that_are_not_made_again_are_gone() -> None:
    """In the moment in which the new epoch is announced."""
    run = (
        elected(Run(), 4, 1, "2.4").move(GONE, NEW, replicas=(1, 2)).move(NEW, ONLINE, leader=1, isr=(1,), zk_version=0)
    )
    elected(run, 1, 1, "2.4")
    assert [row[3:6] for row in Leaders().rows(run.records)] == [(1, NEW, None), (2, ONLINE, 1), (3, GONE, None)]
    assert [row[3:5] for row in UnderReplicated().rows(run.records)] == [(2, [2]), (3, [])]
    late = run.records[:2] + run.records[3:] + [run.records[2]]
    assert [row[3:6] for row in Leaders().rows(late)] == [(1, NEW, None), (3, GONE, None)]
