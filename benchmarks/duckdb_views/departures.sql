WITH said AS (
    SELECT history, seq, time_ms, detail, error, kind = 'event' AS asks,
           unnest(CASE WHEN action = 'brokers_changed' THEN from_json(detail->'$.new', '["INTEGER"]')
                       ELSE [broker] END) AS broker,
           CASE WHEN kind = 'fault' AND action = 'kill' THEN 'broker crash'
                WHEN kind = 'fault' AND action = 'bounce' THEN 'quick restart'
                WHEN kind = 'fault' AND action = 'expire_session' THEN 'session expiry'
                WHEN kind = 'fault' AND action = 'pause' THEN 'pause'
                WHEN kind = 'broker' AND action = 'controlled-shutdown' THEN 'controlled shutdown'
                WHEN kind = 'broker' AND action = 'lost' THEN 'broker loss' END AS cause,
           CASE WHEN kind = 'controller' AND action = 'elected' THEN broker END AS elected
    FROM records
    WHERE section = 'main' AND ((kind IN ('controller', 'fault', 'broker')
                                 AND action IN ('kill', 'bounce', 'expire_session', 'pause', 'controlled-shutdown',
                                                'lost', 'registered', 'elected', 'brokers_changed'))
                                OR (kind = 'event' AND actor = 'admin' AND action = 'shutdown'))
), known AS (
    SELECT *, last_value(elected IGNORE NULLS) OVER (PARTITION BY history ORDER BY seq) AS controller,
           count(*) FILTER (cause IS NULL AND NOT asks) OVER (PARTITION BY history, broker ORDER BY seq) AS returns
    FROM said
), tries AS (
    SELECT *, NOT asks
           AND NOT (cause = 'controlled shutdown' AND coalesce(lead(cause) OVER its = cause, false)
                    AND coalesce(lead(detail) OVER its NOT LIKE 'attempt=1 %',
                                 lead(returns) OVER its = returns AND (lead(time_ms) OVER its) - time_ms <= 300000))
           AND NOT (cause = 'broker loss' AND coalesce(lag(cause) OVER its = 'controlled shutdown', false)
                    AND lag(returns) OVER its = returns) AS leaves
    FROM known WHERE cause IS NOT NULL OR asks WINDOW its AS (PARTITION BY history, broker ORDER BY seq)
), runs AS (
    SELECT *, count(*) FILTER (leaves AND cause = 'controlled shutdown') OVER (
               PARTITION BY history, broker ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run
    FROM tries
), reported AS (
    SELECT *, cause = 'controlled shutdown' AS orderly,
           coalesce(max(seq) FILTER (asks) OVER its,
                    min(seq) FILTER (cause = 'controlled shutdown') OVER its) AS first_seq,
           coalesce(max(time_ms) FILTER (asks) OVER its,
                    min(time_ms) FILTER (cause = 'controlled shutdown') OVER its) AS first_ms
    FROM runs WINDOW its AS (PARTITION BY history, broker, run)
)
SELECT history, broker,
       CASE WHEN cause = 'broker crash' AND broker = controller THEN 'controller crash' ELSE cause END AS cause,
       seq AS cause_seq, time_ms AS at_ms,
       CASE WHEN orderly THEN first_seq ELSE seq END AS began_seq,
       CASE WHEN orderly THEN first_ms ELSE time_ms END AS began_ms,
       nullif(regexp_extract(detail, 'attempt=([0-9]+)', 1), '')::INT AS attempts,
       CASE WHEN error IS NOT NULL THEN NULL WHEN detail LIKE '%remaining=' THEN 0
            WHEN detail LIKE '%remaining=%' THEN len(string_split(detail, ',')) END AS remaining
FROM reported WHERE leaves
