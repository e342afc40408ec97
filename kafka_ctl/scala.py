"""The order in which Scala 2.11 and 2.12 walk through a set of numbers.

Some of Kafka's results depend on it: the replica list that the legacy reassignment writes is a set made into a list.
Up to four elements keep the order in which they were added; from five on it is that of a hash trie.
Scala 2.12: collection/immutable/HashSet.scala, improve
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


def _trie_path(number: int) -> tuple[int, ...]:
    """The branches from the root of the trie to this number: five bits of its hash a level, the lowest first."""
    h = number & MASK
    h = (h + ~(h << 9)) & MASK
    h ^= h >> 14
    h = (h + (h << 4)) & MASK
    h ^= h >> 10
    return tuple(h >> shift & 31 for shift in range(0, 35, 5))
