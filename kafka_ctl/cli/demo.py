"""The first story, played in a terminal: an election, a dead controller, and two ways for a broker to leave.

    Act 1   three brokers start and race for /controller
    Act 2   a topic is made, and its partitions and replicas get their states
    Act 3   the controller dies; another takes over with a higher epoch
    Act 4   the same broker leaves twice: killed, and in good order

Nothing here knows what will happen: every line is made from the records of the run.

Separate from `commands.py` because a command is loaded when it is called.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import inf

import rich
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import IN_BROWSER
from kafka_ctl.generation import Generation
from kafka_ctl.lab.lab import Lab
from kafka_ctl.latencies import Costs
from kafka_ctl.table import short
from kafka_ctl.trace.record import Recorder
from kafka_ctl.views.captions import caption
from kafka_ctl.views.steps import steps

if IN_BROWSER:  # rich knows Jupyter by the name of its shell, which is another one there
    rich.reconfigure(force_jupyter=True)

COLOURS = {
    "zk": "magenta",
    "watch": "magenta",
    "event": "dim",
    "controller": "bold green",
    "election": "yellow",
    "partition": "cyan",
    "replica": "cyan",
    "request": "blue",
    "response": "red",
    "broker": "white",
    "fault": "bold red",
    "violation": "bold red",
}
"""The colour of a step by its kind."""

SETTINGS = {"auto.leader.rebalance.enable": False}
"""Kafka's configuration in the story: nothing moves that the story does not show."""
RACE = Costs(boot=0.0005, zookeeper_tick=0)
"""In memory the brokers start almost at once, so that they really race."""


class Narrator:
    """Prints, and waits `pause` seconds after each line so that it can be read."""

    def __init__(self, console: Console, pause: float) -> None:
        self.console, self.pause, self._acts = console, pause, 0

    def act(self, title: str, *sentences: str) -> None:
        """Open an act: a heading, and the things to look out for."""
        self._acts += 1
        self.console.print()
        self.console.rule(f"[bold]{self._acts}. {title}", align="left")
        self.console.print(Text(" ".join(sentences), style="italic"))
        time.sleep(self.pause * 5 * len(sentences))
        self.console.print()

    def steps(self, trace: Recorder, since: int = 0) -> int:
        """Print the steps since a record, one line each; returns the next record."""
        for step in steps(trace.records, start=since):
            line = Table.grid(Column(width=12, justify="right"), Column(width=10), Column(), padding=(0, 1))
            colour, strong = COLOURS[step.kind], "bold" if step.kind in ("controller", "fault") else ""
            text = Text(caption(step.records, trace.records), style=strong)
            line.add_row(Text(f"{step.time_ms:,.1f} ms", style="dim"), Text(step.kind, style=colour), text)
            self.console.print(line)
            time.sleep(self.pause)
        return len(trace)

    def conclude(self, text: str) -> None:
        """One sentence that an act ends with."""
        self.console.print()
        self.console.print(Text("→ " + text, style="bold"))
        time.sleep(self.pause * 5)


def play(
    zookeeper: str,
    generation: str | Generation,
    console: Console,
    pause: float = 0.0,
    seed: int = 7,
    join: bool = False,
) -> None:
    """Play the whole story; `zookeeper`, `generation`, `seed` and `join` are those of `Lab`.

    Raises what `Lab` raises: UnknownName, BadInput, Unavailable.
    """
    narrator = Narrator(console, pause)

    def open_lab(settle: bool = True) -> Lab:
        costs = RACE if zookeeper == "memory" else None
        return Lab(3, generation, seed, zookeeper, SETTINGS, join=join, costs=costs, settle=settle)

    with open_lab(settle=False) as lab:
        where = "in memory, on virtual time" if zookeeper == "memory" else f"at {zookeeper}, in real time"
        console.print(f"Kafka {lab.generation}, three brokers, ZooKeeper {where}", style="bold")
        _election(lab, narrator)
        _topic(lab, narrator)
        _controller_failure(lab, narrator)
    with open_lab() as lab:
        _two_ways_to_leave(lab, narrator)


def _election(lab: Lab, narrator: Narrator) -> None:
    narrator.act(
        "Three brokers race for /controller",
        "Each broker tries to create the znode /controller.",
        "ZooKeeper lets one of them succeed: that broker is the controller.",
        "The znode is ephemeral, it lives as long as its creator's session; the others watch it.",
    )
    lab.settle()
    narrator.steps(lab.trace)
    view = lab.controller
    assert view is not None
    narrator.conclude(f"Broker {view.id} is the controller, with epoch {view.epoch}.")


