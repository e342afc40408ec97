"""Which moves did the state machines make, and which of the legal ones never?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

_QUERY = """
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
    """How often each move of the two machines was made, beside the transition tables of a generation.

    One row for every pair of states of a machine that is legal or was seen: `machine` (`partition` or
    `replica`), `source`, `target`, `legal`, `action` (null for an illegal pair), `made` and `refused`
    (counts; a legal move is refused when, say, nobody can lead). `made == 0` is an edge never taken.
    """
    legal = [
        f"('{name}', '{move.source}', '{move.target}', '{move.action}', 0, 0)"
        for name, tables in (("partition", PARTITION), ("replica", REPLICA))
        for move in tables[generation].rows
    ]
    return ask(_QUERY.replace("<legal>", ", ".join(legal)), records=frame(records))
