"""Every order of what is under way in a small cluster, up to a depth.

Two commands are given at the same moment; then, wherever several messages or timers are pending, each of them is tried
first, and so on, so many choices deep; what follows happens in its usual order until all is quiet
(`lab/event_order.py` says what may come in any order). These orders are a tree: at each point where several events are
pending, it has one branch for each of them.

A run cannot be copied, so every path is a run of its own from the beginning, by the same choices. (A process can be
copied; but measured, a fork and the pages it then has to copy cost as much as the beginning of a run.)

A state that was reached before with as many choices left is not gone into again: states are compared by a digest of
everything that can make a difference (znodes, sessions, what brokers and controllers know, queues, what is pending, and
where each task stands), without the time.

Where the time is bounded, all pairs are tried one choice deep, then two choices deep, and so on. At the end of the time
it is known how deep every order was tried.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations, permutations
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.explore.play import Failure, FirstFailure, apply, violated
from kafka_ctl.explore.walk import SETTLE, Walk
from kafka_ctl.explore.workers import defect, processes
from kafka_ctl.lab import story, validate
from kafka_ctl.lab.commands import TOOLS
from kafka_ctl.lab.event_order import Choice, GivenOrder, connection
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.requests import Response
from kafka_ctl.simulation.loop import Timer, VirtualLoop
from kafka_ctl.simulation.world import MemoryWorld

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.zookeeper.memory.server import MemoryStore


Kind = tuple[str, str, str | None]
Path = tuple[int, ...]


class Case(NamedTuple):
    """The commands before, those that are given at the same moment, and the depth to which their orders are tried."""

    opening: Command
    before: tuple[Command, ...]
    commands: tuple[Command, ...]
    depth: int
    end: float = math.inf
    """The end of the time, as `time.monotonic` counts."""
    mutant: str | None = None
    """The seeded defect that is switched on."""
    path: Path = ()
    """One way down the tree: which event came first at each point."""

    @property
    def walk(self) -> Walk:
        """The walk that goes the path."""
        return Walk(self.opening, (*self.before, Command("order", (list(self.path),), {}), *self.commands, SETTLE))

    def __str__(self) -> str:
        return " + ".join(map(str, self.commands))

    def where(self, times: int) -> str:
        """The place of a find."""
        return f"on {times:,} paths, first after {self} in the order {','.join(map(str, self.path)) or 'of time'}"

    @property
    def label(self) -> str:
        """The part of a file's name that identifies the case."""
        return "-".join(["order", *map(str, self.path)])


@dataclass
class SearchCounts:
    """The counts of an exhaustive search: whole cases, paths, different states, and states that came again."""

    finished: int = 0
    paths: int = 0
    states: int = 0
    again: int = 0
    broken: dict[Kind, FirstFailure[Case]] = field(default_factory=dict)
    """By kind, counted in paths."""

    def add(self, other: SearchCounts) -> None:
        """Count what another search has seen."""
        self.finished += other.finished
        self.paths += other.paths
        self.states += other.states
        self.again += other.again
        for kind, broken in other.broken.items():
            known = self.broken.get(kind, broken._replace(times=0))
            self.broken[kind] = known._replace(times=known.times + broken.times)


def try_all(case: Case) -> SearchCounts:
    """Try every order of what is pending after the commands of a case, unless the time is over before."""
    with defect(case.mutant):
        tree = Tree(case)
        paths: list[Path] = [()]
        while paths and not tree.late:
            path = paths.pop()
            made = tree.go(path)
            taken = tuple(choice.taken for choice in made)
            for place in range(len(taken) - 1, len(path) - 1, -1):
                paths += [(*taken[:place], other) for other in range(made[place].of - 1, 0, -1)]
    tree.seen.finished, tree.seen.states = int(not tree.late), len(tree.visited)
    return tree.seen


class Tree:
    """All orders of one case, as far as they have been tried."""

    def __init__(self, case: Case) -> None:
        self.case, self.seen = case, SearchCounts()
        self.visited: dict[bytes, int] = {}
        """By state: with how many choices left it was reached."""

    @property
    def late(self) -> bool:
        return time.monotonic() > self.case.end

    def go(self, path: Path) -> list[Choice]:
        """Go one path: these choices, then the first of what is pending, then the usual order until all is quiet."""
        with Lab(**story.opening(self.case.opening)) as lab:
            for line in self.case.before:
                lab.do(line)
            loop, depth = memory_of(lab).clock.loop, self.case.depth
            branches = loop.choose = Branches(loop, path, depth, lambda left: self.late or self._known(lab, left))
            lab.world.network.wake_leaders()
            trouble: object = None
            for line in (*self.case.commands, SETTLE):
                if not isinstance(trouble, Failure) and not branches.stopped:
                    trouble = apply(lab, line, lambda: branches.stopped)
            loop.choose = None
            case = self.case._replace(path=tuple(choice.taken for choice in branches.made))
            broken = [*violated(lab), *([trouble] if isinstance(trouble, Failure) else [])]
        self.seen.add(SearchCounts(paths=1, broken={b.kind: FirstFailure(1, case, b) for b in reversed(broken)}))
        return branches.made

    def _known(self, lab: Lab, left: int) -> bool:
        """True if the lab is in a state that was reached before with as many choices left."""
        key = digest(lab)
        before = self.visited.get(key, -1)
        self.seen.again += before >= 0
        self.visited[key] = max(before, left)
        return before >= left


