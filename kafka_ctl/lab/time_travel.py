"""Time travel: any moment of a run is reached by replaying its story up to that record.

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
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from kafka_ctl.errors import BadInput, ConditionNotMet, KafkaCtlError, Unavailable, UnknownName, short
from kafka_ctl.generation import Generation
from kafka_ctl.lab import link, story, validate
from kafka_ctl.lab.commands import Commands
from kafka_ctl.lab.ending import Keeper
from kafka_ctl.lab.story import REFUSED, UNTIL, Command, Opening
from kafka_ctl.plugins import Plugins
from kafka_ctl.simulation.clock import Halted, VirtualClock
from kafka_ctl.simulation.world import MEMORY
from kafka_ctl.trace.record import Record

LONG = 100_000
"""Records from which a replay, of a second or two, is said to take long."""
EVERY = 2.0
"""Seconds between two lines."""
LOOK = 0x3FFF
"""One record in so many looks at the clock."""

Report = Callable[[int, int], object]
"""Called with how many records there are, and how many there will be."""


class Progress:
    """A listener of a trace that will have `total` records."""

    def __init__(self, what: str, total: int, report: Report | None = None) -> None:
        self.what, self.total = what, total
        self._report = report if report is not None or total < LONG else self._print
        self._began = self._last = time.monotonic()

    def __call__(self, record: Record) -> None:
        if not record.seq & LOOK and self._report is not None:
            self._report(min(record.seq, self.total), self.total)

    def _print(self, there: int, total: int) -> None:
        now = time.monotonic()
        if there and now - self._last >= EVERY:
            self._last = now
            left = (now - self._began) * (total - there) / there
            print(
                f"{self.what}: record {there:,} of {total:,} of the story replayed, {left:.0f} s left",
                file=sys.stderr, flush=True,
            )  # fmt: skip


OPEN = "lab"
OPENED = Command(OPEN, (), {})
"""The settling with which a lab begins."""
Stop = tuple[int, int] | float | None
"""Where commands end: after a record and so many callbacks, so many seconds into the last one, or at its end."""
Part = tuple[list[Command], Stop]


class TimeTravel(Commands):
    """The part of a lab that knows its own story and can go to any point of it."""

    generation: Generation
    seed: int
    plugins: Plugins
    _settled_first: bool
    _keeper: Keeper
    _opened: int
    """How many records there were when the lab had been opened: its first moment."""

    @property
    def opening(self) -> Opening:
        """The arguments of `Lab` that open this one, as its story has them."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    @property
    def story(self) -> str:
        """The run as text: `Lab.replay(lab.story)` opens it again, in memory exactly."""
        return "\n".join(map(str, [Command("lab", (), self.opening), *self.commands])) + "\n"

    def link(self, step: int | None = None) -> str:
        """The run as an address within a site of `kafka-ctl site`, `try.html#story=...`: opened there, it is played.

        `step` is the picture to begin with, 0 for the first; None is the last. Raises BadInput where a story does not
        repeat: on real time, and with functions of your own.
        """
        self._require_memory_world("a link")
        if self.plugins.given:
            raise BadInput(f"a link cannot hold functions: {', '.join(self.plugins.given)}")
        at = None if step is None else validate.integer("a step", step)
        return f"{link.PAGE}#{link.Link(self.story, at).fragment()}"

    @classmethod
    def replay(
        cls,
        text: str | Path,
        zookeeper: str = MEMORY,
        until: int | None = None,
        *,
        join: bool = False,
        elections: Mapping[str, Callable[..., object]] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
    ) -> Self:
        """Open a story (text or file) and run its commands; with `until`, no further than that record of the trace.

        `zookeeper`, `join`, `elections` and `rules` are those of `Lab`; functions that the story names, which it cannot
        hold, have to be given again. What was not reached when the story was made (ConditionNotMet) is not
        reached again, and the run goes on as it did then, unless that was its last command. Raises BadInput for a line
        that cannot be run, and when there is no record `until`.
        """
        last = None if until is None else validate.integer("until", until)
        return cls._replayed(text, last, None, zookeeper, join, Plugins(elections, rules))

    @classmethod
    def _replayed(
        cls,
        text: str | Path,
        until: int | None,
        progress: Progress | None,
        zookeeper: str = MEMORY,
        join: bool = False,
        plugins: Plugins | None = None,
    ) -> Self:
        lines = list(story.parse(story.read(text)))
        if not lines:
            raise BadInput("the story is empty; it begins with a line such as: lab brokers=3 generation=2.0 seed=7")
        opening = story.opening(lines[0], plugins) | {"zookeeper": zookeeper, "join": join}
        lab = cls._played(opening, list(_parts(lines[1:], until)), progress)
        if until is not None and len(lab.trace) <= until:
            lab.close()
            raise BadInput(f"until={until}: this story ends with record {len(lab.trace) - 1}")
        return lab

    @classmethod
    def _played(cls, opening: Opening, parts: list[Part], progress: Progress | None = None) -> Self:
        """A lab in which these parts have been played."""
        settles = opening.get("settle", True)
        whole = all(stop is None for _, stop in parts)
        try:
            lab = cls(**opening | {"settle": settles and whole})
        except BadInput as error:
            error.args = (error.unnamed or str(error),)  # nobody has called the constructor
            raise
        lab._settled_first = settles
        listeners = [] if progress is None else [progress]
        lab.trace.listeners.extend(listeners)
        try:
            if whole:
                lab._run(parts[0][0])
            else:
                parts[0][0][:0] = [OPENED] * settles
                for number, (lines, stop) in enumerate(parts, 1):
                    lab._play(lines, stop, raises=number == len(parts))
        except BaseException:
            lab.close()
            raise
        for listener in listeners:
            lab.trace.listeners.remove(listener)
        return lab

    def _play(self, lines: list[Command], stop: Stop, raises: bool) -> None:
        """Run commands up to their stop, which becomes a line of the story.

        A stop with a number of callbacks is in the last command: those before came to their ends.
        """
        clock, records = self._require_memory_world("a run that stops").clock, self.trace.records
        last, callbacks_run = stop if isinstance(stop, tuple) else (math.inf, 0)
        if isinstance(stop, float) or callbacks_run:
            self._run(lines[:-1], raises=False)
            lines = lines[-1:]
        end = clock.now() + stop if isinstance(stop, float) else math.inf

        def halt() -> bool:
            return (len(records) > last and clock.loop.callbacks_run >= callbacks_run) or (
                clock.loop.next_time or 0.0
            ) > end

        clock.halt = halt
        try:
            self._run(lines, raises)
        except Halted:
            self._stopped()
            if (
                isinstance(stop, tuple) and not callbacks_run
            ):  # the first callback that is known to have left the record
                self.commands[-1] = self.commands[-1]._replace(args=(len(records) - 1,))
        finally:
            clock.halt = None

    def _run(self, lines: list[Command], raises: bool = True) -> None:
        """Run them; what was not reached is raised by the last of them only, if at all."""
        clock = self._world.clock
        for line in lines:
            try:
                if line is OPENED:
                    self._world.settle()
                else:
                    self.do(line)
            except Halted:
                raise
            except (ConditionNotMet, Unavailable):
                if raises and line is lines[-1]:
                    raise
            if isinstance(clock, VirtualClock) and clock.halt is not None and clock.halt():
                raise Halted

    def do(self, line: Command | str) -> object:
        """Run one command of a story, as text or as parsed; one that was refused may be refused again.

        Raises UnknownName for what is no command, BadInput for a text that is not one line.
        """
        line = line if isinstance(line, Command) else _only(line)
        refused = line.name == REFUSED and bool(line.args)
        line = line._replace(name=line.args[0], args=line.args[1:]) if refused else line
        method = getattr(type(self), str(line.name), None)
        if method is None or not getattr(method, "is_command", False):
            known = [name for name in dir(type(self)) if getattr(getattr(type(self), name), "is_command", False)]
            raise UnknownName(f"command (line {line.line})" if line.line else "command", line.name, known)
        try:
            return method(self, *line.args, **line.kwargs)
        except KafkaCtlError as error:
            if refused and not isinstance(error, (ConditionNotMet, Unavailable)):
                return None
            if isinstance(error, BadInput) and line.line:
                error.args, error.unnamed = (f"line {line.line}: {error.unnamed or error}",), None
            raise

    vars(do)["names_itself"] = True

    def fork(
        self,
        at: int | None = None,
        generation: str | Generation | None = None,
        seed: int | None = None,
        config: Mapping[str, object] | None = None,
        progress: Report | None = None,
        elections: Mapping[str, Callable[..., object]] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
    ) -> Self:
        """Another lab with the same story, up to record `at` of this one's trace (all of it, if None).

        With another generation, seed or configuration (Kafka's keys, added to those given) or with functions of your
        own (`elections`, `rules`: instead of ours, see `kafka_ctl.plugins`) the records will be others:
        the fork then gets the same commands, and stops as long after the last of them as `at` is here. The story is
        replayed for it, some 70,000 records a second: where that takes long, `progress` is called with how many
        records there are and how many there will be; without it, a line on standard error says so every two seconds.
        """
        self._require_memory_world("fork")
        if at is not None and not validate.integer("at", at) < len(self.trace):
            raise BadInput(f"fork(at={at}): the trace has records 0 to {len(self.trace) - 1}")
        given = None if config is None else validate.mapping("a config", config)
        note = Progress(
            "fork", len(self.trace) if at is None else at + 1, validate.function("progress", progress, 0, 0)
        )
        if all(other is None for other in (generation, seed, config, elections, rules)):
            return self._replayed(self.story, at, note, plugins=self.plugins)
        opening = story.opening(Command(OPEN, (), self.opening), self.plugins)
        opening |= {} if elections is None else {"elections": elections}
        opening |= {} if rules is None else {"rules": rules}
        opening |= {} if generation is None else {"generation": Generation(generation)}
        opening |= {} if seed is None else {"seed": seed}
        opening |= {} if given is None else {"config": opening.get("config", {}) | dict(given)}
        return self._played(opening, self._parts_in_time(at), note)

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

    def back(self, n: int = 1, progress: Report | None = None) -> None:
        """Undo the last `n` moments that left records (see `step`): this lab is again as it was before them.

        The story is replayed up to there, with `progress` as in `fork`; until that has come to its end nothing is
        undone. Raises BadInput where there were not as many moments.
        """
        self._require_memory_world("back")
        validate.integer("a number of moments", n, 1)
        size = max(1, self._moment(n))
        note = Progress("back", size, validate.function("progress", progress, 0, 0))
        before = self._replayed(self.story, size - 1, note, plugins=self.plugins)
        world, keeper = self._world, self._keeper
        with world.clock.uninterrupted():
            vars(self).update(vars(before))
            world.close()
        del keeper  # not before its world is closed

    def _moment(self, n: int) -> int:
        """How many records there were before the last `n` moments; BadInput where there were not as many moments."""
        callbacks_run, counted = self._require_memory_world("back").callbacks_at_record, 0
        begun = {command.seq for command in self.commands}
        for seq in range(len(callbacks_run) - 1, -1, -1):
            first = seq == 0 or seq == self._opened
            counted += first or (seq > self._opened and (callbacks_run[seq - 1] != callbacks_run[seq] or seq in begun))
            if counted == n:
                return seq
        raise BadInput(f"back(n={short(n)}): only {counted} moments have left records so far")


def _only(text: object) -> Command:
    """The command that a text is."""
    lines = list(story.parse(text)) if isinstance(text, str) else []
    if len(lines) != 1:
        raise BadInput(f"do: a command cannot be {short(text)}; it is one line of a story, such as 'kill 1'")
    return lines[0]._replace(line=0)


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
