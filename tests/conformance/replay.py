"""Play a golden story in the kit's memory world and write down, in the same words, what the kit's controller did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.lab import story as stories_language
from kafka_ctl.trace import Record
from tests.conformance import normal


def prologue(text: str) -> str:
    """The comments above a story's first command."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines[: next(i for i, x in enumerate(lines) if not x.startswith("#"))])


def replay(golden: str) -> str:
    """The text that the kit makes of a golden file's commands."""
    lines = golden.splitlines()
    opening, *commands = stories_language.parse(golden)
    with Lab(**stories_language.opening(opening)) as lab:
        player = Player(lab)
        parts = [f"{prologue(golden)}{lines[opening.line - 1]}\n----\n{player.observe()}"]
        for command in commands:
            if command.name == "settle":
                znodes = "".join(f"{line}\n" for line in normal.znodes(player.tree))
                parts.append(f"settle\n----\n{znodes}")
            else:
                parts.append(f"{lines[command.line - 1]}\n----\n{player.play(command)}")
    return "\n".join(parts)


class Player:
    """One lab and what has been looked at already."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.seen = 0
        self.tree: dict[str, tuple[bytes, int]] = {}
        self.lagging: set[int] = set()

    def play(self, command: stories_language.Command) -> str:
        lagging = set(self.lagging)
        if command.name == "lag":
            self.lagging.add(command.args[0])
        if command.name == "catch_up":
            self.lagging.discard(command.args[0])
        if command.name == "reassign":  # the tool that was recorded writes a wish into ZooKeeper
            command = command._replace(kwargs=command.kwargs | {"through": "zookeeper"})
        self.lab.do(command)
        return self.observe(lagging)

    def observe(self, lagging: Iterable[int] = ()) -> str:
        """What the last command led to, once all is quiet."""
        lab = self.lab
        lab.settle()
        records = list(lab.trace.records[self.seen :])
        self.seen += len(records)
        tree = {path: (data, version) for path, (data, version, _) in lab.znodes().items()}
        items = list(as_told(records))
        told = normal.facts(items, lab.generation.name)
        told += normal.changed_states(self.tree, tree) + normal.changed_wishes(self.tree, tree)
        answers: dict[int, list[str]] = {}
        for id, broker in lab.brokers.items():
            if broker.state == "running" and id not in lagging and id not in self.lagging:
                answers[id] = [
                    r.action
                    for r in records
                    if r.kind == "response" and r.actor == f"broker-{id}" and r.action in normal.CONTROL
                ]
        told += normal.wire(answers, items)
        self.tree = tree
        return "".join(f"{line}\n" for line in told)


def as_told(records: Iterable[Record]) -> Iterator[Any]:
    """The controllers' records, with a word where Kafka's log has one about ISR changes, and ours only an event."""
    opened = False
    for record in records:
        if not record.actor.startswith("controller-"):
            continue
        if record.kind == "event" and record.target in ("started", "done"):
            opened = record.action == "IsrChangeNotification" and record.target == "started"
        elif opened and record.action == "UpdateMetadata":
            yield record._replace(kind="controller", action="isr_changes", detail=None)
            opened = False
        yield record
