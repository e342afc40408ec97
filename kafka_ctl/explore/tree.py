"""The tree of all orders of one case: at each point where several events are pending, one branch for each of them.

A run cannot be copied, so every path is a run of its own from the beginning, by the same choices. (A process can be
copied; but measured, a fork and the pages it then has to copy cost as much as the beginning of a run.)

A state that was reached before with as many choices left is not gone into again: states are compared by a digest of
everything that can make a difference (znodes, sessions, what brokers and controllers know, queues, what is pending, and
where each task stands), without the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_ctl.explore.play import Failure, apply, violated
from kafka_ctl.explore.state import digest, memory_of
from kafka_ctl.explore.walk import Walk
from kafka_ctl.explore.workers import defect
from kafka_ctl.lab import story
from kafka_ctl.lab.event_order import Choice, GivenOrder
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.simulation.loop import Timer, VirtualLoop

Kind = tuple[str, str, str | None]
Path = tuple[int, ...]
SETTLE = Command("settle", (), {"limit": 300})


class Case(NamedTuple):
    """What happens before, and the commands that are given at the same moment; how deep their orders are tried."""

    opening: Command
    before: tuple[Command, ...]
    commands: tuple[Command, ...]
    depth: int
    end: float = math.inf
    """When the time is over, as `time.monotonic` counts."""
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
        """Where something was found."""
        return f"on {times:,} paths, first after {self} in the order {','.join(map(str, self.path)) or 'of time'}"

    @property
    def label(self) -> str:
        """The same in the name of a file."""
        return "-".join(["order", *map(str, self.path)])


@dataclass
class Seen:
    """What an exhaustive search has seen: whole cases, paths, different states, and states that came again."""

    finished: int = 0
    paths: int = 0
    states: int = 0
    again: int = 0
    broken: dict[Kind, tuple[int, Case, Failure]] = field(default_factory=dict)
    """By kind: how many paths broke it; the first of them, and what happened."""

    def add(self, other: Seen) -> None:
        """Count what another search has seen."""
        self.finished += other.finished
        self.paths += other.paths
        self.states += other.states
        self.again += other.again
        for kind, (times, case, broken) in other.broken.items():
            before, first, what = self.broken.get(kind, (0, case, broken))
            self.broken[kind] = before + times, first, what


def try_all(case: Case) -> Seen:
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
        self.case, self.seen = case, Seen()
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
            loop = memory_of(lab).clock.loop
            branches = loop.choose = Branches(
                loop, path, self.case.depth, lambda left: self.late or self._known(lab, left)
            )
            trouble: object = None
            for line in (*self.case.commands, SETTLE):
                if not isinstance(trouble, Failure) and not branches.stopped:
                    trouble = apply(lab, line, lambda: branches.stopped)
            loop.choose = None
            case = self.case._replace(path=tuple(choice.taken for choice in branches.made))
            broken = [*violated(lab), *([trouble] if isinstance(trouble, Failure) else [])]
        self.seen.add(Seen(paths=1, broken={b.kind: (1, case, b) for b in reversed(broken)}))
        return branches.made

    def _known(self, lab: Lab, left: int) -> bool:
        """Whether the lab is in a state that was reached before with as many choices left."""
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
