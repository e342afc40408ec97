"""How often do leaders change, and do they come back?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame

_QUERY = """
WITH elections AS (
    SELECT history, life, topic, partition, seq, time_ms, leader, replicas[0] AS preferred,
           lag(leader) OVER w AS previous,
           CASE WHEN lead(seq) OVER w IS NULL THEN time_ms - first_value(time_ms) OVER w END AS lasted_ms
    FROM {records} WHERE kind = 'partition' AND error IS NULL AND leader >= 0
    WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq)
), changes AS (
    SELECT *, coalesce(leader != previous, false) AS changed,
           last_value(CASE WHEN leader != previous THEN previous END) IGNORE NULLS OVER (
               PARTITION BY history, life, topic, partition ORDER BY seq
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS replaced
    FROM elections
)
SELECT history, topic, partition, count(*) AS elections, count_if(changed) AS changes,
       count_if(changed AND leader = replaced) AS returns, count(DISTINCT leader) AS leaders,
       count_if(changed AND leader = preferred) AS preferred_changes,
       sum(lasted_ms) / 3600000 AS hours
FROM changes GROUP BY history, topic, partition
"""


def leader_churn(records: Records) -> DataFrame:
    """Changes of leader by partition, one row for every partition that ever had a leader.

    Columns: `history`, `topic`, `partition`; `elections` (records that name a leader, the first included),
    `changes` (elections that named another leader than the one before), `returns` (changes back to the leader
    before that: flapping), `leaders` (how many brokers ever led), `preferred_changes` (changes to the first
    assigned replica), `hours` (from the first to the last election;
    where ZooKeeper was wiped, those of each life of the cluster added up).
    """
    return ask(_QUERY, records=frame(records))
