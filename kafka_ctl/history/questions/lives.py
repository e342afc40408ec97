"""Which life of its cluster a record belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.lives import ACTIONS, beginnings

_COLUMNS = ("history", "seq", "time_ms", "actor", "action", "controller_epoch", "detail")
_known: WeakKeyDictionary[DataFrame, DataFrame] = WeakKeyDictionary()


@overload
def with_life(records: DataFrame) -> DataFrame: ...
@overload
def with_life(records: pa.Table) -> pa.Table: ...
def with_life(records: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """The records with one more column, `life`: 0 in the first life of their cluster, 1 in the next.

    Of a DataFrame the elections are collected once. A generated dataset (its records have a `section`) is not
    searched: nothing in a workload wipes ZooKeeper.
    """
    if isinstance(records, pa.Table):
        return _in_arrow(records)
    if "life" not in records.columns and records not in _known:
        _known[records] = _in_spark(records)
    return _known.get(records, records)


def _by_history(elections: Iterable[_Row]) -> dict[str, list[int]]:
    """The beginnings of later lives, of histories that have any."""
    histories: dict[str, list[_Row]] = {}
    for record in sorted(elections, key=lambda record: record.seq):
        histories.setdefault(record.history, []).append(record)
    return {history: found for history, messages in histories.items() if (found := beginnings(messages))}


def _in_arrow(records: pa.Table) -> pa.Table:
    logged = pc.and_(pc.equal(records["kind"], "controller"), pc.is_in(records["action"], pa.array(ACTIONS)))
    elections = records.filter(logged).select(_COLUMNS).to_pylist()
    lives = pa.repeat(pa.scalar(0, pa.int64()), len(records))
    for history, begins in _by_history([_Row(row) for row in elections]).items():
        for seq in begins:
            later = pc.and_(pc.equal(records["history"], history), pc.greater_equal(records["seq"], seq))
            lives = pc.add(lives, pc.cast(later, pa.int64()))
    return records.append_column("life", lives)


class _Row:
    """A row whose columns are attributes."""

    history: str
    seq: int
    time_ms: float
    actor: str
    action: str
    controller_epoch: int | None
    detail: str | None

    def __init__(self, columns: dict[str, object]) -> None:
        self.__dict__ |= columns


def _in_spark(records: DataFrame) -> DataFrame:
    none = fn.lit(0).cast("bigint")
    lives: list[tuple[str, list[int]]] = []
    if "section" not in records.columns:
        logged = (fn.col("kind") == "controller") & fn.col("action").isin(*ACTIONS)
        lives = [*_by_history(_Row(row.asDict()) for row in records.where(logged).select(*_COLUMNS).collect()).items()]
    if not lives:
        return records.select("*", none.alias("life"))
    table = records.sparkSession.createDataFrame(lives, "history string, begins array<bigint>")
    life = fn.coalesce(fn.size(fn.filter("begins", lambda begin: begin <= fn.col("seq"))).cast("bigint"), none)
    return records.join(fn.broadcast(table), "history", "left").select(*records.columns, life.alias("life"))
