"""Exercises of lesson 15, preferred leaders and the automatic rebalance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kafka_ctl.balance import Candidate, by_preferred, candidates
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.exercises.exercise import Exercise, Function, Verdict
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate, down
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab

Case = tuple[list[Candidate], frozenset[int], frozenset[TopicPartition], int]
TITLE = "Preferred leaders and the automatic rebalance"
OPENING = """lab brokers=4 generation=2.4 seed=7 costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
SPREAD = ",".join(f'"{n}":[{1 + n % 3},{1 + (n + 1) % 3},{1 + (n + 2) % 3}]' for n in range(12))
TOPIC = f"create_topic orders assignment='{{{SPREAD}}}'\nsettle\n"
BACK = "kill 1\nsettle\nstart 1\nsettle\n"
CHECK = "run_for 310\n"
HUNG = (
    """create_topic audit assignment='{"0":[2]}'\nsettle\nreassign '{"audit-0":[4]}'\nkill 4\nsettle\n"""
    """kill 1\nsettle\nstart 1\nsettle\n"""
)
"""A move to broker 4, which dies in the middle of it; then broker 1 is restarted."""


def some(topic: str, number: int) -> str:
    """A topic whose partitions all prefer broker 1."""
    assignment = ",".join(f'"{n}":[1,2,3]' for n in range(number))
    return f"create_topic {topic} assignment='{{{assignment}}}'\nsettle\n"


STORIES = {
    "broker 1 was restarted": OPENING + TOPIC + BACK + CHECK,
    "broker 1 is dead": OPENING + TOPIC + "kill 1\nsettle\n" + CHECK,
    "broker 1 misses one of ten": OPENING + some("orders", 1) + BACK + some("rest", 9) + CHECK,
    "broker 1 misses three of twenty": OPENING + some("orders", 3) + BACK + some("rest", 17) + CHECK,
    "broker 1 is back, and not in sync": OPENING
    + TOPIC
    + "kill 1\nsettle\nstart 1\nrun_for 0.1\nlag 1 orders 0\nsettle\n"
    + CHECK,
    "a move hangs": OPENING + TOPIC + HUNG + CHECK,
}


# 1: predict


def numbers(lab: Lab) -> dict[int, int]:
    """The number of partitions that each broker leads, without brokers that lead none."""
    return dict(sorted(Counter(p.leader for p in lab.partitions()).items()))


def predict_wrong(answer: dict[int, int], truth: dict[int, int]) -> str | None:
    """The mistakes of exercise 1."""
    if sum(answer.values()) != sum(truth.values()):
        return f"These are {sum(answer.values())} partitions; there are {sum(truth.values())}, and all have a leader."
    if set(answer.values()) == {4}:
        return "The check restores preferences; it does not spread leaders. What is the ratio of broker 1?"
    if answer.get(3):
        return "No partition prefers broker 3, so no check gives it one."
    if answer.get(1, 0) < truth[1]:
        return "Ten percent is a threshold, not a quota: what is where it should be is not touched."
    return None


# 2: implement


def leaders(lab: Lab) -> tuple[tuple[str, int], ...]:
    """Of each partition: its name and leader, two more checks later; an election that fails delays what follows it."""
    lab.run_for(2 * lab.config["leader.imbalance.check.interval.seconds"])
    return tuple((f"{p.topic}-{p.partition}", p.leader) for p in lab.partitions())


def in_words(outcome: tuple[tuple[str, int], ...]) -> str:
    """The number of leaders on each broker."""
    return "leaders " + ", ".join(f"{id}: {n}" for id, n in sorted(Counter(leader for _, leader in outcome).items()))


def group(preferred: int, misplaced: int, number: int) -> list[Candidate]:
    """Partitions that prefer one broker; so many of them are led by the next one."""
    other = preferred % 3 + 1
    rest = next(id for id in (1, 2, 3) if id not in (preferred, other))
    replicas = preferred, other, rest
    return [
        Candidate(f"t{preferred}", n, replicas, replicas, other if n < misplaced else preferred) for n in range(number)
    ]


def cases() -> Iterator[Case]:
    """The threshold, two groups, and each reason to leave a partition out."""
    live, nothing = frozenset({1, 2, 3}), frozenset[TopicPartition]()
    for percentage in (0, 10, 20, 50):
        for misplaced, number in ((1, 10), (2, 20), (1, 9), (3, 20), (11, 20), (0, 4), (4, 4)):
            yield group(1, misplaced, number), live, nothing, percentage
    yield group(1, 2, 2) + group(2, 0, 20), live, nothing, 10
    yield group(1, 1, 20) + group(2, 5, 5), live, nothing, 10
    yield group(1, 4, 4), frozenset({2, 3}), nothing, 10
    yield [each._replace(isr=(2, 3)) for each in group(1, 4, 4)], live, nothing, 10
    yield group(1, 4, 4), live, frozenset({TopicPartition("audit", 0)}), 10
    yield [each._replace(deleting=True) for each in group(1, 4, 4)], live, nothing, 10
    gone = [each._replace(topic="gone", deleting=True) for each in group(1, 0, 11)]
    yield group(1, 1, 9) + gone, live, nothing, 10


