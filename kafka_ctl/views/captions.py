"""A step in plain words, made from its records: one sentence a newcomer can read aloud.

One function for each kind of record; it gets the records of one step, which say the same of several subjects. A caption
that depends on the action alone is the sentence of its row in `trace/catalogue.txt`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.catalogue import find
from kafka_ctl.trace.model import broker_of, controller_of, number_of
from kafka_ctl.trace.record import SET, Record, numbered
from kafka_ctl.views.scene import shorten
from kafka_ctl.views.steps import sameness

BEFORE_ELECTED = ("Startup", "Reelect", "RegisterBrokerAndReelect")
"""Events that a broker handles before it is the controller."""
LONGEST = 60
"""The most characters of a name from outside in a sentence."""


def brief(text: object) -> str:
    """Any text, cut in the middle when it is too long for a sentence."""
    return shorten(str(text), LONGEST)


def listed(things: Iterable[object], most: int = 3) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 7 more`."""
    texts = list(map(brief, dict.fromkeys(map(str, things))))
    if len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def who(actor: str) -> str:
    """An actor as a sentence begins with it: `Controller 2`, `Broker 1`, `ZooKeeper`, `The administrator`."""
    number = number_of(actor)
    if number is not None and actor.startswith(("controller", "broker")):
        return f"{'Controller' if actor.startswith('c') else 'Broker'} {number}"
    known = {"zookeeper": "ZooKeeper", "admin": "The administrator", "producer": "The producer", "fault": "A fault"}
    return known.get(actor, brief(actor))


def process_of(record: Record) -> str:
    """The actor of a record; of an event that precedes an election, the broker."""
    return f"Broker {number_of(record.actor)}" if record.action in BEFORE_ELECTED else who(record.actor)


def brokers(numbers: Iterable[int | None]) -> str:
    """`broker 1`, `brokers 1 and 2`."""
    found = sorted({n for n in numbers if n is not None})
    return f"broker{'s' if len(found) > 1 else ''} {listed(found, 8)}"


def subjects(records: Sequence[Record]) -> str:
    """The partitions (or topics) that records are about, as a list in words; empty when there are none."""
    names = [f"{r.topic}-{r.partition}" for r in records if r.topic is not None and r.partition is not None]
    return listed(names or [r.topic for r in records if r.topic is not None])


def format_ids(numbers: Iterable[int] | None) -> str:
    """An ISR or assignment in its own order: `[2, 3]`."""
    return str(list(numbers or ()))


