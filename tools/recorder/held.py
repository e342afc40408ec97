"""The state of the brokers of a real cluster, beside that which their controller sends, in the words of `truth.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tests.conformance.truth import Holding, cached, content, fetches
from tools.recorder import wire
from tools.recorder.cluster import Cluster, Process


def of_cluster(
    kinds: Iterable[str],
    cluster: Cluster,
    produced: Iterable[tuple[str, int]],
    steady: Iterable[int],
    following: Mapping[int, Mapping[tuple[str, int], int]],
) -> Holding:
    """The state of the brokers of a real cluster; caches and fetchers of those that neither stand still nor leave."""
    found: Holding = {}
    if "records" in kinds:
        found |= logs(cluster, produced)
        for tp in produced:
            found["read", *tp] = _read(cluster, tp, steady)
    if "log_dirs" in kinds:
        for id, broker in cluster.brokers.items():
            found |= _copies(id, broker)
    for id in steady:
        if "fetchers" in kinds:
            found["fetches", id] = fetches(following.get(id, {}))
        if "metadata" in kinds:
            known = wire.metadata(cluster.port(id))
            found |= cached(id, known.brokers, known.partitions)
    return found


def logs(cluster: Cluster, produced: Iterable[tuple[str, int]]) -> Holding:
    """The logs of these partitions' replicas, as their files are, also of brokers that are down."""
    found: Holding = {}
    for id, broker in cluster.brokers.items():
        for directory in map(broker.content, broker.directories):
            marks = wire.high_watermarks(directory)
            for topic, number in produced:
                records = wire.log(directory / f"{topic}-{number}")
                if records:
                    found["log", topic, number, id] = content(records, marks.get((topic, number), 0))
    return found


def _read(cluster: Cluster, tp: tuple[str, int], steady: Iterable[int]) -> str:
    for id in steady:
        leader, _ = wire.metadata(cluster.port(id)).partitions.get(tp, (-1, ()))
        if leader < 0:
            return "LEADER_NOT_AVAILABLE"
        if leader not in cluster.up:
            return "nobody answers"
        read = wire.consume(cluster.port(leader), *tp)
        return read if isinstance(read, str) else " ".join(read) or "nothing"
    return "nobody answers"


def _copies(id: int, broker: Process) -> Holding:
    """`/d0`, with the directory of a future copy if it moves; `failed` where the directory has failed."""
    found: Holding = {}
    for number, directory in enumerate(broker.directories):
        for path in sorted(broker.content(directory).glob("*-*")):
            if copy := re.fullmatch(r"(.+?)-(\d+)(\.\w+-future)?", path.name):
                future = " future" if copy[3] else ""
                place = f"/d{number}{future}" if directory not in broker.failed else "failed"
                key = ("copy", copy[1], int(copy[2]), id)
                found[key] = " ".join(sorted({*filter(None, [found.get(key)]), place}))
    return found
