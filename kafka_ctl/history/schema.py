"""The trace as a table: one schema for Arrow, Parquet and Spark.

`docs/trace-format.md` explains the columns. A table has one more than a record in memory: `history`, the
cluster or imported log the record belongs to, so that many histories can share one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem, naming, path_of
from kafka_ctl.trace import KINDS, Record, Trace
from kafka_ctl.writing import replacing

if TYPE_CHECKING:
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


def to_arrow(trace: Iterable[Record], history: str | None = None) -> pa.Table:
    """Records as one Arrow table with the columns of `SCHEMA`.

    `history` fills the column of that name; without it a `Trace` gives its own name, other records get `lab`.
    """
    name = history or getattr(trace, "history", "lab")
    records = trace.records if isinstance(trace, Trace) else list(trace)
    columns = [pa.repeat(pa.scalar(name, pa.string()), len(records))]
    for index, field in enumerate(list(SCHEMA)[1:]):
        column = list(map(itemgetter(index), records))
        columns.append(_id_lists(column) if field.type == IDS else pa.array(column, field.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _id_lists(column: Sequence[tuple[int, ...] | None]) -> pa.Array:
    """Few different ISRs fill a long column, so each is converted once and then only looked up."""
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


def read_parquet(path: str | os.PathLike[str], history: str | None = None) -> Trace:
    """The trace in a Parquet file or folder of the trace schema, as `from_arrow` reads it.

    Raises BadInput when there is nothing at `path`, it is no Parquet, or it holds another table.
    """
    given = path_of(path)
    if not os.path.exists(given):
        raise BadInput(f"{given}: no such file")
    with naming(given, "cannot be read", "is not a Parquet file"):
        table = pq.read_table(given)
    return from_arrow(table, history)


def from_arrow(table: pa.Table, history: str | None = None) -> Trace:
    """The inverse of `to_arrow`: the records of one history, in the order of `seq`.

    `history` picks one of several; it may be left out when the table holds only one. A missing column that
    may be null is null. Raises BadInput for a table of other columns, for values that are none of theirs, and for a
    history that is not there.
    """
    if missing := [f.name for f in SCHEMA if not f.nullable and f.name not in table.column_names]:
        has = ", ".join(table.column_names)
        raise BadInput(f"not a trace table: no column {', '.join(missing)}; it has {has}")
    table = _checked(table)
    names = table.column("history").unique().to_pylist()
    if history is None and len(names) > 1:
        raise BadInput(f"the table holds {len(names)} histories; name one, as history={min(names)!r}")
    name = history if history is not None else names[0] if names else "lab"
    if history is not None and history not in names:
        raise BadInput(f"no history {history!r} in the table; it holds {len(names)}, as {sorted(names)[:3]}")
    if len(names) > 1:
        table = table.filter(pc.field("history") == name)
    return Trace(records=list(_records(table.sort_by("seq"))), history=name)


def _checked(table: pa.Table) -> pa.Table:
    """The columns of the trace schema, as its types."""
    columns = {}
    for field in SCHEMA:
        if field.name not in table.column_names:
            continue
        column = table.column(field.name)
        try:
            columns[field.name] = column.cast(field.type)
        except pa.ArrowException as bad:
            raise BadInput(
                f"not a trace table: column {field.name} is {column.type}, not {field.type}: {bad}"
            ) from None
        if column.null_count and not field.nullable:
            raise BadInput(f"not a trace table: column {field.name} lacks {column.null_count} values")
    whole = pa.table(columns)
    try:
        whole.validate(full=True)
    except pa.ArrowException as bad:
        raise BadInput(f"not a trace table: {bad}") from None
    if strange := set(columns["kind"].unique().to_pylist()) - set(KINDS):
        raise BadInput(f"not a trace table: kind {min(strange)!r}; known: {', '.join(KINDS)}")
    return whole


def _records(table: pa.Table) -> Iterator[Record]:
    columns: list[Any] = []
    for field in list(SCHEMA)[1:]:
        if field.name not in table.column_names:
            columns.append([None] * len(table))
            continue
        values = table.column(field.name).to_pylist()
        columns.append([v if v is None else tuple(v) for v in values] if field.type == IDS else values)
    return map(Record._make, zip(*columns, strict=True))