def duration(ms: float) -> str:
    """A length of time with a unit that suits it: `0.4 ms`, `120 ms`, `5.98 s`, `2.5 min`, `3.1 h`."""
    for size, unit in ((3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s")):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


_OWNER = re.compile(r"\bof (\S+)")

CHANGES = {
    "NodeCreated": "was created",
    "NodeDeleted": "was deleted",
    "NodeDataChanged": "has new data",
    "NodeChildrenChanged": "has new or deleted children",
}
"""ZooKeeper's names of what a watch reports, in words."""
READS = {"get": "reads", "exists": "looks whether there is", "children": "reads the children of"}
"""The reads of znodes, which change nothing."""
SESSION = ("connect", "disconnected", "reconnected", "expired", "closed")
"""The end of a session, and the state of its connection."""


REGISTERED = "/brokers/ids/"


def by_controller(record: Record, trace: Sequence[Record]) -> bool:
    """True if a controller made a write, and not its broker.

    Both use the same session, but only a controller's write is caused by an event.
    """
    cause = None if record.cause is None else numbered(trace, record.cause)
    return cause is not None and cause.kind == "event" and cause.actor.startswith("controller")


def _writer(record: Record, trace: Sequence[Record] | None) -> str:
    """The role in which a broker uses ZooKeeper; without the trace that the record is of, only the broker."""
    number, path = number_of(record.actor), record.path or ""
    if trace is None or number is None or path == "/controller" or path.startswith(REGISTERED):
        return who(record.actor)
    if by_controller(record, trace):
        return f"Controller {number}"
    return f"{who(record.actor)}, the leader," if path.endswith("/state") else who(record.actor)


def zk(records: Sequence[Record], trace: Sequence[Record] | None) -> str:
    """An operation, or several of one kind; `trace` has the records that caused them."""
    first = records[0]
    if first.action in SESSION and not first.error:
        return _session(first)
    actor, paths = _writer(first, trace), _paths(records)
    if first.error:
        if first.path == "/controller" and first.error == "NODEEXISTS":
            return f"{actor} tries to create /controller too, but it exists: the race is lost."
        actor = actor.replace(", the leader,", "")
        actor = actor if actor == "ZooKeeper" else actor[0].lower() + actor[1:]
        return f"ZooKeeper refuses {actor}'s {first.action} of {paths}: {first.error}."
    if first.action in READS:
        return f"{actor} {READS[first.action]} {paths}."
    if first.action == "delete":
        return _deleted(first, actor, paths)
    return _written(records, actor, paths)


def _written(records: Sequence[Record], actor: str, paths: str) -> str:
    """Znodes that were created or set."""
    first, path = records[0], records[0].path or ""
    if path == "/controller":
        return _controllership(first, actor)
    if first.actor == "admin" and (path == "/controller_epoch" or path.startswith(REGISTERED)):
        return f"{actor} writes {paths} by hand."
    if path == "/controller_epoch" and first.action == "create":
        return f"{actor} creates /controller_epoch with epoch {first.detail}: it did not exist."
    if path == "/controller_epoch":
        return f"{actor} writes epoch {first.detail} to /controller_epoch: older controllers are stale now."
    if path.startswith(REGISTERED):
        return f"{actor} registers: the ephemeral znode {paths} says that it is alive."
    if path.endswith("/state"):
        return _states(records, actor)
    if first.action == "create":
        made = "znodes" if len(records) > 1 else f"{first.target or ''} znode".strip()
        return f"{actor} creates the {made} {paths}."
    version = f" (now version {first.zk_version})" if len(records) == 1 else ""
    return f"{actor} writes {paths}{version}."


def _paths(records: Iterable[Record]) -> str:
    return listed(r.path for r in records)


def _session(record: Record) -> str:
    owner = who(found[1]) if (found := _OWNER.search(record.detail or "")) else who(record.actor)
    if record.action == "connect":
        return f"{who(record.actor)} opens a session with ZooKeeper."
    if record.action == "disconnected":
        return f"{who(record.actor)} has no connection to ZooKeeper any more."
    if record.action == "reconnected":
        return f"{who(record.actor)} has connected to ZooKeeper again."
    if record.action == "closed":
        return f"{owner}'s ZooKeeper session is closed, so its ephemeral znodes are deleted."
    return f"{owner}'s ZooKeeper session expires, so its ephemeral znodes are deleted."


def _controllership(record: Record, actor: str) -> str:
    """The znode `/controller` was created or set."""
    named = controller_of(record.detail)
    if record.actor == "admin" or named != number_of(record.actor):
        by_hand = f"broker {named}" if named is not None else "no broker"
        return f"{actor} writes /controller by hand: it names {by_hand}, and no election was held."
    won = f"it names broker {named}, and the race is won" if named is not None else "the race is won"
    return f"{actor} creates the ephemeral znode /controller: {won}."


def _deleted(first: Record, actor: str, paths: str) -> str:
    if first.path == "/controller":
        why = " with its owner's session" if first.actor == "zookeeper" else ""
        return f"{actor} deletes /controller{why}: there is no controller now."
    if (first.path or "").startswith(REGISTERED):
        return f"{actor} deletes {paths}: for the cluster, the broker is gone."
    return f"{actor} deletes {paths}."


def _states(records: Sequence[Record], actor: str) -> str:
    names = [(r.path or "").split("/") for r in records]
    subject = listed(f"{n[-4]}-{n[-2]}" if len(n) > 4 else n[-1] for n in names)
    if len(records) > 1:
        return f"{actor} writes the new state of {subject} to ZooKeeper."
    fields, version = details.json_object(records[0].detail), records[0].zk_version
    if not all(isinstance(fields.get(name), int) for name in ("leader", "leader_epoch")):
        return f"{actor} writes data that is no state to {_paths(records)} (now version {version})."
    leader = "no leader" if fields.get("leader") == NO_LEADER else f"leader {fields.get('leader')}"
    isr, leader_epoch = format_ids(details.ids(fields.get("isr"))), fields.get("leader_epoch")
    rest = f"ISR {isr}, leader epoch {leader_epoch}, znode version {version}"
    return f"{actor} writes the state of {subject}: {leader}, {rest}."


def watch(records: Sequence[Record]) -> str:
    """Watches that fire for one change."""
    receivers = brokers(number_of(r.actor) for r in records)
    change = CHANGES.get(records[0].target or "", "changed")
    if records[0].action != "gap":
        return f"Watches fire: ZooKeeper notifies {receivers} that {_paths(records)} {change}."
    where = _paths(r for r in records if r.path) or "any part of the cluster"
    return f"The watch has a gap ({records[0].detail}): {where}."


def caption(records: Sequence[Record], trace: Sequence[Record] | None = None) -> str:
    """One sentence for one step; steps that were joined for want of room get one for each kind of news.

    `trace` has the records that caused these: it shows whether a broker writes as the controller or as a leader.
    """
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*sameness(record), _is_absent(record)), []).append(record)
    sentences = []
    for group in groups.values():
        kind = group[0].kind
        sentences.append(TRACED[kind](group, trace) if kind in TRACED else SENTENCES[kind](group))
    more = len(sentences) - 4
    return " ".join(sentences[:4]) + (f" (And {more} thing{'s' * (more > 1)} more.)" if more > 0 else "")


