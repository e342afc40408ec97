"""Log files as they are found: wrapped by collectors, cut by rolling, mixed with stack traces, damaged.

`read_texts` turns the texts of one file into what they say: records, rejected texts, and texts that only go on with
the line before them. Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_ctl.kafka_log.read import STATE_CHANGE, LogLine, LogWriter, milliseconds, read_message
from kafka_ctl.kafka_log.releases import releases_with

LONGEST = 100_000
"""Characters of a line that are looked at; maps of a big cluster's partitions can take megabytes."""
CONTROLLER = "kafka.controller"
KRAFT = "org.apache.kafka.controller"
"""The loggers of `controller.log`, in ZooKeeper mode and in KRaft mode; and all below them."""

HEADER = re.compile(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d)[ T](?P<time>\d\d:\d\d:\d\d)[,.](?P<ms>\d{3})\d*"
    r"(?: ?(?:Z|UTC|(?P<zone>[-+]\d\d(?::?\d\d)?)))?\]? +(?:\[[\w .:/-]+\] +)?"
    r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?:? +"
    r"(?:(?P<logger>state\.change\.logger|(?:org\.apache\.)?kafka\.controller[\w.$]*)(?: -|:) )?"
)
"""Time, perhaps a zone and a thread, level, and in some layouts already the logger."""
LOGGER = re.compile(r"(?P<message>.*) \((?P<logger>[\w.$]+)(?::\d+)?\)(?: \[[\w .:/-]+\])?\s*$", re.DOTALL)
"""Kafka's own layout ends with the logger; operators add a line number or the thread."""
RECORD_END = re.compile(r"\((?:state\.change\.logger|kafka\.controller[\w.$]*)(?::\d+)?\)")
SPEAKER = re.compile(
    r"\[Broker id=|\[Controller id=\d+ epoch=|\bBroker \d+ (?!is ready|starting|resigned)|\bController \d+ epoch \d+ "
    r"|\[Controller[ -]|\[QuorumController id=|\[\w*(?:StateMachine|Thread) controllerId="
    r"|\[(?:Partition|Replica) state machine on |\[Topic Deletion Manager |\[Channel manager on "
    r"|\[\w+(?:Listener|LeaderSelector)\b"
)
"""The beginnings of lines of these two loggers where the layout does not name the logger."""
COLLECTOR = re.compile(r"(?:[\w./-]+ +\| ?|\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] )")
"""The prefixes that compose and Kubernetes put before a line."""
GOES_ON = re.compile(
    r"\s+at |\s+\.\.\. \d+ |\s*(?:Caused by|Suppressed): |(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b|\s*$"
)
"""A stack trace, or nothing at all."""

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
BEFORE_LEVEL = len("[2016-03-01 10:00:00,000] ") + 1
"""A level that begins later may belong to a second header."""
LINE_BREAK = re.compile(r"\r\n?|\n")


class ParsedLine(NamedTuple):
    """One text: `line` when it was understood, `rejected` with the reason, or neither for a continuation."""

    number: int
    text: str
    line: LogLine | None = None
    rejected: str | None = None
    formats: int = 0
    """Those of `FORMATS` that the text is the first to show, as bits."""
    piece: int = 0
    """The number of this text among those of its line."""


def read_texts(numbered: Iterable[tuple[int, str]]) -> Iterator[ParsedLine]:
    """The texts of one file, in order.

    The first line of a stack trace becomes the `detail` of the record before it. A line that names no actor is
    the same controller's as the line before it from the same collector's source. A line may hold several texts:
    records without line breaks between them, or the lines of a message in JSON.
    """
    writers: dict[str, LogWriter] = {}
    waiting: ParsedLine | None = None
    seen = 0
    for number, piece, text in _pieces(numbered):
        try:
            parsed, source = read_text(number, text, seen)
        except ValueError:  # a thirteenth month, a number of thousands of digits
            parsed, source = ParsedLine(number, text, rejected="an impossible value"), ""
        if piece:
            parsed = parsed._replace(piece=piece)
        seen |= parsed.formats
        if parsed.line is None and parsed.rejected is None:
            if waiting and waiting.line and waiting.line.error and waiting.line.detail is None and text.strip():
                waiting = waiting._replace(line=waiting.line._replace(detail=_bare(text).strip()[:2000]))
            yield parsed
            continue
        if parsed.line is not None:
            line = writers.setdefault(source, LogWriter()).completed(parsed.line)
            parsed = parsed if line is parsed.line else parsed._replace(line=line)
        if waiting:
            yield waiting
        waiting = parsed
    if waiting:
        yield waiting


