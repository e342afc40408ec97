"""A hierarchical timing wheel: timers that cost the same to set and to cancel however many are pending.

A wheel is a ring of `n` buckets, each `tick` milliseconds wide; a task lies in the bucket of the time at which it is
due. A task beyond the ring goes to an overflow wheel, whose tick is the whole ring below it, made when it is first
needed. There is no thread that ticks: the buckets with tasks wait in one delay queue; a bucket expires when its
interval begins. Its tasks then run, or are demoted: put into a finer wheel, until their time has come. Times are whole
milliseconds.

    level 1    1 ms a bucket       20 ms altogether
    level 2   20 ms a bucket      400 ms
    level 3  400 ms a bucket    8,000 ms      a task of 450 ms: level 3, then 2, then 1

In Kafka all rings have the same number of buckets. Here they need not: `TimingWheel(1000, (60, 60, 12))` is a clock.

Kafka 2.0.1: utils/timer/TimingWheel.scala, TimingWheel; utils/timer/Timer.scala, SystemTimer;
utils/timer/TimerTaskList.scala, TimerTaskList
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from kafka_ctl.errors import BadInput, short

Placing = Callable[[int, int, int, int], tuple[int, int]]


def place(expiration: int, tick: int, n: int, now: int) -> tuple[int, int]:
    """The bucket of a ring for a task that is due at `expiration`, and when that bucket expires: at its beginning.

    Both are counted from time 0 and not from `now`, where the ring's hand is: so all tasks of a bucket are due within
    the same tick.
    """
    number = expiration // tick
    return number % n, number * tick


class Where(NamedTuple):
    """A place in the wheels: the level (1 is the finest), the bucket, and when that bucket expires."""

    level: int
    bucket: int
    expires: int


class Move(NamedTuple):
    """One line of a wheel's journal: what happened to a task or a bucket, and where that is then.

    `what` is `add`, `demote`, `run`, `cancel` (a task) or `poll` (a bucket, whose expiration has come).
    """

    time: int
    what: str
    where: Where | None
    task: Task | None = None


class Held(NamedTuple):
    """A bucket that waits in the delay queue, or holds tasks."""

    level: int
    bucket: int
    expires: int
    tasks: tuple[Task, ...]


class Level(NamedTuple):
    """One ring: the width of its buckets and of the whole, where its hand is, and the buckets in use."""

    level: int
    tick: int
    interval: int
    now: int
    buckets: tuple[Held, ...]


class Task:
    """Something to be done at `expiration` (ms); `places` are where it has been put so far."""

    __slots__ = ("_bucket", "action", "expiration", "name", "places", "state", "timer")

    def __init__(self, timer: TimingWheel, expiration: int, action: Callable[[], object] | None, name: str) -> None:
        self.timer, self.expiration, self.action, self.name = timer, expiration, action, name
        self.places: list[Where] = []
        self.state = "waiting"
        """`waiting`, `run` or `cancelled`."""
        self._bucket: Bucket | None = None

    @property
    def where(self) -> Where | None:
        """The bucket that it waits in; None when it does not wait."""
        bucket = self._bucket
        return None if bucket is None else Where(bucket.level, bucket.number, bucket.expires)

    def cancel(self) -> bool:
        """Take it out of its bucket; False where it has been run or cancelled already."""
        if self.state != "waiting":
            return False
        self.state = "cancelled"
        self.timer._cancelled(self)
        return True

    def __repr__(self) -> str:
        where = f" in {tuple(self.where)}" if self.where else ""
        return f"<task {self.name or 'without a name'} due at {self.expiration}, {self.state}{where}>"


class Bucket:
    """The tasks of one stretch of time: what the delay queue holds. It is used again for each round of its ring."""

    __slots__ = ("expires", "level", "number", "tasks")

    def __init__(self, level: int, number: int) -> None:
        self.level, self.number, self.expires = level, number, -1
        self.tasks: dict[Task, None] = {}


class Wheel:
    """One ring of buckets, and the coarser ring above it once there is one."""

    def __init__(self, timer: TimingWheel, level: int, tick: int, start: int) -> None:
        n = timer.buckets_of(level)
        self.timer, self.level, self.tick, self.interval = timer, level, tick, tick * n
        self.now = start - start % tick
        self.buckets = [Bucket(level, number) for number in range(n)]
        self.overflow: Wheel | None = None

    def add(self, task: Task) -> bool:
        """Put a task into its bucket, here or further up; False when it is due."""
        expiration = task.expiration
        if expiration < self.now + self.tick:
            return False
        if expiration >= self.now + self.interval:
            if self.overflow is None:
                self.overflow = Wheel(self.timer, self.level + 1, self.interval, self.now)
            return self.overflow.add(task)
        number, expires = self.timer.place(expiration, self.tick, len(self.buckets), self.now)
        self.timer._put(task, self.buckets[number], expires)
        return True

    def advance(self, time: int) -> None:
        """Move the hand, and those above it, to the beginning of the bucket of this time."""
        if time >= self.now + self.tick:
            self.now = time - time % self.tick
            if self.overflow is not None:
                self.overflow.advance(self.now)


class TimingWheel:
    """Rings of `n` buckets, `tick` milliseconds the finest, and the delay queue that turns them.

        from kafka_ctl import TimingWheel
        wheel = TimingWheel(tick=1, n=20)
        task = wheel.add(30, name="a request")
        task.where.level  # 2
        wheel.advance(29), wheel.advance(30) == [task]  # ([], True)

    `n` may be several numbers: of the finest ring, of the next one and so on; further rings have as many as the last.
    Time is what `advance` says it is. `place` finds a task's bucket, as the function of that name does; with
    `journal` every move is noted, and pictures are drawn from that. Raises BadInput if such a ring is not possible.
    """

    _own = staticmethod(place)

    def __init__(
        self,
        tick: int = 1,
        n: int | Sequence[int] = 20,
        start: int = 0,
        *,
        place: Placing = place,
        journal: bool = True,
    ) -> None:
        sizes = tuple(n) if isinstance(n, (list, tuple)) and n else (n,)
        for name, value, least in (("tick", tick, 1), *(("n", size, 2) for size in sizes), ("start", start, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                numbers = ", or several such numbers" if name == "n" else ""
                raise BadInput(f"{name} cannot be {short(value)}; it must be a whole number, {least} or more{numbers}")
        self.tick, self.sizes, self.start, self.now = tick, sizes, start, start
        self.n = sizes[0]
        """The buckets of the finest ring."""
        self.place = place if place is TimingWheel._own else _checked(place)
        self.size = 0
        """Tasks that wait."""
        self.polled = 0
        """Buckets that have been taken from the delay queue so far."""
        self.journal: list[Any] | None = [] if journal else None
        """A `Move` for each, and what the purgatory of this timer adds to it."""
        self.after_poll: Callable[[], object] | None = None
        """Called whenever `advance` has done its work."""
        self._queue: list[tuple[int, int, Bucket]] = []
        self._order = 0
        self._finest = Wheel(self, 1, tick, start)

    def buckets_of(self, level: int) -> int:
        """The number of buckets of the ring at this level, 1 for the finest."""
        return self.sizes[min(level, len(self.sizes)) - 1]

    def tick_of(self, level: int) -> int:
        """The milliseconds of a bucket of the ring at this level."""
        return self.tick * prod(map(self.buckets_of, range(1, level)))

    def add(self, delay: int, action: Callable[[], object] | None = None, name: str = "") -> Task:
        """Call `action` in `delay` milliseconds; at once where that is less than a tick from where the hand is."""
        _check_whole("delay", delay)
        task = Task(self, self.now + delay, action, name)
        if not self._finest.add(task):
            self._run(task)
        else:
            self.size += 1
            self._note("add", task.where, task)
        return task

    def advance(self, time: int) -> list[Task]:
        """Let it be `time`: expire every bucket that is due by then, and return the tasks that have run, in order."""
        _check_whole("time", time)
        if time < self.now:
            raise BadInput(f"the clock shows {self.now}; it cannot be set back to {short(time)}")
        run: list[Task] = []
        while self._queue and self._queue[0][0] <= time:
            expires, _, bucket = heapq.heappop(self._queue)
            self.now = max(self.now, expires)
            self.polled += 1
            run += self._expire(bucket, expires)
        self.now = time
        if self.after_poll is not None:
            self.after_poll()
        return run

    def _expire(self, bucket: Bucket, expires: int) -> list[Task]:
        """Run the tasks of a bucket that are due, and put the others into finer wheels."""
        self._finest.advance(expires)
        self._note("poll", Where(bucket.level, bucket.number, expires))
        tasks, bucket.tasks, bucket.expires = bucket.tasks, {}, -1
        run = []
        for task in tasks:
            if task.state != "waiting":  # cancelled by one that ran before it
                continue
            task._bucket = None
            if self._finest.add(task):
                self._demoted(task)
                continue
            self.size -= 1
            self._run(task)
            run.append(task)
        return run

    def _demoted(self, task: Task) -> None:
        """Note it; where `place` is wrong, the hand may not get any further."""
        where, now = task.where, self._finest.now
        if where is not None and where.expires <= now:
            raise BadInput(
                f"bucket {where.bucket} of level {where.level} would be polled without end: it expires "
                f"at {where.expires}, the clock shows {now}, and its task is due at {task.expiration}"
            )
        self._note("demote", where, task)

    def poll_soon(self) -> None:
        """Have `after_poll` called at the next opportunity: here, at the next `advance`."""

    @property
    def next_expiration(self) -> int | None:
        """The expiration of the next bucket, which may have lost its tasks. None when the delay queue is empty."""
        return self._queue[0][0] if self._queue else None

    def levels(self) -> list[Level]:
        """Every ring, the finest first, with the buckets that hold tasks or wait in the delay queue."""
        found = []
        wheel: Wheel | None = self._finest
        while wheel is not None:
            held = (Held(b.level, b.number, b.expires, tuple(b.tasks)) for b in wheel.buckets if b.expires >= 0)
            found.append(Level(wheel.level, wheel.tick, wheel.interval, wheel.now, tuple(held)))
            wheel = wheel.overflow
        return found

    def queue(self) -> list[Where]:
        """The delay queue: buckets, not tasks, the next to expire first."""
        return [Where(bucket.level, bucket.number, expires) for expires, _, bucket in sorted(self._queue)]

    def _put(self, task: Task, bucket: Bucket, expires: int) -> None:
        bucket.tasks[task] = None
        task._bucket = bucket
        if bucket.expires != expires:  # it begins a new round: only then the queue has to know
            bucket.expires = expires
            self._order += 1
            heapq.heappush(self._queue, (expires, self._order, bucket))
        if self.journal is not None:
            task.places.append(Where(bucket.level, bucket.number, expires))

    def _run(self, task: Task) -> None:
        task.state = "run"
        self._note("run", None, task)
        if task.action is not None:
            task.action()

    def _cancelled(self, task: Task) -> None:
        bucket, task._bucket = task._bucket, None
        self.size -= 1
        if bucket is not None:
            bucket.tasks.pop(task, None)
        self._note("cancel", None, task)

    def _note(self, what: str, where: Where | None, task: Task | None = None) -> None:
        if self.journal is not None:
            self.journal.append(Move(self.now, what, where, task))


def _checked(place: Placing) -> Placing:
    """A learner's function with its answers checked. Raises BadInput if an answer is not a bucket."""

    def placed(expiration: int, tick: int, n: int, now: int) -> tuple[int, int]:
        answer: object = place(expiration, tick, n, now)
        match answer:
            case (int(bucket), int(expires)) if 0 <= bucket < n and expires >= 0:
                return bucket, expires
        raise BadInput(
            f"place({expiration}, {tick}, {n}, {now}) gives {short(answer)}; expected is a pair of whole numbers: the "
            f"bucket, from 0 to {n - 1}, and the time at which it expires, in milliseconds, 0 or more"
        )

    return placed


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"{name} cannot be {short(value)}; it must be a whole number of milliseconds")
