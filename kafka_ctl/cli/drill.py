"""`kafka-ctl drill`: what if a broker dies, two, a rack; a rolling restart; a plan.

Separate from `commands.py` because that file has the short commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_ctl.cli.terminal import AUTH, INT64, Whole, echo
from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput
from kafka_ctl.extras import needed_for
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.writing import check_writable, replacing

if TYPE_CHECKING:
    from kafka_ctl.drills.drill import Drill

UNCLEAN: dict[str | None, bool | str | None] = {"on": True, "off": False, "both": "both", None: None}


def _checked(context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """The file of a picture; its ending and its place are checked before anything is played."""
    if file:
        with needed_for("a plot"):
            from kafka_ctl.drills.drill import check_ending
        check_ending(file)
        check_writable(file)
    return file


def _made(context: click.Context, option: click.Parameter, folder: Path | None) -> Path | None:
    """The folder of the stories; a place where they cannot be written is refused before anything is played."""
    if folder is not None:
        there = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        check_writable(folder / "01.txt")
        if not there:
            folder.rmdir()
    return folder


@click.command()
@click.argument("cluster")
@click.argument("questions", nargs=-1)
@click.option("--generation", type=click.Choice(list(GENERATIONS)), help="Generation of the controller that plays.")
@click.option("--rack", "racks", multiple=True, metavar="ID=RACK", help="Rack of a broker; repeatable.")
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="Setting of all brokers; repeatable.")
@click.option("--unclean", type=click.Choice(["on", "off", "both"]), help="Unclean leader election of the brokers.")
@click.option("--sample", type=Whole(1, INT64), help="Play at most so many scenarios of a question, at random.")
@click.option("--seed", default=0, show_default=True, type=Whole(0, INT64), help="Seed of the sample.")
@click.option("--jobs", type=Whole(1, 1024), help="Number of processes; one for each core if it is worth it.")
@click.option(
    "--stories",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_made,
    help="Write a story for each row there.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False), metavar="FILE", callback=_checked, help="Draw the table into this file."
)
@AUTH
def drill(
    cluster: str,
    questions: tuple[str, ...],
    generation: str | None,
    racks: tuple[str, ...],
    config: tuple[str, ...],
    unclean: str | None,
    sample: int | None,
    seed: int,
    jobs: int | None,
    stories: Path | None,
    plot: str | None,
    auth: tuple[str, str] | None,
) -> None:
    """Play failures, restarts and plans in copies of CLUSTER, and print the outcomes, the worst first.

    CLUSTER is a file with the output of `kafka-topics --describe`, or host:port/chroot of a ZooKeeper, which is only
    read. QUESTIONS, `any one` by default:

    \b
    broker 3                  the broker dies
    rack b, any rack          all brokers of the rack die at once
    any one, any two          every broker, every pair
    rolling restart 3,1,2     controlled shutdowns and starts, one after the other
    plan.json, kill 3         a reassignment plan; any command of a story

    \b
    kafka-topics --describe --zookeeper zk1:2181 > mine.txt
    kafka-ctl drill mine.txt "any two" --sample 100 --config min.insync.replicas=2
    kafka-ctl drill mine.txt "rack b" --rack 1=a --rack 2=b --rack 3=b --unclean both
    kafka-ctl drill mine.txt "rolling restart 3,1,2" plan.json --stories what-if
    """
    from kafka_ctl.drills import drill as drills
    from kafka_ctl.lab.story import json_or_text

    settings = {key: json_or_text(text) for key, text in (_pair("--config", text) for text in config)}
    options = {name: value for name, value in (("generation", generation), ("config", settings)) if value}
    found = drills.open_cluster(cluster, dict(map(_rack, racks)), auth, **options)
    outcomes = drills.drill(found, *questions, unclean=UNCLEAN[unclean], sample=sample, seed=seed, jobs=jobs)
    echo(outcomes)
    if plot:
        with replacing(plot) as unfinished:
            outcomes.plot().savefig(unfinished, format=Path(plot).suffix[1:])
    if stories:
        _write(outcomes, stories)


def _pair(option: str, text: str) -> tuple[str, str]:
    """Both sides of the first `=`. Raises BadInput where one is missing, and where a rack's broker is no number."""
    name, _, value = text.partition("=")
    if not name or not value or (option == "--rack" and parse_int(name) is None):
        raise BadInput(f"{option} {text!r}: {'ID=RACK' if option == '--rack' else 'KEY=VALUE'} is expected")
    return name, value


def _rack(text: str) -> tuple[int, str]:
    id, rack = _pair("--rack", text)
    return int(id), rack


def _write(outcomes: Drill, folder: Path) -> None:
    """Write the stories of all rows: 01.txt is the worst."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(2, len(str(len(outcomes))))
    for row in range(len(outcomes)):
        (folder / f"{row + 1:0{digits}}.txt").write_text(outcomes.story(row), "utf-8")
    echo(f"{len(outcomes)} stories written to {folder}; `kafka-ctl render` draws one")
