"""What a failure costs a producer, and a high watermark of one's own."""

import math
from typing import Any

import pytest
from labs import until_quiet
from prose import Prose, source

from kafka_ctl import Costs, Lab
from kafka_ctl.errors import BadInput, PluginFailed
from kafka_ctl.lab.outage import longest_gap


def orders(**config: Any) -> Lab:
    """One partition on three brokers, led by broker 1."""
    lab = Lab(
        generation="2.4",
        seed=7,
        costs=Costs(boot=0.0005, zookeeper_tick=0),
        config={"auto.leader.rebalance.enable": False} | config,
    )
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    return lab


@pytest.mark.parametrize("seconds", [2, 6])
def test_a_crash_costs_the_session_timeout(seconds: int) -> None:
    with orders(**{"zookeeper.session.timeout.ms": 1000 * seconds}) as lab:
        lab.kill(1)
        assert 1000 * seconds < longest_gap(lab, "orders", 0, seconds + 2) < 1000 * seconds + 100


def test_a_controlled_shutdown_costs_next_to_nothing() -> None:
    with orders() as quiet, orders() as leaving:
        leaving.shutdown(1, wait=False)
        gaps = [longest_gap(lab, "orders", 0, 2) for lab in (quiet, leaving)]
        assert round(gaps[0]) == 50 and 50 < gaps[1] < 60


def test_without_an_answer_the_gap_is_the_whole_time() -> None:
    with orders() as lab:
        for broker in (1, 2, 3):
            lab.kill(broker)
        assert round(longest_gap(lab, "orders", 0, 1)) == 1000


@pytest.mark.parametrize(
    "wrong", [{"acks": 0}, {"acks": "0"}, {"every": 0}, {"every": -1}, {"every": math.nan}, {"every": "1"}], ids=source
)
def test_what_cannot_be_measured_is_refused(prose: Prose, wrong: dict[str, Any]) -> None:
    """With acks=0 there are no acknowledgements: an answer would come though the leader is dead."""
    with orders() as lab:
        story = lab.story
        prose.refuses(BadInput, longest_gap, lab, "orders", 0, 1, **wrong)
        assert lab.story == story


def test_a_high_watermark_of_ones_own(prose: Prose) -> None:
    """It is given every assigned replica, and the invariants watch what it does."""
    given: list[tuple[Any, ...]] = []

    def own_end(ends: dict[int, int], isr: tuple[int, ...], leader: int) -> int:
        given.append((ends, isr, leader))
        return ends[leader]

    with orders().fork(rules={"high_watermark": own_end}) as lab:
        lab.produce("orders", 0, records=2)
        assert given[0] == ({1: 2, 2: -1, 3: -1}, (1, 2, 3), 1)
        assert {violation.invariant for violation in lab.violations} == {"I1", "I3", "I24"}
    for wrong in (lambda *_: 9, lambda *_: None):
        with orders().fork(rules={"high_watermark": wrong}) as lab, prose.refused(PluginFailed):
            lab.produce("orders", 0)
