"""The lab's surface: what a notebook calls, what it refuses, and stories that can be opened again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_ctl import Costs, Lab, TopicPartition
from kafka_ctl.brokers.broker import ShutdownReport
from kafka_ctl.errors import BadInput, KafkaCtlError, NotReached, UnknownName
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.lab.lab import COMMANDS


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(brokers=3, seed=7) as opened:
        opened.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
        opened.settle()
        yield opened


# Opening


def test_a_lab_is_ready_when_it_opens() -> None:
    with Lab() as lab:
        assert sorted(lab.brokers) == [1, 2, 3]
        assert lab.controller is not None
        assert lab.controller.epoch == 1
        assert lab.generation == Generation("2.0")
        assert {b.state for b in lab.brokers.values()} == {"running"}
        assert repr(lab).startswith("Lab of Kafka 2.0: brokers [1, 2, 3] of [1, 2, 3] up, controller ")


@pytest.mark.parametrize(("brokers", "ids"), [(2, [1, 2]), ([5, 1], [1, 5]), ({7: "a", 3: "b"}, [3, 7]), ([0], [0])])
def test_brokers_by_number_by_id_or_with_racks(brokers: Any, ids: list[int]) -> None:
    with Lab(brokers=brokers) as lab:
        assert list(lab.brokers) == ids
        if isinstance(brokers, dict):
            assert {id: b.rack for id, b in lab.brokers.items()} == brokers
            assert b'"rack":"a"' in lab.znodes()["/brokers/ids/7"][0]


def test_a_lab_that_has_not_settled() -> None:
    """The brokers have only just been started."""
    with Lab(settle=False) as lab:
        assert lab.controller is None
        assert (lab.now, {b.state for b in lab.brokers.values()}) == (0, {"starting"})
        lab.settle()
        assert lab.controller is not None


def test_the_seed_decides_who_is_first() -> None:
    winners = set()
    for seed in range(12):
        with Lab(seed=seed) as lab:
            assert lab.controller is not None
            winners.add(lab.controller.id)
    assert winners == {1, 2, 3}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_runs(generation: str) -> None:
    with Lab(generation=generation) as lab:
        lab.create_topic("orders", partitions=3, replication_factor=2)
        lab.settle()
        assert [p.leader for p in lab.partitions()] == [p.replicas[0] for p in lab.partitions()]


def test_configuration_in_kafkas_own_keys() -> None:
    with Lab(config={"zookeeper.session.timeout.ms": 1000}, costs=Costs(zookeeper_tick=0)) as lab:
        assert lab.config["zookeeper.session.timeout.ms"] == 1000
        assert lab.config["replica.lag.time.max.ms"] == 10000
        lab.kill(1)
        begun = lab.now
        lab.run_until(lambda lab: "/brokers/ids/1" not in lab.znodes())
        assert lab.now - begun == pytest.approx(1, abs=0.01)


def test_inside_a_running_event_loop() -> None:
    """As in a notebook."""

    async def cell() -> int:
        with Lab(brokers=2) as lab:
            lab.create_topic("orders", partitions=2)
            lab.settle()
            return len(lab.partitions())

    assert asyncio.run(cell()) == 2


# Outcomes


def test_a_broker_dies(lab: Lab) -> None:
    assert lab.controller is not None
    victim = next(b for b in (1, 2) if b != lab.controller.id)
    lab.kill(victim)
    lab.settle()
    for p in lab.partitions():
        assert victim not in p.isr
        assert p.leader == next(r for r in p.replicas if r in p.isr)
        assert p.state == "OnlinePartition"
    assert {r.state for r in lab.replicas() if r.broker == victim} == {"OfflineReplica"}
    assert (lab.brokers[victim].state, lab.brokers[victim].leads) == ("down", ())


def test_the_controller_dies(lab: Lab) -> None:
    first = lab.controller
    assert first is not None
    lab.kill(first.id)
    assert lab.controller is None
    assert {p.state for p in lab.partitions()} == {"NonExistentPartition"}
    assert lab.replicas() == []
    lab.settle()
    second = lab.controller
    assert second is not None
    assert (second.id != first.id, second.epoch) == (True, 2)


def test_a_broker_leaves_in_good_order(lab: Lab) -> None:
    assert lab.shutdown(1) == ShutdownReport(attempts=1)
    lab.settle()
    assert [(p.leader, p.isr) for p in lab.partitions()] == [(2, (2, 3)), (2, (2, 3))]
    assert lab.brokers[1].state == "down"


def test_a_broker_leaves_in_vain(lab: Lab) -> None:
    """The last in an ISR asks three times and then goes all the same."""
    lab.create_topic("lonely", assignment={0: [1, 3]})
    lab.settle()
    lab.kill(3)
    lab.settle()
    begun = lab.now
    report = lab.shutdown(1)
    assert report == ShutdownReport(3, (TopicPartition("lonely", 0),))
    assert 15 <= lab.now - begun < 16
    lab.settle()
    assert (lab.partition("lonely", 0).leader, lab.partition("lonely", 0).isr) == (-1, (1,))


def test_controlled_shutdown_can_be_switched_off() -> None:
    with Lab(config={"controlled.shutdown.enable": False}) as lab:
        assert lab.shutdown(1) == ShutdownReport(0)


def test_a_broker_returns(lab: Lab) -> None:
    lab.kill(1)
    lab.settle()
    lab.start(1)
    lab.settle()
    assert {p.isr[-1] for p in lab.partitions()} == {1}
    assert lab.brokers[1].state == "running"
    assert len(lab.brokers[1].follows) == 2
    assert lab.brokers[1].metadata.keys() == {TopicPartition("orders", 0), TopicPartition("orders", 1)}


def test_a_lagging_follower_leaves_the_isr_and_comes_back(lab: Lab) -> None:
    lab.lag(3, "orders", 0)
    lab.settle()
    assert lab.partition("orders", 0).isr == (1, 2)
    assert lab.partition("orders", 1).isr == (2, 3, 1)
    lab.catch_up(3)
    lab.settle()
    assert lab.partition("orders", 0).isr == (1, 2, 3)


def test_topics_come_grow_move_and_go(lab: Lab) -> None:
    lab.add_partitions("orders", 4)
    lab.settle()
    assert len(lab.partitions()) == 4
    lab.reassign({("orders", 0): [3, 2]})
    lab.settle()
    assert lab.partition("orders", 0).replicas == (3, 2)
    assert set(lab.partition("orders", 0).isr) == {3, 2}
    lab.elect_preferred(["orders-0"])
    lab.settle()
    assert lab.partition("orders", 0).leader == 3
    lab.delete_topic("orders")
    lab.settle()
    assert lab.partitions() == []
    assert not [path for path in lab.znodes() if path.startswith("/brokers/topics/")]


# Time


def test_running_for_a_while(lab: Lab) -> None:
    begun = lab.now
    lab.run_for(2.5)
    assert lab.now == begun + 2.5
    lab.run_for(0)
    assert lab.now == begun + 2.5


def test_running_until_something_holds(lab: Lab) -> None:
    lab.kill(1)
    lab.run_until(lambda lab: any(r.action == "elect" for r in lab.trace))
    assert lab.trace[-1].kind in ("partition", "request")
    with pytest.raises(NotReached, match="the condition did not hold within"):
        lab.run_until(lambda lab: False, limit=5)


def test_stepping(lab: Lab) -> None:
    """A step is the next moment that leaves records; a quiet lab takes none."""
    assert lab.controller is not None
    lab.delete_controller()
    for _ in range(20):
        seen, now = len(lab.trace), lab.now
        lab.step()
        assert len(lab.trace) > seen
        assert lab.now >= now
    lab.settle()
    seen = len(lab.trace)
    lab.step(5)
    assert len(lab.trace) == seen


def test_what_never_ends_is_given_up() -> None:
    with Lab(brokers=1) as lab:
        lab.kill(1)
        with pytest.raises(NotReached, match="still busy after 1 s of virtual time"):
            lab.settle(limit=1)


# What is refused

BAD: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("kill", (9,), {}, "unknown broker 9; known: 1, 2, 3"),
    ("kill", ("1",), {}, "broker id cannot be '1'; it is a whole number"),
    ("kill", (None,), {}, "broker"),
    ("kill", ([1],), {}, "broker"),
    ("kill", (True,), {}, "broker"),
    ("start", (1,), {}, "broker 1 is running; start needs one that is down"),
    ("shutdown", (4,), {}, "unknown broker 4"),
    ("shutdown", ([2],), {}, "broker"),
    ("bounce", (4,), {}, "unknown broker 4"),
    ("expire_session", (4,), {}, "unknown broker 4"),
    ("catch_up", (4,), {}, "unknown broker 4"),
    ("lag", (1, "nope", 0), {}, "unknown partition 'nope-0'; known: orders-0, orders-1"),
    ("lag", (1, "orders", 7), {}, "unknown partition 'orders-7'"),
    ("lag", (9, "orders", 0), {}, "unknown broker 9"),
    ("create_topic", ("orders",), {}, "Topic 'orders' already exists"),
    ("create_topic", ("",), {}, "Topic name is illegal, it can't be empty"),
    ("create_topic", ("..",), {}, 'Topic name cannot be "." or ".."'),
    ("create_topic", ("a b",), {}, 'Topic name "a b" is illegal'),
    ("create_topic", (None,), {}, "topic.* None"),
    ("create_topic", ("x" * 250,), {}, "it can't be longer than 249 characters"),
    ("create_topic", ("t",), {"partitions": 0}, "artitions"),
    ("create_topic", ("t",), {"partitions": -1}, "artitions"),
    ("create_topic", ("t",), {"partitions": "x"}, "artitions"),
    ("create_topic", ("t",), {"partitions": 1.5}, "artitions"),
    ("create_topic", ("t",), {"replication_factor": 4}, "eplication factor: 4 larger than available brokers: 3"),
    ("create_topic", ("t",), {"replication_factor": 0}, "eplication"),
    ("create_topic", ("t",), {"partitions": 1, "assignment": {0: [1]}}, "not both"),
    ("create_topic", ("t",), {"assignment": {}}, "partitions are numbered from 0 without gaps"),
    ("create_topic", ("t",), {"assignment": {1: [1]}}, "partitions are numbered from 0 without gaps"),
    ("create_topic", ("t",), {"assignment": {0: []}}, "Duplicate replica|no replica|empty"),
    ("create_topic", ("t",), {"assignment": {0: [1, 1]}}, "Duplicate replica assignment found"),
    ("create_topic", ("t",), {"assignment": {0: [1], 1: [1, 2]}}, "same number of replicas"),
    ("create_topic", ("t",), {"assignment": {0: ["x"]}}, "replica"),
    ("create_topic", ("t",), {"assignment": {0: [-1]}}, "replica"),
    ("create_topic", ("t",), {"assignment": {0: 5}}, "assignment|replica"),
    ("create_topic", ("t",), {"assignment": {"a": [1]}}, "assignment|partition"),
    ("create_topic", ("t",), {"assignment": [1]}, "assignment"),
    ("create_topic", ("t",), {"config": {"nope": 1}}, "unknown topic configuration key 'nope'; known: "),
    ("create_topic", ("t",), {"config": 5}, "config"),
    ("add_partitions", ("orders", 1), {}, "can only be increased: 1 asked, 2 are there"),
    ("add_partitions", ("orders", "x"), {}, "artitions"),
    ("add_partitions", ("nope", 3), {}, "unknown topic 'nope'; known: orders"),
    ("add_partitions", (["x"], 3), {}, "topic"),
    ("delete_topic", ("nope",), {}, "unknown topic 'nope'; known: orders"),
    ("reassign", ({},), {}, "empty"),
    ("reassign", ({("orders", 0): []},), {}, "Partition replica list cannot be empty: orders-0"),
    ("reassign", ({("orders", 0): [1, 1]},), {}, "may not contain duplicate entries"),
    ("reassign", ({("orders", 9): [1]},), {}, "non-existent partitions: orders-9"),
    ("reassign", ({("orders", 0): ["x"]},), {}, "replica"),
    ("reassign", ({("orders", 0): [-1]},), {}, "replica"),
    ("reassign", ({("orders", 0): 5},), {}, "replica|orders-0"),
    ("reassign", ({"orders": [1]},), {}, "names no partition"),
    ("reassign", ({5: [1]},), {}, "names no partition"),
    ("reassign", ({("orders", 0, 1): [1]},), {}, "names no partition"),
    ("reassign", ([1],), {}, "reassign"),
    ("reassign", (None,), {}, "reassign"),
    ("elect_preferred", ([("nope", 0)],), {}, "unknown partition 'nope-0'"),
    ("elect_preferred", (["orders"],), {}, "names no partition"),
    ("elect_preferred", ([5],), {}, "names no partition"),
    ("elect_preferred", (5,), {}, "partition"),
    ("run_for", (-1,), {}, "0 or more"),
    ("run_for", ("x",), {}, "seconds"),
    ("run_for", (None,), {}, "seconds"),
    ("run_for", (float("nan"),), {}, "seconds"),
    ("run_for", (float("inf"),), {}, "seconds"),
    ("settle", (-1,), {}, "limit|seconds"),
    ("settle", ("x",), {}, "limit|seconds"),
    ("step", (-1,), {}, "step"),
    ("step", ("x",), {}, "step"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "words"), BAD, ids=lambda v: str(v)[:40])
def test_bad_input_is_one_clear_error(lab: Lab, name: str, args: Any, kwargs: Any, words: str) -> None:
    """It names the thing and what is allowed, and leaves no half-done command in the story."""
    story = lab.story
    with pytest.raises(BadInput, match=words):
        getattr(lab, name)(*args, **kwargs)
    assert not lab.story.removeprefix(story).startswith(name)
    lab.settle()
    assert len(lab.partitions()) == 2
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"brokers": 0}, "a lab has 1 to 1000 brokers"),
        ({"brokers": 1001}, "a lab has 1 to 1000 brokers"),
        ({"brokers": "three"}, "a number of brokers, a list of ids, or a mapping"),
        ({"brokers": None}, "a number of brokers"),
        ({"brokers": True}, "a number of brokers"),
        ({"brokers": []}, "at least one broker"),
        ({"brokers": [1, 1]}, "an id stands there twice"),
        ({"brokers": ["a"]}, "broker id 'a': an id is a whole number"),
        ({"brokers": [-1]}, "broker id -1"),
        ({"brokers": {1: 5}}, "rack"),
        ({"generation": "0.8"}, r"unknown generation '0\.8'; known: 0\.10, 2\.0, 2\.4"),
        ({"generation": None}, "unknown generation None"),
        ({"seed": None}, "seed"),
        ({"seed": [1]}, "seed"),
        ({"config": {"nope": 1}}, "unknown configuration key 'nope'; known: auto.leader.rebalance.enable"),
        ({"config": {"unclean.leader.election.enable": "yes"}}, "it is True or False"),
        ({"config": {"zookeeper.session.timeout.ms": -1}}, "cannot be -1"),
        ({"config": {"zookeeper.session.timeout.ms": 1.5}}, "a whole number"),
        ({"config": {"zookeeper.max.in.flight.requests": 0}}, "cannot be 0"),
        ({"config": {"replica.lag.time.max.ms": 0}}, "cannot be 0"),
        ({"config": 5}, "config"),
        ({"zookeeper": "nowhere"}, "ZooKeeper address 'nowhere'"),
        ({"zookeeper": 5}, "ookeeper"),
    ],
    ids=str,
)
def test_a_lab_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Lab(**options)


def test_a_closed_lab_says_so(lab: Lab) -> None:
    """Closing twice is harmless; what happened can still be looked at."""
    lab.close()
    lab.close()
    with pytest.raises(BadInput, match="this lab is closed; settle needs an open one"):
        lab.settle()
    assert len(lab.trace) > 100
    assert "Lab of Kafka" in repr(lab)


def test_looking_for_what_is_not_there(lab: Lab) -> None:
    with pytest.raises(UnknownName, match="unknown partition 'orders-2'; known: orders-0, orders-1"):
        lab.partition("orders", 2)


# Looking


def test_what_is_stored_and_what_is_believed(lab: Lab) -> None:
    p = lab.partition("orders", 0)
    assert p == (
        "orders", 0, "OnlinePartition", 1, (1, 2, 3), (1, 2, 3), (), (), 0, 1, 0
    )  # fmt: skip
    assert [(r.broker, r.state) for r in lab.replicas() if r.partition == 0] == [
        (b, "OnlineReplica") for b in (1, 2, 3)
    ]
    znodes = lab.znodes()
    assert list(znodes) == sorted(znodes)
    data, version, owner = znodes["/controller"]
    assert (version, owner > 0, b'"version":1,"brokerid":' in data) == (0, True, True)


def test_brokers_as_they_see_it(lab: Lab) -> None:
    assert lab.controller is not None
    views = lab.brokers
    assert [id for id, b in views.items() if b.is_controller] == [lab.controller.id]
    assert views[1].leads == (TopicPartition("orders", 0),)
    assert views[1].follows == (TopicPartition("orders", 1),)
    assert views[3].leads == ()
    assert all(b.live_brokers == (1, 2, 3) for b in views.values())
    assert views[3].metadata[TopicPartition("orders", 1)].leader == 2


# Stories


def played(run: Callable[[Lab], None], **options: Any) -> Lab:
    lab = Lab(**options)
    run(lab)
    return lab


def eventful(lab: Lab) -> None:
    lab.settle()
    lab.create_topic("orders", partitions=4, replication_factor=3, config={"min.insync.replicas": 2})
    lab.settle()
    lab.kill(1)
    lab.run_for(seconds=3.25)
    lab.run_until(lambda lab: any(r.action == "expired" for r in lab.trace))
    lab.step(3)
    lab.settle()
    lab.start(1)
    lab.settle()
    lab.lag(3, "orders", 1)
    lab.settle()
    lab.shutdown(2)
    lab.reassign({("orders", 0): [3, 1]})
    lab.elect_preferred(["orders-1"])
    lab.settle()
    lab.expire_session(3)
    lab.bounce(1)
    lab.settle()


@pytest.mark.parametrize(
    "options",
    [
        {"brokers": 3, "seed": 7},
        {"brokers": [4, 1, 2, 3], "seed": 1, "generation": "0.10"},
        {"brokers": {1: "a", 2: "b", 3: "a"}, "seed": 2, "generation": "2.4"},
        {
            "brokers": 3,
            "generation": Generation("2.0").but(pipelined=False),
            "config": {"replica.lag.time.max.ms": 4000},
        },
        {"brokers": 3, "settle": False},
    ],
    ids=str,
)
def test_a_story_reopens_exactly(options: dict[str, Any], tmp_path: Path) -> None:
    """The same records, one by one, from the text and from a file."""
    lab = played(eventful, **options)
    file = tmp_path / "story.txt"
    file.write_text(lab.story, "utf-8")
    for told in (lab.story, file):
        with Lab.replay(told) as again:
            assert list(again.trace) == list(lab.trace)
            assert again.story == lab.story
            assert again.znodes() == lab.znodes()
    lab.close()


def test_a_story_reads_as_it_was_told(lab: Lab) -> None:
    lab.kill(1)
    lab.run_for(1.5)
    assert lab.story.splitlines() == [
        "lab brokers=[1,2,3] generation=2.0 seed=7",
        """create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1]}'""",
        "settle",
        "kill 1",
        "run_for 1.5",
    ]


