"""Values in Kafka's log lines: partitions, brokers, and every print of a partition's state.

Kafka 0.8.0 to 3.9.0: controller/KafkaController.scala, LeaderIsrAndControllerEpoch.toString; api/LeaderAndIsr.scala,
LeaderAndIsr.toString; api/LeaderAndIsrRequest.scala, PartitionStateInfo.toString; the requests' PartitionState.toString
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

TP = r"(?P<tp>\[[\w.-]+,\d+\]|(?<![\w.-])[\w.-]+-\d+)"
"""A partition in either spelling."""
PARTITION = re.compile(TP.replace("?P<tp>", "?:"))
WRAPPED = re.compile(r"\w+\((.*)\)$")
"""A Scala collection, `Set(1, 2)`."""


def topic_partition(text: str) -> tuple[str, int]:
    """`[orders,0]` or `orders-0` as ("orders", 0)."""
    topic, _, number = text.strip("[]").rpartition("," if text.startswith("[") else "-")
    return topic, int(number)


def spelled(text: str) -> str:
    """`[orders,0]` or `orders-0` as "orders-0", as the trace's words have it."""
    return "{}-{}".format(*topic_partition(text))


def partitions(text: str) -> list[str]:
    """All partitions in a text, in order, as `orders-0`."""
    return [spelled(found) for found in PARTITION.findall(text)]


def names(text: str) -> list[str]:
    """`a,b`, `Set(a, b)` or znodes `/admin/delete_topics/a` as sorted names."""
    inner = found[1] if (found := WRAPPED.match(text)) else text
    return sorted(name.rpartition("/")[2] for name in re.split(r"[,\s]+", inner) if name)


def numbers(text: str) -> tuple[int, ...]:
    """All numbers in a text, in order."""
    return tuple(map(int, re.findall(r"-?\d+", text)))


def ids(text: str) -> tuple[int, ...]:
    """`1,2` or `1, 2` as numbers."""
    return tuple(map(int, text.split(","))) if text else ()


def assignment(text: str) -> dict[str, list[int]]:
    """The replicas of each partition in `Map([orders,0] -> List(1, 2))` and what other Scala maps print."""
    found = list(re.finditer(rf"({PARTITION.pattern}) -> ", text))
    assigned: dict[str, list[int]] = {}
    for one, after in zip_longest(found, found[1:]):
        value = text[one.end() : after.start() if after else None]
        ids = re.search(r"\breplicas=([\d,]*)|\(([-\d, ]*)\)", value)
        assigned[spelled(one[1])] = list(numbers(ids[1] or ids[2] or "")) if ids else []
    return assigned


def replicas(text: str) -> dict[str, list[int]]:
    """The replicas of `1,2,3` or `ReplicaAssignment(replicas=1,2,3, addingReplicas=3, removingReplicas=1)`."""
    if "=" not in text:
        return {"replicas": list(numbers(text)), "adding": [], "removing": []}
    found = re.search(r"replicas=([\d,]*), addingReplicas=([\d,]*), removingReplicas=([\d,]*)", text)
    lists = found.groups() if found else ("", "", "")
    return {name: list(numbers(ids)) for name, ids in zip(("replicas", "adding", "removing"), lists, strict=True)}


NUMBER = {
    "leader": re.compile(r'\b[Ll]eader"?[:=]"?(-?\d+)'),
    "leader_epoch": re.compile(r'[lL]eader_?[eE]poch"?[:=]"?(-?\d+)'),
    "zk_version": re.compile(r"(?:[zZ]kVersion|partitionEpoch)[:=](-?\d+)"),
    "controller_epoch": re.compile(r"[cC]ontrollerEpoch[:=](\d+)"),
}
IDS = {
    "isr": re.compile(r'(?:ISR"?:"?|isr"?[:=](?:List\()?\[?)((?:-?\d+(?:, ?(?=-?\d))?)*)'),
    "replicas": re.compile(r"\b(?:replicas=\[?|AllReplicas:)((?:\d+(?:, ?(?=\d))?)*)"),
}
NAMED = re.compile(r"topicName='([\w.-]+)', partitionIndex=(\d+)")
MEMBERS = re.compile(r"isrWithBrokerEpoch=List\(((?:BrokerState\([^)]*\)(?:, )?)*)\)")

JAVA = re.compile(
    r"controllerEpoch=(\d+), leader=(-?\d+), leaderEpoch=(-?\d+), isr=\[?([-\d, ]*?)\]?, "
    r"(?:zkVersion|partitionEpoch)=(-?\d+), replicas=\[?([\d, ]*?)\]?(?:, [a-z]|\))"
)
"""How the requests' classes print a state since Kafka 0.10.0.1, for all releases; most lines are of this kind."""


def state(text: str) -> dict[str, Any]:
    """Leader, ISR, epochs, version and replicas out of any print of a partition's state."""
    if (java := JAVA.search(text)) is not None:
        return {
            "controller_epoch": int(java[1]),
            "leader": int(java[2]),
            "leader_epoch": int(java[3]),
            "isr": ids(java[4]),
            "zk_version": int(java[5]),
            "replicas": ids(java[6]),
        }
    columns: dict[str, Any] = {k: int(m[1]) for k, p in NUMBER.items() if (m := p.search(text))}
    columns |= {k: numbers(m[1]) for k, p in IDS.items() if (m := p.search(text))}
    if (members := MEMBERS.search(text)) is not None:
        columns["isr"] = tuple(int(id) for id in re.findall(r"brokerId=(\d+)", members[1]))
    return columns
