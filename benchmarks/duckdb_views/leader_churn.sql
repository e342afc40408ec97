WITH elections AS (
    SELECT history, topic, partition, seq, time_ms, leader, replicas[1] AS preferred,
           lag(leader) OVER (PARTITION BY history, topic, partition ORDER BY seq) AS previous
    FROM records WHERE kind = 'partition' AND error IS NULL AND leader >= 0
), changes AS (
    SELECT *, coalesce(leader != previous, false) AS changed,
           last_value(CASE WHEN leader != previous THEN previous END IGNORE NULLS) OVER (
               PARTITION BY history, topic, partition ORDER BY seq
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS replaced
    FROM elections
)
SELECT history, topic, partition, count(*) AS elections, count(*) FILTER (changed) AS changes,
       count(*) FILTER (changed AND leader = replaced) AS returns, count(DISTINCT leader) AS leaders,
       count(*) FILTER (changed AND leader = preferred) AS preferred_changes,
       (max(time_ms) - min(time_ms)) / 3600000 AS hours
FROM changes GROUP BY ALL
