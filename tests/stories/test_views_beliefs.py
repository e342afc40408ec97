"""What controllers and brokers believe, folded from records: what they have in memory."""

from __future__ import annotations

import pytest

from kafka_ctl import Lab
from kafka_ctl.explore.play import Failure, apply
from kafka_ctl.explore.walk import walk
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story
from kafka_ctl.trace.model import ClusterModel


@pytest.mark.parametrize("generation", GENERATIONS)
def test_folded_beliefs_are_those_in_memory(generation: str) -> None:
    """After every command of random walks: of brokers always, of the acting controller whenever all is quiet."""
    told = contexts = 0
    for seed in range(40):
        drawn = walk(generation, 9000 + seed)
        model = ClusterModel()
        with Lab(**story.opening(drawn.opening)) as lab:
            for line in drawn.commands:
                if isinstance(apply(lab, line), Failure):
                    break
                model.apply_all(lab.trace.records[model.seq + 1 :])
                where = f"seed {9000 + seed}, after {line}"
                for broker in lab._world.brokers.values():
                    if not broker.listening:
                        continue
                    beliefs = model.brokers[broker.id].beliefs
                    assert beliefs.hosted == {tuple(tp): h.state[:3] for tp, h in broker.hosted.items()}, where
                    assert beliefs.metadata == {tuple(tp): state[:3] for tp, state in broker.metadata.items()}, where
                    told += len(beliefs.hosted)
                acting = lab._world.acting()
                if line.name != "settle" or acting is None:
                    continue
                seen, context = model.controllers[acting.id], acting.context
                if seen.reads:  # the settling ended before it had read everything
                    continue
                assert (seen.acts, seen.epoch) == (True, context.epoch), where
                assert seen.live == context.brokers.keys(), where
                assert seen.shutting_down == context.shutting_down, where
                gone = context.topics_to_be_deleted
                kept = {tuple(tp): s[:3] for tp, s in context.leadership.items() if tp.topic not in gone}
                assert {key: led for key, led in seen.leadership.items() if key[0] not in gone} == kept, where
                contexts += 1
    assert told > 1000
    assert contexts > 100
