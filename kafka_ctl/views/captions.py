"""A step in plain words, made from its records: one sentence a newcomer can read aloud.

One function for each kind of record; it gets the records of one step, which say the same of several subjects. What
depends on the action alone is the sentence of its row in `trace/actions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.actions import find
from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.views.scene import shorten
from kafka_ctl.views.steps import sameness
from kafka_ctl.views.wording import brief, brokers, format_ids, listed, subjects, who
from kafka_ctl.views.zkcaptions import watch, zk


def caption(records: Sequence[Record]) -> str:
    """One sentence for one step; steps that were joined for want of room get one for each kind of news."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(sameness(record), []).append(record)
    sentences = [SENTENCES[group[0].kind](group) for group in groups.values()]
    return " ".join(sentences[:4]) + (f" (And {len(sentences) - 4} things more.)" if len(sentences) > 4 else "")


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
    command = f"command {name.replace('_', ' ')}{about}"
    if first.target == "done":
        return f"{who(first.actor)}'s {command} is done."
    return f"{who(first.actor)} gives the {command}."


def _controller(records: Sequence[Record]) -> str:
    first = records[0]
    number = first.broker if first.broker is not None else number_of(first.actor)
    fields, epoch = details.fields(first), first.controller_epoch
    sentence = find(first.kind, first.action).sentence
    if not sentence:
        return f"{who(first.actor)} logs: {brief(first.action)}."
    values = {
        "number": number,
        "elected": fields.get("elected"),
        "with_epoch": f" with epoch {epoch}" if epoch else "",
        "difference": _difference(fields) if "{difference}" in sentence else "",
    }
    return sentence.format_map(values)


def _difference(fields: dict[str, object]) -> str:
    names = {"new": "new", "bounced": "restarted meanwhile", "dead": "gone"}
    seen = [f"{word}: {listed(found, 8)}" for name, word in names.items() if (found := details.ids(fields.get(name)))]
    return "; ".join([*(seen or ["no difference"]), f"live: {listed(details.ids(fields.get('live')), 12)}"])


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
            now = f"broker {first.leader} leads, ISR {format_ids(first.isr)}{epoch}"
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
        chosen = f"broker {first.leader} is chosen, ISR {format_ids(first.isr)}"
        return f"Election ({first.action}) for {names}: {chosen}.{unclean}"
    are = "is" if len({r.leader for r in records}) == 1 else "are"
    return f"Elections ({first.action}) for {names}: {brokers(r.leader for r in records)} {are} chosen.{unclean}"


def _request(records: Sequence[Record]) -> str:
    first = records[0]
    about = find(first.kind, first.action).sentence or "news"
    return f"{who(first.actor)} sends {brief(first.action)} to {brokers(r.broker for r in records)}: {about}."


def _response(records: Sequence[Record]) -> str:
    first = records[0]
    if first.error == "DISCONNECTED":
        return _disconnected(records)
    outcome = f"error {brief(first.error)}" if first.error else "done"
    if first.actor == "producer":
        return (
            f"The records for {subjects(records)} are {f'not acknowledged: {outcome}' if first.error else 'written'}."
        )
    answer = "answers" if len({r.broker for r in records}) == 1 else "answer"
    return f"{brokers(r.broker for r in records).capitalize()} {answer} {brief(first.action)}: {outcome}."


def _disconnected(records: Sequence[Record]) -> str:
    """Kafka 2.0.1: clients/NetworkClientUtils.java, sendAndReceive."""
    first, many = records[0], len({r.broker for r in records}) > 1
    lost = f"connection{'s' * many} to {brokers(r.broker for r in records)} {'were' if many else 'was'} lost"
    why = f" ({brief(first.detail)})" if first.detail and not many else ""
    again = f"before the response{'s' * many} to {brief(first.action)}{why}; the request is sent again"
    return f"{who(first.actor)}'s {lost} {again}."


FAILED = {
    "become-follower": "follow the leader of",
    "become-leader": "lead",
    "shrink-isr": "shrink the ISR of",
    "expand-isr": "expand the ISR of",
    "stopped": "fetch records of",
}
"""What a broker could not do, by the action of its record."""


def _broker(records: Sequence[Record]) -> str:
    first, names = records[0], subjects(records)
    numbers = [r.broker if r.broker is not None else number_of(r.actor) for r in records]
    actor, many = brokers(numbers).capitalize(), len(set(numbers)) > 1
    if first.error == "REPLICA_NOT_AVAILABLE":
        return f"{actor} will make {'their copies' if many else 'its copy'} of {names} in the log directory named."
    if first.action == "controlled-shutdown" and (unfinished := _unfinished(first)):
        return f"{actor} {unfinished}."
    if first.error or first.action == "ignored":
        return f"{actor} {_failed(first, names, many)}."
    if first.action in ("become-leader", "become-follower"):
        return _applied(records, actor)
    row = find(first.kind, first.action)
    if not row.sentence:
        return f"{actor}: {brief(first.action)}{f' ({names})' if names else ''}."
    isr = f", ISR {format_ids(first.isr)}" if first.isr and len(records) == 1 else ""
    return f"{actor} {(row.many if many else row.sentence).replace('{0}', names)}{isr}."


def _failed(record: Record, names: str, many: bool) -> str:
    """What a broker did not do, and why."""
    why = brief(record.error or record.detail or "it is stale")
    if record.action == "ignored":
        epoch = "the leader epoch is not higher than the known one" if record.topic else "its controller epoch is old"
        why = epoch if why == "STALE_CONTROLLER_EPOCH" else why
        return f"ignore{'s' * (not many)} {f'the request for {names}' if record.topic else 'the whole request'}: {why}"
    what = FAILED.get(record.action)
    return (
        f"cannot {what} {names}: {why}"
        if what
        else f"fail{'s' * (not many)} at {brief(record.action)} ({names}): {why}"
    )


def _unfinished(record: Record) -> str:
    """An attempt to shut down after which the broker may not stop yet; empty after the last."""
    attempt = details.named(record.detail).get("attempt", "?")
    if record.error:
        return f"tries to shut down, attempt {attempt}: {brief(record.error)}"
    remaining = details.items(record.detail, "remaining")
    return f"still leads {listed(remaining)} after attempt {attempt} to shut down" if remaining else ""


def _applied(records: Sequence[Record], actor: str) -> str:
    """What brokers did with a LeaderAndIsr request."""
    leading = [r for r in records if r.action == "become-leader"]
    following = [r for r in records if r.action == "become-follower"]
    if len({r.broker for r in records}) > 1:
        leads = listed(f"{r.topic}-{r.partition} by {r.broker}" for r in leading)
        return f"{actor} apply the LeaderAndIsr request.{f' Led now: {leads}.' if leads else ''}"
    parts = [f"leads {subjects(leading)} now"] if leading else []
    parts += [f"follows the leader of {subjects(following)}"] if following else []
    return f"{actor} {' and '.join(parts)}."


def _fault(records: Sequence[Record]) -> str:
    first = records[0]
    broker = brokers(r.broker for r in records) if first.broker is not None else "the cluster"
    text = find(first.kind, first.action).sentence or f"{{0}}: {brief(first.action)}."
    sentence = text.replace("{0}", broker).replace("{1}", subjects(records) or "everything")
    sentence = sentence.replace("{2}", brief(first.detail or ""))
    return sentence[0].upper() + sentence[1:]


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
