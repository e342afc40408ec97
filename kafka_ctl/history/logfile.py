"""Log files as they are found: wrapped by collectors, cut by rolling, mixed with stack traces, damaged.

`read_texts` turns the texts of one file into what they say: records, rejected texts, and texts that only go on with
the line before them. Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_ctl.history.logforms import read_form
from kafka_ctl.history.logline import Line, parse_line

LONGEST = 100_000
"""Characters of a line that are looked at; maps of a big cluster's partitions can take megabytes."""
STATE_CHANGE, CONTROLLER = "state.change.logger", "kafka.controller"

HEADER = re.compile(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d)[ T](?P<time>\d\d:\d\d:\d\d)[,.](?P<ms>\d{3})\d*"
    r"(?:Z|(?P<zone>[-+]\d\d:?\d\d))?\]? +(?:\[[\w .:/-]+\] +)?"
    r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?:? +"
    r"(?:(?P<logger>state\.change\.logger|kafka\.controller[\w.$]*)(?: -|:) )?"
)
"""Time, perhaps a zone and a thread, level, and in some layouts already the logger."""
LOGGER = re.compile(r"(?P<message>.*) \((?P<logger>[\w.$]+)(?::\d+)?\)(?: \[[\w .:/-]+\])?\s*$", re.DOTALL)
"""Kafka's own layout ends with the logger; operators add a line number or the thread."""
SPEAKER = re.compile(
    r"\[Broker id=|\[Controller id=\d+ epoch=|\bBroker \d+ (?!is ready|starting|resigned)|\bController \d+ epoch \d+ "
    r"|\[Controller[ -]|\[\w*(?:StateMachine|Thread) controllerId=|\[(?:Partition|Replica) state machine on "
    r"|\[Topic Deletion Manager |\[Channel manager on |\[\w+(?:Listener|LeaderSelector)\b"
)
"""How what these two loggers write begins, where the layout does not name the logger."""
COLLECTOR = re.compile(r"(?:[\w./-]+ +\| ?|\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] )")
"""What compose and Kubernetes put before a line."""
GOES_ON = re.compile(
    r"\s+at |\s+\.\.\. \d+ |\s*(?:Caused by|Suppressed): |(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b|\s*$"
)
"""A stack trace, or nothing at all."""

FORMATS: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = (
    ("Controller ", (0, 8), (0, 11)),
    ("Broker ", (0, 8), (0, 11)),
    ("[Controller id=", (1, 0), (3, 9)),
    ("[Broker id=", (1, 0), (3, 9)),
    (" partition [", (0, 8), (0, 10)),
    (" PartitionState(", (0, 10), (2, 3)),
    ("with state LeaderAndIsr(", (1, 1), (3, 9)),
    ("epoch zk version is now", (2, 1), (3, 9)),
    ("bounced brokers", (2, 2), (3, 9)),
    ("broker epochs cache", (2, 2), (3, 9)),
    ("kafka.controller.ZkPartitionStateMachine", (2, 4), (3, 9)),
    ("AndIsrPartitionState(", (2, 4), (3, 9)),
    ("UpdateMetadataPartitionState(", (2, 4), (3, 9)),
    (" become-leader and ", (2, 6), (3, 9)),
    (" starts at leader epoch ", (2, 6), (3, 9)),
)  # fmt: skip
"""What only some Kafkas write: a text, and the oldest and newest release that may."""
AT_START = 4
"""So many of them begin a message."""


class Said(NamedTuple):
    """What one text is: `line` when it was understood, else `rejected` with the reason, else it only goes on."""

    number: int
    text: str
    line: Line | None = None
    rejected: str | None = None
    formats: int = 0
    """Which of `FORMATS` the text is the first to show, as bits."""


def read_texts(numbered: Iterable[tuple[int, str]]) -> Iterator[Said]:
    """What the texts of one file say, in order.

    The first line of a stack trace becomes the `detail` of the record before it. A line that names no actor is
    the same controller's as the line before it from the same collector's source.
    """
    controllers: dict[str, tuple[str | None, int | None]] = {}
    waiting: Said | None = None
    seen = 0
    for number, text in numbered:
        said, source = read_text(number, text, seen)
        seen |= said.formats
        if said.line is None and said.rejected is None:
            if waiting and waiting.line and waiting.line.error and waiting.line.detail is None and text.strip():
                waiting = waiting._replace(line=waiting.line._replace(detail=_bare(text).strip()[:2000]))
            yield said
            continue
        if said.line is not None:
            known = controllers.get(source, (None, None))
            line = _named(said.line, *known)
            if line.actor and line.actor.startswith("controller-"):
                told = line.kind != "request" and line.controller_epoch is not None
                same = line.actor == known[0]
                controllers[source] = (line.actor, line.controller_epoch if told else known[1] if same else None)
            said = said._replace(line=line)
        if waiting:
            yield waiting
        waiting = said
    if waiting:
        yield waiting


