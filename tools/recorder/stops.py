"""A broker is stopped with SIGTERM while two producers and a consumer run: what they see, on real Kafka and on the kit.

The leader of one partition stops, with a controlled shutdown and without one. The clients keep their connections; as
soon as one is closed, or answers that it does not lead, they ask another broker for the leader. `record_stops.py` lets
them run against real brokers and writes what they saw; the tests let the same clients run against a lab that listens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tools.recorder import wire
from tools.recorder.cluster import wait
from tools.recorder.release import RECORDINGS

TOPIC, REPLICAS = "orders", (2, 3)
"""The partition has number 0; broker 1 is the controller and holds no copy."""
CLIENTS = ("acks=all", "acks=1", "consumer")
ENOUGH = 20
"""Answers that each client must have before the broker is stopped, and of the new leader afterwards."""
PAUSE = 0.002
"""Seconds between two requests of a client, and before it asks for the leader again."""
LAST, CLOSED, GONE = "last request that it answers", "connections closed", "znode gone"
LEADER, FIRST = "new leader", "first answer of the new leader"
ORDERS = {True: (LEADER, CLOSED, GONE), False: (LAST, CLOSED, GONE, LEADER, FIRST)}
"""The events that are put in order. In a controlled shutdown the requests of clients race with those of the controller:
there the last and the first answer are not compared."""


class Stops(NamedTuple):
    """One stop, or several as one: the events in their order, and durations in seconds, medians of several.

    `refused`: whether a new connection was; `lost`: values that were acknowledged to `acks=all` and that the consumer
    cannot read; `closing`: from the closed connections to the znode's end; `leaderless`: from the closed connections to
    the next leader in ZooKeeper, 0 where that was elected before; `silent`: by client, from the last answer of the old
    leader to the first of the new one.
    """

    order: tuple[str, ...]
    refused: bool
    lost: int
    closing: float
    leaderless: float
    silent: dict[str, float]


class Client(threading.Thread):
    """A producer or the consumer: one request after the other to the leader, until `end`."""

    def __init__(self, name: str, ports: Mapping[int, int], leader: int, values: Iterator[int]) -> None:
        super().__init__(name=name, daemon=True)
        self.ports, self.leader, self.values = ports, leader, values
        self.answers: list[tuple[int, float, float]] = []
        """Of each answer without an error: who gave it, when it was asked, and when it came."""
        self.done: list[str] = []
        """Values that were acknowledged, or read."""
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            with suppress(ConnectionError, TimeoutError), wire.connect(self.ports[self.leader]) as connection:
                while not self.ended.is_set() and self._ask(connection):
                    pass
            if not self.ended.is_set():
                self._look()

    def _ask(self, connection: wire.socket.socket) -> bool:
        """One request; whether the broker still leads."""
        asked = time.monotonic()
        if self.name == "consumer":
            got = wire.fetch_over(connection, TOPIC, 0, len(self.done), bytes=1)
            if isinstance(got, str):
                return False
            self.done += got
        else:
            value = next(self.values)
            _, error = wire.produce_over(connection, TOPIC, 0, [value], -1 if self.name == "acks=all" else 1)
            if error is not None:
                return False
            self.done.append(str(value))
        self.answers.append((self.leader, asked, time.monotonic()))
        self.ended.wait(PAUSE)
        return True

    def _look(self) -> None:
        """Ask another broker who leads."""
        for broker in [id for id in self.ports if id != self.leader]:
            try:
                leader = wire.metadata(self.ports[broker]).partitions.get((TOPIC, 0), (-1, ()))[0]
            except (ConnectionError, TimeoutError):
                continue
            if leader in self.ports:
                self.leader = leader
                break
        self.ended.wait(PAUSE)

    def count(self, broker: int) -> int:
        """The number of answers of that broker that it has had."""
        return sum(who == broker for who, _, _ in self.answers)


class Probe(threading.Thread):
    """An idle connection to a broker: `closed` is when the broker closed it, `refused` whether it takes no other."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.connection = port, wire.connect(port)
        self.connection.settimeout(None)
        self.closed, self.refused = 0.0, False

    def run(self) -> None:
        with self.connection, suppress(ConnectionError):
            self.connection.recv(1)
        self.closed = time.monotonic()
        try:
            wire.connect(self.port).close()
        except ConnectionError:
            self.refused = True


