"""Do the preferred replicas lead?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame

_QUERY = """
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


def imbalance_of_lives(records: DataFrame) -> DataFrame:
    """`imbalance` with the `life` of each row; `records` come from `frame`."""
    return ask(_QUERY, records=records)


def imbalance(records: Records) -> DataFrame:
    """For every broker, how many of the partitions that prefer it are led by somebody else, over time.

    One row for each moment at which that changed: `history`, `broker`, `at_ms`, `preferred` (partitions whose first
    assigned replica the broker is), `led_elsewhere` (those of them that it does not lead) and `share` (led_elsewhere /
    preferred, 0 to 1; Kafka's automatic rebalance acts above 0.1). It holds until the broker's next row, or until
    ZooKeeper is wiped: then all brokers begin at 0 again.
    """
    return imbalance_of_lives(frame(records)).drop("life")
