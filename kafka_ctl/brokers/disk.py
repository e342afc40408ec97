"""A broker's disks: two log directories, which of them holds the copy of which partition, and whose they are.

A new copy goes where the fewest are; one that is to lie elsewhere gets a future copy there, which takes its place.
When a directory fails its copies cannot be read until the broker starts again; since 1.0 the broker lives on with the
other directory, before it stops.
Kafka 2.0.1: log/LogManager.scala, nextLogDirs, handleLogDirFailure
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_ctl.brokers.identity import BrokerMetadata
from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition

DIRECTORIES = 2
PATHS = tuple(f"/d{number}" for number in range(DIRECTORIES))
"""What the directories are called."""
STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


class Disk:
    """What outlives the processes of one broker."""

    def __init__(self) -> None:
        self.places: dict[TopicPartition, int] = {}
        """The directory of each copy."""
        self.futures: dict[TopicPartition, int] = {}
        """The directory of each future copy."""
        self.logs: dict[TopicPartition, Log] = {}
        """The records of each copy; none until somebody produces."""
        self.failed: set[int] = set()
        self.meta: dict[str, BrokerMetadata | None] = dict.fromkeys(PATHS)
        """What `meta.properties` in each directory says."""
        self._counts = [0] * DIRECTORIES

    @property
    def has_failed(self) -> bool:
        return len(self.failed) == DIRECTORIES

    def log(self, tp: TopicPartition) -> Log:
        """The records of a copy; an empty log is made where there is none."""
        return self.logs.setdefault(tp, Log())

    def mount(self) -> None:
        """A process starts: all directories can be read again."""
        self.failed.clear()

    def fail(self) -> list[TopicPartition]:
        """The first directory that works fails; returns what it held."""
        number = next(n for n in range(DIRECTORIES) if n not in self.failed)
        self.failed.add(number)
        return [tp for tp, place in self.places.items() if place == number]

    def refuses(self, tp: TopicPartition, is_new: bool = False) -> bool:
        """Whether a copy cannot be used: it is, or may be, in a directory that failed. One that is new can be made."""
        place = self.places.get(tp)
        return bool(self.failed) and (not is_new if place is None else place in self.failed)

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

    def swap(self, tp: TopicPartition) -> None:
        """The future copy takes the place of the present one."""
        self._counts[self.places[tp]] -= 1
        self.places[tp] = self.futures.pop(tp)

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
        self.logs.pop(tp, None)
        self.drop_future(tp)
        place = self.places.pop(tp, None)
        if place is not None:
            self._counts[place] -= 1
