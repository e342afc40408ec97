"""Controllers: how long a new one takes, the requests that one sends, the outcome of administrators' requests."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafka_ctl.history.questions.departures import DEPARTURES
from kafka_ctl.history.questions.frames import Records, ask, nest

_FAILOVER = nest(
    """
WITH messages AS (
    SELECT history, life, actor, seq, time_ms, action, controller_epoch AS epoch, broker,
           CAST(get_json_object(detail, '$.epoch') AS INT) AS announced,
           CAST(get_json_object(detail, '$.partitions') AS INT) AS counted,
           action = 'elected' OR (action = 'epoch_incremented' AND coalesce(lag(action) OVER (
               PARTITION BY history, life, actor ORDER BY seq) != 'elected', true)) AS begins
    FROM {main} WHERE kind = 'controller' AND action IN ('elected', 'epoch_incremented', 'initializing_context',
        'initializing_replica_state', 'initializing_partition_state', 'partition_states', 'ready', 'resigned')
), terms AS (  -- Kafka 0.10 names the winner in server.log: here its term begins with its epoch
    SELECT *, count_if(begins) OVER (PARTITION BY history, life, actor ORDER BY seq {so_far}) AS term FROM messages
), offices AS (
    SELECT history, life, min(seq) AS seq, max(CASE WHEN begins THEN broker END) AS controller,
           coalesce(min(CASE WHEN begins THEN announced END),
                    min(CASE WHEN action = 'epoch_incremented' THEN epoch END),
                    min(CASE WHEN action = 'ready' THEN epoch END),
                    nullif(min(CASE WHEN begins THEN epoch END), 0)) AS epoch,
           min(CASE WHEN begins THEN time_ms END) AS elected_ms,
           min(CASE WHEN action = 'initializing_context' THEN time_ms END) AS context_ms,
           min(CASE WHEN action = 'initializing_replica_state' THEN time_ms END) AS replicas_ms,
           min(CASE WHEN action = 'initializing_partition_state' THEN time_ms END) AS partitions_ms,
           min(CASE WHEN action = 'partition_states' THEN counted END) AS counted,
           min(CASE WHEN action = 'ready' THEN time_ms END) AS ready_ms,
           min(CASE WHEN action = 'resigned' THEN time_ms END) AS resigned_ms,
           min(CASE WHEN action = 'resigned' THEN seq END) AS resigned_seq
    FROM terms WHERE term > 0 GROUP BY history, life, actor, term
), moves AS (
    SELECT history, life, topic, partition, seq, CAST(target != 'NonExistentPartition' AS INT) AS there
    FROM {main} WHERE kind = 'partition' AND action != 'set' AND error IS NULL
), sizes AS (  -- what existed before the first record is counted when something is heard of it
    SELECT history, life, seq, there - coalesce(lag(there) OVER (
        PARTITION BY history, life, topic, partition ORDER BY seq), 0) AS n FROM moves
), line AS (
    SELECT history AS history, life, seq, 0 AS n, CAST(NULL AS DOUBLE) AS vacant, struct(*) AS f, NULL AS broker
    FROM offices
    UNION ALL SELECT history, life, seq, n, NULL, NULL, NULL FROM sizes WHERE n != 0
    UNION ALL SELECT history, life, resigned_seq, 0, resigned_ms, NULL, NULL FROM offices WHERE resigned_seq IS NOT NULL
    UNION ALL SELECT history, life, cause_seq, 0, at_ms, NULL, broker FROM {departures}
), placed AS (
    SELECT *, last_value(f) IGNORE NULLS OVER earlier AS held, count(f) OVER earlier AS number FROM line
    WINDOW earlier AS (PARTITION BY history, life ORDER BY seq {before})
), counted AS (  -- the office is vacant when its holder resigns or leaves
    SELECT f, sum(n) OVER (PARTITION BY history, life ORDER BY seq {so_far}) AS known, last_value(
               CASE WHEN broker IS NULL OR broker = held.controller THEN vacant END) IGNORE NULLS OVER (
               PARTITION BY history, life, number ORDER BY seq {so_far}) AS vacant_ms,
           CASE WHEN coalesce(f.epoch = held.epoch + 1, true) THEN held.controller END AS previous
    FROM placed
), reported AS (
    SELECT f.*, previous, CASE WHEN previous IS NOT NULL THEN vacant_ms END AS vacant_ms,
           coalesce(counted, known) AS partitions
    FROM (SELECT *, f.counted FROM counted WHERE f IS NOT NULL)
)
SELECT history, controller, epoch, previous, partitions, vacant_ms, elected_ms, ready_ms,
       round(elected_ms - vacant_ms, 4) AS detection_ms, round(context_ms - elected_ms, 4) AS taking_over_ms,
       round(replicas_ms - context_ms, 4) AS reading_ms, round(partitions_ms - replicas_ms, 4) AS replica_ms,
       round(ready_ms - partitions_ms, 4) AS partition_ms, round(ready_ms - elected_ms, 4) AS failover_ms
