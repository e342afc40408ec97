"""Record how brokers stop: `python -m tools.recorder.record_stops --generation 2.0`.

Real brokers are stopped with SIGTERM while clients run, with a controlled shutdown and without one, several times each
(`stops.py`). Writes `stops/<generation>.txt`, and is the only program that does. Where two stops differ in the order of
events nothing is written.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tools.recorder import stops, wire
from tools.recorder.cluster import Cluster, wait
from tools.recorder.release import RELEASES, Release

TIMES = 3
CONFIG = {"auto.leader.rebalance.enable": False}


def stopped(cluster: Cluster) -> stops.Stops:
    """Stop the leader once, and start it again."""
    led = f"/brokers/topics/{stops.TOPIC}/partitions/0/state"
    old = wire.metadata(cluster.port(1)).partitions.get((stops.TOPIC, 0), (-1, ()))[0]
    ports = {id: cluster.port(id) for id in cluster.brokers}
    times: dict[str, float] = {}

    @cluster.zk.DataWatch(led)
    def elected(data: bytes | None, _: object) -> bool:
        if data is not None and f'"leader":{old},' not in data.decode():
            times.setdefault(stops.LEADER, time.monotonic())
        return stops.LEADER not in times

    @cluster.zk.DataWatch(f"/brokers/ids/{old}")
    def registered(data: bytes | None, _: object) -> bool:
        if data is None:
            times.setdefault(stops.GONE, time.monotonic())
        return data is not None

    asked = cluster.config["controlled.shutdown.enable"]
    seen = stops.stop(ports, old, asked, lambda: cluster.brokers[old].send(signal.SIGTERM), lambda: dict(times))
    cluster.brokers[old].end(signal.SIGTERM)
    cluster.start(old)
    _in_sync(cluster)
    return seen


def _in_sync(cluster: Cluster) -> None:
    """Wait until every broker knows both replicas to be in sync."""

    def holds() -> bool:
        try:
            found = [wire.metadata(cluster.port(id)).partitions.get((stops.TOPIC, 0)) for id in cluster.brokers]
        except ConnectionError:
            return False
        return all(each is not None and each[0] >= 0 and len(each[1]) == 2 for each in found)

    wait(holds, "both replicas to be in sync")


def record(release: Release, asked: bool, times: int) -> stops.Stops:
    """So many stops of one kind on a new cluster."""
    with Cluster(
        release, [1, *stops.REPLICAS], CONFIG | {"controlled.shutdown.enable": asked}, records=True
    ) as cluster:
        for id in cluster.brokers:
            cluster.start(id)
        replicas = ":".join(map(str, stops.REPLICAS))
        address = ("--zookeeper", cluster.zookeeper.address)
        topic = ("--create", "--topic", stops.TOPIC, "--replica-assignment", replicas)
        cluster.tool("kafka.admin.TopicCommand", *address, *topic)
        _in_sync(cluster)
        seen = []
        for _ in range(times):
            seen.append(stopped(cluster))
            print(asked, seen[-1], flush=True)
        return stops.together(seen)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.record_stops", description=__doc__)
    parser.add_argument("--generation", choices=RELEASES, required=True)
    parser.add_argument("--times", type=int, default=TIMES)
    given = parser.parse_args(arguments)
    release = RELEASES[given.generation]
    ways = {asked: record(release, asked, given.times) for asked in (True, False)}
    target = stops.path(given.generation)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(stops.text(release.kafka, ways, given.times), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
