WITH terms AS (
    SELECT *, count(*) FILTER (action = 'elected') OVER (PARTITION BY history, actor ORDER BY seq) AS term
    FROM records WHERE kind = 'controller' AND section = 'main'
), offices AS (
    SELECT history, actor, term, min(seq) AS seq, max(broker) AS controller, max(controller_epoch) AS epoch,
           min(time_ms) FILTER (action = 'elected') AS elected_ms,
           min(time_ms) FILTER (action = 'initializing_context') AS context_ms,
           min(time_ms) FILTER (action = 'initializing_replica_state') AS replicas_ms,
           min(time_ms) FILTER (action = 'initializing_partition_state') AS partitions_ms,
           min(time_ms) FILTER (action = 'ready') AS ready_ms,
           min(time_ms) FILTER (action = 'resigned') AS resigned_ms,
           min(seq) FILTER (action = 'resigned') AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, actor, term
), line AS (
    SELECT history, seq, 0 AS n, NULL::DOUBLE AS vacant, o AS f, NULL::INT AS broker FROM offices o
    UNION ALL SELECT history, seq, CASE WHEN source = 'NonExistentPartition' THEN 1 ELSE -1 END, NULL, NULL, NULL
    FROM records WHERE kind = 'partition' AND error IS NULL
                 AND (source = 'NonExistentPartition') != (target = 'NonExistentPartition')
    UNION ALL SELECT history, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, cause_seq, 0, at_ms, NULL, broker FROM departures
), placed AS (
    SELECT *, last_value(f.controller IGNORE NULLS) OVER (
        PARTITION BY history ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS held FROM line
), counted AS (
    SELECT f, held, sum(n) OVER w AS partitions,
           last_value(CASE WHEN broker IS NULL OR broker = held THEN vacant END IGNORE NULLS) OVER w AS vacant_ms
    FROM placed WINDOW w AS (PARTITION BY history ORDER BY seq)
)
SELECT f.history, f.controller, f.epoch, held AS previous, partitions, vacant_ms, f.elected_ms, f.ready_ms,
       round(f.elected_ms - vacant_ms, 4) AS detection_ms, round(f.context_ms - f.elected_ms, 4) AS taking_over_ms,
       round(f.replicas_ms - f.context_ms, 4) AS reading_ms, round(f.partitions_ms - f.replicas_ms, 4) AS replica_ms,
       round(f.ready_ms - f.partitions_ms, 4) AS partition_ms, round(f.ready_ms - f.elected_ms, 4) AS failover_ms
FROM counted WHERE f IS NOT NULL
