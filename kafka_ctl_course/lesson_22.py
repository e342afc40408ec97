"""Exercises of lesson 22, reading a real incident: its cluster in small, with the ids that no broker has any more."""

from __future__ import annotations

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.exercises.exercise import Exercise, plain
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import Trace
from kafka_ctl_course.quiet import opening

TITLE = "Reading real logs"
OPENING = opening(1, "0.10")
NIGHT = (
    OPENING
    + "add_broker\nsettle\nadd_broker\nsettle\n"
    + """create_topic netflow assignment='{"0":[1002],"1":[1002],"2":[1002]}'\n"""
    + """create_topic offsets assignment='{"0":[1001,1002]}'\nsettle\n"""
    + "shutdown 1001\nsettle\nshutdown 1002\nsettle\nadd_broker broker=2\nadd_broker broker=3\nsettle\n"
)
"""Two brokers had generated ids. Their machines were given the ids 2 and 3, with new disks."""
CAME_BACK = OPENING.replace("brokers=1", "brokers=[0,1,2]") + (
    """create_topic orders assignment='{"0":[2],"1":[1],"2":[0]}'\nsettle\n"""
    "kill 1\nsettle\nkill 0\nsettle\nstart 0\nsettle\n"
)
"""Two partitions were without a leader; that of broker 0 was elected later."""


# 1: predict


def candidates(lab: Lab) -> tuple[int, ...]:
    """The leader of offsets-0 if this one broker is started: found by starting each."""
    found = []
    for id, view in lab.brokers.items():
        with lab.fork() as each:
            if view.state != RUNNING:
                each.start(id)
                each.settle()
            if each.partition("offsets", 0).leader == id:
                found.append(id)
    return tuple(found)


def in_order(answer: object) -> object:
    """Brokers by id, each once: the exercise asks which may lead, in any order."""
    given = plain(list(answer) if isinstance(answer, set | frozenset) else answer)
    is_row = isinstance(given, tuple) and all(isinstance(each, int) for each in given)
    return tuple(sorted({*given})) if is_row else given


def candidates_wrong(answer: tuple[int, ...], truth: tuple[int, ...]) -> str | None:
    """The mistakes of exercise 1."""
    hints = {
        1: "Broker 1 is alive. It is not assigned, and no election chooses a broker that is not.",
        2: "Broker 2 may be the same machine. Its id is another one, and replicas are lists of ids.",
        3: "Broker 3 is alive, and not assigned.",
    }
    missing = {
        1001: "Broker 1001 was not in sync. What is the default of `unclean.leader.election.enable` in Kafka 0.10?",
        1002: "Broker 1002 left last, so it is in the ISR. It may lead without any unclean election.",
    }
    if not answer:
        return "Two brokers are assigned to offsets-0. What if one of them came back?"
    strange = (hints.get(id, f"No broker here has the id {id}.") for id in answer if id not in truth)
    return next(strange, None) or next((missing[id] for id in truth if id not in answer), None)


# 2: partitions without a leader


def elections(lab: Lab) -> list[tuple[Trace]]:
    """The lines about elections."""
    return [(lab.trace.slice(kind="election"),)]


def never_led(records: Trace) -> set[tuple[str, int]]:
    """The partitions whose last election found no leader."""
    last = {(r.topic, r.partition): r.leader for r in records}
    return {(str(topic), int(number or 0)) for (topic, number), leader in last.items() if leader is None or leader < 0}


def explain_never(given: tuple[Trace], got: object, expected: set[tuple[str, int]]) -> str:
    """The fault in a set of partitions, in one sentence."""
    (records,) = given
    refused = [(r.topic, r.partition) for r in records if r.leader is None or r.leader < 0]
    text = f"you return {got!r}. "
    if isinstance(got, int):
        lines = f" You counted lines: {len(refused)}, some partitions several times." * (got == len(refused))
        return f"{text}A set of pairs is asked for.{lines}"
    if not isinstance(got, set | tuple | list) or not all(
        isinstance(each, tuple) and [*map(type, each)] == [str, int] for each in got
    ):
        return f"{text}A set of pairs is asked for, such as {{('orders', 0)}}: a name and a number."
    if len(set(got)) < len(got):
        return f"{text}A partition is in it twice: a dictionary keeps the last line of each."
    if set(got) == set(refused):
        return f"{text}One of them was elected later: only the last line of a partition counts."
    if not got:
        return f"{text}In {len(refused)} lines an election found no leader: theirs is None."
    if missing := sorted(set(expected) - set(got)):
        return f"{text}{missing[0][0]}-{missing[0][1]} is missing: its last election found no leader."
    extra = sorted(set(got) - set(expected))[0]
    if extra not in [(r.topic, r.partition) for r in records]:
        return f"{text}No election of {extra} is among the records."
    return f"{text}{extra} has a leader by its last line."


