"""One line of Kafka's `state-change.log` or `controller.log`, Kafka 0.8.0 to 3.9, in the trace's terms.

`parse_line` takes one line by itself; `parse_lines` also names the controller where a line leaves it out, from the
lines before it. Both spellings of a partition, `[orders,0]` and `orders-0`, and topics with dots and dashes are read.
Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.kafka_log.read_other_releases import Reader, forms, texts
from kafka_ctl.kafka_log.records import Columns, Reading, reading
from kafka_ctl.kafka_log.templates import Text, book, capital


class LogLine(NamedTuple):
    """One line of a log; columns as in `trace.Record`, None where the line does not say.

    `time` is in epoch milliseconds, of a clock whose zone the log does not name: as if it were UTC. `partitions` is
    for lines about several partitions at once, as (topic, partition). A line in no known form has the action `other`
    and its text as detail.
    """

    time: int
    level: str
    logger: str
    actor: str | None = None
    kind: str = "controller"
    action: str = "other"
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    source: str | None = None
    target: str | None = None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    zk_version: int | None = None
    controller_epoch: int | None = None
    replicas: tuple[int, ...] | None = None
    error: str | None = None
    detail: str | None = None
    partitions: tuple[tuple[str, int], ...] | None = None


NOTHING: Columns = {"time": 0, "level": "", "logger": "", **LogLine._field_defaults}
"""All columns in their order, before a line has been read."""
HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) (.*) \(([\w.$]+)\)\s*$", re.DOTALL)
WHO = re.compile(
    r"(?:\[[\w ]*?(?:[cC]ontroller(?:Id=| id=| )|Manager |on )|Controller (?=\d+ epoch \d+ )"
    r"|\[(?:\S+:)?Controller-|\[delete-topics-thread-)"
    r"(?P<controller>\d{1,10})(?: epoch[= ](?P<epoch>\d{1,10}))?(?:-to-broker-\d+-send-thread)?\]?[:,]? "
    r"|(?:\[Broker id=|Broker (?=\d+ (?!is ready|starting|resigned|has been|was elected)))(?P<broker>\d{1,10})\]? "
    r"|\[[\w-]+\][:,] "
)
"""The possible beginnings of a line: its logger, or only the part of a controller that wrote it.

Not made from the templates' prefixes: most releases that are read, 0.8 to 3.9, have no templates. That each prefix of a
template is read is held by the test that reads back every line we write.
"""
AGAIN = re.compile(r"Controller \d+ epoch \d+ ")
"""The second prefix of some lines."""
STATE_CHANGE = "state.change.logger"
LIMIT = 1 << 31
BEGINS = re.compile(r"[A-Za-z]\w*")
FIRST = re.compile(r"(?:\(\?(?::|P<\w+>))?([A-Z]\w*(?:\|[A-Z]\w*)*)")
"""The words that a pattern can begin with."""
Rule: TypeAlias = tuple[Callable[[str], re.Match[str] | None], Reader]
"""A reader that finds a form in a sentence, and one that makes columns of it."""


class Rules:
    """The rules of one log by the first word of a message; those under "" are for messages that begin with a value.

    Templates are tried before the patterns of other releases; they are compiled when their first word is first met.
    """

    def __init__(self, file: str, others: Iterable[tuple[Text, Reading]], forms: Iterable[tuple[str, Reader]]) -> None:
        lines = [line for name in reversed(GENERATIONS) for known in book(name).templates.values() for line in known]
        texts = [(line.text, reading(line.name)) for line in lines if line.component.file == file]
        self._texts: dict[str, list[tuple[Text, Reading]]] = {}
        self._forms: dict[str, list[tuple[str, Reader]]] = {}
        self._made: dict[str, list[Rule]] = {}
        for text, read in (*texts, *others):
            self._texts.setdefault(first_word(text.sentence), []).append((text, read))
        for pattern, reader in forms:
            first = FIRST.match(pattern)
            for word in first[1].split("|") if first else ("",):
                self._forms.setdefault(word, []).append((pattern, reader))

    def of(self, word: str) -> list[Rule]:
        """The rules for messages that begin with this word, in the order in which they are to be tried."""
        made = self._made.get(word)
        if made is None:
            texts = {text.source[0]: (text, read) for text, read in reversed(self._texts.get(word, []))}
            made = [(text.pattern.fullmatch, _reader(text, read)) for text, read in texts.values()]
            made.reverse()
            made += [(re.compile(form, re.DOTALL).match, read) for form, read in self._forms.get(word, [])]
            self._made[word] = made
        return made


def _reader(text: Text, reading: Reading) -> Reader:
    """A reader of columns from a match of a text's pattern; it reads only the fields that become columns."""
    fields = [field for field in text.readers if field[0] in reading.fields]
    make = reading.make

    def read(found: re.Match[str]) -> Columns:
        return make({name: value(found[group]) for name, value, group in fields})

    return read


