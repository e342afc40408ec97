"""Exercises of lesson 24, from ZooKeeper to KRaft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Verdict, plain
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate, down
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.kraft import KRAFT
from kafka_ctl_course.quiet import TOPIC, opening

TITLE = "From ZooKeeper to KRaft"
OPENING = opening(4)
SIX = ("KAFKA-6082", "KAFKA-1211", "KAFKA-7235a", "KAFKA-3670", "KAFKA-9089", "KAFKA-7482")
STATE = "/brokers/topics/orders/partitions/0/state"
STEPS = 200
"""Steps of a lab in which a failure is dealt with."""
Copy = tuple[int, tuple[int, ...], int]
Held = dict[str, Copy | None]


# 1: predict


def shelves(lab: Lab) -> dict[str, str]:
    """The shelves of the six exhibits."""
    return {name: KRAFT[name].shelf for name in SIX}


def sort_wrong(answer: dict[str, str], truth: dict[str, str]) -> str | None:
    """The mistakes of exercise 1; the first exhibit that stands on another shelf."""
    if unknown := [name for name in truth if name not in answer]:
        return f"{unknown[0]} has no shelf yet."
    if extra := [name for name in answer if name not in truth]:
        return f"{extra[0]} is not one of the six: {', '.join(truth)}."
    if strange := [value for value in answer.values() if value not in ("gone", "kind", "stays")]:
        return f"{strange[0]!r} is not a shelf; there are gone, kind and stays."
    wrong = next(name for name in truth if answer[name] != truth[name])
    hints = {
        "KAFKA-6082": "Who would accept the write? An append of a replaced controller needs a majority of the quorum.",
        "KAFKA-1211": "Where is ZooKeeper in that story? Play it, and look for `zk` records between acknowledgement "
        "and loss.",
        "KAFKA-7235a": "The list of brokers was the same before and after. A registration now names its process.",
        "KAFKA-3670": "The rule that orders a list does not depend on where the list is kept.",
        "KAFKA-9089": "Two stores were needed for two requests that contradict each other.",
        "KAFKA-7482": "No check stops the broker that leaves from answering a client; it has to learn of the change.",
    }
    return f"{wrong}: {hints[wrong]}"


def kind_of_7482(answer: dict[str, str], truth: dict[str, str]) -> str | None:
    """A reason for another shelf that holds."""
    if isinstance(answer, dict) and answer == truth | {"KAFKA-7482": "kind"}:
        return "KAFKA-7482 may also stand under kind: a broker that leaves follows the log while it leaves."
    return None


# 2: implement

ONE, OTHER, THIRD = (1, (1, 2, 3), 0), (2, (2, 3), 1), (3, (3,), 2)
EQUAL: Held = {"ZooKeeper": ONE, "controller": ONE, "broker 1": ONE}
ODD: list[Held] = [
    {"ZooKeeper": THIRD, "controller": OTHER, "broker 1": ONE},
    {"ZooKeeper": None, "controller": OTHER, "broker 1": ONE},
    {**EQUAL, "ZooKeeper": (1, (1, 2), 0)},
    {**EQUAL, "ZooKeeper": (2, (1, 2, 3), 1)},
    {**EQUAL, "ZooKeeper": (1, (1, 2, 3), 1)},
]
"""Moments that are in no history of the lab: three copies differ, two while ZooKeeper has none, or only the ISR,
all but the ISR, only the leader epoch.
"""
BY_HAND: list[list[Held]] = [[EQUAL, EQUAL, EQUAL, moment] for moment in ODD]


def histories(lab: Lab) -> list[tuple[list[Held]]]:
    """The copies of orders-0 of all holders, from the failure on, once for each way to fail; and moments by hand."""
    from kafka_ctl_course.figures.copies import moments

    found = []
    for command in ("kill 1", "kill 3", "kill 4", "shutdown 1", f"delete_znode {STATE}"):
        with lab.fork() as each:
            each.do(command)
            if command.startswith("kill"):
                each.run_for(5.99)
            found.append(([one.copies for one in moments(each, "orders", 0, STEPS)],))
    return [*found, *((each,) for each in BY_HAND)]


def different(moment: Held) -> set[Copy]:
    """The copies of one moment, equal ones once."""
    return {copy for copy in moment.values() if copy is not None}


def disagreements(found: list[Held]) -> int:
    """The moments at which two copies differ."""
    return sum(len(different(each)) > 1 for each in found)


def explain_moments(given: tuple[list[Held]], got: object, expected: int) -> str:
    """The fault in a count, in one sentence."""
    (found,) = given
    counted = "several things" if isinstance(got, list | tuple | set | dict) else short(got)
    text = f"of {len(found)} moments{' made by hand' * (found in BY_HAND)} you count {counted}. "
    with_none = sum(len(set(each.values())) > 1 for each in found)
    leaders = sum(len({copy[0] for copy in each.values() if copy}) > 1 for each in found)
    pairs = sum(sum(copy not in (None, each["ZooKeeper"]) for copy in each.values()) for each in found)
    without = sum(len({c for h, c in each.items() if c and h != "ZooKeeper"}) > 1 for each in found)
    if not isinstance(got, int) or isinstance(got, bool):
        return f"{text}A whole number is asked for."
    if got == sum(len(different(each)) == 2 for each in found):
        return f"{text}At one of them more than two copies differ."
    if got == sum(len({copy[2] for copy in each.values() if copy}) > 1 for each in found):
        return f"{text}You compare leaders or leader epochs. The ISR can differ alone."
    if got == sum(len({copy[:2] for copy in each.values() if copy}) > 1 for each in found):
        return f"{text}You compare leader and ISR. The leader epoch can differ alone."
    if got == sum(len({copy[1] for copy in each.values() if copy}) > 1 for each in found):
        return f"{text}You compare ISRs. After an election of the preferred leader the ISR can be the same."
    if got == sum(any(copy not in (None, each["ZooKeeper"]) for copy in each.values()) for each in found):
        return f"{text}ZooKeeper may hold no copy, too (None); then compare the others with each other."
    if got == len(found):
        return f"{text}That is every moment. At some of them all copies are equal."
    if got == len(found) - expected:
        return f"{text}That is the number of moments at which all are equal."
    if got == with_none:
        return (
            f"{text}A holder without a copy (None) cannot contradict: a controller "
            "that does not exist yet, for instance."
        )
    if got == sum(each["ZooKeeper"] is not None and len(different(each)) > 1 for each in found):
        return f"{text}Two others can differ while ZooKeeper has no copy (None)."
    if got in (pairs, sum(len(different(each)) - 1 for each in found)):
        return f"{text}You count copies. A moment counts once, however many differ."
    if got == without:
        return f"{text}ZooKeeper's copy is one of them: between its write and the controller's own copy lies a moment."
    if got == leaders:
        return f"{text}You compare leaders. ISR and leader epoch can differ while the leader is the same."
    return f"{text}Collect the different copies of a moment, without None: how many are there?"


# 3: repair

PAUSE = 3000
"""A session timeout in ms below which a pause of one or two seconds fences a healthy broker."""
RETRY = 200
"""Milliseconds for a heartbeat to be sent again and answered."""


@dataclass(frozen=True, kw_only=True)
class Timeouts(Exercise):
    """Two settings of KRaft: no healthy broker is fenced though a heartbeat is late, and a dead one is soon.

    A broker waits half of the session timeout for an answer (Kafka 3.9.0: server/BrokerServer.scala, startup). It is
    fenced when its last heartbeat is older than the session timeout
    (Apache Kafka trunk of October 2024: controller/BrokerHeartbeatManager.java).
    """

    kind: ClassVar[str] = "repair"
    most: int
    why: str

    def judge(self, answer: object) -> Verdict:
        """Compare the age of the last heartbeat with the timeout."""
        given = plain(answer)
        if isinstance(given, tuple):
            given = tuple(int(each) if isinstance(each, float) and each.is_integer() else each for each in given)
        if not isinstance(given, tuple) or [type(each) for each in given] != [int, int]:
            return Verdict(
                False, f"{short(answer)} is not two whole numbers: session timeout and heartbeat interval, ms."
            )
        session, interval = given
        if interval < 100:
            return Verdict(False, f"A heartbeat each {interval} ms is much work for one active controller.")
        for late, text in ((0, "when all is well"), (1, "when one heartbeat is lost")):
            if (oldest := (late + 1) * interval) >= session:
                return Verdict(
                    False,
                    f"The last heartbeat of a healthy broker is {oldest} ms old {text}; it is fenced at {session}.",
                )
        if interval + session / 2 + RETRY >= session:
            text = f"A broker waits {session / 2:g} ms for an answer before it sends a heartbeat again"
            again = f"{interval + session / 2:g} ms after the last, and that takes {RETRY} ms more"
            return Verdict(False, f"{text}, {again}; it is fenced at {session}.")
        if session > self.most:
            return Verdict(
                False, f"A dead broker's partitions are without a leader for {session} ms; by default, {self.most}."
            )
        if session < PAUSE:
            return Verdict(
                True,
                f"{self.why} But every broker that stands still for "
                f"{session / 1000:g} s is fenced now, as by a garbage "
                f"collection; values of {PAUSE} ms and more leave room for a pause.",
            )
        return Verdict(True, self.why)


# 4: operate


def all_agree(lab: Lab) -> str | None:
    """The problem (every running broker names the leader that ZooKeeper has, or a broker is down), or None."""
    if stopped := down(lab):
        return f"broker {stopped[0]} does not run. All four have to."
    stored = lab.partition("orders", 0).leader
    if stored < 0:
        return "ZooKeeper names no leader now, so no broker names another one."
    named = {
        id: known.leader
        for id, view in lab.brokers.items()
        if (known := view.metadata.get(TopicPartition("orders", 0)))
    }
    if any(leader != stored for leader in named.values()):
        return None
    return f"ZooKeeper has leader {stored}, and each broker that knows the partition names it."


def about_change(lab: Lab) -> str | None:
    """The reply to a learner whose command may have changed the leader."""
    if down(lab):
        return None
    if lab.partition("orders", 0).leader == 1:
        return "The leader is the same as before."
    if any(each.name in ("delay", "disconnect", "pause") for each in lab.commands):
        return None
    return "The leader has changed, and each broker received the request that says so. Keep one request away."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="24.1",
        title="Six exhibits, three shelves",
        hints=(
            "How many copies of the fact are there, and who may change each of them?",
            "In the exhibit's trace strike out every `zk` record and every request of the controller. Is the bug left?",
            "The other bugs are about records, or about policy, or about a broker that has not read the news yet.",
        ),
        story=OPENING,
        ask=shelves,
        example=dict.fromkeys(SIX, "kind"),
        wrong=(sort_wrong,),
        also=kind_of_7482,
        why="Bugs that needed a second copy, or a request, are gone. Bugs of records, policy and late reading stay.",
    ),
    Compute(
        name="24.2",
        title="Moments of disagreement",
        core=True,
        hints=(
            "`found` is a list; each moment is a dictionary from holder to copy.",
            "Copies are tuples, so they can be put into a set.",
            "None is no copy.",
        ),
        stories={"one partition, four failures and a deleted znode": OPENING + TOPIC},
        give=histories,
        truth=disagreements,
        explain=explain_moments,
        why="With one log these would be moments when some had read less; with copies a holder may be wrong.",
    ),
    Timeouts(
        name="24.3",
        title="Failover is instant, so we set one second",
        core=True,
        hints=(
            "Which of the two failures is meant by instant: a controller's or a broker's?",
            "How old can the last heartbeat of a healthy broker be, if one is lost on the way?",
            "The defaults are 9000 and 2000.",
        ),
        most=9000,
        why="A broker that sends in time is not fenced, though a heartbeat may be lost; a dead one is noticed in time.",
    ),
    Operate(
        name="24.4",
        title="A state that one log cannot have",
        hints=(
            "Name the copies of one fact, and how each of them learns of a change.",
            "Keep one of these messages away: lessons 02 and 09 did it in two ways.",
            "A broker can be cut off from the controller and still have its session: `disconnect`.",
        ),
        begin=OPENING + TOPIC,
        missing=all_agree,
        best=1,
        remarks={
            "kill": "A broker that is down holds nothing. Which broker was not notified of the change?",
            "pause": "A pause delays what a broker hears, and it hears it afterwards.",
            "delay": "A late message arrives in the end.",
            "heal": "Now everything arrives.",
            **dict.fromkeys(("bounce", "expire_session", "elect_preferred", "fail_log_dir"), about_change),
            "disconnect": lambda lab: (
                "The copies are equal until something changes." if lab.partition("orders", 0).leader == 1 else None
            ),
        },
        why="Each holder has a copy, and nothing compares them. A reader of one log has read less, and knows it.",
    ),
)
