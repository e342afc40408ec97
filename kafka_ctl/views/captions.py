"""A step in plain words, made from its records: one sentence a newcomer can read aloud.

One function for each kind of record; it gets the records of one step, which say the same of several subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.table import short
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.views.cluster_model import ids, loads, number_of
from kafka_ctl.views.scene import shorten
from kafka_ctl.views.steps import sameness
from kafka_ctl.views.wording import brief, brokers, listed, ring, subjects, who
from kafka_ctl.views.zkcaptions import watch, zk


def caption(records: Sequence[Record]) -> str:
    """One sentence for one step; steps that were joined for want of room get one for each kind of news."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(sameness(record), []).append(record)
    told = [SENTENCES[group[0].kind](group) for group in groups.values()]
    return " ".join(told[:4]) + (f" (And {len(told) - 4} things more.)" if len(told) > 4 else "")


def _event(records: Sequence[Record]) -> str:
    first = records[0]
    topic = subjects(records[:1])
    about = f" ({topic})" if topic else "" if first.broker is None else f" ({brokers([first.broker])})"
    name = brief(first.action)
    if first.actor.startswith("controller") and first.target in ("queued", "dropped", "done"):
        change = {"queued": "enters", "dropped": "is dropped from", "done": "is done and leaves"}[first.target]
        return f"The event {name}{about} {change} the queue of {who(first.actor).lower()}."
    if first.actor.startswith("controller"):
        return f"{who(first.actor)} takes the event {name}{about} from its queue."
    done = " is done" if first.target == "done" else ""
    return f"{who(first.actor)} asks for {name.replace('_', ' ')}{about}{done}."


def _controller(records: Sequence[Record]) -> str:
    first = records[0]
    number = first.broker if first.broker is not None else number_of(first.actor)
    said, epoch = loads(first.detail), first.controller_epoch
    ruler = said.get("elected")
    with_epoch = f" with epoch {epoch}" if epoch else ""
    told = {
        "elected": f"Broker {number} is elected: it is the controller.",
        "ready": f"Controller {number} has taken over{with_epoch}: it has read the cluster and begins.",
        "resigned": f"Broker {number} resigns: it is no longer the controller.",
        "forcing_resignation": f"Broker {number} gives the controllership up on purpose.",
        "already_elected": f"Broker {number} stands by: broker {ruler} is the controller already.",
        "other_elected": f"Broker {number} came too late: broker {ruler} is the controller now.",
        "elected_and_resigned": f"Broker {number} was elected, but another one has been since: it resigns.",
        "shutting_down_broker": f"Controller {number} begins a controlled shutdown.",
        "election_failed": f"Controller {number} could not elect a leader.",
        "brokers_changed": _difference(number, said),
    }
    return told.get(first.action, f"{who(first.actor)} notes: {brief(first.action)}.")


def _difference(number: int | None, said: dict[str, Any]) -> str:
    words = {"new": "new", "bounced": "restarted meanwhile", "dead": "gone"}
    seen = [f"{word}: {listed(found, 8)}" for name, word in words.items() if (found := ids(said.get(name)))]
    told = "; ".join([*(seen or ["no difference"]), f"live: {listed(ids(said.get('live')), 12)}"])
    return f"Controller {number} compares /brokers/ids with what it knew: {told}."


def _move(record: Record) -> str:
    return f"{short(record.source or '')} → {short(record.target or '')}"


def _refused(name: str, record: Record) -> str:
    source, target = short(record.source or ""), short(record.target or "")
    return f"{name} cannot move from {source} to {target}: {brief(record.error)}."


def _begins(one: bool, record: Record) -> str:
    return f"{'begins' if one else 'begin'} as {short(record.target or '')}"


