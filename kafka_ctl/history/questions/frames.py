"""The common ground of all questions: a DataFrame with cluster lives from any trace, an answer from SQL, and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast, overload
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import DoubleType

from kafka_ctl.errors import BadInput, short
from kafka_ctl.history.layout import HIGH_VOLUME
from kafka_ctl.history.lives import ACTIONS, beginnings
from kafka_ctl.history.schema import SCHEMA, to_arrow
from kafka_ctl.history.session import spark
from kafka_ctl.trace.record import Recorder

Records: TypeAlias = Any
"""The possible sources: a Spark DataFrame (`load`), `ImportedLogs` (`import_logs`), an Arrow table, a lab's `Trace`."""
MOST = 1_000_000_000
"""The largest argument of a question."""


def frame(records: Records) -> DataFrame:
    """Records as a DataFrame of the trace schema, with their `life`. Raises BadInput if they are something else."""
    if isinstance(
        imported := getattr(records, "records", None), DataFrame
    ):  # `ImportedLogs`; log readers are not imported here
        records = imported
    if isinstance(records, Recorder):
        records = to_arrow(records)
    if isinstance(records, pa.Table):
        return spark().createDataFrame(with_life(records))
    if missing := [name for name in SCHEMA.names if name not in getattr(records, "columns", ())]:
        raise BadInput(f"not records of the trace schema: no column {', '.join(missing)}")
    return with_life(records)


PARTS = {
    "main": ("section = 'main'", "true"),
    "sent": (
        "kind = 'partition' OR section = 'isr'",
        "kind = 'partition' OR (kind = 'request' AND action = 'LeaderAndIsr')"
        " OR (kind IN ('broker', 'controller') AND action IN ('shrink-isr', 'expand-isr'))",
    ),
}
"""Parts of the records, by their names in queries: a condition on `kind` and `section`, so that a dataset's
other files are not read, and one for records from elsewhere, which have no sections."""


def nest(query: str, **others: str) -> str:
    """A query with other queries where it names them in braces. Spark plans one long text in less time than several
    DataFrames that build on one another, each of which it analyses with all that is below."""
    for name, other in others.items():
        query = query.replace(f"{{{name}}}", f"({other})")
    return query


def without_life(query: str) -> str:
    """A query whose answer lacks the column `life`."""
    return f"SELECT * EXCEPT (life) FROM ({query})"


def ask(query: str, records: Records, **more: Records) -> DataFrame:
    """The answer to a query in SQL that names these records in braces, as `{records}`.

    More names may stand there: `{main}` and `{sent}`, parts of `{records}` (see `PARTS`), and those of `more`, as
    `{after.main}`; `{so_far}`, the frame of a window that ends with its row (Spark's own default looks behind it for
    rows of the same seq, and there are none); and `{high_volume}`, the actions of `HIGH_VOLUME`. Raises BadInput for
    records that are something else.
    """
    tables = {name: frame(given) for name, given in {"records": records, **more}.items()}
    for table, df in tables.items():
        for name, (files, others) in PARTS.items():
            condition = files if "section" in df.columns else others
            part = name if table == "records" else f"{table}.{name}"
            query = query.replace(f"{{{part}}}", f"(SELECT * FROM {{{table}}} WHERE {condition})")
    query = query.replace("{so_far}", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    query = query.replace("{high_volume}", str(HIGH_VOLUME)[1:-1])
    return tables["records"].sparkSession.sql(query, **tables)  # type: ignore[arg-type]


def number(name: str, value: object, unit: str) -> float:
    """An argument of a question that is a number. Raises BadInput for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise BadInput(f"{name}={short(value)}: give a number of {unit} from 0 to {MOST}")
    return float(value)


def milliseconds(name: str, minutes: object) -> float:
    """An argument of a question that counts minutes. Raises BadInput for anything else."""
    return number(name, minutes, "minutes") * 60_000.0


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


def _by_history(elections: Iterable[_Row], lowest: Callable[[str, int], int | None]) -> dict[str, list[int]]:
    """The beginnings of later lives, of histories that have any; `lowest` is the lowest epoch before a `seq`, or none.

    That is asked only of histories in which an epoch falls.
    """
    histories: dict[str, list[_Row]] = {}
    for record in sorted(elections, key=lambda record: record.seq):
        histories.setdefault(record.history, []).append(record)
    fallen = {history: messages for history, messages in histories.items() if beginnings(messages)}
    named = {history: lowest(history, messages[0].seq) or math.inf for history, messages in fallen.items()}
    return {history: found for history in fallen if (found := beginnings(fallen[history], named[history]))}


def _in_arrow(records: pa.Table) -> pa.Table:
    def lowest(history: str, seq: int) -> int | None:
        before = pc.and_(pc.equal(records["history"], history), pc.less(records["seq"], seq))
        epochs = records.filter(pc.and_(before, pc.greater(records["controller_epoch"], 0)))["controller_epoch"]
        return cast(int | None, pc.min(epochs).as_py())

    logged = pc.and_(pc.equal(records["kind"], "controller"), pc.is_in(records["action"], pa.array(ACTIONS)))
    elections = records.filter(logged).select(_COLUMNS).to_pylist()
    lives = pa.repeat(pa.scalar(0, pa.int64()), len(records))
    for history, begins in _by_history([_Row(row) for row in elections], lowest).items():
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
    def lowest(history: str, seq: int) -> int | None:
        before = (fn.col("history") == history) & (fn.col("seq") < seq) & (fn.col("controller_epoch") > 0)
        return cast(int | None, records.where(before).agg(fn.min("controller_epoch")).collect()[0][0])

    none = fn.lit(0).cast("bigint")
    lives: list[tuple[str, list[int]]] = []
    if "section" not in records.columns:
        logged = (fn.col("kind") == "controller") & fn.col("action").isin(*ACTIONS)
        rows = [_Row(row.asDict()) for row in records.where(logged).select(*_COLUMNS).collect()]
        lives = [*_by_history(rows, lowest).items()]
    if not lives:
        return records.select("*", none.alias("life"))
    table = records.sparkSession.createDataFrame(lives, "history string, begins array<bigint>")
    life = fn.coalesce(fn.size(fn.filter("begins", lambda begin: begin <= fn.col("seq"))).cast("bigint"), none)
    return records.join(fn.broadcast(table), "history", "left").select(*records.columns, life.alias("life"))


DURATIONS = frozenset(
    "outage duration longest shortest vacant waited under single taking_over reading replica partition failover"
    " detection lasted behind led p50 p90 p99 median".split()
)
"""The columns `NAME_ms` (or `NAME_ms_before`, `NAME_ms_after`) that are lengths of time; the others are moments."""


def in_words(answer: DataFrame) -> DataFrame:
    """The same rows for people: a duration as `7.7 s`, a moment in milliseconds with one decimal place."""
    numbers = {field.name for field in answer.schema if isinstance(field.dataType, DoubleType)}
    return answer.select(*(_readable(name) if name in numbers else fn.col(name) for name in answer.columns))


def _readable(name: str) -> Column:
    before, found, _ = name.partition("_ms")
    column = fn.col(name)
    if not found:
        return column
    if before not in DURATIONS:
        return fn.when(column.isNotNull(), fn.format_string("%.1f", column)).alias(name)
    words = fn.when(column.isNull(), fn.lit(None))
    for size, unit in ((3.6e6, "h"), (6e4, "min"), (1e3, "s")):
        words = words.when(column >= size, fn.format_string(f"%.1f {unit}", column / size))
    return words.otherwise(fn.format_string("%.1f ms", column)).alias(name)