class Branches(GivenOrder):
    """The order of one path, so many choices deep; it stops where a state is known already."""

    def __init__(self, loop: VirtualLoop, path: Path, depth: int, known: Callable[[int], bool]) -> None:
        super().__init__(loop, path)
        self.depth, self.known = depth, known
        self.stopped = False

    def number(self, ready: list[Timer]) -> int | None:
        place = len(self.made)
        if place < len(self.numbers):
            return self.numbers[place]
        self.stopped = self.known(self.depth - place)
        return None if self.stopped or place == self.depth else 0


UNSTABLE = re.compile(r'"timestamp":"?\d+"?| at 0x[0-9a-f]+|Task-\d+|\d+\.\d+')
"""Times, addresses and the numbers of tasks."""
RECORDS = frozenset(("cause", "sent", "started", "answered", "asked", "seq", "about", "fired", "since", "waited"))
"""Variables that only order records of the trace."""


def digest(lab: Lab) -> bytes:
    """16 bytes that identify this state."""
    world = memory_of(lab)
    names = _names(world.store)
    parts = [*_stored(world.store, names)]
    for broker in world.brokers.values():
        parts += _known(broker)
    parts += sorted(_pending(world.clock.loop.pending, names))
    parts += sorted(map(_task_state, world.clock.tasks))
    return blake2b(UNSTABLE.sub("", "\n".join(parts)).encode(), digest_size=16).digest()


def memory_of(lab: Lab) -> MemoryWorld:
    """The world of a lab on virtual time. Raises BadInput for another."""
    if not isinstance(lab.world, MemoryWorld):
        raise BadInput("this needs a lab on virtual time")
    return lab.world


def _names(store: MemoryStore) -> dict[int, str]:
    """Sessions by their clients, and which of them began earlier."""
    return {number: f"{s.actor}/{n}" for n, (number, s) in enumerate(sorted(store.sessions.items()))}


def _stored(store: MemoryStore, names: dict[int, str]) -> Iterator[str]:
    for path, (data, version, owner) in store.snapshot():
        yield f"{path} {data!r} {version} {names.get(owner)}"
    for watches in (store.data_watches, store.child_watches):
        yield repr(sorted((path, sorted(names.get(n, "") for n in holders)) for path, holders in watches.items()))
    for s in store.sessions.values():
        flags = f"{s.connected} {s.sends} {s.receives} {s.running} {s.fails_next_write}"
        yield f"{names[s.id]} {flags} {s.waiting} {s.missed}"


def _known(broker: Broker) -> Iterator[str]:
    replicas, controller = broker.replicas, broker.controller
    yield f"{broker.id} {broker.state} {sorted(broker.disk.clean)} {replicas.controller_epoch} {broker.live_brokers}"
    yield repr({tp: (h.state, h.replicas) for tp, h in broker.hosted.items()})
    yield repr(broker.metadata)
    yield f"{broker.as_follower.state_key()} {broker.as_leader.state_key()}"
    yield f"{controller.active_id} {controller.state} {controller.zk.fence} {controller.context}"
    yield repr(list(controller.queue))
    for id, requests in controller.channels.queued():
        yield f"{id} {requests}"


def _pending(pending: list[Timer], names: dict[int, str]) -> Iterator[str]:
    """The messages on their way and the timers, a message with its connection and place there."""
    ahead: Counter[tuple[int, bool]] = Counter()
    for timer in pending:
        name = getattr(timer.callback, "__qualname__", "")
        where = ""
        if (own := connection(timer)) is not None:
            where = f"{names.get(own[0], 'gone')} {ahead[own]}"
            ahead[own] += 1
        yield f"{where} {name} {[a for a in timer.args if not isinstance(a, (asyncio.Future, int))]}"


def _task_state(task: asyncio.Task) -> str:
    """The place of a task in its code: each of its frames, with those of its variables that can be printed."""
    frames: list[str] = []
    awaited: object = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        texts = ((name, repr(_plain(value))) for name, value in frame.f_locals.items() if name not in RECORDS)
        plain = {name: text for name, text in texts if "object at" not in text}
        frames.append(f"{frame.f_code.co_qualname}:{frame.f_lasti} {plain}")
        awaited = getattr(awaited, "cr_await", None)
    return " ".join(frames)


