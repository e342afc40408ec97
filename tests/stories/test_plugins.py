"""Functions of one's own in a running lab: what they decide, and what is said of those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from labs import play, until_quiet
from prose import Prose, source
from tables import tabled

from kafka_ctl import BadInput, Costs, Lab, UnknownName, election
from kafka_ctl.assignment import assign
from kafka_ctl.controller.deletion import next_move
from kafka_ctl.controller.reassignment import moves
from kafka_ctl.errors import PluginFailed
from kafka_ctl.history.workload import Workload, plan
from kafka_ctl.history.workload import play as play_history
from kafka_ctl.partition import PARTITION
from kafka_ctl.plugins import ELECTIONS, KINDS, RULES

REBALANCE = "auto.leader.rebalance.enable"


def orders(**options: Any) -> Lab:
    """A topic on 1, 2, 3 whose ISR is in another order, (1, 3, 2)."""
    lab = Lab(brokers=4, seed=7, costs=Costs(boot=0.0005), config={REBALANCE: False}, **options)
    play(lab, """create_topic orders assignment='{"0":[1,2,3]}'; settle; lag 2 orders 0; settle; catch_up 2; settle""")
    return lab


def last_of_isr(assignment: tuple, isr: tuple, live: frozenset, *_: object) -> tuple | None:
    fit = tuple(replica for replica in isr if replica in live)
    return (fit[-1], fit) if fit else None


def by_kind(changes: list) -> list:
    """Kafka's own way: by kind, then by broker."""
    gathered: dict = {}
    for kind, partition, receivers in changes:
        for broker in receivers:
            gathered.setdefault((kind, broker), []).append(partition)
    return [(*key, gathered[key]) for key in sorted(gathered, key=lambda key: KINDS.index(key[0]))]


def test_an_election_of_ones_own(generation: str) -> None:
    """Without it the first of the assignment leads; it is asked whenever a leader is missing."""
    with (
        orders(generation=generation) as lab,
        orders(generation=generation, elections={"offline": last_of_isr}) as mine,
    ):
        for each in (lab, mine):
            until_quiet(each.reassign, {("orders", 0): [1, 3, 2]})
            until_quiet(each.kill, 1)
        assert (lab.partition("orders", 0).leader, mine.partition("orders", 0).leader) == (3, 2)


def test_no_leader_is_no_unclean_election() -> None:
    with orders(elections={"offline": lambda *_: (-1, (2, 3))}) as lab:
        until_quiet(lab.kill, 1)
        assert [str(r.target) for r in lab.trace.slice(kind="election")][-1] != "unclean"


@tabled
def test_each_occasion_asks_its_own_function(name: str, commands: str) -> None:
    """With the arguments that are promised, and no other is asked."""
    given: list[tuple] = []

    def listen(*values: Any) -> None:
        given.append(values)

    with orders(generation="2.4", elections={name: listen}) as lab:
        play(lab, f"{commands}; settle")
    assert given
    assert all(len(values) == len(ELECTIONS[name].split(", ")) for values in given)
    assert all(isinstance(values[0], tuple) and isinstance(values[2], frozenset) for values in given)


def test_kafkas_own_rules_given_as_plugins_change_nothing() -> None:
    """Byte for byte, but for requests that are recorded one by one."""
    elections: dict[str, Callable] = {
        "offline": election.offline_leader,
        "unclean": election.offline_leader,
        "preferred": election.preferred_leader,
        "reassigned": election.reassigned_leader,
        "controlled_shutdown": election.controlled_shutdown_leader,
    }
    with orders() as usual, orders(elections=elections, rules={"fence": lambda asked, newest: asked >= newest}) as mine:
        for lab in (usual, mine):
            play(lab, "kill 1; settle; start 1; settle; elect_preferred; shutdown 2; settle")
        assert mine.trace.text() == usual.trace.text()


def test_an_assignment_of_ones_own() -> None:
    with Lab(rules={"assignment": assign}) as lab:
        lab.create_topic("orders", partitions=3, replication_factor=2)
        assert [p.replicas for p in lab.partitions()] == [(1, 2), (2, 3), (3, 1)]
    with Lab(rules={"assignment": lambda *_: {0: [1, 1]}}) as lab, pytest.raises(BadInput, match="Duplicate replica"):
        lab.create_topic("orders", partitions=1, replication_factor=2)


