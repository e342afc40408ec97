"""The controllers' event queues: the events that wait, and the one in progress.

Separate from `frames.py` because a view is loaded when it is asked for.
Every broker runs a controller, and each has a queue; only the acting one does the cluster's work. An event
enters its queue at the right, moves up, is worked on at the left and is gone. Below it stands what the
controller has in its context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from kafka_ctl.table import short
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import ControllerSeen
from kafka_ctl.views.frames import PartState, Picture, View
from kafka_ctl.views.scene import Box, Part, Scene, Text, box, halves, shorten
from kafka_ctl.views.status import broker_state
from kafka_ctl.views.steps import Step, newsworthy

CONTEXT = ("Live", "Shutting down", "Partitions", "Replicas", "Reassigned", "Deleted")
"""The parts that are shown, in this order."""
REQUESTS = "/admin/reassign_partitions"
TOPICS = "/brokers/topics/"


def context(model: ClusterModel) -> dict[str, str]:
    """By the names of `CONTEXT`: brokers known and in controlled shutdown, states counted, what is under way.

    Kafka 2.0.1: controller/ControllerContext.scala, ControllerContext
    """
    own = model.context_of(model.controller) or ControllerSeen(-1)
    return {
        "Live": _listed(sorted(own.live or ())),
        "Shutting down": _listed(sorted(own.shutting_down)),
        "Partitions": _counted(seen.state for seen in model.partitions.values()),
        "Replicas": _counted(model.replicas.values()),
        "Reassigned": _listed(dict.fromkeys(reassigned(model))),
        "Deleted": _listed(sorted(model.topics_to_be_deleted)),
    }


def reassigned(model: ClusterModel) -> Iterator[str]:
    """The partitions that are to get other replicas: as the znode of requests says, or (2.4) those of the topics."""
    requests = details.json_object(model.znodes[REQUESTS].data).get("partitions") if REQUESTS in model.znodes else None
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            yield f"{request.get('topic')}-{request.get('partition')}"
    for path, node in sorted(model.znodes.items()):
        if path.startswith(TOPICS) and path.count("/") == 3:
            data = details.json_object(node.data)
            for key in ("adding_replicas", "removing_replicas"):
                moving = data.get(key)
                yield from (f"{path.removeprefix(TOPICS)}-{p}" for p in (moving if isinstance(moving, dict) else ()))


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "none"


def _counted(states: Iterable[str]) -> str:
    return _listed(
        f"{short(state)} {count}" for state, count in sorted(Counter(states).items()) if short(state) != "NonExistent"
    )


NAME, SLOT, GAP, ROW, HEAD, WORDS = 128.0, 130.0, 4.0, 62.0, 30.0, 66
"""Pixels of a controller's name, a place in the queue, between places, of a row, and above; characters of a line."""
PLACES = 3
"""The place of work and the first waiting places; a text has the number of other waiting events."""
LINE = 33.0
"""Pixels of a line of the context, below the queues."""


