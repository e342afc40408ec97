"""Record stories with transactions: `python -m tools.recorder.record_transactions --generation 2.0`.

Real brokers answer the requests of `transactions.py`. Writes `transactions/<generation>/<story>.txt`, and is the only
program that does. Each story is played twice (`--times`), on clusters of its own; where two plays differ nothing is
written.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from functools import partial

from tests.conformance import transaction_stories as transactions
from tools.recorder.cluster import Cluster, wait
from tools.recorder.release import RELEASES, Release

STATE = "__transaction_state"
"""The topic in which coordinators keep transactions; broker 1 has its only partition, so that it coordinates all."""
CONFIG = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "zookeeper.session.timeout.ms": 18_000,
}
"""Sessions are long, so that no broker loses its own on a busy machine."""


class Real:
    """The brokers of real Kafka."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.brokers: Sequence[int] = sorted(cluster.brokers)
        self.bootstrap_servers = cluster.bootstrap

    def kill(self, broker: int) -> None:
        self.cluster.brokers[broker].end(signal.SIGKILL)

    def start(self, broker: int) -> None:
        self.cluster.start(broker)

    def state(self, partition: int) -> tuple[int, int]:
        data = self.cluster.read(f"/brokers/topics/{transactions.TOPIC}/partitions/{partition}/state")
        found = json.loads(data or b'{"leader":-1,"isr":[]}')
        return found["leader"], len(found["isr"])

    def files(self, broker: int, partition: int) -> bytes:
        folder = self.cluster.brokers[broker].directories[0] / f"{transactions.TOPIC}-{partition}"
        return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def record(release: Release, story: str) -> list[str]:
    """The outcome of a story on a new cluster."""
    with Cluster(release, [1, 2, 3], transactions.CONFIG | CONFIG, records=True) as cluster:
        for id in cluster.brokers:
            cluster.start(id)
        for topic, assignment in ((STATE, {0: (1,)}), (transactions.TOPIC, transactions.ASSIGNMENT)):
            data = {"version": 1, "partitions": {str(number): ids for number, ids in assignment.items()}}
            cluster.zk.create(f"/brokers/topics/{topic}", json.dumps(data).encode())
            last = f"/brokers/topics/{topic}/partitions/{max(assignment)}/state"
            wait(partial(cluster.zk.exists, last), f"leaders of {topic}")
        return transactions.played(story, Real(cluster))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.record_transactions", description=__doc__)
    parser.add_argument("--generation", choices=transactions.GENERATIONS, required=True)
    parser.add_argument("--times", type=int, default=2, help="so many plays that must be equal")
    parser.add_argument("story", nargs="*", choices=[[], *transactions.STORIES], help="all of them without any")
    given = parser.parse_args(arguments)
    release = RELEASES[given.generation]
    for story in given.story or transactions.STORIES:
        once, *others = (record(release, story) for _ in range(given.times))
        for again in others:
            if again != once:
                print(*once, "", *again, sep="\n", file=sys.stderr)
                raise SystemExit(f"{story}: two plays differ; nothing is written")
        target = transactions.path(given.generation, story)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(transactions.text(release.kafka, story, once), encoding="utf-8")
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