def elected(chosen: Sequence[TopicPartition], case: Case) -> list[str]:
    """The elected leaders by name; an election that must fail, of a replica out of sync, changes nothing."""
    return [f"{p.topic}-{p.partition}" for p in case[0] if (p.topic, p.partition) in chosen and p.preferred in p.isr]


def explain(case: Case, got: list[str], expected: list[str]) -> str:
    """The fault in the partitions that a function chose, in one sentence."""
    partitions, live, moving, percentage = case
    named = {f"{p.topic}-{p.partition}": p for p in partitions}
    for name in (name for name in got if name not in expected):
        return f"{name}: {_not_to_be(named[name], partitions, live, moving, percentage)}"
    name = next(name for name in expected if name not in got)
    preferring = by_preferred(partitions)[named[name].preferred]
    same = [p for p in preferring if not p.deleting]
    away = [p for p in same if p.leader != p.preferred]
    count = f"of the {len(same)} that prefer broker {named[name].preferred}, {_led_elsewhere(len(away))}"
    if any(f"{p.topic}-{p.partition}" in got for p in away):
        return f"{name} is missing: {count}. Once that is too many, all of them are elected, not only the surplus."
    if len(away) / len(preferring) <= percentage / 100:
        return f"{name} is missing: {count}. Partitions of topics that are to be deleted do not count."
    if len(away) / len(partitions) <= percentage / 100:
        return f"{name} is missing: {count}. The ratio is that of each broker's own, not of all {len(partitions)}."
    scale = "" if got else " It lies between 0 and 1, `percentage` between 0 and 100."
    return f"{name} is missing: {count}, and a broker that leads nothing has a ratio, too.{scale}"


def _not_to_be(
    p: Candidate, partitions: list[Candidate], live: frozenset[int], moving: frozenset[TopicPartition], percentage: int
) -> str:
    """The reason why a partition is not to be elected."""
    if p.deleting:
        return "its topic is about to be deleted."
    if p.leader == p.preferred:
        return "its preferred replica leads it already."
    if moving:
        return "while any partition moves, none is elected, also of other topics (until Kafka 3.4, KAFKA-10149)."
    if p.preferred not in live:
        return f"broker {p.preferred} is dead, and cannot lead."
    same = by_preferred(each for each in partitions if not each.deleting)[p.preferred]
    away = sum(each.leader != p.preferred for each in same)
    count = f"of the {len(same)} that prefer broker {p.preferred}, {_led_elsewhere(away)}"
    if away / len(same) == percentage / 100:
        return f"{count}: that is exactly {percentage} %, and only more than that is too much."
    return f"{count}: that is less than {percentage} %."


def _led_elsewhere(number: int) -> str:
    """The number of partitions that their preferred broker does not lead."""
    return f"{number} {'is' if number == 1 else 'are'} led elsewhere"


def until_2_5(
    partitions: list[Candidate], live: frozenset[int], moving: frozenset[TopicPartition], percentage: int
) -> list[Candidate]:
    """The same without the test of the ISR."""
    return candidates(partitions, live, moving, percentage, in_sync=False)


@dataclass(frozen=True, kw_only=True)
class Rebalance(Implement):
    """Two right rules: that of Kafka until 2.5, which also elects a replica out of the ISR, and that since then.

    They differ where the ISR in the controller's memory is old.
    """

    def judge_function(self, function: Function) -> Verdict:
        """A function that does not fit the newer rule may fit the older one."""
        verdict = super().judge_function(function)
        if verdict.right:
            return verdict
        older = Implement.judge_function(replace(self, usual=until_2_5), function)
        return older if older.right else verdict


# 4: operate


def unequal(lab: Lab) -> str | None:
    """The problem (a broker does not lead four partitions of orders, now or after the next restart of one), or None."""
    if any(each.name in ("start", "add_broker") and each.args[:1] == (4,) for each in lab.commands[1:]):
        return "broker 4 is beyond repair: in this exercise it cannot be started."
    if not any(p.topic == "audit" for p in lab.partitions()):
        return "the topic audit is gone, with all its records."
    for when in ("at the next checks", "after the next restart of a broker, and more checks"):
        lab.run_for(700)
        found = dict(sorted(Counter(p.leader for p in lab.partitions() if p.topic == "orders").items()))
        if found != {1: 4, 2: 4, 3: 4}:
            return f"{when}, the brokers lead {found} of the partitions of orders."
        lab.kill(3)
        lab.settle()
        lab.start(3)
        lab.settle()
    return None


