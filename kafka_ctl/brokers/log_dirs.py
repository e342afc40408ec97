"""Copies that move from one log directory of a broker to the other (KIP-113).

    wanted      an administrator names the directory; of a copy that is not there yet it is remembered
    copying     a future copy in that directory follows the present one, as a follower follows its leader
    swapped     it has caught up and takes its place

Future copies outlive the process; what was wanted of copies that are not there yet does not.
Kafka 2.0.1: server/ReplicaManager.scala, alterReplicaLogDirs; log/LogManager.scala, maybeUpdatePreferredLogDir;
server/ReplicaAlterLogDirsThread.scala
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_ctl.brokers.disk import PATHS, STORAGE_ERROR
from kafka_ctl.brokers.requests import Located
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.trace.record import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

LOG_DIR_NOT_FOUND, REPLICA_NOT_AVAILABLE = "LOG_DIR_NOT_FOUND", "REPLICA_NOT_AVAILABLE"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"


class LogDirs:
    """Where the copies of one broker process are to lie."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._preferred: dict[TopicPartition, str] = {}
        """The directory in which a copy is to be made."""
        self._copying: dict[TopicPartition, asyncio.Task] = {}

    def alter(self, dirs: Mapping[TopicPartition, str]) -> dict[TopicPartition, str | None]:
        """Bring copies into these directories; the error of each, or None where it lies there or is on its way."""
        return {tp: self._alter(tp, path) for tp, path in dirs.items()}

    def _alter(self, tp: TopicPartition, path: str) -> str | None:
        broker, disk = self.broker, self.broker.disk
        held, moves, error = tp in broker.replicas.hosted, False, None
        if path not in PATHS:
            error = LOG_DIR_NOT_FOUND
        elif disk.failed & {PATHS.index(path), disk.places.get(tp)}:
            error = STORAGE_ERROR
        else:
            if held and disk.readable(disk.futures, tp) not in (None, path):
                self.stop(tp)
                disk.drop_future(tp)
            moves = path not in (disk.readable(disk.places, tp), disk.readable(disk.futures, tp))
            if not held:
                error = self._absent(tp)
                if moves:
                    self._preferred[tp] = path
        broker.record("log-dir-wanted", tp, error=error, detail=f"path={path}")
        if held and moves:
            self._preferred.pop(tp, None)
            disk.begin_move(tp, path)
            self._copy(tp)
        return error

    def _absent(self, tp: TopicPartition) -> str:
        """Why a copy that is not here cannot be moved; 2.4 tells whether the partition exists."""
        knows = tp in self.broker.replicas.metadata or not self.broker.world.generation.incremental_reassignment
        return REPLICA_NOT_AVAILABLE if knows else UNKNOWN_TOPIC_OR_PARTITION

    def describe(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Located]:
        """Where these copies lie, as far as the directories can be read."""
        disk = self.broker.disk
        return {tp: Located(disk.readable(disk.places, tp), disk.readable(disk.futures, tp)) for tp in partitions}

    # What the replica manager asks

    def prefers_failed(self, tp: TopicPartition) -> bool:
        """Whether a copy is to be made in a directory that has failed since."""
        path = self._preferred.get(tp)
        return path is not None and tp not in self.broker.disk.places and PATHS.index(path) in self.broker.disk.failed

    def for_new(self, tp: TopicPartition) -> str | None:
        """The directory in which a copy that is not there yet is to be made; it is asked once."""
        return None if tp in self.broker.disk.places else self._preferred.pop(tp, None)

    def go_on(self, tp: TopicPartition) -> None:
        """The process has taken up a partition: a future copy that an earlier one left is filled further."""
        if self.broker.disk.readable(self.broker.disk.futures, tp) is not None:
            self._copy(tp)

    def stop(self, tp: TopicPartition) -> None:
        """Fill the future copy no further."""
        task = self._copying.pop(tp, None)
        if task is not None:
            task.cancel()

    def stop_where_failed(self) -> None:
        """A directory failed: nothing is copied from it or to it any more."""
        disk = self.broker.disk
        for tp in list(self._copying):
            if disk.places[tp] in disk.failed or disk.futures[tp] in disk.failed:
                self.stop(tp)

    def _copy(self, tp: TopicPartition) -> None:
        path = PATHS[self.broker.disk.futures[tp]]
        token = CAUSE.set(self.broker.record("log-dir-copying", tp, detail=f"path={path}"))
        self._copying[tp] = self.broker.spawn(self._fill(tp, path))
        CAUSE.reset(token)

    async def _fill(self, tp: TopicPartition, path: str) -> None:
        """The future copy needs the time of a follower that comes back."""
        await self.broker.clock.sleep(self.broker.costs.catch_up)
        del self._copying[tp]
        self.broker.disk.swap(tp)
        self.broker.record("log-dir-swapped", tp, detail=f"path={path}")
