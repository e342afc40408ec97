"""The metrics of the event queue, beside what the trace says."""

from __future__ import annotations

import pytest
from labs import until_quiet

from kafka_ctl import Lab, UnknownName
from kafka_ctl.lab.metrics import STATES, Timer, listener_metrics, queue_metrics, timer
from kafka_ctl.trace import Record


def two_topics_made(generation: str) -> Lab:
    """A lab whose controller works on a large topic, while a second one waits in its queue."""
    lab = Lab(brokers=3, generation=generation, seed=7)
    lab.create_topic("orders", partitions=300, replication_factor=3)
    lab.create_topic("events", partitions=3, replication_factor=3)
    lab.run_until(lambda lab: lab.metrics(lab.controller.id)["EventQueueSize"] > 0, limit=10)
    return lab


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_events_wait_while_another_is_worked_on(generation: str) -> None:
    with two_topics_made(generation) as lab:
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


def test_a_failure_is_timed_as_leader_election(generation: str) -> None:
    with Lab(brokers=3, generation=generation, seed=7) as lab:
        victim = next(id for id in lab.brokers if id != lab.controller.id)
        before = lab.metrics(lab.controller.id)["LeaderElectionRateAndTimeMs"]
        until_quiet(lab.kill, victim)
        after = lab.metrics(lab.controller.id)["LeaderElectionRateAndTimeMs"]
        assert isinstance(before, Timer) and isinstance(after, Timer)
        assert after.number == before.number + 1
        assert 0 <= after.max < 10


def test_the_timer_of_0_10_begins_with_the_lock() -> None:
    """Reading `/brokers/ids`, and waiting for the lock, count in no timer."""
    begun = Record(0, 10.0, "controller-1", "event", "BrokerChange", source="queued", target="started")
    read = Record(1, 12.0, "broker-1", "zk", "children", path="/brokers/ids", cause=0)
    done = Record(2, 20.0, "controller-1", "event", "BrokerChange", target="done", cause=0, detail="waited=5ms")
    assert listener_metrics([begun, read, done], 1) == {"LeaderElectionRateAndTimeMs": Timer(1, 3.0, 3.0, 3.0)}
    assert listener_metrics([begun, read], 1) == {}


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
    with two_topics_made("2.0") as lab:
        first = lab.controller.id
        lab.kill(first)
        down = lab.metrics(first)
        assert (down["ControllerState"], down["EventQueueSize"], down["ActiveControllerCount"]) == (0, 0, 0)
        until_quiet(lab.start, first)
        again = lab.metrics(first)
        assert again["EventQueueSize"] == 0
        assert "TopicChangeRateAndTimeMs" not in again
