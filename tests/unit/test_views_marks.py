"""Names of steps: found by words, by record or by question; bad ones are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filmed import failover

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.views.export import export
from kafka_ctl.views.frames import film
from kafka_ctl.views.marks import find_marks, prose_html
from kafka_ctl.views.player import player


def test_a_mark_is_the_first_step_that_it_fits() -> None:
    """The three ways to name a step lead to the same frame, which is counted from where the film begins."""
    trace = failover()
    kill = next(record for record in trace if record.kind == "fault")
    made = player(trace, marks={"words": "is killed", "seq": kill.seq, "asked": lambda record: record.kind == "fault"})
    marks = made.film["marks"]
    assert marks["words"] == marks["seq"] == marks["asked"]
    assert "is killed" in made.films[0].frames[marks["words"]].caption
    later = player(trace, start=kill.seq, marks={"words": "is killed"}, index="words")
    assert later.film["marks"] == {"words": 1} and later.index == 1


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({"The race": "killed"}, "cannot be called 'The race'"),
        ({"gone": "no such words"}, "'no such words' is in none of the"),
        ({"gone": 10**9}, "record 1000000000 is in none"),
        ({"gone": True}, "cannot stand at True"),
        ({"gone": ""}, "cannot stand at ''"),
        ("killed", "marks cannot be 'killed'"),
    ],
)
def test_a_mark_that_cannot_be_is_told(marks: Any, told: str) -> None:
    trace = failover()
    with pytest.raises(BadInput, match=told):
        find_marks(film(trace), list(trace), marks)


def test_an_index_that_is_no_mark_is_told() -> None:
    with pytest.raises(UnknownName, match="unknown mark 'kil'; known: kill"):
        player(failover(), marks={"kill": "is killed"}, index="kil")


def test_prose_is_text_but_for_its_links() -> None:
    html = prose_html("A <b>\n\n[the end & all](#step-end), [x](http://y).", {"end": 3})
    assert html == '<p>A &lt;b&gt;</p><p><a href="#step-end">the end &amp; all</a>, [x](http://y).</p>'
    with pytest.raises(BadInput, match="links to the step 'begin', which is no mark; marks: end"):
        prose_html("[x](#step-begin)", {"end": 3})


def test_marks_are_for_pages(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"are for a \.html page, not for 'film\.svg'"):
        export(failover(), tmp_path / "film.svg", marks={"kill": "is killed"})
