"""A step in plain words, made from its records: one sentence a newcomer can read aloud.

One function per kind of record, found by name; each gets the records of one step, which say the same of
several subjects, and returns a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.table import short
from kafka_ctl.trace import Record
from kafka_ctl.views.fold import controller_of, ids, loads, number_of
from kafka_ctl.views.scene import shorten

_LONGEST = 60
_OWNER = re.compile(r"\bof (\S+)")


def caption(records: Sequence[Record]) -> str:
    """One sentence for one step; steps that were joined for want of room get one sentence for each kind."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        same = (
            "zk"
            if record.kind == "zk"
            else record.action.split("-")[0]
            if record.action.startswith("become-")
            else record.action
        )
        groups.setdefault((record.kind, same), []).append(record)
    told = [_SENTENCES[kind](group) for (kind, _), group in groups.items()]
    return " ".join(told[:4]) + (f" (And {len(told) - 4} things more.)" if len(told) > 4 else "")


def listed(things: Iterable[object], most: int = 3) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 7 more`."""
    words = list(dict.fromkeys(shorten(str(t), _LONGEST) for t in things))
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def who(actor: str) -> str:
    """An actor as a sentence begins with it: `Controller 2`, `Broker 1`, `ZooKeeper`, `The administrator`."""
    number = number_of(actor)
    if number is not None and actor.startswith(("controller", "broker")):
        return f"{'Controller' if actor.startswith('c') else 'Broker'} {number}"
    return {"zookeeper": "ZooKeeper", "admin": "The administrator", "fault": "A fault"}.get(
        actor, shorten(actor, _LONGEST)
    )


def _brokers(numbers: Iterable[int | None]) -> str:
    found = sorted({n for n in numbers if n is not None})
    return f"broker{'s' if len(found) > 1 else ''} {listed(found, 8)}"


def _subjects(records: Sequence[Record]) -> str:
    names = [f"{r.topic}-{r.partition}" for r in records if r.topic is not None and r.partition is not None]
    return listed(names) if names else listed(r.topic for r in records if r.topic is not None) or "nothing"


def _is(records: Sequence[Record]) -> str:
    return "are" if len({(r.topic, r.partition) for r in records}) > 1 else "is"


def _ring(numbers: Iterable[int] | None) -> str:
    return "[" + ", ".join(map(str, numbers or ())) + "]"


def _zk(records: Sequence[Record]) -> str:
    first = records[0]
    actor, path = who(first.actor), first.path or ""
    if first.error:
        if path == "/controller":
            return f"{actor} tries to create /controller too, but it exists: the race is lost."
        return (
            f"ZooKeeper refuses {actor}'s {first.action} of {listed(r.path for r in records)}: {first.error}."
        )
    if first.action in ("expired", "closed", "connect"):
        return _session(first)
    if first.action == "delete":
        return _deleted(records, actor, path)
    if path == "/controller":
        return f"{actor} creates the ephemeral znode /controller, which now names broker {controller_of(first.detail)}: the race is won."
    if path == "/controller_epoch":
        return f"{actor} writes controller epoch {first.detail} to /controller_epoch: requests of older controllers are stale from now on."
    if path.startswith("/brokers/ids/"):
        return f"{actor} registers: the ephemeral znode {path} says that it is alive."
    if path.endswith("/state"):
        return _states(records, actor)
    if first.action == "create":
        made = "znodes" if len(records) > 1 else f"{first.target or ''} znode".strip()
        return f"{actor} creates the {made} {listed(r.path for r in records)}."
    said = f" (now version {first.zk_version})" if len(records) == 1 and first.zk_version is not None else ""
    return f"{actor} writes {listed(r.path for r in records)}{said}."


def _session(record: Record) -> str:
    owner = who(found[1]) if (found := _OWNER.search(record.detail or "")) else who(record.actor)
    if record.action == "connect":
        return f"{who(record.actor)} opens a session with ZooKeeper."
    if record.action == "closed":
        return f"{owner}'s ZooKeeper session is closed, so its ephemeral znodes go."
    return f"ZooKeeper has not heard from {owner[0].lower()}{owner[1:]} for too long: its session expires."


def _deleted(records: Sequence[Record], actor: str, path: str) -> str:
    if path == "/controller":
        why = ", for its owner's session is over" if records[0].actor == "zookeeper" else ""
        return f"{actor} deletes /controller{why}: there is no controller now."
    if path.startswith("/brokers/ids/"):
        return f"{actor} deletes {listed(r.path for r in records)}: for the cluster, the broker is gone."
    return f"{actor} deletes {listed(r.path for r in records)}."


def _states(records: Sequence[Record], actor: str) -> str:
    names = [(r.path or "").split("/") for r in records]
    subjects = listed(f"{n[-4]}-{n[-2]}" if len(n) > 4 else n[-1] for n in names)
    if len(records) > 1:
        return f"{actor} writes the new state of {subjects} to ZooKeeper."
    said = loads(records[0].detail)
    leader = "nobody leads" if said.get("leader") == NO_LEADER else f"leader {said.get('leader')}"
    return (
        f"{actor} writes the state of {subjects}: {leader}, ISR {_ring(ids(said.get('isr')))}, "
        f"leader epoch {said.get('leader_epoch')}, znode version {records[0].zk_version}."
    )


_CHANGES = {
    "NodeCreated": "was created",
    "NodeDeleted": "was deleted",
    "NodeDataChanged": "has new data",
    "NodeChildrenChanged": "has other children",
}


def _watch(records: Sequence[Record]) -> str:
    first = records[0]
    told = _brokers(number_of(r.actor) for r in records)
    return f"Watches fire: ZooKeeper tells {told} that {listed(r.path for r in records)} {_CHANGES.get(first.target or '', 'changed')}."


def _event(records: Sequence[Record]) -> str:
    first = records[0]
    about = (
        ""
        if first.topic is None and first.broker is None
        else f" ({_subjects(records) if first.topic else _brokers([first.broker])})"
    )
    if first.actor.startswith("controller"):
        return f"{who(first.actor)} takes the event {shorten(first.action, _LONGEST)}{about} from its queue."
    if first.target == "done":
        return f"{who(first.actor)}'s wish {shorten(first.action, _LONGEST)}{about} is done."
    return f"{who(first.actor)} asks for {shorten(first.action, _LONGEST).replace('_', ' ')}{about}."


def _controller(records: Sequence[Record]) -> str:
    first = records[0]
    number = first.broker if first.broker is not None else number_of(first.actor)
    said = loads(first.detail)
    told = {
        "elected": f"Broker {number} is elected: it is the controller.",
        "ready": f"Controller {number} has taken over{_epoch(first)}: it has read the whole cluster and begins its work.",
        "resigned": f"Broker {number} resigns: it is no longer the controller.",
        "forcing_resignation": f"Broker {number} gives the controllership up on purpose.",
        "already_elected": f"Broker {number} finds that broker {said.get('elected')} is the controller already, and stands by.",
        "other_elected": f"Broker {number} came too late: broker {said.get('elected')} is the controller now.",
        "elected_and_resigned": f"Broker {number} was elected, but another broker has been since: it resigns.",
        "shutting_down_broker": f"Controller {number} begins the controlled shutdown of broker {said.get('broker', '')}.".replace(
            " .", "."
        ),
        "election_failed": f"Controller {number} could not elect a leader.",
        "brokers_changed": _difference(number, said),
    }
    return told.get(first.action, f"{who(first.actor)} notes: {shorten(first.action, _LONGEST)}.")


def _epoch(record: Record) -> str:
    return f" with epoch {record.controller_epoch}" if record.controller_epoch else ""


def _difference(number: int | None, said: dict[str, object]) -> str:
    new, dead, live = (ids(said.get(name)) for name in ("new", "dead", "live"))
    seen = [f"new: {listed(new, 8)}"] if new else []
    seen += [f"gone: {listed(dead, 8)}"] if dead else []
    return f"Controller {number} compares /brokers/ids with what it knew: {'; '.join(seen) or 'no difference'}; live: {listed(live, 12)}."


def _partition(records: Sequence[Record]) -> str:
    first, names = records[0], _subjects(records)
    if first.error:
        return f"{names} cannot move from {short(first.source or '')} to {short(first.target or '')}: {shorten(first.error, _LONGEST)}."
    move = f"{short(first.source or '')} → {short(first.target or '')}"
    if first.leader is not None and first.leader != NO_LEADER:
        if len(records) == 1:
            return f"{names} moves {move}: broker {first.leader} leads, ISR {_ring(first.isr)}, leader epoch {first.leader_epoch}."
        return f"{names} move {move}: led by {_brokers(r.leader for r in records)}."
    why = {"OfflinePartition": ", as nobody leads", "NewPartition": ": known, but not led yet"}.get(
        first.target or "", ""
    )
    return f"{names} {'move' if _is(records) == 'are' else 'moves'} {move}{why}."


def _replica(records: Sequence[Record]) -> str:
    first = records[0]
    names = listed(f"{r.topic}-{r.partition}@{r.broker}" for r in records)
    if first.error:
        return f"The replica {names} cannot move from {short(first.source or '')} to {short(first.target or '')}: {shorten(first.error, _LONGEST)}."
    many = len(records) > 1
    return f"The replica{'s' if many else ''} {names} move{'' if many else 's'} {short(first.source or '')} → {short(first.target or '')}."


def _election(records: Sequence[Record]) -> str:
    first, names = records[0], _subjects(records)
    if first.error or first.leader in (None, NO_LEADER):
        return f"No leader can be elected for {names} ({first.action}): no replica qualifies."
    unclean = (
        " This election is unclean: records may be lost."
        if any(r.target == "unclean" for r in records)
        else ""
    )
    if len(records) == 1:
        return f"Election ({first.action}) for {names}: broker {first.leader} is chosen, ISR {_ring(first.isr)}.{unclean}"
    return f"Elections ({first.action}) for {names}: {_brokers(r.leader for r in records)} chosen.{unclean}"


def _request(records: Sequence[Record]) -> str:
    first = records[0]
    about = {
        "LeaderAndIsr": "who leads and who follows",
        "UpdateMetadata": "what to tell clients",
        "StopReplica": "which copies to stop",
        "ControlledShutdown": "that it wants to leave",
    }.get(first.action, "news")
    return f"{who(first.actor)} sends {shorten(first.action, _LONGEST)} to {_brokers(r.broker for r in records)}: {about}."


def _response(records: Sequence[Record]) -> str:
    first = records[0]
    said = f"error {shorten(first.error, _LONGEST)}" if first.error else "done"
    return f"{_brokers(r.broker for r in records).capitalize()} answers {shorten(first.action, _LONGEST)}: {said}."


_DOINGS = {
    "start": "starts",
    "stopped": "stops",
    "registered": "is registered in ZooKeeper",
    "session-expired": "learns that its ZooKeeper session has expired",
    "stop-replica": "stops its copy of {0}",
    "caught-up": "has caught up with the leader of {0}",
    "shrink-isr": "takes a follower that lags out of the ISR of {0}",
    "controlled-shutdown": "has no leadership left and may go",
    "expand-isr": "takes a follower that has caught up into the ISR of {0}",
}


def _broker(records: Sequence[Record]) -> str:
    first, names = records[0], _subjects(records)
    numbers = [r.broker if r.broker is not None else number_of(r.actor) for r in records]
    actor = _brokers(numbers).capitalize()
    if first.error or first.action == "ignored":
        why = shorten(first.error or first.detail or "it is stale", _LONGEST)
        why = "it is no newer than what is known" if why == "STALE_CONTROLLER_EPOCH" else why
        return (
            f"{actor} {'ignores' if len(set(numbers)) == 1 else 'ignore'} what was said about {names}: {why}."
        )
    if first.action.startswith("become-"):
        return _told(records, actor)
    doing = _DOINGS.get(
        first.action, shorten(first.action, _LONGEST).replace("{", "(").replace("}", ")") + " ({0})"
    )
    if len(set(numbers)) > 1:
        doing = re.sub(r"^(\w+?)s\b", r"\1", doing)
    text = f"{actor} {doing.format(names)}".removesuffix(" (nothing)")
    return text + (f", ISR {_ring(first.isr)}." if first.isr and len(records) == 1 else ".")


def _told(records: Sequence[Record], actor: str) -> str:
    """What brokers made of a LeaderAndIsr request."""
    leading = [r for r in records if r.action == "become-leader"]
    following = [r for r in records if r.action == "become-follower"]
    if len({r.broker for r in records}) > 1:
        leads = listed(f"{r.topic}-{r.partition} by {r.broker}" for r in leading)
        return f"{actor} do as they were told." + (f" Led now: {leads}." if leads else "")
    parts = [f"leads {_subjects(leading)} now"] if leading else []
    parts += [f"follows the leader of {_subjects(following)}"] if following else []
    return f"{actor} {' and '.join(parts)}."


_FAULTS = {
    "kill": "{0} is killed: its process is gone, but ZooKeeper does not know yet.",
    "start": "{0} is started again.",
    "bounce": "{0} is restarted faster than its session expires.",
    "expire_session": "The ZooKeeper session of {0} is made to expire.",
    "pause": "{0} is paused, as by a long garbage collection.",
    "resume": "{0} goes on after its pause.",
    "lag": "{0} falls behind with {1}.",
    "catch_up": "{0} may catch up with {1} again.",
    "heal": "The network is whole again.",
    "delete_controller": "Somebody deletes /controller.",
    "shutdown": "{0} is asked to shut down gracefully.",
}


def _fault(records: Sequence[Record]) -> str:
    first = records[0]
    actor = _brokers(r.broker for r in records).capitalize() if first.broker is not None else "The cluster"
    text = _FAULTS.get(first.action, f"{{0}}: {shorten(first.action, _LONGEST)}.".replace("{{0}}", "{0}"))
    return (
        text.format(actor, _subjects(records))
        if first.action in _FAULTS
        else f"{actor}: {shorten(first.action, _LONGEST)}."
    )


def _violation(records: Sequence[Record]) -> str:
    first = records[0]
    return f"Broken rule: {shorten(first.action, _LONGEST)}. {shorten(first.detail or '', 160)}".strip()


_SENTENCES = {
    "zk": _zk,
    "watch": _watch,
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
