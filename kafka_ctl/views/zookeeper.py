"""ZooKeeper's tree: znodes with data and version, ephemeral ones tied to their owner, watches as they fire.

Only znodes that say something are drawn (with their parents), and the directories between a topic and the
states of its partitions are left out; many states of one topic become one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafka_ctl.cluster import parse_int
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel, controller_of, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import ZNode
from kafka_ctl.views.dot import FONT, Digraph, encode_id, label
from kafka_ctl.views.frames import PartState, Picture, Token
from kafka_ctl.views.scene import Box, Part, Scene, parse, shorten
from kafka_ctl.views.steps import Step

STATES = 12
"""A topic with more partitions than this has one node for all their states."""
CHILDREN = 24
"""The most children of a znode that are drawn; what happens to further ones shows at their parent."""
ROOM = 74
"""Pixels before a broker where the label of a fired watch stands."""
QUIET = ("/cluster", "/config", "/latest_producer_id_block")
"""Trees that hold no news for the controller."""


class ZooKeeperView:
    """Draws the tree and, at its right, the brokers whose sessions hold the ephemeral znodes."""

    title = "ZooKeeper"

    def __init__(self, union: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        self.union = union
        self.many = {
            topic for topic in {t for t, _ in union.partitions} if sum(t == topic for t, _ in union.partitions) > STATES
        }
        self.owners = {
            (self.node(r.path), number_of(r.actor)): None
            for r in records
            if r.kind == "zk" and r.action == "create" and r.target == "ephemeral" and r.path
        }
        self.nodes = self._nodes()
        self.brokers = sorted(union.brokers)
        self._scene: Scene | None = None

    @staticmethod
    def wants(record: Record) -> bool:
        if record.kind == "zk":
            return record.action not in ("get", "exists", "children") and record.error in (None, "BADVERSION")
        return record.kind in ("watch", "fault", "violation")

    def node(self, path: str) -> str:
        """The node that stands for a path: itself, or the one its partition states share."""
        parts = path.split("/")
        if parts[1:3] == ["brokers", "topics"] and len(parts) > 4:
            topic = "/".join(parts[:4])
            if parts[-1] != "state":
                return topic
            return f"{topic}/…" if parts[3] in self.many else path
        return path

    def _nodes(self) -> dict[str, str]:
        """The drawn nodes and their parents, parents first."""
        shown = [p for p, z in self.union.znodes.items() if (z.data or z.owner) and not p.startswith(QUIET)]
        nodes: dict[str, str] = {"/": ""}
        for path in sorted({self.node(path) for path in shown}, key=_order):
            chain = [path]
            while (above := self.node(parent(chain[-1]))) != "/":
                chain.append(above)
            for name, above in zip(reversed(chain), ["/", *reversed(chain)], strict=False):
                if name not in nodes and sum(1 for p in nodes.values() if p == above) < CHILDREN:
                    nodes[name] = above
        return nodes

    def digraph(self) -> Digraph:
        """The union of all trees as a graph."""
        graph = Digraph(
            "zookeeper",
            graph_attr={
                "rankdir": "LR", "ordering": "out", "pad": "0.1", "nodesep": "0.12", "ranksep": "0.3", "fontname": FONT,
            },
            node_attr={
                "shape": "box", "style": "rounded", "fixedsize": "true", "width": "2.3", "height": "0.48",
                "fontname": FONT, "fontsize": "12",
            },
            edge_attr={"arrowhead": "none"},
        )  # fmt: skip
        number = {name: f"z{i}" for i, name in enumerate(self.nodes)}
        for name, above in self.nodes.items():
            size = {"width": "0.5"} if name == "/" else {}
            graph.node(number[name], label(short_name(name) + "\nx"), id=encode_id(f"znode:{name}"), **size)
            if above:
                graph.edge(number[above], number[name], id=encode_id(f"child:{name}"))
        with graph.subgraph(graph_attr={"rank": "max"}) as sessions:
            for held in self.brokers:
                sessions.node(f"b{held}", label(f"Broker {held}\nx"), id=f"session:{held}", width="1.3")
        for name, broker in self.owners:
            if name in number and broker in self.union.brokers:
                graph.edge(number[name], f"b{broker}", id=encode_id(f"own:{name}>{broker}"), constraint="false")
        leaf = number[max(self.nodes, key=self._depth)]
        for held in self.brokers:
            graph.edge(leaf, f"b{held}", style="invis", minlen="3")
        return graph

    def _depth(self, name: str) -> int:
        return 0 if name == "/" else 1 + self._depth(self.nodes[name])

    def scene(self) -> Scene:
        if self._scene is None:
            width, height, offset, parts = parse(self.digraph().source)
            self._scene = Scene(width, height, offset)
            self._scene.add(*(_dressed(part) for part in parts))
        return self._scene

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        records = step.records if step else ()
        hot = {self.node(r.path) for r in records if r.path}
        looks: dict[str, PartState] = {}
        for name, above in self.nodes.items():
            there, text = self._text(model, name)
            znode = model.znodes.get(name)
            style = "zoo" + (" ephemeral" if znode and znode.owner else "") if there else "plate new faded"
            looks[f"znode:{name}"] = PartState(style + (" hot" if name in hot else ""), (short_name(name), text))
            if above:
                looks[f"child:{name}"] = PartState("wire" if there else "wire faded")
        for name, broker in self.owners:
            znode = model.znodes.get(name)
            held = znode is not None and number_of(znode.owner) == broker
            looks[f"own:{name}>{broker}"] = PartState("wire ephemeral held" if held else "wire gone")
        for broker in self.brokers:
            seen = model.brokers.get(broker)
            alive = bool(seen and seen.alive)
            text = "alive" if alive else "down"
            looks[f"session:{broker}"] = PartState("plate up" if alive else "plate down", (f"Broker {broker}", text))
        touched = [
            f" {shorten(name, 60)}: {_said(*self._text(model, name))}." for name in sorted(hot & set(self.nodes))
        ]
        text = f"{len(model.znodes)} znodes.{''.join(touched[:4])}"
        return Picture(looks, tuple(self._tokens(records)), text)

    def _text(self, model: ClusterModel, name: str) -> tuple[bool, str]:
        """Whether a node is there, and what is written in it."""
        if name.endswith("/…"):
            states = [p for p in model.znodes if p.startswith(name[:-1]) and p.endswith("/state")]
            return bool(states), f"{len(states)} partition states"
        znode = model.znodes.get(name)
        if name == "/":
            return True, ""
        if znode is None:
            return any(p.startswith(name + "/") for p in model.znodes), ""
        return True, shorten(meaning(name, znode), 30)

    def _tokens(self, records: Sequence[Record]) -> list[Token]:
        found: dict[str, Token] = {}
        for record in records:
            broker, name = number_of(record.actor), self.node(record.path or "")
            if name not in self.nodes:
                name = parent(name)
            if broker is None or f"znode:{name}" not in self.scene().parts or not record.path:
                continue
            away = record.kind == "watch"
            line, rest = self._line(name, broker, away)
            styles = "parcel " + ("watch" if away else "write" if record.error is None else "refused")
            if line:
                label = (record.target or "watch") if away else record.error or record.action
                found.setdefault(line, Token(line, shorten(label, 26), styles, rest))
        return list(found.values())

    def _line(self, name: str, broker: int, away: bool) -> tuple[str, float]:
        """The curve between a znode and a broker's session, and where on it there is room for a label."""
        parts = self.scene().parts
        if f"session:{broker}" not in parts:
            return "", 0.0
        a, b = parts[f"znode:{name}"].box, parts[f"session:{broker}"].box
        ends = (a.x + a.width, a.middle[1]), (b.x, b.middle[1])
        (x0, y0), (x1, y1) = ends if away else ends[::-1]
        bend = (x1 - x0) / 2
        line = f"M{x0:.1f},{y0:.1f}C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        return line, 1 - (ROOM if away else ROOM / 2) / abs(x1 - x0)