def test_a_request_batch_of_ones_own() -> None:
    """Kafka's packing leads to the same cluster; leaving UpdateMetadata out leaves brokers that know nothing."""
    reported = {}
    for name, rules in (
        ("usual", {}),
        ("packed", {"batch": by_kind}),
        ("silent", {"batch": lambda changes: [r for r in by_kind(changes) if r[0] != "UpdateMetadata"]}),
    ):
        with Lab(brokers=4, rules=rules) as lab:
            lab.create_topic("orders", partitions=3, replication_factor=2)
            play(lab, "settle; kill 2; settle; start 2; settle; delete_topic orders; settle")
            until_quiet(lab.create_topic, "bills", partitions=1, replication_factor=1)
            reported[name] = [len(broker.metadata) for broker in lab.brokers.values()], lab.partitions()
    assert reported["packed"] == reported["usual"]
    assert reported["usual"][0] == [1, 1, 1, 1] and reported["silent"][0] == [0, 0, 0, 0]


def test_a_fence_of_ones_own() -> None:
    """Who obeys only what is newer refuses the second request of the controller it has."""
    with Lab(rules={"fence": lambda asked, newest: asked > newest}) as lab:
        until_quiet(lab.create_topic, "orders", partitions=1, replication_factor=3)
        assert any(record.error == "STALE_CONTROLLER_EPOCH" for record in lab.trace)


def test_a_fence_is_asked_once_for_each_request() -> None:
    asked: list[tuple[int, int]] = []

    def fence(request_epoch: int, newest: int) -> bool:
        asked.append((request_epoch, newest))
        return request_epoch >= newest

    with Lab(rules={"fence": fence}) as lab:
        before, seen = len(asked), len(lab.trace)
        until_quiet(lab.create_topic, "orders", partitions=1, replication_factor=3)
        received = [r for r in lab.trace[seen:] if r.kind == "response" and r.actor.startswith("broker-")]
        assert len(asked) - before == len(received) == 6  # LeaderAndIsr and UpdateMetadata, three brokers


def test_the_next_move_of_a_deletion_of_ones_own() -> None:
    """Kafka's own changes nothing; who forgets a topic too early leaves a copy on a disk."""
    early = lambda states, alive, halted: "complete" if "ReplicaDeletionSuccessful" in states.values() else "start"  # noqa: E731
    left = {}
    for name, rules in (("usual", {}), ("same", {"deletion": next_move}), ("early", {"deletion": early})):
        with Lab(brokers=3, seed=7, rules=rules) as lab:
            lab.create_topic("orders", assignment={0: [1, 2, 3]})
            play(lab, "settle; kill 1; settle; delete_topic orders; settle")
            left[name] = "/brokers/topics/orders" in lab.znodes(), [at.broker for at in lab.log_dirs()]
    assert left == {"usual": (True, [1]), "same": (True, [1]), "early": (False, [1])}


def test_the_moves_of_a_reassignment_of_ones_own() -> None:
    """Kafka's own changes nothing; who waits for nobody deletes a good copy too early."""
    hasty = lambda old, new: (*moves(old, new)[:3], ())  # noqa: E731
    left = {}
    for name, rules in (("usual", {}), ("same", {"reassignment": moves}), ("hasty", {"reassignment": hasty})):
        with orders(rules=rules) as lab:
            lab.slow(4, 5)
            play(lab, "reassign '{\"orders-0\":[1,4]}'; run_for 1")
            left[name] = lab.partition("orders", 0).isr, [at.broker for at in lab.log_dirs()]
    assert left["usual"] == left["same"] == ((1, 3, 2), [1, 2, 3, 4])
    assert left["hasty"][0] == (1,)


def origin_first(replicas: tuple, adding: tuple, removing: tuple, target: tuple) -> tuple:
    """Another order than Kafka's."""
    origin = [r for r in replicas if r not in adding]
    full = list(dict.fromkeys([*origin, *target]))
    return full, [r for r in full if r not in origin], [r for r in full if r not in target]


def test_the_three_lists_of_ones_own(prose: Prose) -> None:
    """Who puts the origin first loses the order of the target; what cannot be used is said."""
    end = {}
    for name, rules in (("usual", {}), ("origin first", {"target": origin_first})):
        with orders(generation="2.4", rules=rules) as lab:
            until_quiet(lab.reassign, {("orders", 0): [3, 4, 2]})
            end[name] = lab.partition("orders", 0).replicas
    assert end == {"usual": (3, 4, 2), "origin first": (2, 3, 4)}
    with orders(generation="2.4", rules={"target": lambda *_: (1, 2)}) as lab, prose.refused(PluginFailed):
        lab.reassign({("orders", 0): [3, 4, 2]})


