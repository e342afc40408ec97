"""What brokers hold, beside what their controller tells them: of real brokers, and of the kit's, in the same words.

    records     the log of each replica with its high watermark, and what a consumer reads; in stories that produce
    log_dirs    in which log directory each replica lies; in stories in which one fails or a replica moves
    fetchers    whom each broker fetches which partitions from (ReplicaFetcherManager); where a story asks for it
    metadata    what each broker's metadata cache says of who is alive and who leads; where a story asks for it

A story asks with the line `# Compared too: fetchers, metadata.` above its commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.lab.story import Command
from tests.labs import process_of

KINDS = ("records", "log_dirs", "fetchers", "metadata")
ASKED = re.compile(r"^# Compared too: (.*)\.$", re.MULTILINE)

Holding = dict[tuple[Any, ...], str]
"""What is held, as text, by what it is and where."""


def asked(prologue: str, commands: Iterable[Command]) -> list[str]:
    """What is compared of a story with these comments and commands."""
    kinds = set()
    for command in commands:
        if command.name == "produce":
            kinds.add("records")
        if command.name == "fail_log_dir" or "log_dirs" in str(command.args):
            kinds.add("log_dirs")
    for found in ASKED.findall(prologue):
        kinds |= set(found.split(", "))
    if unknown := kinds - set(KINDS):
        raise ValueError(f"nothing is known of {sorted(unknown)}; stories can ask for {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in kinds]


def changed(before: Mapping[tuple[Any, ...], str], after: Mapping[tuple[Any, ...], str]) -> list[str]:
    """What is held now and was not, or otherwise; equal parts of several brokers' metadata as one line."""
    new = [(key, text) for key, text in sorted(after.items()) if before.get(key) != text]
    lines = [f"{_title(key)}: {text}".rstrip() for key, text in new if key[0] != "cache"]
    gone = [f"{_title(key)}: gone" for key in sorted(before.keys() - after.keys()) if key[0] in ("log", "copy")]
    cached = sorted((key[1:3], text, key[3]) for key, text in new if key[0] == "cache")
    for ((kind, name), text), several in groupby(cached, key=lambda each: each[:2]):
        brokers = ",".join(str(broker) for *_, broker in several)
        lines.append(f"cache of {brokers}: {name if kind else 'alive'} {text}")
    return lines + gone


def _title(key: tuple[Any, ...]) -> str:
    match key:
        case "log" | "copy", topic, partition, broker:
            return f"{key[0]} {topic}-{partition} on {broker}"
        case "read", topic, partition:
            return f"read {topic}-{partition}"
    return f"broker {key[1]} fetches"


def cached(broker: int, alive: Iterable[int], partitions: Mapping[tuple[str, int], tuple[int, Any]]) -> Holding:
    """A metadata cache; of a partition whose leader is not alive it tells clients no more than that."""
    alive = set(alive)
    found: Holding = {("cache", 0, "", broker): ",".join(map(str, sorted(alive)))}
    for (topic, number), (leader, isr) in partitions.items():
        reported = f"leader={leader} isr={','.join(map(str, isr))}" if leader in alive else "leader=none"
        found["cache", 1, f"{topic}-{number}", broker] = reported
    return found


def fetches(following: Mapping[tuple[str, int], int]) -> str:
    return " ".join(f"{topic}-{number}<-{leader}" for (topic, number), leader in sorted(following.items())) or "nothing"


def content(entries: Iterable[tuple[int | None, Any]], high_watermark: int) -> str:
    """`1@0 2@0 | 3@1`: value and leader epoch of each record (no epochs in 0.10); the bar is the high watermark."""
    words = [f"{value}" if epoch is None else f"{value}@{epoch}" for epoch, value in entries]
    return " ".join([*words[:high_watermark], "|", *words[high_watermark:]])


# The kit's brokers


def of_lab(kinds: Iterable[str], lab: Lab, produced: Iterable[tuple[str, int]], steady: Iterable[int]) -> Holding:
    """The same of a lab."""
    found: Holding = {}
    epochs = lab.generation.records.truncates_by_epoch
    if "records" in kinds:
        for log in lab.logs():
            if log.entries:
                entries = [(entry.leader_epoch if epochs else None, entry.value) for entry in log.entries]
                found["log", log.topic, log.partition, log.broker] = content(entries, log.high_watermark)
        for tp in produced:
            found["read", *tp] = _read_in_lab(lab, tp, steady)
    if "log_dirs" in kinds:
        for copy in lab.log_dirs():
            future = f" {copy.future} future" if copy.future else ""
            found["copy", copy.topic, copy.partition, copy.broker] = f"{copy.path or 'failed'}{future}"
    for id in steady:
        process = process_of(lab, id)
        if "fetchers" in kinds:
            hosted = {tuple(tp): h.state.leader for tp, h in process.hosted.items()}
            found["fetches", id] = fetches({tp: leader for tp, leader in hosted.items() if leader not in (id, -1)})
        if "metadata" in kinds:
            partitions = {tuple(tp): (s.leader, s.isr) for tp, s in process.metadata.items()}
            found |= cached(id, process.live_brokers, partitions)
    return found


def _read_in_lab(lab: Lab, tp: tuple[str, int], steady: Iterable[int]) -> str:
    """What a consumer reads: the leader's records below its high watermark; it asks the first broker who that is."""
    for id in steady:
        process = process_of(lab, id)
        state = next((state for known, state in process.metadata.items() if known == tp), None)
        if state is None or state.leader not in process.live_brokers:
            return "LEADER_NOT_AVAILABLE"
        if lab.brokers[state.leader].state != "running":
            return "nobody answers"
        held = next((log for log in lab.log(*tp) if log.broker == state.leader), None)
        values = [str(entry.value) for entry in held.entries[: held.high_watermark]] if held else []
        return " ".join(values) or "nothing"
    return "nobody answers"
