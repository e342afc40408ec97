"""Our own rules, held over whatever is in the tree: sizes, one-way imports, a core that needs no library."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kafka_ctl.paths import ROOT

PACKAGE = ROOT / "kafka_ctl"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8"), name) for name, path in MODULES.items()}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

ORDER = """
    errors visible
    paths writing
    cluster table assignment scala_order
    partition replica election balance generation
    plugins
    trace
    requests latencies
    ports
    setup
    zookeeper
    controller
    brokers reassign
    simulation
    wire
    invariants kafka_log
    lab
    views history museum explore
    exercises
    __init__
    jupyter browser
    cli
    __main__
"""
"""Who may import whom: a module or folder imports from its own row and the rows above, never from below.

What is imported inside a function (a trace that saves itself as Parquet) is a convenience and not counted.
"""

CORE = """
    errors visible paths writing cluster table partition replica election balance assignment generation trace
    scala_order
    plugins ports requests latencies controller brokers reassign lab museum explore exercises simulation invariants
    kafka_log
    zookeeper.store zookeeper.memory zookeeper.znodes __init__ __main__ setup.bootstrap setup.installer
""".split()
"""What imports the standard library only, so that it runs wherever Python does."""

HEAVY = (
    "IPython anywidget click crc32c ipywidgets kazoo kio matplotlib numpy pandas pyarrow pyspark rich wasmtime".split()
)


def dotted(name: str) -> str:
    """`zookeeper/store.py` as `zookeeper.store`, `lab/__init__.py` as `lab`."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


NAMES = {dotted(name) for name in MODULES}


def within(module: str, names: list[str]) -> str | None:
    """The longest of `names` that is the module or a folder it is in."""
    fitting = [name for name in names if module == name or module.startswith(f"{name}.")]
    return max(fitting, key=len, default=None)


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules these statements import, in full: `from kafka_ctl.lab import story` imports `kafka_ctl.lab.story`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, "imports are absolute"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name.removeprefix("kafka_ctl.") in NAMES else node.module for name in inner)


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones as well."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def lines(node: ast.stmt) -> int:
    """How many lines a definition takes, decorators not counted."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


LONGER = {
    "generation.py": "a table: two lines for each difference and bug",
    "trace/messages.py": "a table: a row for each message of a controller",
    "trace/reasons.py": "a table: the rules behind requests, writes, events and what brokers do",
}
"""Modules of more than 400 lines, and why each is one concept."""


def test_a_module_fits_in_one_sitting() -> None:
    """A file is a concept, as long as the concept is: at most 400 lines, unless it is listed with a reason."""
    sizes = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name for name, size in sizes.items() if size > 400} == set(LONGER)
    assert {name: size for name, size in sizes.items() if size > 700} == {}


def test_a_function_fits_on_a_screen() -> None:
    """At most 45 lines, docstring included."""
    sizes = {f"{name}: {node.name}": lines(node) for name, tree in TREES.items() for node in functions(tree)}
    assert {name: size for name, size in sizes.items() if size > 45} == {}


def test_what_is_public_says_what_it_is() -> None:
    """Modules, public functions and public classes have docstrings, but for those of a few lines."""
    silent = [name for name, tree in TREES.items() if tree.body and not ast.get_docstring(tree)]
    for name, tree in TREES.items():
        defined = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        public = [node for node in defined if not node.name.startswith("_") and lines(node) > 5]
        silent += [f"{name}: {node.name}" for node in public if not ast.get_docstring(node)]
    assert silent == []


def test_imports_go_one_way() -> None:
    """Concepts build on those above them in `ORDER`."""
    rank = {word: number for number, row in enumerate(ORDER.split("\n")) for word in row.split()}
    places = {name: within(dotted(name), list(rank)) for name in MODULES}
    assert [name for name, place in places.items() if place is None] == [], "give these a place in ORDER"
    wrong = []
    for name, place in places.items():
        for imported in imports(TREES[name].body):
            other = within(imported.removeprefix("kafka_ctl."), list(rank))
            if imported.startswith("kafka_ctl.") and place and other and rank[other] > rank[place]:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def circles() -> list[list[str]]:
    """The groups of modules that import each other round and round: also inside functions, or only for types."""
    graph = {
        dotted(name): {module.removeprefix("kafka_ctl.") for module in imports(ast.walk(tree))} & NAMES
        for name, tree in TREES.items()
    }
    reached = {module: reachable(graph, module) for module in graph}
    groups = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph}
    return sorted((list(group) for group in groups if group), key=len, reverse=True)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """What a module imports, and what that imports, and so on; itself only if that leads back to it."""
    found: set[str] = set()
    todo = [start]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_no_circles() -> None:
    """Cure: give a part what it needs of the whole, or a protocol of it, instead of the whole."""
    assert circles() == []


def test_the_core_needs_the_standard_library_only() -> None:
    """Also inside functions."""
    own = {*sys.stdlib_module_names, "kafka_ctl"}
    outside = {
        name: foreign
        for name, tree in TREES.items()
        if within(dotted(name), CORE)
        if (foreign := {module for module in imports(ast.walk(tree)) if module.split(".")[0] not in own})
    }
    assert outside == {}


def test_importing_the_package_is_light() -> None:
    """No library outside the standard one comes along."""
    code = f"import sys, kafka_ctl; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


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


def test_nobodys_machine_is_in_the_tree() -> None:
    """No path of somebody's home or checkout, and no address of a package registry."""
    private = re.compile(r"(?<![\w.])/(?:root|home|Users|work)/\w|pythonhosted\.|pypi\.org/simple")
    found = {name: match.group() for name, text in texts() if (match := private.search(text))}
    assert not found


