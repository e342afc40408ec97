"""Exercises of lesson 10, topics and where their replicas go."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from kafka_ctl.assignment import alternating, assign
from kafka_ctl.display import counted
from kafka_ctl.errors import KafkaCtlError, PluginFailed, short
from kafka_ctl.exercises.exercise import Exercise, Function, FunctionExercise, Verdict, failed
from kafka_ctl.exercises.implement import decoded
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins
from kafka_ctl_course.lesson_04 import ignored
from kafka_ctl_course.quiet import PLAN, opening

Followers = Callable[[int, list[int], dict[int, str], int], Sequence[int]]
TITLE = "Topics and where their replicas go"


# 1: predict

SIX = json.dumps(assign([1, 2, 3, 4], 6, 2), separators=(",", ":"))
"""The assignment by Kafka's rule of six partitions with two replicas on four brokers, from the first broker on."""


def predict_wrong(answer: tuple[int, ...], truth: tuple[int, ...]) -> str | None:
    """The mistakes of exercise 1."""
    if len(set(answer)) < len(answer):
        return "A broker holds one replica of a partition."
    if answer == (1, 2):
        return "That is partition 0. From partition 4 on, the second round, the distance has grown by one."
    if answer == (4, 1):
        return "That is partition 3. Partitions are numbered from 0."
    if answer == (1, 4):
        return "The leader is right. The distance grows by one with each round; yours has grown by two."
    if answer and answer[0] != truth[0]:
        return "The leader of partition p is at place p of the row of brokers; after the last one comes the first."
    if len(answer) != len(truth):
        return "Each partition has two replicas."
    return None


# 2: place


class Size(NamedTuple):
    """A topic that is to be placed."""

    brokers: int
    partitions: int
    replication_factor: int


SIZES = (Size(6, 30, 3), Size(5, 20, 2), Size(4, 12, 3))


@dataclass(frozen=True, kw_only=True)
class Place(FunctionExercise):
    """`place(brokers, partitions, replication_factor)`, plugged in as `rules["assignment"]`; then each broker dies.

    Any assignment is right in which leaders are even, before and after each death.
    """

    def judge_function(self, function: Function) -> Verdict:
        """Create a topic of each size, look, and kill each broker in turn."""
        plugins = Plugins(rules={"assignment": function})
        for size in SIZES:
            story = opening(size.brokers) + (
                f"create_topic orders partitions={size.partitions} "
                f"replication_factor={size.replication_factor}\nsettle\n"
            )
            for dead in range(size.brokers + 1):
                text = story + (f"kill {dead}\nsettle\n" if dead else "")
                if (verdict := _played(text, plugins, partial(uneven, size=size, dead=dead))) is not None:
                    return verdict
        return Verdict(True, self.why)


def _played(text: str, plugins: Plugins, look: Callable[[Lab], str | None]) -> Verdict | None:
    """The fault at the end of a story with the learner's function in it; None when there is none."""
    try:
        with Lab.replay(text, **plugins.given) as lab:
            problem = look(lab)
    except PluginFailed as error:
        return Verdict(False, decoded(error))
    except KafkaCtlError as error:
        return Verdict(False, f"The topic cannot be created: {str(error).removeprefix('line 2: ')}")
    return None if problem is None else Verdict(False, problem, text, plugins)


def uneven(lab: Lab, size: Size, dead: int) -> str | None:
    """The fault in an assignment, with broker `dead` down (0 for none), in one sentence; None if there is none."""
    asked = f"{size.partitions} partitions, {size.replication_factor} replicas, {size.brokers} brokers"
    found = lab.partitions()
    if len(found) != size.partitions:
        return f"{asked}: your assignment has {counted(len(found), 'partition')}."
    for p in found:
        if len(p.replicas) != size.replication_factor:
            return f"{asked}: partition {p.partition} has the replicas {list(p.replicas)}."
    if strange := [(p.partition, id) for p in found for id in p.replicas if id not in lab.brokers]:
        return f"{asked}: partition {strange[0][0]} is on broker {strange[0][1]}; `brokers` is {[*lab.brokers]}."
    leads = Counter(p.leader for p in found)
    alive = {id: leads[id] for id in lab.brokers if id != dead}
    least, most = min(alive, key=lambda id: alive[id]), max(alive, key=lambda id: alive[id])
    difference = alive[most] - alive[least]
    if not dead and difference > 1:
        return (
            f"{asked}: broker {most} leads {alive[most]} and broker {least} leads {alive[least]}. The first replica of "
            "each list is the preferred leader: are the first ones taken in turn?"
        )
    if leads[-1]:
        return f"{asked}: when broker {dead} died, {leads[-1]} partitions had no leader."
    if dead and difference > 2:
        return (
            f"{asked}: after broker {dead} died, broker {most} leads {alive[most]} and broker {least} leads "
            f"{alive[least]}. Which brokers come second in the lists that broker {dead} was first in?"
        )
    return None


