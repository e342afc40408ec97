"""The order in which Scala 2.11 and 2.12 walk through sets, maps and groups.

Some of Kafka's results depend on it: the replica list that the legacy reassignment writes is a set made into a list;
when replicas of several brokers leave an ISR together, who leaves last, and so stays, is a matter of order; and what
is done partition by partition is done in the order of a hash table.
Scala 2.12: collection/immutable/HashSet.scala, improve; collection/mutable/HashTable.scala, index
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from kafka_ctl.cluster import TopicPartition

MASK = 0xFFFFFFFF


def set_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers without repetitions, in the order of a Scala `Set(...)` built from them one after the other.

    `set_order([1, 2, 3, 4, 5, 6])` is `(5, 1, 6, 2, 3, 4)`.
    """
    distinct = tuple(dict.fromkeys(numbers))
    return distinct if len(distinct) <= 4 else tuple(sorted(distinct, key=_trie_path))


def partition_set_order(
    partitions: Iterable[TopicPartition], hash_of: Callable[[TopicPartition], int]
) -> list[TopicPartition]:
    """The same for partitions, whose hash is one of those below."""
    distinct = list(dict.fromkeys(partitions))
    return distinct if len(distinct) <= 4 else sorted(distinct, key=lambda tp: _trie_path(hash_of(tp)))


def partition_map_order(
    partitions: Iterable[TopicPartition], hash_of: Callable[[TopicPartition], int]
) -> list[TopicPartition]:
    """Partitions in the order of a `mutable.Map` they were put into one after the other.

    The table begins with 16 places and doubles when it is three quarters full; it is walked from its end, and in one
    place who came last is first, until a doubling turns that around.
    """
    table: list[list[TopicPartition]] = [[] for _ in range(16)]
    for size, tp in enumerate(dict.fromkeys(partitions), 1):
        table[_place(hash_of(tp), len(table))].insert(0, tp)
        if size > len(table) * 3 // 4:
            moved = [tp for chain in reversed(table) for tp in chain]
            table = [[] for _ in range(2 * len(table))]
            for each in moved:
                table[_place(hash_of(each), len(table))].insert(0, each)
    return [tp for chain in reversed(table) for tp in chain]


def java_hash(partition: TopicPartition) -> int:
    """The hash of 2.x's TopicPartition, a class of Java."""
    return 31 * (31 + partition.partition) + _text_hash(partition.topic) & MASK


def case_hash(partition: TopicPartition) -> int:
    """The hash of 0.10's TopicAndPartition, a case class of Scala."""
    return product_hash(_text_hash(partition.topic), partition.partition)


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


def _text_hash(text: str) -> int:
    """Java's hash of a text."""
    return reduce(lambda h, char: 31 * h + ord(char) & MASK, text, 0)


def group_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The keys of `groupBy` in the order in which Scala walks through the groups: `{1, 2, 3, 4}` is `2, 4, 1, 3`.

    Groups are collected in a mutable hash table of 16 places, which is walked from its end; from five groups on they
    end up in a hash trie.
    """
    distinct = set(numbers)
    by_place = sorted(distinct, key=lambda number: (-_place(number), number))
    return tuple(by_place) if len(distinct) <= 4 else set_order(by_place)


def _place(number: int, size: int = 16) -> int:
    """The place of a hash in a table: multiplied, bytes swapped, multiplied, rotated by four bits, the highest bits."""
    h = int.from_bytes((number * 0x9E3775CD & MASK).to_bytes(4, "little"), "big") * 0x9E3775CD
    return _rotated(h, 28) >> (33 - size.bit_length())


def _trie_path(number: int) -> tuple[int, ...]:
    """The branches from the root of the trie to this number: five bits of its hash a level, the lowest first."""
    h = number & MASK
    h = (h + ~(h << 9)) & MASK
    h ^= h >> 14
    h = (h + (h << 4)) & MASK
    h ^= h >> 10
    return tuple(h >> shift & 31 for shift in range(0, 35, 5))
