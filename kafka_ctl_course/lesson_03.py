"""Exercises of lesson 03, the states of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kafka_ctl.exercises.compute import Compute
from kafka_ctl.exercises.exercise import Exercise, Guess
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.partition import PARTITION, PartitionState
from kafka_ctl.plugins import Plugins
from kafka_ctl.trace.record import Record

TITLE = "The states of a partition"
OPENING = (
    "lab brokers=4 generation=2.0 seed=7 "
    """config='{"auto.leader.rebalance.enable":false,"delete.topic.enable":true}' """
    """costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
)
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
            return "Online needs a leader that is alive; who holds solo-0?"
        if leader == -1:
            return "True in 2.4. Here ZooKeeper still names a leader for solo-0: who would have written -1?"
    if any(mine == 4 for _, mine in answer[1:3]):
        return "Broker 4 is dead; the new controller elects for every partition that it finds Offline."
    if any(state == "Offline" for state, _ in answer[1:3]):
        return "So it was when the new controller looked. What does it do with the partitions that are Offline?"
    return None


# 2: the table


Case = tuple[str, str]


def allowed(source: str, target: str) -> bool:
    """Kafka's table."""
    return PARTITION["2.0"].allows(f"{source}Partition", f"{target}Partition")


def cases() -> Iterator[Case]:
    """Every pair of states."""
    yield from product(map(short, PartitionState), map(short, PartitionState))


def ask(plugins: Plugins, case: Case) -> bool:
    """One move, through the plug."""
    return plugins.rule("transition", allowed)(*case)


def outcome(lab: Lab) -> tuple[tuple[str, str, int], ...]:
    """State and leader of each partition."""
    return tuple((f"{p.topic}-{p.partition}", short(p.state), p.leader) for p in lab.partitions())


def in_words(ends: tuple[tuple[str, str, int], ...]) -> str:
    """The same as text."""
    return ", ".join(f"{name} {state} with leader {leader}" for name, state, leader in ends) or "no topic"


FORBIDDEN = {
    ("Online", "Online"): "a preferred election moves the leader while the partition serves.",
    ("Offline", "Offline"): "a second death marks a partition that was Offline already.",
    ("New", "Offline"): "a topic may be deleted before it ever had a leader.",
}
"""Legal moves that are easily forgotten, and when they are made."""


def explain_move(case: Case, got: bool, expected: bool) -> str:
    """The fault in a line of the table, in one sentence; None if there is none."""
    source, target = case
    if expected:
        why = FORBIDDEN.get(case, "a story has just asked for it.")
        return f"You forbid {source} → {target}: {why}"
    if target == "NonExistent":
        return f"You allow {source} → NonExistent: that state is entered from Offline only."
    if target == "New":
        return f"You allow {source} → New: New is for a partition that never had a leader, and is entered once."
    return f"You allow {source} → {target}: first the controller has to learn of its replicas, which is New."


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
    """The fault in the states, in one sentence; None if there is none."""
    if not isinstance(got, dict):
        return f"your function answers {got!r}; a dictionary is expected, such as {{'orders-0': 'OnlinePartition'}}."
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
    """True if the partition still never had a leader."""
    if not any(p.topic == "alone" for p in lab.partitions()):
        return "the topic is gone."
    found = lab.partition("alone", 0)
    if found.state != PartitionState.ONLINE:
        return f"alone-0 is {short(found.state)}, with replicas {found.replicas} and leader {found.leader}."
    return None


AGAIN = "Every controller, at every change of a broker, tries to bring it Online, and is refused for the same reason."

# 5: repair

BROKEN = '''
def changed(known, listed, read):
    """The brokers that are new, and those that are dead, of three sets of ids."""
    new = read - known
    dead = known - listed
    return new, dead
'''
"""The function that learners get."""

EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="03.1",
        title="What a new controller finds",
        core=True,
        hints=(
            "For which of the four is the leader's broker alive? The new controller elects for the others.",
            "Who else holds each partition?",
            "Which process writes to ZooKeeper at a takeover in 2.0, when no replica can be elected?",
        ),
        story=OPENING + TAKEOVER + "settle\n",
        ask=after_takeover,
        example=(("New", 7), ("New", 7), ("New", 7), ("New", 7)),
        parts=("orders-0", "orders-1", "orders-2", "solo-0"),
        wrong=(predict_wrong,),
        names={str(state): short(state) for state in PartitionState} | {short(s): short(s) for s in PartitionState},
        nobody="-1",
        why="Three of them have a live replica in sync. solo-0 is Offline, and ZooKeeper names a dead leader: in 2.0 "
        "no controller rewrites it (KAFKA-3143).",
    ),
    Implement(
        name="03.2",
        title="The table, from memory",
        hints=(
            "Read the name of each state as: this is what the controller knows of the partition.",
            "Which moves did the stories of this lesson make? Eight of sixteen are legal.",
            "Two moves lead from a state to itself. And one state can be entered from all but one.",
        ),
        what="rules",
        occasion="transition",
        arguments="source, target",
        usual=allowed,
        ask=ask,
        cases=cases,
        stories={title: STORIES[title] for title in ("a topic is created", "a leader dies", "a topic is deleted")},
        outcome=outcome,
        describe=in_words,
        explain=explain_move,
        why="All sixteen pairs are as in Kafka's table, which has been the same from 0.10 to 2.4.",
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
        given=BROKEN,
        stories={
            "a broker registers and is gone": "kill 4; settle; start 4; run_for 0.0795; expire_session 4; settle",
        },
        why="With one set of brokers a death is either seen or not seen, never both.",
    ),
)

GUESSES: dict[str, Guess] = {
    "03.a": Guess(
        "Three replicas; the broker of a follower dies. What does the partition do?",
        (
            ("It goes Offline, then Online again", "Something is down, but not what the state is about."),
            ("It does not move", "The state says whether there is a leader, and there is."),
            ("It goes Offline until the follower is back", "Then every restart of a broker would stop its partitions."),
        ),
        1,
    ),
    "03.b": Guess(
        "A topic is created whose only broker is down. Its partition is ...",
        (
            ("Offline", "Offline sounds like: no leader. But it means: no leader any more."),
            ("New", "Its replicas are known, and it never had a leader."),
            ("NonExistent", "The controller has read the topic: it knows the partition."),
            ("not there: the tool refuses", "The tool writes into ZooKeeper and asks no broker."),
        ),
        1,
    ),
    "03.c": Guess(
        "The controller dies; the leader of orders-0 lives. Until there is a new controller, orders-0 is ...",
        (
            ("Online", "Clients see it so. But whose memory holds the state?"),
            ("Offline", "Its leader lives and serves clients all the time."),
            ("none: there is no record of it", "States are in the controller's memory, and that is gone."),
        ),
        2,
    ),
}
