"""The questions about histories, asked of the trace of a watched cluster."""

from pathlib import Path

from foreign import watched
from labs import until_quiet

from kafka_ctl import Lab
from kafka_ctl.history import questions
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
