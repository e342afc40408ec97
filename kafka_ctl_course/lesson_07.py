"""Exercises of lesson 07, a broker that is back is not in sync."""

from __future__ import annotations

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.exercises.exercise import Exercise, Guess, PictureGuess
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl_course.guesses import guesses
from kafka_ctl_course.quiet import TOPIC, opening
from kafka_ctl_course.rolling_restart import Roll, RollingRestart

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


ROLLS = (
    Roll("two copies", OPENING + TWO_COPIES),
    Roll("two copies, and much was missed", OPENING.replace('"boot"', '"catch_up":5,"boot"') + TWO_COPIES),
    Roll("a follower has fallen behind", OPENING + TWO_COPIES + "lag 2 orders 0\nrun_for 16\n", "catch_up 2"),
    Roll("a follower has just died", OPENING + TWO_COPIES + "kill 2\nrun_for 1\n", "start 2"),
    Roll("three copies", OPENING + TOPIC),
    Roll(
        "a second topic, whose follower has just died", OPENING + TWO_COPIES + SECOND + "kill 3\nrun_for 1\n", "start 3"
    ),
)


# 3: operate


def not_whole(lab: Lab) -> str | None:
    """The problem (a copy is missing from the ISR), or None."""
    found: PartitionView = lab.partition("orders", 0)
    if found.leader >= 0 and set(found.isr) == {1, 2, 3}:
        return None
    return f"orders-0 has leader {found.leader} and ISR {found.isr}."


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
        rolls=ROLLS,
        why="Every partition kept a member of the ISR that runs, in six rolling restarts.",
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
            "heal": "Broker 3 can fetch again and has joined. Broker 2 is still down.",
            "start 2": "Broker 2 has joined. Broker 3 runs, and still cannot reach broker 1.",
            "bounce 3": "Broker 3 comes back and still cannot reach broker 1: its process was never the trouble.",
            "start 3": "Broker 3 runs again and still cannot reach broker 1: its process was never the trouble.",
            "kill 1": "Broker 1 was the last member of the ISR: now no replica may lead.",
            "reassign": "A reassignment waits until its targets are in the ISR, so for the same fetch as you.",
            "elect_preferred": "Broker 1 is the preferred leader and leads. An election adds no replica to an ISR.",
        },
        why="A follower needs to run and to reach the leader; then the leader adds it, in any order.",
    ),
)


def kill_first(lab: Lab) -> None:
    """Kill broker 1, and wait until its session is over and the controller has decided."""
    lab.kill(1)
    lab.run_for(8)


def without_leader(lab: Lab) -> frozenset[str]:
    """The partitions without a leader."""
    return frozenset(f"partition:{p.topic}-{p.partition}" for p in lab.partitions() if p.leader == NO_LEADER)


GUESSES: dict[str, Guess | PictureGuess] = {
    "07.a": PictureGuess(
        "Broker 2 has just been restarted: its process runs, and it still catches up. Broker 1 is killed now. Which "
        "partitions have no leader then?",
        "partition",
        lambda: Lab.replay(RESTARTED),
        kill_first,
        without_leader,
        {
            "none": "Only a member of the ISR may lead, and some ISRs had broker 1 alone.",
            "partition:orders-1": "Broker 3 is in the ISR of orders-1.",
            "partition:orders-2": "Broker 3 leads orders-2, and broker 1 has no copy of it.",
            "partition:orders-4": "Broker 3 leads orders-4 and goes on.",
        },
        "A process that runs is not a replica in sync: where broker 1 was alone in the ISR, no replica may lead.",
    ),
    **guesses("07"),
}
