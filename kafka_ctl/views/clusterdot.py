"""The layout of the cluster picture: everything that ever appears, as one graph."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.dot import FONT, Digraph, encode_id, label
from kafka_ctl.views.frames import PartState
from kafka_ctl.views.palette import graph_attributes
from kafka_ctl.views.scene import shorten

ZNODES = {
    "/controller": "/controller",
    "/controller_epoch": "/controller_epoch",
    "/brokers/ids": "/brokers/ids",
    "state": "…/partitions/N/state",
}
"""The znodes that are drawn, and what is written on them."""
COUNTS = {
    "leader": "leads",
    "insync": "in sync",
    "lagging": "out of sync",
    "offline": "offline",
    "differs": "differ",
}
"""How replicas are counted in a large cluster, and the words for it."""
CHIP, ROLE = 0.29, 0.21
"""Inches: how high a replica is, and the line below it with what its broker was sent."""
ROW = 8
"""The most brokers side by side."""
ALIGNED = 12
"""Up to so many partitions a partition stands on the same line in every broker."""
GAP = 0.14

Key = tuple[str, int]


def replica_id(key: Key, broker: int) -> str:
    """The id of a replica's part: `replica:orders-0@1`."""
    return f"replica:{key[0]}-{key[1]}@{broker}"


class Layout:
    """Sizes and places follow from the union model alone, so that nothing jumps between frames."""

    def __init__(self, supergraph: ClusterModel, counted: bool) -> None:
        self.counted = counted
        self.brokers = sorted(supergraph.brokers)
        self.partitions = sorted(supergraph.partitions)
        self.names = {key: shorten(f"{key[0]}-{key[1]}", 16) for key in self.partitions}
        self.held: dict[int, list[Key]] = {broker: [] for broker in self.brokers}
        for topic, partition, broker in sorted(supergraph.replicas):
            self.held[broker].append((topic, partition))
        most = max((len(held) for held in self.held.values()), default=0)
        if not counted and len(self.partitions) <= ALIGNED:
            most = len(self.partitions)
        longest = max((len(name) for name in self.names.values()), default=8)
        self.columns = self._columns(most)
        self.width = min(1.75, max(0.95, 0.6 + longest * 0.088))
        if counted or self.columns == 1:
            self.width = 1.75
        self.has_roles = not counted and self.columns == 1
        """Whether there is room below each replica for what its broker was sent."""
        self.rows = -(-(len(COUNTS) if counted else most) // self.columns)

    def _columns(self, most: int) -> int:
        if self.counted or most <= 6:
            return 1
        return 2 if most <= 16 else 3 if most <= 40 else 4

    def digraph(self, looks: Mapping[str, PartState] | None = None) -> Digraph:
        """The union of all frames as a graph; with a frame's looks, its texts and colours instead of placeholders."""
        graph = Digraph(
            "cluster",
            graph_attr={
                "rankdir": "TB", "newrank": "true", "compound": "true", "splines": "line", "nodesep": str(GAP),
                "ranksep": "0.09", "fontname": FONT,
            },
            node_attr={"shape": "box", "style": "rounded", "fixedsize": "true", "fontname": FONT, "fontsize": "11.5"},
            edge_attr={"arrowhead": "none"},
        )  # fmt: skip
        with graph.subgraph(name="cluster_zookeeper") as ensemble:
            ensemble.attr(id="zookeeper", label="ZooKeeper", labeljust="l", fontsize="12", margin="10")
            for number, (path, name) in enumerate(ZNODES.items()):
                look = _dressed(f"znode:{path}", f"{name}\nx", looks)
                ensemble.node(f"zk{number}", id=encode_id(f"znode:{path}"), width="2.0", height="0.5", **look)
            with ensemble.subgraph(graph_attr={"rank": "same"}) as row:
                for number in range(1, len(ZNODES)):
                    row.edge(f"zk{number - 1}", f"zk{number}", style="invis")
        for broker in self.brokers:
            with graph.subgraph(name=f"cluster_{broker}") as box:
                self._broker(box, broker, looks)
        self._sessions(graph, looks)
        return graph

    def _broker(self, box: Digraph, broker: int, looks: Mapping[str, PartState] | None) -> None:
        width = max(self.columns * self.width + (self.columns - 1) * GAP, 1.95)
        box.attr(id=f"broker:{broker}", margin="8")
        head = _dressed(f"head:{broker}", f"Broker {broker}\nx\nx\nx", looks)
        box.node(f"b{broker}", id=f"head:{broker}", width=f"{width:.2f}", height="0.86", **head)
        above = [f"b{broker}"] * self.columns
        for place, (name, part, text) in enumerate(self._cells(broker)):
            look = {"id": encode_id(part), **_dressed(part, text, looks)} if part else {"style": "invis"}
            high = CHIP + ROLE * self.has_roles
            box.node(name, width=f"{self.width:.2f}", height=f"{high:.2f}", **look)
            box.edge(above[place % self.columns], name, style="invis", weight="100")
            above[place % self.columns] = name

    def _cells(self, broker: int) -> list[tuple[str, str, str]]:
        """The chips of a broker as (DOT name, part id, label); a hole, without id, keeps others in line."""
        if self.counted:
            return [(f"c{broker}_{style}", f"count:{broker}:{style}", words) for style, words in COUNTS.items()]
        held, cells = set(self.held[broker]), []
        for place, key in enumerate(self.partitions):
            if key in held:
                cells.append((f"r{place}_{broker}", replica_id(key, broker), self.names[key]))
            elif len(self.partitions) <= ALIGNED:
                cells.append((f"r{place}_{broker}", "", ""))
        return cells

    def _sessions(self, graph: Digraph, looks: Mapping[str, PartState] | None) -> None:
        """Lines from ZooKeeper to the first row of brokers; unseen edges hold the rest in place."""
        first, last = self.brokers[:ROW], len(ZNODES) - 1
        above = [round(place * last / max(len(first) - 1, 1)) for place in range(len(first))]
        for znode, broker in zip(above, first, strict=True):
            ends = {"ltail": "cluster_zookeeper", "lhead": f"cluster_{broker}"}
            if looks is not None and "gone" in looks[f"session:{broker}"].styles:
                ends["style"] = "invis"
            graph.edge(f"zk{znode}", f"b{broker}", id=f"session:{broker}", minlen="9", **ends)
        for znode in range(len(ZNODES)):
            if first and znode not in above:
                below = first[round(znode * (len(first) - 1) / last)]
                graph.edge(f"zk{znode}", f"b{below}", style="invis")
        for place, broker in enumerate(self.brokers[ROW:]):
            graph.edge(f"b{self.brokers[place]}", f"b{broker}", style="invis", minlen=str(self.rows + 3))


def _dressed(part: str, placeholder: str, looks: Mapping[str, PartState] | None) -> dict[str, str]:
    """Label and colours of a part in a frame; without a frame, a label of the same size."""
    look = (looks or {}).get(part)
    if look is None:
        return {"label": label(placeholder)} if looks is None else {"style": "invis"}
    below = (looks or {}).get(f"role:{part.removeprefix('replica:')}")
    texts = [*look.texts, *(below.texts if below is not None else ())]
    return {"label": label("\n".join(filter(None, texts)) or placeholder), **graph_attributes(look.styles)}