# 3: racks

Racks = Mapping[int, str]


class Room(NamedTuple):
    """Brokers with their racks, and a topic to place on them."""

    racks: Racks
    partitions: int
    replication_factor: int
    even: bool


EVEN = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
ROOMS = (
    Room(EVEN, 30, 3, True),
    Room(EVEN, 30, 4, False),
    Room({1: "a", 2: "b", 3: "b", 4: "b", 5: "c"}, 20, 3, False),
)


@dataclass(frozen=True, kw_only=True)
class Racked(FunctionExercise):
    """`followers(leader, others, rack_of, wanted)`: the brokers that get the other copies of one partition.

    It is called for every partition of a new topic, with `others` in the order of Kafka's rule. Right is what spans as
    many racks as possible; then each rack is switched off.
    """

    kind: ClassVar[str] = "repair"

    def judge_function(self, function: Function) -> Verdict:
        """Create a topic in each room, look at its racks, and switch each rack off."""
        for room in ROOMS:
            if (problem := refused(function, room)) is not None:
                return Verdict(False, problem)
            plugins = Plugins(rules={"assignment": ruled(function, room)})
            story = opening(room.racks) + (
                f"create_topic orders partitions={room.partitions} "
                f"replication_factor={room.replication_factor}\nsettle\n"
            )
            for rack in ("", *sorted(set(room.racks.values()))):
                kills = "".join(f"kill {id}\n" for id in room.racks if room.racks[id] == rack)
                text = story + (kills + "settle\n" if rack else "")
                if (verdict := _played(text, plugins, partial(crowded, room=room, rack=rack))) is not None:
                    return verdict
        return Verdict(True, self.why)


def calls(room: Room) -> Iterator[tuple[int, list[int], dict[int, str], int]]:
    """The input of `followers` for each partition: leaders and the order of the others are those of Kafka's rule.

    The row of brokers alternates racks; the order is the one of the rule on this row without racks.
    """
    row = alternating(list(room.racks), room.racks)
    for places in assign(range(len(row)), room.partitions, len(row)).values():
        leader, *others = (row[place] for place in places)
        yield leader, others, dict(room.racks), room.replication_factor - 1


def refused(followers: Followers, room: Room) -> str | None:
    """The fault in a function that does not return so many other brokers, in one sentence; None if there is none."""
    for leader, others, rack_of, wanted in calls(room):
        asked = f"followers(leader={leader}, others={others}, ..., wanted={wanted})"
        try:
            chosen: object = followers(leader, list(others), rack_of, wanted)
        except Exception as error:  # whatever a learner's code can do
            return f"{asked} {failed(error)}."
        if not isinstance(chosen, list | tuple):
            return f"{asked} returned {short(chosen)}; a list of brokers is expected."
        if len(chosen) != wanted:
            few = len(chosen) < wanted
            more = "When every rack has a copy, may one have a second? Skip a broker, do not stop." if few else ""
            return f"{asked} returned {short(chosen)}, so {counted(len(chosen), 'broker')}. {more}".rstrip()
        if len({*chosen}) != wanted or not {*chosen} <= {*others}:
            return f"{asked} returned {short(chosen)}; so many different brokers of `others` are expected."
    return None


def ruled(followers: Followers, room: Room) -> Callable[..., dict[int, list[int]]]:
    """The assignment rule that asks `followers`."""
    return lambda *asked: {n: [call[0], *followers(*call)] for n, call in enumerate(calls(room))}


def crowded(lab: Lab, room: Room, rack: str) -> str | None:
    """The fault in the racks of an assignment, with one rack off (`""` for none); None if there is none."""
    number = len(set(room.racks.values()))
    asked = f"{room.replication_factor} replicas, {number} racks"
    found = lab.partitions()
    short_of = [p for p in found if len({room.racks[id] for id in p.replicas}) < min(number, room.replication_factor)]
    if short_of:
        first = short_of[0]
        return (
            f"{asked}: {len(short_of)} of {len(found)} partitions have two copies in one rack while another rack has "
            f"none; the first is partition {first.partition}, {list(first.replicas)} in racks "
            f"{' '.join(room.racks[id] for id in first.replicas)}."
        )
    if lost := [p.partition for p in found if p.leader < 0]:
        return f"{asked}: with rack {rack} off, partition {lost[0]} has no leader."
    holds = Counter(id for p in found for id in p.replicas)
    if room.even and max(holds.values()) - min(holds.values()) > 3:
        most, least = max(holds, key=lambda id: holds[id]), min(holds, key=lambda id: holds[id])
        return (
            f"{asked}: broker {most} holds {holds[most]} replicas and broker {least} {holds[least]}, though the "
            "racks are even. `others` has an order: take the first that fits."
        )
    return None


