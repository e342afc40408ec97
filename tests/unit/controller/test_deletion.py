"""Topic deletion: what is sent, what halts it, what resumes it, and that it survives its controller."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from labs import acting, by_hand, play, settled, until_quiet
from prose import Prose, refuses
from tables import tabled

from kafka_ctl import Generation, Lab
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.errors import ApiException, BadInput, UnknownName
from kafka_ctl.kafka_log.write import kafka_log
from kafka_ctl.replica import NON_EXISTENT
from kafka_ctl.requests import Response, StopReplicaRequest
from kafka_ctl.zookeeper.store import Create

SETTINGS = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True}
ORDERS = ("orders", 0)


def opened(generation: str | Generation, brokers: int = 4, **config: object) -> Lab:
    """Brokers, of which 1 is controller, and two topics; `orders` is on 2 and 3."""
    topics = {"orders": {0: [2, 3], 1: [3, 2]}, "kept": {0: [1, 2]}}
    return settled(generation, topics, brokers, SETTINGS | config)


@pytest.fixture
def lab(generation: str) -> Iterator[Lab]:
    """A lab of this generation: each in turn, or those of a test's own table."""
    with opened(generation) as made:
        yield made


def is_gone(lab: Lab) -> bool:
    """Whether nothing is left of the topic: in ZooKeeper, in the controller, on the brokers."""
    controller = acting(lab)
    known = set(controller.context.topics) | {tp.topic for tp in controller.context.leadership}
    known |= {r.topic for r, state in controller.context.replicas.items() if state is not NON_EXISTENT}
    known |= controller.context.topics_to_be_deleted.keys() | controller.context.topics_ineligible
    known |= {tp.topic for tp in controller.context.partitions_to_be_deleted}
    for broker in lab.world.brokers.values():
        known |= {tp.topic for tp in (*broker.metadata, *broker.hosted)}
    return "orders" not in known and not any("orders" in path for path in lab.znodes())


def test_nothing_is_left(lab: Lab) -> None:
    until_quiet(lab.delete_topic, "orders")
    assert is_gone(lab)
    assert [p.topic for p in lab.partitions()] == ["kept"]
    lab.create_topic("orders", assignment={0: [3, 4]})  # the name is free again
    lab.settle()
    assert lab.partition(*ORDERS).leader == 3


def test_the_order_of_things(lab: Lab, generation: str) -> None:
    """Forget it, stop it, delete it, and only then away with it."""
    news = play(lab, "delete_topic orders; settle")
    words = []
    for r in news:
        if r.topic != "orders":
            words += [f"delete {r.path}"] if r.kind == "zk" and r.action == "delete" and r.actor == "broker-1" else []
        elif r.kind in ("partition", "replica"):
            words.append(f"{r.kind} {r.target}")
        elif r.kind == "request":
            words.append(f"{r.action} {r.leader if r.action == 'UpdateMetadata' else r.detail or 'stop'}")
    first = [word for n, word in enumerate(words) if word not in words[:n]]
    partitions = ["partition OfflinePartition", "partition NonExistentPartition"]
    metadata = ["UpdateMetadata -2"]
    replicas = [
        "replica OfflineReplica",
        "StopReplica stop",
        "replica ReplicaDeletionStarted",
        "StopReplica delete",
        "replica ReplicaDeletionSuccessful",
        "replica NonExistentReplica",
    ]
    early = generation == "2.4"  # KAFKA-6753
    expected = partitions * early + metadata + replicas + partitions * (not early)
    assert [word for word in first if not word.startswith("delete")] == expected
    removed = [word.removeprefix("delete ") for word in words if word.startswith("delete")]
    assert removed[-3:] == ["/brokers/topics/orders", "/config/topics/orders", "/admin/delete_topics/orders"]
    states = f"/brokers/topics/orders/partitions/{0}/state"
    assert removed.index(states) < removed.index("/brokers/topics/orders")


