"""Controllers that never existed: each difference switched on or off by itself, and what else that may change."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from labs import play, until_quiet

from kafka_ctl import Generation, Lab
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.generation import DIFFERENCES, GENERATIONS

FIELDS = [f.name for f in DIFFERENCES]
SETTINGS = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True, "unclean.leader.election.enable": False}


def story(generation: Generation) -> Lab:
    """A broker dies and returns, one leaves, a partition moves, a topic goes, the controller dies, sessions end."""
    lab = Lab(brokers=4, generation=generation, seed=1, config=SETTINGS)
    lab.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
    until_quiet(lab.create_topic, "doomed", assignment={0: [2, 3], 1: [3, 2]})
    play(lab, "kill 3; settle; start 3; settle; shutdown 2; settle; start 2; settle")
    play(lab, """reassign '{"orders-0":[2,3,4]}' zookeeper; settle; delete_topic doomed; settle""")
    play(lab, "kill 1; settle; start 1; settle; add_partitions orders 4; settle")
    play(lab, "elect_preferred; settle; expire_session 2; settle")
    return lab


def outcome(lab: Lab) -> tuple[object, ...]:
    """Who leads what with which replicas, in sync or not, and which topics there are."""
    return tuple((p.topic, p.partition, p.leader, set(p.isr), p.replicas, p.state) for p in lab.partitions())


@functools.cache
def plain_outcome(name: str) -> tuple[object, ...]:
    with story(Generation(name)) as lab:
        return outcome(lab)


def hybrids() -> list[Generation]:
    return [
        Generation(name).but(**{field: not Generation(name).has(field)}) for name in GENERATIONS for field in FIELDS
    ]


@pytest.mark.parametrize("hybrid", hybrids(), ids=str)
def test_every_hybrid_comes_to_the_same_end(hybrid: Generation) -> None:
    """A difference is in how, and in what goes wrong in between; when all is quiet the cluster is as it should be."""
    with story(hybrid) as lab:
        assert outcome(lab) == plain_outcome(hybrid.name)
        assert {p.state for p in lab.partitions()} == {"OnlinePartition"}
        assert [p.topic for p in lab.partitions()] == ["orders"] * 4
        assert lab.reassignments() == []
        assert lab.controller is not None
        assert str(hybrid) in repr(lab)


@pytest.mark.parametrize(
    ("name", "field"), [("0.10", "resigns_before_moving"), ("0.10", "fences_writes"), ("2.0", "single_threaded")]
)
def test_a_hybrid_gives_up_a_failed_election(name: str, field: str) -> None:
    """Also where the task that resigns has the lock; the next election succeeds when the znode can be read again."""
    plain = Generation(name)
    with Lab(brokers=2, generation=plain.but(**{field: not plain.has(field)}), seed=1) as lab:
        registration = lab.znodes()["/brokers/ids/2"][0].decode()
        lab.write_znode("/brokers/ids/2", "no JSON")
        lab.delete_controller()
        with pytest.raises(ConditionNotMet, match="no broker"):
            lab.settle()
        lab.write_znode("/brokers/ids/2", registration)
        lab.settle()
        assert lab.controller is not None and lab.quiet


@pytest.mark.parametrize("name", GENERATIONS)
def test_without_pipelining_the_same_is_done_more_slowly(name: str) -> None:
    """KAFKA-5642: the same moves and writes, one by one."""
    plain = Generation(name)
    fast, slow = (plain.but(pipelined=pipelined) for pipelined in (True, False))
    done, seconds = {}, {}
    for generation in (fast, slow):
        with Lab(brokers=3, generation=generation, seed=1, config=SETTINGS) as lab:
            until_quiet(lab.create_topic, "orders", assignment={n: [3, 1, 2] for n in range(60)})
            since = len(lab.trace)
            lab.shutdown(3)
            records = lab.trace[since:]
            moves = Counter(
                (r.kind, r.action, r.partition, r.source, r.target)
                for r in records
                if r.kind in ("partition", "replica")
            )
            writes = Counter(
                r.path for r in records if r.kind == "zk" and r.action in ("set", "multi") and "state" in (r.path or "")
            )
            done[generation] = moves, writes
            event = [r.time_ms for r in records if r.kind == "event" and r.action == "ControlledShutdown"]
            seconds[generation] = event[-1] - event[0]
    assert done[fast] == done[slow]
    assert seconds[slow] > 5 * seconds[fast]


@pytest.mark.parametrize("field", ["retries_whole_batch", "forgets_on_resignation", "preempts_queue"])
def test_a_field_changes_nothing_where_it_does_not_count(field: str) -> None:
    """Without a version conflict, a controller elected twice or a queue to drop: the same, record by record."""
    plain = Generation("2.0")
    with story(plain) as one, story(plain.but(**{field: not plain.has(field)})) as other:
        assert list(one.trace) == list(other.trace)


def test_a_hybrid_is_named_in_its_story_and_reopens() -> None:
    hybrid = Generation("2.0").but(pipelined=False, caches_bumped_epoch=True)
    with story(hybrid) as lab:
        assert "pipelined" in lab.story.splitlines()[0]
        with Lab.replay(lab.story) as again:
            assert again.generation == hybrid
            assert outcome(again) == outcome(lab)
