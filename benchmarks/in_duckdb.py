"""The questions of `kafka_ctl.history.questions` as a user of DuckDB would write them: views on the Parquet files.

`records` is the dataset; the other views have the columns that the questions document.
"""

from __future__ import annotations

from typing import Any

DEPARTURES = """
WITH said AS (
    SELECT history, seq, time_ms, broker, detail, kind = 'event' AS asks,
           CASE WHEN kind = 'fault' AND action = 'kill' THEN 'broker crash'
                WHEN kind = 'fault' AND action = 'bounce' THEN 'quick restart'
                WHEN kind = 'fault' AND action = 'expire_session' THEN 'session expiry'
                WHEN kind = 'broker' AND action = 'controlled-shutdown' THEN 'controlled shutdown'
                WHEN kind = 'broker' AND action = 'lost' THEN 'broker loss' END AS cause,
           CASE WHEN kind = 'controller' AND action = 'elected' THEN broker END AS elected
    FROM records
    WHERE section = 'main' AND (kind IN ('controller', 'fault', 'broker')
                                OR (kind = 'event' AND actor = 'admin' AND action = 'shutdown'))
), known AS (
    SELECT *, last_value(elected IGNORE NULLS) OVER (PARTITION BY history ORDER BY seq) AS controller
    FROM said WHERE cause IS NOT NULL OR asks OR elected IS NOT NULL
), tries AS (
    SELECT *, NOT asks
           AND NOT (cause = 'controlled shutdown' AND coalesce(lead(cause) OVER its = cause, false)
                    AND coalesce(lead(detail) OVER its NOT LIKE 'attempt=1 %', true))
           AND NOT (cause = 'broker loss' AND coalesce(lag(cause) OVER its = 'controlled shutdown', false)) AS leaves
    FROM known WHERE cause IS NOT NULL OR asks WINDOW its AS (PARTITION BY history, broker ORDER BY seq)
), runs AS (
    SELECT *, count(*) FILTER (leaves) OVER (PARTITION BY history, broker ORDER BY seq
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM tries
), told AS (
    SELECT *, cause = 'controlled shutdown' AS orderly,
           first_value(seq) OVER its AS first_seq, first_value(time_ms) OVER its AS first_ms
    FROM runs WINDOW its AS (PARTITION BY history, broker, run ORDER BY seq)
)
SELECT history, broker,
       CASE WHEN cause = 'broker crash' AND broker = controller THEN 'controller crash' ELSE cause END AS cause,
       seq AS cause_seq, time_ms AS at_ms,
       CASE WHEN orderly THEN first_seq ELSE seq END AS began_seq,
       CASE WHEN orderly THEN first_ms ELSE time_ms END AS began_ms,
       nullif(regexp_extract(detail, 'attempt=([0-9]+)', 1), '')::INT AS attempts,
       CASE WHEN detail LIKE '%remaining=' THEN 0
            WHEN detail LIKE '%remaining=%' THEN len(string_split(detail, ',')) END AS remaining
FROM told WHERE leaves
"""

