"""Partitions without a leader: for how long, and why; by cause, beside another history, with other clusters."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from statistics import median, quantiles
from typing import NamedTuple

from pyspark.sql import DataFrame

from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.history.questions.departures import DEPARTURES
from kafka_ctl.history.questions.frames import Records, ask, check_answer, nest

BLAMED = nest(
    """
WITH moves AS (
    SELECT history, life, topic, partition, seq, time_ms, target, controller_epoch, nullif(leader, -1) AS leader,
           error IS NOT NULL OR target IN ('NewPartition', 'OfflinePartition') OR coalesce(leader = -1, false) AS down,
           coalesce(source IN ('NewPartition', 'OfflinePartition'), false) AS from_down,
           source, 'NewPartition' IN (source, target) AS new, error IS NOT NULL AS refused
    FROM {main}  -- a move that is refused leaves a partition where it is, and names that state
    WHERE kind = 'partition' AND action != 'set' AND (error IS NULL OR source IN ('NewPartition', 'OfflinePartition'))
), looking_back AS (
    SELECT *, lag(down, 1, false) OVER w AS was_down,
           count_if(refused) OVER so_far AS refusals, count_if(refused) OVER whole AS all_refusals,
           source = 'OnlinePartition' AND coalesce(lead(target) OVER w = 'NonExistentPartition', false) AS going,
           last_value(leader) IGNORE NULLS OVER earlier AS led,
           last_value(CASE WHEN leader IS NOT NULL THEN time_ms END) IGNORE NULLS OVER earlier AS led_ms
    FROM moves
    WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq),
           earlier AS (PARTITION BY history, life, topic, partition ORDER BY seq {before}),
           so_far AS (PARTITION BY history, life, topic, partition ORDER BY seq {so_far}),
           whole AS (PARTITION BY history, life, topic, partition ORDER BY seq
                     ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
), changes AS (  -- where a partition goes down or comes up; `unseen`: nothing had reported that it was down
    SELECT *, NOT down AND NOT was_down AS unseen,
           lead(time_ms) OVER w AS next_ms, lead(target) OVER w AS next_target,
           coalesce(lead(refusals) OVER w, all_refusals) - refusals + int(refused) > 0 AS election_refused
    FROM looking_back WHERE down != was_down OR (NOT down AND from_down)
    WINDOW w AS (PARTITION BY history, life, topic, partition ORDER BY seq)
), epochs AS (
    SELECT history, life, controller_epoch, min(time_ms) AS epoch_ms
    FROM {main} WHERE kind = 'controller' AND action NOT IN ({high_volume}, 'says')
    GROUP BY history, life, controller_epoch
), intervals AS (
    SELECT /*+ SHUFFLE_HASH(epochs) */ history, life, topic, partition, seq, new, led_ms,
           CASE WHEN NOT new THEN led END AS leader,
           CASE WHEN unseen THEN coalesce(epoch_ms, time_ms) ELSE time_ms END AS start_ms,
           CASE WHEN unseen THEN time_ms ELSE next_ms END AS end_ms,
           CASE WHEN unseen THEN target ELSE next_target END = 'OnlinePartition' AS restored,
           unseen, NOT unseen AND election_refused AS election_refused
    FROM changes LEFT JOIN epochs USING (history, life, controller_epoch)
    WHERE (down OR unseen) AND NOT going
), line AS (  -- intervals and departures of each broker in one line, so that every interval can look back
    SELECT history AS history, life, broker, cause_seq AS seq, struct(cause, cause_seq, at_ms) AS departure, NULL AS i,
           struct(*) AS departed
    FROM {departures}
    UNION ALL
    SELECT history, life, leader, seq, NULL,
           struct(topic, partition, unseen, start_ms, end_ms, restored, election_refused, led_ms, new), NULL
    FROM intervals
), blamed AS (
    SELECT history, life, broker AS leader, i.*, departed,
           CASE WHEN broker IS NOT NULL THEN last_value(departure) IGNORE NULLS OVER (
               PARTITION BY history, life, broker ORDER BY seq {so_far}) END AS known
    FROM line
), guilty AS (  -- logs may lack the last departure; one after which the broker led again is another story
    SELECT *, CASE WHEN NOT (known.cause IN ('broker loss', 'controlled shutdown') AND known.at_ms < led_ms)
                   THEN known END AS d FROM blamed
), begun AS (  -- since 2.6 logs leave out the move to Offline: the leader may have left long after that election
    SELECT * EXCEPT (start_ms), CASE WHEN unseen THEN greatest(start_ms, d.at_ms) ELSE start_ms END AS start_ms
    FROM guilty
), reported AS (
    SELECT *, CASE WHEN new THEN 'topic creation' ELSE d.cause END AS cause, d.cause_seq AS cause_seq,
           -- A broker that was elected before its crash was noticed was lost at that election.
           CASE WHEN d IS NULL THEN start_ms ELSE least(start_ms, greatest(d.at_ms, led_ms)) END AS lost_ms
    FROM begun
)
SELECT history, topic, partition, start_ms, end_ms, round(end_ms - start_ms, 4) AS duration_ms, restored,
       election_refused, leader, cause, cause_seq, lost_ms, round(end_ms - lost_ms, 4) AS outage_ms, life, departed
