"""Exercises of lesson 04, records, high watermark, acks.

Separate from `lesson_10.py` because a lesson has a file; that one also replies to replicas that were written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl_course.quiet import TOPIC, opening

Case = tuple[dict[int, int], tuple[int, ...], int]
Result = tuple[tuple[tuple[str | None, float], ...], tuple[str, ...]]
TITLE = "Records, high watermark, acks"
CONFIG = '"auto.leader.rebalance.enable":false'
OPENING = opening(3, "2.4")
STORIES = {
    "all are in sync": OPENING + TOPIC + "produce orders 0 records=2\nsettle\n",
    "broker 3 is slow, then the others die": OPENING
    + TOPIC
    + "produce orders 0\nsettle\nslow 3 0.2\nproduce orders 0 records=2\nkill 1\nkill 2\nsettle\n",
    "broker 3 has left the ISR": OPENING + TOPIC + "lag 3 orders 0\nsettle\nproduce orders 0 records=2\nsettle\n",
    "the leader is alone in the ISR": OPENING
    + TOPIC
    + "lag 2 orders 0\nlag 3 orders 0\nsettle\nproduce orders 0 records=2\nsettle\n",
}
REFUSED = (
    OPENING.replace("brokers=3", "brokers=4").replace(CONFIG, f'{CONFIG},"min.insync.replicas":2')
    + """create_topic orders assignment='{"0":[1,2]}'\nsettle\nproduce orders 0 records=2\nkill 2\nsettle\n"""
    + "produce orders 0\n"
)
"""Two copies, two wanted: broker 2 is beyond repair, and every write is refused."""


# 1: predict


def contents(lab: Lab) -> tuple[str, ...]:
    """The logs of the three replicas as text."""
    return tuple(log.content for log in lab.log("orders", 0))


def spaced(answer: object) -> object:
    """The same logs with one space between two parts, also beside a bar or in the place of a comma."""
    if isinstance(answer, tuple):
        return tuple(map(spaced, answer))
    return " ".join(answer.replace("|", " | ").replace(",", " ").split()) if isinstance(answer, str) else answer


def predict_wrong(answer: tuple[str, ...], truth: tuple[str, ...]) -> str | None:
    """The mistakes of exercise 1."""
    if any(each.count("|") != 1 for each in answer):
        return "Each log has one bar, where its high watermark is."
    logs = [each.split() for each in answer]
    held = [[part for part in each if part != "|"] for each in logs]
    if any("4@0" in each for each in held):
        return "You have a fourth record; three were sent, with the values 1, 2 and 3."
    if any(len(each) < len(held[0]) for each in held[1:]):
        return "A follower of yours lacks a record. That would do for acks=1. Which brokers did the leader wait for?"
    if any(sorted(each) != ["1@0", "2@0", "3@0"] for each in held):
        return "Three records, 1, 2 and 3, were written in leader epoch 0: 1@0, 2@0 and 3@0, on each disk."
    if any(each != sorted(each) for each in held):
        return "The records are in the order in which they were written."
    if logs[0][-1] != "|":
        return "The producer has its answers, so all records of the leader are below its high watermark."
    if any(each[-1] == "|" for each in logs[1:]):
        return (
            "A follower has record 3, but what tells it that it is safe? The answer that brought the record left "
            "before the leader knew that all have it."
        )
    if any(each[0] == "|" for each in logs[1:]):
        return "The answer that brought record 3 has a high watermark, too. Which records were safe when it left?"
    return None


# 2: implement


def usual(ends: dict[int, int], isr: tuple[int, ...], leader: int) -> int:
    """The offset that every member of the ISR reaches."""
    return min(ends[broker] for broker in isr)


def cases() -> Iterator[Case]:
    """Every ISR that has the leader, and ends from nothing to all that it has."""
    for isr in ((1, 2, 3), (1, 3, 2), (1, 2), (1, 3), (1,)):
        for second, third in product((-1, 0, 1, 3), repeat=2):
            yield {1: 3, 2: second, 3: third}, isr, 1


def explain(case: Case, got: int, expected: int) -> str:
    """The fault in a high watermark, in one sentence."""
    ends, isr, leader = case
    if got > expected:
        late = min(isr, key=lambda broker: ends[broker])
        if all(ends[broker] < got for broker in ends if broker != leader):
            return f"No broker but the leader has all below {got}: this is acks=1 under another name."
        return (
            f"Broker {late} is in the ISR and its log ends at {max(ends[late], 0)}: it may be elected without the "
            f"records up to {got} that you call safe."
        )
    if isr == (leader,):
        return "The leader is a member of the ISR, too: alone in it, it waits for no other broker."
    if held := [broker for broker in ends if broker not in isr and ends[broker] < expected]:
        return f"You wait for broker {held[0]}, which is not in the ISR {isr}: a dead replica would stop all producers."
    return f"Every member of the ISR {isr} has more: all reach {expected}."


def result(lab: Lab) -> Result:
    """The outcome of each produce request, its time in ms, and the violated invariants."""
    sent = {r.detail: r.time_ms for r in lab.trace.slice(kind="request", action="Produce")}
    answers = lab.trace.slice(kind="response", action="Produce", actor="producer")
    first = [next((ms for text, ms in sent.items() if _values(text) == _values(r.detail)), 0.0) for r in answers]
    took = tuple((r.error, round(r.time_ms - ms, 1)) for r, ms in zip(answers, first, strict=True))
    return took, tuple(sorted({violation.invariant for violation in lab.violations}))


def _values(detail: str | None) -> str:
    return (detail or "").split(" acks=")[0]


def in_words(found: Result) -> str:
    """The same as text."""
    took, broken = found
    outcome = ", ".join(f"{error or 'acknowledged'} after {ms} ms" for error, ms in took) or "nothing produced"
    return outcome + (f"; {', '.join(broken)} broken" if broken else "")


# 4: operate


def refused(lab: Lab) -> str | None:
    """The problem (a write is refused, or acknowledged with fewer than two copies), or None."""
    if any(each.name in ("start", "bounce") and each.args[:1] == (2,) for each in lab.commands):
        return "broker 2 is beyond repair: in this exercise it cannot be started."
    outcome = lab.produce("orders", 0)
    if outcome is None or not outcome.acknowledged:
        return f"a write with acks=all is answered with {outcome.error if outcome else 'nothing'}."
    lost = next((v.text for v in lab.violations if v.invariant == "I4"), None)
    if lost:
        return f"writes are possible, but {lost}."
    running = {id for id, view in lab.brokers.items() if view.state == "running"}
    copies = [
        log.broker
        for log in lab.log("orders", 0)
        if log.broker in running and outcome.values[0] in [entry.value for entry in log.entries]
    ]
    return None if len(copies) >= 2 else f"a write is acknowledged, with one copy, on broker {copies[0]}."


FEWER = "To ask for fewer copies is no second copy: the next failure would take what was acknowledged."
CONFIGURED = (
    f"{FEWER} A broker reads a topic's settings when its copy is made, and when `/config/changes` notifies it: "
    "`lab.alter_config` writes there, too."
)


def asks_for_fewer(lab: Lab) -> bool:
    """True if the topic has a minimum of its own."""
    return b"min.insync.replicas" in lab.znodes().get("/config/topics/orders", (b"",))[0]


def ignored(lab: Lab) -> str | None:
    """The reply to a learner who wrote the replicas of `orders` by hand, and made a new controller."""
    if not any(each.name == "write_znode" and each.args[0] == "/brokers/topics/orders" for each in lab.commands):
        return None
    return (
        "The new controller read the replicas that you wrote, and sent them with the old leader epoch: the leader "
        "ignored them, and adds only replicas that it knows to the ISR."
    )


def asked_again(lab: Lab) -> str:
    """The reply to a learner who made a new controller."""
    written = lab.trace.slice(actor="admin", action="set", path="/brokers/topics/orders/partitions/0/state")
    if any(2 in details.json_object(record.detail).get("isr", ()) for record in written):
        return "The new controller took broker 2, which is dead, out of the ISR that you wrote."
    if any(each not in (1, 2) for record in written for each in details.json_object(record.detail).get("isr", ())):
        return "The new controller read the ISR that you wrote. An ISR names copies; it makes none."
    return ignored(lab) or "A new controller finds the same ISR, (1), and the same replicas, 1 and 2."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="04.1",
        title="Three logs",
        core=True,
        hints=(
            "Which set does the leader wait for before it answers?",
            "A follower learns the high watermark from the answer to a fetch. To which fetch?",
            "In Kafka 2.0 a fetch that finds nothing new waits at the leader. Which fetch waits when record 3 comes?",
        ),
        story=OPENING.replace("2.4", "2.0") + TOPIC + "produce orders 0 records=2\nproduce orders 0\n",
        ask=contents,
        example=("7@7 |", "7@7 |", "7@7 |"),
        parts=("broker 1", "broker 2", "broker 3"),
        wrong=(predict_wrong,),
        read=spaced,
        why="The leader knows that record 3 is safe; the followers have it, and do not know it yet. With it came the "
        "high watermark of the moment before.",
    ),
    Implement(
        name="04.2",
        title="Your own high watermark",
        core=True,
        hints=(
            "Say in one sentence who must have a record before it is committed.",
            "`ends` has every assigned replica. Which of them count?",
            "Does the leader count? Try an ISR that is the leader alone.",
        ),
        occasion="high_watermark",
        usual=usual,
        read=lambda offset, case: max(offset, 0),  # below the log's beginning is nothing
        cases=cases,
        stories=STORIES,
        outcome=result,
        describe=in_words,
        explain=explain,
        why="The offset that every member of the ISR reaches, the leader among them: every "
        "replica that may be elected has these records.",
    ),
    Repair(
        name="04.3",
        title="Safe, and gone after two restarts",
        hints=(
            "What did the follower throw away when it came back, before its leader had answered?",
            "Two cases: `shared` is None, or a number. What is certain in each of them?",
        ),
        ticket="KAFKA-1211",
        occasion="truncate",
        given='''
def cut(high_watermark, end, shared):
    """The offset at which a new follower cuts its log, which ends at `end`.

    Up to `shared` it has the leader's records, by leader epochs; that is None until the leader has answered.
    """
    return high_watermark
''',
        telling=lambda high_watermark, end, shared, answer: answer != (end if shared is None else shared),
        stories={
            "only the old leader has a record": "produce orders 0 records=2; run_for 2; pause 2 3; pause 3 3; "
            "produce orders 0 acks=1; run_for 0.2; kill 1; run_for 8; produce orders 0; settle; start 1; settle",
            "a follower restarts early": "produce orders 0 records=2; bounce 2; settle",
            "an unclean election": """create_topic audit assignment='{"0":[1,2]}' """
            """config='{"unclean.leader.election.enable":"true"}'; settle; kill 2; settle; """
            "produce audit 0 records=3; settle; kill 1; settle; start 2; settle; produce audit 0; settle; start 1; "
            "settle",
        },
        why="A follower asks its leader where their logs part, by leader epochs (KIP-101), and cuts off no more.",
    ),
    Operate(
        name="04.4",
        title="Every write is refused",
        hints=(
            "How many members has the ISR, and how many are wanted?",
            "Which running broker could have the second copy?",
            "A reassignment may replace one replica and keep the other.",
        ),
        begin=REFUSED,
        missing=refused,
        best=1,
        remarks={
            "write_znode": lambda lab: CONFIGURED if asks_for_fewer(lab) else None,
            "alter_config": lambda lab: FEWER if asks_for_fewer(lab) else None,
            "elect_preferred": "Broker 1 leads already; an election adds no replica to an ISR.",
            "delete_controller": asked_again,
            "reassign": "An ISR of two needs two brokers that run.",
            "add_partitions": "Other partitions may take records; those of orders-0 are still refused.",
            "add_broker": "A new broker has no replica before one is assigned to it.",
            "kill 1": "Broker 1 had the only copy that was left.",
            "catch_up": "Broker 2 does not lag; its process is gone.",
        },
        praise={"reassign": lambda lab: "But this move waits for broker 2." if lab.reassignments() else None},
        why="A write needs members of the ISR, and members need brokers that run: give the partition another one.",
    ),
)
