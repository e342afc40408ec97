"""The three renderings of a film: whole, without script or network, and safe whatever the names are."""

import asyncio
import io
import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import needs_chromium
from filmed import NASTY, every_kind, failover
from labs import play, until_quiet
from prose import Prose, refuses

from kafka_ctl import Lab
from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.trace import Record
from kafka_ctl.views.dot import printable
from kafka_ctl.views.export import export, gif, page_of, png, write
from kafka_ctl.views.frames import VIEWS, Film, film, relevant_to
from kafka_ctl.views.palette import THEMES
from kafka_ctl.views.svg import animated, caption_height, explained, filmstrip, filmstrips, key_frames, static_svg
from kafka_ctl.views.widget.payload import drawing, payload

SVG = "{http://www.w3.org/2000/svg}"


def nasty(view: str) -> Film:
    return film(every_kind(NASTY), view, is_relevant=lambda record: True)


def played(text: str) -> Any:
    """The data in a page's player."""
    found = re.search(r"^const film = (.*);$", text, re.M)
    assert found
    return json.loads(found[1])


def svgs(made: Film) -> dict[str, str]:
    return {
        "still": static_svg(made),
        "dark still": static_svg(made, theme="dark"),
        "filmstrip": filmstrip(made),
        "animated": animated(made),
        "drawing": drawing(made),
    }


@pytest.mark.parametrize("view", VIEWS)
def test_markup_in_names_shows_as_text(view: str) -> None:
    """No name becomes an element, an attribute or a style; every picture stays well-formed."""
    for name, text in svgs(nasty(view)).items():
        root = ElementTree.fromstring(text)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "g", "path", "rect", "ellipse", "polygon", "polyline", "text", "title", "style"}, name
        attributes = {attribute for element in root.iter() for attribute in element.attrib}
        assert not [a for a in attributes if a.startswith("on") or "href" in a], name


