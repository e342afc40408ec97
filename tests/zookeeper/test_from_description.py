"""A lab that begins as a described cluster looks as it was described, and its story opens it again."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labs import play, until_quiet
from prose import Prose, source
from tables import tabled
from zookeepers import kazoo_at, needed

from kafka_ctl import BadInput, EmbeddedServer, Lab, TopicPartition
from kafka_ctl.lab import story
from kafka_ctl.lab.description import EPOCH, Description, PartitionDescription, decode, encode, parse_description

DESCRIBED = """\
Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: retention.ms=1000,cleanup.policy=compact,delete
\tTopic: orders\tPartition: 0\tLeader: 3\tReplicas: 1,2,3\tIsr: 3,2
\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1
Topic: alone\tPartitionCount: 1\tReplicationFactor: 1\tConfigs:
\tTopic: alone\tPartition: 0\tLeader: none\tReplicas: 4\tIsr: 4
"""


def state_of(lab: Lab) -> dict[TopicPartition, PartitionDescription]:
    """What the lab's partitions are, as a description says it."""
    return {
        TopicPartition(p.topic, p.partition): PartitionDescription(
            p.replicas, None if p.leader == -1 else p.leader, p.isr, p.adding, p.removing
        )
        for p in lab.partitions()
    }


@st.composite
def descriptions(draw: st.DrawFn, shrunk: bool = False) -> Description:
    """Clusters that can last: some brokers are dead, and who is alive leads, and expels who is not.

    With `shrunk`, ISRs without a leader have one member, as where the controller has tidied up.
    """
    ids = draw(st.lists(st.integers(0, 900), min_size=1, max_size=6, unique=True))
    dead = set(draw(st.lists(st.sampled_from(ids), unique=True)))
    partitions = {}
    for topic in draw(st.lists(st.sampled_from(["orders", "a.b_c-9", "x"]), min_size=1, unique=True)):
        for number in range(draw(st.integers(1, 4))):
            replicas = tuple(draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True)))
            order = draw(st.permutations(replicas))
            alive, lost = [r for r in order if r not in dead], [r for r in order if r in dead]
            if alive and draw(st.integers(0, 3)):
                leader = alive[0]
                others = [r for r in alive if r != leader]
                size = draw(st.integers(0, len(others)))
                isr = draw(st.permutations([leader, *others[:size]]))
                state = PartitionDescription(replicas, leader, tuple(isr))
            else:
                state = PartitionDescription(replicas, None, tuple(lost[:1] if shrunk else lost))
            partitions[TopicPartition(topic, number)] = state
    return Description(tuple(sorted({b for p in partitions.values() for b in p.replicas})), partitions, {})


@settings(max_examples=120)
@given(descriptions(), st.integers(0, 5))
def test_any_cluster_that_can_be_is_built(description: Description, seed: int) -> None:
    """Leaders, ISRs and replicas are as described once all is quiet, whoever became controller."""
    with Lab(description.brokers, seed=seed, described=description) as lab:
        assert state_of(lab) == description.partitions
        again = Lab.replay(lab.story)
        assert list(again.trace) == list(lab.trace)


@settings(max_examples=60)
@given(descriptions(shrunk=True), st.sampled_from(["2.4", "0.10"]))
def test_other_generations_build_what_they_would_leave(description: Description, generation: str) -> None:
    """A controller of 2.4 takes the dead out of ISRs when it starts, so there none may be left in them."""
    config = {"unclean.leader.election.enable": False}
    with Lab(description.brokers, generation=generation, config=config, described=description) as lab:
        assert state_of(lab) == description.partitions


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        "a b",
        "a=b",
        "=",
        "'",
        '"',
        "\\",
        "#",
        "a,b=c",
        "B,c d=e",
        "\n",
        "\x1b[31m",
        "\u2028",
        "configs",
        "0",
        "é",
    ]
)


@st.composite
def odd_descriptions(draw: st.DrawFn) -> Description:
    """Descriptions with gaps, and with configurations that no tool would write; what runs moves replicas."""
    partitions = {}
    topics = draw(st.lists(st.from_regex(r"[a-zA-Z0-9_-]{1,9}", fullmatch=True), min_size=1, max_size=4, unique=True))
    for topic in topics:
        for number in draw(st.lists(st.integers(0, 40) | st.integers(0, 2), min_size=1, max_size=5, unique=True)):
            replicas = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
            isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
            adding, removing = (draw(st.lists(st.sampled_from(replicas), max_size=1)) for _ in range(2))
            leader = draw(st.sampled_from([None, isr[0]]))
            state = PartitionDescription(tuple(replicas), leader, tuple(isr), tuple(adding), tuple(removing))
            partitions[TopicPartition(topic, number)] = state
    configs = draw(st.dictionaries(st.sampled_from([*topics, "other"]), st.dictionaries(texts, texts, max_size=4)))
    brokers = {b for p in partitions.values() for b in p.replicas}
    return Description(tuple(sorted(brokers)), dict(sorted(partitions.items())), configs)


