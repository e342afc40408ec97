"""One line of Kafka's `state-change.log` or `controller.log`, Kafka 0.8.0 to 3.9, in the trace's terms.

`parse_line` takes one line by itself; `parse_lines` also names the controller where a line leaves it out, from the
lines before it. Both spellings of a partition, `[orders,0]` and `orders-0`, and topics with dots and dashes are read.
Lines that no template writes stand in `other_releases.txt`: those of other releases, and a few more.
Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.kafka_log.records import Columns, Reading, message, partition_move, reading, replica_move, row
from kafka_ctl.kafka_log.templates import (
    NUMBERS,
    PARTITION,
    Text,
    Value,
    capital,
    partitions,
    templates_of,
    topic_partition,
)
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.paths import text_in
from kafka_ctl.trace import details


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

Not made from the templates' prefixes: most releases that are read, 0.8 to 3.9, have no templates. A test reads
back every line that we write, so each prefix of a template is read.
"""
AGAIN = re.compile(r"Controller \d+ epoch \d+ ")
"""The second prefix of some lines."""
STATE_CHANGE = "state.change.logger"
LIMIT = 1 << 31
BEGINS = re.compile(r"[A-Za-z]\w*")
FIRST = re.compile(r"(?:\(\?(?::|P<\w+>))?([A-Z]\w*(?:\|[A-Z]\w*)*)")
"""The words that a pattern can begin with."""
Reader: TypeAlias = Callable[[re.Match[str]], Columns]
"""Turns a line that a pattern has matched into columns."""
Rule: TypeAlias = tuple[Callable[[str], re.Match[str] | None], Reader]
"""A reader that finds a form in a sentence, and one that makes columns of it."""


@functools.cache
def _rules(file: str, word: str) -> list[Rule]:
    """The rules of a log for messages that begin with this word, in the order in which they are to be tried.

    Those under "" are for messages that begin with a value. They are compiled when their word is first met.
    """
    return [(re.compile(pattern, re.DOTALL).match, read) for pattern, read in _patterns(file).get(word, {}).items()]


@functools.cache
def _patterns(file: str) -> dict[str, dict[str, Reader]]:
    """The patterns of `state-change.log` or of `controller.log` by the first word of a message, templates first."""
    found: dict[str, dict[str, Reader]] = {}
    for text, read in _texts(file):
        found.setdefault(first_word(text.sentence), {}).setdefault(rf"{text.source[0]}\Z", _reader(text, read))
    if file == "state-change":
        for pattern, reader in _forms():
            first = FIRST.match(pattern)
            for word in first[1].split("|") if first else ("",):
                found.setdefault(word, {})[pattern] = reader
    return found


def _texts(file: str) -> Iterator[tuple[Text, Reading]]:
    """The texts of a log, the newest generation's first, and what they are records of."""
    for name in reversed(GENERATIONS):
        for line in chain.from_iterable(templates_of(name).templates.values()):
            if line.component.file == file:
                yield line.text, reading(line.name)
    if file == "controller":
        for name, text in _sections()["texts"]:
            yield Text(text, {}), OWN.get(name) or reading(name)


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
    for match, read in _rules("state-change" if logger == STATE_CHANGE else "controller", first_word(sentence)):
        if (found := match(sentence)) is None:
            continue
        try:
            line = LogLine._make((columns | read(found)).values())
        except (ValueError, IndexError):  # damaged: `isr=[3,,4]`, a number of thousands of digits
            break
        if not fits(line):
            break
        return line._replace(detail=message) if line.action == "says" else line
    line = LogLine._make(columns.values())
    return (line if fits(line) else LogLine(time, level, logger))._replace(detail=message)


def fits(line: LogLine) -> bool:
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
    writer = LogWriter()
    for text in texts:
        line = parse_line(text)
        if line is not None:
            yield writer.completed(line)


class LogWriter:
    """The controller that wrote the lines of a log so far, and its epoch."""

    def __init__(self) -> None:
        self.controller: str | None = None
        self.epoch: int | None = None

    def completed(self, line: LogLine) -> LogLine:
        """The next line, with the controller and its epoch where the line leaves them out."""
        if line.actor is None and self.controller is not None:
            line = line._replace(actor=self.controller)
        if line.actor is None or not line.actor.startswith("controller-"):
            return line
        if line.actor != self.controller or line.action == "elected":  # the epoch rises after the election
            self.controller, self.epoch = line.actor, None
        if line.controller_epoch is None:
            return line if self.epoch is None else line._replace(controller_epoch=self.epoch)
        if line.kind != "request":  # that one has the epoch of the controller that decided the state in it
            self.epoch = line.controller_epoch
        return line


@functools.lru_cache(maxsize=1024)
def _seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())


def _who(message: str, columns: Columns) -> str:
    """Note which actor wrote the line; returns the text after the actor's name."""
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


# The lines of other releases: controller.log