def _partition(records: Sequence[Record]) -> str:
    first, names = records[0], subjects(records)
    if first.error:
        return _refused(names, first)
    one = len({(r.topic, r.partition) for r in records}) == 1
    if first.action == SET:
        why = {"OnlinePartition": "the leader is alive", "OfflinePartition": "the leader is not alive"}
        return f"{names} {_begins(one, first)}: {why.get(first.target or '', 'no leader has been elected yet')}."
    verb = "moves" if one else "move"
    if first.leader is not None and first.leader != NO_LEADER and first.target == "OnlinePartition":
        if len(records) == 1:
            epoch = f", leader epoch {first.leader_epoch}" if first.leader_epoch is not None else ""
            now = f"broker {first.leader} leads, ISR {ring(first.isr)}{epoch}"
            return f"{names} {verb} {_move(first)}: {now}."
        return f"{names} {verb} {_move(first)}: led by {brokers(r.leader for r in records)}."
    why = {"OfflinePartition": ", as nobody leads", "NewPartition": ": known, but not led yet"}
    return f"{names} {verb} {_move(first)}{why.get(first.target or '', '')}."


def _replica(records: Sequence[Record]) -> str:
    names = listed(f"{r.topic}-{r.partition}@{r.broker}" for r in records)
    if records[0].error:
        return _refused(f"The replica {names}", records[0])
    many = len(records) > 1
    if records[0].action == SET:
        return f"The replica{'s' if many else ''} {names} {_begins(not many, records[0])}."
    return f"The replica{'s' if many else ''} {names} move{'' if many else 's'} {_move(records[0])}."


def _election(records: Sequence[Record]) -> str:
    first, names = records[0], subjects(records)
    if first.error or first.leader in (None, NO_LEADER):
        return f"No leader can be elected for {names} ({first.action}): no replica qualifies."
    lossy = any(r.target == "unclean" for r in records)
    unclean = " This election is unclean: records may be lost." if lossy else ""
    if len(records) == 1:
        chosen = f"broker {first.leader} is chosen, ISR {ring(first.isr)}"
        return f"Election ({first.action}) for {names}: {chosen}.{unclean}"
    return f"Elections ({first.action}) for {names}: {brokers(r.leader for r in records)} chosen.{unclean}"


REQUESTS = {
    "LeaderAndIsr": "who leads and who follows",
    "UpdateMetadata": "what to tell clients",
    "StopReplica": "which copies to stop",
    "ControlledShutdown": "it wants to leave",
    "Produce": "records to write",
}
"""What each request is about."""


def _request(records: Sequence[Record]) -> str:
    first = records[0]
    about = REQUESTS.get(first.action, "news")
    return f"{who(first.actor)} sends {brief(first.action)} to {brokers(r.broker for r in records)}: {about}."


def _response(records: Sequence[Record]) -> str:
    first = records[0]
    said = f"error {brief(first.error)}" if first.error else "done"
    if first.actor == "producer":
        return f"The records for {subjects(records)} are {f'not acknowledged: {said}' if first.error else 'written'}."
    return f"{brokers(r.broker for r in records).capitalize()} answers {brief(first.action)}: {said}."


DOINGS = {
    "start": ("starts", "start"),
    "stopped": ("stops", "stop"),
    "registered": ("is registered in ZooKeeper", "are registered in ZooKeeper"),
    "session-expired": ("learns that its session has expired", "learn that their sessions have expired"),
    "controlled-shutdown": ("has no leadership left and may go", "have no leadership left and may go"),
    "stop-replica": ("stops its copy of {0}", "stop their copies of {0}"),
    "caught-up": ("has caught up with the leader of {0}", "have caught up with the leaders of {0}"),
    "shrink-isr": ("takes who lags out of the ISR of {0}", "take who lags out of the ISR of {0}"),
    "log-dir-wanted": (
        "is to have its copy of {0} in a certain log directory",
        "are to have their copies of {0} in certain log directories",
    ),
    "log-dir-copying": (
        "fills a future copy of {0} in another log directory",
        "fill future copies of {0} in other log directories",
    ),
    "log-dir-swapped": ("puts the future copy of {0} in its place", "put the future copies of {0} in their places"),
    "append": ("writes new records to {0}", "write new records to {0}"),
    "copy": ("copies the new records of {0}", "copy the new records of {0}"),
    "truncate": (
        "drops records of {0} that its leader may not have",
        "drop records of {0} that its leader may not have",
    ),
    "high-watermark": (
        "knows more of {0} to be on all in-sync replicas",
        "know more of {0} to be on all in-sync replicas",
    ),
    "expand-isr": ("takes who caught up into the ISR of {0}", "take who caught up into the ISR of {0}"),
}
"""What a broker does, and what several do."""


