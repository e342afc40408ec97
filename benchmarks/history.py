"""Histories: how fast they are simulated, written, imported and questioned; `python -m benchmarks.history [CLUSTERS]`.

Three questions are put to DuckDB as well, on the same files and written as its users would, if it is installed
(`pip install duckdb`); both must give the same answer. Times are the better of two warm runs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from kafka_ctl.history import generate, import_logs, load, questions, simulate, spark
from kafka_ctl.history.logfile import read_texts
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.lab.kafkalog import kafka_log

CLUSTERS, HOURS, SEED = 40, 24, 1

DUCKDB = {
    "transition_counts": """
        SELECT sum(made), sum(refused) FROM (
            SELECT kind, source, target, count(*) FILTER (error IS NULL) AS made, count(error) AS refused
            FROM read_parquet(['{path}/kind=partition/*', '{path}/kind=replica/*'], hive_partitioning = true)
            WHERE source IS NOT NULL GROUP BY ALL)""",
    "leader_churn": """
        SELECT sum(elections), sum(changes) FROM (
            SELECT history, topic, partition, count(*) AS elections, count(*) FILTER (leader != previous) AS changes,
                   count(DISTINCT leader) AS leaders
            FROM (SELECT *, lag(leader) OVER (PARTITION BY history, topic, partition ORDER BY seq) AS previous
                  FROM read_parquet('{path}/kind=partition/*') WHERE error IS NULL AND leader >= 0)
            GROUP BY ALL)""",
    "imbalance": """
        WITH moves AS (
            SELECT *, last_value(replicas[1] IGNORE NULLS) OVER w AS preferred,
                   target != 'NonExistentPartition' AS there
            FROM read_parquet('{path}/kind=partition/*') WHERE error IS NULL
            WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
        ), stands AS (
            SELECT *, (target != 'OnlinePartition' OR leader IS DISTINCT FROM preferred)::INT AS astray
            FROM moves WHERE preferred IS NOT NULL
        ), known AS (
            SELECT *, lag(preferred) OVER w AS old, lag(astray) OVER w AS old_astray, lag(there) OVER w AS was
            FROM stands WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
        ), changes AS (
            SELECT history, seq, time_ms, preferred AS broker, 1 AS n, astray FROM known WHERE there
            UNION ALL SELECT history, seq, time_ms, old, -1, -old_astray FROM known WHERE was
        ), running AS (
            SELECT *, sum(n) OVER w AS all_of, sum(astray) OVER w AS away
            FROM changes WINDOW w AS (PARTITION BY history, broker ORDER BY seq)
        )
        SELECT sum(all_of), sum(away) FROM (
            SELECT history, broker, time_ms, arg_max(all_of, seq) AS all_of, arg_max(away, seq) AS away
            FROM running GROUP BY ALL)""",
}
SUMS = {
    "transition_counts": ("made", "refused"),
    "leader_churn": ("elections", "changes"),
    "imbalance": ("preferred", "astray"),
}
"""What is added up of each answer, to compare it."""
OTHERS = (
    "unavailability departures isr_churn unclean_exposure shutdown_vs_failure rolling_restarts failover_time "
    "request_amplification reassignments deletions"
).split()


def warm(run: Callable[[], Any]) -> tuple[float, Any]:
    """The better of two runs after a first one, in seconds, and what it returned."""
    answer, taken = run(), []
    for _ in range(2):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return min(taken), answer


def measure(clusters: int = CLUSTERS) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data"
        yield from _generation(clusters, path)
        yield from _questions(path)
        yield from _import(Path(folder) / "logs")


def _generation(clusters: int, path: str) -> Iterator[Figure]:
    began = time.process_time()
    traces = [simulate(SEED * 1_000_000 + n, HOURS) for n in range(8)]
    simulated = time.process_time() - began
    records = sum(map(len, traces))
    began = time.process_time()
    for trace in traces:
        to_arrow(trace)
    columns = time.process_time() - began
    yield Figure("simulating, one core", f"{records / simulated:,.0f} records/s", f"{records:,} records")
    yield Figure("records to columns, one core", f"{records / columns:,.0f} records/s")
    spark().range(1).count()
    began = time.perf_counter()
    dataset = generate(spark(), clusters, HOURS, SEED, out=path)
    taken = time.perf_counter() - began
    size = sum(file.stat().st_size for file in Path(path).rglob("*.parquet"))
    beside = f"{dataset!r}, {size / dataset.records:.1f} bytes each"
    yield Figure("generate in Spark, all cores", f"{dataset.records / taken:,.0f} records/s", beside)


def _questions(path: str) -> Iterator[Figure]:
    records = load(spark(), path)
    for name, columns in SUMS.items():

        def ask(name: str = name, columns: tuple[str, ...] = columns) -> tuple:
            answer = getattr(questions, name)(records)
            return tuple(answer.selectExpr(*(f"bigint(sum({column}))" for column in columns)).collect()[0])

        ours, answer = warm(ask)
        yield Figure(f"{name} in Spark", f"{ours:.2f} s", _beside_duckdb(name, path, ours, answer))
    for name in OTHERS:
        question = getattr(questions, name)
        ours, _ = warm(lambda question=question: question(records).write.format("noop").mode("overwrite").save())
        yield Figure(f"{name} in Spark", f"{ours:.2f} s")


def _beside_duckdb(name: str, path: str, ours: float, answer: tuple) -> str:
    try:
        import duckdb
    except ImportError:
        return "DuckDB is not installed"
    with duckdb.connect() as connection:
        query = DUCKDB[name].format(path=path)
        theirs, other = warm(lambda: connection.execute(query).fetchone())
    assert tuple(map(int, other)) == answer, f"{name}: Spark says {answer}, DuckDB {other}"
    return f"{ours / theirs:.1f} times DuckDB's {theirs:.2f} s"


def _import(folder: Path) -> Iterator[Figure]:
    folder.mkdir()
    trace = simulate(SEED, HOURS)
    text = "".join(kafka_log(trace, name) for name in ("state-change", "controller"))
    size = len(text) / 1e6
    lines = text.splitlines()
    began = time.process_time()
    said = sum(1 for _ in read_texts(enumerate(lines, 1)))
    taken = time.process_time() - began
    yield Figure("lines of logs, one core", f"{size / taken:.1f} MB/s", f"{said / taken:,.0f} lines/s")
    copies = max(1, int(40 / size))
    (folder / "state-change.log").write_text(text * copies)
    began = time.perf_counter()
    with (folder / "state-change.log").open() as file:
        sum(1 for _ in file)
    reading = time.perf_counter() - began
    began = time.perf_counter()
    logs = import_logs(spark(), folder)
    taken = time.perf_counter() - began
    beside = f"{taken / reading:.0f} times reading the lines; {logs.rejected.count()} rejected"
    yield Figure("import in Spark, all cores", f"{size * copies / taken:.1f} MB/s", beside)


if __name__ == "__main__":
    for figure in measure(int(sys.argv[1]) if sys.argv[1:] else CLUSTERS):
        print(f"{figure.name:32} {figure.result:>20}   {figure.beside}", flush=True)
