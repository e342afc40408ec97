"""The live questions: each takes a stream of records and returns a stream of changes, which `keep` writes down.

Columns before `at_ms` (milliseconds, as in the records) say what a row is about; it holds until the next row with the
same ones (and a broker's imbalance at most until ZooKeeper is wiped). `seq` is the record behind it. All work with
any sink of Structured Streaming, in append mode.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.errors import BadInput, KafkaCtlError, short
from kafka_ctl.history.files import naming, path_of
from kafka_ctl.history.layout import DatasetFolder
from kafka_ctl.history.live.folds import Aggregator, Controllers, Imbalance, Leaders, UnderReplicated
from kafka_ctl.history.lives import ACTIONS
from kafka_ctl.history.schema import check_records
from kafka_ctl.history.session import failing, ship_package
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

NOTE = "_changes.json"
"""The note in a folder of changes: their columns."""
CARRIED = [name for name in Record._fields if name not in ("path", "detail", "cause")]


def leaders(records: DataFrame) -> DataFrame:
    """The present leader of each partition.

    Columns: `history`, `topic`, `partition`, `at_ms`, `seq`, `state` (the partition's, by Kafka's name), `leader` (null
    when there is none) and `leader_epoch` (null where the record does not say).
    """
    return _aggregated(records, Leaders)


def under_replicated(records: DataFrame) -> DataFrame:
    """The partitions that have replicas out of sync now.

    Columns: `history`, `topic`, `partition`, `at_ms`, `seq`, `missing` (assigned replicas out of sync; empty when all
    is well again), `isr` (null once the topic is deleted), `replicas`.
    """
    return _aggregated(records, UnderReplicated)


def imbalance(records: DataFrame) -> DataFrame:
    """For every broker, how many of its preferred partitions another broker leads now.

    Columns: `history`, `broker`, `at_ms`, `seq`, `preferred`, `led_elsewhere` and `share` as in `questions.imbalance`.
    """
    return _aggregated(records, Imbalance)


def controllers(records: DataFrame) -> DataFrame:
    """The present controller.

    Columns: `history`, `at_ms`, `seq`, `state` (`elected`, `ready` or `resigned`), `controller`, and `epoch` (null when
    elected: the epoch rises after that).
    """
    return _aggregated(records, Controllers)


def _aggregated(records: DataFrame, aggregator: type[Aggregator]) -> DataFrame:
    """One group for each history: its state is a few bytes for each partition, and a batch is one call of Python."""
    if not isinstance(records, DataFrame):
        raise BadInput(f"{short(records)} is no stream of records: give `live.traces(...)` or `live.logs(...)`")
    ship_package(check_records(records).sparkSession)
    elected = (fn.col("kind") == "controller") & fn.col("action").isin(*ACTIONS)
    detail = fn.when(elected, fn.col("detail")).alias("detail")
    relevant = records.where(fn.col("kind").isin(*aggregator.kinds) | elected).select(
        "history", fn.to_json(fn.struct(*CARRIED, detail)).alias("record")
    )
    names = ["history", *(column.split()[0] for column in aggregator.columns.split(", "))]

    def add(key: tuple[str], frames: Iterator[pd.DataFrame], kept: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        mine = aggregator(json.loads(kept.get[0]) if kept.exists else None)
        records = [Record(**json.loads(text)) for frame in frames for text in frame["record"]]
        rows = [(key[0], *row) for row in mine.rows(sorted(records, key=lambda r: (r.time_ms, r.seq)))]
        kept.update((json.dumps(mine.state),))
        yield pd.DataFrame(rows, columns=names, dtype=object)

    schema = f"history string, {aggregator.columns}"
    return relevant.groupBy("history").applyInPandasWithState(add, schema, "state string", "append", "NoTimeout")


def keep(changes: DataFrame, out: str | os.PathLike[str], once: bool = False) -> StreamingQuery:
    """Start a query that writes each change to the folder `out` as Parquet, exactly once.

    The position in the input and the state are kept in `out/_checkpoint`; a query that is started again with the same
    `out` goes on from there, whatever became of the one before. `once` ends it when all that is there now has been
    read. Read the folder with `spark.read.parquet`: Spark's list of finished files is in it.

    Raises BadInput for what is no stream or no path, for a folder that cannot be written, and for one that holds an
    answer with other columns: its position and state belong to another question.
    """
    folder = path_of(out)
    if not isinstance(changes, DataFrame) or not changes.isStreaming:
        raise BadInput(
            f"{short(changes)} is no stream of changes: give the answer of a live question, such as `live.leaders`"
        )
    noted = {"columns": changes.columns}
    with naming(folder, "cannot be written"):
        place = DatasetFolder(folder)
        if not (known := place.has(NOTE)):
            place.write_json(noted, NOTE)
        elif place.read_json(NOTE) != noted:
            raise BadInput(f"{folder} holds the answer to another question; give each answer a folder of its own")
    writer = changes.writeStream.format("parquet").outputMode("append").queryName(place.path)
    writer = writer.option("path", place.path).option("checkpointLocation", f"{place.path}/_checkpoint")
    try:
        with failing(f"{folder}: writing it"):
            return (writer.trigger(availableNow=True) if once else writer).start()
    except KafkaCtlError:
        if not known:
            place.fs.delete_file(place.at(NOTE))
        raise


def latest(changes: DataFrame) -> DataFrame:
    """The rows that hold now: the last one of those that agree in all columns before `at_ms`.

    Raises BadInput for a table without that column.
    """
    if not isinstance(changes, DataFrame) or "at_ms" not in changes.columns:
        raise BadInput(f"{short(changes)} has no column at_ms: give the changes that `live.keep` wrote")
    keys = changes.columns[: changes.columns.index("at_ms")]
    order = fn.struct(*(name for name in ("at_ms", "seq") if name in changes.columns))
    last = changes.groupBy(*keys).agg(fn.max_by(fn.struct(*changes.columns), order).alias("row"))
    return last.select("row.*")
