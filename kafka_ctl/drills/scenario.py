"""The questions of a drill, the commands of a lab that each stands for, and the outcome of one that was played.

    broker 3                  its process is killed
    rack b                    all running brokers of the rack are killed at once
    any one, any two          every running broker, every pair of them
    any rack                  every rack
    rolling restart 3,1,2     one controlled shutdown and start after the other; without ids, by id
    {"version":1, ...}        a reassignment plan: as text, as the file `plan.json`, or as {("orders", 0): [2, 3]}
    kill 3                    any other commands of a story, one a line

Each scenario ends when the cluster is quiet again. Leaders and ISRs of an outcome are those in ZooKeeper; the time is
the lab's clock, so that of its generation and its costs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, count
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.brokers.states import DOWN, RUNNING
from kafka_ctl.cluster import NO_LEADER, TopicPartition, parse_int
from kafka_ctl.errors import BadInput, ConditionNotMet, UnknownName, short
from kafka_ctl.generation import UNCLEAN
from kafka_ctl.lab import story, validate, view
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.reassign.plan import check_exists, check_plan, read_plan
from kafka_ctl.trace import details
from kafka_ctl.trace.model import DELETED, STATE, broker_of, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import Key
from kafka_ctl.trace.timing import OPERATIONS
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

Question = int | str | Mapping[object, object]
FORMS = ("broker 3", "rack b", "any one", "any two", "any rack", "rolling restart 3,1,2", "a plan", "a story's command")
SETTLE = "settle"
CONFIG = ConfigEntityZNode.path("topics", "")
_ROLLING = re.compile(r"rolling restart\b\s*((?:\d{1,10}(?:[\s,]+|$))*)")
_ANY = {"any one": 1, "any one broker": 1, "any two": 2, "any two brokers": 2}


class Scenario(NamedTuple):
    """A name, and the commands that are given."""

    name: str
    commands: tuple[str, ...]


def scenarios(lab: Lab, question: Question) -> list[Scenario]:
    """The scenarios that a question stands for in this lab; several for `any`.

    Raises UnknownName for a broker, a rack or a question that does not exist, and BadInput for a plan that cannot be.
    """
    if isinstance(question, Mapping):
        return [_plan("the plan", lab, validate.targets(question))]
    if not isinstance(question, (int, str)):
        raise BadInput(f"a drill cannot be {short(question)}; it must be a text, a broker's id or a plan")
    text = str(question) if isinstance(question, int) else validate.name("a drill", question).strip()
    text = f"broker {text}" if text.isdecimal() else text
    if text.startswith("{"):
        return [_plan("the plan", lab, read_plan(text, lab.generation, check=True).partitions)]
    if text.endswith(".json") and "\n" not in text:
        whole = _file(text)
        try:
            return [_plan(f"plan {Path(text).name}", lab, read_plan(whole, lab.generation, check=True).partitions)]
        except BadInput as error:
            error.args = (f"plan {short(text)}: {error}",)
            raise
    if text in _ANY:
        return [_kill(lab, ids) for ids in combinations(_running(lab), _ANY[text])]
    if found := _ROLLING.fullmatch(text):
        return [_rolling(lab, [int(id) for id in re.findall(r"\d+", found[1])] or _running(lab))]
    racks = _racks(lab)
    if text == "any rack":
        if not racks:
            raise BadInput("any rack: no running broker has a rack")
        return [_kill(lab, ids, f"rack {rack} dies") for rack, ids in racks.items()]
    kind, _, named = text.partition(" ")
    if kind == "rack":
        if named not in racks:
            raise UnknownName("rack with a running broker", named, racks)
        return [_kill(lab, racks[named], f"rack {named} dies")]
    if kind == "broker" and (broker := parse_int(named)) is not None:
        return [_kill(lab, [broker])]
    return [_commands(text)]


def numbered(found: Iterable[Scenario]) -> list[Scenario]:
    """The same scenarios; those that share a name, such as several plans, get numbers."""
    listed = list(found)
    number = {name: count(1) for name, times in Counter(s.name for s in listed).items() if times > 1}
    return [s._replace(name=f"{s.name} ({next(number[s.name])})") if s.name in number else s for s in listed]


def _running(lab: Lab) -> list[int]:
    return sorted(id for id, broker in lab.world.brokers.items() if broker.state == RUNNING)


def _racks(lab: Lab) -> dict[str, list[int]]:
    """The running brokers by rack; those without one are left out."""
    racks: dict[str, list[int]] = {}
    for id in _running(lab):
        if rack := lab.world.brokers[id].rack:
            racks.setdefault(rack, []).append(id)
    return dict(sorted(racks.items()))


def _check_brokers(lab: Lab, ids: Iterator[int] | list[int] | tuple[int, ...]) -> None:
    """Raise UnknownName for a broker that does not exist, BadInput for one that does not run."""
    for id in ids:
        if id not in lab.world.brokers:
            raise UnknownName("broker", id, sorted(lab.world.brokers))
        if id not in _running(lab):
            raise BadInput(f"broker {id} is {lab.world.brokers[id].state}; a drill needs one that is running")


def _kill(lab: Lab, ids: list[int] | tuple[int, ...], name: str = "") -> Scenario:
    _check_brokers(lab, ids)
    listed = " and ".join(map(str, ids))
    usual = f"broker {listed} dies" if len(ids) == 1 else f"brokers {listed} die"
    return Scenario(name or usual, (*(f"kill {id}" for id in ids), SETTLE))


def _rolling(lab: Lab, ids: list[int]) -> Scenario:
    _check_brokers(lab, ids)
    steps = [line for id in ids for line in (f"shutdown {id}", SETTLE, f"start {id}", SETTLE)]
    return Scenario(f"rolling restart {','.join(map(str, ids))}", tuple(steps))


def _plan(name: str, lab: Lab, plan: Mapping[TopicPartition, tuple[int, ...]]) -> Scenario:
    check_plan(list(plan.items()), lab.generation)
    check_exists(plan, {TopicPartition(p.topic, p.partition) for p in lab.partitions()}, lab.generation)
    for id in sorted({id for replicas in plan.values() for id in replicas}):
        if id not in lab.world.brokers:
            raise UnknownName("broker", id, sorted(lab.world.brokers))
    return Scenario(name, (str(story.Command("reassign", ({str(tp): ids for tp, ids in plan.items()},), {})), SETTLE))


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"plan {short(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _commands(text: str) -> Scenario:
    """Commands of a story as they are. Raises UnknownName where the first word is no command."""
    lines = list(story.parse(text))
    if not lines or any(line.name not in COMMANDS for line in lines):
        raise UnknownName("drill", text, FORMS)
    given = tuple(map(str, lines))
    return Scenario("; ".join(given), given if given[-1] == SETTLE else (*given, SETTLE))


class Outcome(NamedTuple):
    """The state of the cluster after one scenario: numbers of partitions, seconds of the lab's clock, and counts.

    Partitions of a topic whose deletion is asked for are left out, as in Kafka's gauges. Kafka 2.0.1:
    controller/KafkaController.scala, updateMetrics.
    """

    scenario: Scenario
    unclean: bool
    """`unclean.leader.election.enable` of the brokers; topics may have their own."""
    offline: int
    """Partitions without a leader at the end."""
    below_min_isr: int
    """The most partitions at once with a leader, and with fewer in sync than `min.insync.replicas`."""
    interrupted: int
    """Partitions that had no leader for some time, those that are offline at the end included."""
    longest: float
    """The longest time that one of them waited for its next leader, of those that got one."""
    unclean_elections: int
    leaders: dict[int, int]
    """Partitions that each running broker leads at the end."""
    requests: int
    operations: int
    """Reads and writes at ZooKeeper, of all clients."""
    seconds: float
    """From the first command to the last answer to a request or write of a leader or ISR."""
    session: float
    """The part of it in which a dead broker's session had not expired yet."""
    violations: tuple[str, ...]
    """Invariants that were broken."""
    note: str = ""
    """The reason why the cluster did not come to rest; the ids of the broken invariants, each with its ticket."""

    @property
    def skew(self) -> float:
        """The leaders of the broker that leads most, divided by the average; 0 if no broker leads."""
        led = self.leaders.values()
        return max(led) * len(led) / sum(led) if any(led) else 0.0

    @property
    def rank(self) -> tuple[float, ...]:
        """The worst outcome is the greatest."""
        return (self.offline, self.below_min_isr, self.unclean_elections, self.interrupted, self.longest, self.seconds)