UNAVAILABILITY = """
WITH moves AS (
    SELECT history, topic, partition, seq, time_ms, source, target, controller_epoch, nullif(leader, -1) AS leader,
           target IN ('NewPartition', 'OfflinePartition') OR coalesce(leader = -1, false) AS down,
           coalesce(source IN ('NewPartition', 'OfflinePartition'), false) AS from_down,
           coalesce('NewPartition' IN (source, target), false) AS new
    FROM records WHERE kind = 'partition' AND error IS NULL
), looking_back AS (
    SELECT *, lag(down, 1, false) OVER w AS was_down,
           source = 'OnlinePartition' AND coalesce(lead(target) OVER w = 'NonExistentPartition', false) AS going,
           last_value(leader IGNORE NULLS) OVER earlier AS led,
           last_value(CASE WHEN leader IS NOT NULL THEN time_ms END IGNORE NULLS) OVER earlier AS led_ms
    FROM moves
    WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq),
           earlier AS (PARTITION BY history, topic, partition ORDER BY seq
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), changes AS (
    SELECT *, NOT down AND NOT was_down AS unseen,
           lead(time_ms) OVER w AS next_ms, lead(target) OVER w AS next_target
    FROM looking_back WHERE down != was_down OR (NOT down AND from_down)
    WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), epochs AS (
    SELECT history, controller_epoch, min(time_ms) AS epoch_ms
    FROM records WHERE kind = 'controller' AND section = 'main' GROUP BY ALL
), intervals AS (
    SELECT history, topic, partition, seq, new, led_ms, CASE WHEN NOT new THEN led END AS leader,
           CASE WHEN unseen THEN coalesce(epoch_ms, time_ms) ELSE time_ms END AS start_ms,
           CASE WHEN unseen THEN time_ms ELSE next_ms END AS end_ms,
           CASE WHEN unseen THEN target ELSE next_target END = 'OnlinePartition' AS restored
    FROM changes LEFT JOIN epochs USING (history, controller_epoch)
    WHERE (down OR unseen) AND NOT going
), told AS (
    SELECT i.*, CASE WHEN new THEN 'topic creation' ELSE d.cause END AS cause, d.cause_seq,
           CASE WHEN d.cause IS NULL THEN start_ms ELSE least(start_ms, greatest(d.at_ms, led_ms)) END AS lost_ms
    FROM intervals i ASOF LEFT JOIN departures d
         ON i.history = d.history AND i.leader = d.broker AND i.seq >= d.cause_seq
)
SELECT history, topic, partition, start_ms, end_ms, round(end_ms - start_ms, 4) AS duration_ms, restored,
       leader, cause, cause_seq, lost_ms, round(end_ms - lost_ms, 4) AS outage_ms
FROM told
"""

SHUTDOWN_VS_FAILURE = """
WITH changes AS (
    SELECT *, lag(leader) OVER (PARTITION BY history, topic, partition ORDER BY seq) AS old FROM (
        SELECT history, topic, partition, seq,
               CASE WHEN target = 'OnlinePartition' THEN nullif(leader, -1) END AS leader
        FROM records WHERE kind = 'partition' AND error IS NULL)
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
"""

ROLLING_RESTARTS = """
WITH line AS (
    SELECT *, coalesce(began_ms - lag(at_ms) OVER w > 900000, false) AS first
    FROM shutdown_vs_failure WHERE cause = 'controlled shutdown' WINDOW w AS (PARTITION BY history ORDER BY cause_seq)
), numbered AS (
    SELECT *, count(*) FILTER (first) OVER (PARTITION BY history ORDER BY cause_seq) AS session FROM line
)
SELECT history, min(began_ms) AS start_ms, max(at_ms) AS end_ms, round(max(at_ms) - min(began_ms), 4) AS duration_ms,
       list(broker ORDER BY cause_seq) AS brokers, sum(led) AS moved, sum(remaining) AS remaining,
       sum(leaderless) AS leaderless, round(sum(outage_ms), 4) AS outage_ms
FROM numbered GROUP BY history, session HAVING count(DISTINCT broker) > 1
"""

