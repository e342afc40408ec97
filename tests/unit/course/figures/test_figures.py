"""The figures of lessons: a deletion, a placement, a reassignment and its znodes; widgets, small pictures."""

import re
from html import escape
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from ipywidgets import Button
from labs import lab_of, play, until_quiet
from prose import Prose, refuses

from kafka_ctl import BadInput, Costs, Lab, UnknownName
from kafka_ctl.assignment import assign
from kafka_ctl.balance import BrokerBalance
from kafka_ctl.exercises.exercise import PictureGuess
from kafka_ctl.jupyter.exercises import GuessPicture, GuessWidget
from kafka_ctl.views.widget.player import Player
from kafka_ctl_course import GUESSES, quiet_lab
from kafka_ctl_course.figures.copies import copies_over_time, moment
from kafka_ctl_course.figures.deletion import deletion, facts
from kafka_ctl_course.figures.placement import grid, placement
from kafka_ctl_course.figures.reassignment import reassignment, steps
from kafka_ctl_course.figures.reassignment_znodes import lists, settings, throttles
from kafka_ctl_course.figures.teaching import Drawing, beliefs, curve, logs, shares, walk
from kafka_ctl_course.widgets import CurveWidget, TurnWidget


def words(drawing: Drawing) -> list[str]:
    """The text of a picture, which has to be well-formed."""
    return [node.text or "" for node in ElementTree.fromstring(drawing.svg).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "end"),
    [
        ((3, 2), {2, 3}, False, "leader 2, ISR (3, 2)"),
        ((3, 2), {1}, False, "no broker leads"),
        ((3, 2), {1}, True, "leader 1, ISR (1,), unclean"),
        ((), set(), True, "no broker leads"),
    ],
)
def test_a_walk_ends_where_the_election_does(isr: tuple, live: set, unclean: bool, end: str) -> None:
    drawing = walk([1, 2, 3], isr, live, unclean)
    assert end in words(drawing) and end.removesuffix(", unclean") == repr(drawing).splitlines()[-1]
    assert sum("-> leads" in line for line in repr(drawing).splitlines()) == (end != "no broker leads")


def test_a_walk_needs_replicas(prose: Prose) -> None:
    prose.refuses(BadInput, walk, [], [], {1})


def test_logs_are_rows_of_records() -> None:
    with lab_of("orders", {0: [1, 2]}) as lab:
        lab.produce("orders", 0, records=3)
        drawing = logs(lab.log("orders", 0), lost=[3])
    assert repr(drawing).splitlines()[0] == "broker 1: 1@0 2@0 3@0 |"
    assert words(drawing).count("e 0") == 6 and drawing.svg.count('stroke-width="2"') == 2
    assert words(logs([]))


def test_beliefs_that_differ_from_zookeeper_are_red() -> None:
    """First all agree; then ZooKeeper is edited, so that every broker that is up is wrong in one way or in two."""
    with lab_of("orders", {0: [1, 2]}, brokers=4) as lab:
        agreed = beliefs(lab, "orders", 0)
        lab.kill(4)
        path = "/brokers/topics/orders/partitions/0/state"
        lab.write_znode(path, lab.znodes()[path][0].decode().replace('"leader":1', '"leader":2'))
        edited = beliefs(lab, "orders", 0)
        refuses(UnknownName, "orders-1", beliefs, lab, "orders", 1)
    assert repr(agreed).splitlines()[1:4:2] == ["broker 1: leads, says 1", "broker 3: no replica, says 1"]
    assert repr(edited).splitlines() == [
        "ZooKeeper: leader 2",
        "broker 1: leads (!), says 1 (!)",
        "broker 2: follows 1 (!), says 1 (!)",
        "broker 3: no replica, says 1 (!)",
    ]
    assert agreed.svg.count('stroke-width="3"') == 0 and edited.svg.count('stroke-width="3"') == 5
    assert {"ZooKeeper", "leader 2", "broker 3", "says 1"} <= set(words(edited))


