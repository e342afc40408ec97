"""The assignment of replicas of a new topic or of new partitions: spread evenly, racks kept apart.

First replicas, the preferred leaders, go around the brokers one by one. The followers of a partition stand
at a distance from its leader, and that distance grows by one with every round, so that the load of a dead
broker falls on many others. Five brokers, three replicas, start 0:

    partition   0      1      2      3      4      5      6      7      8      9
    replicas    0,1,2  1,2,3  2,3,4  3,4,0  4,0,1  0,2,3  1,3,4  2,4,0  3,0,1  4,1,2

With racks the brokers are first put in a row that alternates racks, and a follower skips brokers of racks
that have a replica already, as long as some rack has none.

Kafka 0.10.2.2: admin/AdminUtils.scala, assignReplicasToBrokers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, zip_longest
from random import Random

from kafka_ctl.cluster import broker_ids, whole
from kafka_ctl.errors import ApiException, BadInput, short

MOST = 200_000
"""The most partitions a topic can be asked to have: as many as Kafka's developers advised for a whole cluster."""


def assign(
    brokers: Iterable[int],
    partitions: int,
    replication_factor: int,
    start: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
    racks: Mapping[int, str | None] | None = None,
    *,
    rng: Random | None = None,
) -> dict[int, list[int]]:
    """The replicas of `partitions` new partitions, numbered from `first_partition`: `{partition: [ids]}`.

    `start` is the place in the row of brokers, ascending by id, where partition 0 would go, and `shift` the
    first distance of followers, `start` again if not given. Kafka draws both; here `rng` draws them if it is
    given, and without it they are 0, so that equal calls have equal results. `racks` gives the rack of every
    broker, or of none. Raises BadInput, in Kafka's words, for counts below 1, too few brokers, and racks that
    only some brokers have; in ours for an id that is given twice, more partitions than `MOST`, and what has another
    form.
    """
    ids = _ids(brokers)
    _whole(partitions=partitions, replication_factor=replication_factor, first_partition=first_partition)
    _whole(start=0 if start is None else start, shift=0 if shift is None else shift)
    _check(ids, partitions, replication_factor)
    rack_of = _racks(ids, racks)
    if start is None:
        start = rng.randrange(len(ids)) if rng else 0
        if shift is None and rng:
            shift = rng.randrange(len(ids))
    if shift is None:
        shift = start
    row = alternating(ids, rack_of) if rack_of else ids
    result = {}
    first_partition = max(0, first_partition)
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(row) == 0:
            shift += 1
        first = (partition + start) % len(row)
        result[partition] = _replicas(row, first, shift, replication_factor, rack_of)
    return result


def add_partitions(
    existing: Mapping[int, Sequence[int]],
    total: int,
    brokers: Iterable[int],
    racks: Mapping[int, str | None] | None = None,
) -> dict[int, list[int]]:
    """The replicas of the partitions that a topic needs to have `total` of them; only the new ones.

    They continue the pattern from partition 0: its leader, or the next higher live broker, is the start, and
    its replicas give the replication factor. Raises BadInput if `total` is not an increase.
    Kafka 0.10.2.2: admin/AdminUtils.scala, addPartitions
    """
    _whole(total=total)
    if not isinstance(existing, Mapping):
        raise BadInput(f"existing cannot be {short(existing)}; it must be a mapping, {{...}}")
    if 0 not in existing:
        raise BadInput("the topic does not have partition with id 0; new partitions continue its pattern")
    if total <= len(existing):
        raise BadInput(
            f"The number of partitions for a topic can only be increased: {total} asked, {len(existing)} are there"
        )
    ids = _ids(brokers)
    first = broker_ids("the replicas of partition 0", existing[0])
    start = next((place for place, broker in enumerate(ids) if broker >= min(first[:1], default=0)), 0)
    return assign(ids, total - len(existing), len(first), start=start, first_partition=len(existing), racks=racks)


def _ids(brokers: Iterable[int]) -> list[int]:
    """The brokers by id. Raises BadInput where one is given twice, or is no whole number."""
    ids = list(broker_ids("brokers", brokers))
    if odd := [id for id in ids if whole(id) is None]:
        raise BadInput(f"a broker id cannot be {short(odd[0])}; it must be a whole number")
    ids = sorted(map(int, ids))
    if len(set(ids)) < len(ids):
        raise BadInput(f"brokers={short(ids)}: an id is given twice")
    return ids


def _whole(**given: object) -> None:
    for what, value in given.items():
        if whole(value) is None:
            raise BadInput(f"{what} cannot be {short(value)}; it must be a whole number")


def _check(ids: list[int], partitions: int, replication_factor: int) -> None:
    if partitions <= 0:
        raise ApiException("INVALID_PARTITIONS", f"number of partitions must be larger than 0; {partitions} asked")
    if partitions > MOST:
        raise BadInput(f"the number of partitions cannot be {short(partitions)}; it must be {MOST} or less")
    if replication_factor <= 0:
        text = f"replication factor must be larger than 0; {replication_factor} asked"
        raise ApiException("INVALID_REPLICATION_FACTOR", text)
    if replication_factor > len(ids):
        text = f"replication factor: {replication_factor} larger than available brokers: {len(ids)}"
        raise ApiException("INVALID_REPLICATION_FACTOR", text)


def _racks(ids: list[int], racks: Mapping[int, str | None] | None) -> dict[int, str]:
    """The rack of every broker; empty when no broker has one."""
    if racks is not None and not isinstance(racks, Mapping):
        raise BadInput(f"racks cannot be {short(racks)}; it must be a mapping, {{...}}")
    known = {broker: rack for broker in ids if (rack := (racks or {}).get(broker)) is not None}
    if odd := [rack for rack in known.values() if not isinstance(rack, str)]:
        raise BadInput(f"a rack cannot be {short(odd[0])}; a rack is a name or None")
    if known and len(known) < len(ids):
        missing = ", ".join(str(broker) for broker in ids if broker not in known)
        raise BadInput(f"Not all brokers have rack information for replica rack aware assignment; none for {missing}")
    return known


def alternating(ids: list[int], rack_of: Mapping[int, str]) -> list[int]:
    """The brokers in a row that takes one from each rack in turn; racks by name, brokers by id.

    Kafka 0.10.2.2: admin/AdminUtils.scala, getRackAlternatedBrokerList
    """
    by_rack = [[b for b in ids if rack_of[b] == rack] for rack in sorted(set(rack_of.values()))]
    return [broker for broker in chain.from_iterable(zip_longest(*by_rack)) if broker is not None]


def _replicas(row: list[int], first: int, shift: int, wanted: int, rack_of: Mapping[int, str]) -> list[int]:
    """The broker at place `first` of the row and its followers."""
    replicas = [row[first]]
    racks = set(rack_of.values())
    distance = shift * (len(racks) or 1)
    used = {rack_of.get(row[first])}
    for step in count():
        if len(replicas) == wanted:
            break
        broker = row[(first + 1 + (distance + step) % (len(row) - 1)) % len(row)]
        rack = rack_of.get(broker)
        if broker not in replicas and (rack not in used or len(used) == max(1, len(racks))):
            replicas.append(broker)
            used.add(rack)
    return replicas
