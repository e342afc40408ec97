"""How many of the lines that real Kafka logs the kit writes too.

The recordings are in `logs/<generation>/<story>.log.xz`, made by `tools/recorder/record_logs.py`; the kit plays
the same story in its memory world and writes its logs. A line is compared in a normal form (`masked`, `sorted_sets`),
within the thread that wrote it (`thread`), in order. Lines of one form, or groups of lines of the same forms, that
follow each other about different partitions, brokers or replicas are a set, as Kafka walks through hash sets: they are
sorted (`settled`). Lines about the same one keep their order. What counts is the longest common subsequence, so a line
in another place does not count.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from kafka_ctl import Lab
from kafka_ctl.kafka_log.write import NAMES, KafkaLogs
from kafka_ctl.lab import story as stories_language
from tests.conformance.answers import by_broker
from tests.conformance.as_recorded import AsRecorded
from tests.conformance.story import STORIES, blocks

LOGS = Path(__file__).parent / "logs"
RECORDED = ("0.10", "2.0", "2.4")
LOGGERS = {"(state.change.logger)": "state-change", "(kafka.controller.": "controller"}
"""The end of a line of each log: the logger, or how its name begins."""


def path(generation: str, story: str) -> Path:
    return LOGS / generation / f"{story}.log.xz"


def recordings() -> list[tuple[str, str]]:
    """Every recording as (generation, story)."""
    return [(g, s) for g in RECORDED for s in STORIES if path(g, s).exists()]


# The normal form

MASKS = (
    (r"127\.0\.0\.1([:,] ?)\d+", r"127.0.0.1\1PORT"),
    (r"port=\d+", "port=PORT"),
    (r"(correlation ?[iI]d )\d+", r"\1N"),
    (r"([bB]rokerEpoch=)\d+", r"\1EPOCH"),
    (r"0x[0-9a-f]{6,}", "SESSION"),
)
EPOCHS = re.compile(r"(?<=broker epochs cache: )Map\(.*?\)")


def masked(lines: Iterable[str]) -> Iterator[str]:
    """A log without what differs in every run: times, ports, correlation ids, session ids, broker epochs, stacks.

    An exception is one line, its first, marked with `!`; so are lines of the log without a time.
    """
    below = False
    for line in lines:
        if re.match(r"\[\d{4}-", line):
            text, below = line.split("] ", 1)[1], True
        elif below and not line.startswith(("\t", " ", "Caused by")):
            text, below = f"!{line}", False
        else:
            continue
        yield _masked(text)


@functools.cache
def _masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return EPOCHS.sub(lambda found: re.sub(r"-> \d+", "-> EPOCH", found[0]), text)


ASIDE = re.compile(
    r"(?:.*(?: fails to send request | was unsuccessful |shutdownInitiated latch count reached zero))"
    r"|!java\.(?:io\.IOException: Connection to |lang\.InterruptedException)"
)
"""What a send thread writes about a broker that has just gone: how often it tried, in the middle of which request it
was, and whether it waited or slept when it was told to end, is a matter of time. These lines are set aside."""
COLLECTION = re.compile(r"(?:\w*Set|\w*Map|All leaders = |Brokers: ?Vector|TopicPartitions: ArrayBuffer)(\(|(?<== ))")
ELEMENTS = (
    r"\[[\w.-]+,\d+\]",
    r"\[Topic=[^\]]*\]",
    r"StopReplicaRequestInfo\([^)]*\)",
    r"\{topic[^{}]*(?:\{\})?\}",
    r"[A-Za-z][\w.-]*-\d+=\w+(?:\([^)]*\))?",
    r"[A-Za-z][\w.-]*-\d+",
)
"""What lists of partitions, replicas and answers print without the name of a collection."""
ASSIGNMENTS = re.compile(r'(?<="partitions":{)[^}]*')
IDS = re.compile(r"(?:(?<=Deletion for replicas )|(?<=Live brokers: ))[\d,]+")


@functools.cache
def sorted_sets(text: str) -> str:
    """A line whose printed sets and maps, and lists that were made from them, are sorted."""
    text = ASSIGNMENTS.sub(lambda found: ",".join(sorted(_parts(found[0]))), text)
    text = IDS.sub(lambda found: ",".join(sorted(found[0].split(","))), _sorted_collections(text))
    for element in ELEMENTS:
        several = f"{element}(?:, ?{element})+"
        text = re.sub(several, lambda found, e=element: ",".join(sorted(re.findall(e, found[0]))), text)  # type: ignore[misc]
    return text


def _sorted_collections(text: str) -> str:
    done, place = "", 0
    while found := COLLECTION.search(text, place):
        end = _closing(text, found.end())
        inside = _sorted_collections(text[found.end() : end])
        done += text[place : found.end()] + ", ".join(sorted(part.strip() for part in _parts(inside)))
        place = end
    return done + text[place:]


def _closing(text: str, start: int) -> int:
    """Where the bracket closes that was opened before `start`; before the logger, if none was."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0 or text.startswith(" (kafka.", place):
            return place
    return len(text)


def _parts(text: str) -> list[str]:
    """What commas outside of brackets part."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def thread(text: str) -> str:
    """Which thread of a broker wrote a line; what several threads of one kind write without a name is one of them."""
    if ("-thread-" in text and "[delete-topics" in text) or re.search("Waiting for signal|Are all replicas for", text):
        return "deletion"
    if re.match(r"INFO \[ControllerEventThread controllerId=\d+\] Stopped", text):
        return "events"
    answered = re.search(r"eceived response .*\(id: (\d+)", text)
    if answered or ("RequestSendThread" in text and not re.search(r"Shutting down|Shutdown completed", text)):
        named = answered or re.search(r"to-broker-(\d+)|\(id: (\d+)", text)
        return f"sender {next(filter(None, named.groups())) if named else ''}".strip()
    return "handler" if re.match(r"\w+ (?:\[Broker id=|Broker \d)", text) else "controller"


@functools.cache
def form(text: str) -> str:
    """A line without the things it is about: equal for the same statement about others."""
    text = re.sub(r"\[Topic=[^\]]*\]|topicName='[^']*'|[A-Za-z][\w.-]*-\d+|\[[\w.-]+,\d+\]", "#", text)
    text = re.sub(
        r"become-(?:leader|follower)|\w*(?:Partition|Replica|DeletionStarted|Ineligible|Successful)\b", "#", text
    )
    text = re.sub(r"\b(Set|Map|List|Vector|ArrayBuffer)\([^)]*\)|\[[\d, ]*\]", "#", text)
    text = re.sub(r"\w+ (.*: )(?:New leader and ISR for|Cannot remove replica) .*", r"\1", text)
    return re.sub(r"-?\d+(?:, ?-?\d+)*", "0", re.sub(r"#(?:, ?#)*", "#", text))


THINGS = re.compile(
    r"\[Topic=[^\]]*\]|topicName='[^']*', partitionIndex=\d+|[A-Za-z][\w.-]*-\d+|\[[\w.-]+,\d+\]|(?:broker|replica) \d+"
)


@functools.cache
def things(text: str) -> tuple[str, ...]:
    """The partitions, brokers and replicas that a line is about."""
    return tuple(THINGS.findall(text))


def settled(lines: Sequence[str], longest: int = 8) -> list[str]:
    """Lines of one form in a row sorted by what they are about, then groups of lines of the same forms.

    The sort keeps the order of lines about the same thing: Kafka's maps decide only which thing comes first.
    """
    done = [line for _, run in itertools.groupby(lines, form) for line in sorted(run, key=things)]
    for size in range(2, longest + 1):
        done = _sorted_groups(done, size)
    return done


def _sorted_groups(lines: list[str], size: int) -> list[str]:
    done: list[str] = []
    forms, place = [form(line) for line in lines], 0
    while place < len(lines):
        groups: dict[tuple[tuple[str, ...], ...], list[str]] = {}
        end = place if forms[place] in forms[place + size : place + size + 1] else len(lines)
        while end + size <= len(lines) and forms[end : end + size] == forms[place : place + size]:
            group = lines[end : end + size]
            if (about := tuple(map(things, group))) in groups:
                break
            groups[about] = group
            end += size
        if len(groups) > 1:
            done += [line for group in sorted(groups.values()) for line in group]
            place = end
        else:
            done.append(lines[place])
            place += 1
    return done


def by_thread(lines: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Masked lines by log and thread, in normal form; an exception belongs to the line above it."""
    found: dict[tuple[str, str], list[str]] = {}
    key = ("", "")
    for line in by_broker(lines):
        if not line.startswith("!"):
            log = next(name for end, name in LOGGERS.items() if end in line)
            key = log, thread(line)
        if not ASIDE.match(line):
            found.setdefault(key, []).append(sorted_sets(line))
    return {key: settled(reported) for key, reported in found.items()}


# The comparison


class Difference(NamedTuple):
    """A line that only one of the two wrote: the log, the broker, the line."""

    log: str
    broker: int
    line: str


class Compared(NamedTuple):
    """A recording and the kit: by log how many lines are recorded and how many of them the kit wrote; how many
    recorded lines were set aside; what only Kafka and only the kit wrote."""

    recorded: Counter[str]
    written: Counter[str]
    aside: int
    missing: list[Difference]
    surplus: list[Difference]


def recorded(generation: str, story: str) -> dict[int, list[str]]:
    """A recording: by broker, its masked lines."""
    found: dict[int, list[str]] = {}
    for line in lzma.decompress(path(generation, story).read_bytes()).decode("utf-8").splitlines():
        if line.startswith("== broker "):
            found[int(line.removeprefix("== broker "))] = here = []
        elif not line.startswith("#"):
            here.append(line)
    return found


@functools.cache
def written(generation: str, story: str) -> dict[int, list[str]]:
    """The same of the kit."""
    first, *lines = STORIES[story].text(generation).splitlines()
    (opening,) = stories_language.parse(first)
    with Lab(**stories_language.opening(opening)) as lab:
        player = AsRecorded(lab, recorded(generation, story))
        player.observe()
        for block in blocks(lines):
            player.play(*stories_language.parse("\n".join(block)))
        player.wait_to_the_end()
        logs: dict[int, list[str]] = {broker: [] for broker in lab.brokers}
        for lines in KafkaLogs(NAMES, generation).add(lab.trace).values():
            for _, line in lines:
                if "id" in line.more:  # else it is the exception of the line above
                    owner = cast("int", line.more["id"])
                logs[owner].append(str(line))
        return {broker: [*masked(lines)] for broker, lines in logs.items()}


@functools.cache
def compare(generation: str, story: str) -> Compared:
    """Hold what the kit writes against a recording."""
    ours, real_lines = written(generation, story), recorded(generation, story)
    aside = sum(ASIDE.match(line) is not None for lines in real_lines.values() for line in lines)
    result = Compared(Counter(), Counter(), aside, [], [])
    for broker, lines in real_lines.items():
        theirs, mine = by_thread(lines), by_thread(ours.get(broker, ()))
        for key in sorted(theirs.keys() | mine.keys()):
            log, real, kit = key[0], theirs.get(key, []), mine.get(key, [])
            result.recorded[log] += len(real)
            for op, i, j, k, m in difflib.SequenceMatcher(None, real, kit, autojunk=False).get_opcodes():
                if op == "equal":
                    result.written[log] += j - i
                else:
                    result.missing.extend(Difference(log, broker, line) for line in real[i:j])
                    result.surplus.extend(Difference(log, broker, line) for line in kit[k:m])
    return result


def share(generation: str, log: str) -> tuple[int, int]:
    """Over all recordings of a generation: lines of this log that the kit wrote, and lines there are."""
    found = [compare(g, story) for g, story in recordings() if g == generation]
    return sum(one.written[log] for one in found), sum(one.recorded[log] for one in found)