def _pieces(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    """The texts on each line with the line's number and their own; a line may come in parts, with the same number."""
    last, piece = None, 0
    for number, text in numbered:
        bare, texts = _bare(text), [text]
        if bare.startswith(("{", "\x1e")):
            texts = [text.removesuffix(bare) + each for each in LINE_BREAK.split(unwrapped(bare))]
        for each in (part for whole in texts for part in _unglued(whole)):
            last, piece = number, piece + 1 if number == last else 0
            yield number, piece, each


def _unglued(text: str) -> Iterator[str]:
    """The records of a line on which there are several: a torn write, or a file that was joined, lacks line breaks."""
    for level in LEVELS:
        if text.find(level, BEFORE_LEVEL) >= 0:
            break
    else:
        yield text
        return
    starts = [found.start() - (text[found.start() - 1] == "[") for found in HEADER.finditer(text, 1)]
    begun = HEADER.search(text, 0, 500)
    if begun and not _ends_one(text[: begun.start()]):
        starts = [start for start in starts if start > begun.start()]
    for start, stop in zip([0, *starts], [*starts, None], strict=True):
        record = text[start:stop].strip("\0")
        ended = None if LOGGER.match(record) else RECORD_END.search(record)
        yield from filter(str.strip, (record[: ended.end()], record[ended.end() :]) if ended else (record,))


def _ends_one(text: str) -> bool:
    """True if the text before a header is the end of another line, and no prefix of a collector."""
    ended = LOGGER.match(text.rstrip("[ ")) or (text.strip("[ ") and GOES_ON.match(_bare(text)))
    return bool(ended)


def read_text(number: int, text: str, seen: int = 0) -> tuple[ParsedLine, str]:
    """One text by itself, and the name that a collector gave its source. Formats in `seen` are skipped."""
    if len(text) > LONGEST:
        text = text[: LONGEST - 200] + " " + text[-199:]
    header = HEADER.search(text, 0, 500)
    if header is None:
        if GOES_ON.match(_bare(text)):
            return ParsedLine(number, text), ""
        return ParsedLine(number, text, rejected="no header"), ""
    source = text[: header.start()].rstrip("[ ")
    message, logger = text[header.end() :].rstrip(), header["logger"] or ""
    if not logger and (named := LOGGER.match(message)):
        message, logger = named["message"], named["logger"]
    if not logger and (speaker := SPEAKER.search(message)):
        message = message[speaker.start() :]
        logger = (
            STATE_CHANGE if re.match(r"\[?Broker|\[Controller id=\d+ epoch|Controller \d+ e", message) else CONTROLLER
        )
    if logger != STATE_CHANGE and not logger.startswith((CONTROLLER, KRAFT)):
        return ParsedLine(number, text, rejected="another logger" if logger else "no logger"), source
    at = milliseconds(f"{header['date'].replace('/', '-')} {header['time']}", header["ms"])
    if at is None:
        return ParsedLine(number, text, rejected="no header"), source
    if header["zone"]:
        at -= _offset_ms(header["zone"])
    line = read_message(at, header["level"], logger, message)
    if line.action == "other":  # perhaps a list at the end is empty, and the space before it was cut off
        spaced = read_message(at, header["level"], logger, f"{message} ")
        line = line if spaced.action == "other" else spaced
    if line.action == "other" and line.kind in ("controller", "broker"):
        if logger == STATE_CHANGE:
            return ParsedLine(number, text, rejected="unknown form"), source
        line = line._replace(action="says")
    return ParsedLine(number, text, line, formats=releases_with(f"{message} {logger}", seen)), source


def _bare(text: str) -> str:
    """The text without what a collector put before it."""
    found = COLLECTOR.match(text)
    return text[found.end() :] if found else text


def _offset_ms(zone: str) -> int:
    """`+02:00`, `+0200` or `+02` in milliseconds."""
    minutes = int(zone[1:3]) * 60 + int(zone[3:].strip(":") or 0)
    return (minutes if zone[0] == "+" else -minutes) * 60_000


LEVEL = re.compile(r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?:? +(?=\S)")
OURS = re.compile(
    r"\[?(?:Controller|Broker)\b|.*\((?:state\.change\.logger|kafka\.controller[\w.$]*)(?::\d+)?\)\s*$", re.DOTALL
)
"""The messages of the two loggers, for layouts without time and level."""
PRIORITIES = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
"""syslog's severities 0 (emerg) to 7 (debug), which journald's `PRIORITY` has, in log4j's words."""

SPACED = re.compile(r" (?=[-+]\d\d:?\d\d$)| UTC$")
"""A space before a time zone, and a name of UTC, which ISO 8601 does not have."""


def unwrapped(text: str) -> str:
    """The lines of a log inside a line of JSON: one or several; any other text as it is.

    A message in which `HEADER` is found is a line by itself; to others time, level and logger are put from the fields.
    """
    try:
        fields = json.loads(text.lstrip("\x1e"))  # `journalctl -o json-seq` begins each with it
    except (ValueError, RecursionError):
        return text
    if not isinstance(fields, dict):
        return text
    line = _journal(fields) if "MESSAGE" in fields else _wrapped(fields)
    if line is None:
        return text
    # JSON may spell half of a pair of surrogates, which no column of text can hold.
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip("\r\n")


def _wrapped(fields: dict[str, object]) -> str | None:
    """The line in Docker's JSON, or in the fields of a layout."""
    if isinstance(whole := fields.get("log"), str):
        return whole
    message = fields.get("message", fields.get("msg"))
    if not isinstance(message, str) or HEADER.search(message, 0, 500):
        return message if isinstance(message, str) else None
    logs = fields.get("log")  # nested, or the same names with dots
    fields |= {f"log.{name}": value for name, value in logs.items()} if isinstance(logs, dict) else {}
    at = _first(fields, "@timestamp", "timestamp", "time", "timeMillis", "instant")
    logger = _first(fields, "logger", "logger_name", "loggerName", "log.logger") or ""
    level = str(_first(fields, "level", "log.level", "severity") or "INFO").upper().replace("WARNING", "WARN")
    at = _time(at)
    return message if at is None else f"[{at}] {level} {message} ({logger})"


def _journal(fields: dict[str, object]) -> str | None:
    """The line in an entry of `journalctl -o json`: times in µs, a message as text or, if it is no UTF-8, as bytes.

    systemd: docs/JOURNAL_EXPORT_FORMATS.md, Journal JSON Format
    """
    message = _message(fields["MESSAGE"])
    if message is None or HEADER.search(message, 0, 500):
        return message
    level = LEVEL.match(message)
    rest = message[level.end() :] if level else message
    since = _first(fields, "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
    at = _time(int(since) / 1000) if isinstance(since, str) and re.fullmatch(r"\d{1,18}", since) else None
    if at is None or not OURS.match(rest):
        return message
    priority = str(fields.get("PRIORITY"))
    word = level["level"] if level else PRIORITIES[int(priority)] if priority in set("01234567") else "INFO"
    return f"[{at}] {word} {rest}"


def _message(value: object) -> str | None:
    """A field of an entry: text, an array of bytes, an array of these where the entry has it several times."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return None
    if all(type(byte) is int and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    several = [_message(one) for one in value]
    return None if None in several else "\n".join(filter(None, several))


def _time(value: object) -> str | None:
    """Text, log4j2's `instant`, or seconds or milliseconds since 1970, as the time of a line in UTC."""
    try:
        if isinstance(value, dict):
            value = value["epochSecond"] + value["nanoOfSecond"] / 1e9
        if isinstance(value, str) and not value.isdigit():
            moment = datetime.fromisoformat(SPACED.sub("", value.replace("/", "-")))
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        else:
            seconds = float(str(value))
            moment = datetime.fromtimestamp(seconds / (1000 if seconds > 1e11 else 1), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(" ", "milliseconds")[:23]


def _first(fields: dict[str, object], *names: str) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)
