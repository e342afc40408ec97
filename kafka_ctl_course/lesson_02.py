"""Exercises of lesson 02, how a decision reaches the brokers.

Separate from `lesson_17.py` because a lesson has a file; that one asks about the edited cluster, too.
"""

from __future__ import annotations

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import BrokerView
from kafka_ctl_course.quiet import TOPIC, opening

TITLE = "How a decision reaches the brokers"
OPENING = opening(4)
ORDERS = TopicPartition("orders", 0)
SLOW = OPENING + TOPIC + "delay 4 3 5\nkill 1\nrun_for "
EDIT = (
    "write_znode /brokers/topics/orders/partitions/0/state "
    """'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[1,2,3]}'\nsettle\n"""
)
TAKEOVER = "delete_controller\nsettle\n"
MOMENTS = {
    "before the session ends": f"{SLOW}5.9\n",
    "broker 3 has heard nothing": f"{SLOW}6.5\n",
    "broker 3 follows": f"{SLOW}11.5\n",
    "all requests have been answered": f"{SLOW}16.5\n",
    "edited, and a new controller": OPENING + TOPIC + EDIT + TAKEOVER,
    "edited": OPENING + TOPIC + EDIT,
    "a broker has just been added": OPENING + TOPIC + "add_broker broker=9\n",
}


# 1: predict


def sent(lab: Lab) -> tuple[int, int]:
    """LeaderAndIsr and UpdateMetadata requests since the topic was created."""
    since = lab.trace[next(command.seq for command in lab.commands if command.name == "create_topic") :]
    requests = [record.action for record in since.slice(kind="request", target="sent")]
    return requests.count("LeaderAndIsr"), requests.count("UpdateMetadata")


def predict_wrong(answer: tuple[int, int], truth: tuple[int, int]) -> str | None:
    """The mistakes of exercise 1."""
    leader_and_isr, metadata = answer
    if leader_and_isr == 4:
        return "Four counts replicas. Broker 2 gets both partitions in one request."
    if leader_and_isr == 2:
        return "Two counts partitions. A request goes to each broker that has to do something."
    if leader_and_isr == 6:
        return "Brokers 4 to 6 hold no replica, so they have nothing to do."
    if metadata == 3:
        return "Clients may ask brokers 4 to 6 as well."
    if metadata == 12:
        return "One UpdateMetadata carries both partitions."
    return None


# 2: implement


def named(view: BrokerView) -> int | None:
    """The leader that a broker names to clients."""
    return view.metadata[ORDERS].leader if ORDERS in view.metadata else None


def stale(lab: Lab) -> set[int]:
    """The running brokers that name another leader than ZooKeeper."""
    stored = lab.partition(*ORDERS).leader
    running = [view for view in lab.brokers.values() if view.state != DOWN]
    return {view.id for view in running if named(view) not in (None, stored)}


def explain(case: tuple[Lab], got: object, expected: set[int]) -> str:
    """The fault in a set of brokers, in one sentence."""
    (lab,) = case
    if not isinstance(got, set):
        return f"your function returned {got!r}; a set of broker ids is expected."
    if strange := sorted(got - lab.brokers.keys(), key=repr):
        return f"your function returned {got!r}; a set of broker ids is expected: {strange[0]!r} is none."
    stored = lab.partition(*ORDERS).leader
    for id in sorted(got - expected):
        view = lab.brokers[id]
        if view.state == DOWN:
            return f"broker {id} is in your set. It is down: no client gets an answer from it."
        if named(view) is None:
            return f"broker {id} is in your set. It has just started and names no leader; that is not stale."
        return (
            f"broker {id} is in your set. It names leader {stored}, as ZooKeeper does; "
            "which broker really leads is not asked."
        )
    id = min(expected - got)
    if not got and len(expected) < len(lab.brokers):
        return (
            f"your set is empty. But broker {id} names leader "
            f"{named(lab.brokers[id])} to clients (its `metadata`), and "
            f"ZooKeeper has {stored}."
        )
    if len(expected) == len(lab.brokers):
        return f"all brokers agree with each other, but not with ZooKeeper, which has leader {stored}."
    return (
        f"broker {id} is missing. It names leader {named(lab.brokers[id])}, ZooKeeper has {stored}. You need what it "
        "*says*, which is in its metadata, not what it *does*."
    )


# 3: operate


