"""Generations as data: three of them, what differs, and hybrids that never were."""

import ast
import re
from collections import Counter

import pytest
from labs import until_quiet
from prose import Prose, refuses
from tree import package

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
    """And is one: some two generations differ in it, or all differ from what their source says it does."""
    assert len(DIFFERENCES) >= 15
    for field in DIFFERENCES:
        assert re.fullmatch(r"(KAFKA|KIP)-\d+|(apache|linkedin)/kafka#\d+", field.ticket), field.name
        assert len(field.doc) > 20, field.name
        values = {Generation(name).has(field.name) for name in GENERATIONS}
        assert len(values) == 2 or (field.name, values) == ("deletion_waits_for_reassignment", {False})


def test_a_defect_has_its_ticket_and_the_release_that_fixed_it() -> None:
    """The generations agree about it, or it would be a difference."""
    assert len(DEFECTS) >= 7
    for field in DEFECTS:
        assert re.fullmatch(r"KAFKA-\d+", field.ticket), field.name
        assert re.fullmatch(r"\d+(\.\d+){2,3}", field.fixed or ""), field.name
        assert len({Generation(name).has(field.name) for name in GENERATIONS}) == 1, field.name


def test_every_difference_is_asked_for() -> None:
    """A field that no code reads would be a promise that is not kept."""
    readers = {"controller", "brokers", "lab", "reassign", "wire", "zookeeper"}
    nodes = [node for path, own in package().items() if readers & {*path.parts} for node in own]
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert {field.bug or field.name for field in FIELDS} - asked == set()


def test_a_bug_is_asked_for_in_three_lines_at_most() -> None:
    """So that a reader may skip them: no other code depends on bugs of other times."""
    lines = [line for path in (ROOT / "kafka_ctl").rglob("*.py") for line in path.read_text("utf-8").splitlines()]
    asked = Counter(name for line in lines for name in re.findall(r"\.bugs\.(\w+)", line))
    assert {defect.bug for defect in DEFECTS} == set(asked)
    assert max(asked.values()) <= 3
    branches = [
        node.body[-1].end_lineno - node.body[0].lineno + 1
        for nodes in package().values()
        for node in nodes
        if isinstance(node, ast.If) and ".bugs." in ast.unparse(node.test)
    ]
    assert len(branches) > 5 and max(branches) <= 3


WIDE = {
    "pipelined": "KAFKA-5642: what reads or writes ZooKeeper for many partitions at once",
    "broker_epochs": "KIP-380: read with a broker, kept, sent in requests, checked",
    "incremental_reassignment": "KIP-455: the API and the znode; read wherever a reassignment begins, goes on or ends",
}
"""Fields that are asked for in more than three files, and why each is one difference and not a version's name."""


def test_a_field_is_asked_for_in_three_files_at_most() -> None:
    """Cure: a field of its own for each ticket that it stands for."""
    files = [path.read_text("utf-8") for path in (ROOT / "kafka_ctl").rglob("*.py") if path.name != "generation.py"]
    found = [{*re.findall(r"\.(?=(\w+\.\w+))", text)} for text in files]
    asked = {f.name: sum(f"{f.area}.{f.name}" in names for names in found) for f in DIFFERENCES}
    assert {name for name, count in asked.items() if count > 3} == set(WIDE)


def test_no_field_is_a_version() -> None:
    """Cure: a name that says what is so, with the ticket that made it so."""
    assert [f.name for f in FIELDS if re.search(r"\d|since|legacy", f.name)] == []


def test_code_asks_for_fields_and_never_for_a_version() -> None:
    """No comparison with a generation's name where the controller decides."""
    compared = []
    for path, nodes in package().items():
        for node in nodes if path.parent.name in ("controller", "brokers") else ():
            if isinstance(node, ast.Compare):
                names = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
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


def test_what_cannot_be_is_refused(prose: Prose) -> None:
    refuses(UnknownName, r"unknown generation '3\.0'; known: 0\.10, 2\.0, 2\.4", Generation, "3.0")
    prose.refuses(UnknownName, Generation, "2.0", quick=True)
    prose.refuses(BadInput, Generation, "2.0", pipelined=1)
    with pytest.raises(AttributeError):
        Generation("2.0").zookeeper.pipelined = False


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
            until_quiet(lab.create_topic, "orders", partitions=40, replication_factor=3)
            begun, seen = lab.now, len(lab.trace)
            lab.delete_controller()
            lab.run_until(lambda lab, seen=seen: any(r.action == "ready" for r in lab.trace[seen:]), limit=60)
            times[pipelined] = lab.now - begun
            with Lab.replay(lab.story) as again:
                assert again.generation.zookeeper.pipelined is pipelined
    assert times[False] > 2 * times[True]
