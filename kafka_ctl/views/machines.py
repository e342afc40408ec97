"""The two state machines as pictures: the state of each subject, the move that was made, and the legal next moves.

The drawing is made from the transition table and from nothing else, so picture and machine cannot differ. The
same graph, with colours, is what `diagrams/` holds. `digraph` gives such a graph to go on with, also of a cluster or an
election: its attributes, nodes and edges are the `graphviz` package's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from kafka_ctl.errors import BadInput
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.table import Tables, TransitionTable, short
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.cluster.picture import ClusterView
from kafka_ctl.views.dot import FONT, Digraph, encode_id, label
from kafka_ctl.views.explain.elections import RULES, Inputs
from kafka_ctl.views.frames import PartState, Picture, Token, View, pill_width
from kafka_ctl.views.gauges import Leaderless, seconds
from kafka_ctl.views.legend import MACHINE, add_legend
from kafka_ctl.views.palette import THEMES
from kafka_ctl.views.scene import Part, Point, Scene, parse, shorten
from kafka_ctl.views.steps import Step, supergraph

if TYPE_CHECKING:
    from kafka_ctl.lab.lab import Lab


LIGHT = THEMES["light"]
ROWS = (
    ("NonExistentReplica", "ReplicaDeletionSuccessful"),
    ("NewReplica", "ReplicaDeletionStarted"),
    ("OnlineReplica", "OfflineReplica"),
)
"""States that stand side by side where there is room for names: so the seven of a replica are a circle."""
PORTS = {("OnlineReplica", "OnlineReplica"): {"tailport": "s", "headport": "s"}}
"""The ends of moves that would be in the way of others."""
NAMES = 21
"""The most characters of the names in a state."""


def machine_digraph(table: TransitionTable, roomy: bool = False) -> Digraph:
    """A table as a coloured graph; `roomy` leaves space inside the states for counts and names, and runs downwards."""
    apart, long, way = ("0.85", "0.42", "TB") if roomy else ("0.35", "0.5", "LR")
    size = {"width": "1.9", "height": "0.95", "fixedsize": "true"} if roomy else {"width": "1.25", "height": "0.45"}
    line = {"color": LIGHT["line"], "fontname": FONT}
    shape = {"shape": "box", "style": "rounded,filled", "fillcolor": LIGHT["panel"], "penwidth": "1.2"}
    graph = Digraph(
        table.name,
        graph_attr={"rankdir": way, "pad": "0.15", "nodesep": apart, "ranksep": long, "fontname": FONT},
        node_attr={**line, **shape, "fontsize": "13", **size},
        edge_attr={**line, "fontcolor": LIGHT["dim"], "fontsize": "12", "arrowsize": "0.8"},
    )
    for state in table.states:
        ends = {"peripheries": "2"} if state == table.initial and not roomy else {}
        text = label(name_of(state) + ("\nx\nx" if roomy else ""))
        graph.node(state, text, id=encode_id(f"state:{state}"), **_colours(state), **ends)
    for move in table.rows:
        ports = PORTS.get((move.source, move.target), {}) if roomy else {}
        graph.edge(
            move.source,
            move.target,
            label(move.action.replace("_", " ")),
            id=encode_id(f"move:{move.source}>{move.target}"),
            tooltip=label(move.effect),
            **ports,
        )
    for row in ROWS if roomy else ():
        if set(row) <= set(table.states):
            with graph.subgraph(graph_attr={"rank": "same"}) as same:
                for state in row:
                    same.node(state)
    return graph


def name_of(state: str) -> str:
    """A state as it is written in a picture: `Online`, `Deletion started`."""
    name = short(state).removeprefix("Replica")
    if not name.startswith("Deletion"):
        return name
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: " " + found[1].lower(), name)


def _colours(state: str) -> dict[str, str]:
    if state.startswith("Online"):
        return {"fillcolor": LIGHT["good_fill"], "color": LIGHT["good"], "penwidth": "2"}
    if state.startswith("Offline") or state.endswith("Ineligible"):
        return {"fillcolor": LIGHT["off"], "color": LIGHT["off_line"], "style": "rounded,filled,dashed"}
    if state.startswith("NonExistent"):
        return {"fillcolor": LIGHT["page"], "style": "rounded,filled,dotted"}
    return {}


class MachineView(View):
    """The parts that both machines' views share; a subclass names its kind of record, its tables, places of states."""

    kind = ""
    tables: ClassVar[Tables]
    """The legal transitions in each generation."""

    def __init__(
        self, supergraph: ClusterModel, records: Sequence[Record], steps: Sequence[Step], generation: str = "2.0"
    ) -> None:
        self.table, self.leaderless = self.tables[generation], Leaderless()

    @staticmethod
    def states(model: ClusterModel) -> dict[str, str]:
        """The members of the machine: name -> state."""
        raise NotImplementedError

    @classmethod
    def is_relevant(cls, record: Record) -> bool:
        if record.kind == "controller":
            return record.action == "elected"
        return record.kind in (cls.kind, "fault", "violation") or (record.kind == "zk" and record.action == "expired")

    @cached_property
    def scene(self) -> Scene:
        width, height, offset, parts = parse(machine_digraph(self.table, roomy=True).source)
        scene = Scene(width, height, offset)
        scene.add(*(self._dressed(part) for part in parts))
        add_legend(scene, MACHINE)
        return scene

    def _dressed(self, part: Part) -> Part:
        kind, _, name = part.id.partition(":")
        if kind == "state":
            box = part.box
            one, two, three = part.texts
            texts = (
                one._replace(bold=True, size=14 if len(one.text) < 16 else 13, y=box.y + 21),
                two._replace(size=14, y=box.y + 41),
                three._replace(size=12, y=box.y + 58),
            )
            return replace(part, texts=texts, title=name)
        source, _, target = name.partition(">")
        return replace(part, title=f"{source} → {target}: {self.table.find('', source, target).effect}")

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        states = self.states(model)
        made = [r for r in (step.records if step else ()) if r.kind == self.kind and not r.error]
        now = step.time_ms if step else model.time_ms
        lost = {f"{t}-{p}": seconds(since, now) for (t, p), since in self.leaderless.at(model, now).items()}
        members: dict[str, list[str]] = {state: [] for state in self.table.states}
        late = set[str]()
        for name, state in states.items():
            since = lost.get(name.partition("@")[0])
            members.setdefault(state, []).append(f"{name} {since}" if since else name)
            if since:
                late.add(state)
        taken = {(r.source or "", r.target or "") for r in made}
        entered = {target for _, target in taken}
        looks: dict[str, PartState] = {}
        for state in self.table.states:
            looks[f"state:{state}"] = self._state(state, members[state], state in entered, state in late)
        for move in self.table.rows:
            style, words = "wire legal" if move.source in entered else "wire", move.action.replace("_", " ")
            if (move.source, move.target) in taken:
                style, words = "wire taken", ""
            looks[f"move:{move.source}>{move.target}"] = PartState(style, (words,))
        text = ", ".join(f"{name_of(state)}: {len(names)}" for state, names in members.items() if names)
        return Picture(looks, tuple(self._tokens(made)), f"{self.title} by state: {text or 'nothing yet'}.")

    def _state(self, state: str, names: list[str], entered: bool, lost: bool) -> PartState:
        """The look of a state; `lost` if the partition of a member has no leader."""
        absent = state == self.table.initial
        style = "plate"
        if names and not absent:
            style = "plate down" if state.startswith("Offline") or state.endswith("Ineligible") else "plate active"
        if lost:
            style = "plate leaderless"
        if absent:
            style = "plate new"
        count = "–" if absent and not names else str(len(names))
        return PartState(style + (" hot" if entered else ""), (name_of(state), count, few(names)))

    def _tokens(self, made: Sequence[Record]) -> list[Token]:
        groups: dict[str, list[str]] = {}
        for record in made:
            groups.setdefault(f"move:{record.source}>{record.target}", []).append(self.name(record))
        found = []
        for move, names in groups.items():
            if part := self.scene.parts.get(move):
                subject = names[0] if len(set(names)) == 1 else str(len(names))
                name = part.texts[0]  # it takes the place of this name, so that the arrow is seen
                label = shorten(f"{name.text}: {subject}", 24)
                found.append(Token(part.line, label, rest=0.5, beside=self._inside(label, name.x, name.y - 6)))
        return found

    def _inside(self, label: str, x: float, y: float) -> Point:
        """The place for a label nearest to x, y at which none of it is cut off."""
        scene, half = self.scene, pill_width(label) / 2 + 2
        least = half - scene.offset[0]
        return max(least, min(x, least + scene.width - 2 * half)), y

    @staticmethod
    def name(record: Record) -> str:
        return f"{record.topic}-{record.partition}"


