"""The gauges of controllers and brokers, as Kafka computes them: tables of situations.

Kafka 0.10.2.2, 2.0.1, 2.4.1: controller/KafkaController.scala, newGauge, updateMetrics; server/ReplicaManager.scala
"""

from collections.abc import Iterator
from typing import Any

import pytest
from labs import acting, play, process_of, settled, until_quiet
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.cluster import ReplicaAssignment, TopicPartition
from kafka_ctl.controller.gauges import COUNTS
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.lab.metrics import METRICS, REPLICA_MANAGER, Meter, Timer
from kafka_ctl.partition import OFFLINE as OFFLINE_STATE
from kafka_ctl.replica import INELIGIBLE, SUCCESSFUL
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.requests import StopReplicaRequest

CALM = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True, "unclean.leader.election.enable": False}
OFFLINE, IMBALANCE = "OfflinePartitionsCount", "PreferredReplicaImbalanceCount"
TOPICS, PARTITIONS = "GlobalTopicCount", "GlobalPartitionCount"


def cluster(generation: str | Generation, **config: Any) -> Lab:
    """Brokers of which 1 is controller, with a topic of three partitions, led by 1, 2 and 3."""
    return settled(generation, {"orders": {0: [1, 2], 1: [2, 3], 2: [3, 1]}}, 3, CALM | config)


@pytest.fixture
def lab(generation: str) -> Iterator[Lab]:
    """A lab of this generation: each in turn, or those of a test's own table."""
    with cluster(generation) as made:
        yield made


def shown(lab: Lab, broker: int, *names: str) -> tuple[Any, ...]:
    found = lab.metrics(broker)
    return tuple(found[name] for name in names if name in found)


ALWAYS = {"ActiveControllerCount", "BrokerState", OFFLINE, IMBALANCE, "LeaderCount", "PartitionCount",
          "UnderReplicatedPartitions",
          "IsrShrinksPerSec", "IsrExpandsPerSec", "UncleanLeaderElectionsPerSec",
          *(f"{name},delayedOperation={kind}" for name in ("PurgatorySize", "NumDelayedOperations")
            for kind in ("Produce", "Fetch"))}  # fmt: skip
SINCE_2_0 = {
    "ControllerState",
    TOPICS,
    PARTITIONS,
    "OfflineReplicaCount",
    "UnderMinIsrPartitionCount",
    "EventQueueSize",
    "FailedIsrUpdatesPerSec",
}
SINCE_2_4 = {
    "TopicsToDeleteCount",
    "ReplicasToDeleteCount",
    "TopicsIneligibleToDeleteCount",
    "ReplicasIneligibleToDeleteCount",
    "AtMinIsrPartitionCount",
}
THERE = {"0.10": ALWAYS, "2.0": ALWAYS | SINCE_2_0, "2.4": ALWAYS | SINCE_2_0 | SINCE_2_4}


def test_each_generation_has_the_metrics_that_kafka_registers(lab: Lab, generation: str) -> None:
    """As `newGauge` and `newMeter` name them at the three tags; timers come when they have been used."""
    for broker in lab.brokers:
        found = lab.metrics(broker)
        assert {name for name, value in found.items() if not isinstance(value, Timer)} == THERE[generation]
    sources = {m.name for m in METRICS if generation in m.sources}
    assert {name for name in sources if not name.endswith("TimeMs")} == THERE[generation]


def test_every_metric_has_a_source_and_is_computed() -> None:
    assert {"ActiveControllerCount", *COUNTS, *REPLICA_MANAGER} < {metric.name for metric in METRICS}
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert set(metric.sources) <= set(GENERATIONS)
        assert metric.counts
        assert all(".scala" in source for source in metric.sources.values()), metric


