"""Exercises of lesson 08, controlled shutdown."""

from __future__ import annotations

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.display import counted
from kafka_ctl.election import controlled_shutdown_leader
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl_course.quiet import opening

TITLE = "Controlled shutdown"
OPENING = opening(4)
FOUR = """\
create_topic late assignment='{"0":[2,1,3]}'
create_topic followed assignment='{"0":[1,2]}'
create_topic solo assignment='{"0":[2]}'
create_topic alone assignment='{"0":[2,3]}'
settle
lag 1 late 0
lag 3 alone 0
settle
"""
"""Broker 2 leads three topics; in `late` replica 1 is out of the ISR, in `alone` replica 3."""
REJOINED = """\
create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1]}'
settle
lag 2 orders 0
settle
catch_up 2
settle
"""
"""The ISR of orders-0 is (1, 3, 2)."""
PAIR = """\
create_topic pair assignment='{"0":[1,2]}'
settle
produce pair 0 records=3
lag 2 pair 0
settle
produce pair 0 records=2
"""
"""Broker 1 is alone in the ISR and has two records that broker 2 lacks."""


# 1: predict


def after_the_stop(lab: Lab) -> tuple[int, ...]:
    """The leaders of the four topics, then how often broker 2 has asked."""
    leaders = (lab.partition(topic, 0).leader for topic in ("late", "followed", "solo", "alone"))
    return *leaders, len(lab.trace.slice(kind="broker", action="controlled-shutdown"))


def predict_wrong(answer: tuple[int, ...], truth: tuple[int, ...]) -> str | None:
    """The mistakes of exercise 1."""
    late, followed, solo, alone, attempts = answer
    if 2 in answer[:4]:
        return "After the last attempt broker 2 stops anyway: it leads nothing."
    if solo != -1:
        return f"Broker {solo} holds no copy of solo."
    if alone != -1:
        return "Replica 3 is not in the ISR of alone, (2,), and a controlled shutdown is never unclean."
    if late == 1:
        return "Replica 1 comes next in the assignment of late, but it is not in the ISR, (2, 3)."
    if followed == -1:
        return "Broker 2 only follows in followed; the leader, broker 1, stays."
    if answer[:4] != truth[:4]:
        return None
    if attempts == 1:
        return "The leaders are right. The first answer was remaining=alone-0: the broker asks again after 5 s."
    if attempts == 4:
        return "The leaders are right. 3 is the number of attempts, not of repetitions."
    return None


# 2: compute


def situations(lab: Lab) -> list[tuple[int, tuple[PartitionView, ...], frozenset[int]]]:
    """Every broker that runs as the one that asks; alone, and with each of the others leaving, too."""
    running = [broker for broker, view in lab.brokers.items() if view.state == "running"]
    found = tuple(lab.partitions())
    return [(broker, found, frozenset({broker, other})) for broker in running for other in running]


def plan(broker: int, partitions: tuple[PartitionView, ...], leaving: frozenset[int]) -> dict[str, int | None]:
    """The next leader of each partition that this broker leads and that has other replicas."""
    found = {}
    for p in partitions:
        if p.leader == broker and len(p.replicas) > 1:
            elected = controlled_shutdown_leader(p.replicas, p.isr, frozenset(p.isr), leaving)
            found[f"{p.topic}-{p.partition}"] = elected.leader if elected else None
    return found


def explain_plan(
    given: tuple[int, tuple[PartitionView, ...], frozenset[int]], got: object, expected: dict[str, int | None]
) -> str:
    """The fault in a plan, in one sentence."""
    broker, partitions, leaving = given
    gone = ", ".join(map(str, sorted(leaving)))
    asked = f"broker {broker} asks, leaving: {gone}."
    if not isinstance(got, dict):
        return f"{asked} Your function returned {_shown(got)}; a dictionary is expected, such as {{'orders-0': 2}}."
    known = {f"{p.topic}-{p.partition}": p for p in partitions}
    wrong = next(name for name in [*got, *expected] if name not in got or got[name] != expected.get(name, "nothing"))
    return f"{asked} {_explain_one(broker, leaving, wrong, known.get(wrong), got, expected)}"


def _explain_one(
    broker: int, leaving: frozenset[int], name: object, p: PartitionView | None, got: dict, expected: dict
) -> str:
    if p is None:
        if isinstance(name, tuple) and len(name) == 2:
            return f"{name!r} is a pair; name the partition as text, such as 'orders-0'."
        return f"{name!r} is not a partition of this cluster."
    if name not in got:
        return f"Broker {broker} leads {name}, which has other replicas, and your plan does not name it."
    if name not in expected:
        if p.leader != broker:
            return f"Broker {broker} does not lead {name}: an election there would change nothing."
        return (
            f"{name} has one replica and cannot move. If it counted as remaining, broker {broker} would try three "
            "times and wait 15 s for it."
        )
    leader = got[name]
    if leader is None:
        return f"You return no leader for {name}, though replica {expected[name]} is in the ISR {p.isr} and stays."
    if leader == NO_LEADER:
        return f"You return {NO_LEADER} for {name}. A plan names no leader with None."
    if not isinstance(leader, int):
        return f"You give {name} to {_shown(leader)}; the id of a broker is a whole number."
    if leader in leaving:
        return f"You give {name} to broker {leader}, which is leaving: it would be without a leader a moment later."
    if leader not in p.isr:
        return f"You give {name} to broker {leader}; a controlled shutdown never chooses outside the ISR {p.isr}."
    is_next = leader == next(each for each in p.isr if each not in leaving)
    why = f", the next in the ISR {p.isr} (KAFKA-3670, lesson 05)" * is_next
    return f"You give {name} to broker {leader}{why}. The walk goes along the assignment {p.replicas}."