def first_word(sentence: str) -> str:
    """`Started` of "Started leader election"; empty for a sentence that begins with a value."""
    first = BEGINS.match(sentence)
    return first[0] if first else ""


@functools.cache
def _rules(file: str) -> Rules:
    """The sentences of `state-change.log` or of `controller.log`."""
    if file == "state-change":
        return Rules(file, (), forms())
    return Rules(file, texts(), ())


def parse_line(text: str) -> LogLine | None:
    """The record of one line; None for a line that does not begin a log entry, as in a stack trace."""
    head = HEAD.match(text)
    at = milliseconds(head[1], head[2]) if head else None
    return None if head is None or at is None else read_message(at, head[3], head[5], head[4])


def read_message(time: int, level: str, logger: str, message: str) -> LogLine:
    """The record of a logger's message, at epoch milliseconds; the action of an unknown sentence is `other`."""
    columns: Columns = {**NOTHING, "time": time, "level": level, "logger": logger}
    message = _who(message, columns)
    sentence = capital(message)
    for match, read in _rules("state-change" if logger == STATE_CHANGE else "controller").of(first_word(sentence)):
        if (found := match(sentence)) is None:
            continue
        try:
            line = LogLine._make((columns | read(found)).values())
        except (ValueError, IndexError):  # damaged: `isr=[3,,4]`, a number of thousands of digits
            break
        if not _fits(line):
            break
        return line._replace(detail=message) if line.action == "says" else line
    line = LogLine._make(columns.values())
    return (line if _fits(line) else LogLine(time, level, logger))._replace(detail=message)


def _fits(line: LogLine) -> bool:
    """True if the numbers fit Kafka's 32 bits."""
    named = (line.partition, line.broker, line.leader, line.leader_epoch, line.zk_version, line.controller_epoch)
    for number in (*named, *(line.isr or ()), *(line.replicas or ())):
        if number is not None and not -LIMIT <= number < LIMIT:
            return False
    return all(number < LIMIT for _, number in line.partitions or ())


def milliseconds(seconds: str, fraction: str) -> int | None:
    """`2018-10-25 00:00:00` and `123` in epoch milliseconds, as if it were UTC; None for what is no time."""
    try:
        return _seconds(seconds) * 1000 + int(fraction)
    except ValueError:
        return None


def parse_lines(texts: Iterable[str]) -> Iterator[LogLine]:
    """The lines of one broker's log in order; a line that names no actor is the same controller's as the one before."""
    controller = epoch = None
    for text in texts:
        line = parse_line(text)
        if line is None:
            continue
        if line.actor is None and controller is not None:
            line = line._replace(actor=controller)
        if line.actor is not None and line.actor.startswith("controller-"):
            if line.actor != controller or line.action == "elected":  # the epoch rises after the election
                controller, epoch = line.actor, None
            if line.controller_epoch is None:
                line = line._replace(controller_epoch=epoch)
            elif line.kind != "request":  # that one has the epoch of the controller that decided the state in it
                epoch = line.controller_epoch
        yield line


@functools.lru_cache(maxsize=1024)
def _seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())


def _who(message: str, columns: Columns) -> str:
    """Note whose line it is; returns the rest of it."""
    found = WHO.match(message)
    if found is None:
        return message
    controller, epoch, broker = found.groups()
    if int(controller or broker or 0) >= LIMIT:
        return message
    if controller:
        columns["actor"] = f"controller-{controller}"
    if broker:
        columns |= {"actor": f"broker-{broker}", "kind": "broker", "broker": int(broker)}
    if epoch:
        columns["controller_epoch"] = int(epoch)
    message = message[found.end() :]
    return message[again.end() :] if (again := AGAIN.match(message)) else message
