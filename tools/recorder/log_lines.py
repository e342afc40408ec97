"""The differences between the logs of real Kafka and the kit's, line by line: `python -m tools.recorder.log_lines`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from operator import attrgetter

from kafka_ctl.kafka_log.write import NAMES
from kafka_ctl.paths import ROOT
from tests.conformance.loglines import RECORDED, Compared, Difference, compare, form, path, recorded, recordings, share
from tests.conformance.story import STORIES

KINDS = (
    (
        "how often 0.10's deletion thread looks, when answers come together",
        r"Are all replicas for|Deletion for replicas|Delete topic callback|Deletion successfully"
        r"|ReplicaDeletionSuccessful|Handling deletion|Not retrying deletion|Waiting for signal"
        r"|Signaling restart|\(re\)started",
    ),
    (
        "who is second in the race for `/controller`",
        r"has been elected as the controller|was elected as controller instead|ControllerMovedException",
    ),
    (
        "what the first look at the balance, five seconds after an election, finds",
        r"hecking need to trigger|referred replicas by broker|not in preferred replica|imbalance ratio|New topics:"
        r"|New partition creation callback|automatic preferred replica leader election",
    ),
    (
        "partitions that are elected, or leave an ISR, one after the other in another order",
        r"leader cache is updated|Selected new leader|Some broker in ISR|Removing replica|New leader and ISR"
        r"|Cannot remove replica|PreferredReplicaPartitionLeaderSelector|elected? leader|leader election",
    ),
    (
        "the last requests to a broker that leaves",
        r"andling stop replica|ached leader info|eceived response|stop replica request|eceived LeaderAndIsr|become-",
    ),
    (
        "a process that ends: a bounced one is killed in the recording, and stops here; a moment earlier or later",
        r"Starting|Stopped|Shutting down|Shutdown completed|[Rr]esign|Unregister|De-registering",
    ),
    ("what 0.10 says when its session has expired", r"ZK expired"),
    ("a controller that cannot write any more", r"Controller moved to another broker when|Controller epoch zkVersion"),
    (
        "an announcement that comes a moment earlier or later (a log directory, an ISR), and the requests it leads to",
        r"log directory failure|[Ss]ending (?:become|UpdateMetadata|update)|isr change listener fired",
    ),
)
"""The subjects of the lines that only one of the two wrote."""
BROKERS = (
    ("a fetcher starts, stops, or does not start", r"(?i)(?:started|stopped) fetcher|adding-fetcher"),
    ("a log is truncated for another leader", r"(?i)truncated logs"),
    ("a metadata cache takes a partition, or drops one", r"(?i)cached leader info|from metadata cache"),
    ("the controller has an answer", r"(?i)received response"),
)
"""Acts of brokers and answers, by the line that tells of them."""
SIDES: dict[str, Callable[[Compared], list[Difference]]] = {
    "missing": attrgetter("missing"),
    "too many": attrgetter("surplus"),
}
"""The differences of a story: lines that the kit did not write, and lines that Kafka did not."""
PAGE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- written by tools/recorder/log_lines.py: -->\n", "<!-- end of what log_lines.py writes -->\n"


def kind(line: str) -> str:
    """The first of `KINDS` that a line is of; `other`, if it is of none."""
    return next((name for name, pattern in KINDS if re.search(pattern, line)), "other")


def percent(part: int, whole: int) -> str:
    """A share rounded down, so that only what is complete is 100 %."""
    return f"{10_000 * part // max(1, whole) / 100:.2f} %"


def tables() -> str:
    """The shares, and what is left by kind, as Markdown."""
    lines = ["| log | generation | recordings | lines | written by the kit | share |", "|---|---|---|---|---|---|"]
    for log in NAMES:
        for generation in RECORDED:
            count = sum(g == generation for g, _ in recordings())
            same, whole = share(generation, log)
            lines.append(f"| `{log}.log` | {generation} | {count} | {whole} | {same} | {percent(same, whole)} |")
    lacking = {g: [n for n, s in STORIES.items() if g in s.generations and not path(g, n).exists()] for g in RECORDED}
    lines += ["", *(f"No recording of logs in {g}: {', '.join(names)}.\n" for g, names in lacking.items() if names)]
    lines += _of_brokers()
    lines += ["", "| kind | " + " | ".join(RECORDED) + " |", "|---|" + "---|" * len(RECORDED)]
    found = {g: [compare(g, story) for other, story in recordings() if other == g] for g in RECORDED}
    for name in (*(name for name, _ in KINDS), "other"):
        sides = [
            [sum(kind(d.line) == name for one in found[g] for d in side(one)) for side in SIDES.values()]
            for g in RECORDED
        ]
        if any(map(any, sides)):
            lines.append(f"| {name} | " + " | ".join(f"{m} missing, {s} too many" for m, s in sides) + " |")
    aside = " | ".join(str(sum(one.aside for one in found[g])) for g in RECORDED)
    lines.append(f"| set aside: a send thread and a broker that has just gone | {aside} |")
    return "\n".join(lines) + "\n"


def _of_brokers() -> list[str]:
    """The share of the lines about brokers that the kit wrote, as Markdown."""
    lines = ["| lines that tell what brokers did | " + " | ".join(RECORDED) + " |", "|---|" + "---|" * len(RECORDED)]
    for name, pattern in BROKERS:
        cells = []
        for generation in RECORDED:
            of = [recording for recording in recordings() if recording[0] == generation]
            whole = sum(bool(re.search(pattern, x)) for one in of for log in recorded(*one).values() for x in log)
            lacking = sum(bool(re.search(pattern, d.line)) for one in of for d in compare(*one).missing)
            cells.append(f"{whole - lacking} of {whole}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def page() -> str:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.log_lines", description=__doc__)
    parser.add_argument("--generation", choices=RECORDED, action="append", help="all of them by default")
    parser.add_argument("--differences", type=int, default=10, help="how many differences of a log to print, by form")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/fidelity.md and nothing else")
    parser.add_argument("story", nargs="*", help="the stories to compare; all of them without any")
    given = parser.parse_args(arguments)
    if given.write:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    for generation in given.generation or RECORDED:
        found = {
            story: compare(generation, story)
            for g, story in recordings()
            if g == generation and (not given.story or story in given.story)
        }
        for log in NAMES:
            whole = sum(one.recorded[log] for one in found.values())
            same = sum(one.written[log] for one in found.values())
            print(f"{generation} {log}: {same} of {whole} lines, {percent(same, whole)}")
            for name, side in SIDES.items():
                _print_differences(found, log, name, side, given.differences)
    return 0


def _print_differences(
    found: dict[str, Compared], log: str, name: str, side: Callable[[Compared], list[Difference]], most: int
) -> None:
    forms: dict[str, list[str]] = {}
    for story, one in found.items():
        for d in side(one):
            if d.log == log:
                forms.setdefault(form(d.line), []).append(f"{story}, broker {d.broker}: {d.line}")
    for examples in sorted(forms.values(), key=len, reverse=True)[:most]:
        print(f"  {len(examples)} {name}: {examples[0]}")


if __name__ == "__main__":
    raise SystemExit(main())
