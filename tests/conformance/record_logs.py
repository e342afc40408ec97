"""Record what the brokers of a story log: `python -m tests.conformance.record_logs --generation 2.0 [story ...]`.

Plays a story on real Kafka as `record.py` does and keeps controller.log and state-change.log of every broker, masked
(see `loglines.py`), in `logs/<generation>/<story>.log.xz`. The only program that writes these files.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections.abc import Sequence

from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.settings import parse_brokers
from tests.conformance.cluster import Cluster
from tests.conformance.loglines import masked, path
from tests.conformance.record import Recorder, attempt, begin
from tests.conformance.release import Release
from tests.conformance.story import Story


def record(story: Story, release: Release) -> str:
    """Play a story on a new cluster; its recording, with the logs of its brokers before they are stopped."""
    opening, *commands = stories_language.parse(story.text(release.generation))
    brokers = list(parse_brokers(opening.kwargs["brokers"]))
    with Cluster(release, brokers, opening.kwargs["config"]) as cluster:
        recorder = Recorder(cluster, release.generation)
        recorder.open()
        for command in commands:
            recorder.play(command)
        return text(story, release, {id: broker.log("control.log") for id, broker in cluster.brokers.items()})


def text(story: Story, release: Release, logs: dict[int, str]) -> str:
    """A recording as it is kept."""
    lines = [f"# {story.name}, recorded from Kafka {release.kafka} by tests/conformance/record_logs.py"]
    for id, log in sorted(logs.items()):
        lines += [f"== broker {id}", *masked(log.splitlines())]
    return "".join(f"{line}\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record_logs", description=__doc__)
    _, release, stories = begin(parser, arguments)
    for story in stories:
        target = path(release.generation, story.name)
        told = attempt(story, release, record)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.compress(told.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))
        print(f"{story.name}: {len(told.splitlines())} lines", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