def test_a_curve_is_reported_as_text() -> None:
    drawing = curve("How long", "down (s)", [5, 20], {"off": [6, 20], "on": [6, 6]}, at=1)
    assert repr(drawing).splitlines() == ["How long", "down (s): 5, 20", "off: 6, 20", "on: 6, 6"]
    assert {"How long", "down (s)", "off: 20", "on: 6"} <= set(words(drawing))
    bundle = drawing._repr_mimebundle_()
    assert bundle["text/plain"] == repr(drawing) and 'src="data:image/svg+xml' in bundle["text/html"]


def test_the_names_of_a_curve_are_at_their_lines_ends() -> None:
    """In the order of the ends, none on another, also where all lines end at one place."""
    for ends in ([100, 52, 13, 7], [5, 5, 5, 5], [0, 0, 0, 100]):
        lines = {f"line {n}": [1, end] for n, end in enumerate(ends)}
        drawn = curve("Ends", "x", [1, 2], lines).svg
        places = {n: float(y) for y, n in re.findall(r'y="([\d.]+)"[^>]*>line (\d)<', drawn)}
        assert len(places) == 4 and max(places.values()) < 210 and 'width="538"' in drawn
        order = sorted(places, key=lambda n: places[n])
        assert [ends[int(n)] for n in order] == sorted(ends, reverse=True)
        assert all(places[b] - places[a] >= 17.9 for a, b in pairwise(order))


def test_a_curve_says_where_its_steps_are_not_to_scale() -> None:
    """A straight line is bent there; where values are equally far apart, nothing is said."""
    uneven, even = (curve("Cost", "partitions", values, {"2.0": values}) for values in ([1, 10, 100], [1, 2, 3]))
    assert "partitions (not to scale)</text>" in uneven.svg
    assert "partitions</text>" in even.svg


@pytest.mark.parametrize("lines", [{"a": [1]}, {str(n): [1, 2] for n in range(5)}])
def test_a_curve_that_cannot_be_is_refused(lines: dict) -> None:
    refuses(BadInput, "a curve needs", curve, "t", "x", [1, 2], lines)


def test_the_slider_moves_the_mark() -> None:
    widget = CurveWidget("How long", "down (s)", [5, 20], {"off": [6, 20]})
    before = widget.picture.value
    assert widget.slider.value == 1  # its peak
    widget.slider.value = 0
    assert widget.picture.value != before
    assert repr(widget) == repr(widget.drawing)


def deaths(copies: int = 2, dead: bool = False) -> Drawing:
    """The copies of a partition, of three brokers."""
    lab = quiet_lab()
    lab.create_topic("orders", replication_factor=copies)
    if dead:
        lab.kill(1)
    lab.settle()
    print("leader", lab.partition("orders", 0).leader)
    return placement(lab, "orders")


def test_what_is_turned_runs_again() -> None:
    """What it shows without a kernel is the same picture, and the settings."""
    widget = TurnWidget(deaths, copies=(1, 4), dead=False)
    before = widget.out.value
    assert repr(widget).startswith("copies: 2, dead: False\nleader 1\n1: P")
    widget.kwargs_widgets[1].value = True
    assert before != widget.out.value == widget.drawn["text/html"] and widget.printed == "leader 2\n"
    bundle = widget._repr_mimebundle_()[0]
    assert "copies: 2, dead: True\nleader 2" in bundle["text/html"] and "<svg" in bundle["image/svg+xml"]


def test_a_setting_that_is_refused_shows_the_sentence() -> None:
    widget = TurnWidget(deaths, copies=(1, 4), dead=False)
    widget.kwargs_widgets[0].value = 4
    assert widget.printed.endswith("larger than available brokers: 3") and widget.out.value == ""
    widget.kwargs_widgets[0].value = 3
    assert widget.printed == "leader 1\n" and "<img" in widget.out.value


def marks(button: Button) -> list[str]:
    """The classes of a button for the style sheet."""
    return list(button.get_state()["_dom_classes"])


