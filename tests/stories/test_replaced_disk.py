"""A broker that returns with empty disks, and the grace that a stopping process gets."""

from __future__ import annotations

import pytest
from labs import lab_of, play, until_quiet

from kafka_ctl import BadInput, Lab, TopicPartition
from kafka_ctl.brokers.controlled_shutdown import ShutdownReport

ORDERS = TopicPartition("orders", 0)


def lab_with(replicas: list[int], generation: str = "2.0") -> Lab:
    config = {"controlled.shutdown.max.retries": 100}
    return lab_of("orders", {0: replicas}, brokers=3, generation=generation, seed=1, config=config)


def ends(lab: Lab) -> dict[int, int]:
    return {log.broker: log.end for log in lab.log("orders", 0)}


def test_a_follower_on_a_new_disk_copies_everything_again(generation: str) -> None:
    with lab_with([1, 2, 3], generation) as lab:
        lab.produce("orders", 0, records=5)
        play(lab, "kill 3; settle; start 3 empty=true; settle")
        assert ends(lab) == {1: 5, 2: 5, 3: 5}
        assert sorted(lab.partition("orders", 0).isr) == [1, 2, 3]
        copied = [r.detail for r in lab.trace.slice(action="copy") if r.broker == 3]
        assert copied[-1] == "offset=0 records=1@0,2@0,3@0,4@0,5@0"
        assert lab.violations == ()
        (started,) = lab.trace.slice(kind="fault", action="start")
        assert started.detail == "empty"
        with Lab.replay(lab.story) as again, lab.fork() as other:
            assert "start 3 empty=true" in lab.story
            assert again.trace.text() == lab.trace.text() == other.trace.text()


def test_the_last_of_the_isr_on_a_new_disk_leads_an_empty_log(generation: str) -> None:
    """Kafka asks for the ISR, not for the log: what was acknowledged is lost, also on the replicas that had it."""
    with lab_with([1, 2], generation) as lab:
        lab.produce("orders", 0, records=5)
        play(lab, "kill 2; settle; kill 1; settle; start 1 empty=true; settle; start 2; settle")
        assert lab.partition("orders", 0).leader == 1
        assert sum(ends(lab).values()) == 0
        lost = {v.invariant: v.known for v in lab.violations if v.known != "KAFKA-3143"}
        assert set(lost) >= {"I4"} and set(lost.values()) == {"KIP-966"}


def test_a_generated_id_goes_with_the_disk() -> None:
    with Lab(brokers=[None, None], seed=1) as lab:
        lab.settle()
        assert sorted(lab.brokers) == [1001, 1002]
        play(lab, "kill 1002; settle; start 1002 empty=true; settle")
        assert sorted(lab.brokers) == [1001, 1003]


@pytest.mark.parametrize("wait", [True, False])
def test_who_does_not_stop_in_time_is_killed(wait: bool) -> None:
    """Its leadership has nowhere to go, so that it asks again every five seconds."""
    with lab_with([1, 2]) as lab:
        until_quiet(lab.kill, 2)
        start = lab.now
        report = until_quiet(lab.shutdown, 1, wait=wait, grace=30)
        (killed,) = [r for r in lab.trace.slice(kind="fault", action="kill") if r.broker == 1]
        assert killed.detail == "grace=30"
        assert killed.time_ms / 1000 - start == pytest.approx(30, abs=0.01)
        assert next((r.kind, r.action) for r in lab.trace.causes(killed.seq)) == ("event", "shutdown")
        assert lab.brokers[1].state == "down"
        ended = ShutdownReport(6, (ORDERS,), "the process has ended")
        assert report == (ended if wait else None)
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


def test_who_stops_in_time_is_not_killed() -> None:
    with lab_with([1, 2]) as lab, lab_with([1, 2]) as other:
        report = lab.shutdown(1, grace=30)
        assert report is not None and report.error is None
        other.shutdown(1)
        lab.start(1)
        other.start(1)
        lab.settle()
        other.settle()
        assert lab.now == other.now
        lab.run_for(60)
        assert lab.brokers[1].state == "running"
        assert not lab.trace.slice(kind="fault", action="kill")
        with pytest.raises(BadInput, match="a grace cannot be -1"):
            lab.shutdown(1, grace=-1)


def test_grace_in_which_a_leader_may_still_answer() -> None:
    """Nothing at all is what kill -9 gives; a leader that is killed keeps its partitions without one for a while."""
    with lab_with([1, 2]) as lab:
        lab.shutdown(1, grace=0)
        assert lab.partition("orders", 0).leader == 1
        lab.settle()
        assert lab.partition("orders", 0).leader == 2
