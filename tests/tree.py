"""The project as text, for tests that hold rules over all of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kafka_ctl.paths import ROOT


@cache
def package() -> dict[Path, list[ast.AST]]:
    """The files of the package, and every node of their code."""
    paths = sorted((ROOT / "kafka_ctl").rglob("*.py"))
    return {path: list(ast.walk(ast.parse(path.read_text("utf-8")))) for path in paths}


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that belongs to the project, with its text."""
    own = ".ci benchmarks diagrams docs kafka_ctl kafka_ctl_course notebooks tests tools".split()
    tops = [top for top in sorted(ROOT.iterdir()) if top.is_file() or top.name in own]
    for path in (path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*")))):
        if path.is_file() and not {".git", "__pycache__", ".ipynb_checkpoints"} & set(path.parts):
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
