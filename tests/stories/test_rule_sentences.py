"""What captions, legends and "why?" say: a block of prose for each rule, as a story reaches it.

Four tables name everything that the kit can say: the rules of `trace/catalogue.txt`, the sentences of
the catalogue, the `return` statements of the functions that compose captions and findings, and the entries of the
legends. `reached()` plays stories until each has been reached, and keeps the first that says it. A rule that no story
reaches fails, unless `UNREACHED` has it with the reason.
"""

from __future__ import annotations

import ast
import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from inspect import getsourcefile
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import golden
import pytest
from labs import acting, lab_of, play, process_of, until_quiet
from prose import Prose

from kafka_ctl import Generation, Lab, TopicPartition
from kafka_ctl.errors import BatchNotEmpty, Unavailable
from kafka_ctl.museum import find as exhibit
from kafka_ctl.requests import (
    ControlledShutdownRequest,
    DeleteRecordsRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from kafka_ctl.trace import Record, Recorder
from kafka_ctl.trace.catalogue import catalogue, find, reason_of, rows
from kafka_ctl.views import captions, legend
from kafka_ctl.views.explain import elections, rules
from kafka_ctl.views.explain.why import RULES
from kafka_ctl.views.frames import VIEWS, film
from kafka_ctl.views.steps import Step, steps
from kafka_ctl.wire.client import ask, exchange
from tests import text_stories
from tests.stories import test_mechanisms

COMPOSING: tuple[ModuleType, ...] = (captions, elections, rules)
"""The modules whose `return` statements are sentences, or findings."""
SILENT = {"by_controller", "decider", "sameness", "call", "decide", "election_blocked_by", "_election_of", "_chain",
          "_anchor", "_target", "_values", "_inputs", "_word", "_of_path", "_rows", "_otherwise", "knowledge",
          "partition_named", "brief", "listed", "who", "brokers", "subjects", "format_ids", "duration",
          "_is_deletion", "_is_absent", "_may_break", "_without_disk", "process_of"}  # fmt: skip
"""Functions there that return no sentence and no finding."""

GOLDEN = (
    *("broker_failure", "controlled_shutdown", "reassignment", "topic_deletion", "preferred_election"),
    *("session_expiry", "record_as_a_follower_joins", "acknowledged_record_lost", "shrink_answer_lost"),
    *("network_leader_cut_from_followers", "network_leader_isolated", "network_zookeeper_down"),
)
MECHANISMS = (
    "a leader's expansion of the ISR is not confirmed",
    "a move ends whose topic has been deleted meanwhile",
    "a request outlives its topic after a restart that nobody noticed",
    "a reassignment fails after its replicas were assigned",
    "a broker that cannot stop is killed",
    "a leader that is cut off adds a follower that a reassignment has taken away",
    "a controller that finds itself replaced forgets nothing, and is elected again",
)
EXHIBITS = ("KAFKA-9089", "KAFKA-532", "KAFKA-6612", "KAFKA-7235b", "LINKEDIN-14")
"""Of all stories those that reach something that the ones before do not."""
OWN = {story.title: story.text for story in text_stories.stories(Path(__file__).parent / "sentences.txt")}


class Reached(NamedTuple):
    """Where a rule was reached first, and what is printed there."""

    story: str
    lines: tuple[str, ...]


UNREACHED = {
    "rule broker stopped GenerateBrokerId": "/brokers/seqid cannot be written: ZooKeeper refuses that to no lab",
    "rule broker stopped Unavailable": "no ZooKeeper answers when a broker starts: in memory there is always one",
    "form captions.watch 2": "a gap in the watch of a real cluster; here a lab watches itself without gaps",
    "form captions._broker 6": "a broker's record of an imported log, which has no sentence",
}
"""By name: the rules that no story here reaches, and why."""


# The tables


def returns(module: ModuleType) -> dict[tuple[str, int], str]:
    """By code name and line: the name of each `return` of a sentence, `captions._event 2`; it may end on any line."""
    found: dict[tuple[str, int], str] = {}
    tree = ast.parse(Path(getsourcefile(module) or "").read_text("utf-8"))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name not in SILENT:
            for number, node in enumerate(statements(function), 1):
                name = f"{module.__name__.rpartition('.')[2]}.{function.name} {number}"
                found |= {(function.name, at): name for at in range(node.lineno, (node.end_lineno or 0) + 1)}
    return found


def statements(function: ast.FunctionDef) -> list[ast.Return]:
    """The `return` statements of a function with a value, in their order, without those of inner functions."""
    functions = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one is not function]
    inner = {id(node) for one in functions for node in ast.walk(one)}
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return) and id(node) not in inner]
    given = [node for node in found if not (isinstance(node.value, ast.Constant) and node.value.value is None)]
    return sorted(given, key=lambda node: node.lineno)


