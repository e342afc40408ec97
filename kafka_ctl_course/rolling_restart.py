"""Exercises whose answer says whether a broker may be stopped: every broker is restarted by it, one after the other.

Separate from `lesson_07.py` because it is run for every answer of a kind, and asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise, Verdict, not_callable
from kafka_ctl.exercises.operate import WAITS
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView

PATIENCE, LATER, SESSION, LOOK = 60.0, 10.0, 7.0, 0.1
"""Seconds: for one broker, until what happens later, until a session is over, between two calls of the function."""


class Roll(NamedTuple):
    """A rolling restart: how it begins, and what happens ten seconds later."""

    title: str
    begin: str
    later: str = ""


@dataclass(frozen=True, kw_only=True)
class RollingRestart(Exercise):
    """A function of (lab, broker) that says whether a broker may be stopped now; each broker is restarted by it.

    Any function is right that lets each of `rolls` come to its end, without a partition that goes Offline.
    """

    kind: ClassVar[str] = "implement"
    rolls: tuple[Roll, ...]
    why: str

    def judge(self, answer: object) -> Verdict:
        """Restart every broker that has a copy; the first partition without a leader is reported."""
        if not callable(answer):
            return not_callable(answer)
        for roll in self.rolls:
            with Lab.replay(roll.begin) as lab:
                if (problem := _rolled(lab, roll, answer)) is not None:
                    return Verdict(False, f'In the roll "{roll.title}": {problem}', _merged(lab.story))
        return Verdict(True, self.why)


def _rolled(lab: Lab, roll: Roll, may_stop: Callable[[Lab, int], object]) -> str | None:
    """The failure of a rolling restart, in a sentence; None when there was none."""
    later, began, started = roll.later, lab.now, dict[int, float]()
    for broker in sorted({replica for found in lab.partitions() for replica in found.replicas}):
        since = lab.now
        while True:
            commands = _changes(lab)
            allowed = may_stop(lab, broker)
            if _changes(lab) != commands:
                return "your function changed the cluster; it only says whether a broker may be stopped."
            if not isinstance(allowed, bool):
                return f"safe_to_stop(lab, {broker}) returned {short(allowed)}; True or False is expected."
            if allowed:
                break
            if lab.now - since > PATIENCE:
                return f"broker {broker} could not be stopped for {PATIENCE:g} s: {_seen(lab, broker)}."
            lab.run_for(LOOK)
            if later and lab.now - began > LATER:
                lab.do(later)
                later = ""
        before = [explain(lab, found, broker, started) for found in lab.partitions()]
        lab.kill(broker)
        lab.run_for(SESSION)
        for found, reason in zip(lab.partitions(), before, strict=True):
            if found.leader < 0:
                return reason
        lab.start(broker)
        started[broker] = lab.now
    return None


def _changes(lab: Lab) -> int:
    """The number of commands that a lab got, without time that passes."""
    return sum(each.name not in WAITS for each in lab.commands)


def explain(lab: Lab, found: PartitionView, broker: int, started: dict[int, float]) -> str:
    """The reason why no replica can lead once this broker is stopped, from what can be seen just before."""
    opening = f"you stopped broker {broker}, and {found.topic}-{found.partition} went Offline"
    others = [r for r in found.replicas if r != broker]
    if dead := [r for r in found.isr if r in others and lab.brokers[r].state != "running"]:
        return (
            f"{opening}. Broker {dead[0]} was in the ISR {found.isr} but did not run; ZooKeeper learns that only when "
            "the session ends."
        )
    if any(set(metadata) & set(others) for metadata in _metadata(lab, found, broker)):
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
    runs = "did not run and" if lab.brokers[up].state == DOWN else "ran but"
    return f"{opening}. Broker {up} {runs} was not in the ISR {found.isr}."


def _metadata(lab: Lab, found: PartitionView, broker: int) -> list[tuple[int, ...]]:
    """The ISR of a partition as the brokers that run have it in their metadata."""
    return [
        state.isr
        for each in lab.brokers.values()
        if each.state == "running"
        for tp, state in each.metadata.items()
        if tp == (found.topic, found.partition) and broker in state.isr
    ]


def _seen(lab: Lab, broker: int) -> str:
    """The partitions of a broker in a few words."""
    return "; ".join(
        f"the assignment of {p.topic}-{p.partition} is {p.replicas}, the ISR {p.isr}, the leader {p.leader}"
        for p in lab.partitions()
        if broker in p.replicas
    )


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
