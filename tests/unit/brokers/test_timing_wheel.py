"""The timing wheel: where a task is put, how it comes down, and that it runs in time; the numbers of its lesson."""

import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose, source
from system_timer import SystemTimer
from tables import tabled, text

from kafka_ctl import BadInput
from kafka_ctl.brokers.timing_wheel import Task, TimingWheel, place
from kafka_ctl.simulation.clock import VirtualClock

PLACES = text("timing_wheel_places.txt")
"""With ticks of 1 ms and 20 buckets, at time 0: Kafka's defaults."""


@pytest.mark.parametrize("row", PLACES.split("\n")[2:-1])
def test_a_task_lies_in_the_bucket_of_its_time(row: str) -> None:
    """In the finest wheel that reaches so far."""
    delay, *where = map(int, row.split())
    task = TimingWheel().add(delay)
    assert (task.state, task.where) == ("waiting", tuple(where))


def test_what_is_due_runs_at_once() -> None:
    """The bucket of the present has expired already."""
    ran: list[int] = []
    wheel = TimingWheel(tick=10, start=43)
    assert [wheel.add(delay, lambda: ran.append(1)).state for delay in (0, 6, 7)] == ["run", "run", "waiting"]
    assert (len(ran), wheel.size) == (2, 1)


def fall(delay: int, clock: int = 0) -> tuple[list[tuple[int, int, int]], int, int]:
    """The places of a task that is added when the clock shows that, when it runs, and the buckets polled."""
    wheel = TimingWheel()
    wheel.advance(clock)
    task = wheel.add(delay)
    wheel.advance(clock + delay - 1)
    assert task.state == "waiting"
    assert wheel.advance(clock + delay) == [task]
    assert wheel.journal is not None
    (ran,) = (move.time for move in wheel.journal if move.what == "run")
    return [tuple(where) for where in task.places], ran, wheel.polled


@tabled
def test_a_task_is_demoted_until_it_is_due(delay: int, clock: int, places: list[tuple[int, int, int]]) -> None:
    """Every bucket on its way is polled once; nothing else is."""
    assert fall(delay, clock) == (places, clock + delay, len(places))


def test_the_example_of_the_book() -> None:
    """Ticks of 1 ms, 20 buckets; tasks of 2, then 8 and 19, then 350 and 450 ms: an expired bucket is used again."""
    wheel = TimingWheel()
    two = wheel.add(2)
    assert wheel.advance(2) == [two]
    eight, nineteen = wheel.add(8), wheel.add(19)
    assert (eight.where, nineteen.where) == ((1, 10, 10), (1, 1, 21))
    assert wheel.advance(10) == [eight]
    assert wheel.add(19).where == (1, 9, 29)
    assert len(wheel.levels()) == 1
    wheel = TimingWheel()
    long = [wheel.add(delay) for delay in (350, 450)]
    assert [task.where for task in long] == [(2, 17, 340), (3, 1, 400)]
    assert [(level.tick, level.interval) for level in wheel.levels()] == [(1, 20), (20, 400), (400, 8000)]
    assert wheel.queue() == [(2, 17, 340), (3, 1, 400)]
    assert [tuple(held[:3]) for level in wheel.levels() for held in level.buckets] == wheel.queue()
    assert wheel.advance(1000) == long


def test_the_wheels_of_a_clock() -> None:
    """60 seconds, 60 minutes, 12 hours; where the hours end, a fourth ring of 12 is made."""
    clock = TimingWheel(1000, (60, 60, 12), start=3_600_000)
    ran: list[int] = []
    delays = [30, 90, 3_599, 3_600, 7_322, 43_199, 50_000]  # seconds
    tasks = [clock.add(1000 * delay, lambda: ran.append(clock.now), str(delay)) for delay in delays]
    assert [task.where.level for task in tasks if task.where] == [1, 2, 2, 3, 3, 3, 4]
    assert [level.interval for level in clock.levels()] == [60_000, 3_600_000, 43_200_000, 518_400_000]
    assert [clock.tick_of(level) for level in (1, 2, 3, 4)] == [1000, 60_000, 3_600_000, 43_200_000]
    assert clock.advance(3_600_000 + 50_000_000) == tasks
    assert ran == [3_600_000 + 1000 * delay for delay in delays]
    assert [place.level for place in tasks[4].places] == [3, 2, 1]