FROM reported
""",
    departures=DEPARTURES,
)
"""The intervals of `unavailability` and, in rows between them, all departures: one pass finds both.

In the row of a departure, `departed` has the columns of `DEPARTURES`, and `leader` is its broker; only `history` and
`life` mean something besides. In the row of an interval `departed` is null."""
_UNAVAILABLE = f"SELECT * EXCEPT (life, departed) FROM ({BLAMED}) WHERE departed IS NULL"


def unavailability(records: Records) -> DataFrame:
    """The intervals in which a partition had no leader, one row each.

    Columns
    - `history`, `topic`, `partition`
    - `start_ms`, `end_ms`, `duration_ms`: from the record that leaves the partition New or Offline to the one
      that brings it Online (or ends it, when its topic is deleted): what the controller knew. `end_ms` and
      `duration_ms` are null when the history ends first, or ZooKeeper is wiped. A new controller finds partitions
      Offline without a record of it: such an interval starts with the first election that is refused, and if none is,
      with that controller's epoch, or when the leader left, if that was later. Logs at INFO, the default since 2.6,
      have no move to Offline at all.
    - `restored`: whether it ended with a leader; null when it did not end
    - `election_refused`: whether an election was refused in it: no other replica was alive and in sync or, where
      unclean elections are allowed, alive. Then it lasts until a broker returns, whatever the cause
    - `leader`: the broker that led before, null for a new partition
    - `cause`: why that broker left (see `departures`), `topic creation` for a new partition, null if unknown
    - `cause_seq`: the record of that cause
    - `lost_ms`, `outage_ms`: when the leader was really lost, and from then to `end_ms`: what a producer
      felt. It contains the time until ZooKeeper and the controller noticed.

    The cause is the last departure of the broker that led. That needs no walk along the chain of causes.
    A deletion takes partitions through Offline at its end; that is no interval.
    """
    return ask(_UNAVAILABLE, records)


BY = ("history", "topic", "partition", "cause", "leader", "restored", "election_refused")
"""The columns by which intervals can be grouped."""

_SUMS = """
WITH grouped AS (
    SELECT <by>, count(*) AS intervals, count_if(end_ms IS NULL) AS unfinished,
           round(coalesce(sum(outage_ms), 0), 4) AS outage_ms,
           percentile_approx(outage_ms, array(0.5, 0.9, 0.99), 10000) AS p, max(outage_ms) AS longest_ms
    FROM {intervals} GROUP BY <by>
)
SELECT <by>, intervals, unfinished, outage_ms, p[0] AS p50_ms, p[1] AS p90_ms, p[2] AS p99_ms, longest_ms FROM grouped
"""


def unavailability_by(records: Records, *by: str) -> DataFrame:
    """The time of partitions without a leader, summed up by cause, or by any of `BY`: `"topic", "partition"`.

    One row for each value of those columns: the value, `intervals`, `unfinished` (not over when their history ended),
    `outage_ms` (the sum, as producers felt it), and of single intervals that are over `p50_ms`, `p90_ms`, `p99_ms`,
    `longest_ms` (percentiles; null when there is none). Raises UnknownName for another column.
    """
    columns = by or ("cause",)
    for name in columns:
        if name not in BY:
            raise UnknownName("column to group by", name, BY)
    return ask(nest(_SUMS.replace("<by>", ", ".join(columns)), intervals=_UNAVAILABLE), records)


# Bands


class Band(NamedTuple):
    """The range of an answer from so many clusters: 5 of 100 samples are below `low`, 5 above `high`."""

    clusters: int
    median_s: tuple[float, float]
    """Of an interval without a leader, in seconds; 0 for a sample that has none."""
    minutes: tuple[float, float]
    """Without a leader for each cluster, all partitions summed up."""


def resampled(answer: DataFrame, histories: int, sizes: Sequence[int], samples: int = 200, seed: int = 1) -> list[Band]:
    """For each of `sizes`, the band of the median interval and of the minutes of a cluster, from that many clusters.

    `answer` comes from `questions.unavailability`, from so many `histories`: those without an interval count as well.
    Clusters are drawn with replacement, `samples` times (B. Efron, Bootstrap Methods: Another Look at the Jackknife,
    1979). Creations and intervals that did not end are left out. The length of every other interval comes to this
    process. Raises BadInput for another `answer`, for fewer histories than it has, for a size that is not a number of
    clusters, and for less than 20 samples.
    """
    check_answer(answer, "unavailability", "history", "cause", "outage_ms")
    numbers = [histories, samples, seed, *(sizes if isinstance(sizes, Sequence) else [None])]
    if {*map(type, numbers)} != {int} or samples < 20 or not sizes or min(sizes) < 1 or histories < 1:
        raise BadInput(
            f"histories={short(histories)}, sizes={short(sizes)}, samples={short(samples)}, seed={short(seed)}: give "
            "whole numbers; histories must be at least 1, each size at least 1, and samples at least 20"
        )
    rows = (
        answer.where("NOT cause <=> 'topic creation' AND outage_ms IS NOT NULL")
        .groupBy("history")
        .agg({"outage_ms": "collect_list"})
        .orderBy("history")
        .toLocalIterator()
    )
    found = [array("d", sorted(row[1])) for row in rows]
    if len(found) > histories:
        raise BadInput(
            f"histories={histories}: the answer has intervals of {len(found):,}; give the number of all histories"
        )
    chance = Random(seed)
    return [_band(found, histories, size, samples, chance) for size in sizes]


def _band(found: Sequence[array[float]], histories: int, size: int, samples: int, chance: Random) -> Band:
    medians, minutes = [], []
    for _ in range(samples):
        numbers = chance.choices(range(histories), k=size)
        drawn = [ms for n in numbers if n < len(found) for ms in found[n]]
        medians.append(median(drawn) / 1000 if drawn else 0.0)
        minutes.append(sum(drawn) / 60_000 / size)
    return Band(size, _ends(medians), _ends(minutes))


def _ends(values: list[float]) -> tuple[float, float]:
    at = quantiles(values, n=20)
    return round(at[0], 2), round(at[-1], 2)


_COMPARED = nest(
    """
