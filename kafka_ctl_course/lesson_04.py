"""Exercises of lesson 04, the states of a replica."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from kafka_ctl.controller.replica_machine import without_replica
from kafka_ctl.exercises.exercise import Exercise, Guess
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins
from kafka_ctl_course.lesson_05 import in_words, leadership

Case = tuple[int, tuple[int, ...], int]
Shrunk = tuple[int, tuple[int, ...]]
TITLE = "The states of a replica"
OPENING = (
    "lab brokers=4 generation=2.0 seed=7 "
    """config='{"auto.leader.rebalance.enable":false,"delete.topic.enable":true}' """
    """costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
)
ONE = """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
TWO = """create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1]}'\nsettle\n"""
HALF_DELETED = OPENING + ONE.replace("orders", "bills") + "kill 3\nsettle\ndelete_topic bills\nsettle\n"
STORIES = {
    "a follower dies": OPENING + ONE + "kill 3\nsettle\n",
    "one after the other": OPENING + ONE + "kill 3\nsettle\nkill 2\nsettle\nkill 1\nsettle\nstart 1\nsettle\n",
    "the only replica dies and returns": OPENING
    + """create_topic solo assignment='{"0":[2]}'\nsettle\nkill 2\nsettle\nstart 2\nsettle\n""",
}


# 1: predict


def counted(lab: Lab) -> tuple[int, int, int]:
    """Moves of partitions, moves of replicas and writes of `state` znodes since broker 1 was killed."""
    since = lab.trace[next(command.seq for command in lab.commands if command.name == "kill") :]
    writes = [r for r in since.slice(kind="zk", action="set") if (r.path or "").endswith("/state")]
    return len(since.slice(kind="partition")), len(since.slice(kind="replica")), len(writes)


def predict_wrong(answer: tuple[int, int, int], truth: tuple[int, int, int]) -> str | None:
    """The mistakes of exercise 1."""
    partitions, replicas, writes = answer
    if partitions == 1:
        return "Offline and back to Online are two moves."
    if partitions == 4:
        return "orders-1 is led by broker 2; it has a leader all the time, and does not move."
    if replicas == 6:
        return "Six counts all replicas. Only those on broker 1 move."
    if replicas == 1:
        return "Broker 1 holds two replicas: it leads orders-0 and follows in orders-1."
    if partitions == truth[0] and replicas == truth[1]:
        if writes == 3:
            return (
                "The election of orders-0 has taken broker 1 out of its ISR; the replica's move finds nothing to write."
            )
        if writes == 1:
            return "The ISR of orders-1 has to be written, too."
        if writes == 0:
            return "Leader and ISR are in ZooKeeper; both partitions have changed."
    return None


# 2: implement


def cases() -> Iterator[Case]:
    """Every ISR of three replicas in every order, each leader in it or none, each member that goes."""
    for size in (3, 2, 1):
        for isr in permutations((1, 2, 3), size):
            yield from ((leader, isr, gone) for leader in (*isr, -1) for gone in isr)


def ask(plugins: Plugins, case: Case) -> Shrunk:
    """One case, through the plug."""
    return plugins.rule("shrink", without_replica)(*case)


def explain(case: Case, got: Shrunk, expected: Shrunk) -> str:
    """The fault in leader or ISR, in one sentence; None if there is none."""
    leader, isr, gone = case
    mine, members = got
    if not members:
        return (
            f"An empty ISR: no replica can ever be elected cleanly again. Broker {gone} has the data; the last member "
            "stays (KAFKA-5083)."
        )
    if mine == gone:
        return f"Broker {gone} is gone and would still lead, out of the ISR {members} or not alive: that was KAFKA-708."
    if mine != expected[0] and leader != gone:
        return f"Broker {leader} leads and lives; a replica that goes Offline elsewhere is no reason to take that away."
    if mine != expected[0]:
        return (
            f"You made broker {mine} the leader. No leader is elected here: an "
            "election is the partition machine's work."
        )
    if gone in members and len(isr) > 1:
        return f"Broker {gone} is gone and still in your ISR {members}: producers with acks=all would wait for it."
    if sorted(members) == sorted(expected[1]):
        return f"The right members in another order, {members}. The ISR keeps the order it had, {isr}."
    return f"Your ISR is {members}. It was {isr}, and only broker {gone} is gone."


# 3: operate


