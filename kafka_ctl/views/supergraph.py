"""Everything that ever appears in some records: what a layout must have room for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import BrokerSeen, ZNode

BRINGS = frozenset({"zk", "partition", "broker", "fault"})
"""The kinds of records that must be folded to know what appears; of others, what they name is enough."""
OBEYED = frozenset({"become-leader", "become-follower"})
"""What a broker does with a partition, of which there are many; what they name is enough, too."""


class Supergraph:
    """Every broker, partition, replica and znode of the records so far, also those that are gone; it only grows.

    `now` is the model of these records; `sizes_only` keeps of it what counts for the layout, which is faster.
    """

    def __init__(self, sizes_only: bool = False) -> None:
        self.now, self.sizes_only = ClusterModel(), sizes_only
        self.znodes: dict[str, ZNode] = {}
        self.brokers: dict[int, None] = {}
        self.members: dict[tuple[str, int], dict[int, None]] = {}

    @property
    def size(self) -> tuple[int, int]:
        """How many things a picture of brokers must have room for, and how many znodes: equal sizes, equal things."""
        return len(self.brokers) + sum(1 + len(held) for held in self.members.values()), len(self.znodes)

    def add(self, records: Iterable[Record]) -> Supergraph:
        """Make room for what appears in these records, the next ones of the same trace."""
        for record in records:
            if record.action != "cached" and not (self.sizes_only and _names_all(record)):
                self.now.apply(record)  # of metadata there is much, and nothing is drawn because of it
            self._see(record)
        self.brokers.update(dict.fromkeys(self.now.brokers))
        for key, seen in self.now.partitions.items():
            self._held(key, seen.replicas)
        return self

    def _see(self, record: Record) -> None:
        path = record.path or ""
        key = (record.topic or "", record.partition if record.partition is not None else -1)
        if record.kind == "zk" and path in self.now.znodes:
            self.znodes.setdefault(path, self.now.znodes[path])
            if path.startswith("/brokers/topics/") and path.count("/") == 3:
                for found, seen in self.now.partitions.items():
                    if found[0] == path.rpartition("/")[2]:
                        self._held(found, seen.replicas)
        if record.replicas and key in self.now.partitions:
            self._held(key, record.replicas)
        if record.kind == "replica" and record.broker is not None:
            self.now.partition(*key)
            self._held(key, (record.broker,))
        if record.broker is not None and record.broker >= 0:
            self.brokers[record.broker] = None

    def _held(self, key: tuple[str, int], brokers: Iterable[int]) -> None:
        if (held := self.members.get(key)) is None:
            held = self.members[key] = {}
        for broker in brokers:
            if broker not in held:
                held[broker] = self.brokers[broker] = None

    def model(self) -> ClusterModel:
        """A model that has it all: a partition's `replicas` are all that ever held it, a znode has its first data."""
        now = self.now
        return ClusterModel(
            brokers={broker: now.brokers.get(broker, BrokerSeen(broker)) for broker in self.brokers},
            partitions={key: replace(seen, replicas=tuple(self.members[key])) for key, seen in now.partitions.items()},
            replicas={(*key, broker): "" for key, held in self.members.items() for broker in held},
            znodes=dict(self.znodes),
        )


def _names_all(record: Record) -> bool:
    """Whether everything that appears by a record is named in it."""
    return record.kind not in BRINGS or (record.action in OBEYED and record.broker is not None)


def supergraph(records: Iterable[Record]) -> ClusterModel:
    """The model of everything in these records: see `Supergraph.model`."""
    return Supergraph(sizes_only=True).add(records).model()


def join(one: ClusterModel, other: ClusterModel) -> ClusterModel:
    """A model with all that two of them have: one drawing for two runs."""
    held = {key: one.partitions[key].replicas if key in one.partitions else () for key in other.partitions}
    partitions = {
        key: replace(seen, replicas=tuple(dict.fromkeys((*held[key], *seen.replicas))))
        for key, seen in other.partitions.items()
    }
    return ClusterModel(
        brokers=other.brokers | one.brokers,
        partitions=one.partitions | partitions,
        replicas=one.replicas | other.replicas,
        znodes=other.znodes | one.znodes,
    )
