"""Record stories from real Kafka: `python -m tools.recorder.record --generation 2.0 [story ...]`.

The only program that writes golden files. `--check` records again and compares instead.
"""

from __future__ import annotations

import argparse
import difflib
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka_ctl import Lab
from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.description import Description
from kafka_ctl.lab.story import Command
from kafka_ctl.lab.validate import parse_brokers
from tests.conformance import normal, truth
from tests.conformance.story import STORIES, Story, blocks
from tools.recorder import held
from tools.recorder.cluster import Cluster, SessionLost
from tools.recorder.playing import COMMANDS, OtherOrder, Player, Unplayable, check
from tools.recorder.release import RECORDINGS, RELEASES, Release
from tools.recorder.watcher import Watcher

GOLDEN = RECORDINGS / "golden"
WRITER = "tools/recorder/record.py"
ATTEMPTS = 12
"""The most attempts at a story until its races end as expected."""


def path(story: str, generation: str) -> Path:
    return GOLDEN / generation / f"{story}.txt"


class Recorder(Player):
    """Plays one story against one cluster and writes down what each of its commands led to."""

    def __init__(self, cluster: Cluster, generation: str, kinds: Sequence[str] = ()) -> None:
        super().__init__(cluster, generation)
        self.watcher, self.kinds = Watcher(cluster), kinds
        self.held: truth.Holding = {}
        if "records" in kinds:
            self.watcher.held = lambda: held.logs(cluster, self.produced)

    def open(self, description: Description | None = None, winner: int = -1) -> str:
        """Start the brokers one after the other; what that led to."""
        return self.observe(lambda: self._open(description, winner))

    def _open(self, description: Description | None, winner: int) -> None:
        if description is not None:
            self.open_described(description, winner)
        else:
            for id in list(self.cluster.brokers):
                self.start(id)

    def act(self, command: Command, waits: bool = True) -> None:
        """Carry out one command; a kill that is not waited for leaves the session to run out."""
        more = {} if waits or command.name != "kill" else {"waits": False}
        COMMANDS[command.name](self, *command.args, **command.kwargs, **more)

    def observe(self, act: Callable[[], Any]) -> str:
        lagging = self.lagging
        act()
        self.watcher.settle(self.lagging)
        if self.cluster.zookeeper_up:
            self.cluster.check_bystanders()
        tree = self.cluster.tree() if self.cluster.zookeeper_up else self.tree  # the last one, while it is down
        lines = self.watcher.lines()
        before, now = normal.controller(self.tree), normal.controller(tree)
        if before in self.order and any(line.action == "forcing_resignation" for line in lines):
            self.order.sort(key=lambda broker: broker == before)  # who resigns is the last to hear that nobody acts
        expected = self.order[0] if self.order else None
        if now not in (expected, before):
            raise OtherOrder(f"broker {now} became controller, and not {expected}")
        if late := normal.joined_out_of_order(self.tree, tree):
            raise OtherOrder(f"replicas joined an ISR in the order {late}")
        answered = self.watcher.answered()
        if self.leaving and any(line.action == "isr_changes" for line in lines):
            raise OtherOrder("a last fetch of the broker that left brought it back into an ISR")
        reported = self.reported + normal.facts(lines, self.generation)
        reported += normal.changed_states(self.tree, tree) + normal.changed_requests(self.tree, tree)
        steady = [b for b in self.cluster.up if b not in (*lagging, *self.lagging, *self.disturbed)]
        reported += normal.wire({b: answered[b] for b in steady}, lines)
        reported += self._truth([b for b in sorted(self.cluster.up) if b not in self.lagging])
        self.tree, self.reported, self.leaving, self.disturbed = tree, [], False, set()
        return "".join(f"{line}\n" for line in reported)

    def _truth(self, steady: Sequence[int]) -> list[str]:
        """The state that brokers hold now and did not hold before."""
        if not self.kinds:
            return []
        before = self.held
        self.held = held.of_cluster(self.kinds, self.cluster, self.produced, steady, self.watcher.following)
        return truth.changed(before, self.held)


