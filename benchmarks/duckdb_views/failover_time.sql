WITH said AS (
    SELECT history, actor, seq, time_ms, action, controller_epoch AS epoch, broker,
           (detail->>'$.epoch')::INT AS announced,
           action = 'elected' OR (action = 'epoch_incremented' AND coalesce(
               lag(action) OVER (PARTITION BY history, actor ORDER BY seq) != 'elected', true)) AS begins
    FROM records
    WHERE kind = 'controller' AND section = 'main'
      AND action IN ('elected', 'epoch_incremented', 'initializing_context', 'initializing_replica_state',
                     'initializing_partition_state', 'ready', 'resigned')
), terms AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY history, actor ORDER BY seq) AS term FROM said
), offices AS (
    SELECT history, min(seq) AS seq, max(broker) FILTER (begins) AS controller,
           coalesce(min(announced) FILTER (begins), min(epoch) FILTER (action = 'epoch_incremented'),
                    min(epoch) FILTER (action = 'ready'), nullif(min(epoch) FILTER (begins), 0)) AS epoch,
           min(time_ms) FILTER (begins) AS elected_ms,
           min(time_ms) FILTER (action = 'initializing_context') AS context_ms,
           min(time_ms) FILTER (action = 'initializing_replica_state') AS replicas_ms,
           min(time_ms) FILTER (action = 'initializing_partition_state') AS partitions_ms,
           min(time_ms) FILTER (action = 'ready') AS ready_ms,
           min(time_ms) FILTER (action = 'resigned') AS resigned_ms,
           min(seq) FILTER (action = 'resigned') AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, actor, term
), sizes AS (
    SELECT history, seq, (target != 'NonExistentPartition')::INT - coalesce(lag(target != 'NonExistentPartition') OVER (
               PARTITION BY history, topic, partition ORDER BY seq)::INT, 0) AS n
    FROM records WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), line AS (
    SELECT history, seq, 0 AS n, NULL::DOUBLE AS vacant, o AS f, NULL::INT AS broker FROM offices o
    UNION ALL SELECT history, seq, n, NULL, NULL, NULL FROM sizes WHERE n != 0
    UNION ALL SELECT history, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, cause_seq, 0, at_ms, NULL, broker FROM departures
), placed AS (
    SELECT *, last_value(f IGNORE NULLS) OVER earlier AS held, count(f) OVER earlier AS number FROM line
    WINDOW earlier AS (PARTITION BY history ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), counted AS (
    SELECT f, sum(n) OVER (PARTITION BY history ORDER BY seq) AS partitions,
           CASE WHEN coalesce(f.epoch = held.epoch + 1, true) THEN held.controller END AS previous,
           last_value(CASE WHEN broker IS NULL OR broker = held.controller THEN vacant END IGNORE NULLS) OVER (
               PARTITION BY history, number ORDER BY seq) AS vacant
    FROM placed
), reported AS (
    SELECT *, CASE WHEN previous IS NOT NULL THEN vacant END AS vacant_ms FROM counted WHERE f IS NOT NULL
)
SELECT f.history, f.controller, f.epoch, previous, partitions, vacant_ms, f.elected_ms, f.ready_ms,
       round(f.elected_ms - vacant_ms, 4) AS detection_ms, round(f.context_ms - f.elected_ms, 4) AS taking_over_ms,
       round(f.replicas_ms - f.context_ms, 4) AS reading_ms, round(f.partitions_ms - f.replicas_ms, 4) AS replica_ms,
       round(f.ready_ms - f.partitions_ms, 4) AS partition_ms, round(f.ready_ms - f.elected_ms, 4) AS failover_ms
FROM reported
