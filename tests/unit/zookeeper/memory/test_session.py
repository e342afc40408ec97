"""When a simulated session ends whose client has fallen silent: as on a real ZooKeeper, by the seed."""

import pytest
from labs import play, until_quiet

from kafka_ctl import Costs, Lab

TIMEOUT, TICK = 6.0, 2.0


def quiet(seed: int, costs: Costs | None = None, seconds: float = 0.0) -> float:
    """The seconds from a broker's death to the end of its session."""
    with Lab(seed=seed, costs=costs) as lab:
        lab.run_for(seconds)
        killed = lab.now
        until_quiet(lab.kill, 2)
        (expired,) = [r for r in lab.trace if r.action == "expired"]
        return expired.time_ms / 1000 - killed


def test_a_session_ends_between_two_thirds_of_its_timeout_and_a_tick_after_it() -> None:
    """The last ping was up to a third of the timeout before the death; the server looks once a tick."""
    seen = [quiet(seed, seconds=0.37 * seed) for seed in range(60)]
    assert all(TIMEOUT * 2 / 3 <= end <= TIMEOUT + TICK for end in seen)
    assert min(seen) < 5
    assert max(seen) > 7
    assert len({round(end, 1) for end in seen}) > 10


def test_the_same_seed_ends_it_at_the_same_moment() -> None:
    assert quiet(5) == quiet(5) != quiet(6)


@pytest.mark.parametrize("seed", range(5))
def test_without_a_tick_it_ends_exactly_at_its_timeout(seed: int) -> None:
    assert quiet(seed, Costs(zookeeper_tick=0), 0.37 * seed) == pytest.approx(TIMEOUT, abs=1e-6)


def test_sessions_end_on_ticks_of_one_server() -> None:
    """Whoever died within one tick may end in the same one."""
    with Lab(brokers=5, seed=3) as lab:
        lab.run_for(1.1)
        for broker in (2, 3, 4, 5):
            lab.kill(broker)
            lab.run_for(0.7)
        lab.settle()
        ends = [r.time_ms / 1000 for r in lab.trace if r.action == "expired"]
    assert len(ends) == 4
    assert all(abs((end - ends[0]) / TICK - round((end - ends[0]) / TICK)) < 1e-6 for end in ends)


def test_a_short_pause_may_outlive_the_session_or_not() -> None:
    """Five seconds without a ping are too long for some sessions of six seconds, and not for others."""
    ended = set()
    for seed in range(20):
        with Lab(seed=seed) as lab:
            lab.run_for(0.3 * seed)
            until_quiet(lab.pause, 2, 5)
            ended.add(any(r.action == "expired" for r in lab.trace))
    assert ended == {True, False}


def test_a_server_that_starts_gives_every_session_its_whole_timeout_again() -> None:
    with Lab(seed=1) as lab:
        play(lab, "kill 2; stop_zookeeper; run_for 60; start_zookeeper")
        started = lab.now
        lab.settle()
        (expired,) = [r for r in lab.trace if r.action == "expired"]
    assert started + TIMEOUT <= expired.time_ms / 1000 <= started + TIMEOUT + TICK


def test_a_session_shorter_than_two_ticks_is_looked_at_more_often() -> None:
    """A ZooKeeper grants no session shorter than two ticks, so its tick must be short."""
    for seed in range(10):
        with Lab(seed=seed, config={"zookeeper.session.timeout.ms": 1000}) as lab:
            lab.run_for(0.13 * seed)
            killed = lab.now
            until_quiet(lab.kill, 2)
            (expired,) = [r for r in lab.trace if r.action == "expired"]
            assert 2 / 3 <= expired.time_ms / 1000 - killed <= 1.5


def test_news_of_the_end_that_is_on_its_way_when_the_connection_breaks_comes_after_it() -> None:
    """The client has not heard that its session is over; connected again, it learns that, and opens another one."""
    story = """
lab brokers=[1,2] generation=0.10 seed=0
pause 2 3.9873
run_for 3.2384
delay zookeeper 2 1
disconnect 2 zookeeper one_way=true
settle
heal
settle
"""
    with Lab.replay(story) as lab:
        assert {"/brokers/ids/1", "/brokers/ids/2"} <= set(lab.znodes())
        assert not lab.violations


def test_a_healed_cut_does_not_shorten_the_next_one() -> None:
    """A client gives up two thirds of the timeout after the cut that lasts."""
    with Lab(brokers=1, seed=1) as lab:
        play(lab, "disconnect zookeeper 1 one_way=true; run_for 3; heal; run_for 0.5")
        since, cut = len(lab.trace), lab.now
        play(lab, "disconnect zookeeper 1 one_way=true; run_for 5")
        (gone,) = lab.trace.slice(since, kind="zk", action="disconnected", actor="broker-1")
        assert gone.time_ms / 1000 - cut == pytest.approx(TIMEOUT * 2 / 3)