@pytest.mark.parametrize("n", [(), (60, 1), [60, "x"], (60, True)])
def test_every_ring_has_two_buckets_at_least(prose: Prose, n: object) -> None:
    prose.refuses(BadInput, TimingWheel, n=n)


def covered(wheel: TimingWheel, levels: int) -> list[list[tuple[int, int]]]:
    """First and last millisecond of each bucket that a ring has at the moment."""
    return [
        [(level.now + bucket * level.tick, level.now + (bucket + 1) * level.tick - 1) for bucket in range(wheel.n)]
        for level in wheel.levels()[:levels]
    ]


def test_the_example_in_kafkas_source() -> None:
    """Ticks of 1, 3 buckets. The comment of 2.0.1 prints [c+18,c+18] and [c+8,c+11] for the last of level 3, but
    that level stays where it is until c+9."""
    c = 27
    wheel = TimingWheel(1, 3, start=c)
    wheel.add(26)
    third = [(c, c + 8), (c + 9, c + 17), (c + 18, c + 26)]
    assert covered(wheel, 3) == [
        [(c, c), (c + 1, c + 1), (c + 2, c + 2)],
        [(c, c + 2), (c + 3, c + 5), (c + 6, c + 8)],
        third,
    ]
    for now in (1, 2, 3):
        wheel.add(1)  # something has to turn the hand
        wheel.advance(c + now)
        first, second, last = covered(wheel, 3)
        assert first == [(c + now + b, c + now + b) for b in range(3)]
        begin = c + now // 3 * 3
        assert second == [(begin + 3 * b, begin + 3 * b + 2) for b in range(3)]
        assert last == third


BUCKETS = text("timing_wheel_buckets.txt")
"""Of 2,000 random timeouts up to 30 s, with ticks of 1 ms."""


def timeouts(wheel: TimingWheel) -> list[Task]:
    draw = random.Random(1)
    tasks = [wheel.add(draw.randint(1, 30_000)) for _ in range(2000)]
    at_once = sum(task.state == "run" for task in tasks)
    assert len(wheel.advance(30_000)) + at_once == len(tasks)
    assert {task.state for task in tasks} == {"run"}
    return tasks


@pytest.mark.parametrize("row", BUCKETS.split("\n")[2:-1])
def test_how_many_buckets_are_worth_it(row: str) -> None:
    """With more buckets a ring, tasks move less, and fewer buckets are polled."""
    n, levels, moves, polled, memory = map(float, row.split())
    wheel = TimingWheel(1, int(n))
    tasks = timeouts(wheel)
    assert (len(wheel.levels()), wheel.polled, len(wheel.levels()) * wheel.n) == (levels, polled, memory)
    assert sum(len(task.places) for task in tasks) / len(tasks) == pytest.approx(moves, abs=0.005)


@pytest.mark.parametrize(
    ("tick", "early", "polled"), [(1, 0, 3016), (5, 4, 1930), (10, 9, 1567), (50, 49, 578), (100, 99, 299)]
)
def test_a_coarse_tick_fires_early(tick: int, early: int, polled: int) -> None:
    """A bucket expires at its beginning: early by less than a tick, never late."""
    wheel = TimingWheel(tick)
    timeouts(wheel)
    assert wheel.journal is not None
    ran = [(move.time, move.task.expiration) for move in wheel.journal if move.what == "run" and move.task]
    assert (max(due - time for time, due in ran), min(due - time for time, due in ran)) == (early, 0)
    assert wheel.polled == polled


