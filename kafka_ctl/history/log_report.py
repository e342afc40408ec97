"""The report of an incident: what the logs of a cluster show, in sentences, each with its moment in the player."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.display import counted
from kafka_ctl.history.lives import ACTIONS, elections, terms
from kafka_ctl.history.log_folders import COPIES, Paths
from kafka_ctl.history.log_replay import WIPED, Moment, Replay, replay
from kafka_ctl.history.outages import Outage, isr_changes, outages
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace import SET, Record, details
from kafka_ctl.trace.model import number_of
from kafka_ctl.views.captions import duration, listed
from kafka_ctl.views.export import PAGES, checked, export
from kafka_ctl.views.steps import newsworthy

MOST = 10
"""The most findings of one kind that are written down, the worst first."""
STORM, MINUTE = 20, 60_000.0
"""Changes of ISRs within a minute that are a storm."""
DAY = 86_400_000.0
UNANSWERED = 30_000.0
"""Milliseconds without an answer: `request.timeout.ms` of the controller's channel."""
ADVICE = {
    "lost": "ZooKeeper lost a broker: read its server.log and its GC log just before, for an expired session, a pause "
    "or a stop. A session expires `zookeeper.session.timeout.ms` after the broker fell silent, so clients waited that "
    "much longer than these times say.",
    "refused": "An election failed: read the exception below its line. If no replica that may lead was alive, compare "
    "`kafka-topics --describe --unavailable-partitions` with the brokers that are down, and start the last one that "
    "was in sync first.",
    "open": "The logs do not show that all partitions got a leader again: look at these first.",
    "controllers": "The controller changed: read the server.log of the earlier one for its ZooKeeper session. If its "
    "process fell silent, the partitions that it led had no leader one session timeout longer than these times say.",
    "storm": "ISRs changed very often: look at the network, the disks and the pauses of the brokers that are named, "
    "and at `Shrinking ISR` in the server.log of the leaders, which these logs do not have.",
    "illegal": "A state change is not in the transition table: search Kafka's issues for it, and report it.",
    "stuck": "A request had no answer: read the state-change.log of its receiver from that moment on.",
    "unfinished": "A deletion or a move did not end: see which replicas it waits for, and whether their brokers run.",
    "wiped": "Several clusters are in these logs: make a report of each, of its files or with --from and --to.",
    "copies": "Some files are there twice: leave one of each out, and run the report again.",
    "missing": "Files are missing: collect controller.log* and state-change.log* of every broker, and run the report "
    "again.",
}
"""By the kind of a finding: what to look at next."""
NOT_MISSING = {WIPED: ("Several clusters", "wiped"), COPIES: ("Copies", "copies")}
"""Sentences of `Replay.missing` about what is there too much, by their ends: the section and the kind of each."""


class Finding(NamedTuple):
    """One sentence of the report, the record at which to begin, and the kinds of its `ADVICE`."""

    section: str
    text: str
    seq: int | None = None
    advice: tuple[str, ...] = ()


class LogReport:
    """The findings of a replay, as text or, with the player, as one page."""

    def __init__(self, found: Replay) -> None:
        self.replay = found
        parts = (_controllers, _outages, _storms, _illegal, _unanswered, _unfinished, _missing)
        self.findings = [finding for part in parts for finding in part(found)]

    def __str__(self) -> str:
        return re.sub(r" \[Watch\]\(#step-\w+\)|\[([^\[\]]+)\]\(#step-\w+\)", r"\1", self._prose())

    @property
    def next(self) -> list[str]:
        """The advice for these findings, the most urgent first."""
        wanted = {kind for finding in self.findings for kind in finding.advice}
        return [text for kind, text in ADVICE.items() if kind in wanted]

    def export(self, path: str | Path) -> Path:
        """Write the report with the player into one HTML file. Raises BadInput for another ending than `.html`."""
        seqs = {f"f{n}": finding.seq for n, finding in enumerate(self.findings) if finding.seq is not None}
        wanted = set(seqs.values())

        def is_relevant(record: Record) -> bool:
            return newsworthy(record) or record.seq in wanted

        return export(
            self.replay,
            checked(path, kinds=PAGES),
            ["cluster", "timeline"],
            marks=seqs,
            prose=self._prose(),
            is_relevant=is_relevant,
            generation=self.replay.generation,
        )

    def _prose(self) -> str:
        """The report in paragraphs; a link leads to the step of its finding."""
        found = self.replay
        first, last = found[0], found[-1]
        parts = [
            f"# Incident report\n\n{counted(len(found.files), 'log file')} of Kafka {found.kafka}, from "
            f"{at(found, first)} to {at(found, last)} UTC. The logs have only what brokers wrote: an interval "
            "begins when a controller noticed that a leader was gone."
        ]
        for section, mine in groupby(enumerate(self.findings), key=lambda each: each[1].section):
            parts.append(f"## {section}")
            parts += ["\n".join(f"- {_linked(n, finding)}" for n, finding in mine)]
        if not any(finding.advice for finding in self.findings):
            parts.append("Nothing in these logs is out of the ordinary.")
        if self.next:
            parts += ["## What to look at next", "\n".join(f"- {text}" for text in self.next)]
        return "\n\n".join(parts) + "\n"


