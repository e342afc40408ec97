"""One line of Kafka's `state-change.log` or `controller.log`, Kafka 0.8.0 to 3.9, in the trace's terms.

`parse_line` takes one line by itself; `parse_lines` also names the controller where a line leaves it out, from the
lines before it. Both spellings of a partition, `[orders,0]` and `orders-0`, and topics with dots and dashes are read.
Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_ctl.kafka_log.read_controller import CONTROLLER_RULES
from kafka_ctl.kafka_log.read_other_releases import FORMS
from kafka_ctl.kafka_log.read_rules import RULES, indexed


class Line(NamedTuple):
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


HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) (.*) \(([\w.$]+)\)\s*$", re.DOTALL)
WHO = re.compile(
    r"(?:\[[\w ]*?(?:[cC]ontroller(?:Id=| id=| )|Manager |on )|Controller (?=\d+ epoch \d+ )"
    r"|\[(?:\S+:)?Controller-|\[delete-topics-thread-)"
    r"(?P<controller>\d{1,10})(?: epoch[= ](?P<epoch>\d{1,10}))?(?:-to-broker-\d+-send-thread)?\]?[:,]? "
    r"|(?:\[Broker id=|Broker (?=\d+ (?!is ready|starting|resigned|has been|was elected)))(?P<broker>\d{1,10})\]? "
    r"|\[[\w-]+\][:,] "
)
"""How a line can begin: whose it is, or only which part of a controller wrote it."""
AGAIN = re.compile(r"Controller \d+ epoch \d+ ")
"""What some lines begin with a second time."""
STATE_CHANGE = "state.change.logger"
STATES, OWN = indexed((*RULES, *FORMS)), indexed(CONTROLLER_RULES)
"""The sentences of `state-change.log` and of `controller.log`."""
LIMIT = 1 << 31
BEGINS = re.compile(r"[A-Za-z]\w*")


def parse_line(text: str) -> Line | None:
    """What one line says; None for what is no line of a log, as are the lines of a stack trace."""
    head = HEAD.match(text)
    at = milliseconds(head[1], head[2]) if head else None
    return None if head is None or at is None else read_message(at, head[3], head[5], head[4])


def read_message(time: int, level: str, logger: str, message: str) -> Line:
    """What a logger said at a time in epoch milliseconds; the action is `other` where its sentence is not known."""
    columns: dict[str, Any] = {"time": time, "level": level, "logger": logger}
    message = _who(message, columns)
    sentence = message[:1].upper() + message[1:]
    first = BEGINS.match(sentence)
    index = STATES if logger == STATE_CHANGE else OWN
    for pattern, read in index.get(first[0] if first else "", ()):
        if (found := pattern.match(sentence)) is None:
            continue
        try:
            fields = columns | read(found)
        except (ValueError, IndexError):  # damaged: `isr=[3,,4]`, a number of thousands of digits
            break
        if not _fits(fields):
            break
        if fields["action"] == "says":
            fields["detail"] = message
        return Line(**fields)
    return Line(**(columns if _fits(columns) else {"time": time, "level": level, "logger": logger}), detail=message)


def _fits(columns: dict[str, Any]) -> bool:
    """Whether the numbers are Kafka's: 32 bits."""
    for name, value in columns.items():
        if type(value) is int:
            if not -LIMIT <= value < LIMIT and name != "time":
                return False
        elif type(value) is tuple and name in ("isr", "replicas"):
            if not all(-LIMIT <= id < LIMIT for id in value):
                return False
        elif name == "partitions" and value and not all(number < LIMIT for _, number in value):
            return False
    return True


def milliseconds(seconds: str, fraction: str) -> int | None:
    """`2018-10-25 00:00:00` and `123` in epoch milliseconds, as if it were UTC; None for what is no time."""
    try:
        return _seconds(seconds) * 1000 + int(fraction)
    except ValueError:
        return None


def parse_lines(texts: Iterable[str]) -> Iterator[Line]:
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


def _who(message: str, columns: dict[str, Any]) -> str:
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
