"""Copies that move from one log directory of a broker to the other (KIP-113).

    wanted      an administrator names the directory; the process remembers it for a copy that does not exist yet
    copying     a future copy in that directory follows the present one, as a follower follows its leader
    swapped     it has caught up and takes its place

Future copies outlive the process; what was wanted of copies that are not there yet does not. A broker has as many
threads that copy as log directories (`num.replica.alter.log.dirs.threads`). A thread copies one partition at a time,
and nothing while the broker's rate is above `replica.alter.log.dirs.io.max.bytes.per.second`.
Kafka 2.0.1: server/ReplicaManager.scala, alterReplicaLogDirs; log/LogManager.scala, maybeUpdatePreferredLogDir;
server/ReplicaAlterLogDirsManager.scala; server/ReplicaAlterLogDirsThread.scala; cluster/Partition.scala,
maybeReplaceCurrentWithFutureReplica
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_ctl.brokers.disk import DIRECTORIES, PATHS
from kafka_ctl.brokers.fetches import FETCH_BACKOFF, first_bytes
from kafka_ctl.brokers.log import bytes_of
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.requests import STORAGE_ERROR, UNKNOWN_PARTITION, LogDirDescription
from kafka_ctl.scala_order import fetcher_id
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE

LOG_DIR_NOT_FOUND, REPLICA_NOT_AVAILABLE = "LOG_DIR_NOT_FOUND", "REPLICA_NOT_AVAILABLE"


class HeldCopy(NamedTuple):
    """A copy in a log directory: its bytes, and the offsets that it lacks (-1 where the broker does not use it)."""

    partition: TopicPartition
    size: int
    lag: int
    is_future: bool


class LogDirs:
    """The directories of one broker process's copies."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.preferred: dict[TopicPartition, str] = {}
        """The directory in which a copy is to be made."""
        self._threads: dict[int, ReplicaAlterLogDirsThread] = {}

    def alter(self, dirs: Mapping[TopicPartition, str]) -> dict[TopicPartition, str | None]:
        """Bring copies into these directories; the error of each, or None where it lies there or is on its way."""
        return {tp: self._alter(tp, path) for tp, path in dirs.items()}

    def _alter(self, tp: TopicPartition, path: str) -> str | None:
        process, disk = self.process, self.process.disk
        held, moves, error = tp in process.hosted, False, None
        if path not in PATHS:
            error = LOG_DIR_NOT_FOUND
        elif tp in process.offline or disk.failed & {PATHS.index(path), disk.places.get(tp)}:
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
        """The error for a copy that is not here and so cannot be moved.

        Kafka 2.0.1: server/ReplicaManager.scala, getReplicaOrException; 2.4.1: getPartitionOrException
        """
        unknown = tp not in self.process.metadata
        distinguishes = self.process.generation.log_dirs.distinguishes_unknown_partitions
        return UNKNOWN_PARTITION if unknown and distinguishes else REPLICA_NOT_AVAILABLE

    def describe(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogDirDescription]:
        """The directories of these copies, as far as they can be read."""
        disk = self.process.disk
        return {
            tp: LogDirDescription(disk.readable(disk.places, tp), disk.readable(disk.futures, tp)) for tp in partitions
        }

    def directories(self, partitions: Iterable[TopicPartition] | None) -> dict[str, list[HeldCopy] | None]:
        """By log directory the copies of these partitions, or of all; None for a directory that has failed.

        Kafka 2.0.1: server/ReplicaManager.scala, describeLogDirs, getLogEndOffsetLag
        """
        disk, wanted = self.process.disk, None if partitions is None else set(partitions)
        held = sorted(
            (tp, is_future, place)
            for is_future, places in ((False, disk.places), (True, disk.futures))
            for tp, place in places.items()
            if wanted is None or tp in wanted
        )
        return {
            path: None if number in disk.failed else [self._held(tp, future) for tp, future, at in held if at == number]
            for number, path in enumerate(PATHS)
        }

    def _held(self, tp: TopicPartition, is_future: bool) -> HeldCopy:
        log = self.process.disk.logs.get(tp)
        end = 0 if log is None else log.future_end if is_future else log.end
        lag = 0 if log is None else log.end - end if is_future else max(log.high_watermark - end, 0)
        size = 0 if log is None else bytes_of(log.entries[:end])
        return HeldCopy(tp, size, lag if tp in self.process.hosted else -1, is_future)

    # Questions of the replica manager

    def prefers_failed(self, tp: TopicPartition) -> bool:
        """True if a copy is to be made in a directory that has failed since."""
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
        for thread in self._threads.values():
            thread.remove(tp)

    def end(self) -> None:
        """The process stops: no future copy is filled further."""
        for tp in [tp for thread in self._threads.values() for tp in thread.ready]:
            self.stop(tp)

    def stop_where_failed(self) -> None:
        """A directory failed: nothing is copied from it or to it any more."""
        disk = self.process.disk
        for tp in [tp for thread in self._threads.values() for tp in thread.ready]:
            if disk.places[tp] in disk.failed or disk.futures[tp] in disk.failed:
                self.stop(tp)

    def _copy(self, tp: TopicPartition) -> None:
        path = PATHS[self.process.disk.futures[tp]]
        token = CAUSE.set(self.process.record("log-dir-copying", tp, detail=details.write(path=path)))
        number = fetcher_id(tp, DIRECTORIES)
        if number not in self._threads:
            self._threads[number] = ReplicaAlterLogDirsThread(self.process)
        self._threads[number].add(tp)
        CAUSE.reset(token)