@tabled
def test_what_a_controller_shows(
    lab: Lab,
    generation: str,
    commands: str,
    offline: int,
    imbalance: int,
    topics: int,
    partitions: int,
    deletions: dict[str, int],
) -> None:
    expected = {OFFLINE: offline, IMBALANCE: imbalance}
    expected |= {TOPICS: topics, PARTITIONS: partitions} if generation != "0.10" else {}
    expected |= {f"{name}ToDeleteCount": count for name, count in deletions.items()} if generation == "2.4" else {}
    play(lab, commands)
    found = lab.metrics(1)
    assert found["ActiveControllerCount"] == 1
    assert {name: found[name] for name in expected} == expected
    for other in (2, 3):
        rest = lab.metrics(other)
        assert {rest[name] for name in ("ActiveControllerCount", *COUNTS) if name in rest} == {0}


def test_the_next_controller_takes_the_gauges_over(lab: Lab) -> None:
    lab.kill(1)
    assert lab.metrics(1)["ActiveControllerCount"] == 0  # the process is gone
    lab.settle()
    assert shown(lab, lab.controller.id, "ActiveControllerCount", OFFLINE, IMBALANCE) == (1, 0, 1)
    until_quiet(lab.start, 1)
    assert sum(int(lab.metrics(b)["ActiveControllerCount"]) for b in lab.brokers) == 1
    assert shown(lab, 1, "ActiveControllerCount", OFFLINE, IMBALANCE) == (0, 0, 0)


def test_who_resigns_shows_nothing(lab: Lab) -> None:
    play(lab, "kill 2; settle; delete_controller; settle")
    for broker in (1, 3):
        acts = broker == lab.controller.id
        assert shown(lab, broker, "ActiveControllerCount", IMBALANCE) == (int(acts), int(acts))


@pytest.mark.parametrize(("generation", "now"), [("0.10", True), ("2.0", False), ("2.4", False)])
def test_gauges_are_as_old_as_the_last_event_but_for_0_10(lab: Lab, now: bool) -> None:
    """updateMetrics runs after each event; 0.10 counts when somebody looks."""
    lab.kill(2)
    lab.run_until(lambda: "elect" in [r.action for r in lab.trace[-40:] if r.kind == "partition"], limit=30)
    led = {tp: s.leader for tp, s in acting(lab).context.leadership.items()}
    assert led[TopicPartition("orders", 1)] == 3  # elected, but the event goes on
    assert lab.trace[-1].kind != "event"
    assert shown(lab, 1, IMBALANCE) == (1 if now else 0,)
    lab.settle()
    assert shown(lab, 1, IMBALANCE) == (1,)


@pytest.mark.parametrize(("generation", "count"), [("0.10", None), ("2.0", 0), ("2.4", 0)])
def test_a_partition_that_never_had_a_leader(lab: Lab, generation: str, count: int | None) -> None:
    """It is not offline, for there is no leader that is gone; 0.10's gauge throws NoSuchElementException."""
    play(lab, "kill 2; settle; elect_preferred; settle")
    until_quiet(lab.create_topic, "late", assignment={0: [2]})
    expected = None if count is None else count + 1  # orders-1 is led by 3
    assert shown(lab, 1, OFFLINE, IMBALANCE) == (0, expected)
    assert shown(lab, 1, TOPICS, PARTITIONS) == (() if generation == "0.10" else (2, 3))


@pytest.mark.parametrize(("generation", "counted"), [("0.10", 0), ("2.0", 0), ("2.4", 1)])
def test_an_offline_partition_of_a_topic_whose_deletion_waits(lab: Lab, counted: int) -> None:
    """Topics queued for deletion do not count; since KAFKA-6753 those whose deletion has begun."""
    until_quiet(lab.create_topic, "late", assignment={0: [2]})
    until_quiet(lab.kill, 2)
    assert shown(lab, 1, OFFLINE) == (1,)
    controller = acting(lab)
    controller.context.topics_to_be_deleted["late"] = None
    controller.gauges.update()
    assert shown(lab, 1, OFFLINE) == (counted,)
    controller.context.deletion_started.add("late")
    controller.gauges.update()
    assert shown(lab, 1, OFFLINE) == (0,)