OWN = {"broker_lost": row("broker", "lost", "broker"), "topics_retried": message("retrying_deletion", "topics")}


@functools.cache
def _sections() -> dict[str, list[tuple[str, str]]]:
    """The rows of each section of the table: what stands before the text or pattern, and that."""
    table = text_in(__package__, "other_releases.txt")
    found: dict[str, list[tuple[str, str]]] = {}
    for line in filter(None, table.splitlines()):
        if line.startswith("section "):
            rows = found[line.removeprefix("section ")] = []
        elif not line.startswith("#"):
            name, text = re.split(" {2,}", line, maxsplit=1)
            rows.append((name, text))
    return found


# The lines of other releases: state-change.log, the controllers

TP = rf"(?P<tp>{PARTITION.pattern})"
MOVE = r"from (?P<source>\w+) to (?P<target>\w+)"
NODE = r"(?:id:|Node\()?(?P<broker>-?\d+)(?:[,; ].*)?$"
"""A broker as releases before 0.10 print it: `2`, `id:2,host:h,port:9092` or `Node(2, h, 9092)`."""
SHORT = {"NotExists": NON_EXISTENT, "New": NEW, "Online": ONLINE, "Offline": OFFLINE}
"""Kafka 0.8.0's names of partition states, and those of the trace."""
OFFLINE_REPLICAS = re.compile(r"offlineReplicas=\[([\d, ]*)\]")


def _decided(kind: str, action: str, error: str, found: re.Match[str]) -> Columns:
    """A controller's transition, election or error: the columns that the pattern's groups are named after."""
    groups = {name: text for name, text in found.groupdict().items() if text}
    columns: Columns = {"kind": kind, "action": action, **_columns(groups)}
    if "replicas" in groups:
        columns["replicas"] = _ids(groups["replicas"])
    moves = {name: SHORT.get(groups[name], groups[name]) for name in ("source", "target") if name in groups}
    if action == "move":
        name_of = partition_move if kind == "partition" else replica_move
        columns["action"] = name_of(moves.get("source"), moves["target"])
    if "api" in groups:
        columns["action"] = groups["api"]
    if (error := groups.get("error", error)) != "-":
        columns["error"] = error
    if "correlation" in groups:
        columns["detail"] = details.write(correlation_id=groups["correlation"])
    elif "detail" in groups:
        columns["detail"] = groups["detail"]
    return columns | moves


def _update_metadata(found: re.Match[str]) -> Columns:
    receivers = _ids(found["brokers"])
    alone: Columns = {} if found["several"] else {"broker": receivers[0]}
    brokers = sorted(receivers) if found["several"] else receivers[:1]
    gone = OFFLINE_REPLICAS.search(found["state"] or "")
    detail = details.write(brokers=details.listed(brokers), offline=gone[1].replace(" ", "") or None if gone else None)
    return _decided("request", "UpdateMetadata", "-", found) | alone | {"detail": detail}


def _sent(action: str, found: re.Match[str]) -> Columns:
    """A request as it goes out, with so many partitions."""
    groups = {name: text for name, text in found.groupdict().items() if text}
    brokers = details.listed(sorted(_ids(groups["brokers"]))) if "brokers" in groups else None
    count = int(groups["n"]) + int(groups.get("m", 0))
    detail = details.write(partitions=count, delete=groups.get("delete"), brokers=brokers)
    return {"kind": "request", "action": action, "target": "sent", "detail": detail, **_columns(groups)}


def _reassignment_sent(found: re.Match[str]) -> Columns:
    fields: dict[str, Value] = {"partition": partitions(found["partition"])[0], **_state(found["state"])}
    fields |= {name: _ids(found[name]) for name in ("replicas", "adding", "removing")}
    return message("reassignment_told").make(fields)


def _offline(found: re.Match[str]) -> Columns:
    fields: dict[str, Value] = {"partitions": partitions(found["partitions"]), "broker": int(found["broker"])}
    return message("replicas_offline").make(fields)


# The lines of other releases: state-change.log, the brokers

_FROM = r"(?:received )?from controller -?\d+ epoch (?P<epoch>\d+)"
_ID = r"correlation ?[iI]d (?P<id>\d+)"

REASONS = (
    (re.compile(r"leader epoch|old controller|controller epoch \d+ is old"), "STALE_CONTROLLER_EPOCH"),
    (re.compile(r"not in assigned replica list"), "UNKNOWN_TOPIC_OR_PARTITION"),
    (re.compile(r"offline log directory|disk error|storage e"), "KAFKA_STORAGE_ERROR"),
    (re.compile(r"unavailable|cannot be found in live"), "LEADER_NOT_AVAILABLE"),
)
"""The trace's errors, by the reasons that sentences give."""