def test_a_guess_is_committed_to_once() -> None:
    widget = GuessWidget("05.b")
    assert "( ) 4" in repr(widget) and "stopped" not in repr(widget)
    widget.buttons[2].click()
    assert "</i>. Not right. " in widget.reply.value and "Broker 2 stopped fetching" in widget.reply.value
    assert all(button.disabled for button in widget.buttons) and widget.buttons[2].icon == "times"
    assert list(map(marks, widget.buttons)).count(["kc-option"]) == len(widget.buttons) - 1
    again = GuessWidget("05.b")
    again.buttons[again.guess.right].click()
    assert again.buttons[again.guess.right].icon == "check" and "</i>. Right. " in again.reply.value
    assert marks(widget.buttons[2])[1:] == ["kc-wrong"]
    assert marks(again.buttons[again.guess.right])[1:] == ["kc-right"]
    assert "<code>state</code>" in GuessWidget("02.d").asked[0].value
    refuses(UnknownName, "unknown guess 'x'", GuessWidget, "x")


PICTURES = {name: guess for name, guess in GUESSES.items() if isinstance(guess, PictureGuess)}


@pytest.mark.parametrize("name", PICTURES)
def test_a_guess_in_the_picture_is_answered_by_a_run(name: str) -> None:
    """What is right is read off the run; every remark is about something that is wrong; the run is played below."""
    guess = PICTURES[name]
    widget = GuessWidget(name)
    picture = widget.picture
    assert picture is not None and len(picture) == 1 and picture.kind == guess.kind
    drawn = {part.of or part.id for part in picture.films[0].scene.parts.values()} | {"none"}
    with Lab.replay(guess.before + guess.run) as lab:
        right = guess.outcome(lab)
    assert right and right <= drawn and guess.hints.keys() <= drawn - right
    wrong = next(one for one in guess.hints if one != "none")
    picture.guessed = [wrong]
    if picture.many:
        assert picture.answering, "several can be chosen"
        widget.buttons[0].click()
    assert not picture.answering and widget.buttons[0].disabled
    assert escape(guess.hints[wrong]) in widget.reply.value and "Not right: in" in widget.reply.value
    assert escape(guess.why) in widget.reply.value
    played = widget.children[-1]
    assert isinstance(played, Player) and len(played) > 5 and not isinstance(played, GuessPicture)
    reported = widget.reply.value
    widget.commit()
    assert widget.reply.value == reported and widget.children[-1] is played, "once"


@pytest.mark.parametrize("name", PICTURES)
def test_a_right_guess_in_the_picture_is_marked_as_right(name: str) -> None:
    guess, widget = PICTURES[name], GuessWidget(name)
    with Lab.replay(guess.before + guess.run) as lab:
        right = guess.outcome(lab)
    widget.picture.guessed = sorted(right)
    widget.commit()
    assert "Right: in the run" in widget.reply.value and not any(
        hint in widget.reply.value for hint in guess.hints.values()
    )


@pytest.mark.parametrize("name", PICTURES)
def test_what_is_saved_of_a_guess_does_not_answer_it(name: str) -> None:
    """The question, and the cluster before the run."""
    guess, widget = PICTURES[name], GuessWidget(name)
    bundle = widget._repr_mimebundle_()[0]
    assert bundle["text/plain"].split() == guess.text.split()
    saved = " ".join(str(value) for kind, value in bundle.items() if "widget" not in kind)
    assert guess.why not in saved and not any(hint in saved for hint in guess.hints.values())
    assert "<svg" in bundle["image/svg+xml"] and "killed" not in bundle["image/svg+xml"].split("</title>")[0]


@pytest.mark.parametrize("name", GUESSES)
def test_a_question_as_text_fits_a_narrow_notebook(name: str) -> None:
    """An option's second line stands under its first word."""
    guess, lines = GUESSES[name], repr(GuessWidget(name)).splitlines()
    assert max(map(len, lines)) <= 72 and " ".join(lines).split() == guess.text.split()
    assert all(not line.startswith(" ") or line.startswith(("  ( ) ", " " * 6)) for line in lines)


def test_nobody_can_be_guessed() -> None:
    widget = GuessWidget("05.a")
    widget.buttons[0].click()
    assert "You say: <i>no broker</i>" in widget.reply.value and "are in sync" in widget.reply.value