def stop(
    ports: Mapping[int, int], old: int, asked: bool, sigterm: Callable[[], None], events: Callable[[], dict[str, float]]
) -> Stops:
    """Let the clients run, stop the leader `old`, and see what happens until the other replica answers.

    `asked`: by a controlled shutdown. `events` gives the times of ZooKeeper's events (GONE, LEADER) as far as they have
    happened; also that of CLOSED, where it is known better than by a connection that waits for it.
    """
    new = next(id for id in REPLICAS if id != old)
    clients = [Client(name, ports, old, iter(range(place, 10**9, 2))) for place, name in enumerate(CLIENTS)]
    probe = Probe(ports[old])
    for thread in (probe, *clients):
        thread.start()
    try:
        wait(lambda: all(client.count(old) >= ENOUGH for client in clients), "clients to be answered")
        sigterm()
        wait(lambda: all(client.count(new) >= ENOUGH for client in clients), "the new leader to answer")
        wait(lambda: events().keys() >= {GONE, LEADER}, "the znode to be gone")
        probe.join(60)
    finally:
        for client in clients:
            client.ended.set()
        for client in clients:
            client.join(60)
    found = {client.name: client for client in clients}
    read, promised = set(found["consumer"].done), set(found["acks=all"].done)
    times = {CLOSED: probe.closed} | events()
    times[LAST] = max(sent for client in clients for who, sent, _ in client.answers if who == old)
    times[FIRST] = min(came for client in clients for who, _, came in client.answers if who == new)
    silent = {
        client.name: next(came for who, _, came in client.answers if who == new)
        - max(came for who, _, came in client.answers if who == old)
        for client in clients
    }
    lost = promised - read - set(_rest(ports[new], len(found["consumer"].done)))
    order = tuple(sorted(ORDERS[asked], key=times.__getitem__))
    leaderless = max(0.0, times[LEADER] - times[CLOSED])
    return Stops(order, probe.refused, len(lost), times[GONE] - times[CLOSED], leaderless, silent)


def _rest(port: int, offset: int) -> list[str]:
    """The records that the consumer had still to read."""
    with wire.connect(port) as connection:
        rest: list[str] = []
        while (got := wire.fetch_over(connection, TOPIC, 0, offset + len(rest))) and not isinstance(got, str):
            rest += got
    return rest


# The comparison


def together(seen: Sequence[Stops]) -> Stops:
    """Several stops as one. Raises RuntimeError if they differ in more than durations."""
    same = {each[:3] for each in seen}
    if len(same) != 1:
        raise RuntimeError(f"the stops differ: {sorted(same)}")
    silent = {name: median(each.silent[name] for each in seen) for name in CLIENTS}
    closing, leaderless = (median(getattr(each, name) for each in seen) for name in ("closing", "leaderless"))
    return Stops(*same.pop(), closing, leaderless, silent)


def ratios(ways: Mapping[bool, Stops]) -> dict[str, float]:
    """Durations of both ways by those of SIGTERM alone."""
    asked, alone = ways[True], ways[False]
    compared = asked.closing / alone.closing, alone.leaderless / alone.closing, asked.leaderless / asked.closing
    silent = {f"{name}, {_WAYS}": asked.silent[name] / alone.silent[name] for name in CLIENTS}
    return dict(zip(COMPARED, compared, strict=True)) | silent


_WAYS = "controlled shutdown by SIGTERM alone"
COMPARED = (
    f"closing, {_WAYS}",
    "without a leader by closing, SIGTERM alone",
    "without a leader by closing, controlled shutdown",
)
"""The ratios of what brokers and ZooKeeper do; those of clients depend on how busy their machine is."""


def _way(asked: bool) -> str:
    return "controlled shutdown" if asked else "SIGTERM alone"


def path(generation: str) -> Path:
    return RECORDINGS / "stops" / f"{generation}.txt"


def text(kafka: str, ways: Mapping[bool, Stops], times: int) -> str:
    """The rows that are kept of a generation."""
    lines = [
        f"# The leader of orders-0 is stopped with SIGTERM while two producers and a consumer run: Kafka {kafka}.",
        "# Recorded by tools/recorder/record_stops.py; medians, in milliseconds. Closing: from closed connections",
        "# to the znode's end. Without a leader: from there to the new one in ZooKeeper. Without an answer: from the "
        "last",
        "# one of the old leader to the first one of the new leader.",
    ]
    for asked, way in ways.items():
        lines += [
            f"== {_way(asked)}, stops: {times}",
            f"order: {', '.join(way.order)}",
            f"new connections: {'refused' if way.refused else 'taken'}",
            f"acknowledged with acks=all and lost: {way.lost}",
        ]
        lines += [f"closing: {way.closing * 1000:.0f}", f"without a leader: {way.leaderless * 1000:.0f}"]
        lines += [f"without an answer, {name}: {way.silent[name] * 1000:.0f}" for name in CLIENTS]
    lines += ["== ratios", *(f"{name}: {ratio:.2f}" for name, ratio in ratios(ways).items())]
    return "".join(f"{line}\n" for line in lines)


def read(generation: str) -> dict[bool, Stops]:
    """The recordings of a generation; the key is True for a controlled shutdown."""
    ways: dict[bool, Stops] = {}
    for block in path(generation).read_text(encoding="utf-8").split("== ")[1:3]:
        title, *lines = block.splitlines()
        printed = dict(line.rsplit(": ", 1) for line in lines)

        def seconds(name: str, printed: dict[str, str] = printed) -> float:
            return float(printed[name]) / 1000

        ways[title.startswith(_way(True))] = Stops(
            tuple(printed["order"].split(", ")),
            printed["new connections"] == "refused",
            int(printed["acknowledged with acks=all and lost"]),
            seconds("closing"),
            seconds("without a leader"),
            {name: seconds(f"without an answer, {name}") for name in CLIENTS},
        )
    return ways