def _done(action: str, found: re.Match[str]) -> Columns:
    groups = {name: text for name, text in found.groupdict().items() if text}
    if action == "says":
        return {"action": action, **_columns(groups)}
    columns: Columns = {"action": action.rstrip("!"), "kind": "broker", **_columns(groups)}
    if "topic" in groups:
        columns["topic"] = groups["topic"]
    if verb := groups.get("verb", "").lower():
        columns["action"] = verb if action == "verb" else f"become-{verb}"
    why = groups.get("why", "")
    if action == "starts":
        columns |= _starts(why)
    if "broker" in groups:
        columns["actor"] = f"broker-{groups['broker']}"
    flags = details.write("delete" * (groups.get("delete") == "true"), why.strip())
    count = details.write(partitions=groups.get("n"))
    columns["detail"] = " ".join(filter(None, (count, flags))) or columns.get("detail")
    if action.endswith("!"):
        columns["error"] = next((error for reason, error in REASONS if reason.search(why)), "Refused")
    return columns


def _starts(text: str) -> Columns:
    """`from offset 5 with partition epoch 7 and high watermark 5, ISR [1,2], ... Current leader is 2. ...`"""
    columns: Columns = {"isr": _ids(isr[1])} if (isr := re.search(r"ISR \[([\d, ]*)\]", text)) else {}
    columns |= {"zk_version": int(epoch[1])} if (epoch := re.search(r"partition epoch (\d+)", text)) else {}
    return columns | ({"leader": int(leader[1])} if (leader := re.search(r"Current leader is (-?\d+)", text)) else {})


# Any print of a partition's state

INTEGERS = {
    "leader": "leader",
    "leader_epoch": "leader_epoch",
    "epoch": "controller_epoch",
    "partition": "partition",
    "broker": "broker",
}
"""The groups of patterns that are numbers, and their columns."""

STATE_NUMBERS = {
    "leader": re.compile(r'\b[Ll]eader"?[:=]"?(-?\d+)'),
    "leader_epoch": re.compile(r'[lL]eader_?[eE]poch"?[:=]"?(-?\d+)'),
    "zk_version": re.compile(r"(?:[zZ]kVersion|partitionEpoch)[:=](-?\d+)"),
    "controller_epoch": re.compile(r"[cC]ontrollerEpoch[:=](\d+)"),
}
STATE_IDS = {
    "isr": re.compile(r'(?:ISR"?:"?|isr"?[:=](?:List\()?\[?)((?:-?\d+(?:, ?(?=-?\d))?)*)'),
    "replicas": re.compile(r"\b(?:replicas=\[?|AllReplicas:)((?:\d+(?:, ?(?=\d))?)*)"),
}
NAMED = re.compile(r"topicName='([\w.-]+)', partitionIndex=(\d+)")
MEMBERS = re.compile(r"isrWithBrokerEpoch=List\(((?:BrokerState\([^)]*\)(?:, )?)*)\)")


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, NUMBERS.findall(text)))


def _state(text: str) -> Columns:
    """Leader, ISR, epochs, version, replicas and name out of a print of a state, and a flag of the request."""
    if not text:
        return {}
    columns: Columns = {k: int(m[1]) for k, p in STATE_NUMBERS.items() if (m := p.search(text))}
    columns |= {k: _ids(m[1]) for k, p in STATE_IDS.items() if (m := p.search(text))}
    if (members := MEMBERS.search(text)) is not None:
        columns["isr"] = tuple(int(id) for id in re.findall(r"brokerId=(\d+)", members[1]))
    if (named := NAMED.search(text)) is not None:
        columns |= {"topic": named[1], "partition": int(named[2])}
    flag = "delete" if "deletePartition=true" in text else "is_new" if "isNew=true" in text else None
    return columns | ({"detail": flag} if flag else {})


def _columns(groups: dict[str, str]) -> Columns:
    """The columns that groups hold: numbers, those of a state, and the partition that a line is about."""
    columns: Columns = {column: int(groups[name]) for name, column in INTEGERS.items() if name in groups}
    columns |= _state(groups.get("state", ""))
    if "tp" in groups:
        columns["topic"], columns["partition"] = topic_partition(groups["tp"])
    return columns


READERS: dict[str, Callable[..., Columns]] = {
    "decided": _decided,
    "update_metadata": _update_metadata,
    "sent": _sent,
    "reassignment_sent": _reassignment_sent,
    "replicas_offline": _offline,
    "brokers": _done,
}
"""The readers of the sections, and those that rows of the section `requested` name."""
PARTS = {"{TP}": TP, "{MOVE}": MOVE, "{NODE}": NODE, "{FROM}": _FROM, "{ID}": _ID}


def _forms() -> Iterator[tuple[str, Reader]]:
    """The patterns of sentences in state-change.log and their readers; the first that matches is taken."""
    for section in ("decided", "requested", "brokers"):
        for name, pattern in _sections()[section]:
            words = name.split() if section == "requested" else [section, *name.split()]
            reader = partial(READERS[words[0]], *words[1:])
            yield re.sub(r"\{[A-Z]+\}", lambda part: PARTS[part[0]], pattern), reader