def test_a_story_names_them_and_replay_wants_them_again(prose: Prose) -> None:
    with orders(elections={"offline": last_of_isr}) as lab:
        until_quiet(lab.kill, 1)
        assert "elections.offline" in lab.story.splitlines()[0]
        prose.refuses(BadInput, Lab.replay, lab.story)
        with Lab.replay(lab.story, elections={"offline": last_of_isr}) as again:
            assert again.trace.text() == lab.trace.text()
        with lab.fork() as same, lab.fork(elections={}) as other:
            assert same.trace.text() == lab.trace.text()
            assert other.partition("orders", 0).leader == 2 and other.plugins.names == []
        lab.back()
        assert lab.plugins.names == ["elections.offline"]


@pytest.mark.parametrize(
    "function",
    [
        lambda *_: [][0],
        lambda *_: 3,
        lambda *_: ("2", (2, 3)),
        lambda *_: (True, (2, 3)),
        lambda *_: election.Election(2, None),  # type: ignore[arg-type]
        lambda *_: election.Election(2, "23"),  # type: ignore[arg-type]
        lambda assignment: None,
    ],
    ids=source,
)
def test_an_error_in_one_is_reported_with_what_it_was_given(prose: Prose, function: Callable) -> None:
    """It ends what the lab is doing, also where a controller goes on after its own errors."""
    with orders(elections={"offline": function}) as lab:
        lab.kill(1)
        with prose.refused(PluginFailed) as reported:
            lab.settle()
        assert "assignment=(1, 2, 3), isr=(1, 3, 2), live={2, 3}, unclean=False" in str(reported.value)


@pytest.mark.parametrize(
    ("rule", "function"),
    [
        ("assignment", lambda *_: [[1, 2]]),
        ("batch", lambda _: ["LeaderAndIsr"]),
        ("batch", lambda _: [("Leader", 1, [])]),
        ("fence", lambda *_: None),
        ("deletion", lambda *_: "retry"),
        ("reassignment", lambda *_: ([1], [1], [1])),
        ("shrink", lambda *_: None),
        ("transition", lambda *_: 1),
    ],
    ids=source,
)
def test_a_rule_that_returns_what_cannot_be_used(prose: Prose, rule: str, function: Callable) -> None:
    prose.refuses(PluginFailed, _create_a_topic, {rule: function})


@pytest.mark.parametrize("answer", [None, 10**6])
def test_a_rule_may_change_what_it_is_given(answer: object) -> None:
    """Its answer is decoded, and its failure told, with the arguments as they were."""
    with (
        orders(rules={"high_watermark": lambda ends, isr, leader: ends.clear() or answer}) as lab,
        pytest.raises(PluginFailed, match=r"called with ends=\{1: 1, "),
    ):
        lab.produce("orders", 0)


def _create_a_topic(rules: dict[str, Callable]) -> None:
    with Lab(rules=rules) as lab:
        until_quiet(lab.create_topic, "orders", partitions=1, replication_factor=1)
        until_quiet(lab.reassign, {("orders", 0): [1, 2]})
        until_quiet(lab.kill, lab.partition("orders", 0).leader)
        until_quiet(lab.delete_topic, "orders")


def test_a_shrunk_isr_of_ones_own() -> None:
    """Who takes the last member out of the ISR leaves a partition that no replica can lead again."""
    reported = {}
    for name, rules in (("usual", {}), ("empty", {"shrink": lambda leader, isr, gone: (-1, set(isr) - {gone})})):
        with Lab(rules=rules) as lab:
            lab.create_topic("orders", assignment={0: [1]})
            play(lab, "settle; kill 1; settle; start 1; settle")
            reported[name] = lab.partition("orders", 0).leader, lab.partition("orders", 0).isr
    assert reported == {"usual": (1, (1,)), "empty": (-1, ())}


def legal(source: str, target: str) -> bool:
    """Kafka's table of a partition's moves."""
    return PARTITION["2.0"].allows(f"{source}Partition", f"{target}Partition")


def test_a_transition_table_of_ones_own() -> None:
    """Kafka's own changes nothing; without Offline -> Online a partition stays without a leader."""
    reported = {}
    rules: dict[str, dict[str, Callable]] = {
        "usual": {},
        "same": {"transition": legal},
        "no way back": {"transition": lambda *move: legal(*move) and move != ("Offline", "Online")},
        "all": {"transition": lambda *_: True},
    }
    for name, given in rules.items():
        with orders(rules=given) as lab:
            play(lab, "kill 1; settle; start 1; settle; delete_topic orders; settle")
            reported[name] = lab.trace.text()
    assert reported["same"] == reported["usual"] and "InvalidTransition" not in reported["usual"]
    assert "Offline -> Online" in reported["usual"]
    assert "refuse" in reported["no way back"] and "orders-0 cannot" in reported["no way back"]