WITH both AS (
    SELECT 'before' AS side, * FROM {outages_before} UNION ALL SELECT 'after' AS side, * FROM {outages_after}
)
SELECT CASE WHEN grouping(cause) = 1 THEN 'all' ELSE coalesce(cause, 'unknown') END AS cause,
       count_if(side = 'before') AS intervals_before, count_if(side = 'after') AS intervals_after,
       round(coalesce(sum(outage_ms) FILTER (WHERE side = 'before'), 0), 4) AS outage_ms_before,
       round(coalesce(sum(outage_ms) FILTER (WHERE side = 'after'), 0), 4) AS outage_ms_after,
       round(percentile(outage_ms, 0.5) FILTER (WHERE side = 'before'), 4) AS median_ms_before,
       round(percentile(outage_ms, 0.5) FILTER (WHERE side = 'after'), 4) AS median_ms_after,
       round(percentile(outage_ms, 0.99) FILTER (WHERE side = 'before'), 4) AS p99_ms_before,
       round(percentile(outage_ms, 0.99) FILTER (WHERE side = 'after'), 4) AS p99_ms_after
FROM both GROUP BY GROUPING SETS ((cause), ())
""",
    outages_before=_UNAVAILABLE,
    outages_after=_UNAVAILABLE.replace("{main}", "{after.main}"),
)


def compare(before: Records, after: Records) -> DataFrame:
    """Unavailability of two histories side by side: two generations, two settings, the same seeds.

    One row for each cause and one for `all`: `intervals_before` and `_after`; `outage_ms_` (the sum), `median_ms_` and
    `p99_ms_` of the outages that ended, null where there were none.
    """
    return ask(_COMPARED, before, after=after)
