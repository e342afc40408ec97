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

from kafka_ctl.brokers.disk import PATHS, STORAGE_ERROR
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.requests import LogDirDescription
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

LOG_DIR_NOT_FOUND, REPLICA_NOT_AVAILABLE = "LOG_DIR_NOT_FOUND", "REPLICA_NOT_AVAILABLE"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"


class LogDirs:
    """Where the copies of one broker process are to lie."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.preferred: dict[TopicPartition, str] = {}
        """The directory in which a copy is to be made."""
        self._copying: dict[TopicPartition, asyncio.Task] = {}

    def alter(self, dirs: Mapping[TopicPartition, str]) -> dict[TopicPartition, str | None]:
        """Bring copies into these directories; the error of each, or None where it lies there or is on its way."""
        return {tp: self._alter(tp, path) for tp, path in dirs.items()}

    def _alter(self, tp: TopicPartition, path: str) -> str | None:
        process, disk = self.process, self.process.disk
        held, moves, error = tp in process.hosted, False, None
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
                    self.preferred[tp] = path
        process.record("log-dir-wanted", tp, error=error, detail=details.write(path=path))
        if held and moves:
            self.preferred.pop(tp, None)
            disk.begin_move(tp, path)
            self._copy(tp)
        return error

    def _absent(self, tp: TopicPartition) -> str:
        """Why a copy that is not here cannot be moved.

        Kafka 2.0.1: server/ReplicaManager.scala, getReplicaOrException; 2.4.1: getPartitionOrException
        """
        unknown = tp not in self.process.metadata
        distinguishes = self.process.generation.log_dirs.distinguishes_unknown_partitions
        return UNKNOWN_TOPIC_OR_PARTITION if unknown and distinguishes else REPLICA_NOT_AVAILABLE

    def describe(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogDirDescription]:
        """Where these copies lie, as far as the directories can be read."""
        disk = self.process.disk
        return {
            tp: LogDirDescription(disk.readable(disk.places, tp), disk.readable(disk.futures, tp)) for tp in partitions
        }

    # What the replica manager asks

    def prefers_failed(self, tp: TopicPartition) -> bool:
        """Whether a copy is to be made in a directory that has failed since."""
        path = self.preferred.get(tp)
        return path is not None and tp not in self.process.disk.places and PATHS.index(path) in self.process.disk.failed

    def for_new(self, tp: TopicPartition) -> str | None:
        """The directory in which a copy that is not there yet is to be made; it is asked once."""
        return None if tp in self.process.disk.places else self.preferred.pop(tp, None)

    def resume(self, tp: TopicPartition) -> None:
        """The process has taken up a partition: a future copy that an earlier one left is filled further."""
        if self.process.disk.readable(self.process.disk.futures, tp) is not None:
            self._copy(tp)

    def stop(self, tp: TopicPartition) -> None:
        """Fill the future copy no further."""
        task = self._copying.pop(tp, None)
        if task is not None:
            task.cancel()

    def stop_where_failed(self) -> None:
        """A directory failed: nothing is copied from it or to it any more."""
        disk = self.process.disk
        for tp in list(self._copying):
            if disk.places[tp] in disk.failed or disk.futures[tp] in disk.failed:
                self.stop(tp)

    def _copy(self, tp: TopicPartition) -> None:
        path = PATHS[self.process.disk.futures[tp]]
        token = CAUSE.set(self.process.record("log-dir-copying", tp, detail=details.write(path=path)))
        self._copying[tp] = self.process.spawn(self._fill(tp, path))
        CAUSE.reset(token)

    async def _fill(self, tp: TopicPartition, path: str) -> None:
        """The future copy needs the time of a follower that comes back."""
        await self.process.clock.sleep(self.process.costs.catch_up)
        del self._copying[tp]
        self.process.disk.swap(tp)
        self.process.record("log-dir-swapped", tp, detail=details.write(path=path))
