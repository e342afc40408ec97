"""The layout of the cluster picture: everything that ever appears, as one DOT text."""

from __future__ import annotations

from kafka_ctl.views.cluster_model import Model
from kafka_ctl.views.dot import FONT, quote, quote_id
from kafka_ctl.views.scene import shorten

ZNODES = {
    "/controller": "/controller",
    "/controller_epoch": "/controller_epoch",
    "/brokers/ids": "/brokers/ids",
    "state": "…/partitions/N/state",
}
"""The znodes that are drawn, and what is written on them."""
COUNTS = {"leader": "leads", "insync": "in sync", "lagging": "out of sync", "offline": "offline"}
"""How replicas are counted in a large cluster, and the words for it."""
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

    def __init__(self, union: Model, counted: bool) -> None:
        self.counted = counted
        self.brokers = sorted(union.brokers)
        self.partitions = sorted(union.partitions)
        self.names = {key: shorten(f"{key[0]}-{key[1]}", 16) for key in self.partitions}
        self.held: dict[int, list[Key]] = {broker: [] for broker in self.brokers}
        for topic, partition, broker in sorted(union.replicas):
            self.held[broker].append((topic, partition))
        most = max((len(held) for held in self.held.values()), default=0)
        if not counted and len(self.partitions) <= ALIGNED:
            most = len(self.partitions)
        longest = max((len(name) for name in self.names.values()), default=8)
        self.columns = self._columns(most)
        self.width = min(1.75, max(0.95, 0.6 + longest * 0.088))
        if counted or self.columns == 1:
            self.width = 1.75
        self.rows = -(-(len(COUNTS) if counted else most) // self.columns)

    def _columns(self, most: int) -> int:
        if self.counted or most <= 6:
            return 1
        return 2 if most <= 16 else 3 if most <= 40 else 4

    def dot(self) -> str:
        """The union of all frames as DOT."""
        lines = [
            "digraph cluster {",
            "  graph [rankdir=TB newrank=true compound=true splines=line",
            f'         nodesep={GAP} ranksep=0.09 fontname="{FONT}"];',
            f'  node [shape=box style=rounded fixedsize=true fontname="{FONT}" fontsize=11.5];',
            "  edge [arrowhead=none];",
            "  subgraph cluster_zookeeper {",
            '    id="zookeeper" label="ZooKeeper" labeljust=l fontsize=12 margin=10;',
        ]
        for number, (path, name) in enumerate(ZNODES.items()):
            look = f"width=2.0 height=0.5 label={quote(name + chr(10) + 'x')}"
            lines.append(f"    zk{number} [id={quote_id('znode:' + path)} {look}];")
        side_by_side = " -> ".join(f"zk{number}" for number in range(len(ZNODES)))
        lines += [f"    {{ rank=same; edge [style=invis]; {side_by_side} }}", "  }"]
        for broker in self.brokers:
            lines += self._broker(broker)
        return "\n".join([*lines, *self._sessions(), "}"])

    def _broker(self, broker: int) -> list[str]:
        width = max(self.columns * self.width + (self.columns - 1) * GAP, 1.95)
        head = f'id="head:{broker}" width={width:.2f} height=0.68 label="Broker {broker}\\nx\\nx"'
        lines = [
            f"  subgraph cluster_{broker} {{",
            f'    id="broker:{broker}" margin=8; b{broker} [{head}]; edge [style=invis weight=100];',
        ]
        above = [f"b{broker}"] * self.columns
        for place, (name, part, label) in enumerate(self._cells(broker)):
            look = f"id={quote_id(part)} label={quote(label)}" if part else "style=invis"
            lines.append(f"    {name} [width={self.width:.2f} height=0.29 {look}];")
            lines.append(f"    {above[place % self.columns]} -> {name};")
            above[place % self.columns] = name
        return [*lines, "  }"]

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

    def _sessions(self) -> list[str]:
        """Lines from ZooKeeper to the first row of brokers; unseen edges hold the rest in place."""
        first, last = self.brokers[:ROW], len(ZNODES) - 1
        above = [round(place * last / max(len(first) - 1, 1)) for place in range(len(first))]
        lines = [
            f'  zk{znode} -> b{broker} [id="session:{broker}" ltail=cluster_zookeeper lhead=cluster_{broker} minlen=9];'
            for znode, broker in zip(above, first, strict=True)
        ]
        for znode in range(len(ZNODES)):
            if first and znode not in above:
                below = first[round(znode * (len(first) - 1) / last)]
                lines.append(f"  zk{znode} -> b{below} [style=invis];")
        for place, broker in enumerate(self.brokers[ROW:]):
            lines.append(f"  b{self.brokers[place]} -> b{broker} [style=invis minlen={self.rows + 3}];")
        return lines