# 4: operate


def unused(lab: Lab) -> str | None:
    """The problem (broker 4 has fewer than two replicas in sync, or a partition another number of them), or None."""
    if moving := lab.reassignments():
        return f"{len(moving)} partitions are still moving."
    found = [p for p in lab.partitions() if p.topic == "orders"]
    if len(found) != 6:
        return f"orders has {len(found)} partitions; it had six, and keys depend on that number."
    if wrong := [p for p in found if len(p.replicas) != 2]:
        return f"partition {wrong[0].partition} has the replicas {list(wrong[0].replicas)}; two were asked for."
    held = sum(4 in p.isr for p in found)
    return None if held >= 2 else f"broker 4 holds {counted(held, 'replica')} of orders; two are enough."


def refused_plan(lab: Lab) -> str | None:
    """The reply to a plan that the tool has not begun."""
    begun = [r for r in lab.trace.slice(kind="zk", action="create") if r.path == PLAN]
    if sum(each.name == "execute_reassignment" for each in lab.commands) == len(begun):
        return None
    return "The tool refuses a second plan while the first one runs: put all moves into one plan, or wait."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="10.1",
        title="The second round",
        hints=(
            "Which partition is the first of the second round, with four brokers?",
            "What changes there, the leader's place or the distance of the follower?",
            "In the table of five brokers, compare partitions 0 and 5.",
        ),
        story=opening(4) + f"create_topic orders assignment='{SIX}'\nsettle\n",
        ask=lambda lab: lab.partition("orders", 4).replicas,
        example=(7, 8),
        wrong=(predict_wrong,),
        why="Partition 4 begins the second round: leader 1 again, and its follower one place further.",
    ),
    Place(
        name="10.2",
        title="Your own assignment, and each broker dies",
        core=True,
        hints=(
            "Write down the lists that begin with broker 1. Who comes second in them?",
            "Let the distance of the followers depend on the round, `p // len(brokers)`.",
            "A distance is 1 to `len(brokers) - 1`, never 0: that would be the leader again.",
        ),
        why="Leaders are even, and stay nearly even after each death, for three sizes and every broker.",
    ),
    Racked(
        name="10.3",
        title="A rule that forgot the racks",
        hints=(
            "Which racks have a copy already? The leader has one, too.",
            "Skip a broker whose rack has a copy; do not stop at it.",
            "What if each rack has a copy and some are still wanted? Then the skipped brokers may come.",
        ),
        why="Every partition spans as many racks as it can, and no rack that goes off takes a partition with it.",
    ),
    Operate(
        name="10.4",
        title="A broker that stays empty",
        core=True,
        hints=(
            "What does the new broker lack: leaderships, or copies?",
            "Who may change `/brokers/topics/orders`? Not the controller of its own accord.",
            "`lab.execute_reassignment({('orders', 0): [1, 4]})` moves one replica of one partition.",
        ),
        begin=opening(3) + "create_topic orders partitions=6 replication_factor=2\nsettle\nadd_broker 4\nsettle\n",
        missing=unused,
        best=1,
        remarks={
            "add_partitions": "New partitions may use broker 4. The old ones stay, and keys change their partition.",
            "elect_preferred": "An election chooses among the brokers that hold a copy, and broker 4 holds none.",
            "bounce": "A broker that starts gets the replicas that ZooKeeper names for it: for broker 4 none.",
            "delete_controller": lambda lab: (
                ignored(lab) or "A new controller reads the same assignment from ZooKeeper. It places nothing."
            ),
            "generate_reassignment": "This prints a plan; it has not been executed.",
            "execute_reassignment": refused_plan,
            "create_topic": "A new topic may use broker 4; `orders` stays where it is.",
            "delete_topic": "A deletion takes the records, too.",
        },
        praise={
            "generate_reassignment": lambda lab: (
                "The generator ignores the current placement. Two copies would have been enough."
                if sum(4 in p.replicas for p in lab.partitions() if p.topic == "orders") > 2
                else None
            ),
        },
        why="An administrator has to ask for every move; the controller then carries it out (lesson 11).",
    ),
)
