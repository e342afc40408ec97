"""Record what the brokers of a story log: `python -m tools.recorder.record_logs --generation 2.0 [story ...]`.

Plays a story on real Kafka as `record.py` does and keeps controller.log and state-change.log of every broker, masked
(see `loglines.py`), in `logs/<generation>/<story>.log.xz`. The only program that writes these files. The outcome of the
story must be that of its golden file, so each is recorded twice; if there is no golden file, it is written.
"""

from __future__ import annotations

import argparse
import difflib
import lzma
import re
import sys
from collections.abc import Container, Iterable, Iterator, Sequence

from tests.conformance.loglines import masked, path
from tests.conformance.story import Story
from tools.recorder.playing import OtherOrder
from tools.recorder.record import attempt, begin, played, write
from tools.recorder.record import path as record_path
from tools.recorder.release import Release


def record(story: Story, release: Release) -> str:
    """The logs of the brokers of a new cluster; OtherOrder where a race has ended otherwise than in the golden file."""
    reported, logs = played(story, release)
    if not record_path(story.name, release.generation).exists():
        write(story, release, reported)
    golden = record_path(story.name, release.generation).read_text(encoding="utf-8")
    if reported != golden:
        sys.stdout.writelines(difflib.unified_diff(golden.splitlines(True), reported.splitlines(True), "golden", "now"))
        raise OtherOrder("it is not what the golden file tells")
    return text(story, release, logs)


def text(story: Story, release: Release, logs: dict[int, str]) -> str:
    """A recording as it is kept."""
    lines = [f"# {story.name}, recorded from Kafka {release.kafka} by tools/recorder/record_logs.py"]
    for id, log in sorted(logs.items()):
        cut = re.findall(rf"^disconnect (?:{id} (\d+)|(\d+) {id})$", story.commands, re.MULTILINE)
        lines += [f"== broker {id}", *unrepeated(masked(log.splitlines()), {one or other for one, other in cut})]
    return "".join(f"{line}\n" for line in lines)


def unrepeated(lines: Iterable[str], cut: Container[str]) -> Iterator[str]:
    """The lines of a controller's send thread at each attempt to reach a broker that it is cut from, once."""
    last: dict[str, str] = {}
    for line in lines:
        thread = SENDER.search(line)
        if thread and thread[1] in cut:
            if last.get(thread[1]) == line:
                continue
            last[thread[1]] = line
        yield line


SENDER = re.compile(r"\(id: (\d+) rack: .*RequestSendThread\)")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.record_logs", description=__doc__)
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
