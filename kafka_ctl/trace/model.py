"""The cluster according to the records: a model folded from the trace and from nothing else.

`ClusterModel.apply(record)` moves the model one record on. It keeps truths apart where they differ: a broker's process
can be dead while its znode still stands, a partition can have a leader that cannot answer, and what ZooKeeper has
(`partitions`), what a controller has in its context (`controllers`) and what a broker was sent (`BrokerSeen.beliefs`)
may be three different things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from kafka_ctl.cluster import NO_LEADER, parse_int
from kafka_ctl.replica import ReplicaState
from kafka_ctl.trace import details
from kafka_ctl.trace.lags import Lags
from kafka_ctl.trace.record import KINDS, Record
from kafka_ctl.trace.seen import (
    DEDUCED,
    MESSAGES,
    PENDING_SHUTDOWN,
    RECORDED,
    RECOVERING,
    SHUTTING_DOWN,
    STARTING,
    BrokerSeen,
    ControllerSeen,
    CurrentEvent,
    Key,
    PartitionSeen,
    ZNode,
    key_of,
)

STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state$")
TOPIC = re.compile(r"/brokers/topics/([^/]+)$")
_BROKER = re.compile(r"/brokers/ids/(\d+)$")
_TIMEOUT = re.compile(r"\btimeout=(\d+(?:\.\d+)?)s\b")
DELETED = "/admin/delete_topics/"
LIVE = {"brokers_changed": "live", "active_brokers": "brokers", "live_brokers": "brokers"}
"""Messages of a controller that say who is live, each with the word that does."""
_NUMBER = re.compile(r"(\d+)$")
_UNSEEN = BrokerSeen(-1)


@dataclass
class ClusterModel:
    """The cluster at one moment of a trace; keys are (topic, partition) and (topic, partition, broker)."""

    brokers: dict[int, BrokerSeen] = field(default_factory=dict)
    partitions: dict[tuple[str, int], PartitionSeen] = field(default_factory=dict)
    replicas: dict[tuple[str, int, int], str] = field(default_factory=dict)
    holders: dict[tuple[str, int], dict[int, None]] = field(default_factory=dict)
    znodes: dict[str, ZNode] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    """Controller -> the events in its queue, by the `seq` of the record that put them there."""
    working: dict[str, CurrentEvent] = field(default_factory=dict)
    """Controller -> the event that it works on."""
    resigned: dict[str, int] = field(default_factory=dict)
    """Controller -> the `seq` of its last resignation."""
    shutting_down: set[int] = field(default_factory=set)
    """Brokers in controlled shutdown, as controllers have logged it."""
    topics_to_be_deleted: set[str] = field(default_factory=set)
    """Topics named under `/admin/delete_topics`."""
    controllers: dict[int, ControllerSeen] = field(default_factory=dict)
    """Broker -> the context of its controller, for each that was ever elected."""
    changed: dict[Key, int] = field(default_factory=dict)
    """Partition -> the `seq` of the last record that changed any copy of its state."""
    reshaped: int = -1
    """The `seq` of the last record by which a broker or a controller came, went or changed."""
    controller: int | None = None
    controller_epoch: int | None = None
    cuts: dict[int, list[str]] = field(default_factory=dict)
    """Broker -> whom it no longer reaches: the ids of brokers, or `zookeeper`."""
    zookeeper_down: bool = False
    delayed: bool = False
    """True after a delay or a loss on the network, until `heal`."""
    lags: Lags = field(default_factory=Lags)
    violations: list[str] = field(default_factory=list)
    of_logs: bool = False
    """True if the records were read from logs, which do not say what is in ZooKeeper."""
    seq: int = -1
    time_ms: float = 0.0

    def apply(self, record: Record) -> None:
        self.apply_all((record,))

    def apply_all(self, records: Iterable[Record]) -> ClusterModel:
        handlers = _HANDLERS
        for record in records:
            self.seq, self.time_ms = record.seq, record.time_ms
            if (handler := handlers.get(record.kind)) is not None:
                handler(self, record)
        return self

    def broker(self, number: int) -> BrokerSeen:
        return self.brokers.get(number) or self.brokers.setdefault(number, BrokerSeen(number))

    def partition(self, topic: str, partition: int) -> PartitionSeen:
        return self.partitions.setdefault((topic, partition), PartitionSeen())

    def context_of(self, number: int | None) -> ControllerSeen | None:
        """The context of a broker's controller; None where it was never elected."""
        return None if number is None else self.controllers.get(number)

    def acting(self) -> list[ControllerSeen]:
        """The controllers that act, also where ZooKeeper knows another one, by id."""
        return [found for _, found in sorted(self.controllers.items()) if found.acts]

    def deposed(self) -> list[ControllerSeen]:
        """Controllers that act with an epoch lower than the present one."""
        return [found for found in self.acting() if (found.epoch or 0) < (self.controller_epoch or 0)]

    def _zk(self, record: Record) -> None:
        path = record.path
        if record.action in ("connect", "reconnected", "expired", "closed"):
            self._session(record)
        if record.error or not path:
            return
        if record.action == "get":
            self._read(path, number_of(record.actor))
        elif record.action == "delete":
            self.znodes.pop(path, None)
            self._meaning(path, record)
        elif record.action in ("create", "set", "found"):
            owner = record.actor if record.target == "ephemeral" else ""
            if record.action == "set" and path in self.znodes:
                owner = owner or self.znodes[path].owner
            self.znodes[path] = ZNode(record.detail or "", record.zk_version or 0, owner)
            self._meaning(path, record)

    def _session(self, record: Record) -> None:
        """A session begins, is heard of again, or ends."""
        actor = record.actor if record.actor != "zookeeper" else (record.detail or "").rpartition(" ")[2]
        number = number_of(actor)
        if number is None or not actor.startswith("broker"):
            return
        broker = self.broker(number)
        broker.silent = None
        if record.action == "connect" and (found := _TIMEOUT.search(record.detail or "")):
            broker.timeout = 1000 * float(found[1])

    def _read(self, path: str, reader: int | None) -> None:
        """A controller that fills its context takes over what ZooKeeper has just then."""
        context = self.context_of(reader)
        if context is None or not context.reads:
            return
        if found := STATE.search(path):
            key = found[1], int(found[2])
            if (seen := self.partitions.get(key)) is not None and (stored := seen.led) is not None:
                context.leadership[key] = stored
                self.changed[key] = self.seq

    def _meaning(self, path: str, record: Record) -> None:
        """Apply a write to one of Kafka's znodes."""
        gone = record.action == "delete"
        if path.startswith(DELETED):
            self.reshaped = self.seq
            (self.topics_to_be_deleted.discard if gone else self.topics_to_be_deleted.add)(path.removeprefix(DELETED))
        elif path.endswith("/controller"):
            self.reshaped = self.seq
            named = None if gone else controller_of(record.detail)
            self.controller = named if named in (number_of(record.actor), self.controller) else None  # by hand
        elif path.endswith("/controller_epoch"):
            self.controller_epoch = parse_int(record.detail or "") or self.controller_epoch
        elif found := _BROKER.search(path):
            self._registration(self.broker(int(found[1])), record, gone)
        elif found := STATE.search(path):
            self._state(found[1], int(found[2]), record, gone)
        elif found := TOPIC.search(path):
            self._assignment(found[1], record, gone)

    def _registration(self, broker: BrokerSeen, record: Record, gone: bool) -> None:
        broker.registered = not gone
        self.reshaped = self.seq
        if gone:
            self.shutting_down.discard(broker.id)
            return
        broker.came_up()
        self.lags.halted.pop(broker.id, None)
        rack = details.json_object(record.detail).get("rack")
        broker.rack = rack if isinstance(rack, str) else None

    def _assignment(self, topic: str, record: Record, gone: bool) -> None:
        if gone:
            for key in [key for key in self.partitions if key[0] == topic]:
                self.partitions[key].replicas = ()
                self.changed[key] = self.seq
            return
        assigned = details.json_object(record.detail).get("partitions")
        for number, replicas in sorted(assigned.items()) if isinstance(assigned, dict) else ():
            if (plain := parse_int(str(number))) is not None:
                self.partition(topic, plain).replicas = details.ids(replicas)
                self.changed[topic, plain] = self.seq

    def _state(self, topic: str, partition: int, record: Record, gone: bool) -> None:
        self.changed[topic, partition] = self.seq
        if gone:
            seen = self.partitions.get((topic, partition))
            if seen:
                seen.leader, seen.isr, seen.stored = None, (), False
            return
        seen, fields = self.partition(topic, partition), details.json_object(record.detail)
        leader, epoch = fields.get("leader"), fields.get("leader_epoch")
        if isinstance(leader, int) and isinstance(epoch, int):
            seen.leader, seen.isr = leader, details.ids(fields.get("isr"))
            seen.leader_epoch, seen.zk_version = epoch, record.zk_version
            seen.stored, seen.writer, seen.written_ms = True, number_of(record.actor), record.time_ms

    def _event(self, record: Record) -> None:
        if record.action == "shutdown" and record.actor == "admin" and record.broker is not None:
            self.broker(record.broker).shutting_down = True
        if not record.actor.startswith("controller"):
            return
        queue = self.waiting.setdefault(record.actor, [])
        if record.target == "queued":
            queue.append(record.seq)
        elif record.target in ("started", "dropped"):
            queued = record.cause if record.cause in queue else None
            if queued is not None:
                queue.remove(queued)
            if record.target == "started":
                self.working[record.actor] = CurrentEvent(record.action, record.seq, queued)
        elif record.target == "done":
            self.working.pop(record.actor, None)

    def _controller(self, record: Record) -> None:
        number = broker_of(record)
        if number is not None and record.action in MESSAGES:
            self.controllers.setdefault(number, ControllerSeen(number)).logged(record)
            self.reshaped = self.seq
        if record.action in ("elected", "ready") and number is not None:
            self.controller = number
        self.controller_epoch = max(self.controller_epoch or 0, record.controller_epoch or 0) or None
        if number is not None:
            self._runs(number)
        self._live(record)
        if record.action == "initializing_replica_state":
            self.reshaped = self.seq
            self.replicas.clear()
        elif record.action == "initializing_partition_state":
            for seen in self.partitions.values():
                if seen.stored or seen.leader is None:  # in a log, nothing says how they begin
                    seen.state = "NonExistentPartition"
        elif record.action == "resigned":
            if self.controller == number:
                self.controller = None
            self.resigned[record.actor] = record.seq
        elif record.action == "shutting_down_broker":
            self.shutting_down.update(details.ids([details.fields(record).get("broker")]))

    def _live(self, record: Record) -> None:
        """Take over the brokers that a controller says are live, where nothing else says so."""
        field = LIVE.get(record.action)
        live = details.ids(details.fields(record).get(field)) if field else ()
        for number in live:
            self._runs(number)
        for broker in self.brokers.values() if live else ():
            if broker.known == DEDUCED and broker.id not in live and broker.alive:
                self._ended(broker)
                broker.registered = False

    def _runs(self, number: int) -> None:
        """A line of a log shows that a broker runs; a trace in which it starts says so itself."""
        broker = self.broker(number)
        if broker.known != RECORDED and not broker.alive:
            broker.alive = broker.registered = True
            broker.known, self.reshaped = DEDUCED, self.seq

    def _partition(self, record: Record) -> None:
        key = key_of(record)
        if key is None or record.error:
            return
        seen = self.partition(*key)
        seen.state = record.target or seen.state
        self.changed[key] = self.seq
        if (context := self.context_of(number_of(record.actor))) is not None:
            context.moved(record, key)
        if record.replicas:
            seen.replicas = record.replicas
        self._logged(record, seen)

    def _logged(self, record: Record, seen: PartitionSeen) -> None:
        """Take over leadership from a record where no write to ZooKeeper is recorded, as in an imported log."""
        if record.leader is None or record.leader < NO_LEADER or seen.stored or record.isr is None:
            if seen.leader is None and record.leader is not None and not seen.stored:
                seen.leader, seen.leader_epoch = record.leader, record.leader_epoch
            return
        known = (seen.leader_epoch if seen.leader_epoch is not None else -1, seen.zk_version or 0)
        if (record.leader_epoch if record.leader_epoch is not None else known[0], record.zk_version or 0) >= known:
            seen.leader, seen.isr = record.leader, record.isr
            seen.leader_epoch, seen.zk_version = record.leader_epoch, record.zk_version

    def _replica(self, record: Record) -> None:
        key, broker = key_of(record), record.broker
        if key is None or broker is None or record.error:
            return
        self.replicas[(*key, broker)] = record.target or ""
        self.changed[key] = self.seq
        self.holders.setdefault(key, {})[broker] = None

    def _request(self, record: Record) -> None:
        if record.action == "ControlledShutdown" and (number := number_of(record.actor)) is not None:
            self.broker(number).note = PENDING_SHUTDOWN
            self.reshaped = self.seq
        if (key := key_of(record)) is None:
            return
        if (context := self.context_of(number_of(record.actor))) is not None:
            context.sent(record, key)
            self.changed[key] = self.seq
        if not record.error:
            self._logged(record, self.partition(*key))

    def _broker(self, record: Record) -> None:
        number = broker_of(record)
        if number is None:
            return
        broker, key = self.broker(number), key_of(record)
        if key is not None:
            self._broker_did(record, key, broker, number)
        else:
            self.reshaped = self.seq
        if record.action == "start":
            broker.known = RECORDED
            self._ended(broker)
            self.lags.begins(record)
            broker.alive, broker.note = True, STARTING
        elif record.actor.startswith("broker-"):
            self._runs(number)
        if record.action == "registered":
            broker.came_up()
        elif record.action == "recovering":
            broker.note = RECOVERING
        elif record.action == "shutting-down":
            broker.note = SHUTTING_DOWN
            self.lags.ended(number, record.time_ms)
        elif record.action in ("stopped", "lost"):
            self._ended(broker)
            broker.registered &= broker.known == RECORDED
            broker.known = broker.known or DEDUCED
        elif record.action == "log-dir-failed":
            broker.beliefs.lost_dir(record)
        elif key is not None and record.action in ("shrink-isr", "expand-isr") and record.isr and not record.error:
            seen = self.partition(*key)
            seen.isr = seen.isr if seen.stored else record.isr

    def _broker_did(self, record: Record, key: Key, broker: BrokerSeen, number: int) -> None:
        """Apply an act of a broker with one partition."""
        if record.action == "cached":  # there are many of these, and most say nothing new
            if broker.beliefs.cached(record, key):
                self.changed[key] = self.seq
            return
        broker.beliefs.did(record, key, number)
        self.changed[key] = self.seq
        if record.action in ("append", "copy", "truncate", "log-start"):
            self._wrote(record, key, broker)
        elif record.action == "become-leader" and not record.error:
            self.lags.leads(key, number, record.time_ms)
        elif record.action == "expand-isr" and not record.error:
            before = details.items(record.detail, "isr_before")
            joined = [(key, member) for member in record.isr or () if str(member) not in before]
            self.lags.joined.update(dict.fromkeys(joined, record.time_ms))
        elif record.action == "stop-replica" and not record.error and "delete" in details.flags(record.detail):
            broker.log_ends.pop(key, None)

    def _wrote(self, record: Record, key: Key, broker: BrokerSeen) -> None:
        """Records were written to a broker's log, or dropped from it."""
        end = max(_log_end(record), broker.log_ends.get(key, 0) if record.action == "log-start" else 0)
        broker.log_ends[key] = end
        if record.action == "append":
            ends = {id: self.broker(id).log_ends.get(key, 0) for id in self.partition(*key).replicas}
            self.lags.wrote(key, broker.id, ends | {broker.id: end}, record.time_ms)
        elif record.action == "copy" and record.leader is not None:
            there = self.broker(record.leader).log_ends.get(key, 0)
            self.lags.copied(key, broker.id, end, there, record.time_ms)

    def _ended(self, broker: BrokerSeen) -> None:
        """A process ended, and with it what it had in memory, its controller's context included."""
        broker.ends()
        self.lags.ended(broker.id, self.time_ms)
        self.reshaped = self.seq
        if (context := self.controllers.get(broker.id)) is not None:
            context.forget()

    def _fault(self, record: Record) -> None:
        self.lags.fault(record)
        if record.action in ("heal", "stop_zookeeper", "start_zookeeper"):
            self.zookeeper_down = record.action == "stop_zookeeper"
        if record.action in ("heal", "delay", "lose"):
            self.delayed = record.action != "heal"
        if record.action == "heal":
            self.cuts.clear()
            for other in self.brokers.values():
                other.silent = other.silent if not other.alive else None
        if record.broker is None:
            return
        broker = self.broker(record.broker)
        broker.known, self.reshaped = RECORDED, self.seq
        if record.action in ("kill", "bounce"):
            self._ended(broker)
            broker.silent = record.time_ms
        elif record.action == "start":
            broker.alive, broker.note = True, STARTING
        elif record.action == "pause":
            broker.paused, broker.silent = True, record.time_ms
        elif record.action == "disconnect":
            for end, far in details.ends(record.detail):
                if end.isdecimal():
                    self.cuts.setdefault(int(end), []).append(far)
                    if far == "zookeeper":
                        self.broker(int(end)).silent = record.time_ms
        elif record.action == "resume":
            broker.paused, broker.silent = False, None

    def _violation(self, record: Record) -> None:
        self.violations.append(record.action)

    @property
    def is_faulty(self) -> bool:
        """True if there is something that `heal` ends."""
        paused = any(broker.paused for broker in self.brokers.values())
        slow = any(delay for delay, _ in self.lags.slow.values())
        return self.zookeeper_down or self.delayed or paused or slow or bool(self.cuts or self.lags.fallen)

    def leaderless(self) -> list[tuple[str, int]]:
        """The partitions that had or should have a leader and cannot answer now."""
        return [key for key, seen in self.partitions.items() if seen.leader is not None and not self.leads(seen)]

    def leads(self, seen: PartitionSeen) -> bool:
        if seen.leader is None or seen.leader == NO_LEADER:
            return False
        broker = self.brokers.get(seen.leader)
        return broker is None or not broker.is_gone

    def members(self, key: tuple[str, int]) -> tuple[int, ...]:
        """The brokers that are assigned, hold a copy or are in the ISR, in this order."""
        seen, holders = self.partitions[key], self.holders.get(key, ())
        if set(seen.replicas).issuperset((*holders, *seen.isr)):  # nearly always
            return tuple(dict.fromkeys(seen.replicas))
        hosts = (b for b in holders if key in self.brokers.get(b, _UNSEEN).beliefs.hosted)
        held = (b for b in holders if self.replicas.get((*key, b)) != ReplicaState.NON_EXISTENT)
        return tuple(dict.fromkeys((*seen.replicas, *held, *hosts, *seen.isr)))


_HANDLERS: dict[str, Callable[[ClusterModel, Record], None]] = {
    kind: getattr(ClusterModel, f"_{kind}") for kind in KINDS if hasattr(ClusterModel, f"_{kind}")
}
"""Kind of record -> what takes it into the model."""


def _log_end(record: Record) -> int:
    """The end of a log after records were written to it or dropped from it."""
    fields = details.named(record.detail)
    written = len(details.records(fields["records"])) if record.action != "truncate" and fields.get("records") else 0
    return (parse_int(fields.get("offset", "")) or 0) + written


def controller_of(text: str | None) -> int | None:
    """The broker that `/controller` names: JSON, or the plain number of the first releases."""
    return parse_int(str(details.json_object(text).get("brokerid", text)))


@lru_cache(maxsize=4096)
def number_of(actor: str) -> int | None:
    """The broker behind an actor's name: 2 for `controller-2` and `broker-2`, None for `zookeeper`."""
    found = _NUMBER.search(actor)
    return int(found[1]) if found else None


def broker_of(record: Record) -> int | None:
    """The broker that a record names, else the one behind its actor; None if there is none."""
    return record.broker if record.broker is not None else number_of(record.actor)
