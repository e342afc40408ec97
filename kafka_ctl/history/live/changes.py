"""The live questions: each takes a stream of records and returns a stream of changes.

Columns before `at_ms` (milliseconds, as in the records) say what a row is about; it holds until the next row with the
same ones (and a broker's imbalance at most until ZooKeeper is wiped). `seq` is the record behind it. All work with
any sink of Structured Streaming, in append mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.live.folds import Aggregator, Controllers, Imbalance, Leaders, UnderReplicated
from kafka_ctl.history.lives import ACTIONS
from kafka_ctl.history.workers import ship_package
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

CARRIED = [name for name in Record._fields if name not in ("path", "detail", "cause")]


def leaders(records: DataFrame) -> DataFrame:
    """Who leads each partition now.

    Columns: `history`, `topic`, `partition`, `at_ms`, `seq`, `state` (the partition's, by Kafka's name), `leader` (null
    when nobody does) and `leader_epoch` (null where the record does not say).
    """
    return _aggregated(records, Leaders)


def under_replicated(records: DataFrame) -> DataFrame:
    """Which partitions have replicas that are not in sync now.

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
    """Who is the controller now.

    Columns: `history`, `at_ms`, `seq`, `state` (`elected`, `ready` or `resigned`), `controller` and `epoch` (null when
    elected: the epoch rises after that).
    """
    return _aggregated(records, Controllers)


def _aggregated(records: DataFrame, aggregator: type[Aggregator]) -> DataFrame:
    """One group for each history: its state is a few bytes for each partition, and a batch is one call of Python."""
    ship_package(records.sparkSession)
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