@given(
    tick=st.integers(1, 7),
    n=st.integers(2, 9),
    start=st.integers(0, 50),
    steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000), st.integers(-1, 5)), max_size=60),
)
def test_a_wheel_and_a_heap_run_the_same_tasks(
    tick: int, n: int, start: int, steps: list[tuple[int, int, int]]
) -> None:
    """None is lost, none comes twice, late, or early by a tick or more; cancelled ones never come."""
    wheel, heap, now = TimingWheel(tick, n, start), list[tuple[int, int]](), start
    tasks: list[Task] = []
    ran: dict[int, int] = {}
    for wait, delay, cancelled in steps:
        now += wait
        run_by(wheel, now, ran)
        while heap and heap[0][0] <= now:
            assert heapq.heappop(heap)[1] in ran
        tasks.append(wheel.add(delay, name=str(len(tasks))))
        if tasks[-1].state == "run":
            ran[len(tasks) - 1] = now
        heapq.heappush(heap, (now + delay, len(tasks) - 1))
        if 0 <= cancelled < len(tasks) and tasks[cancelled].cancel():
            heap = sorted((due, other) for due, other in heap if other != cancelled)
    run_by(wheel, now + 3000, ran)
    assert {other for _, other in heap} <= ran.keys()
    assert [task.state for task in tasks] == ["run" if n in ran else "cancelled" for n in range(len(tasks))]
    assert all(0 <= tasks[number].expiration - time < tick for number, time in ran.items())
    assert wheel.size == 0


def run_by(wheel: TimingWheel, time: int, ran: dict[int, int]) -> None:
    """Let it be `time`, and note when what ran."""
    assert wheel.journal is not None
    before = len(wheel.journal)
    run = wheel.advance(time)
    moves = [move for move in wheel.journal[before:] if move.what == "run"]
    assert [move.task for move in moves] == run
    for move in moves:
        assert int(move.task.name) not in ran
        ran[int(move.task.name)] = move.time


def test_tasks_of_a_bucket_run_in_order_and_may_cancel_each_other() -> None:
    """And may add others, also such as are due at once."""
    ran: list[str] = []
    wheel = TimingWheel()
    wheel.add(5, lambda: (ran.append("first"), last.cancel(), wheel.add(0, lambda: ran.append("at once"))))
    wheel.add(5, lambda: (ran.append("second"), wheel.add(1, lambda: ran.append("later"))))
    last = wheel.add(5, lambda: ran.append("never"))
    assert len(wheel.advance(6)) == 3
    assert ran == ["first", "at once", "second", "later"]
    assert (last.state, last.cancel(), wheel.size) == ("cancelled", False, 0)


def test_an_emptied_bucket_stays_in_the_delay_queue() -> None:
    """A cancelled task costs nothing more, but its bucket is polled all the same."""
    wheel = TimingWheel()
    task = wheel.add(30_000)
    assert task.cancel()
    assert (wheel.size, task.where, wheel.queue()) == (0, None, [(4, 3, 24_000)])
    assert wheel.advance(30_000) == []
    assert (wheel.polled, wheel.queue()) == (1, [])


def plugged(mine: Callable[[int, int, int, int], tuple[int, int]]) -> tuple[int, list[int]]:
    """100 random delays below 500 ms, one every 3 ms: the buckets that are polled, and how late tasks run."""
    wheel, draw = TimingWheel(place=mine), random.Random(3)
    for _ in range(100):
        wheel.add(draw.randint(1, 499))
        wheel.advance(wheel.now + 3)
    wheel.advance(2000)
    assert wheel.journal is not None
    late = [move.time - move.task.expiration for move in wheel.journal if move.what == "run" and move.task]
    assert len(late) == 100
    return wheel.polled, [by for by in late if by > 0]


