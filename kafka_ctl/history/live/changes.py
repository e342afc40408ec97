"""The live questions: each takes a stream of records and returns a stream of changes.

Columns before `at_ms` (milliseconds, as in the records) say what a row is about; it holds until the next row with the
same ones (and a broker's imbalance at most until ZooKeeper is wiped). `seq` is the record that tells it. All work with
any sink of Structured Streaming, in append mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.live.folds import Controllers, Fold, Imbalance, Leaders, UnderReplicated
from kafka_ctl.history.lives import ACTIONS
from kafka_ctl.history.workers import ready
from kafka_ctl.trace.record import Record

CARRIED = [name for name in Record._fields if name not in ("path", "detail", "cause")]


def leaders(records: DataFrame) -> DataFrame:
    """Who leads each partition now.

    Columns: `history`, `topic`, `partition`, `at_ms`, `seq`, `state` (the partition's, by Kafka's name), `leader` (null
    when nobody does) and `leader_epoch` (null where the record does not say).
    """
    return _folded(records, Leaders)


def under_replicated(records: DataFrame) -> DataFrame:
    """Which partitions have replicas that are not in sync now.

    Columns: `history`, `topic`, `partition`, `at_ms`, `seq`, `missing` (assigned replicas out of sync; empty when all
    is well again), `isr` (null once the topic is deleted), `replicas`.
    """
    return _folded(records, UnderReplicated)


def imbalance(records: DataFrame) -> DataFrame:
    """For every broker, how many of the partitions that prefer it are led by somebody else now.

    Columns: `history`, `broker`, `at_ms`, `seq`, and `preferred`, `astray` and `share` as in `questions.imbalance`.
    """
    return _folded(records, Imbalance)


def controllers(records: DataFrame) -> DataFrame:
    """Who is the controller now.

    Columns: `history`, `at_ms`, `seq`, `state` (`elected`, `ready` or `resigned`), `controller` and `epoch` (null when
    elected: the epoch rises after that).
    """
    return _folded(records, Controllers)


def _folded(records: DataFrame, fold: type[Fold]) -> DataFrame:
    """One group for each history: its state is a few bytes for each partition, and a batch is one call of Python."""
    ready(records.sparkSession)
    elected = (fn.col("kind") == "controller") & fn.col("action").isin(*ACTIONS)
    detail = fn.when(elected, fn.col("detail")).alias("detail")
    told = records.where(fn.col("kind").isin(*fold.kinds) | elected).select(
        "history", fn.to_json(fn.struct(*CARRIED, detail)).alias("record")
    )
    names = ["history", *(column.split()[0] for column in fold.columns.split(", "))]

    def add(key: tuple[str], frames: Iterator[Any], kept: Any) -> Iterator[Any]:
        import pandas as pd

        mine = fold(json.loads(kept.get[0]) if kept.exists else None)
        records = [Record(**json.loads(text)) for frame in frames for text in frame["record"]]
        rows = [(key[0], *row) for row in mine.rows(sorted(records, key=lambda r: (r.time_ms, r.seq)))]
        kept.update((json.dumps(mine.state),))
        yield pd.DataFrame(rows, columns=names, dtype=object)

    schema = f"history string, {fold.columns}"
    return told.groupBy("history").applyInPandasWithState(add, schema, "state string", "append", "NoTimeout")