@given(descriptions() | odd_descriptions())
def test_a_story_keeps_a_description(description: Description) -> None:
    """Through a line of text and back: numbers, gaps and configurations."""
    line = str(story.Command("lab", (), {"description": encode(description)}))
    (read,) = story.parse(line)
    assert story.opening(read)["described"] == description


@settings(max_examples=25)
@given(descriptions(), st.data())
def test_a_description_with_gaps_is_the_same_cluster_again(description: Description, data: st.DataObject) -> None:
    """Partition 1 without 0, as `--under-replicated` prints it: `replay`, `fork` and `back` show these partitions."""
    kept = data.draw(st.lists(st.sampled_from(list(description.partitions)), min_size=1, unique=True))
    topics, racks = {tp.topic for tp in kept}, st.sampled_from([None, "a", "r 1", "\x1b[2J"])
    configs = data.draw(st.dictionaries(st.sampled_from(sorted(topics)), st.dictionaries(texts, texts, max_size=3)))
    some = description._replace(partitions={tp: description.partitions[tp] for tp in sorted(kept)}, configs=configs)
    with Lab({id: data.draw(racks) for id in description.brokers}, described=some) as lab:
        assert set(state_of(lab)) == set(kept)
        first = description.brokers[0]
        (lab.start if lab.brokers[first].state == "down" else lab.kill)(first)
        lab.settle()
        with Lab.replay(lab.story) as again, lab.fork(at=len(lab.trace) - 1) as fork:
            assert again.trace.records == lab.trace.records == fork.trace.records
            assert again.znodes() == lab.znodes() and again.story == lab.story
        before = state_of(lab)
        lab.back(1)
        assert set(state_of(lab)) == set(before)


def test_the_text_of_a_description_in_a_story() -> None:
    """Without gaps a list, as ever; with gaps the numbers are kept; and numbers that are none are refused."""
    first, second = PartitionDescription((1, 2), 1, (1,)), PartitionDescription((2, 1), None, (2,), (1,), ())
    plain = Description((1, 2), {TopicPartition("t", 0): first, TopicPartition("t", 1): second}, {"t": {"a": "b"}})
    assert encode(plain) == {"t": [[[1, 2], 1, [1]], [[2, 1], None, [2], [1], []], {"a": "b"}]}
    gaps = plain._replace(partitions={TopicPartition("t", 1): first, TopicPartition("t", 7): second})
    kept = {"1": [[1, 2], 1, [1]], "7": [[2, 1], None, [2], [1], []], "configs": {"a": "b"}}
    assert encode(gaps) == {"t": kept}
    for odd in ({"x": []}, {"1": 3}, {"-1": [[1], 1, [1]]}, {"configs": 3}, [[[1, "2"], 1, [1]]], [[[1], 1]], 3, "x"):
        with pytest.raises(BadInput, match="description"):
            decode({"t": odd})


def test_a_described_cluster(tmp_path: Path) -> None:
    """Text or file; who must be dead is down, who is out of sync stays behind until it may catch up."""
    path = tmp_path / "topics.txt"
    path.write_text(DESCRIBED)
    for form in (DESCRIBED, path):
        with Lab.from_description(form) as lab:
            assert state_of(lab) == parse_description(DESCRIBED).partitions
            assert {id: b.state for id, b in lab.brokers.items()} == {
                1: "running",
                2: "running",
                3: "running",
                4: "down",
            }
            assert [p.state for p in lab.partitions()] == ["OfflinePartition", "OnlinePartition", "OnlinePartition"]
            config = json.loads(lab.znodes()["/config/topics/orders"][0])["config"]
            assert config == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
            view = lab.controller
            assert view is not None and view.epoch == EPOCH + 1
            play(lab, "catch_up 1; start 4; settle")
            assert lab.partition("orders", 0).isr == (3, 2, 1)
            assert lab.partition("alone", 0).leader == 4


def test_the_json_of_a_reassignment_is_a_cluster() -> None:
    """The first replicas lead and all are in sync."""
    text = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[5,2]}]}'
    with Lab.from_description(text) as lab:
        assert state_of(lab) == {TopicPartition("t", 0): PartitionDescription((5, 2), 5, (5, 2))}
        assert lab.znodes()["/brokers/topics/t"][0] == b'{"version":1,"partitions":{"0":[5,2]}}'


