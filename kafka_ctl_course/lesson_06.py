"""Exercises of lesson 06, brokers fail and return."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.exercises.exercise import Exercise, Guess, PictureGuess
from kafka_ctl.exercises.implement import Implement
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl.latencies import Costs
from kafka_ctl.plugins import Plugins
from kafka_ctl.trace import details
from kafka_ctl_course.rolling_restart import Roll, RollingRestart

TITLE = "Brokers fail and return"
OPENING = (
    "lab brokers=4 generation=2.0 seed=7 "
    """config='{"auto.leader.rebalance.enable":false}' costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
)
TOPIC = """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
TWO_COPIES = """create_topic orders assignment='{"0":[1,2]}'\nsettle\n"""
UNREACHED = OPENING + TOPIC + "disconnect 3 1\nrun_for 20\nkill 2\nsettle\n"
"""Broker 3 cannot fetch from the leader, broker 2 is down: the ISR is (1)."""


# 1: predict


def writers(lab: Lab) -> tuple[tuple[str, bool], ...]:
    """The writer of each `state` that was set, and whether the leader epoch rose."""
    found, epoch = [], 0
    for record in lab.trace.slice(kind="zk", action="set"):
        if (record.path or "").endswith("/state"):
            state = details.json_object(record.detail)
            wrote = "leader" if record.actor == f"broker-{state['leader']}" else "controller"
            found.append((wrote, state["leader_epoch"] > epoch))
            epoch = state["leader_epoch"]
    return tuple(found)


def predict_wrong(answer: tuple[tuple[str, bool], ...], truth: tuple[tuple[str, bool], ...]) -> str | None:
    """The mistakes of exercise 1."""
    if any(not isinstance(each, tuple) or len(each) != 2 for each in answer):
        return "Each part is a pair: the writer, and whether the leader epoch rises."
    who, rises = [each[0] for each in answer], [each[1] for each in answer]
    if who == ["controller"] * 3:
        return "Two of the three writes come from broker 1, the leader: look for its lines in the trace."
    if who[0] == "leader":
        return "Broker 3 had a session. The controller hears of its end after 6 s; the leader acts later."
    if who[1] == "controller":
        return (
            "The controller asked broker 3 to follow. That it has caught up is known to broker 1 only, which wrote it."
        )
    if who[2] == "controller":
        return "Broker 3 lags but lives: its session goes on, and the controller hears nothing of it."
    if not rises[0]:
        return "Read the znode after the death: leader_epoch is 1. The controller raises it with each of its writes."
    if any(rises[1:]):
        return "The leader changed the znode's version; leader_epoch stayed 1."
    return None


# 2: implement


ROLLS = (
    Roll("two copies", OPENING + TWO_COPIES),
    Roll("two copies, and much was missed", OPENING.replace('"boot"', '"catch_up":5,"boot"') + TWO_COPIES),
    Roll("a follower has fallen behind", OPENING + TWO_COPIES + "lag 2 orders 0\nrun_for 16\n", "catch_up 2"),
    Roll("a follower has just died", OPENING + TWO_COPIES + "kill 2\nrun_for 1\n", "start 2"),
    Roll("three copies", OPENING + TOPIC),
)


# 3: implement, plugged in

Case = tuple[float, float, int, int, float]
LIMIT = 10_000.0
LATE_OPENING = OPENING.replace("generation=2.0", "generation=2.4") + TOPIC + "produce orders 0\nsettle\n"
WRITES = "produce orders 0 acks=1\nrun_for 8\n"
LATE_STORIES = {
    "a follower falls behind": LATE_OPENING + "lag 3 orders 0\n" + 4 * WRITES,
    "a burst of records": LATE_OPENING + "slow 3 8\nproduce orders 0 records=5000 acks=1\nrun_for 9\nsettle\n",
    "fetches that take 9 s": LATE_OPENING + "slow 3 9\n" + 5 * WRITES,
    "silence, and nothing is written": LATE_OPENING + "disconnect 3 1\nrun_for 60\n",
    "silence, then one record": LATE_OPENING + "disconnect 3 1\nrun_for 60\n" + WRITES,
    "a follower dies": LATE_OPENING + WRITES + "kill 3\nproduce orders 0 acks=1\nrun_for 20\n",
}


def is_late(now: float, last_caught_up: float, follower_end: int, leader_end: int, max_lag: float) -> bool:
    """Kafka 2.4's rule: isFollowerOutOfSync in Partition.scala."""
    return follower_end != leader_end and now - last_caught_up > max_lag


