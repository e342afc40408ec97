"""The clusters that most lessons begin with: nothing happens in them unasked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_ctl import Lab

COSTS = {"boot": 0.0005, "zookeeper_tick": 0}
"""Brokers start within a millisecond, so that they race; a session ends exactly at its timeout."""
CONFIG = {"auto.leader.rebalance.enable": False}


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
