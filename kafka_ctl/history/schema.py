"""The trace as a table: one schema for Arrow, Parquet and Spark.

`docs/trace-format.md` explains the columns. A table has one more than a record in memory: `history`, the
cluster or imported log the record belongs to, so that many histories can share one file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_ctl.errors import BadInput, short
from kafka_ctl.history.files import filesystem, naming, path_of
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.writing import replacing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

IDS = pa.list_(pa.int32())
"""Broker ids in an order that matters: an ISR as stored, or replicas with the preferred leader first."""

SCHEMA = pa.schema(
    [
        pa.field("history", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("time_ms", pa.float64(), nullable=False),
        pa.field("actor", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("broker", pa.int32()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("leader", pa.int32()),
        ("isr", IDS),
        ("leader_epoch", pa.int32()),
        ("zk_version", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("path", pa.string()),
        ("error", pa.string()),
        ("cause", pa.int64()),
        ("replicas", IDS),
        ("detail", pa.string()),
    ]
)
"""The columns of a trace table, in order."""


def spark_schema() -> StructType:
    """`SCHEMA` as Spark says it; every column may be null, as in any Parquet that Spark reads."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, from_arrow_type(f.type)) for f in SCHEMA])


def check_records(records: object) -> DataFrame:
    """Records in Spark. Raises BadInput for anything else, and for another type than a column of the schema has.

    A column of numbers may have any type of number. A column without values may have Spark's type `void`.
    """
    from pyspark.sql import DataFrame

    if not isinstance(records, DataFrame):
        wanted = "a DataFrame of Spark, ImportedLogs, an Arrow table or a Trace"
        raise BadInput(f"{short(records)} cannot be records: give {wanted}")
    found = dict(records.dtypes)
    check_columns(found)
    for name, wanted in ((field.name, field.dataType.simpleString()) for field in spark_schema()):
        if found[name] != "void" and _NUMBER.sub("number", found[name]) != _NUMBER.sub("number", wanted):
            raise BadInput(f"not records of the trace schema: column {name} is {found[name]}, not {wanted}")
    return records


def check_columns(names: Collection[str]) -> None:
    """Raise BadInput if a column of the schema is not among these."""
    if missing := [name for name in SCHEMA.names if name not in names]:
        raise BadInput(f"not records of the trace schema: no column {', '.join(missing)}")


_NUMBER = re.compile(r"(tiny|small|big)?int|float|double|decimal\(.*?\)|(?<=<)void")


def check_trace(trace: object) -> None:
    """Raise BadInput for anything but a trace."""
    if not isinstance(trace, Recorder):
        raise BadInput(f"{short(trace)} is not a trace: give the trace of a lab")


def to_arrow(trace: Iterable[Record], history: str | None = None) -> pa.Table:
    """Records as one Arrow table with the columns of `SCHEMA`.

    `history` fills the column of that name; without it a `Trace` gives its own name, other records get `lab`.
    """
    name = history or getattr(trace, "history", "lab")
    records = trace.records[:] if isinstance(trace, Recorder) else list(trace)  # a watched trace grows meanwhile
    columns = [pa.repeat(pa.scalar(name, pa.string()), len(records))]
    for index, field in enumerate(list(SCHEMA)[1:]):
        column = list(map(itemgetter(index), records))
        columns.append(_id_lists(column) if field.type == IDS else pa.array(column, field.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _id_lists(column: Sequence[tuple[int, ...] | None]) -> pa.Array:
    """A column of broker lists as an Arrow array. The column has few distinct lists, so each is converted once."""
    distinct = {ids: code for code, ids in enumerate(dict.fromkeys(column))}
    codes = pa.array(list(map(distinct.__getitem__, column)), pa.int32())
    return pa.array(list(distinct), IDS).take(codes)


def to_parquet(trace: Iterable[Record], path: str | os.PathLike[str], history: str | None = None) -> None:
    """Write records to one Parquet file in the trace schema; a file that is there already is replaced.

    Raises BadInput where the file cannot be written, Unavailable where the disk is full: nothing has changed then.
    """
    table, given = to_arrow(trace, history), path_of(path)
    if "://" in given:
        fs, root, _ = filesystem(given)
        with naming(given, "cannot be written"):
            pq.write_table(table, root, filesystem=fs, compression="zstd", compression_level=1)
        return
    with naming(given, "cannot be written"), replacing(given) as unfinished:
        pq.write_table(table, unfinished, compression="zstd", compression_level=1)
