"""The purgatory: requests that wait until something happens, or until they have waited long enough.

An operation is tried. If it cannot be completed, it is put on the watch list of every key that may complete it (usually
a partition), tried once more, and only then given to the timer. It is completed exactly once: by the first check that
succeeds, or by its timeout. Completion takes it out of the timer at once, but leaves it on the watch lists until they
are purged. So there are two counts, `watched` and `delayed`, which need not agree.

Kafka 2.0.1: server/DelayedOperation.scala, DelayedOperation, DelayedOperationPurgatory
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_ctl.errors import BadInput, short

if TYPE_CHECKING:
    from kafka_ctl.brokers.timing_wheel import Task, TimingWheel
    from kafka_ctl.ports import Clock

PURGE_INTERVAL = 1000
"""Completed operations before watch lists are purged: `fetch.` and `producer.purgatory.purge.interval.requests`."""
NEVER = 1 << 62
"""The delay of an operation that ends by an event only, or when it says so itself."""
REAPER_WAIT = 0.2
"""Seconds after which the reaper looks up in any case."""


class DelayedOperation:
    """Something that waits for at most `delay` milliseconds, or NEVER ends by itself; a broker awaits its `result`.

    A subclass says in `try_complete` when it is done, and in `on_complete` what its result is.
    """

    def __init__(self, delay: int, name: str = "") -> None:
        self.delay, self.name = delay, name
        self.is_completed = self.is_expired = False
        self.result: object = None
        self.purgatory: Purgatory | None = None
        self._pending: Task | _Alarm | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def try_complete(self) -> bool:
        """Complete it if it can be by now, and say so: check, then `return self.force_complete()`."""
        raise NotImplementedError

    def on_complete(self) -> object:
        """The result; called once."""

    def looked_at(self) -> None:
        """Called where an event of one of its keys did not complete it."""

    def on_expiration(self) -> None:
        """Called after `on_complete` where time was up."""

    def force_complete(self) -> bool:
        """Complete it, unless it is completed already; True for the first caller only."""
        if self.is_completed:
            return False
        self.is_completed = True
        self.cancel()
        if self.purgatory is not None:
            self.purgatory._completed(self)
        self.result = self.on_complete()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        return True

    def expire(self) -> None:
        self.is_expired = not self.is_completed
        if self.force_complete():
            self.on_expiration()

    def cancel(self) -> None:
        """Take it out of the timer, which leaves it on the watch lists and uncompleted."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def __repr__(self) -> str:
        state = f"completed: {self.result}" if self.is_completed else "waiting"
        return f"<{self.name or 'operation'}, {state}>"

    def __await__(self) -> Generator[object, None, Any]:
        if not self.is_completed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        return self.result


class Change(NamedTuple):
    """One line of what a timer's journal tells of its purgatory.

    `what` is `watch` (on a key), `complete`, `expire`, `drop` (from the list of a key) or `purge` (of all lists).
    """

    time: int
    what: str
    operation: DelayedOperation | None = None
    key: Hashable = None


