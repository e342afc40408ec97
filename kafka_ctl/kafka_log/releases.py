"""The releases of Kafka that can have written a line, by texts that only some of them print.

A text and the oldest and newest release that may print it, from Kafka's source at each release's tag; the tests hold
them against the table of all log statements in `tests/data/statements`.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

FORMATS: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = (
    ("Controller ", (0, 8), (0, 11)),
    ("Broker ", (0, 8), (0, 11)),
    ("[Controller id=", (1, 0), (3, 9)),
    ("[Broker id=", (1, 0), (3, 9)),
    (" NotExists", (0, 8), (0, 8)),
    (") with correlationId ", (0, 8), (0, 8)),
    ("Listener on ", (0, 8), (0, 10)),
    ("send-thread], ", (0, 8), (0, 10)),
    ("starting the partition rebalance scheduler", (0, 8), (0, 10)),
    (" partition [", (0, 8), (0, 11)),
    ("New topic creation callback", (0, 8), (1, 0)),
    (" deletion callback for ", (0, 8), (2, 4)),
    ("broker Node(", (0, 9), (0, 9)),
    (" rack: ", (0, 10), (3, 9)),
    (" PartitionState(", (0, 10), (2, 3)),
    (" is not higher than ", (0, 10), (2, 2)),
    ("-event-thread]: ", (0, 11), (1, 0)),
    ("StateMachine controllerId=", (1, 0), (3, 9)),
    ("Starting become controller state transition", (1, 0), (1, 0)),
    ("Thread controllerId=", (1, 1), (3, 9)),
    ("Initializing controller context", (1, 1), (3, 9)),
    ("Reading controller epoch from ZooKeeper", (1, 1), (2, 0)),
    ("with state LeaderAndIsr(", (1, 1), (3, 9)),
    ("), zkVersion=", (1, 1), (3, 1)),
    (" for request ", (1, 1), (3, 9)),
    ("Leader is still ", (2, 0), (3, 9)),
    ("epoch zk version is now", (2, 1), (3, 9)),
    ("bounced brokers", (2, 2), (3, 9)),
    ("broker epochs cache", (2, 2), (3, 9)),
    ("kafka.controller.Zk", (2, 3), (3, 9)),
    ("Triggering offline replica state changes", (2, 3), (3, 9)),
    ("PartitionState(topicName=", (2, 4), (3, 9)),
    (" replica leader election (", (2, 4), (3, 9)),
    (" become-leader and ", (2, 6), (3, 9)),
    (" starts at leader epoch ", (2, 6), (3, 9)),
    (" addingReplicas [", (2, 6), (3, 2)),
    ("Finished LeaderAndIsr request in ", (2, 7), (3, 9)),
    ("org.apache.kafka.controller", (2, 8), (3, 9)),
    (" with topic id ", (3, 0), (3, 9)),
    ("LeaderRecoveryState:", (3, 2), (3, 9)),
    ("leaderRecoveryState=RECOVERED, zkVersion=", (3, 2), (3, 2)),
    ("], partitionEpoch=", (3, 3), (3, 9)),
    (" with partition epoch ", (3, 3), (3, 9)),
    ("isrWithBrokerEpoch=", (3, 5), (3, 9)),
    ("[QuorumController id=", (3, 5), (3, 9)),
    (" and previous leader epoch was ", (3, 6), (3, 9)),
)
AT_START = 4
"""So many of them begin a message."""


def releases_with(text: str, seen: int = 0) -> int:
    """Those of `FORMATS` that a line shows, as bits; only those that narrow the release down beyond `seen`."""
    bits = 0
    begins, holds = _distinguishing(seen)
    for bit, sign in begins:
        if text.startswith(sign):
            bits |= bit
    for bit, sign in holds:
        if sign in text:
            bits |= bit
    return bits


Signs: TypeAlias = tuple[tuple[int, str], ...]


@functools.lru_cache(maxsize=256)
def _distinguishing(seen: int) -> tuple[Signs, Signs]:
    """The formats to look for, at the beginning and anywhere: some release that is still possible lacks them."""
    oldest, newest = _possible(seen)
    signs = [(1 << n, sign) for n, (sign, old, new) in enumerate(FORMATS) if not (old <= oldest <= newest <= new)]
    return tuple(s for s in signs if not s[0] >> AT_START), tuple(s for s in signs if s[0] >> AT_START)


def _possible(bits: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The oldest and newest release that write all of these formats."""
    spans = [(old, new) for n, (_, old, new) in enumerate(FORMATS) if bits >> n & 1]
    return max((old for old, _ in spans), default=(0, 0)), min((new for _, new in spans), default=(9, 9))


def release(bits: int) -> str:
    """The releases of Kafka that write all of these formats, as `2.1 to 2.3`, `2.6 or newer` or `0.11 or older`."""
    if not bits:
        return "unknown"
    oldest, newest = _possible(bits)
    low, high = (".".join(map(str, release)) for release in (oldest, newest))
    if oldest > newest:
        return f"several: {high} or older, and {low} or newer"
    if newest == (3, 9):
        return f"{low} or newer"
    if oldest == newest:
        return low
    return f"{high} or older" if oldest == (0, 8) else f"{low} to {high}"