RETIRED = {
    "wish": "request",
    "wishes": "requests",
    "wished": "requested",
    "doomed": "to be deleted",
    "told": "sent, notified, reported",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "mending": "fixing",
    "astray": "not on its preferred leader",
    "homecoming": "preferred leader recovery",
    "hopeless": "election blocked by",
    "laggard": "lagging follower",
    "laggards": "lagging followers",
    "asleep": "paused",
    "teller": "narrator",
    "tale": "description",
    "by and by": "later",
    "words_of": "fields_of",
    "leaders-come-home": "preferred-leaders-restored",
    "the-dead-do-not-lead": "no-dead-leader",
    "everybody-is-told": "metadata-propagated",
    "what-is-wished-happens": "admin-requests-complete",
    "comes-to-rest": "quiesces",
    "is_in_step": "is_caught_up",
    "go_at": "set_fetch_delay",
    "counts_in": "is_in_isr",
    "may_join": "can_join_isr",
    "expire_laggards": "maybe_shrink_isrs",
    "fall_asleep": "pause",
}
"""Words that this project once coined, and the field's own.

Actions in golden traces and names of Kafka's log messages keep theirs (`reassignment_told`, `all-agree`).
"""


def test_retired_words_do_not_return() -> None:
    """In code, docs, notebooks and messages; `docs/glossary.md` has the words that are used."""
    ours = re.compile(r"(?<![a-zA-Z_-])(?:" + "|".join(RETIRED) + r")(?![a-zA-Z-])", re.IGNORECASE)
    places = ("kafka_ctl/", "tools/", "docs/", "notebooks/", "benchmarks/")
    found = {name: ours.findall(text) for name, text in texts() if name.startswith(places) and ours.search(text)}
    assert not found, f"instead: {RETIRED}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_saved_with_what_it_printed(path: Path) -> None:
    """Without outputs it would pass every comparison; with widget views it shows errors when opened."""
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert len(outputs) >= len(cells) / 4, "run all cells and save"
    views = [output for output in outputs if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert not views, "strip the widget views"
    assert not [output for output in outputs if output["output_type"] == "error"]


def test_there_are_notebooks() -> None:
    """The first lesson is where the command `lab` expects it."""
    from kafka_ctl.jupyter.launch import FIRST

    assert ROOT / FIRST in NOTEBOOKS
