"""The order in which Scala 2.11 and 2.12 walk through sets, maps and groups.

Some of Kafka's results depend on it: the replica list that the legacy reassignment writes is a set made into a list;
when replicas of several brokers leave an ISR together, who leaves last, and so stays, is a matter of order; and what
is done partition by partition is done in the order of a hash table.
Scala 2.12: collection/immutable/HashSet.scala, improve; collection/mutable/HashTable.scala, index
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from functools import lru_cache, reduce
from typing import Any, TypeVar

from kafka_ctl.cluster import Replica, TopicPartition

K = TypeVar("K")
V = TypeVar("V")
MASK = 0xFFFFFFFF


def set_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers without repetitions, in the order of a Scala `Set(...)` built from them one after the other.

    `set_order([1, 2, 3, 4, 5, 6])` is `(5, 1, 6, 2, 3, 4)`.
    """
    distinct = tuple(dict.fromkeys(numbers))
    return distinct if len(distinct) <= 4 else tuple(sorted(distinct, key=_trie_path))


def set_order_by(items: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The same for anything whose hash is one of those below, also for the keys of an immutable `Map`."""
    distinct = list(dict.fromkeys(items))
    return distinct if len(distinct) <= 4 else trie_order(distinct, hash_of)


def trie_order(items: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """The same for some of the items of a larger set: what is left of it keeps its order, however few they are."""
    return sorted(items, key=lambda item: _trie_path(hash_of(item)))


def map_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Keys in the order of a `mutable.Map` that they were put into one after the other."""
    return list(HashMap(hash_of, ((key, None) for key in keys)))


class HashMap(dict[K, V]):
    """A `mutable.HashMap`: a dictionary that is walked in Scala's order.

    The table begins with 16 buckets and doubles when it is more than three quarters full; it is walked from its end,
    and in one bucket the last key comes first, until a doubling, or a copy, turns that around. A key that is put again
    keeps its place. Scala 2.12: collection/mutable/HashTable.scala, addEntry0, resize, removeEntry, clearTable
    """

    def __init__(self, hash_of: Callable[[K], int], pairs: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__()
        self._hash_of = hash_of
        self._hashes: dict[K, int] = {}
        self._table: list[list[K]] = [[] for _ in range(16)]
        self.update(pairs)

    def filter(self, holds: Callable[[K, V], object]) -> HashMap[K, V]:
        """A new table with what is kept, put in in the order of this one."""
        return HashMap(self._hash_of, [(key, self[key]) for key in self if holds(key, self[key])])

    def ordered(self, keys: Iterable[K]) -> list[K]:
        """Some of the keys, in the order of the table."""
        return sorted(keys, key=lambda key: self._rank(key))

    def _rank(self, key: K) -> tuple[int, int]:
        bucket = self._bucket(key)
        return -bucket, self._table[bucket].index(key)

    def _bucket(self, key: K) -> int:
        return _bucket(self._hashes[key], len(self._table))

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            self._hashes[key] = self._hash_of(key)
            self._table[self._bucket(key)].insert(0, key)
            if len(self._hashes) > len(self._table) * 3 // 4:
                keys, size = list(self), 2 * len(self._table)
                self._table = [[] for _ in range(size)]
                for each in keys:
                    self._table[self._bucket(each)].insert(0, each)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self._table[self._bucket(key)].remove(key)
        del self._hashes[key]

    def __iter__(self) -> Iterator[K]:
        if len(self._hashes) * 8 < len(self._table):  # a table that was cleared keeps its size
            return iter(self.ordered(self._hashes))
        return (key for chain in self._table[::-1] for key in chain)

    def keys(self) -> KeysView[K]:  # type: ignore[override]
        return KeysView(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        return ValuesView(self)

    def items(self) -> ItemsView[K, V]:  # type: ignore[override]
        return ItemsView(self)

    def clear(self) -> None:
        """Empty the table, which keeps its size."""
        super().clear()
        for key in self._hashes:
            self._table[self._bucket(key)].clear()
        self._hashes.clear()

    def pop(self, key: K, *default: object) -> Any:
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    setdefault = MutableMapping.setdefault
    update = MutableMapping.update

    def __ior__(self, other: Mapping[K, V]) -> HashMap[K, V]:  # type: ignore[override, misc]
        self.update(other)
        return self


class Orders:
    """The orders in which a controller walks through its sets and maps.

    With `in_tables` (0.10) these are orders of Scala's hash tables; later generations mostly keep the given one.
    """

    def __init__(self, in_tables: bool) -> None:
        self.in_tables = in_tables

    def walked(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Partitions in the order of a map into which they were put one after the other."""
        return map_order(partitions, case_hash) if self.in_tables else list(partitions)

    def as_set(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Partitions in the order of a set."""
        return set_order_by(partitions, case_hash) if self.in_tables else list(partitions)

    def replica_set(self, replicas: Iterable[Replica]) -> list[Replica]:
        """Replicas in the order of a set."""
        return set_order_by(replicas, replica_hash) if self.in_tables else list(dict.fromkeys(replicas))

    def requested(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The partitions of a reassignment request in the order of a set, in every generation."""
        return set_order_by(partitions, case_hash if self.in_tables else java_hash)

    def requested_map(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The partitions of a reassignment request in the order of a map that their set was put into."""
        return map_order(self.requested(partitions), case_hash if self.in_tables else java_hash)

    def empty_map(self) -> dict[TopicPartition, V]:
        """A map by partition for a request."""
        return HashMap(java_hash) if self.in_tables else {}

    def in_order(self, topics: Iterable[str]) -> list[str]:
        """Topics that were read from the children of a znode."""
        return set_order_by(topics, text_hash) if self.in_tables else sorted(topics)


def filtered(mapping: Mapping[K, V], holds: Callable[[K, V], object]) -> list[K]:
    """The keys for which `holds(key, value)`, in the order of the map that Scala's `filter` makes of this one."""
    kept = [key for key, value in mapping.items() if holds(key, value)]
    return map_order(kept, mapping._hash_of) if isinstance(mapping, HashMap) else kept


def filter_not(table: HashMap[K, V], left_out: Callable[[K], object]) -> list[K]:
    """The keys that are kept, in the order of the map that Scala's `filterNot` makes of this one.

    `filterNot`, unlike `filter`, copies a map once for each key that it leaves out, and not at all where there is none.
    Scala 2.12: collection/MapLike.scala, filterNot; collection/mutable/MapLike.scala, -
    """
    hash_of, every = table._hash_of, list(table)
    earlier: list[K] = []
    for left in range(sum(map(bool, map(left_out, every))), 0, -1):
        if (walked := map_order(every, hash_of)) == earlier and left % 2 == 0:
            break  # two copies more are as these
        earlier, every = every, walked
    return [key for key in every if not left_out(key)]


def grouped(items: Iterable[V], key: Callable[[V], int]) -> dict[int, list[V]]:
    """The items by a number, in the order in which Scala walks through the groups of `groupBy`."""
    groups: dict[int, list[V]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return {number: groups[number] for number in group_order(groups)}


def parsed(numbers: Mapping[int, V]) -> dict[int, V]:
    """The fields of a JSON object with such names, in the order in which 0.10 has them when it has read or built it."""
    return {number: numbers[number] for number in json_order(numbers)}


def union(first: Iterable[int], second: Iterable[int]) -> tuple[int, ...]:
    """`first.toSet ++ second`, as a list."""
    return set_order((*first, *second))


def difference(first: Iterable[int], second: Iterable[int]) -> tuple[int, ...]:
    """`first.toSet -- second`, as a list."""
    gone = frozenset(second)
    return tuple(number for number in set_order(first) if number not in gone)


def tool_order(numbers: Iterable[int]) -> list[int]:
    """Partition numbers as 0.10's tools write them into a topic's znode."""
    return json_order(map_order(numbers, int))


FIRST_TABLE = 8
"""The buckets of the `java.util.HashSet` in which ZooKeeper's server keeps the children of a znode."""


def java_bucket(text: str, size: int) -> int:
    """The bucket of a text in a `java.util.HashSet` of so many buckets; in one bucket the first text comes first."""
    h = text_hash(text)
    return (h ^ h >> 16) & size - 1


def grown_table(size: int, added: str, texts: Collection[str]) -> int:
    """The buckets of a `java.util.HashSet` of so many after one of its texts was added.

    They double when more than three quarters would be full, and below 64 when the ninth comes into one bucket. Buckets
    with more than that become trees, whose order is not followed here.
    OpenJDK 17: java/util/HashMap.java, putVal, treeifyBin, resize
    """
    if len(texts) > 8 and size < 64:
        bucket = java_bucket(added, size)
        size *= 2 if sum(java_bucket(text, size) == bucket for text in texts) > 8 else 1
    return size if len(texts) <= size * 3 // 4 else 2 * size


def json_order(numbers: Iterable[int]) -> list[int]:
    """Partition numbers as 0.10 writes them into a topic's znode, or reads them from one, when given in this order."""
    return set_order_by(numbers, lambda number: text_hash(str(number)))


def java_hash(partition: TopicPartition) -> int:
    """The hash of 2.x's TopicPartition, a class of Java."""
    return 31 * (31 + partition.partition) + text_hash(partition.topic) & MASK


def case_hash(partition: TopicPartition) -> int:
    """The hash of 0.10's TopicAndPartition, a case class of Scala."""
    return product_hash(text_hash(partition.topic), partition.partition)


def replica_hash(replica: Replica) -> int:
    """The hash of 0.10's PartitionAndReplica, a case class, too."""
    return product_hash(text_hash(replica.topic), replica.partition, replica.broker)


def java_replica_hash(replica: Replica) -> int:
    """The hash of 2.x's PartitionAndReplica: a case class of such a partition and a broker."""
    return product_hash(java_hash(replica.topic_partition), replica.broker)


@lru_cache(maxsize=1 << 16)
def product_hash(*hashes: int) -> int:
    """The hash of a case class or tuple from those of its members: MurmurHash3."""
    h = reduce(
        lambda h, k: _rotated(h ^ _rotated(k * 0xCC9E2D51, 15) * 0x1B873593, 13) * 5 + 0xE6546B64, hashes, 0xCAFEBABE
    )
    h = h & MASK ^ len(hashes)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def _rotated(h: int, bits: int) -> int:
    h &= MASK
    return (h << bits | h >> (32 - bits)) & MASK


@lru_cache(maxsize=4096)
def text_hash(text: str) -> int:
    """Java's hash of a text."""
    return reduce(lambda h, char: 31 * h + ord(char) & MASK, text, 0)


def fetcher_id(partition: TopicPartition, threads: int) -> int:
    """The number of the thread, of so many, that copies a partition.

    Kafka 2.0.1: server/AbstractFetcherManager.scala, getFetcherId; common/utils/Utils.java, abs
    """
    hashed = 31 * text_hash(partition.topic) + partition.partition & MASK
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % threads


def group_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The keys of `groupBy` in the order in which Scala walks through the groups: `{1, 2, 3, 4}` is `2, 4, 1, 3`.

    Groups are collected in a mutable hash table of 16 buckets, which is walked from its end; from five groups on they
    end up in a hash trie.
    """
    distinct = set(numbers)
    by_bucket = sorted(distinct, key=lambda number: (-_bucket(number), number))
    return tuple(by_bucket) if len(distinct) <= 4 else set_order(by_bucket)


def flat_set_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers in the order of a `mutable.HashSet`: slots are walked from the first, the next free one is taken.

    `flat_set_order([5, 4, 3, 2, 1])` is `(1, 5, 2, 3, 4)`.
    Scala 2.12: collection/mutable/FlatHashTable.scala, index, addEntry
    """
    table: list[int | None] = [None] * 32
    for size, number in enumerate(dict.fromkeys(numbers), 1):
        _take_slot(table, number)
        if size >= len(table) * 45 // 100:
            held, table = [n for n in table if n is not None], [None] * (2 * len(table))
            for each in held:
                _take_slot(table, each)
    return tuple(n for n in table if n is not None)


def _take_slot(table: list[int | None], number: int) -> None:
    seed = len(table).bit_length() - 1
    h = int.from_bytes((number * 0x9E3775CD & MASK).to_bytes(4, "little"), "big") * 0x9E3775CD & MASK
    slot = _rotated(h, 32 - seed) >> (32 - seed)
    while table[slot] is not None:
        slot = (slot + 1) % len(table)
    table[slot] = number


def java_sized_set_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers in the order of a Java `HashSet` that was made for as many: `[4, 1, 2]` is `4, 1, 2`.

    OpenJDK 8: java/util/HashMap.java, tableSizeFor, putVal
    """
    distinct = tuple(dict.fromkeys(numbers))
    size = 1 << max(0, len(distinct) - 1).bit_length()
    while len(distinct) > size * 3 // 4 and size < 1 << 30:
        size *= 2
    return tuple(sorted(distinct, key=lambda number: (number ^ (number & MASK) >> 16) & (size - 1)))


@lru_cache(maxsize=1 << 16)
def _bucket(number: int, size: int = 16) -> int:
    """The bucket of a hash: multiplied, bytes swapped, multiplied, rotated by four bits, the highest bits."""
    h = int.from_bytes((number * 0x9E3775CD & MASK).to_bytes(4, "little"), "big") * 0x9E3775CD
    return _rotated(h, 28) >> (33 - size.bit_length())


@lru_cache(maxsize=1 << 16)
def _trie_path(number: int) -> tuple[int, ...]:
    """The branches from the root of the trie to this number: five bits of its hash a level, the lowest first."""
    h = number & MASK
    h = (h + ~(h << 9)) & MASK
    h ^= h >> 14
    h = (h + (h << 4)) & MASK
    h ^= h >> 10
    return tuple(h >> shift & 31 for shift in range(0, 35, 5))
