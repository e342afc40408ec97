"""The parts of a `ClusterModel`: znodes, brokers, partitions, the work of a controller, and what each actor believes.

A controller believes what is in its context: Kafka 2.0.1, controller/ControllerContext.scala. A broker believes the
last LeaderAndIsr of each partition it holds (server/ReplicaManager.scala) and the last UpdateMetadata of every
partition (server/MetadataCache.scala).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_ctl.cluster import LEADER_DURING_DELETE, NO_LEADER
from kafka_ctl.trace import details
from kafka_ctl.trace.record import SET, Record

Key = tuple[str, int]


def key_of(record: Record) -> Key | None:
    """The partition that a record is about; None if it is about none."""
    return None if record.topic is None or record.partition is None else (record.topic, record.partition)


class Led(NamedTuple):
    """A partition in the memory of a broker or controller: its leader, its ISR in order, its leader epoch."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int


MESSAGES = frozenset(
    "elected epoch_incremented ready resigned initializing_context active_brokers brokers_changed all_shutting_down "
    "removed_from_shutting_down topics_changed".split()
)
"""The messages of controllers whose context changes."""
DEEDS = frozenset("become-leader become-follower shrink-isr expand-isr stop-replica uncached".split())
"""The acts of brokers that change their memory of a partition."""
UNKNOWN_LEADER = Led(NO_LEADER, (), -1)
"""The state of a partition in a broker after a request that names a leader it does not know."""


def led(record: Record) -> Led | None:
    """The leadership that a record states; None where it states none."""
    if record.leader is None:
        return None
    return Led(record.leader, record.isr or (), -1 if record.leader_epoch is None else record.leader_epoch)


@dataclass
class ControllerSeen:
    """The context of one broker's controller."""

    id: int
    acts: bool = False
    """True from its election until it resigns: several may act at once."""
    epoch: int | None = None
    """Its epoch; None until it has raised `/controller_epoch`."""
    leadership: dict[Key, Led] = field(default_factory=dict)
    assigned: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    live: frozenset[int] | None = None
    """Brokers that it takes for registered, those that shut down included; None before it has read them."""
    shutting_down: frozenset[int] = frozenset()
    reads: bool = False
    """True while it fills its context from ZooKeeper."""

    def forget(self) -> None:
        """It resigned, or its process ended."""
        self.__init__(self.id)  # type: ignore[misc]

    def logged(self, record: Record) -> None:
        """One of its own messages, of `MESSAGES`."""
        action, fields = record.action, details.fields(record)
        if action == "elected":
            self.acts, self.epoch = True, fields.get("epoch")
        elif action in ("epoch_incremented", "ready"):
            self.acts, self.epoch = True, fields.get("epoch") or record.controller_epoch
        elif action == "resigned":
            self.forget()
        elif action == "initializing_context":
            self.leadership.clear()
            self.assigned.clear()
            self.reads, self.shutting_down = True, frozenset()
        elif action == "active_brokers":
            self.reads, self.live = False, frozenset(details.ids(fields.get("brokers")))
        elif action == "brokers_changed":
            self.live = frozenset(details.ids(fields.get("live")))
        elif action == "all_shutting_down":
            self.shutting_down = frozenset(details.ids(fields.get("brokers")))
        elif action == "removed_from_shutting_down":
            self.shutting_down -= frozenset(details.ids(fields.get("brokers")))
        elif action == "topics_changed":
            deleted = fields.get("deleted") or ()
            for key in [key for key in self.leadership if key[0] in deleted]:
                del self.leadership[key]

    def moved(self, record: Record, key: Key) -> None:
        """It moved a partition: `record` says to which state, and who leads it now."""
        if record.replicas is not None:
            self.assigned[key] = record.replicas
        if (now := led(record)) is not None:
            self.leadership[key] = now
        elif record.target == "NonExistentPartition" and record.action != SET:
            self.leadership.pop(key, None)

    def sent(self, record: Record, key: Key) -> None:
        """It sends a partition's state from its context to all brokers."""
        now = led(record)
        if record.action == "UpdateMetadata" and now is not None and now.leader != LEADER_DURING_DELETE:
            self.leadership[key] = now
        if record.replicas is not None:
            self.assigned[key] = record.replicas