def _event(records: Sequence[Record]) -> str:
    first = records[0]
    topic = subjects(records[:1])
    about = f" ({topic})" if topic else "" if first.broker is None else f" ({brokers([first.broker])})"
    name = brief(first.action)
    process = process_of(first)
    if first.action == "refused":
        return f"{process}'s command is refused: {brief(first.error)}."
    if not first.actor.startswith("controller"):
        return f"{process} gives the command {name.replace('_', ' ')}{about}."
    match first.target:
        case "done":
            return f"{process} has processed the event {name}{about}."
        case "queued" | "dropped":
            change = "waits for" if first.target == "queued" else "is dropped from the queue of"
            return f"The event {name}{about} {change} {process.lower()}."
    return f"{process} begins to process the event {name}{about}."


def _controller(records: Sequence[Record]) -> str:
    first = records[0]
    number = broker_of(first)
    fields, epoch = details.fields(first), first.controller_epoch
    sentence = find(first.kind, first.action).sentence
    if not sentence:
        return f"{who(first.actor)} logs: {brief(first.action)}."
    values = {
        "number": number,
        "elected": fields.get("elected"),
        "broker": fields.get("broker"),
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


def _is_deletion(record: Record, trace: Sequence[Record]) -> bool:
    """True if a partition goes because its topic is deleted.

    Kafka 2.0.1: controller/TopicDeletionManager.scala, completeDeleteTopic; 2.4.1: onTopicDeletion
    """
    for n in reversed(range(bisect_left(trace, record.seq, key=attrgetter("seq")))):
        before = trace[n]
        if before.actor == record.actor and before.kind != "partition" and before.action != "invoking_partitions":
            begun = before.action == "topic_deletion" and details.fields(before).get("topics") == [record.topic]
            return begun or (before.action == "forget" and before.topic == record.topic)
    return False


def _partition(records: Sequence[Record], trace: Sequence[Record] | None) -> str:
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
    gone = "its leader does not count as live" if one else "their leaders do not count as live"
    if _is_deletion(first, trace or ()):
        gone = f"{'its' if one else 'their'} topic is deleted"
    why = {"OfflinePartition": f", as {gone}", "NewPartition": ": known, but not led yet"}
    return f"{names} {verb} {_move(first)}{why.get(first.target or '', '')}."


def _replica(records: Sequence[Record]) -> str:
    names, many = listed(f"{r.topic}-{r.partition}@{r.broker}" for r in records), len(records) > 1
    if records[0].error:
        return _refused(f"The replica{'s' if many else ''} {names}", records[0])
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
    about = find(first.kind, first.action).sentence
    about = f": {about}" if about else ""
    listed_in = (details.numbers(details.named(r.detail).get("brokers")) for r in records if r.broker is None)
    receivers = brokers(chain((r.broker for r in records), *listed_in))
    return f"{who(first.actor)} sends {brief(first.action)} to {receivers}{about}."


def _response(records: Sequence[Record]) -> str:
    first = records[0]
    if first.error == "DISCONNECTED":
        return _disconnected(records)
    outcome = f"error {brief(first.error)}" if first.error else "done"
    if first.actor == "producer":
        fate = f"not acknowledged: {outcome}" if first.error else "written"
        return f"The records for {subjects(records)} are {fate}."
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
    "shrink-isr": "shrink the ISR of",
    "expand-isr": "expand the ISR of",
    "stop-replica": "stop its copy of",
    "log-dir-wanted": "move its copy of",
}
"""The failed act of a broker, by the action of its record."""
ENDS = {
    "OFFSET_OUT_OF_RANGE": "halts: its log of {0} is longer than its leader's",
    "KafkaStorageException": "halts: it has lost a log directory that it needs",
    "killed": "is killed: it did not stop in time",
}
"""The end of a process, by the error of its record `stopped`; any other error ends its start."""