def test_every_command_is_a_method_with_a_sentence() -> None:
    assert {"create_topic", "kill", "settle", "shutdown", "reassign", "step"} <= set(COMMANDS)
    for name in COMMANDS:
        assert (getattr(Lab, name).__doc__ or "").strip().endswith((".", "quiet.", "words.")), name


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("", "cannot be read|empty"),
        ("# only prose\n", "the story is empty; it begins with a line such as: lab"),
        ("kill 1\nsettle\n", "line 1: a story begins with 'lab'"),
        ("lab 3\nsettle\n", "line 1: a story begins with 'lab'"),
        ("lab brokers=3 colour=red\n", "line 1: a story begins with 'lab'"),
        ("lab brokers=x\n", "brokers='x'"),
        ("lab brokers=3\n\nexplode 1\n", r"unknown command \(line 3\) 'explode'; known: add_broker, add_partitions"),
        ("lab brokers=3\nclose\n", r"unknown command \(line 2\) 'close'"),
        ("lab brokers=3\nkill\n", "line 2: kill: .*broker"),
        ("lab brokers=3\nkill 1 2\n", "line 2: kill: too many positional arguments"),
        ("lab brokers=3\nkill broker=1 2\n", "line 2: '2' comes after a named argument"),
        ('lab brokers=3\nkill "1\n', "line 2: .* is no command: No closing quotation"),
        ("lab brokers=3\nkill 9\n", "unknown broker 9"),
        ("/no/such/story", "story '/no/such/story' cannot be read"),
    ],
    ids=lambda v: v[:30],
)
def test_a_story_that_cannot_be_played(told: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Lab.replay(told)


def test_errors_are_one_family() -> None:
    assert issubclass(BadInput, KafkaCtlError)
    assert issubclass(UnknownName, BadInput)
