"""The gauges above a picture: partitions without a leader and since when, under-replicated ones, the controller."""

import re

import pytest
from labs import lab_of, play, until_quiet

from kafka_ctl import Lab
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.cluster.travel import PILLS, arranged, route
from kafka_ctl.views.frames import Token, film
from kafka_ctl.views.gauges import Gauges


def test_a_partition_without_a_leader_is_named_with_its_time() -> None:
    """From the death of its last replica on; the picture has it in a style of its own; then a leader is back."""
    with lab_of("orders", {0: [1, 2], 1: [3, 1]}, brokers=3, seed=7) as lab:
        until_quiet(lab.kill, 1)
        killed = lab.now
        play(lab, "kill 2; run_for 3")
        made, model, gauges = film(lab.trace), ClusterModel().apply_all(lab.trace), Gauges(list(lab.trace))
        until_quiet(lab.start, 2)
        later = film(lab.trace).frames[-1].picture.gauges
    gauges.leaderless.at(model, 1000 * killed)
    offline, behind, *_ = gauges.at(model, 1000 * killed + 3000)
    assert offline == ("offline: orders-0 for 3.0 s", "1", "bad") and behind == ("under-replicated", "1", "warn")
    styles = made.looks(-1)["replica:orders-0@1"].styles.split()
    assert "leaderless" in styles and "leaderless" not in made.looks(-1)["replica:orders-1@3"].styles
    assert later[0] == ("offline", "0", "")


@pytest.mark.parametrize("view", ["cluster", "partition", "replica", "zookeeper"])
def test_each_view_marks_a_partition_without_a_leader_and_since_when(view: str) -> None:
    with lab_of("orders", {0: [1], 1: [2]}, brokers=3, seed=7) as lab:
        start = len(lab.trace)
        play(lab, "kill 1; run_for 30")
        made = film(lab.trace, view, start=start)
    last = [look for look in made.looks(-1).values() if "leaderless" in look.styles.split()]
    assert last and not any("leaderless" in look.styles.split() for look in made.looks(0).values())
    assert any(re.search(r"\d+\.\d s", text) for look in made.looks(-1).values() for text in look.texts)


def test_pills_without_room_are_counted() -> None:
    """The last pill above a broker says how many more there are; a way to what is not drawn is none."""
    with Lab(brokers=3, seed=7) as lab:
        scene = film(lab.trace).scene
    assert route(scene, "broker:1", "znode:other") == ""
    lines = [route(scene, f"broker:{number}", "broker:2") for number in (1, 2, 3)]
    tokens = [Token(line, "Fetch", ends=(f"broker:{n}", "broker:2")) for n, line in enumerate(lines, 1)]
    placed = arranged(scene, tokens)
    assert [token.label for token in placed] == ["Fetch", "Fetch +1"] and len(placed) == PILLS
    assert placed[0].place[1] - placed[1].place[1] >= 18
