"""Znodes that somebody else wrote: what Kafka takes for empty, and what it cannot get over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labs import acting, lab_of, play, process_of, until_quiet
from mutations import mutated
from prose import Prose
from tables import tabled

from kafka_ctl import ConditionNotMet, KafkaCtlError, Lab, TopicPartition
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.partition import ONLINE
from kafka_ctl.zookeeper.znodes import malformed


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_a_blocked_election_is_named(prose: Prose, generation: str) -> None:
    """The brokers go on trying, as Kafka's do; `settle` does not wait for them, and goes on when it is repaired."""
    with Lab(generation=generation) as lab:
        lab.write_znode("/controller_epoch", "junk")
        lab.delete_controller()
        prose.refuses(ConditionNotMet, lab.settle)
        assert lab.now < 60
        prose.refuses(ConditionNotMet, lab.run_until, lambda: lab.controller is not None)
        until_quiet(lab.write_znode, "/controller_epoch", "7")
        assert lab.controller is not None and lab.controller.epoch > 7
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


def test_since_the_epoch_is_read_first_nobody_tries_again() -> None:
    """In 2.4 it fails before there is a `/controller` that could vanish again; whoever starts later competes."""
    with Lab(generation="2.4") as lab:
        lab.write_znode("/controller_epoch", "junk")
        until_quiet(lab.delete_controller)
        assert lab.controller is None
        lab.write_znode("/controller_epoch", "7")
        until_quiet(lab.bounce, 1)
        assert lab.controller == (1, 8)


def test_a_broker_whose_place_is_taken_does_not_start(generation: str) -> None:
    """A znode of no session never goes away, so the broker gives up, as Kafka's does."""
    with Lab(brokers=3, generation=generation) as lab:
        until_quiet(lab.kill, 2)
        lab.write_znode("/brokers/ids/2", "{}")
        lab.delete_znode("/brokers/ids/2")
        until_quiet(lab.start, 2)
        assert lab.brokers[2].state == "running"
        until_quiet(lab.kill, 2)
        lab.write_znode("/brokers/ids/2", "{}")
        until_quiet(lab.start, 2)
        assert lab.brokers[2].state == "down"


def test_what_is_no_json_counts_as_empty(generation: str) -> None:
    """Kafka reads over it. A request for a reassignment that asks for nothing is taken away by 2.0 only."""
    with Lab(generation=generation) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        for path in ("/admin/reassign_partitions", "/brokers/topics/theirs"):
            lab.write_znode(path, "{")
        if generation != "0.10":
            lab.write_znode("/admin/preferred_replica_election", "{")
        until_quiet(lab.write_znode, "/isr_change_notification/isr_change_0000000001", "\N{SNOWMAN}")
        until_quiet(lab.delete_controller)
        assert {p.state for p in lab.partitions()} == {"OnlinePartition"}
        assert lab.controller is not None
        left = [path for path in lab.znodes() if path.startswith(("/admin/", "/isr_change_notification/"))]
        assert left == ["/admin/delete_topics", "/admin/reassign_partitions"][: 1 if generation == "2.0" else 2]


MOVE = {"topic": "orders", "partition": 0, "replicas": [2, 3]}


@pytest.mark.parametrize(
    ("generation", "replicas", "left"), [("0.10", (2, 3), False), ("2.0", (1, 2), False), ("2.4", (1, 2), True)]
)
def test_a_request_with_an_unknown_field_asks_for_nothing_since_1_1(
    generation: str, replicas: tuple[int, ...], left: bool
) -> None:
    """A plan of the tool has `log_dirs`, which the znode does not have.

    Kafka 2.0.1: zk/ZkData.scala, ReassignPartitionsZNode.ReplicaAssignment
    """
    with lab_of("orders", {0: [1, 2]}, generation=generation) as lab:
        plan = {"version": 1, "partitions": [MOVE | {"log_dirs": ["any", "any"]}]}
        until_quiet(lab.write_znode, "/admin/reassign_partitions", plan)
        assert lab.partition("orders", 0).replicas == replicas
        assert ("/admin/reassign_partitions" in lab.znodes()) == left


@pytest.mark.parametrize(("generation", "fails"), [("0.10", False), ("2.0", True), ("2.4", True)])
def test_a_request_without_partitions_stays(generation: str, fails: bool) -> None:
    """The list is null then, and Kafka goes through it.

    Kafka 2.0.1: zk/ZkData.scala, ReassignPartitionsZNode.decode
    """
    with Lab(generation=generation) as lab:
        until_quiet(lab.write_znode, "/admin/reassign_partitions", {"version": 1})
        logged = lab.trace.slice(action="error_processing").text()
        assert ("java.lang.NullPointerException" in logged) == fails
        assert "/admin/reassign_partitions" in lab.znodes()


