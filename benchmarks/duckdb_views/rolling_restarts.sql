WITH line AS (
    SELECT *, coalesce(began_ms - lag(at_ms) OVER w > 900000, false) AS first
    FROM shutdown_vs_failure WHERE cause = 'controlled shutdown' WINDOW w AS (PARTITION BY history ORDER BY cause_seq)
), numbered AS (
    SELECT *, count(*) FILTER (first) OVER (PARTITION BY history ORDER BY cause_seq) AS session FROM line
)
SELECT history, min(began_ms) AS start_ms, max(at_ms) AS end_ms, round(max(at_ms) - min(began_ms), 4) AS duration_ms,
       list(broker ORDER BY cause_seq) AS brokers, sum(led) AS moved, sum(remaining) AS remaining,
       sum(leaderless) AS leaderless, round(sum(outage_ms), 4) AS outage_ms
FROM numbered GROUP BY history, session HAVING count(DISTINCT broker) > 1
