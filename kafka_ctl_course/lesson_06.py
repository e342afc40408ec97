"""Exercises of lesson 06, who changes the ISR."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate, down
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl_course.quiet import TOPIC, opening

TITLE = "Who changes the ISR"
OPENING = opening(4)


# 1: predict


def writers(lab: Lab) -> tuple[tuple[str, bool], ...]:
    """The writer of each `state` that was set, and whether the leader epoch rose."""
    found, epoch = [], 0
    for record in lab.trace.slice(kind="zk", action="set"):
        if (record.path or "").endswith("/state"):
            state = details.json_object(record.detail)
            wrote = "leader" if record.actor == f"broker-{state['leader']}" else "controller"
            found.append((wrote, state["leader_epoch"] > epoch))
            epoch = state["leader_epoch"]
    return tuple(found)


def predict_wrong(answer: tuple[tuple[str, bool], ...], truth: tuple[tuple[str, bool], ...]) -> str | None:
    """The mistakes of exercise 1."""
    if any(not isinstance(each, tuple) or len(each) != 2 for each in answer):
        return "Each part is a pair: the writer, and whether the leader epoch rises."
    who, rises = [each[0] for each in answer], [each[1] for each in answer]
    if other := [each for each in who if each not in ("controller", "leader")]:
        return f"The writer is 'controller' or 'leader'; you say {other[0]!r}."
    if who == ["controller"] * 3:
        return "Two of the three writes come from broker 1, the leader: look for its lines in the trace."
    if who[0] == "leader":
        return "Broker 3 had a session. The controller hears of its end after 6 s; the leader acts later."
    if who[1] == "controller":
        return "The controller asked broker 3 to follow. Only broker 1 knows that it has caught up, and wrote it."
    if who[2] == "controller":
        return "Broker 3 lags but lives: its session goes on, and the controller hears nothing of it."
    if not rises[0]:
        return "Read the znode after the death: leader_epoch is 1. The controller raises it with each of its writes."
    if any(rises[1:]):
        return "The leader changed the znode's version; leader_epoch stayed 1."
    return None


# 2: implement, plugged in

Case = tuple[float, float, int, int, float]
LIMITS = 10_000.0, 30_000.0
LATE_OPENING = OPENING.replace("generation=2.0", "generation=2.4") + TOPIC + "produce orders 0\nsettle\n"
WRITES = "produce orders 0 acks=1\nrun_for 8\n"
LATE_STORIES = {
    "a follower falls behind": LATE_OPENING + "lag 3 orders 0\n" + 4 * WRITES,
    "a burst of records": LATE_OPENING + "slow 3 8\nproduce orders 0 records=5000 acks=1\nrun_for 9\nsettle\n",
    "fetches that take 9 s": LATE_OPENING + "slow 3 9\n" + 5 * WRITES,
    "silence, and nothing is written": LATE_OPENING + "disconnect 3 1\nrun_for 60\n",
    "silence, then one record": LATE_OPENING + "disconnect 3 1\nrun_for 60\n" + WRITES,
    "a follower dies": LATE_OPENING + WRITES + "kill 3\nproduce orders 0 acks=1\nrun_for 20\n",
}


def is_late(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """Kafka 2.4's rule: isFollowerOutOfSync in Partition.scala."""
    return follower_end != leader_end and now - last_caught_up > max_lag


def late_cases() -> Iterator[Case]:
    """For two limits every combination of: how long ago, and how far behind; exactly the limit is among them."""
    for limit in LIMITS:
        for ago, behind in product((0.0, 3_000.0, limit - 1, limit, limit + 1, 60_000.0), (0, 1, 5000)):
            yield 100_000.0, 100_000.0 - ago, 7000 - behind, 7000, limit


def changes(lab: Lab) -> tuple[tuple[int, ...], ...]:
    """Every ISR that the leader has written."""
    return tuple(r.isr or () for r in lab.trace if r.action in ("shrink-isr", "expand-isr"))


def in_words(isrs: tuple[tuple[int, ...], ...]) -> str:
    """The same as text."""
    if not isrs:
        return "the ISR as it was"
    more = f" and {len(isrs) - 5} more" * (len(isrs) > 5)
    return f"the ISRs {', '.join(map(str, isrs[:5]))}{more} written by the leader"


def explain_late(case: Case, got: bool, expected: bool) -> str:
    """The fault in an answer about one follower, in one sentence."""
    now, last_caught_up, end, leaders_end, limit = case
    if got and end == leaders_end:
        return "Its log is as long as the leader's: it has everything, and since 2.1 such a follower is not late."
    if got and now - last_caught_up == limit:
        return f"It had everything exactly {limit / 1000:g} s ago; only *longer* ago than the limit is late."
    ago = now - last_caught_up
    if got:
        why = " The number of records does not count: `replica.lag.max.messages` was removed in 0.9." * (
            ago < limit / 2
        )
        return f"It is behind, but had everything {ago / 1000:g} s ago; the limit is {limit / 1000:g} s.{why}"
    return f"It is behind, and had everything {ago:.0f} ms ago, longer than {limit:.0f} ms; acks=all waits for it."