@tabled
def test_stop_replica_requests_to_one_broker(lab: Lab, expected: int) -> None:
    """Two replicas of the topic are on broker 2."""
    news = play(lab, "delete_topic orders; settle")
    sent = Counter(r.broker for r in news if r.action == "StopReplica" and r.target == "sent")
    assert sent == {2: expected, 3: expected}


# Switched off, unknown, asked twice


def test_the_request_to_delete_a_topic_that_is_gone(lab: Lab, generation: str) -> None:
    """A controller that dies between the last two znodes of a deletion leaves it; the next one takes it over.

    In 0.10 the delete-topics thread ends at it, and later topics wait for the next controller, as in 0.10.2.2.
    Kafka 0.10.2.2: controller/PartitionStateMachine.scala, deregisterPartitionChangeListener; 2.0.1:
    controller/KafkaController.scala, unregisterPartitionModificationsHandlers
    """
    until_quiet(lab.at_once, ["delete_controller", "write_znode /admin/delete_topics/ghost ''"])
    play(lab, "delete_topic orders; settle")
    ended = [json.loads(r.detail or "")["error"] for r in lab.trace.slice(action="thread_died")]
    assert ended == ["key not found: ghost"] * (generation == "0.10")
    assert is_gone(lab) == (generation != "0.10")
    assert "/admin/delete_topics/ghost" not in lab.znodes()
    until_quiet(lab.delete_controller)
    assert is_gone(lab)


def test_a_deletion_that_is_switched_off_is_forgotten(generation: str) -> None:
    with opened(generation, **{"delete.topic.enable": False}) as lab:
        since = len(lab.trace)
        logged = lab.delete_topic("orders")
        assert logged == (
            "Topic orders is marked for deletion.\n"
            "Note: This will have no impact if delete.topic.enable is not set to true."
        )
        lab.settle()
        assert "/admin/delete_topics/orders" not in lab.znodes()
        assert lab.partition(*ORDERS).leader == 2
        assert [r.action for r in lab.trace[since:] if r.action == "deletion_disabled"]


FORGOTTEN = {
    "0.10": (
        "[DeleteTopicsListener on Controller {}]: Removing /admin/delete_topics/orders since delete topic is disabled",
        "[Topic Deletion Manager {}], Removing /admin/delete_topics/orders since delete topic is disabled",
    ),
    "2.0": (
        "[Controller id={}] Removing Set(orders) since delete topic is disabled",
        "[Topic Deletion Manager {}], Removing Set(orders) since delete topic is disabled",
    ),
    "2.4": (
        "[Controller id={}] Removing Set(orders) since delete topic is disabled",
        "[Topic Deletion Manager {}] Removing Set(orders) since delete topic is disabled",
    ),
}
"""What the controller logs of a request for a deletion that is switched off: when it comes, and at failover."""


def test_a_request_that_is_forgotten_is_logged_when_it_comes_and_at_failover(generation: str) -> None:
    with opened(generation, **{"delete.topic.enable": False}) as lab:
        until_quiet(lab.delete_topic, "orders")
        first = lab.controller
        lab.kill(first.id)
        lab.delete_topic("orders")  # while there is no controller
        assert "/admin/delete_topics/orders" in lab.znodes()
        lab.settle()
        assert "/admin/delete_topics/orders" not in lab.znodes()
        assert lab.partition(*ORDERS).leader in (2, 3)
        removing = [
            line.partition(" INFO ")[2].rpartition(" (")[0]
            for line in kafka_log(lab.trace, "controller", generation).splitlines()
            if "orders" in line and "since delete topic is disabled" in line
        ]
        listens, manages = FORGOTTEN[generation]
        assert removing == [listens.format(first.id), manages.format(lab.controller.id)]


def test_0_10_does_not_delete_unless_reported_to() -> None:
    with settled("0.10", {"orders": {0: [1, 2]}}, 2, {}) as lab:
        until_quiet(lab.delete_topic, "orders")
        assert lab.partition(*ORDERS).leader == 1