def _broker(records: Sequence[Record]) -> str:
    first, names = records[0], subjects(records)
    numbers = [broker_of(r) for r in records]
    actor, many = brokers(numbers).capitalize(), len(set(numbers)) > 1
    if first.error == "REPLICA_NOT_AVAILABLE":
        return f"{actor} will make {'their copies' if many else 'its copy'} of {names} in the log directory named."
    if first.action == "controlled-shutdown" and (unfinished := _unfinished(first)):
        return f"{actor} {unfinished}."
    if first.error or first.action == "ignored":
        return f"{actor} {_failed(first, names, many)}."
    if first.action in ("become-leader", "become-follower"):
        return _applied(records, actor)
    if _is_absent(first):
        return f"{actor} {'have' if many else 'has'} no copy of {names} to stop."
    row = find(first.kind, first.action)
    if not row.sentence:
        return f"{actor}: {brief(first.action)}{f' ({names})' if names else ''}."
    isr = f", ISR {format_ids(first.isr)}" if first.isr and len(records) == 1 else ""
    return f"{actor} {(row.many if many else row.sentence).replace('{0}', names)}{isr}."


def _is_absent(record: Record) -> bool:
    """True if a broker was asked to stop a copy that it does not hold."""
    return (record.kind, record.action) == ("broker", "stop-replica") and "absent" in details.flags(record.detail)


def _failed(record: Record, names: str, many: bool) -> str:
    """An act that a broker refused, and the reason."""
    why = brief(record.error or record.detail or "it is stale")
    if record.action == "ignored":
        epoch = "the leader epoch is not higher than the known one" if record.topic else "its controller epoch is old"
        why = epoch if why == "STALE_CONTROLLER_EPOCH" else why
        return f"ignore{'s' * (not many)} {f'the request for {names}' if record.topic else 'the whole request'}: {why}"
    if record.action == "stopped":
        return ENDS.get(why, f"does not start: {why}").replace("{0}", names)
    if record.action in FAILED:
        return f"cannot {FAILED[record.action]} {names}: {why}"
    row = find(record.kind, record.action)
    does = (row.many if many else row.sentence) or f"fail{'s' * (not many)} at {brief(record.action)} ({names})"
    return f"{does.replace('{0}', names)}: {why}"


def _unfinished(record: Record) -> str:
    """An attempt to shut down after which the broker may not stop yet; empty after the last."""
    attempt = details.named(record.detail).get("attempt", "?")
    if record.error:
        return f"tries to shut down, attempt {attempt}: {brief(record.error)}"
    remaining = details.items(record.detail, "remaining")
    return f"still leads {listed(remaining)} after attempt {attempt} to shut down" if remaining else ""


def _applied(records: Sequence[Record], actor: str) -> str:
    """The effect of a LeaderAndIsr request on brokers."""
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
    return f"Invariant violated: {brief(first.action)}.{detail}"


SENTENCES: dict[str, Callable[[Sequence[Record]], str]] = {
    "watch": watch,
    "event": _event,
    "controller": _controller,
    "replica": _replica,
    "election": _election,
    "request": _request,
    "response": _response,
    "broker": _broker,
    "fault": _fault,
    "violation": _violation,
}
"""Kind of record -> what makes a sentence of several of them."""
TRACED: dict[str, Callable[[Sequence[Record], Sequence[Record] | None], str]] = {"zk": zk, "partition": _partition}
"""The same of the kinds whose sentences depend on the records before."""
