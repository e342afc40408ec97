"""The questions of `kafka_ctl.history.questions` as a user of DuckDB would write them: views on the Parquet files.

`records` is the dataset; the other views, one a file in `duckdb_views/`, have the columns that the questions document.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.engine import QUESTIONS

VIEWS = {path.stem: path.read_text() for path in Path(__file__).with_name("duckdb_views").glob("*.sql")}


class Engine:
    """DuckDB on one dataset, with so many threads."""

    def __init__(self, path: str, cores: int, legal: list[tuple]) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {cores}")
        self.connection.execute("SET enable_progress_bar = false")
        self.connection.execute("SET asof_loop_join_threshold = 0")  # its loop is quadratic
        files = f"read_parquet('{path}/kind=*/section=*/*.parquet', hive_partitioning = true)"
        self.connection.execute(f"CREATE VIEW records AS SELECT * FROM {files}")
        self.connection.execute("CREATE TABLE legal (machine TEXT, source TEXT, target TEXT, action TEXT)")
        self.connection.executemany("INSERT INTO legal VALUES (?, ?, ?, ?)", legal)
        for name in QUESTIONS:
            self.connection.execute(f"CREATE VIEW {name} AS {VIEWS[name]}")

    def ask(self, name: str) -> int:
        """Every row of an answer, as Arrow batches that are let go; how many there are."""
        batches = self.connection.sql(f"FROM {name}").to_arrow_reader(100_000)
        return sum(len(batch) for batch in batches)

    def digest(self, name: str) -> dict[str, Any]:
        """Rows, and for each column its values added up."""
        columns = {name: str(kind) for name, kind, *_ in self.connection.execute(f"DESCRIBE {name}").fetchall()}
        sums = [f"sum({_number(column, kind)})" for column, kind in columns.items()]
        found = self.connection.execute(f"SELECT count(*), {', '.join(sums)} FROM {name}").fetchall()[0]
        return dict(zip(["rows", *columns], found, strict=True))


def _number(column: str, kind: str) -> str:
    if kind.endswith("[]"):
        return f"list_sum({column})"
    return f"length({column})" if kind == "VARCHAR" else f"{column}::DOUBLE"