def play(lab: Lab, scenario: Scenario) -> Outcome:
    """Play a scenario in this lab and measure it. Raises BadInput for a command that is refused."""
    watched, start, began, broken = Watched(lab), len(lab.trace), lab.now * 1000, len(lab.violations)
    note = ""
    for line in scenario.commands:
        try:
            lab.do(line)
        except ConditionNotMet as error:
            note = str(error)
    found = lab.violations[broken:]
    notes = [note, *dict.fromkeys(f"{v.invariant} {v.known or ''}".rstrip() for v in found)]
    records = lab.trace.records[start:]
    for record in records:
        watched.take(record)
    partitions, brokers, znodes = lab.partitions(), lab.world.brokers, lab.znodes()
    led = Counter(p.leader for p in partitions)
    ended = max((r.time_ms for r in records if _acts(r)), default=began)
    kept = [p for p in partitions if DELETED + p.topic not in znodes]
    return Outcome(
        scenario=scenario,
        unclean=bool(lab.config[UNCLEAN]),
        offline=sum(p.leader not in brokers or brokers[p.leader].state == DOWN for p in kept),
        below_min_isr=watched.most_below,
        interrupted=len(watched.interrupted),
        longest=round(watched.longest / 1000, 3),
        unclean_elections=unclean_elections(records),
        leaders={id: led[id] for id in _running(lab)},
        requests=sum(r.kind == "request" and r.target == "sent" for r in records),
        operations=sum(r.kind == "zk" and r.action in OPERATIONS and r.actor != "zookeeper" for r in records),
        seconds=round((ended - began) / 1000, 3),
        session=round(watched.silent / 1000, 3),
        violations=tuple(dict.fromkeys(v.name for v in found)),
        note=", ".join(filter(None, notes)),
    )


