"""Exercises of lesson 17, the bug museum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import KafkaCtlError, short
from kafka_ctl.exercises.exercise import Exercise, Verdict
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import WAITS, Operate, down
from kafka_ctl.exercises.repair import Repair
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum import find
from kafka_ctl_course import lesson_02

TITLE = "The bug museum"
OPENING = """lab brokers=3 generation=2.4 seed=1 changes='{"resets_dead_leader":false}'\n"""
DEAD = (
    """lab brokers=3 generation=2.0 seed=1\ncreate_topic orders assignment='{"0":[2,1]}'\n"""
    """create_topic alone assignment='{"0":[3]}'\nsettle\n"""
    "kill 3\nsettle\nkill 2\nrun_for 1\n"
)
"""alone-0 has no leader, as its only broker is dead; the leader of orders-0 has just died, and no process knows."""
EDITED = lesson_02.OPENING + lesson_02.TOPIC + lesson_02.EDIT + lesson_02.TAKEOVER
"""ZooKeeper and all metadata name broker 2 as the leader, and broker 2 has not been made one."""
ACKNOWLEDGED = (
    """lab brokers=3 generation=0.10 seed=7 config='{"auto.leader.rebalance.enable":false}'\n"""
    """create_topic orders assignment='{"0":[1,2]}'\nsettle\nproduce orders 0 records=2\n"""
)
"""Two records that both replicas have; the follower does not know yet that they are safe."""
MOST = 4
"""Commands of a story of one's own, at most; time that passes is not counted."""


# 1: an acknowledged record


def safe(lab: Lab) -> str | None:
    """The leader that still has every acknowledged record; None once it has not."""
    if any(violation.invariant == "I4" for violation in lab.violations):
        return None
    leader = lab.partition("orders", 0).leader
    leads = f"Broker {leader} leads" if leader >= 0 else "No broker leads"
    if leader in down(lab):
        leads = f"ZooKeeper still names broker {leader}, which is down"
    return f"every acknowledged record is there. {leads}."


def killed(lab: Lab) -> str:
    """The reply to a learner who killed the leader."""
    if 2 in lab.partition("orders", 0).isr:
        return "Broker 2 has what was acknowledged."
    return "Broker 2 lacks a record, but is down: it cannot lead without it."


# 3: leaders that do not lead


def unaware(lab: Lab) -> set[tuple[str, int]]:
    """The partitions whose leader runs and does not lead them."""
    leads = {id: view.leads for id, view in lab.brokers.items() if view.state == RUNNING}
    return {p[:2] for p in lab.partitions() if p.leader in leads and p[:2] not in leads[p.leader]}


def explain_unaware(given: tuple[Lab], got: object, expected: set[tuple[str, int]]) -> str:
    """The fault in the partitions that were found, in one sentence."""
    (lab,) = given
    shown = sorted(got, key=str) if isinstance(got, set) else got
    text = f"you return {short(shown)}. "
    if not isinstance(got, set | tuple) or not all(isinstance(each, tuple) and len(each) == 2 for each in got):
        return f"{text}A list of pairs is asked for, such as ('orders', 0)."
    if len(set(got)) < len(got):
        return f"{text}A partition is in it twice."
    if extra := [each for each in got if each not in expected]:
        leaders = [p.leader for p in lab.partitions() if p[:2] == extra[0]]
        if not leaders:
            return f"{text}There is no partition {extra[0]!r}."
        (leader,) = leaders
        if leader < 0:
            return (
                f"{text}{extra[0][0]}-{extra[0][1]} has no leader in ZooKeeper: that "
                "is known, and no leader is unaware."
            )
        if lab.brokers[leader].state != RUNNING:
            return f"{text}Broker {leader} is dead. It is not unaware; its death has not been noticed yet."
        return f"{text}Broker {leader} does lead {extra[0][0]}-{extra[0][1]}."
    (topic, partition), *_ = (each for each in expected if each not in got)
    return (
        f"{text}There are more: is {topic}-{partition} among what its leader leads (`leads`)? "
        "Its `metadata`, which names all leaders, is something else."
    )


# 4: a story of one's own


@dataclass(frozen=True, kw_only=True)
class OwnStory(Exercise):
    """Commands after `OPENING` that break an invariant with its generation, and none with 2.4 as it was."""

    kind: ClassVar[str] = "operate"
    why: str

    def judge(self, answer: object) -> Verdict:
        """Play the story twice."""
        if not isinstance(answer, str) or not answer.strip():
            return Verdict(False, f"{short(answer)} is not a story; give its commands as text, one a line.")
        if any(line.split()[:1] == ["lab"] for line in answer.splitlines()):
            return Verdict(False, "The cluster is given; leave out the line `lab`.")
        text = f"{OPENING}{answer}\n"
        try:
            given = [each for each in [*story.parse(text)][1:] if each.name not in WAITS]
            if len(given) > MOST:
                return Verdict(False, f"These are {len(given)} commands; {MOST} are enough, besides time that passes.")
            with Lab.replay(text) as broken:
                broken.settle()
                with broken.fork(generation="2.4") as sound:
                    return self._compared(broken, sound, text)
        except KafkaCtlError as error:
            return Verdict(False, f"The story cannot be played (its line 1 is the cluster): {error}")

    def _compared(self, broken: Lab, sound: Lab, text: str) -> Verdict:
        if sound.violations:
            first = sound.violations[0]
            return Verdict(
                False, f"It breaks {first.invariant} with the fix, too: {first.text}. So it is not this field.", text
            )
        if not broken.violations:
            return Verdict(False, f"Every invariant holds, with the bug as well. {_not_reached(broken)}", text)
        first = broken.violations[0]
        return Verdict(True, f"It breaks {first.invariant}: {first.text}. {self.why}", text)


