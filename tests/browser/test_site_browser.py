"""The site as a reader meets it: built once, served on 127.0.0.1, in a real Chromium that reaches nothing else.

`KAFKA_CTL_SITE_LESSONS=all` runs every lesson instead of three. Pictures go to `artifacts/site/`.
"""

import contextlib
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import browser
import identity
import pytest
import sitelinks
import sitepages

from benchmarks import site as benchmark
from kafka_ctl import on_call
from kafka_ctl.errors import Unavailable
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import parse_fragment
from kafka_ctl.museum import EXHIBITS
from tools.site import build, documents
from tools.site.lessons import Lesson, prose

pytestmark = browser.needs_chromium

ARTIFACTS = browser.ARTIFACTS / "site"
THREE = ("01-electing-a-controller", "03-partition-and-replica-states", "18-the-wire")
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
SIDE_BY_SIDE = """() => new Set([1, 2, 3].map((id) =>
  document.querySelector(`.kc.live [data-id="head:${id}"]`).getBoundingClientRect().top)).size === 1"""
TOP = "() => document.querySelector('.kc.live').offsetTop"
STORED = """async (path) => (await window.jupyterapp.serviceManager.contents.get(
  path, { content: true, type: "file", format: "text" })).content"""
"""The text of a file in the browser's storage."""
STREAMED = f"""async (code) => {{
  const asked = {sitepages.NOTEBOOK}.sessionContext.session.kernel.requestExecute({{ code }});
  let messages = 0;
  asked.onIOPub = ({{ header }}) => {{ messages += header.msg_type === "stream"; }};
  await asked.done;
  return messages;
}}"""
"""Run code in the kernel of the page's notebook; the number of messages with what it prints."""
DISPOSED = ("was disposed", "before replies were done")
"""What JupyterLite says of a kernel that is restarted."""
WORKER = "window.Worker = class extends Worker { constructor(...given) { super(...given); window.made = this; } };"
"""Name the worker of a page that is opened after this."""
BYTES = "\nimport enum, sys\nprint(json.dumps([sys.version, enum.__file__, report()]))"
COLOUR = "(it) => getComputedStyle(it).color.match(/[\\d.]+/g).map(Number)"
PHONE = {"width": 390, "height": 844}


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
        opened = []
        for lesson in todo[place : place + AT_ONCE]:
            context = site.context()
            page = site.page(f"lab/index.html?path={lesson.file}", context)
            try:
                site.start(page)  # the cells of the page before it run meanwhile: three Pythons that start are too many
            except Exception:
                page.close()  # a second try shares the cores with nothing of the first
                raise
            opened.append((lesson, page, context))
        found += [Ran(*each, site.ended(each[1])) for each in opened]
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


def test_a_saved_lesson_shows_every_picture_without_its_python(site: sitepages.Pages, ran: list[Ran]) -> None:
    """After a restart, and when it is opened again: every player says so, offers no command, and plays."""
    lesson, page, context, _ = next(
        each for each in ran if not each.page.is_closed() and each.page.locator(LIVE).count()
    )
    players = page.locator(".kc").count()
    page.evaluate(browser.SAVE)
    page.evaluate(browser.RESTART)
    browser.plays_alone(page, players)
    page.evaluate(browser.SAVE)
    site.errors[:] = [text for text in site.errors if not text.endswith(DISPOSED)]
    context.add_init_script(sitepages.NO_PYTHON)
    again = site.page(f"lab/index.html?path={lesson.file}", context)
    browser.plays_alone(again, players)
    again.screenshot(path=ARTIFACTS / "again.png")
    assert again.locator("text=/Loading widget|Error displaying widget/").count() == 0
    again.close()


def test_a_notebook_can_be_saved_as_a_file(ran: list[Ran]) -> None:
    page = ran[-1].page
    with page.expect_download() as saved:
        page.evaluate("() => { window.jupyterapp.commands.execute('docmanager:download'); }")
    assert json.loads(Path(saved.value.path()).read_text("utf-8"))["nbformat"] == 4


