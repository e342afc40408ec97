"""The purgatory: completed once, by an event or by time; what is watched and what waits; the numbers of its lesson."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labs import lab_of, play, until_quiet
from prose import Prose
from system_timer import SystemTimer
from tables import text

from kafka_ctl import BadInput, Lab, TopicPartition
from kafka_ctl.brokers.delayed_operations import (
    TIMED_OUT,
    TOO_FEW,
    Appended,
    DelayedFetch,
    DelayedProduce,
    FetchPartition,
    LogOffset,
    LogOffsets,
    enough_replicas,
)
from kafka_ctl.brokers.purgatory import ClockTimer, DelayedOperation, Purgatory
from kafka_ctl.brokers.timing_wheel import TimingWheel
from kafka_ctl.simulation.clock import VirtualClock


class Switch(DelayedOperation):
    """Is done once `on`; `tried` is called with each try."""

    def __init__(self, delay: int = 500, tried: Callable[[Switch], object] | None = None) -> None:
        super().__init__(delay)
        self.on, self.tried, self.tries = False, tried, 0
        self.reported: list[str] = []

    def try_complete(self) -> bool:
        self.tries += 1
        if self.tried:
            self.tried(self)
        return self.on and self.force_complete()

    def on_complete(self) -> str:
        self.reported.append("complete")
        return "in time" if self.on else "too late"

    def on_expiration(self) -> None:
        self.reported.append("expired")


def at_try(number: int, do: Callable[[Switch], object]) -> Callable[[Switch], object]:
    return lambda op: do(op) if op.tries == number else None


def switch_on(op: Switch) -> None:
    op.on = True


def test_what_can_be_completed_does_not_wait() -> None:
    """It is neither watched nor timed."""
    purgatory, op = Purgatory(TimingWheel()), Switch(tried=switch_on)
    assert purgatory.try_complete_else_watch(op, ["a"])
    assert (op.result, op.tries, purgatory.watchers, purgatory.delayed) == ("in time", 1, {}, 0)


def test_an_event_between_the_first_try_and_the_watch_is_not_lost() -> None:
    """The second try, after the last key, sees it; the operation stays on the lists, completed."""
    purgatory, op = Purgatory(TimingWheel()), Switch(tried=at_try(2, switch_on))
    assert purgatory.try_complete_else_watch(op, ["a", "b"])
    assert (op.tries, purgatory.watched, purgatory.delayed) == (2, 2, 0)
    assert purgatory.check_and_complete("a") == 0  # it is only taken off the list
    assert (op.tries, purgatory.watched, op.reported) == (2, 1, ["complete"])


def test_somebody_else_completes_it_meanwhile() -> None:
    """While it is tried for the second time: this call has not done it, and gives it to no timer."""
    purgatory = Purgatory(TimingWheel())
    op = Switch(tried=at_try(2, lambda op: op.force_complete()))
    assert not purgatory.try_complete_else_watch(op, ["a"])
    assert (op.reported, purgatory.watched, purgatory.delayed) == (["complete"], 1, 0)


def test_an_event_completes_what_waits_for_it() -> None:
    """Once, whichever key comes first; the timer forgets it at once, the other lists when they are looked at."""
    purgatory = Purgatory(TimingWheel())
    first, second = Switch(), Switch()
    assert not purgatory.try_complete_else_watch(first, ["a", "b"])
    assert not purgatory.try_complete_else_watch(second, ["a"])
    assert (purgatory.watched, purgatory.delayed) == (3, 2)
    assert purgatory.check_and_complete("a") == 0
    first.on = True
    assert purgatory.check_and_complete("a") == 1
    assert (purgatory.watched, purgatory.delayed) == (2, 1)
    assert purgatory.check_and_complete("b") == 0
    assert list(purgatory.watchers) == ["a"]
    assert purgatory.check_and_complete("nobody's") == 0
    assert first.reported == ["complete"]


def test_time_completes_it_too() -> None:
    """`on_expiration` comes after `on_complete`; an event afterwards finds nothing to do."""
    timer = TimingWheel()
    purgatory, op = Purgatory(timer), Switch()
    purgatory.try_complete_else_watch(op, ["a"])
    timer.advance(499)
    assert not op.is_completed
    timer.advance(500)
    assert (op.result, op.reported, op.is_expired) == ("too late", ["complete", "expired"], True)
    assert (purgatory.watched, purgatory.delayed) == (1, 0)
    op.on = True
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.watched == 0


def test_who_completes_one_may_set_off_others() -> None:
    """Also of the same key, in the middle of its list."""
    purgatory = Purgatory(TimingWheel())
    ops = [Switch() for _ in range(4)]
    for op in ops:
        purgatory.try_complete_else_watch(op, ["a"])
    ops[1].tried = lambda op: purgatory.check_and_complete("a") if op.on and op.tries == 3 else None
    ops[1].on = ops[2].on = ops[3].on = True
    completed = purgatory.check_and_complete("a")
    assert [op.reported for op in ops] == [[], ["complete"], ["complete"], ["complete"]]
    assert (completed, list(purgatory.watchers["a"])) == (0, [ops[0]])  # those inside were counted inside


def test_bad_input(prose: Prose) -> None:
    prose.refuses(BadInput, Purgatory(TimingWheel()).try_complete_else_watch, Switch(), [])
    prose.refuses(BadInput, Purgatory, TimingWheel(), -1)
    no_timer: Any = None
    prose.refuses(BadInput, Purgatory, no_timer)


GAUGES = text("purgatory_gauges.txt")
"""After 5,000 fetches, one every 20 ms, each watched on so many partitions of which only the first gets records."""


@pytest.mark.parametrize("kind", ["by hand", "system timer", "clock timer"])
@pytest.mark.parametrize("row", GAUGES.split("\n")[2:-1])
def test_two_gauges_that_disagree(row: str, kind: str) -> None:
    """Nothing waits, tens of thousands are watched: the reaper looks every 200 ms, and purges above the interval."""
    count, interval, watched, peak = map(int, row.split())
    clock = VirtualClock()
    by_hand = TimingWheel(journal=False)
    timers = {"by hand": by_hand, "system timer": SystemTimer(clock, background=True), "clock timer": ClockTimer(clock)}
    purgatory, keys, most = Purgatory(timers[kind], interval), [f"t-{p}" for p in range(count)], 0
    clock.run_for(0.199)
    for number in range(5000):
        op = Switch()
        assert not purgatory.try_complete_else_watch(op, keys)
        op.on = True
        assert purgatory.check_and_complete(keys[0]) == 1
        most = max(most, purgatory.watched)
        clock.run_for(0.02)
        if number % 10 == 0:
            by_hand.advance(number * 20)
    assert (purgatory.watched, most, purgatory.delayed) == (watched, peak, 0)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 300), st.sets(st.integers(0, 3), min_size=1)),
            st.tuples(st.just("on"), st.integers(0, 20), st.just(set[int]())),
            st.tuples(st.just("event"), st.integers(0, 3), st.just(set[int]())),
            st.tuples(st.just("pass"), st.integers(1, 200), st.just(set[int]())),
        ),
        max_size=60,
    )
)
def test_everything_is_completed_exactly_once(steps: list[tuple[str, int, set[int]]]) -> None:
    """By an event of one of its keys, or when its time is up, and never before; purging loses nothing that waits."""
    timer = TimingWheel()
    purgatory, ops, due = Purgatory(timer, purge_interval=2), list[Switch](), list[tuple[int, set[int]]]()
    for what, number, keys in steps:
        if what == "add":
            ops.append(Switch(number))
            due.append((timer.now + number, keys))
            assert not purgatory.try_complete_else_watch(ops[-1], sorted(keys))
        elif what == "on" and ops:
            ops[number % len(ops)].on = True
        elif what == "event":
            purgatory.check_and_complete(number)
            waiting = [op for op, (_, own) in zip(ops, due, strict=True) if number in own and not op.is_completed]
            assert not any(op.on for op in waiting)
        elif what == "pass":
            timer.advance(timer.now + number)
            assert all(op.is_completed == (op.on or op.is_expired) or op.on for op in ops)
        open_ops = [op for op in ops if not op.is_completed]
        assert purgatory.delayed == len(open_ops)
        assert {op for watchers in purgatory.watchers.values() for op in watchers} >= set(open_ops)
    timer.advance(timer.now + 300)
    assert [op.reported.count("complete") for op in ops] == [1] * len(ops)
    assert all((op.reported[-1] == "expired") == op.is_expired for op in ops)
    assert all(op.result == "in time" for op in ops if not op.is_expired)


@pytest.mark.parametrize("kind", [SystemTimer, ClockTimer])
def test_a_broker_awaits_its_completion(kind: type[SystemTimer | ClockTimer]) -> None:
    """On the lab's clock: what released it, and when."""
    clock = VirtualClock()
    purgatory, reported = Purgatory(kind(clock)), list[tuple[float, str]]()
    early, late = Switch(), Switch()

    async def wait(op: Switch) -> None:
        purgatory.try_complete_else_watch(op, ["a"])
        result = await op
        reported.append((round(clock.now(), 6), result))

    async def event() -> None:
        await clock.sleep(0.003)
        early.on = True
        purgatory.check_and_complete("a")

    for task in (wait(early), wait(late), wait(late), event()):
        clock.spawn(task)
    clock.settle()
    assert reported == [(0.003, "in time"), (0.5, "too late"), (0.5, "too late")]
    assert clock.run(awaited(early)) == "in time"


