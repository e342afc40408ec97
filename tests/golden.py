"""Golden stories: a story with the output of each command written below it, as readable as prose.

    # The aim of the story; Kafka's source line.

    kill 1
    ----
    t=88.9      fault         fault       kill          broker=1

A block is a command, `----`, its output and an empty line; lines with `#` are prose. Commands are those of `Lab`,
printing what the trace tells of them, and these:

    quiet kill 1                                  the same without output but `ok`
    show partitions|replicas|brokers|controller   how things stand
    show logs|violations                          the records of every replica, the invariants broken so far
    show znodes /brokers/topics                   the znodes below a path
    check orders 0 leader=2 isr=[2,3]             `ok`, or what is wrong

What is refused prints `refused` and why. `pytest --rewrite` records, and reviewers read the difference; a `check` that
does not hold is never recorded. `python golden.py STORY` prints the story as it runs now.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_ctl.errors import BadInput, ConditionNotMet, UnknownName
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.table import short
from kafka_ctl.trace.text import text

STORIES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


class Block(NamedTuple):
    """Prose and a command with its output; `line` is where the command stands."""

    prose: str
    command: str
    output: str
    line: int


def blocks(reported: str) -> Iterator[Block]:
    """The blocks of a story; prose after the last command comes as a block without command."""
    prose: list[str] = []
    lines = list(enumerate(reported.splitlines(), 1))
    while lines:
        number, line = lines.pop(0)
        if not line or line.startswith("#"):
            prose.append(line)
            continue
        output: list[str] = []
        if lines and lines[0][1] == "----":
            lines.pop(0)
            while lines and lines[0][1]:
                output.append(lines.pop(0)[1])
        yield Block("\n".join(prose).strip("\n"), line, "\n".join(output), number)
        prose = []
    if "".join(prose):
        yield Block("\n".join(prose).strip("\n"), "", "", 0)


def record(reported: str) -> str:
    """The story with the output its commands have now."""
    parts = []
    with closing(Stage()) as stage:
        for block in blocks(reported):
            parts += [f"{block.prose}\n"] if block.prose else []
            parts += [f"{block.command}\n----\n{stage.run(block)}\n"] if block.command else []
    return "\n".join(parts)


@contextmanager
def played(name: str) -> Iterator[Lab]:
    """The lab of a golden story, at its end."""
    path = next(path for path in STORIES if path.stem == name)
    with closing(Stage()) as stage:
        for block in blocks(path.read_text("utf-8")):
            if block.command:
                stage.run(block)
        yield stage.the_lab


class Stage:
    """Runs the commands of one story."""

    def __init__(self) -> None:
        self.lab: Lab | None = None
        self.reported = 0
        """How many records have been printed."""

    def close(self) -> None:
        if self.lab is not None:
            self.lab.close()

    def run(self, block: Block) -> str:
        """The output of a command."""
        quiet, _, rest = block.command.partition(" ")
        asked = rest if quiet == "quiet" else block.command
        (line,) = story.parse(asked, with_views=True)
        line = line._replace(line=block.line)
        if quiet == "quiet":
            self._do(line)
            self.reported = len(self.the_lab.trace)
            return "ok"
        try:
            logged = self._do(line)
        except (BadInput, ConditionNotMet) as refusal:
            logged = "refused  " + re.sub(r"^line \d+: ", "", str(refusal))
        records = self.the_lab.trace[self.reported :]
        self.reported = len(self.the_lab.trace)
        return "\n".join(filter(None, [text(records), logged])) or "ok"

    @property
    def the_lab(self) -> Lab:
        if self.lab is None:
            raise BadInput("a story begins with a line such as: lab brokers=3 generation=2.0 seed=7")
        return self.lab

    def _do(self, line: story.Command) -> str:
        match line.name:
            case "lab":
                self.lab = Lab(**story.opening(line))
            case "show" | "check":
                return str(getattr(self, f"_{line.name}")(*line.args, **line.kwargs))
            case name if name in COMMANDS:
                logged = self.the_lab.do(line)
                return "" if logged is None else f"-> {logged}"
            case name:
                raise UnknownName(f"command (line {line.line})", name, ("check", "quiet", "show", *COMMANDS))
        return ""

    def _show(self, what: str, below: str = "/") -> str:
        shown = {
            "partitions": self._partitions,
            "replicas": self._replicas,
            "brokers": self._brokers,
            "logs": lambda: list(map(str, self.the_lab.logs())),
            "violations": lambda: list(map(str, self.the_lab.violations)),
            "controller": lambda: [str(self.the_lab.controller or "nobody")],
            "znodes": lambda: self._znodes(below),
        }
        if what not in shown:
            raise UnknownName("thing to show", what, shown)
        return "\n".join(shown[what]()) or "none"

    def _partitions(self) -> list[str]:
        return [
            f"{p.topic}-{p.partition}  {short(p.state):<11}  leader={p.leader} isr={ids(p.isr)} "
            f"replicas={ids(p.replicas)} leader_epoch={p.leader_epoch} controller_epoch={p.controller_epoch} "
            f"zk_version={p.zk_version}"
            for p in self.the_lab.partitions()
        ]

    def _replicas(self) -> list[str]:
        return [f"{r.topic}-{r.partition}@{r.broker}  {short(r.state)}" for r in self.the_lab.replicas()]

    def _brokers(self) -> list[str]:
        return [
            f"{b.id}  {b.state:<7}  {'controller ' * b.is_controller}leads={ids(b.leads)} follows={ids(b.follows)}"
            for b in self.the_lab.brokers.values()
        ]

    def _znodes(self, below: str) -> list[str]:
        return [
            f"{path}  version={version} {'ephemeral ' * bool(owner)}{data.decode()}".rstrip()
            for path, (data, version, owner) in self.the_lab.znodes().items()
            if path.startswith(below)
        ]

    def _check(self, topic: str, partition: int, **wanted: object) -> str:
        view = self.the_lab.partition(topic, partition)._asdict()
        for name, value in wanted.items():
            there = list(view[name]) if isinstance(view[name], tuple) else view[name]
            assert there == value, f"{topic}-{partition} has {name}={there}, not {value}"
        return "ok"


def ids(values: tuple[object, ...]) -> str:
    """`1,2`; with partitions, `orders-0,orders-1`."""
    return ",".join(map(str, values)) or "-"


if __name__ == "__main__":
    print(record(Path(sys.argv[1]).read_text("utf-8")), end="")
