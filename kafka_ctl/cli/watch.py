"""`kafka-ctl watch`: a real Kafka cluster as a table that refreshes, seen through its ZooKeeper.

Separate from `commands.py` because that file has the short commands.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kafka_ctl.cli.terminal import AUTH, Number, echo, examples
from kafka_ctl.errors import BadInput
from kafka_ctl.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kafka_ctl.foreign.watch import Watch

MOST = 10
"""The most lines about partitions at risk, requests that wait, and znodes that cannot be understood."""


@click.command(epilog=examples("watch"))
@click.argument("address")
@click.option(
    "--once", is_flag=True, help="Print the table once. The status is 1 if a partition is at risk or cannot be read."
)
@click.option("--seconds", type=Number(min=0, max=1_000_000), help="End after so many seconds.")
@click.option(
    "--every", type=Number(min=0.1, max=3600), default=1.0, show_default=True, help="Seconds between two tables."
)
@click.option(
    "--out",
    metavar="FILE",
    help="Write the trace to this Parquet file, at the beginning and again at the end: after --seconds, or Ctrl-C.",
)
@AUTH
def watch(
    address: str, once: bool, seconds: float | None, every: float, out: str | None, auth: tuple[str, str] | None
) -> int:
    """Watch the Kafka cluster in the ZooKeeper at ADDRESS (host:port/chroot); nothing is written there.

    It shows which broker is the true controller and since when, which partitions are offline or at risk, and which
    request of an administrator waits for what. A partition is at risk if it is offline or its ISR has fewer members
    than min.insync.replicas. A partition with replicas out of sync is also at risk if its ISR has one member left, or
    exactly min.insync.replicas. The command works with Kafka 0.10 to 3.9 as long as the cluster uses ZooKeeper.
    """
    from rich.console import Console

    from kafka_ctl.foreign.watch import watch as watch_cluster

    console = Console(highlight=False, markup=False)
    if not console.is_terminal and not once and seconds is None and out is None:
        raise BadInput(
            "a table that refreshes needs a terminal; --once prints the table once, --seconds N prints it after N "
            "seconds, --out FILE writes the trace"
        )
    with console.status("") as status:
        watched = watch_cluster(address, lambda done, known: status.update(f"{done:,} of {known:,} znodes read"), auth)
    with watched:
        try:
            if out is not None:
                watched.trace.to_parquet(out)  # a path that cannot be written is named now, not after a night
            if not once:
                _refresh(watched, console, seconds, every)
        except KeyboardInterrupt:
            pass
        if once or not console.is_terminal:
            console.print(screen(watched))
        if out is not None:
            watched.trace.to_parquet(out)
            echo(f"wrote {len(watched.trace)} records to {out}")
        if watched.failed is not None:
            raise watched.failed
        return int(once and (watched.summary.at_risk > 0 or unread(watched)))


def _refresh(watched: Watch, console: Console, seconds: float | None, every: float) -> None:
    """Show the table again and again, until the time is over or Ctrl-C; without a terminal, only wait."""
    from rich.live import Live

    end = None if seconds is None else time.monotonic() + seconds
    with Live(screen(watched), console=console, auto_refresh=False, screen=True) as live:
        while watched.failed is None and (end is None or time.monotonic() < end):
            time.sleep(every if end is None else max(0.0, min(every, end - time.monotonic())))
            live.update(screen(watched), refresh=True)


def screen(watched: Watch) -> Table:
    """The cluster as a table of a name and a text in each row; every text is plain."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(watched.address)), show_header=False, title_justify="left")
    for name, text in rows(watched):
        bad = name in ("at risk", "waits", "not understood", "doubt", "migration") or text in ("no connection", "none")
        table.add_row(name, Text(visible(text), style="bold red" if bad else ""))
    return table


def unread(watched: Watch) -> bool:
    """True if a znode that the table counts cannot be read or understood; settings do not count."""
    return any(not path.startswith("/config/") for path in list(watched.cluster.problems))


def rows(watched: Watch) -> list[tuple[str, str]]:
    """The rows of the table."""
    now, controller = watched.summary, watched.controller
    found = [("release", str(watched.release)), ("controller", "none")]
    if controller is not None:
        since = datetime.fromtimestamp(controller.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        epoch = "" if controller.epoch is None else f", epoch {controller.epoch}"
        found[1] = "controller", f"broker {controller.id}{epoch}, since {since} (czxid {controller.czxid:#x})"
        found += [("doubt", controller.doubt)] if controller.doubt else []
    found += [("migration", f"{watched.migrates}; nothing is inferred")] if watched.migrates else []
    new = f"{len(watched.trace) - watched.opened:,} records since the first picture"
    brokers = (f"{id}" if broker.rack is None else f"{id} ({broker.rack})" for id, broker in watched.brokers.items())
    found += [
        ("brokers", f"{now.brokers}: {', '.join(brokers)}"),
        ("partitions", f"{now.partitions:,}"),
        ("offline", f"{now.offline:,}"),
        ("under-replicated", f"{now.under_replicated:,}"),
        ("preferred imbalance", f"{now.preferred_imbalance:,} not led by the first replica"),
        ("pending", f"{now.deletions:,} deletions, {now.reassignments:,} reassignments"),
        ("ISR changes", f"{now.isr_changes_a_minute:,} in the last minute"),
        ("connection", "no connection" if watched.lost else new),
    ]
    risks = [f"{row.topic}-{row.partition}: {row.risk}" for row in watched.partitions(at_risk=True)]
    lists = ("at risk", risks), ("waits", watched.stuck()), ("not understood", list(watched.problems))
    return found + [(name, text) for name, texts in lists for text in _first(texts)]


def _first(texts: list[str]) -> list[str]:
    more = len(texts) - MOST
    return texts if more <= 0 else [*texts[:MOST], f"... and {more:,} more"]