def few(names: Sequence[str]) -> str:
    """Both names if they fit, or the first and the number of others, in at most `NAMES` characters."""
    whole = ", ".join(names)
    if len(whole) <= NAMES:
        return whole
    more = f", +{len(names) - 1}" if len(names) > 1 else ""
    return shorten(names[0], NAMES - len(more)) + more


class PartitionView(MachineView):
    """The partition state machine."""

    kind = "partition"
    title = "Partitions"
    tables = PARTITION

    @staticmethod
    def states(model: ClusterModel) -> dict[str, str]:
        return {f"{t}-{p}": seen.state for (t, p), seen in sorted(model.partitions.items())}


class ReplicaView(MachineView):
    """The replica state machine."""

    kind = "replica"
    title = "Replicas"
    tables = REPLICA

    @staticmethod
    def states(model: ClusterModel) -> dict[str, str]:
        return {f"{t}-{p}@{b}": state for (t, p, b), state in sorted(model.replicas.items())}

    @staticmethod
    def name(record: Record) -> str:
        return f"{record.topic}-{record.partition}@{record.broker}"


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
    """The candidates in the order in which they are tried, the missing condition of each, and the leader."""
    record = trace.records[seq] if 0 <= seq < len(trace.records) else None
    if record is None or record.kind != "election" or record.action not in RULES:
        names = [r.seq for r in trace.records if r.kind == "election"]
        raise BadInput(f"record {seq} is not an election; the elections of this trace: {names[:12]}")
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
    groups = {"live": inputs.live, "shutting down": inputs.shutting_down, "log directory failed": inputs.without_disk}
    live = next((name for name, brokers in groups.items() if broker in brokers), "not live")
    return f"Broker {broker}\n{live}, {'in the ISR' if broker in inputs.isr else 'not in the ISR'}"


def _look(record: Record, inputs: Inputs, broker: int) -> dict[str, str]:
    if broker == record.leader:
        return {"fillcolor": LIGHT["leader"], "fontcolor": LIGHT["on_leader"]}
    fit = broker in inputs.live and broker in inputs.isr
    return {"fillcolor": LIGHT["insync" if fit else "off"], "style": "rounded,filled" + (",dashed" * (not fit))}