# 3: operate


def still_down(lab: Lab) -> str | None:
    """The partitions that are still without a leader, and the brokers that they need."""
    waiting = [p for p in lab.partitions() if p.leader < 0]
    if not waiting:
        return None
    names = ", ".join(f"{p.topic}-{p.partition}" for p in waiting)
    first = waiting[0]
    return (
        f"{names} {'has' if len(waiting) == 1 else 'have'} no leader; "
        f"the replicas of {first.topic}-{first.partition} are {first.replicas}."
    )


def started(lab: Lab) -> str | None:
    """The reply to a learner who started a broker, which has another id if its disk was empty."""
    if {1001, 1002} - lab.brokers.keys():
        return "On an empty disk a broker finds no id, and gets a new one. Which ids do the partitions name?"
    return "Broker 1001 runs. Which other broker is assigned?" if lab.brokers[1001].state == RUNNING else None


def led_without_records(lab: Lab) -> str | None:
    """The sentence about a partition whose leader never had its records; None if there is no such partition."""
    led = [p for p in lab.partitions() if p.topic == "netflow" and p.leader not in (-1, 1002)]
    if not led:
        return None
    return (
        f"Broker {led[0].leader} leads netflow-{led[0].partition}, with an empty log: its records are on broker 1002."
    )


def moved(lab: Lab) -> str:
    """The reply to a learner who asked for other replicas."""
    return led_without_records(lab) or "The new replica has no leader to copy from, so it never gets in sync."


def asked_again(lab: Lab) -> str:
    """The reply to a learner who made a new controller."""
    leader = lab.partition("netflow", 0).leader
    if leader >= 0:
        return (
            f"The next controller read the replicas that you wrote; broker {leader} leads netflow-0, with an empty log."
        )
    return "The next controller finds the same: no assigned broker is alive."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="22.1",
        title="Which broker may lead it?",
        hints=(
            "Does an election, even an unclean one, ever choose a broker that is not assigned?",
            "Which of the assigned brokers was in sync at the end? May only that one lead, in Kafka 0.10?",
        ),
        story=NIGHT,
        ask=candidates,
        example=(7,),
        read=in_order,
        wrong=(candidates_wrong,),
        why="Replicas are lists of ids: only an assigned id may lead, whatever disks are in the machine. "
        "In 0.10 unclean elections are on, so it need not be in sync.",
    ),
    Compute(
        name="22.2",
        title="Without a leader",
        core=True,
        hints=(
            "Each record has `topic`, `partition` and `leader`; where no broker can lead, `leader` is None.",
            "A partition may be refused three times, and elected at the fourth.",
            "A dictionary keeps the last value that was put in.",
        ),
        stories={"a night": NIGHT, "one came back": CAME_BACK},
        give=elections,
        truth=never_led,
        explain=explain_never,
        why="An outage that begins before the first line of a log changes no state: count refusals.",
    ),
    Operate(
        name="22.3",
        title="Bring it back",
        core=True,
        hints=(
            "Count by partition: which replicas do all of them name?",
            "Is there a broker with this id? What does it need in order to start?",
        ),
        begin=NIGHT,
        missing=still_down,
        best=1,
        remarks={
            "start": started,
            "delete_controller": asked_again,
            "elect_preferred": "The preferred leaders are the assigned ones, and they are down.",
            "reassign": moved,
            "execute_reassignment": moved,
            "alter_config": "Unclean elections are on in 0.10. They, too, need an assigned broker that runs.",
            "set_broker_id": "Its disks say 1002: a broker whose sources disagree does not start.",
            "add_broker": "A new broker holds nothing.",
            "bounce": "A restart changes no id. Which ids do the partitions name?",
            "delete_topic": "In 0.10 `delete.topic.enable` is false: the topic is only marked.",
        },
        why=lambda lab: (
            led_without_records(lab)
            or "The broker with the id that the partitions name, on its old disks: keep stored ids when machines "
            "change."
        ),
    ),
)
