"""Exercises of lesson 26, timing wheel and purgatory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kafka_ctl.brokers.purgatory import PURGE_INTERVAL
from kafka_ctl.brokers.timing_wheel import Task, TimingWheel, place
from kafka_ctl.errors import BadInput, short
from kafka_ctl.exercises.exercise import Exercise, Function, FunctionExercise, Verdict, first, plain, unsuited_member
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.fetch_load import FetchLoad, fetch_load
from kafka_ctl_course.quiet import opening

TITLE = "Timing wheel and purgatory"
CLOCK, DELAY = 7, 450


# 1: predict


@dataclass(frozen=True, kw_only=True)
class Places(Exercise):
    """The places of a task of 450 ms one after the other, when the clock shows 7: pairs (level, bucket)."""

    kind: ClassVar[str] = "predict"
    why: str

    def judge(self, answer: object) -> Verdict:
        """Turn a wheel, and compare."""
        given = plain(answer)
        if not isinstance(given, tuple) or any(not isinstance(each, tuple) or len(each) != 2 for each in given):
            return Verdict(False, f"{short(answer)} is not a list of pairs. An answer looks like [(7, 8), (7, 9)].")
        if problem := first(unsuited_member(each, (7, 8)) for each in given):
            return Verdict(False, f"{problem}. An answer looks like [(7, 8), (7, 9)].")
        truth = _places(CLOCK)
        if given == truth:
            return Verdict(True, self.why)
        return Verdict(False, f"You say {list(given)!r}. {_misplaced(given, truth)}")


def _places(clock: int) -> tuple[tuple[int, int], ...]:
    wheel = TimingWheel()
    wheel.advance(clock)
    task = wheel.add(DELAY)
    wheel.advance(clock + DELAY)
    return tuple((level, bucket) for level, bucket, _ in task.places)


def _misplaced(given: tuple[tuple[int, int], ...], truth: tuple[tuple[int, int], ...]) -> str:
    levels = [level for level, _ in given]
    if given == _places(0):
        return "That is for clock 0. The task is due at 457 now; buckets are counted from time 0, not from the clock."
    if sorted(given) == sorted(truth):
        return "It moves from the coarse wheel to the fine one; yours goes up again."
    if levels == [3, 1]:
        return "At 400 the bucket of level 3 expires, and 57 ms are left. The finest wheel reaches 20 ms."
    if levels == [1]:
        return "457 is 450 ms ahead, and the finest wheel has 20 buckets of 1 ms."
    if levels == [3]:
        return "Level 3 has buckets of 400 ms. Where is the task when that bucket has expired, at 400?"
    more = min(len(given), len(truth)) + 1
    wrong = next((n for n, (mine, its) in enumerate(zip(given, truth, strict=False), 1) if mine != its), more)
    if wrong > len(truth):
        return f"Look again at place {wrong}: by then the task has run."
    return f"Look again at place {wrong}: level, then (due time // width of a bucket) % 20."


# 2: implement


ASKED = 20_000
"""Calls after which a wheel turns no further: the right function is asked some 300 times."""


class Turned:
    """A wheel that was turned with a learner's `place`: how late each task ran, and how many buckets were polled."""

    def __init__(self, function: Callable[..., tuple[int, int]]) -> None:
        self.function, self.asked = function, 0
        draw, wheel = random.Random(7), TimingWheel(place=self._ask)
        self.late: dict[Task, int] = {}
        for _ in range(100):
            wheel.add(draw.randrange(1, 500))
            self._advance(wheel, wheel.now + 3)
        self._advance(wheel, wheel.now + 1000)
        self.polled, self.left = wheel.polled, wheel.size

    def _ask(self, *given: int) -> tuple[int, int]:
        self.asked += 1
        if self.asked > ASKED:
            raise BadInput(f"your function was called {ASKED:,} times for 100 tasks: too many are put into one bucket")
        return self.function(*given)

    def _advance(self, wheel: TimingWheel, until: int) -> None:
        for time in range(wheel.now + 1, until + 1):
            for task in wheel.advance(time):
                self.late[task] = time - task.expiration


@dataclass(frozen=True, kw_only=True)
class Placing(FunctionExercise):
    """A function in the place of `place` in a wheel that turns; judged by when tasks run, not by what it returns."""

    def judge_function(self, function: Function) -> Verdict:
        """Turn a wheel with a hundred tasks."""
        usual = Turned(place)
        try:
            turned = Turned(function)
        except BadInput as error:
            more = ""
            if "polled" in str(error):
                more = " An expiration is a point in time, counted from 0: neither a distance nor a number of ticks."
            text = str(error)
            text = f"Your {text}" if text.startswith("place(") else f"{text[:1].upper()}{text[1:]}"
            return Verdict(False, f"{text}.{more}")
        late = {task: ms for task, ms in turned.late.items() if ms > 0}
        if late or turned.left:
            return Verdict(False, _too_late(late, turned.left))
        if turned.polled > usual.polled:
            ratio = turned.polled / usual.polled
            times = f", {ratio:.0f} times the work" if ratio > 1.5 else ""
            return Verdict(
                False,
                f"All tasks run in time. But {turned.polled} buckets are polled{times}; {usual.polled} are enough: "
                "which tasks should share a bucket?",
            )
        return Verdict(True, self.why)


def _too_late(late: dict[Task, int], left: int) -> str:
    if not late:
        return f"{left} of 100 tasks never run."
    task, worst = max(late.items(), key=lambda pair: pair[1])
    where = task.places[-1]
    return (
        f"{len(late)} of 100 tasks run late, by up to {worst} ms: what is due at {task.expiration} lay in a bucket "
        f"that expires at {where.expires}. A bucket may wake too early, never too late."
    )


