"""The cluster: ZooKeeper above, brokers below, replicas inside them, requests on their way.

A replica is a chip: filled with a star where it leads, outlined with a dot in the ISR, dashed with a ring out
of it, dotted with a cross offline. Its star glides when the leader changes; a hollow star marks the preferred
replica. The crown is on the broker that is controller. Large clusters are counted per broker instead.

A replica is drawn as ZooKeeper has it. Below it stands what its broker was sent, and a mark where broker or controller
have something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views import status
from kafka_ctl.views.cluster import travel
from kafka_ctl.views.dot import FONT, Digraph, encode_id, label
from kafka_ctl.views.frames import PartState, Picture, View
from kafka_ctl.views.gauges import Leaderless, seconds
from kafka_ctl.views.legend import COUNTED, MARKS, REPLICAS, add_legend
from kafka_ctl.views.palette import graph_attributes
from kafka_ctl.views.scene import Box, Part, Point, Row, Scene, Text, box, shorten
from kafka_ctl.views.steps import Step

NOT_KNOWN = "(not in the logs)"
ZNODES = {
    "/controller": "/controller",
    "/controller_epoch": "/controller_epoch",
    "/brokers/ids": "/brokers/ids",
    "state": "…/partitions/N/state",
}
"""The znodes that are drawn, and what is written on them."""
COUNTS = {"leader": "leads", "insync": "in sync", "lagging": "out of sync", "offline": "offline", "differs": "differ"}
"""The order in which replicas are counted in a large cluster, and the words for it."""
CHIP, ROLE, APART = 21.0, 15.0, 5.0
"""Pixels: how high a replica is, the line below it with what its broker was sent, and the room between two."""
HEAD = 68.0
"""Pixels of a broker above its replicas."""
CELL, NARROW = 184.0, 78.0
"""Pixels of a broker with one column: as it is drawn, and the least in a browser."""
ROW = 8
"""The most brokers side by side in a drawing without script."""
ALIGNED = 12
"""Up to so many partitions a partition stands on the same line in every broker."""
GAP, EDGE = 8.0, 6.0
"""Pixels between two brokers, and around a picture."""
GRAPH = {"rankdir": "TB", "newrank": "true", "compound": "true", "splines": "line"}

Key = tuple[str, int]
Looks = dict[str, PartState]
Lags = Mapping[Key, Mapping[int, float]]
"""Partition -> follower -> since when, in milliseconds."""


def replica_id(key: Key, broker: int, kind: str = "replica") -> str:
    """The id of a replica's part: `replica:orders-0@1`; `differs` is its mark, `role` the line below it."""
    return f"{kind}:{key[0]}-{key[1]}@{broker}"


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
        self.cell = CELL if self.columns == 1 else min(140.0, max(84.0, 44 + longest * 6.3))
        self.has_roles = not counted and most <= 6
        """True if there is room below each replica for the state that its broker was sent."""
        self.pitch = CHIP + ROLE * self.has_roles + APART
        self.rows = -(-(len(COUNTS) if counted else most) // self.columns)
        self.width, self.height = self.columns * self.cell, HEAD + self.rows * self.pitch + 3

    def _columns(self, most: int) -> int:
        """The columns of a broker: more for many replicas, and fewer for many brokers, which are side by side."""
        if self.counted or most <= 6:
            return 1
        wanted, least = (2, 1) if most <= 16 else (3, 2) if most <= 40 else (4, 2)
        return min(wanted, max(least, 9 // max(len(self.brokers), 1)))

    def place(self, broker: int) -> Box:
        """The place of a broker; many brokers stand in several lines."""
        line, place = divmod(self.brokers.index(broker), ROW)
        top = ENSEMBLE.y + ENSEMBLE.height + travel.STREET + line * (self.height + travel.STREET)
        return Box(EDGE + place * (self.width + GAP), top, self.width, self.height)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole."""
        beside, lines = min(len(self.brokers), ROW), -(-len(self.brokers) // ROW)
        width = max(2 * EDGE + beside * (self.width + GAP) - GAP, 4 * 150 + LABELLED + 2 * EDGE)
        return width, ENSEMBLE.y + ENSEMBLE.height + lines * (travel.STREET + self.height) + EDGE

    def parts(self) -> Iterator[Part]:
        """Everything that stands still, in drawing order."""
        width = self.size[0]
        label = Text(EDGE + 10, ENSEMBLE.y + 30, "ZooKeeper", 12, "start")
        frame = ENSEMBLE._replace(width=width - 2 * EDGE)
        yield Part("zookeeper", frame, (box(*frame),), (label,), "frame")
        for broker in self.brokers:
            yield travel.session(self.place(broker), broker)
        each = (frame.width - LABELLED - 8 - 3 * GAP) / len(ZNODES)
        for number, (path, name) in enumerate(ZNODES.items()):
            where = Box(frame.x + LABELLED + number * (each + GAP), frame.y + 8, each, frame.height - 16)
            x, room = where.middle[0], each - 8
            texts = Text(x, where.y + 15, name, 12, bold=True, room=room), Text(x, where.y + 29, "", 12, room=room)
            yield Part(f"znode:{path}", where, (box(*where),), texts, "zoo", title=path)
        for broker in self.brokers:
            yield from self._broker_parts(broker)

    def _broker_parts(self, broker: int) -> Iterator[Part]:
        place, of = self.place(broker), f"broker:{broker}"
        x, y, room = place.x + 9, place.y, place.width - 16
        yield Part(of, place, (box(*place),), (), "up")
        lines = [Text(x, y + 34, "", 12, "start", room=room), Text(x, y + 48, "", 12, "start", room=room - 16)]
        name = Text(x, y + 18, f"Broker {broker}", 14, "start", bold=True, room=room)
        top = place._replace(height=HEAD)
        yield Part(f"head:{broker}", top, (box(*top),), (name, *lines), "bare", of=of)
        words, sign = Text(x + 17, y + 62, "", 12, "start", room=room - 17), (x + 7, y + 58, 0.9)
        title = "How many partitions are otherwise in ZooKeeper"
        yield Part(f"differ:{broker}", top, (), (words,), "badge gone", sign, "differs", title, of)
        for number, (_, part, text) in enumerate(self._cells(broker)):
            row, column = divmod(number, self.columns)
            pad = 5 if self.columns == 1 else 3
            chip = Box(place.x + column * self.cell + pad, y + HEAD + row * self.pitch, self.cell - 2 * pad, CHIP)
            if part:
                yield from _chip(part, chip, text, self.has_roles)

    def digraph(self, looks: Mapping[str, PartState]) -> Digraph:
        """The parts as a graph, with the texts and colours of a picture."""
        graph = Digraph(
            "cluster",
            graph_attr=GRAPH | {"nodesep": "0.14", "ranksep": "0.09", "fontname": FONT},
            node_attr={"shape": "box", "style": "rounded", "fixedsize": "true", "fontname": FONT, "fontsize": "11.5"},
            edge_attr={"arrowhead": "none"},
        )
        with graph.subgraph(name="cluster_zookeeper") as ensemble:
            ensemble.attr(id="zookeeper", label="ZooKeeper", labeljust="l", fontsize="12", margin="10")
            for number, path in enumerate(ZNODES):
                look = _node(f"znode:{path}", looks)
                ensemble.node(f"zk{number}", id=encode_id(f"znode:{path}"), width="2.0", height="0.5", **look)
            with ensemble.subgraph(graph_attr={"rank": "same"}) as row:
                for number in range(1, len(ZNODES)):
                    row.edge(f"zk{number - 1}", f"zk{number}", style="invis")
        for broker in self.brokers:
            with graph.subgraph(name=f"cluster_{broker}") as box:
                self._broker(box, broker, looks)
        self._sessions(graph, looks)
        return graph

    def _broker(self, box: Digraph, broker: int, looks: Mapping[str, PartState]) -> None:
        cell = self.cell / 72
        width = max(self.columns * (cell + 0.14), 1.95)
        box.attr(id=f"broker:{broker}", margin="8")
        head = _node(f"head:{broker}", looks)
        box.node(f"b{broker}", id=f"head:{broker}", width=f"{width:.2f}", height="0.86", **head)
        above = [f"b{broker}"] * self.columns
        for place, (name, part, _) in enumerate(self._cells(broker)):
            look = {"id": encode_id(part), **_node(part, looks)} if part else {"style": "invis"}
            box.node(name, width=f"{cell:.2f}", height=f"{(self.pitch - APART) / 72:.2f}", **look)
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

    def _sessions(self, graph: Digraph, looks: Mapping[str, PartState]) -> None:
        """Lines from ZooKeeper to the first row of brokers; unseen edges hold the rest in place."""
        first, last = self.brokers[:ROW], len(ZNODES) - 1
        above = [round(place * last / max(len(first) - 1, 1)) for place in range(len(first))]
        for znode, broker in zip(above, first, strict=True):
            ends = {"ltail": "cluster_zookeeper", "lhead": f"cluster_{broker}"}
            if "gone" in looks[f"session:{broker}"].styles:
                ends["style"] = "invis"
            graph.edge(f"zk{znode}", f"b{broker}", id=f"session:{broker}", minlen="9", **ends)
        for znode in range(len(ZNODES)):
            if first and znode not in above:
                below = first[round(znode * (len(first) - 1) / last)]
                graph.edge(f"zk{znode}", f"b{below}", style="invis")
        for place, broker in enumerate(self.brokers[ROW:]):
            graph.edge(f"b{self.brokers[place]}", f"b{broker}", style="invis", minlen=str(self.rows + 3))


def _node(part: str, looks: Mapping[str, PartState]) -> dict[str, str]:
    """Label and colours of a part in a picture."""
    if (look := looks.get(part)) is None:
        return {"style": "invis"}
    below = looks.get(f"role:{part.removeprefix('replica:')}")
    texts = [*look.texts, *(below.texts if below is not None else ())]
    return {"label": label("\n".join(filter(None, texts))), **graph_attributes(look.styles)}


ENSEMBLE, LABELLED = Box(EDGE, 4.0, 0.0, 52.0), 84.0
"""The place of ZooKeeper; and the pixels of it that its name takes."""
AWAY: Point = (-100.0, -100.0)
MARKED, UNMARKED = PartState("badge", (), "differs"), PartState("badge gone", (), "differs")
UNSENT = PartState("sent gone", ("",))
NO_STAR, NO_PREFERRED = PartState("star gone", (), "star"), PartState("preferred gone", (), "star")


class ClusterView(View):
    """Draws models; with more than `counted_above` partitions it counts them per broker."""

    title = "The cluster"

    def __init__(
        self,
        supergraph: ClusterModel,
        records: Sequence[Record],
        steps: Sequence[Step],
        counted_above: int = 60,
        generation: str = "2.0",
    ) -> None:
        self.supergraph = supergraph
        self.layout = Layout(supergraph, counted=len(supergraph.partitions) > counted_above)
        self.differences = status.Differences()
        self.waits, self.late = travel.Waits(records), travel.LateReplicas(generation)
        self._drawn: set[Key] = set()
        """Partitions that were drawn; those of `_touched` were marked as what the step is about."""
        self._touched: set[Key] = set()
        self.leaderless = Leaderless()
        self._lost: dict[Key, float] = {}
        """Since when partitions were without a leader in the last picture."""
        self._lagged: Lags = {}
        """Since when followers were behind in the last picture."""
        self._stands: dict[Key, dict[tuple[int, str], str]] = {}
        """The states of each partition's replicas in the last picture, where they are counted."""
        self._of: ClusterModel | None = None

    @cached_property
    def scene(self) -> Scene:
        layout = self.layout
        scene = Scene(*layout.size)
        scene.add(*layout.parts())
        if not layout.counted:
            for kind in ("preferred", "star"):
                for topic, partition in layout.partitions:
                    mover = Part(f"{kind}:{topic}-{partition}", Box(*AWAY, 0, 0), styles=kind, glyph=(0, 0, 0.8))
                    scene.add(mover)
        crown = Part("crown", Box(0, 0, 0, 0), styles="crown", glyph=(0, 0, 1.1), sign="crown", title="controller")
        scene.add(crown)
        add_legend(scene, COUNTED if layout.counted else (*REPLICAS, *MARKS))
        scene.rows = [Row(tuple(f"znode:{path}" for path in ZNODES), 6.0, "zookeeper", least=100.0, most=190.0)]
        if layout.brokers:
            least = NARROW if layout.columns == 1 else 66.0 * layout.columns
            blocks = tuple(f"broker:{broker}" for broker in layout.brokers)
            scene.rows.append(Row(blocks, travel.STREET, "", layout.columns, least, max(260.0, layout.width)))
        return scene

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        records = step.records if step else ()
        now = step.time_ms if step else model.time_ms
        self.differences.update(model)
        lags = self.late.at(model, model is not self._of or bool(self.differences.compared))
        if model is not self._of:
            self._of, self._drawn, self._stands = model, set(), {}
        looks = self._brokers(model, records, now, lags) | self._zookeeper(model, records)
        detail: dict[tuple[int, str], str] = {}
        if self.layout.counted:
            detail = self._counts(model, records, looks)
        else:
            looks |= self._partitions(model, records, now, lags)
        deposed = {context.id for context in model.deposed() if f"controller-{context.id}" in model.working}
        travels = travel.tokens(self.scene, records, deposed, self.waits.at(model.seq), model.seq, now)
        return Picture(looks, travels, status.summary(model), self.differences.text(), (), detail)

    def _partitions(self, model: ClusterModel, records: Sequence[Record], now: float, lags: Lags) -> Looks:
        """Every partition that may have changed since the last picture of this model."""
        looks, touched = Looks(), _partitions_of(records)
        lost = self.leaderless.at(model, now)
        again = self.differences.compared | touched | self._touched | lags.keys() | self._lagged.keys()
        again |= lost.keys() | self._lost.keys()
        for key in self.layout.partitions:
            if key in again or key not in self._drawn:
                self._drawn.add(key)
                late = {b: travel.lag_text(since, now, model.lags.limit) for b, since in lags.get(key, {}).items()}
                if key in lost:
                    late = dict.fromkeys(model.members(key), f"no leader {seconds(lost[key], now)}")
                looks |= self._partition(model, key, key in touched, late)
        self._touched, self._lagged, self._lost = touched, lags, lost
        return looks

    def _brokers(self, model: ClusterModel, records: Sequence[Record], now: float, lags: Lags) -> Looks:
        """Each broker with its head, its mark and the line of its session; and the crown."""
        looks, busy = Looks(), ("controller", "event", "broker")
        hot = {r.broker for r in records if r.kind in ("fault", "broker")}
        hot |= {number_of(r.actor) for r in records if r.kind in busy}
        contexts, metadata = self.differences.counts()
        longest: dict[int, float] = {}
        for late in () if self.layout.has_roles else lags.values():
            for number, since in late.items():
                longest[number] = min(since, longest.get(number, since))
        for number in self.layout.brokers:
            style, text = status.broker_state(model, number)
            silent = status.session_state(model, number, now)
            work = silent or _work(model, f"controller-{number}")
            if not work and number in longest:
                work = travel.lag_text(longest[number], now, model.lags.limit)
            texts = (f"Broker {number}", text + _rack(model, number), work)
            looks[f"broker:{number}"] = PartState(f"up {style}" + (" hot" if number in hot else ""))
            looks[f"head:{number}"] = PartState("bare lost" if style == "down" else "bare", texts)
            looks[f"differ:{number}"] = _differing(contexts[number], metadata[number])
            looks[f"session:{number}"] = PartState(_session(model, number) + (" expiring" if silent else ""))
        head = self.scene.parts.get(f"head:{model.controller}")
        at = (head.box.x + head.box.width - 15, head.box.y + 44) if head else None
        return looks | {"crown": PartState("crown" if at else "crown gone", at=at)}

    def _zookeeper(self, model: ClusterModel, records: Sequence[Record]) -> Looks:
        touched = [r for r in records if r.kind in ("zk", "watch") and r.path]
        hot = {travel.znode_of(r.path) for r in touched}
        last = next((r for r in reversed(touched) if r.kind == "zk" and travel.znode_of(r.path) == "state"), None)
        states = 0 if last else len([path for path in model.znodes if path.endswith("/state")])
        here = sorted(b.id for b in model.brokers.values() if b.registered)
        named = status.named_controller(model)
        acts = "" if named == model.controller else ", not acting"
        texts = {
            "/controller": f"broker {named}{acts}" if named is not None else "(no broker)",
            "/controller_epoch": str(model.controller_epoch or "(none yet)"),
            "/brokers/ids": shorten(str(here), 24),
            "state": _last_state(last) if last else f"{states} znode{'s' * (states != 1)}",
        }
        if model.of_logs:  # which name brokers and epochs, and nothing else that is stored
            texts = dict.fromkeys(texts, NOT_KNOWN) | {"/controller_epoch": str(model.controller_epoch or NOT_KNOWN)}
        looks = {"zookeeper": PartState("frame doubtful" if model.zookeeper_down else "frame")}
        for path, name in ZNODES.items():
            styles = "zoo" + (" ephemeral" if path == "/controller" else "") + (" hot" if path in hot else "")
            looks[f"znode:{path}"] = PartState(styles, (name, texts[path]))
        return looks

    def _partition(self, model: ClusterModel, key: Key, touched: bool, late: Mapping[int, str]) -> Looks:
        """The replicas of a partition with their marks and lines, its star, and the mark of its preferred replica."""
        looks, seen = Looks(), model.partitions.get(key)
        chips = {b: chip for b in self.supergraph.members(key) if (chip := self.scene.parts.get(replica_id(key, b)))}
        there = {b: status.replica_state(model, key, b) for b in model.members(key) if b in chips} if seen else {}
        for broker, style in there.items():
            looks |= self._replica(model, key, broker, style, touched, late.get(broker, ""))
        for broker in chips.keys() - there:
            looks[replica_id(key, broker)] = PartState("plate gone", (self.layout.names[key],), "none")
            looks[replica_id(key, broker, "differs")] = UNMARKED
            if self.layout.has_roles:
                looks[replica_id(key, broker, "role")] = UNSENT
        star, preferred = NO_STAR, NO_PREFERRED
        if seen is not None and seen.leader in there:
            box = chips[seen.leader].box
            star = PartState("star", (), "star", (box.x + 11, box.middle[1]))
        if seen is not None and seen.replicas and (first := seen.replicas[0]) in there:
            box, shade = chips[first].box, " on_leader" if there[first] == "leader" else ""
            preferred = PartState("preferred" + shade, (), "star", (box.x + box.width - 9, box.middle[1] + CHIP / 2))
        topic, partition = key
        return looks | {f"star:{topic}-{partition}": star, f"preferred:{topic}-{partition}": preferred}

    def _replica(self, model: ClusterModel, key: Key, broker: int, style: str, touched: bool, late: str) -> Looks:
        differs = self.differences.partitions.get(key)
        other = "" if differs is None else differs.of(broker)
        styles = f"plate {style}" + (" differs" if other else " hot" if touched else "")
        styles += " leaderless" * (key in self.leaderless.since)
        sign = "none" if broker == model.partitions[key].leader else status.GLYPHS[style]
        looks = {replica_id(key, broker): PartState(styles, (self.layout.names[key],), sign)}
        looks[replica_id(key, broker, "differs")] = MARKED if other else UNMARKED
        if self.layout.has_roles:
            looks[replica_id(key, broker, "role")] = _role(model, key, broker, other, late)
        return looks

    def _counts(self, model: ClusterModel, records: Sequence[Record], looks: Looks) -> dict[tuple[int, str], str]:
        """Count the replicas of each broker. Returns the state of each replica."""
        changed = self.differences.compared | _partitions_of(records)
        for key in model.partitions:
            if key in changed or key not in self._stands:
                name = f"{key[0]}-{key[1]}"
                self._stands[key] = {(b, name): status.replica_state(model, key, b) for b in model.members(key)}
        detail = {place: style for own in self._stands.values() for place, style in own.items()}
        counts = Counter((broker, style) for (broker, _), style in detail.items())
        for differs in self.differences.partitions.values():
            counts.update((broker, "differs") for broker in {*differs.roles, *differs.metadata})
        for broker, (style, text) in product(self.layout.brokers, COUNTS.items()):
            count = counts[broker, style]
            sign = "star" if style == "leader" else status.GLYPHS.get(style, style)
            look = PartState(f"plate {style}{'' if count else ' faded'}", (f"{text} {count:,}",), sign)
            looks[f"count:{broker}:{style}"] = look
        return detail


def _partitions_of(records: Sequence[Record]) -> set[Key]:
    return {(r.topic, r.partition) for r in records if r.topic is not None and r.partition is not None}


def _role(model: ClusterModel, key: Key, broker: int, other: str, late: str) -> PartState:
    """The line below a replica: the state that its broker was sent.

    `other` is a state that differs from ZooKeeper, `late` a lag or the time without a leader.
    """
    host = model.brokers.get(broker)
    if other:
        return PartState("otherwise", (other,))
    if late:
        return PartState("otherwise" if late.startswith("no leader") else "late", (late,))
    if host is None or not host.listens or key not in host.beliefs.hosted:
        return UNSENT
    end = f", end {host.log_ends[key]}" if key in host.log_ends else ""
    return PartState("sent", (status.role(broker, host.beliefs.hosted[key]) + end,))


def _rack(model: ClusterModel, broker: int) -> str:
    seen = model.brokers.get(broker)
    if seen is None or not seen.rack:
        return ""
    return f", {'' if seen.rack.startswith('rack') else 'rack '}{shorten(seen.rack, 8)}"


def _session(model: ClusterModel, broker: int) -> str:
    """The style of the line between a broker and ZooKeeper."""
    seen = model.brokers.get(broker)
    if seen is None or not seen.registered:
        return "wire session gone"
    whole = seen.alive and not model.zookeeper_down and "zookeeper" not in model.cuts.get(broker, ())
    return "wire session" if whole else "wire session broken"


def _differing(context: int, metadata: int) -> PartState:
    """The line at the head of a broker: in how many partitions its controller's context and its metadata differ."""
    if not context and not metadata:
        return PartState("badge gone", ("",))
    text = f"context {context}, metadata {metadata}" if context and metadata else ""
    text = text or (f"context differs: {context}" if context else f"metadata differs: {metadata}")
    return PartState("badge", (text,), "differs")


def _chip(name: str, chip: Box, text: str, has_roles: bool) -> Iterator[Part]:
    """A replica or a count, the line below it if there is room, and the mark at its corner."""
    kind, _, rest = name.partition(":")
    words = Text(chip.x + 20, chip.middle[1] + 4, text, 12, "start", room=chip.width - 22)
    of = f"partition:{rest.rpartition('@')[0]}" if kind == "replica" else ""
    yield Part(name, chip, (box(*chip),), (words,), glyph=(chip.x + 11, chip.middle[1], 1), title=rest, of=of)
    if kind != "replica":
        return
    if has_roles:
        line = Box(chip.x + 3, chip.y + chip.height + 1, chip.width - 6, ROLE - 2)
        role = Text(line.middle[0], line.y + line.height - 2.6, "", 12, room=line.width - 2 * 9)
        yield Part(f"role:{rest}", line, (box(*line, radius=3),), (role,), "sent gone", of=of)
    x, y = chip.x + chip.width - 3, chip.y + 1
    around, where, title = box(x - 7, y - 7, 14, 14), Box(x - 7, y - 7, 14, 14), "ZooKeeper has something else"
    yield Part(f"differs:{rest}", where, (around,), (), "badge gone", (x, y, 0.9), "differs", title, of)


def _work(model: ClusterModel, actor: str) -> str:
    """The event a controller works on, and how many wait; those from before it resigned do not count."""
    since, work = model.resigned.get(actor, -1), model.working.get(actor)
    waiting = sum(queued > since for queued in model.waiting.get(actor, ()))
    doing = work.event if work is not None and work.started > since else ""
    if not doing:
        return f"{waiting} queued" if waiting else ""
    more = f" +{waiting}" if waiting else ""
    return shorten(doing, 22 - len(more)) + more


def _last_state(record: Record) -> str:
    parts = (record.path or "").split("/")
    name = f"{parts[-4]}-{parts[-2]}" if len(parts) > 5 else parts[-1]
    return shorten(name, 18) + (f" v{record.zk_version}" if record.zk_version is not None else "")