class EventQueueView(View):
    """Draws one row for each controller; events glide through it."""

    title = "Event queues"

    def __init__(self, supergraph: ClusterModel, records: Sequence[Record], steps: Sequence[Step]) -> None:
        self.brokers = sorted(supergraph.brokers)
        queued = (r for r in records if r.kind == "event" and r.target == "queued")
        self.events = {r.seq: r for r in queued if r.actor.startswith("controller")}
        self.place = {f"controller-{broker}": HEAD + ROW * row for row, broker in enumerate(self.brokers)}

    @classmethod
    def is_relevant(cls, record: Record) -> bool:
        if record.kind == "event":
            return record.target in ("queued", "started", "dropped") or newsworthy(record)
        return record.kind in ("fault", "violation") or (record.kind == "controller" and newsworthy(record))

    @cached_property
    def scene(self) -> Scene:
        """Names, places and every event that ever waits."""
        width = NAME + PLACES * (SLOT + GAP) + 8
        scene = Scene(width, HEAD + ROW * len(self.brokers) + 20 + LINE * len(CONTEXT))
        for place in range(PLACES):
            heading = ("at work", "next", "then")[place]
            text = Text(NAME + place * (SLOT + GAP) + SLOT / 2, 20, heading, 12)
            scene.add(Part(f"head:{place}", Box(0, 0, width, HEAD), (), (text,), "note"))
        for broker in self.brokers:
            scene.add(*self._row(broker))
        for seq, record in self.events.items():
            about = f" {record.broker}" if record.broker is not None else f" {record.topic}" if record.topic else ""
            shape, label = box(0, 0, SLOT, 34), slot_label(record.action + about)
            scene.add(Part(f"event:{seq}", Box(0, 0, SLOT, 34), (shape,), label, "plate", title=record.action + about))
        for number, name in enumerate(CONTEXT):
            top = HEAD + ROW * len(self.brokers) + 14 + LINE * number
            head = Text(12, top + 14, name, 12, "start", bold=True)
            lines = (Text(NAME, top + 14 + 14 * row, "x", 12, "start") for row in (0, 1))
            scene.add(Part(f"context:{number}", Box(0, top, width, LINE), (), (head, *lines), "bare"))
        return scene

    def _row(self, broker: int) -> list[Part]:
        top = HEAD + ROW * (self.brokers.index(broker))
        name = Text(12, top + 15, f"Broker {broker}", 13, "start", bold=True)
        texts = (name, Text(12, top + 30, "x", 12, "start"), Text(12, top + 45, "x", 12, "start"))
        row = box(4, top - 4, NAME + PLACES * (SLOT + GAP), ROW - 6, 8)
        parts = [Part(f"broker:{broker}", Box(4, top - 4, NAME, ROW - 6), (row,), texts, "frame")]
        for place in range(PLACES):
            x = NAME + place * (SLOT + GAP)
            shape = box(x, top + 2, SLOT, 34)
            parts.append(Part(f"place:{broker}:{place}", Box(x, top, SLOT, 34), (shape,), (), "plate new"))
        return parts

    def picture(self, model: ClusterModel, step: Step | None) -> Picture:
        looks = {f"event:{seq}": PartState("plate gone") for seq in self.events}
        for actor, top in self.place.items():
            work = model.working.get(actor)
            lines = [work.queued if work else None, *model.waiting.get(actor, ())]
            for place, seq in enumerate(lines):
                if seq is not None:
                    x = NAME + min(place, PLACES) * (SLOT + GAP)
                    style = "plate gone" if place >= PLACES else "plate active" if place == 0 else "plate insync"
                    looks[f"event:{seq}"] = PartState(style, at=(x, top + 2))
            broker = number_of(actor)
            assert broker is not None
            style, text = broker_state(model, broker)
            more = f"{hidden} more wait" if (hidden := len(lines) - PLACES) > 0 else ""
            looks[f"broker:{broker}"] = PartState(f"frame {style}", (f"Broker {broker}", text, more))
        values = context(model)
        for number, name in enumerate(CONTEXT):
            looks[f"context:{number}"] = PartState("bare", (name, *halves(values[name], WORDS), ""))
        waits = sum(len(model.waiting.get(actor, ())) for actor in self.place)
        return Picture(looks, (), f"{waits} events wait. {' '.join(f'{name}: {values[name]}.' for name in CONTEXT)}")


LABEL = 19
"""The most characters of a line in a place of the queue."""


def slot_label(text: str) -> tuple[Text, ...]:
    """An event's name, in two lines where one is too short: LeaderAndIsr / ResponseReceived 3."""
    if len(text) <= LABEL:
        return (Text(SLOT / 2, 21, text, 12),)
    breaks = [place for place in range(1, len(text)) if text[place].isupper()] or [len(text) // 2]
    at = min(breaks, key=lambda place: abs(place - len(text) / 2))
    lines = enumerate((text[:at], text[at:]))
    return tuple(Text(SLOT / 2, 14 + 13 * row, shorten(line, LABEL), 12) for row, line in lines)