RETURNS = {module.__file__: returns(module) for module in COMPOSING}
TABLE = {
    **{f"rule {kind} {name}": None for kind, name in catalogue().rules},
    **{f"rule controller {name}": None for (kind, name), row in rows().items() if row.rule},
    **{f"sentence {kind} {name}": None for (kind, name), row in rows().items() if row.sentence},
    **{f"form {name}": None for lines in RETURNS.values() for name in lines.values()},
    **{f"race {name}": None for name in rules.FIRST},
    **{f"refused write {name}": None for name in rules.REFUSED},
    **{f"answer {name or 'any other'}": None for name in rules.ANSWERS},
    **{f"election {name}": None for name in elections.RULES},
    **{f"cannot {name}": None for name in captions.FAILED},
    **{f"ends {name}": None for name in captions.ENDS},
}
"""The name of everything that the kit can say, but for legends."""


# The stories


def played() -> Iterator[tuple[str, Lab]]:
    """Every story, at its end."""
    for name in GOLDEN:
        with golden.played(name) as lab:
            yield name, lab
    for name, text in OWN.items():
        with Lab.replay(text) as lab:
            yield name, lab
    for name in MECHANISMS:
        with Lab.replay(test_mechanisms.STORIES[name].text) as lab:
            yield name, lab
    for name in EXHIBITS:
        with Lab.replay(exhibit(name).story) as lab:
            yield name, lab
    yield from by_hand()


