"""The quiet cluster of the lessons: one call, and what is given beside it."""

import pytest
from labs import until_quiet

from kafka_ctl import Lab
from kafka_ctl_course import quiet_lab
from kafka_ctl_course.quiet import opening


def test_nothing_happens_in_it_unasked() -> None:
    """Not in an hour after a leader has died and returned: leaders stay where they are."""
    lab = quiet_lab()
    lab.create_topic("orders", assignment={0: [1, 2]})
    for command in ("settle", "kill 1", "settle", "start 1", "run_for 3600"):
        lab.do(command)
    assert lab.partition("orders", 0).leader == 2


def test_a_session_ends_exactly_at_its_timeout() -> None:
    lab = quiet_lab(seed=8)
    until_quiet(lab.kill, lab.controller.id if lab.controller else 1)
    killed, ended = lab.trace.slice(action="kill")[0], lab.trace.slice(action="expired")[0]
    assert round(ended.time_ms - killed.time_ms, 6) == 6000


def test_options_are_added() -> None:
    """To its own: of configuration and costs, and those of every lab."""
    lab = quiet_lab([1, 2], config={"min.insync.replicas": 2}, costs={"stop": 3.0}, generation="2.4")
    assert (sorted(lab.brokers), lab.generation.name, lab.seed) == ([1, 2], "2.4", 7)
    assert lab.story.count("auto.leader.rebalance.enable") == lab.story.count("min.insync.replicas") == 1
    assert '"stop":3' in lab.story and '"zookeeper_tick":0' in lab.story


@pytest.mark.parametrize("given", [{}, {"brokers": {1: "a", 2: "b"}, "config": {"min.insync.replicas": 2}}], ids=str)
def test_the_story_of_an_exercise_opens_it(given: dict[str, object]) -> None:
    """The text and the call open the same lab."""
    with Lab.replay(opening(**given)) as replayed, quiet_lab(generation="2.0", **given) as called:
        assert replayed.story == called.story
        assert replayed.trace.records == called.trace.records
