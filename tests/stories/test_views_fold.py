"""The model folded from the records alone: what it says of states is what the acting controller believes."""

from __future__ import annotations

import pytest
from labs import acting

from kafka_ctl import Lab
from kafka_ctl.explore.play import Failure, apply
from kafka_ctl.explore.walk import walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.partition import NON_EXISTENT
from kafka_ctl.replica import NON_EXISTENT as NO_REPLICA
from kafka_ctl.trace import SET
from kafka_ctl.trace.model import ClusterModel


def believed(lab: Lab) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int, int], str]]:
    """The states in the acting controller's context; what does not exist is left out."""
    context = acting(lab).context
    partitions = {tuple(tp): str(state) for tp, state in context.partitions.items() if state is not NON_EXISTENT}
    return partitions, {tuple(r): str(state) for r, state in context.replicas.items() if state is not NO_REPLICA}  # type: ignore[misc]


def folded(lab: Lab) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int, int], str]]:
    """The same from the trace."""
    model = ClusterModel().apply_all(lab.trace)
    partitions = {key: seen.state for key, seen in model.partitions.items() if seen.state != NON_EXISTENT}
    return partitions, {key: state for key, state in model.replicas.items() if state != NO_REPLICA}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_folded_states_are_those_of_the_controller(generation: str) -> None:
    """After failovers, deletions, reassignments and faults, whenever all is quiet under one controller."""
    compared = failovers = 0
    for seed in range(40):
        drawn = walk(generation, 9000 + seed)
        with Lab(**story.opening(drawn.opening)) as lab:
            for line in drawn.commands:
                if isinstance(apply(lab, line), Failure):
                    break
                acting = [b for b in lab.world.brokers.values() if b.controller.is_active]
                reads = lab.world.store.up  # else a new controller has not read what there is
                if line.name == "settle" and reads and len(acting) == 1 and lab.controller is not None:
                    assert folded(lab) == believed(lab), f"seed {9000 + seed}, after {line}"
                    compared += 1
            failovers += any(r.action == SET and r.kind == "partition" for r in lab.trace)
    assert compared > 100
    assert failovers > 10