# 3: operate


def not_shrunk(lab: Lab) -> str | None:
    """The condition that is missing until the leader alone has taken broker 3 out of the ISR."""
    found = lab.partition("orders", 0)
    if stopped := down(lab):
        return f"broker {stopped[0]} does not run; all of them ran in that night."
    if set(found.isr) != {1, 2} or found.leader != 1:
        return f"orders-0 has leader {found.leader} and ISR {found.isr}."
    if found.leader_epoch:
        return f"the ISR is {found.isr}, and the leader epoch is {found.leader_epoch}: the controller wrote it."
    if found.replicas != (1, 2, 3):
        return f"the assignment of orders-0 is {found.replicas}; it was (1, 2, 3) in that night."
    if not lab.trace.slice(kind="broker", action="shrink-isr", broker=1):
        return "the ISR is (1, 2), and the leader did not write it."
    return None


def written_before(**other: object) -> str:
    """Commands by which orders-0 has another state, written by hand, when its leader is about to shrink the ISR."""
    state = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1, 2]} | other
    path, text = "/brokers/topics/orders/partitions/0/state", json.dumps(state, separators=(",", ":"))
    return f"lag 3 orders 0; write_znode {path} '{text}'; run_for 30"


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="06.1",
        title="Who writes, and which number rises?",
        hints=(
            "Which process can know that a follower has *caught up*?",
            "Which process is notified when a session ends? Does a session end in all three cases?",
            "Two numbers are on the znode: which of them rises at each write?",
        ),
        story=OPENING + TOPIC + "kill 3\nsettle\nstart 3\nsettle\nlag 3 orders 0\nsettle\n",
        ask=writers,
        example=(("no process", True), ("no process", True), ("no process", True)),
        parts=("the death", "the return", "the lag"),
        names={
            **dict.fromkeys(("the leader", "broker 1", "broker-1"), "leader"),
            **dict.fromkeys(("the controller", "broker 4", "broker-4"), "controller"),
        },
        wrong=(predict_wrong,),
        why="The controller acts when a session ends and raises the leader epoch; the leader does the rest.",
    ),
    Implement(
        name="06.2",
        title="Late",
        core=True,
        hints=(
            "Which two facts does a leader know of a follower: one is a time, the other a length.",
            "How can a long time pass without a missing record? And how can records be missing for a short time?",
            "It is behind now, and the last moment at which it had everything is longer ago than the limit.",
        ),
        occasion="late",
        usual=is_late,
        cases=late_cases,
        stories=LATE_STORIES,
        outcome=changes,
        describe=in_words,
        explain=explain_late,
        why="Behind now, and not caught up for longer than the limit. Up to 2.0 the time alone decided.",
    ),
    Operate(
        name="06.3",
        title="The alarm of 03:00",
        core=True,
        hints=(
            "Which of the two writers leaves the leader epoch as it is?",
            "What does this writer look at: a session, or fetches?",
            "What keeps the fetches of broker 3 from reaching the end of the log, while its session goes on?",
        ),
        begin=OPENING + TOPIC,
        missing=not_shrunk,
        best=1,
        remarks={
            "kill": "A dead broker loses its session, and the controller writes the ISR.",
            "pause 3": "A pause longer than the session ends it, and the controller writes. "
            "After a pause broker 3 catches up again.",
            "bounce": "The controller saw the session end, and wrote with a new leader epoch.",
            "expire_session": "The controller saw the session end, and wrote with a new leader epoch.",
            "delay": "In a lab `delay` is for requests of the controller and their answers; fetches are not later.",
            "slow": "When a slow fetch arrives, broker 3 has everything; a leader adds such a follower to the ISR.",
            "shutdown": "In a controlled shutdown the controller takes the broker out of the ISR.",
            "reassign": "A reassignment raises the leader epoch, and the assignment is another one then.",
            "delete_controller": "A new controller writes no ISR of a partition whose brokers live.",
        },
        why="The leader wrote 10 to 15 s after broker 3 had last caught up; the version rose, the leader epoch stayed.",
    ),
    Repair(
        name="06.4",
        title="A leader that refuses its own ISR",
        hints=(
            "Which write was refused, and because of which version?",
            "Whose write had come first? How can the leader find out?",
        ),
        ticket="KAFKA-1382",
        occasion="own_write",
        given='''
def is_done(wanted, stored):
    """True if the write of a leader was done although ZooKeeper answered BADVERSION; both are texts of a znode."""
    return False
''',
        stories={
            "another ISR is there": written_before(isr=[1, 3]),
            "the same ISR is there, with another leader epoch": written_before(leader_epoch=5),
            "the same ISR is there, by another controller": written_before(controller_epoch=7),
        },
        why="The leader reads the znode again, finds the ISR that it wanted to write, and takes over its version.",
    ),
)
