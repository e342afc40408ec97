"""Exercises of lesson 13, the reassignment tool and its throttles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Function, FunctionExercise, Verdict, plain, returned_none, unsuited
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.figures.reassignment_znodes import Throttle, settings
from kafka_ctl_course.quiet import PLAN, TOPIC, opening, quiet_lab, write

TITLE = "The reassignment tool and throttles"
OPENING = opening(4, "2.4")
THROTTLED = (
    OPENING
    + TOPIC
    + """slow 4 30\nexecute_reassignment '{"orders-0":[1,2,4]}' throttle=1000000\n"""
    + "run_for 1\nkill 4\nsettle\nheal\nsettle\n"
)
"""A throttled move to broker 4, which is down."""
FORGOTTEN = (
    OPENING
    + TOPIC
    + """create_topic payments assignment='{"0":[2,3,1]}'\nsettle\n"""
    + """execute_reassignment '{"orders-0":[1,2,4],"payments-0":[2,3,4]}' throttle=1000\nsettle\n"""
    + "kill 4\nrun_for 10\nproduce orders 0 records=20 size=1000000\nproduce payments 0 records=20 size=1000000\n"
    + "start 4\nrun_for 60\n"
)
"""A throttled move of two topics that is done and was not verified; broker 4 was down, and cannot catch up."""
MB = 1_000_000


# 1: the throttle for a deadline


class Move(NamedTuple):
    """A partition with so many MB and a producer that writes so many MB a second; it has to move in `seconds`."""

    megabytes: int
    writes: int
    seconds: int
    old: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def in_sync(self) -> int:
        """The followers in the ISR while it moves."""
        return len(self.old) - 1

    @property
    def added(self) -> int:
        """The replicas that are being added."""
        return len({*self.new} - {*self.old})


MOVES = (
    Move(100, 2, 50, (1, 2, 3), (1, 2, 4)),
    Move(200, 1, 100, (1, 2), (1, 3)),
    Move(300, 2, 60, (1, 2, 3), (1, 4, 5)),
    Move(200, 0, 40, (1, 2, 3), (1, 2, 3, 4)),
)
SHARES = (0.5, 1.15)
"""The least and the most time of a move, as a share of its deadline: the lab's copying differs from a formula."""
RATES = (0.01, 10_000)
"""The throttles that are tried, in MB a second."""


@dataclass(frozen=True, kw_only=True)
class Deadline(FunctionExercise):
    """A function that returns the throttle with which a move is done in time: each of `MOVES` is run with it."""

    def judge_function(self, function: Function) -> Verdict:
        """Run each move with the function's throttle, until the first that is too late or far too early."""
        for move in MOVES:
            rate = plain(function(move.megabytes, move.writes, move.seconds, move.in_sync, move.added))
            if rate is None:
                return Verdict(False, returned_none(function))
            if not isinstance(rate, Fraction) and (problem := unsuited(rate, 1.0)) is not None:
                return Verdict(False, f"{problem}. A number of MB a second is asked for.")
            if not RATES[0] <= rate <= RATES[1]:
                return Verdict(
                    False, f"{short(rate)} is no rate in MB a second: {RATES[0]:g} to {RATES[1]:,} are tried."
                )
            if (problem := wrong(move, float(rate))) is not None:
                return Verdict(False, problem)
        return Verdict(True, self.why)


def wrong(move: Move, rate: float) -> str | None:
    """The fault of a throttle in MB a second, found by running the move; None where it is done in time."""
    least, most = (share * move.seconds for share in SHARES)
    took = seconds_to_move(move, rate, most)
    asked = (
        f"{list(move.old)} to {list(move.new)}, {move.megabytes} MB, {move.writes} MB/s of writes: with {rate:g} MB/s "
    )
    if took is None:
        return f"{asked}it is not done after {most:g} s; {move.seconds} were allowed. {too_low(move, rate)}"
    if took < least:
        return f"{asked}it is done after {took:.0f} of {move.seconds} s. Clients pay for each MB/s that is not needed."
    return None


def too_low(move: Move, rate: float) -> str:
    """The bytes that a throttle leaves out."""
    copy, writes = move.megabytes / move.seconds, move.writes
    forgotten = (
        (copy, "While records are written, the leader sends these, too."),
        (copy + writes, "Followers in the ISR are not slowed, but the bytes that the leader sends them count."),
        (copy + move.in_sync * writes, "The new replica also needs what is written while it copies."),
        (copy + (move.in_sync + move.added) * writes, "The leader sends all that is there to *each* new replica."),
    )
    count = f"for each of {move.in_sync} followers in the ISR and of {move.added} new"
    asked = f"Which bytes does the leader count in a second, {count}?"
    return next((text for each, text in forgotten if math.isclose(each, rate)), asked)


@cache
def seconds_to_move(move: Move, rate: float, most: float) -> float | None:
    """The seconds that a move takes with a throttle in MB a second; None for more than `most`."""
    with quiet_lab(5, generation="2.4") as lab:
        lab.create_topic("orders", assignment={0: move.old})
        lab.settle()
        lab.produce("orders", 0, records=move.megabytes, size=MB)
        lab.settle()
        begin = lab.now
        lab.execute_reassignment({("orders", 0): move.new}, throttle=round(rate * MB))
        while lab.reassignments():
            if lab.now - begin > most:
                return None
            write(lab, 1, move.writes)
        return lab.now - begin


