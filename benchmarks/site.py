"""The site of `kafka-ctl site`: how large it is, how long it takes to be built, and what a first visitor waits for.

Seconds depend on what else the machine does, so the processor seconds of the browser stand beside them.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.engine import worked
from benchmarks.figures import Figure
from kafka_ctl.errors import Unavailable
from kafka_ctl.paths import ROOT

PARTITIONS, TIMES, VISITS = 1_000, 5, ("first", "second")
QUICK = {"PARTITIONS": 20, "TIMES": 1, "VISITS": ("first",)}
LESSON = "notebooks/17-the-bug-museum.ipynb"


class Watch:
    """Wall seconds, processor seconds of the browser and megabytes sent since it was made."""

    def __init__(self, server: Any) -> None:
        self.server, self.sent = server, server.sent
        self.cpu, self.wall = worked(os.getpid(), "chrom"), time.perf_counter()

    def __str__(self) -> str:
        wall, spent = time.perf_counter() - self.wall, worked(os.getpid(), "chrom") - self.cpu
        sent = (self.server.sent - self.sent) / 1e6
        return f"{wall:.1f} s, {spent:.1f} s CPU, {sent:.1f} MB"


def speed(partitions: int, times: int) -> int:
    """Records a second of a broker failure in this process; its text also runs in the browser."""
    import time

    from kafka_ctl import Lab

    best = 0.0
    for _ in range(times):
        with Lab(brokers=3, seed=11) as lab:
            lab.create_topic("t", partitions=partitions, replication_factor=3)
            lab.settle()
            lab.kill(1)
            before, began = len(lab.trace), time.perf_counter()
            lab.settle()
            best = max(best, (len(lab.trace) - before) / (time.perf_counter() - began))
    return round(best)


def measure() -> Iterator[Figure]:
    sys.path.insert(0, str(ROOT / "tests"))
    import browser
    import sitepages

    from tools.site import build

    began = time.perf_counter()
    with TemporaryDirectory() as folder:
        site = Path(folder, "site")
        build.build(site, lambda _: None)
        yield Figure(
            "build", f"{time.perf_counter() - began:.1f} s", "downloads kept from an earlier build not counted"
        )
        files = [path for path in site.rglob("*") if path.is_file()]
        yield Figure("site", f"{sum(path.stat().st_size for path in files) / 1e6:.1f} MB", f"{len(files)} files")
        if browser.CHROMIUM is None:
            raise Unavailable("the browser: there is no Chromium on PATH")
        with sitepages.opened(site) as pages:
            yield from _pages(pages)


def _pages(pages: Any) -> Iterator[Figure]:
    import sitepages

    context = pages.context()
    for visit in VISITS:
        watch = Watch(pages.server)
        page = pages.page("try.html", context)
        page.wait_for_selector(".kc.live .view svg .part")
        yield Figure(f"try-it page, {visit} visit: first picture", str(watch))
        page.locator(".kc.live [data-id='head:2']").first.click()
        page.locator(".kc.live .menu button", has_text="Kill").click()
        page.wait_for_function("() => document.querySelector('.script').textContent.includes('lab.kill(2)')")
        yield Figure(f"try-it page, {visit} visit: first command done", str(watch))
        page.close()
    watch = Watch(pages.server)
    page = pages.page("docs/README.html")
    page.wait_for_selector("figure.run .kc .view svg .part")
    yield Figure("the documentation: first figure", str(watch))
    page.close()
    watch = Watch(pages.server)
    page = pages.page(f"lab/index.html?path={LESSON}")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    yield Figure("a lesson: readable", str(watch))
    page.wait_for_function(sitepages.READY)
    page.evaluate(sitepages.EXECUTE, "1")
    yield Figure("a lesson: first cell done", str(watch))
    code = f"{inspect.getsource(speed)}\nprint(speed({PARTITIONS}, {TIMES}))"
    there, here = page.evaluate(sitepages.EXECUTE, code), speed(PARTITIONS, TIMES)
    yield Figure("records a second, a broker fails", f"{int(there):,}", f"{here:,} in this Python")