@pytest.mark.parametrize(("generation", "offline"), [("2.0", 0), ("2.4", 1)])
def test_a_log_directory_that_fails_makes_partitions_offline_since_2_4_only(lab: Lab, offline: int) -> None:
    """2.0 looks whether the leader is registered, 2.4 at the state of the partition."""
    controller = acting(lab)
    controller.context.partitions[TopicPartition("orders", 1)] = OFFLINE_STATE
    controller.gauges.update()
    assert shown(lab, 1, OFFLINE) == (offline,)


def test_a_preferred_replica_that_a_reassignment_adds() -> None:
    """KIP-455: it counts when it is in the ISR and does not matter before, whoever leads."""
    tp = TopicPartition("orders", 0)
    with cluster("2.4") as lab:
        controller = acting(lab)
        context = controller.context
        context.topics["orders"][0] = ReplicaAssignment((3, 1, 2), adding=(3,), removing=(2,))
        for isr, count in (((1, 2), 0), ((1, 2, 3), 1)):
            context.leadership[tp] = context.leadership[tp]._replace(isr=isr)
            controller.gauges.update()
            assert shown(lab, 1, IMBALANCE) == (count,)
        context.topics["orders"][0] = ReplicaAssignment((3, 1, 2))
        controller.gauges.update()
        assert shown(lab, 1, IMBALANCE) == (1,)


def test_2_4_adds_up_a_set_of_numbers() -> None:
    """`topicsToBeDeleted.map { ... }.sum` maps a set to a set: equal numbers count once."""
    with cluster("2.4") as lab:
        controller = acting(lab)
        context = controller.context
        for topic, replicas in (("a", (1,)), ("b", (2,)), ("c", (1, 2))):
            context.topics[topic] = {0: ReplicaAssignment(replicas)}
            context.topics_to_be_deleted[topic] = None
            for replica in context.replicas_of(context.partitions_of(topic)):
                context.replicas[replica] = INELIGIBLE
        names = "TopicsToDeleteCount", "ReplicasToDeleteCount", "ReplicasIneligibleToDeleteCount"
        controller.gauges.update()
        assert shown(lab, 1, *names) == (3, 1 + 2, 1 + 2)
        one, two = context.replicas_of(context.partitions_of("c"))
        context.replicas |= {one: SUCCESSFUL, two: ONLINE_REPLICA}
        controller.gauges.update()
        assert shown(lab, 1, *names) == (3, 1, 1 + 0)


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_count_that_fails_stops_those_after_it(lab: Lab) -> None:
    """`replicas.head` of no replicas: what was counted before it is new, the rest as it was."""
    controller = acting(lab)
    context, tp = controller.context, TopicPartition("orders", 1)
    context.leadership[tp] = context.leadership[tp]._replace(leader=-1)
    context.partitions[tp] = OFFLINE_STATE
    context.topics["empty"] = {0: ReplicaAssignment(())}
    controller.gauges.update()
    assert shown(lab, 1, OFFLINE, IMBALANCE, TOPICS, PARTITIONS) == (1, 0, 1, 3)


def test_gauges_change_nothing_in_a_run(generation: str) -> None:
    with cluster(generation) as lab, cluster(generation) as other:
        for one in (lab, other):
            one.kill(2)
            for _ in range(30):
                one.run_for(0.5)
                if one is lab:
                    for broker in (1, 2, 3):
                        one.metrics(broker)
        assert list(lab.trace) == list(other.trace)
        assert lab.story == other.story


# Brokers