def late_cases() -> Iterator[Case]:
    """Every combination of: how long ago, and how far behind; exactly the limit is among them."""
    for ago, behind in product((0.0, 3_000.0, 9_999.0, LIMIT, 10_001.0, 60_000.0), (0, 1, 5000)):
        yield 100_000.0, 100_000.0 - ago, 7000 - behind, 7000, LIMIT


def ask_late(plugins: Plugins, case: Case) -> bool:
    """One follower, through the plug."""
    return plugins.rule("late", is_late)(*case)


def changes(lab: Lab) -> tuple[tuple[int, ...], ...]:
    """Every ISR that the leader has written."""
    return tuple(r.isr or () for r in lab.trace if r.action in ("shrink-isr", "expand-isr"))


def in_words(isrs: tuple[tuple[int, ...], ...]) -> str:
    """The same as text."""
    return "the ISR as it was" if not isrs else "the ISRs " + ", ".join(map(str, isrs)) + " written by the leader"


def explain_late(case: Case, got: bool, expected: bool) -> str:
    """The fault in an answer about one follower, in one sentence; None if there is none."""
    now, last_caught_up, end, leaders_end, limit = case
    if got and end == leaders_end:
        return "Its log is as long as the leader's: it has everything, and since 2.1 such a follower is not late."
    if got and now - last_caught_up == limit:
        return f"It has been behind for exactly {limit / 1000:g} s; only *longer* than the limit is late."
    if got:
        return (
            f"It is behind, but not yet for {limit / 1000:g} s. The number of records does not count: "
            "`replica.lag.max.messages` was removed in 0.9."
        )
    ago = (now - last_caught_up) / 1000
    return f"It has been behind for {ago:.1f} s, longer than the limit of {limit / 1000:g} s; acks=all waits for it."


# 4: operate


def not_whole(lab: Lab) -> str | None:
    """True if a copy is missing from the ISR."""
    found: PartitionView = lab.partition("orders", 0)
    if found.leader >= 0 and set(found.isr) == {1, 2, 3}:
        return None
    return f"orders-0 has leader {found.leader} and ISR {found.isr}."


# 5: repair

BROKEN = '''
def is_done(wanted, stored):
    """Whether the write of a leader was done although ZooKeeper answered BADVERSION; both are texts of a znode."""
    return False
'''
"""The function that learners get."""

EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="06.1",
        title="Who writes, and which number rises?",
        hints=(
            "Which process can know that a follower has *caught up*?",
            "Which process is notified when a session ends? Does a session end in all three cases?",
            "Two numbers are on the znode: which of them rises at each write?",
        ),
        story=OPENING + TOPIC + "kill 3\nsettle\nstart 3\nsettle\nlag 3 orders 0\nsettle\n",
        ask=writers,
        example=(("nobody", True), ("nobody", True), ("nobody", True)),
        parts=("the death", "the return", "the lag"),
        wrong=(predict_wrong,),
        why="The controller acts when a session ends and raises the leader epoch; the leader does the rest.",
    ),
    RollingRestart(
        name="06.2",
        title="Safe to stop?",
        core=True,
        given='''
def safe_to_stop(lab, broker):
    """Whether each partition has another member of its ISR that runs."""
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
        why="Every partition kept a member of the ISR that runs, in five rolling restarts.",
    ),
    Implement(
        name="06.3",
        title="Late",
        hints=(
            "Which two facts does a leader know of a follower: one is a time, the other a length.",
            "Which of the six stories has a long time and no missing record? And which the other way round?",
            "A follower is late when both are true: it is behind, and it has been so for longer than the limit.",
        ),
        what="rules",
        occasion="late",
        arguments="now, last_caught_up, follower_end, leader_end, max_lag",
        usual=is_late,
        ask=ask_late,
        cases=late_cases,
        stories=LATE_STORIES,
        outcome=changes,
        describe=in_words,
        explain=explain_late,
        why="Behind, and for longer than the limit. Up to 2.0 the time alone decided.",
    ),
    Operate(
        name="06.4",
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
            "bounce": "Broker 3 comes back and still cannot reach broker 1: its process was never the trouble.",
            "start 3": "Broker 3 runs again and still cannot reach broker 1: its process was never the trouble.",
            "kill 1": "Broker 1 was the last member of the ISR: now no replica may lead.",
            "reassign": "A reassignment waits until its targets are in the ISR, so for the same fetch as you.",
            "elect_preferred": "Broker 1 is the preferred leader and leads. An election adds no replica to an ISR.",
        },
        why="A follower needs to run and to reach the leader; then the leader adds it, in any order.",
    ),
    Repair(
        name="06.5",
        title="A leader that refuses its own ISR",
        hints=(
            "Which write was refused, and because of which version?",
            "Whose write had come first? How can the leader find out?",
        ),
        ticket="KAFKA-1382",
        occasion="own_write",
        given=BROKEN,
        why="The leader reads the znode again, finds the ISR that it wanted to write, and takes over its version.",
    ),
)


def restarted() -> Lab:
    """Five partitions on three brokers; broker 2 has just been started again, and is in no ISR."""
    costs = Costs(boot=0.0005, zookeeper_tick=0, catch_up=5)
    lab = Lab(brokers=3, seed=7, costs=costs, config={"auto.leader.rebalance.enable": False})
    lab.create_topic("orders", assignment={0: [1, 2], 1: [1, 3], 2: [3, 2], 3: [2, 1], 4: [3, 1]})
    lab.settle()
    lab.kill(2)
    lab.settle()
    lab.start(2)
    lab.run_for(0.1)
    return lab


def kill_first(lab: Lab) -> None:
    """Kill broker 1, and wait until its session is over and the controller has decided."""
    lab.kill(1)
    lab.run_for(8)


def without_leader(lab: Lab) -> frozenset[str]:
    """The partitions without a leader."""
    return frozenset(f"partition:{p.topic}-{p.partition}" for p in lab.partitions() if p.leader == NO_LEADER)


GUESSES: dict[str, Guess | PictureGuess] = {
    "06.a": Guess(
        "A follower dies; it is not the controller. Which process writes the new ISR?",
        (
            ("the leader", "Many books say that the leader keeps the ISR. But which process is notified of the death?"),
            ("the controller", "It watches the znodes of the brokers. Run on."),
            ("the next follower", "A follower writes nothing into ZooKeeper."),
            ("ZooKeeper", "ZooKeeper removes the broker's own znode; it knows nothing of an ISR."),
        ),
        1,
    ),
    "06.b": Guess(
        "The follower that dies is the controller as well, in Kafka 2.0. Who takes it out of the ISR, and when?",
        (
            ("the new controller, after 6 s", "There is a new controller after 6 s. Does it see a difference?"),
            ("the leader, after 15 s", "The new controller has never seen this broker alive."),
            ("nobody", "Then acks=all would never be answered."),
        ),
        1,
    ),
    "06.c": Guess(
        "Of these two writes, which raised the leader epoch?",
        (
            ("both", "The ISR became smaller in both. Who wrote it?"),
            ("only the controller's", "The leader stays leader when it writes; only the version of the znode rises."),
            ("neither", "Compare the two znodes above."),
        ),
        1,
    ),
    "06.d": PictureGuess(
        "Broker 2 has just been restarted: its process runs, and it still catches up. Broker 1 is killed now. Which "
        "partitions have no leader then?",
        "partition",
        restarted,
        kill_first,
        without_leader,
        {
            "nobody": "Only a member of the ISR may lead, and some ISRs had broker 1 alone.",
            "partition:orders-1": "Broker 3 is in the ISR of orders-1.",
            "partition:orders-2": "Broker 3 leads orders-2, and broker 1 has no copy of it.",
            "partition:orders-4": "Broker 3 leads orders-4 and goes on.",
        },
        "A process that runs is not a replica in sync: where broker 1 was alone in the ISR, no replica may lead.",
    ),
    "06.e": Guess(
        "A follower has been cut off from its leader for two hours. Nothing was written. Kafka 2.4: is it in the ISR?",
        (
            ("no", "It has not fetched for two hours. But what is it missing?"),
            ("yes", "Its log is as long as the leader's: nothing is missing."),
            ("it depends on the timeout", "Which timeout? 2.4 asks for something else first."),
        ),
        1,
    ),
}
