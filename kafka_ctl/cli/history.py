"""`kafka-ctl history`: simulate many clusters, read the logs of real ones, and ask either a question.

Exit status 0 when it is done, 1 when something is missing (Java, say), Spark fails, or nothing in the logs was
understood, 2 for a wrong call.

Separate from `commands.py` because that file has the short commands.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from csv import writer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from kafka_ctl.cli.terminal import INT32, Commands, Number, Whole, echo, of_generation
from kafka_ctl.errors import BadInput, KafkaCtlError
from kafka_ctl.history.limits import LONGEST_LIFE, MOST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_ctl.history.log_import import ImportedLogs

TABLES = ("files", "rejected", "records")
"""The tables that `import` writes, in this order: a folder of Parquet files for each."""
MANY = 100_000
"""Records from which on a question takes minutes on a laptop."""
PATIENCE = 5.0
"""Seconds between two lines that say how far a question is."""


@click.group(cls=Commands)
def history() -> None:
    """Simulate many clusters, or read the logs of real ones, and ask questions.

    \b
    kafka-ctl history generate --clusters 100 --out many
    kafka-ctl history ask unavailability_by many
    kafka-ctl history import /var/log/kafka --out mine
    kafka-ctl history ask leader_churn mine
    """


@history.command()
@click.option("--out", required=True, metavar="FOLDER", help="Folder for the histories; any path that Spark can write.")
@click.option("--clusters", default=100, show_default=True, type=Whole(1, MOST["clusters"]), help="Number of clusters.")
@click.option(
    "--hours",
    default=24.0,
    show_default=True,
    type=Number(0, LONGEST_LIFE, min_open=True),
    help="Simulated hours of each cluster.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=Whole(0, MOST["seed"]),
    help="Seed of the clusters and of their events.",
)
@of_generation
@click.option("--overwrite", is_flag=True, help="Replace an existing dataset.")
@click.option("--resume", is_flag=True, help="Finish a dataset that was interrupted.")
def generate(out: str, clusters: int, hours: float, seed: int, generation: str, overwrite: bool, resume: bool) -> None:
    """Simulate clusters with their restarts, failures and reassignments, in Spark's tasks."""
    from kafka_ctl.history import generate, spark
    from kafka_ctl.history.dataset import job_of, noted_in
    from kafka_ctl.history.files import naming
    from kafka_ctl.history.layout import DatasetFolder

    with naming(out, "cannot be written"):  # what cannot be is refused before Spark starts
        noted_in(DatasetFolder(out), job_of(clusters, hours, seed, generation), overwrite, resume)
    how = functools.partial(generate, out=out, generation=generation, overwrite=overwrite, resume=resume)
    echo(f"{how(spark(), clusters, hours, seed)} in {out}")


@history.command(name="import")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Write the tables into this folder.")
def import_(logs: Sequence[str], out: Path | None) -> None:
    """Read state-change.log* and controller.log* of Kafka 0.8 to 3.9, and report what was understood.

    LOG is a file, or a folder with such files in it, including rolled and compressed files. Files that cannot be
    read are named, and the others are read. Exit status 1 if nothing was understood.
    """
    from kafka_ctl.history.files import naming

    with naming(out, "cannot be written"):
        if out is not None and out.exists():
            raise BadInput(f"{out} is there already; name a folder that is not")
    found = _import(list(logs))
    echo(repr(found))
    if out is not None:
        _keep(found, out)


def _import(logs: list[str]) -> ImportedLogs:
    """Read logs, and name the unreadable files. Raises KafkaCtlError, with the reasons, if no line is understood."""
    from kafka_ctl.history import spark
    from kafka_ctl.history.log_import import read_logs

    found = read_logs(spark, logs)
    for problem in found.problems:
        echo(f"kafka-ctl: not read, or not to the end: {problem}", err=True)
    for copy in found.copies:
        echo(f"kafka-ctl: {copy}", err=True)
    if found.files.where("records > 0").isEmpty():
        counted = found.rejected.groupBy("reason").count().orderBy("count", "reason").collect()
        reasons = [f"{row['count']:,} of its lines rejected ({row['reason']})" for row in reversed(counted)]
        reasons += [f"{len(found.problems):,} not read, or not to the end"] if found.problems else []
        raise KafkaCtlError(f"{', '.join(logs)}: nothing was understood: {'; '.join(reasons) or 'there are no lines'}")
    return found


def _keep(found: ImportedLogs, out: Path) -> None:
    """Write the tables under another name first, so that a folder of this name is always whole."""
    from kafka_ctl.history.files import naming
    from kafka_ctl.history.session import failing

    unfinished = out.with_name(f".{out.name}-{uuid4().hex[:8]}")
    try:
        with naming(out, "cannot be written"), failing(f"{out}: writing it"):
            unfinished.mkdir(parents=True)
            for name in TABLES:
                getattr(found, name).write.parquet(str(unfinished / name))
            unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@history.command()
