"""What tests of the controller begin with: a cluster at rest, whose controller is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka_ctl.controller.controller import Controller
from kafka_ctl.generation import Generation
from kafka_ctl.lab.lab import Lab


def settled(
    generation: str | Generation,
    topics: Mapping[str, Mapping[int, Sequence[int]]],
    brokers: int,
    config: Mapping[str, Any],
    seed: int = 1,
    controller: int = 1,
) -> Lab:
    """Brokers and topics; with this seed, that broker is controller."""
    lab = Lab(brokers=brokers, generation=generation, seed=seed, config=config)
    for topic, assignment in topics.items():
        lab.create_topic(topic, assignment=assignment)
    lab.settle()
    assert lab.controller is not None
    assert lab.controller.id == controller
    return lab


def acting(lab: Lab) -> Controller:
    """The controller that acts; there is one."""
    controller = lab._world.acting()
    assert controller is not None
    return controller
