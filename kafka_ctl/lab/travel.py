"""Time travel: a run is its story, so any moment of it is reached by telling the story again up to there.

A story that stops in the middle of a command says so in a line of its own, which `Lab.story` writes and `Lab.replay`
understands:

    settle
    until 812        the settle before ended here, just after record 812

What is stopped goes on with whatever is asked next. A stop is between two callbacks: the records that one callback
writes belong together. Only virtual time can be travelled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kafka_ctl.describe import describe
from kafka_ctl.errors import BadInput, NotReached, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story
from kafka_ctl.lab.clock import Halted, VirtualClock
from kafka_ctl.lab.commands import Commands
from kafka_ctl.lab.story import Command
from kafka_ctl.lab.world import MEMORY
from kafka_ctl.trace import Record

if TYPE_CHECKING:
    from kafka_ctl.lab.lab import Lab

OPEN, UNTIL = "lab", "until"
TIMESTAMP = re.compile(r'"timestamp":"?\d+"?')
OPENED = Command(OPEN, (), {})
"""The settling with which a lab begins."""
Part = tuple[list[Command], int | float | None]
"""Commands, and where they stop: after a record (int), so many seconds into the last one (float), or nowhere."""


class Travel(Commands):
    """The part of a lab that knows its own story and can go to any point of it."""

    generation: Generation
    seed: int
    _settled_first: bool

    def _opening(self) -> dict[str, Any]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    @property
    def story(self) -> str:
        """The run as text: `Lab.replay(lab.story)` opens it again, in memory exactly."""
        return "\n".join(map(str, [Command("lab", (), self._opening()), *self.commands])) + "\n"

    @classmethod
    def replay(cls, text: str | Path, zookeeper: str = MEMORY, until: int | None = None) -> Self:
        """Open a story (text or file) and run its commands; with `until`, no further than that record of the trace.

        What was not reached when the story was made (NotReached) is not reached again, and the run goes on as it did
        then, unless that was its last command. Raises BadInput for a line that cannot be run, and when there is no
        record `until`.
        """
        lines = list(story.parse(story.read(text)))
        if not lines:
            raise BadInput("the story is empty; it begins with a line such as: lab brokers=3 generation=2.0 seed=7")
        opening = story.opening(lines[0]) | {"zookeeper": zookeeper}
        lab = cls._told(opening, list(_parts(lines[1:], until)))
        if until is not None and len(lab.trace) <= until:
            lab.close()
            raise BadInput(f"until={until}: this story ends with record {len(lab.trace) - 1}")
        return lab

    @classmethod
    def _told(cls, opening: dict[str, Any], parts: list[Part], note: Callable[[int], None] | None = None) -> Self:
        """A lab in which these parts have been played; `note` is told the trace's length after every callback."""
        settles = opening.get("settle", True)
        whole = note is None and all(stop is None for _, stop in parts)
        lab = cls(**opening | {"settle": settles and whole})
        lab._settled_first = settles
        try:
            if whole:
                lab._run(parts[0][0])
                return lab
            parts[0][0][:0] = [OPENED] * settles
            for lines, stop in parts:
                lab._play(lines, stop, note)
        except BaseException:
            lab.close()
            raise
        return lab

    def _play(self, lines: list[Command], stop: int | float | None, note: Callable[[int], None] | None) -> None:
        """Run commands up to their stop, which becomes a line of the story."""
        clock, records = self._memory("a run that stops").clock, self.trace.records
        if isinstance(stop, float):
            self._run(lines[:-1])
            lines = lines[-1:]
        end = clock.now() + stop if isinstance(stop, float) else math.inf
        last = stop if isinstance(stop, int) else math.inf

        def halt() -> bool:
            if note is not None:
                note(len(records))
            return len(records) > last or (clock.loop.next_time or 0.0) > end

        clock.halt = halt
        try:
            self._run(lines)
        except Halted:
            if isinstance(stop, float):
                clock.loop.now = end
            self.commands.append(Command(UNTIL, (len(records) - 1,), {}, 0, len(records), self.now))
        finally:
            clock.halt = None

    def _run(self, lines: list[Command]) -> None:
        clock = self._world.clock
        for line in lines:
            try:
                if line is OPENED:
                    self._world.settle()
                else:
                    self.do(line)
            except Halted:
                raise
            except NotReached:
                if line is lines[-1]:
                    raise
            if isinstance(clock, VirtualClock) and clock.halt is not None and clock.halt():
                raise Halted

    def do(self, line: Command) -> object:
        """Run one command of a story."""
        method = getattr(type(self), line.name, None)
        if not getattr(method, "is_command", False):
            known = [name for name in dir(type(self)) if getattr(getattr(type(self), name), "is_command", False)]
            raise UnknownName(f"command (line {line.line})", line.name, known)
        try:
            return method(self, *line.args, **line.kwargs)  # type: ignore[misc]
        except TypeError as error:
            raise BadInput(f"line {line.line}: {line}: {error}") from None
        except BadInput as error:
            error.args = (f"line {line.line}: {error}" if line.line else str(error),)
            raise

    def fork(
        self,
        at: int | None = None,
        generation: str | Generation | None = None,
        seed: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Self:
        """Another lab with the same story, up to record `at` of this one's trace (all of it, if None).

        With another generation, seed or configuration (Kafka's keys, added to those given) the records will be others:
        the fork then gets the same commands, and stops as long after the last of them as `at` is here.
        """
        self._memory("fork")
        if at is not None and not 0 <= at < len(self.trace):
            raise BadInput(f"fork(at={at}): the trace has records 0 to {len(self.trace) - 1}")
        if generation is None and seed is None and config is None:
            return type(self).replay(self.story, until=at)
        opening = story.opening(Command(OPEN, (), self._opening()))
        opening |= {} if generation is None else {"generation": Generation(generation)}
        opening |= {} if seed is None else {"seed": seed}
        opening |= {} if config is None else {"config": opening.get("config", {}) | dict(config)}
        return type(self)._told(opening, self._parts_in_time(at))

    def _parts_in_time(self, at: int | None) -> list[Part]:
        """Our commands up to record `at`, with stops that count seconds instead of records."""
        given = [c for c in self.commands if at is None or c.seq <= at]
        if at is not None and (not given or given[-1].name != UNTIL):
            given.append(Command(UNTIL, (at,), {}, 0, at, self.trace[at].time_ms / 1000 + 1e-6))
        parts: list[Part] = []
        started = 0.0
        lines: list[Command] = []
        for line in given:
            if line.name == UNTIL:
                parts.append((lines, line.time - started))
                lines = []
            else:
                lines.append(line)
            started = line.time
        return [*parts, (lines, None)] if lines or not parts else parts

    def back(self, n: int = 1) -> None:
        """Undo the last `n` moments that left records (see `step`): this lab is again as it was before them."""
        self._memory("back")
        if not isinstance(n, int) or n < 1:
            raise BadInput(f"back(n={n!r}): a number of moments, 1 or more")
        moments = [0]

        def note(size: int) -> None:
            if size > moments[-1]:
                moments.append(size)

        lines = list(story.parse(self.story))
        type(self)._told(story.opening(lines[0]), list(_parts(lines[1:])), note).close()
        if n >= len(moments):
            raise BadInput(f"back(n={n}): only {len(moments) - 1} moments have left records so far")
        before = type(self).replay(self.story, until=max(0, moments[-1 - n] - 1))
        self.close()
        vars(self).update(vars(before))


def _parts(lines: Iterable[Command], until: int | None = None) -> Iterator[Part]:
    """A story's commands, divided where it stops; nothing that comes after record `until`."""
    part: list[Command] = []
    for line in lines:
        if line.name != UNTIL:
            part.append(line)
            continue
        if len(line.args) != 1 or line.kwargs or not isinstance(line.args[0], int):
            raise BadInput(f"line {line.line}: {line}: 'until' needs the number of a record")
        if until is not None and until <= line.args[0]:
            break
        yield part, line.args[0]
        part = []
    yield part, until


class Difference(NamedTuple):
    """Something that two runs end with differently: its name and its value in each; None where it does not exist."""

    what: str
    left: object
    right: object


class Comparison(NamedTuple):
    """Two runs side by side: the first fact in which they part, and how they end."""

    parted: int | None
    """How many facts they share; None if all of both."""
    left: Record | None
    """What the left run did then; None if it had ended."""
    right: Record | None
    differences: tuple[Difference, ...]
    """How controller, partitions, brokers, znodes and violations differ at their ends."""

    def __str__(self) -> str:
        if self.parted is None and not self.differences:
            return "the same facts from beginning to end"
        lines = []
        if self.parted is None:
            lines.append("the same facts in the same order")
        else:
            lines.append(f"the first {self.parted} facts are the same, then")
            for side, record in (("left", self.left), ("right", self.right)):
                lines.append(f"  {side:<5}  {'has ended' if record is None else describe(record)}")
        lines += [f"{d.what}\n  left   {d.left}\n  right  {d.right}" for d in self.differences]
        return "\n".join(lines)


def compare(left: Lab, right: Lab) -> Comparison:
    """Where two runs part and how they end differently. When things happened does not count, only what and in which
    order; neither do the times that znodes contain."""
    parted = next(
        (n for n, (a, b) in enumerate(zip_longest(map(_fact, left.trace), map(_fact, right.trace))) if a != b), None
    )
    here = [None if parted is None or parted >= len(lab.trace) else lab.trace[parted] for lab in (left, right)]
    ends = [_ending(lab) for lab in (left, right)]
    names = dict.fromkeys([*ends[0], *ends[1]])
    differ = [Difference(n, ends[0].get(n), ends[1].get(n)) for n in names if ends[0].get(n) != ends[1].get(n)]
    return Comparison(parted, here[0], here[1], tuple(differ))


def _fact(record: Record) -> Record:
    """A record without its moment."""
    detail = record.detail and TIMESTAMP.sub("timestamp", record.detail)
    return record._replace(time_ms=0.0, detail=detail)


def _ending(lab: Lab) -> dict[str, object]:
    """What a run has come to, by name."""
    controller = lab.controller
    ending: dict[str, object] = {"controller": controller and f"{controller.id} epoch={controller.epoch}"}
    for p in lab.partitions():
        ending[f"{p.topic}-{p.partition}"] = (
            f"{p.state} leader={p.leader} isr={list(p.isr)} replicas={list(p.replicas)} "
            f"leader_epoch={p.leader_epoch} zk_version={p.zk_version}"
        )
    for id, broker in lab.brokers.items():
        leads, follows = ([str(tp) for tp in tps] for tps in (broker.leads, broker.follows))
        ending[f"broker {id}"] = f"{broker.state} leads={leads} follows={follows}"
    for path, (data, _, _) in lab.znodes().items():
        if not path.endswith("/state"):  # that is shown as a partition
            ending[path] = TIMESTAMP.sub("timestamp", data.decode("utf-8", "backslashreplace"))
    return ending