def stopped(lab: Lab) -> str | None:
    """The reply to a learner who stopped a broker; broker 4 is down from the beginning."""
    return "A broker that is down leads nothing. Start it again." if down(lab) != [4] else None


def deleted(lab: Lab) -> str | None:
    """The reply to a learner who deleted the topic that moves."""
    memory = lab.controller_memory()
    if memory is None or "audit" not in memory.deleting:
        return None
    return "The only copy of audit is deleted, and the move stays: the deletion waits for broker 4."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="15.1",
        title="Who leads after ten minutes?",
        hints=(
            "Which partitions are not led by the first of their assignment?",
            "What is compared for broker 1: with the others, or with what it should have?",
            "Which partitions prefer broker 3?",
        ),
        story=OPENING.replace("brokers=4", "brokers=3")
        + some("orders", 9)
        + """create_topic bills assignment='{"0":[2,3,1],"1":[2,3,1],"2":[2,3,1]}'\nsettle\nrun_for 600\n""",
        ask=numbers,
        example={7: 1},
        wrong=(predict_wrong,),
        also=lambda answer, truth: (
            "A broker that leads nothing may be named." if {k: n for k, n in answer.items() if n} == truth else None
        ),
        why="All partitions are led by the broker they prefer; no task of the "
        "controller makes unequal preferences equal.",
    ),
    Rebalance(
        name="15.2",
        title="What does a check elect?",
        core=True,
        given='''
def chosen(partitions, live, moving, percentage):
    """Those of `partitions` whose preferred replica a check elects."""
    found = []
    for broker in {p.replicas[0] for p in partitions}:
        mine = [p for p in partitions if p.replicas[0] == broker and ...]
        away = [p for p in mine if p.leader != broker]
        if mine and len(away) / len(mine) > ...:
            found += ...
    return found
''',
        hints=(
            "Whose ratio is it? Write the grouping first: `p.replicas[0]`.",
            "Which comparison is *more than*? And how many are elected once it is true?",
            "A topic that goes away does not count. Then who cannot be elected: think of the broker, of other moves.",
        ),
        occasion="rebalance",
        usual=candidates,
        read=elected,
        cases=cases,
        stories=STORIES,
        outcome=leaders,
        describe=in_words,
        explain=explain,
        why="Grouped by preferred broker, strictly above the percentage, and then only who can be elected. To test "
        "the ISR as well spares elections that must fail; Kafka does so since 2.6.",
    ),
    Repair(
        name="15.3",
        title="Every five minutes an election that must fail",
        hints=(
            "Which replica was to be elected, and what was wrong with it?",
            "A partition has `replicas`, `isr`, `leader`, `preferred` and `deleting`.",
        ),
        ticket="KAFKA-9866",
        occasion="electable",
        given='''
def may_be_elected(partition, live, moving):
    """True if a check elects the preferred replica of a partition that another broker leads."""
    if partition.deleting or moving:
        return False
    return partition.preferred in live
''',
        stories={
            "a move hangs": """create_topic audit assignment='{"0":[2]}'; settle; reassign '{"audit-0":[4]}'; """
            "kill 4; settle; kill 1; settle; start 1; settle; run_for 310",
            "the only replica is down": """create_topic alone assignment='{"0":[4]}'; settle; kill 4; """
            "settle; run_for 310",
            "another follower lags": "kill 1; settle; start 1; settle; lag 3 orders 0; settle; run_for 310",
        },
        why="The check leaves out partitions whose preferred replica is not in the ISR.",
    ),
    Operate(
        name="15.4",
        title="Four, four, four",
        core=True,
        hints=(
            "Does an election fail, or is none held? `lab.balance()` says why.",
            "What does a check look at before it holds an election?",
            "Kafka 2.4 can end what will never be finished.",
        ),
        begin=OPENING + TOPIC + HUNG,
        missing=unequal,
        best=1,
        remarks={
            "elect_preferred": "By hand it worked, once. The automatic check still holds no election.",
            "delete_controller": "The new controller reads the unfinished move and takes it up again.",
            "bounce": "The restarted broker follows, like any other; the move is still there.",
            "kill": stopped,
            "shutdown": stopped,
            "delete_topic audit": deleted,
        },
        praise={"elect_preferred": "With it you need not wait for the next check."},
        why="An unfinished move of any partition switches the automatic rebalance off; so end it.",
    ),
)
