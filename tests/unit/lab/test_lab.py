"""The lab's surface: what a notebook calls, what it refuses, and stories that can be opened again."""

import asyncio
import random
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labs import lab_of, play, until_quiet
from prose import Prose
from tables import tabled

from kafka_ctl import Costs, Lab, TopicPartition
from kafka_ctl.brokers.broker import ShutdownReport
from kafka_ctl.errors import BadInput, ConditionNotMet, KafkaCtlError, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import COMMANDS


@pytest.fixture(scope="module")
def unharmed() -> Iterator[Lab]:
    """A lab for commands that are refused: it settles afterwards, and its story replays."""
    with lab_of("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, brokers=3, seed=7) as lab:
        yield lab
        lab.settle()
        assert len(lab.partitions()) == 2
        with Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_of("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, brokers=3, seed=7) as opened:
        yield opened


def test_a_lab_is_four_classes() -> None:
    """A reader of `Lab` has four places to look: the lab, its faults, its commands, and the run that is recorded."""
    assert [cls.__name__ for cls in Lab.__mro__] == ["Lab", "Faults", "Commands", "RecordedRun", "object"]


# Opening


def test_a_lab_is_ready_when_it_opens() -> None:
    with Lab() as lab:
        assert sorted(lab.brokers) == [1, 2, 3]
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
    """The brokers have only just been started, and have created nothing in ZooKeeper yet; the tool creates `/admin`."""
    with Lab(settle=False) as lab:
        lab.elect_preferred()
        assert "/admin/preferred_replica_election" in lab.znodes()
        lab.settle()
        assert "/admin/preferred_replica_election" not in lab.znodes()
    with Lab(settle=False) as lab:
        assert lab.controller is None
        assert (lab.now, {b.state for b in lab.brokers.values()}) == (0, {"starting"})
        lab.settle()
        assert lab.controller is not None


def test_the_seed_decides_who_is_first() -> None:
    winners = set()
    for seed in range(12):
        with Lab(seed=seed) as lab:
            winners.add(lab.controller.id)
    assert winners == {1, 2, 3}


def test_every_generation_runs(generation: str) -> None:
    with Lab(generation=generation) as lab:
        until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=2)
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
            until_quiet(lab.create_topic, "orders", partitions=2)
            return len(lab.partitions())

    assert asyncio.run(cell()) == 2


# Outcomes


def test_a_broker_dies(lab: Lab) -> None:
    victim = next(b for b in (1, 2) if b != lab.controller.id)
    until_quiet(lab.kill, victim)
    for p in lab.partitions():
        assert victim not in p.isr
        assert p.leader == next(r for r in p.replicas if r in p.isr)
        assert p.state == "OnlinePartition"
    assert {r.state for r in lab.replicas() if r.broker == victim} == {"OfflineReplica"}
    assert (lab.brokers[victim].state, lab.brokers[victim].leads) == ("down", ())


def test_the_controller_dies(lab: Lab) -> None:
    first = lab.controller
    lab.kill(first.id)
    assert lab.controller is None
    assert {p.state for p in lab.partitions()} == {"NonExistentPartition"}
    assert lab.replicas() == []
    lab.settle()
    second = lab.controller
    assert (second.id != first.id, second.epoch) == (True, 2)


def test_a_broker_leaves_in_good_order(lab: Lab) -> None:
    assert lab.shutdown(1) == ShutdownReport(attempts=1)
    lab.settle()
    assert [(p.leader, p.isr) for p in lab.partitions()] == [(2, (2, 3)), (2, (2, 3))]
    assert lab.brokers[1].state == "down"


def test_a_broker_leaves_in_vain(lab: Lab) -> None:
    """The last in an ISR asks three times and then goes all the same."""
    until_quiet(lab.create_topic, "lonely", assignment={0: [1, 3]})
    until_quiet(lab.kill, 3)
    begun = lab.now
    assert lab.shutdown(1) == ShutdownReport(3, (TopicPartition("lonely", 0),))
    assert 15 <= lab.now - begun < 16
    lab.settle()
    assert (lab.partition("lonely", 0).leader, lab.partition("lonely", 0).isr) == (-1, (1,))


def test_controlled_shutdown_can_be_switched_off() -> None:
    with Lab(config={"controlled.shutdown.enable": False}) as lab:
        assert lab.shutdown(1) == ShutdownReport(0)


def test_a_broker_returns(lab: Lab) -> None:
    play(lab, "kill 1; settle; start 1; settle")
    assert {p.isr[-1] for p in lab.partitions()} == {1}
    assert lab.brokers[1].state == "running"
    assert len(lab.brokers[1].follows) == 2
    assert lab.brokers[1].metadata.keys() == {TopicPartition("orders", 0), TopicPartition("orders", 1)}


def test_a_lagging_follower_leaves_the_isr_and_comes_back(lab: Lab) -> None:
    until_quiet(lab.lag, 3, "orders", 0)
    assert lab.partition("orders", 0).isr == (1, 2)
    assert lab.partition("orders", 1).isr == (2, 3, 1)
    until_quiet(lab.catch_up, 3)
    assert lab.partition("orders", 0).isr == (1, 2, 3)


def test_a_leader_falls_behind_when_it_follows(lab: Lab) -> None:
    until_quiet(lab.lag, 1, "orders", 0)
    assert lab.partition("orders", 0).isr == (1, 2, 3)
    until_quiet(lab.reassign, {"orders-0": [2, 1, 3]})
    until_quiet(lab.elect_preferred)
    lab.run_for(20)
    assert (lab.partition("orders", 0).leader, sorted(lab.partition("orders", 0).isr)) == (2, [2, 3])


def test_topics_come_grow_move_and_go(lab: Lab) -> None:
    until_quiet(lab.add_partitions, "orders", 4)
    assert len(lab.partitions()) == 4
    until_quiet(lab.reassign, {("orders", 0): [3, 2]})
    assert lab.partition("orders", 0).replicas == (3, 2)
    assert set(lab.partition("orders", 0).isr) == {3, 2}
    until_quiet(lab.elect_preferred, ["orders-0"])
    assert lab.partition("orders", 0).leader == 3
    until_quiet(lab.delete_topic, "orders")
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
    prose.refuses(ConditionNotMet, lab.run_until, lambda lab: lab.brokers[1].state == "running", limit=5)
    with Lab(brokers=1, settle=False) as silent, prose.refused(ConditionNotMet):
        silent.kill(1)
        silent.run_until(lambda lab: lab.controller is not None)


def test_a_condition_is_waited_for_up_to_its_limit() -> None:
    """The time of the limit is reached, also between two events, and the story has it."""
    with Lab(brokers=2) as lab:
        lab.settle()
        began = lab.now
        with pytest.raises(ConditionNotMet):
            lab.run_until(lambda: False, 0.125)
        assert lab.now == began + 0.125 and lab.story.endswith("run_for 0.125\n")
        lab.run_until(lambda: lab.now >= began + 0.25, 0.125)
        lab.kill(2)
        lab.settle()
        with Lab.replay(lab.story) as again:
            assert (again.now, again.trace.text()) == (lab.now, lab.trace.text())


def test_stepping(lab: Lab) -> None:
    """A step is the next moment that leaves records; a quiet lab takes none."""
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
        prose.refuses(ConditionNotMet, lab.settle, limit=1)


# What is refused


@tabled(ids=lambda v: str(v)[:60])
def test_bad_input_is_one_clear_error(prose: Prose, unharmed: Lab, name: str, args: Any, kwargs: Any) -> None:
    """It names the thing and what is allowed, and leaves no half-done command in the story."""
    story = unharmed.story
    prose.refuses(BadInput, getattr(unharmed, name), *args, **kwargs)
    assert not unharmed.story.removeprefix(story).startswith(name)
    assert len(unharmed.partitions()) == 2


@tabled(ids=str)
def test_a_lab_that_cannot_be(prose: Prose, options: dict[str, Any]) -> None:
    prose.refuses(BadInput, Lab, **options)


def test_a_closed_lab_says_so(prose: Prose, lab: Lab) -> None:
    """Closing twice is harmless; what happened can still be looked at."""
    lab.close()
    lab.close()
    prose.refuses(BadInput, lab.settle)
    assert len(lab.trace) > 100
    assert "Lab of Kafka" in repr(lab)


def test_looking_for_what_is_not_there(prose: Prose, lab: Lab) -> None:
    prose.refuses(UnknownName, lab.partition, "orders", 2)
    for error in (UnknownName, KeyError):
        with prose.refused(error):
            lab.brokers[99]
        with prose.refused(error):
            lab.znodes()["/controler"]
    assert lab.brokers.get(99) is None


# Looking


def test_what_is_stored_and_what_is_believed(lab: Lab) -> None:
    p = lab.partition("orders", 0)
    assert p == ("orders", 0, "OnlinePartition", 1, (1, 2, 3), (1, 2, 3), (), (), 0, 1, 0)
    assert [(r.broker, r.state) for r in lab.replicas() if r.partition == 0] == [
        (b, "OnlineReplica") for b in (1, 2, 3)
    ]
    znodes = lab.znodes()
    assert list(znodes) == sorted(znodes)
    data, version, owner = znodes["/controller"]
    assert (version, owner > 0, b'"version":1,"brokerid":' in data) == (0, True, True)


def test_brokers_as_they_see_it(lab: Lab) -> None:
    views = lab.brokers
    assert [id for id, b in views.items() if b.is_controller] == [lab.controller.id]
    assert views[1].leads == (TopicPartition("orders", 0),)
    assert views[1].follows == (TopicPartition("orders", 1),)
    assert views[3].leads == ()
    assert all(b.live_brokers == (1, 2, 3) for b in views.values())
    assert views[3].metadata[TopicPartition("orders", 1)].leader == 2


# Stories


def eventful(**options: Any) -> Lab:
    lab = Lab(**options)
    lab.settle()
    until_quiet(lab.create_topic, "orders", partitions=4, replication_factor=3, config={"min.insync.replicas": 2})
    lab.kill(1)
    lab.run_for(seconds=3.25)
    lab.run_until(lambda lab: any(r.action == "expired" for r in lab.trace))
    play(lab, "step n=3; settle; start 1; settle; lag 3 orders 1; settle; shutdown 2")
    lab.reassign({("orders", 0): [3, 1]})
    until_quiet(lab.elect_preferred, ["orders-1"])
    play(lab, "expire_session 3; bounce 1; settle")
    return lab


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
    lab = eventful(**options)
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


@tabled(ids=lambda v: v[:30])
def test_a_story_that_cannot_be_played(prose: Prose, reported: str) -> None:
    prose.refuses(BadInput, Lab.replay, reported)


def test_a_story_is_text(prose: Prose, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_bytes(b"lab brokers=1\n# caf\xe9\n")
    prose.refuses(BadInput, Lab.replay, path)


def test_errors_are_one_family() -> None:
    assert issubclass(BadInput, KafkaCtlError)
    assert issubclass(UnknownName, BadInput)


def test_the_stat_of_a_znode(prose: Prose) -> None:
    """Beside `lab.znodes()`, which has data, version and owner; in memory the same in every run."""
    with Lab(brokers=2, generation="2.4", seed=1) as lab, Lab(brokers=2, generation="2.4", seed=1) as again:
        for one in (lab, again):
            until_quiet(one.create_topic, "orders", assignment={0: [1, 2]})
        paths = ["/", *lab.znodes()]
        assert [lab.stat(path) for path in paths] == [again.stat(path) for path in paths]
        for path, (data, version, owner) in lab.znodes().items():
            stat = lab.stat(path)
            assert (stat.data_length, stat.version, stat.ephemeral_owner) == (len(data), version, owner)
            assert stat.czxid <= min(stat.mzxid, stat.pzxid) and stat.ctime <= stat.mtime
        state = "/brokers/topics/orders/partitions/0/state"
        before = lab.stat(state)
        until_quiet(lab.kill, lab.partition("orders", 0).leader)
        after = lab.stat(state)
        assert (after.czxid, after.ctime) == (before.czxid, before.ctime)
        assert after.mzxid > before.mzxid and after.mtime > before.mtime + 1000 and after.version == 2
        registered = lab.stat(f"/brokers/ids/{lab.controller.id}")
        assert registered.czxid == lab.world.brokers[lab.controller.id].epoch
        for path in ("/brokers/ids/9", "orders", 5):
            prose.refuses(UnknownName, lab.stat, path)


def words(reader: object, line: str) -> object:
    try:
        return reader(line)
    except ValueError:
        return ValueError


def test_words_are_those_of_a_shell() -> None:
    """On lines of everything that means something to one."""
    draw = random.Random(7)
    for _ in range(30_000):
        line = "".join(draw.choice("ab \t'\"\\#=\u00a0") for _ in range(draw.randrange(12)))
        assert words(story.split_words, line) == words(lambda text: shlex.split(text, comments=True), line), line


LONG = 800_000


@pytest.mark.parametrize(
    "word", ["x" * LONG, f"'{'x' * LONG}'", f'"{"x" * LONG}"', "#" * LONG, "a=" + "x" * LONG, "\\x" * (LONG // 10)]
)
def test_a_long_word_is_read_at_once(word: str) -> None:
    """It took 11 seconds; shlex adds each character to the ones before."""
    began = time.monotonic()
    (line,) = [each for each in story.parse(f"lab brokers=1\nwrite_znode /x {word}\n") if each.name != "lab"]
    assert time.monotonic() - began < 3
    assert line.name == "write_znode"


@pytest.mark.parametrize("name", ["lab", "lab.txt", "labs/story.txt", "lab 1"])
def test_a_file_whose_name_begins_as_a_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A path is always that of a file; a text is a story if its first word is `lab`."""
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("lab brokers=2\n", "utf-8")
    for given in (Path(name), name if "." in name else "lab brokers=2"):
        with Lab.replay(given) as lab:
            assert len(lab.brokers) == 2


def test_a_story_of_an_editor_on_windows(tmp_path: Path) -> None:
    """A file with a byte order mark, and lines that end in CR and LF."""
    (tmp_path / "story.txt").write_bytes(b"\xef\xbb\xbflab brokers=3 seed=1\r\nsettle\r\n")
    with Lab.replay(tmp_path / "story.txt") as lab:
        assert len(lab.brokers) == 3
