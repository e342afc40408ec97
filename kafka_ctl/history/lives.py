"""Cluster lives: where ZooKeeper was wiped, the history of another cluster begins.

Kafka counts its controllers in `/controller_epoch`, and this number only rises. A controller that announces an epoch
which was announced before, or which is lower than all that are known, works for a cluster that was made again: its
topics, brokers and epochs share nothing with the old ones but their names. So no question looks beyond the life that a
record belongs to. An epoch between known ones comes late: the clock of its controller is ahead of the others.
Kafka 2.0.1: controller/KafkaController.scala, incrementControllerEpoch
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_ctl.trace.record import Record

ACTIONS = ("elected", "epoch_incremented")
"""The messages of a controller whose epoch begins. Before Kafka 2.1 an election comes first, and the epoch rises after
it (Kafka 0.10 names the winner in another log)."""
_EPOCH = re.compile(r'"epoch": ?(\d+)')


def elections(records: Iterable[Record]) -> Iterator[Record]:
    """The records in which a controller announces an election or its epoch."""
    return (record for record in records if record.kind == "controller" and record.action in ACTIONS)


def terms(messages: Iterable[Record]) -> list[tuple[Record, int | None]]:
    """The `ACTIONS` of a history, each with the epoch that it announces; None if another one announces it."""
    found = list(messages)
    apart = any(record.action == "epoch_incremented" for record in found)
    return [(record, announced(record, apart)) for record in found]


def announced(record: Record, apart: bool) -> int | None:
    """The epoch that one of the `ACTIONS` announces; `apart` if in this history another record than `elected` does."""
    if record.action == "epoch_incremented":
        return record.controller_epoch
    if (found := _EPOCH.search(record.detail or "")) is not None:
        return int(found[1])
    return None if apart else record.controller_epoch or None


def falls(epoch: int, known: Collection[int], lowest: float) -> bool:
    """True if an epoch after the announced ones, `known`, is that of a new cluster.

    `lowest` is the lowest epoch that a record before the first of them names; infinite if there is none.
    """
    return epoch in known or (bool(known) and epoch < min(*known, lowest))


def beginnings(records: Iterable[Record], lowest: float = math.inf) -> list[int]:
    """The `seq` of the first election of each new life; `records` are the `ACTIONS` of a history in order.

    `lowest` as with `falls`.
    """
    found: list[int] = []
    elected: dict[str, int] = {}
    known: set[int] = set()
    last_ms = -1.0
    for record, epoch in terms(records):
        if epoch is None:
            elected.setdefault(record.actor, record.seq)
        elif record.time_ms > last_ms:  # else the same line is there twice
            if falls(epoch, known, lowest):
                found.append(elected.get(record.actor, record.seq))
                known, lowest = set(), math.inf
            known.add(epoch)
            last_ms, elected = record.time_ms, {}
    return found


def begun(records: Sequence[Record]) -> set[int]:
    """The `seq` of the first election of each new life, of all records of a history."""
    before = takewhile(lambda record: record.kind != "controller" or record.action not in ACTIONS, records)
    lowest = min((record.controller_epoch for record in before if record.controller_epoch), default=math.inf)
    return set(beginnings(elections(records), lowest))
