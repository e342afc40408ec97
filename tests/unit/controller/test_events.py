"""What the controller does about brokers, topics, ISRs, shutdowns, deletions, moves and preferred leaders, in 2.0."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from labs import acting, play, until_quiet
from machines import requests

from kafka_ctl import Lab
from kafka_ctl.trace import Record
from kafka_ctl.zookeeper.store import Create, Delete, Set
from kafka_ctl.zookeeper.znodes import BrokerIdZNode, DeleteTopicsTopicZNode, PreferredReplicaElectionZNode, TopicZNode

QUIET = {"auto.leader.rebalance.enable": False}


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


def test_a_topic_in_four_batches(lab: Lab) -> None:
    """Partitions New, replicas New, partitions Online, replicas Online; requests leave with the third."""
    seen = len(lab.trace)
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    did = [r for r in since(lab, seen) if r.kind in ("partition", "replica", "request") and r.topic]
    assert [f"{r.kind} {r.action}" for r in did] == [
        "partition assign",
        "replica create",
        "replica create",
        "partition initialize",
        "request LeaderAndIsr",
        "request LeaderAndIsr",
        "request UpdateMetadata",
        "replica join",
        "replica join",
    ]


def test_a_topic_that_vanishes_is_forgotten(lab: Lab) -> None:
    """Somebody deleted its znode without asking for a deletion."""
    until_quiet(lab.create_topic, "orders")
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


def test_all_that_follows_from_a_death(lab: Lab) -> None:
    """Its partitions go Offline and are elected, then its replicas stop; who is left is told."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    seen = len(lab.trace)
    until_quiet(lab.kill, 1)
    assert moves(since(lab, seen)) == [
        "orders-0 mark",
        "orders-0 elect",
        "orders-0@1 stop",
        "orders-1@1 stop",
    ]
    assert logged(since(lab, seen))["brokers_changed"] == {"new": [], "dead": [1], "bounced": [], "live": [2, 3]}
    reported = [r for r in since(lab, seen, "request") if r.topic]
    assert [(r.action, r.broker) for r in reported[:3]] == [
        ("LeaderAndIsr", 2),
        ("LeaderAndIsr", 3),
        ("UpdateMetadata", None),
    ]


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


def test_a_broker_that_comes_is_greeted(lab: Lab) -> None:
    """Everybody hears of it before it is told what it holds."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    until_quiet(lab.kill, 3)
    seen = len(lab.trace)
    until_quiet(lab.start, 3)
    did = since(lab, seen)
    assert logged(did)["broker_startup"] == {"brokers": [3]}
    assert moves(did) == ["orders-0@3 tell"]
    sent = [(r.action, r.broker) for r in did if r.target == "sent"]
    assert [name for name, broker in sent if broker == 3][:2] == ["UpdateMetadata", "LeaderAndIsr"]


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


# Deletion


def test_a_deletion_from_request_to_end(lab: Lab) -> None:
    """Replicas stop, are deleted, and are confirmed one by one; then partitions go, then znodes."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]}, config={"min.insync.replicas": 1})
    seen = len(lab.trace)
    until_quiet(lab.delete_topic, "orders")
    did = since(lab, seen)
    assert sorted(moves(did)[:2]) == ["orders-0@1 stop", "orders-0@3 stop"]
    assert sorted(moves(did)[2:4]) == ["orders-0@1 delete", "orders-0@3 delete"]
    assert sorted(moves(did)[4:6]) == ["orders-0@1 confirm", "orders-0@3 confirm"]
    assert sorted(moves(did)[6:8]) == ["orders-0@1 forget", "orders-0@3 forget"]
    assert moves(did)[8:] == ["orders-0 mark", "orders-0 mark"]
    assert not [path for path in lab.znodes() if "orders" in path]
    assert all(not b.metadata and not b.leads and not b.follows for b in lab.brokers.values())
    assert acting(lab).context.partitions_to_be_deleted == set()


