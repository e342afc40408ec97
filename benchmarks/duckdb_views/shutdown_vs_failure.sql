WITH changes AS (
    SELECT *, lag(leader) OVER (PARTITION BY history, topic, partition ORDER BY seq) AS old FROM (
        SELECT history, topic, partition, seq,
               CASE WHEN target = 'OnlinePartition' THEN nullif(leader, -1) END AS leader
        FROM records WHERE kind = 'partition' AND action != 'set' AND error IS NULL)
), won AS (
    SELECT history, leader AS broker, seq, 1 AS won FROM changes WHERE leader IS NOT NULL
    UNION ALL SELECT history, old, seq, -1 FROM changes WHERE old IS NOT NULL
), leads AS (
    SELECT history, broker, seq, sum(won) OVER (PARTITION BY history, broker ORDER BY seq) AS led FROM won
), hurt AS (
    SELECT history, cause_seq, count(*) AS intervals, count(end_ms) AS ended, max(outage_ms) AS longest_ms,
           sum(outage_ms) AS outage_ms
    FROM unavailability WHERE cause_seq IS NOT NULL GROUP BY ALL
)
SELECT d.history, d.broker, d.cause, d.cause_seq, d.began_ms, d.at_ms, round(d.at_ms - d.began_ms, 4) AS duration_ms,
       d.attempts, d.remaining, coalesce(led, 0) AS led, coalesce(intervals, 0) AS leaderless,
       coalesce(intervals - ended, 0) AS unfinished,
       round(coalesce(longest_ms, 0), 4) AS longest_ms, round(coalesce(outage_ms, 0), 4) AS outage_ms
FROM departures d
ASOF LEFT JOIN leads l ON l.history = d.history AND l.broker = d.broker AND d.began_seq >= l.seq
LEFT JOIN hurt h ON h.history = d.history AND h.cause_seq = d.cause_seq
