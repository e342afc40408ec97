"""The trace: a sequence of records in which everything has a cause, and every chain of causes a beginning."""

import copy
import pickle
from collections.abc import Iterator

import pytest
from labs import play, until_quiet
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.trace import CAUSE, KINDS, SET, Record, Trace


def eventful(generation: str) -> Lab:
    """A run with something of everything."""
    lab = Lab(brokers=4, generation=generation, seed=11, config={"delete.topic.enable": True})
    until_quiet(lab.create_topic, "orders", partitions=4, replication_factor=3)
    until_quiet(lab.kill, lab.controller.id)
    until_quiet(lab.shutdown, next(id for id, b in lab.brokers.items() if b.state == "running" and not b.is_controller))
    for broker, view in lab.brokers.items():
        if view.state == "down":
            lab.start(broker)
    play(lab, "settle; expire_session 1")
    until_quiet(lab.lag, lab.partition("orders", 0).isr[-1], "orders", 0)
    until_quiet(lab.reassign, {("orders", 1): [4, 1, 2]})
    play(lab, "elect_preferred; settle; bounce 3; settle; delete_topic orders; run_for 20")
    return lab


@pytest.fixture(scope="module", params=GENERATIONS)
def trace(request: pytest.FixtureRequest) -> Iterator[Trace]:
    with eventful(request.param) as lab:
        yield lab.trace


# Causes


def test_causes_come_before_what_they_cause(trace: Trace) -> None:
    assert [r for r in trace if r.cause is not None and not 0 <= r.cause < r.seq] == []


def test_what_has_no_cause_is_a_beginning(trace: Trace) -> None:
    """A process that starts with the lab, an administrator's command, a fault, or a leader's own look at its clock."""
    roots = [r for r in trace if r.cause is None]
    assert {(r.kind, r.actor.split("-")[0]) for r in roots} <= {
        ("broker", "broker"),
        ("zk", "broker"),
        ("event", "admin"),
        ("fault", "fault"),
    }
    assert {r.action for r in roots if r.kind == "broker"} <= {"start", "shrink-isr"}
    assert len([r for r in roots if (r.kind, r.action) == ("broker", "start")]) == 4


def test_every_chain_of_causes_has_a_beginning(trace: Trace) -> None:
    for record in trace:
        chain = trace.causes(record.seq)
        assert chain[0].cause is None
        assert chain[-1] is record
        assert [r.seq for r in chain] == sorted(r.seq for r in chain)


def test_a_chain_tells_why(trace: Trace) -> None:
    """From the leader that a broker obeys back to the fault."""
    kill = next(r for r in trace if r.kind == "fault")
    follows = next(r for r in trace if r.seq > kill.seq and r.action == "become-leader")
    kinds = [r.kind for r in trace.causes(follows.seq)]
    assert trace.causes(follows.seq)[0] == kill
    assert kinds[-1] == "broker"
    assert {"zk", "watch", "event", "request"} <= set(kinds)


def test_causes_of_nothing() -> None:
    assert list(Trace(records=[]).causes(7)) == []


# Records


def test_records_are_in_order(trace: Trace) -> None:
    assert [r.seq for r in trace] == list(range(len(trace)))
    times = [r.time_ms for r in trace]
    assert times == sorted(times)
    assert {r.kind for r in trace} <= set(KINDS)


def test_a_record_carries_its_subject(trace: Trace) -> None:
    """Columns that go together come together."""
    for r in trace:
        if r.kind == "partition":
            assert r.topic is not None and r.partition is not None and r.target
            assert (r.source is None) == (r.action == SET)
            assert (r.leader is None) == (r.isr is None) == (r.leader_epoch is None)
        elif r.kind == "replica":
            assert r.topic is not None and r.partition is not None and r.broker is not None
        elif r.kind == "watch":
            assert r.path is not None and r.target is not None
        elif r.kind == "response" and r.error != "DISCONNECTED":
            assert r.actor == f"broker-{r.broker}"


