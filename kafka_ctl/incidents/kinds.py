"""The kinds of incidents, and how one of them is played from a seed, with its fault and without.

`incidents.txt` has the causes, the symptoms, the noise and the commands of each kind; this file is its only reader.

Separate from `incident.py` because an incident is played without a learner, too: for the proof.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.drills.scenario import Watched
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.invariants.logs import Acknowledged, acknowledged
from kafka_ctl.lab import view
from kafka_ctl.lab.lab import Lab
from kafka_ctl.paths import blocks
from kafka_ctl.trace.record import Record

ALWAYS, FAULTY, SOUND = "-!~"
"""The marks of commands: in every case, only with the fault, only without it."""
NAMES = "orders payments clicks carts audit users invoices emails".split()
FIRST_IDS = (1, 11, 101)
SILENT = 3.0
"""Seconds without a leader from which clients notice."""


class Kind(NamedTuple):
    """One way in which one symptom comes about. Texts have places in braces, see `incidents.txt`."""

    symptom: str
    cause: str
    components: tuple[str, ...]
    settings: tuple[tuple[str, str, str], ...]
    """Mark, name and value: `copies`, `generation` and `config`."""
    commands: tuple[tuple[str, str], ...]
    """Mark and command."""
    reason: str


class Symptom(NamedTuple):
    """A sign that clients or the monitor notice; `fixable` is False for something that is over."""

    page: str
    fixable: bool


class Noise(NamedTuple):
    """An event that is over and does no harm, and what a colleague says about it."""

    text: str
    commands: tuple[str, ...]


class Tables(NamedTuple):
    """The contents of `incidents.txt`."""

    causes: Mapping[str, str]
    symptoms: Mapping[str, Symptom]
    noise: tuple[Noise, ...]
    kinds: tuple[Kind, ...]
    lines: Mapping[tuple[str, ...], tuple[str, str]]
    """By kind and action of a record, and by generation where they differ, the log and its text."""


def _read() -> Tables:
    """Read `incidents.txt`."""
    causes, symptoms, lines = dict[str, str](), dict[str, Symptom](), dict[tuple[str, ...], tuple[str, str]]()
    noise, kinds = list[Noise](), list[Kind]()
    for head, *body in blocks(__package__, "incidents.txt"):
        left, _, right = (part.strip() for part in head.partition(" | "))
        what, *names = left.split()
        match what:
            case "cause":
                causes[names[0]] = right
            case "symptom":
                symptoms[names[0]] = Symptom(right, names[1] == "fixable")
            case "noise":
                noise.append(Noise(right, tuple(body)))
            case "line":
                lines[(*names[1:],)] = names[0], right
            case _:
                kinds.append(_kind(names, body))
    return Tables(causes, symptoms, tuple(noise), tuple(kinds), lines)


def _kind(names: list[str], body: list[str]) -> Kind:
    settings, commands, reason = [], [], ""
    for line in body:
        mark, rest = (line[0], line[1:].strip()) if line[0] in f"{ALWAYS}{FAULTY}{SOUND}=" else (ALWAYS, line)
        if mark == "=":
            reason = rest
        elif rest.startswith(("copies ", "generation ", "config ")):
            name, _, value = rest.partition(" ")
            settings.append((mark, name, value))
        else:
            commands.append((mark, rest))
    return Kind(names[0], names[1], tuple(names[2:]), tuple(settings), tuple(commands), reason)


TABLES = _read()


class LeaderlessTime(Watched):
    """Partitions without a leader that answers: its process is down or stands still."""

    def take(self, record: Record) -> None:
        """Take one record into account; a pause begins and ends a time without a leader."""
        super().take(record)
        if record.kind != "fault" or record.action not in ("pause", "resume"):
            return
        for key in (key for key, leader in self.leaders.items() if leader == record.broker):
            if record.action == "pause":
                self.since.setdefault(key, record.time_ms)
            else:
                self.total += record.time_ms - self.since.pop(key, record.time_ms)


@dataclass
class Played:
    """A cluster in which an incident was played, up to the page."""

    kind: Kind
    lab: Lab
    names: dict[str, str]
    """The values of the places in the texts: `{"t": "orders", "p": "0", "l": "2", ...}`."""
    remembered: list[str]
    """The sentences of a colleague about the noise."""
    watched: LeaderlessTime
    epoch: int | None
    """The controller epoch before the fault."""
    began: int
    """The number of records before the fault."""

    @property
    def components(self) -> list[str]:
        """The components that are right in an answer."""
        return [text.format(**self.names) for text in self.kind.components]

    @property
    def subject(self) -> view.PartitionView | None:
        """The partition of the page; None after its topic was deleted."""
        wanted = self.names["t"], int(self.names["p"])
        return next((p for p in self.lab.partitions() if (p.topic, p.partition) == wanted), None)

    def has_symptom(self) -> bool:
        """True if the symptom of the page is there now, or was there in an incident that is over.

        A symptom is not gone because its subject is: a partition, or the broker that clients ask.
        """
        return SYMPTOMS[self.kind.symptom](self)

    def registered(self) -> set[int]:
        """The brokers with a session in `/brokers/ids`."""
        znodes = {path: owner for path, (_, _, owner) in self.lab.znodes().items() if path.startswith("/brokers/ids/")}
        return {int(path.rpartition("/")[2]) for path, owner in znodes.items() if owner}

    def lost(self) -> int:
        """The number of acknowledged records that the leaders do not have, or without a leader no member of the ISR.

        Of a partition that is gone these are all, except where the page is about the deletion of its topic.
        """
        promised: dict[tuple[str, int], list[Acknowledged]] = {}
        for record in self.lab.trace.records:
            if record.actor == "producer" and record.kind == "response" and record.topic is not None:
                promised.setdefault((record.topic, record.partition or 0), []).extend(acknowledged(record))
        kept = {(log.topic, log.partition, log.broker): log for log in self.lab.logs()}
        here = {(p.topic, p.partition): p for p in self.lab.partitions()}
        missing = 0
        for key, records in promised.items():
            if self.kind.symptom == "deleting" and key[0] == self.names["t"]:
                continue
            wanted, holders = {p.value for p in records}, tuple[int, ...]()
            if partition := here.get(key):
                holders = partition.isr if partition.leader == NO_LEADER else (partition.leader,)
            for holder in holders:
                log = kept.get((*key, holder))
                wanted -= {entry.value for entry in log.entries} if log else set()
            missing += len(wanted)
        return missing

    def leaderless_seconds(self) -> float:
        """Partition-seconds without a leader since the fault, each until its next leader or until now."""
        open_ones = sum(self.lab.now - began / 1000 for began in self.watched.since.values())
        return round(self.watched.total / 1000 + open_ones, 1)


def _offline(played: Played) -> bool:
    return (p := played.subject) is None or p.leader not in played.registered()


def _refused(played: Played) -> bool:
    if (p := played.subject) is None:
        return True
    needed = view.min_isr(played.lab.znodes(), p.topic, int(played.lab.config["min.insync.replicas"]))
    return p.leader not in played.registered() or len(p.isr) < needed


def _moving(played: Played) -> bool:
    p, x = played.subject, int(played.names["x"])
    return p is None or x not in p.replicas or bool(p.adding or p.removing) or _requested(played, p)


def _requested(played: Played, partition: view.PartitionView) -> bool:
    return any((r.topic, r.partition) == (partition.topic, partition.partition) for r in played.lab.reassignments())


def _stale(played: Played) -> bool:
    p, asked = played.subject, played.lab.brokers[int(played.names["x"])]
    if p is None or asked.state != RUNNING:
        return True
    known = asked.metadata.get(TopicPartition(p.topic, p.partition))
    return known is None or known.leader != p.leader


def _controllers(played: Played) -> bool:
    """True if two running brokers take themselves for the controller, or none does."""
    running = [id for id, broker in played.lab.brokers.items() if broker.state == RUNNING]
    return sum(played.lab.metrics(id)["ActiveControllerCount"] == 1 for id in running) != 1


def _idle(played: Played) -> bool:
    return all(p.leader != int(played.names["l"]) for p in played.lab.partitions())


SYMPTOMS: Mapping[str, Callable[[Played], bool]] = {
    "offline": _offline,
    "refused": _refused,
    "moving": _moving,
    "deleting": lambda played: f"/brokers/topics/{played.names['t']}" in played.lab.znodes(),
    "lost": lambda played: played.lost() > 0,
    "stale": _stale,
    "controllers": _controllers,
    "idle": _idle,
    "leaderless": lambda played: played.watched.longest / 1000 > SILENT,
    "moved": lambda played: (now := played.lab.controller) is not None and now.epoch != played.epoch,
    "absent": lambda played: int(played.names["l"]) not in played.registered(),
}


def play(seed: int, faulty: bool = True) -> Played:
    """The incident of a seed, up to the page; with `faulty=False` the same story without its fault."""
    rng = Random(seed)
    kind = rng.choice(TABLES.kinds)
    lab, remembered = _opened(kind, rng, seed, faulty), list[str]()
    noise = rng.sample(TABLES.noise, 2)
    topics = sorted({p.topic for p in lab.partitions()})
    for each in noise:
        names = {"h": str(rng.choice(sorted(lab.brokers))), "n": rng.choice(topics)}
        for line in each.commands:
            _give(lab, _filled(line, names))
        remembered.append(each.text.format(**names))
        _give(lab, f"run_for {rng.randint(200, 900)}")
    lab.elect_preferred()
    lab.settle()
    names = _names(kind, lab, rng)
    controller = lab.controller
    watched = LeaderlessTime(lab)
    lab.trace.listeners.append(watched.take)
    played = Played(kind, lab, names, remembered, watched, controller and controller.epoch, len(lab.trace))
    for mark, line in kind.commands:
        if mark in (ALWAYS, FAULTY if faulty else SOUND):
            _give(lab, _filled(line, names))
    return played


def _opened(kind: Kind, rng: Random, seed: int, faulty: bool) -> Lab:
    """A healthy cluster with three topics and some records."""
    settings = [(name, value) for mark, name, value in kind.settings if mark in (ALWAYS, FAULTY if faulty else SOUND)]
    config = dict(value.split("=") for name, value in settings if name == "config")
    fixed = dict(settings)
    first, number = rng.choice(FIRST_IDS), rng.randint(5, 6)
    ids = list(range(first, first + number))
    generation, copies = rng.choice(("2.0", "2.4")), int(fixed.get("copies", 3))
    lab = Lab(
        ids,
        generation=fixed.get("generation", generation),
        seed=seed % 2**31,
        config={key: json.loads(value) for key, value in config.items()},
    )
    for topic in rng.sample(NAMES, 3):
        order = rng.sample(ids, number)
        lab.create_topic(
            topic, assignment={n: [order[(n + step) % number] for step in range(copies)] for n in range(number)}
        )
    lab.settle()
    for p in rng.sample(lab.partitions(), 4):
        lab.produce(p.topic, p.partition, rng.randint(1, 5))
    lab.settle()
    return lab


def _names(kind: Kind, lab: Lab, rng: Random) -> dict[str, str]:
    """Draw the partition of the page; it has the preferred leader, and no part of the trouble is the controller."""
    controller = lab.controller
    acting = controller.id if controller else NO_LEADER
    readable = {(d.topic, d.partition, d.broker): d.path for d in lab.log_dirs()}
    failing = next((line for _, line in kind.commands if line.startswith("fail_log_dir")), "")
    fitting = []
    for p in lab.partitions():
        outside = [id for id in lab.brokers if id not in p.replicas and id != acting]
        failed = p.replicas[0 if "{l}" in failing else 1]
        in_first = not failing or readable.get((p.topic, p.partition, failed)) == "/d0"
        sources = {each.leader for each in lab.partitions() if p.replicas[1] in each.replicas} - {p.replicas[1]}
        is_healthy = p.leader == p.replicas[0] and len(sources) > 1
        if is_healthy and acting not in p.replicas[:2] and outside and in_first:
            fitting.append((p, outside))
    p, outside = rng.choice(fitting)
    x = rng.choice(outside)
    demoted = {
        f"{each.topic}-{each.partition}": [*(id for id in each.replicas if id != p.leader), p.leader]
        for each in lab.partitions()
        if each.replicas[0] == p.leader
    }
    moved = {f"{p.topic}-{p.partition}": [*p.replicas[:-1], x]}
    names = {"t": p.topic, "p": p.partition, "l": p.leader, "f": p.replicas[1], "g": p.replicas[-1], "x": x}
    names |= {"c": acting, "fresh": max(lab.brokers) + rng.randint(1, 9)}
    names |= {"move": _json(moved), "demoted": _json(demoted)}
    return {name: str(value) for name, value in names.items()}


def _json(value: object) -> str:
    """A value as a word of a story."""
    return "'" + json.dumps(value, separators=(",", ":")) + "'"


def _filled(line: str, names: Mapping[str, str]) -> str:
    """A command with its places filled; the braces of JSON stay."""
    return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], line)


def _give(lab: Lab, line: str) -> None:
    """Run a command; `*` after a broker stands for all partitions that it follows."""
    for each in _each(lab, line):
        try:
            lab.do(each)
        except ConditionNotMet:
            continue


def _each(lab: Lab, line: str) -> Iterator[str]:
    if not line.endswith(" *"):
        yield line
        return
    _, broker, _ = line.split()
    for p in lab.partitions():
        if int(broker) in p.replicas and p.leader != int(broker):
            yield f"lag {broker} {p.topic} {p.partition}"
