"""Names of steps: found by words, by record or by question; bad ones are told."""

from pathlib import Path
from typing import Any

from filmed import failover
from prose import Prose, source
from tables import tabled

from kafka_ctl.errors import BadInput
from kafka_ctl.views.export import export, prose_html
from kafka_ctl.views.frames import film, find_marks
from kafka_ctl.views.widget.player import player


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


@tabled(ids=source)
def test_a_mark_that_cannot_be_is_reported(prose: Prose, marks: Any) -> None:
    trace = failover()
    prose.refuses(BadInput, find_marks, film(trace), list(trace), marks)


def test_an_index_that_is_no_mark_is_reported(prose: Prose) -> None:
    prose.refuses(BadInput, player, failover(), marks={"kill": "is killed"}, index="is kiled")


def test_prose_is_text_but_for_its_links(prose: Prose) -> None:
    html = prose_html("A <b>\n\n[the end & all](#step-end), [x](http://y).", {"end": 3})
    prose(html)
    for link in ("#step-begin", "#end"):
        prose.refuses(BadInput, prose_html, f"[x]({link})", {"end": 3})


def test_marks_are_for_pages(prose: Prose, tmp_path: Path) -> None:
    prose.refuses(BadInput, export, failover(), tmp_path / "film.svg", marks={"kill": "is killed"})
    prose.refuses(BadInput, export, failover(), tmp_path / "film.html", prose=5)
