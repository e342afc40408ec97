"""Every order of what is under way in a small cluster, up to a depth.

Two commands are given at the same moment; then, wherever several messages or timers are pending, each of them is tried
first, and so on, so many choices deep; what follows happens in its usual order until all is quiet
(`lab/event_order.py` says what may come in any order, `tree.py` how it is tried).

Where the time is bounded, all pairs are tried one choice deep, then two choices deep, and so on: when it is over, it is
known how deep every order was tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations

from kafka_ctl.errors import BadInput
from kafka_ctl.explore.play import Failure
from kafka_ctl.explore.tree import Case, Kind, Seen, try_all
from kafka_ctl.explore.workers import defect, processes
from kafka_ctl.lab import story
from kafka_ctl.lab.commands import TOOLS
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command

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
"""The commands that can be given at the same moment; any two of these are."""


@dataclass
class Round:
    """All pairs of commands, so many choices deep, as far as they have been tried."""

    depth: int
    cases: int
    seen: Seen = field(default_factory=Seen)

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
    def broken(self) -> dict[Kind, tuple[int, Case, Failure]]:
        """By kind: how many paths broke it; the shortest of them, and what happened."""
        all_rounds = Seen()
        for each in self.rounds:
            all_rounds.add(each.seen)
        return all_rounds.broken

    @property
    def unknown(self) -> dict[Kind, tuple[int, Case, Failure]]:
        """The violations that are not declared."""
        return {kind: what for kind, what in self.broken.items() if what[2].known is None}


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

    Raises BadInput unless there are 2 or 3 brokers and 1 or 2 partitions; what is larger never ends. Raises UnknownName
    for a generation or mutant that does not exist.
    """
    if brokers not in (2, 3) or partitions not in (1, 2):
        raise BadInput(f"brokers={brokers}, partitions={partitions}: give 2 or 3 brokers and 1 or 2 partitions")
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
