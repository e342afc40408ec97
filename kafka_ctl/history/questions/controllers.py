"""How long does a new controller take, and how much does one say?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.departures import departures
from kafka_ctl.history.questions.frames import Records, ask, frame, only

_FAILOVER = """
WITH said AS (
    SELECT history, actor, seq, time_ms, action, controller_epoch, broker FROM {main}
    WHERE kind = 'controller' AND action NOT IN ({remarks})
), terms AS (
    SELECT *, count_if(action = 'elected') OVER (PARTITION BY history, actor ORDER BY seq {so_far}) AS term
    FROM said
), offices AS (
    SELECT history, actor, term, min(seq) AS seq, max(broker) AS controller, max(controller_epoch) AS epoch,
           min(CASE WHEN action = 'elected' THEN time_ms END) AS elected_ms,
           min(CASE WHEN action = 'initializing_context' THEN time_ms END) AS context_ms,
           min(CASE WHEN action = 'initializing_replica_state' THEN time_ms END) AS replicas_ms,
           min(CASE WHEN action = 'initializing_partition_state' THEN time_ms END) AS partitions_ms,
           min(CASE WHEN action = 'ready' THEN time_ms END) AS ready_ms,
           min(CASE WHEN action = 'resigned' THEN time_ms END) AS resigned_ms,
           min(CASE WHEN action = 'resigned' THEN seq END) AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, actor, term
), sizes AS (
    SELECT history, seq, CASE WHEN source = 'NonExistentPartition' THEN 1
                              WHEN target = 'NonExistentPartition' THEN -1 ELSE 0 END AS n
    FROM {main} WHERE kind = 'partition' AND error IS NULL
), line AS (
    SELECT history, seq, 0 AS n, CAST(NULL AS DOUBLE) AS vacant, struct(*) AS f, NULL AS broker FROM offices
    UNION ALL SELECT history, seq, n, NULL, NULL, NULL FROM sizes WHERE n != 0
    UNION ALL SELECT history, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, cause_seq, 0, at_ms, NULL, broker FROM {departures}
), placed AS (
    SELECT *, last_value(f.controller) IGNORE NULLS OVER earlier AS held FROM line
    WINDOW earlier AS (PARTITION BY history ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), counted AS (  -- the office is vacant when its holder resigns or leaves
    SELECT f, held, sum(n) OVER w AS partitions,
           last_value(CASE WHEN broker IS NULL OR broker = held THEN vacant END) IGNORE NULLS OVER w AS vacant_ms
    FROM placed WINDOW w AS (PARTITION BY history ORDER BY seq {so_far})
)
SELECT f.history, f.controller, f.epoch, held AS previous, partitions, vacant_ms, f.elected_ms, f.ready_ms,
       round(f.elected_ms - vacant_ms, 4) AS detection_ms, round(f.context_ms - f.elected_ms, 4) AS taking_over_ms,
       round(f.replicas_ms - f.context_ms, 4) AS reading_ms, round(f.partitions_ms - f.replicas_ms, 4) AS replica_ms,
       round(f.ready_ms - f.partitions_ms, 4) AS partition_ms, round(f.ready_ms - f.elected_ms, 4) AS failover_ms
FROM counted WHERE f IS NOT NULL
"""


def failover_time(records: Records) -> DataFrame:
    """Every election of a controller, and how long it took to act, by stages.

    One row each: `history`, `controller`, `epoch`, `previous` (the controller before, null for the first),
    `partitions` (that existed), `vacant_ms` (when the previous one resigned or its broker left), `elected_ms`,
    `ready_ms`; and the stages: `detection_ms` (until elected), `taking_over_ms` (epoch, listeners), `reading_ms`
    (the state of the cluster, and telling it to the brokers), `replica_ms` and `partition_ms` (start of the two state
    machines), `failover_ms` (all of it after the election). A stage that was not reached, or that a log does not
    tell, is null.
    """
    df = frame(records)
    return ask(_FAILOVER, main=only(df, "section = 'main'"), departures=departures(df))


_AMPLIFICATION = """
WITH sent AS (
    SELECT history, cause AS seq, count(topic) AS states, count_if(target = 'sent') AS requests
    FROM {records} WHERE kind = 'request' AND actor LIKE 'controller-%' AND cause IS NOT NULL GROUP BY history, cause
), events AS (
    SELECT history, seq, action AS event FROM {records}
    WHERE kind = 'event' AND target = 'started' AND actor LIKE 'controller-%'
)
SELECT /*+ SHUFFLE_HASH(sent) */ history, event, count(*) AS events,
       sum(coalesce(requests, 0)) AS requests, sum(coalesce(states, 0)) AS states,
       max(coalesce(requests, 0)) AS most_requests, max(coalesce(states, 0)) AS most_states
FROM events LEFT JOIN sent USING (history, seq) GROUP BY history, event
"""


def request_amplification(records: Records) -> DataFrame:
    """What the controller's events make it say to brokers, by kind of event.

    Columns: `history`, `event` (`BrokerChange`, `ControlledShutdown` ...), `events` (how many were processed),
    `requests` (that left for a broker because of them), `states` (partition states put into requests; one that goes
    to several brokers in an UpdateMetadata counts once), `most_requests` and `most_states` (of a single event).
    Only simulated histories tell which event a request belongs to.
    """
    return ask(_AMPLIFICATION, records=frame(records))
