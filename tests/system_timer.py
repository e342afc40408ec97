"""Kafka's timer: a timing wheel on a clock, which its tests and those of `ClockTimer` run beside the kit's."""

from __future__ import annotations

from collections.abc import Callable
from math import floor

from kafka_ctl.brokers.timing_wheel import Task, TimingWheel
from kafka_ctl.ports import Clock, Timer

POLL = 200
"""The longest wait of Kafka's reaper for a bucket to expire, in milliseconds."""


class SystemTimer(TimingWheel):
    """A timing wheel on a clock, which wakes it when the next bucket expires.

    Without tasks it sleeps: buckets that were left empty are polled at its next use. `background` timers
    do not keep a lab from settling.
    Kafka 2.0.1: utils/timer/Timer.scala, SystemTimer; server/DelayedOperation.scala, ExpiredOperationReaper
    """

    def __init__(self, clock: Clock, *, background: bool = False) -> None:
        self.clock, self.background = clock, background
        super().__init__(start=self.time(), journal=False)
        self.polled_at = self.now
        self.wake: Timer | None = None
        self.wake_at = -1
        self.look: Timer | None = None

    def time(self) -> int:
        return floor(self.clock.now() * 1000 + 1e-6)  # the least bit may be lost where seconds are added

    def add(self, delay: int, action: Callable[[], object] | None = None, name: str = "") -> Task:
        """Call `action` in `delay` milliseconds of the clock, or earlier by less than a tick and a millisecond."""
        self.catch_up()
        task = super().add(delay, action, name)
        task.__class__ = WakingTask
        self.arm()
        return task

    def poll_soon(self) -> None:
        """Have `after_poll` called when the reaper looks up next: for the next bucket, or after `POLL`."""
        if self.look is None:
            now = self.catch_up()
            at = now + POLL - (now - self.polled_at) % POLL
            at = at if self.next_expiration is None else min(at, max(self.next_expiration, now))
            self.look = self.clock.later(at / 1000 - self.clock.now(), self.reap, at, background=True)

    def catch_up(self) -> int:
        """The time; buckets that expired while nothing waited are polled now, without a look at the watch lists."""
        self.now = max(self.now, self.time())
        if not self.size:
            self.polled_at = max(
                (each.expires for each in self.queue() if each.expires <= self.now), default=self.polled_at
            )
            after, self.after_poll = self.after_poll, None
            self.advance(self.now)
            self.after_poll = after
        return self.now

    def close(self) -> None:
        """Stop the timers that wake it up; waiting tasks are neither run nor cancelled."""
        for timer in (self.wake, self.look):
            if timer is not None:
                timer.cancel()
        self.wake = self.look = None

    def arm(self) -> None:
        """Be woken when the next bucket expires, if anything waits at all."""
        at = self.next_expiration if self.size else None
        if self.wake is not None and at != self.wake_at:
            self.wake.cancel()
            self.wake = None
        if at is not None and self.wake is None:
            delay = at / 1000 - self.clock.now()
            self.wake, self.wake_at = self.clock.later(delay, self.woken, at, background=self.background), at

    def woken(self, at: int) -> None:
        self.wake = None
        self.reap(at)

    def reap(self, at: int) -> None:
        """Expire what is due, which on virtual time is nothing later than `at`."""
        if self.look is not None:
            self.look.cancel()
            self.look = None
        self.polled_at = at
        self.advance(max(at, self.now, self.time()))
        self.arm()


class WakingTask(Task):
    """A task of a `SystemTimer`, which is not woken when the last one is cancelled."""

    __slots__ = ()

    def cancel(self) -> bool:
        waited, timer = super().cancel(), self.timer
        if waited and not timer.size:
            timer.arm()
        return waited
