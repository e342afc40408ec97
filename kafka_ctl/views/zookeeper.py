"""ZooKeeper's tree: znodes with data and version, ephemeral ones tied to their owner, watches as they fire.

Separate from `frames.py` because a view is loaded when it is asked for.
Only znodes that say something are drawn (with their parents), and the directories between a topic and the
states of its partitions are left out; many states of one topic become one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from kafka_ctl.cluster import parse_int
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel, controller_of, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import ZNode
from kafka_ctl.views.captions import READS
from kafka_ctl.views.frames import PartState, Picture, Token, View, pill_width
from kafka_ctl.views.gauges import Leaderless, seconds
from kafka_ctl.views.legend import ZOOKEEPER, add_legend
from kafka_ctl.views.scene import Box, Part, Point, Scene, Text, box, shorten, stroke
from kafka_ctl.views.status import session_state
from kafka_ctl.views.steps import Step
from kafka_ctl.zookeeper.store import parent_of

STATES = 12
"""A topic with more partitions than this has one node for all their states."""
CHILDREN = 24
"""The most children of a znode that are drawn; what happens to further ones shows at their parent."""
WIDTH, TREE, SESSIONS, ROW, INDENT, BROKER = 538.0, 396.0, 430.0, 26.0, 15.0, 36.0
"""Pixels of the picture; where the tree ends and the brokers begin; of a line, of a level and of a broker."""
QUIET = ("/cluster", "/config", "/latest_producer_id_block")
"""Trees that hold no news for the controller."""


class ZooKeeperView(View):
    """Draws the tree and, at its right, the brokers whose sessions hold the ephemeral znodes."""

    title = "ZooKeeper"

    def __init__(self, supergraph: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        self.supergraph = supergraph
        partitions = Counter(topic for topic, _ in supergraph.partitions)
        self.many = {topic for topic, number in partitions.items() if number > STATES}
        self.owners = {
            (self.node(r.path), number_of(r.actor)): None
            for r in records
            if r.kind == "zk" and r.action == "create" and r.target == "ephemeral" and r.path
        }
        self.nodes = self._nodes()
        self.brokers = sorted(supergraph.brokers)
        self.leaderless = Leaderless()
        self._boxes: dict[str, Box] = {}

    @classmethod
    def is_relevant(cls, record: Record) -> bool:
        if record.kind == "zk":
            return record.action not in READS and record.error in (None, "BADVERSION")
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
        shown = [p for p, z in self.supergraph.znodes.items() if (z.data or z.owner) and not p.startswith(QUIET)]
        nodes: dict[str, str] = {"/": ""}
        for path in sorted({self.node(path) for path in shown}, key=_order):
            chain = [path]
            while (above := self.node(parent_of(chain[-1]))) != "/":
                chain.append(above)
            for name, above in zip(reversed(chain), ["/", *reversed(chain)], strict=False):
                if name not in nodes and sum(1 for p in nodes.values() if p == above) < CHILDREN:
                    nodes[name] = above
        return nodes

    @property
    def drawn(self) -> tuple[object, ...]:
        """The inputs of the drawing: two views with the same inputs draw the same."""
        return tuple(self.nodes.items()), tuple(self.brokers), tuple(self._owned())

    def _owned(self) -> list[tuple[str, int]]:
        return [(name, broker) for name, broker in self.owners if name in self.nodes and broker in self.brokers]

    def _depth(self, name: str) -> int:
        return 0 if name == "/" else 1 + self._depth(self.nodes[name])

    @cached_property
    def scene(self) -> Scene:
        """The tree as indented lines, and at its right the brokers, spread over the same height."""
        apart = max(BROKER + 28, ROW * len(self.nodes) / max(len(self.brokers), 1))
        scene = Scene(WIDTH, 8 + max(ROW * len(self.nodes), apart * len(self.brokers)))
        for row, name in enumerate(self.nodes):
            left = 4 + INDENT * self._depth(name)
            self._boxes[name] = Box(left, 4 + ROW * row, 30 if name == "/" else TREE - left, ROW - 4)
        scene.add(*(self._guide(name, above) for name, above in self.nodes.items() if above))
        places = (Box(SESSIONS, 6 + apart * n, WIDTH - SESSIONS - 4, BROKER) for n in range(len(self.brokers)))
        sides = dict(zip(self.brokers, places, strict=True))
        scene.add(*(self._held(name, sides[broker], broker) for name, broker in self._owned()))
        scene.add(*(self._znode(name) for name in self.nodes))
        scene.add(*(_session(broker, where) for broker, where in sides.items()))
        add_legend(scene, ZOOKEEPER)
        return scene

    def _znode(self, name: str) -> Part:
        where, line = self._boxes[name], self._boxes[name].y + 15.5
        label = Text(where.x + 8, line, short_name(name), 12, "start", bold=True)
        texts = label, Text(TREE - 8, line, "x", 12, "end")
        return Part(f"znode:{name}", where, (box(*where, 5),), texts, "zoo", title=name)

    def _guide(self, name: str, above: str) -> Part:
        where, over = self._boxes[name], self._boxes[above]
        x, y = over.x + 7, where.middle[1]
        line = f"M{x:g},{over.y + over.height:g}V{y:g}H{where.x:g}"
        return Part(f"child:{name}", Box(x, over.y, where.x - x, y - over.y), (stroke(line),), (), "wire")

    def _held(self, name: str, side: Box, broker: int) -> Part:
        line = curve((TREE, self._boxes[name].middle[1]), (side.x, side.middle[1]))
        where = Box(TREE, side.y, SESSIONS - TREE, 1)
        return Part(f"own:{name}>{broker}", where, (stroke(line),), (), "wire", line=line)

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        records = step.records if step else ()
        hot = {self.node(r.path) for r in records if r.path}
        looks: dict[str, PartState] = {}
        now = step.time_ms if step else model.time_ms
        lost = {
            self.node(f"/brokers/topics/{topic}/partitions/{partition}/state"): seconds(since, now)
            for (topic, partition), since in self.leaderless.at(model, now).items()
        }
        for name, above in self.nodes.items():
            there, text = self._text(model, name)
            znode = model.znodes.get(name)
            style = "zoo" + (" ephemeral" if znode and znode.owner else "") if there else "plate new faded"
            label = f"{name.split('/')[-2]}: no leader {lost[name]}" if name in lost else short_name(name)
            style += (" hot" if name in hot else "") + (" leaderless" if name in lost else "")
            looks[f"znode:{name}"] = PartState(style, (label, text))
            if above:
                looks[f"child:{name}"] = PartState("wire" if there else "wire faded")
        for name, broker in self.owners:
            znode = model.znodes.get(name)
            held = znode is not None and number_of(znode.owner) == broker
            looks[f"own:{name}>{broker}"] = PartState("wire ephemeral held" if held else "wire gone")
        for broker in self.brokers:
            seen = model.brokers.get(broker)
            gone = ("down", "down") if seen and seen.is_gone else ("absent", "not seen yet")
            style, state = ("up", "alive") if seen and seen.alive else gone
            texts = f"Broker {broker}", session_state(model, broker, now) or state
            looks[f"session:{broker}"] = PartState(f"plate {style}", texts)
        text = f"{len(model.znodes)} znodes."
        for name in sorted(hot & set(self.nodes))[:4]:
            there, data = self._text(model, name)
            text += f" {shorten(name, 60)}: {data or ('there' if there else 'gone')}."
        return Picture(looks, tuple(self._tokens(records)), text)

    def _text(self, model: ClusterModel, name: str) -> tuple[bool, str]:
        """True if a node is there, and the text in it."""
        if name.endswith("/…"):
            states = [p for p in model.znodes if p.startswith(name[:-1]) and p.endswith("/state")]
            return bool(states), f"{len(states)} partition states"
        znode = model.znodes.get(name)
        if name == "/":
            return True, ""
        if znode is None:
            return any(p.startswith(name + "/") for p in model.znodes), ""
        room = self._boxes[name].width - 7.2 * len(short_name(name)) - 26
        return True, shorten(meaning(name, znode), max(8, int(room / 6.4)))

    def _tokens(self, records: Sequence[Record]) -> list[Token]:
        found: dict[str, Token] = {}
        right: dict[int, float] = {}
        """The right end of the next pill below a broker: pills of one step lie side by side, if there is room."""
        parts = self.scene.parts
        for record in records:
            broker, name = number_of(record.actor), self.node(record.path or "")
            if name not in self.nodes:
                name = parent_of(name)
            side = parts.get(f"session:{broker}")
            if broker is None or side is None or f"znode:{name}" not in parts or not record.path:
                continue
            away, where = record.kind == "watch", self._boxes[name]
            styles = "parcel " + ("watch" if away else "write" if record.error is None else "refused")
            ends = (where.x + where.width, where.middle[1]), (side.box.x, side.box.middle[1])
            label = shorten((record.target or "watch") if away else record.error or record.action, 26)
            line = curve(*(ends if away else ends[::-1]))
            end = right.get(broker, WIDTH - 4)
            if line in found or (broker in right and end - pill_width(label) < side.box.x):
                continue
            right[broker] = end - pill_width(label) - 4
            beside = end - pill_width(label) / 2, side.box.y + side.box.height + 13
            found[line] = Token(line, label, styles, beside=beside)
        return list(found.values())


def curve(start: Point, end: Point) -> str:
    """A line from a point to another whose two ends are horizontal."""
    (x0, y0), (x1, y1) = start, end
    bend = (x1 - x0) / 2
    return f"M{x0:.1f},{y0:.1f}C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"


def _session(broker: int, where: Box) -> Part:
    middle = where.middle[0]
    texts = Text(middle, where.y + 15, f"Broker {broker}", 12, bold=True), Text(middle, where.y + 29, "x", 12)
    name, title, of = f"session:{broker}", f"The session of broker {broker}", f"broker:{broker}"
    return Part(name, where, (box(*where),), texts, title=title, of=of)


def _order(path: str) -> tuple[int, list[tuple[int, str]]]:
    """The order of nodes: controllers, then brokers, then topics; numbers as numbers."""
    first = ("/controller", "/brokers/ids", "/brokers/topics")
    rank = next((i for i, start in enumerate(first) if path.startswith(start)), len(first))
    return rank, [(-1, word) if (n := parse_int(word)) is None else (n, "") for word in path.split("/")]


def short_name(path: str) -> str:
    """The label of a node: the last part of its path, with the partition for a state."""
    parts = path.split("/")
    if parts[-1] == "state" and len(parts) > 5:
        return f"partitions/{parts[-2]}/state"
    if parts[-1] == "…":
        return "partitions/…/state"
    return path if path == "/" else shorten("/" + parts[-1], 26)


def meaning(path: str, znode: ZNode) -> str:
    """The data of a znode in few words, with its version."""
    fields, version = details.json_object(znode.data), f"v{znode.version}"
    if path == "/controller":
        return f"broker {controller_of(znode.data)}, ephemeral"
    if path.endswith("/state") and "leader" in fields:
        isr = ",".join(map(str, details.ids(fields.get("isr"))))
        return f"leader {fields['leader']}, ISR {isr}, {version}"
    if path.startswith("/brokers/ids/"):
        return f"{fields.get('host', '?')}:{fields.get('port', '?')}, ephemeral"
    if path.startswith("/brokers/topics/") and isinstance(fields.get("partitions"), dict):
        number = len(fields["partitions"])
        return f"{number} partition{'s' * (number != 1)}, {version}"
    return f"{znode.data}, {version}" if znode.data else ""
