"""The things of a `ClusterModel`: znodes, brokers, partitions, the work of a controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_ctl.trace.beliefs import BrokerBeliefs, Key, Led


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
    stands still; `beliefs`: what it was sent. Milliseconds: `timeout` is that of its session, `silent` the time since
    which that hears nothing.
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

    def is_up(self) -> None:
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