# 2 and 3: operate


VERIFIED = "The tool removes throttles when each partition of the plan *you give it* is where the plan says."
EVERYWHERE = "A throttle is in each broker's settings and in each topic's."
NOT_IN_PLAN = "The rates are gone. The lists of a topic that is not in your plan stay, and the next rate finds them."


def settings_left(lab: Lab) -> list[str]:
    """The throttle settings that are left, in one sentence; empty without any."""
    left = settings(lab)
    paths = ", ".join(dict.fromkeys(each.path for each in left))
    return [f"{len(left)} throttle settings are left ({paths})"] * bool(left)


def only_lists(left: Sequence[Throttle]) -> bool:
    """True if settings are left, and no rate is among them."""
    return bool(left) and all(each.path.startswith("/config/topics/") for each in left)


def not_clean(lab: Lab) -> str | None:
    """The fault that is left; None once AR is as it was, nothing moves, no throttle is set and broker 4 is up."""
    found = lab.partition("orders", 0)
    problems = []
    if set(found.replicas) != {1, 2, 3}:
        problems.append(f"AR is {list(found.replicas)}")
    if found.adding or found.removing:
        problems.append("the move is still in the topic's znode")
    problems += settings_left(lab)
    if lab.brokers[4].state == "down":
        problems.append("broker 4 is down")
    return "; ".join(problems) + "." if problems else None


def started(lab: Lab) -> str | None:
    """The reply to a learner who started broker 4."""
    if 4 in lab.partition("orders", 0).replicas:
        return "Broker 4 copies as soon as it is up, and the move ends. Was it cancelled before?"
    tried = any(each.name == "verify_reassignment" for each in lab.commands)
    return verified(lab) if tried and len(settings(lab)) == 2 else None


def verified(lab: Lab) -> str | None:
    """The reply to a learner who verified."""
    left = settings(lab)
    if any(each.path == "/config/brokers/4" for each in left) and len(left) == 2:
        return "The tool said: Throttle was removed. It asks the brokers that are alive, and broker 4 was not."
    if only_lists(left):
        return NOT_IN_PLAN
    return VERIFIED if len(left) == 10 else None


def left_behind(lab: Lab) -> str | None:
    """The fault that is left; None once no throttle is, and broker 4 is in both ISRs again."""
    problems = settings_left(lab)
    problems += [f"broker 4 is not in the ISR of {p.topic}-{p.partition}" for p in lab.partitions() if 4 not in p.isr]
    return "; ".join(problems) + "." if problems else None


def verified_both(lab: Lab) -> str | None:
    """The reply to a learner who verified a plan of one topic, or a plan with another assignment than AR."""
    return NOT_IN_PLAN if only_lists(settings(lab)) else f"{VERIFIED} See AR."


EXERCISES: tuple[Exercise, ...] = (
    Deadline(
        name="13.1",
        title="A throttle for a deadline",
        core=True,
        hints=(
            "The new replica gets all that is there, and all that is written meanwhile. How much is that a second?",
            "The leader also sends each written record to the followers in the ISR. These bytes count.",
            "With two new replicas, the leader sends everything to both.",
        ),
        why="The leader counts every byte that it sends: the copy to each new replica, the writes to all followers.",
    ),
    Operate(
        name="13.2",
        title="A throttled move that hangs",
        core=True,
        hints=(
            "What did the tool write when it began, and into how many znodes?",
            "Which of the three verbs removes throttles, when, and from which brokers?",
            "The move has to be cancelled before broker 4 starts. Broker 4 has to be up before the last verb.",
        ),
        begin=THROTTLED,
        missing=not_clean,
        best=3,
        remarks={
            "verify_reassignment": verified,
            "start": started,
            "cancel_reassignment": "It is cancelled. Throttles are settings of their own; the controller leaves them.",
            "reassign": "A move changes AR. Throttles are settings of their own; the controller leaves them.",
            f"delete_znode {PLAN}": "In 2.4 the plan is also in the topic's znode: see `lab.list_reassignments()`.",
            "execute_reassignment": "The tool begins a plan or changes a throttle; it removes none.",
            "alter_config": EVERYWHERE,
            "delete_znode": EVERYWHERE,
            "delete_controller": lambda lab: (
                "The next controller takes the move up again, and leaves throttles alone."
                if lab.partition("orders", 0).adding
                else None
            ),
        },
        why="Verify is the second half of execute: it removes what execute wrote, at the brokers that it finds alive.",
    ),
    Operate(
        name="13.3",
        title="A week later",
        hints=(
            "`throttles(lab)` shows what is left below `/config`.",
            "Which verb removes throttles? It needs a plan; the file of last week is not needed.",
            "Write a plan of what is: AR of `orders-0` and of `payments-0`.",
        ),
        begin=FORGOTTEN,
        missing=left_behind,
        best=1,
        remarks={
            "verify_reassignment": verified_both,
            "start": "A restart changes no setting.",
            "shutdown": "A restart changes no setting.",
            "kill": "A restart changes no setting.",
            "bounce": "A restart changes no setting.",
            "execute_reassignment": "The tool writes new throttles; it removes none.",
            "alter_config": EVERYWHERE,
            "delete_znode": EVERYWHERE,
            "reassign": "A move changes AR; the settings stay, and they slow it.",
        },
        why="Any plan that is true will do: verify compares it with AR, and then removes rates and lists.",
    ),
)
