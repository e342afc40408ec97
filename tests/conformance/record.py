"""Record stories from real Kafka: `python -m tests.conformance.record --generation 2.0 [story ...]`.

The only program that writes golden files. `--check` records again and compares instead.
"""

from __future__ import annotations

import argparse
import difflib
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.settings import parse_brokers
from kafka_ctl.lab.story import Command
from tests.conformance import normal
from tests.conformance.cluster import Cluster
from tests.conformance.release import HERE, RELEASES, Release
from tests.conformance.stories import STORIES, Story
from tests.conformance.watcher import Watcher

GOLDEN = HERE / "golden"
ATTEMPTS = 12
"""How often a story is tried until its races end as expected."""


class OtherOrder(Exception):
    """A race ended otherwise than the story expects; the recording is worthless."""


def path(story: str, generation: str) -> Path:
    return GOLDEN / generation / f"{story}.txt"


class Recorder:
    """Plays one story against one cluster."""

    def __init__(self, cluster: Cluster, generation: str) -> None:
        self.cluster, self.generation = cluster, generation
        self.watcher = Watcher(cluster)
        self.lagging: tuple[int, ...] = ()
        self.leaving = False
        """Whether the present command is a controlled shutdown."""
        self.order: list[int] = []
        """The running brokers, longest first."""
        self.tree: dict[str, tuple[bytes, int]] = {}
        self.zookeeper = ("--zookeeper", cluster.zookeeper.address)

    def open(self) -> str:
        """Start the brokers one after the other; what that led to."""
        return self._observe(lambda: [self.start(id) for id in self.cluster.brokers])

    def play(self, command: Command) -> str:
        """Carry out one command; what it led to."""
        return self._observe(lambda: getattr(self, command.name)(*command.args, **command.kwargs))

    def _observe(self, act: Callable[[], Any]) -> str:
        lagging = self.lagging
        act()
        self.watcher.settle(self.lagging)
        expected, now = self.order[0], normal.controller(self.tree_now())
        if now not in (expected, normal.controller(self.tree)):
            raise OtherOrder(f"broker {now} became controller, and not {expected}")
        tree, lines = self.tree_now(), self.watcher.lines()
        if late := normal.joined_out_of_order(self.tree, tree):
            raise OtherOrder(f"replicas joined an ISR in the order {late}")
        answered = self.watcher.answered()
        if self.leaving and any(line.action == "isr_changes" for line in lines):
            raise OtherOrder("a last fetch of the broker that left brought it back into an ISR")
        self.leaving = False
        told = normal.facts(lines, self.generation)
        told += normal.changed_states(self.tree, tree) + normal.changed_wishes(self.tree, tree)
        steady = [b for b in self.cluster.up if b not in (*lagging, *self.lagging)]
        told += normal.wire({b: answered[b] for b in steady}, lines)
        self.tree = tree
        return "".join(f"{line}\n" for line in told)

    def tree_now(self) -> dict[str, tuple[bytes, int]]:
        return self.cluster.tree()

    # Commands

    def start(self, id: int) -> None:
        self.cluster.start(id)
        self.order.append(id)

    def kill(self, id: int) -> None:
        """Kill -9. While the session of a controller runs out, everybody but its successor stands still."""
        was_controller = normal.controller(self.tree) == id
        self.order.remove(id)
        self.cluster.kill(id, self.order[1:] if was_controller else ())

    def shutdown(self, id: int) -> None:
        self.order.remove(id)
        self.cluster.shutdown(id)
        self.leaving = True

    def lag(self, broker: int, topic: str, partition: int) -> None:
        """A follower falls behind when its process stands still while messages arrive."""
        self.cluster.pause(broker)
        self.lagging = (*self.lagging, broker)
        self.cluster.tool(
            "kafka.tools.ConsoleProducer", "--broker-list", self.cluster.bootstrap, "--topic", topic, stdin="a\nb\nc\n"
        )

    def catch_up(self, broker: int) -> None:
        self.cluster.resume(broker)
        self.lagging = tuple(b for b in self.lagging if b != broker)

    def run_for(self, seconds: float) -> None:
        """Time itself is the story here."""
        time.sleep(seconds)

    def create_topic(self, topic: str, assignment: dict[str, list[int]], config: dict[str, Any] | None = None) -> None:
        replicas = ",".join(":".join(map(str, assignment[str(p)])) for p in range(len(assignment)))
        settings = [word for k, v in (config or {}).items() for word in ("--config", f"{k}={str(v).lower()}")]
        self._topics("--create", "--topic", topic, "--replica-assignment", replicas, *settings)

    def add_partitions(self, topic: str, total: int) -> None:
        self._topics("--alter", "--topic", topic, "--partitions", str(total))

    def delete_topic(self, topic: str) -> None:
        self._topics("--delete", "--topic", topic)

    def _topics(self, *arguments: str) -> None:
        self.cluster.tool("kafka.admin.TopicCommand", *self.zookeeper, *arguments)

    def reassign(self, targets: dict[str, list[int]]) -> None:
        """The tool since 1.0 refuses brokers that are down; the controller does not: then we write what it writes."""
        partitions = [_partition(name) | {"replicas": replicas} for name, replicas in targets.items()]
        moves = {"version": 1, "partitions": partitions}
        if {broker for replicas in targets.values() for broker in replicas} <= set(self.cluster.up):
            file = self.cluster.write_json("moves.json", moves)
            said = self.cluster.tool(
                "kafka.admin.ReassignPartitionsCommand", *self.zookeeper, "--reassignment-json-file", file, "--execute"
            )
            if "Successfully started" not in said:
                raise RuntimeError(f"reassign {targets}: {said}")
        else:
            self.cluster.zk.create("/admin/reassign_partitions", json.dumps(moves, separators=(",", ":")).encode())

    def cancel_reassignment(self, partitions: list[str]) -> None:
        """Kafka 2.4's tools cannot; its admin client can."""
        self.cluster.source("CancelReassignment.java", self.cluster.bootstrap, *partitions)

    def elect_preferred(self, partitions: list[str]) -> None:
        file = self.cluster.write_json("elect.json", {"partitions": [_partition(name) for name in partitions]})
        self.cluster.tool(
            "kafka.admin.PreferredReplicaLeaderElectionCommand", *self.zookeeper, "--path-to-json-file", file
        )


