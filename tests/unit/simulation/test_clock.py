"""The clock port on virtual time: order, quiet, background timers, and failures that come to light."""

import asyncio
import threading
from contextlib import suppress

import pytest
from prose import Prose, refuses

from kafka_ctl import Lab
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.simulation.clock import LIMIT, RealClock, VirtualClock
from kafka_ctl.simulation.loop import RunTooLong


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def log() -> list[object]:
    return []


def test_time_passes_only_when_asked_to(clock: VirtualClock, log: list[object]) -> None:
    clock.later(5, log.append, "five")
    assert clock.now() == 0
    clock.run_for(4.5)
    assert (clock.now(), log) == (4.5, [])
    clock.run_for(0.5)
    assert (clock.now(), log) == (5.0, ["five"])


def test_timers_run_in_the_order_of_their_times(clock: VirtualClock, log: list[object]) -> None:
    for seconds in (3, 1, 2):
        clock.later(seconds, log.append, seconds)
    clock.settle()
    assert log == [1, 2, 3]


def test_equal_times_run_in_the_order_they_were_asked_for(clock: VirtualClock, log: list[object]) -> None:
    for name in "cab":
        clock.later(1, log.append, name)
    clock.settle()
    assert log == ["c", "a", "b"]


def test_what_is_due_now_comes_before_what_is_due_later(clock: VirtualClock, log: list[object]) -> None:
    """A callback that asks for another one at once gets it before the next timer."""

    def first() -> None:
        log.append("first")
        clock.loop.call_soon(log.append, "at once")

    clock.later(1, first)
    clock.later(1, log.append, "second")
    clock.settle()
    assert log == ["first", "at once", "second"]


def test_tasks_sleep_and_wake_in_order(clock: VirtualClock, log: list[object]) -> None:
    async def worker(name: str, naps: int, seconds: float) -> None:
        for _ in range(naps):
            await clock.sleep(seconds)
            log.append((clock.now(), name))

    clock.spawn(worker("slow", 2, 3))
    clock.spawn(worker("fast", 3, 2))
    clock.settle()
    assert log == [(2, "fast"), (3, "slow"), (4, "fast"), (6, "slow"), (6, "fast")]


def test_a_cancelled_timer_does_nothing(clock: VirtualClock, log: list[object]) -> None:
    timer = clock.later(1, log.append, "never")
    timer.cancel()
    timer.cancel()
    clock.settle()
    assert (log, clock.now()) == ([], 0)


def test_a_background_timer_keeps_nobody_waiting(clock: VirtualClock, log: list[object]) -> None:
    """It runs when time passes, but `settle` does not wait for it."""
    clock.later(10, log.append, "background", background=True)
    clock.later(1, log.append, "foreground")
    clock.settle()
    assert (log, clock.now()) == (["foreground"], 1)
    clock.run_for(9)
    assert log == ["foreground", "background"]


def test_background_work_on_the_way_is_done(clock: VirtualClock, log: list[object]) -> None:
    """What is due before the last foreground timer runs as well."""
    clock.later(1, log.append, "background", background=True)
    clock.later(2, log.append, "foreground")
    clock.settle()
    assert log == ["background", "foreground"]


def test_settle_gives_up(prose: Prose, clock: VirtualClock) -> None:
    """What never ends is an error, not a hanging notebook; time stands where it was given up."""

    async def forever() -> None:
        while True:
            await clock.sleep(1)

    clock.spawn(forever())
    prose.refuses(ConditionNotMet, clock.settle, 10)
    assert clock.now() == 10
    assert LIMIT == 3600


def test_run_returns_what_the_coroutine_returns(clock: VirtualClock) -> None:
    async def work() -> str:
        await clock.sleep(3)
        return "done"

    assert (clock.run(work()), clock.now()) == ("done", 3)


def test_run_raises_what_the_coroutine_raises(clock: VirtualClock) -> None:
    async def work() -> None:
        await clock.sleep(1)
        raise ValueError("broken")

    refuses(ValueError, "broken", clock.run, work())


def test_waiting_for_nothing_is_noticed(prose: Prose, clock: VirtualClock) -> None:
    async def work() -> None:
        await clock.loop.create_future()

    prose.refuses(ConditionNotMet, clock.run, work())


def test_a_failed_task_comes_to_light(clock: VirtualClock, log: list[object]) -> None:
    """Whoever drives the clock gets the exception of a task that nobody awaits; afterwards it can go on."""

    async def broken() -> None:
        await clock.sleep(1)
        raise ZeroDivisionError("in the background")

    clock.spawn(broken())
    clock.later(2, log.append, "later")
    refuses(ZeroDivisionError, "in the background", clock.settle)
    clock.settle()
    assert log == ["later"]