FAILOVER_TIME = """
WITH terms AS (
    SELECT *, count(*) FILTER (action = 'elected') OVER (PARTITION BY history, actor ORDER BY seq) AS term
    FROM records WHERE kind = 'controller' AND section = 'main'
), offices AS (
    SELECT history, actor, term, min(seq) AS seq, max(broker) AS controller, max(controller_epoch) AS epoch,
           min(time_ms) FILTER (action = 'elected') AS elected_ms,
           min(time_ms) FILTER (action = 'initializing_context') AS context_ms,
           min(time_ms) FILTER (action = 'initializing_replica_state') AS replicas_ms,
           min(time_ms) FILTER (action = 'initializing_partition_state') AS partitions_ms,
           min(time_ms) FILTER (action = 'ready') AS ready_ms,
           min(time_ms) FILTER (action = 'resigned') AS resigned_ms,
           min(seq) FILTER (action = 'resigned') AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, actor, term
), line AS (
    SELECT history, seq, 0 AS n, NULL::DOUBLE AS vacant, o AS f, NULL::INT AS broker FROM offices o
    UNION ALL SELECT history, seq, CASE WHEN source = 'NonExistentPartition' THEN 1 ELSE -1 END, NULL, NULL, NULL
    FROM records WHERE kind = 'partition' AND error IS NULL
                 AND (source = 'NonExistentPartition') != (target = 'NonExistentPartition')
    UNION ALL SELECT history, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, cause_seq, 0, at_ms, NULL, broker FROM departures
), placed AS (
    SELECT *, last_value(f.controller IGNORE NULLS) OVER (
        PARTITION BY history ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS held FROM line
), counted AS (
    SELECT f, held, sum(n) OVER w AS partitions,
           last_value(CASE WHEN broker IS NULL OR broker = held THEN vacant END IGNORE NULLS) OVER w AS vacant_ms
    FROM placed WINDOW w AS (PARTITION BY history ORDER BY seq)
)
SELECT f.history, f.controller, f.epoch, held AS previous, partitions, vacant_ms, f.elected_ms, f.ready_ms,
       round(f.elected_ms - vacant_ms, 4) AS detection_ms, round(f.context_ms - f.elected_ms, 4) AS taking_over_ms,
       round(f.replicas_ms - f.context_ms, 4) AS reading_ms, round(f.partitions_ms - f.replicas_ms, 4) AS replica_ms,
       round(f.ready_ms - f.partitions_ms, 4) AS partition_ms, round(f.ready_ms - f.elected_ms, 4) AS failover_ms
FROM counted WHERE f IS NOT NULL
"""

REQUEST_AMPLIFICATION = """
WITH sent AS (
    SELECT history, cause AS seq, count(topic) AS states, count(*) FILTER (target = 'sent') AS requests
    FROM records WHERE kind = 'request' AND actor LIKE 'controller-%' AND cause IS NOT NULL GROUP BY ALL
)
SELECT history, action AS event, count(*) AS events, sum(coalesce(requests, 0)) AS requests,
       sum(coalesce(states, 0)) AS states, max(coalesce(requests, 0)) AS most_requests,
       max(coalesce(states, 0)) AS most_states
FROM records LEFT JOIN sent USING (history, seq)
WHERE kind = 'event' AND target = 'started' AND actor LIKE 'controller-%' GROUP BY ALL
"""

REASSIGNMENTS = """
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
"""

DELETIONS = """
WITH said AS (
    SELECT history, seq, time_ms, CASE WHEN kind = 'event' THEN 'asked' ELSE action END AS action,
           CASE WHEN topic IS NOT NULL THEN topic
                ELSE coalesce(detail->>'$.topic', detail->>'$.topics[0]') END AS topic
    FROM records
    WHERE section = 'main' AND ((kind = 'event' AND actor = 'admin' AND action = 'delete_topic')
       OR (kind = 'controller' AND action IN ('deletion_started', 'deletion_completed')))
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
"""

ISR_STATES = """
WITH told AS (
    SELECT history, topic, partition, seq, time_ms, kind, isr, replicas, zk_version,
           coalesce(target = 'NonExistentPartition', false) AS gone,
           (kind = 'partition' AND coalesce(source = 'NonExistentPartition', false))::INT AS born
    FROM records
    WHERE (kind = 'partition' OR section = 'isr') AND topic IS NOT NULL AND error IS NULL
), lives AS (
    SELECT *, sum(born) OVER w * 4294967296 + zk_version AS version,
           last_value(replicas IGNORE NULLS) OVER w AS assigned
    FROM told WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), fresh AS (
    SELECT * FROM lives
    QUALIFY gone OR (isr IS NOT NULL AND (version IS NULL OR version > coalesce(max(version) OVER (
        PARTITION BY history, topic, partition ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1)))
), ends AS (
    SELECT history, max(time_ms) AS end_ms FROM told GROUP BY history
)
SELECT history, topic, partition, seq, time_ms AS at_ms, kind = 'broker' AS by_leader,
       CASE WHEN NOT gone THEN isr END AS isr, lag(CASE WHEN NOT gone THEN isr END) OVER w AS isr_before, assigned,
       coalesce(lead(time_ms) OVER w, end_ms) AS until_ms
FROM fresh JOIN ends USING (history)
WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
"""