def _shown(value: object) -> str:
    """A value of an answer; a list in a dictionary has become a tuple on its way here."""
    return "a sequence" if isinstance(value, tuple | list) else repr(value)


# 3: operate


def left_a_gap(lab: Lab) -> str | None:
    """The problem (broker 1 still runs, or pair-0 was without a leader, or has lost records), or None."""
    found = lab.partition("pair", 0)
    if lab.brokers[1].state != "down":
        return "broker 1 has not stopped."
    if lost := next((v.text for v in lab.violations if v.invariant == "I4"), None):
        return f"broker 1 has stopped, but {lost}."
    asked = len(lab.trace.slice(kind="broker", action="controlled-shutdown", broker=1))
    if found.leader == -1:
        return f"pair-0 is Offline with ISR {found.isr}; broker 1 asked {counted(asked, 'time')}."
    if lab.brokers[found.leader].state != "running":
        return f"broker 1 has stopped, and so has broker {found.leader}, which led pair-0."
    closes = (("fault", "kill"), ("broker", "shutting-down"))
    ends = [r for r in lab.trace.slice(broker=1) if (r.kind, r.action) in closes]
    led = lab.trace.slice(kind="broker", action="become-leader", topic="pair", broker=found.leader)
    gap = led[-1].time_ms - ends[0].time_ms
    return f"pair-0 was without a leader for {gap / 1000:.1f} s." if gap > 0 else None


def asked_in_vain(lab: Lab) -> str | None:
    """The reply to a controlled shutdown that left pair-0 behind."""
    answers = [r.detail or "" for r in lab.trace.slice(kind="broker", action="controlled-shutdown", broker=1)]
    if lab.partition("pair", 0).leader != NO_LEADER or not answers or not all("pair-0" in each for each in answers):
        return None
    return "Its answers all said remaining=pair-0. What has to be true of replica 2 before one of them is empty?"


def caught_up(lab: Lab) -> str | None:
    """The reply to a `catch_up` that was not enough."""
    if lab.brokers[1].state != "down":
        return "Now replica 2 can join the ISR. Broker 1 has still to be stopped, in good order."
    if len(lab.trace.slice(kind="broker", action="controlled-shutdown", broker=1)) < 3:
        return None
    return "Broker 1 asked at 0, 5 and 10 s. Replica 2 has to be in the ISR before the third attempt."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="08.1",
        title="Which brokers lead after the stop?",
        hints=(
            "Which other broker holds a copy, is in the ISR, and stays?",
            "Which topics does the controller not even look at?",
            "What does a broker do after its last attempt?",
        ),
        story=OPENING + FOUR + "shutdown 2\nsettle\n",
        ask=after_the_stop,
        example=(7, 7, 7, 7, 7),
        parts=("late", "followed", "solo", "alone", "attempts"),
        no_broker="-1",
        wrong=(predict_wrong,),
        why="late moves, followed keeps its leader, solo is left alone, and alone keeps broker 2 for three attempts.",
    ),
    Compute(
        name="08.2",
        title="The controller's plan",
        core=True,
        hints=(
            "There are three groups of partitions on this broker: led, followed, and those with one replica.",
            "Who of the ISR may lead when two brokers leave?",
            "Which order decides among those, and what if there is none?",
        ),
        stories={
            "four topics": OPENING + FOUR,
            "a replica has joined the ISR again": OPENING + REJOINED,
            "one broker is dead": OPENING + REJOINED + "kill 3\nsettle\n",
        },
        give=situations,
        truth=plan,
        explain=explain_plan,
        why="The partitions with None in your plan are those that the answer to the broker lists as remaining.",
    ),
    Operate(
        name="08.3",
        title="Stop broker 1, and keep pair-0 led",
        core=True,
        hints=(
            "What would the answer to broker 1 name as remaining?",
            "What must become true of replica 2, so that it may lead?",
            "In which order, or at the same time?",
        ),
        begin=OPENING + PAIR,
        missing=left_a_gap,
        best=2,
        remarks={
            "kill": "After `kill` the controller gets no request; it learns of the death when the session ends.",
            "shutdown": asked_in_vain,
            "catch_up": caught_up,
            "write_znode": "An unclean election gives a leader at once, without the records that only broker 1 has.",
            "lag": "The further replica 2 falls behind, the longer broker 1 has to stay.",
        },
        praise={"reassign": "A third replica does it as well, and more data was copied."},
        why=lambda lab: (
            f"Replica {lab.partition('pair', 0).leader} was in the ISR when the controller looked: pair-0 had a leader "
            "all the time."
        ),
    ),
    Repair(
        name="08.4",
        title="Two leaders during a shutdown",
        hints=(
            "Which broker does not know yet that another one leads?",
            "A broker that shuts down is still live, and answers clients.",
        ),
        ticket="KAFKA-7482",
        occasion="receivers",
        given='''
def receivers(assignment, live, shutting_down):
    """The brokers that get LeaderAndIsr with the new leader of a partition."""
    return [broker for broker in assignment if broker in live and broker not in shutting_down]
''',
        stories={
            "another replica is down": "kill 3; settle; shutdown 2; settle",
        },
        why="The broker that leaves gets the new leader, too, and leads no more.",
    ),
)
