"""The metrics of the event queue, beside what the trace says."""

from __future__ import annotations

import pytest

from kafka_ctl import Lab, UnknownName
from kafka_ctl.lab.metrics import STATES, Timer, queue_metrics, timer
from kafka_ctl.trace import Record


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_events_wait_while_another_is_worked_on(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=7) as lab:
        assert lab.controller is not None
        lab.create_topic("orders", partitions=300, replication_factor=3)
        lab.create_topic("events", partitions=3, replication_factor=3)
        lab.run_until(lambda lab: lab.metrics(lab.controller.id)["EventQueueSize"] > 0, limit=10)
        busy = lab.metrics(lab.controller.id)
        assert busy["ControllerState"] == STATES.index("TopicChange")
        assert busy["EventQueueSize"] == 1
        lab.settle()
        calm = lab.metrics(lab.controller.id)
        assert (calm["ControllerState"], calm["EventQueueSize"]) == (0, 0)
        waited, topics = calm["EventQueueTimeMs"], calm["TopicChangeRateAndTimeMs"]
        assert isinstance(waited, Timer) and isinstance(topics, Timer)
        assert topics.number == 2
        assert 0 < waited.max <= topics.max  # the second topic waited for the first
        started = [r for r in lab.trace if r.kind == "event" and r.target == "started"]
        assert waited.number == sum(r.actor == f"controller-{lab.controller.id}" for r in started)


def test_a_failure_is_timed_as_leader_election() -> None:
    with Lab(brokers=3, seed=7) as lab:
        assert lab.controller is not None
        victim = next(id for id in lab.brokers if id != lab.controller.id)
        before = lab.metrics(lab.controller.id)["LeaderElectionRateAndTimeMs"]
        lab.kill(victim)
        lab.settle()
        after = lab.metrics(lab.controller.id)["LeaderElectionRateAndTimeMs"]
        assert isinstance(before, Timer) and isinstance(after, Timer)
        assert after.number == before.number + 1


def test_what_is_dropped_at_expiry_does_not_wait_any_more() -> None:
    """And was never waited for: it counts in no timer."""
    put = Record(0, 0.0, "controller-1", "event", "TopicChange", target="queued")
    gone = Record(1, 5.0, "controller-1", "event", "TopicChange", source="queued", target="dropped", cause=0)
    assert queue_metrics([put], 1) == {"ControllerState": 0, "EventQueueSize": 1}
    assert queue_metrics([put, gone], 1) == {"ControllerState": 0, "EventQueueSize": 0}


def test_figures_and_refusals() -> None:
    assert timer([3.0, 1.0, 2.0]) == Timer(3, 2.0, 3.0, 3.0)
    assert timer([float(n) for n in range(1, 201)]) == Timer(200, 100.5, 198.0, 200.0)
    with Lab(brokers=1) as lab, pytest.raises(UnknownName, match="unknown broker 9; known: 1"):
        lab.metrics(9)
    with Lab(brokers=1, generation="0.10") as lab:
        assert "EventQueueSize" not in lab.metrics(1)  # there is no queue


def test_a_new_process_begins_anew() -> None:
    """What waited in the queue of a process that died waits no more, and its timers are gone."""
    with Lab(brokers=3, seed=7) as lab:
        assert lab.controller is not None
        first = lab.controller.id
        lab.create_topic("orders", partitions=300, replication_factor=3)
        lab.create_topic("events", partitions=3, replication_factor=3)
        lab.run_until(lambda lab: lab.metrics(first)["EventQueueSize"] > 0, limit=10)
        lab.kill(first)
        down = lab.metrics(first)
        assert (down["ControllerState"], down["EventQueueSize"], down["ActiveControllerCount"]) == (0, 0, 0)
        lab.start(first)
        lab.settle()
        again = lab.metrics(first)
        assert again["EventQueueSize"] == 0
        assert "TopicChangeRateAndTimeMs" not in again
