"""What all questions share: how a trace becomes a DataFrame, and how a question is put to it."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from kafka_ctl.errors import BadInput, short
from kafka_ctl.history.layout import HIGH_VOLUME
from kafka_ctl.history.log_import import Logs
from kafka_ctl.history.questions.lives import with_life
from kafka_ctl.history.schema import SCHEMA, to_arrow
from kafka_ctl.history.session import spark
from kafka_ctl.trace.record import Recorder

Records: TypeAlias = Any
"""What may be asked: a Spark DataFrame (`load`), `Logs` (`import_logs`), an Arrow table, or a lab's `Trace`."""
MOST_MINUTES = 1_000_000_000


def frame(records: Records) -> DataFrame:
    """Records as a DataFrame of the trace schema, with their `life`; BadInput when they are something else."""
    if isinstance(records, Logs):
        records = records.records
    if isinstance(records, Recorder):
        records = to_arrow(records)
    if isinstance(records, pa.Table):
        return spark().createDataFrame(with_life(records))
    if missing := [name for name in SCHEMA.names if name not in getattr(records, "columns", ())]:
        raise BadInput(f"not records of the trace schema: no column {', '.join(missing)}")
    return with_life(records)


def only(records: DataFrame, files: str, others: str = "true") -> DataFrame:
    """Records for which a condition on `kind` and `section` holds, so that a dataset's other files are not read.

    Records from elsewhere have no sections: of these, the ones for which the condition `others` holds.
    """
    return records.where(files if "section" in records.columns else others)


def ask(query: str, **tables: DataFrame) -> DataFrame:
    """The answer to a query in SQL that names these tables in braces, as `{records}`.

    Two more names may stand there: `{so_far}`, the frame of a window that ends with its row (Spark's own default
    looks behind it for rows of the same seq, and there are none), and `{high_volume}`, the actions of `HIGH_VOLUME`.
    """
    query = query.replace("{so_far}", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    query = query.replace("{high_volume}", str(HIGH_VOLUME)[1:-1])
    return next(iter(tables.values())).sparkSession.sql(query, **tables)  # type: ignore[arg-type]


def milliseconds(name: str, minutes: object) -> float:
    """An argument of a question that counts minutes; BadInput for what is no number of them."""
    if not isinstance(minutes, (int, float)) or isinstance(minutes, bool) or not 0 <= minutes <= MOST_MINUTES:
        raise BadInput(f"{name}={short(minutes)}: a number of minutes from 0 to {MOST_MINUTES}")
    return minutes * 60_000.0
