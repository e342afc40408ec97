WITH said AS (
    SELECT history, seq, time_ms, action, controller_epoch, action LIKE 'reassignment_leader%' AS leads,
           from_json(detail->'$.replicas', '["INTEGER"]') AS replicas,
           coalesce(from_json(detail->'$.removing', '["INTEGER"]'), []) AS removing,
           json_array_length(detail->'$.adding') = 0 AND json_array_length(detail->'$.removing') = 0 AS plain,
           unnest(CASE WHEN action = 'reassignment_removed' THEN from_json(detail->'$.partitions', '["VARCHAR"]')
                       ELSE [detail->>'$.partition'] END) AS name
    FROM records
    WHERE kind = 'controller' AND section = 'main'
      AND action IN ('handling_reassignment', 'leader_epoch_updated', 'reassignment_removed', 'reassignment_failed',
                     'full_assignment_updated', 'reassignment_caught_up', 'reassignment_leader_outside',
                     'reassignment_leader_stays', 'reassignment_leader_dead')
), steps AS (
    SELECT *, action = 'full_assignment_updated' AS updated,
           updated AND plain AND coalesce(last_value(CASE WHEN leads OR action = 'full_assignment_updated' THEN leads END
                                                     IGNORE NULLS) OVER earlier, false) AS final
    FROM said
    WINDOW earlier AS (PARTITION BY history, name ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), ways AS (
    SELECT *, count(*) FILTER (updated) OVER (PARTITION BY history, name) = 0 OR coalesce(last_value(
               CASE WHEN updated OR action = 'handling_reassignment' THEN NOT updated END IGNORE NULLS) OVER (
               PARTITION BY history, name ORDER BY seq), false) AS old
    FROM steps
), ends AS (
    SELECT *, CASE WHEN old THEN action IN ('reassignment_removed', 'reassignment_failed') ELSE final END AS ends
    FROM ways
), runs AS (
    SELECT *, count(*) FILTER (ends) OVER (
        PARTITION BY history, name ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM ends
), turns AS (
    SELECT *, CASE WHEN old THEN action = 'handling_reassignment' WHEN updated THEN NOT final
                   WHEN action IN ('reassignment_removed', 'reassignment_failed') THEN false
                   ELSE row_number() OVER its = 1 OR lag(controller_epoch) OVER its IS DISTINCT FROM controller_epoch
              END AS taken_up
    FROM runs WINDOW its AS (PARTITION BY history, name, run ORDER BY seq)
)
SELECT history, regexp_extract(name, '(.*)-[0-9]+$', 1) AS topic,
       regexp_extract(name, '-([0-9]+)$', 1)::INT AS partition,
       arg_max(list_filter(replicas, lambda id: NOT list_contains(removing, id)), seq)
           FILTER (replicas IS NOT NULL) AS replicas,
       min(time_ms) FILTER (taken_up) AS start_ms, max(time_ms) FILTER (ends) AS end_ms,
       round(end_ms - start_ms, 4) AS duration_ms, count(*) FILTER (taken_up) AS tries,
       count(*) FILTER (action = 'leader_epoch_updated') AS extra_epochs
FROM turns GROUP BY history, name, run HAVING tries > 0
