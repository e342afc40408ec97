"""The order in which Scala 2.11 and 2.12 walk through sets and groups of numbers.

Some of Kafka's results depend on it: the replica list that the legacy reassignment writes is a set made into a list,
and when replicas of several brokers leave an ISR together, who leaves last, and so stays, is a matter of order.
Scala 2.12: collection/immutable/HashSet.scala, improve; collection/mutable/HashTable.scala, index
"""

from __future__ import annotations

from collections.abc import Iterable

MASK = 0xFFFFFFFF


def set_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers without repetitions, in the order of a Scala `Set(...)` built from them one after the other.

    `set_order([1, 2, 3, 4, 5, 6])` is `(5, 1, 6, 2, 3, 4)`.
    """
    distinct = tuple(dict.fromkeys(numbers))
    return distinct if len(distinct) <= 4 else tuple(sorted(distinct, key=_trie_path))


def group_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The keys of `groupBy` in the order in which Scala walks through the groups: `{1, 2, 3, 4}` is `2, 4, 1, 3`.

    Groups are collected in a mutable hash table of 16 places, which is walked from its end; from five groups on they
    end up in a hash trie.
    """
    distinct = set(numbers)
    by_place = sorted(distinct, key=lambda number: (-_place(number), number))
    return tuple(by_place) if len(distinct) <= 4 else set_order(by_place)


def _place(number: int) -> int:
    """The place of a number in a table of 16: its bytes multiplied, swapped, multiplied, then rotated by four bits."""
    h = int.from_bytes((number * 0x9E3775CD & MASK).to_bytes(4, "little"), "big") * 0x9E3775CD & MASK
    return ((h >> 4 | h << 28) & MASK) >> 28


def _trie_path(number: int) -> tuple[int, ...]:
    """The branches from the root of the trie to this number: five bits of its hash a level, the lowest first."""
    h = number & MASK
    h = (h + ~(h << 9)) & MASK
    h ^= h >> 14
    h = (h + (h << 4)) & MASK
    h ^= h >> 10
    return tuple(h >> shift & 31 for shift in range(0, 35, 5))
