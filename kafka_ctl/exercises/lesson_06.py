"""Exercises of lesson 06, brokers fail and return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Guess, Verdict, not_callable
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl.trace import details

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
    """Of each `state` that was set: who wrote it, and whether the leader epoch rose."""
    found, epoch = [], 0
    for record in lab.trace.slice(kind="zk", action="set"):
        if (record.path or "").endswith("/state"):
            state = details.json_object(record.detail)
            wrote = "leader" if record.actor == f"broker-{state['leader']}" else "controller"
            found.append((wrote, state["leader_epoch"] > epoch))
            epoch = state["leader_epoch"]
    return tuple(found)


def predict_wrong(answer: Any, truth: Any) -> str | None:
    """The mistakes of exercise 1."""
    if any(not isinstance(each, tuple) or len(each) != 2 for each in answer):
        return "Each part is a pair: who writes, and whether the leader epoch rises."
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


class Roll(NamedTuple):
    """A rolling restart: how it begins, and what happens ten seconds later."""

    title: str
    begin: str
    later: str = ""


ROLLS = (
    Roll("two copies", OPENING + TWO_COPIES),
    Roll("two copies, and much was missed", OPENING.replace('"boot"', '"catch_up":5,"boot"') + TWO_COPIES),
    Roll("a follower has fallen behind", OPENING + TWO_COPIES + "lag 2 orders 0\nrun_for 16\n", "catch_up 2"),
    Roll("a follower has just died", OPENING + TWO_COPIES + "kill 2\nrun_for 1\n", "start 2"),
    Roll("three copies", OPENING + TOPIC),
)
PATIENCE, LATER, SESSION, LOOK = 60.0, 10.0, 7.0, 0.1
"""Seconds: for one broker, until what happens later, until a session is over, between two calls of the function."""


@dataclass(frozen=True, kw_only=True)
class RollingRestart(Exercise):
    """A function of (lab, broker) that says whether a broker may be stopped now; each broker is restarted by it.

    Any function is right that lets each of `rolls` come to its end, without a partition that goes Offline.
    """

    kind: ClassVar[str] = "implement"
    rolls: tuple[Roll, ...]
    why: str

    def judge(self, answer: Any) -> Verdict:
        """Restart every broker that has a copy; the first partition without a leader is reported."""
        if refusal := not_callable(answer):
            return refusal
        for roll in self.rolls:
            with Lab.replay(roll.begin) as lab:
                if (problem := _rolled(lab, roll, answer)) is not None:
                    return Verdict(False, f'In the roll "{roll.title}": {problem}', _merged(lab.story))
        return Verdict(True, self.why)


def _rolled(lab: Lab, roll: Roll, may_stop: Callable[[Lab, int], Any]) -> str | None:
    """What went wrong in a rolling restart; None when nothing did."""
    later, began, started = roll.later, lab.now, dict[int, float]()
    for broker in sorted(lab.partition("orders", 0).replicas):
        since = lab.now
        while True:
            allowed = may_stop(lab, broker)
            if not isinstance(allowed, bool):
                return f"safe_to_stop(lab, {broker}) returned {short(allowed)}; True or False is expected."
            if allowed:
                break
            if lab.now - since > PATIENCE:
                return f"broker {broker} could not be stopped for {PATIENCE:g} s: {_seen(lab)}."
            lab.run_for(LOOK)
            if later and lab.now - began > LATER:
                lab.do(later)
                later = ""
        before = explain(lab, broker, started)
        lab.kill(broker)
        lab.run_for(SESSION)
        if lab.partition("orders", 0).leader < 0:
            return before
        lab.start(broker)
        started[broker] = lab.now
    return None


def explain(lab: Lab, broker: int, started: dict[int, float]) -> str:
    """Why nobody can lead once this broker is stopped, said from what can be seen just before."""
    found = lab.partition("orders", 0)
    opening = f"you stopped broker {broker}, and orders-0 went Offline"
    others = [r for r in found.replicas if r != broker]
    if dead := [r for r in found.isr if r in others and lab.brokers[r].state != "running"]:
        return (
            f"{opening}. Broker {dead[0]} was in the ISR {found.isr} but did not run; ZooKeeper learns that only when "
            "the session ends."
        )
    if any(set(metadata) & set(others) for metadata in _metadata(lab, broker)):
        return (
            f"{opening}. Metadata still had other members in its ISR, ZooKeeper had {found.isr}: metadata may be 7.5 s "
            "old when the leader has changed the ISR."
        )
    up = next((r for r in others if r in started), others[0])
    seconds = lab.now - started.get(up, lab.now)
    if seconds > 2 * LOOK:
        return (
            f"{opening}. Broker {up} had run for {seconds:.1f} s and was not in the ISR {found.isr}: how long it takes "
            "depends on what it missed."
        )
    return f"{opening}. Broker {up} ran but was not in the ISR {found.isr}."


def _metadata(lab: Lab, broker: int) -> list[tuple[int, ...]]:
    """The ISR of orders-0 as the brokers that run have it in their metadata."""
    return [
        state.isr
        for each in lab.brokers.values()
        if each.state == "running"
        for tp, state in each.metadata.items()
        if tp.topic == "orders" and broker in state.isr
    ]


def _seen(lab: Lab) -> str:
    """The partition in a few words."""
    found = lab.partition("orders", 0)
    return f"the assignment is {found.replicas}, the ISR {found.isr}, the leader {found.leader}"


def _merged(text: str) -> str:
    """A story with waits that follow each other made one."""
    lines: list[str] = []
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        if word == "run_for" and lines and lines[-1].startswith("run_for "):
            lines[-1] = f"run_for {round(float(lines[-1].split()[1]) + float(value), 3):g}"
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


# 3: operate


def not_whole(lab: Lab) -> str | None:
    """Whether a copy is missing from the ISR."""
    found: PartitionView = lab.partition("orders", 0)
    if found.leader >= 0 and set(found.isr) == {1, 2, 3}:
        return None
    return f"orders-0 has leader {found.leader} and ISR {found.isr}."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="06.1",
        title="Who writes, and which number rises?",
        hints=(
            "Who can know that a follower has *caught up*?",
            "Who is notified when a session ends? Does a session end in all three cases?",
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
        hints=(
            "Say first what has to be true of each partition after the broker has stopped.",
            "Where is the ISR of now, and not the one of seven seconds ago? `lab.partitions()` reads ZooKeeper.",
            "What if the other member of the ISR has just died, or is the one that you have just restarted?",
        ),
        rolls=ROLLS,
        why="Every partition kept a member of the ISR that runs, in five rolling restarts.",
    ),
    Operate(
        name="06.3",
        title="An ISR of one",
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
            "start 2": "Broker 2 has joined. Broker 3 runs all the time and still cannot reach broker 1.",
            "bounce": "Broker 3 comes back and still cannot reach broker 1: its process was never the trouble.",
            "kill 1": "Broker 1 was the last member of the ISR: now nobody may lead.",
            "reassign": "A reassignment waits until its targets are in the ISR, so for the same fetch as you.",
            "elect_preferred": "Broker 1 is the preferred leader and leads. An election adds nobody to an ISR.",
        },
        why="A follower needs to run and to reach the leader; then the leader adds it, in any order.",
    ),
    Repair(
        name="06.4",
        title="A leader that refuses its own ISR (KAFKA-1382)",
        hints=(
            "What is in the znode, and what does the leader know of it?",
            "Which write was refused, and by which version?",
            "Whose write had come first?",
        ),
        ticket="KAFKA-1382",
        why="The leader reads the znode again, finds the ISR that it wanted to write, and takes over its version.",
    ),
)

GUESSES: dict[str, Guess] = {
    "06.a": Guess(
        "A follower dies; it is not the controller. Who writes the new ISR?",
        (
            ("the leader", "Many books say that the leader keeps the ISR. But who is notified of the death?"),
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
            ("nobody", "Then acks=all would wait for ever."),
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
    "06.d": Guess(
        "Two copies. Broker 2 has been restarted. When may broker 1 be stopped without risk?",
        (
            ("at once", "The process runs. Has it fetched anything yet?"),
            ("after the session timeout", "A session says that a broker lives, not what its log has."),
            ("when broker 2 is in the ISR", "Only a member of the ISR may lead."),
            ("when the metadata has arrived", "Metadata may be older than the ISR."),
        ),
        2,
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
