"""Play a golden story in the kit's memory world and write down, in the same words, what the kit's controller did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.producer import Produced
from kafka_ctl.trace import Record
from kafka_ctl.wire.versions import known_to
from tests.conformance import normal, truth

PRODUCES = 2
"""The version in which the recorder sends records."""
OUTAGE = 10.0
"""Seconds that are looked at after a command while ZooKeeper is down: brokers try to reach it without end."""


def prologue(text: str) -> str:
    """The comments above a story's first command."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines[: next(i for i, x in enumerate(lines) if not x.startswith("#"))])


def replay(golden: str) -> str:
    """The text that the kit makes of a golden file's commands."""
    lines = golden.splitlines()
    opening, *commands = stories_language.parse(golden)
    first = prologue(golden)
    with Lab(**stories_language.opening(opening)) as lab:
        player = Player(lab, truth.asked(first, commands))
        parts = [f"{first}{lines[opening.line - 1]}\n----\n{player.observe()}"]
        block: list[stories_language.Command] = []
        for command in commands:
            block.append(command)
            if lines[command.line] != "----":
                continue
            asked = "\n".join(lines[each.line - 1] for each in block)
            if command.name == "settle":
                reported = "".join(f"{line}\n" for line in normal.znodes(player.tree))
            else:
                reported = player.play(*block)
            parts.append(f"{asked}\n----\n{reported}")
            block = []
    return "\n".join(parts)


class Player:
    """One lab and what has been looked at already."""

    def __init__(self, lab: Lab, kinds: Sequence[str] = ()) -> None:
        self.lab, self.kinds = lab, kinds
        self.seen = 0
        self.tree: dict[str, tuple[bytes, int]] = {}
        self.lagging: set[int] = set()
        self.disturbed: set[int] = set()
        """Brokers that the present commands let stand still or cut off: what they answer is not compared."""
        self.outage = False
        """Whether ZooKeeper is down."""
        self.reported: list[str] = []
        self.produced: dict[tuple[str, int], None] = {}
        self.held: truth.Holding = {}

    def play(self, *commands: stories_language.Command) -> str:
        """Carry out a command, or several at once, and look when all is quiet."""
        lagging = set(self.lagging)
        for command in commands:
            self._act(command)
        return self.observe(lagging)

    def _act(self, command: stories_language.Command) -> None:
        if command.name == "lag":
            self.lagging.add(command.args[0])
        if command.name == "catch_up":
            self.lagging.discard(command.args[0])
        if command.name == "heal":
            self.lagging.clear()
        if command.name in ("pause", "expire_session", "bounce"):
            self.disturbed.add(command.args[0])
        if command.name == "disconnect":
            self.disturbed |= {end for end in command.args if isinstance(end, int)}
        if command.name in ("stop_zookeeper", "start_zookeeper", "heal"):
            self.outage = command.name == "stop_zookeeper"
        if command.name == "reassign" and "through" not in command.kwargs:
            # the tool that was recorded writes what it asks for into ZooKeeper
            command = command._replace(kwargs=command.kwargs | {"through": "zookeeper"})
        done = self.lab.do(command)
        if isinstance(done, Produced):
            self.produced[command.args[0], command.args[1]] = None
            self.reported.append(
                normal.outcome(done.values, done.leader, done.offset, known_to("Produce", PRODUCES, done.error))
            )
        if command.name == "elect_leaders":
            self.reported += normal.elections({str(p): error_name(e.code) if e else "elected" for p, e in done.items()})
        if isinstance(done, str) and command.name in ("verify_reassignment", "execute_reassignment"):
            printed = [line for line in done.splitlines() if line.strip()]
            if command.name == "execute_reassignment":
                printed = [line for line in printed if "Successfully started" in line]
            self.reported += [f"printed: {line}" for line in printed]

    def observe(self, lagging: Iterable[int] = ()) -> str:
        """What the last command led to, once all is quiet."""
        lab = self.lab
        if self.outage:
            lab.run_for(OUTAGE)
        else:
            lab.settle()
        records = list(lab.trace.records[self.seen :])
        self.seen += len(records)
        there = {path: (data, version) for path, (data, version, _) in lab.znodes().items()} if not self.outage else {}
        tree = there or self.tree
        items = list(as_reported(records))
        for record in records:
            if record.kind == "broker" and record.action == "stopped" and record.error:
                self.reported.append(f"broker {record.broker} stopped: {record.error.removesuffix('Exception')}")
        reported = self.reported + normal.facts(items, lab.generation.name)
        reported += normal.changed_states(self.tree, tree) + normal.changed_requests(self.tree, tree)
        answers: dict[int, list[str]] = {}
        for id, broker in lab.brokers.items():
            if broker.state == "running" and id not in (*lagging, *self.lagging, *self.disturbed):
                answers[id] = [
                    r.action
                    for r in records
                    if r.kind == "response" and r.actor == f"broker-{id}" and r.action in normal.CONTROL
                ]
        reported += normal.wire(answers, items)
        if self.kinds:
            steady = [id for id, b in sorted(lab.brokers.items()) if b.state == "running" and id not in self.lagging]
            before, self.held = self.held, truth.of_lab(self.kinds, lab, self.produced, steady)
            reported += truth.changed(before, self.held)
        self.tree, self.reported, self.disturbed = tree, [], set()
        return "".join(f"{line}\n" for line in reported)


def error_name(code: str) -> str:
    """ELECTION_NOT_NEEDED as the name of its exception begins, and INVALID_TOPIC_EXCEPTION, too."""
    return "".join(word.capitalize() for word in code.removesuffix("_EXCEPTION").split("_"))


def as_reported(records: Iterable[Record]) -> Iterator[Any]:
    """The controllers' records, with a word where Kafka's log has one about ISR changes, and ours only an event."""
    opened = False
    for record in records:
        if not record.actor.startswith("controller-"):
            continue
        if record.kind == "event" and record.target in ("started", "done"):
            if opened and record.error is not None:  # Kafka's line comes before its request, which is never sent
                yield record._replace(kind="controller", action="isr_changes", detail=None)
            opened = record.action == "IsrChangeNotification" and record.target == "started"
        elif opened and record.action == "UpdateMetadata":
            yield record._replace(kind="controller", action="isr_changes", detail=None)
            opened = False
        yield record
