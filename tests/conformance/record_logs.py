"""Record what the brokers of a story log: `python -m tests.conformance.record_logs --generation 2.0 [story ...]`.

Plays a story on real Kafka as `record.py` does and keeps controller.log and state-change.log of every broker, masked
(see `loglines.py`), in `logs/<generation>/<story>.log.xz`. The only program that writes these files. What the story led
to must be what its golden file tells, so that each is recorded twice.
"""

from __future__ import annotations

import argparse
import difflib
import lzma
import sys
from collections.abc import Sequence

from tests.conformance.loglines import masked, path
from tests.conformance.record import OtherOrder, attempt, begin, played
from tests.conformance.record import path as record_path
from tests.conformance.release import Release
from tests.conformance.story import Story


def record(story: Story, release: Release) -> str:
    """The logs of the brokers of a new cluster; OtherOrder where a race has ended otherwise than in the golden file."""
    reported, logs = played(story, release)
    golden = record_path(story.name, release.generation).read_text(encoding="utf-8")
    if reported != golden:
        sys.stdout.writelines(difflib.unified_diff(golden.splitlines(True), reported.splitlines(True), "golden", "now"))
        raise OtherOrder("it is not what the golden file tells")
    return text(story, release, logs)


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
        reported = attempt(story, release, record)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.compress(reported.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))
        print(f"{story.name}: {len(reported.splitlines())} lines", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