def test_what_the_tool_refuses(prose: Prose, lab: Lab) -> None:
    play(lab, "kill 3; settle; delete_topic orders; settle")
    refuses(BadInput, "topic orders is already marked for deletion", lab.delete_topic, "orders")
    refuses(BadInput, r"Topic 'orders' already exists\.", lab.create_topic, "orders")
    prose.refuses(UnknownName, lab.delete_topic, "nowhere")


def test_requests_for_unknown_topics_are_removed(lab: Lab) -> None:
    by_hand(lab, Create("/admin/delete_topics/nowhere"))
    news = play(lab, "settle")
    assert "/admin/delete_topics/nowhere" not in lab.znodes()
    unknown = [json.loads(r.detail or "") for r in news if r.action == "deleting_unknown_topics"]
    assert unknown == [{"topics": ["nowhere"]}]


# What halts it


def test_it_waits_for_a_dead_broker(lab: Lab, generation: str) -> None:
    play(lab, "kill 3; settle; delete_topic orders; settle")
    assert "/admin/delete_topics/orders" in lab.znodes()
    halted = [json.loads(r.detail or "")["topics"] for r in lab.trace if r.action == "deletion_halted"]
    assert set(map(tuple, halted)) == {("orders",)}
    states = {(r.partition, r.broker): r.state for r in lab.replicas() if r.topic == "orders"}
    assert {states[n, 2] for n in (0, 1)} == {"ReplicaDeletionSuccessful"}
    assert {states[n, 3] for n in (0, 1)} == {"OfflineReplica"}
    ineligible = [r for r in lab.trace if r.target == "ReplicaDeletionIneligible" and r.broker == 3]
    # 0.10 and 2.0 ask for a move that their tables do not have, and say so at each attempt
    assert {r.action for r in ineligible} == {"give_up" if generation == "2.4" else "refuse"}
    until_quiet(lab.start, 3)
    assert is_gone(lab)


def test_a_broker_that_dies_in_the_middle_makes_it_wait(lab: Lab) -> None:
    lab.delete_topic("orders")
    lab.run_until(lambda: any(r.state == "ReplicaDeletionStarted" and r.broker == 3 for r in lab.replicas()), limit=1)
    until_quiet(lab.kill, 3)
    if not is_gone(lab):
        assert "/admin/delete_topics/orders" in lab.znodes()
        until_quiet(lab.start, 3)
    assert is_gone(lab)


def test_it_does_not_wait_for_a_running_reassignment(generation: str) -> None:
    """Kafka means it to, but marks the topic before it is queued, and so in vain; what it waits for is the target."""
    with opened(generation, brokers=5) as lab:
        until_quiet(lab.kill, 5)
        until_quiet(lab.reassign, {ORDERS: [2, 5]}, through="zookeeper")
        news = play(lab, "delete_topic orders; settle")
        halted = [r for r in news if r.action == "deletion_halted"]
        assert {json.loads(r.detail or "")["reason"] for r in halted} == {"offline replicas"}
        assert not is_gone(lab)
        until_quiet(lab.start, 5)
        assert {p.topic for p in lab.partitions()} == {r.topic for r in lab.replicas()} == {"kept"}
        assert "/admin/reassign_partitions" in lab.znodes()  # nobody is left to take it away


def test_what_is_on_its_way_stands_in_the_restored_assignment() -> None:
    """2.4 restores what the controller knows: the tool that adds partitions writes no adding and removing replicas."""
    with opened("2.4", brokers=5) as lab:
        until_quiet(lab.kill, 5)
        lab.reassign({ORDERS: [2, 5]}, through="zookeeper")
        play(lab, "delete_topic orders; settle; add_partitions orders 3; settle")
        data = json.loads(lab.znodes()["/brokers/topics/orders"][0])
        assert data["partitions"] == {"0": [2, 5, 3], "1": [3, 2]}
        assert (data["adding_replicas"], data["removing_replicas"]) == ({"0": [5]}, {"0": [3]})