def _topic(lab: Lab, narrator: Narrator) -> None:
    narrator.act(
        "A topic is created",
        "A tool only writes the request into ZooKeeper.",
        "The controller sees it and moves the new partitions and replicas through their states.",
        "It sends the leaders to the replicas' brokers (LeaderAndIsr) and to all brokers (UpdateMetadata).",
    )
    before = len(lab.trace)
    lab.create_topic("orders", partitions=3, replication_factor=3)
    lab.settle()
    narrator.steps(lab.trace, before)
    narrator.console.print(partitions(lab))


def _controller_failure(lab: Lab, narrator: Narrator) -> None:
    view = lab.controller
    assert view is not None
    patience = lab.config["zookeeper.session.timeout.ms"] / 1000
    narrator.act(
        f"The controller, broker {view.id}, dies",
        f"Its session stays open: ZooKeeper waits {patience:g} s before it expires the session.",
        "Then the others race again, and the winner reads everything from ZooKeeper.",
        "Its epoch is one higher, so that brokers can refuse what the old controller might still say.",
    )
    before = len(lab.trace)
    lab.kill(view.id)
    lab.settle()
    narrator.steps(lab.trace, before)
    narrator.console.print(partitions(lab, {view.id}))
    new = lab.controller
    assert new is not None
    narrator.conclude(
        f"Broker {new.id} took over from broker {view.id}; the epoch rose from {view.epoch} to {new.epoch}."
    )


def _two_ways_to_leave(lab: Lab, narrator: Narrator) -> None:
    narrator.act(
        "Two ways to leave",
        "In a new cluster, a broker that is not the controller leaves twice.",
        "First it is killed; it returns and gets its leaderships back.",
        "Then it asks the controller to move them away before it stops: a controlled shutdown.",
    )
    lab.create_topic("orders", partitions=6, replication_factor=3)
    lab.settle()
    leaving = next(id for id, broker in lab.brokers.items() if broker.leads and not broker.is_controller)
    led = lab.brokers[leaving].leads
    lab.kill(leaving)
    lab.settle()
    killed = outages(lab.trace, leaving, led)
    lab.start(leaving)
    lab.settle()
    lab.elect_preferred()
    lab.settle()
    before = len(lab.trace)
    lab.shutdown(leaving)
    lab.settle()
    left = outages(lab.trace, leaving, led, before)
    table = Table(title=f"Milliseconds without a leader after broker {leaving} left", title_justify="left")
    table.add_column("partition it led")
    table.add_column("kill", justify="right", style="red")
    table.add_column("controlled shutdown", justify="right", style="green")
    for tp in led:
        table.add_row(str(tp), f"{killed[tp]:,.1f}", f"{left[tp]:,.1f}")
    narrator.console.print(table)
    narrator.conclude(
        f"The kill left partitions without a leader for up to {max(killed.values()):,.1f} ms; "
        f"the controlled shutdown for up to {max(left.values()):,.1f} ms."
    )


def outages(
    trace: Recorder, broker: int, partitions: Iterable[TopicPartition], since: int = 0
) -> dict[TopicPartition, float]:
    """The milliseconds without a leader of each of these partitions after their leader `broker` left.

    From the end of its process, or of its connections where it stops in good order, until another broker, or it itself
    when it was back, became the leader; 0 when another had become it before, infinity when none ever did.
    """
    later = trace.slice(start=since, broker=broker)
    ended = next((r for r in later if (r.kind, r.action) in (("fault", "kill"), ("broker", "shutting-down"))), None)
    found: dict[TopicPartition, float] = {}
    for tp in partitions:
        led = trace.slice(start=since, kind="broker", action="become-leader", topic=tp.topic, partition=tp.partition)
        again = (r.time_ms for r in led if ended is not None and (r.broker != broker or r.seq > ended.seq))
        found[tp] = max(0.0, next(again, inf) - ended.time_ms) if ended is not None else 0.0
    return found


def partitions(lab: Lab, dead: Iterable[int] = ()) -> Table:
    """The state of every partition as a table; brokers that are down are red."""
    gone = {b for b, view in lab.brokers.items() if view.state == DOWN} | set(dead)

    def brokers(ids: Iterable[int]) -> str:
        return " ".join(f"[red]{id}[/]" if id in gone else str(id) for id in ids)

    columns = "partition", "state", "leader", "in sync", "replicas", "leader epoch", "controller epoch"
    table = Table(*columns, title="Now", title_justify="left", header_style="bold")
    for p in lab.partitions():
        leader = str(p.leader) if p.leader >= 0 else "[bold red]none[/]"
        colour = "green" if short(p.state) == "Online" else "red"
        table.add_row(
            f"{p.topic}-{p.partition}",
            f"[{colour}]{short(p.state)}[/]",
            leader,
            brokers(p.isr),
            brokers(p.replicas),
            str(p.leader_epoch),
            str(p.controller_epoch),
        )
    return table
