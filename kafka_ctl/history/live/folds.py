"""The knowledge of a cluster at each record: plain Python, so that it can be read, tested and asked without Spark.

Separate from `changes.py` because that one needs Spark.
A fold takes the records of one history in their order and gives a row whenever its answer changes. Its state is a dict
that fits into JSON, and a stream keeps it in its checkpoint. Where the epochs of controllers begin again, ZooKeeper was
wiped, and nothing is left of what was known (see `lives`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kafka_ctl.history.lives import ACTIONS, announced, falls
from kafka_ctl.partition import NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.trace.record import SET, Record

Row = tuple[object, ...]
State = dict[str, Any]
"""The memory of a fold, as JSON."""


class Aggregator:
    """One question. `columns` are those of its rows, after `history`; it looks at records of some `kinds` only."""

    columns: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("partition",)

    def __init__(self, state: State | None = None) -> None:
        self.state: State = {} if state is None else state

    def concerns(self, r: Record) -> bool:
        """True if this fold reads the record: it does not read a state that was set without a leader in the record."""
        return r.kind in self.kinds and r.error is None and (r.action != SET or r.leader is not None)

    def add(self, r: Record) -> Iterator[Row]:
        """The rows that this record makes, none when nothing changes."""
        raise NotImplementedError

    def rows(self, records: Iterable[Record]) -> Iterator[Row]:
        """The rows of several records, which follow those that were added before."""
        for record in records:
            if self.begins(record):
                yield from self.forget(record)
            if self.concerns(record):
                yield from self.add(record)

    def state_of(self, r: Record) -> State | None:
        """The memory of the record's partition; None if that is newer, as when two logs arrive in turns."""
        now = [r.time_ms, r.seq]
        if r.time_ms < self.state.get("life", {}).get("since", r.time_ms):
            return None
        mine = self.state.setdefault("partitions", {}).setdefault(f"{r.topic}-{r.partition}", {})
        if mine.get("now", now) > now:
            return None
        mine["now"] = now
        return mine

    def begins(self, r: Record) -> bool:
        """True if a controller announces an epoch of a new cluster: it was made again."""
        life: State = self.state.get("life", {})
        epoch = announced(r, life.get("apart", False)) if r.kind == "controller" and r.action in ACTIONS else None
        if epoch is None and not life.get("epochs") and r.controller_epoch:
            life = self.state.setdefault("life", life)
            life["lowest"] = min(r.controller_epoch, life.get("lowest", math.inf))
        if epoch is None or r.time_ms <= life.get("at", -1.0):
            return False  # nothing new, or a log that is read late
        life = self.state.setdefault("life", life)
        known: list[int] = life.get("epochs", [])
        begins = falls(epoch, known, life.get("lowest", math.inf))
        life |= {"since": r.time_ms, "lowest": epoch} if begins else {}
        life |= {"at": r.time_ms, "epochs": [epoch] if begins else [*known, epoch]}
        life["apart"] = life.get("apart", False) or r.action == "epoch_incremented"
        return begins

    def forget(self, r: Record) -> Iterator[Row]:
        """The rows of partitions that no longer exist; what newer records have set already stays."""
        partitions = self.state.get("partitions", {})
        for name in [name for name, mine in partitions.items() if mine["now"] < [r.time_ms, r.seq]]:
            topic, _, number = name.rpartition("-")
            yield from self.deleted(topic, int(number), partitions.pop(name), r)

    def deleted(self, topic: str, partition: int, mine: State, r: Record) -> Iterator[Row]:
        """The rows that say that one partition no longer exists."""
        return iter(())


class Leaders(Aggregator):
    """The leader of each partition."""

    columns = "topic string, partition int, at_ms double, seq bigint, state string, leader int, leader_epoch int"
    kinds = ("partition", "request")

    def concerns(self, r: Record) -> bool:
        if r.kind == "request":  # a new controller sends the leaders that it has read
            return r.action == "LeaderAndIsr" and r.error is None and r.leader not in (None, -1)
        return r.kind == "partition" and (r.error is None or r.source == OFFLINE)

    def add(self, r: Record) -> Iterator[Row]:
        mine = self.state_of(r)
        if mine is None or (r.controller_epoch or math.inf) < mine.get("epoch", 0):
            return
        mine["epoch"] = r.controller_epoch or mine.get("epoch", 0)
        if r.leader is not None:
            mine["led"] = r.leader
        state = mine.get("state") if r.kind == "request" else r.source if r.error else r.target
        if state is None or (state == ONLINE and "led" not in mine):
            return  # the records begin after its election
        new = [state, mine["led"] if state == ONLINE and mine["led"] != -1 else None]
        if new != [mine.get("state"), mine.get("leader")]:
            mine["state"], mine["leader"] = new
            yield r.topic, r.partition, r.time_ms, r.seq, *new, r.leader_epoch

    def deleted(self, topic: str, partition: int, mine: State, r: Record) -> Iterator[Row]:
        if mine.get("state") not in (None, NON_EXISTENT):
            yield topic, partition, r.time_ms, r.seq, str(NON_EXISTENT), None, None


