"""What became of what administrators asked for?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame, only

_REASSIGNMENTS = """
WITH said AS (
    SELECT history, seq, time_ms, action, from_json(get_json_object(detail, '$.replicas'), 'array<int>') AS replicas,
           explode(CASE WHEN action = 'reassignment_removed'
                        THEN from_json(get_json_object(detail, '$.partitions'), 'array<string>')
                        ELSE array(get_json_object(detail, '$.partition')) END) AS name
    FROM {main} WHERE kind = 'controller'
                  AND action IN ('handling_reassignment', 'leader_epoch_updated', 'reassignment_removed')
), runs AS (
    SELECT *, count_if(action = 'reassignment_removed') OVER (
        PARTITION BY history, name ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM said
)
SELECT history, regexp_extract(name, '(.*)-[0-9]+$', 1) AS topic,
       CAST(regexp_extract(name, '-([0-9]+)$', 1) AS INT) AS partition,
       max_by(replicas, CASE WHEN replicas IS NOT NULL THEN seq END) AS replicas,
       min(CASE WHEN action = 'handling_reassignment' THEN time_ms END) AS start_ms,
       max(CASE WHEN action = 'reassignment_removed' THEN time_ms END) AS end_ms,
       round(max(CASE WHEN action = 'reassignment_removed' THEN time_ms END)
             - min(CASE WHEN action = 'handling_reassignment' THEN time_ms END), 4) AS duration_ms,
       count_if(action = 'handling_reassignment') AS tries, count_if(action = 'leader_epoch_updated') AS extra_epochs
FROM runs GROUP BY history, name, run HAVING count_if(action = 'handling_reassignment') > 0
"""


def reassignments(records: Records) -> DataFrame:
    """Reassignments of partitions, one row each.

    Columns: `history`, `topic`, `partition`, `replicas` (the wish), `start_ms` (a controller took it up), `end_ms`
    (it was taken from the list: done or given up), `duration_ms`, `tries` (how often a controller took it up; a new
    one begins again) and `extra_epochs` (leader epochs that were used up without a new leader). `end_ms` is null
    for one that was stuck when the history ended.
    """
    return ask(_REASSIGNMENTS, main=only(frame(records), "section = 'main'"))


_DELETIONS = """
WITH said AS (
    SELECT history, seq, time_ms, CASE WHEN kind = 'event' THEN 'asked' ELSE action END AS action,
           coalesce(topic, get_json_object(detail, '$.topic'), get_json_object(detail, '$.topics[0]')) AS topic
    FROM {main}
    WHERE (kind = 'event' AND actor = 'admin' AND action = 'delete_topic')
       OR (kind = 'controller' AND action IN ('deletion_started', 'deletion_completed'))
), runs AS (
    SELECT *, count_if(action = 'deletion_completed') OVER (
        PARTITION BY history, topic ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM said
), told AS (
    SELECT history, topic, min(CASE WHEN action = 'asked' THEN time_ms END) AS asked_ms,
           min(CASE WHEN action = 'deletion_started' THEN time_ms END) AS started_ms,
           max(CASE WHEN action = 'deletion_completed' THEN time_ms END) AS completed_ms,
           count_if(action = 'deletion_started') AS tries
    FROM runs GROUP BY history, topic, run
)
SELECT *, round(completed_ms - coalesce(asked_ms, started_ms), 4) AS duration_ms FROM told
"""


def deletions(records: Records) -> DataFrame:
    """Deletions of topics, one row each.

    Columns: `history`, `topic`, `asked_ms` (null where only a log tells), `started_ms` (null if no controller ever
    began), `completed_ms` (null if it never finished), `tries` (how often it was begun) and `duration_ms` (from the
    wish, or else the start, to the end).
    """
    return ask(_DELETIONS, main=only(frame(records), "section = 'main'"))
