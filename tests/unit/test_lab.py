"""The lab's surface: what a notebook calls, what it refuses, and stories that can be opened again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prose import Prose

from kafka_ctl import Costs, Lab, TopicPartition
from kafka_ctl.brokers.broker import ShutdownReport
from kafka_ctl.errors import BadInput, ConditionNotMet, KafkaCtlError, UnknownName
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
        assert repr(lab).startswith("Lab of Kafka 2.0: brokers [1, 2, 3]")


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


def test_running_until_something_holds(prose: Prose, lab: Lab) -> None:
    lab.kill(1)
    lab.run_until(lambda lab: any(r.action == "elect" for r in lab.trace))
    assert lab.trace[-1].kind in ("partition", "request")
    with prose.refused(ConditionNotMet):
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


def test_what_never_ends_is_given_up(prose: Prose) -> None:
    with Lab(brokers=1) as lab:
        lab.kill(1)
        with prose.refused(ConditionNotMet):
            lab.settle(limit=1)


# What is refused

BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("kill", (9,), {}),
    ("kill", ("1",), {}),
    ("kill", (None,), {}),
    ("kill", ([1],), {}),
    ("kill", (True,), {}),
    ("start", (1,), {}),
    ("shutdown", (4,), {}),
    ("shutdown", ([2],), {}),
    ("bounce", (4,), {}),
    ("expire_session", (4,), {}),
    ("catch_up", (4,), {}),
    ("lag", (1, "nope", 0), {}),
    ("lag", (1, "orders", 7), {}),
    ("lag", (9, "orders", 0), {}),
    ("create_topic", ("orders",), {}),
    ("create_topic", ("",), {}),
    ("create_topic", ("..",), {}),
    ("create_topic", ("a b",), {}),
    ("create_topic", (None,), {}),
    ("create_topic", ("x" * 250,), {}),
    ("create_topic", ("t",), {"partitions": 0}),
    ("create_topic", ("t",), {"partitions": -1}),
    ("create_topic", ("t",), {"partitions": "x"}),
    ("create_topic", ("t",), {"partitions": 1.5}),
    ("create_topic", ("t",), {"replication_factor": 4}),
    ("create_topic", ("t",), {"replication_factor": 0}),
    ("create_topic", ("t",), {"partitions": 1, "assignment": {0: [1]}}),
    ("create_topic", ("t",), {"assignment": {}}),
    ("create_topic", ("t",), {"assignment": {1: [1]}}),
    ("create_topic", ("t",), {"assignment": {0: []}}),
    ("create_topic", ("t",), {"assignment": {0: [1, 1]}}),
    ("create_topic", ("t",), {"assignment": {0: [1], 1: [1, 2]}}),
    ("create_topic", ("t",), {"assignment": {0: ["x"]}}),
    ("create_topic", ("t",), {"assignment": {0: [-1]}}),
    ("create_topic", ("t",), {"assignment": {0: 5}}),
    ("create_topic", ("t",), {"assignment": {"a": [1]}}),
    ("create_topic", ("t",), {"assignment": [1]}),
    ("create_topic", ("t",), {"config": {"nope": 1}}),
    ("create_topic", ("t",), {"config": 5}),
    ("add_partitions", ("orders", 1), {}),
    ("add_partitions", ("orders", "x"), {}),
    ("add_partitions", ("nope", 3), {}),
    ("add_partitions", (["x"], 3), {}),
    ("delete_topic", ("nope",), {}),
    ("reassign", ({},), {}),
    ("reassign", ({("orders", 0): []},), {}),
    ("reassign", ({("orders", 0): [1, 1]},), {}),
    ("reassign", ({("orders", 9): [1]},), {}),
    ("reassign", ({("orders", 0): ["x"]},), {}),
    ("reassign", ({("orders", 0): [-1]},), {}),
    ("reassign", ({("orders", 0): 5},), {}),
    ("reassign", ({"orders": [1]},), {}),
    ("reassign", ({5: [1]},), {}),
    ("reassign", ({("orders", 0, 1): [1]},), {}),
    ("reassign", ([1],), {}),
    ("reassign", (None,), {}),
    ("elect_preferred", ([("nope", 0)],), {}),
    ("elect_preferred", (["orders"],), {}),
    ("elect_preferred", ([5],), {}),
    ("elect_preferred", (5,), {}),
    ("run_for", (-1,), {}),
    ("run_for", ("x",), {}),
    ("run_for", (None,), {}),
    ("run_for", (float("nan"),), {}),
    ("run_for", (float("inf"),), {}),
    ("settle", (-1,), {}),
    ("settle", ("x",), {}),
    ("step", (-1,), {}),
    ("step", ("x",), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), BAD, ids=lambda v: str(v)[:60])
def test_bad_input_is_one_clear_error(prose: Prose, lab: Lab, name: str, args: Any, kwargs: Any) -> None:
    """It names the thing and what is allowed, and leaves no half-done command in the story."""
    story = lab.story
    with prose.refused(BadInput):
        getattr(lab, name)(*args, **kwargs)
    assert not lab.story.removeprefix(story).startswith(name)
    lab.settle()
    assert len(lab.partitions()) == 2
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records


@pytest.mark.parametrize(
    "options",
    [
        {"brokers": 0},
        {"brokers": 1001},
        {"brokers": "three"},
        {"brokers": None},
        {"brokers": True},
        {"brokers": []},
        {"brokers": [1, 1]},
        {"brokers": ["a"]},
        {"brokers": [-1]},
        {"brokers": {1: 5}},
        {"generation": "0.8"},
        {"generation": None},
        {"seed": None},
        {"seed": [1]},
        {"config": {"nope": 1}},
        {"config": {"unclean.leader.election.enable": "yes"}},
        {"config": {"zookeeper.session.timeout.ms": -1}},
        {"config": {"zookeeper.session.timeout.ms": 1.5}},
        {"config": {"zookeeper.max.in.flight.requests": 0}},
        {"config": {"replica.lag.time.max.ms": 0}},
        {"config": 5},
        {"zookeeper": "nowhere"},
        {"zookeeper": 5},
    ],
    ids=str,
)
def test_a_lab_that_cannot_be(prose: Prose, options: dict[str, Any]) -> None:
    with prose.refused(BadInput):
        Lab(**options)


def test_a_closed_lab_says_so(prose: Prose, lab: Lab) -> None:
    """Closing twice is harmless; what happened can still be looked at."""
    lab.close()
    lab.close()
    with prose.refused(BadInput):
        lab.settle()
    assert len(lab.trace) > 100
    assert "Lab of Kafka" in repr(lab)


def test_looking_for_what_is_not_there(prose: Prose, lab: Lab) -> None:
    with prose.refused(UnknownName):
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
    for reported in (lab.story, file):
        with Lab.replay(reported) as again:
            assert list(again.trace) == list(lab.trace)
            assert again.story == lab.story
            assert again.znodes() == lab.znodes()
    lab.close()


def test_a_story_reads_as_it_was_reported(lab: Lab) -> None:
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
    "reported",
    [
        "",
        "# only prose\n",
        "kill 1\nsettle\n",
        "lab 3\nsettle\n",
        "lab brokers=3 colour=red\n",
        "lab brokers=x\n",
        "lab brokers=3\n\nexplode 1\n",
        "lab brokers=3\nclose\n",
        "lab brokers=3\nkill\n",
        "lab brokers=3\nkill 1 2\n",
        "lab brokers=3\nkill broker=1 2\n",
        'lab brokers=3\nkill "1\n',
        "lab brokers=3\nkill 9\n",
        "/no/such/story",
    ],
    ids=lambda v: v[:30],
)
def test_a_story_that_cannot_be_played(prose: Prose, reported: str) -> None:
    with prose.refused(BadInput):
        Lab.replay(reported)


def test_errors_are_one_family() -> None:
    assert issubclass(BadInput, KafkaCtlError)
    assert issubclass(UnknownName, BadInput)
