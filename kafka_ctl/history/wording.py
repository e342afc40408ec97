"""An answer as people read it: durations with units, moments without exponents."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import DoubleType

DURATIONS = frozenset(
    "outage duration longest shortest vacant waited under single taking_over reading replica partition failover"
    " detection lasted behind led p50 p90 p99 median".split()
)
"""What of the columns `NAME_ms` (or `NAME_ms_before`, `NAME_ms_after`) is a length of time; the others are moments."""


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
