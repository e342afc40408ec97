"""Exercises of lesson 07, a broker that is back is not in sync."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Function, FunctionExercise, PictureGuess, Verdict
from kafka_ctl.exercises.operate import WAITS, Operate, Remark, down
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl_course.quiet import TOPIC, opening

TITLE = "A broker that is back is not in sync"
OPENING = opening(4)
TWO_COPIES = """create_topic orders assignment='{"0":[1,2]}'\nsettle\n"""
SECOND = """create_topic payments assignment='{"0":[1,3]}'\nsettle\n"""
UNREACHED = OPENING + TOPIC + "disconnect 3 1\nrun_for 20\nkill 2\nsettle\n"
"""Broker 3 cannot fetch from the leader, broker 2 is down: the ISR is (1)."""
RESTARTED = opening(3).replace('"boot"', '"catch_up":5,"boot"') + (
    """create_topic orders assignment='{"0":[1,2],"1":[1,3],"2":[3,2],"3":[2,1],"4":[3,1]}'\nsettle\n"""
    "kill 2\nsettle\nstart 2\nrun_for 0.1\n"
)
"""Five partitions on three brokers; broker 2 has just been started again, and is in no ISR."""


# 1: predict


def after_both(lab: Lab) -> tuple[int, tuple[int, ...]]:
    """Leader and ISR at the end."""
    found = lab.partition("orders", 0)
    return found.leader, found.isr


def predict_wrong(answer: tuple[int, tuple[int, ...]], truth: tuple[int, tuple[int, ...]]) -> str | None:
    """The mistakes of exercise 1."""
    leader, isr = answer
    if leader == 1:
        return "Broker 1 runs. Is it in the ISR one second after its start? Catching up takes 5 s."
    if leader == 2:
        return "Broker 2 is dead; a partition whose leader is dead and that cannot elect has leader -1."
    if not isr:
        return "The last member of an ISR stays in it: it names the broker that has the data."
    if 1 in isr:
        return "Broker 1 left the ISR when it died, and has not caught up."
    return None


# 2: implement


PATIENCE, LATER, SESSION, LOOK = 60.0, 10.0, 7.0, 0.1
"""Seconds: for one broker, until what happens later, until a session is over, between two calls of the function."""


class Roll(NamedTuple):
    """A rolling restart: how it begins, and what happens ten seconds later."""

    title: str
    begin: str
    later: str = ""


ROLLS = (
    Roll("two copies", OPENING + TWO_COPIES),
    Roll("two copies, and much was missed", OPENING.replace('"boot"', '"catch_up":5,"boot"') + TWO_COPIES),
    Roll("a follower has fallen behind", OPENING + TWO_COPIES + "lag 2 orders 0\nrun_for 16\n", "catch_up 2"),
    Roll("a follower has just died", OPENING + TWO_COPIES + "kill 2\nrun_for 1\n", "start 2"),
    Roll("three copies", OPENING + TOPIC),
    Roll(
        "a second topic, whose follower has just died", OPENING + TWO_COPIES + SECOND + "kill 3\nrun_for 1\n", "start 3"
    ),
    Roll(
        "a second topic, whose leader has just died",
        OPENING + TWO_COPIES + SECOND.replace("[1,3]", "[3,1]") + "kill 3\nrun_for 1\n",
        "start 3",
    ),
)


@dataclass(frozen=True, kw_only=True)
class RollingRestart(FunctionExercise):
    """A function of (lab, broker) that says whether a broker may be stopped now; each broker is restarted by it.

    Any function is right that lets each of `ROLLS` come to its end, without a partition that goes Offline.
    """

    def judge_function(self, function: Function) -> Verdict:
        """Restart every broker that has a copy; the first partition without a leader is reported."""
        for roll in ROLLS:
            with Lab.replay(roll.begin) as lab:
                if (problem := _rolled(lab, roll, function)) is not None:
                    return Verdict(False, f'In the roll "{roll.title}": {problem}', _merged(lab.story))
        return Verdict(True, self.why)


def _rolled(lab: Lab, roll: Roll, may_stop: Callable[[Lab, int], object]) -> str | None:
    """The failure of a rolling restart, in a sentence; None when there was none."""
    later, began, started = roll.later, lab.now, dict[int, float]()
    for broker in sorted({replica for found in lab.partitions() for replica in found.replicas}):
        since = lab.now
        while True:
            commands = _changes(lab)
            allowed = may_stop(lab, broker)
            if _changes(lab) != commands:
                return "your function changed the cluster; it only says whether a broker may be stopped."
            if not isinstance(allowed, bool):
                return f"safe_to_stop(lab, {broker}) returned {short(allowed)}; True or False is expected."
            if allowed:
                break
            if lab.now - since > PATIENCE:
                return f"broker {broker} could not be stopped for {PATIENCE:g} s: {_seen(lab, broker)}."
            lab.run_for(LOOK)
            if later and lab.now - began > LATER:
                lab.do(later)
                later = ""
        before = [explain(lab, found, broker, started) for found in lab.partitions()]
        lab.kill(broker)
        lab.run_for(SESSION)
        for found, reason in zip(lab.partitions(), before, strict=True):
            if found.leader < 0:
                return reason
        lab.start(broker)
        started[broker] = lab.now
    return None


def _changes(lab: Lab) -> int:
    """The number of commands that a lab got, without time that passes."""
    return sum(each.name not in WAITS for each in lab.commands)


def explain(lab: Lab, found: PartitionView, broker: int, started: dict[int, float]) -> str:
    """The reason why no replica can lead once this broker is stopped, from what can be seen just before."""
    opening = f"you stopped broker {broker}, and {found.topic}-{found.partition} went Offline"
    others = [r for r in found.replicas if r != broker]
    if dead := [r for r in found.isr if r in others and lab.brokers[r].state != "running"]:
        return (
            f"{opening}. Broker {dead[0]} was in the ISR {found.isr} but did not run; ZooKeeper learns that only when "
            "the session ends."
        )
    if any(set(metadata) & set(others) for metadata in _metadata(lab, found, broker)):
        return (
            f"{opening}. Metadata still had other members in its ISR, ZooKeeper had {found.isr}: metadata may be 7.5 s "
            "old when the leader has changed the ISR."
        )
    up = next((r for r in others if r in started), others[0])
    seconds = lab.now - started.get(up, lab.now)
    if seconds > 2 * LOOK:
        return (
            f"{opening}. Broker {up} had run for {seconds:.1f} s and was not in the ISR {found.isr}: how long it takes "
            "depends on what it missed."
        )
    runs = "did not run and" if lab.brokers[up].state == DOWN else "ran but"
    return f"{opening}. Broker {up} {runs} was not in the ISR {found.isr}."


def _metadata(lab: Lab, found: PartitionView, broker: int) -> list[tuple[int, ...]]:
    """The ISR of a partition as the brokers that run have it in their metadata."""
    return [
        state.isr
        for each in lab.brokers.values()
        if each.state == "running"
        for tp, state in each.metadata.items()
        if tp == (found.topic, found.partition) and broker in state.isr
    ]


def _seen(lab: Lab, broker: int) -> str:
    """The partitions of a broker in a few words."""
    return "; ".join(
        f"the assignment of {p.topic}-{p.partition} is {p.replicas}, the ISR {p.isr}, the leader {p.leader}"
        for p in lab.partitions()
        if broker in p.replicas
    )


def _merged(text: str) -> str:
    """A story in which consecutive waits are joined into one."""
    lines: list[str] = []
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        if word == "run_for" and lines and lines[-1].startswith("run_for "):
            lines[-1] = f"run_for {round(float(lines[-1].split()[1]) + float(value), 3):g}"
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


# 3: operate


def not_whole(lab: Lab) -> str | None:
    """The problem (a copy is missing from the ISR, or only an edited znode says that it is there), or None."""
    found: PartitionView = lab.partition("orders", 0)
    if found.leader < 0 or set(found.isr) != {1, 2, 3}:
        return f"orders-0 has leader {found.leader} and ISR {found.isr}."
    if stopped := [id for id in down(lab) if id in found.isr]:
        return f"broker {stopped[0]} is in the ISR {found.isr} and does not run."
    *_, last = (
        r for r in lab.trace.slice(kind="zk", action="set") if (r.path or "").endswith("/state") and not r.error
    )
    return None if last.actor.startswith("broker-") else f"the ISR is {found.isr}, and no broker wrote it."


def joined(broker: int, other: int, state: str, text: str) -> Remark:
    """A remark for where this broker has joined broker 1 in the ISR, and the other one is in this state."""
    return lambda lab: (
        text if {*lab.partition("orders", 0).isr} == {1, broker} and lab.brokers[other].state == state else None
    )


def cut_off(lab: Lab) -> str | None:
    """The reply to a restart of broker 3 that still cannot fetch."""
    found = lab.partition("orders", 0)
    if found.leader != 1 or 3 in found.isr or 3 in down(lab):
        return None
    return "Broker 3 runs again and still cannot reach broker 1: its process was never the trouble."


def last_member(lab: Lab) -> str | None:
    """The reply to the end of broker 1."""
    found = lab.partition("orders", 0)
    if (found.leader, found.isr) != (NO_LEADER, (1,)):
        return None
    return "Broker 1 was the last member of the ISR: now no replica may lead."


def moved(lab: Lab) -> str | None:
    """The reply to a reassignment."""
    if lab.reassignments():
        return "A reassignment waits until its targets are in the ISR, so for the same fetch as you."
    replicas = lab.partition("orders", 0).replicas
    return None if {*replicas} == {1, 2, 3} else f"The assignment is {replicas} now; brokers 1, 2 and 3 were asked for."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="07.1",
        title="Two brokers, one at a time",
        hints=(
            "What is the ISR when broker 1 is dead?",
            "Which process adds broker 1 to the ISR again, and when?",
            "Which member of the ISR is alive when broker 2 is dead? What does the controller write then?",
        ),
        story=OPENING.replace('"boot"', '"catch_up":5,"boot"')
        + TWO_COPIES
        + "kill 1\nsettle\nstart 1\nrun_for 1\nkill 2\nrun_for 8\n",
        ask=after_both,
        example=(7, (7, 8)),
        parts=("the leader", "the ISR"),
        no_broker="-1",
        wrong=(predict_wrong,),
        why="Broker 1 ran and was not in the ISR. Broker 2 was its last member, and stays in it.",
    ),
    RollingRestart(
        name="07.2",
        title="Safe to stop?",
        core=True,
        given='''
def safe_to_stop(lab, broker):
    """True if each partition has another member of its ISR that runs."""
    for p in lab.partitions():
        others = [replica for replica in p.isr if replica != broker]
        if not any(lab.brokers[replica].state == "running" for replica in others):
            return ...
    return ...
''',
        hints=(
            "Say first what has to be true of each partition after the broker has stopped.",
            "Where is the ISR of now, and not the one of seven seconds ago? `lab.partitions()` reads ZooKeeper.",
            "What if the other member of the ISR has just died, or is the one that you have just restarted?",
        ),
        why="Every partition kept a member of the ISR that runs, in seven rolling restarts.",
    ),
    Operate(
        name="07.3",
        title="An ISR of one",
        core=True,
        hints=(
            "Which of the two missing brokers is up, and cannot fetch?",
            "What does the leader need from each of them?",
            "Does any of your commands need the other one first?",
        ),
        begin=UNREACHED,
        missing=not_whole,
        best=2,
        remarks={
            "heal": joined(3, 2, DOWN, "Broker 3 can fetch again and has joined. Broker 2 is still down."),
            "start 2": joined(2, 3, "running", "Broker 2 has joined. Broker 3 runs, and still cannot reach broker 1."),
            "bounce 3": cut_off,
            "start 3": cut_off,
            "kill 1": last_member,
            "reassign": moved,
            "delete_controller": "A new controller starts no broker and repairs no connection.",
            "elect_preferred": lambda lab: (
                "Broker 1 is the preferred leader and leads. An election adds no replica to an ISR."
                if lab.partition("orders", 0).leader == 1
                else None
            ),
        },
        why="A follower needs to run and to reach the leader; then the leader adds it, in any order.",
    ),
)


GUESSES = {
    "07.a": PictureGuess(
        "Broker 2 has just been restarted: its process runs, and it still catches up. Broker 1 is killed now. Which "
        "partitions have no leader then?",
        "partition",
        RESTARTED,
        "kill 1\nrun_for 8\n",  # until the session is over and the controller has decided
        lambda lab: frozenset(f"partition:{p.topic}-{p.partition}" for p in lab.partitions() if p.leader == NO_LEADER),
        {
            "none": "Only a member of the ISR may lead, and some ISRs had broker 1 alone.",
            "partition:orders-1": "Broker 3 is in the ISR of orders-1.",
            "partition:orders-2": "Broker 3 leads orders-2, and broker 1 has no copy of it.",
            "partition:orders-4": "Broker 3 leads orders-4 and goes on.",
        },
        "A process that runs is not a replica in sync: where broker 1 was alone in the ISR, no replica may lead.",
    ),
}
