"""Histories: how fast they are simulated, written and imported; `python -m benchmarks.history [CLUSTERS]`.

`python -m benchmarks.engines` measures the questions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import copies
from benchmarks.figures import Figure, median
from benchmarks.simulator import TIMES, timers
from kafka_ctl.history import generate, import_logs, simulate, spark
from kafka_ctl.history.log_files import read_texts
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.kafka_log.write import kafka_log

CLUSTERS, HOURS, SEED, CORES = 40, 24, 1, 2
IMPORTED = 40e6
"""Bytes of the log that is imported."""
QUICK = {"CLUSTERS": 5, "HOURS": 2, "IMPORTED": 1e6}


def measure(clusters: int | None = None) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _generation(clusters or CLUSTERS, Path(folder))
        yield from _import(Path(folder) / "logs")


def _generation(clusters: int, folder: Path) -> Iterator[Figure]:
    began = time.process_time()
    traces = [simulate(SEED * 1_000_000 + n, HOURS) for n in range(8)]
    simulated = time.process_time() - began
    records = sum(map(len, traces))
    began = time.process_time()
    for trace in traces:
        to_arrow(trace)
    columns = time.process_time() - began
    rate, plain, hours = records / simulated, median(timers, TIMES), HOURS * len(traces)
    yield Figure(
        "simulating, one core",
        f"{rate:,.0f} records/s",
        f"{records:,} records; a plain virtual loop: {plain:,.0f} timers/s, ratio {rate / plain:.2f}; aim: 0.25",
    )
    yield Figure("simulated time, one core", f"{hours / simulated:,.0f} hours/s", f"{hours} hours in {simulated:.1f} s")
    yield Figure("records to columns, one core", f"{records / columns:,.0f} records/s")
    spark(cores=CORES).range(1).count()
    began = time.perf_counter()
    dataset = generate(spark(), clusters, HOURS, SEED, out=folder / "generated")
    generated = dataset.records / (time.perf_counter() - began) / CORES
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    beside = f"{generated / rate:.2f} of simulating; {dataset!r}, {size / dataset.records:.1f} bytes each"
    yield Figure(f"generate in Spark, each of {CORES} cores", f"{generated:,.0f} records/s", beside)
    limit = dataset.records / copies.write(dataset.records, folder / "copied", CORES) / CORES
    yield Figure(
        "copies of simulated clusters, each core", f"{limit:,.0f} records/s", "the limit: nothing is simulated"
    )


def _import(folder: Path) -> Iterator[Figure]:
    folder.mkdir()
    trace = simulate(SEED, HOURS)
    text = "".join(kafka_log(trace, name) for name in ("state-change", "controller"))
    size = len(text) / 1e6
    lines = text.splitlines()
    began = time.process_time()
    count = sum(1 for _ in read_texts(enumerate(lines, 1)))
    taken = time.process_time() - began
    yield Figure("lines of logs, one core", f"{size / taken:.1f} MB/s", f"{count / taken:,.0f} lines/s")
    copies = max(1, int(IMPORTED / 1e6 / size))
    (folder / "state-change.log").write_text(text * copies)
    began = time.perf_counter()
    with (folder / "state-change.log").open() as file:
        sum(1 for _ in file)
    reading = time.perf_counter() - began
    began = time.perf_counter()
    logs = import_logs(spark(), folder)
    taken = time.perf_counter() - began
    beside = f"{taken / reading:.0f} times reading the lines; {logs.rejected.count()} rejected"
    yield Figure("import in Spark, all cores", f"{size * copies / taken:.1f} MB/s", beside)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description="How fast histories are.")
    parser.add_argument("clusters", nargs="?", type=int, help="the clusters to simulate")
    for figure in measure(parser.parse_args().clusters):
        print(f"{figure.name:32} {figure.result:>20}   {figure.beside}", flush=True)
