"""The questions of a drill, and the commands of a lab that each stands for.

    broker 3                  its process is killed
    rack b                    all running brokers of the rack are killed at once
    any one, any two          every running broker, every pair of them
    any rack                  every rack
    rolling restart 3,1,2     one controlled shutdown and start after the other; without ids, by id
    {"version":1, ...}        a reassignment plan: as text, as the file `plan.json`, or as {("orders", 0): [2, 3]}
    kill 3                    any other commands of a story, one a line

Each scenario ends when the cluster is quiet again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, count
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition, parse_int
from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.lab import story, validate
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.reassign.plan import check_exists, check_plan, read_plan

Question = int | str | Mapping[object, object]
FORMS = ("broker 3", "rack b", "any one", "any two", "any rack", "rolling restart 3,1,2", "a plan", "a story's command")
SETTLE = "settle"
_ROLLING = re.compile(r"rolling restart\b\s*((?:\d{1,10}(?:[\s,]+|$))*)")
_ANY = {"any one": 1, "any one broker": 1, "any two": 2, "any two brokers": 2}


class Scenario(NamedTuple):
    """A name, and the commands that are given."""

    name: str
    commands: tuple[str, ...]


def scenarios(lab: Lab, question: Question) -> list[Scenario]:
    """The scenarios that a question stands for in this lab; several for `any`.

    Raises UnknownName for a broker, a rack or a question that does not exist, and BadInput for a plan that cannot be.
    """
    if isinstance(question, Mapping):
        return [_plan("the plan", lab, _targets(question))]
    text = str(question) if isinstance(question, int) else validate.name("a drill", question).strip()
    text = f"broker {text}" if text.isdecimal() else text
    if text.startswith("{") or (text.endswith(".json") and "\n" not in text):
        file = not text.startswith("{")
        plan = read_plan(_file(text) if file else text, lab.generation, check=True).partitions
        return [_plan(f"plan {Path(text).name}" if file else "the plan", lab, plan)]
    if text in _ANY:
        return [_kill(lab, ids) for ids in combinations(_running(lab), _ANY[text])]
    if found := _ROLLING.fullmatch(text):
        return [_rolling(lab, [int(id) for id in re.findall(r"\d+", found[1])] or _running(lab))]
    racks = _racks(lab)
    if text == "any rack":
        return [_kill(lab, ids, f"rack {rack} dies") for rack, ids in racks.items()]
    kind, _, named = text.partition(" ")
    if kind == "rack":
        if named not in racks:
            raise UnknownName("rack with a running broker", named, racks)
        return [_kill(lab, racks[named], f"rack {named} dies")]
    if kind == "broker" and (broker := parse_int(named)) is not None:
        return [_kill(lab, [broker])]
    return [_commands(text)]


def numbered(found: Iterable[Scenario]) -> list[Scenario]:
    """The same scenarios; those that share a name, such as several plans, get numbers."""
    listed = list(found)
    number = {name: count(1) for name, times in Counter(s.name for s in listed).items() if times > 1}
    return [s._replace(name=f"{s.name} ({next(number[s.name])})") if s.name in number else s for s in listed]


def _running(lab: Lab) -> list[int]:
    return sorted(id for id, broker in lab.world.brokers.items() if broker.state == "running")


def _racks(lab: Lab) -> dict[str, list[int]]:
    """The running brokers by rack; those without one are left out."""
    racks: dict[str, list[int]] = {}
    for id in _running(lab):
        if rack := lab.world.brokers[id].rack:
            racks.setdefault(rack, []).append(id)
    return dict(sorted(racks.items()))


def _check_brokers(lab: Lab, ids: Iterator[int] | list[int] | tuple[int, ...]) -> None:
    """Raise UnknownName for a broker that does not exist, BadInput for one that does not run."""
    for id in ids:
        if id not in lab.world.brokers:
            raise UnknownName("broker", id, sorted(lab.world.brokers))
        if id not in _running(lab):
            raise BadInput(f"broker {id} is {lab.world.brokers[id].state}; a drill needs one that is running")


def _kill(lab: Lab, ids: list[int] | tuple[int, ...], name: str = "") -> Scenario:
    _check_brokers(lab, ids)
    listed = " and ".join(map(str, ids))
    usual = f"broker {listed} dies" if len(ids) == 1 else f"brokers {listed} die"
    return Scenario(name or usual, (*(f"kill {id}" for id in ids), SETTLE))


def _rolling(lab: Lab, ids: list[int]) -> Scenario:
    _check_brokers(lab, ids)
    steps = [line for id in ids for line in (f"shutdown {id}", SETTLE, f"start {id}", SETTLE)]
    return Scenario(f"rolling restart {','.join(map(str, ids))}", tuple(steps))


def _plan(name: str, lab: Lab, plan: Mapping[TopicPartition, tuple[int, ...]]) -> Scenario:
    check_plan(list(plan.items()), lab.generation)
    check_exists(plan, {TopicPartition(p.topic, p.partition) for p in lab.partitions()}, lab.generation)
    for id in sorted({id for replicas in plan.values() for id in replicas}):
        if id not in lab.world.brokers:
            raise UnknownName("broker", id, sorted(lab.world.brokers))
    return Scenario(name, (str(story.Command("reassign", ({str(tp): ids for tp, ids in plan.items()},), {})), SETTLE))


def _targets(question: Mapping[object, object]) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replicas by partition, as `Lab.reassign` takes them."""
    return {validate.topic_partition(tp): validate.replicas(f"the replicas of {tp}", r) for tp, r in question.items()}


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"plan {short(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _commands(text: str) -> Scenario:
    """Commands of a story as they are. Raises UnknownName where the first word is no command."""
    lines = list(story.parse(text))
    for line in lines:
        if line.name not in COMMANDS:
            raise UnknownName("drill", text, FORMS)
    given = tuple(map(str, lines))
    return Scenario("; ".join(given), given if given[-1] == SETTLE else (*given, SETTLE))
