"""What the benchmarks compare is comparable: all questions, and one answer from every engine."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import copies, engines, history, in_duckdb
from benchmarks.engine import legal_moves
from benchmarks.in_spark import Engine as Spark
from kafka_ctl.history import Workload, generate, load, questions
from kafka_ctl.history.session import spark
from kafka_ctl.history.workload import simulate


def test_every_question_is_asked() -> None:
    """Of Spark and of DuckDB, but for those that only sum up the answer to another, and new ones."""
    assert sorted(engines.QUESTIONS) == sorted(in_duckdb.VIEWS)
    assert {*engines.QUESTIONS, *engines.DERIVED} <= {*questions.__all__}
    assert len(engines.QUESTIONS) >= 15


def test_another_answer_is_noticed() -> None:
    """In the rows, in a sum, in the columns; the last digits of a sum may differ."""
    engines.same({"one": {"rows": 2, "seconds": 0.1 + 0.2}, "other": {"rows": 2, "seconds": 0.3}})
    with pytest.raises(AssertionError, match="rows: one says 2, other 3"):
        engines.same({"one": {"rows": 2}, "other": {"rows": 3}})
    with pytest.raises(AssertionError, match=r"other .*more"):
        engines.same({"one": {"rows": 2}, "other": {"rows": 2, "more": 1}})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of two clusters."""
    for name, value in {"SIMULATED": 2, "HOURS": 1, "BUCKETS": 3, "originals": [], "original_parts": []}.items():
        monkeypatch.setattr(copies, name, value)


class Here:
    """An engine of the benchmark in this process, which has a session."""

    peak = 0

    def __init__(self, name: str, path: str, cores: int) -> None:
        assert name == "spark"
        self.engine = Spark(path, cores, [])

    def run(self, verb: str, question: str) -> tuple[float, float, Any]:
        return 1.0, 1.0, getattr(self.engine, verb)(question)

    def close(self) -> None:
        """Leave the session to others."""


def test_layouts_agree(few: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--plain`: Spark gives the same answers on our layout and on a plain one."""
    monkeypatch.setattr(engines, "Engine", Here)
    monkeypatch.setattr(engines, "QUESTIONS", ("departures", "leader_churn"))
    monkeypatch.setattr(engines, "RUNS", 1)
    engines.main(["--plain", "0.001"])
    assert "all questions" in capsys.readouterr().out


def test_the_benchmark_of_histories_runs(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m benchmarks.history`, shortly."""
    for size, value in history.QUICK.items():
        monkeypatch.setattr(history, size, value)
    measured = list(history.measure())
    assert measured and all(re.search(r"\d", row.result) for row in measured), measured


def test_copies_are_the_simulated_clusters(few: None, tmp_path: Path) -> None:
    """As many as were asked for, in a dataset that loads; written plainly, they are the same records."""
    sizes = [len(simulate(copies.SEED * 1_000_000 + n, 1)) for n in range(2)]
    copies.write(3 * sum(sizes), tmp_path / "copies", processes=1)
    copies.write_plainly(3 * sum(sizes), tmp_path / "plain")
    counted = load(spark(), tmp_path / "copies").groupBy("history").count()
    assert sorted(row["count"] for row in counted.collect()) == sorted(3 * sizes)
    plain = spark().read.parquet(str(tmp_path / "plain"))
    columns = ["history", "seq", "time_ms", "kind", "action", "topic"]
    assert load(spark(), tmp_path / "copies").select(columns).exceptAll(plain.select(columns)).isEmpty()
    assert plain.count() == 3 * sum(sizes)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A few hours in which much goes wrong."""
    out = tmp_path_factory.mktemp("histories") / "data"
    workload = Workload(brokers=(3, 5), topics=(2, 4), rate=6, unclean=1, replication={2: 1})
    generate(None, 12, 12, 3, out=out, workload=workload, buckets=3)
    return str(out)


@pytest.fixture(scope="module")
def ours(dataset: str) -> dict[str, dict[str, Any]]:
    """Spark's digest of the answer to each question, asked once for all other engines."""
    spark_engine = Spark(dataset, 2, [])
    return {question: spark_engine.digest(question) for question in engines.QUESTIONS}


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_engines_give_the_same_answers(
    engine: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Rows, and the sum of every column."""
    pytest.importorskip(engine, reason=f"{engine} is in benchmarks/requirements.txt")
    dataset, ours = map(request.getfixturevalue, ("dataset", "ours"))
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    other = import_module(f"benchmarks.in_{engine}").Engine(dataset, 2, legal_moves())
    for question in engines.QUESTIONS:
        assert ours[question]["rows"], question
        engines.same({"spark": ours[question], engine: other.digest(question)})
