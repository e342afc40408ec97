"""The questions as the kit asks them, in its own session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from kafka_ctl.history import load, questions, spark


class Engine:
    """Spark on one dataset, with so many cores; `path` may also be a folder with a folder for each history."""

    def __init__(self, path: str, cores: int, legal: list[tuple]) -> None:
        session = spark("benchmark", cores)
        own = Path(path, "_manifest.json").exists()
        self.records = load(session, path) if own else session.read.parquet(path)

    def answer(self, name: str) -> DataFrame:
        if name == "compare":
            early = "substr(history, -1) < '5'"
            return questions.compare(self.records.where(early), self.records.where(f"NOT {early}"))
        return getattr(questions, name)(self.records)

    def ask(self, name: str) -> None:
        """Every row of an answer is made, and let go."""
        self.answer(name).write.format("noop").mode("overwrite").save()

    def digest(self, name: str) -> dict[str, Any]:
        """Rows, and for each column its values added up."""
        answer = self.answer(name)
        sums = [f"sum({_number(column, kind)})" for column, kind in answer.dtypes]
        found = answer.selectExpr("count(*)", *sums).collect()[0]
        return dict(zip(["rows", *answer.columns], found, strict=True))


def _number(column: str, kind: str) -> str:
    if kind.startswith("array"):
        return f"aggregate({column}, 0D, (total, x) -> total + x)"
    if kind == "boolean":
        return f"int({column})"
    return f"length({column})" if kind == "string" else f"double({column})"