ISR_CHURN = """
WITH known AS (
    SELECT *, len(list_intersect(isr_before, isr)) AS stayed FROM isr_states WHERE isr IS NOT NULL
)
SELECT history, topic, partition,
       count(*) FILTER (stayed < len(isr_before)) AS shrinks,
       count(*) FILTER (stayed < len(isr_before) AND by_leader) AS shrinks_by_leader,
       count(*) FILTER (isr_before IS NOT NULL AND stayed < len(isr)) AS expansions, min(len(isr)) AS smallest,
       round(coalesce(sum(until_ms - at_ms) FILTER (len(isr) < len(assigned)), 0), 4) AS under_ms,
       round(coalesce(sum(until_ms - at_ms) FILTER (len(isr) = 1 AND len(assigned) > 1), 0), 4) AS single_ms
FROM known GROUP BY ALL
"""

UNCLEAN_EXPOSURE = """
WITH leavers AS (
    SELECT history, topic, partition, unnest(list_filter(isr_before, lambda b: NOT list_contains(isr, b))) AS broker,
           seq, at_ms AS left_ms
    FROM isr_states WHERE isr IS NOT NULL
)
SELECT e.history, e.topic, e.partition, time_ms AS at_ms, e.seq, leader,
       nullif(regexp_extract(detail, 'leader_before=([0-9]+)', 1), '')::INT AS leader_before, left_ms AS out_since_ms,
       round(time_ms - left_ms, 4) AS behind_ms, round(behind_ms) AS records_at_risk
FROM (FROM records WHERE kind = 'election' AND target = 'unclean') e
ASOF LEFT JOIN leavers l ON l.history = e.history AND l.topic = e.topic AND l.partition = e.partition
                        AND l.broker = e.leader AND e.seq >= l.seq
"""

LEADER_CHURN = """
WITH elections AS (
    SELECT history, topic, partition, seq, time_ms, leader, replicas[1] AS preferred,
           lag(leader) OVER (PARTITION BY history, topic, partition ORDER BY seq) AS previous
    FROM records WHERE kind = 'partition' AND error IS NULL AND leader >= 0
), changes AS (
    SELECT *, coalesce(leader != previous, false) AS changed,
           last_value(CASE WHEN leader != previous THEN previous END IGNORE NULLS) OVER (
               PARTITION BY history, topic, partition ORDER BY seq
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS replaced
    FROM elections
)
SELECT history, topic, partition, count(*) AS elections, count(*) FILTER (changed) AS changes,
       count(*) FILTER (changed AND leader = replaced) AS returns, count(DISTINCT leader) AS leaders,
       count(*) FILTER (changed AND leader = preferred) AS preferred_changes,
       (max(time_ms) - min(time_ms)) / 3600000 AS hours
FROM changes GROUP BY ALL
"""

