"""`kafka-ctl explore`: run random commands, or every order of events, until an invariant is violated.

Exit status 0 when nothing was broken but what is declared, 1 when something was, 2 for a wrong call.

Separate from `commands.py` because that file has the short commands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from kafka_ctl.cli.terminal import INT32, INT64, Number, Whole, of_generation
from kafka_ctl.display import Countdown, counted

if TYPE_CHECKING:
    from kafka_ctl.explore.exhaustive import Search
    from kafka_ctl.explore.search import Findings

F = TypeVar("F", "Findings", "Search")
SECONDS, EVERY = 60.0, 5.0
"""The default length of a random search; the seconds between two lines of progress."""
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@of_generation
@click.option("--seconds", type=Number(0, INT32), help="Stop after this time; 60 if neither this nor --steps is given.")
@click.option(
    "--steps", type=Whole(1, INT64), help="Stop after so many steps; then the walks are the same on every machine."
)
@click.option("--seed", default=0, show_default=True, type=Whole(0, INT64), help="Seed of the first walk.")
@click.option("--jobs", type=Whole(1, 1024), help="Number of processes; one for each core by default.")
@click.option(
    "--out", default="violations", show_default=True, type=FOLDER, help="Folder for stories that violate an invariant."
)
@click.option("--mutant", metavar="NAME", help="Switch on a seeded defect, and report what detects it.")
@click.option("--near", multiple=True, metavar="PATH", help="Vary the stories of this file or folder; repeatable.")
@click.option("--exhaustive", is_flag=True, help="Try every order of pending events after any two commands.")
@click.option("--brokers", default=2, show_default=True, type=Whole(2, 3), help="With --exhaustive: number of brokers.")
@click.option(
    "--partitions", default=1, show_default=True, type=Whole(1, 2), help="With --exhaustive: number of partitions."
)
@click.option(
    "--depth", default=3, show_default=True, type=Whole(1, 50), help="With --exhaustive: number of choices in a row."
)
def explore(
    generation: str,
    seconds: float | None,
    steps: int | None,
    seed: int,
    jobs: int | None,
    out: Path,
    mutant: str | None,
    near: tuple[str, ...],
    exhaustive: bool,
    brokers: int,
    partitions: int,
    depth: int,
) -> int:
    """Run random commands and faults on random clusters, and report which invariants are violated.

    A step is one record of the trace; the invariants are checked after each, and those of a cluster at rest when it
    is quiet. A violation is minimised to the shortest story that violates the same invariant, printed, and written
    into a file that `kafka-ctl run` plays.
    Violations that real Kafka of that generation is known to have are counted, and not reported one by one.

    \b
    kafka-ctl explore --generation 2.4 --seconds 60
    kafka-ctl explore --generation 0.10 --steps 1000000 --seed 5000
    kafka-ctl explore --generation 2.0 --near kafka_ctl/museum/stories --near tests/traces
    kafka-ctl explore --generation 2.4 --exhaustive --brokers 3 --partitions 2 --depth 4
    kafka-ctl explore --generation 2.0 --exhaustive --depth 50 --seconds 300
    """
    verb = "does not go" if exhaustive else "goes"
    for name in ("seed", "steps", "near") if exhaustive else ("brokers", "partitions", "depth"):
        if click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name} {verb} with --exhaustive")
    from kafka_ctl.explore.exhaustive import exhaust
    from kafka_ctl.explore.search import account, search, summary

    if exhaustive:
        run = partial(exhaust, generation, brokers, partitions, depth, seconds, jobs, mutant)
        return _searched(run, _tried, account, out)
    seconds = SECONDS if seconds is None and steps is None else seconds
    walks = partial(search, generation, seed, seconds, steps, jobs, mutant, near=near)
    return _searched(walks, _walked, summary, out)


def _searched(
    run: Callable[[Callable[[F], None]], F], so_far: Callable[[F], str], text: Callable[[F], str], out: Path
) -> int:
    """Search, with `so_far` as progress on standard error, and print what was found; the exit status."""
    progress = Countdown(EVERY, "kafka-ctl explore: ")
    found = run(lambda now: progress(f"{so_far(now)}, {counted(len(now.unknown), 'unknown violation')}"))
    click.echo(text(found))
    return _stories(found, progress, out)


def _walked(f: Findings) -> str:
    return f"{f.walks:,} walk{'s' * (f.walks != 1)}, {f.steps:,} steps"


def _tried(search: Search) -> str:
    tried = search.rounds[-1]
    pairs = f"{counted(tried.depth, 'choice')} deep: {tried.seen.finished} of {tried.cases} pairs of commands"
    return f"{pairs}, {tried.seen.states:,} states, {tried.seen.paths:,} paths"


def _stories(findings: Findings | Search, progress: Countdown, out: Path) -> int:
    """Print and write the shortest story of each unknown violation; the exit status."""
    from kafka_ctl.explore.search import shortest, story_text, write_story

    refused: OSError | None = None
    for found in shortest(findings, lambda runs, lines: progress(f"minimising: {lines} commands after {runs} runs")):
        click.echo(f"\n{story_text(found)}")
        try:
            click.echo(f"# written to {write_story(found, out)}")
        except OSError as trouble:
            refused = trouble  # the other stories are printed all the same
    if refused is not None:
        raise refused
    return int(bool(findings.unknown))
