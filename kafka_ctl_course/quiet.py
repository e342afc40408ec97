"""The clusters that most lessons begin with, in which nothing happens unasked, and the clients that write to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

COSTS = {"boot": 0.0005, "zookeeper_tick": 0}
"""Brokers start within a millisecond, so that they race; a session ends exactly at its timeout."""
CONFIG = {"auto.leader.rebalance.enable": False}
TOPIC = """create_topic orders assignment='{"0":[1,2,3]}'\nsettle\n"""
"""Commands of a story: one partition with a replica on each of three brokers."""
PLAN = ReassignPartitionsZNode.PATH
"""The znode in which the tool asks for reassignments."""


def quiet_lab(
    brokers: int | Iterable[int] | Mapping[int, str | None] = 3,
    *,
    config: Mapping[str, object] | None = None,
    costs: Mapping[str, float] | None = None,
    **options: Any,
) -> Lab:
    """A lab with seed 7, without the automatic rebalance, whose sessions end exactly at their timeout.

    `config` and `costs` add to that; `options` are those of `Lab`. Raises what `Lab` raises.
    """
    return Lab(brokers, **{"seed": 7} | options, config={**CONFIG, **(config or {})}, costs={**COSTS, **(costs or {})})


def opening(
    brokers: int | Mapping[int, str] = 3, generation: str = "2.0", config: Mapping[str, object] | None = None
) -> str:
    """The first line of an exercise's story: a `quiet_lab` in text. `config` adds to its configuration."""
    options = {"brokers": brokers, "generation": generation, "seed": 7}
    return f"{Command('lab', (), options | {'config': {**CONFIG, **(config or {})}, 'costs': COSTS})}\n"


def write(lab: Lab, seconds: int, megabytes: int, every: int = 1) -> dict[str, list[int]]:
    """Let clients write so many MB to `orders-0` each second, with `acks=1`.

    Returns the ends of the logs by broker, one for each `every` seconds; 0 where a broker has no copy.
    """
    ends: list[dict[int, int]] = []
    for _ in range(seconds):
        if megabytes:
            lab.produce("orders", 0, size=megabytes * 10**6, acks=1)
        lab.run_for(1)
        ends.append({at.broker: at.end for at in lab.log("orders", 0)})
    brokers = sorted({broker for each in ends for broker in each})
    return {f"broker {broker}": [each.get(broker, 0) for each in ends[every - 1 :: every]] for broker in brokers}
