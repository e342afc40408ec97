WITH leavers AS (
    SELECT history, topic, partition, seq, CASE WHEN isr IS NOT NULL THEN at_ms END AS left_ms,
           unnest(CASE WHEN isr IS NULL THEN assigned
                       ELSE list_filter(isr_before, lambda b: NOT list_contains(isr, b)) END) AS broker
    FROM isr_states
)
SELECT e.history, e.topic, e.partition, time_ms AS at_ms, e.seq, leader,
       nullif(regexp_extract(detail, 'leader_before=([0-9]+)', 1), '')::INT AS leader_before, left_ms AS out_since_ms,
       round(time_ms - left_ms, 4) AS behind_ms, round(behind_ms) AS records_at_risk
FROM (FROM records WHERE kind = 'election' AND target = 'unclean') e
ASOF LEFT JOIN leavers l ON l.history = e.history AND l.topic = e.topic AND l.partition = e.partition
                        AND l.broker = e.leader AND e.seq >= l.seq
