"""Explanations of broken invariants: the rule, the state in each place, the shortest chain, and the right behaviour.

Separate from `why.py` because a new invariant gets its row here.
"""

from __future__ import annotations

from inspect import getdoc, isfunction

from kafka_ctl.generation import Generation
from kafka_ctl.invariants.checker import INVARIANTS
from kafka_ctl.invariants.mechanisms import breaking
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.captions import caption
from kafka_ctl.views.explain.source import Finding, citation

NAMES = frozenset(invariant.name for invariant in INVARIANTS)
DECISIVE = ("brokers_changed", "ready", "error_moving_replicas", "error_moving_partitions", "not_sending")
"""The messages of controllers that decide whether a broker is notified."""
SHORT = 6
"""The most steps of a chain: its beginning and its end."""
SHOULD = {
    "I1": "a replica whose log differs below the high watermark should have left the ISR, or have dropped what differs",
    "I2": "a dead or shrunk leader should have been replaced by a member of the ISR, or by no broker",
    "I3": "the high watermark should have stopped where the shortest log of the ISR ends",
    "I4": "a replica that has every acknowledged record should lead",
    "I5": "the follower should have dropped its records from the point on where the leader epochs differ",
    "I6": "what was once below the high watermark should have stayed in the leader's log",
    "I7": "the second controller should have failed to raise the epoch",
    "I8": "the write of the old controller should have been refused, and it should have resigned",
    "I9": "the broker, or the controller, should have refused what belongs to an older epoch",
    "I10": "the leader epoch should have risen with an election or a new assignment, and with nothing else",
    "I11": "numbers should only have risen as long as the topic exists",
    "I12": "the write should have kept one assigned replica in the ISR, and no other broker",
    "I13": "a move that the table does not have should have been refused",
    "I14": "a LeaderAndIsr with this leader and leader epoch should have reached the broker",
    "I15": "the leader should have waited until the broker is registered and not leaving",
    "I16": "the broker should have kept its copy",
    "I17": "each event should have been begun and ended before the next one",
    "I18": "an UpdateMetadata, or a new read of the znode, should have brought all to what ZooKeeper has",
    "I19": "the request should have been carried out, and a broker should act as controller",
    "I20": "the preferred replica should have been elected at one of the checks",
    "I21": "another member of the ISR should have been elected, or none",
    "I22": "the leader should have waited until the follower's log reaches the high watermark",
    "I23": "the controller should have elected a first leader, and written the state",
    "I24": "the leader should have waited for each member of its ISR before it raised its high watermark",
    "I25": "one broker should have kept the record",
    "I26": "the leader should have counted each member of the ISR that was written, confirmed or not",
    "I27": "the follower should have fetched from the leader that the last LeaderAndIsr names, in that leader epoch",
    "I28": "the broker should have answered, or the producer should have noticed that it cannot",
    "I29": "the follower should have fetched what its leader has",
}
"""Invariant -> what should have happened instead."""


def violation(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """A broken invariant: its sentence, the mechanism by which real Kafka breaks it, and the check that noticed it."""
    invariant = next((one for one in INVARIANTS if one.name == record.action), None)
    if invariant is None:
        return None
    mechanisms = [
        mechanism
        for mechanism in breaking(invariant.id)
        if mechanism.ticket == record.error and mechanism.field is not None
    ]
    checks = [m for m in vars(invariant).values() if isfunction(m) and "broken" in m.__code__.co_names]
    text = (record.detail or "it is broken").removeprefix(f"{invariant.id}: ")
    return Finding(
        rule=" ".join(invariant.sentence.split()),
        inputs=(("Invariant", invariant.id), ("Known as", record.error or "no known bug of Kafka")),
        decided=text,
        otherwise=(
            ("should have happened", SHOULD[invariant.id]),
            *(
                (f"with {mechanism.field}={not mechanism.value}", "Kafka would not have broken it")
                for mechanism in mechanisms
            ),
        ),
        by=tuple(checks),
        chain=_chain(trace, record),
        kafka=next(filter(None, (citation(getdoc(mechanism) or "") for mechanism in mechanisms)), ""),
    )


def _chain(trace: Recorder, record: Record) -> tuple[str, ...]:
    """The shortest chain to the violation: from the command to the last record that caused it."""
    anchor = _anchor(trace, record)
    if anchor is None:
        return ()
    links = list(dict.fromkeys(caption([cause], trace.records) for cause in trace.causes(anchor.seq)))
    return tuple(links if len(links) <= SHORT else [links[0], *links[1 - SHORT :]])


def _anchor(trace: Recorder, record: Record) -> Record | None:
    """The record that broke the invariant: the cause, or the last one about the subject of the violation."""
    if record.cause is not None:
        return trace.numbered(record.cause)
    before = (r for r in reversed(trace.records[: record.seq]) if r.kind != "violation")
    path = f"/brokers/topics/{record.topic}/partitions/{record.partition}/state"
    for r in before:
        if record.topic is None:
            if r.kind in ("fault", "controller") and (record.broker is None or r.broker == record.broker):
                return r
        elif record.partition is None:
            if r.topic == record.topic and r.kind in ("replica", "partition", "controller"):
                return r
        elif (r.kind == "zk" and r.path == path and not r.error and r.action in ("create", "set")) or (
            record.broker is not None and (r.action in DECISIVE or (r.kind == "fault" and r.broker == record.broker))
        ):
            return r
    return None
