"""The speed of the pictures, in a real JupyterLab in a real Chromium.

From a click to the frame that shows it, for steps of a film and for calls of a living cluster (5 brokers, 60
partitions); 200 frames made ready; a cluster of 1,000 partitions opened; a film as a GIF.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import Figure
from kafka_ctl import Lab
from kafka_ctl.paths import ROOT
from kafka_ctl.views.dot import to_svg
from kafka_ctl.views.frames import film
from kafka_ctl.views.widget.payload import payload

CELLS = {
    "player": "lab.player(limit=200)",
    "live": "lab",
}
START = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl import Lab
lab = Lab(brokers=5, seed=7)
lab.create_topic("orders", partitions=60, replication_factor=3)
lab.settle()
"""
LARGE = START.replace("brokers=5", "brokers=10").replace("partitions=60", "partitions=1000")
STEPS, KILLS, SETTLES, GIF = 40, 8, 6, 36
"""Of each measure: steps, turns of killing or starting every broker, turns of a broker that dies and comes back;
steps of a GIF."""
QUICK = {"STEPS": 2, "KILLS": 2, "SETTLES": 2, "GIF": 2, "LARGE": LARGE.replace("1000", "100")}
PAUSE = 200
"""Milliseconds between two clicks: a person needs more."""
CLICKED = """async ([selector, times]) => {
  const root = document.querySelector('.kc'), taken = [];
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  for (let i = 0; i < times; i++) {
    const picked = typeof selector === 'string' ? selector : selector[i % selector.length];
    const button = root.querySelector(picked), before = root.dataset.step;
    const changed = new Promise((done) => {
      const watch = new MutationObserver(() => { if (root.dataset.step !== before) { watch.disconnect(); done(); } });
      watch.observe(root, { attributes: true, attributeFilter: ['data-step'] });
    });
    const start = performance.now();
    button.click();
    await changed; await painted();
    taken.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 60));
  }
  return taken;
}"""
"""Clicks and waits until the browser has painted the step that follows; milliseconds of each click."""