def test_a_nasty_topic_is_still_readable() -> None:
    """It is shown, shortened, and in full in the words."""
    text = static_svg(nasty("cluster"), 13)
    assert "&lt;script&gt;" in text and "<script" not in text


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_is_one_file_that_asks_for_nothing(view: str) -> None:
    """No address but the name of the SVG language, one script, and no way out of it."""
    text = page_of(payload([nasty(view)]))
    assert set(re.findall(r"https?://[\w./]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert text.count("<script") == text.count("</script>") == 1
    assert "<!--" not in text.replace("<!doctype", "")
    data = played(text)
    assert data == json.loads(json.dumps(payload([nasty(view)])))


def test_the_page_lists_the_steps_for_who_has_no_script() -> None:
    made = film(failover())
    text = page_of(payload([made]))
    listed = re.search(r"<noscript>(.*)</noscript>", text, re.S)
    assert listed is not None and listed[1].count("<li>") == len(made)


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_records_give_the_same_bytes(view: str) -> None:
    one, two = film(failover(), view), film(list(failover()), view)
    assert svgs(one) == svgs(two)
    assert page_of(payload([one])) == page_of(payload([two]))


@pytest.mark.parametrize("theme", THEMES)
def test_a_still_needs_no_style_sheet(theme: str) -> None:
    """Its colours are attributes, for sites that take style sheets out."""
    text = static_svg(film(failover()), theme=theme)
    assert "<style" not in text and "class=" not in text
    assert f'fill="{THEMES[theme]["leader"]}"' in text
    bare = [e for e in ElementTree.fromstring(text).iter(f"{SVG}rect") if "fill" not in e.attrib]
    assert not bare


def test_a_still_says_what_it_shows() -> None:
    made = film(failover())
    root = ElementTree.fromstring(static_svg(made, 9))
    assert root.get("role") == "img"
    assert root.get("aria-label") == printable(made.frames[9].alt)


def test_a_still_shows_its_own_frame() -> None:
    made = film(failover())
    kill = next(f.index for f in made.frames if f.kind == "fault")
    assert "dead, still registered" in static_svg(made, kill)
    assert "dead, still registered" not in static_svg(made, kill - 1)


def test_a_filmstrip_has_the_frames_that_count() -> None:
    """The fault, the new controller, an election and the end are among six pictures."""
    made = film(failover())
    shown = key_frames(made, 6)
    assert len(shown) == 6 and shown[-1] is made.frames[-1]
    assert {"fault", "controller", "election"} <= {frame.kind for frame in shown}
    assert [frame.index for frame in shown] == sorted(frame.index for frame in shown)
    assert filmstrip(made, 6).count("<svg") == 1 + 2 * 6


def test_a_filmstrip_of_a_failover_has_the_frames_of_the_lesson() -> None:
    """Of the second election, not of the first: who creates /controller, who is elected, which epoch."""
    made = film(failover())
    kill = next(f.index for f in made.frames if f.kind == "fault")
    shown = [frame for frame in key_frames(made, 6) if frame.index > kill]
    assert {"won", "controller", "epoch", "election"} <= {frame.lesson for frame in shown}
    assert all(frame.lesson for frame in key_frames(made, 6)[:-1]), "no bookkeeping"


def test_a_filmstrip_of_an_election_has_its_frames() -> None:
    """The znode is created, another finds it there (NODEEXISTS), the epoch is raised."""
    with Lab(brokers=3, seed=7) as lab:
        lab.settle()
        first = lab.controller
        until_quiet(lab.kill, first.id)
        made = film(lab.trace)
    shown = key_frames(made, 6)
    assert {"fault", "won", "lost", "controller", "epoch"} <= {frame.lesson for frame in shown}
    assert any("the race is lost" in frame.caption for frame in shown)


def test_several_films_are_strips_below_one_another() -> None:
    """Nothing is lost without a script: each has its title and its pictures."""
    films = [film(failover(), view) for view in ("cluster", "spacetime", "timeline")]
    root = ElementTree.fromstring(filmstrips(films))
    strips = root.findall(f"{SVG}svg")
    assert [ElementTree.tostring(strip).count(b"<ns0:title>") > 0 for strip in strips] == [True] * 3
    assert [e.text for e in root.findall(f"{SVG}text")] == [made.title for made in films]
    tops = [float(strip.get("y", 0)) for strip in strips]
    ends = [top + float(strip.get("height", 0)) for top, strip in zip(tops, strips, strict=True)]
    assert all(end <= top for end, top in zip(ends, tops[1:], strict=False))
    assert ends[-1] <= float(root.get("height", 0))
    assert filmstrips(films[:1]) == filmstrip(films[0])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_short_film_has_a_short_strip(count: int) -> None:
    records = [Record(i, i * 100.0, "fault", "fault", "kill", broker=i) for i in range(count)]
    assert len(key_frames(film(records))) == count


def test_an_animation_plays_without_script_and_ends_at_the_end() -> None:
    """Keyframes only; with motion switched off the last frame stands."""
    made = film(failover(), "partition")
    root = ElementTree.fromstring(animated(made))
    sheet = "".join(e.text or "" for e in root.iter(f"{SVG}style"))
    assert "prefers-reduced-motion" in sheet and "@keyframes" in sheet
    assert set(re.findall(r"animation:(k\d+)", sheet)) == set(re.findall(r"@keyframes (k\d+)", sheet))
    resting = {name for name, rest in re.findall(r"\.(k\d+)\{opacity:(\d);", sheet) if rest == "1"}
    captions = [e for e in root.iter(f"{SVG}g") if len(e) and e[0].get("d", "").startswith("M0 ")]
    assert len(captions) == len(made)
    assert [e.get("class") in resting for e in captions] == [False] * (len(made) - 1) + [True]


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_export_writes_what_the_ending_says(ending: str, tmp_path: Path) -> None:
    path = export(failover(), tmp_path / f"film.{ending}")
    text = path.read_text(encoding="utf-8")
    assert text.startswith({"svg": "<svg", "html": "<!doctype html>"}[ending])


def test_several_views_are_one_picture_in_step(tmp_path: Path) -> None:
    """Below one another in the animated SVG, under their titles; no two rules have one name."""
    path = export(failover(), tmp_path / "film.svg", ("cluster", "timeline"), limit=12)
    root = ElementTree.parse(path).getroot()
    inner = root.findall(f"{SVG}svg")
    views = "cluster", "timeline"
    films = [explained(film(failover(), view, limit=12, is_relevant=relevant_to(views))) for view in views]
    assert [svg.get("viewBox") for svg in inner] == [
        f"0 0 {one.scene.width:g} {one.scene.height + caption_height(one) + 4:g}" for one in films
    ]
    assert float(inner[1].get("y", 0)) > float(inner[0].get("height", 0))
    rules = re.findall(r"@keyframes (\S+?)\{", path.read_text(encoding="utf-8"))
    assert len(rules) == len(set(rules)) > 10
    assert [film.title for film in films] == ["The cluster", "Who led when"]
    assert all(f">{one.title}</text>" in path.read_text(encoding="utf-8") for one in films)


def test_a_page_of_a_lab_has_every_answer(tmp_path: Path) -> None:
    """For every step with records, and each source once."""
    with Lab(brokers=3, seed=7, generation="2.4") as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        text = lab.export(tmp_path / "film.html", ("cluster", "partition")).read_text(encoding="utf-8")
    data = played(text)
    assert [why is not None for why in data["whys"]] == [frame["why"] for frame in data["frames"]]
    assert sum(why is not None for why in data["whys"]) > 10
    used = {source for why in data["whys"] if why for source in why["sources"]}
    assert used == set(range(len(data["sources"])))
    assert any("OnlinePartition" in line for frame in data["frames"] for line in frame["log"])


def test_an_exported_lab_begins_with_a_cluster(tmp_path: Path) -> None:
    """Its first frame shows brokers and controller, and its line says the same; `start=0` shows how they came."""
    with Lab(brokers=3, seed=7) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        cases: tuple[tuple[dict[str, int], set[str], str], ...] = (
            ({}, {"up active", "up "}, "Controller: broker 2, epoch 1. Brokers up: 1, 2, 3; down: none."),
            ({"start": 0}, {"up absent"}, "No controller. No broker has been seen yet."),
        )
        for start, brokers, line in cases:
            lab.export(tmp_path / "film.html", **start)
            first = film(lab.trace, start=start.get("start", lab.commands[0].seq))
            assert {first.looks(0)[f"broker:{b}"].styles for b in (1, 2, 3)} == brokers
            assert line in first.frames[0].alt
            assert line in (tmp_path / "film.html").read_text("utf-8")


def test_the_epoch_is_shown_when_it_has_been_raised() -> None:
    """A broker is elected first and raises the epoch then; in between nobody has that epoch, and no line says None."""
    for generation in GENERATIONS:
        with Lab(brokers=3, seed=7, generation=generation) as lab:
            play(lab, "create_topic orders partitions=1 replication_factor=2; settle; delete_controller; settle")
            made, raised = film(lab.trace), 0
            for n, frame in enumerate(made.frames):
                looks = made.looks(n)
                reported = [text for b in (1, 2, 3) for text in looks[f"head:{b}"].texts]
                assert "None" not in frame.alt + "".join(reported)
                stored = looks["znode:/controller_epoch"].texts[1]
                shown = {text for text in reported if text.startswith("controller, epoch")}
                assert shown <= {f"controller, epoch {stored}"}, (frame.caption, shown, stored)
                raised += bool(shown)
            assert raised > 10


def test_export_of_several_views() -> None:
    assert len(payload([film(failover(), view) for view in ("cluster", "cluster")])["views"]) == 2


def test_an_unknown_ending_is_reported(prose: Prose, tmp_path: Path) -> None:
    prose.refuses(BadInput, export, failover(), tmp_path / "film.mp4")


def test_one_step_is_the_picture_that_the_player_has(tmp_path: Path, prose: Prose) -> None:
    """As SVG its numbers are those of the player; there is no film of one step, and no step after the last."""
    with Lab(brokers=3, seed=7) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=3)
        shown = lab.player().films[0]
        for step in (0, 12, len(shown) - 1):
            drawn = static_svg(shown, step, legend=False)
            assert lab.export(tmp_path / "step.svg", step=step).read_text(encoding="utf-8") == drawn
        for name, wrong in (("step.svg", len(shown)), ("step.svg", "12"), ("step.gif", 12)):
            prose.refuses(BadInput, lab.export, tmp_path / name, step=wrong)


@needs_chromium
@pytest.mark.parametrize("running", [False, True])
def test_a_step_is_a_png(tmp_path: Path, running: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """At twice its size; also while the loop of a notebook runs. One picture needs no note of how far it is."""
    pytest.importorskip("playwright")
    made, path = film(failover()), tmp_path / "step.png"

    async def in_a_notebook() -> None:
        write([made], path, step=9)

    asyncio.run(in_a_notebook()) if running else write([made], path, step=9)
    data = path.read_bytes()
    size = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    high = made.scene.height - made.scene.legend + caption_height(made)
    assert size == (2 * math.ceil(made.scene.width), 2 * math.ceil(high))
    assert capsys.readouterr().err == ""


@needs_chromium
def test_a_sheet_says_that_it_takes_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("playwright")
    made = film(failover(), limit=3)
    assert png([made]).startswith(b"\x89PNG")
    assert f"of {len(made)} steps" in capsys.readouterr().err


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_exported_explains_only_marks_of_its_pictures(view: str) -> None:
    """Nothing else of the picture changes, and a mark that is left out is in no frame."""
    made = film(failover(), view)
    less = explained(made)
    assert less.frames is made.frames and set(less.scene.entries) <= set(made.scene.entries)
    assert less.scene.height - less.scene.legend == made.scene.height - made.scene.legend
    assert set(explained(less).scene.entries) == set(less.scene.entries)
    if view == "cluster":
        shown = {entry.text for entry in less.scene.entries}
        assert {"leader", "controller", "write"} <= shown and "being deleted" not in shown
        assert "being deleted" not in animated([less]) and "being deleted" in animated([made])


@needs_chromium
def test_a_gif_has_every_step_and_reports_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("playwright")
    image = pytest.importorskip("PIL.Image")
    made = film(failover(), limit=5)
    with image.open(io.BytesIO(gif([made]))) as drawn:
        assert drawn.n_frames == len(made)
    assert f"of {len(made)} drawn" in capsys.readouterr().err


@pytest.mark.parametrize("draw", [png, gif])
def test_without_a_browser_the_cure_is_reported(draw: object, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright")
    pytest.importorskip("PIL") if draw is gif else None
    monkeypatch.setattr("shutil.which", lambda name: None)
    refuses(Unavailable, "Chromium", draw, [film(every_kind())])