def by_hand() -> Iterator[tuple[str, Lab]]:
    """What the language of stories cannot say, or no command brings about."""
    with lab_of("orders", {0: [1, 2], 1: [2, 1]}, brokers=3, generation="2.0", seed=3) as lab:
        for partition, replicas, path in ((0, [1, 3], "/d1"), (1, [2, 1], "/d0")):
            entry = {"topic": "orders", "partition": partition, "replicas": replicas, "log_dirs": [path, path]}
            until_quiet(lab.execute_reassignment, json.dumps({"version": 1, "partitions": [entry]}))
        yield "copies move between log directories", lab
    with lab_of("orders", {0: [1, 2]}, brokers=3, generation="2.4", seed=1) as lab:
        world = lab.world
        old = ControlledShutdownRequest(2, world.brokers[2].epoch - 1)
        world.run(world.network.call(-1, lab.controller.id, old))  # type: ignore[union-attr]
        world.run(world.network.call(-1, 3, UpdateMetadataRequest(1, 0, {})))
        lab.list_reassignments()
        data = json.loads(lab.znodes()["/brokers/ids/3"][0])
        lab.write_znode("/brokers/ids/3", data | {"port": 1234, "endpoints": ["PLAINTEXT://127.0.0.1:1234"]})
        lab.settle()
        yield "requests of an earlier life, and a broker with another port", lab
        controller = acting(lab)
        controller.batch.open()
        controller.batch.stop_replica(3, TopicPartition("orders", 0), False, None)
        with pytest.raises(BatchNotEmpty):
            world.run(controller.send_update_metadata())
        lab.settle()
        yield "a batch is left half sent", lab
    with Lab(brokers=2, generation="2.0", seed=1) as lab:
        first = acting(lab).id
        lab.delay("zookeeper", 3 - first, 1)  # of the other broker: it reads, creates and reads again a second apart
        lab.delete_controller()
        lab.run_for(1.5)
        lab.expire_session(first)
        lab.kill(first)
        lab.run_until(lambda: lab.trace[-1].path == "/controller" and lab.now > 3)
        lab.write_znode("/controller", {"version": 1, "brokerid": first})
        lab.run_until(lambda: lab.trace[-1].error == "NODEEXISTS")
        lab.delete_znode("/controller")
        lab.run_for(5)
        yield "the broker that came first is gone when the other one looks", lab
    with Lab(brokers=2, generation="2.0", seed=1) as lab:
        play(lab, """create_topic orders assignment='{"0":[1,2],"1":[1,2]}'; settle""")
        play(lab, "produce orders 0 records=2; settle")
        lab.world.run(process_of(lab, 1).receive(DeleteRecordsRequest({TopicPartition("orders", 0): 1}, 30), None))
        until_quiet(lab.fail_log_dir, 2)
        both = TopicPartition("orders", 0), TopicPartition("orders", 1)
        lab.world.run(lab.world.network.call(-1, 2, StopReplicaRequest(1, 1, both, delete=True)))
        yield "records are deleted, and a copy on a failed disk", lab
    with Lab(brokers=1, generation="2.0", seed=1, wire=True) as lab:
        until_quiet(lab.create_topic, "orders", partitions=1, replication_factor=1)
        with suppress(Unavailable):
            exchange(lab.bootstrap_servers, b"GET / HTTP/1.1\r\n\r\n")
        data = {"name": "orders", "partition_data": [{"index": 0, "records": bytes(61)}]}
        ask(lab.bootstrap_servers, "Produce", 2, {"acks": 1, "timeout": 1000, "topic_data": [data]})
        yield "a broker that listens", lab
    with Lab(brokers=3, generation="0.10", seed=1) as lab:
        play(lab, """create_topic orders assignment='{"0":[1,2]}'; settle; delay zookeeper 1 1""")
        play(lab, """reassign '{"orders-0":[2,3]}'; run_for 1""")
        topic = "/brokers/topics/orders"
        for path in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
            lab.delete_znode(topic + path)
        lab.run_until(lambda: topic in lab.znodes(), limit=10)
        yield "a topic is deleted while its move begins", lab


# What they say


def keys_of(record: Record, trace: Recorder) -> Iterator[str]:
    """The names of the rules and sentences of a record's own row."""
    rule = reason_of(record, record.kind == "zk" and captions.by_controller(record, trace.records))
    if rule is not None:
        yield f"rule {NAMES[id(rule)]}"
    row = find(record.kind, record.action)
    if row.rule is not None:
        yield f"rule controller {record.action}"
    if row.sentence and not (record.kind == "broker" and record.error and record.action not in PLAIN):
        yield f"sentence {record.kind} {record.action}"
    if record.kind == "controller" and record.action in rules.FIRST:
        yield f"race {record.action}"
    if record.kind == "zk" and record.error in rules.REFUSED and record.action not in rules.READS:
        yield f"refused write {record.error}"
    if record.kind == "response" and record.error:
        named = (name for name in (record.error, record.action) if name in rules.ANSWERS)
        yield f"answer {next(named, 'any other')}"
    if record.kind == "election" and record.action in elections.RULES:
        yield f"election {record.action}"
    if record.kind == "broker" and record.error and record.action in captions.FAILED:
        yield f"cannot {record.action}"
    if record.kind == "broker" and record.action == "stopped" and record.error in captions.ENDS:
        yield f"ends {record.error}"


PLAIN = {"log-dir-wanted", "waiting", "closed-connection", "refused-records"}
"""What a broker does that has an error all the same: its sentence stands before the error."""
NAMES = {id(rule): f"{kind} {name}" for (kind, name), rule in catalogue().rules.items()}


def signature(step: Step) -> tuple[object, ...]:
    """Steps with the same are taken for the same sentence."""
    first = step.records[0]
    path = "/".join((first.path or "").split("/")[1:3])
    return (len(step.records) > 1, len({r.broker for r in step.records}) > 1, first.kind, first.action, first.source,
            first.target, first.error, first.topic is None, first.actor.rstrip("0123456789"), path,
            (first.path or "").endswith("/state"), first.detail is None, first.leader == -1)  # fmt: skip