def test_what_a_broker_shows_of_its_replicas(lab: Lab) -> None:
    names = "LeaderCount", "PartitionCount", "UnderReplicatedPartitions"
    for commands, expected in (
        ("settle", [(1, 2, 0)] * 3),
        ("kill 2; settle", [(1, 2, 1), (0, 0, 0), (2, 2, 1)]),
        ("start 2; settle", [(1, 2, 0), (0, 2, 0), (2, 2, 0)]),
        ("delete_topic orders; settle", [(0, 0, 0)] * 3),
    ):
        play(lab, commands)
        assert [shown(lab, broker, *names) for broker in (1, 2, 3)] == expected, commands


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_min_isr_is_that_of_the_topic_else_of_the_broker(generation: str) -> None:
    """Led by 1: `orders-0` with the broker's 2, `strict` with 3 of its own, `lax` with 1.

    A broker has the settings that it has read; it reads them again when it is notified.
    Kafka 2.0.1: cluster/Partition.scala, isUnderMinIsr; server/DynamicConfigManager.scala
    """
    names = "UnderMinIsrPartitionCount", "AtMinIsrPartitionCount"
    with cluster(generation, **{"min.insync.replicas": 2}) as lab:
        for topic, least in (("strict", 3), ("lax", 1)):
            lab.create_topic(topic, assignment={0: [1, 2, 3]}, config={"min.insync.replicas": least})
        lab.settle()
        assert lab.metrics(1)["UnderMinIsrPartitionCount"] == 0
        if generation == "2.4":
            assert shown(lab, 1, *names) == (0, 2)
        until_quiet(lab.kill, 2)
        assert lab.metrics(1)["UnderMinIsrPartitionCount"] == 2
        if generation == "2.4":
            assert shown(lab, 1, *names) == (2, 0)
            assert shown(lab, 3, *names) == (1, 1)
        lab.write_znode("/config/topics/strict", {"version": 1, "config": {"min.insync.replicas": "1"}})
        assert lab.metrics(1)["UnderMinIsrPartitionCount"] == 2
        until_quiet(lab.alter_config, "topics", "strict", {"min.insync.replicas": 2})
        assert lab.metrics(1)["UnderMinIsrPartitionCount"] == 1


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_copies_in_a_log_directory_that_failed_are_offline(lab: Lab, generation: str) -> None:
    """They still count as partitions, until the broker starts again."""
    names = "PartitionCount", "OfflineReplicaCount"
    assert shown(lab, 2, *names) == (2, 0)
    until_quiet(lab.fail_log_dir, 2)
    assert shown(lab, 2, *names) == (2, 1)
    replicas = process_of(lab, 2).replicas
    lost = next(iter(replicas.process.offline))
    answer = replicas.stop_replica(StopReplicaRequest(1, lab.controller.epoch, (lost,), delete=True))
    assert answer.errors == {lost: "KAFKA_STORAGE_ERROR"}
    assert shown(lab, 2, *names) == ((2, 1) if generation == "2.4" else (1, 0))  # KAFKA-8371
    until_quiet(lab.bounce, 2)
    assert lab.metrics(2)["OfflineReplicaCount"] == 0


def test_isr_changes_are_counted_by_their_leader(lab: Lab) -> None:
    assert isinstance(lab.metrics(1)["IsrShrinksPerSec"], Meter)
    play(lab, "lag 2 orders 0; settle; catch_up 2; settle")
    shrinks, expands = shown(lab, 1, "IsrShrinksPerSec", "IsrExpandsPerSec")
    assert (shrinks.number, expands.number) == (1, 1)
    assert shrinks.mean == pytest.approx(1 / (lab.now - 0.0), rel=0.1)
    until_quiet(lab.bounce, 1)
    assert lab.metrics(1)["IsrShrinksPerSec"].number == 0


@pytest.mark.parametrize(("generation", "counts"), [("0.10", 1), ("2.0", 1), ("2.4", 0)])
def test_an_isr_that_could_not_be_written(lab: Lab, generation: str, counts: int) -> None:
    """Before KAFKA-8371 an attempt counts as a shrink; FailedIsrUpdatesPerSec came with KAFKA-5135."""
    state = "/brokers/topics/orders/partitions/0/state"
    data = lab.znodes()[state][0].decode()
    lab.write_znode(state, data)  # another version
    play(lab, "lag 2 orders 0; run_for 30")
    tried = sum(r.action == "shrink-isr" and r.error == "BADVERSION" for r in lab.trace)
    assert tried
    shrinks, failed = (lab.metrics(1).get(name) for name in ("IsrShrinksPerSec", "FailedIsrUpdatesPerSec"))
    assert isinstance(shrinks, Meter)
    assert shrinks.number == counts * tried
    assert failed is None if generation == "0.10" else isinstance(failed, Meter) and failed.number == tried
