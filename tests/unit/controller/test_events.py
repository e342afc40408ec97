"""What the controller does about brokers, topics, ISRs and shutdowns, in 2.0."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from labs import QUIET, acting, play, until_quiet
from machines import requests

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.controller.membership import broker_modifications
from kafka_ctl.trace import Record
from kafka_ctl.zookeeper.store import Create, Delete, Set
from kafka_ctl.zookeeper.znodes import BrokerIdZNode, TopicZNode


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Three brokers; broker 2 is controller."""
    with Lab(brokers=3, seed=7, config=QUIET) as opened:
        assert opened.controller.id == 2
        yield opened


def write(lab: Lab, op: Create | Set | Delete) -> None:
    """Change a znode behind everybody's back."""
    lab.world.clock.run(acting(lab).zk.write(op))


def since(lab: Lab, seen: int, kind: str = "", actor: str = "controller-2") -> list[Record]:
    """What the controller did: its moves, requests and messages."""
    return [r for r in lab.trace[seen:] if r.actor == actor and kind in ("", r.kind)]


def logged(records: list[Record]) -> dict[str, dict[str, Any]]:
    """The messages by name, with their words."""
    return {r.action: json.loads(r.detail or "{}") for r in records if r.kind == "controller"}


def moves(records: list[Record]) -> list[str]:
    """The moves of both machines, in short."""
    return [
        f"{r.topic}-{r.partition}{f'@{r.broker}' * (r.kind == 'replica')} {r.action}"
        for r in records
        if r.kind in ("partition", "replica") and not r.error
    ]


# Topics


def test_a_topic_that_vanishes_is_forgotten(lab: Lab) -> None:
    """Somebody deleted its znode without asking for a deletion; a partition that only a report named goes, too.

    Kafka 2.0.1: controller/ControllerContext.scala, removeTopic
    """
    until_quiet(lab.create_topic, "orders")
    acting(lab).context.leadership[TopicPartition("orders", 7)] = LeaderAndIsr(1, (1,))
    lab.world.clock.run(acting(lab).zk.delete_tree(TopicZNode.path("orders")))
    lab.settle()
    assert acting(lab).context.topics == {}
    assert acting(lab).context.leadership == {}


def test_a_changed_assignment_of_old_partitions_is_no_news(lab: Lab) -> None:
    """Only partitions that were not there before are looked at."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    seen = len(lab.trace)
    write(lab, Set(TopicZNode.path("orders"), TopicZNode.encode({0: (3, 1)})))
    lab.settle()
    assert [r.kind for r in since(lab, seen)] == ["event"] * 3
    assert acting(lab).context.assigned(next(iter(acting(lab).context.leadership))) == (1, 2)


# Brokers


def test_the_death_of_a_broker_that_leads_nothing(lab: Lab) -> None:
    """In 2.0 everybody gets the metadata of every partition (KAFKA-7537)."""
    until_quiet(lab.create_topic, "orders", assignment={0: [2, 3], 1: [2, 3]})
    seen = len(lab.trace)
    until_quiet(lab.kill, 1)
    assert moves(since(lab, seen)) == []
    assert [name for name, _, _ in requests(since(lab, seen))] == ["UpdateMetadata"] * 2


def test_two_deaths_at_once(lab: Lab) -> None:
    """One event sees both; the last ISR member keeps its place without a leader."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    seen = len(lab.trace)
    play(lab, "kill 3; kill 1; settle")
    changes = [json.loads(r.detail or "") for r in since(lab, seen) if r.action == "brokers_changed"]
    assert [change["dead"] for change in changes if change["dead"]] in ([[1, 3]], [[1], [3]], [[3], [1]])
    view = lab.partition("orders", 0)
    assert (view.leader, len(view.isr), view.state) == (-1, 1, "OfflinePartition")


