WITH moves AS (
    SELECT history, topic, partition, seq, time_ms, source, target, controller_epoch, nullif(leader, -1) AS leader,
           error IS NOT NULL OR target IN ('NewPartition', 'OfflinePartition') OR coalesce(leader = -1, false) AS down,
           coalesce(source IN ('NewPartition', 'OfflinePartition'), false) AS from_down,
           coalesce('NewPartition' IN (source, target), false) AS new, error IS NOT NULL AS refused
    FROM records
    WHERE kind = 'partition' AND action != 'set' AND (error IS NULL OR source IN ('NewPartition', 'OfflinePartition'))
), looking_back AS (
    SELECT *, lag(down, 1, false) OVER w AS was_down,
           count(*) FILTER (refused) OVER so_far AS refusals, count(*) FILTER (refused) OVER whole AS all_refusals,
           source = 'OnlinePartition' AND coalesce(lead(target) OVER w = 'NonExistentPartition', false) AS going,
           last_value(leader IGNORE NULLS) OVER earlier AS led,
           last_value(CASE WHEN leader IS NOT NULL THEN time_ms END IGNORE NULLS) OVER earlier AS led_ms
    FROM moves
    WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq),
           earlier AS (PARTITION BY history, topic, partition ORDER BY seq
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           so_far AS (PARTITION BY history, topic, partition ORDER BY seq
                      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
           whole AS (PARTITION BY history, topic, partition ORDER BY seq
                     ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
), changes AS (
    SELECT *, NOT down AND NOT was_down AS unseen,
           lead(time_ms) OVER w AS next_ms, lead(target) OVER w AS next_target,
           coalesce(lead(refusals) OVER w, all_refusals) - refusals + refused::INT > 0 AS election_refused
    FROM looking_back WHERE down != was_down OR (NOT down AND from_down)
    WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), epochs AS (
    SELECT history, controller_epoch, min(time_ms) AS epoch_ms
    FROM records WHERE kind = 'controller' AND section = 'main' GROUP BY ALL
), intervals AS (
    SELECT history, topic, partition, seq, new, led_ms, CASE WHEN NOT new THEN led END AS leader,
           CASE WHEN unseen THEN coalesce(epoch_ms, time_ms) ELSE time_ms END AS start_ms,
           CASE WHEN unseen THEN time_ms ELSE next_ms END AS end_ms,
           CASE WHEN unseen THEN target ELSE next_target END = 'OnlinePartition' AS restored,
           unseen, NOT unseen AND election_refused AS election_refused
    FROM changes LEFT JOIN epochs USING (history, controller_epoch)
    WHERE (down OR unseen) AND NOT going
), blamed AS (
    SELECT i.* REPLACE (CASE WHEN unseen THEN greatest(start_ms, d.at_ms) ELSE start_ms END AS start_ms),
           d.cause AS blame, d.cause_seq, d.at_ms
    FROM intervals i ASOF LEFT JOIN departures d
         ON i.history = d.history AND i.leader = d.broker AND i.seq >= d.cause_seq
), reported AS (
    SELECT *, CASE WHEN new THEN 'topic creation' ELSE blame END AS cause,
           CASE WHEN blame IS NULL THEN start_ms ELSE least(start_ms, greatest(at_ms, led_ms)) END AS lost_ms
    FROM blamed
)
SELECT history, topic, partition, start_ms, end_ms, round(end_ms - start_ms, 4) AS duration_ms, restored,
       election_refused, leader, cause, cause_seq, lost_ms, round(end_ms - lost_ms, 4) AS outage_ms
FROM reported