def test_a_deletion_waits_for_a_dead_broker(lab: Lab) -> None:
    """The others delete; the topic is ineligible until the broker returns."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    until_quiet(lab.kill, 3)
    seen = len(lab.trace)
    until_quiet(lab.delete_topic, "orders")
    assert logged(since(lab, seen))["deletion_halted"]["topics"] == ["orders"]
    assert {r.broker for r in since(lab, seen, "replica") if r.action == "confirm"} == {1}
    assert DeleteTopicsTopicZNode.path("orders") in lab.znodes()
    until_quiet(lab.start, 3)
    assert not [path for path in lab.znodes() if "orders" in path]


def test_a_deletion_survives_its_controller(lab: Lab) -> None:
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    play(lab, "kill 3; settle; delete_topic orders; settle; delete_controller; settle")
    assert DeleteTopicsTopicZNode.path("orders") in lab.znodes()
    until_quiet(lab.start, 3)
    assert not [path for path in lab.znodes() if "orders" in path]


def test_a_topic_that_is_not_there_is_not_deleted(lab: Lab) -> None:
    """The request is removed."""
    seen = len(lab.trace)
    write(lab, Create(DeleteTopicsTopicZNode.path("ghost")))
    lab.settle()
    assert logged(since(lab, seen))["deleting_unknown_topics"] == {"topics": ["ghost"]}
    assert DeleteTopicsTopicZNode.path("ghost") not in lab.znodes()


def test_deletion_can_be_switched_off() -> None:
    with Lab(brokers=2, config=QUIET | {"delete.topic.enable": False}) as lab:
        play(lab, "create_topic orders; settle; delete_topic orders; settle")
        assert DeleteTopicsTopicZNode.path("orders") not in lab.znodes()
        assert lab.partition("orders", 0).leader > 0


def test_partitions_added_to_a_dying_topic_are_taken_back(lab: Lab) -> None:
    """KAFKA-6612."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    play(lab, "kill 3; settle; delete_topic orders; settle")
    seen = len(lab.trace)
    until_quiet(lab.add_partitions, "orders", 3)
    assert logged(since(lab, seen))["partitions_not_added"] == {"topic": "orders", "partitions": [1, 2]}
    assert len(lab.partitions()) == 1


# Reassignment, the twelve steps


def test_a_reassignment(lab: Lab) -> None:
    """AR grows, the new replica catches up, the leader moves, the old one is deleted, AR is what was asked for."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    seen = len(lab.trace)
    until_quiet(lab.reassign, {("orders", 0): [3, 2]})
    did = since(lab, seen)
    assert moves(did) == [
        "orders-0@3 create",
        "orders-0@3 join",
        "orders-0@2 tell",
        "orders-0 elect",
        "orders-0@1 stop",
        "orders-0@1 delete",
        "orders-0@1 confirm",
        "orders-0@1 forget",
    ]
    writes = [r.detail for r in lab.trace[seen:] if (r.action, r.path) == ("set", TopicZNode.path("orders"))]
    assert writes == ['{"version":1,"partitions":{"0":[3,2,1]}}', '{"version":1,"partitions":{"0":[3,2]}}']
    view = lab.partition("orders", 0)
    assert (view.leader, set(view.isr), view.replicas, view.leader_epoch) == (3, {2, 3}, (3, 2), 3)
    assert "/admin/reassign_partitions" not in lab.znodes()
    assert lab.brokers[1].leads == lab.brokers[1].follows == ()


def test_a_reassignment_to_a_dead_broker_waits(lab: Lab) -> None:
    """And ends when it comes (KAFKA-4214); a second one is refused meanwhile."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    until_quiet(lab.kill, 3)
    until_quiet(lab.reassign, {("orders", 0): [3, 2]})
    assert lab.partition("orders", 0).replicas == (3, 2, 1)
    assert "/admin/reassign_partitions" in lab.znodes()
    until_quiet(lab.start, 3)
    view = lab.partition("orders", 0)
    assert (view.replicas, view.leader, view.leader_epoch) == ((3, 2), 3, 4)


