"""Exercises of lesson 05, electing leaders.

Separate from `lesson_03.py` because a lesson has a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from kafka_ctl import election
from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.election import Election
from kafka_ctl.exercises.exercise import Exercise, PictureGuess
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import details
from kafka_ctl_course.quiet import TOPIC, opening

Leadership = tuple[tuple[str, int, tuple[int, ...], int], ...]
Offline = tuple[tuple[int, ...], tuple[int, ...], frozenset[int], bool]
Shutdown = tuple[tuple[int, ...], tuple[int, ...], frozenset[int], frozenset[int]]
TITLE = "Electing leaders"
OPENING = """\
lab brokers=4 generation=2.0 seed=7 config='{"auto.leader.rebalance.enable":false}' costs='{"boot":0.0005}'
"""
UNCLEAN = OPENING.replace("false", 'false,"unclean.leader.election.enable":true')
LATE = "lag 2 orders 0\nsettle\ncatch_up 2\nsettle\n"
"""Broker 2 leaves the ISR and joins it again: the ISR is (1, 3, 2)."""
ALONE = """\
create_topic orders assignment='{"0":[1,2]}'
settle
produce orders 0 records=3
lag 2 orders 0
settle
produce orders 0 records=2
kill 1
settle
"""
"""Broker 1, alone in the ISR, dies with two records that only it has."""
ASSIGNMENTS = (1, 2, 3), (3, 1, 2)
STORIES = {
    "all in sync": OPENING + TOPIC + "kill 1\nsettle\n",
    "caught up late": OPENING + TOPIC + LATE + "kill 1\nsettle\n",
    "two dead": OPENING + TOPIC + "kill 2\nsettle\nkill 1\nsettle\n",
    "no replica in sync": OPENING + ALONE,
    "no replica in sync, unclean allowed": UNCLEAN + ALONE,
}


def leadership(lab: Lab) -> Leadership:
    """Of each partition: its name, leader, ISR and leader epoch."""
    return tuple((f"{p.topic}-{p.partition}", p.leader, p.isr, p.leader_epoch) for p in lab.partitions())


def in_words(outcome: Leadership) -> str:
    """The same as text."""
    return ", ".join(
        f"{name}: leader {leader}, ISR {isr}, leader epoch {epoch}" for name, leader, isr, epoch in outcome
    )


def subsets(ids: tuple[int, ...]) -> Iterator[frozenset[int]]:
    """Every set of these brokers, the largest first."""
    for size in range(len(ids), -1, -1):
        yield from map(frozenset, combinations(ids, size))


def isrs(assignment: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every ISR in every order."""
    for size in range(len(assignment), 0, -1):
        yield from permutations(assignment, size)


def offline_cases() -> Iterator[Offline]:
    """Every ISR and set of live brokers, for two assignments of three replicas, unclean election off and on."""
    for assignment in ASSIGNMENTS:
        for isr in isrs(assignment):
            for live in subsets(assignment):
                yield from ((assignment, isr, live, unclean) for unclean in (False, True))


def shutdown_cases() -> Iterator[Shutdown]:
    """Every ISR and set of live brokers, for two assignments of three replicas, with one or two of these leaving."""
    for assignment in ASSIGNMENTS:
        for isr in isrs(assignment):
            for live in subsets(assignment):
                yield from ((assignment, isr, live, frozenset(leaving)) for leaving in ({1}, {1, 2}, {3}))


NO_PAIR = f"You return {NO_LEADER} as the leader. Where no broker may lead, the answer is None, without a pair."


def explain_offline(case: Offline, got: Election | None, expected: Election | None) -> str:
    """The fault in an answer to an offline partition, in one sentence."""
    assignment, isr, live, unclean = case
    fit = [r for r in assignment if r in live and r in isr]
    if got is None:
        return "You return no leader, though a replica may lead: which are alive, and which are in the ISR?"
    leader, members = got[0], tuple(got[1])
    if leader == NO_LEADER:
        return NO_PAIR
    if leader not in live:
        return f"Broker {leader} is not alive: no client can reach this leader."
    if not fit and not unclean:
        return (
            f"Broker {leader} is alive, but not in the ISR {isr}, and unclean election is not allowed: records that "
            "were acknowledged with acks=all would be lost (invariant I4)."
        )
    assert expected is not None, "a replica fits, or any that is alive may lead"
    if fit and leader not in isr:
        return f"Broker {leader} is alive, but not in the ISR {isr}, while a replica in sync is there."
    if leader != expected[0]:
        first = next((r for r in isr if r in live), None)
        taken = "the ISR's order" if leader == first else "another order"
        return (
            f"You took {taken}: broker {leader}. The walk goes along the assignment {assignment}; the ISR only filters."
        )
    if expected[2]:
        return (
            f"After an unclean election the ISR is the leader alone; yours, {members}, says that others have its data."
        )
    return _explain_isr(members, isr, [r for r in isr if r not in live], "dead", expected)


