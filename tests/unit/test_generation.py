"""Generations as data: three of them, what differs, and hybrids that never were."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import DEFECTS, DIFFERENCES, FIELDS, GENERATIONS, Generation
from kafka_ctl.paths import ROOT


def test_each_generation_follows_a_release() -> None:
    assert {name: Generation(name).kafka for name in GENERATIONS} == {
        "0.10": "0.10.2.2",
        "2.0": "2.0.1",
        "2.4": "2.4.1",
    }
    assert str(Generation("2.0")) == "2.0"
    assert Generation() == Generation("2.0")


def test_every_difference_has_its_ticket_and_says_what_it_is() -> None:
    """And is one: some two generations differ in it."""
    assert len(DIFFERENCES) >= 15
    for field in DIFFERENCES:
        assert re.fullmatch(r"(KAFKA|KIP)-\d+", field.ticket), field.name
        assert len(field.doc) > 20, field.name
        assert len({Generation(name).has(field.name) for name in GENERATIONS}) == 2, field.name


def test_a_defect_has_its_ticket_and_the_release_that_mended_it() -> None:
    """The generations agree about it, or it would be a difference."""
    assert len(DEFECTS) >= 7
    for field in DEFECTS:
        assert re.fullmatch(r"KAFKA-\d+", field.ticket), field.name
        assert re.fullmatch(r"\d+(\.\d+){2,3}", field.fixed or ""), field.name
        assert len({Generation(name).has(field.name) for name in GENERATIONS}) == 1, field.name


def test_every_difference_is_asked_for() -> None:
    """A field that no code reads would be a promise that is not kept."""
    asked: set[str] = set()
    for folder in ("controller", "brokers", "lab", "reassign", "zookeeper"):
        for path in (ROOT / "kafka_ctl" / folder).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            asked |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {field.bug or field.name for field in FIELDS} - asked == set()


def test_a_bug_is_asked_for_in_three_lines_at_most() -> None:
    """So that a reader may skip them: no other code depends on bugs of other times."""
    lines = [line for path in (ROOT / "kafka_ctl").rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    asked = Counter(name for line in lines for name in re.findall(r"\.bugs\.(\w+)", line))
    assert {defect.bug for defect in DEFECTS} == set(asked)
    assert max(asked.values()) <= 3


def test_code_asks_for_fields_and_never_for_a_version() -> None:
    """No comparison with a generation's name where the controller decides."""
    compared = []
    for folder in ("controller", "brokers"):
        for path in (ROOT / "kafka_ctl" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = (
                    [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                    if isinstance(node, ast.Compare)
                    else []
                )
                compared += [f"{path.name}:{node.lineno}" for name in names if name in GENERATIONS]
    assert compared == []


def test_a_hybrid_differs_in_what_was_changed() -> None:
    hybrid = Generation("2.0").but(pipelined=False)
    assert (hybrid.name, hybrid.zookeeper.pipelined, hybrid.changes) == ("2.0", False, {"pipelined": False})
    assert str(hybrid) == "2.0 pipelined=False"
    assert hybrid != Generation("2.0")
    assert hybrid.but(pipelined=True) == Generation("2.0")
    assert Generation(hybrid) == hybrid
    assert len({hybrid, Generation("2.0"), Generation("2.0").but(pipelined=False)}) == 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown generation '3\.0'; known: 0\.10, 2\.0, 2\.4"):
        Generation("3.0")
    with pytest.raises(UnknownName, match="unknown field of Generation 'quick'; known: "):
        Generation("2.0", quick=True)
    with pytest.raises(BadInput, match=r"Generation\.pipelined cannot be 1; it is True or False"):
        Generation("2.0", pipelined=1)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        Generation("2.0").zookeeper.pipelined = False  # type: ignore[misc]


def test_defaults_are_kafkas() -> None:
    """0.10 preferred availability and did not delete."""
    old, new = Generation("0.10").config, Generation("2.4").config
    assert {key for key in new if old[key] != new[key]} == {"unclean.leader.election.enable", "delete.topic.enable"}
    assert old["unclean.leader.election.enable"] is True
    assert new["replica.lag.time.max.ms"] == 10000


def test_a_hybrid_runs_and_stays_in_its_story() -> None:
    """One ZooKeeper operation at a time takes longer to come to the same."""
    times = {}
    for pipelined in (True, False):
        with Lab(brokers=3, generation=Generation("2.0").but(pipelined=pipelined), seed=3) as lab:
            lab.create_topic("orders", partitions=40, replication_factor=3)
            lab.settle()
            begun, seen = lab.now, len(lab.trace)
            lab.delete_controller()
            lab.run_until(lambda lab, seen=seen: any(r.action == "ready" for r in lab.trace[seen:]), limit=60)
            times[pipelined] = lab.now - begun
            with Lab.replay(lab.story) as again:
                assert again.generation.zookeeper.pipelined is pipelined
    assert times[False] > 2 * times[True]