class Purgatory:
    """Delayed operations by what may complete them; `timer` serves no other purgatory.

    Completed operations are purged from the watch lists once there are more than `purge_interval`. Raises BadInput if
    the timer is none, or the interval is not a whole number of 0 or more.
    """

    def __init__(self, timer: TimingWheel | ClockTimer, purge_interval: int = PURGE_INTERVAL) -> None:
        if not hasattr(timer, "after_poll"):
            raise BadInput(f"timer cannot be {short(timer)}; it must be a timer, such as TimingWheel()")
        if not isinstance(purge_interval, int) or isinstance(purge_interval, bool) or purge_interval < 0:
            raise BadInput(
                f"purge_interval cannot be {short(purge_interval)}; it must be a whole number of operations, 0 or more"
            )
        self.timer, self.purge_interval = timer, purge_interval
        self.watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        """By key, the operations on its watch list, completed ones among them."""
        self._total = 0
        """Operations since the last purge, and those that were delayed then."""
        timer.after_poll = self._purge_if_due

    @property
    def watched(self) -> int:
        """The length of all watch lists together: Kafka's gauge PurgatorySize."""
        return sum(map(len, self.watchers.values()))

    @property
    def delayed(self) -> int:
        """The operations that wait: Kafka's gauge NumDelayedOperations."""
        return self.timer.size

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Complete an operation, or let it wait for an event of any of these keys; True if this call completed it.

        Without the second try an event after the first one, and before the last key is watched, would be lost.
        """
        if not keys:
            raise BadInput("an operation that waits needs at least one key to be watched on")
        if operation.try_complete():
            return True
        operation.purgatory = self
        for place, key in enumerate(keys):
            if operation.is_completed:
                return False
            self.watchers.setdefault(key, {})[operation] = None
            self._total += not place
            self._note("watch", operation, key)
        if operation.try_complete():
            return True
        if not operation.is_completed:
            operation._pending = self.timer.add(operation.delay, operation.expire, operation.name)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Something has happened to this key: complete what can be now, and return how many operations that were."""
        completed, watchers = 0, self.watchers.get(key, {})
        for operation in list(watchers):
            done = operation.is_completed
            if done or operation.try_complete():
                completed += not done
                self._drop(key, watchers, operation)
            else:
                operation.looked_at()
        return completed

    def _drop(self, key: Hashable, watchers: dict[DelayedOperation, None], operation: DelayedOperation) -> None:
        """Take an operation off a watch list, and the list away when it is empty."""
        watchers.pop(operation, None)
        self._note("drop", operation, key)
        if not watchers and self.watchers.get(key) is watchers:
            del self.watchers[key]

    def _completed(self, operation: DelayedOperation) -> None:
        self._note("expire" if operation.is_expired else "complete", operation)
        if self._total - self.delayed > self.purge_interval:
            self.timer.poll_soon()

    def _purge_if_due(self) -> None:
        """Purge after a poll of the reaper: too many operations are completed, so go through every watch list."""
        if self._total - self.delayed <= self.purge_interval:
            return
        self._total = self.delayed
        self._note("purge")
        for key, watchers in list(self.watchers.items()):
            for operation in [operation for operation in watchers if operation.is_completed]:
                self._drop(key, watchers, operation)

    def _note(self, what: str, operation: DelayedOperation | None = None, key: Hashable = None) -> None:
        if self.timer.journal is not None:
            self.timer.journal.append(Change(self.timer.now, what, operation, key))


class ClockTimer:
    """Takes each action at its own moment of a clock, where a wheel would take it up to a millisecond earlier.

    That is what the brokers of a lab have: their clock knows fractions of a millisecond, and their runs are compared.
    """

    journal: list[object] | None = None

    def __init__(self, clock: Clock, background: bool = False) -> None:
        self.clock, self.size, self.started = clock, 0, clock.now()
        self.background = background
        """True if a lab is at rest although operations wait."""
        self.after_poll: Callable[[], object] | None = None
        self._polls = False

    @property
    def now(self) -> int:
        return int(self.clock.now() * 1000)

    def add(self, delay: int, action: Callable[[], object] | None = None, name: str = "") -> _Alarm:
        self.size += 1
        return _Alarm(self, delay, action)

    def poll_soon(self) -> None:
        if not self._polls:
            self._polls = True
            wait = REAPER_WAIT - (self.clock.now() - self.started) % REAPER_WAIT
            self.clock.later(wait, self._poll, background=True)

    def _poll(self) -> None:
        self._polls = False
        if self.after_poll is not None:
            self.after_poll()


class _Alarm:
    """One action of a `ClockTimer`."""

    def __init__(self, timer: ClockTimer, delay: int, action: Callable[[], object] | None) -> None:
        self.timer, self.action, self.waits = timer, action, True
        self._later = None
        if delay != NEVER:
            self._later = timer.clock.later(delay / 1000, self._ring, background=timer.background)

    def cancel(self) -> bool:
        waited, self.waits = self.waits, False
        self.timer.size -= waited
        if self._later is not None:
            self._later.cancel()
        return waited

    def _ring(self) -> None:
        self.cancel()
        if self.action is not None:
            self.action()
