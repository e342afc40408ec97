"""Explanations of the controller's log messages on deletion, reassignment, shutdown and election.

Each message is a decision at one point of `controller/`; its row has the rule, the outcome and the alternative.
`{partition}` and the like are filled in from the fields of the message.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka_ctl.controller import (
    deletion,
    reassignment,
    reassignment_incremental,
    reassignment_request,
    rebalance,
    shutdown,
)
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.generation import Generation
from kafka_ctl.lab.admin import Admin
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.controller_knowledge import Rows, known, partition_named, words_of
from kafka_ctl.views.executed_lines import Function
from kafka_ctl.views.wording import brief, listed, ring


class Step(NamedTuple):
    """One decision: its rule, its outcome, what else could have come of it, and the functions that decide."""

    rule: str
    decided: str
    otherwise: Rows = ()
    by: tuple[Function, ...] = ()


HALTS = (
    "A deletion waits (is ineligible) while a replica is on a dead broker, could not be deleted, or its topic is being "
    "reassigned."
)
CAUGHT_UP = "A reassignment is finished only when every target replica is in the ISR; until then it waits."
LEADER = "At its end a reassignment needs a leader among the target replicas that is alive."
REQUEST = "A request that cannot be fulfilled is dropped, so that it does not hold up the others."
LEAVES = "A broker that asks to leave is taken out of every election from now on, then its leaderships are moved."
DELETED = "A topic's znodes go only when every replica has been deleted."
PREFERRED = "The first assigned replica, and no other, leads if it is live and in the ISR."
STEPS = {
    "deletion_ineligible": Step(
        HALTS, "{topic} is not deleted now: it is marked as ineligible",
        (("when its replicas are back, or its reassignment has ended", "the mark goes and the deletion goes on"),),
        (deletion.look,),
    ),
    "deletion_halted": Step(
        HALTS, "{topics} must wait: {reason}",
        (("without that", "the brokers' copies would be deleted, then the znodes"),), (deletion.halt,),
    ),
    "deletion_started": Step(
        "A queued topic is deleted when nothing halts it and none of its replicas is being deleted yet.",
        "the deletion of {topic} begins", (("were it ineligible", "it would wait"),), (deletion.look,),
    ),
    "deletion_in_progress": Step(
        DELETED, "{topic} waits for brokers {replicas}",
        (("had all of them answered", "the topic would be forgotten and its znodes deleted"),), (deletion.look,),
    ),
    "deletion_completed": Step(
        DELETED, "{topic} is gone: every replica was deleted",
        (("were one replica not deleted", "the deletion would still wait for it"),), (deletion.look,),
    ),
    "retrying_deletion": Step(
        "A replica that could not be deleted is tried again when its topic is looked at.",
        "{topic}: its ineligible replicas go back to Offline, to be deleted again",
        (("had none of them failed", "nothing would be tried again"),), (deletion.look,),
    ),
    "topics_ineligible": Step(
        HALTS, "a new controller lets these topics wait: {topics}",
        (("were all replicas online and none reassigned", "no topic would wait"),), (deletion.initialize,),
    ),
    "deletion_disabled": Step(
        "Topics are deleted only with delete.topic.enable.", "the requests are dropped: {topics}",
        (("with delete.topic.enable=true", "the topics would be deleted"),),
    ),
    "deleting_unknown_topics": Step(
        "Only topics that exist can be deleted.", "the requests are dropped: {topics}",
        (("did they exist", "they would be queued for deletion"),), (deletion._requested,),
    ),
    "reassignment_progress": Step(
        CAUGHT_UP, "{caught_up} of {wanted} target replicas are in the ISR; missing: {missing}",
        (("with none missing", "the old replicas would be stopped and deleted, and the reassignment finished"),),
        (reassignment._isr_changed,),
    ),
    "reassignment_not_caught_up": Step(
        CAUGHT_UP, "{partition} is assigned to old and new replicas together; the new ones are started",
        (("were all of {replicas} in the ISR", "the last steps would follow at once"),),
        (reassignment.on_reassignment, reassignment._begin),
    ),
    "reassignment_waiting": Step(
        CAUGHT_UP, "the controller waits until {replicas} are in sync",
        (("were all of them in the ISR", "the last steps would follow at once"),), (reassignment._begin,),
    ),
    "reassignment_caught_up": Step(
        CAUGHT_UP, "{replicas} are in sync: the last steps follow", (("were one missing", "it would go on waiting"),),
        (reassignment_incremental.isr_change, reassignment_incremental._complete),
    ),
    "reassignment_leader_outside": Step(
        LEADER, "broker {leader} leads and is none of {replicas}: an election follows",
        (("were it one of them, and alive", "it would go on leading"),), (reassignment.move_leader,),
    ),
    "reassignment_leader_stays": Step(
        LEADER, "broker {leader} is one of {replicas} and alive: it goes on leading, with a new leader epoch",
        (("were it none of them, or dead", "there would be an election"),), (reassignment.move_leader,),
    ),
    "reassignment_leader_dead": Step(
        LEADER, "broker {leader} is one of {replicas}, but dead: an election follows",
        (("were it alive", "it would go on leading"),), (reassignment.move_leader,),
    ),
    "reassignment_skipped": Step(
        REQUEST, "refused for {partition}: its topic is to be deleted",
        (("were it not to be deleted", "the reassignment would begin"),),
    ),
    "reassignment_unknown": Step(
        REQUEST, "refused for {partition}: there is no such partition",
        (("did it exist", "the reassignment would begin"),), (reassignment.trigger,),
    ),
    "reassignment_not_needed": Step(
        REQUEST, "nothing to do for {partition}: {replicas} is what it has",
        (("with other replicas", "the reassignment would begin"),), (reassignment.trigger,),
    ),
    "reassignment_failed": Step(REQUEST, "refused for {partition}: {error}"),
    "reassignment_ignored": Step(
        "What stands in /admin/reassign_partitions must be a list of partitions with replicas.",
        "all of it is ignored: {error}",
        (("could it be read", "the reassignments would begin"),),
        (reassignment_request.read,),
    ),
    "shutting_down_broker": Step(
        LEAVES, "broker {broker} is leaving",
        (("had it asked in an earlier life (a lower broker epoch)", "2.4 would have refused"),), (shutdown._begin,),
    ),
    "stale_controlled_shutdown": Step(
        "A request to leave counts only if it comes from the broker's present life: its epoch must not be lower.",
        "refused: {text}", (("with the present epoch", "its leaderships would be moved"),), (shutdown._begin,),
    ),
    "retaining_last_isr": Step(
        "The last member of an ISR stays in it, even dead, unless unclean election is allowed.",
        "replica {replica} stays in the ISR of {partition}",
        (("with unclean election", "the ISR would become empty"),), (ReplicaStateMachine._emptied,),
    ),
    "preferred_done": Step(
        PREFERRED,
        "broker {leader} leads {partition}: it is the preferred one",
        (("were it dead or out of sync", "whoever leads would go on leading"),), (rebalance.elect,),
    ),
    "preferred_failed": Step(
        PREFERRED,
        "broker {leader} goes on leading {partition}; broker {preferred} is preferred",
        (("were broker {preferred} live and in sync", "it would lead"),), (rebalance.elect,),
    ),
    "preferred_unknown": Step(
        REQUEST, "dropped, as they do not exist: {partitions}", (("did they exist", "they would be tried"),),
        (rebalance._elect_requested,),
    ),
    "preferred_deleting": Step(
        REQUEST, "dropped, as their topics are to be deleted: {partitions}",
        (("were they to stay", "they would be tried"),), (rebalance._elect_requested,),
    ),
    "imbalance": Step(
        "A broker whose share of partitions led by others is above leader.imbalance.per.broker.percentage gets them "
        "back.", "of the partitions preferred to broker {broker}, {ratio} are led by others",
        (("with a share above the limit", "preferred leaders are elected"),),
    ),
    "not_sending": Step(
        "A request goes through the channel of a broker that is registered; there is none for any other.",
        "{request} is not sent to broker {broker}, and is lost",
        (("were it registered", "the request would wait in its channel until it is answered"),),
    ),
}  # fmt: skip
"""Note of a controller -> the decision it tells of."""


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


def note(trace: Recorder, record: Record, generation: Generation) -> dict[str, Any] | None:
    """The decision behind a controller's note, with what it went by; None for a note that decides nothing."""
    step = STEPS.get(record.action)
    if step is None:
        return None
    told = {name: _word(value) for name, value in words_of(record).items()}
    about = known(trace, record, *partition_named(told.get("partition")))
    known_names = {name for name, _ in about}
    inputs = [(name.replace("_", " ").capitalize(), text) for name, text in told.items()]
    return {
        "rule": step.rule,
        "inputs": (*(row for row in inputs if row[0] not in known_names), *about),
        "decided": _filled(step.decided, told),
        "otherwise": tuple((_filled(what, told), then) for what, then in step.otherwise),
        "by": step.by,
    }


