"""One line of Kafka's `state-change.log` or `controller.log`, Kafka 0.8 to 3.x, in the trace's terms.

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

from kafka_ctl.history.logrules import RULES, TP, numbers, state, topic_partition

__all__ = ["TP", "Line", "numbers", "parse_line", "parse_lines", "state", "topic_partition"]


class Line(NamedTuple):
    """One line of a log; columns as in `trace.Record`, None where the line does not say.

    `time` is in epoch milliseconds, of a clock whose zone the log does not tell: as if it were UTC. `partitions` is
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
WHO = (
    re.compile(r"\[Controller id=(?P<controller>\d+)(?: epoch=(?P<epoch>\d+))?\] "),
    re.compile(r"\[Broker id=(?P<broker>\d+)\] "),
    re.compile(r"Controller (?P<controller>\d+) epoch (?P<epoch>\d+) "),
    re.compile(r"Broker (?P<broker>\d+) (?!is ready|starting|resigned)"),
    re.compile(r"\[Controller-(?P<controller>\d+)-to-broker-\d+-send-thread\],? "),
    re.compile(r"\[delete-topics-thread-(?P<controller>\d+)\],? "),
    re.compile(r"\[[\w ]*?(?:[Cc]ontroller(?:Id=| )|Manager |on )(?P<controller>\d+)\]?[:,]? "),
)
"""How a line can begin: whose it is."""


def parse_line(text: str) -> Line | None:
    """What one line says; None for what is no line of a log, as are the lines of a stack trace."""
    head = HEAD.match(text)
    if head is None:
        return None
    time = _seconds(head[1]) * 1000 + int(head[2])
    columns: dict[str, Any] = {"time": time, "level": head[3], "logger": head[5]}
    message = _who(head[4], columns)
    for pattern, read in RULES:
        if (found := pattern.match(message)) is not None:
            columns |= read(found)
            break
    else:
        columns["detail"] = message
    return Line(**columns)


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
            if line.actor != controller:
                controller, epoch = line.actor, None
            if line.controller_epoch is None:
                line = line._replace(controller_epoch=epoch)
            elif line.kind != "request":  # that one has the epoch of whoever decided the state it tells
                epoch = line.controller_epoch
        yield line


@functools.lru_cache(maxsize=1024)
def _seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())


def _who(message: str, columns: dict[str, Any]) -> str:
    """Note whose line it is; returns the rest of it."""
    for pattern in WHO:
        if (found := pattern.match(message)) is not None:
            said = found.groupdict()
            if said.get("controller"):
                columns["actor"] = f"controller-{said['controller']}"
            if said.get("broker"):
                columns |= {"actor": f"broker-{said['broker']}", "kind": "broker", "broker": int(said["broker"])}
            if said.get("epoch"):
                columns["controller_epoch"] = int(said["epoch"])
            return message[found.end() :]
    return message