@dataclass
class BrokerBeliefs:
    """The memory of a broker's process; it ends with the process."""

    hosted: dict[Key, Led] = field(default_factory=dict)
    """The partitions that it leads or follows, by the last LeaderAndIsr that it obeyed."""
    metadata: dict[Key, Led] = field(default_factory=dict)
    """The metadata cache: every partition that it was sent."""

    def cached(self, record: Record, key: Key) -> bool:
        """Apply a write to the metadata cache; True if the entry changed."""
        now = led(record)
        if now is None or self.metadata.get(key) == now:
            return False
        self.metadata[key] = now
        return True

    def did(self, record: Record, key: Key, broker: int) -> None:
        """Apply an act of the broker with one partition."""
        action = record.action
        if action not in DEEDS:
            return
        now = led(record)
        if action in ("become-leader", "become-follower") and now is not None:
            if record.error is None:
                self.hosted[key] = now
            else:
                self.hosted.setdefault(key, UNKNOWN_LEADER)
        elif action in ("shrink-isr", "expand-isr") and now is not None and record.error is None:
            before = self.hosted.get(key)
            if before is not None and (before.leader, before.leader_epoch) == (broker, now.leader_epoch):
                self.hosted[key] = now
        elif action == "stop-replica" and record.error is None and "delete" in details.flags(record.detail):
            self.hosted.pop(key, None)
        elif action == "uncached":
            self.metadata.pop(key, None)

    def lost_dir(self, record: Record) -> None:
        """A log directory failed: its copies are gone."""
        lost = details.items(record.detail, "partitions")
        for key in [key for key in self.hosted if f"{key[0]}-{key[1]}" in lost]:
            del self.hosted[key]


class ZNode(NamedTuple):
    """A znode as the writes left it; `owner` is who holds an ephemeral one."""

    data: str
    version: int
    owner: str


class CurrentEvent(NamedTuple):
    """The event that a controller works on, and the records that say that it began, and that it was queued."""

    event: str
    started: int
    queued: int | None


STARTING, RECOVERING = "starting", "recovering"
PENDING_SHUTDOWN, SHUTTING_DOWN = "pending shutdown", "shutting down"
"""The states of a process that is not just up (Kafka 2.0.1: server/BrokerStates.scala)."""

RECORDED, DEDUCED = "recorded", "deduced"


@dataclass
class BrokerSeen:
    """`alive`: the process runs; `registered`: its znode stands; `note`: its state, empty where it is up; `paused`: it
    stands still; `beliefs`: what it was sent. Milliseconds: `timeout` is that of its session, `silent` when the
    heartbeats of that session stopped.
    """

    id: int
    alive: bool = False
    known: str = ""
    """`RECORDED` if its start is in the trace, `DEDUCED` if lines of a log say that it runs or is gone, else empty."""
    registered: bool = False
    rack: str | None = None
    note: str = ""
    paused: bool = False
    shutting_down: bool = False
    """True if it has been asked to shut down in good order."""
    beliefs: BrokerBeliefs = field(default_factory=BrokerBeliefs)
    timeout: float | None = None
    silent: float | None = None
    log_ends: dict[Key, int] = field(default_factory=dict)
    """The log end offsets on its disk, where records were ever written."""

    @property
    def listens(self) -> bool:
        """True if its process is up, so that what it was sent counts."""
        return self.serves and self.note not in (STARTING, RECOVERING)

    @property
    def serves(self) -> bool:
        """True if its process runs and has not closed its connections to stop."""
        return self.alive and self.note != SHUTTING_DOWN

    @property
    def is_gone(self) -> bool:
        """True if it is known not to serve; of a broker that logs do not mention, neither is known."""
        return not self.serves and bool(self.known or self.registered)

    def came_up(self) -> None:
        """Its process is registered: its start, if it was starting, is over."""
        self.alive = True
        if self.note in (STARTING, RECOVERING):
            self.note = ""

    def ends(self) -> None:
        """Its process ends, and with it what the process had in memory."""
        self.alive, self.note, self.paused, self.shutting_down, self.beliefs = False, "", False, False, BrokerBeliefs()


@dataclass
class PartitionSeen:
    """A partition: its state as the last controller has it, and its leadership as ZooKeeper has it.

    `leader` is -1 for no leader, None while not yet known. Where no write to ZooKeeper is recorded, as in an imported
    log, leadership is that of the last record about the partition.
    """

    state: str = "NonExistentPartition"
    leader: int | None = None
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    leader_epoch: int | None = None
    zk_version: int | None = None
    stored: bool = False
    """True if its `state` znode exists."""
    writer: int | None = None
    """The broker whose session wrote that last."""
    written_ms: float = 0.0

    @property
    def led(self) -> Led | None:
        """The state in ZooKeeper; None where there is no `state` znode."""
        if not self.stored or self.leader is None:
            return None
        return Led(self.leader, self.isr, -1 if self.leader_epoch is None else self.leader_epoch)
