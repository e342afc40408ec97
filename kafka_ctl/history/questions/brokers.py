"""Brokers that leave and return: at which cost, and when they lead again."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.departures import DEPARTURES
from kafka_ctl.history.questions.frames import Records, ask, milliseconds, nest, without_life
from kafka_ctl.history.questions.leaders import IMBALANCE
from kafka_ctl.history.questions.unavailability import BLAMED

_COST = nest(
    """
WITH moves AS (
    SELECT history, life, topic, partition, seq,
           CASE WHEN target = 'OnlinePartition' THEN nullif(leader, -1) END AS leader
    FROM {records} WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), changes AS (
    SELECT *, lag(leader) OVER (PARTITION BY history, life, topic, partition ORDER BY seq) AS old FROM moves
), departures AS (  -- with the intervals that each caused
    SELECT history, life, leader AS broker, max(departed) AS d, count_if(departed IS NULL) AS intervals,
           count(end_ms) AS ended, max(outage_ms) AS longest_ms, sum(outage_ms) AS outage_ms
    FROM {blamed} WHERE departed IS NOT NULL OR cause_seq IS NOT NULL
    GROUP BY history, life, leader, coalesce(departed.cause_seq, cause_seq)
), line AS (  -- for each broker: partitions won and lost, and its departures
    SELECT history AS history, life, broker, d.began_seq AS seq, 0 AS won, struct(*) AS of FROM departures
    UNION ALL
    SELECT history, life, broker, seq, won, NULL FROM changes LATERAL VIEW stack(2, leader, 1, old, -1) AS broker, won
    WHERE broker IS NOT NULL AND NOT (leader <=> old)
), led AS (
    SELECT history, life, broker, of, of.d,
           sum(won) OVER (PARTITION BY history, life, broker ORDER BY seq {so_far}) AS led FROM line
)
SELECT history, life, broker, d.cause, d.cause_seq, d.began_ms, d.at_ms, round(d.at_ms - d.began_ms, 4) AS duration_ms,
       d.attempts, d.remaining, led, of.intervals AS leaderless, of.intervals - of.ended AS unfinished,
       round(coalesce(of.longest_ms, 0), 4) AS longest_ms, round(coalesce(of.outage_ms, 0), 4) AS outage_ms
FROM led WHERE of IS NOT NULL
""",
    blamed=BLAMED,
)
"""The columns of `shutdown_vs_failure`, and the `life` of each departure."""


def shutdown_vs_failure(records: Records) -> DataFrame:
    """The cost of every departure of a broker.

    One row each: `history`, `broker`, `cause`, `cause_seq`, `began_ms`, `at_ms`, `attempts` and `remaining` as in
    `departures`; `duration_ms` (of a controlled shutdown, from the request to the last answer; 0 for others), `led`
    (partitions the broker led when it began), `leaderless` (intervals without a leader that it caused),
    `unfinished` (those of them that had not ended with the history, or when ZooKeeper was wiped), `longest_ms` and
    `outage_ms` (the longest of them and their sum, as producers felt it).
    """
    return ask(without_life(_COST), records)


_SESSIONS = nest(
    """
WITH line AS (
    SELECT *, coalesce(began_ms - lag(at_ms) OVER w > <gap>, false) AS first
    FROM {costs} WHERE cause = 'controlled shutdown' WINDOW w AS (PARTITION BY history, life ORDER BY cause_seq)
), numbered AS (
    SELECT *, count_if(first) OVER (PARTITION BY history, life ORDER BY cause_seq {so_far}) AS session FROM line
)
SELECT history, min(began_ms) AS start_ms, max(at_ms) AS end_ms, round(max(at_ms) - min(began_ms), 4) AS duration_ms,
       transform(array_sort(collect_list(struct(cause_seq, broker))), left -> left.broker) AS brokers,
       sum(led) AS moved, sum(remaining) AS remaining, sum(leaderless) AS leaderless,
       round(sum(outage_ms), 4) AS outage_ms
FROM numbered GROUP BY history, life, session
HAVING count(DISTINCT broker) > 1
""",
    costs=_COST,
)


def rolling_restarts(records: Records, gap_minutes: float = 15.0) -> DataFrame:
    """Rolling restarts, found as controlled shutdowns of several brokers with no long gap between them.

    One row each: `history`, `start_ms` (the first request), `end_ms` (the last broker has left), `duration_ms`,
    `brokers` (in the order in which they left), `moved` (partitions they led when they were asked), `remaining`
    (partitions left behind), `leaderless` and `outage_ms` (as in `shutdown_vs_failure`). A gap of more than
    `gap_minutes` ends a session. Raises BadInput if it is not a number of minutes.
    """
    gap = milliseconds("gap_minutes", gap_minutes)
    return ask(_SESSIONS.replace("<gap>", str(gap)), records)


_CHURN = nest(
    """