def _named(line: Line, controller: str | None, epoch: int | None) -> Line:
    """The line with the controller and its epoch where it leaves them out."""
    if line.actor is None and controller is not None:
        line = line._replace(actor=controller)
    if line.controller_epoch is None and line.actor == controller:
        line = line._replace(controller_epoch=epoch)
    return line


def read_text(number: int, text: str, seen: int = 0) -> tuple[Said, str]:
    """What one text is by itself, and the name that a collector gave its source; `seen` formats are not looked for."""
    text = _unwrapped(text) if text.startswith("{") else text
    if len(text) > LONGEST:
        text = text[: LONGEST - 200] + " " + text[-199:]
    header = HEADER.search(text, 0, 500)
    if header is None:
        if GOES_ON.match(_bare(text)):
            return Said(number, text), ""
        return Said(number, text, rejected="no header"), ""
    source = text[: header.start()].rstrip("[ ")
    message, logger = text[header.end() :].rstrip(), header["logger"] or ""
    if not logger and (named := LOGGER.match(message)):
        message, logger = named["message"], named["logger"]
    if not logger and (speaker := SPEAKER.search(message)):
        message = message[speaker.start() :]
        logger = (
            STATE_CHANGE if re.match(r"\[?Broker|\[Controller id=\d+ epoch|Controller \d+ e", message) else CONTROLLER
        )
    if logger != STATE_CHANGE and not logger.startswith(CONTROLLER):
        return Said(number, text, rejected="another logger" if logger else "no logger"), source
    at = f"[{header['date'].replace('/', '-')} {header['time']},{header['ms']}]"
    line = parse_line(f"{at} {header['level']} {message} ({logger})")
    if line is not None and line.action == "other" and line.kind in ("controller", "broker"):
        line = _other_form(line) if logger == STATE_CHANGE else line._replace(action="says")
    if line is None or (line.action == "other" and line.kind in ("controller", "broker")):
        return Said(number, text, rejected="unknown form"), source
    if header["zone"]:
        line = line._replace(time=line.time - _offset_ms(header["zone"]))
    return Said(number, text, line, formats=shown(f"{message} {logger}", seen)), source


def _other_form(line: Line) -> Line:
    columns = read_form(line.detail or "")
    if columns is None:
        return line
    if line.actor and line.actor.startswith("broker-"):
        columns["broker"] = line.broker
    return line._replace(**columns)


def _bare(text: str) -> str:
    """The text without what a collector put before it."""
    found = COLLECTOR.match(text)
    return text[found.end() :] if found else text


def _unwrapped(text: str) -> str:
    """The line inside a line of JSON, as Docker and JSON layouts write them; anything else as it is."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(fields.get("log"), str):
        return fields["log"].rstrip("\r\n")
    message = fields.get("message", fields.get("msg"))
    if not isinstance(message, str) or HEADER.search(message, 0, 500):
        return message if isinstance(message, str) else text
    logs = fields.get("log")  # nested, or the same names with dots
    fields |= {f"log.{name}": value for name, value in logs.items()} if isinstance(logs, dict) else {}
    at = _first(fields, "@timestamp", "timestamp", "time", "timeMillis", "instant")
    logger = _first(fields, "logger", "logger_name", "loggerName", "log.logger") or ""
    level = _first(fields, "level", "log.level", "severity") or "INFO"
    if isinstance(at, (int, float)):
        at = datetime.fromtimestamp(at / (1000 if at > 1e11 else 1), UTC).isoformat(timespec="milliseconds")
    if not isinstance(at, str):
        return message
    return f"[{at.replace('T', ' ').replace('.', ',')[:23]}] {level} {message} ({logger})"


def _first(fields: dict[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _offset_ms(zone: str) -> int:
    """`+02:00` in milliseconds."""
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (minutes if zone[0] == "+" else -minutes) * 60_000


def shown(text: str, seen: int = 0) -> int:
    """Which of `FORMATS` a line shows beyond those seen already, as bits."""
    bits = 0
    for bit, (sign, _, _) in enumerate(FORMATS):
        if not seen >> bit & 1 and (text.startswith(sign) if bit < AT_START else sign in text):
            bits |= 1 << bit
    return bits


def release(bits: int) -> str:
    """The releases of Kafka that write all of these formats, as `2.1 to 2.3`, `2.6 or newer` or `0.11 or older`."""
    spans = [span for bit, (_, *span) in enumerate(FORMATS) if bits >> bit & 1]
    if not spans:
        return "unknown"
    oldest, newest = max(old for old, _ in spans), min(new for _, new in spans)
    low, high = (".".join(map(str, release)) for release in (oldest, newest))
    if oldest > newest:
        return f"several: {high} or older, and {low} or newer"
    if newest == (3, 9):
        return f"{low} or newer"
    return f"{high} or older" if oldest == (0, 8) else low if oldest == newest else f"{low} to {high}"