IMBALANCE = """
WITH moves AS (
    SELECT history, topic, partition, seq, time_ms, target != 'NonExistentPartition' AS there,
           CASE WHEN target = 'OnlinePartition' THEN leader END AS leader,
           last_value(replicas[1] IGNORE NULLS) OVER (
               PARTITION BY history, topic, partition ORDER BY seq) AS preferred
    FROM records WHERE kind = 'partition' AND error IS NULL
), known AS (
    SELECT *, (leader IS DISTINCT FROM preferred)::INT AS astray, lag(preferred) OVER w AS old,
           lag(astray) OVER w AS old_astray, lag(there) OVER w AS was_there
    FROM moves WHERE preferred IS NOT NULL WINDOW w AS (PARTITION BY history, topic, partition ORDER BY seq)
), changes AS (
    SELECT history, seq, time_ms, preferred AS broker, 1 AS n, astray FROM known WHERE there
    UNION ALL SELECT history, seq, time_ms, old, -1, -old_astray FROM known WHERE was_there
)
SELECT history, broker, time_ms AS at_ms, sum(n) OVER w AS preferred, sum(astray) OVER w AS astray,
       CASE WHEN sum(n) OVER w > 0 THEN sum(astray) OVER w / sum(n) OVER w ELSE 0 END AS share
FROM changes
WINDOW w AS (PARTITION BY history, broker ORDER BY seq)
QUALIFY coalesce(lead(time_ms) OVER w > time_ms, true)
"""

TRANSITION_COUNTS = """
WITH seen AS (
    SELECT kind AS machine, source, target, count(*) FILTER (error IS NULL) AS made, count(error) AS refused
    FROM records WHERE kind IN ('partition', 'replica') AND source IS NOT NULL GROUP BY ALL
)
SELECT machine, source, target, action IS NOT NULL AS legal, action, coalesce(made, 0) AS made,
       coalesce(refused, 0) AS refused
FROM seen FULL JOIN legal USING (machine, source, target)
"""

COMPARE = """
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
"""

VIEWS = {
    "departures": DEPARTURES, "unavailability": UNAVAILABILITY, "shutdown_vs_failure": SHUTDOWN_VS_FAILURE,
    "rolling_restarts": ROLLING_RESTARTS, "failover_time": FAILOVER_TIME,
    "request_amplification": REQUEST_AMPLIFICATION, "reassignments": REASSIGNMENTS, "deletions": DELETIONS,
    "isr_states": ISR_STATES, "isr_churn": ISR_CHURN, "unclean_exposure": UNCLEAN_EXPOSURE,
    "leader_churn": LEADER_CHURN, "imbalance": IMBALANCE, "transition_counts": TRANSITION_COUNTS, "compare": COMPARE,
}  # fmt: skip
"""The questions, those first that others build on."""


class Engine:
    """DuckDB on one dataset, with so many threads."""

    def __init__(self, path: str, cores: int, legal: list[tuple]) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {cores}")
        self.connection.execute("SET enable_progress_bar = false")
        self.connection.execute("SET asof_loop_join_threshold = 0")  # its loop is quadratic
        files = f"read_parquet('{path}/kind=*/section=*/*.parquet', hive_partitioning = true)"
        self.connection.execute(f"CREATE VIEW records AS SELECT * FROM {files}")
        self.connection.execute("CREATE TABLE legal (machine TEXT, source TEXT, target TEXT, action TEXT)")
        self.connection.executemany("INSERT INTO legal VALUES (?, ?, ?, ?)", legal)
        for name, query in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {name} AS {query}")

    def ask(self, name: str) -> int:
        """Every row of an answer, as Arrow batches that are let go; how many there are."""
        batches = self.connection.sql(f"FROM {name}").to_arrow_reader(100_000)
        return sum(len(batch) for batch in batches)

    def digest(self, name: str) -> dict[str, Any]:
        """Rows, and for each column its values added up."""
        columns = {name: str(kind) for name, kind, *_ in self.connection.execute(f"DESCRIBE {name}").fetchall()}
        sums = [f"sum({_number(column, kind)})" for column, kind in columns.items()]
        found = self.connection.execute(f"SELECT count(*), {', '.join(sums)} FROM {name}").fetchall()[0]
        return dict(zip(["rows", *columns], found, strict=True))


def _number(column: str, kind: str) -> str:
    if kind.endswith("[]"):
        return f"list_sum({column})"
    return f"length({column})" if kind == "VARCHAR" else f"{column}::DOUBLE"
