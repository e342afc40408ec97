"""Keeping the answers of a stream, and reading what holds now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def keep(changes: DataFrame, out: str | os.PathLike[str], once: bool = False) -> StreamingQuery:
    """Start a query that writes each change to the folder `out` as Parquet, exactly once.

    What was read and known is noted in `out/_checkpoint`; a query that is started again with the same `out` goes on
    from there, whatever became of the one before. `once` ends it when all that is there now has been read. Read the
    folder with `spark.read.parquet`: Spark's list of finished files is in it.
    """
    folder = os.fspath(out)
    writer = changes.writeStream.format("parquet").outputMode("append").queryName(os.path.basename(folder))
    writer = writer.option("path", folder).option("checkpointLocation", f"{folder}/_checkpoint")
    return (writer.trigger(availableNow=True) if once else writer).start()


def latest(changes: DataFrame) -> DataFrame:
    """What holds now: of rows that agree in all columns before `at_ms`, the last one."""
    keys = changes.columns[: changes.columns.index("at_ms")]
    order = fn.struct(*(name for name in ("at_ms", "seq") if name in changes.columns))
    last = changes.groupBy(*keys).agg(fn.max_by(fn.struct(*changes.columns), order).alias("row"))
    return last.select("row.*")