async def awaited(op: DelayedOperation) -> Any:
    async with asyncio.timeout(1):
        return await op


def test_a_clock_timer_takes_fractions_of_a_millisecond_as_they_are() -> None:
    """Where a wheel on the same clock is early by less than its tick."""
    clock, ran = VirtualClock(), dict[str, float]()
    wheel, exact = SystemTimer(clock), ClockTimer(clock)
    clock.run_for(0.0106)
    wheel.add(500, lambda: ran.setdefault("wheel", round(clock.now(), 6)))
    exact.add(500, lambda: ran.setdefault("exact", round(clock.now(), 6)))
    gone = exact.add(400, lambda: ran.setdefault("cancelled", clock.now()))
    assert (exact.size, exact.now, gone.cancel(), gone.cancel(), exact.size) == (2, 10, True, False, 1)
    clock.settle()
    assert (ran, exact.size) == ({"wheel": 0.51, "exact": 0.5106}, 0)


def test_a_produce_request_waits_in_the_leaders_purgatory() -> None:
    """Until the high watermark has come so far; the two gauges show it, and what is left of it afterwards."""
    with lab_of("orders", {0: [1, 2, 3]}, brokers=3, seed=7) as lab:
        lab.lag(3, "orders", 0)
        assert gauges(lab) == [0, 0]
        play(lab, "produce orders 0 wait=false; run_for 1")
        assert gauges(lab) == [1, 1]
        lab.run_for(20)
        assert gauges(lab) == [0, 0]
        until_quiet(lab.catch_up, 3)
        lab.disconnect(1, "zookeeper")  # so nobody can leave the ISR
        play(lab, "lag 3 orders 0; produce orders 0 wait=false; run_for 31")
        assert lab.trace[-1].error == TIMED_OUT
        assert gauges(lab) == [1, 0]  # nothing has happened to the partition since