def late(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """Kafka 2.4's."""
    return follower_end != leader_end and now - last_caught_up > max_lag


def isrs(lab: Lab) -> list[tuple[int, tuple[int, ...] | None]]:
    """When its leader changed the ISR, in seconds, and to what."""
    return [(round(r.time_ms / 1000), r.isr) for r in lab.trace if r.action in ("shrink-isr", "expand-isr")]


LATE = {
    "lags": "lag 3 orders 0; produce orders 0 acks=1; run_for 30; catch_up 3; settle",
    "silent": "disconnect 3 1; run_for 60; produce orders 0 acks=1; run_for 20; heal; settle",
    "slow": "slow 3 12; " + "produce orders 0 acks=1; run_for 10; " * 6 + "heal; settle",
    "dies": "kill 3; run_for 4; pause 2 20; run_for 40; start 3; settle",
}


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
@pytest.mark.parametrize("name", LATE)
def test_kafkas_own_rule_for_late_followers_changes_nothing(generation: str, name: str) -> None:
    """A limit of time in 2.0; in 2.4 nobody is late who has everything."""
    rule = late if generation == "2.4" else lambda now, since, *_: now - since > _[-1]
    reported = []
    for rules in ({}, {"late": rule}):
        with orders(generation=generation, rules=rules) as lab:
            lab.produce("orders", 0, records=3)
            play(lab, LATE[name])
            reported.append((isrs(lab), lab.partition("orders", 0).isr))
    assert reported[0] == reported[1]


@pytest.mark.parametrize("seed", [5003, 5004, 5008])
def test_a_leader_passes_over_only_looks_that_find_nothing(seed: int) -> None:
    """With a rule for late followers it looks every time: the records of half a day are the same, pauses included."""
    drawn = plan(seed, 12, Workload(brokers=(3, 5), topics=(2, 4), rate=3))
    reported = []
    for rules in ({}, {"late": lambda now, since, *_: now - since >= _[-1]}):
        with Lab(brokers=dict(drawn.brokers), seed=seed, rules=rules) as lab:
            play_history(lab, drawn, seed, 12)
            reported.append(list(lab.trace))
    assert {"pause", "shrink-isr"} <= {record.action for record in reported[0]}
    assert reported[0] == reported[1]


def test_a_rule_for_late_followers_of_ones_own(prose: Prose) -> None:
    """Who counts records takes a follower out in the middle of a burst; what cannot be used is said."""
    counts = lambda now, since, mine, end, limit: end - mine > 10  # noqa: E731
    reported = {}
    for name, rules in (("usual", {}), ("counts", {"late": counts})):
        with orders(generation="2.4", rules=rules) as lab:
            lab.produce("orders", 0)
            before = len(isrs(lab))
            lab.slow(3, 8)
            lab.produce("orders", 0, records=50, acks=1)
            lab.run_for(9)
            reported[name] = [isr for _, isr in isrs(lab)[before:]]
    assert reported == {"usual": [], "counts": [(1, 2)]}
    prose.refuses(PluginFailed, orders, rules={"late": lambda *_: 3})


def test_what_is_no_plugin_is_refused(prose: Prose) -> None:
    prose.refuses(UnknownName, Lab, elections={"ofline": last_of_isr})
    with prose.refused(BadInput):
        Lab(rules={"fence": 3})  # type: ignore[dict-item]
    with prose.refused(BadInput):
        Lab(elections=last_of_isr)  # type: ignore[arg-type]
    old = "assignment batch deletion fence high_watermark late pipeline reassignment rebalance shrink target transition"
    new = "brokers bumped electable own_write receivers retry session startup takeover truncate waiting"
    assert set(RULES) == {*old.split(), *new.split()}


def test_a_pipeline_of_ones_own(prose: Prose) -> None:
    """One operation at a time gives the same cluster, later; what leaves one out or changes the order is refused."""
    done = {}
    for name, rules in (("usual", {}), ("one", {"pipeline": lambda operations, window: [[op] for op in operations]})):
        with Lab(rules=rules) as lab:
            until_quiet(lab.create_topic, "orders", partitions=30, replication_factor=2)
            assert all(p.leader > 0 for p in lab.partitions())
            done[name] = lab.now
    assert done["one"] > done["usual"]
    for wrong in (lambda operations, window: [operations[::-1]], lambda operations, window: [operations[1:]]):
        prose.refuses(PluginFailed, Lab, rules={"pipeline": wrong})
