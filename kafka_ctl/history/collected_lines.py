"""Lines of a log inside lines of JSON, as Docker, journald and JSON layouts write them. Standard library only."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

LEVEL = re.compile(r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?:? +(?=\S)")
OURS = re.compile(
    r"\[?(?:Controller|Broker)\b|.*\((?:state\.change\.logger|kafka\.controller[\w.$]*)(?::\d+)?\)\s*$", re.DOTALL
)
"""What the two loggers write, where a layout leaves out time and level."""
PRIORITIES = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
"""syslog's severities 0 (emerg) to 7 (debug), which journald's `PRIORITY` has, in log4j's words."""


def unwrapped(text: str, header: re.Pattern[str]) -> str:
    """What a line of JSON wraps: a line of a log, or several; anything else as it is.

    A message in which `header` is found is a line by itself; to others time, level and logger are put from the fields.
    """
    try:
        fields = json.loads(text.lstrip("\x1e"))  # `journalctl -o json-seq` begins each with it
    except (ValueError, RecursionError):
        return text
    if not isinstance(fields, dict):
        return text
    line = _journal(fields, header) if "MESSAGE" in fields else _wrapped(fields, header)
    if line is None:
        return text
    # JSON may spell half of a pair of surrogates, which no column of text can hold.
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip("\r\n")


def _wrapped(fields: dict[str, object], header: re.Pattern[str]) -> str | None:
    """The line in Docker's JSON, or in the fields of a layout."""
    if isinstance(whole := fields.get("log"), str):
        return whole
    message = fields.get("message", fields.get("msg"))
    if not isinstance(message, str) or header.search(message, 0, 500):
        return message if isinstance(message, str) else None
    logs = fields.get("log")  # nested, or the same names with dots
    fields |= {f"log.{name}": value for name, value in logs.items()} if isinstance(logs, dict) else {}
    at = _first(fields, "@timestamp", "timestamp", "time", "timeMillis", "instant")
    logger = _first(fields, "logger", "logger_name", "loggerName", "log.logger") or ""
    level = _first(fields, "level", "log.level", "severity") or "INFO"
    at = at if isinstance(at, str) else _time(at)
    if at is None:
        return message
    return f"[{at.replace('T', ' ').replace('.', ',')[:23]}] {level} {message} ({logger})"


def _journal(fields: dict[str, object], header: re.Pattern[str]) -> str | None:
    """The line in an entry of `journalctl -o json`: times in µs, a message as text or, if it is no UTF-8, as bytes.

    systemd: docs/JOURNAL_EXPORT_FORMATS.md, Journal JSON Format
    """
    message = _message(fields["MESSAGE"])
    if message is None or header.search(message, 0, 500):
        return message
    level = LEVEL.match(message)
    rest = message[level.end() :] if level else message
    since = _first(fields, "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
    at = _time(int(since) / 1000) if isinstance(since, str) and re.fullmatch(r"\d{1,18}", since) else None
    if at is None or not OURS.match(rest):
        return message
    priority = str(fields.get("PRIORITY"))
    word = level["level"] if level else PRIORITIES[int(priority)] if priority in set("01234567") else "INFO"
    return f"[{at.replace('T', ' ').replace('.', ',')[:23]}] {word} {rest}"


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
    """Seconds or milliseconds since 1970 as ISO 8601 in UTC."""
    if not isinstance(value, (int, float)):
        return None
    try:
        seconds = value / (1000 if value > 1e11 else 1)
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _first(fields: dict[str, object], *names: str) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)
