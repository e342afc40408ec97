"""Record what the brokers of a story log: `python -m tests.conformance.record_logs --generation 2.0 [story ...]`.

Plays a story on real Kafka as `record.py` does and keeps controller.log and state-change.log of every broker, masked
(see `loglines.py`), in `logs/<generation>/<story>.log.xz`. The only program that writes these files.
"""

from __future__ import annotations

import argparse
import lzma
import signal
import sys
from collections.abc import Sequence

from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.settings import parse_brokers
from tests.conformance.cluster import Cluster
from tests.conformance.loglines import masked, path
from tests.conformance.record import ATTEMPTS, OtherOrder, Recorder
from tests.conformance.release import RELEASES, Release
from tests.conformance.stories import STORIES, Story


def play(story: Story, release: Release) -> dict[int, str]:
    """Play a story on a new cluster; the logs of its brokers, before they are stopped."""
    opening, *commands = stories_language.parse(story.text(release.generation))
    brokers = list(parse_brokers(opening.kwargs["brokers"]))
    with Cluster(release, brokers, opening.kwargs["config"]) as cluster:
        recorder = Recorder(cluster, release.generation)
        recorder.open()
        for command in commands:
            recorder.play(command)
        return {id: broker.log("control.log") for id, broker in cluster.brokers.items()}


def text(story: Story, release: Release, logs: dict[int, str]) -> str:
    """A recording as it is kept."""
    lines = [f"# {story.name}, recorded from Kafka {release.kafka} by tests/conformance/record_logs.py"]
    for id, log in sorted(logs.items()):
        lines += [f"== broker {id}", *masked(log.splitlines())]
    return "".join(f"{line}\n" for line in lines)


def record(story: Story, release: Release) -> str:
    """Record until all races end as the story expects."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return text(story, release, play(story, release))
        except OtherOrder as error:
            print(f"  {story.name}: attempt {number}: {error}", flush=True)
    raise SystemExit(f"{story.name}: its races never ended as expected")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record_logs", description=__doc__)
    parser.add_argument("--generation", choices=RELEASES, required=True)
    parser.add_argument("story", nargs="*", help="the stories to record; all of them without any")
    given = parser.parse_args(arguments)
    if unknown := set(given.story) - set(STORIES):
        parser.error(f"no story {sorted(unknown)}; there are {', '.join(STORIES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no broker is left behind
    for story in STORIES.values():
        if given.generation in story.generations and (not given.story or story.name in given.story):
            target = path(given.generation, story.name)
            told = record(story, RELEASES[given.generation])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lzma.compress(told.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))
            print(f"{story.name}: {len(told.splitlines())} lines", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
