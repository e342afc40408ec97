WITH said AS (
    SELECT history, seq, time_ms,
           CASE WHEN action IN ('deletion_started', 'deletion_completed') THEN action ELSE 'asked' END AS action,
           unnest(CASE WHEN action IN ('starting_deletion', 'topics_to_be_deleted')
                       THEN from_json(detail->'$.topics', '["VARCHAR"]')
                       WHEN kind = 'event' THEN [topic] ELSE [detail->>'$.topic'] END) AS topic
    FROM records
    WHERE section = 'main' AND ((kind = 'event' AND actor = 'admin' AND action = 'delete_topic')
       OR (kind = 'controller' AND action IN ('starting_deletion', 'topics_to_be_deleted', 'deletion_started',
                                              'deletion_completed')))
), runs AS (
    SELECT *, count(*) FILTER (action = 'deletion_completed') OVER (
        PARTITION BY history, topic ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM said
)
SELECT history, topic, min(time_ms) FILTER (action = 'asked') AS asked_ms,
       min(time_ms) FILTER (action = 'deletion_started') AS started_ms,
       max(time_ms) FILTER (action = 'deletion_completed') AS completed_ms,
       count(*) FILTER (action = 'deletion_started') AS tries,
       round(completed_ms - coalesce(asked_ms, started_ms), 4) AS duration_ms
FROM runs GROUP BY history, topic, run
