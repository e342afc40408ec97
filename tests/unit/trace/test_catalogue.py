"""The catalogue of what can happen: whatever code records has a row, and every row is of use."""

import ast
import json
from collections.abc import Iterator

import pytest
from prose import refuses
from tree import package

from kafka_ctl.controller import events
from kafka_ctl.invariants import INVARIANTS
from kafka_ctl.kafka_log.templates import templates_of
from kafka_ctl.museum import EXHIBITS
from kafka_ctl.partition import PARTITION
from kafka_ctl.paths import ROOT
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace.catalogue import ANY, catalogue, find, parse, rows
from kafka_ctl.trace.record import KINDS, Record
from kafka_ctl.views.explain.rules import decider
from tests import golden
from tools.trace_format import PAGE

GROUPS, MESSAGES, IMPORTED, _ = catalogue()
CALLS = {"log": "controller", "_fault": "fault", "record_fault": "fault"}
"""Methods that record an action of one kind, named by their first argument."""


def texts(node: ast.expr) -> list[str]:
    """The texts among which an argument chooses: one, or those of a conditional expression."""
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def recorded() -> Iterator[tuple[str, str]]:
    """Every kind and action that a call in the package names."""
    for path, nodes in package().items():
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            given = [texts(argument) for argument in call.args]
            if name in ("add", "about") and len(given) > 2 and given[1] and given[1][0] in KINDS:
                yield from ((given[1][0], action) for action in given[2])
            elif name in CALLS and given and path.parent.name != "exercises":  # where `lab.log` shows records
                yield from ((CALLS[name], action) for action in given[0])
            elif name == "_ask" and len(given) > 1:
                yield from (("event", action) for action in given[1])
            elif name == "record" and given and path.parent.name == "brokers":
                yield from (("broker", action) for action in given[0])


def test_whatever_is_recorded_has_a_row() -> None:
    """What calls name, what the tables and events are called, and what a template renders."""
    moves = {("partition", move.action) for table in PARTITION.values() for move in table.rows}
    moves |= {("replica", move.action) for table in REPLICA.values() for move in table.rows}
    classes = {name: made for name, made in vars(events).items() if isinstance(made, type) and made is not events.Event}
    own = {("event", name) for name, made in classes.items() if issubclass(made, events.Event)}
    found = {*recorded(), *moves, *own}
    assert len(found) > 150
    assert sorted(found - rows().keys() - {("violation", ANY)}) == []


def test_every_row_is_of_use() -> None:
    """Its name stands somewhere in the package: as a text, a class, or in a command's name."""
    nodes = [node for nodes in package().values() for node in nodes]
    names = {node.value for node in nodes if isinstance(node, ast.Constant)}
    names |= {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    requests = {name.removesuffix("Request") for name in map(str, names) if name.endswith("Request")}
    operations = {str(name).lower() for name in names}
    used = {*names, *requests, *operations, ANY}
    assert sorted(row.name for group in (*GROUPS, *MESSAGES) for row in group.actions if row.name not in used) == []


def test_no_row_stands_twice() -> None:
    listed = [(group.kind, row.name) for group in (*GROUPS, *MESSAGES, *IMPORTED) for row in group.actions]
    assert len(listed) == len(set(listed)) == len(rows())
    assert {kind for kind, _ in listed} == set(KINDS)


def check(record: Record) -> None:
    """A record has a row, and nothing in columns or fields that the row does not list."""
    row = find(record.kind, record.action)
    assert (record.kind, row.name) in rows(), record
    beside = ("seq", "time_ms", "actor", "kind", "action", "cause")
    columns = {name for name, value in record._asdict().items() if value is not None and name not in beside}
    assert columns <= set(row.columns), record
    if record.kind == "controller" and record.detail:
        assert json.loads(record.detail).keys() <= set(row.fields), record


@pytest.mark.parametrize("name", [path.stem for path in golden.STORIES])
def test_a_row_lists_all_that_its_records_carry(name: str) -> None:
    """In every golden story."""
    with golden.played(name) as lab:
        for record in lab.trace:
            check(record)


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_so_do_the_museums(exhibit) -> None:
    with exhibit.show() as run:
        for record in (*run.broken.trace, *run.fixed.trace):
            check(record)


def test_a_message_has_its_lines() -> None:
    """In some generation's templates, or it is one of those that Kafka does not log."""
    templates = {name for generation in ("0.10", "2.0", "2.4") for name in templates_of(generation).templates}
    unlogged = {row.name for group in MESSAGES for row in group.actions if row.name not in templates}
    assert unlogged == UNLOGGED


UNLOGGED = {"reassignment_ignored"}
"""Messages without a line in any of the three generations."""


def test_rules_name_functions() -> None:
    """Each resolves, and outcomes only use the fields of their rows."""
    for group in MESSAGES:
        for row in group.actions:
            if row.rule:
                assert all(callable(decider(name)) for name in row.rule.by), row.name
                texts = [row.rule.outcome, *(what for what, _ in row.rule.otherwise)]
                named = {part.partition("}")[0] for text in texts for part in text.split("{")[1:]}
                assert named <= set(row.fields), row.name


def test_the_page_is_fresh() -> None:
    """`kafka-ctl docs` makes it from the catalogue."""
    assert PAGE.check(ROOT / "docs") == []
    assert len(INVARIANTS) == 29


def test_what_has_no_row_is_no_error() -> None:
    """Logs of other releases, and records of somebody's own."""
    assert find("broker", "unheard-of").news and not find("controller", "unheard-of").news
    assert find("nonsense", "x").sentence == ""


def test_a_line_that_means_nothing_is_named() -> None:
    """With the word at its beginning."""
    refuses(ValueError, "'sayz'", parse, "== actions\n[zk] operations\n  get | path\n    sayz Hello.\n")


def test_lines_continue_and_names_stand_for_texts() -> None:
    text = """\
let where = path zk_version
== actions
[zk] one operation,
        applied
  get set | $where | a b | no-news story
    says It reads
        twice.
    rule One
    then {detail}
    else without it: nothing
    by store.get store.set
"""
    (group,) = parse(text).actions
    get, put = group.actions
    assert group.about == "one operation, applied"
    assert (get.name, put.name, get.columns, get.fields) == ("get", "set", ("path", "zk_version"), ("a", "b"))
    assert (get.news, get.story, put.sentence) == (False, True, "It reads twice.")
    assert put.rule == ("One", "{detail}", (("without it", "nothing"),), ("store.get", "store.set"))