def test_the_try_it_page_opens_the_run_of_its_address(site: sitepages.Pages) -> None:
    """At its step; why is answered, and the run can be forked."""
    with Lab.replay(STORY) as lab:
        page = site.page(lab.link(44))
    page.wait_for_selector(LIVE)
    page.wait_for_function("() => document.querySelector('.kc.live').dataset.step === '44'")
    assert "expires" in page.locator(f"{LIVE} .caption").inner_text()
    page.locator(f"{LIVE} button", has_text="why?").click()
    page.wait_for_function("() => document.querySelector('.kc.live').innerText.includes('marks the lines that ran')")
    page.locator(f"{LIVE} button", has_text="Fork here").click()
    page.wait_for_selector(f".kc-fork {LIVE}")
    page.screenshot(path=ARTIFACTS / "fork.png", full_page=True)
    page.close()


def test_a_bad_link_leads_to_the_example(site: sitepages.Pages) -> None:
    """With what Python answers to it, and without Python."""
    context = site.context()
    answer = json.dumps(json.dumps({"do": "failed", "text": "No story."}))
    script = {"body": f"postMessage({answer})", "content_type": "text/javascript"}
    context.route("**/try-worker.mjs", lambda route: route.fulfill(**script))
    page = site.page("try.html#story=garbage", context)
    page.locator("#at a").click()
    page.wait_for_selector(f"{LIVE} .view svg .part")
    page.locator("#state.wrong", has_text="No story.").wait_for()
    assert page.locator("#copy").is_visible() and page.locator("#loaded").is_hidden()
    page.close()


def test_the_cluster_is_there_before_python(site: sitepages.Pages) -> None:
    """A phone shows all brokers in a row; steps and menus work, a command waits for Python, and nothing moves then."""
    context, held = site.context(), list[Any]()
    context.route("**/*.wasm", lambda route: held.append(route))
    context.add_init_script(WORKER)
    page = site.page("try.html", context)
    page.wait_for_selector(f"{LIVE} .view svg .part")
    page.wait_for_function("() => /loading: \\d+ of \\d+ MB/.test(document.getElementById('state').textContent)")
    page.set_viewport_size(PHONE)
    page.wait_for_function(SIDE_BY_SIDE)
    page.screenshot(path=ARTIFACTS / "phone.png")
    page.set_viewport_size({"width": 1280, "height": 1000})
    top = page.evaluate(TOP)
    page.locator(f"{LIVE} [data-do='first']").click()
    page.wait_for_function("() => document.querySelector('.kc.live').dataset.step === '0'")
    page.locator(f"{LIVE} [data-do='last']").click()
    page.wait_for_selector(f"{LIVE} [data-do='next']:disabled")
    page.locator(f"{LIVE} [data-id='head:2']").first.click()
    page.locator(f"{LIVE} .menu button", has_text="Kill").click()
    assert "lab.kill" not in page.locator(f"{LIVE} .script").inner_text()
    assert "1 command waits" in page.locator("#state").inner_text()
    context.unroute("**/*.wasm")
    for route in held:
        route.continue_()
    page.wait_for_function("() => document.querySelector('.kc.live .script').textContent.includes('lab.kill(2)')")
    assert "is loaded" in page.locator("#state").inner_text() and page.evaluate(TOP) == top
    page.evaluate("() => made.postMessage('{}')")
    page.wait_for_selector("#state.wrong")
    page.evaluate("() => made.dispatchEvent(new ErrorEvent('error', { message: 'no memory' }))")
    assert page.locator("#state.wrong").inner_text() == "Python failed: no memory"
    page.locator("#copy").click()
    page.locator("#state:not(.wrong)", has_text="is loaded").wait_for()
    page.wait_for_function("() => document.getElementById('copied').textContent.includes('address')")
    copied = parse_fragment(urlsplit(page.url).fragment)
    assert copied and copied.story.endswith("\nkill 2\n") and copied.step is not None
    page.screenshot(path=ARTIFACTS / "try.png", full_page=True)
    page.close()