def gauges(lab: Lab) -> list[object]:
    shown = lab.metrics(1)
    return [shown[f"{name},delayedOperation=Produce"] for name in ("PurgatorySize", "NumDelayedOperations")]


A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Leader:
    """A leader of `orders`, by hand: high watermarks, ISRs, logs."""

    def __init__(self) -> None:
        self.high_watermark, self.isr, self.min_isr = {A: 0, B: 0}, 2, 2
        self.offsets: dict[TopicPartition, LogOffsets | str] = {}
        self.throttled: set[TopicPartition] = set()
        self.sent = 0
        self.reads = 0

    def enough_replicas(self, tp: TopicPartition, offset: int) -> tuple[bool, str | None]:
        if tp not in self.high_watermark:
            return False, "NOT_LEADER_FOR_PARTITION"
        return enough_replicas(self.high_watermark[tp], offset, self.isr, self.min_isr)

    def log_offsets(self, tp: TopicPartition, leader_epoch: int) -> LogOffsets | str:
        return self.offsets[tp]

    def is_throttled(self, tp: TopicPartition, replica: int) -> bool:
        return tp in self.throttled

    def last_sent_high_watermark(self, tp: TopicPartition, replica: int) -> int:
        return self.sent

    def read(self, fetch: DelayedFetch) -> str:
        self.reads += 1
        return "records"


def produced(leader: Leader) -> tuple[TimingWheel, Purgatory, DelayedProduce]:
    timer = TimingWheel()
    purgatory = Purgatory(timer)
    refused = TopicPartition("orders", 2)
    appended = {A: Appended(2), B: Appended(5), refused: Appended(0, "NOT_ENOUGH_REPLICAS")}
    op = DelayedProduce(30_000, appended, leader.enough_replicas)
    assert not purgatory.try_complete_else_watch(op, [A, B, refused])
    return timer, purgatory, op


def errors(op: DelayedProduce) -> list[str | None]:
    assert op.is_completed
    return list(op.result.values())


def test_a_produce_request_waits_for_the_high_watermarks() -> None:
    """Of all its partitions; one that was refused is not waited for."""
    leader = Leader()
    _, purgatory, op = produced(leader)
    leader.high_watermark[A] = 2
    assert purgatory.check_and_complete(A) == 0
    leader.high_watermark[B] = 4
    assert purgatory.check_and_complete(B) == 0
    leader.high_watermark[B] = 6
    assert purgatory.check_and_complete(B) == 1
    assert errors(op) == [None, None, "NOT_ENOUGH_REPLICAS"]


