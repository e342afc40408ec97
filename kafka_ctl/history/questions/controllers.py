"""How long does a new controller take, and how much does one say?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.departures import departures_of_lives
from kafka_ctl.history.questions.frames import Records, ask, frame, only

_FAILOVER = """
WITH messages AS (
    SELECT history, life, actor, seq, time_ms, action, controller_epoch AS epoch, broker,
           CAST(get_json_object(detail, '$.epoch') AS INT) AS announced,
           CAST(get_json_object(detail, '$.partitions') AS INT) AS counted,
           action = 'elected' OR (action = 'epoch_incremented' AND coalesce(lag(action) OVER (
               PARTITION BY history, life, actor ORDER BY seq) != 'elected', true)) AS begins
    FROM {main} WHERE kind = 'controller' AND action IN ('elected', 'epoch_incremented', 'initializing_context',
        'initializing_replica_state', 'initializing_partition_state', 'partition_states', 'ready', 'resigned')
), terms AS (  -- Kafka 0.10 names the winner in server.log: here its term begins with its epoch
    SELECT *, count_if(begins) OVER (PARTITION BY history, life, actor ORDER BY seq {so_far}) AS term FROM messages
), offices AS (
    SELECT history, life, min(seq) AS seq, max(CASE WHEN begins THEN broker END) AS controller,
           coalesce(min(CASE WHEN begins THEN announced END),
                    min(CASE WHEN action = 'epoch_incremented' THEN epoch END),
                    min(CASE WHEN action = 'ready' THEN epoch END),
                    nullif(min(CASE WHEN begins THEN epoch END), 0)) AS epoch,
           min(CASE WHEN begins THEN time_ms END) AS elected_ms,
           min(CASE WHEN action = 'initializing_context' THEN time_ms END) AS context_ms,
           min(CASE WHEN action = 'initializing_replica_state' THEN time_ms END) AS replicas_ms,
           min(CASE WHEN action = 'initializing_partition_state' THEN time_ms END) AS partitions_ms,
           min(CASE WHEN action = 'partition_states' THEN counted END) AS counted,
           min(CASE WHEN action = 'ready' THEN time_ms END) AS ready_ms,
           min(CASE WHEN action = 'resigned' THEN time_ms END) AS resigned_ms,
           min(CASE WHEN action = 'resigned' THEN seq END) AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, life, actor, term
), moves AS (
    SELECT history, life, topic, partition, seq, CAST(target != 'NonExistentPartition' AS INT) AS there
    FROM {main} WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), sizes AS (  -- what existed before the first record is counted when something is heard of it
    SELECT history, life, seq, there - coalesce(lag(there) OVER (
        PARTITION BY history, life, topic, partition ORDER BY seq), 0) AS n FROM moves
), line AS (
    SELECT history, life, seq, 0 AS n, CAST(NULL AS DOUBLE) AS vacant, struct(*) AS f, NULL AS broker FROM offices
    UNION ALL SELECT history, life, seq, n, NULL, NULL, NULL FROM sizes WHERE n != 0
    UNION ALL SELECT history, life, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, life, cause_seq, 0, at_ms, NULL, broker FROM {departures}
), placed AS (
    SELECT *, last_value(f) IGNORE NULLS OVER earlier AS held, count(f) OVER earlier AS number FROM line
    WINDOW earlier AS (PARTITION BY history, life ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), counted AS (  -- the office is vacant when its holder resigns or leaves
    SELECT f, sum(n) OVER (PARTITION BY history, life ORDER BY seq {so_far}) AS known, last_value(
               CASE WHEN broker IS NULL OR broker = held.controller THEN vacant END) IGNORE NULLS OVER (
               PARTITION BY history, life, number ORDER BY seq {so_far}) AS vacant_ms,
           CASE WHEN coalesce(f.epoch = held.epoch + 1, true) THEN held.controller END AS previous
    FROM placed
), reported AS (
    SELECT f.*, previous, CASE WHEN previous IS NOT NULL THEN vacant_ms END AS vacant_ms,
           coalesce(counted, known) AS partitions
    FROM (SELECT *, f.counted FROM counted WHERE f IS NOT NULL)
)
SELECT history, controller, epoch, previous, partitions, vacant_ms, elected_ms, ready_ms,
       round(elected_ms - vacant_ms, 4) AS detection_ms, round(context_ms - elected_ms, 4) AS taking_over_ms,
       round(replicas_ms - context_ms, 4) AS reading_ms, round(partitions_ms - replicas_ms, 4) AS replica_ms,
       round(ready_ms - partitions_ms, 4) AS partition_ms, round(ready_ms - elected_ms, 4) AS failover_ms
FROM reported
"""


def failover_time(records: Records) -> DataFrame:
    """Every election of a controller, and how long it took to act, by stages.

    One row each: `history`, `controller`, `epoch` (null if it never had one), `previous` (the controller before, null
    for the first of a cluster, and where epochs between are missing), `partitions` (that existed: as many as the log
    says the partition state machine started with, or those that records named before), `vacant_ms` (when the previous
    one resigned or its broker left, null if unknown), `elected_ms`, `ready_ms`; and the stages: `detection_ms`
    (until elected), `taking_over_ms` (epoch, listeners), `reading_ms` (the state of the cluster, and sending it to the
    brokers), `replica_ms` and `partition_ms` (start of the two state machines), `failover_ms` (all of it after the
    election). A stage that was not reached, or that a log does not have, is null. The controller.log of Kafka 0.10 and
    older does not name the winner of an election: there the epoch counts as its beginning.
    """
    df = frame(records)
    return ask(_FAILOVER, main=only(df, "section = 'main'"), departures=departures_of_lives(df))


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
    Only simulated histories have the event that a request belongs to.
    """
    return ask(_AMPLIFICATION, records=frame(records))