def _plain(value: object) -> object:
    """A variable's value: of a future its outcome, of an answer the answer without the number of its record."""
    if isinstance(value, asyncio.Future):
        if not value.done() or value.cancelled():
            return "CANCELLED" if value.cancelled() else "PENDING"
        return value.exception() or _plain(value.result())
    return value[0] if isinstance(value, tuple) and value and isinstance(value[0], Response) else value


STARTS = (
    "kill {controller}",
    "kill {other}",
    "bounce {other}",
    "shutdown {other} wait=false",
    "expire_session {controller}",
    "expire_session {other}",
    "delete_controller",
    "delete_topic t",
    "add_partitions t {more}",
    "elect_preferred",
    "reassign '{{\"t-0\":[{other},{controller}]}}'",
)
"""The commands that can be given at the same moment: every two of them are tried together."""


@dataclass
class Round:
    """All pairs of commands, so many choices deep, as far as they have been tried."""

    depth: int
    cases: int
    seen: SearchCounts = field(default_factory=SearchCounts)

    @property
    def complete(self) -> bool:
        return self.seen.finished == self.cases


@dataclass
class Search:
    """The rounds of an exhaustive search so far."""

    generation: str
    brokers: int
    partitions: int
    rounds: list[Round] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def complete(self) -> Round | None:
        """The deepest round in which every order was tried."""
        return next((r for r in reversed(self.rounds) if r.complete), None)

    @property
    def states(self) -> int:
        """The number of states in all rounds."""
        return sum(r.seen.states for r in self.rounds)

    @property
    def broken(self) -> dict[Kind, FirstFailure[Case]]:
        """By kind, counted in paths of one round."""
        found: dict[Kind, FirstFailure[Case]] = {}
        for each in self.rounds:  # a round tries the paths of the one before, too
            for kind, broken in each.seen.broken.items():
                known = found.get(kind, broken)
                found[kind] = known._replace(times=max(known.times, broken.times))
        return found

    @property
    def unknown(self) -> dict[Kind, FirstFailure[Case]]:
        """The violations that are not declared."""
        return {kind: broken for kind, broken in self.broken.items() if broken.failure.known is None}


def exhaust(
    generation: str,
    brokers: int = 2,
    partitions: int = 1,
    depth: int = 4,
    seconds: float | None = None,
    jobs: int | None = None,
    mutant: str | None = None,
    progress: Callable[[Search], None] = lambda search: None,
) -> Search:
    """Try every order of every two commands, so many choices deep, in no more than so many seconds.

    Raises BadInput unless there are 2 or 3 brokers and 1 or 2 partitions; what is larger never ends. Raises it for a
    depth below 1, too, and for what is no number. Raises UnknownName for a generation or mutant that does not exist.
    """
    validate.integer("brokers", brokers, 2, 3)
    validate.integer("partitions", partitions, 1, 2)
    validate.integer("depth", depth, 1)
    if jobs is not None:
        validate.integer("jobs", jobs, 1)
    if seconds is not None:
        validate.seconds("seconds", seconds)
    with defect(mutant):
        pass
    began = time.monotonic()
    end = math.inf if seconds is None else began + seconds
    cases = [case._replace(end=end, mutant=mutant) for case in scenarios(generation, brokers, partitions)]
    search = Search(generation, brokers, partitions)
    with processes(jobs) as pool:
        for deep in range(depth if seconds is None else 1, depth + 1):
            tried = Round(deep, len(cases))
            search.rounds.append(tried)
            listed = [case._replace(depth=deep) for case in cases]
            for part in pool.imap_unordered(try_all, listed) if pool else map(try_all, listed):
                tried.seen.add(part)
                search.seconds = time.monotonic() - began
                progress(search)
            if time.monotonic() > end:
                break
    return search


def scenarios(generation: str, brokers: int, partitions: int) -> Iterator[Case]:
    """A settled cluster, and two commands: every two in either order, and every two tools side by side."""
    config = {"delete.topic.enable": True, "auto.leader.rebalance.enable": False}
    ids = list(range(1, brokers + 1))
    opening = Command("lab", (), {"brokers": ids, "generation": generation, "seed": 0, "config": config})
    before = tuple(story.parse(f"create_topic t partitions={partitions} replication_factor=2\nsettle\n"))
    with Lab(**story.opening(opening)) as lab:
        assert lab.controller is not None
        values = {"controller": lab.controller.id, "other": lab.controller.id % brokers + 1, "more": partitions + 1}
    starts = [next(story.parse(text.format(**values))) for text in STARTS]
    for pair in permutations(starts, 2):
        yield Case(opening, before, pair, depth=0)
    for tools in combinations([start for start in starts if start.name in TOOLS], 2):
        yield Case(opening, before, (Command("at_once", ([str(tool) for tool in tools],), {}),), depth=0)