def test_options_are_those_of_the_lab(prose: Prose) -> None:
    """Racks and brokers that hold nothing may be added; none may be missing."""
    with Lab.from_description(DESCRIBED, brokers={n: f"r{n % 2}" for n in range(1, 7)}, seed=5) as lab:
        assert [id for id, b in lab.brokers.items() if b.state == "running"] == [1, 2, 3, 5, 6]
        assert lab.brokers[5].rack == "r1" and lab.seed == 5
        assert "\nsettle" not in lab.story and Lab.replay(lab.story).brokers[6].rack == "r0"
    prose.refuses(BadInput, Lab.from_description, DESCRIBED, brokers=2)


def test_nobody_is_elected_before_all_have_come() -> None:
    """The first controller finds every broker that can be alive, so nothing moves."""
    with Lab.from_description(DESCRIBED, settle=False) as lab:
        assert not lab.trace.slice(kind="controller", action="elected")
        assert len(lab.trace.slice(kind="broker", action="registered")) == 3
        lab.settle()
        assert {r.leader_epoch for r in lab.trace.slice(kind="partition") if r.leader_epoch} == set()


def test_after_an_unclean_setting_all_replicas_must_be_dead() -> None:
    """Where a replica out of sync may lead, a partition without a leader has no live replica."""
    text = (
        "Topic: t PartitionCount: 1 ReplicationFactor: 2 Configs: {}\n"
        " Topic: t Partition: 0 Leader: none Replicas: 1,2 Isr: 1\n"
        "Topic: u PartitionCount: 1 ReplicationFactor: 1 Configs:\n"
        " Topic: u Partition: 0 Leader: 3 Replicas: 3,2 Isr: 3,2\n"
    )
    with Lab.from_description(text.format("")) as lab:
        assert lab.brokers[2].state == "running"
    with Lab.from_description(text.format("unclean.leader.election.enable=true")) as lab:
        assert lab.brokers[2].state == "down"
        assert lab.partition("t", 0)[3:5] == (-1, (1,))
    with Lab.from_description(text.format(""), config={"unclean.leader.election.enable": True}) as lab:
        assert lab.brokers[2].state == "down"


MOVING = (
    "Topic: t PartitionCount: 1 ReplicationFactor: 2 Configs:\n"
    " Topic: t Partition: 0 Leader: 1 Replicas: 3,1,2 Isr: 1,2 Adding Replicas: 3 Removing Replicas: 1\n"
)


def test_a_running_reassignment_goes_on() -> None:
    """What is added lags, so that the reassignment is still under way; it ends when the new replica catches up."""
    with Lab.from_description(MOVING, generation="2.4") as lab:
        assert state_of(lab) == parse_description(MOVING).partitions
        assert list(Lab.replay(lab.story).trace) == list(lab.trace)
        until_quiet(lab.catch_up, 3)
        assert lab.partition("t", 0).replicas == (3, 2)


@tabled(ids=source)
def test_what_cannot_be_is_reported(prose: Prose, text: str) -> None:
    """One sentence names the partition or the file."""
    prose.refuses(BadInput, Lab.from_description, text)


@pytest.mark.parametrize(
    "kept",
    [
        "[]",
        "7",
        '{"t":7}',
        '{"t":[[1]]}',
        '{"t":[[[1,1],1,[1]]]}',
        '{"t t":[[[1],1,[1]]]}',
        '{"/brokers/ids":[1],"/controller_epoch":"-2"}',
        '{"/brokers/ids":[1],"/controller_epoch":"2147483647"}',
    ],
)
def test_a_story_with_another_description_is_refused(kept: str) -> None:
    """The story's first line says what is wrong."""
    with pytest.raises(BadInput):
        Lab.replay(f"lab brokers=[1] description='{kept}'\n")


def test_an_existing_topic_is_not_overwritten(prose: Prose) -> None:
    """On somebody's ZooKeeper a described topic may exist already."""
    needed()
    options: dict[str, Any] = {"config": {"zookeeper.session.timeout.ms": 1500}}
    with EmbeddedServer() as server, kazoo_at(server.address) as kazoo:
        kazoo.create("/kit/brokers/topics/alone", b"theirs", makepath=True)
        with prose.refused(BadInput):
            Lab.from_description(DESCRIBED, zookeeper=f"{server.address}/kit", join=True, **options)
        assert kazoo.get("/kit/brokers/topics/alone")[0] == b"theirs"
        with Lab.from_description(DESCRIBED, zookeeper=f"{server.address}/other", **options) as lab:
            assert state_of(lab) == parse_description(DESCRIBED).partitions