def _dressed(part: Part) -> Part:
    """A laid out node with its words in place."""
    kind, _, name = part.id.partition(":")
    if kind not in ("znode", "session") or len(part.texts) < 2:
        return part
    box: Box = part.box
    one, two = part.texts
    texts = (one._replace(bold=True, y=box.y + 14), two._replace(size=11.5, y=box.y + 28))
    return replace(part, texts=texts, title=name, of=f"broker:{name}" if kind == "session" else "")


def _order(path: str) -> tuple[int, list[tuple[int, str]]]:
    """Who decides first, then who is there, then who copies what; numbers as numbers."""
    first = ("/controller", "/brokers/ids", "/brokers/topics")
    rank = next((i for i, start in enumerate(first) if path.startswith(start)), len(first))
    return rank, [(-1, word) if (n := parse_int(word)) is None else (n, "") for word in path.split("/")]


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def short_name(path: str) -> str:
    """What is written on a node: the last part of its path, with the partition for a state."""
    parts = path.split("/")
    if parts[-1] == "state" and len(parts) > 5:
        return f"partitions/{parts[-2]}/state"
    if parts[-1] == "…":
        return "partitions/…/state"
    return path if path == "/" else shorten("/" + parts[-1], 19)


def meaning(path: str, znode: ZNode) -> str:
    """The data of a znode in few words, with its version."""
    said, version = details.json_object(znode.data), f"v{znode.version}"
    if path == "/controller":
        return f"broker {controller_of(znode.data)}, ephemeral"
    if path.endswith("/state") and "leader" in said:
        isr = ",".join(map(str, details.ids(said.get("isr"))))
        return f"leader {said['leader']}, ISR {isr}, {version}"
    if path.startswith("/brokers/ids/"):
        return f"{said.get('host', '?')}:{said.get('port', '?')}, ephemeral"
    if path.startswith("/brokers/topics/") and isinstance(said.get("partitions"), dict):
        return f"{len(said['partitions'])} partitions, {version}"
    return f"{znode.data}, {version}" if znode.data else ""


def _said(there: bool, text: str) -> str:
    return text or ("there" if there else "gone")
