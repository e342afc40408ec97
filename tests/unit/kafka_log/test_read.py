"""Lines of Kafka's logs in every generation's spelling, read into the trace's terms."""

import json

import pytest
from tables import tabled

from kafka_ctl.kafka_log.read import LogLine, parse_line, parse_lines

STAMP = "[2019-03-04 05:06:07,089]"


def read(text, logger="state.change.logger", level="TRACE"):
    line = parse_line(f"{STAMP} {level} {text} ({logger})\n")
    assert isinstance(line, LogLine)
    return line


def reported(line, *names):
    return tuple(getattr(line, name) for name in names)


def test_time_level_and_logger_are_read_in_utc():
    line = read("[Controller id=4] Resigned", "kafka.controller.KafkaController", "INFO")
    assert reported(line, "time", "level", "logger") == (1551675967089, "INFO", "kafka.controller.KafkaController")
    assert reported(line, "actor", "kind", "action") == ("controller-4", "controller", "resigned")


@tabled
def test_both_spellings_of_a_partition(text, topic, partition):
    line = read(text)
    assert reported(line, "kind", "action", "topic", "partition") == ("partition", "mark", topic, partition)
    assert reported(line, "source", "target", "controller_epoch") == ("OnlinePartition", "OfflinePartition", 7)


@pytest.mark.parametrize("assigned", ["8,9", "8"])
def test_a_new_partition_names_its_replicas(assigned):
    line = read(
        f"[Controller id=4 epoch=7] Changed partition t-0 state from NonExistentPartition to NewPartition with "
        f"assigned replicas {assigned}"
    )
    assert reported(line, "action", "replicas") == ("assign", tuple(map(int, assigned.split(","))))


@tabled
def test_an_election_tells_what_the_generation_logs(text, expected):
    line = read(text)
    assert line.action == "elect"
    assert reported(line, "leader", "isr", "leader_epoch", "zk_version") == expected


def test_a_replica_moves():
    for text in (
        "Controller 4 epoch 7 changed state of replica 8 for partition [t,0] from NewReplica to OnlineReplica",
        "[Controller id=4 epoch=7] Changed state of replica 8 for partition t-0 from NewReplica to OnlineReplica",
    ):
        line = read(text)
        assert reported(line, "kind", "action", "broker", "topic", "partition") == ("replica", "join", 8, "t", 0)


@tabled
def test_a_leader_and_isr_request(text, version, replicas, new):
    line = read(text)
    assert reported(line, "kind", "action", "broker", "topic", "partition") == ("request", "LeaderAndIsr", 8, "t", 0)
    assert reported(line, "leader", "isr", "leader_epoch", "controller_epoch") == (9, (9, 8), 3, 6)
    assert reported(line, "zk_version", "replicas", "detail") == (version, replicas, new)


@tabled
def test_an_update_metadata_request(text, detail):
    line = read(text)
    assert reported(line, "action", "topic", "leader", "isr", "detail") == ("UpdateMetadata", "t", -2, (9,), detail)


def test_one_line_stops_several_replicas():
    line = read(
        "The stop replica request (delete = true) sent to broker 8 is [Topic=a-b,Partition=0,Replica=8],"
        "[Topic=a.b,Partition=11,Replica=8]",
        "kafka.controller.ControllerBrokerRequestBatch",
        "DEBUG",
    )
    assert reported(line, "kind", "action", "broker", "detail") == ("request", "StopReplica", 8, "delete")
    assert line.partitions == (("a-b", 0), ("a.b", 11))
    later = read(
        "[Controller id=4 epoch=7] Sending StopReplica request StopReplicaPartitionState(partitionIndex=0, "
        "leaderEpoch=3, deletePartition=true) to broker 8 for partition t-0"
    )
    assert reported(later, "action", "broker", "topic", "leader_epoch", "detail") == (
        "StopReplica",
        8,
        "t",
        3,
        "delete",
    )


def test_responses_name_their_request_since_1_0():
    old = read(
        "Controller 4 epoch 7 received response {error_code=11} for a request sent to broker h:9092 (id: 8 rack: null)"
    )
    assert reported(old, "kind", "action", "broker", "error") == ("response", "other", 8, "11")
    new = read(
        "[Controller id=4 epoch=7] Received response {error_code=0} for request STOP_REPLICA with correlation id 31 "
        "sent to broker h:9092 (id: 8 rack: r1)"
    )
    assert reported(new, "action", "broker", "error", "detail") == ("StopReplica", 8, None, "correlation_id=31")


def test_what_a_broker_received_names_its_partition_in_or_after_the_state():
    inside = read(
        "[Broker id=8] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t.u', partitionIndex=3, "
        "controllerEpoch=6, leader=9, leaderEpoch=3, isr=[9], zkVersion=5, replicas=[9], addingReplicas=[], "
        "removingReplicas=[], isNew=false) correlation id 31 from controller 4 epoch 7"
    )
    after = read(
        "Broker 8 received LeaderAndIsr request PartitionState(controllerEpoch=6, leader=9, leaderEpoch=3, isr=[9], "
        "zkVersion=5, replicas=[9]) correlation id 31 from controller 4 epoch 7 for partition [t.u,3]"
    )
    for line in (inside, after):
        assert reported(line, "actor", "kind", "action", "broker") == ("broker-8", "broker", "received", 8)
        assert reported(line, "topic", "partition", "leader", "zk_version", "replicas") == ("t.u", 3, 9, 5, (9,))


@tabled
def test_refused_moves(text, kind, broker):
    line = read(text, level="ERROR")
    assert reported(line, "kind", "action", "broker", "topic", "error") == (
        kind,
        "refuse",
        broker,
        "t",
        "StateChangeFailed",
    )


@tabled
def test_the_controllers_own_log(text, action, words):
    line = read(text, "kafka.controller.KafkaController", "INFO")
    assert reported(line, "actor", "kind", "action") == ("controller-4", "controller", action)
    assert json.loads(line.detail) == words


def test_unknown_lines_keep_their_text_and_stack_traces_are_no_lines():
    line = read("[Controller id=4] Sing a song", "kafka.controller.KafkaController", "INFO")
    assert reported(line, "actor", "action", "detail") == ("controller-4", "other", "Sing a song")
    assert parse_line("\tat kafka.controller.Foo.bar(Foo.scala:1)") is None
    assert parse_line("kafka.common.StateChangeFailedException: no (state.change.logger)") is None
    assert parse_line("") is None


def test_a_line_without_an_actor_is_the_last_controllers():
    texts = [
        f"{STAMP} INFO [Controller id=4] Epoch incremented to 7 (kafka.controller.KafkaController)",
        "\tat a.stack.Trace",
        f"{STAMP} TRACE [Broker id=4] Deleted partition t-0 from metadata cache in response to UpdateMetadata request "
        "sent by controller 4 epoch 7 with correlation id 2 (state.change.logger)",
        f"{STAMP} DEBUG The stop replica request (delete = false) sent to broker 8 is  "
        f"(kafka.controller.ControllerBrokerRequestBatch)",
    ]
    first, second, third = parse_lines(texts)
    assert reported(first, "actor", "controller_epoch") == ("controller-4", 7)
    assert reported(second, "actor", "action") == ("broker-4", "uncached")
    assert reported(third, "actor", "controller_epoch", "partitions") == ("controller-4", 7, ())