def test_a_cancelled_task_is_no_failure(clock: VirtualClock) -> None:
    task = clock.spawn(clock.sleep(100))
    clock.run_for(1)
    task.cancel()
    clock.settle()
    assert task.cancelled()
    assert clock.now() == 1


def test_inside_a_running_loop(clock: VirtualClock, log: list[object]) -> None:
    """As in a notebook, whose own event loop runs in the thread that calls."""

    async def cell() -> None:
        clock.later(1, log.append, "ran")
        clock.settle()
        assert clock.run(answer()) == 42
        log.append(asyncio.get_running_loop() is clock.loop)

    async def answer() -> int:
        await clock.sleep(1)
        return 42

    asyncio.run(cell())
    assert log == ["ran", False]


def test_a_notebooks_loop_and_task_are_as_before(clock: VirtualClock) -> None:
    """Also after an error, and where several cells' tasks take turns: asyncio's own bookkeeping is not disturbed."""

    async def cell(fails: bool) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        clock.later(1, (lambda: 1 / 0) if fails else int)
        with suppress(ZeroDivisionError):
            clock.settle()
        assert (asyncio.get_running_loop(), asyncio.current_task()) == (loop, task)
        await asyncio.sleep(0)
        assert clock.run(other()) is not task
        assert asyncio.current_task() is task

    async def other() -> asyncio.Task | None:
        await clock.sleep(1)
        return asyncio.current_task()

    async def cells() -> None:
        await asyncio.gather(cell(True), cell(False), cell(True))

    asyncio.run(cells())


def test_no_thread_is_started(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser has none to give."""
    monkeypatch.setattr(threading.Thread, "start", None)
    test_inside_a_running_loop(clock, [])
    test_a_notebooks_loop_and_task_are_as_before(clock)


def test_an_exception_inside_a_running_loop(clock: VirtualClock) -> None:
    async def cell() -> None:
        clock.later(1, lambda: 1 / 0)
        clock.settle()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(cell())


def test_drive_stops_at_its_condition(clock: VirtualClock, log: list[object]) -> None:
    for seconds in range(1, 6):
        clock.later(seconds, log.append, seconds)
    clock.drive(lambda: len(log) == 2)
    assert (log, clock.now()) == ([1, 2], 2)
    clock.drive(lambda: False, deadline=4)
    assert (log, clock.now()) == ([1, 2, 3, 4], 4)


def test_closing_cancels_what_runs(clock: VirtualClock, log: list[object]) -> None:
    async def work() -> None:
        try:
            await clock.sleep(100)
        finally:
            log.append("ended")

    clock.spawn(work())
    clock.run_for(1)
    clock.close()
    assert log == ["ended"]


def test_two_clocks_do_not_know_each_other() -> None:
    one, other = VirtualClock(), VirtualClock()
    one.run_for(5)
    assert other.now() == 0


def test_time_jumps_from_timer_to_timer(clock: VirtualClock) -> None:
    """Hours without anything to do cost nothing: no callback runs but those that were asked for."""
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1

    for hours in range(20_000):
        clock.later(3600 * hours, tick)
    before = clock.loop.callbacks_run
    clock.settle(1e9)
    assert count == 20_000 == clock.loop.callbacks_run - before
    assert clock.now() == 3600 * 19_999


# Real time, in short


def test_real_time(prose: Prose) -> None:
    """The same promises where they hold: results, exceptions, and failures that come to light."""
    clock, log = RealClock(), []

    async def work() -> str:
        await clock.sleep(0.01)
        log.append("slept")
        return "done"

    async def broken() -> None:
        raise ValueError("broken")

    try:
        assert clock.run(work()) == "done"
        assert clock.call(lambda: 7) == 7
        assert log == ["slept"]
        refuses(ValueError, "broken", clock.run, broken())
        clock.call(lambda: clock.spawn(broken()))
        refuses(ValueError, "broken", clock.wait, lambda: False, 5)
        prose.refuses(ConditionNotMet, clock.wait, lambda: False, 0.05)
    finally:
        clock.close()


def test_a_lab_that_ran_too_long_can_be_closed() -> None:
    """Its limit may pass while it is idle, too: closing needs callbacks, and they are not refused."""
    with Lab(brokers=1) as lab:
        lab.world.clock.loop.ends = 0.0
        with pytest.raises(RunTooLong):
            lab.run_for(1)
        lab.world.clock.loop.ends = 0.0
