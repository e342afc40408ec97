WITH moves AS (
    SELECT history, topic, partition, seq, time_ms, target != 'NonExistentPartition' AS there,
           CASE WHEN target = 'OnlinePartition' THEN leader END AS leader,
           last_value(replicas[1] IGNORE NULLS) OVER (
               PARTITION BY history, topic, partition ORDER BY seq) AS preferred
    FROM records WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), known AS (
    SELECT *, (leader IS DISTINCT FROM preferred)::INT AS led_elsewhere, lag(preferred) OVER w AS old,
           lag(led_elsewhere) OVER w AS old_astray, lag(there) OVER w AS was_there
    FROM moves WHERE preferred IS NOT NULL WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), changes AS (
    SELECT history, seq, time_ms, preferred AS broker, 1 AS n, led_elsewhere FROM known WHERE there
    UNION ALL SELECT history, seq, time_ms, old, -1, -old_astray FROM known WHERE was_there
)
SELECT history, broker, time_ms AS at_ms, sum(n) OVER w AS preferred, sum(led_elsewhere) OVER w AS led_elsewhere,
       CASE WHEN sum(n) OVER w > 0 THEN sum(led_elsewhere) OVER w / sum(n) OVER w ELSE 0 END AS share
FROM changes
WINDOW w AS (PARTITION BY history, broker ORDER BY seq)
QUALIFY coalesce(lead(time_ms) OVER w > time_ms, true)
