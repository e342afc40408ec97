"""The cluster: ZooKeeper above, brokers below, replicas inside them, requests on their way.

A replica is a chip: filled with a star where it leads, outlined with a dot in the ISR, dashed with a ring out of
it, dotted with a cross offline. Its star glides when the leader changes; a hollow star marks the preferred
replica. The crown is on the broker that is controller. Large clusters are counted per broker instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_ctl.trace import Record
from kafka_ctl.views.dot import FONT, quote
from kafka_ctl.views.fold import Model, number_of
from kafka_ctl.views.frames import Look, Picture, Token
from kafka_ctl.views.legend import add_legend
from kafka_ctl.views.scene import Box, Part, Scene, parse, shorten
from kafka_ctl.views.steps import Step, newsworthy

CHIP_HEIGHT = 0.29
ZNODES = ("/controller", "/controller_epoch", "/brokers/ids", "state")
COUNTS = {"leader": "leads", "insync": "in sync", "lagging": "out of sync", "offline": "offline"}
ROW = 8
"""The most brokers side by side."""
GLYPH = {
    "leader": "none",
    "insync": "dot",
    "lagging": "ring",
    "offline": "cross",
    "new": "plus",
    "deleting": "minus",
}

Key = tuple[str, int]


class ClusterView:
    """Draws `Model`s; `counted_above` is the number of partitions from which brokers are counted, not drawn."""

    title = "The cluster"

    def __init__(self, union: Model, records: Sequence[Record], counted_above: int = 60) -> None:
        self.union, self.counted = union, len(union.partitions) > counted_above
        self.brokers = sorted(union.brokers)
        self.partitions = sorted(union.partitions)
        self.names = {key: shorten(f"{key[0]}-{key[1]}", 16) for key in self.partitions}
        self.held: dict[int, list[Key]] = {b: [] for b in self.brokers}
        for topic, partition, broker in sorted(union.replicas):
            self.held[broker].append((topic, partition))
        most = max((len(held) for held in self.held.values()), default=0)
        self.columns = 2 if self.counted or most > 6 else 1
        if not self.counted and most > 16:
            self.columns = 3 if most <= 40 else 4
        self.rows = -(-(len(COUNTS) if self.counted else most) // self.columns)
        longest = max((len(name) for name in self.names.values()), default=8)
        self.chip_width = 1.3 if self.counted else min(1.75, max(0.95, 0.6 + longest * 0.088))
        if self.columns == 1:
            self.chip_width = 1.75
        self._scene: Scene | None = None

    @staticmethod
    def wants(record: Record) -> bool:
        return newsworthy(record) and not (record.kind == "zk" and record.path and _is_skeleton(record))

    # The layout: Graphviz places everything that ever appears.

    def dot(self) -> str:
        """The union of all frames as DOT."""
        lines = [
            "digraph cluster {",
            f'  graph [rankdir=TB newrank=true compound=true nodesep=0.14 ranksep=0.09 fontname="{FONT}"];',
            f'  node [shape=box style=rounded fixedsize=true fontname="{FONT}" fontsize=11];',
            "  edge [arrowhead=none];",
            '  subgraph cluster_zookeeper { id="zookeeper" label="ZooKeeper" labeljust=l fontsize=12 margin=10;',
        ]
        for i, path in enumerate(ZNODES):
            name = "…/partitions/N/state" if path == "state" else path
            lines.append(
                f"    zk{i} [id={quote('znode:' + path)} width=2.0 height=0.5 label={quote(name + chr(10) + 'x')}];"
            )
        lines += [
            "    { rank=same; edge [style=invis]; "
            + " -> ".join(f"zk{i}" for i in range(len(ZNODES)))
            + " }",
            "  }",
        ]
        for broker in self.brokers:
            lines += self._broker(broker)
        lines += self._sessions()
        return "\n".join([*lines, "}"])

    def _sessions(self) -> list[str]:
        """Lines from ZooKeeper to the first row of brokers; unseen ones hold further rows, and ZooKeeper in the middle."""
        first, znodes = self.brokers[:ROW], len(ZNODES)
        above = [round(place * (znodes - 1) / max(len(first) - 1, 1)) for place in range(len(first))]
        lines = [
            f'  zk{z} -> b{b} [id="session:{b}" ltail=cluster_zookeeper lhead=cluster_{b} minlen=9];'
            for z, b in zip(above, first, strict=True)
        ]
        lines += [
            f"  zk{z} -> b{first[round(z * (len(first) - 1) / (znodes - 1))]} [style=invis];"
            for z in range(znodes)
            if first and z not in above
        ]
        return lines + [
            f"  b{self.brokers[place - ROW]} -> b{broker} [style=invis minlen={self.rows + 3}];"
            for place, broker in enumerate(self.brokers)
            if place >= ROW
        ]

    def _broker(self, broker: int) -> list[str]:
        width = max(self.columns * self.chip_width + (self.columns - 1) * 0.14, 1.95)
        lines = [
            f'  subgraph cluster_{broker} {{ id="broker:{broker}" margin=8;',
            f'    b{broker} [id="head:{broker}" width={width:.2f} height=0.68 label="Broker {broker}\\nx\\nx"];',
            "    edge [style=invis weight=100];",
        ]
        cells = self._cells(broker)
        above = [f"b{broker}"] * self.columns
        for place, (name, part, label) in enumerate(cells):
            column = place % self.columns
            look = f"id={quote(part)} label={quote(label)}" if part else "style=invis"
            lines.append(f'    "{name}" [width={self.chip_width:.2f} height={CHIP_HEIGHT} {look}];')
            lines.append(f'    {above[column]} -> "{name}";')
            above[column] = f'"{name}"'
        return [*lines, "  }"]

    def _cells(self, broker: int) -> list[tuple[str, str, str]]:
        """The chips of a broker as (DOT name, part id, label); holes keep few partitions in line across brokers."""
        if self.counted:
            return [
                (f"c{broker}_{style}", f"count:{broker}:{style}", words) for style, words in COUNTS.items()
            ]
        aligned = len(self.partitions) <= 12
        held = set(self.held[broker])
        cells = []
        for place, key in enumerate(self.partitions):
            if key in held:
                cells.append((f"r{place}_{broker}", replica_id(key, broker), self.names[key]))
            elif aligned:
                cells.append((f"r{place}_{broker}", "", ""))
        return cells

    def scene(self) -> Scene:
        if self._scene is None:
            width, height, offset, parts = parse(self.dot())
            scene = Scene(width, height, offset)
            scene.add(*(self._dressed(part) for part in parts))
            if not self.counted:
                away = (-100.0, -100.0)
                for kind in ("preferred", "star"):
                    for key in self.partitions:
                        scene.add(
                            Part(
                                f"{kind}:{key[0]}-{key[1]}", Box(*away, 0, 0), styles=kind, glyph=(0, 0, 0.8)
                            )
                        )
            scene.add(
                Part(
                    "crown",
                    Box(0, 0, 0, 0),
                    styles="crown",
                    glyph=(0, 0, 1.1),
                    sign="crown",
                    title="controller",
                )
            )
            add_legend(scene, self.counted)
            self._scene = scene
        return self._scene

    def _dressed(self, part: Part) -> Part:
        """A laid out part with its words where this view wants them."""
        from dataclasses import replace

        kind, _, rest = part.id.partition(":")
        box = part.box
        if kind in ("replica", "count"):
            text = part.texts[0]._replace(x=box.x + 20, anchor="start")
            topic = rest.rpartition("@")[0]
            return replace(
                part,
                texts=(text,),
                glyph=(box.x + 11, box.middle[1], 1),
                title=rest,
                of=f"partition:{topic}" if kind == "replica" else "",
            )
        if kind == "head":
            one, two, three = part.texts
            texts = (
                one._replace(size=14, bold=True, y=box.y + 18),
                two._replace(size=11, y=box.y + 33),
                three._replace(size=10, y=box.y + 46),
            )
            return replace(part, texts=texts, styles="bare", of=f"broker:{rest}")
        if kind == "znode":
            one, two = part.texts
            return replace(
                part,
                texts=(one._replace(bold=True, y=box.y + 14), two._replace(y=box.y + 28)),
                styles="zoo",
                title=rest,
            )
        return part

    # One frame.

    def picture(self, model: Model, step: Step | None) -> Picture:
        records = step.records if step else ()
        looks: dict[str, Look] = {}
        touched = {(r.topic, r.partition) for r in records if r.topic is not None}
        self._brokers(model, records, looks)
        self._zookeeper(model, records, looks)
        if self.counted:
            self._counts(model, looks)
        else:
            for key in self.partitions:
                self._partition(model, key, key in touched, looks)
        return Picture(looks, tuple(self._tokens(records)), words(model))

    def _brokers(self, model: Model, records: Sequence[Record], looks: dict[str, Look]) -> None:
        scene = self.scene()
        hot = {r.broker for r in records if r.kind in ("fault", "broker")} | {
            number_of(r.actor) for r in records if r.kind in ("controller", "event", "broker")
        }
        for number in self.brokers:
            seen = model.brokers.get(number)
            style, said = broker_state(model, number)
            looks[f"broker:{number}"] = Look(f"up {style}" + (" hot" if number in hot else ""))
            actor = f"controller-{number}"
            doing, waiting = model.running.get(actor, ""), len(model.queues.get(actor, ()))
            event = (
                shorten(doing, 26) + (f" (+{waiting} queued)" if waiting else "")
                if doing
                else f"{waiting} queued"
                if waiting
                else ""
            )
            rack = f", rack {shorten(seen.rack, 8)}" if seen and seen.rack else ""
            looks[f"head:{number}"] = Look(
                "bare" + (" lost" if style == "down" else ""), (f"Broker {number}", said + rack, event)
            )
            registered = bool(seen and seen.registered)
            broken = " broken" if registered and seen and not seen.alive else ""
            looks[f"session:{number}"] = Look("wire" + broken if registered else "wire gone")
        ruler = model.controller
        at = None
        if ruler is not None and f"head:{ruler}" in scene.parts:
            box = scene.parts[f"head:{ruler}"].box
            at = (box.x + 24, box.y + 13)
        looks["crown"] = Look("crown" if at else "crown gone", at=at or (0.0, 0.0))

    def _zookeeper(self, model: Model, records: Sequence[Record], looks: dict[str, Look]) -> None:
        hot = {znode_of(r.path) for r in records if r.kind in ("zk", "watch") and r.path}
        last = next(
            (r for r in reversed(records) if r.kind == "zk" and znode_of(r.path) == "state" and r.path), None
        )
        there = "/controller" in model.znodes
        registered = [str(b.id) for b in sorted(model.brokers.values(), key=lambda b: b.id) if b.registered]
        said = {
            "/controller": f"broker {model.controller}"
            if there and model.controller is not None
            else "(nobody)",
            "/controller_epoch": str(model.controller_epoch)
            if model.controller_epoch is not None
            else "(none yet)",
            "/brokers/ids": shorten("[" + ", ".join(registered) + "]", 24),
            "state": _state_text(last)
            if last
            else f"{sum(p.endswith('/state') for p in model.znodes)} znodes",
        }
        for path, text in said.items():
            styles = "zoo" + (" ephemeral" if path == "/controller" else "") + (" hot" if path in hot else "")
            looks[f"znode:{path}"] = Look(styles, ("…/partitions/N/state" if path == "state" else path, text))
        looks["zookeeper"] = Look("frame", ("ZooKeeper",))

    def _partition(self, model: Model, key: Key, touched: bool, looks: dict[str, Look]) -> None:
        scene, seen = self.scene(), model.partitions.get(key)
        leader_at = preferred_at = None
        preferred, bright = seen.replicas[0] if seen and seen.replicas else None, None
        for broker in model.members(key) if seen else ():
            part = scene.parts.get(replica_id(key, broker))
            if part is None:
                continue
            style = replica_state(model, key, broker)
            looks[part.id] = Look(
                f"plate {style}" + (" hot" if touched else ""), (self.names[key],), GLYPH[style]
            )
            middle = part.box.middle[1]
            if style == "leader":
                bright = broker
            if seen and broker == seen.leader:
                leader_at = (part.box.x + 11, middle)
                if style == "offline":
                    looks[part.id] = looks[part.id]._replace(glyph="none")
            if broker == preferred:
                preferred_at = (part.box.x + part.box.width - 9, middle)
        for broker in self.union.members(key):
            looks.setdefault(replica_id(key, broker), Look("plate gone", (self.names[key],), "none"))
        name = f"{key[0]}-{key[1]}"
        for kind, at in (("star", leader_at), ("preferred", preferred_at)):
            before = scene.parts[f"{kind}:{name}"].box
            styles = f"{kind} on_leader" if kind == "preferred" and preferred == bright else kind
            looks[f"{kind}:{name}"] = Look(
                styles if at else f"{kind} gone", glyph="star", at=at or (before.x, before.y)
            )

    def _counts(self, model: Model, looks: dict[str, Look]) -> None:
        counts = {b: dict.fromkeys(COUNTS, 0) for b in self.brokers}
        for key in model.partitions:
            for broker in model.members(key):
                style = replica_state(model, key, broker)
                counts[broker][style if style in COUNTS else "insync"] += 1
        for broker, found in counts.items():
            for style, text in COUNTS.items():
                faded = " faded" if not found[style] else ""
                looks[f"count:{broker}:{style}"] = Look(
                    f"plate {style}{faded}",
                    (f"{text} {found[style]:,}",),
                    "star" if style == "leader" else GLYPH[style],
                )

    def _tokens(self, records: Sequence[Record]) -> list[Token]:
        found: dict[str, Token] = {}
        for record in records:
            number = number_of(record.actor)
            if record.kind == "request" and record.broker is not None and number is not None:
                line, label, styles = self._arc(number, record.broker), record.action, "parcel"
            elif record.kind == "response" and record.broker is not None:
                line, label, styles = (
                    self._line(f"broker:{record.broker}", "zookeeper"),
                    f"{record.action}: {record.error}",
                    "parcel refused",
                )
            elif record.kind == "zk" and record.path and number is not None:
                line = self._line(f"broker:{number}", f"znode:{znode_of(record.path)}")
                label, styles = (
                    record.error or record.action,
                    "parcel write" + (" refused" if record.error else ""),
                )
            elif record.kind == "watch" and record.path and number is not None:
                line, label, styles = (
                    self._line(f"znode:{znode_of(record.path)}", f"broker:{number}"),
                    record.target or "watch",
                    "parcel watch",
                )
            else:
                continue
            if line:
                found.setdefault(line, Token(line, shorten(label, 26), styles))
        return list(found.values())

    def _line(self, source: str, target: str) -> str:
        parts = self.scene().parts
        if source not in parts or target not in parts:
            return ""
        a, b = parts[source].box, parts[target].box
        down = a.y < b.y
        return (
            f"M{a.middle[0]:.1f},{a.y + a.height if down else a.y:.1f}"
            f"L{b.middle[0]:.1f},{b.y if down else b.y + b.height:.1f}"
        )

    def _arc(self, source: int, target: int) -> str:
        parts = self.scene().parts
        if f"broker:{source}" not in parts or f"broker:{target}" not in parts:
            return ""
        a, b = parts[f"broker:{source}"].box, parts[f"broker:{target}"].box
        if source == target:
            x, y = a.middle[0], a.y
            return f"M{x - 8:.1f},{y:.1f}C{x - 8:.1f},{y - 52:.1f} {x - 62:.1f},{y - 52:.1f} {x - 62:.1f},{y:.1f}"
        top = min(a.y, b.y) - 92
        return f"M{a.middle[0]:.1f},{a.y:.1f}Q{(a.middle[0] + b.middle[0]) / 2:.1f},{top:.1f} {b.middle[0]:.1f},{b.y:.1f}"


def replica_id(key: Key, broker: int) -> str:
    return f"replica:{key[0]}-{key[1]}@{broker}"


def _is_skeleton(record: Record) -> bool:
    """Whether a write only prepares the tree: persistent znodes without news."""
    return record.action == "create" and record.target == "persistent" and znode_of(record.path) == "other"


def znode_of(path: str | None) -> str:
    """The drawn znode that stands for a path."""
    path = path or ""
    if path in ("/controller", "/controller_epoch"):
        return path
    if path.startswith("/brokers/ids"):
        return "/brokers/ids"
    return "state" if path.startswith("/brokers/topics/") else "other"


def _state_text(record: Record) -> str:
    words = (record.path or "").split("/")
    name = f"{words[-4]}-{words[-2]}" if len(words) > 5 else words[-1]
    return shorten(name, 18) + (f" v{record.zk_version}" if record.zk_version is not None else "")


def broker_state(model: Model, number: int) -> tuple[str, str]:
    """The style of a broker and what is written under its name."""
    seen = model.brokers.get(number)
    if seen is None or (not seen.alive and not seen.registered):
        return "down", "down"
    if not seen.alive:
        return "doubtful", "dead, still registered"
    if seen.note == "paused":
        return "doubtful", "paused"
    if not seen.registered:
        return "doubtful", seen.note or "alive, not registered"
    if model.controller == number:
        epoch = f", epoch {model.controller_epoch}" if model.controller_epoch is not None else ""
        return "active", f"controller{epoch}"
    return "", "up"


def replica_state(model: Model, key: Key, broker: int) -> str:
    """The style of a replica: how it stands to its partition, and whether it can answer."""
    seen, own = model.partitions[key], model.replicas.get((*key, broker), "")
    host = model.brokers.get(broker)
    if own.startswith("ReplicaDeletion"):
        return "deleting"
    if (host is not None and not host.alive) or (own == "OfflineReplica" and seen.leader != broker):
        return "offline"
    if seen.leader is None:
        return "new"
    if broker == seen.leader:
        return "leader"
    return "insync" if broker in seen.isr else "lagging"


def words(model: Model) -> str:
    """The state of the cluster in words."""
    up = [b.id for b in model.brokers.values() if b.alive]
    down = [b.id for b in model.brokers.values() if not b.alive]
    lost = [f"{t}-{p}" for t, p in model.leaderless()]
    ruler = (
        f"Controller: broker {model.controller}, epoch {model.controller_epoch}."
        if model.controller is not None
        else "No controller."
    )
    running = f" Brokers up: {', '.join(map(str, sorted(up))) or 'none'}; down: {', '.join(map(str, sorted(down))) or 'none'}."
    leaders = (
        f" Without a leader: {', '.join(lost[:6])}{' and more' if len(lost) > 6 else ''}."
        if lost
        else " Every partition has a leader."
    )
    return ruler + running + (leaders if model.partitions else "")
