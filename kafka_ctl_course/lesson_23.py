"""Exercises of lesson 23, before there was a controller."""

from __future__ import annotations

from itertools import product

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.before_the_controller import EarlyCluster, can_become_leader
from kafka_ctl_course.quiet import opening

Counts = tuple[int, int, int]
Case = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
TITLE = "Before there was a controller"
OPENING = opening(3, "2.4")
LED = OPENING + (
    """create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2],"3":[1,2,3],"4":[2,3,1],"5":[3,1,2],"""
    """"6":[1,2,3],"7":[2,3,1],"8":[3,1,2]}'\nsettle\n"""
)
"""Nine partitions; each broker leads three."""
ONE = OPENING + """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\nproduce orders 0\nsettle\n"""


# 1: predict


def counted(lab: Lab) -> Counts:
    """Attempts to lead, elections won, and with a controller the brokers that ask ZooKeeper, when broker 1 dies."""
    early = EarlyCluster(3, 9)
    begun = sum(broker.tries for broker in early.brokers.values())
    early.kill(1)
    tries = sum(broker.tries for broker in early.brokers.values()) - begun
    won = sum(any(id != 1 for id in early.believed(number)) for number in (0, 3, 6))
    early.close()
    since = len(lab.trace)
    lab.kill(1)
    lab.settle()
    asking = {record.actor for record in lab.trace[since:].slice(kind="zk") if record.action in ("get", "set")}
    return tries, won, len(asking)


def counts_wrong(answer: Counts, truth: Counts) -> str | None:
    """The mistakes of exercise 1."""
    tries, won, asking = answer
    if tries == won:
        return "No broker knows what the others do: each replica that is left tries."
    if tries == 9:
        return "Broker 1 is dead and tries nothing; it led three of the nine partitions."
    if won != truth[1]:
        return "Broker 1 led three partitions; each gets one leader."
    if asking > 1:
        return "Broker 3 learns of it from the controller's requests, and asks ZooKeeper nothing."
    if asking == 0:
        return "Somewhere the new leaders must be written: by the controller."
    return None


# 2: who may lead


def cases(lab: Lab) -> list[Case]:
    """A broker, the assignment, the ISR and the live brokers: every ISR and every set of live brokers of three."""
    sets = [tuple(id for id, there in zip((1, 2, 3), bits, strict=True) if there) for bits in product((1, 0), repeat=3)]
    found = [(broker, (1, 2, 3), isr, live) for isr in sets for live in sets for broker in live]
    return [*found, (4, (1, 2, 3), (1, 2), (3, 4)), (4, (1, 2, 3), (), (3, 4))]


def explain_case(given: Case, got: object, expected: bool) -> str:
    """The rule that an answer breaks."""
    broker, assigned, isr, live = given
    asked = f"broker {broker}, assigned {assigned}, ISR {isr}, live {live}: you return {got!r}. "
    if not isinstance(got, bool):
        return f"{asked}True or False is asked for."
    if broker not in assigned:
        return f"{asked}It has no replica."
    if expected:
        if broker in isr:
            return f"{asked}It is in the ISR; whether it is the first of it does not matter."
        return f"{asked}No member of the ISR is alive, so any assigned replica may try: records can be lost."
    return f"{asked}A member of the ISR is alive; this broker has to leave the partition to it."


# 3: operate


def leaders(lab: Lab) -> list[int]:
    """The running brokers that act as leaders of orders-0."""
    return [
        id for id, view in lab.brokers.items() if view.state == RUNNING and any(p == ("orders", 0) for p in view.leads)
    ]


def one_leader(lab: Lab) -> str | None:
    """The reason why there are not two leaders, both with a znode below /brokers/ids."""
    found = leaders(lab)
    if len(found) < 2:
        return f"{'broker ' + str(found[0]) if found else 'no broker'} acts as leader of orders-0; two are asked for."
    znodes = lab.znodes()
    missing = [f"/brokers/ids/{id}" for id in found if f"/brokers/ids/{id}" not in znodes]
    return f"two brokers act as leaders of orders-0, and {missing[0]} does not exist." if missing else None


def about_cut(lab: Lab) -> str | None:
    """The reply to a learner who cut connections, by which were cut; None if another leader was elected."""
    if any({*each.args} == {1, "zookeeper"} for each in lab.commands if each.name == "disconnect"):
        return "Without ZooKeeper broker 1 cannot keep its znode. What else must not reach it?"
    if lab.partition("orders", 0).leader != 1:
        return None
    return "Broker 1 still reaches ZooKeeper, so it keeps its session, and no other leader is elected."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="23.1",
        title="Who tries?",
        core=True,
        hints=(
            "Which partitions lose their leader, and how many replicas of each are left?",
            "Each of these replicas watches the znode of the leader.",
            "With a controller, one broker reads and writes znodes for all.",
        ),
        story=LED,
        ask=counted,
        example=(1, 1, 3),
        parts=("the attempts", "the elections won", "the brokers that ask with a controller"),
        wrong=(counts_wrong,),
        why="Every attempt is a race that one replica wins; a controller holds no race.",
    ),
    Compute(
        name="23.2",
        title="May this broker lead?",
        core=True,
        hints=(
            "First rule: a member of the ISR may.",
            "Second rule: is any member of the ISR alive? `set(isr) & set(live)`",
            "Without one, an assigned replica may.",
        ),
        stories={"every ISR of three": OPENING},
        give=cases,
        truth=can_become_leader,
        explain=explain_case,
        why="Every broker decided this by itself, from what it had read; today the controller does (lesson 05).",
        shows_story=False,
    ),
    Operate(
        name="23.3",
        title="Two leaders",
        hints=(
            "A leader that does not know of its successor goes on.",
            "It reaches ZooKeeper and keeps its znode. Which broker informs it of a successor?",
            "`lab.disconnect(1, ...)` is the first half. Then a successor has to be elected: `lab.expire_session(1)`?",
        ),
        begin=ONE,
        missing=one_leader,
        best=2,
        remarks={
            "kill": "A dead broker leads nothing, whatever it believed.",
            "expire_session": "Broker 1 registers again, and the controller sends it the new leader.",
            "disconnect": about_cut,
            "heal": "After `heal` every request arrives. If there is a new leader, broker 1 learns of it.",
            "bounce": "A broker that has started again leads only what the controller sends it.",
            "write_znode": "A broker begins to lead by a request of the controller, not by a znode.",
            "delete_znode /brokers/ids/1": "The broker does not create its znode again in the same session.",
            "pause": "It wakes up, and learns what it missed.",
            "shutdown": "A controlled shutdown hands the leader over.",
            "elect_preferred": lambda lab: (
                "Broker 1 is the preferred leader, and leads already: nothing is elected."
                if lab.partition("orders", 0).leader == 1
                else "The controller sends the result of an election to the old leader, too."
            ),
        },
        praise={"pause": "It stands still meanwhile, and answers no client."},
        why="A new leader is elected; the old one has not learned of it, and goes on. Leader epochs and versions "
        "keep what it writes out of the new leader's log.",
    ),
)