def _not_reached(lab: Lab) -> str:
    """The conditions of the bug that a story did not have."""
    if not lab.trace.slice(kind="replica", target="OfflineReplica"):
        return "No replica went Offline in it, so no replica had to leave an ISR."
    led = next((p for p in lab.partitions() if p.leader >= 0), None)
    if led is not None:
        return f"{led.topic}-{led.partition} is led by {led.leader}: another member of its ISR was alive."
    return "Which replicas were in the ISR when the last one died?"


EXERCISES: tuple[Exercise, ...] = (
    Operate(
        name="17.1",
        title="Lose an acknowledged record",
        core=True,
        hints=(
            "Which broker has all records, and which one may lead without them?",
            "One way needs a follower that is behind, and a default of Kafka 0.10; another one needs only haste.",
        ),
        begin=ACKNOWLEDGED,
        missing=safe,
        best=2,
        most=3,
        remarks={
            "kill 1": killed,
            "kill 2": lambda lab: (
                None if 1 in down(lab) else "Broker 1 leads on, and what it acknowledges now is on its disk alone."
            ),
            "lag": "A follower that lags loses nothing yet: it leaves the ISR first.",
            "bounce": "This broker came back and copied everything again. From which broker?",
            "shutdown": lambda lab: (
                "The other broker has every acknowledged record, and it leads." if len(down(lab)) < 2 else None
            ),
            "elect_preferred": lambda lab: (
                "Broker 1 is the preferred leader, and leads already."
                if lab.partition("orders", 0).leader == 1
                else None
            ),
            "delete_topic": "`delete.topic.enable` is off by default in 0.10: nothing was deleted.",
        },
        praise={
            "start": lambda lab: (
                "An empty disk under a known id is believed to be in sync."
                if any(each.name == "start" and each.kwargs.get("empty") for each in lab.commands)
                else None
            ),
        },
        why="An acknowledgement counts the replicas in sync at that moment. Unclean election (KIP-106) and a follower "
        "that shortens its log (KIP-101) both forget that.",
    ),
    Repair(
        name="17.2",
        title="After restarts one broker leads everything",
        hints=(
            "What did broker 2 do when it left, and who led then?",
            "Which list was walked along: the assignment, or the ISR?",
        ),
        ticket="KAFKA-3670",
        what="elections",
        occasion="controlled_shutdown",
        given='''
def next_leader(assignment, isr, live, shutting_down):
    """Leader and ISR when a broker is about to stop; None if there is no leader."""
    staying = [broker for broker in isr if broker not in shutting_down]
    fit = [broker for broker in staying if broker in live]
    return (fit[0], staying) if fit else None
''',
        stories={
            "the next replica lags": "lag 3 orders 1; settle; shutdown 2; settle",
            "a member of the ISR has no session": "disconnect 3 zookeeper; run_for 30; shutdown 2; settle",
        },
        why="With the order of the assignment each partition goes to its own next replica.",
    ),
    Compute(
        name="17.3",
        title="Leaders that do not lead",
        core=True,
        hints=(
            "`lab.partitions()` has ZooKeeper's leader, `lab.brokers[3].leads` what the broker itself leads.",
            "A pair can be compared with a TopicPartition; a partition's first two fields are such a pair.",
            "Three cases are none: leader -1, a leader that is down, a leader that leads.",
        ),
        stories={
            "back before it was noticed": find("KAFKA-7235a").commands,
            "without the bug": find("KAFKA-7235a").commands.replace("generation=2.0", "generation=2.4"),
            "dead leaders": DEAD,
            "edited by hand, and a new controller": EDITED,
        },
        give=lambda lab: [(lab,)],
        truth=unaware,
        explain=explain_unaware,
        why="A cluster whose ZooKeeper is healthy can be dead: ask the brokers.",
    ),
    OwnStory(
        name="17.4",
        title="An exhibit of your own",
        hints=(
            "A leader that leaves the ISR leads no more: that is what was fixed.",
            "When does the last member of an ISR leave it?",
            "A topic with one replica makes it short.",
        ),
        why="A story of this length is what the next person wants to find in a bug report.",
    ),
)
