"""Leaders and ISRs: how often they change, if the preferred replicas lead, what was at risk, the machines' moves."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, nest, number, without_life
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

_CHANGES = """
WITH named AS (  -- `begins`: the first leader, also of a topic that is created again
    SELECT history, life, topic, partition, seq, time_ms, leader, replicas[0] AS preferred,
           lag(leader) OVER w AS before,
           coalesce(source = 'NewPartition', false) OR lag(seq) OVER w IS NULL AS begins
    FROM {records} WHERE kind = 'partition' AND error IS NULL AND leader >= 0
    WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq)
), elections AS (
    SELECT *, NOT begins AND leader != before AS changed,
           CASE WHEN coalesce(lead(begins) OVER w, true)
                THEN time_ms - last_value(CASE WHEN begins THEN time_ms END) IGNORE NULLS OVER up END AS lasted_ms
    FROM named WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq),
                      up AS (PARTITION BY history, life, topic, partition ORDER BY seq {so_far})
), changes AS (
    SELECT *, last_value(CASE WHEN begins OR changed THEN struct(if(changed, before, null) AS leader) END) IGNORE NULLS
              OVER (PARTITION BY history, life, topic, partition ORDER BY seq {before}).leader AS replaced
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
    assigned replica), `hours` (from the first to the last election). A topic that is deleted and created again has a
    first leader again, and so has one after ZooKeeper was wiped: nothing is compared across, and hours are added up.
    """
    return ask(_CHANGES, records)


IMBALANCE = """
WITH moves AS (
    SELECT history, life, topic, partition, seq, time_ms, target != 'NonExistentPartition' AS there,
           CASE WHEN target = 'OnlinePartition' THEN leader END AS leader,
           last_value(CASE WHEN size(replicas) > 0 THEN replicas[0] END) IGNORE NULLS OVER (
               PARTITION BY history, life, topic, partition ORDER BY seq {so_far}) AS preferred
    FROM {records} WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), stands AS (
    SELECT *, CAST(NOT (leader <=> preferred) AS INT) AS led_elsewhere FROM moves WHERE preferred IS NOT NULL
), known AS (
    SELECT *, lag(preferred) OVER w AS old, lag(led_elsewhere) OVER w AS old_astray, lag(there) OVER w AS was_there
    FROM stands WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq)
), changes AS (
    SELECT history, life, seq, time_ms, c.broker, c.n, c.led_elsewhere
    FROM known LATERAL VIEW stack(2, preferred, 1, led_elsewhere, old, -1, -old_astray) c AS broker, n, led_elsewhere
    WHERE CASE WHEN c.n > 0 THEN there ELSE was_there END
), running AS (
    SELECT history, life, broker, time_ms AS at_ms, lead(time_ms) OVER w AS next_ms,
           sum(n) OVER up AS preferred, sum(led_elsewhere) OVER up AS led_elsewhere
    FROM changes WINDOW w AS (PARTITION BY history, life, broker ORDER BY seq),
                        up AS (PARTITION BY history, life, broker ORDER BY seq {so_far})
)
SELECT history, life, broker, at_ms, preferred, led_elsewhere,
       CASE WHEN preferred > 0 THEN led_elsewhere / preferred ELSE 0 END AS share
FROM running WHERE next_ms IS NULL OR next_ms > at_ms  -- the last record of each moment
"""
"""The columns of `imbalance`, and the `life` of each row."""


def imbalance(records: Records) -> DataFrame:
    """For every broker, how many of the partitions that prefer it are led by another broker, over time.

    One row for each moment at which that changed: `history`, `broker`, `at_ms`, `preferred` (partitions whose first
    assigned replica the broker is), `led_elsewhere` (those of them that it does not lead) and `share` (led_elsewhere /
    preferred, 0 to 1; Kafka's automatic rebalance acts above 0.1). It holds until the broker's next row, or until
    ZooKeeper is wiped: then all brokers begin at 0 again.
    """
    return ask(without_life(IMBALANCE), records)


_MOVES = """
WITH seen AS (
    SELECT kind AS machine, source, target, NULL AS action,
           count_if(error IS NULL) AS made, count_if(error IS NOT NULL) AS refused
    FROM {records} WHERE kind IN ('partition', 'replica') AND source IS NOT NULL GROUP BY kind, source, target
    UNION ALL VALUES <legal>
)
SELECT machine, source, target, max(action) IS NOT NULL AS legal, max(action) AS action,
       sum(made) AS made, sum(refused) AS refused
FROM seen GROUP BY machine, source, target
"""


def transition_counts(records: Records, generation: str = "2.0") -> DataFrame:
    """The number of times that each move of the two machines was made, beside the tables of a generation.

    One row for every pair of states of a machine that is legal or was seen: `machine` (`partition` or
    `replica`), `source`, `target`, `legal`, `action` (null for an illegal pair), `made` and `refused`
    (counts; a legal move is refused when, say, no replica can lead). `made == 0` is an edge never taken.
    """
    legal = [
        f"('{name}', '{move.source}', '{move.target}', '{move.action}', 0, 0)"
        for name, tables in (("partition", PARTITION), ("replica", REPLICA))
        for move in tables[generation].rows
    ]
    return ask(_MOVES.replace("<legal>", ", ".join(legal)), records)


_STATES = """
WITH sent AS (
    SELECT history, life, topic, partition, seq, time_ms, kind = 'broker' AS by_leader, isr, replicas, zk_version,
           coalesce(target = 'NonExistentPartition', false) AS gone,
           CAST(kind = 'partition' AND source = 'NonExistentPartition' AS INT) AS born
    FROM {sent} WHERE topic IS NOT NULL AND error IS NULL
), ages AS (  -- a topic that is made again begins at version 0 again
    SELECT *, sum(born) OVER up * 4294967296 + zk_version AS version, lag(zk_version) OVER w AS version_before,
           last_value(replicas) IGNORE NULLS OVER up AS assigned
    FROM sent WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq),
                     up AS (PARTITION BY history, life, topic, partition ORDER BY seq {so_far})
), fresh AS (  -- requests may repeat what is known, often at once, and controllers may know less than leaders
    SELECT * FROM (
        SELECT *, gone OR (isr IS NOT NULL AND (version IS NULL OR version > coalesce(max(version) OVER (
                   PARTITION BY history, life, topic, partition ORDER BY seq {before}), -1))) AS news FROM ages
        WHERE gone OR born = 1 OR NOT coalesce(zk_version <= version_before, false)
    ) WHERE news
), ends AS (
    SELECT history, life, max(time_ms) AS end_ms FROM sent GROUP BY history, life
)
SELECT /*+ SHUFFLE_HASH(ends) */ history, life, topic, partition, seq, time_ms AS at_ms, by_leader,
       CASE WHEN NOT gone THEN isr END AS isr, lag(CASE WHEN NOT gone THEN isr END) OVER w AS isr_before, assigned,
       coalesce(lead(time_ms) OVER w, end_ms) AS until_ms
