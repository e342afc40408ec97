"""How brokers stop: what clients saw of real ones, and what the same clients see of a lab's.

The order of events must be the same; durations are compared as ratios, since a lab's logs close in the time that
`Costs.stop` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labs import until_quiet

from kafka_ctl import Lab
from tools.recorder import stops

CLOSING = 1.0
"""Seconds that closing takes in the lab: long beside what a busy machine adds to each request."""
BOUND = 3.0
"""A ratio of durations in the lab is at most so many times that of the recording, and the other way round; where it is
0 in both, as nobody was without a leader, there is nothing to divide."""


def _beginning(now: Callable[[], float]) -> float:
    """When a lab's clock was 0, by ours: of several looks the one that took least."""
    looks = []
    for _ in range(20):
        before, there = time.monotonic(), now()
        looks.append((time.monotonic() - before, before - there))
    return min(looks)[1]


@contextmanager
def stopping(generation: str, asked: bool, closing: float) -> Iterator[Callable[[], stops.Stops]]:
    """A lab that listens, whose logs take so many seconds to close; the function stops the leader of the partition."""
    config = {"auto.leader.rebalance.enable": False, "controlled.shutdown.enable": asked}
    with Lab(3, generation=generation, seed=1, wire=True, costs={"stop": closing}, config=config) as lab:
        until_quiet(lab.create_topic, stops.TOPIC, assignment={0: list(stops.REPLICAS)})
        numbers = [int(server.rpartition(":")[2]) for server in lab.bootstrap_servers.split(",")]
        ports = dict(zip(lab.brokers, numbers, strict=True))

        def once() -> stops.Stops:
            old, since = lab.partition(stops.TOPIC, 0).leader, len(lab.trace)
            zero = _beginning(lambda: lab.now)

            def events() -> dict[str, float]:
                closed = lab.trace.slice(start=since, kind="broker", action="shutting-down")
                found = dict.fromkeys([stops.CLOSED] * len(closed), zero + closed[-1].time_ms / 1000 if closed else 0.0)
                for record in lab.trace.slice(start=since, kind="zk"):
                    if record.error is None and (record.action, record.path) == ("delete", f"/brokers/ids/{old}"):
                        found[stops.GONE] = zero + record.time_ms / 1000
                    state = f"/brokers/topics/{stops.TOPIC}/partitions/0/state"
                    if record.action == "set" and record.path == state and f'"leader":{old},' not in record.detail:
                        found.setdefault(stops.LEADER, zero + record.time_ms / 1000)
                return found

            return stops.stop(ports, old, asked, lambda: lab.shutdown(old, wait=False), events)

        yield once


def on_the_kit(generation: str) -> dict[bool, stops.Stops]:
    found = {}
    for asked in (True, False):
        with stopping(generation, asked, CLOSING) as once:
            found[asked] = stops.together([once()])
    return found


def test_a_lab_stops_as_kafka_does(generation: str) -> None:
    recorded, played = stops.read(generation), on_the_kit(generation)
    for asked in (True, False):
        assert played[asked][:3] == recorded[asked][:3], asked
    there, here = stops.ratios(recorded), stops.ratios(played)
    for name in stops.COMPARED:
        if there[name] or here[name]:
            assert there[name] / BOUND < here[name] < there[name] * BOUND, name
    assert all(played[True].silent[name] < played[False].silent[name] for name in stops.CLIENTS)


def test_what_a_controlled_shutdown_saves_was_recorded(generation: str) -> None:
    """The next leader is there before the connections close; without it the partition waits for the logs."""
    asked, alone = stops.read(generation)[True], stops.read(generation)[False]
    assert (asked.leaderless, asked.lost, alone.lost) == (0, 0, 0)
    assert alone.leaderless >= alone.closing > 0
    assert all(asked.silent[name] < alone.silent[name] for name in stops.CLIENTS)
