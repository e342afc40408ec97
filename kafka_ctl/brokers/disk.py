"""A broker's disks: two log directories, which of them holds the copy of which partition, and whose they are.

A new copy goes where the fewest are; one that is to lie elsewhere gets a future copy there, which takes its place.
When a directory fails its copies cannot be read until the broker starts again; since 1.0 the broker goes on with the
other directory; before 1.0 it stops. A process that stops in good order flushes its logs and leaves the marker
`.kafka_cleanshutdown` in each directory; where the next process does not find it, it recovers the logs.
Kafka 2.0.1: log/LogManager.scala, nextLogDir, handleLogDirFailure, loadLogs, shutdown
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_ctl.brokers.identity import BrokerMetadata
from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition

DIRECTORIES = 2
PATHS = tuple(f"/d{number}" for number in range(DIRECTORIES))
"""The names of the directories."""


class Disk:
    """The data that outlives the processes of one broker."""

    def __init__(self) -> None:
        self.places: dict[TopicPartition, int] = {}
        """The directory of each copy."""
        self.futures: dict[TopicPartition, int] = {}
        """The directory of each future copy."""
        self.logs: dict[TopicPartition, Log] = {}
        """The records of each copy; none until a producer sends one."""
        self.failed: set[int] = set()
        self.meta: dict[str, BrokerMetadata | None] = dict.fromkeys(PATHS)
        """The `meta.properties` of each directory."""
        self._counts = [0] * DIRECTORIES
        self.clean: set[int] = set()
        """The directories with the marker `.kafka_cleanshutdown`."""
        self.is_open = False
        """True if a process has loaded the logs and not closed them."""

    @property
    def has_failed(self) -> bool:
        return len(self.failed) == DIRECTORIES

    def log(self, tp: TopicPartition) -> Log:
        """The records of a copy; an empty log is made where there is none."""
        return self.logs.setdefault(tp, Log())

    def mount(self) -> None:
        """A process starts: all directories can be read again."""
        self.failed.clear()
        self.is_open = False

    def unclean(self) -> list[tuple[int, int]]:
        """Of each directory without the marker: its copies, and the bytes that had not been flushed."""
        found = {number: [0, 0] for number in range(DIRECTORIES) if number not in self.clean}
        for tp, place in self.places.items():
            if place in found:
                found[place][0] += 1
                found[place][1] += self.logs[tp].unflushed if tp in self.logs else 0
        return [(logs, size) for logs, size in found.values()]

    def open(self) -> None:
        """The logs are loaded, and recovered where there was no marker; the markers are removed."""
        self._flush()
        self.clean.clear()
        self.is_open = True

    def close(self) -> None:
        """Flush and close the logs, if they are open, and leave a marker in each directory that works."""
        if self.is_open:
            self._flush()
            self.clean = set(range(DIRECTORIES)) - self.failed
            self.is_open = False

    def _flush(self) -> None:
        for tp, log in self.logs.items():
            if self.places.get(tp) not in self.failed:
                log.recovery_point = log.end

    def fail(self) -> list[TopicPartition]:
        """The first directory that works fails; returns what it held."""
        number = next(n for n in range(DIRECTORIES) if n not in self.failed)
        self.failed.add(number)
        return [tp for tp, place in self.places.items() if place == number]

    def refuses(self, tp: TopicPartition, is_new: bool = False) -> bool:
        """True if a copy cannot be used: it is, or may be, in a directory that failed. One that is new can be made."""
        if not self.failed:
            return False
        place = self.places.get(tp)
        return not is_new if place is None else place in self.failed

    def hold(self, tp: TopicPartition, wanted: str | None = None) -> None:
        """Make the copy, if it is not there yet, in the directory that is wanted or where the fewest are."""
        if tp not in self.places:
            place = min((n for n in range(DIRECTORIES) if n not in self.failed), key=self._counts.__getitem__)
            self.places[tp] = place if wanted is None else PATHS.index(wanted)
            self._counts[self.places[tp]] += 1

    def begin_move(self, tp: TopicPartition, path: str) -> None:
        """Make a future copy in this directory."""
        self.futures[tp] = PATHS.index(path)
        self._counts[self.futures[tp]] += 1

    def drop_future(self, tp: TopicPartition) -> None:
        """Remove the future copy, if there is one."""
        place = self.futures.pop(tp, None)
        if place is not None:
            self._counts[place] -= 1
            self._forget_future(tp)

    def swap(self, tp: TopicPartition) -> None:
        """Put the future copy in the place of the present one."""
        self._counts[self.places[tp]] -= 1
        self.places[tp] = self.futures.pop(tp)
        self._forget_future(tp)

    def _forget_future(self, tp: TopicPartition) -> None:
        if tp in self.logs:
            self.logs[tp].future_end = 0

    def readable(self, places: Mapping[TopicPartition, int], tp: TopicPartition) -> str | None:
        """The directory of a copy, or future copy, that can be read."""
        place = places.get(tp)
        return None if place is None or place in self.failed else PATHS[place]

    def checkpoint(self, meta: BrokerMetadata, overwrite: bool) -> None:
        """Remember whose disks these are, in each directory that works and says nothing yet, or in all."""
        for number, path in enumerate(PATHS):
            if number not in self.failed and (overwrite or self.meta[path] is None):
                self.meta[path] = meta

    def delete(self, tp: TopicPartition) -> None:
        """Delete the copy; one in a directory that has failed stays, as nothing can be written there."""
        if self.places.get(tp) in self.failed:
            return
        self.logs.pop(tp, None)
        self.drop_future(tp)
        place = self.places.pop(tp, None)
        if place is not None:
            self._counts[place] -= 1
