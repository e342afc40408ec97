"""Every order of what is under way in a small cluster, up to a depth.

Messages and timers that are pending at the same time may come in any order, but for one rule: on one connection nothing
overtakes. Commands are given at the same moment; then, wherever several events are pending, each of them is tried
first, and so on, so many choices deep; what follows happens in its usual order until all is quiet.

A run cannot be copied, so every path is a run of its own from the beginning, by the same choices. A state that was
reached before with as many choices left is not gone into again: states are told apart by a digest of everything that
can make a difference (znodes, sessions, what brokers and controllers know, queues, what is pending, and where each
task stands), without the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.explore.play import Broken, violated
from kafka_ctl.explore.search import cores, processes
from kafka_ctl.explore.state import digest
from kafka_ctl.explore.walk import Walk
from kafka_ctl.lab import story
from kafka_ctl.lab.clock import VirtualClock
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.loop import Timer
from kafka_ctl.lab.story import Command
from kafka_ctl.zookeeper.memory_session import MemorySession

STARTS = (
    "kill {controller}", "kill {other}", "bounce {other}", "shutdown {other} wait=false", "expire_session {controller}",
    "expire_session {other}", "delete_controller", "delete_topic t", "add_partitions t {more}", "elect_preferred",
    "reassign '{{\"t-0\":[{other},{controller}]}}'",
)  # fmt: skip
"""What can be asked at the same moment; any two of these are."""
PATIENCE = 120.0
"""Seconds of virtual time after which nobody waits for quiet any more."""


class Choice(NamedTuple):
    """What was pending at one point, and which of it came first."""

    taken: int
    of: int


class Chooser:
    """Sits in a virtual loop and says which pending event comes next; the first, once its choices are used up."""

    def __init__(self, choices: tuple[int, ...], depth: int, seen: Callable[[int], bool]) -> None:
        self.choices, self.depth, self.seen = choices, depth, seen
        self.made: list[Choice] = []
        self.stopped = False
        """The state was one that had been seen before."""

    def __call__(self, pending: list[Timer]) -> Timer:
        ready = list(_heads(pending))
        place = len(self.made)
        if self.stopped or place >= self.depth or len(ready) < 2:
            return ready[0]
        if place >= len(self.choices) and self.seen(place):
            self.stopped = True
            return ready[0]
        taken = self.choices[place] if place < len(self.choices) else 0
        self.made.append(Choice(taken, len(ready)))
        return ready[taken]


def _heads(pending: list[Timer]) -> Iterator[Timer]:
    """The first event of every connection; others have a lane of their own."""
    lanes = set()
    for timer in pending:
        lane = _lane(timer)
        if lane is None or lane not in lanes:
            lanes.add(lane)
            yield timer


def _lane(timer: Timer) -> object:
    """The connection and direction of a message between a client and ZooKeeper."""
    session = getattr(timer.callback, "__self__", None)
    if not isinstance(session, MemorySession):
        return None
    name = timer.callback.__name__
    return (session.id, name == "_arrive") if name in ("_arrive", "_answered", "_tell") else None


@dataclass
class Seen:
    """What an exhaustive search has seen: pairs of commands, paths, different states, and states that came again."""

    scenarios: int = 0
    paths: int = 0
    states: int = 0
    again: int = 0
    seconds: float = 0.0
    complete: bool = True
    """Every order was tried; False when the time was over before."""
    broken: dict[tuple[str, str, str | None], tuple[int, Walk, tuple[int, ...], Broken]] = field(default_factory=dict)
    """By kind: how many paths broke it; the first scenario, its choices, and what happened."""

    def add(self, other: Seen) -> None:
        """Count what another search has seen."""
        self.scenarios += other.scenarios
        self.paths += other.paths
        self.states += other.states
        self.again += other.again
        self.complete &= other.complete
        for kind, (times, walk, choices, broken) in other.broken.items():
            if kind in self.broken:
                before, walk, choices, broken = self.broken[kind]
                times += before
            self.broken[kind] = times, walk, choices, broken


class Task(NamedTuple):
    """A scenario to be tried in every order by whichever process is free."""

    walk: Walk
    depth: int
    seconds: float | None = None


def exhaust(
    generation: str,
    brokers: int = 2,
    partitions: int = 1,
    depth: int = 4,
    seconds: float | None = None,
    jobs: int | None = None,
    progress: Callable[[Seen], None] = lambda seen: None,
) -> Seen:
    """Try every order of every two commands, so many choices deep, in no more than so many seconds.

    Raises BadInput unless there are 2 or 3 brokers and 1 or 2 partitions; what is larger never ends.
    """
    if brokers not in (2, 3) or partitions not in (1, 2):
        raise BadInput(f"{brokers} brokers and {partitions} partitions: there can be 2 or 3, and 1 or 2")
    began, seen = time.monotonic(), Seen()
    listed = list(scenarios(generation, brokers, partitions))
    tasks = [Task(walk, depth, seconds and seconds / len(listed) * (jobs or cores())) for walk in listed]
    with processes(jobs) as pool:
        for part in pool.imap_unordered(try_all, tasks) if pool else map(try_all, tasks):
            seen.add(part)
            seen.seconds = time.monotonic() - began
            progress(seen)
    return seen


def scenarios(generation: str, brokers: int, partitions: int) -> Iterator[Walk]:
    """A settled cluster, and two commands given at the same moment, for every two in either order."""
    config = {"delete.topic.enable": True, "auto.leader.rebalance.enable": False}
    ids = list(range(1, brokers + 1))
    opening = Command("lab", (), {"brokers": ids, "generation": generation, "seed": 0, "config": config})
    before = list(story.parse(f"create_topic t partitions={partitions} replication_factor=2\nsettle\n"))
    with Lab(**story.opening(opening)) as lab:
        assert lab.controller is not None
        words = {"controller": lab.controller.id, "other": lab.controller.id % brokers + 1, "more": partitions + 1}
    starts = [next(story.parse(text.format(**words))) for text in STARTS]
    for pair in permutations(starts, 2):
        yield Walk(opening, (*before, *pair))


def try_all(task: Task) -> Seen:
    """Try every order of what is pending after the commands of a scenario."""
    end = math.inf if task.seconds is None else time.monotonic() + task.seconds
    visited: dict[bytes, int] = {}
    seen, stack = Seen(scenarios=1), [()]
    while stack and time.monotonic() < end:
        choices: tuple[int, ...] = stack.pop()
        made = _run(task, choices, visited, seen)
        seen.paths += 1
        taken = tuple(choice.taken for choice in made)
        for place in range(len(made) - 1, len(choices) - 1, -1):
            stack += [(*taken[:place], other) for other in range(made[place].of - 1, 0, -1)]  # type: ignore[misc]
    seen.complete, seen.states = not stack, len(visited)
    return seen


def _run(task: Task, choices: tuple[int, ...], visited: dict[bytes, int], seen: Seen) -> list[Choice]:
    """One path: the scenario, then these choices, then the usual order until all is quiet; returns all choices."""
    walk = task.walk
    with Lab(**story.opening(walk.opening)) as lab:
        clock = lab._world.clock
        assert isinstance(clock, VirtualClock)

        def known(place: int) -> bool:
            key, left = digest(lab), task.depth - place
            seen.again += key in visited
            if visited.get(key, 0) >= left:
                return True
            visited[key] = left
            return False

        chooser = Chooser(choices, task.depth, known)
        try:
            for line in walk.commands[:-2]:
                lab.do(line)
            clock.loop.choose = chooser
            for line in walk.commands[-2:]:
                lab.do(line)
            clock.drive(lambda: clock.loop.idle or chooser.stopped, clock.now() + PATIENCE)
            clock.loop.choose = None
            if not chooser.stopped:
                lab.settle(limit=PATIENCE)
        except KafkaCtlError:
            pass  # refused, or without end: what was broken is counted all the same
        clock.loop.choose = None
        for broken in violated(lab):
            seen.add(Seen(broken={broken.kind: (1, walk, choices, broken)}))
    return chooser.made
