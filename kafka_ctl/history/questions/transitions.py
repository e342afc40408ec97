"""Which moves did the state machines make, and which of the legal ones never?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

_QUERY = """
WITH moves AS (
    SELECT kind AS machine, source, target, NULL AS action, error IS NULL AS made, error IS NOT NULL AS refused
    FROM {records} WHERE kind IN ('partition', 'replica') AND source IS NOT NULL
    UNION ALL SELECT machine, source, target, action, false, false FROM {legal}
)
SELECT machine, source, target, max(action) IS NOT NULL AS legal, max(action) AS action,
       count_if(made) AS made, count_if(refused) AS refused
FROM moves GROUP BY machine, source, target
"""


def transition_counts(records: Records, generation: str = "2.0") -> DataFrame:
    """How often each move of the two machines was made, beside the transition tables of a generation.

    One row for every pair of states of a machine that is legal or was seen: `machine` (`partition` or
    `replica`), `source`, `target`, `legal`, `action` (null for an illegal pair), `made` and `refused`
    (counts; a legal move is refused when, say, nobody can lead). `made == 0` is an edge never taken.
    """
    df = frame(records)
    rows = [
        (name, str(move.source), str(move.target), move.action)
        for name, tables in (("partition", PARTITION), ("replica", REPLICA))
        for move in tables[generation].rows
    ]
    legal = df.sparkSession.createDataFrame(rows, "machine string, source string, target string, action string")
    return ask(_QUERY, records=df, legal=legal)