def _explain_isr(members: tuple[int, ...], isr: tuple[int, ...], gone: list[int], how: str, expected: Election) -> str:
    """The fault in an ISR, when the leader is right, in one sentence."""
    if added := [r for r in members if r not in isr]:
        who = f"Your ISR has {added[0]}, which was not in it"
        return f"{who}: a clean election never adds a member; the leader does, later."
    if kept := [r for r in members if r in gone]:
        more = "the replica machine has to write the ISR a second time" if how == "dead" else "it may be elected again"
        return f"Your ISR {members} keeps broker {kept[0]}, which is {how}: {more}."
    if sorted(members) == sorted(expected[1]):
        return f"Your ISR is {members}: the right members in another order. It keeps the order it had, {isr}."
    return f"Your ISR {members} has lost a member that can still follow; it was {isr}."


def explain_shutdown(case: Shutdown, got: Election | None, expected: Election | None) -> str:
    """The fault in an answer to a controlled shutdown, in one sentence."""
    assignment, isr, live, leaving = case
    gone = ", ".join(map(str, sorted(leaving)))
    if got is None:
        return "You return no leader, though a replica may lead that is alive, in the ISR and staying."
    leader, members = got[0], tuple(got[1])
    if leader == NO_LEADER:
        return NO_PAIR
    if leader in leaving:
        return (
            f"Broker {leader} is leaving too ({gone}): `live` counts those that are leaving, as long as they run. The "
            "partition would be without a leader a moment later."
        )
    if leader not in live:
        return f"Broker {leader} is not alive: no client can reach this leader."
    if leader not in isr:
        return f"Broker {leader} is not in the ISR {isr}; a controlled shutdown is never unclean."
    assert expected is not None, "this broker, at least"
    if leader != expected[0]:
        before = (
            "So did Kafka before 0.10.0 (KAFKA-3670), and after a rolling restart few brokers led nearly everything."
        )
        first = next(r for r in isr if r in live and r not in leaving)
        taken = f"the ISR's order: broker {leader}. {before}" if leader == first else f"another order: broker {leader}."
        return f"You took {taken} The walk goes along the assignment {assignment}."
    if dropped := [r for r in isr if r not in members and r not in leaving]:
        return (
            f"Your ISR {members} has lost broker {dropped[0]}, which is not leaving. Only those that leave go here; "
            "the dead are taken out elsewhere."
        )
    return _explain_isr(members, isr, sorted(leaving), "leaving", expected)


# 1: predict


def walked(lab: Lab) -> tuple[int, tuple[int, ...]]:
    """The partition's leader and ISR."""
    found = lab.partition("orders", 0)
    return found.leader, found.isr


def predict_wrong(answer: tuple[int, tuple[int, ...]], truth: tuple[int, tuple[int, ...]]) -> str | None:
    """The mistakes of exercise 1."""
    leader, isr = answer
    if leader == 3:
        return "Broker 3 is the first of the assignment, but it has just died."
    if leader == 2:
        return "You took the ISR's order. The walk goes along the assignment (3, 1, 2)."
    if leader == 4:
        return "Broker 4 holds no replica of this partition."
    if leader != truth[0]:
        return None
    if 3 in isr:
        return "The leader is right. The ISR becomes its live members; who has died?"
    if isr == (leader,):
        return "The leader is right. Only an unclean election leaves the leader alone in the ISR."
    if sorted(isr) == sorted(truth[1]):
        return "Leader and members are right. The ISR keeps its own order, whatever the assignment says."
    return None


# 4 and 5: operate