FROM reported
""",
    departures=DEPARTURES,
)


def failover_time(records: Records) -> DataFrame:
    """Every election of a controller, and how long it took to act, by stages.

    One row each: `history`, `controller`, `epoch` (null if it never had one), `previous` (the controller before, null
    for the first of a cluster, and where epochs between are missing), `partitions` (that existed: as many as the log
    says the partition state machine started with, or those that records named before), `vacant_ms` (when the previous
    one resigned or its broker left, null if unknown), `elected_ms`, `ready_ms`; and the stages: `detection_ms`
    (until elected), `taking_over_ms` (epoch, listeners), `reading_ms` (the state of the cluster, and sending it to the
    brokers), `replica_ms` and `partition_ms` (start of the two state machines), `failover_ms` (all of it after the
    election). A stage that was not reached, or that a log does not have, is null. The controller.log of Kafka 0.10 and
    older does not name the winner of an election: there the epoch counts as its beginning.
    """
    return ask(_FAILOVER, records)


_AMPLIFICATION = """
WITH sent AS (
    SELECT history, cause AS seq, count(topic) AS states, count_if(target = 'sent') AS requests
    FROM {records} WHERE kind = 'request' AND actor LIKE 'controller-%' AND cause IS NOT NULL GROUP BY history, cause
), events AS (
    SELECT history, seq, action AS event FROM {records}
    WHERE kind = 'event' AND target = 'started' AND actor LIKE 'controller-%'
)
SELECT /*+ SHUFFLE_HASH(sent) */ history, event, count(*) AS events,
       sum(coalesce(requests, 0)) AS requests, sum(coalesce(states, 0)) AS states,
       max(coalesce(requests, 0)) AS most_requests, max(coalesce(states, 0)) AS most_states
FROM events LEFT JOIN sent USING (history, seq) GROUP BY history, event
"""


def request_amplification(records: Records) -> DataFrame:
    """The requests that the controller's events cause, by kind of event.

    Columns: `history`, `event` (`BrokerChange`, `ControlledShutdown` ...), `events` (how many were processed),
    `requests` (that left for a broker because of them), `states` (partition states put into requests; one that goes
    to several brokers in an UpdateMetadata counts once), `most_requests` and `most_states` (of a single event).
    Only simulated histories have the event that a request belongs to.
    """
    return ask(_AMPLIFICATION, records)


_REASSIGNMENTS = """
WITH messages AS (
    SELECT history, life, seq, time_ms, action, controller_epoch, action LIKE 'reassignment_leader%' AS leads,
           from_json(detail, 'replicas array<int>, adding array<int>, removing array<int>') AS fields,
           explode(CASE WHEN action = 'reassignment_removed'
                        THEN from_json(detail, 'partitions array<string>').partitions
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
    WINDOW earlier AS (PARTITION BY history, life, name ORDER BY seq {before})
), ways AS (  -- whether it goes as in 2.4; a reassignment that was taken up before the history begins is not counted
    SELECT *, NOT updated AND count_if(updated) OVER (PARTITION BY history, life, name) = 0 OR coalesce(last_value(
               CASE WHEN updated OR action = 'handling_reassignment' THEN NOT updated END) IGNORE NULLS OVER (
               PARTITION BY history, life, name ORDER BY seq {so_far}), false) AS old
    FROM steps
), ends AS (
    SELECT *, CASE WHEN old THEN action IN ('reassignment_removed', 'reassignment_failed') ELSE final END AS ends
    FROM ways
), runs AS (
    SELECT *, count_if(ends) OVER (PARTITION BY history, life, name ORDER BY seq {before}) AS run FROM ends
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
    return ask(_REASSIGNMENTS, records)


_DELETIONS = """
WITH messages AS (
    SELECT history, life, seq, time_ms,
           CASE WHEN action IN ('deletion_started', 'deletion_completed') THEN action ELSE 'asked' END AS action,
           explode(CASE WHEN action IN ('starting_deletion', 'topics_to_be_deleted')
                        THEN from_json(detail, 'topics array<string>').topics
                        ELSE array(coalesce(topic, get_json_object(detail, '$.topic'))) END) AS topic
    FROM {main}
    WHERE (kind = 'event' AND actor = 'admin' AND action = 'delete_topic')
       OR (kind = 'controller' AND action IN ('starting_deletion', 'topics_to_be_deleted', 'deletion_started',
                                              'deletion_completed'))
), runs AS (
    SELECT *, count_if(action = 'deletion_completed') OVER (
               PARTITION BY history, life, topic ORDER BY seq {before}) AS run
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
    return ask(_DELETIONS, records)