def _partition(name: str) -> dict[str, Any]:
    topic, _, number = name.rpartition("-")
    return {"topic": topic, "partition": int(number)}


def record(story: Story, release: Release) -> str:
    """Play a story on a new cluster and return its golden text."""
    text = story.text(release.generation)
    opening, *commands = stories_language.parse(text)
    brokers = list(parse_brokers(opening.kwargs["brokers"]))
    head = f"# {story.about}\n# Recorded from Kafka {release.kafka} by tests/conformance/record.py; not to be edited.\n"
    with Cluster(release, brokers, opening.kwargs["config"]) as cluster:
        recorder = Recorder(cluster, release.generation)
        parts = [f"{head}{text.splitlines()[0]}\n----\n{recorder.open()}"]
        for line, command in zip(text.splitlines()[1:], commands, strict=True):
            parts.append(f"{line}\n----\n{recorder.play(command)}")
        znodes = "".join(f"{line}\n" for line in normal.znodes(recorder.tree))
        parts.append(f"settle\n----\n{znodes}")
    return "\n".join(parts)


def attempt(story: Story, release: Release) -> str:
    """Record until all races end as expected."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return record(story, release)
        except OtherOrder as error:
            print(f"  {story.name}: attempt {number}: {error}", flush=True)
    raise SystemExit(f"{story.name}: its races never ended as expected")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record", description=__doc__)
    parser.add_argument("--generation", choices=RELEASES, required=True)
    parser.add_argument("--check", action="store_true", help="compare with the golden files instead of writing them")
    parser.add_argument("story", nargs="*", help="the stories to record; all of them without any")
    given = parser.parse_args(arguments)
    if unknown := set(given.story) - set(STORIES):
        parser.error(f"no story {sorted(unknown)}; there are {', '.join(STORIES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no broker is left behind
    release, wrong = RELEASES[given.generation], 0
    for story in STORIES.values():
        if given.generation not in story.generations or (given.story and story.name not in given.story):
            continue
        start = time.monotonic()
        try:
            text = attempt(story, release)
        except RuntimeError as error:
            print(f"{story.name}: FAILED: {error}", flush=True)
            wrong += 1
            continue
        golden = path(story.name, given.generation)
        note = "recorded"
        if given.check:
            before = golden.read_text(encoding="utf-8") if golden.exists() else ""
            note = "same" if before == text else "DIFFERENT"
            wrong += before != text
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), text.splitlines(True), "golden", "now"))
        else:
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, encoding="utf-8")
        print(f"{story.name}: {note} in {time.monotonic() - start:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