def test_a_topic_that_is_queued_first_waits_for_its_reassignment(generation: str) -> None:
    """The order of two calls: queued first, the topic is halted, deleted after the move, and nothing is left."""
    waits = Generation(generation).but(deletion_waits_for_reassignment=True)
    with opened(waits, brokers=5) as lab:
        lab.slow(5, 8)
        lab.reassign({ORDERS: [2, 5]}, through="zookeeper")
        lab.run_for(0.1)
        news = play(lab, "delete_topic orders; run_for 7")
        assert "/admin/delete_topics/orders" in lab.znodes()
        halted = news.slice(kind="controller", action="deletion_halted")
        assert "topic reassignment in progress" in halted.text()
        lab.settle()
        assert is_gone(lab) and "/admin/reassign_partitions" not in lab.znodes()
        assert {v.invariant for v in lab.violations} <= ({"I12"} if generation == "0.10" else set())


def test_each_topic_that_waits_is_halted_by_itself(generation: str) -> None:
    """Kafka 0.10.2.2, 2.0.1, 2.4.1: markTopicIneligibleForDeletion(Set(topic)) for each topic."""
    waits = Generation(generation).but(deletion_waits_for_reassignment=True)
    with opened(waits, brokers=5) as lab:
        lab.slow(5, 8)
        lab.reassign({ORDERS: [2, 5], ("kept", 0): [1, 5]}, through="zookeeper")
        lab.run_for(0.1)
        by_hand(lab, Create("/admin/delete_topics/kept", b""), Create("/admin/delete_topics/orders", b""))
        lab.run_for(1)
        halted = [json.loads(r.detail or "")["topics"] for r in lab.trace.slice(action="deletion_halted")]
        assert {tuple(topics) for topics in halted} == {("kept",), ("orders",)}
        lab.settle()


def test_a_topic_to_be_deleted_that_comes_back_with_a_new_partition() -> None:
    """2.4 has no set of partitions to be deleted: it asks for the topic.

    Kafka 2.4.1: controller/ControllerChannelManager.scala, addUpdateMetadataRequestForBrokers
    """
    with opened("2.4") as lab:
        play(lab, "kill 3; settle; delete_topic orders; settle")
        lab.world.run(acting(lab).zk.delete_tree("/brokers/topics/orders"))
        lab.settle()
        since = len(lab.trace)
        until_quiet(lab.write_znode, "/brokers/topics/orders", {"version": 1, "partitions": {"0": [2], "2": [2]}})
        sent = lab.trace.slice(since, kind="request", action="UpdateMetadata", topic="orders")
        assert {(r.partition, r.leader) for r in sent} == {(0, -2), (2, -2)}


def test_a_reassignment_of_a_dying_topic_is_not_begun() -> None:
    with opened("2.4") as lab:
        play(lab, "kill 3; settle; delete_topic orders; settle")
        since = len(lab.trace)
        with pytest.raises(ApiException, match=r"orders-0: UNKNOWN_TOPIC_OR_PARTITION: The partition does not exist\."):
            lab.reassign({ORDERS: [2, 4]})
        assert lab.trace.slice(since, kind="controller", action="reassignment_skipped")
        until_quiet(lab.start, 3)
        assert is_gone(lab)


