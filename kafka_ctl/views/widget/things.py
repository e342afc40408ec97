"""The things of a cluster that can be clicked, at each step: their states, which decide what is offered for them.

Separate from `live.py` because it reads a model and knows neither widget nor lab.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from kafka_ctl.trace.beliefs import Key
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.dot import printable
from kafka_ctl.views.widget.payload import Data

Things = Mapping[str, Sequence[str]]
"""Id -> its state and, of a partition, its replicas as a form has them. A broker and ZooKeeper are `up` or `down`, a
partition `leaderless` and the cluster `faulty` or nothing."""


def things(model: ClusterModel, leaderless: Container[Key]) -> Things:
    """The things of a model; `leaderless` are its partitions without a leader."""
    found = {"": ["faulty" if model.is_faulty else "", ""]}
    found["zookeeper"] = ["down" if model.zookeeper_down else "up", ""]
    for broker, seen in sorted(model.brokers.items()):
        found[f"broker:{broker}"] = ["up" if seen.alive else "down", ""]
    for key, partition in sorted(model.partitions.items()):
        if partition.replicas and f"/brokers/topics/{key[0]}" in model.znodes:
            name = printable(f"partition:{key[0]}-{key[1]}")
            found[name] = ["leaderless" if key in leaderless else "", ", ".join(map(str, partition.replicas))]
    return found


def changes(before: Things, now: Things) -> Data:
    """The things that have changed, as a frame has them; None for one that is gone. Empty if there are none."""
    changed = {name: now.get(name) for name in [*before, *now] if before.get(name) != now.get(name)}
    return {"things": changed} if changed else {}


def together(frames: Sequence[Data]) -> Things:
    """The things at the last of these frames."""
    found: Data = {}
    for frame in frames:
        found |= frame.get("things", {})
    return {name: thing for name, thing in found.items() if thing is not None}
