"""CreateTopics and CreatePartitions over the wire: assignments by hand, and requests that only ask.

Motive: Kafka 2.0.1, CreateTopicsRequestTest.scala; AdminClientIntegrationTest.scala, testCreatePartitions
"""

from collections.abc import Iterator
from typing import Any

import pytest
from labs import until_quiet
from tables import tabled
from wire_clients import Asking, eventually, listening

from kafka_ctl import Lab
from kafka_ctl.wire.schema import name_of

kafka = pytest.importorskip("kafka", reason="needs kafka-python")


@pytest.fixture(scope="module", params=["2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param) as opened:
        until_quiet(opened.create_topic, "one", assignment={0: [1, 2]})
        yield opened


def grown(
    lab: Lab,
    topic: str,
    count: int,
    assignments: Any = None,
    only: bool = False,
    timeout: int = 10_000,
    broker: int | None = None,
) -> Any:
    """What the controller, or another broker, answers: the error, and its text."""
    given = None if assignments is None else [{"broker_ids": ids} for ids in assignments]
    with Asking(lab, broker or lab.controller.id) as asked:
        reported = asked.ask(
            "CreatePartitions",
            1,
            timeout=timeout,
            validate_only=only,
            topics=[{"name": topic, "count": count, "assignments": given}],
        )
    (one,) = reported["results"]
    return name_of(one["error_code"]), one["error_message"]


ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"


@pytest.mark.parametrize("only", [True, False])
@tabled
def test_what_cannot_be(lab: Lab, topic: str, count: int, assignments: Any, error: str, text: str, only: bool) -> None:
    before = len(lab.partitions())
    assert grown(lab, topic, count, assignments, only) == (error, text)
    assert len(lab.partitions()) == before


def test_partitions_go_where_they_were_assigned(lab: Lab) -> None:
    until_quiet(lab.create_topic, "grows", assignment={0: [1, 2]})
    assert grown(lab, "grows", 3, [[3, 1], [2, 3]], only=True) == (None, None)
    assert grown(lab, "grows", 2, only=True) == (None, None)
    lab.settle()
    assert [p.replicas for p in lab.partitions() if p.topic == "grows"] == [(1, 2)]
    assert not lab.trace.slice(kind="event", action="add_partitions", topic="grows")
    assert grown(lab, "grows", 3, [[3, 1], [2, 3]]) == (None, None)
    assert [p.replicas for p in lab.partitions() if p.topic == "grows"] == [(1, 2), (3, 1), (2, 3)]
    assert grown(lab, "grows", 4, timeout=0) == ("REQUEST_TIMED_OUT", None)  # it is done all the same
    eventually(lambda: len([p for p in lab.partitions() if p.topic == "grows"]) == 4)


def test_not_while_partitions_move(lab: Lab) -> None:
    until_quiet(lab.create_topic, "moves", assignment={0: [1, 2]})
    lab.slow(3, 4)
    lab.produce("moves", 0)
    lab.reassign({("moves", 0): [1, 3]})
    error, text = grown(lab, "moves", 2)
    assert error == "REASSIGNMENT_IN_PROGRESS"
    by_topic = lab.generation.reassignment.incremental_reassignment
    assert text == f"A partition reassignment is in progress{' for the topic ' + repr('moves') if by_topic else ''}."
    assert grown(lab, "one", 1)[0] == ("INVALID_PARTITIONS" if by_topic else "REASSIGNMENT_IN_PROGRESS")
    lab.heal()
    eventually(lambda: lab.partition("moves", 0).replicas == (1, 3))
    lab.settle()


def test_others_than_the_controller_refuse(lab: Lab) -> None:
    other = next(id for id in (1, 2, 3) if id != lab.controller.id)
    assert grown(lab, "one", 2, only=True, broker=other)[0] == "NOT_CONTROLLER"


def created(lab: Lab, topic: str, **fields: Any) -> Any:
    given = {"name": topic, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | fields
    with Asking(lab, lab.controller.id) as controller:
        (one,) = controller.ask("CreateTopics", 3, timeout=10_000, validate_only=True, topics=[given])["topics"]
    return name_of(one["error_code"]), one["error_message"]


def test_whether_a_topic_could_be_created(lab: Lab) -> None:
    before = len(lab.trace.slice(kind="event", action="create_topic"))
    assert created(lab, "fine") == (None, None)
    assert created(lab, "one") == ("TOPIC_ALREADY_EXISTS", "Topic 'one' already exists.")
    assert created(lab, "fine", replication_factor=4)[0] == "INVALID_REPLICATION_FACTOR"
    assert created(lab, "fine", num_partitions=0)[0] == "INVALID_PARTITIONS"
    assert created(lab, "a b")[0] == "INVALID_TOPIC"
    wrong = "INVALID_CONFIG" if lab.generation.name == "2.4" else "UNKNOWN_SERVER_ERROR"  # KAFKA-7409
    assert created(lab, "fine", configs=[{"name": "min.insync.replicas", "value": "0"}])[0] == wrong
    assigned = [{"partition_index": 0, "broker_ids": [1, 1]}]
    assert created(lab, "fine", num_partitions=-1, replication_factor=-1, assignments=assigned)[0] == ASSIGNMENT
    lab.settle()
    assert "fine" not in {p.topic for p in lab.partitions()}
    assert len(lab.trace.slice(kind="event", action="create_topic")) == before


def test_kafka_pythons_admin_does_so_too(lab: Lab) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=lab.bootstrap_servers.split(","))
    try:
        until_quiet(lab.create_topic, "wide", assignment={0: [1, 2]})
        admin.create_partitions({"wide": kafka.admin.NewPartitions(2, [[3, 2]])}, validate_only=True)
        assert len([p for p in lab.partitions() if p.topic == "wide"]) == 1
        admin.create_partitions({"wide": kafka.admin.NewPartitions(2, [[3, 2]])})
        eventually(lambda: [p.replicas for p in lab.partitions() if p.topic == "wide"] == [(1, 2), (3, 2)])
    finally:
        admin.close()


def test_several_ask_for_a_topic_that_nobody_has_made(lab: Lab) -> None:
    """Whoever is second finds it made: LEADER_NOT_AVAILABLE until it has leaders, TOPIC_ALREADY_EXISTS for an
    administrator.

    Kafka 2.0.1: server/KafkaApis.scala, createTopic; zk/AdminZkClient.scala, writeTopicPartitionAssignment
    """
    names = [f"sudden-{number}" for number in range(10)]
    with Asking(lab, 1) as first, Asking(lab, 2) as second, Asking(lab, lab.controller.id) as controller:
        for name in names:
            topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
            for broker in (first, second):
                broker.send("Metadata", 4, topics=[{"name": name}], allow_auto_topic_creation=True)
            controller.send("CreateTopics", 3, timeout=10_000, validate_only=False, topics=[topic])
            errors = {name_of(broker.receive()["topics"][0]["error_code"]) for broker in (first, second)}
            assert errors <= {"LEADER_NOT_AVAILABLE", None}
            error = name_of(controller.receive()["topics"][0]["error_code"])
            assert error in (None, "TOPIC_ALREADY_EXISTS")
    lab.settle()  # raises what a broker has died of
    assert [len([p for p in lab.partitions() if p.topic == name]) for name in names] == [1] * 10
