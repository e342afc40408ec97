"""What became of what administrators asked for?"""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.frames import Records, ask, frame, only

_REASSIGNMENTS = """
WITH messages AS (
    SELECT history, life, seq, time_ms, action, controller_epoch, action LIKE 'reassignment_leader%' AS leads,
           from_json(detail, 'replicas array<int>, adding array<int>, removing array<int>') AS fields,
           explode(CASE WHEN action = 'reassignment_removed'
                        THEN from_json(get_json_object(detail, '$.partitions'), 'array<string>')
                        ELSE array(get_json_object(detail, '$.partition')) END) AS name
    FROM {main} WHERE kind = 'controller' AND action IN ('handling_reassignment', 'leader_epoch_updated',
        'reassignment_removed', 'reassignment_failed', 'full_assignment_updated', 'reassignment_caught_up',
        'reassignment_leader_outside', 'reassignment_leader_stays', 'reassignment_leader_dead')
), steps AS (  -- `final`: since Kafka 2.4 the assignment is written when a reassignment begins, and when it is done
    SELECT *, action = 'full_assignment_updated' AS updated,
           action = 'full_assignment_updated' AND size(fields.adding) = 0 AND size(fields.removing) = 0
           AND coalesce(last_value(CASE WHEN leads OR action = 'full_assignment_updated' THEN leads END)
                        IGNORE NULLS OVER earlier, false) AS final
    FROM messages
    WINDOW earlier AS (PARTITION BY history, life, name ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), ways AS (  -- whether it goes as in 2.4; a reassignment that was taken up before the history begins is not counted
    SELECT *, NOT updated AND count_if(updated) OVER (PARTITION BY history, life, name) = 0 OR coalesce(last_value(
               CASE WHEN updated OR action = 'handling_reassignment' THEN NOT updated END) IGNORE NULLS OVER (
               PARTITION BY history, life, name ORDER BY seq {so_far}), false) AS old
    FROM steps
), ends AS (
    SELECT *, CASE WHEN old THEN action IN ('reassignment_removed', 'reassignment_failed') ELSE final END AS ends
    FROM ways
), runs AS (
    SELECT *, count_if(ends) OVER (PARTITION BY history, life, name ORDER BY seq
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run FROM ends
), turns AS (  -- since 2.4 a new controller goes on without a word about it
    SELECT *, CASE WHEN old THEN action = 'handling_reassignment' WHEN updated THEN NOT final
                   WHEN action IN ('reassignment_removed', 'reassignment_failed') THEN false
                   ELSE NOT (lag(struct(controller_epoch)) OVER (PARTITION BY history, life, name, run ORDER BY seq)
                             <=> struct(controller_epoch)) END AS taken_up
    FROM runs
)
SELECT history, regexp_extract(name, '(.*)-[0-9]+$', 1) AS topic,
       CAST(regexp_extract(name, '-([0-9]+)$', 1) AS INT) AS partition,
       max_by(array_except(fields.replicas, coalesce(fields.removing, array())),
              CASE WHEN fields.replicas IS NOT NULL THEN seq END) AS replicas,
       min(CASE WHEN taken_up THEN time_ms END) AS start_ms, max(CASE WHEN ends THEN time_ms END) AS end_ms,
       round(max(CASE WHEN ends THEN time_ms END) - min(CASE WHEN taken_up THEN time_ms END), 4) AS duration_ms,
       count_if(taken_up) AS tries, count_if(action = 'leader_epoch_updated') AS extra_epochs
FROM turns GROUP BY history, life, name, run HAVING count_if(taken_up) > 0
"""


def reassignments(records: Records) -> DataFrame:
    """Reassignments of partitions, one row each.

    Columns: `history`, `topic`, `partition`, `replicas` (the new assignment), `start_ms` (a controller took it up),
    `end_ms` (it was taken from the list: done or given up; since Kafka 2.4, the final assignment was written),
    `duration_ms`, `tries` (how often a controller took it up; a new one begins again, and so does another assignment
    for the same partition) and `extra_epochs` (leader epochs that were used up without a new leader). `end_ms` is null
    for one that was stuck when the history ended, or ZooKeeper was wiped.
    Kafka 0.10.2.2, 2.0.1, 2.4.1: controller/KafkaController.scala, onPartitionReassignment
    """
    return ask(_REASSIGNMENTS, main=only(frame(records), "section = 'main'"))


_DELETIONS = """
WITH messages AS (
    SELECT history, life, seq, time_ms,
           CASE WHEN action IN ('deletion_started', 'deletion_completed') THEN action ELSE 'asked' END AS action,
           explode(CASE WHEN action IN ('starting_deletion', 'topics_to_be_deleted')
                        THEN from_json(get_json_object(detail, '$.topics'), 'array<string>')
                        ELSE array(coalesce(topic, get_json_object(detail, '$.topic'))) END) AS topic
    FROM {main}
    WHERE (kind = 'event' AND actor = 'admin' AND action = 'delete_topic')
       OR (kind = 'controller' AND action IN ('starting_deletion', 'topics_to_be_deleted', 'deletion_started',
                                              'deletion_completed'))
), runs AS (
    SELECT *, count_if(action = 'deletion_completed') OVER (
               PARTITION BY history, life, topic ORDER BY seq
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run
    FROM messages
), reported AS (
    SELECT history, topic, min(CASE WHEN action = 'asked' THEN time_ms END) AS asked_ms,
           min(CASE WHEN action = 'deletion_started' THEN time_ms END) AS started_ms,
           max(CASE WHEN action = 'deletion_completed' THEN time_ms END) AS completed_ms,
           count_if(action = 'deletion_started') AS tries
    FROM runs GROUP BY history, life, topic, run
)
SELECT *, round(completed_ms - coalesce(asked_ms, started_ms), 4) AS duration_ms FROM reported
"""


def deletions(records: Records) -> DataFrame:
    """Deletions of topics, one row each.

    Columns: `history`, `topic`, `asked_ms` (where only logs exist, the first time that a controller says it must be
    deleted), `started_ms` (null if no controller ever began), `completed_ms` (null if it never finished), `tries` (how
    often it was begun) and `duration_ms` (from `asked_ms`, or else the start, to the end).
    """
    return ask(_DELETIONS, main=only(frame(records), "section = 'main'"))