def still_there(lab: Lab) -> str | None:
    """True if the topic has not gone, or some of it is left."""
    left = [path for path in lab.znodes() if path.endswith("/bills")]
    if not left:
        return None
    states = ", ".join(f"bills-0@{r.broker} {r.state}" for r in lab.replicas() if r.topic == "bills")
    return f"{left[-1]} is still there. Replicas: {states or 'none known'}."


# 4: repair

BROKEN = '''
def without(leader, isr, gone):
    """Leader and ISR once the replica on broker `gone`, a member of the ISR, is Offline."""
    staying = [broker for broker in isr if broker != gone]
    return leader, staying
'''
"""The function that learners get."""

EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="04.1",
        title="One broker dies: who moves?",
        hints=(
            "Which partitions lose their leader? What does each of these do?",
            "Which replicas are on broker 1?",
            "When has the election already done what the replica's move would do?",
        ),
        story=OPENING + TWO + "kill 1\nsettle\n",
        ask=counted,
        example=(7, 7, 7),
        parts=("moves of partitions", "moves of replicas", "writes of `state` znodes"),
        wrong=(predict_wrong,),
        why="orders-0 goes Offline and Online; both replicas on broker 1 go Offline; each `state` is written once.",
    ),
    Implement(
        name="04.2",
        title="Leader and ISR without a replica",
        core=True,
        hints=(
            "Three questions: was it the leader? Was it the last in the ISR? What about the other members?",
            "Which replica is in the ISR of a partition whose last replica has died, and what is that good for?",
            "No leader is -1. This rule elects no other leader.",
        ),
        what="rules",
        occasion="shrink",
        arguments="leader, isr, gone",
        usual=without_replica,
        ask=ask,
        cases=cases,
        stories=STORIES,
        outcome=leadership,
        describe=in_words,
        explain=explain,
        why="The replica leaves the ISR unless it is the last; if it led, the "
        "partition has no leader; nothing else changes.",
    ),
    Operate(
        name="04.3",
        title="A topic that will not go away",
        core=True,
        hints=(
            "Which of its replicas has not been deleted, and in which state is it?",
            "Who has to answer before the controller can forget the topic?",
            "What does a new controller know of the replicas whose data is gone already?",
        ),
        begin=HALF_DELETED,
        missing=still_there,
        best=1,
        remarks={
            "delete_controller": "The new controller starts over: it does not know that two replicas were deleted.",
            "bounce": "Nothing waits for this broker; its replica has been deleted.",
            "add_broker": "A new broker has no replica of bills to delete.",
            "reassign": "A topic that is being deleted is not moved.",
            "delete_znode": "The controller has what is to be deleted in memory; a znode less does not change that.",
        },
        praise={"delete_controller": "The new controller was not needed: the old one was waiting for broker 3."},
        why="Broker 3 returns, its replica goes Offline, Started, Successful, and then all three are forgotten.",
    ),
    Repair(
        name="04.4",
        title="The ISR is empty and a dead broker leads",
        hints=(
            "Read the last record before the violation: who wrote the `state` znode, and what did it write?",
            "Which two things does your function of exercise 2 do that this one does not?",
        ),
        ticket="KAFKA-708",
        occasion="shrink",
        given=BROKEN,
        why="Then the leader is -1 and the last member stays in the ISR; broker 2 can lead again when it returns.",
    ),
)

GUESSES: dict[str, Guess] = {
    "04.a": Guess(
        "A topic with one partition and three replicas. A follower's broker dies. How many moves are there?",
        (
            ("1 of the partition, 1 of a replica", "The partition keeps its leader: why should it move?"),
            ("0 of the partition, 1 of a replica", "The two machines move for reasons of their own."),
            ("1 of the partition, 3 of replicas", "Two of the replicas are on brokers that live."),
            ("0 of the partition, 3 of replicas", "Two of the replicas are on brokers that live."),
        ),
        1,
    ),
    "04.b": Guess(
        "Broker 3 is dead. What does the controller ask it to do?",
        (
            ("nothing, it is dead", "So you would write it. This machine has one rule for all reasons to go Offline."),
            ("to stop its replica", "A request that can never leave: it is put into the batch anyway."),
            ("to follow the new leader", "LeaderAndIsr goes to the replicas that are left."),
        ),
        1,
    ),
    "04.c": Guess(
        "Two of three replicas are deleted, the third is on a dead broker. A new controller comes. The two are ...",
        (
            ("ReplicaDeletionSuccessful", "State sounds stored. In whose memory was it?"),
            ("gone", "The controller forgets a replica only when all of its topic are deleted."),
            ("Online", "A new controller only sees live brokers that are in the assignment."),
        ),
        2,
    ),
}
