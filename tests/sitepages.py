"""The built site in a headless Chromium that is cut off from everything else: every other request is counted and fails.

with sitepages.opened(folder) as site:
    page = site.notebook("notebooks/03-partition-and-replica-states.ipynb")
    site.start(page)
    cells = site.ended(page)
assert not site.outside
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser

from tools.notebooks import PROGRESS
from tools.site import serve

NOTEBOOK = "window.jupyterapp?.shell.currentWidget"
READY = f"""() => {{
  const panel = {NOTEBOOK};
  return panel?.content?.widgets?.length && panel.sessionContext?.session?.kernel?.status === "idle";
}}"""
RUN = """() => window.jupyterapp.commands.execute('notebook:run-all-cells')
  .then((ok) => { window.ended = ok ?? true; }, (error) => { window.ended = String(error); }) && null"""
EXECUTE = f"""async (code) => {{
  const asked = {NOTEBOOK}.sessionContext.session.kernel.requestExecute({{ code }}), said = [];
  asked.onIOPub = ({{ content }}) => said.push(content.text ?? content.traceback?.join("\\n") ?? "");
  await asked.done;
  return said.join("");
}}"""
"""Run code in the kernel of the page's notebook; what it prints."""
QUIET = f"() => {NOTEBOOK}.sessionContext.session.kernel.status === 'idle'"
CELLS = f"() => {NOTEBOOK}.content.model.sharedModel.cells.map((cell) => cell.toJSON())"
NO_PYTHON = "window.Worker = class extends EventTarget { postMessage() {} terminate() {} };"
"""A script of a page whose Python never starts."""
SLOWEST = 600_000
"""Milliseconds that the slowest step, the start of a page's Python, may take: a busy machine needs more than 240 s."""


class Pages:
    """A browser with the site; `outside` are the addresses of other places that it was asked for."""

    def __init__(self, chromium: Any, server: serve.Site) -> None:
        self.chromium, self.server = chromium, server
        self.outside: list[str] = []
        self.errors: list[str] = []

    def context(self, **options: Any) -> Any:
        """A browser's storage of its own: JupyterLab in two windows of one would share its workspace."""
        made = self.chromium.new_context(**{"viewport": {"width": 1280, "height": 1000}} | options)
        made.route(lambda url: not url.startswith((self.server.address, "data:", "blob:")), self._refuse)
        return made

    def _refuse(self, route: Any) -> None:
        self.outside.append(route.request.url)
        route.abort()

    def page(self, path: str, context: Any = None) -> Any:
        """A new page with this address of the site, in a storage of its own or in the one of `context`."""
        page = (context or self.context()).new_page()
        page.set_default_timeout(SLOWEST)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(self.server.address + path)
        return page

    def notebook(self, path: str, context: Any = None) -> Any:
        """A page of JupyterLab with a notebook whose kernel answers."""
        page = self.page(f"lab/index.html?path={path}", context)
        page.wait_for_function(READY)
        return page

    def start(self, page: Any) -> None:
        """Run all cells of a page's notebook, as soon as its kernel answers."""
        page.wait_for_function(READY)
        page.evaluate(RUN)

    def ended(self, page: Any) -> list[dict[str, Any]]:
        """The cells when all have run."""
        page.wait_for_function("() => window.ended !== undefined")
        page.wait_for_function(QUIET)
        found: list[dict[str, Any]] = page.evaluate(CELLS)
        return found


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Pages]:
    """The site in a browser of its own."""
    from playwright.sync_api import sync_playwright

    with serve.running(folder) as server, sync_playwright() as playwright:
        arguments = [*browser.ARGUMENTS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        chromium = playwright.chromium.launch(executable_path=browser.CHROMIUM, args=arguments)
        try:
            yield Pages(chromium, server)
        finally:
            chromium.close()


def outputs(cells: list[dict[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """What code cells said, by their ids, without what names this session's widgets or how busy the machine is."""
    reported = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        found: dict[str, str] = {}
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found["error"] = f"{output['ename']}: {output['evalue']}"
            elif output["output_type"] == "stream":
                found[output["name"]] = PROGRESS.sub("", found.get(output["name"], "") + "".join(output["text"]))
            else:
                data = {
                    kind: text if isinstance(text, str) else "".join(text)
                    for kind, text in output["data"].items()
                    if not kind.endswith("widget-view+json")
                }
                found |= data
        reported[cell["id"]] = sorted((kind, text.rstrip()) for kind, text in found.items())
    return reported


def stored(folder: Path, path: str) -> list[dict[str, Any]]:
    """The cells of a notebook as the site has it."""
    cells: list[dict[str, Any]] = json.loads((folder / "files" / path).read_text("utf-8"))["cells"]
    return cells
