"""What if: the same clusters under other rules."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask
from kafka_ctl.history.questions.unavailability import unavailability

_QUERY = """
WITH both AS (
    SELECT 'before' AS side, * FROM {before} UNION ALL SELECT 'after' AS side, * FROM {after}
)
SELECT CASE WHEN grouping(cause) = 1 THEN 'all' ELSE coalesce(cause, 'unknown') END AS cause,
       count_if(side = 'before') AS intervals_before, count_if(side = 'after') AS intervals_after,
       round(coalesce(sum(outage_ms) FILTER (WHERE side = 'before'), 0), 4) AS outage_ms_before,
       round(coalesce(sum(outage_ms) FILTER (WHERE side = 'after'), 0), 4) AS outage_ms_after,
       round(percentile(outage_ms, 0.5) FILTER (WHERE side = 'before'), 4) AS median_ms_before,
       round(percentile(outage_ms, 0.5) FILTER (WHERE side = 'after'), 4) AS median_ms_after,
       round(percentile(outage_ms, 0.99) FILTER (WHERE side = 'before'), 4) AS p99_ms_before,
       round(percentile(outage_ms, 0.99) FILTER (WHERE side = 'after'), 4) AS p99_ms_after
FROM both GROUP BY GROUPING SETS ((cause), ())
"""


def compare(before: Records, after: Records) -> DataFrame:
    """Unavailability of two histories side by side: two generations, two settings, the same seeds.

    One row for each cause and one for `all`: `intervals_before` and `_after`; `outage_ms_` (the sum), `median_ms_` and
    `p99_ms_` of the outages that ended, null where there were none.
    """
    return ask(_QUERY, before=unavailability(before), after=unavailability(after))