def no_leader(lab: Lab) -> str | None:
    """The problem (the partition still has no leader), or None."""
    found = lab.partition("orders", 0)
    named = lab.brokers.get(found.leader)
    if named is None or named.state != "running":
        return f"orders-0 has leader {found.leader} and ISR {found.isr}."
    if ("orders", 0) in named.leads:
        return None
    return f"ZooKeeper names broker {named.id}, and no request has made broker {named.id} lead."


def no_leader_or_loss(lab: Lab) -> str | None:
    """The problem (the partition has no leader, or one without the records that were acknowledged), or None."""
    if (missing := no_leader(lab)) is not None:
        return missing
    lost = next((v.text for v in lab.violations if v.invariant == "I4"), None)
    return f"orders-0 is led, but {lost}." if lost else None


def led_by_other(lab: Lab) -> str | None:
    """The problem, or None once broker 2 leads: broker 1 was started, or no broker leads."""
    if any(each.name == "start" and each.args[:1] == (1,) for each in lab.commands):
        return "broker 1 is beyond repair: in this exercise it cannot be started."
    return no_leader(lab)


def changed_last(lab: Lab, by: str) -> bool:
    """True if the last command that changed a `state` znode is of this name."""
    changes = [each.name for each in lab.commands if each.args and str(each.args[0]).endswith("/state")]
    return changes[-1:] == [by]


def asked_again(lab: Lab) -> str:
    """The reply to a learner who made a new controller without starting broker 1."""
    if lab.partition("orders", 0).leader < 0:
        return "The next controller asks the same question of the same ISR."
    if changed_last(lab, "write_znode"):
        return "The next controller believed the leader that you wrote into the znode; no election was held."
    return BORN if changed_last(lab, "delete_znode") else ELECTED


def looked_again(lab: Lab) -> str:
    """The reply to a learner who restarted another broker."""
    led = lab.partition("orders", 0).leader >= 0
    if changed_last(lab, "delete_znode"):
        return BORN if led else "Without the `state` znode the controller knows no ISR, and elects no leader."
    if not led:
        return "The controller looked again, and found the same: no member of the ISR is alive."
    return (
        "The controller believed the ISR that you wrote into the znode."
        if changed_last(lab, "write_znode")
        else ELECTED
    )


def configured(lab: Lab) -> str | None:
    """The reply to a learner who changed the topic's configuration, or made a new controller, and has no leader yet."""
    if lab.partition("orders", 0).leader >= 0:
        return BORN if changed_last(lab, "delete_znode") else None
    znode = lab.znodes().get("/config/topics/orders")
    text = znode[0].decode(errors="replace") if znode else ""
    config = details.json_object(text).get("config")
    if text and not isinstance(config, dict):
        return f"/config/topics/orders holds {text}. That is not JSON with a `config`, so no broker can read it."
    value = config.get(KEY) if isinstance(config, dict) else None
    if value is None:
        settings = ", ".join(config or ())
        return f"The topic has {settings}, and not the setting that allows unclean elections." if settings else None
    if not isinstance(value, str):
        return f'/config/topics/orders holds {text}. Kafka reads each value as text, here "true" with its quotes.'
    allows = value.strip().lower() == "true"
    return CONFIG if allows else f"The topic has {KEY}={value}: it does not allow unclean elections."


BORN = (
    "Without its `state` znode the partition was New to the next controller: no election was held. It sent leader "
    "epoch 0, and broker 2 ignored it."
)
ELECTED = "The controller elected a replica that is not in the ISR, as you allowed it to."
KEY = "unclean.leader.election.enable"
PREFERRED = "Strategy *preferred* looks at one broker only, the first of the assignment: broker 1, which is dead."
MOVE = "A reassignment waits until the new replicas are in the ISR; without a leader they cannot join it."
CONFIG = "The topic now allows unclean elections, and nothing happened: a controller looks when something has changed."

EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="05.1",
        title="Walk along the assignment",
        hints=(
            "Two lists and a set: which of them gives the order?",
            "Which of them only filter? Cross out of the assignment the brokers that they exclude.",
            "An election may take dead brokers out of the ISR. May it add a broker, or sort the ISR?",
        ),
        story=OPENING
        + """create_topic orders assignment='{"0":[3,1,2]}'\nsettle\n"""
        + "lag 1 orders 0\nsettle\ncatch_up 1\nsettle\nkill 3\nsettle\n",
        ask=walked,
        example=(7, (7, 8)),
        parts=("the leader", "the ISR"),
        wrong=(predict_wrong,),
        why="The assignment gives the order; ISR and live brokers only filter. The ISR keeps its own order.",
    ),
    Implement(
        name="05.2",
        title="Your own election, in a running cluster",
        core=True,
        hints=(
            "Write in one line when a replica is *fit* to lead.",
            "Go along the assignment and take the first that is fit. What if none is, and unclean election is off?",
            "Then the ISR: its live members, in its own order. And after an unclean election?",
        ),
        what="elections",
        occasion="offline",
        usual=election.offline_leader,
        cases=offline_cases,
        stories=STORIES,
        outcome=leadership,
        describe=in_words,
        explain=explain_offline,
        why="Your function answers for every ISR and every set of live brokers as Kafka's does.",
    ),
    Implement(
        name="05.3",
        title="Which broker leads when the leader says that it will stop?",
        hints=(
            "`live` counts the brokers that are shutting down, too: they still run.",
            "Which list gets shorter before the walk begins, and by whom exactly?",
            "Try it with brokers 1 and 2 leaving together, and with broker 3 dead.",
        ),
        what="elections",
        occasion="controlled_shutdown",
        usual=election.controlled_shutdown_leader,
        cases=shutdown_cases,
        stories={
            "one leaves": OPENING + TOPIC + "shutdown 1\nsettle\n",
            "one leaves, caught up late": OPENING + TOPIC + LATE + "shutdown 1\nsettle\n",
            "one after the other": OPENING + TOPIC + "shutdown 1\nsettle\nshutdown 2\nsettle\n",
        },
        outcome=leadership,
        describe=in_words,
        explain=explain_shutdown,
        why="Those that leave go out of the ISR, all of them and no others; then the walk is the usual one.",
    ),
    Operate(
        name="05.4",
        title="Offline: bring it back without a loss",
        core=True,
        hints=(
            "What does the ISR of orders-0 say, and who of it is alive?",
            "Which broker has all the records that were acknowledged?",
        ),
        begin=OPENING + ALONE,
        missing=no_leader_or_loss,
        best=1,
        remarks={
            "elect_preferred": PREFERRED,
            "reassign": MOVE,
            "start 2": "Broker 2 runs, but it was not in the ISR.",
            "delete_controller": asked_again,
            "bounce": looked_again,
            "write_znode": configured,
            "alter_config": configured,
            "delete_topic": "A deletion waits for broker 1, and then takes the records, too.",
        },
        why="An offline partition names the broker that you need: the one in its ISR.",
    ),
    Operate(
        name="05.5",
        title="Offline, and the only replica in sync is beyond repair",
        hints=(
            "Which replicas may lead by the rules as they are now? Which rule must change, and for which topic only?",
            "A topic's configuration is a znode, `/config/topics/orders`.",
            "After that no process looks at the partition. What makes a controller look again?",
        ),
        begin=OPENING + ALONE,
        missing=led_by_other,
        best=2,
        remarks={
            "elect_preferred": PREFERRED,
            "reassign": MOVE,
            "write_znode": configured,
            "alter_config": configured,
            "delete_controller": configured,
        },
        praise={"delete_controller": "A new controller tries every partition that is Offline."},
        why="Broker 2 leads, and the records that only broker 1 had are lost: the price, for this topic alone.",
    ),
)


GUESSES = {
    "05.a": PictureGuess(
        "The assignment of orders-0 is 1, 2, 3; the ISR is 1, 3, 2; broker 1 dies. Who leads?",
        "broker",
        opening(4) + TOPIC + LATE,
        "kill 1\nsettle\n",
        lambda lab: frozenset(f"broker:{p.leader}" for p in lab.partitions() if p.leader != NO_LEADER),
        {
            "broker:3": "It is the next in the ISR. Many pages say so.",
            "broker:1": "It is dead; the controller does not wait for it while others are in sync.",
            "broker:4": "It has no copy of the partition.",
            "none": "Two replicas are in sync and alive.",
        },
        "The walk goes along the assignment, and takes the first that is alive and in the ISR.",
    ),
}
