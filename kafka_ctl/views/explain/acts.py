"""Explanations of requests, writes, watches, events and what brokers do: the rules of `trace/reasons.py`, filled in."""

from __future__ import annotations

from kafka_ctl.generation import Generation
from kafka_ctl.trace import details
from kafka_ctl.trace.reasons import reason_of
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.explain.controller_log import decider
from kafka_ctl.views.explain.source import Finding
from kafka_ctl.views.wording import brief, brokers, format_ids, who

LONGEST = 160
"""The most characters of a record's detail in an answer."""


def by_controller(trace: Recorder, record: Record) -> bool:
    """Whether a controller made a write: a broker and its controller share one session."""
    if record.cause is None:
        return False
    cause = trace.numbered(record.cause)
    return cause is not None and cause.actor.startswith("controller")


def act(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The rule behind what somebody did; None where there is none."""
    rule = reason_of(record, record.kind == "zk" and by_controller(trace, record))
    if rule is None:
        return None
    values = _values(record)

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    return Finding(
        rule=rule.rule,
        inputs=_inputs(record),
        decided=filled(rule.outcome).replace(" ()", ""),
        otherwise=tuple((filled(what), filled(then)) for what, then in rule.otherwise),
        by=tuple(map(decider, rule.by)),
    )


def _values(record: Record) -> dict[str, str]:
    """What a rule's outcome may name."""
    detail = record.detail or ""
    named = details.named(detail)
    return {
        "who": who(record.actor),
        "path": brief(record.path or ""),
        "target": brief(record.target or ""),
        "partition": brief(f"{record.topic}-{record.partition}") if record.topic is not None else _of_path(record.path),
        "topic": brief(record.topic or ""),
        "broker": str(record.broker),
        "leader": str(record.leader),
        "leader_epoch": str(record.leader_epoch),
        "isr": format_ids(record.isr),
        "receiver": brokers([record.broker]) if record.broker is not None else "every live broker",
        "count": named.get("partitions", "some"),
        "failed": f", which failed: {record.error}" if record.error else "",
        "detail": detail if len(detail) <= LONGEST else detail[: LONGEST - 2] + " …",
    }


def _of_path(path: str | None) -> str:
    """The partition that a `state` znode is of."""
    parts = (path or "").split("/")
    return brief(f"{parts[3]}-{parts[5]}") if len(parts) > 6 else brief(path or "")


def _inputs(record: Record) -> tuple[tuple[str, str], ...]:
    """What the record itself has."""
    rows = [("By", who(record.actor))]
    if record.path:
        rows.append(("Path", brief(record.path)))
    if record.topic is not None and record.partition is not None:
        rows.append(("Partition", brief(f"{record.topic}-{record.partition}")))
    if record.controller_epoch is not None:
        rows.append(("Controller epoch", str(record.controller_epoch)))
    if record.zk_version is not None:
        rows.append(("zkVersion", str(record.zk_version)))
    if record.error:
        rows.append(("Error", record.error))
    return tuple(rows)
