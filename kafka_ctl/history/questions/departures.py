"""Departures of brokers: the records that later questions blame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, without_life

CAUSES = {
    ("fault", "kill"): "broker crash",
    ("fault", "bounce"): "quick restart",
    ("fault", "expire_session"): "session expiry",
    ("fault", "pause"): "pause",
    ("broker", "controlled-shutdown"): "controlled shutdown",
    ("broker", "lost"): "broker loss",
}
"""The records that say why a broker leaves, by kind and action, and what we call it. A crash of the broker
that was the controller at the time counts as `controller crash`. A pause counts also when no process noticed it. Real
logs know of no faults: there a controller finds that a broker is gone (`broker loss`), unless it has asked to leave."""

_CASES = " ".join(
    f"WHEN kind = '{kind}' AND action = '{action}' THEN '{cause}'" for (kind, action), cause in CAUSES.items()
)
_ACTIONS = str([action for _, action in CAUSES] + ["registered", "elected", "brokers_changed"])[1:-1]
RETRIED_MS = 300_000
"""Attempts of one controlled shutdown lie closer together, where a log does not number them: a request times out after
30 seconds (`request.timeout.ms`), and the next one follows 5 later (`controlled.shutdown.retry.backoff.ms`).
"""
DEPARTURES = f"""
WITH messages AS (  -- and who is there again: a controller sees it, it is elected, or it registers
    SELECT history, life, seq, time_ms, detail, error, CASE {_CASES} END AS cause, kind = 'event' AS asks,
           CASE WHEN kind = 'controller' AND action = 'elected' THEN broker END AS elected,
           explode(CASE WHEN action = 'brokers_changed' THEN from_json(detail, 'new array<int>').new
                        ELSE array(broker) END) AS broker
    FROM {{main}}
    WHERE (kind IN ('controller', 'fault', 'broker') AND action IN ({_ACTIONS}))
       OR (kind = 'event' AND actor = 'admin' AND action = 'shutdown')
), known AS (
    SELECT *, last_value(elected) IGNORE NULLS OVER (PARTITION BY history, life ORDER BY seq {{so_far}}) AS controller,
           count_if(cause IS NULL AND NOT asks) OVER (
               PARTITION BY history, life, broker ORDER BY seq {{so_far}}) AS returns
    FROM messages
), tries AS (  -- each attempt of a controlled shutdown is a record; the last one is the departure
    SELECT *, NOT asks
           AND NOT (cause = 'controlled shutdown' AND coalesce(lead(cause) OVER its = cause, false)
                    AND coalesce(lead(detail) OVER its NOT LIKE 'attempt=1 %',
                                 lead(returns) OVER its = returns
                                 AND (lead(time_ms) OVER its) - time_ms <= {RETRIED_MS}))
           AND NOT (cause = 'broker loss' AND coalesce(lag(cause) OVER its = 'controlled shutdown', false)
                    AND lag(returns) OVER its = returns) AS leaves
    FROM known WHERE cause IS NOT NULL OR asks WINDOW its AS (PARTITION BY history, life, broker ORDER BY seq)
), runs AS (  -- what belongs to one controlled shutdown: the administrator's request, and every attempt
    SELECT *, count_if(leaves AND cause = 'controlled shutdown') OVER (
               PARTITION BY history, life, broker ORDER BY seq {{before}}) AS run
    FROM tries
), reported AS (
    SELECT *, CASE WHEN cause = 'controlled shutdown'
                   THEN coalesce(max(CASE WHEN asks THEN struct(seq, time_ms) END) OVER its,
                                 min(CASE WHEN cause = 'controlled shutdown' THEN struct(seq, time_ms) END) OVER its)
                   ELSE struct(seq, time_ms) END AS began
    FROM runs WINDOW its AS (PARTITION BY history, life, broker, run)
)
SELECT history, life, broker,
       CASE WHEN cause = 'broker crash' AND broker = controller THEN 'controller crash'
            ELSE cause END AS cause,
       seq AS cause_seq, time_ms AS at_ms, began.seq AS began_seq, began.time_ms AS began_ms,
       CAST(nullif(regexp_extract(detail, 'attempt=([0-9]+)', 1), '') AS INT) AS attempts,
       CASE WHEN error IS NOT NULL THEN NULL WHEN detail LIKE '%remaining=' THEN 0
            WHEN detail LIKE '%remaining=%' THEN size(split(detail, ',')) END AS remaining
FROM reported WHERE leaves
"""
"""The columns of `departures`, and the `life` of each."""


def departures(records: Records) -> DataFrame:
    """Every time a broker left, and why.

    Columns: `history`, `broker`, `cause` (one of `CAUSES`, or `controller crash`), `cause_seq` and `at_ms`
    (the record that says so and its time: after it the broker leads nothing), `began_seq` and `began_ms` (in a
    controlled shutdown, when it was asked for), `attempts` (requests to the controller in a controlled shutdown,
    else null) and `remaining` (partitions that the last one left there, null if it failed). A log has a line for each
    attempt, without these two numbers: those that follow within `RETRIED_MS`, and before the broker was seen again,
    belong to one departure.
    """
    return ask(without_life(DEPARTURES), records)
