WITH known AS (
    SELECT *, len(list_intersect(isr_before, isr)) AS stayed FROM isr_states WHERE isr IS NOT NULL
)
SELECT history, topic, partition,
       count(*) FILTER (stayed < len(isr_before)) AS shrinks,
       count(*) FILTER (stayed < len(isr_before) AND by_leader) AS shrinks_by_leader,
       count(*) FILTER (isr_before IS NOT NULL AND stayed < len(isr)) AS expansions, min(len(isr)) AS smallest,
       round(coalesce(sum(until_ms - at_ms) FILTER (len(isr) < len(assigned)), 0), 4) AS under_ms,
       round(coalesce(sum(until_ms - at_ms) FILTER (len(isr) = 1 AND len(assigned) > 1), 0), 4) AS single_ms
FROM known GROUP BY ALL
