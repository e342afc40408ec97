WITH sent AS (
    SELECT history, cause AS seq, count(topic) AS states, count(*) FILTER (target = 'sent') AS requests
    FROM records WHERE kind = 'request' AND actor LIKE 'controller-%' AND cause IS NOT NULL GROUP BY ALL
)
SELECT history, action AS event, count(*) AS events, sum(coalesce(requests, 0)) AS requests,
       sum(coalesce(states, 0)) AS states, max(coalesce(requests, 0)) AS most_requests,
       max(coalesce(states, 0)) AS most_states
FROM records LEFT JOIN sent USING (history, seq)
WHERE kind = 'event' AND target = 'started' AND actor LIKE 'controller-%' GROUP BY ALL