class UnderReplicated(Aggregator):
    """Replicas of each partition that are not in sync; newest means by version, as requests may repeat old states."""

    columns = (
        "topic string, partition int, at_ms double, seq bigint, missing array<int>, isr array<int>, replicas array<int>"
    )
    kinds = ("partition", "replica", "request", "broker", "controller")

    def concerns(self, r: Record) -> bool:
        shrunk = r.kind == "replica" and r.isr is not None  # by a controller; of a watch only
        tells = r.kind == "partition" or shrunk or r.action in ("LeaderAndIsr", "shrink-isr", "expand-isr")
        return tells and r.topic is not None and super().concerns(r)

    def add(self, r: Record) -> Iterator[Row]:
        mine = self.state_of(r)
        if mine is None:
            return
        deleted = r.target == NON_EXISTENT
        if r.kind == "partition" and r.source == NON_EXISTENT:
            mine["version"] = -1
        if r.replicas is not None:
            mine["replicas"] = list(r.replicas)
        version = mine.get("version", -1)
        if not deleted and (r.isr is None or (r.zk_version is not None and r.zk_version <= version)):
            return
        mine["version"] = version if r.zk_version is None else max(version, r.zk_version)
        isr = None if deleted else list(r.isr or ())
        missing = [] if isr is None else [id for id in mine.get("replicas", ()) if id not in isr]
        if missing != mine.get("missing", []):
            mine["missing"] = missing
            yield r.topic, r.partition, r.time_ms, r.seq, missing, isr, mine.get("replicas")

    def deleted(self, topic: str, partition: int, mine: State, r: Record) -> Iterator[Row]:
        if mine.get("missing"):
            yield topic, partition, r.time_ms, r.seq, [], None, mine.get("replicas")


class Imbalance(Aggregator):
    """For every broker, how many partitions prefer it, and how many of these another broker leads."""

    columns = "broker int, at_ms double, seq bigint, preferred bigint, led_elsewhere bigint, share double"

    def add(self, r: Record) -> Iterator[Row]:
        mine = self.state_of(r)
        if mine is None:
            return
        touched = self._count(mine, -1)
        if r.replicas:
            mine["preferred"] = r.replicas[0]
        mine["there"] = r.target != NON_EXISTENT
        mine["led_elsewhere"] = not (r.target == ONLINE and r.leader == mine.get("preferred"))
        for broker in sorted({*touched, *self._count(mine, +1)}):
            preferred, led_elsewhere = self.state["brokers"][str(broker)]
            yield broker, r.time_ms, r.seq, preferred, led_elsewhere, led_elsewhere / preferred if preferred else 0.0

    def deleted(self, topic: str, partition: int, mine: State, r: Record) -> Iterator[Row]:
        self._count(mine, -1)
        return iter(())

    def _count(self, mine: State, n: int) -> list[int]:
        """Add or take away one partition; the broker that it concerns."""
        if not mine.get("there") or mine.get("preferred") is None:
            return []
        counts = self.state.setdefault("brokers", {}).setdefault(str(mine["preferred"]), [0, 0])
        counts[0] += n
        counts[1] += n * mine["led_elsewhere"]
        return [mine["preferred"]]

    def rows(self, records: Iterable[Record]) -> Iterator[Row]:
        """Of several changes at one moment only the last counts: no question can be asked in between."""
        last = {(row[0], row[1]): row for row in super().rows(records)}
        yield from last.values()


class Controllers(Aggregator):
    """The controller."""

    columns = "at_ms double, seq bigint, state string, controller int, epoch int"
    kinds = ("controller",)

    def concerns(self, r: Record) -> bool:
        return r.action in ("elected", "ready", "resigned") and super().concerns(r)

    def add(self, r: Record) -> Iterator[Row]:
        now = [r.time_ms, r.seq]
        if self.state.get("now", now) > now or (r.action == "resigned" and r.broker != self.state.get("controller")):
            return  # a broker that gives up what it never was says so too
        self.state |= {"now": now, "controller": None if r.action == "resigned" else r.broker}
        yield r.time_ms, r.seq, r.action, r.broker, r.controller_epoch if r.action != "elected" else None
