"""Pictures of answers: each shows something, says it in words, and bears an empty answer."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from html import unescape
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest
from history_plain import GONE
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from prose import Prose
from pyspark.sql import DataFrame

from kafka_ctl import BadInput, Trace
from kafka_ctl.history import plots, questions
from kafka_ctl.history.plots.picture import LOOKS, Picture, readable, times
from kafka_ctl.history.questions.frames import in_words

SEEDS = (23, 24)


ASKED: dict[str, tuple[str, Callable[[DataFrame], Picture]]] = {
    "weight": ("unavailability", plots.outages_by_weight),
    "over time": ("unavailability", plots.outages_over_time),
    "departures": ("shutdown_vs_failure", plots.shutdown_vs_failure),
    "restarts": ("rolling_restarts", plots.rolling_restarts),
    "churn": ("leader_churn", plots.leader_churn),
    "isr": ("isr_churn", plots.isr_churn),
    "imbalance": ("imbalance", plots.imbalance),
    "failover": ("failover_time", plots.failover_time),
    "amplification": ("request_amplification", plots.request_amplification),
    "machines": ("transition_counts", plots.transition_counts),
    "durations": ("deletions", lambda answer: plots.durations(deletions=answer)),
    "compare": ("compare", plots.compare),
}


def shown(picture: Picture) -> str:
    """What a notebook gets: a picture, and the same words wherever words are wanted."""
    data, metadata = picture._repr_mimebundle_()
    assert b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == picture.alt
    assert picture.alt.endswith(".")
    image = re.fullmatch(
        r'<img alt="(.+)" style="max-width:none" src="data:image/svg\+xml;base64,(.+)">', data["text/html"]
    )
    assert image and unescape(image[1]) == picture.alt
    assert ElementTree.fromstring(b64decode(image[2])).tag.endswith("svg")
    return picture.alt


@pytest.mark.parametrize("name", ASKED)
def test_a_picture_says_what_it_shows(name: str, clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Numbers that plain Python counts as well."""
    question, plot = ASKED[name]
    asked: list[Any] = [simulated, simulated] if question == "compare" else [simulated]
    answer = getattr(questions, question)(*asked).cache()
    alt = shown(plot(answer))
    moves = [
        r
        for trace in clusters.values()
        for r in trace
        if r.kind in ("partition", "replica") and not r.error and r.source
    ]
    facts = {
        "machines": [f"{len(moves)} made"],
        "churn": [f"Of {answer.count()} partitions"],
        "departures": sorted({row.cause for row in answer.select("cause").collect()}) if name == "departures" else [],
        "durations": [f"of {answer.count()} done" if answer.count() else "the answer has no rows"],
        "imbalance": ["Who does not lead what it should: h23"],
        "compare": ["Medians: all "],
    }
    assert [fact for fact in facts.get(name, ()) if fact not in alt] == []
    empty = plot(answer.limit(0))
    assert "nothing to show" in shown(empty)
    assert not empty.axes, "a sentence, no frame"


@pytest.mark.parametrize("plot", [plots.__dict__[name] for name in plots.__all__])
def test_another_answer_is_refused(prose: Prose, simulated: DataFrame, plot: Any) -> None:
    """Before Spark is asked anything."""
    for other in (None, questions.isr_states(simulated)):
        given = {"deletions": other} if plot is plots.durations else {"answer": other}
        prose.refuses(BadInput, plot, **given)


def test_the_same_answer_gives_the_same_bytes(simulated: DataFrame) -> None:
    answer = questions.transition_counts(simulated).cache()
    assert plots.transition_counts(answer).html() == plots.transition_counts(answer).html()


def test_minutes_are_weighed(simulated: DataFrame) -> None:
    """Nine short intervals and a long one: nine tenths of the number, almost none of the time."""
    rows = [("broker crash", 1000.0)] * 9 + [("broker crash", 591_000.0), ("topic creation", 5.0), ("pause", None)]
    answer = simulated.sparkSession.createDataFrame(rows, "cause string, outage_ms double")
    picture = plots.outages_by_weight(answer)
    assert "10 intervals, 10.0 min in all." in picture.alt and "in them are 2%" in picture.alt
    (axes,) = picture.axes
    assert [[round(y, 1) for y in line.get_ydata()] for line in axes.get_lines()] == [[90, 100], [1.5, 100]]
    momentary = simulated.sparkSession.createDataFrame([("pause", 0.0)], "cause string, outage_ms double")
    assert "nothing to show" in plots.outages_by_weight(momentary).alt, "no minutes, and so no shares of them"


