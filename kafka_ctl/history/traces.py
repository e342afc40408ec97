"""Traces read from Arrow tables and Parquet files: the inverse of `schema.to_arrow` and `schema.to_parquet`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import naming, path_of
from kafka_ctl.history.schema import IDS, SCHEMA
from kafka_ctl.trace import KINDS, Record, Trace


def read_parquet(path: str | os.PathLike[str], history: str | None = None) -> Trace:
    """The trace in a Parquet file or folder of the trace schema, as `from_arrow` reads it.

    Raises BadInput if there is nothing at `path`, it is not Parquet, or it holds another table.
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
    columns: list[object] = []
    for field in list(SCHEMA)[1:]:
        if field.name not in table.column_names:
            columns.append([None] * len(table))
            continue
        values = table.column(field.name).to_pylist()
        columns.append([v if v is None else tuple(v) for v in values] if field.type == IDS else values)
    return map(Record._make, zip(*columns, strict=True))
