"""Explanations of the controller's log messages on deletion, reassignment, shutdown and election.

Each message is a decision at one point of `controller/`; its row in `trace/messages.py` has the rule, the outcome and
the alternative.
"""

from __future__ import annotations

from functools import cache, reduce
from importlib import import_module
from typing import Any

from kafka_ctl.controller.channel import Channel
from kafka_ctl.generation import Generation
from kafka_ctl.lab.admin import Admin
from kafka_ctl.trace import details
from kafka_ctl.trace.actions import find
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.explain.controller_knowledge import knowledge, partition_named
from kafka_ctl.views.explain.executed_lines import Function
from kafka_ctl.views.explain.source import Finding
from kafka_ctl.views.wording import brief, format_ids, listed


@cache
def decider(name: str) -> Function:
    """The function that a rule names, below `kafka_ctl.controller`: `deletion.look`; elsewhere `lab:admin.Admin`."""
    folder, _, place = name.rpartition(":")
    module, _, path = place.partition(".")
    found: Any = reduce(getattr, path.split("."), import_module(f"kafka_ctl.{folder or 'controller'}.{module}"))
    return found


ANSWERS = {
    "DISCONNECTED": (
        "A request whose connection breaks is sent again, until it is answered or its broker is no longer registered.",
        "it is sent again, and whatever waits behind it goes on waiting",
        ("were the broker to answer", "the next request for it would leave"),
    ),
    "": (
        "A request is answered with an error where it cannot be obeyed, or comes from a time that is over.",
        "what was asked has not been done, or not by this broker",
        ("without the error", "it would have been done"),
    ),
}
"""Error of an answer -> rule, outcome, alternative; the empty one stands for all others."""


def note(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The decision behind a controller's note, with what it went by; None for a note that decides nothing."""
    row = find(record.kind, record.action)
    if row.rule is None:
        return None
    fields = {name: _word(value) for name, value in details.fields(record).items()}
    about = knowledge(trace, record, *partition_named(fields.get("partition")))
    knowledge_names = {name for name, _ in about}
    inputs = [(name.replace("_", " ").capitalize(), text) for name, text in fields.items()]
    inputs = inputs or [("Controller", str(record.broker))]
    return Finding(
        rule=row.rule.rule,
        inputs=(*(row for row in inputs if row[0] not in knowledge_names), *about),
        decided=_filled(row.rule.outcome, fields),
        otherwise=tuple((_filled(what, fields), then) for what, then in row.rule.otherwise),
        by=tuple(map(decider, row.rule.by)),
    )


def refused_command(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """What the administrator's tool, or the controller it asked, refused."""
    if record.action != "refused":
        return None
    asked = next((r for r in reversed(trace.causes(record.seq)[:-1].records) if r.actor == "admin"), None)
    given = (asked.detail or asked.topic or "") if asked else ""
    return Finding(
        rule="A command is carried out only if everything in it exists, and is allowed at that moment.",
        inputs=(("Command", asked.action if asked else "unknown"), ("Given", given or "nothing")),
        decided=f"refused, {record.error}: {record.detail}",
        otherwise=(("without that", "it would have been carried out"),),
        by=(Admin.record_refusal,),
    )


def response(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """An answer that carries an error, or a connection that broke."""
    if record.error is None:
        return None
    rule, decided, otherwise = ANSWERS.get(record.error, ANSWERS[""])
    lost = record.error == "DISCONNECTED"
    inputs = [("Request", record.action), ("Broker", str(record.broker))]
    inputs.append(("Response", "none: disconnected") if lost else ("Error", record.error))
    if record.detail:
        inputs.append(("Connection" if lost else "Said", brief(record.detail)))
    by = (Channel.deliver,) if lost else ()
    return Finding(rule=rule, inputs=tuple(inputs), decided=decided, otherwise=(otherwise,), by=by)


def _word(value: object) -> str:
    if isinstance(value, list):
        plain = all(isinstance(one, int) for one in value)
        return format_ids(value) if plain else listed((_word(one) for one in value), 6) or "none"
    return brief(value)


def _filled(text: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        text = text.replace("{" + name + "}", value)
    return text
