"""Unavailability in a few numbers, by whatever one wants to compare."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.errors import UnknownName
from kafka_ctl.history.questions.frames import Records, ask
from kafka_ctl.history.questions.unavailability import unavailability

BY = ("history", "topic", "partition", "cause", "leader", "restored")
"""What intervals can be grouped by."""

_QUERY = """
WITH grouped AS (
    SELECT <by>, count(*) AS intervals, count_if(end_ms IS NULL) AS unfinished,
           round(coalesce(sum(outage_ms), 0), 4) AS outage_ms,
           percentile_approx(outage_ms, array(0.5, 0.9, 0.99), 10000) AS p, max(outage_ms) AS longest_ms
    FROM {intervals} GROUP BY <by>
)
SELECT <by>, intervals, unfinished, outage_ms, p[0] AS p50_ms, p[1] AS p90_ms, p[2] AS p99_ms, longest_ms FROM grouped
"""


def unavailability_by(records: Records, *by: str) -> DataFrame:
    """How long partitions were without a leader, summed up by cause, or by any of `BY`: `"topic", "partition"`.

    One row each: those columns, `intervals`, `unfinished` (not over when their history ended), `outage_ms` (the sum, as
    producers felt it), and of single intervals that are over `p50_ms`, `p90_ms`, `p99_ms`, `longest_ms` (percentiles;
    null when there is none). Raises UnknownName for another column.
    """
    columns = by or ("cause",)
    for name in columns:
        if name not in BY:
            raise UnknownName("column to group by", name, BY)
    return ask(_QUERY.replace("<by>", ", ".join(columns)), intervals=unavailability(records))
