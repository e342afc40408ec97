WITH seen AS (
    SELECT kind AS machine, source, target, count(*) FILTER (error IS NULL) AS made, count(error) AS refused
    FROM records WHERE kind IN ('partition', 'replica') AND source IS NOT NULL GROUP BY ALL
)
SELECT machine, source, target, action IS NOT NULL AS legal, action, coalesce(made, 0) AS made,
       coalesce(refused, 0) AS refused
FROM seen FULL JOIN legal USING (machine, source, target)