@pytest.mark.parametrize(
    ("mine", "polled"),
    [
        (place, 120),
        (lambda e, tick, n, now: ((e // tick) % n, e // tick * tick), 120),
        (lambda e, tick, n, now: (e % (tick * n) // tick, e - e % tick), 120),
        (lambda e, tick, n, now: ((e - now) // tick % n, e // tick * tick), 327),  # buckets mix rounds
        (lambda e, tick, n, now: (e % n, e // tick * tick), 2568),
    ],
)
def test_a_learners_place_is_judged_by_what_the_wheel_does(
    mine: Callable[[int, int, int, int], tuple[int, int]], polled: int
) -> None:
    """Right times with whatever buckets; what differs is the work."""
    assert plugged(mine) == (polled, [])


def test_a_place_that_rounds_runs_tasks_late() -> None:
    """Due at 67 behind 80: a bucket may wake too early, never too late."""
    polled, late = plugged(lambda e, tick, n, now: (round(e / tick) % n, round(e / tick) * tick))
    assert (polled, len(late), max(late)) == (77, 45, 194)


@pytest.mark.parametrize(
    "mine",
    [
        lambda e, tick, n, now: ((e - now) // tick % n, (e - now) // tick * tick),
        lambda e, tick, n, now: ((e // tick) % n, e // tick),
    ],
    ids=source,
)
def test_a_place_in_the_past_is_refused(prose: Prose, mine: Callable[[int, int, int, int], tuple[int, int]]) -> None:
    """Such a bucket would be polled for ever."""
    prose.refuses(BadInput, plugged, mine)


@pytest.mark.parametrize("answer", [None, 3, (1,), (20, 20), (-1, 20), (1, -5), ("a", 1), (1.0, 20.0)], ids=source)
def test_a_place_that_is_none_is_refused(prose: Prose, answer: object) -> None:
    prose.refuses(BadInput, TimingWheel(place=lambda *_: answer).add, 20)


@pytest.mark.parametrize("wrong", [{"tick": 0}, {"tick": 1.0}, {"n": 1}, {"n": True}, {"start": -1}], ids=source)
def test_a_ring_that_cannot_be_is_refused(prose: Prose, wrong: dict[str, int]) -> None:
    prose.refuses(BadInput, TimingWheel, **wrong)


def test_time_does_not_go_back(prose: Prose) -> None:
    wheel = TimingWheel()
    wheel.advance(5)
    prose.refuses(BadInput, wheel.advance, 4)
    prose.refuses(BadInput, wheel.add, 0.5)


@pytest.mark.parametrize("time", ["3", 1.5, True, None], ids=source)
def test_a_time_that_is_no_whole_number_is_refused(prose: Prose, time: Any) -> None:
    wheel = TimingWheel()
    prose.refuses(BadInput, wheel.advance, time)
    assert wheel.now == 0


def test_a_system_timer_is_woken_by_its_clock() -> None:
    """For buckets with tasks only; and a lab that settles waits for its tasks, unless they are in the background."""
    clock = VirtualClock()
    ran: list[float] = []
    timer = SystemTimer(clock)
    clock.run_for(0.0105)
    for delay in (3, 450, 20):
        timer.add(delay, lambda: ran.append(round(clock.now(), 6)))
    clock.settle()
    assert ran == [0.013, 0.03, 0.46]
    task = timer.add(30_000)
    turns = clock.loop.callbacks_run
    task.cancel()
    clock.settle()
    assert (clock.now(), timer.size, timer.queue()) == (pytest.approx(0.46), 0, [(4, 3, 24_000)])
    clock.run_for(60)
    assert clock.loop.callbacks_run <= turns + 1
    again = timer.add(20)
    assert timer.queue() == [(again.where)]  # the emptied bucket was polled at last
    timer.close()
    clock.run_for(1)
    assert again.state == "waiting"


def test_background_timers_do_not_keep_a_lab_from_settling() -> None:
    clock = VirtualClock()
    timer = SystemTimer(clock, background=True)
    task = timer.add(500)
    clock.settle()
    assert (clock.now(), task.state) == (0.0, "waiting")
    clock.run_for(0.5)
    assert task.state == "run"


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 5000), st.booleans()), max_size=30))
def test_a_system_timer_runs_what_a_wheel_runs(steps: list[tuple[int, int, bool]]) -> None:
    """At the same times, though it sleeps while nothing waits: also after fractions of a millisecond have passed."""
    clock = VirtualClock()
    timer, ran, due = SystemTimer(clock), dict[int, float](), dict[int, float]()
    for number, (wait, delay, cancelled) in enumerate(steps):
        clock.run_for(wait / 3000)
        task = timer.add(delay, lambda number=number: ran.setdefault(number, clock.now()))
        due[number] = clock.now() + delay / 1000
        if cancelled and task.cancel():
            del due[number]
    clock.settle()
    assert ran.keys() == due.keys()
    assert all(-1e-9 <= due[number] - ran[number] < 0.001 for number in due)