def running(work: Callable[[], Any]) -> tuple[Any, set[str]]:
    """The result of a call, and the forms that were returned on the way."""
    reached: set[str] = set()

    def local(frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if event == "return" and (name := RETURNS[code.co_filename].get((code.co_name, frame.f_lineno))):
            reached.add(f"form {name}")
        return local

    def called(frame: FrameType, event: str, arg: object) -> Any:
        return local if frame.f_code.co_filename in RETURNS else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        return work(), reached
    finally:
        sys.settrace(before)


def answer(trace: Recorder, record: Record) -> tuple[str, ...]:
    """The rule, the decision and the alternatives that "why?" has for a record; empty where it has none."""
    generation = Generation(trace.generation)
    found = next((one for rule in RULES.get(record.kind, ()) if (one := rule(trace, record, generation))), None)
    if found is None:
        return ()
    other = [f"otherwise, {what}: {then}" for what, then in found.otherwise]
    return f"rule: {found.rule}", f"decided: {found.decided}", *other


@functools.cache
def reached() -> dict[str, Reached]:
    """By name: what is printed where a rule is reached first."""
    found: dict[str, Reached] = {}
    seen: set[object] = set()
    for name, lab in played():
        trace = lab.trace
        own = {r.seq: set(keys_of(r, trace)) - found.keys() for r in trace.records}
        every = steps(trace.records, lambda record: True, limit=10**9)
        for step in every + steps(trace.records, limit=10**9):
            new = {key for r in step.records for key in own[r.seq]}
            if (same := signature(step)) in seen and not new - found.keys():
                continue
            seen.add(same)
            text, reached = running(lambda step=step, trace=trace: captions.caption(step.records, trace.records))
            for key in [*reached, *new]:
                found.setdefault(key, Reached(name, (f"caption: {text}",)))
            for record in step.records:
                fresh = own[record.seq] & {key for key in new if found[key].lines == (f"caption: {text}",)}
                if not fresh and same in seen and record is not step.records[0]:
                    continue
                lines, reached = running(lambda record=record, trace=trace: answer(trace, record))
                for key in reached:
                    found.setdefault(key, Reached(name, (f"caption: {text}", *lines)))
                for key in fresh:
                    found[key] = Reached(name, (f"caption: {text}", *lines))
    return found


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_sentence_of_a_rule(prose: Prose, name: str) -> None:
    if name in UNREACHED:
        assert name not in reached(), f"{name} is reached; take it out of UNREACHED"
        return
    assert name in reached(), f"no story reaches this: {name}"
    prose("\n".join(reached()[name].lines))


def test_what_should_have_happened_of_each_invariant(prose: Prose) -> None:
    prose(*(f"{id}: {text}" for id, text in rules.SHOULD.items()))


@pytest.mark.parametrize("name", ["REPLICAS", "MARKS", "COUNTED", "ZOOKEEPER", "SPACE_TIME", "TIMELINE", "MACHINE"])
def test_a_legend_in_its_sentence(prose: Prose, name: str) -> None:
    entries: Sequence[legend.Entry] = getattr(legend, name)
    prose("; ".join(entry.text for entry in entries))


def test_every_view_shows_its_legend() -> None:
    """And no list of entries is there that no view shows."""
    with lab_of("orders", {0: [1, 2]}, brokers=3, seed=1) as lab:
        shown = set()
        for view in VIEWS:
            parts = film(lab.trace.records, view).scene.parts
            shown |= {
                text.text for name, part in parts.items() if name.startswith(legend.PREFIX) for text in part.texts
            }
    lists = legend.REPLICAS, legend.MARKS, legend.ZOOKEEPER, legend.SPACE_TIME, legend.TIMELINE, legend.MACHINE
    assert {entry.text for entries in lists for entry in entries} <= shown


def test_exceptions_are_few_and_of_rules_that_exist() -> None:
    assert UNREACHED.keys() <= TABLE.keys()
    assert len(UNREACHED) < 15