def _linked(number: int, finding: Finding) -> str:
    text = finding.text.translate({ord("["): "(", ord("]"): ")"})  # names in logs may look like links
    return text if finding.seq is None else f"{text} [Watch](#step-f{number})"


def incident(logs: Paths, begin: Moment | None = None, end: Moment | None = None) -> LogReport:
    """The report of the logs in files or folders, from `begin` to `end`. Raises BadInput as `replay` does."""
    return LogReport(replay(logs, begin, end))


def at(found: Replay, record: Record) -> str:
    """The moment of a record in UTC; a line without a time zone counts as UTC."""
    moment = datetime.fromtimestamp((found.began_ms + record.time_ms) / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"


def lasted(ms: float) -> str:
    return f"{ms / DAY:.0f} days" if ms >= 2 * DAY else duration(ms) if ms >= 1 else "less than 1 ms"


def where(found: Replay, record: Record) -> str:
    """The moment of a record and the line that it was read from."""
    line = found.lines[record.seq]
    return f"{at(found, record)}, {line.file}:{line.number}"


def _controllers(found: Replay) -> Iterator[Finding]:
    """The terms of controllers, one after the other."""
    known = [(record, epoch) for record, epoch in terms(elections(found)) if epoch is not None]
    resigned = [r for r in found if r.kind == "controller" and r.action == "resigned"]
    for (record, epoch), later in zip(known, [*known[1:], None], strict=False):
        own = (r for r in resigned if r.actor == record.actor and r.seq > record.seq)
        gone, until = next(own, None), "to the end"
        if gone is not None and (later is None or gone.seq < later[0].seq):
            until = f"for {lasted(gone.time_ms - record.time_ms)}, until it resigned"
        elif later is not None:
            ms = later[0].time_ms - record.time_ms
            until = f"for {'' if later[1] == epoch + 1 or ms < 1 else 'at most '}{lasted(ms)}"
        text = f"Broker {number_of(record.actor)}, epoch {epoch}, {until} (from {where(found, record)})."
        yield Finding("Who was controller", text, record.seq, ("controllers",) if epoch != known[0][1] else ())
    if not known:
        yield Finding("Who was controller", "No election is in these logs.")


def _outages(found: Replay) -> Iterator[Finding]:
    """The times without a leader by cause, the longest first."""
    by_cause: dict[int, list[Outage]] = {}
    for outage in outages(found):
        by_cause.setdefault((outage.cause or outage.begin).seq, []).append(outage)
    ranked = sorted(by_cause.values(), key=lambda group: (-max(o.ms for o in group), group[0].begin.seq))
    for group in ranked[:MOST]:
        longest, finished = max(o.ms for o in group), [o for o in group if o.end is not None]
        still = len(group) - len(finished)
        over = counted(len(finished), "partition")
        most = ", the longest" if len(finished) > 1 else ""
        parts = [f"{over}{most} for {lasted(max(o.ms for o in finished))} by these logs"] if finished else []
        parts += [f"{still} for longer than the logs say"] if still else []
        refused = sum(outage.refused for outage in group)
        parts += [f"elections of {refused} failed"] if refused else []
        first = min(group, key=lambda outage: outage.begin.seq)
        names = listed(outage.partition for outage in group)
        text = f"{', '.join(parts)}, {_because(first)} ({where(found, first.begin)}): {names}."
        kinds = ("lost",) * (first.cause is not None and first.cause.action == "lost")
        kinds += ("refused",) * bool(refused) + ("open",) * (longest == float("inf"))
        yield Finding("Longest times without a leader", text, first.begin.seq, kinds or ("controllers",))


def _because(outage: Outage) -> str:
    """The cause of an outage in words."""
    cause = outage.cause
    if cause is None:
        return "before the first election in the logs"
    if cause.action in ACTIONS:
        return f"after broker {number_of(cause.actor)} became controller"
    gone = "was gone from ZooKeeper" if cause.action == "lost" else "made a controlled shutdown"
    return f"after broker {cause.broker} {gone}"


def _storms(found: Replay) -> Iterator[Finding]:
    """The minutes in which ISRs changed very often."""
    minutes = [list(mine) for _, mine in groupby(isr_changes(found), key=lambda c: c.record.time_ms // MINUTE)]
    storms = sorted((mine for mine in minutes if len(mine) >= STORM), key=len, reverse=True)
    for mine in storms[:MOST]:
        brokers = Counter(broker for change in mine for broker in change.brokers)
        named = ", ".join(f"broker {id} in {times}" for id, times in sorted(brokers.items(), key=lambda b: -b[1])[:3])
        partitions = counted(len({change.record.tp for change in mine}), "partition")
        text = f"{len(mine)} changes of {partitions} within a minute ({where(found, mine[0].record)}): {named}."
        yield Finding("ISR storms", text, mine[0].record.seq, ("storm",))


def _illegal(found: Replay) -> Iterator[Finding]:
    """The moves that the state machines do not have."""
    tables = {"partition": PARTITION[found.generation], "replica": REPLICA[found.generation]}
    wrong: dict[tuple[str, str, str], list[Record]] = {}
    for r in found:
        moved = r.kind in tables and r.action != SET and r.error is None
        if moved and r.source and r.target and not tables[r.kind].allows(r.source, r.target):
            wrong.setdefault((r.kind, r.source, r.target), []).append(r)
    for (kind, source, target), records in list(wrong.items())[:MOST]:
        first = records[0]
        times, place = counted(len(records), "time"), where(found, first)
        text = f"A {kind} moved {source} → {target}, {times}, first {first.tp} ({place})."
        yield Finding("Moves that the state machines do not have", text, first.seq, ("illegal",))


def _unanswered(found: Replay) -> Iterator[Finding]:
    """The last request to a broker where no answer follows, until the controller resigns or its log ends."""
    asked: dict[tuple[str, int], Record] = {}
    ends: dict[str, float] = {}
    waited: list[tuple[Record, float]] = []
    for r in found:
        ends[r.actor] = r.time_ms
        if r.kind == "controller" and r.action in ("resigned", *ACTIONS):  # it has closed its connections
            waited += [(q, r.time_ms - q.time_ms) for (actor, _), q in asked.items() if actor == r.actor]
            asked = {key: request for key, request in asked.items() if key[0] != r.actor}
        if r.broker is None:
            continue
        if r.kind == "request":
            asked.setdefault((r.actor, r.broker), r)
        elif r.kind == "response":
            asked.pop((r.actor, r.broker), None)
        elif r.action == "lost":
            asked = {key: request for key, request in asked.items() if key[1] != r.broker}
    if not any(r.kind == "response" for r in found):
        return
    waited += [(q, ends[q.actor] - q.time_ms) for q in asked.values()]
    for r, passed in [each for each in waited if each[1] >= UNANSWERED][:MOST]:
        about = f" about {r.tp}" if r.topic else ""
        text = f"{r.action} to broker {r.broker}{about} has no answer for {lasted(passed)} ({where(found, r)})."
        yield Finding("Requests that are stuck", text, r.seq, ("stuck",))


BEGUN = {"deletion_started": "topic", "reassignment_waiting": "partition", "reassignment_not_caught_up": "partition"}
ENDED = {"deletion_completed": "topic", "reassignment_removed": "partitions", "reassignment_told": "partition"}


def _unfinished(found: Replay) -> Iterator[Finding]:
    """The deletions and moves that began and did not end."""
    open_: dict[tuple[str, str], Record] = {}
    for r in found:
        if r.kind != "controller" or r.action not in BEGUN.keys() | ENDED.keys():
            continue
        value = details.fields(r).get({**BEGUN, **ENDED}[r.action])
        what = r.action.partition("_")[0]
        for name in value if isinstance(value, list) else [value]:
            if r.action in BEGUN:
                open_.setdefault((what, str(name)), r)
            else:
                open_.pop((what, str(name)), None)
    for (what, name), r in list(open_.items())[:MOST]:
        text = f"The {what} of {name} began and did not end ({where(found, r)})."
        yield Finding("Requests that are stuck", text, r.seq, ("unfinished",))


def _missing(found: Replay) -> Iterator[Finding]:
    """The files, lines and epochs that these logs do not have, and what they have too much."""
    usual = ("What is missing", "missing")
    findings = []
    for sentence in found.missing:
        section, kind = next((each for words, each in NOT_MISSING.items() if words in sentence), usual)
        findings.append(Finding(section, f"{sentence}.", None, (kind,)))
    yield from sorted(findings, key=attrgetter("section"))