@pytest.fixture
def stuck() -> Lab:
    """Broker 1 is down with five records of a topic that is to be deleted."""
    lab = lab_of("orders", {0: [1, 2, 3]}, brokers=3, seed=7, costs=Costs(boot=0.0005))
    play(lab, "produce orders 0 records=5; kill 1; settle; delete_topic orders; settle")
    return lab


def test_three_places_of_a_deletion(prose: Prose, stuck: Lab) -> None:
    drawing = deletion(stuck, "orders")
    prose(repr(drawing))
    ElementTree.fromstring(drawing.svg)


def test_a_request_that_only_the_controller_knows_is_marked(stuck: Lab) -> None:
    """Its memory is no znode."""
    until_quiet(stuck.delete_znode, "/admin/delete_topics/orders")
    memory = stuck.controller_memory()
    assert memory is not None and memory.deleting == ("orders",)
    assert "memory: yes (!)" in repr(deletion(stuck, "orders"))
    until_quiet(stuck.start, 1)
    assert facts(stuck, "orders") == (False, False, False, ())
    assert repr(deletion(stuck, "orders")).endswith("no replica, no copy")


def test_without_a_controller_there_is_no_memory(prose: Prose, stuck: Lab) -> None:
    for broker in (2, 3):
        stuck.kill(broker)
    stuck.settle()
    assert stuck.controller_memory() is None
    prose(repr(deletion(stuck, "orders")))


def test_a_grid_has_a_row_for_each_broker_and_a_column_for_each_partition(prose: Prose) -> None:
    drawing = grid({0: [1, 2], 1: [2, 3]}, racks={1: "a", 2: "b", 3: "a", 4: None})
    prose(repr(drawing))
    ElementTree.fromstring(drawing.svg)


def test_who_leads_instead_of_a_dead_preferred_leader(prose: Prose) -> None:
    """And what nobody leads is said."""
    with Lab(brokers=3, seed=7, costs=Costs(boot=0.0005)) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [1, 3]})
        play(lab, "lag 3 orders 1; settle; kill 1; settle")
        prose(repr(placement(lab, "orders")))
        prose.refuses(UnknownName, placement, lab, "order")


@pytest.mark.parametrize("number", [0, 61])
def test_a_grid_has_a_limit(prose: Prose, number: int) -> None:
    prose.refuses(BadInput, grid, assign(range(3), number, 2) if number else {})


@pytest.mark.parametrize("number", [20, 21, 60])
def test_the_numbers_above_a_grid_do_not_touch(number: int) -> None:
    texts = ElementTree.fromstring(grid(assign(range(3), number, 2)).svg).iter("{http://www.w3.org/2000/svg}text")
    numbers = [(float(each.attrib["x"]), each.text or "") for each in texts if each.attrib["y"] == "42"]
    assert len(numbers) >= number / 2
    assert all(x + 7.3 * len(text) + 3 < after for (x, text), (after, _) in pairwise(numbers))


def width(drawing: Drawing) -> int:
    """Pixels; JupyterLab has 811 beside its file browser in a window of 1,280."""
    return int(ElementTree.fromstring(drawing.svg).attrib["width"])