def refused_command(trace: Recorder, record: Record, generation: Generation) -> dict[str, Any] | None:
    """What the administrator's tool, or the controller it asked, refused."""
    if record.action != "refused":
        return None
    asked = next((r for r in reversed(trace.causes(record.seq)[:-1].records) if r.actor == "admin"), None)
    given = (asked.detail or asked.topic or "") if asked else ""
    return {
        "rule": "A command is carried out only if everything in it exists, and is allowed at that moment.",
        "inputs": (("Command", asked.action if asked else "unknown"), ("Given", given or "nothing")),
        "decided": f"refused, {record.error}: {record.detail}",
        "otherwise": (("without that", "it would have been carried out"),),
        "by": (Admin.record_refusal,),
    }


def response(trace: Recorder, record: Record, generation: Generation) -> dict[str, Any] | None:
    """An answer that carries an error, or a connection that broke."""
    if record.error is None:
        return None
    rule, decided, otherwise = ANSWERS.get(record.error, ANSWERS[""])
    inputs = [("Request", record.action), ("Broker", str(record.broker)), ("Error", record.error)]
    if record.detail:
        inputs.append(("Said", brief(record.detail)))
    return {"rule": rule, "inputs": tuple(inputs), "decided": decided, "otherwise": (otherwise,)}


def _word(value: Any) -> str:
    if isinstance(value, list):
        plain = all(isinstance(one, int) for one in value)
        return ring(value) if plain else listed((_word(one) for one in value), 6) or "none"
    return brief(value)


def _filled(text: str, told: dict[str, str]) -> str:
    for name, value in told.items():
        text = text.replace("{" + name + "}", value)
    return text