def test_a_reassignment_survives_its_controller(lab: Lab) -> None:
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    until_quiet(lab.kill, 3)
    until_quiet(lab.reassign, {("orders", 0): [3, 2]})
    play(lab, "delete_controller; settle; start 3; settle")
    assert lab.partition("orders", 0).replicas == (3, 2)


def test_what_is_there_already_is_not_reassigned(lab: Lab) -> None:
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    seen = len(lab.trace)
    until_quiet(lab.reassign, {("orders", 0): [1, 2]})
    assert logged(since(lab, seen))["reassignment_not_needed"]["replicas"] == [1, 2]
    assert moves(since(lab, seen)) == []
    assert "/admin/reassign_partitions" not in lab.znodes()


def test_the_announced_epoch_is_stale_during_a_reassignment(lab: Lab) -> None:
    """The raised leader epoch does not enter the cache: brokers are told 1, and the world 0 (KAFKA-9212)."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]})
    until_quiet(lab.kill, 3)
    seen = len(lab.trace)
    until_quiet(lab.reassign, {("orders", 0): [3, 2]})
    reported = {(r.action, r.leader_epoch) for r in since(lab, seen, "request") if r.topic}
    assert {("LeaderAndIsr", 1), ("UpdateMetadata", 0)} <= reported
    assert ("UpdateMetadata", 1) not in reported


# Preferred leaders


def drifted(lab: Lab) -> None:
    """All leaderships of broker 1 are with broker 3."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3], 1: [1, 3], 2: [3, 1]})
    play(lab, "kill 1; settle; start 1; settle")
    assert [p.leader for p in lab.partitions()] == [3, 3, 3]


def test_preferred_leaders_on_request(lab: Lab) -> None:
    """Those asked for, in one batch; the request is removed; 2.0 raises epochs also where nothing changes."""
    drifted(lab)
    seen = len(lab.trace)
    until_quiet(lab.elect_preferred, [("orders", 0), ("orders", 2)])
    assert [p.leader for p in lab.partitions()] == [1, 3, 3]
    assert [p.leader_epoch for p in lab.partitions()] == [2, 1, 2]
    assert sorted(moves(since(lab, seen))) == ["orders-0 elect", "orders-2 elect"]
    assert PreferredReplicaElectionZNode.path() not in lab.znodes()


def test_a_preferred_leader_that_cannot_lead(lab: Lab) -> None:
    """Dead or out of sync: it stays as it is, and the log says so."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3]})
    until_quiet(lab.kill, 1)
    seen = len(lab.trace)
    until_quiet(lab.elect_preferred)
    assert logged(since(lab, seen))["preferred_failed"] == {"partition": "orders-0", "preferred": 1, "leader": 3}
    assert lab.partition("orders", 0).leader_epoch == 1


def test_the_balance_is_looked_at() -> None:
    """Five seconds after election, then every interval; more than ten percent led_elsewhere is too much."""
    with Lab(brokers=3, seed=7) as lab:
        drifted(lab)
        lab.run_for(301)
        assert [p.leader for p in lab.partitions()] == [1, 1, 3]
        checks = [r.time_ms for r in lab.trace if r.action == "checking_balance"]
        assert checks[1] - checks[0] == pytest.approx(300_000, abs=100)


def test_a_little_imbalance_is_tolerated() -> None:
    """Exactly the percentage is not more than it."""
    with Lab(brokers=2, seed=1, config={"leader.imbalance.per.broker.percentage": 50}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2], 1: [1, 2]})
        until_quiet(lab.elect_preferred)
        tp = next(tp for tp in acting(lab).context.leadership if tp.partition == 0)
        known = acting(lab).context.leadership
        known[tp] = known[tp]._replace(leader=2)
        lab.run_for(10)
        ratios = [json.loads(r.detail or "") for r in lab.trace if r.action == "imbalance"]
        assert {"broker": 1, "ratio": 0.5} in ratios
        assert not [r for r in lab.trace if r.action == "preferred_starting" and "AutoTriggered" in (r.detail or "")]
