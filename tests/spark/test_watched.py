"""The questions about histories, asked of the trace of a watched cluster."""

from collections.abc import Callable
from pathlib import Path

from foreign import watched
from labs import until_quiet
from pyspark.sql import DataFrame, Row

from kafka_ctl import Lab
from kafka_ctl.history import live, questions
from kafka_ctl.history.session import spark


def test_questions_run_on_a_watched_trace(tmp_path: Path) -> None:
    """Outages with their lengths, from Parquet."""
    with Lab(brokers=3, generation="2.4", seed=1) as lab:
        lab.create_topic("t", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
        lab.settle()
        with watched(lab) as watch:
            for broker in (lab.controller.id, 2):
                until_quiet(lab.kill, broker)
                until_quiet(lab.start, broker)
            watch.settle()
            trace = watch.trace
    trace.to_parquet(tmp_path / "watched.parquet")
    saved = spark().read.parquet(str(tmp_path / "watched.parquet"))
    outages = questions.unavailability(saved).collect()
    lost = {r.partition for r in trace.slice(kind="partition", action="mark")}
    assert {row.partition for row in outages} == lost != set()
    assert {row.cause for row in outages} <= {"broker loss", None}
    assert all(row.restored and row.duration_ms > 0 for row in outages)


def test_live_answers_follow_a_watched_trace(tmp_path: Path) -> None:
    """As the cluster was found, then a failover: leaders, missing replicas the controller as in ZooKeeper."""

    def answered(question: Callable[[DataFrame], DataFrame]) -> list[Row]:
        live.grow(watch.trace, tmp_path / "records")
        out = tmp_path / question.__name__
        query = live.keep(question(live.traces(spark(), tmp_path / "records")), out, once=True)
        assert query.awaitTermination(300)
        return live.latest(spark().read.parquet(str(out))).collect()

    with Lab(brokers=3, generation="2.4", seed=1) as lab:
        lab.create_topic("t", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
        lab.settle()
        first = lab.controller.id
        with watched(lab) as watch:
            for change in (None, lab.kill, lab.start):
                if change is not None:
                    until_quiet(change, first)
                watch.settle()
                now = {(p.topic, p.partition): p for p in lab.partitions()}
                assert {(r.topic, r.partition): r.leader for r in answered(live.leaders)} == {
                    tp: p.leader for tp, p in now.items()
                }
                missing = {(r.topic, r.partition): r.missing for r in answered(live.under_replicated)}
                assert {tp: sorted(ids or ()) for tp, ids in missing.items() if ids} == {
                    tp: sorted(set(p.replicas) - set(p.isr)) for tp, p in now.items() if len(p.isr) < len(p.replicas)
                }
            assert [row.controller for row in answered(live.controllers)] == [lab.controller.id]