def unclean_elections(records: Iterable[Record]) -> int:
    """The number of leaders that were not in sync when they were elected."""
    return sum(r.kind == "election" and r.target == "unclean" for r in records)


def baseline(lab: Lab) -> str:
    """A sentence on what is wrong before any scenario; empty where nothing is."""
    watched, elected = Watched(lab), unclean_elections(lab.trace.records)
    offline, below = len(watched.interrupted), len(watched.below)
    unclean = "on" if lab.config[UNCLEAN] else "off"
    sentence = (
        f"Before each scenario, unclean election {unclean}: partitions offline {offline:,}, below min.insync.replicas "
        f"{below:,}, unclean elections {elected:,}."
    )
    return sentence if offline or below or elected else ""


def _acts(record: Record) -> bool:
    """True for an answer to a request, and for a write of a leader or ISR."""
    return record.kind == "response" or (record.action == "set" and (record.path or "").endswith("/state"))


class Watched:
    """Partitions without a leader, or below `min.insync.replicas`, while records pass by.

    A topic is left out from the moment when its deletion is asked for.
    """

    def __init__(self, lab: Lab) -> None:
        znodes, usual = lab.znodes(), int(lab.config["min.insync.replicas"])
        partitions = [p for p in lab.partitions() if DELETED + p.topic not in znodes]
        self.znodes = dict(znodes)
        """Those at the beginning, but the topics' configurations are as they are now."""
        self.min_isr = cache(lambda topic: view.min_isr(self.znodes, topic, usual))
        self.leaders: dict[Key, int] = {(p.topic, p.partition): p.leader for p in partitions}
        self.in_sync: dict[Key, int] = {(p.topic, p.partition): len(p.isr) for p in partitions}
        self.below: set[Key] = set()
        self.most_below = 0
        self._compare(self.leaders)
        self.down = {id for id, broker in lab.world.brokers.items() if broker.state == DOWN}
        self.since: dict[Key, float] = {}
        """The partitions that wait for a leader, and since when."""
        self.interrupted = {key for key, leader in self.leaders.items() if leader == NO_LEADER or leader in self.down}
        self.longest = self.total = self.silent = 0.0
        self.killed: dict[int, float] = {}
        self.deletes = bool(lab.config["delete.topic.enable"])
        self.deleting = {path.removeprefix(DELETED) for path in znodes if path.startswith(DELETED)}

    def _compare(self, keys: Iterable[Key]) -> None:
        """Compare the numbers of replicas in sync with `min.insync.replicas`."""
        for key in keys:
            below = self.leaders[key] != NO_LEADER and self.in_sync[key] < self.min_isr(key[0])
            (self.below.add if below else self.below.discard)(key)
        self.most_below = max(self.most_below, len(self.below))

    def take(self, record: Record) -> None:
        """Take one record into account."""
        broker, now = broker_of(record), record.time_ms
        match record.kind, record.action:
            case ("fault", "kill") | ("broker", "stopped") if broker is not None and record.topic is None:
                self.down.add(broker)
                if record.action == "kill":
                    self.killed[broker] = now
                self._leaderless(self._led_by(broker), now)
            case "broker", "start" | "registered" if broker is not None:
                self.down.discard(broker)
            case "broker", "log-dir-failed" if broker is not None:
                lost = set(details.items(record.detail, "partitions"))
                self._leaderless([key for key in self._led_by(broker) if f"{key[0]}-{key[1]}" in lost], now)
            case "broker", "become-leader" if not record.error:
                waited = now - self.since.pop((record.topic or "", record.partition or 0), now)
                self.longest, self.total = max(self.longest, waited), self.total + waited
            case "zk", "expired" if (owner := number_of(record.detail or "")) in self.killed:
                self.silent = max(self.silent, now - self.killed.pop(owner))
            case "zk", "create" | "set" | "delete" if record.error is None:
                self._written(record, record.path or "")

    def _led_by(self, broker: int) -> list[Key]:
        return [key for key, leader in self.leaders.items() if leader == broker]

    def _leaderless(self, keys: Iterable[Key], now: float) -> None:
        """From now on, partitions wait for another leader."""
        waiting = dict.fromkeys(keys, now)
        self.interrupted.update(waiting)
        self.since = waiting | self.since

    def _of(self, topic: str) -> list[Key]:
        return [key for key in self.leaders if key[0] == topic]

    def _deletion(self, topic: str, asked: bool) -> None:
        """A deletion is asked for, or the request is gone."""
        (self.deleting.add if asked else self.deleting.discard)(topic)
        for key in self._of(topic) if asked else ():
            del self.leaders[key]
            self.since.pop(key, None)
            self.below.discard(key)

    def _written(self, record: Record, path: str) -> None:
        if path.startswith(DELETED) and self.deletes:
            self._deletion(path.removeprefix(DELETED), record.action != "delete")
        elif path.startswith(CONFIG) and record.action != "delete":
            self.znodes[path] = ((record.detail or "").encode(), 0, 0)
            self.min_isr.cache_clear()
            self._compare(self._of(path.removeprefix(CONFIG)))
        elif (state := STATE.match(path)) and record.action != "delete":
            self._state(record, (state[1], int(state[2])))

    def _state(self, record: Record, key: Key) -> None:
        fields = details.json_object(record.detail)
        leader, known = fields.get("leader"), self.leaders.get(key)
        is_new = known is None and record.action == "create" and key[0] not in self.deleting
        if not isinstance(leader, int) or (known is None and not is_new):
            return
        if leader == NO_LEADER and known not in self.down:
            self._leaderless([key], record.time_ms)
        self.leaders[key], self.in_sync[key] = leader, len(details.ids(fields.get("isr")))
        self._compare([key])
