"""Since when followers have been behind, folded from records: what a leader counts against `replica.lag.time.max.ms`.

Kafka 2.0.1: cluster/Partition.scala, getOutOfSyncReplicas; cluster/Replica.scala, updateLogReadResult,
lastCaughtUpTimeMs. In the lab: `LeaderRole.late_since`.

Separate from `model.py` because it folds times, and the model states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from kafka_ctl.generation import DEFAULTS, REPLICA_LAG_TIME
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import Key, key_of


@dataclass
class Lags:
    """Since when each follower has been behind. All times are in milliseconds."""

    limit: float = DEFAULTS[REPLICA_LAG_TIME]
    halted: dict[int, float] = field(default_factory=dict)
    """Brokers whose process does not run, or is paused: since when."""
    cuts: dict[tuple[str, str], float] = field(default_factory=dict)
    """The pairs that cannot reach each other, since when."""
    fallen: dict[tuple[Key, int], float] = field(default_factory=dict)
    """Replicas that were made to lag (`lab.lag`): since when."""
    slow: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Brokers whose fetches take longer (`lab.slow`): by how much, and since when."""
    behind: dict[tuple[Key, int], float] = field(default_factory=dict)
    """Replicas whose log is shorter than their leader's: since when."""
    led: dict[Key, tuple[int, float]] = field(default_factory=dict)
    """The leader of each partition, and since when."""
    joined: dict[tuple[Key, int], float] = field(default_factory=dict)
    """The last time that a replica joined the ISR."""
    fetched: dict[tuple[Key, int], tuple[int, float]] = field(default_factory=dict)
    """The end of the leader's log at a replica's last fetch, and the time of that fetch."""

    def since(self, key: Key, broker: int, leader: int, expels_silent: bool = True) -> float | None:
        """Since when a follower has been behind, as its leader counts it; None where it has all that it can have.

        `expels_silent`: a follower that has everything is late, too, when it is not heard (`expels_silent_followers`).
        """
        silent = min(
            self.halted.get(broker, inf),
            self.cuts.get((str(broker), str(leader)), inf),
            self.cuts.get((str(leader), str(broker)), inf),
        )
        if silent < inf:
            led = self.led.get(key, (leader, 0.0))[1]
            return max(silent, led) if expels_silent or (key, broker) in self.behind else None
        late, (delay, slow) = self.fallen.get((key, broker), inf), self.slow.get(broker, (0.0, inf))
        if delay > self.limit:
            late = min(late, max(slow, self.joined.get((key, broker), 0.0)))
        late = min(late, self.behind.get((key, broker), inf))
        return late if late < inf else None

    def fault(self, record: Record) -> None:
        """Apply a fault, or the end of one, to the times."""
        now, broker = record.time_ms, record.broker
        if record.action == "heal":
            for found in (self.cuts, self.fallen, self.slow):
                found.clear()
        if broker is None:
            return
        match record.action:
            case "pause":
                self.halted.setdefault(broker, now)
            case "resume":
                self.halted.pop(broker, None)
            case "disconnect":
                for ends in details.ends(record.detail):
                    self.cuts.setdefault(ends, now)
            case "slow":
                delay = 1000 * details.delayed(record.detail)
                self.slow[broker] = (delay, now if delay else inf)
            case "lag" if (key := key_of(record)) is not None:
                self.fallen.setdefault((key, broker), now)
            case "catch_up":
                for place in [place for place in self.fallen if place[1] == broker]:
                    del self.fallen[place]

    def ended(self, broker: int, now: float) -> None:
        """Note that a broker's process ended or is about to start."""
        self.halted.setdefault(broker, now)
        self.slow.pop(broker, None)
        for found in (self.fallen, self.behind, self.joined, self.fetched):
            for place in [place for place in found if place[1] == broker]:
                del found[place]
        for key in [key for key, (leader, _) in self.led.items() if leader == broker]:
            del self.led[key]

    def begins(self, record: Record) -> None:
        """A broker's process starts: its settings count for all."""
        if (given := details.named(record.detail).get(REPLICA_LAG_TIME)) is not None:
            self.limit = float(given)

    def leads(self, key: Key, broker: int, now: float) -> None:
        """A broker was made leader; its followers begin again."""
        if self.led.get(key, (None, 0.0))[0] != broker:
            self.led[key] = broker, now
            for found in (self.behind, self.fetched):
                for place in [place for place in found if place[0] == key]:
                    del found[place]

    def wrote(self, key: Key, leader: int, ends: dict[int, int], now: float) -> None:
        """A leader wrote records; `ends` are the log ends of all replicas."""
        for broker, end in ends.items():
            if broker != leader and end < ends[leader]:
                self.behind.setdefault((key, broker), now)

    def copied(self, key: Key, broker: int, end: int, leaders_end: int, now: float) -> None:
        """A follower's log reaches `end`; it is caught up, or was at its last fetch."""
        place = key, broker
        if end >= leaders_end:
            self.behind.pop(place, None)
        elif place in self.behind and place in self.fetched and end >= self.fetched[place][0]:
            self.behind[place] = self.fetched[place][1]
        self.fetched[place] = leaders_end, now
