"""Why brokers leave: the records that later questions blame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame

CAUSES = {
    ("fault", "kill"): "broker crash",
    ("fault", "bounce"): "quick restart",
    ("fault", "expire_session"): "session expiry",
    ("broker", "controlled-shutdown"): "controlled shutdown",
    ("broker", "lost"): "broker loss",
}
"""The records that say why a broker leaves, by kind and action, and what we call it. A crash of the broker
that was the controller at the time is told apart as `controller crash`. Real logs know of no faults: there a
controller finds that a broker is gone (`broker loss`), unless it has asked to leave."""

_CASES = " ".join(
    f"WHEN kind = '{kind}' AND action = '{action}' THEN '{cause}'" for (kind, action), cause in CAUSES.items()
)
_QUERY = f"""
WITH said AS (
    SELECT history, seq, time_ms, broker, detail, CASE {_CASES} END AS cause,
           CASE WHEN kind = 'controller' AND action = 'elected' THEN broker END AS elected
    FROM {{records}} WHERE kind IN ('controller', 'fault', 'broker')
), known AS (
    SELECT *, last_value(elected) IGNORE NULLS OVER (PARTITION BY history ORDER BY seq) AS controller
    FROM said WHERE cause IS NOT NULL OR elected IS NOT NULL
), tries AS (  -- each attempt of a controlled shutdown is a record; the last one is the departure
    SELECT *, lag(cause) OVER its AS before, lead(cause) OVER its AS next,
           coalesce(lead(detail) OVER its NOT LIKE 'attempt=1 %', true) AS again
    FROM known WHERE cause IS NOT NULL WINDOW its AS (PARTITION BY history, broker ORDER BY seq)
)
SELECT history, broker,
       CASE WHEN cause = 'broker crash' AND broker = controller THEN 'controller crash'
            ELSE cause END AS cause,
       seq AS cause_seq, time_ms AS at_ms,
       CAST(nullif(regexp_extract(detail, 'attempt=([0-9]+)', 1), '') AS INT) AS attempts,
       CASE WHEN detail LIKE '%remaining=' THEN 0
            WHEN detail LIKE '%remaining=%' THEN size(split(detail, ',')) END AS remaining
FROM tries
WHERE NOT (cause = 'controlled shutdown' AND again AND coalesce(next = cause, false))
  AND NOT (cause = 'broker loss' AND coalesce(before = 'controlled shutdown', false))
"""


def departures(records: Records) -> DataFrame:
    """Every time a broker left, and why.

    Columns: `history`, `broker`, `cause` (one of `CAUSES`, or `controller crash`), `cause_seq` and `at_ms`
    (the record that says so and its time: after it the broker leads nothing), `attempts` (requests to the
    controller in a controlled shutdown, else null) and `remaining` (partitions that the last one left there).
    """
    return ask(_QUERY, records=frame(records))
