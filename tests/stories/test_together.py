"""Several administrators at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from labs import until_quiet
from prose import Prose, source

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab


@pytest.fixture
def lab(generation: str) -> Iterator[Lab]:
    with Lab(generation=generation, seed=3, config={"delete.topic.enable": True}) as lab:
        until_quiet(lab.create_topic, "t", 2, 2)
        yield lab


def test_tools_begin_at_the_same_moment(lab: Lab) -> None:
    """Each with a session of its own; one of two that want the same is refused in ZooKeeper's words."""
    since, now = len(lab.trace), lab.now
    answers = lab.at_once(["create_topic u partitions=2", "create_topic u", "add_partitions t 3"])
    connects = lab.trace.slice(since, actor="admin", action="connect")
    assert len(connects) == 3 and len({r.detail for r in connects}) == 3
    asked = lab.trace.slice(since, actor="admin", action={"create_topic", "add_partitions"})
    assert [r.time_ms for r in asked] == [pytest.approx(now * 1000, abs=1e-3)] * 3
    assert answers[0] is None and answers[1] is not None and answers[2] is None
    assert [r.detail for r in lab.trace.slice(since, actor="admin", action="refused")] == [answers[1]]
    lab.settle()
    assert [(p.topic, p.partition) for p in lab.partitions()] == [("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)]


def test_each_tool_closes_its_session(lab: Lab) -> None:
    """Also one that is refused."""
    open_before, since = set(lab.world.store.sessions), len(lab.trace)
    lab.at_once(["create_topic u partitions=2", "create_topic t", "elect_preferred"])
    assert len(lab.trace.slice(since, actor="admin", action="connect")) == 3
    assert set(lab.world.store.sessions) == open_before
    lab.settle()
    lab.create_topic("v")


def test_deletion_beside_growth(lab: Lab) -> None:
    """Whoever is first, the cluster comes to rest, and no invariant is broken that real Kafka keeps."""
    for tools in (["delete_topic t", "add_partitions t 5"], ["create_topic v", "delete_controller"]):
        until_quiet(lab.at_once, tools)
    assert not [v for v in lab.violations if not v.known]
    assert lab.controller is not None or any(v.known == "KAFKA-13407" for v in lab.violations)


def test_they_are_one_command_of_the_story(lab: Lab) -> None:
    """Also where arguments are JSON."""
    until_quiet(lab.at_once, ["""reassign '{"t-0":[3,1]}'""", "elect_preferred", "delete_topic nope"])
    assert lab.story.count("\nat_once ") == 1
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records


@pytest.mark.parametrize(
    "commands", ["delete_topic t", ["kill 1"], ["create_topic"], [3], ["add_partitions t none"]], ids=source
)
def test_a_wrong_command_of_at_once_is_refused(prose: Prose, lab: Lab, commands: object) -> None:
    story = lab.story
    with prose.refused(BadInput):
        lab.at_once(commands)  # type: ignore[arg-type]
    assert lab.story == story
    until_quiet(lab.delete_topic, "t")
    assert lab.partitions() == []