def test_the_same_stories_leave_the_same_bytes(ran: list[Ran]) -> None:
    """Traces, Kafka's logs, pictures and players, in three generations, here and in the kernel of a lesson."""
    source = Path(identity.__file__).read_text(encoding="utf-8")
    version, compiled, text = json.loads(ran[-1].page.evaluate(sitepages.EXECUTE, source + BYTES))
    there = json.loads(text)
    here = json.loads(identity.report())
    assert version.startswith("3.14") and compiled.endswith(".pyc") and there["engine"] == "browser"
    assert len(here["digests"]) > 200
    assert there["digests"] == here["digests"]


def test_a_cell_that_prints_a_lot_sends_few_messages(ran: list[Ran]) -> None:
    """Each takes the page long; none is lost."""
    page, code = ran[-1].page, "for number in range(2000): print(number)"
    assert page.evaluate(sitepages.EXECUTE, code).split() == [*map(str, range(2000))]
    assert page.evaluate(STREAMED, code) < 1000


def test_a_figure_steps_without_python(site: sitepages.Pages) -> None:
    page = site.page("docs/museum.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    figure = page.locator("figure.run").last
    figure.scroll_into_view_if_needed()
    shown = figure.locator(".kc")  # the figures before it start their players, too, as they come into sight
    shown.wait_for()
    before = int(shown.get_attribute("data-step"))
    shown.locator("[data-do='back']").click()
    figure.locator(f".kc[data-step='{before - 1}']").wait_for()
    page.screenshot(path=ARTIFACTS / "museum.png")
    assert "do not edit" not in page.locator("main").inner_text()
    red, green, blue = page.locator(".gauge.warn b").first.evaluate(COLOUR)
    assert 1.05 / (0.05 + 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2) > 4.5  # against white
    assert before > 0 and not [url for url in asked if "pyodide" in url]
    page.close()


def test_the_start_page_fits(site: sitepages.Pages) -> None:
    """A question and a hint are whole on a phone, the first Tab stop leads to the text, no button is printed."""
    page = site.page("index.html", site.context(viewport=PHONE))
    assert page.locator(".lessons td:nth-child(3)").first.bounding_box()["width"] > 250
    assert page.locator(".kc .reply").evaluate("(it) => it.scrollHeight <= it.clientHeight")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/index.html#content")
    page.emulate_media(media="print")
    assert page.locator("header").is_hidden() and page.locator(".kc .bar").first.is_hidden()
    page.close()


def test_without_scripts_nothing_is_promised(site: sitepages.Pages) -> None:
    """The cluster is a picture without buttons; the search leads on."""
    context = site.context(java_script_enabled=False)
    page = site.page("try.html", context)
    assert page.locator("#at img").is_visible() and page.locator("noscript").is_visible()
    assert page.locator("#state").is_hidden() and page.locator("#copy").is_hidden()
    page.goto(site.server.address + "search.html")
    assert page.locator("noscript a").is_visible()
    page.close()


def test_the_search_finds_docs_lessons_and_code(site: sitepages.Pages, built: Built) -> None:
    """What is typed before the index is there is not lost. Lessons are named as lessons, and no word is cut."""
    context, held = site.context(), list[Any]()
    context.route("**/search.json", lambda route: held.append(route))
    page = site.page("index.html", context)
    field, count = page.locator("input[type=search]"), page.locator("#count")
    field.fill("controller")
    page.keyboard.press("Enter")
    count.filter(has_text="index is loading").wait_for()
    page.keyboard.type(" epoch")
    for route in held:
        route.continue_()
    found = results(page)
    assert field.input_value() == "controller epoch" and re.fullmatch(
        r"\d+ sections; the first 30:", count.inner_text()
    )
    assert {link.split("/")[0] for link, _, _ in found} >= {"docs", "kafka_ctl", "lab"}
    assert all(re.match(r"Lesson \d+, ", title) for link, title, _ in found if link.startswith("lab/"))
    page.screenshot(path=ARTIFACTS / "search.png")
    texts = [" ".join(row[1:]).lower() for row in json.loads((built.folder / "search.json").read_text("utf-8"))]
    words = {word for text in texts for word in text.split()}
    assert {word for *_, excerpt in found for word in excerpt.lower().split()} - words <= {"…"}
    field.fill("KAFKA-7482")
    assert "KAFKA-7482" in results(page)[0][2]
    field.fill(next(word for word in sorted(words) if word.isalpha() and sum(word in text for text in texts) == 1))
    assert len(results(page)) == 1 and count.inner_text() == "1 section"
    field.fill("zookeeper zzz")
    assert results(page) == [] and "No section" in count.inner_text()
    field.fill("controller epoch")
    page.locator("#found a", has_text="Glossary").first.click()
    page.wait_for_selector("h1 >> text=Glossary")
    page.close()


def results(page: Any) -> list[list[str]]:
    """The address, the title and the excerpt of each result of a search that has ended."""
    page.locator("#count").filter(has_text="ection").wait_for()
    found: list[list[str]] = page.evaluate(
        "() => [...document.querySelectorAll('#found li')].map((row) => "
        "[row.firstChild.getAttribute('href'), row.firstChild.textContent, row.lastChild.textContent])"
    )
    return found


def test_an_address_without_a_page_leads_on(site: sitepages.Pages, built: Built) -> None:
    """In the site's look at any depth, also past its head; a folder of documents shows its README."""
    page = site.page("docs/no/such.html")
    page.wait_for_selector("base", state="attached")
    page.wait_for_function("() => getComputedStyle(document.querySelector('header')).display === 'flex'")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/no/such.html#content")
    page.locator("main a", has_text="start page").click()
    page.wait_for_url(site.server.address + "index.html")
    page.close()
    assert all((built.folder / name / "index.html").exists() for name in ("docs", "notebooks"))


def test_every_link_leads_somewhere(built: Built) -> None:
    """From all pages, to files and to headings in them: the documentation, code, stories, lessons, runs."""
    pages = sitelinks.pages(built.folder)
    assert {"index.html", "try.html", "search.html", "docs/museum.html"} <= pages.keys() and len(pages) > 150
    assert [wrong for name in pages for wrong in sitelinks.wrong(name, pages, built.folder)] == []
    found = {address for name, page in pages.items() for address in page.links}
    for lesson in built.lessons:
        assert f"lab/index.html?path={lesson.file}" in {link.removeprefix("../") for link in found}, lesson.file


def test_every_page_has_a_title_and_a_description(built: Built) -> None:
    """For search engines and shared links."""
    head = re.compile(r'<title>(.+)</title>\n<meta name="description" content="([^"]{8,})">')
    for name in sitelinks.pages(built.folder):
        found = head.search((built.folder / name).read_text("utf-8"))
        assert found and found[1].endswith("The Kafka controller, taught"), name
        assert len(unescape(found[2])) <= 160, name


def test_stories_are_figures(built: Built) -> None:
    pages = sitelinks.pages(built.folder)
    stories = [name for name in pages if name.startswith("tests/traces/")]
    assert len(stories) >= 25
    assert [name for name in (*stories, "docs/glossary.html", "docs/README.html") if pages[name].figures != 1] == []
    assert pages["docs/museum.html"].figures == len(EXHIBITS)


def test_lessons_link_to_pages_of_the_site(built: Built) -> None:
    """Every link of a lesson has its file, its page, and on that page the heading."""
    pages = sitelinks.pages(built.folder)
    walked = 0
    for lesson in built.lessons:
        for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose(lesson.book)):
            name, _, part = link.partition("#")
            assert (built.folder / "files" / lesson.file).parent.joinpath(name).resolve().exists(), (lesson.file, link)
            target = (lesson.path.parent / name).resolve()
            if target.is_file() and target.suffix not in (".ipynb", *documents.PICTURES):
                page = pages[documents.address(target)]
                assert not part or part in page.anchors, (lesson.file, link)
                walked += 1
    assert walked > 40


