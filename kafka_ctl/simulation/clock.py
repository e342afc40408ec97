"""The clock port: virtual time for the memory world, real time for the others.

Both clocks run plain asyncio code. `VirtualClock` is an event loop that jumps from timer to timer: equal
times run in the order they were asked for, so a run depends on nothing but its commands and its seed.
`RealClock` is asyncio's own loop in a thread. A *background* timer (a periodic check) never keeps
`settle` waiting; everything else does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context
from typing import TypeVar, TypeVarTuple

from kafka_ctl import ports
from kafka_ctl.errors import BadInput, ConditionNotMet, PluginFailed
from kafka_ctl.ports import LIMIT, Halted
from kafka_ctl.simulation.loop import Timer, VirtualLoop

T = TypeVar("T")
Args = TypeVarTuple("Args")


class Clock(ports.Clock):
    """The clock as a lab drives it: what actors see of it, and methods that let time pass."""

    halt: Callable[[], bool] | None = None
    """Asked before every callback of virtual time: whether to stop here."""

    def __init__(self) -> None:
        self.tasks: dict[asyncio.Task[object], None] = {}
        """Those that were spawned and have not ended."""
        self._user = threading.RLock()

    @property
    def in_order(self) -> bool:
        return False

    @property
    def in_callback(self) -> bool:
        """True in what virtual time calls while it passes; False on real time, which passes in a thread of its own."""
        return False

    asking = False
    """True while a condition of `run_until` is evaluated."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude all other threads from the block. Raises BadInput if another thread is in it."""
        if not self._user.acquire(blocking=False):
            raise BadInput(
                "another thread is using this lab; a lab is used by one thread at a time: wait until the other is done,"
                " or give each thread a lab of its own, such as lab.fork()"
            )
        try:
            yield
        finally:
            self._user.release()

    def wall(self) -> int:
        return int(self.now() * 1000)

    def sleep(self, seconds: float, background: bool = False) -> Coroutine[object, None, None]:
        return self.sleep_until(self.now() + seconds, background)

    def spawn(self, coro: Coroutine[object, None, T], context: Context | None = None) -> asyncio.Task[T]:
        """Start a task on this clock; an uncaught exception is raised in the call that drives the lab."""
        task = self.loop.create_task(coro, context=context)
        self.tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[object]) -> None:
        self.tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PluginFailed):  # that one is known since it failed
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        raise NotImplementedError

    def run_for(self, seconds: float) -> None:
        """Let so many seconds pass."""
        raise NotImplementedError

    def run(self, coro: Coroutine[object, None, T]) -> T:
        """Run one coroutine to its end from plain code and return its result."""
        raise NotImplementedError

    def call(self, function: Callable[[], T]) -> T:
        """Call a plain function where no actor runs at the same time."""
        raise NotImplementedError

    async def end_tasks(self) -> None:
        """Cancel every task that was spawned and wait until it has ended."""
        for task in list(self.tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Defer KeyboardInterrupt in this block, as far as this clock can."""
        return nullcontext()

    def interruptible(self) -> AbstractContextManager[None]:
        """Allow KeyboardInterrupt in this block again."""
        return nullcontext()

    def interrupted(self, error: KeyboardInterrupt) -> None:
        """Ctrl-C has interrupted what an actor called: raise it again where no actor is torn apart."""
        self.failed(error)

    def stopped_by(self, error: BaseException) -> bool:
        """True if this is what an interrupt raised between two callbacks."""
        return isinstance(error, KeyboardInterrupt)

    def close(self) -> None:
        raise NotImplementedError


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class VirtualClock(Clock):
    """Time that passes only when asked to, as fast as the computer can."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: VirtualLoop = VirtualLoop()  # type: ignore[abstract]

    @property
    def in_order(self) -> bool:
        return self.loop.choose is None

    def now(self) -> float:
        return self.loop.now

    def later(
        self, seconds: float, callback: Callable[[*Args], object], *args: *Args, background: bool = False
    ) -> Timer:
        return self.loop.call_at(self.loop.now + seconds, callback, *args, background=background)

    def at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> Timer:
        return self.loop.call_at(when, callback, *args, context=context)

    async def sleep_until(self, when: float, background: bool = False) -> None:
        done = self.loop.create_future()
        timer = self.loop.call_at(when, _finish, done, background=background)
        try:
            await done
        finally:
            timer.cancel()

    @property
    def in_callback(self) -> bool:
        return self.asking or self.loop.is_running()

    def failed(self, error: BaseException) -> None:
        self.loop.failures.append(error)

    def hold(self, process: int) -> None:
        self.loop.hold(process)

    def release(self, process: int) -> None:
        self.loop.release(process)

    def drive(self, until: Callable[[], bool], deadline: float | None = None) -> None:
        """Run until `until()` holds, until quiet, or up to `deadline` (seconds on this clock); Halted by `halt`."""
        halt = self.halt
        stop = until if halt is None else lambda: halt() or until()
        with self.alone():
            self.loop.drive(stop, deadline)
        if halt is not None and halt():
            raise Halted

    def run(self, coro: Coroutine[object, None, T]) -> T:
        task = self.loop.create_task(coro)
        try:
            self.drive(task.done, self.loop.now + LIMIT)
        except BaseException:  # it goes on when the lab does, but nothing waits for it any more
            self.tasks[task] = None
            task.add_done_callback(self._abandoned)
            raise
        if not task.done():
            task.cancel()
            self.drive(task.done, self.loop.now)  # it ends now, not in the middle of the next command
            raise ConditionNotMet(f"the command has not come to an end within {LIMIT:g} s of virtual time")
        return task.result()

    def _abandoned(self, task: asyncio.Task[object]) -> None:
        self.tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved

    def run_for(self, seconds: float) -> None:
        self.run_to(self.loop.now + seconds)

    def run_to(self, end: float) -> None:
        """Let time pass up to `end`, in seconds on this clock."""
        self.drive(lambda: False, end)
        self.loop.now = max(end, self.loop.now)

    def settle(self, limit: float = LIMIT, began: float | None = None) -> None:
        """Run until only background timers are left.

        Raises ConditionNotMet if that takes more than `limit` virtual seconds from `began` (by default from now)."""
        loop = self.loop
        self.drive(lambda: loop.idle, (loop.now if began is None else began) + limit)
        if not loop.idle:
            raise ConditionNotMet(f"the lab is still busy after {limit:g} s of virtual time")

    def call(self, function: Callable[[], T]) -> T:
        with self.alone():
            return function()

    def uninterrupted(self) -> AbstractContextManager[None]:
        return self.loop.interrupts.held()

    def interruptible(self) -> AbstractContextManager[None]:
        return self.loop.interrupts.at_once()

    def interrupted(self, error: KeyboardInterrupt) -> None:
        self.loop.interrupts.later(error)

    def stopped_by(self, error: BaseException) -> bool:
        return error is self.loop.interrupts.stopped

    def close(self) -> None:
        for task in list(self.tasks):
            task.cancel()
        self.loop.failures.clear()  # no command is left that could raise them
        self.drive(lambda: not self.loop.ready)
        self.loop.failures.clear()


class RealClock(Clock):
    """Wall time on asyncio's loop in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self._start = time.monotonic()
        self._failures: list[BaseException] = []
        self.closed = False
        self.pending = 0
        """Foreground waits that are still running."""
        self.thread = threading.Thread(target=self._run, name="kafka-ctl-lab", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def now(self) -> float:
        return time.monotonic() - self._start

    def wall(self) -> int:
        return int(time.time() * 1000)

    def later(
        self, seconds: float, callback: Callable[[*Args], object], *args: *Args, background: bool = False
    ) -> ports.Timer:
        return self.loop.call_later(seconds, callback, *args)

    def at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> ports.Timer:
        if (left := when - self.now()) <= 0:
            return self.loop.call_soon(callback, *args, context=context)
        return self.loop.call_later(left, callback, *args, context=context)

    def hold(self, process: int) -> None:
        """Its tasks go on, but it hears nothing: its session stands still, and requests to it wait."""

    def release(self, process: int) -> None:
        """Nothing was held."""

    async def sleep_until(self, when: float, background: bool = False) -> None:
        self.pending += not background
        try:
            await asyncio.sleep(when - self.now())
        finally:
            self.pending -= not background

    def failed(self, error: BaseException) -> None:
        self._failures.append(error)

    def raise_failure(self) -> None:
        """Raise what an actor died of, if any did since the last call."""
        if self._failures:
            raise self._failures.pop(0)

    def _await(self, coro: Coroutine[object, None, T]) -> T:
        if threading.current_thread() is self.thread:
            coro.close()
            raise RuntimeError("an actor of the lab cannot wait for the lab")
        if self.closed:
            coro.close()
            raise BadInput("this lab is closed; only its trace can still be read")
        future = asyncio.run_coroutine_threadsafe(coro, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run(self, coro: Coroutine[object, None, T]) -> T:
        """Run one coroutine to its end; interrupted, it is cancelled. BadInput when the clock has been closed."""
        result = self._await(coro)
        self.raise_failure()
        return result

    def call(self, function: Callable[[], T]) -> T:
        """Call a plain function in the loop's thread."""
        if threading.current_thread() is self.thread:
            return function()

        async def once() -> T:
            return function()

        return self._await(once())

    def run_for(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    def wait(self, until: Callable[[], bool], limit: float) -> None:
        """Look every few milliseconds whether `until()` holds; ConditionNotMet after `limit` seconds.

        `until` is called in the thread that waits, so it may ask the lab anything.
        """
        end = self.now() + limit
        while not until():
            self.call(self.raise_failure)
            if self.now() > end:
                raise ConditionNotMet(f"the condition did not hold within {limit:g} s")
            time.sleep(0.01)
        self.call(self.raise_failure)

    def close(self) -> None:
        """End every task, the loop and its thread."""
        self._await(self.end_tasks())
        self.closed = True
        self._failures.clear()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