def refused(lab: Lab) -> str | None:
    """The problem (a new producer cannot write, or brokers disagree), or None."""
    running = [view for view in lab.brokers.values() if view.state != DOWN]
    leading = [view.id for view in running if ORDERS in view.leads]
    if len(leading) != 1:
        return f"brokers {' and '.join(map(str, leading))} lead orders-0." if leading else "no broker leads orders-0."
    wrong = {view.id: named(view) for view in running if named(view) != leading[0]}
    if wrong:
        return (
            f"broker {leading[0]} leads orders-0, but broker {min(wrong)} names leader {wrong[min(wrong)]} to clients."
        )
    produced = lab.produce(*ORDERS)
    assert produced is not None
    return None if produced.acknowledged else f"a new producer is answered {produced.error}."


def created(lab: Lab) -> str | None:
    """The reply to a learner who created another topic."""
    last = next(each for each in reversed(lab.commands) if each.name == "create_topic")
    return None if last.args[0] == ORDERS.topic else "The new topic is served. Nothing was sent about orders-0."


def agreed(lab: Lab) -> str:
    """The reason why all agree again: a higher leader epoch, or the old value."""
    epoch = lab.partition(*ORDERS).leader_epoch
    if epoch > 0:
        return "The leader epoch is higher now, so that replicas obey again."
    return (
        f"All say the same again, with leader epoch {epoch} as before: the replicas never obeyed the edit. An election "
        "by the controller would have repaired it without a second edit."
    )


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="02.1",
        title="How many requests?",
        hints=(
            "Which brokers have to do something?",
            "What is gathered before it is sent?",
            "Which brokers may a client ask?",
        ),
        story=OPENING.replace("brokers=4", "brokers=6")
        + """create_topic orders assignment='{"0":[1,2],"1":[2,3]}'\nsettle\n""",
        ask=sent,
        example=(9, 9),
        parts=("LeaderAndIsr", "UpdateMetadata"),
        wrong=(predict_wrong,),
        why="Brokers 1, 2 and 3 have to do something; all six may be asked by clients.",
    ),
    Compute(
        name="02.2",
        title="Which brokers are stale?",
        core=True,
        given='''
def stale(lab):
    """The running brokers that name another leader than ZooKeeper."""
    found, stored = set(), lab.partition("orders", 0).leader
    for id, view in lab.brokers.items():
        known = view.metadata.get(("orders", 0))
        if view.state != ... and known is not None and known.leader != ...:
            found.add(id)
    return found
''',
        hints=(
            "Which of a broker's two memories do clients see?",
            "`lab.partition` reads ZooKeeper. What does a broker's `metadata` have?",
            "Which brokers cannot be asked? Which brokers know no leader yet?",
        ),
        stories=MOMENTS,
        give=lambda lab: [(lab,)],
        truth=stale,
        explain=explain,
        why="The exercise compares brokers' metadata with ZooKeeper, not with each other, and not with their roles.",
    ),
    Operate(
        name="02.3",
        title="Clients that are sent to the wrong broker",
        core=True,
        hints=(
            "Why did the replicas ignore what the metadata took over?",
            "Which number would have to be higher?",
            "Who raises this number, and on which occasions?",
        ),
        begin=OPENING.replace("2.0", "2.4") + TOPIC + EDIT + TAKEOVER,
        missing=refused,
        best=1,
        remarks={
            "write_znode": "ZooKeeper has another value now, and no process has read it.",
            "delete_controller": "It has sent leader epoch 0 once more, and the replicas have ignored it.",
            "bounce 3": "Broker 3 was the controller. The next one found it alive, and sent leader epoch 0 once more.",
            "bounce 4": "Broker 4 holds no replica; no election was necessary.",
            "create_topic": created,
            "add_broker": "The new broker got the same metadata as all the others.",
        },
        praise={
            "kill": "It works, and costs a broker.",
            "bounce": "A broker that leaves the ISR makes the controller raise the leader epoch.",
        },
        why=agreed,
    ),
    Repair(
        name="02.4",
        title="A follower that never fetches",
        hints=(
            "What did broker 3 need to know when it was asked to follow broker 2?",
            "Which of the four steps sends that?",
        ),
        ticket="KAFKA-4443",
        occasion="takeover",
        given='''
def take_over(steps):
    """The steps of a new controller, in order; `metadata` sends UpdateMetadata to all brokers."""
    replicas, partitions, unfinished, metadata = steps
    return [replicas, partitions, unfinished, metadata]
''',
        why="UpdateMetadata comes first: it has the addresses of all live brokers, also that of the leader.",
    ),
)