def test_a_link_of_a_lesson_opens_its_page(site: sitepages.Pages) -> None:
    """A document at its heading and a file of code, as pages, not as text; on a phone, and before Python."""
    context = site.context(viewport=PHONE)
    context.add_init_script(sitepages.NO_PYTHON)
    page = site.page("lab/index.html?path=notebooks/21-crashes-and-disks.ipynb", context)
    page.wait_for_function("() => document.querySelector('.jp-Notebook')?.clientWidth > 250")
    for file, address in (
        ("docs/fidelity.md", "docs/fidelity.html#what-is-not-compared-and-why"),
        ("kafka_ctl/brokers/disk.py", "kafka_ctl/brokers/disk.py.html"),
    ):
        link = page.locator(f".jp-RenderedMarkdown a[href*='files/{file}']").first
        link.wait_for(state="attached", timeout=120_000)
        with page.context.expect_page() as opened:
            link.click()
        opened.value.wait_for_selector("h1")
        assert opened.value.url == site.server.address + address
        opened.value.close()
    page.close()


def test_the_link_of_an_incident_opens_it(site: sitepages.Pages) -> None:
    """In a notebook of its own, which stays as it is when the link is used again."""
    incident = on_call(14, logs_only=True)
    context = site.context()
    for number in range(2):
        if number:
            context.add_init_script(sitepages.NO_PYTHON)  # what is there is what was saved
        page = site.page(incident.link(), context)
        page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.context?.path === 'on-call-14-logs.ipynb'"
        )
        page.locator(".jp-OutputArea-output", has_text=str(incident).splitlines()[0]).wait_for()
        page.locator(".jp-OutputArea-output", has_text="RunningAsBroker").wait_for()
        page.evaluate(browser.SAVE)
        page.screenshot(path=ARTIFACTS / "incident.png")
        page.close()