def test_0_10_cannot_read_a_request_for_elections_that_is_no_json(prose: Prose) -> None:
    """It stays there, and the next controller fails on it."""
    with Lab(generation="0.10") as lab:
        until_quiet(lab.write_znode, "/admin/preferred_replica_election", "{")
        assert lab.trace[-1].action == "PreferredReplicaLeaderElection" and lab.trace[-1].error is not None
        assert lab.controller is not None
        lab.delete_controller()
        prose.refuses(ConditionNotMet, lab.settle)


@pytest.mark.parametrize(("generation", "acts"), [("0.10", True), ("2.0", False), ("2.4", False)])
def test_a_controller_that_is_no_json_is_none_since_1_1(generation: str, acts: bool) -> None:
    """Since then the controller resigns, and no other is elected, as there is a znode. 0.10 cannot read it: it goes on.

    A broker with a new session cannot read it either, and registers all the same.
    """
    with Lab(generation=generation) as lab:
        first = acting(lab)
        until_quiet(lab.write_znode, "/controller", "somebody")
        assert first.is_active == acts
        assert (first.context.epoch, lab.znodes()["/controller_epoch"][0]) == (int(acts), b"1")
        until_quiet(lab.expire_session, next(broker for broker in lab.brokers if broker != first.id))
        assert {b.state for b in lab.brokers.values()} == {"running"}
        assert len([path for path in lab.znodes() if path.startswith("/brokers/ids/")]) == 3


def test_a_controller_that_nobody_understands() -> None:
    """Nobody competes for `/controller` while it is there, and nobody is controller."""
    with Lab() as lab:
        until_quiet(lab.write_znode, "/controller", "somebody")
        assert lab.controller is None and "no controller" in repr(lab)
        until_quiet(lab.delete_controller)
        assert lab.controller is not None


def test_what_is_malformed(prose: Prose) -> None:
    """Only what stops a controller; a znode that Kafka takes for empty is none of these."""
    fine = {"/controller": (b"x", 0, 7), "/brokers/topics/t": (b"{", 0, 0), "/consumers": (b"junk", 0, 0)}
    assert list(malformed(fine)) == []
    prose(*malformed({"/config/topics/t": (b'{"config":3}', 0, 0)}))


WRITTEN = {
    "/controller": '{"version":1,"brokerid":1,"timestamp":"1500000000000"}',
    "/controller_epoch": "5",
    "/brokers/ids/2": '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],'
    '"rack":"r","jmx_port":-1,"host":"h","timestamp":"1500000000000","port":9092,"version":4}',
    "/brokers/ids/7": '{"endpoints":["PLAINTEXT://h:9092"],"version":4}',
    "/brokers/topics/orders": '{"version":2,"partitions":{"0":[1,2],"1":[2,3],"2":[1]},"adding_replicas":{"0":[2]},'
    '"removing_replicas":{"0":[1]}}',
    "/brokers/topics/other": '{"version":1,"partitions":{"0":[1,2]}}',
    "/brokers/topics/orders/partitions/0/state": '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,'
    '"isr":[1,2]}',
    "/admin/reassign_partitions": '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,3]}]}',
    "/admin/preferred_replica_election": '{"version":1,"partitions":[{"topic":"orders","partition":0}]}',
    "/admin/delete_topics/orders": "{}",
    "/config/topics/orders": '{"version":1,"config":{"unclean.leader.election.enable":"true"}}',
    "/config/changes/config_change_0000000005": '{"version":2,"entity_path":"topics/orders"}',
    "/isr_change_notification/isr_change_0000000009": '{"version":1,"partitions":[{"topic":"orders","partition":0}]}',
    "/log_dir_event_notification/log_dir_event_0000000009": '{"version":1,"broker":1,"event":1}',
    "/cluster/id": '{"version":"1","id":"vQ0wAwXZSoWnW5yPVOWp2A"}',
}
"""The znodes that controllers and brokers read, as somebody may have written them."""


def carried_out(*commands: Callable[[], object]) -> None:
    """Each command comes to its end, or says in one sentence why it cannot."""
    for command in commands:
        try:
            command()
        except KafkaCtlError as error:
            reported = str(error)
            if not reported:
                raise


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(sorted(WRITTEN)), st.sampled_from(sorted(GENERATIONS)))
def test_whatever_somebody_wrote(data: st.DataObject, path: str, generation: str) -> None:
    """Failovers, failures, requests and looks at the lab go on, and time does not run away."""
    content = data.draw(mutated(WRITTEN[path], most=2))
    with lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=3, generation=generation, seed=1) as lab:
        carried_out(
            lambda: lab.write_znode(path, content),
            lambda: lab.settle(100),
            lab.delete_controller,
            lambda: lab.settle(100),
            lambda: lab.kill(2),
            lambda: lab.settle(100),
            lambda: lab.start(2),
            lambda: lab.delete_topic("orders"),
            lambda: lab.settle(100),
            lab.partitions,
            lambda: repr(lab),
            lambda: lab.trace.text("all"),
            lambda: lab.trace.kafka_log("controller"),
            lambda: lab.player("cluster"),
            lambda: lab.player("zookeeper"),
        )
        assert lab.now < 1000


