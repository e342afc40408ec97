"""The common ground of all questions: a DataFrame with cluster lives from any trace, an answer from SQL, and words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import DoubleType

from kafka_ctl.errors import BadInput, short
from kafka_ctl.history.layout import HIGH_VOLUME
from kafka_ctl.history.lives import ACTIONS, beginnings
from kafka_ctl.history.schema import check_columns, check_records, to_arrow
from kafka_ctl.history.session import spark
from kafka_ctl.trace.record import Record, Recorder

Records: TypeAlias = Any
"""The possible sources: a Spark DataFrame (`load`), `ImportedLogs` (`import_logs`), an Arrow table, a lab's `Trace`."""
MOST = 1_000_000_000
"""The largest argument of a question."""


def frame(records: Records) -> DataFrame:
    """Records as a DataFrame of the trace schema, with their `life`. Raises BadInput if they are something else."""
    # `ImportedLogs`; log readers are not imported here
    if isinstance(imported := getattr(records, "records", None), DataFrame):
        records = imported
    if isinstance(records, Recorder):
        records = to_arrow(records)
    if isinstance(records, pa.Table):
        check_columns(records.column_names)
        try:
            given = check_records(spark().createDataFrame(records))
        except PySparkTypeError as problem:
            raise BadInput(f"not records of the trace schema: {problem}") from None
        announced = pc.and_(pc.equal(records["kind"], "controller"), pc.is_in(records["action"], pa.array(ACTIONS)))
        return _with_life(given, records.filter(announced).select(_COLUMNS).to_pylist())
    given = check_records(records)
    if "life" in given.columns:
        return given
    if given not in _known:
        elections = []
        if "section" not in given.columns:
            logged = given.where((fn.col("kind") == "controller") & fn.col("action").isin(*ACTIONS))
            elections = [row.asDict() for row in logged.select(*_COLUMNS).collect()]
        _known[given] = _with_life(given, elections)
    return _known[given]


_COLUMNS = ("history", "seq", "time_ms", "actor", "kind", "action", "controller_epoch", "detail")
_known: WeakKeyDictionary[DataFrame, DataFrame] = WeakKeyDictionary()
"""DataFrames with their lives, so that the elections of each are collected once."""


def _with_life(records: DataFrame, elections: Iterable[dict[str, Any]]) -> DataFrame:
    """The records with one more column, `life`: 0 in the first life of their cluster, 1 in the next.

    `elections` has the `_COLUMNS` of the records that announce a controller; none for a generated dataset (its records
    have a `section`), as nothing in a workload wipes ZooKeeper.
    """
    histories: dict[str, list[Record]] = {}
    for row in sorted(elections, key=itemgetter("seq")):
        histories.setdefault(row.pop("history"), []).append(Record(**row))
    lives: list[tuple[str, list[int]]] = []
    for history, messages in histories.items():
        if not beginnings(messages):
            continue
        before = (fn.col("history") == history) & (fn.col("seq") < messages[0].seq) & (fn.col("controller_epoch") > 0)
        lowest = records.where(before).agg(fn.min("controller_epoch")).collect()[0][0]
        if found := beginnings(messages, lowest or math.inf):
            lives.append((history, found))
    none = fn.lit(0).cast("bigint")
    if not lives:
        return records.select("*", none.alias("life"))
    table = records.sparkSession.createDataFrame(lives, "history string, begins array<bigint>")
    life = fn.coalesce(fn.size(fn.filter("begins", lambda begin: begin <= fn.col("seq"))).cast("bigint"), none)
    return records.join(fn.broadcast(table), "history", "left").select(*records.columns, life.alias("life"))


def check_answer(answer: DataFrame, question: str, *columns: str) -> None:
    """Raise BadInput for anything but a DataFrame with these columns, which the answer of the question has."""
    if not isinstance(answer, DataFrame) or {*columns} - {*answer.columns}:
        raise BadInput(f"answer={short(answer)}: give the answer of questions.{question}")


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


_STEP = re.compile(r"^(?:WITH|\),) (\w+) AS \(.*\n", re.MULTILINE)
"""The line that begins a subquery with a name, perhaps with a comment."""
_SOURCE = re.compile(r"\b(FROM|JOIN) (\w+)(?: ([a-z]\w*))?\b")
"""A use of such a name, perhaps with another one for this place; SQL's own words are in capital letters."""


def nest(query: str, **others: str) -> str:
    """A query with its subqueries, and with other queries, where it names them: these in braces.

    Spark plans one long text in less time than several DataFrames that build on one another, each of which it analyses
    with all that is below, and subqueries where they are named in three quarters of the time of those in a `WITH`.
    The first part of a UNION says `history AS history`: without a new attribute Spark 4.3 does not find that its parts
    are divided alike (SPARK-52921), and shuffles the records.
    """
    _, *steps = _STEP.split(query)
    named: dict[str, str] = {}

    def at_its_place(use: re.Match[str]) -> str:
        keyword, name, alias = use.groups()
        return f"{keyword} ({named[name]}\n) {alias or name}" if name in named else use[0]

    if steps:
        steps[-1], query = steps[-1].split("\n)\n", 1)
    for name, step in zip(steps[::2], steps[1::2], strict=True):
        named[name] = _SOURCE.sub(at_its_place, step)
    query = _SOURCE.sub(at_its_place, query)
    for name, other in others.items():
        query = query.replace(f"{{{name}}}", f"({nest(other)})")
    return query


def without_life(query: str) -> str:
    """A query whose answer lacks the column `life`."""
    return nest("SELECT * EXCEPT (life) FROM {answer}", answer=query)


def ask(query: str, records: Records, **more: Records) -> DataFrame:
    """The answer to a query in SQL that names these records in braces, as `{records}`.

    More names may stand there: `{main}` and `{sent}`, parts of `{records}` (see `PARTS`), and those of `more`, as
    `{after.main}`; `{so_far}`, the frame of a window that ends with its row (Spark's own default looks behind it for
    rows of the same seq, and there are none), and `{before}`, which ends with the row before it; and `{high_volume}`,
    the actions of `HIGH_VOLUME`. Raises BadInput for records that are something else.
    """
    tables = {name: frame(given) for name, given in {"records": records, **more}.items()}
    query = nest(query)
    for table, df in tables.items():
        for name, (files, others) in PARTS.items():
            condition = files if "section" in df.columns else others
            part = name if table == "records" else f"{table}.{name}"
            query = query.replace(f"{{{part}}}", f"(SELECT * FROM {{{table}}} WHERE {condition})")
    query = query.replace("{so_far}", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    query = query.replace("{before}", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
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


DURATIONS = frozenset(
    "outage duration longest shortest away waited under single taking_over reading replica partition failover"
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