def test_every_event_that_is_started_was_queued(trace: Trace) -> None:
    """Its cause says so; only what 0.10 does in threads of their own is never queued."""
    by_seq = {r.seq: r for r in trace}
    started = [r for r in trace if r.kind == "event" and (r.source, r.target) == ("queued", "started")]
    alone = {
        "Startup",
        "ControlledShutdown",
        "AutoPreferredReplicaLeaderElection",
        "TopicDeletionStopReplicaResponseReceived",
    }
    for r in started:
        queued = by_seq[r.cause or 0]
        if queued.target == "queued" or r.action not in alone:
            assert (queued.action, queued.target, queued.actor) == (r.action, "queued", r.actor)
    assert len(started) > 50


# As a sequence


def some() -> Trace:
    trace = Trace()
    for number, kind in enumerate(("zk", "partition", "replica", "partition")):
        trace.add("controller-1", kind, "act", topic="t", partition=number, cause=number - 1 if number else None)
    return trace


def test_it_is_a_sequence() -> None:
    trace = some()
    assert (len(trace), trace[0].kind, trace[-1].partition) == (4, "zk", 3)
    assert isinstance(trace[1:3], Trace)
    assert [r.seq for r in trace[1:3]] == [1, 2]
    assert [r.seq for r in trace] == [0, 1, 2, 3]
    assert repr(trace) == "Trace of 4 records"
    assert trace[2] in trace


def test_slices_by_column() -> None:
    trace = some()
    assert [r.seq for r in trace.slice(kind="partition")] == [1, 3]
    assert [r.seq for r in trace.slice(kind={"zk", "replica"})] == [0, 2]
    assert [r.seq for r in trace.slice(2, kind="partition")] == [3]
    assert [r.seq for r in trace.slice(1, 3)] == [1, 2]
    assert [r.seq for r in trace.slice(topic="t", partition=2)] == [2]
    assert [r.seq for r in trace.slice(leader=None)] == [0, 1, 2, 3]
    assert list(trace.slice(topic="other")) == []
    assert trace.slice(kind="zk").history == trace.history


@pytest.mark.parametrize(
    "columns",
    [
        *({"colour": "red"}, {"kind": "zookeeper"}, {"kind": {"Request"}}, {"kind": ["zk"]}, {"broker": "1"}),
        *({"isr": [1, 2]}, {"action": ("get", "set")}, {"topic": 1}, {"start": -1}, {"start": "2"}, {"stop": 1.5}),
    ],
    ids=str,
)
def test_a_slice_that_cannot_be(prose: Prose, columns: dict[str, object]) -> None:
    """An unknown column or kind, a list instead of a set, a broker that is no number: never an empty slice."""
    prose.refuses(BadInput, some().slice, **columns)


def test_a_trace_is_its_records(prose: Prose) -> None:
    """Two with the same records are equal; a copy has those there were, and records of a lab that still runs."""
    with Lab(brokers=1) as lab:
        copied = [copy.copy(lab.trace), copy.deepcopy(lab.trace), pickle.loads(pickle.dumps(lab.trace))]
        assert all(each == lab.trace == Lab.replay(lab.story).trace for each in copied)
        assert {type(each) for each in copied} == {Trace} and lab.trace != list(lab.trace)
        lab.kill(1)
        assert all(each == lab.trace[: len(each)] != lab.trace for each in copied)
        with prose.refused(BadInput):
            lab.trace.causes(None)  # type: ignore[arg-type]


def test_a_slice_of_a_slice_keeps_its_numbers() -> None:
    """`start` and `stop` are the records' own numbers."""
    assert [r.seq for r in some()[2:].slice(3)] == [3]


def test_the_present_cause_is_taken() -> None:
    trace = Trace()
    token = CAUSE.set(trace.add("fault", "fault", "kill"))
    try:
        trace.add("zookeeper", "zk", "expired")
        trace.add("zookeeper", "zk", "delete", cause=1)
    finally:
        CAUSE.reset(token)
    assert [r.cause for r in trace] == [None, 0, 1]


def test_times_are_milliseconds() -> None:
    now = 0.0
    trace = Trace(lambda: now)
    trace.add("a", "zk", "get")
    now = 1.23456789
    trace.add("a", "zk", "get")
    assert [r.time_ms for r in trace] == [0.0, 1234.5679]


def test_listeners_hear_every_record() -> None:
    heard: list[Record] = []
    trace = some()
    trace.listeners.append(heard.append)
    trace.add("a", "zk", "get")
    assert heard == [trace[-1]]