@contextmanager
def without_leader(generation: str, data: str) -> Iterator[tuple[Lab, int]]:
    """A lab whose leader of three partitions has died, with this `state` of orders-1, and the first record of that.

    At the end the `state` is repaired, and the next controller elects a leader for each partition.
    """
    with Lab(brokers=3, generation=generation, seed=1, config={"auto.leader.rebalance.enable": False}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={n: [1, 2] for n in range(3)})
        if lab.controller is not None and lab.controller.id == 1:
            play(lab, "bounce 1; settle; elect_preferred; settle")
        path, seen = "/brokers/topics/orders/partitions/1/state", len(lab.trace)
        good = lab.znodes()[path][0].decode()
        lab.write_znode(path, data)
        until_quiet(lab.kill, 1)
        yield lab, seen
        until_quiet(lab.write_znode, path, good)
        until_quiet(lab.delete_controller)
        assert [p.leader for p in lab.partitions()] == [2, 2, 2]


@tabled
def test_a_malformed_state_ends_the_moves_of_its_batch(generation: str, data: str, led: list[int], ends: bool) -> None:
    """The other partitions get no leader either, until it is repaired and the next controller elects.

    The replicas of the broker stay Online for the same reason, and the cache keeps the dead leader. No move is refused
    by itself.
    Kafka 2.0.1: controller/PartitionStateMachine.scala, doElectLeaderForPartitions, and ReplicaStateMachine.scala,
    getTopicPartitionStatesFromZk: only the read is in a `try`, and zk/ZkData.scala, TopicPartitionStateZNode.decode,
    throws JsonMappingException; both machines' handleStateChanges catch it. 2.4.1: the same.
    """
    with without_leader(generation, data) as (lab, seen):
        context = acting(lab).context
        assert [context.leadership[tp].leader for tp in sorted(context.leadership)] == led
        for kind, message in (("partition", "error_moving_partitions"), ("replica", "error_moving_replicas")):
            refused = lab.trace.slice(seen, kind=kind, action="refuse")
            assert (len(refused), len(lab.trace.slice(seen, action=message))) == ((0, 1) if ends else (1, 0))


@pytest.mark.parametrize(("generation", "led", "ends"), [("0.10", 2, False), ("2.0", -1, True), ("2.4", 2, False)])
def test_a_state_without_json_ends_the_election_of_its_batch(generation: str, led: int, ends: bool) -> None:
    """The others are Offline until the next election. The replicas are moved: they only miss the state.

    Kafka 2.0.1: controller/PartitionStateMachine.scala, doElectLeaderForPartitions: `failedElections` has the
    partition, then `.get` of its None throws NoSuchElementException, and handleStateChanges logs it. Since
    apache/kafka#6944 (2.4.0) there is no `.get`.
    """
    with without_leader(generation, "{") as (lab, seen):
        assert [lab.partition("orders", n).leader for n in (0, 2)] == [led, led]
        assert len(lab.trace.slice(seen, kind="replica", action="refuse")) == 1
        assert len(lab.trace.slice(seen, kind="partition", action="refuse")) == (0 if ends else 1)
        assert len(lab.trace.slice(seen, action="error_moving_partitions")) == ends
        lines = lab.trace[seen:].kafka_log("controller").splitlines()
        assert ("java.util.NoSuchElementException: None.get" in lines) == ends


def test_a_state_without_json_leaves_the_batch_half_filled() -> None:
    """New partitions come first: 2.0 never sends their requests, and this controller can begin no other batch."""
    with Lab(brokers=3, generation="2.0", seed=1, config={"auto.leader.rebalance.enable": False}) as lab:
        if lab.controller is not None and lab.controller.id == 2:
            play(lab, "bounce 2; settle")
        until_quiet(lab.create_topic, "orders", assignment={0: [2]})
        until_quiet(lab.kill, 2)
        lab.write_znode("/brokers/topics/orders/partitions/0/state", "{")
        until_quiet(lab.create_topic, "zebra", assignment={0: [2]})
        seen = len(lab.trace)
        until_quiet(lab.start, 2)
        until_quiet(lab.kill, 3)
        problems = [r.detail or "" for r in lab.trace[seen:] if r.action.startswith("error_moving_")]
        assert "None.get" in problems[0] and all("batch is not empty" in problem for problem in problems[1:])
        assert len(problems) > 1
        assert acting(lab).context.partitions[TopicPartition("zebra", 0)] == ONLINE
        assert TopicPartition("zebra", 0) not in process_of(lab, 2).hosted