# 3: operate

WRITES = 5
WAITING = (
    opening()
    + """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\nlag 3 orders 0\n"""
    + "produce orders 0 wait=false\n" * WRITES
    + "run_for 1\n"
)
"""Follower 3 does not fetch, and five writes wait for it."""


def not_on_three(lab: Lab) -> str | None:
    """The problem (a write was not acknowledged, or follower 3 left the ISR), or None."""
    answers = lab.trace.slice(kind="response", action="Produce", topic="orders")
    acknowledged = [each for each in answers if each.error is None]
    if len(acknowledged) < WRITES:
        return f"{len(acknowledged)} of five writes were acknowledged."
    written = lab.trace.slice(kind="zk", action="set", path="/brokers/topics/orders/partitions/0/state")
    if any(each.seq < acknowledged[WRITES - 1].seq for each in written):
        return "the ISR had changed before the writes were acknowledged, so they waited for fewer than three."
    return None


# 4: operate

KNOWN = {"purge_interval": PURGE_INTERVAL, "partitions": 50, "wait": 500, "requests": 5000}
"""The settings that may be changed: the interval, partitions in a fetch, its `fetch.wait.max.ms`, fetches."""
MOST = 10_000


@dataclass(frozen=True, kw_only=True)
class Gauges(Exercise):
    """A dictionary of changes with which PurgatorySize stays below 10,000."""

    kind: ClassVar[str] = "operate"
    why: str

    def judge(self, answer: object) -> Verdict:
        """Let the fetches come, with these changes."""
        if not isinstance(answer, dict):
            return Verdict(False, f"{short(answer)} is not a dictionary of changes; you may change {', '.join(KNOWN)}.")
        if unknown := [name for name in answer if name not in KNOWN]:
            return Verdict(False, f"{short(unknown[0])} cannot be changed; you may change {', '.join(KNOWN)}.")
        changed = {name: value for name, value in answer.items() if value != KNOWN[name]}
        if not changed:
            return Verdict(False, "Nothing is changed yet: PurgatorySize rises to 58,801.")
        if len(changed) > 1:
            return Verdict(False, f"One change is asked for; these are {len(changed)}: {', '.join(changed)}.")
        if changed.get("requests"):
            return Verdict(
                False,
                "Clients send as many fetches as they like. After a restart of the broker the gauge only starts over.",
            )
        if isinstance(answer.get("partitions"), int) and answer["partitions"] > KNOWN["partitions"]:
            return Verdict(False, "More partitions in a fetch: then it is on more lists.")
        try:
            given: dict[str, Any] = KNOWN | answer
            found = fetch_load(**given)
        except BadInput as error:
            return Verdict(False, f"This cannot be: {error}")
        changes = ", ".join(f"{name}={value}" for name, value in changed.items())
        measured = f"{changes}: PurgatorySize rises to {found.peak:,}, and {found.delayed} requests wait."
        if found.peak >= MOST:
            return Verdict(False, f"With {measured} {_remark(changed, found)}".rstrip())
        return Verdict(True, f"{measured} {self.why}")


def _remark(changed: dict[str, int], found: FetchLoad) -> str:
    if changed.get("purge_interval", 0) > PURGE_INTERVAL:
        return "Between two purges there is more to collect now."
    if "wait" in changed:
        return "Nothing waits: each fetch is completed within a millisecond."
    return "Each completed fetch stays on the lists of its other partitions until the next purge."


EXERCISES: tuple[Exercise, ...] = (
    Places(
        name="26.1",
        title="Three places",
        core=True,
        hints=(
            "When is the task due? Buckets are counted from time 0.",
            "Which is the finest wheel that reaches 450 ms ahead: 20, 400 or 8,000 ms?",
            "When a bucket expires, how much is left, and which wheel reaches that?",
        ),
        why="It is due at 457: bucket 1 of 400 ms, then 440 is bucket 2 of 20 ms, then 457 is bucket 17 of 1 ms.",
    ),
    Placing(
        name="26.2",
        title="Which bucket?",
        core=True,
        hints=(
            "Divide by the width of a bucket. From which zero is time counted?",
            "When does the bucket begin? It expires at its beginning, in milliseconds.",
            "Print level, bucket and expiration for delays of 19, 20 and 21, and look at the step.",
        ),
        why="Tasks that are due within the same tick share a bucket, and it wakes when that tick begins.",
    ),
    Operate(
        name="26.3",
        title="Five writes that wait",
        hints=(
            "Which event completes a write with `acks=all`?",
            "The writes are on the watch list of orders-0 at its leader. Who changes orders-0 there?",
            "Follower 3 has to fetch again, before it leaves the ISR.",
        ),
        begin=WAITING,
        missing=not_on_three,
        best=1,
        remarks={
            "kill 3": "The write then waits for the others only.",
            "bounce 3": "The controller noticed the restart, and took the broker out of the ISR.",
            **dict.fromkeys(
                ("kill 1", "shutdown 1", "bounce 1", "expire_session 1"),
                "The new leader knows nothing of requests that waited at the old one.",
            ),
            "produce": "Another write completes none of the five.",
        },
        why="A fetch of follower 3 raised the high watermark, and that completed all five; no timer ran out.",
    ),
    Gauges(
        name="26.4",
        title="A gauge of 58,801, and no request waits",
        hints=(
            "What is on the lists, if nothing waits?",
            "What takes completed requests off the other lists, and when?",
            "One number decides how many may be completed before the lists are cleaned.",
        ),
        why="The lists hold what was completed since the last purge, once for each partition of a fetch.",
    ),
)