WITH gaps AS (
    SELECT *, at_ms - lag(at_ms) OVER (PARTITION BY history, life, broker ORDER BY cause_seq) AS gap FROM {departures}
), gone AS (
    SELECT history, broker, count(*) AS departures, count_if(gap <= <within>) AS flaps,
           round(min(gap), 4) AS shortest_ms
    FROM gaps GROUP BY history, broker
), led AS (
    SELECT history, leader, CASE WHEN NOT source <=> 'NewPartition' THEN lag(leader) OVER (
        PARTITION BY history, life, topic, partition ORDER BY seq) END AS previous
    FROM {records} WHERE kind = 'partition' AND error IS NULL AND leader >= 0
), changes AS (
    SELECT history AS history, leader AS broker, 1 AS won, 0 AS lost FROM led WHERE leader != previous
    UNION ALL SELECT history, previous, 0, 1 FROM led WHERE leader != previous
), moved AS (
    SELECT history, broker, sum(won) AS won, sum(lost) AS lost FROM changes GROUP BY history, broker
)
SELECT /*+ SHUFFLE_HASH(moved) */ history, broker, departures, flaps, shortest_ms,
       coalesce(won, 0) AS won, coalesce(lost, 0) AS lost
FROM gone LEFT JOIN moved USING (history, broker)
""",
    departures=DEPARTURES,
)


def broker_churn(records: Records, within_minutes: float = 60.0) -> DataFrame:
    """Brokers that left, how often, and whether they flap.

    One row for each that ever left: `history`, `broker`, `departures`, `flaps` (departures at most `within_minutes`
    after the one before), `shortest_ms` (between two of them, null for a single one), `won` and `lost` (leaderships
    that came from, or went to, another broker). Raises BadInput if it is not a number of minutes.
    """
    within = milliseconds("within_minutes", within_minutes)
    return ask(_CHURN.replace("<within>", str(within)), records)


_HOME = nest(
    """
WITH away AS (
    SELECT history, life, broker, cause, cause_seq, began_ms, at_ms, lead(cause_seq) OVER w AS next_seq,
           lead(began_ms) OVER w AS next_ms
    FROM {departures} WINDOW w AS (PARTITION BY history, life, broker ORDER BY cause_seq)
), seen AS (
    SELECT history, life, broker, seq, time_ms FROM {main}
    WHERE kind = 'broker' AND action = 'registered' AND error IS NULL
    UNION ALL
    SELECT history, life, explode(from_json(detail, 'new array<int>').new), seq, time_ms
    FROM {main} WHERE kind = 'controller' AND action = 'brokers_changed'
), back AS (
    SELECT /*+ SHUFFLE_HASH(first) */ a.*, back_ms FROM away a JOIN (
        SELECT /*+ SHUFFLE_HASH(s) */ a.history, a.broker, a.cause_seq, min(time_ms) AS back_ms FROM away a JOIN seen s
        ON s.history = a.history AND s.life = a.life AND s.broker = a.broker AND s.seq > a.cause_seq
           AND (a.next_seq IS NULL OR s.seq < a.next_seq)
        GROUP BY a.history, a.broker, a.cause_seq
    ) first USING (history, broker, cause_seq)
)
SELECT /*+ SHUFFLE_HASH(i) */ b.history, b.broker, b.cause, b.cause_seq, b.at_ms, back_ms,
       round(back_ms - b.at_ms, 4) AS away_ms, coalesce(max(i.led_elsewhere), 0) AS led_elsewhere,
       min(CASE WHEN i.led_elsewhere = 0 AND i.at_ms >= back_ms THEN i.at_ms END) AS home_ms,
       round(min(CASE WHEN i.led_elsewhere = 0 AND i.at_ms >= back_ms THEN i.at_ms END) - back_ms, 4) AS waited_ms
FROM back b LEFT JOIN {imbalance} i
ON i.history = b.history AND i.life = b.life AND i.broker = b.broker AND i.at_ms >= b.began_ms
   AND (next_ms IS NULL OR i.at_ms < next_ms)
GROUP BY b.history, b.broker, b.cause, b.cause_seq, b.at_ms, back_ms
""",
    departures=DEPARTURES,
    imbalance=IMBALANCE,
)


def preferred_leader_recovery(records: Records) -> DataFrame:
    """The imbalance after each restart: how long did brokers wait for the partitions that prefer them?

    One row for every departure of a broker that came back before it left again: `history`, `broker`, `cause`,
    `cause_seq`, `at_ms` (it left), `back_ms` (it registered, or a log says that a controller saw it), `away_ms`,
    `led_elsewhere` (the most of its preferred partitions that others led because of it), `home_ms` (when it led all of
    them again, null if it never did) and `waited_ms` (from its return to that).
    """
    return ask(_HOME, records)
