"""The imports of a notebook that a browser lacks: asked of Python itself, with everything else hidden from it.

A child process tries each import with only the standard library, the kit and the packages of the site; a name is
lacking when it cannot be imported, when what it runs imports such a package, or when its module starts threads,
processes or connections, which Python in a browser does not have. `python -m tools.site.imports` is that process.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from types import FunctionType, ModuleType
from typing import Any

from kafka_ctl.paths import ROOT

Name = tuple[str, str]
"""A module and a name of it, empty for the module itself."""
PROCESSES = {"subprocess", "socket", "threading", "multiprocessing"}
"""Modules that can be imported in a browser, and do nothing there."""


def lacking(wanted: Iterable[Name], there: Sequence[str]) -> dict[Name, str]:
    """Of these imports, those that a browser lacks, each with the package or module that is missing."""
    given = json.dumps({"wanted": sorted(set(wanted)), "there": [*there]})
    command = [sys.executable, "-m", "tools.site.imports"]
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, check=True)
    return {(module, name): why for module, name, why in json.loads(done.stdout)}


class Hidden:
    """Finds modules as Python does, but nothing that is not there in a browser."""

    def __init__(self, there: Sequence[str]) -> None:
        self.there = {*there, *sys.stdlib_module_names, "kafka_ctl", "kafka_ctl_course", "tools"}

    def install(self) -> None:
        """Take the place of what finds modules on the path."""
        sys.meta_path[:] = [self if finder is PathFinder else finder for finder in sys.meta_path]

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        top = name.partition(".")[0]
        is_there = top in self.there or top.endswith("__mypyc")  # compiled parts of a package lie beside it
        return PathFinder.find_spec(name, path, target) if is_there else None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """The versions for `importlib.metadata`: packages read their own when they are imported."""
        return MetadataPathFinder.find_distributions(context)


def missing(module: str, name: str, hidden: Hidden) -> str | None:
    """The package that the browser lacks for this import; None where it has all."""
    try:
        found: Any = importlib.import_module(module)
        if name:
            found = getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError as error:
        return error.name or module
    except Exception as error:  # Unavailable, of what is loaded at its first use
        return error.__context__.name if isinstance(error.__context__, ModuleNotFoundError) else str(error)
    if not module.startswith("kafka_ctl") or isinstance(found, ModuleType):
        return None
    home = sys.modules.get(getattr(found, "__module__", ""), None)
    if home is None:
        return None
    tree = ast.parse(inspect.getsource(home))
    return _of_process(tree) or (
        _of_function(tree, found.__name__, hidden) if isinstance(found, FunctionType) else None
    )


def _of_process(tree: ast.Module) -> str | None:
    return next((each for each in _imported(tree.body) if each in PROCESSES), None)


def _of_function(tree: ast.Module, name: str, hidden: Hidden) -> str | None:
    """A hidden package that a function imports when it runs, or one that it calls in the same module."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    todo, seen = [name], set[str]()
    while todo:
        node = functions.get(this := todo.pop())
        if node is None or this in seen:
            continue
        seen.add(this)
        inside = [*ast.walk(node)]
        if hit := next((each for each in _imported(inside) if each not in hidden.there), None):
            return hit
        todo += [each.id for each in inside if isinstance(each, ast.Name)]
    return None


def _imported(nodes: Iterable[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def main() -> None:
    """Answer the question on standard input."""
    asked = json.load(sys.stdin)
    hidden = Hidden(asked["there"])
    hidden.install()
    answers = [(module, name, missing(module, name, hidden)) for module, name in asked["wanted"]]
    print(json.dumps([answer for answer in answers if answer[2]]))


if __name__ == "__main__":
    main()
