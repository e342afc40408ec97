"""Time travel: a run is its story, so any moment of it is reached by telling the story again up to there.

A story that stops in the middle of a command says so in a line of its own, which `Lab.story` writes and `Lab.replay`
understands:

    settle
    until 812        the settle before ended here, just after record 812

What is stopped goes on with whatever is asked next. A stop is between two callbacks: the records that one callback
writes belong together. Where callbacks that leave no record came before the stop, a second number says how many have
run altogether. Only virtual time can be travelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kafka_ctl.errors import BadInput, NotReached, Unavailable, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import checks, story
from kafka_ctl.lab.clock import Halted, VirtualClock
from kafka_ctl.lab.commands import Commands
from kafka_ctl.lab.story import REFUSED, UNTIL, Command
from kafka_ctl.lab.world import MEMORY

if TYPE_CHECKING:
    pass

OPEN = "lab"
OPENED = Command(OPEN, (), {})
"""The settling with which a lab begins."""
Stop = tuple[int, int] | float | None
"""Where commands end: after a record and so many callbacks, so many seconds into the last one, or at its end."""
Part = tuple[list[Command], Stop]


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
        until = None if until is None else checks.whole("until", until)
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

    def _play(self, lines: list[Command], stop: Stop, note: Callable[[int], None] | None) -> None:
        """Run commands up to their stop, which becomes a line of the story."""
        clock, records = self._memory("a run that stops").clock, self.trace.records
        if isinstance(stop, float):
            self._run(lines[:-1])
            lines = lines[-1:]
        end = clock.now() + stop if isinstance(stop, float) else math.inf
        last, turns = stop if isinstance(stop, tuple) else (math.inf, 0)

        def halt() -> bool:
            if note is not None:
                note(len(records))
            return (len(records) > last and clock.loop.turns >= turns) or (clock.loop.next_time or 0.0) > end

        clock.halt = halt
        try:
            self._run(lines)
        except Halted:
            self._stopped()
            if isinstance(stop, tuple) and not turns:  # the first callback that is known to have left the record
                self.commands[-1] = self.commands[-1]._replace(args=(len(records) - 1,))
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
            except (NotReached, Unavailable):
                if line is lines[-1]:
                    raise
            if isinstance(clock, VirtualClock) and clock.halt is not None and clock.halt():
                raise Halted

    def do(self, line: Command) -> object:
        """Run one command of a story; one that was refused may be refused again."""
        refused = line.name == REFUSED and bool(line.args)
        line = line._replace(name=line.args[0], args=line.args[1:]) if refused else line
        method = getattr(type(self), str(line.name), None)
        if not getattr(method, "is_command", False):
            known = [name for name in dir(type(self)) if getattr(getattr(type(self), name), "is_command", False)]
            raise UnknownName(f"command (line {line.line})", line.name, known)
        try:
            return method(self, *line.args, **line.kwargs)  # type: ignore[misc]
        except TypeError as error:
            raise BadInput(f"line {line.line}: {line}: {error}") from None
        except BadInput as error:
            if refused:
                return None
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
        if at is not None and not checks.whole("at", at) < len(self.trace):
            raise BadInput(f"fork(at={at}): the trace has records 0 to {len(self.trace) - 1}")
        given = None if config is None else checks.mapping("a config", config)
        if generation is None and seed is None and config is None:
            return type(self).replay(self.story, until=at)
        opening = story.opening(Command(OPEN, (), self._opening()))
        opening |= {} if generation is None else {"generation": Generation(generation)}
        opening |= {} if seed is None else {"seed": seed}
        opening |= {} if given is None else {"config": opening.get("config", {}) | dict(given)}
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
        checks.whole("a number of moments", n, 1)
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
        if not 1 <= len(line.args) <= 2 or line.kwargs or not all(map(_counts, line.args)):
            raise BadInput(f"line {line.line}: {line}: 'until' needs the number of a record")
        if until is not None and until <= line.args[0]:
            break
        yield part, (*line.args, 0)[:2]
        part = []
    yield part, None if until is None else (until, 0)


def _counts(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
