"""Virtual time: an event loop that jumps from timer to timer.

It runs plain asyncio code. Equal times run in the order they were asked for, so that a run depends on nothing but
what it was asked to do.
"""

# mypy: disable-error-code=override
from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import TypeVar, TypeVarTuple

from kafka_ctl.ports import PROCESS
from kafka_ctl.simulation.interrupt import Interrupts

T = TypeVar("T")
Args = TypeVarTuple("Args")


LONGEST: ContextVar[float | None] = ContextVar("longest", default=None)
"""Seconds of processor time after which the loops made now give up; None, the usual: never."""


class RunTooLong(BaseException):
    """A loop has run for as long as it may; no handler of errors within the run takes this for one of them."""


class Timer:
    """A callback that waits for its moment."""

    __slots__ = ("args", "background", "callback", "cancelled", "context", "loop", "when")

    def __init__(
        self,
        loop: VirtualLoop,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context | None,
        background: bool,
    ) -> None:
        self.loop, self.when, self.callback, self.args = loop, when, callback, args
        self.context, self.background, self.cancelled = context, background, False

    def cancel(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            self.loop.foreground -= not self.background
            self.callback, self.args = _nothing, ()


def _nothing() -> None:
    """Do nothing: the callback of a cancelled timer."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """The least an event loop must do for asyncio's tasks and futures, on a heap of (time, order).

    `tests/unit/test_relations.py` asserts the relations named below.
    """

    def __init__(self) -> None:
        self.now = 0.0
        """It never falls: a timer whose moment has passed runs now."""
        self.foreground = 0
        """Timers in `_timers` that are neither background ones nor cancelled: 0 where `pending` is empty."""
        self._ready: deque[tuple[Callable[..., object], tuple[object, ...], Context | None]] = deque()
        """Callbacks that are due; they run before any timer, first in, first out."""
        self._timers: list[tuple[float, int, Timer]] = []
        """A heap of (time, order, timer). A cancelled timer stays until it is the first; one that has run is gone."""
        self._order = 0
        """Rises with every timer, so that timers of one time run in the order they were asked for."""
        self.callbacks_run = 0
        """Callbacks run so far."""
        longest = LONGEST.get()
        self.ends = None if longest is None else time.process_time() + longest
        """The processor time of this process at which it gives up."""
        self._look_at = 0.0
        """The time of the next look at the processor time, which takes longer than many a callback."""
        self.interrupts = Interrupts()
        self.failures: list[BaseException] = []
        self.choose: Callable[[list[Timer]], Timer | None] | None = None
        """Picks the next of the foreground timers, whenever it is due; the earliest of all comes next for None."""
        self.held: dict[int | None, list[tuple[Callable[..., object], tuple[object, ...], Context]]] = {}
        """By process that stands still: what it would have done meanwhile, in order; released, it is at the end of
        `_ready`."""

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[object, None, T], *, context: Context | None = None) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, context=context)

    def call_soon(self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None) -> None:
        self._ready.append((callback, args, context))

    def call_at(
        self,
        when: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
        background: bool = False,
    ) -> Timer:
        self._order += 1
        timer = Timer(self, when, callback, args, context, background)
        self.foreground += not background
        heapq.heappush(self._timers, (when, self._order, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> Timer:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_exception_handler(self, context: Mapping[str, object]) -> None:
        if isinstance(error := context.get("exception"), BaseException):
            self.failures.append(error)

    @property
    def next_time(self) -> float | None:
        """The time of the next event; None when there will be none."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        if self._ready:
            return self.now
        return self._timers[0][0] if self._timers else None

    @property
    def ready(self) -> bool:
        """True if callbacks wait that are due now."""
        return bool(self._ready)

    @property
    def idle(self) -> bool:
        return not self._ready and not self.foreground

    def run_one(self) -> None:
        """Run the next callback, moving time forward to it if need be."""
        self.callbacks_run += 1
        if self._ready:
            callback, args, context = self._ready.popleft()
        else:
            timer = self._next_timer()
            if timer.cancelled:
                return
            self.now = max(self.now, timer.when)
            self.foreground -= not timer.background
            timer.cancelled = True
            callback, args, context = timer.callback, timer.args, timer.context
        if context is None:
            callback(*args)
        elif self.held and (process := context.get(PROCESS)) in self.held:
            self.held[process].append((callback, args, context))
        else:
            context.run(callback, *args)

    def _next_timer(self) -> Timer:
        pending = self.pending if self.choose is not None else []
        chosen = self.choose(pending) if self.choose is not None and pending else None
        if chosen is not None:
            self._timers = [entry for entry in self._timers if entry[2] is not chosen]
            heapq.heapify(self._timers)
            return chosen
        return heapq.heappop(self._timers)[2]

    @property
    def pending(self) -> list[Timer]:
        """The foreground timers that wait, the earliest first."""
        return [timer for _, _, timer in sorted(self._timers) if not timer.background and not timer.cancelled]

    def hold(self, process: int) -> None:
        """Let a process stand still: its callbacks wait until it is released."""
        self.held.setdefault(process, [])

    def release(self, process: int) -> None:
        self._ready.extend(self.held.pop(process, ()))

    @contextmanager
    def _running(self) -> Iterator[None]:
        """This is the loop that runs in this thread. A notebook's own, and the task of its cell, wait meanwhile.

        The functions are those that Python's documentation names for other implementations of tasks ("Extending").
        """
        before = asyncio._get_running_loop()
        task = None if before is None or before is self else asyncio.current_task(before)
        if before is not None and task is not None:
            asyncio.tasks._leave_task(before, task)
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)
            if before is not None and task is not None:
                asyncio.tasks._enter_task(before, task)

    def _check_limit(self, ends: float) -> None:
        self._look_at = time.monotonic() + 0.01
        if time.process_time() > ends:
            self.ends = None  # the lab can be closed
            raise RunTooLong

    def drive(self, until: Callable[[], bool], deadline: float | None) -> None:
        """Run callbacks until `until()` holds, nothing is left, or the next one lies after `deadline`.

        Raises what an interrupt raises, such as KeyboardInterrupt, and what an actor died of.
        """
        interrupts = self.interrupts
        with self._running():
            while not until():
                if interrupts.pending is not None:
                    interrupts.take()
                if self.ends is not None and time.monotonic() > self._look_at:
                    self._check_limit(self.ends)
                if not self._ready:
                    when = self.next_time
                    if when is None or (deadline is not None and when > deadline):
                        break
                self.run_one()
        if self.failures:
            raise self.failures.pop(0)
