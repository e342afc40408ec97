"""What does it cost when brokers leave: in good order, without a word, one after another?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.departures import departures_of_lives
from kafka_ctl.history.questions.frames import Records, ask, frame, milliseconds
from kafka_ctl.history.questions.unavailability import unavailability

_COST = """
WITH moves AS (
    SELECT history, life, topic, partition, seq,
           CASE WHEN target = 'OnlinePartition' THEN nullif(leader, -1) END AS leader
    FROM {records} WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), changes AS (
    SELECT *, lag(leader) OVER (PARTITION BY history, life, topic, partition ORDER BY seq) AS old FROM moves
), line AS (  -- for each broker: partitions won and lost, and its departures
    SELECT history, life, broker, began_seq AS seq, 0 AS won, struct(*) AS d FROM {departures}
    UNION ALL
    SELECT history, life, broker, seq, won, NULL FROM changes LATERAL VIEW stack(2, leader, 1, old, -1) AS broker, won
    WHERE broker IS NOT NULL AND NOT (leader <=> old)
), led AS (
    SELECT history, life, d, sum(won) OVER (PARTITION BY history, life, broker ORDER BY seq {so_far}) AS led FROM line
), hurt AS (
    SELECT history, cause_seq, count(*) AS intervals, count(end_ms) AS ended, max(outage_ms) AS longest_ms,
           sum(outage_ms) AS outage_ms
    FROM {unavailability} WHERE cause_seq IS NOT NULL GROUP BY history, cause_seq
)
SELECT /*+ SHUFFLE_HASH(hurt) */ led.history, led.life, d.broker, d.cause, d.cause_seq, d.began_ms, d.at_ms,
       round(d.at_ms - d.began_ms, 4) AS duration_ms, d.attempts,
       d.remaining, led, coalesce(intervals, 0) AS leaderless, coalesce(intervals - ended, 0) AS unfinished,
       round(coalesce(longest_ms, 0), 4) AS longest_ms, round(coalesce(outage_ms, 0), 4) AS outage_ms
FROM led LEFT JOIN hurt ON hurt.history = led.history AND hurt.cause_seq = d.cause_seq
WHERE d IS NOT NULL
"""


def shutdown_vs_failure(records: Records) -> DataFrame:
    """What every departure of a broker cost.

    One row each: `history`, `broker`, `cause`, `cause_seq`, `began_ms`, `at_ms`, `attempts` and `remaining` as in
    `departures`; `duration_ms` (of a controlled shutdown, from the request to the last answer; 0 for others), `led`
    (partitions the broker led when it began), `leaderless` (intervals without a leader that it caused),
    `unfinished` (those of them that had not ended with the history, or when ZooKeeper was wiped), `longest_ms` and
    `outage_ms` (the longest of them and their sum, as producers felt it).
    """
    return _costs(frame(records)).drop("life")


def _costs(records: DataFrame) -> DataFrame:
    """`shutdown_vs_failure` with the `life` of each departure."""
    known = {"departures": departures_of_lives(records), "unavailability": unavailability(records)}
    return ask(_COST, records=records, **known)


_SESSIONS = """
WITH line AS (
    SELECT *, coalesce(began_ms - lag(at_ms) OVER w > {gap}, false) AS first
    FROM {shutdowns} WINDOW w AS (PARTITION BY history, life ORDER BY cause_seq)
), numbered AS (
    SELECT *, count_if(first) OVER (PARTITION BY history, life ORDER BY cause_seq {so_far}) AS session FROM line
)
SELECT history, min(began_ms) AS start_ms, max(at_ms) AS end_ms, round(max(at_ms) - min(began_ms), 4) AS duration_ms,
       transform(array_sort(collect_list(struct(cause_seq, broker))), left -> left.broker) AS brokers,
       sum(led) AS moved, sum(remaining) AS remaining, sum(leaderless) AS leaderless,
       round(sum(outage_ms), 4) AS outage_ms
FROM numbered GROUP BY history, life, session
HAVING count(DISTINCT broker) > 1
"""


def rolling_restarts(records: Records, gap_minutes: float = 15.0) -> DataFrame:
    """Rolling restarts, found as controlled shutdowns of several brokers with no long gap between them.

    One row each: `history`, `start_ms` (the first request), `end_ms` (the last broker has left), `duration_ms`,
    `brokers` (in the order in which they left), `moved` (partitions they led when they were asked), `remaining`
    (partitions left behind), `leaderless` and `outage_ms` (as in `shutdown_vs_failure`). A gap of more than
    `gap_minutes` ends a session. Raises BadInput for what is no number of minutes.
    """
    gap = milliseconds("gap_minutes", gap_minutes)
    shutdowns = _costs(frame(records)).where("cause = 'controlled shutdown'")
    return ask(_SESSIONS.replace("{gap}", str(gap)), shutdowns=shutdowns)
