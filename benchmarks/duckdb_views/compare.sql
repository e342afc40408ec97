SELECT CASE WHEN grouping(cause) = 1 THEN 'all' ELSE coalesce(cause, 'unknown') END AS cause,
       count(*) FILTER (before) AS intervals_before, count(*) FILTER (NOT before) AS intervals_after,
       round(coalesce(sum(outage_ms) FILTER (before), 0), 4) AS outage_ms_before,
       round(coalesce(sum(outage_ms) FILTER (NOT before), 0), 4) AS outage_ms_after,
       round(quantile_cont(outage_ms, 0.5) FILTER (before), 4) AS median_ms_before,
       round(quantile_cont(outage_ms, 0.5) FILTER (NOT before), 4) AS median_ms_after,
       round(quantile_cont(outage_ms, 0.99) FILTER (before), 4) AS p99_ms_before,
       round(quantile_cont(outage_ms, 0.99) FILTER (NOT before), 4) AS p99_ms_after
FROM (SELECT cause, outage_ms, right(history, 1) < '5' AS before FROM unavailability)
GROUP BY GROUPING SETS ((cause), ())
