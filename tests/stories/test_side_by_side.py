"""Two runs beside each other: stepped together, equal up to the step that is flagged, different there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labs import until_quiet
from prose import Prose

from kafka_ctl import Lab, side_by_side
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.museum import EXHIBITS, find
from kafka_ctl.trace import Trace
from kafka_ctl.views.steps import newsworthy
from kafka_ctl.views.widget.side_by_side import SideBySide


def pictured(shown: SideBySide, step: int) -> list[list[str]]:
    """Both pictures of a step as lines; the order of what travels does not count."""
    return [sorted(film.described(step).splitlines()) for film in shown.films]


def check(shown: SideBySide, runs: tuple[Lab, Lab], start: tuple[int, int] = (0, 0)) -> None:
    """Both films have the same steps, and each of them every piece of news of its run once, in order."""
    left, right = shown.films
    assert [f.caption for f in left.frames] == [f.caption for f in right.frames]
    assert left.scene.parts == right.scene.parts
    for film, lab, first in zip(shown.films, runs, start, strict=True):
        reported = [seq for frame in film.frames for seq in frame.seqs]
        assert sorted(reported) == [r.seq for r in lab.trace if newsworthy(r) and r.seq >= first]
        assert [seq for frame in film.frames for seq in frame.seqs[:1]] == sorted(
            seq for frame in film.frames for seq in frame.seqs[:1]
        )
    parted = len(shown) if shown.parted is None else shown.parted
    for n in range(parted):
        one, other = pictured(shown, n)
        assert one == other


def test_both_clusters_are_put_into_words() -> None:
    """Once where they are alike, and else each with its title: here only one of the runs has a controller."""
    with find("KAFKA-4229").show() as run:
        shown = run.side_by_side()
    summaries = [frame["summary"] for frame in shown.film["frames"]]
    assert summaries[0] == shown.films[0].frames[0].picture.summary == shown.films[1].frames[0].picture.summary
    ends = [f"{film.title}: {film.frames[-1].picture.summary}" for film in shown.films]
    assert summaries[-1] == " ".join(ends) and ends[0] != ends[1]


@pytest.mark.parametrize("view", ["spacetime", "timeline"])
def test_a_run_that_waits_stays_where_it_is(view: str) -> None:
    """While the other one takes a step, nothing moves in its picture."""
    with find("KAFKA-6082").show() as run:
        shown = run.side_by_side(view=view)
    waits = [(n, film) for film in shown.films for n, frame in enumerate(film.frames) if n and not frame.seqs]
    assert waits
    for n, film in waits:
        assert film.looks(n)["veil"] == film.looks(n - 1)["veil"], n


def test_a_fork_that_changes_nothing_never_parts() -> None:
    with Lab(brokers=3, seed=7) as lab:
        until_quiet(lab.create_topic, "orders", 2, 2)
        with lab.fork() as same:
            shown = side_by_side(lab, same)
            check(shown, (lab, same))
            assert shown.parted is None and not any("First difference" in f.caption for f in shown.films[0].frames)
            assert shown.film["parted"] is None and shown.film["beside"] == ["left", "right"]
            assert [film.title for film in shown.films] == ["Left", "Right"]


def test_one_story_in_two_generations() -> None:
    with Lab(brokers=3, seed=7, generation="0.10") as old:
        until_quiet(old.create_topic, "orders", 2, 2)
        until_quiet(old.kill, 2)
        with old.fork(generation="2.4") as new:
            shown = side_by_side(old, new)
            check(shown, (old, new))
            assert shown.parted is not None
            assert [film.title for film in shown.films] == ["Kafka 0.10", "Kafka 2.4"]
            together = sum(bool(a.seqs) and bool(b.seqs) for a, b in zip(*(f.frames for f in shown.films), strict=True))
            assert together > 10
            assert "Kafka 2.4: " in repr(shown)


def test_it_is_one_page(prose: Prose, tmp_path: Path) -> None:
    with EXHIBITS[0].show() as run:
        shown = run.side_by_side(index=1)
        page = shown.export(tmp_path / "both.html").read_text("utf-8")
        assert f'"parted":{shown.parted}' in page and "With the fix" in page
        assert shown.index == 1
        prose.refuses(BadInput, shown.export, tmp_path / "both.doc")


def test_what_is_no_run_is_refused(prose: Prose) -> None:
    with Lab(brokers=1) as lab:
        prose.refuses(BadInput, side_by_side, lab, "x")
        prose.refuses(BadInput, side_by_side, lab, Trace())
        with pytest.raises(UnknownName, match="unknown view 'clusters'"):
            side_by_side(lab, lab, view="clusters")
        with pytest.raises(BadInput, match="titles cannot be"):
            side_by_side(lab, lab, titles=("one",))  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="start cannot be"):
            side_by_side(lab, lab, start=3)  # type: ignore[arg-type]
        for start in ((-1, 0), (0, 10**9)):
            with pytest.raises(BadInput, match=f"start cannot be {min(start) or max(start)}"):
                side_by_side(lab, lab, start=start)
        with pytest.raises(BadInput, match="limit cannot be 0"):
            side_by_side(lab, lab, limit=0)
        with pytest.raises(UnknownName, match="unknown option 'wide'"):
            side_by_side(lab, lab, wide=True)


def test_why_is_answered_for_the_run_that_is_asked(tmp_path: Path) -> None:
    """Offered where a rule is known, for each run by its own generation; an exported page has every answer."""
    with find("KAFKA-6082").show() as run:
        shown = run.side_by_side()
        offered = [frame["why"] for frame in shown.film["frames"]]
        assert shown.film["asks"] and offered[0] is False
        assert any(sides == [0, 1] for sides in offered) and any(sides in ([0], [1]) for sides in offered)
        sent: list[dict[str, Any]] = []
        shown.send = sent.append
        for number, sides in enumerate(offered):
            for side in sides or ():
                assert shown.films[side].frames[number].seqs
        at = next(number for number, sides in enumerate(offered) if sides == [0, 1])
        for side in (0, 1):
            shown.receive({"do": "why", "frame": at, "side": side})
            assert sent[-1]["side"] == side and sent[-1]["why"]["title"].startswith(shown.films[side].title + ": ")
            assert sent[-1]["why"]["rule"]
        page = shown.export(tmp_path / "both.html").read_text()
        assert page.count('"rule":') == sum(len(sides or ()) for sides in offered)
    parts = side_by_side(run.broken.trace[10:], run.fixed.trace[10:])
    assert not parts.film["asks"], "of a part of a trace nothing is known of causes"