def test_a_produce_request_ends_with_what_was_wrong_when_it_was_looked_at() -> None:
    """Too few in sync by then; led by somebody else; not before time was up."""
    leader = Leader()
    timer, purgatory, op = produced(leader)
    leader.high_watermark[A], leader.isr = 2, 1
    purgatory.check_and_complete(A)
    leader.isr = 2
    del leader.high_watermark[B]
    assert purgatory.check_and_complete(B) == 1
    assert errors(op) == [TOO_FEW, "NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS"]
    leader = Leader()
    timer, purgatory, op = produced(leader)
    leader.high_watermark[B] = 5
    purgatory.check_and_complete(B)
    timer.advance(30_000)
    assert (errors(op), op.is_expired) == ([TIMED_OUT, None, "NOT_ENOUGH_REPLICAS"], True)


def log(end: int, high_watermark: int, last_stable: int, segment: int = 0, size: int = 10) -> LogOffsets:
    """A log of one segment, in which each record has `size` bytes."""
    ends = (LogOffset(offset, segment, offset * size) for offset in (end, high_watermark, last_stable))
    return LogOffsets(*ends)


FETCHES = text("purgatory_fetches.txt")
"""A fetch from offset 5, records of 10 bytes: how far the log reaches for whom, and what is asked for."""


@pytest.mark.parametrize("row", FETCHES.split("\n")[2:-1])
def test_a_fetch_waits_for_bytes_that_it_may_read(row: str) -> None:
    """A follower reads up to the log's end, a consumer up to the high watermark or the last stable offset."""
    who, *numbers, done = row.split()
    end, high, stable, least, most = map(int, numbers)
    leader = Leader()
    leader.offsets[A] = log(end, high, stable)
    op = fetch(leader, who, least, {A: FetchPartition(LogOffset(5, 0, 50), most)})
    assert op.try_complete() == (done == "done")
    assert leader.reads == (done == "done")


def fetch(
    leader: Leader, who: str, least: int, parts: dict[TopicPartition, FetchPartition], **how: Any
) -> DelayedFetch:
    replica = 2 if who == "follower" else -1
    return DelayedFetch(500, least, parts, leader, replica=replica, read_committed=who == "committed", **how)


def test_a_fetch_counts_the_bytes_of_all_its_partitions() -> None:
    """And answers with what there is when time is up; a throttled partition does not count."""
    leader, timer = Leader(), TimingWheel()
    purgatory = Purgatory(timer)
    parts = {tp: FetchPartition(LogOffset(5, 0, 50), 100) for tp in (A, B)}
    leader.offsets = {A: log(6, 5, 5), B: log(5, 5, 5)}
    op = fetch(leader, "follower", 20, parts)
    assert not purgatory.try_complete_else_watch(op, [A, B])
    leader.offsets[B], leader.throttled = log(6, 5, 5), {B}
    assert purgatory.check_and_complete(B) == 0
    leader.throttled.clear()
    assert purgatory.check_and_complete(B) == 1
    assert (op.result, leader.reads) == ("records", 1)
    late = fetch(leader, "follower", 200, parts)
    assert not purgatory.try_complete_else_watch(late, [A, B])
    timer.advance(500)
    assert (late.result, late.is_expired) == ("records", True)


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH"]
)
def test_a_fetch_that_would_get_an_error_gets_it_at_once(error: str) -> None:
    leader = Leader()
    leader.offsets = {A: log(5, 5, 5), B: error}
    parts = {tp: FetchPartition(LogOffset(5, 0, 50), 100) for tp in (A, B)}
    assert fetch(leader, "consumer", 1, parts).try_complete()


def test_a_fetch_from_another_segment_is_answered_at_once() -> None:
    """The log was cut short, or has begun a new segment; the latter not for a throttled replica."""
    leader = Leader()
    parts = {A: FetchPartition(LogOffset(5, 5, 0), 100)}
    leader.offsets[A] = log(4, 4, 4, segment=0)
    assert fetch(leader, "follower", 1000, parts).try_complete()
    leader.offsets[A] = log(9, 9, 9, segment=8)
    leader.throttled = {A}
    assert not fetch(leader, "follower", 1000, parts).try_complete()
    leader.throttled.clear()
    assert fetch(leader, "follower", 1000, parts).try_complete()


def test_a_newer_high_watermark_is_news_for_a_follower() -> None:
    """Since KIP-392, and for nobody else."""
    leader = Leader()
    parts = {A: FetchPartition(LogOffset(5, 0, 50), 100)}
    leader.offsets[A], leader.sent = log(5, 5, 5), 4
    assert not fetch(leader, "follower", 1, parts).try_complete()
    assert not fetch(leader, "consumer", 1, parts, passes_on_high_watermark=True).try_complete()
    assert fetch(leader, "follower", 1, parts, passes_on_high_watermark=True).try_complete()
    leader.sent = 5
    assert not fetch(leader, "follower", 1, parts, passes_on_high_watermark=True).try_complete()
