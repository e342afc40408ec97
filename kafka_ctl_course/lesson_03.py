"""Exercises of lesson 03, the states of partitions and replicas."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute, Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.partition import PartitionState
from kafka_ctl.replica import without_replica
from kafka_ctl.trace.record import Record
from kafka_ctl_course.lesson_05 import in_words, leadership
from kafka_ctl_course.quiet import opening

TITLE = "The states of partitions and replicas"
OPENING = opening(4, config={"delete.topic.enable": True})
TOPIC = """create_topic orders assignment='{"0":[1,2],"1":[2,3]}'\nsettle\n"""
TAKEOVER = (
    """create_topic orders assignment='{"0":[1,2],"1":[4,1],"2":[4,2]}'\n"""
    """create_topic solo assignment='{"0":[4]}'\nsettle\n"""
    "kill 4\nrun_for 2\n"
)
"""The controller, broker 4, dies; it leads orders-1, orders-2 and solo-0."""
NEVER_BORN = OPENING + """kill 1\nsettle\ncreate_topic alone assignment='{"0":[1]}'\nsettle\n"""
STORIES = {
    "the only broker is down": NEVER_BORN,
    "a topic is created": OPENING + TOPIC,
    "a leader dies": OPENING + TOPIC + "kill 1\nsettle\n",
    "the only replica dies": OPENING + """create_topic solo assignment='{"0":[3]}'\nsettle\nkill 3\nsettle\n""",
    "the controller dies": OPENING + TAKEOVER + "settle\n",
    "a topic is deleted": OPENING + TOPIC + "create_topic bills partitions=1\nsettle\ndelete_topic orders\nsettle\n",
    "two die, one after the other": OPENING + TOPIC + "kill 1\nsettle\nkill 2\nsettle\nstart 1\nsettle\n",
}

ONE = """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
SHRINKING = {
    "a follower dies": OPENING + ONE + "kill 3\nsettle\n",
    "one after the other": OPENING + ONE + "kill 3\nsettle\nkill 2\nsettle\nkill 1\nsettle\nstart 1\nsettle\n",
    "the only replica dies and returns": OPENING
    + """create_topic solo assignment='{"0":[2]}'\nsettle\nkill 2\nsettle\nstart 2\nsettle\n""",
}


def short(state: object) -> str:
    """A state without the word Partition."""
    return str(state).removesuffix("Partition")


# 1: predict


def after_takeover(lab: Lab) -> tuple[tuple[str, int], ...]:
    """State and leader of each partition."""
    return tuple((short(p.state), p.leader) for p in lab.partitions())


def predict_wrong(answer: tuple[tuple[str, int], ...], truth: tuple[tuple[str, int], ...]) -> str | None:
    """The mistakes of exercise 1."""
    if any(not isinstance(each, tuple) or len(each) != 2 for each in answer):
        return "Each part is a pair: the state, and the leader's id."
    known = [short(state) for state in PartitionState]
    if strange := [state for state, _ in answer if short(state) not in known]:
        return f"{strange[0]!r} is not a state; there are {', '.join(known)}."
    if all(state == "Offline" for state, _ in answer):
        return "A partition without a controller still has its leader: broker 1 led orders-0 all the time."
    state, leader = answer[3]
    if answer[:3] == truth[:3]:
        if state == "New":
            return "New has never had a leader; solo-0 has had one, and its `state` znode says so."
        if state == "Online":
            return "Online needs a leader that is alive; which broker has a replica of solo-0?"
        if state == "NonExistent":
            return "The topic exists, so the controller knows the partition."
        if leader == 4:
            return (
                "True in 2.0. A controller of 2.4 moves replicas on dead brokers to Offline when it takes over "
                "(KAFKA-3143). What does this move write?"
            )
    if any(mine == 4 for _, mine in answer[1:3]):
        return "Broker 4 is dead; the new controller elects for every partition that it finds Offline."
    if any(state == "Offline" for state, _ in answer[1:3]):
        return "They were Offline when the new controller looked. What does it do with the partitions that are Offline?"
    return None


# 2: out of the ISR


Case = tuple[int, tuple[int, ...], int]
Shrunk = tuple[int, tuple[int, ...]]


def cases() -> Iterator[Case]:
    """Every ISR of three replicas in every order, each leader in it or none, each member that goes."""
    for size in (3, 2, 1):
        for isr in permutations((1, 2, 3), size):
            yield from ((leader, isr, gone) for leader in (*isr, -1) for gone in isr)


def explain_shrink(case: Case, got: Shrunk, expected: Shrunk) -> str:
    """The fault in leader or ISR, in one sentence."""
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


# 3: states from a trace


def traces(lab: Lab) -> list[tuple[list[Record]]]:
    """The records about partitions."""
    return [(list(lab.trace.slice(kind="partition")),)]


def fold(records: list[Record]) -> dict[str, str]:
    """The state of every partition that exists, from the records alone."""
    states: dict[str, str] = {}
    for record in records:
        if record.error is None:
            states[f"{record.topic}-{record.partition}"] = str(record.target)
    return {name: state for name, state in states.items() if state != PartitionState.NON_EXISTENT}


