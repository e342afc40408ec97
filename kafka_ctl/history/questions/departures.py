"""Why brokers leave: the records that later questions blame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame, only

CAUSES = {
    ("fault", "kill"): "broker crash",
    ("fault", "bounce"): "quick restart",
    ("fault", "expire_session"): "session expiry",
    ("fault", "pause"): "pause",
    ("broker", "controlled-shutdown"): "controlled shutdown",
    ("broker", "lost"): "broker loss",
}
"""The records that say why a broker leaves, by kind and action, and what we call it. A crash of the broker
that was the controller at the time is told apart as `controller crash`. A pause counts also when nobody noticed. Real
logs know of no faults: there a controller finds that a broker is gone (`broker loss`), unless it has asked to leave."""

_CASES = " ".join(
    f"WHEN kind = '{kind}' AND action = '{action}' THEN '{cause}'" for (kind, action), cause in CAUSES.items()
)
_QUERY = f"""
WITH said AS (
    SELECT history, seq, time_ms, broker, detail, CASE {_CASES} END AS cause,
           kind = 'event' AS asks, CASE WHEN kind = 'controller' AND action = 'elected' THEN broker END AS elected
    FROM {{main}}
    WHERE kind IN ('controller', 'fault', 'broker') OR (kind = 'event' AND actor = 'admin' AND action = 'shutdown')
), known AS (
    SELECT *, last_value(elected) IGNORE NULLS OVER (PARTITION BY history ORDER BY seq {{so_far}}) AS controller
    FROM said WHERE cause IS NOT NULL OR asks OR elected IS NOT NULL
), tries AS (  -- each attempt of a controlled shutdown is a record; the last one is the departure
    SELECT *, NOT asks
           AND NOT (cause = 'controlled shutdown' AND coalesce(lead(cause) OVER its = cause, false)
                    AND coalesce(lead(detail) OVER its NOT LIKE 'attempt=1 %', true))
           AND NOT (cause = 'broker loss' AND coalesce(lag(cause) OVER its = 'controlled shutdown', false)) AS leaves
    FROM known WHERE cause IS NOT NULL OR asks WINDOW its AS (PARTITION BY history, broker ORDER BY seq)
), runs AS (  -- what belongs to one departure: the administrator's wish, and every attempt
    SELECT *, count_if(leaves) OVER (PARTITION BY history, broker ORDER BY seq
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM tries
), told AS (
    SELECT *, CASE WHEN cause = 'controlled shutdown' THEN min(struct(seq, time_ms)) OVER (
                  PARTITION BY history, broker, run) ELSE struct(seq, time_ms) END AS began FROM runs
)
SELECT history, broker,
       CASE WHEN cause = 'broker crash' AND broker = controller THEN 'controller crash'
            ELSE cause END AS cause,
       seq AS cause_seq, time_ms AS at_ms, began.seq AS began_seq, began.time_ms AS began_ms,
       CAST(nullif(regexp_extract(detail, 'attempt=([0-9]+)', 1), '') AS INT) AS attempts,
       CASE WHEN detail LIKE '%remaining=' THEN 0
            WHEN detail LIKE '%remaining=%' THEN size(split(detail, ',')) END AS remaining
FROM told WHERE leaves
"""


def departures(records: Records) -> DataFrame:
    """Every time a broker left, and why.

    Columns: `history`, `broker`, `cause` (one of `CAUSES`, or `controller crash`), `cause_seq` and `at_ms`
    (the record that says so and its time: after it the broker leads nothing), `began_seq` and `began_ms` (in a
    controlled shutdown, when it was asked for), `attempts` (requests to the controller in a controlled shutdown,
    else null) and `remaining` (partitions that the last one left there).
    """
    return ask(_QUERY, main=only(frame(records), "section = 'main'"))