OPENED = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = 1;
  panel.content.widgets[1].model.sharedModel.setSource('lab');
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const start = performance.now();
  await window.jupyterapp.commands.execute('notebook:run-cell');
  while (!document.querySelector('.kc .part')) await frame();
  await frame();
  return [performance.now() - start];
}"""
"""Runs a cell that shows the lab and waits until the browser has painted it."""


class Place(NamedTuple):
    """A folder, the JupyterLab that serves it, and a page; each notebook has a kernel of its own."""

    folder: Path
    server: Any
    page: Any


def notebook(folder: Path, name: str, last: str, start: str = START) -> None:
    """A notebook that opens the lab and, in a cell of its own, shows it as `last` says."""
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (start, last)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / name)


def in_browser(
    place: Place | None, last: str, measure: Callable[[Any], list[float]], start: str = START
) -> list[float]:
    """Run a notebook in JupyterLab and measure its output."""
    from tests import browser

    assert place is not None
    name = f"{measure.__name__}.ipynb"
    notebook(place.folder, name, last, start)
    assert browser.run_all(place.page, place.server, name)
    if last:
        place.page.wait_for_selector(".kc .part")
    return measure(place.page)


def stepping(page: Any) -> list[float]:
    """Next, next, next."""
    page.evaluate("() => document.querySelector(\".kc [data-do='first']\").click()")
    page.wait_for_selector(".kc[data-step='0']")
    page.evaluate(CLICKED, [".kc [data-do='next']", 5])
    return list(page.evaluate(CLICKED, [".kc [data-do='next']", STEPS]))


def offered(page: Any, broker: int, action: str) -> str:
    """Open the menu of a broker at the last step; the selector of one of its buttons."""
    page.evaluate("() => document.querySelector(\".kc [data-do='last']\").click()")
    page.select_option(".kc .actions select", f"broker:{broker}")
    page.click(".kc .actions .open")
    button = f".kc .menu [data-act='{action}']"
    page.wait_for_selector(button)
    return button


def killing(page: Any) -> list[float]:
    """Each broker is killed, and started again: a call of the kernel, and the frame that comes of it."""
    taken: list[float] = []
    for turn in range(KILLS):
        for broker in range(1, 6):
            button = offered(page, broker, "kill" if turn % 2 == 0 else "start")
            page.wait_for_timeout(PAUSE)
            taken += page.evaluate(CLICKED, [button, 1])
    return taken[5:]


def settling(page: Any) -> list[float]:
    """A dead broker is noticed: some twenty frames come of one click."""
    taken: list[float] = []
    for action in ("kill", "start") * SETTLES:
        page.evaluate(CLICKED, [offered(page, 2, action), 1])
        page.wait_for_timeout(PAUSE)
        taken += page.evaluate(CLICKED, [".kc .time [data-act='settle']", 1])
    return taken[2:]


def frames(_: Place | None) -> list[float]:
    """200 frames of a long run, from records to what is sent: processor time, once Graphviz has been started."""
    to_svg("digraph { started }")
    with Lab(brokers=5, seed=7) as lab:
        lab.create_topic("orders", partitions=60, replication_factor=3)
        lab.settle()
        for broker in (1, 2, 3, 4, 5) * 2:
            lab.kill(broker)
            lab.settle()
            lab.start(broker)
            lab.settle()
        start = time.process_time()
        made = film(lab.trace, limit=200)
        json.dumps(payload([made]))
        assert len(made) == 201
        return [1000 * (time.process_time() - start)]


def moving(place: Place | None) -> list[float]:
    """A film of so many steps, from records to the written GIF."""
    assert place is not None
    with Lab(brokers=3, seed=7) as lab:
        lab.create_topic("orders", partitions=3, replication_factor=3)
        lab.settle()
        lab.kill(1)
        lab.settle()
        lab.start(1)
        lab.settle()
        start = time.perf_counter()
        lab.export(place.folder / "film.gif", limit=GIF - 1)  # and the beginning
        return [1000 * (time.perf_counter() - start)]


def opening(page: Any) -> list[float]:
    """A lab of 1,000 partitions: from the cell that shows it to the painted picture, in a new kernel."""
    return list(page.evaluate(OPENED))


MEASURES: tuple[tuple[str, Callable[[Place | None], list[float]], float, float], ...] = (
    ("a step of a film: click to painted frame", lambda at: in_browser(at, CELLS["player"], stepping), 10, 20),
    ("a call of the lab: click to painted frame", lambda at: in_browser(at, CELLS["live"], killing), 45, 90),
    ("until quiet: click to first painted frame", lambda at: in_browser(at, CELLS["live"], settling), 250, 500),
    ("200 frames made ready (processor time)", frames, 2000, 2000),
    ("1,000 partitions: cell to painted frame", lambda at: in_browser(at, "", opening, LARGE), 1000, 1000),
    ("a GIF of 36 steps", moving, 10_000, 10_000),
)
"""The measures, their functions, and the limits in milliseconds of the median and of the 95th percentile."""


def measure() -> Iterator[Figure]:
    """Each as median and 95th percentile, beside its limits; without a browser, what needs none."""
    from tests import browser

    if browser.CHROMIUM is None:
        yield from _measured(None)
        return
    size = {"width": 1500, "height": 1100}
    with (
        tempfile.TemporaryDirectory() as folder,
        browser.lab(Path(folder)) as server,
        browser.page(viewport=size) as page,
    ):
        yield from _measured(Place(Path(folder), server, page))


def _measured(place: Place | None) -> Iterator[Figure]:
    for name, run, median, high in MEASURES:
        if place is None and run is not frames:
            yield Figure(name, "not measured", "there is no Chromium on PATH")
            continue
        taken = sorted(run(place))
        middle, late = statistics.median(taken), taken[max(0, round(0.95 * len(taken)) - 1)]
        verdict = "" if middle <= median and late <= high else ", too slow here"
        yield Figure(name, f"{middle:.0f} ms, 95 % {late:.0f} ms", f"limits {median}, {high} ms{verdict}")