def test_a_broker_that_moves_house(lab: Lab) -> None:
    """Its endpoints changed: everybody must know; the same endpoints again are no news."""
    data, _, _ = lab.znodes()[BrokerIdZNode.path(3)]
    seen = len(lab.trace)
    write(lab, Set(BrokerIdZNode.path(3), data.replace(b"9095", b"19095")))
    lab.settle()
    assert logged(since(lab, seen))["broker_updated"]["port"] == 19095
    assert acting(lab).context.brokers[3].port == 19095
    seen = len(lab.trace)
    write(lab, Set(BrokerIdZNode.path(3), data.replace(b"9095", b"19095")))
    lab.settle()
    assert logged(since(lab, seen)) == {}


def test_an_endpoint_that_changes_hides_no_new_process() -> None:
    """Kafka 2.4.1: controller/ControllerContext.scala, updateBrokerMetadata: liveBrokerEpochs stays as it was."""
    with Lab(brokers=3, generation="2.4", config=QUIET) as lab:
        brokers, stored = acting(lab).context.brokers, acting(lab).context.brokers[3]
        brokers[3] = stored._replace(port=1, epoch=1)
        lab.world.run(broker_modifications(acting(lab), 3))
        assert brokers[3] == stored._replace(epoch=1)
        before, after = (f"3 : (EndPoint(127.0.0.1,{port},ListenerName(PLAINTEXT)," for port in (1, 9095))
        assert f"Updated broker metadata: {before}PLAINTEXT)) : null -> {after}" in lab.trace.kafka_log("controller")


# Failed log directories and ISR news


def test_a_storage_error_takes_the_replica_offline(lab: Lab) -> None:
    """As if its broker had died, for these partitions only."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3], 1: [1, 3]})
    controller, seen = acting(lab), len(lab.trace)
    tp = next(tp for tp in controller.context.leadership if tp.partition == 0)
    from kafka_ctl.requests import Response

    controller.leader_and_isr_answered(1, Response(None, {tp: "KAFKA_STORAGE_ERROR"}))
    lab.settle()
    assert logged(since(lab, seen))["replicas_offline"] == {"partitions": ["orders-0"], "broker": 1}
    assert moves(since(lab, seen)) == ["orders-0 mark", "orders-0 elect", "orders-0@1 stop"]
    assert [p.leader for p in lab.partitions()] == [3, 1]


def test_isr_news_are_read_and_thrown_away(lab: Lab) -> None:
    """The present state is read, not what the notice was about; an empty one is thrown away as well."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    seen = len(lab.trace)
    notice = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    for data in (notice, b'{"version":1,"partitions":[]}'):
        write(lab, Create("/isr_change_notification/isr_change_", data, sequence=True))
    lab.settle()
    assert [(name, tp) for name, tp, _ in requests(since(lab, seen))] == [("UpdateMetadata", "orders-0")]
    assert not [path for path in lab.znodes() if path.startswith("/isr_change_notification/")]


# Controlled shutdown


def test_what_leaves_with_a_broker(lab: Lab) -> None:
    """Leaderships in one batch; followed partitions stopped twice; single replicas and dead ones left alone."""
    lab.create_topic("orders", assignment={0: [1, 3], 1: [1, 2], 2: [3, 1]})
    until_quiet(lab.create_topic, "single", assignment={0: [1]})
    seen = len(lab.trace)
    report = lab.shutdown(1)
    assert (report.attempts, report.remaining) == (1, ())
    did = since(lab, seen)
    assert moves(did) == ["orders-0 elect", "orders-1 elect", "orders-2@1 stop"]
    assert [(r.topic, r.partition) for r in did if r.action == "StopReplica" and r.topic] == [("orders", 2)] * 2
    assert lab.partition("single", 0).leader == 1
    lab.settle()
    assert lab.partition("single", 0).leader == -1


def test_a_broker_that_leaves_gets_no_new_leaderships(lab: Lab) -> None:
    """It is live for metadata, but not for elections."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3, 2]})
    acting(lab).context.shutting_down.add(3)
    until_quiet(lab.kill, 1)
    election = next(r for r in lab.trace if r.kind == "election")
    assert (election.leader, election.isr) == (2, (2,))


def test_a_broker_that_came_back_is_not_leaving_any_more(lab: Lab) -> None:
    until_quiet(lab.shutdown, 1)
    assert acting(lab).context.shutting_down == set()
    until_quiet(lab.start, 1)
    assert acting(lab).context.live == {1, 2, 3}