FROM fresh JOIN ends USING (history, life)
WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq)
"""
"""The columns of `isr_states`, and the `life` of each."""


def isr_states(records: Records) -> DataFrame:
    """Every ISR that a partition had, one row each, as it became known.

    Columns: `history`, `topic`, `partition`, `seq`, `at_ms`, `until_ms` (the next one, or the last record of this
    sort in the history or before ZooKeeper was wiped), `isr` (null once the topic is deleted), `isr_before`, `assigned`
    (the replicas then) and `by_leader` (the leader changed it; else a controller).
    """
    return ask(without_life(_STATES), records)


_CHURN = nest(
    """
WITH known AS (
    SELECT history, topic, partition, by_leader, size(isr) AS n, size(assigned) AS of, until_ms - at_ms AS lasts_ms,
           CASE WHEN isr_before != isr THEN size(array_except(isr_before, isr)) > 0 END AS shrunk,
           CASE WHEN isr_before != isr THEN size(array_except(isr, isr_before)) > 0 END AS grew
    FROM {states} WHERE isr IS NOT NULL
)
SELECT history, topic, partition, count_if(shrunk) AS shrinks,
       count_if(shrunk) FILTER (WHERE by_leader) AS shrinks_by_leader, count_if(grew) AS expansions, min(n) AS smallest,
       round(coalesce(sum(CASE WHEN n < of THEN lasts_ms END), 0), 4) AS under_ms,
       round(coalesce(sum(CASE WHEN n = 1 AND of > 1 THEN lasts_ms END), 0), 4) AS single_ms
FROM known GROUP BY history, topic, partition
""",
    states=_STATES,
)


def isr_churn(records: Records) -> DataFrame:
    """The growth and shrinking of each partition's ISR.

    Columns: `history`, `topic`, `partition`; `shrinks` and `expansions` (changes in which a replica left or came),
    `shrinks_by_leader` (for lagging; the others are a controller's, for a broker that left), `smallest` (the
    fewest replicas that were ever in sync), `under_ms` (time with fewer in sync than assigned), `single_ms` (time
    with only one of several in sync: the next failure takes the partition away).
    """
    return ask(_CHURN, records)


_UNCLEAN = nest(
    """
WITH line AS (  -- a deletion ends what is known of the replicas
    SELECT history AS history, life, topic, partition,
           explode(coalesce(array_except(isr_before, isr), assigned)) AS broker, seq,
           struct(if(isr IS NULL, NULL, at_ms) AS ms) AS out_since, NULL AS e
    FROM {states} WHERE isr IS NULL OR isr_before != isr
    UNION ALL
    SELECT history, life, topic, partition, leader, seq, NULL, struct(time_ms AS at_ms, detail)
    FROM {records} WHERE kind = 'election' AND target = 'unclean'
), met AS (
    SELECT *, last_value(out_since) IGNORE NULLS OVER (
        PARTITION BY history, life, topic, partition, broker ORDER BY seq {so_far}).ms AS out_since_ms FROM line
)
SELECT history, topic, partition, e.at_ms, seq, broker AS leader,
       CAST(nullif(regexp_extract(e.detail, 'leader_before=([0-9]+)', 1), '') AS INT) AS leader_before, out_since_ms,
       round(e.at_ms - out_since_ms, 4) AS behind_ms,
       round(behind_ms * <rate> / 1000) AS records_at_risk
FROM met WHERE e IS NOT NULL
""",
    states=_STATES,
)


def unclean_exposure(records: Records, records_per_second: float = 1000.0) -> DataFrame:
    """Unclean elections, and how much each may have lost.

    One row each: `history`, `topic`, `partition`, `at_ms`, `seq` (of the election), `leader`, `leader_before` (null
    if none), `out_since_ms` (when the new leader had last left the ISR), `behind_ms` (from then to the election: what
    was written meanwhile is gone) and `records_at_risk`, at `records_per_second` into each partition. The last
    three are null for a replica that never was in sync. Raises BadInput for another rate than a number from 0 on.
    """
    rate = number("records_per_second", records_per_second, "records")
    return ask(_UNCLEAN.replace("<rate>", str(rate)), records)