@click.argument("question")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--rows", default=20, show_default=True, type=Whole(1, INT32), help="Print at most so many rows.")
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path), help="Write all rows into this file instead.")
def ask(question: str, sources: Sequence[str], rows: int, csv: Path | None) -> None:
    """Ask QUESTION of a SOURCE: the output of `generate` or `import`, a trace in Parquet, or logs.

    `compare` takes two sources. `kafka-ctl history questions` lists them all.
    """
    from kafka_ctl.history import questions
    from kafka_ctl.history.log_import import ImportedLogs
    from kafka_ctl.history.session import failing
    from kafka_ctl.writing import check_writable

    if question not in questions.__all__:
        raise BadInput(f"no question {question!r}; there are: {', '.join(questions.__all__)}")
    asked = getattr(questions, question)
    needed = [p for p in inspect.signature(asked).parameters.values() if p.annotation == "Records"]
    if len(sources) != len(needed):
        raise BadInput(f"{question} takes {len(needed)} source{'s' * (len(needed) > 1)}, not {len(sources)}")
    if csv is not None:
        check_writable(csv)
    with failing(f"{question} of {' and '.join(sources)}"):
        given = [_records(source) for source in sources]
        with progress(question, sum(source.count() for source in given if not isinstance(source, ImportedLogs))):
            _answer(asked(*given), rows, csv)


def _answer(answer: Any, rows: int, csv: Path | None) -> None:
    """Print an answer as a table, or write it into a file."""
    from kafka_ctl.history.files import naming
    from kafka_ctl.history.questions.frames import in_words
    from kafka_ctl.writing import replacing

    if csv is None:
        with contextlib.redirect_stdout(io.StringIO()) as table:
            in_words(answer).show(rows, truncate=False)
        echo(table.getvalue().removesuffix("\n"))
    else:
        rows_of_all = answer.collect()  # pandas would write an id beside an empty cell as `1.0`
        with (
            naming(csv, "cannot be written"),
            replacing(csv) as unfinished,
            open(unfinished, "w", encoding="utf-8", newline="") as file,
        ):
            writer(file, lineterminator="\n").writerows([answer.columns, *rows_of_all])
        echo(csv)


@contextlib.contextmanager
def progress(question: str, records: int) -> Iterator[None]:
    """Say beforehand that a question is slow, and every few seconds how far it is, on standard error."""
    from kafka_ctl.history import spark

    if records >= MANY:
        echo(f"{question}: {records:,} records; this is slow, it takes some minutes on a laptop", err=True)
    tracker, over, began = spark().sparkContext.statusTracker(), threading.Event(), time.monotonic()

    def follow() -> None:
        while not over.wait(PATIENCE):
            stages = [info for id in tracker.getActiveStageIds() if (info := tracker.getStageInfo(id)) is not None]
            done, tasks = sum(one.numCompletedTasks for one in stages), sum(one.numTasks for one in stages)
            state = f"{done} of {tasks} tasks of this stage" if tasks else "Spark starts and plans the question"
            echo(f"{time.monotonic() - began:5.0f} s  {question}: {state}", err=True)

    watcher = threading.Thread(target=follow, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@history.command(name="questions")
def list_questions() -> None:
    """List the questions that can be asked."""
    from kafka_ctl.history import questions

    width = max(map(len, questions.__all__))
    for name in questions.__all__:
        echo(f"{name:{width}}  {(inspect.getdoc(getattr(questions, name)) or '').splitlines()[0]}")


def _records(source: str) -> DataFrame | ImportedLogs:
    """The records at a source of any kind. Raises BadInput if there are none."""
    from kafka_ctl.history import load, spark
    from kafka_ctl.history.files import naming
    from kafka_ctl.history.layout import MANIFEST, UNFINISHED, DatasetFolder
    from kafka_ctl.history.reading import checked_parquet

    with naming(source, "cannot be read"):
        place = DatasetFolder(source)
        if place.has(MANIFEST) or place.has(UNFINISHED):
            place.manifest()  # an unfinished one is refused before Spark starts
            return load(spark(), source)
        imported = Path(source, "records")
        begun = any(Path(source, TABLES[0], mark).exists() for mark in ("_temporary", "_SUCCESS"))
        if begun and not (imported / "_SUCCESS").exists():
            raise BadInput(f"{source}: an import that did not come to its end; remove it and import again")
        if source.endswith(".parquet") or imported.is_dir():
            table = checked_parquet(imported if imported.is_dir() else source)
            return spark().read.parquet(table)
        return _import([source])