def record(story: Story, release: Release) -> str:
    """Play a story on a new cluster and return its golden text; Unplayable for what cannot be played as it is asked."""
    return played(story, release)[0]


def played(story: Story, release: Release) -> tuple[str, dict[int, str]]:
    """The golden text of a story that is played on a new cluster, and the log of each broker."""
    text = story.text(release.generation)
    opening, *commands = stories_language.parse(text)
    check(opening, commands)
    given = stories_language.opening(opening)
    kinds = truth.asked(story.asks, commands)
    with Cluster(
        release,
        parse_brokers(given["brokers"]),
        given.get("config", {}),
        directories=2 if "log_dirs" in kinds or any(command.name == "set_meta" for command in commands) else 1,
        cuts=any(command.name == "disconnect" for command in commands),
        records="records" in kinds,
        small=story.full,
    ) as cluster:
        recorder = Recorder(cluster, release.generation, kinds)
        lines = text.splitlines()
        head = f"# {story.about}\n# Recorded from Kafka {release.kafka} by {WRITER}; not to be edited.\n"
        parts = [f"{head}{story.asks}{lines[0]}\n----\n{recorder.open(*_described(given))}"]
        for block in blocks(lines[1:]):
            inside = list(stories_language.parse("\n".join(block)))

            def act(inside: list[Command] = inside) -> None:
                for command in inside[:-1]:
                    recorder.act(command, waits=False)
                recorder.act(inside[-1])

            asked = "\n".join(block)
            parts.append(f"{asked}\n----\n{recorder.observe(act)}")
        znodes = "".join(f"{line}\n" for line in normal.znodes(recorder.tree))
        parts.append(f"settle\n----\n{znodes}")
        logs = {id: broker.log("control.log") for id, broker in cluster.brokers.items()}
    return "\n".join(parts), logs


def _described(given: dict[str, Any]) -> tuple[Description, int] | tuple[()]:
    """The description in a story's first line, and who becomes controller when the kit begins with it."""
    if "described" not in given:
        return ()
    with Lab(**given) as lab:
        assert lab.controller is not None
        return given["described"], lab.controller.id


def attempt(story: Story, release: Release, play: Callable[[Story, Release], str] = record) -> str:
    """Record until all races end as expected."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return play(story, release)
        except (OtherOrder, SessionLost) as error:
            print(f"  {story.name}: attempt {number}: {error}", flush=True)
    raise SystemExit(f"{story.name}: its races never ended as expected")


def write(story: Story, release: Release, text: str) -> None:
    golden = path(story.name, release.generation)
    golden.parent.mkdir(parents=True, exist_ok=True)
    golden.write_text(text, encoding="utf-8")


def begin(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> tuple[argparse.Namespace, Release, list[Story]]:
    """Read a recorder's arguments, prepare the process, and return what was given, the release and its stories."""
    parser.add_argument("--generation", choices=RELEASES, required=True)
    parser.add_argument("story", nargs="*", help="the stories to record; all of them without any")
    given = parser.parse_args(arguments)
    if unknown := set(given.story) - set(STORIES):
        parser.error(f"no story {sorted(unknown)}; there are {', '.join(STORIES)}")
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # which tells of each attempt while ZooKeeper is down
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no broker is left behind
    there = [story for story in STORIES.values() if given.generation in story.generations]
    return given, RELEASES[given.generation], [s for s in there if not given.story or s.name in given.story]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.record", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the golden files instead of writing them")
    given, release, stories = begin(parser, arguments)
    wrong = 0
    for story in stories:
        start = time.monotonic()
        try:
            text = attempt(story, release)
        except (RuntimeError, Unplayable) as error:
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
            write(story, release, text)
        print(f"{story.name}: {note} in {time.monotonic() - start:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