def test_what_a_broker_could_not_delete_is_tried_again(generation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker answers with an error; the topic is ineligible until something resumes it."""
    real, failing = ReplicaManager.stop_replica, [2]

    def fails(manager: ReplicaManager, request: StopReplicaRequest) -> Response:
        if request.delete and manager.process.id in failing:
            return Response(None, dict.fromkeys(request.partitions, "KAFKA_STORAGE_ERROR"))
        return real(manager, request)

    monkeypatch.setattr(ReplicaManager, "stop_replica", fails)
    with opened(generation) as lab:
        news = play(lab, "delete_topic orders; settle")
        reasons = [json.loads(r.detail or "")["reason"] for r in news if r.action == "deletion_halted"]
        assert set(reasons) == {"replica deletion failure"}
        assert not is_gone(lab)
        ineligible = {(r.partition, r.broker) for r in lab.replicas() if r.state == "OfflineReplica"}
        assert ineligible == {(0, 2), (1, 2)}  # Ineligible, and set back for the next attempt
        failing.clear()
        play(lab, "shutdown 2; start 2; settle")
        assert is_gone(lab)


def test_0_10_lets_it_wait_for_a_preferred_election() -> None:
    """KAFKA-5107: the election of the topic's partitions is over in no time, but it halts, and it resumes."""
    with opened("0.10") as lab:
        play(lab, "kill 3; settle; delete_topic orders; settle")
        since = len(lab.trace)
        until_quiet(lab.elect_preferred, [("kept", 0)])
        assert not [r for r in lab.trace[since:] if r.action == "deletion_halted"]  # another topic
        until_quiet(lab.elect_preferred, [ORDERS])
        assert [r for r in lab.trace[since:] if r.action == "preferred_deleting"] or not is_gone(lab)


# Partitions added meanwhile


@pytest.mark.parametrize(("generation", "stays"), [("0.10", [0, 1, 2]), ("2.0", [0, 1]), ("2.4", [0, 1])])
def test_partitions_added_to_a_dying_topic(lab: Lab, stays: list[int]) -> None:
    """KAFKA-6612: since 2.0 the assignment is written back as it was; before, the next controller creates them."""
    play(lab, "kill 3; settle; delete_topic orders; settle; add_partitions orders 3; settle")
    refused = [json.loads(r.detail or "") for r in lab.trace if r.action == "partitions_not_added"]
    assert refused == [{"topic": "orders", "partitions": [2]}]
    assert [p.partition for p in lab.partitions() if p.topic == "orders"] == stays
    assert lab.partition(*ORDERS).replicas == (2, 3)


@pytest.mark.parametrize(("generation", "written"), [("0.10", [[]]), ("2.0", []), ("2.4", [])])
def test_0_10_refuses_partitions_of_a_dying_topic_also_if_there_are_none(lab: Lab, written: list) -> None:
    """Kafka 0.10.2.2: controller/PartitionStateMachine.scala, PartitionModificationsListener: for every change."""
    play(lab, "kill 3; settle; delete_topic orders; settle")
    assignment = {"version": 1, "partitions": {"0": [2, 3], "1": [2, 3]}}
    until_quiet(lab.write_znode, "/brokers/topics/orders", assignment)
    refused = [json.loads(r.detail or "")["partitions"] for r in lab.trace.slice(action="partitions_not_added")]
    assert refused == written


# Failover


@pytest.mark.parametrize("moments", range(0, 40, 4))
def test_the_next_controller_completes_it(lab: Lab, moments: int) -> None:
    lab.delete_topic("orders")
    lab.step(moments)
    play(lab, "kill 1; settle; start 1; settle")
    assert is_gone(lab)


@pytest.mark.parametrize("goes", ["kill 1", "delete_controller"])
def test_the_next_controller_waits_as_the_last_one_did(lab: Lab, goes: str) -> None:
    play(lab, f"kill 3; settle; delete_topic orders; settle; {goes}; settle")
    assert not is_gone(lab)
    until_quiet(lab.start, 3)
    assert is_gone(lab)


@pytest.mark.parametrize(("generation", "dying"), [("0.10", {0, 1}), ("2.0", set())])
def test_0_10_names_the_dying_partitions_in_every_metadata_request(lab: Lab, dying: set[int]) -> None:
    """KAFKA-6481; leader -2 removes them from the caches, again and again."""
    play(lab, "kill 3; settle; delete_topic orders; settle")
    since = len(lab.trace)
    until_quiet(lab.create_topic, "other", assignment={0: [1, 2]})
    reported = lab.trace.slice(since, action="UpdateMetadata", topic="orders", leader=-2)
    assert {r.partition for r in reported if r.partition is not None} == dying


@pytest.mark.parametrize(("generation", "least"), [("0.10", 0.1), ("2.0", 0.0), ("2.4", 0.0)])
def test_0_10_waits_for_the_fetch_of_a_stopped_copy(generation: str, least: float) -> None:
    """The fetcher of a leader of whom nothing is followed any more ends when its fetch has returned, and what the
    broker is told next waits for that; in a recording for 264 ms. The leader, who fetches nothing, deletes at once."""
    taken: dict[int, float] = {}
    with settled(generation, {"orders": {0: [1, 2, 3]}}, 3, {"delete.topic.enable": True}) as lab:
        lab.run_for(0.123)
        news = play(lab, "delete_topic orders; settle")
        for r in news:
            if r.action == "stop-replica" and r.broker is not None:
                first = taken.get(r.broker, r.time_ms)
                taken[r.broker] = first if r.detail != "delete" else (r.time_ms - first) / 1000
        assert taken[1] < 0.01
        assert all(least <= taken[follower] < (0.51 if least else 0.01) for follower in (2, 3))
        assert "orders" not in {p.topic for p in lab.partitions()}


def test_a_replica_without_a_state_ends_the_deletions_behind_it_too(lab: Lab, generation: str) -> None:
    """The move of a partition that never had a leader has failed: its new replica is assigned, and has no state.

    Kafka, all three: controller/ReplicaStateMachine.scala, areAllReplicasForTopicDeleted (2.4: areAllReplicasInState)
    """
    until_quiet(lab.kill, 4)
    until_quiet(lab.create_topic, "never", assignment={0: [4]})
    until_quiet(lab.create_topic, "other", assignment={0: [1, 2]})
    until_quiet(lab.reassign, {("never", 0): [3]}, "zookeeper")
    news = play(lab, "delete_topic never; settle; delete_topic other; settle")
    failed = [r.action for r in news if "key not found: [Topic=never,Part" in (r.detail or "")]
    assert failed == (["thread_died"] if generation == "0.10" else ["error_processing"] * 2)
    assert {"/brokers/topics/never", "/brokers/topics/other"} <= lab.znodes().keys()
    if generation == "2.4":
        return  # each next controller fails at the move, which stands in the topic's znode
    play(lab, "start 4; settle; delete_controller; settle")
    assert "/brokers/topics/other" not in lab.znodes()
    assert ("/brokers/topics/never" in lab.znodes()) is (generation == "0.10")  # before KAFKA-6650 it stays Online


@pytest.mark.parametrize(("generation", "answers"), [("2.0", []), ("2.4", [3])])
def test_an_answer_to_a_reassignment_that_finds_a_deletion_under_way(generation: str, answers: list[int]) -> None:
    """Since KAFKA-8294 a late answer about a copy that a move deleted counts, and its replica cannot go on.

    Kafka 2.4.1: controller/ControllerChannelManager.scala, stopReplicaPartitionDeleteResponseCallback
    """
    waits = Generation(generation).but(deletion_waits_for_reassignment=True)
    with opened(waits, brokers=5) as lab:
        lab.slow(5, 8)
        lab.reassign({ORDERS: [2, 5]}, through="zookeeper")
        play(lab, "run_for 0.1; delete_topic orders; settle")
        refused = lab.trace.slice(kind="replica", action="refuse", topic="orders", partition=0)
        assert [r.broker for r in refused if r.target == "ReplicaDeletionSuccessful"] == answers
        assert is_gone(lab)


@pytest.mark.parametrize(("generation", "queued"), [("2.0", 1), ("2.4", 0)])
def test_an_answer_that_names_no_topic_being_deleted_is_no_event(lab: Lab, queued: int) -> None:
    """In 2.4 a broker's refusal has no partitions, and nothing is queued; in 2.0 every answer is an event.

    Kafka 2.4.1: controller/ControllerChannelManager.scala, stopReplicaPartitionDeleteResponseCallback
    """
    acting(lab).deletion_answered(2, Response("STALE_BROKER_EPOCH"))
    lab.settle()
    assert len(lab.trace.slice(action="TopicDeletionStopReplicaResponseReceived", target="queued")) == queued