def explain_states(given: tuple[list[Record]], got: object, expected: dict[str, str]) -> str:
    """The fault in the states, in one sentence."""
    if not isinstance(got, dict):
        return f"your function answers {got!r}; a dictionary is expected, such as {{'orders-0': 'OnlinePartition'}}."
    if pair := next((key for key in got if isinstance(key, tuple)), None):
        return f"{pair!r} is a pair; name the partition as text, such as 'orders-0'."
    if unknown := sorted(map(str, got.keys() - expected.keys())):
        gone = any(f"{r.topic}-{r.partition}" == unknown[0] for r in given[0])
        why = "it is gone, its last move was to NonExistent" if gone else "no partition has this name"
        return f"your answer has {unknown[0]}: {why}."
    if missing := sorted(expected.keys() - got.keys()):
        return f"your answer does not have {missing[0]}."
    name = next(name for name in expected if got[name] != expected[name])
    about = [r for r in given[0] if f"{r.topic}-{r.partition}" == name]
    if got == fold([r for r in given[0] if r.source]):
        seq = next(r.seq for r in reversed(about) if r.source is None)
        return f"you say {got[name]} for {name}. A new controller *sets* states without a move: see record {seq}."
    if got == fold([r._replace(error=None) for r in given[0]]):
        return f"you say {got[name]} for {name}. Its last record is a move that was refused: it has an `error`."
    done = [r for r in about if r.error is None]
    return f"you say {got[name]} for {name}; the last that happened to it is {done[-1].source} → {done[-1].target}."


# 4: operate


def not_online(lab: Lab) -> str | None:
    """The problem (the partition never had a leader, or its leader does not lead it), or None."""
    if not any(p.topic == "alone" for p in lab.partitions()):
        return "the topic is gone."
    found = lab.partition("alone", 0)
    if found.state != PartitionState.ONLINE:
        return f"alone-0 is {short(found.state)}, with replicas {found.replicas} and leader {found.leader}."
    leader = lab.brokers.get(found.leader)
    if leader is not None and ("alone", 0) in leader.leads:
        return None
    return f"alone-0 is Online in the controller's memory, and broker {found.leader} does not lead it."


AGAIN = "Every controller, at every change of a broker, tries to bring it Online, and is refused for the same reason."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="03.1",
        title="What a new controller finds",
        hints=(
            "For which of the four is the leader's broker alive? The new controller elects for the others.",
            "Which other brokers have a replica of each partition?",
            "Turn the lesson's control to 2.4: to which state does a new controller move replicas on dead brokers?",
        ),
        story=OPENING.replace("2.0", "2.4") + TAKEOVER + "settle\n",
        ask=after_takeover,
        example=(("New", 7), ("New", 7), ("New", 7), ("New", 7)),
        parts=("orders-0", "orders-1", "orders-2", "solo-0"),
        wrong=(predict_wrong,),
        names={str(state): short(state) for state in PartitionState} | {short(s): short(s) for s in PartitionState},
        no_broker="-1",
        why="Three of them have a live replica in sync. solo-0 is Offline, and its leader is -1 since the new "
        "controller moved its replica to Offline. In 2.0 ZooKeeper still names broker 4 (KAFKA-3143).",
    ),
    Implement(
        name="03.2",
        title="Leader and ISR without a replica",
        core=True,
        hints=(
            "Three questions: was it the leader? Was it the last in the ISR? What about the other members?",
            "Which replica is in the ISR of a partition whose last replica has died, and what is that good for?",
            "No leader is -1. This rule elects no other leader.",
        ),
        occasion="shrink",
        usual=without_replica,
        cases=cases,
        stories=SHRINKING,
        outcome=leadership,
        describe=in_words,
        explain=explain_shrink,
        why="The replica leaves the ISR unless it is the last; if it led, the "
        "partition has no leader; nothing else changes.",
    ),
    Compute(
        name="03.3",
        title="States from a trace",
        hints=(
            "Go through the records in order and keep the last state of each partition.",
            "Which records say that something did *not* happen?",
            "What is a record without a `source`? And when does a partition no longer exist?",
        ),
        stories=STORIES,
        give=traces,
        truth=fold,
        explain=explain_states,
        why="This is also how you read `state-change.log`; but it does not tell which states a new controller has set.",
    ),
    Operate(
        name="03.4",
        title="New, and never Online",
        core=True,
        hints=(
            "Which replica does alone-0 have, and what do you know of its broker?",
            "What would the first leader have to have? Which broker has that?",
        ),
        begin=NEVER_BORN,
        missing=not_online,
        best=1,
        remarks={
            "delete_controller": AGAIN,
            "bounce": AGAIN,
            "elect_preferred": "The preferred replica is on broker 1, which is dead; and no `state` znode exists.",
            "reassign": "A reassignment adds the new replica and waits until it is in the ISR; there is no ISR yet.",
            "delete_topic": "The deletion waits for broker 1 as well, and a topic of the same name cannot be created.",
            "add_broker": "A new broker holds nothing: a replica moves only on request.",
        },
        why="New → Online: the first live replica leads with epoch 0. It never was Offline, for it never had a leader.",
    ),
    Repair(
        name="03.5",
        title="Led by a broker that is not there",
        hints=(
            "How often does this controller look, and what can happen between two looks?",
            "In which of the three sets is a broker that died between the two looks?",
        ),
        ticket="KAFKA-3085",
        occasion="brokers",
        given='''
def changed(known, listed, read):
    """The brokers that are new, and those that are dead, of three sets of ids."""
    new = read - known
    dead = known - listed
    return new, dead
''',
        telling=lambda known, listed, read, answer: listed != read,
        stories={
            "a broker registers and is gone": "kill 4; settle; start 4; run_for 0.0795; expire_session 4; settle",
        },
        why="When both results come from one set, `read`, no death between the two looks is missed.",
    ),
)
