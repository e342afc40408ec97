WITH sent AS (
    SELECT history, topic, partition, seq, time_ms, kind, isr, replicas, zk_version,
           coalesce(target = 'NonExistentPartition', false) AS gone,
           (kind = 'partition' AND coalesce(source = 'NonExistentPartition', false))::INT AS born
    FROM records
    WHERE (kind = 'partition' OR section = 'isr') AND topic IS NOT NULL AND error IS NULL
), lives AS (
    SELECT *, sum(born) OVER w * 4294967296 + zk_version AS version,
           last_value(replicas IGNORE NULLS) OVER w AS assigned
    FROM sent WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), fresh AS (
    SELECT * FROM lives
    QUALIFY gone OR (isr IS NOT NULL AND (version IS NULL OR version > coalesce(max(version) OVER (
        PARTITION BY history, topic, partition ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1)))
), ends AS (
    SELECT history, max(time_ms) AS end_ms FROM sent GROUP BY history
)
SELECT history, topic, partition, seq, time_ms AS at_ms, kind = 'broker' AS by_leader,
       CASE WHEN NOT gone THEN isr END AS isr, lag(CASE WHEN NOT gone THEN isr END) OVER w AS isr_before, assigned,
       coalesce(lead(time_ms) OVER w, end_ms) AS until_ms
FROM fresh JOIN ends USING (history)
WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
