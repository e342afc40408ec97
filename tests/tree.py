"""The project as text, for tests that hold rules over all of it."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_ctl.paths import ROOT


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that belongs to the project, with its text."""
    own = ".ci benchmarks diagrams docs kafka_ctl notebooks tests tools".split()
    tops = [top for top in sorted(ROOT.iterdir()) if top.is_file() or top.name in own]
    for path in (path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*")))):
        if path.is_file() and not {".git", "__pycache__", ".ipynb_checkpoints"} & set(path.parts):
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
