"""The small pictures of the lessons, and their widgets."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.jupyter.widgets import CurveWidget, GuessWidget
from kafka_ctl.views.teaching import Drawing, beliefs, curve, logs, walk


def words(drawing: Drawing) -> list[str]:
    """The text of a picture, which has to be well-formed."""
    return [node.text or "" for node in ElementTree.fromstring(drawing.svg).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "end"),
    [
        ((3, 2), {2, 3}, False, "leader 2, ISR (3, 2)"),
        ((3, 2), {1}, False, "nobody leads"),
        ((3, 2), {1}, True, "leader 1, ISR (1,), unclean"),
        ((), set(), True, "nobody leads"),
    ],
)
def test_a_walk_ends_where_the_election_does(isr: tuple, live: set, unclean: bool, end: str) -> None:
    drawing = walk([1, 2, 3], isr, live, unclean)
    assert end in words(drawing) and end.removesuffix(", unclean") == repr(drawing).splitlines()[-1]
    assert sum("-> leads" in line for line in repr(drawing).splitlines()) == (end != "nobody leads")


def test_a_walk_needs_replicas() -> None:
    with pytest.raises(BadInput, match="has nobody to lead"):
        walk([], [], {1})


def test_logs_are_rows_of_records() -> None:
    with Lab() as lab:
        lab.create_topic("orders", assignment={0: [1, 2]})
        lab.settle()
        lab.produce("orders", 0, records=3)
        drawing = logs(lab.log("orders", 0), lost=[3])
    assert repr(drawing).splitlines()[0] == "broker 1: 1@0 2@0 3@0 |"
    assert words(drawing).count("e 0") == 6 and drawing.svg.count('stroke-width="2"') == 2
    assert words(logs([]))


def test_beliefs_that_differ_from_zookeeper_are_red() -> None:
    """First all agree; then ZooKeeper is edited, so that every broker that is up is wrong in one way or in two."""
    with Lab(brokers=4) as lab:
        lab.create_topic("orders", assignment={0: [1, 2]})
        lab.settle()
        agreed = beliefs(lab, "orders", 0)
        lab.kill(4)
        path = "/brokers/topics/orders/partitions/0/state"
        lab.write_znode(path, lab.znodes()[path][0].decode().replace('"leader":1', '"leader":2'))
        edited = beliefs(lab, "orders", 0)
        with pytest.raises(UnknownName, match="orders-1"):
            beliefs(lab, "orders", 1)
    assert repr(agreed).splitlines()[1:4:2] == ["broker 1: leads, says 1", "broker 3: no replica, says 1"]
    assert repr(edited).splitlines() == [
        "ZooKeeper: leader 2",
        "broker 1: leads (!), says 1 (!)",
        "broker 2: follows (!), says 1 (!)",
        "broker 3: no replica, says 1 (!)",
    ]
    assert agreed.svg.count('stroke-width="3"') == 0 and edited.svg.count('stroke-width="3"') == 5
    assert {"ZooKeeper", "leader 2", "broker 3", "says 1"} <= set(words(edited))


def test_a_curve_is_told_as_text() -> None:
    drawing = curve("How long", "down (s)", [5, 20], {"off": [6, 20], "on": [6, 6]}, at=1)
    assert repr(drawing).splitlines() == ["How long", "down (s): 5, 20", "off: 6, 20", "on: 6, 6"]
    assert {"How long", "down (s)", "off: 20", "on: 6"} <= set(words(drawing))
    bundle = drawing._repr_mimebundle_()
    assert bundle["text/plain"] == repr(drawing) and 'src="data:image/svg+xml' in bundle["text/html"]


@pytest.mark.parametrize("lines", [{"a": [1]}, {str(n): [1, 2] for n in range(5)}])
def test_a_curve_that_cannot_be_is_refused(lines: dict) -> None:
    with pytest.raises(BadInput, match="a curve needs"):
        curve("t", "x", [1, 2], lines)


def test_the_slider_moves_the_mark() -> None:
    widget = CurveWidget("How long", "down (s)", [5, 20], {"off": [6, 20]})
    before = widget.picture.value
    widget.slider.value = 1
    assert widget.picture.value != before
    assert repr(widget) == repr(widget.drawing)


def test_a_guess_is_committed_to_once() -> None:
    widget = GuessWidget("05.a")
    assert "( ) 2" in repr(widget) and "looked" not in repr(widget)
    widget.buttons[1].click()
    assert "You looked at the assignment" in widget.reply.value
    assert all(button.disabled for button in widget.buttons) and widget.buttons[1].icon == "check"
    with pytest.raises(UnknownName, match="unknown guess 'x'"):
        GuessWidget("x")