class ReplicaAlterLogDirsThread:
    """Fills future copies of some partitions, one at a time, from the copies in the other directory.

    Relation that holds: `ready`, `_causes` have the same keys, and the task runs while there are any.
    Kafka 2.0.1, 2.4.1: server/ReplicaAlterLogDirsThread.scala, processPartitionData; 2.0.1: buildFetchRequest; 2.4.1:
    buildFetch, selectPartitionToFetch; server/AbstractFetcherThread.scala, doWork
    """

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.ready: dict[TopicPartition, float] = {}
        """The partitions, and when each has been compared with its future copy: before that nothing is copied."""
        self._causes: dict[TopicPartition, int | None] = {}
        self._current: TopicPartition | None = None
        self._task: asyncio.Task | None = None

    def add(self, tp: TopicPartition) -> None:
        """Fill one more future copy. The first fetch needs the time of a follower that comes back."""
        self.ready[tp] = self.process.clock.now() + self.process.costs.catch_up
        self._causes[tp] = CAUSE.get()
        if self._task is None:
            self._task = self.process.spawn(self._run())

    def remove(self, tp: TopicPartition) -> None:
        """Fill this future copy no further; harmless where it is not being filled."""
        if self.ready.pop(tp, None) is None:
            return
        del self._causes[tp]
        if not self.ready and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        clock, quota = self.process.clock, self.process.quotas.alter_log_dirs
        while self.ready:
            now = clock.now()
            able = [tp for tp, at in self.ready.items() if at <= now]
            if not able:
                await clock.sleep(min(self.ready.values()) - now)
            elif quota.is_exceeded:
                await clock.sleep(FETCH_BACKOFF)
            else:
                await self._fetch(self._select(able))
        self._task = None

    def _select(self, able: list[TopicPartition]) -> TopicPartition:
        """The next partition: in 2.0 the last by name and number, in 2.4 the first, and the same until it is done."""
        if not self.process.generation.log_dirs.moves_in_ascending_order:
            return max(able)
        if self._current not in able:
            self._current = min(able)
        return self._current

    async def _fetch(self, tp: TopicPartition) -> None:
        """Copy what one fetch brings; the future copy that has all takes its place."""
        process, disk = self.process, self.process.disk
        log = disk.logs.get(tp)
        start = log.future_end if log is not None else 0
        entries = first_bytes(log.entries[start:]) if log is not None else []
        size = bytes_of(entries)
        if size:
            await process.clock.sleep(size * process.costs.byte)
            if tp not in self.ready or (log is not None and log.future_end != start):
                return  # removed or truncated while the fetch was under way
        if log is not None:
            log.future_end = min(start + len(entries), log.end)
        if log is None or log.future_end == log.end:
            CAUSE.set(self._causes[tp])
            del self.ready[tp], self._causes[tp]
            disk.swap(tp)
            process.record("log-dir-swapped", tp, detail=details.write(path=PATHS[disk.places[tp]]))
        process.quotas.alter_log_dirs.count(size)
