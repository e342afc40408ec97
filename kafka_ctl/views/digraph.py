"""Graphs to go on with: a state machine, an election or a cluster as a `graphviz.Digraph`.

The pictures of this package are drawn from these graphs; whoever wants another picture changes the graph: its
attributes, nodes and edges are the `graphviz` package's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_ctl.errors import BadInput
from kafka_ctl.table import TransitionTable
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.cluster import ClusterView
from kafka_ctl.views.dot import FONT, Digraph, label
from kafka_ctl.views.explain.elections import RULES, Inputs
from kafka_ctl.views.machines import machine_digraph
from kafka_ctl.views.palette import THEMES
from kafka_ctl.views.supergraph import supergraph

if TYPE_CHECKING:
    from kafka_ctl.lab.lab import Lab

LIGHT = THEMES["light"]


def digraph(of: TransitionTable | Lab | Recorder, election: int | None = None) -> Digraph:
    """A transition table, the cluster of a lab (or at the end of a trace), or one of its elections as a graph.

    `election` is the `seq` of an election's record in the lab's trace. Raises BadInput for anything else.
    """
    if isinstance(of, TransitionTable):
        return machine_digraph(of)
    trace = of if isinstance(of, Recorder) else getattr(of, "trace", None)
    if not isinstance(trace, Recorder):
        raise BadInput(f"digraph cannot draw {type(of).__name__}; it takes a transition table, a lab or a trace")
    if election is not None:
        return _election(trace, election)
    now = ClusterModel().apply_all(trace.records)
    view = ClusterView(supergraph(trace.records), trace.records, ())
    return view.layout.digraph(view.picture(now, None).looks)


def _election(trace: Recorder, seq: int) -> Digraph:
    """The candidates in the order in which they are asked, what each lacks, and who leads."""
    record = trace.records[seq] if 0 <= seq < len(trace.records) else None
    if record is None or record.kind != "election" or record.action not in RULES:
        names = [r.seq for r in trace.records if r.kind == "election"]
        raise BadInput(f"record {seq} is no election; the elections of this trace: {names[:12]}")
    inputs = Inputs(trace, record)
    graph = Digraph(
        "election",
        graph_attr={"rankdir": "LR", "fontname": FONT, "label": label(RULES[inputs.strategy]), "labelloc": "t"},
        node_attr={"shape": "box", "style": "rounded,filled", "fontname": FONT, "fontsize": "12"},
        edge_attr={"color": LIGHT["line"], "arrowsize": "0.7"},
    )
    partition = f"{record.topic}-{record.partition}"
    graph.node("partition", label(f"{partition}\nISR {list(inputs.isr)}"), fillcolor=LIGHT["panel"])
    before = "partition"
    for broker in inputs.target:
        graph.node(f"b{broker}", label(_candidate(inputs, broker)), **_look(record, inputs, broker))
        graph.edge(before, f"b{broker}")
        before = f"b{broker}"
    return graph


def _candidate(inputs: Inputs, broker: int) -> str:
    live = "live" if broker in inputs.live else "shutting down" if broker in inputs.shutting_down else "not live"
    return f"Broker {broker}\n{live}, {'in the ISR' if broker in inputs.isr else 'not in the ISR'}"


def _look(record: Record, inputs: Inputs, broker: int) -> dict[str, str]:
    if broker == record.leader:
        return {"fillcolor": LIGHT["leader"], "fontcolor": LIGHT["on_leader"]}
    fit = broker in inputs.live and broker in inputs.isr
    return {"fillcolor": LIGHT["insync" if fit else "off"], "style": "rounded,filled" + (",dashed" * (not fit))}