def test_curves_that_lie_on_each_other_are_named_apart(simulated: DataFrame) -> None:
    """Each name is at its curve, within the picture, and covers no other name."""
    rows = [(float(ms),) for ms in (40, 900, 7000)]
    answer = simulated.sparkSession.createDataFrame(rows, "duration_ms double").cache()
    picture = plots.durations(one=answer, same=answer, again=answer, another=answer.limit(1))
    (axes,) = picture.axes
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 4
    assert [text.get_text() for text in axes.texts] == ["one (3)", "same (3)", "again (3)", "another (1)"]
    assert [text.get_bbox_patch().get_edgecolor() for text in axes.texts] == [
        to_rgba(line.get_color()) for line in axes.get_lines()
    ]
    picture.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 > 0 and box.x1 < picture.bbox.x1 for box in boxes)


def test_an_answer_in_words_has_units(simulated: DataFrame) -> None:
    """Durations in the unit that suits them, moments without exponents; whatever else there is stays."""
    answer = questions.unavailability(simulated)
    made = in_words(answer)
    assert made.columns == answer.columns
    rows = made.collect()
    durations = [row.outage_ms for row in rows if row.outage_ms is not None]
    assert durations and all(re.fullmatch(r"\d+\.\d (ms|s|min|h)", text) for text in durations)
    assert all("E" not in row.start_ms for row in rows)
    assert sorted(row.partition for row in rows) == sorted(row.partition for row in answer.collect())
    one = simulated.sparkSession.sql("SELECT 7000D AS away_ms, 7000D AS vacant_ms")
    assert tuple(in_words(one).collect()[0]) == ("7.0 s", "7000.0")


def test_what_must_not_be_is_named() -> None:
    """A move that the table does not have: in words, and hatched in the row of its source, counted from the top."""
    trace = Trace()
    trace.add("controller-1", "partition", "mark", "orders", 0, source=GONE, target="OnlinePartition")
    picture = plots.transition_counts(questions.transition_counts(trace))
    assert "not legal: NonExistentPartition to OnlinePartition (1 made" in shown(picture)
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in picture.axes]
    hatched = [(n, *p.get_center()) for n, axes in enumerate(picture.axes) for p in axes.patches if p.get_hatch()]
    assert hatched == [(0, names[0].index("Online"), names[0].index("NonExistent"))]
    for axes, states in zip(picture.axes, names, strict=True):
        assert axes.get_ylim() == (len(states) - 0.5, -0.5)


def test_rolling_restarts_lie_where_they_were(simulated: DataFrame) -> None:
    """Each bar has the colour of a controlled shutdown, and its text begins at its end."""
    columns = "history string, start_ms double, end_ms double, duration_ms double, brokers array<int>, moved long"
    rows = [("h0", 3.6e6, 1.08e7, 7.2e6, [1, 2], 9, 0), ("h1", 0.0, 3.6e6, 3.6e6, [3], 5, 4)]
    (axes,) = plots.rolling_restarts(simulated.sparkSession.createDataFrame(rows, f"{columns}, leaderless long")).axes
    bars = [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor()).upper()) for bar in axes.patches]
    assert bars == [(0, 1, LOOKS["controlled shutdown"][0]), (1, 2, LOOKS["controlled shutdown"][0])]
    texts = [(text.get_position(), text.get_text()) for text in axes.texts]
    assert texts == [((1, 0), " 3: 5 moved, 4 without leader"), ((3, 1), " 1 2: 9 moved")]


def test_departures_have_an_axis_of_durations_and_no_frame(simulated: DataFrame) -> None:
    rows = [("controlled shutdown", 2, 5.0), ("broker crash", 3, 9000.0), ("broker crash", 0, 0.0)]
    answer = simulated.sparkSession.createDataFrame(rows, "cause string, leaderless long, outage_ms double")
    often, long = plots.shutdown_vs_failure(answer).axes
    assert [label.get_text() for label in long.get_xticklabels()] == ["10 ms", "1 s"]
    for axes in (often, long):
        assert {name: spine.get_visible() for name, spine in axes.spines.items()} == {
            "top": False,
            "right": False,
            "bottom": True,
            "left": True,
        }


@pytest.mark.parametrize(
    ("ms", "words"), [(0.25, "0.2 ms"), (999, "999.0 ms"), (6000, "6.0 s"), (90_000, "1.5 min"), (7.2e6, "2.0 h")]
)
def test_durations_in_words(ms: float, words: str) -> None:
    assert readable(ms) == words
    assert readable(None) == "for ever"


def test_an_axis_of_durations_has_two_ticks_at_least() -> None:
    """Also a narrow one whose times are close to each other: one tick has no scale."""
    for narrow in (True, False):
        axes = Figure().subplots()
        axes.plot([120_000, 400_000], [0, 1])
        times(axes, narrow)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1 min", "10 min"]
