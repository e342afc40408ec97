WITH said AS (
    SELECT history, seq, time_ms, action, from_json(detail->'$.replicas', '["INTEGER"]') AS replicas,
           unnest(CASE WHEN action = 'reassignment_removed' THEN from_json(detail->'$.partitions', '["VARCHAR"]')
                       ELSE [detail->>'$.partition'] END) AS name
    FROM records
    WHERE kind = 'controller' AND section = 'main'
      AND action IN ('handling_reassignment', 'leader_epoch_updated', 'reassignment_removed')
), runs AS (
    SELECT *, count(*) FILTER (action = 'reassignment_removed') OVER (
        PARTITION BY history, name ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM said
)
SELECT history, regexp_extract(name, '(.*)-[0-9]+$', 1) AS topic,
       regexp_extract(name, '-([0-9]+)$', 1)::INT AS partition,
       arg_max(replicas, seq) FILTER (replicas IS NOT NULL) AS replicas,
       min(time_ms) FILTER (action = 'handling_reassignment') AS start_ms,
       max(time_ms) FILTER (action = 'reassignment_removed') AS end_ms, round(end_ms - start_ms, 4) AS duration_ms,
       count(*) FILTER (action = 'handling_reassignment') AS tries,
       count(*) FILTER (action = 'leader_epoch_updated') AS extra_epochs
FROM runs GROUP BY history, name, run HAVING tries > 0
