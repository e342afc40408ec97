"""A folder served on 127.0.0.1, as any static host would serve it."""

from __future__ import annotations

import contextlib
import functools
import http
import http.server
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kafka_ctl.errors import BadInput
from kafka_ctl.jupyter.launch import free_port

USUAL_PORT = 8000
TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm", ".whl": "application/zip"}
"""Types that some systems name otherwise, and a browser insists on."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, counts them, and prints nothing."""

    index_pages = ("index.html", "index.htm")

    def send_head(self) -> Any:
        """Answer 404 for what is no path, and for what a link in the folder leads out of it."""
        try:
            path, folder = self.translate_path(self.path), os.path.realpath(self.directory)
            for place in (path, *(os.path.join(path, index) for index in self.index_pages)):
                if os.path.commonpath([os.path.realpath(place), folder]) != folder:
                    raise ValueError(place)
            return super().send_head()
        except ValueError:  # such as a null character
            self.send_error(http.HTTPStatus.NOT_FOUND, "File not found")
            return None

    def list_directory(self, path: Any) -> None:
        """A folder without a page of its own is not there."""
        self.send_error(http.HTTPStatus.NOT_FOUND, "File not found")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer 404 with the site's own page, if it has one."""
        page = Path(self.directory, "404.html")
        if code == http.HTTPStatus.NOT_FOUND and page.is_file():
            self.error_message_format = page.read_text(encoding="utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def guess_type(self, path: Any) -> str:
        return TYPES.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # no file is used twice without a question whether it has changed
        super().end_headers()

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Content-Length":
            self.server.sent += int(value)  # type: ignore[attr-defined]
        super().send_header(keyword, value)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Site(http.server.ThreadingHTTPServer):
    """A server on 127.0.0.1; `sent` counts the bytes of the files it has sent."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.sent = 0
        super().__init__(("127.0.0.1", port), functools.partial(Handler, directory=folder))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """`http://127.0.0.1:port/`."""
        return f"http://127.0.0.1:{self.server_port}/"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Serve the folder on a free port, in the background, until the end of the block."""
    with Site(folder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def forever(
    folder: Path, port: int | None, report: Callable[[str], object], build: Callable[[], object] = lambda: None
) -> None:
    """Take the port, `build` the folder and serve it until Ctrl-C. Raises BadInput when the port is taken."""
    if port and free_port(port) != port:
        raise BadInput(f"port {port} is taken on 127.0.0.1; give another port, or none to use a free one")
    with Site(folder, port or free_port(USUAL_PORT)) as server:
        build()
        report(f"\nThe course is at\n\n    {server.address}\n\nCtrl-C ends it.\n")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