def test_pictures_of_usual_sizes_need_no_scrolling() -> None:
    """In a window of 1,024 pixels JupyterLab has 572 beside its file browser."""
    plan = {("orders", 0): [1, 2, 4], ("orders", 1): [4, 2, 3]}
    with lab_of("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, brokers=5, seed=7) as lab:
        lab.execute_reassignment(plan, throttle=1_000_000)
        found = [throttles(lab), deletion(lab, "nothing"), beliefs(lab, "orders", 0)]
        found += [grid(assign(range(3), 20, 2)), copies_over_time([moment(lab, "orders", 0)] * 6)]
    with lab_of("orders", {0: [1, 2, 3]}, seed=7) as lab:
        found.append(deletion(lab, "orders"))
    moving = BrokerBalance(1, 9, 4, 5, 5 / 9, "leaves out 5: a reassignment is running")
    assert all(width(drawing) <= 572 for drawing in [*found, shares([moving])])


def moved(new: list[int], generation: str = "2.0") -> Lab:
    lab = lab_of("orders", {0: [1, 2, 3]}, brokers=6, seed=7, generation=generation, costs=Costs(boot=0.0005))
    lab.reassign({("orders", 0): new}, through="zookeeper")
    return lab


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_twelve_steps_in_order(generation: str) -> None:
    with moved([2, 3, 4], generation) as lab:
        lab.settle()
        assert [step.number for step in steps(lab, "orders", 0)] == list(range(1, 13))
        text = repr(reassignment(lab, "orders", 0)).splitlines()
        reported = [line.split("AR ")[-1].split() for line in text]
        assert [row[2] for row in reported[2:4]] == ["1,2,3", "1,2,3,4"]
        assert [row[6] for row in reported] == list("0111112333333")
        assert [row[4] for row in reported] == ["1"] * 6 + ["2"] * 7
        assert [row[-1] for row in reported[-2:]] == ["1,2,3,4", "2,3,4"]
        assert width(reassignment(lab, "orders", 0)) <= 811


@pytest.mark.parametrize(
    ("new", "left_out"),
    [([1, 2, 3, 4], {8, 9}), ([1, 2], {1, 2, 3, 4}), ([3, 2, 1], {1, 2, 3, 4, 8, 9}), ([4, 5, 6], set())],
)
def test_steps_that_a_move_does_not_need(new: list[int], left_out: set[int]) -> None:
    """A move that adds no replica begins with step 5; one that removes none leaves out 8 and 9."""
    with moved(new) as lab:
        lab.settle()
        assert {*range(1, 13)} - {step.number for step in steps(lab, "orders", 0)} == left_out


def test_a_move_that_waits() -> None:
    with moved([2, 3, 4]) as lab:
        lab.run_for(0.1)
        assert [step.number for step in steps(lab, "orders", 0)] == [1, 2, 3]
        assert "now: step 4 waits" in repr(reassignment(lab, "orders", 0))


def test_where_there_are_no_such_steps(prose: Prose) -> None:
    with moved([2, 3, 4], "2.4") as lab, prose.refused(BadInput):
        steps(lab, "orders", 0)
    with moved([2, 3, 4]) as lab, prose.refused(BadInput):
        steps(lab, "orders", 0, start=len(lab.trace))


def moving(**options: object) -> Lab:
    """A move of orders-0 to 3, 4, 2 that waits for broker 4."""
    lab = lab_of("orders", {0: [1, 2, 3]}, brokers=4, seed=7, generation="2.4", costs=Costs(boot=0.0005))
    lab.slow(4, 60)
    lab.execute_reassignment({("orders", 0): [3, 4, 2]}, **options)
    lab.run_for(1)
    return lab


def test_three_lists_and_what_follows_from_them() -> None:
    with moving() as lab:
        drawing = lists(lab, "orders", 0)
        assert repr(drawing).splitlines() == [
            "replicas: 3, 4, 2, 1",
            "adding_replicas: 4",
            "removing_replicas: 1",
            "origin = replicas - adding: 3, 2, 1",
            "target = replicas - removing: 3, 4, 2",
            "/admin/reassign_partitions: there; leader 1",
        ]
        ElementTree.fromstring(drawing.svg)
        lab.cancel_reassignment()
        assert "adding_replicas: none" in repr(lists(lab, "orders", 0))


def test_a_throttle_stays_until_it_is_verified() -> None:
    """Two rates on each of four brokers, two lists of the topic."""
    with moving(throttle=1000) as lab:
        assert len(settings(lab)) == 10 and settings(lab)[0].value == "1000"
        lab.run_for(100)
        assert lab.reassignments() == [] and "10 throttle settings" in repr(throttles(lab))
        ElementTree.fromstring(throttles(lab).svg)
        lab.verify_reassignment({("orders", 0): [3, 4, 2]})
        assert repr(throttles(lab)) == "0 throttle settings below /config"