def test_what_a_start_imports_is_compiled(built: Built) -> None:
    """In the standard library and the wheels; Python never compares it with the time of its source."""
    folder, unchecked = built.folder / "static/pyodide", bytes([1, 0, 0, 0])
    for pattern, module in (
        ("python_stdlib.zip", "enum.pyc"),
        ("ipython-9*.whl", "IPython/core/__pycache__/interactiveshell.cpython-314.pyc"),
        ("kafka_ctl-*.whl", "kafka_ctl/lab/__pycache__/lab.cpython-314.pyc"),
    ):
        (path,) = folder.glob(pattern)
        with zipfile.ZipFile(path) as packed:
            assert packed.read(module)[4:8] == unchecked, module


def test_every_page_is_small(built: Built) -> None:
    """With all that it loads by itself, before Python: at most a megabyte."""
    shared = ("page.css", "player.css", "figures.mjs", "player.mjs")
    more = {
        "index.html": ("live.mjs", "try.mjs"),
        "try.html": ("live.mjs", "try.mjs"),
        "search.html": ("search.mjs", "search.json", "minisearch.js"),
    }
    for name in sitelinks.pages(built.folder):
        size = sum((built.folder / each).stat().st_size for each in (name, *shared, *more.get(name, ())))
        assert size < 1_000_000, name


def test_the_benchmark_of_the_site_runs(site: sitepages.Pages, built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m benchmarks site`, shortly, on the site that is built and open already."""
    monkeypatch.setattr(build, "build", lambda folder, _: shutil.copytree(built.folder, folder))
    monkeypatch.setattr(sitepages, "opened", lambda folder: contextlib.nullcontext(site))
    for size, value in benchmark.QUICK.items():
        monkeypatch.setattr(benchmark, size, value)
    measured = list(benchmark.measure())
    assert len(measured) > 5 and all(re.search(r"\d", row.result) for row in measured), measured


def test_what_is_outside_is_refused_and_counted(site: sitepages.Pages) -> None:
    """The check above can fail."""
    page = site.page("page.css")
    failed: Any = page.evaluate("() => fetch('http://outside.invalid/').then(() => false, () => true)")
    assert failed and site.outside == ["http://outside.invalid/"]
    site.outside.clear()
    page.close()