def _broker(records: Sequence[Record]) -> str:
    first, names = records[0], subjects(records)
    numbers = [r.broker if r.broker is not None else number_of(r.actor) for r in records]
    actor, many = brokers(numbers).capitalize(), len(set(numbers)) > 1
    if first.error == "REPLICA_NOT_AVAILABLE":
        return f"{actor} will make {'their copies' if many else 'its copy'} of {names} in the log directory named."
    if first.error or first.action == "ignored":
        why = brief(first.error or first.detail or "it is stale")
        why = {"STALE_CONTROLLER_EPOCH": "it is no newer than what is known"}.get(why, why)
        return f"{actor} ignore{'' if many else 's'} what was said about {names}: {why}."
    if first.action in ("become-leader", "become-follower"):
        return _told(records, actor)
    if first.action not in DOINGS:
        return f"{actor}: {brief(first.action)}{f' ({names})' if names else ''}."
    isr = f", ISR {ring(first.isr)}" if first.isr and len(records) == 1 else ""
    return f"{actor} {DOINGS[first.action][many].replace('{0}', names)}{isr}."


def _told(records: Sequence[Record], actor: str) -> str:
    """What brokers made of a LeaderAndIsr request."""
    leading = [r for r in records if r.action == "become-leader"]
    following = [r for r in records if r.action == "become-follower"]
    if len({r.broker for r in records}) > 1:
        leads = listed(f"{r.topic}-{r.partition} by {r.broker}" for r in leading)
        return f"{actor} do as they were told.{f' Led now: {leads}.' if leads else ''}"
    parts = [f"leads {subjects(leading)} now"] if leading else []
    parts += [f"follows the leader of {subjects(following)}"] if following else []
    return f"{actor} {' and '.join(parts)}."


FAULTS = {
    "kill": "{0} is killed: its process is gone, but ZooKeeper does not know yet.",
    "start": "{0} is started again.",
    "bounce": "{0} is restarted faster than its session expires.",
    "add_broker": "A broker joins the cluster ({2}).",
    "set_broker_id": "The configuration of {0} is changed ({2}).",
    "set_meta": "What a disk of {0} says of its owner is changed ({2}).",
    "expire_session": "The ZooKeeper session of {0} is made to expire.",
    "pause": "{0} is paused, as by a long garbage collection.",
    "resume": "{0} goes on after its pause.",
    "lag": "{0} falls behind with {1}.",
    "catch_up": "{0} may catch up again.",
    "heal": "Pauses, cuts and delays end, and followers keep up again.",
    "disconnect": "{0} is cut off ({2}).",
    "delay": "What {0} sends takes longer ({2}).",
    "slow": "What {0} fetches takes longer ({2}).",
    "lose": "The next connection that {0} uses will break ({2}).",
    "fail_log_dir": "A disk of {0} fails: the copies on it are gone until it starts again.",
    "stop_zookeeper": "ZooKeeper does not answer any more; no session expires meanwhile.",
    "start_zookeeper": "ZooKeeper answers again.",
}
"""What a fault means; {0} is the broker, {1} the partition, {2} what else was said."""


def _fault(records: Sequence[Record]) -> str:
    first = records[0]
    broker = brokers(r.broker for r in records) if first.broker is not None else "the cluster"
    text = FAULTS.get(first.action, f"{{0}}: {brief(first.action)}.")
    said = text.replace("{0}", broker).replace("{1}", subjects(records) or "everything")
    said = said.replace("{2}", brief(first.detail or ""))
    return said[0].upper() + said[1:]


def _violation(records: Sequence[Record]) -> str:
    first = records[0]
    detail = f" {shorten(first.detail, 160).removesuffix('.')}." if first.detail else ""
    return f"Broken rule: {brief(first.action)}.{detail}"


SENTENCES: dict[str, Callable[[Sequence[Record]], str]] = {
    "zk": zk,
    "watch": watch,
    "event": _event,
    "controller": _controller,
    "partition": _partition,
    "replica": _replica,
    "election": _election,
    "request": _request,
    "response": _response,
    "broker": _broker,
    "fault": _fault,
    "violation": _violation,
}
"""Kind of record -> what makes a sentence of several of them."""
