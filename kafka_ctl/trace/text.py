"""The trace in words: one record, one line, columns that stay where they are.

    t=6092.3    controller-1  partition   orders-1      Offline -> Online  leader=3 isr=3,1 leader_epoch=1
    time in ms  who           what kind   about what    what changed

Sets are sorted, assignments and ISRs keep Kafka's order, zeros and empty columns are left out.
`docs/trace-format.md` explains each kind of line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kafka_ctl.errors import UnknownName
from kafka_ctl.table import short
from kafka_ctl.trace.catalogue import find
from kafka_ctl.trace.details import fields as fields_of
from kafka_ctl.trace.details import json_object, named
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.visible import visible

LEVELS = ("story", "all")
"""The levels of `text`: the records that matter to the story, or every record."""

MOST_NAMES = 8
"""The number of partitions that a line lists before it only counts the others."""

Group = Sequence[Record]
"""Records that differ in their broker or partition only; they share one line."""


def describe(record: Record) -> str:
    """One line for one record."""
    return _line((record,))


def text(records: Iterable[Record], level: str = "story") -> str:
    """The records as lines. Raises UnknownName for a level that is not in `LEVELS`.

    `all` has a line for every record. `story` leaves out what a reader would not miss (reads, cached
    metadata, answers without error, the paths that every broker creates at its start) and puts into one
    line what one batch sends to several brokers, or about several partitions.
    """
    if level not in LEVELS:
        raise UnknownName("trace level", level, LEVELS)
    if level == "all":
        return "\n".join(map(describe, records))
    lines = ((line, len(list(same))) for line, same in groupby(map(_line, _story(records))))
    return "\n".join(line if times == 1 else f"{line}  ({times} times)" for line, times in lines)


def subject_and_change(record: Record) -> tuple[str, str]:
    """The thing that a record is about, and what happened to it, as text."""
    return _KINDS[record.kind]((record,))


def _line(group: Group) -> str:
    first = group[0]
    subject, change = _KINDS[first.kind](group)
    line = f"t={first.time_ms:<8.1f}  {first.actor:<12}  {first.kind:<10}  {subject:<12}  {change}"
    return visible(line.rstrip())


# The records that a story leaves out, and those that it joins


def _story(records: Iterable[Record]) -> Iterator[Group]:
    """The records of a story; neighbours that differ in their broker only come together."""
    batch: dict[object, Record] = {}
    current = None
    for record in records:
        if _in_story(record):
            subject = record.topic, record.partition, record.broker
            if _batch(record) != current or subject in batch:
                yield from _merged(batch.values())
                batch, current = {}, _batch(record)
            batch[subject] = record
    yield from _merged(batch.values())


def _in_story(record: Record) -> bool:
    """True if the story shows a record: always or never if its row says so, else by the contents of the record."""
    if record.kind == "event" and record.error is not None:
        return True
    story = find(record.kind, record.action).story
    return _HOLDS_SOMETHING.get(record.kind, bool)(record) if story is None else story


def _batch(record: Record) -> object:
    """The key that the records of one batch share; every other record is a batch of its own."""
    if record.kind == "replica" or (record.kind == "request" and record.topic is not None):
        return record.actor, record.kind, record.action, record.cause
    return record.seq


def _merged(batch: Iterable[Record]) -> Iterable[Group]:
    """The records of a batch by what they say."""
    groups: dict[object, list[Record]] = {}
    for r in batch:
        match r.kind, r.action:
            case "request", "UpdateMetadata":
                key: object = r.detail
            case "request", "StopReplica":
                key = r.broker, r.detail
            case _:
                key = r._replace(seq=0, broker=None)
        groups.setdefault(key, []).append(r)
    return groups.values()


def _zk_matters(r: Record) -> bool:
    if (r.action, r.error) == ("delete", "NONODE"):
        return False
    path = r.path or ""
    if r.action == "create" and r.error == "NODEEXISTS":  # a lost race, not what is always there
        return path == "/controller" or path.startswith("/brokers/ids/")
    is_structure = r.action == "create" and r.detail is None and r.target != "ephemeral"
    return not is_structure or path.startswith("/admin/delete_topics/")


def _message_matters(r: Record) -> bool:
    fields = fields_of(r)
    key = any(word not in ([], {}) for word in fields.values()) and fields.get("partitions") != []
    return key and fields.get("ratio") != 0


_HOLDS_SOMETHING: dict[str, Callable[[Record], bool]] = {
    "zk": _zk_matters,
    "event": lambda r: r.target not in ("queued", "done"),
    "controller": _message_matters,
    "request": lambda r: r.topic is not None or r.actor.startswith("broker-"),
    "response": lambda r: r.error is not None or r.actor == "producer",
}

# One function per kind: the subject of the line and the change


def _zk(group: Group) -> tuple[str, str]:
    r = group[0]
    if r.path is None:
        return r.action, r.detail or ""
    version = f"zk_version={r.zk_version}" if r.zk_version else ""
    ephemeral = "ephemeral" if r.target == "ephemeral" else ""
    return f"{r.action} {r.path}", _joined(r.error, ephemeral, _data(r.detail), version)


def _watch(group: Group) -> tuple[str, str]:
    return group[0].path or "", group[0].target or group[0].action


def _event(group: Group) -> tuple[str, str]:
    r = group[0]
    stage = "" if r.target == "started" else r.target
    about = [r.detail] if r.actor == "admin" and r.detail else [_on(r), f"topic={r.topic}" if r.topic else ""]
    return r.action, _joined(*about, stage, r.error)


def _message(group: Group) -> tuple[str, str]:
    r = group[0]
    fields = {name: value for name, value in fields_of(r).items() if value not in ([], {}, None)}
    return r.action, _flat(fields)


def _partition(group: Group) -> tuple[str, str]:
    r = group[0]
    replicas = f"replicas={_ids(r.replicas)}" if r.action == "assign" and r.replicas else ""
    return _subject(r), _joined(_move(r), _state(r, zk_version=True), replicas, _refused(r))


def _replica(group: Group) -> tuple[str, str]:
    r = group[0]
    return f"{_subject(r)}@{_ids(sorted(_brokers(group)))}", _joined(_move(r), _refused(r))


def _election(group: Group) -> tuple[str, str]:
    r = group[0]
    chosen = "no replica can lead" if r.leader is None else _state(r)
    found = _joined(f"{r.action}: {chosen}", "UNCLEAN" if r.target == "unclean" else "")
    return _subject(r), f"{found}  from replicas={_ids(r.replicas)} {r.detail or ''}".rstrip()


def _request(group: Group) -> tuple[str, str]:
    r = group[0]
    if r.target == "sent":
        return _to(r, r.broker), _joined("sent", r.detail)
    if r.action == "UpdateMetadata":
        fields = named(r.detail)
        known = _state(r) if len(group) == 1 else ""
        return _to(r, fields.pop("brokers", "?")), _joined(_partitions(group), known, _flat(fields))
    if r.action == "StopReplica":
        return _to(r, r.broker), _joined(_partitions(group), r.detail)
    return _to(r, _ids(sorted(_brokers(group)))), _joined(_subject(r), _state(r), r.detail)


def _to(r: Record, receivers: object) -> str:
    return f"{r.action} -> {receivers}".ljust(24)


def _response(group: Group) -> tuple[str, str]:
    r = group[0]
    return f"{r.action} <- {r.broker}", _joined(r.error or "answered", r.detail)


def _broker(group: Group) -> tuple[str, str]:
    r = group[0]
    changed = r.action in ("shrink-isr", "expand-isr")
    change = _joined(_state(r, zk_version=changed), r.path, r.error, r.detail)
    return (r.action, change) if r.topic is None else (_subject(r), f"{r.action}  {change}".rstrip())


def _fault(group: Group) -> tuple[str, str]:
    r = group[0]
    return r.action, _joined(_on(r), _subject(r), r.detail)


def _violation(group: Group) -> tuple[str, str]:
    r = group[0]
    return _subject(r) or _on(r), _joined(r.action, _state(r), r.error, r.detail)


_KINDS: dict[str, Callable[[Group], tuple[str, str]]] = {
    "zk": _zk,
    "watch": _watch,
    "event": _event,
    "controller": _message,
    "partition": _partition,
    "replica": _replica,
    "election": _election,
    "request": _request,
    "response": _response,
    "broker": _broker,
    "fault": _fault,
    "violation": _violation,
}

# Pieces of lines


def _joined(*parts: str | None) -> str:
    """The parts that are not empty, two spaces apart."""
    return "  ".join(part for part in parts if part)


def _ids(brokers: Iterable[int] | None) -> str:
    return ",".join(map(str, brokers or ()))


def _brokers(group: Group) -> list[int]:
    return [r.broker for r in group if r.broker is not None]


def _on(r: Record) -> str:
    return "" if r.broker is None else f"broker={r.broker}"


def _subject(r: Record) -> str:
    return "" if r.topic is None else r.topic if r.partition is None else f"{r.topic}-{r.partition}"


def _partitions(group: Group) -> str:
    names = [_subject(r) for r in group]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return " ".join(names[:MOST_NAMES]) + more


def _move(r: Record) -> str:
    return f"= {short(r.target or '')}" if r.action == SET else f"{short(r.source or '')} -> {short(r.target or '')}"


def _refused(r: Record) -> str:
    return f"refused: {r.detail or r.error}" if r.error else ""


def _state(r: Record, zk_version: bool = False) -> str:
    """Leader, ISR and the epochs that are not 0."""
    parts = [] if r.leader is None else [f"leader={r.leader}"]
    parts += [] if r.isr is None else [f"isr={_ids(r.isr)}"]
    parts += [f"leader_epoch={r.leader_epoch}"] if r.leader_epoch else []
    parts += [f"zk_version={r.zk_version}"] if zk_version and r.zk_version else []
    return " ".join(parts)


HIDDEN = ("version", "timestamp", "jmx_port", "listener_security_protocol_map", "endpoints")
"""The fields of a znode's JSON that a line leaves out: equal in every znode of its kind, or never equal."""


def _data(detail: str | None) -> str:
    """A znode's text as `name=value` words where it is JSON."""
    data = {k: v for k, v in json_object(detail).items() if k not in HIDDEN and v is not None}
    return _flat(data) if data else " ".join((detail or "").split())


def _flat(data: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in data.items())


def _value(value: object) -> str:
    match value:
        case {"topic": topic, "partition": number, **rest}:
            return f"{topic}-{number}" + (f":{_value(rest['replicas'])}" if "replicas" in rest else "")
        case dict():
            return "{" + " ".join(f"{k}:{_value(v)}" for k, v in value.items()) + "}"
        case list():
            return ",".join(map(_value, value))
        case _:
            return str(value)
