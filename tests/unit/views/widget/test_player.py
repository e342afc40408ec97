"""The player without a browser: its traits, and what shows where no widget can run."""

import base64
import json
import re

import pytest
from filmed import NASTY, every_kind, failover
from prose import refuses

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.views.frames import VIEWS, film
from kafka_ctl.views.svg import filmstrip
from kafka_ctl.views.widget.player import Player, player


def bundle(shown: Player) -> dict[str, str]:
    data, _ = shown._repr_mimebundle_()
    return data


def test_every_way_to_show_it_has_the_picture() -> None:
    """The widget, and for static views a filmstrip as SVG and as an image, and the steps as text."""
    made = player(failover())
    data = bundle(made)
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["image/svg+xml"] == filmstrip(film(failover()))
    coded = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', data["text/html"])
    assert coded is not None
    assert base64.b64decode(coded[1]).decode() == data["image/svg+xml"]
    assert re.search(r'<img alt="[^"]{20,}"', data["text/html"])
    assert data["text/plain"] == repr(made) == film(failover()).text()


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_shown_is_the_same_every_time(view: str) -> None:
    """But for the id of the widget, which notebooks do not compare."""
    one, two = bundle(player(failover(), view)), bundle(player(failover(), view))
    for data in (one, two):
        del data["application/vnd.jupyter.widget-view+json"]
    assert one == two


def test_names_from_outside_are_text_in_the_html() -> None:
    data = bundle(player(every_kind(NASTY), is_relevant=lambda record: True))
    assert set(re.findall(r"<\w+", data["text/html"])) == {"<img"}


def test_what_goes_to_the_browser_is_small() -> None:
    """Looks are sent when they change, not with every frame."""
    made = player(failover())
    assert len(json.dumps(made.film)) < 150_000
    assert len(made.film["frames"]) == len(made) == len(made.film["views"][0]["tokens"])


def test_the_step_can_be_set_and_is_checked() -> None:
    made = player(failover(), index=3, theme="dark", speed=2.0)
    assert (made.index, made.theme, made.speed) == (3, "dark", 2.0)
    made.index = -1
    with pytest.raises(BadInput, match="does not exist"):
        made.index = len(made)
    with pytest.raises(BadInput, match="does not exist"):
        made.index = -len(made) - 1
    assert made.index == len(made) - 1
    for speed in (0, -1, 10**6):
        with pytest.raises(BadInput, match="speed cannot be"):
            made.speed = speed
    assert made.speed == 2.0


def test_several_views_keep_step() -> None:
    made = player(failover(), ("cluster", "partition", "zookeeper"))
    assert [view["view"] for view in made.film["views"]] == ["cluster", "partition", "zookeeper"]
    assert {len(view["tokens"]) for view in made.film["views"]} == {len(made)}


def test_wrong_calls_are_reported() -> None:
    refuses(UnknownName, "unknown view", player, failover(), "film")
    refuses(BadInput, "needs a view", player, failover(), ())
    refuses(BadInput, "start cannot be 1000000", player, failover(), start=10**6)
    assert len(player(failover(), start=len(failover()))) == 1
    own = "index, speed, loop, theme, playing, marks, start, limit, is_relevant$"
    with pytest.raises(UnknownName, match=f"unknown option 'step'; known: {own}"):
        player(failover(), "partition", step=3, generation="2.4")


def test_a_page_made_by_nbconvert_has_the_picture() -> None:
    """From a saved notebook whose widget views have been stripped, with no script to run."""
    nbformat = pytest.importorskip("nbformat")
    nbconvert = pytest.importorskip("nbconvert")
    data = bundle(player(failover()))
    del data["application/vnd.jupyter.widget-view+json"]
    output = nbformat.v4.new_output("execute_result", data, execution_count=1)
    cell = nbformat.v4.new_code_cell("lab.player()", outputs=[output], execution_count=1)
    text, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert base64.b64encode(data["image/svg+xml"].encode()).decode() in text


def test_a_saved_player_plays_in_a_page_of_nbconvert() -> None:
    """Also if no step was saved; one that was saved without its views stays a picture."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbconvert")
    from kafka_ctl.jupyter.saved_players import STATE, VIEW, SavedPlayers

    made = player(failover())
    states = {"at-3": {"film": made.film, "index": 3}, "bare": {"film": made.film}, "empty": {"film": {"views": []}}}
    saved = {STATE: {"state": {name: {"state": state} for name, state in states.items()}}}
    outputs = [
        nbformat.v4.new_output("display_data", {VIEW: {"model_id": name}, "text/html": "a picture"}) for name in states
    ]
    cell = nbformat.v4.new_code_cell(outputs=outputs)
    book, _ = SavedPlayers().preprocess(nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": saved}), {})
    shown = [output["data"]["text/html"] for output in book.cells[0].outputs]
    assert [text.startswith("<iframe") for text in shown] == [True, True, False] and shown[2] == "a picture"
