"""Many histories from a few: really simulated ones, written again and again under new names.

python -m benchmarks.copies 100 FOLDER     100 million records, in the layout of `generate`

Simulating 100 million records takes a quarter of an hour; copies take a minute or two, and to an engine that knows
no history from another they are as good. How fast they are written is the limit for `generate` on this machine.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from kafka_ctl.history import simulate
from kafka_ctl.history.dataset import Job, finish, prepare
from kafka_ctl.history.layout import IN_FILES, BucketWriter, Place, bucket_of, parts
from kafka_ctl.history.schema import to_arrow

SIMULATED, HOURS, SEED = 48, 24, 1
"""How many clusters are really simulated, for how long, and the seed of the first."""
BUCKETS = 16

Parts = list[tuple[str, pa.Table]]


def simulated() -> list[Parts]:
    """The records of the clusters that are copied, by folder."""
    tables = (to_arrow(simulate(SEED * 1_000_000 + n, HOURS)) for n in range(SIMULATED))
    return [list(parts(table)) for table in tables]


_originals: list[Parts] = []


def write(records: int, path: Path, processes: int = 2) -> float:
    """Write about so many records, and a dataset's manifest; the seconds it took, the simulation not counted."""
    _originals[:] = _originals or simulated()
    each = sum(len(part) for parts in _originals for _, part in parts) / SIMULATED
    job = Job(max(BUCKETS, round(records / each)), HOURS, SEED, "2.0", BUCKETS)
    place = Place(path)
    prepare(place, job, overwrite=True, resume=False)
    began = time.perf_counter()
    # Forked, so that each process has the originals.
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        list(pool.map(write_bucket, [path] * BUCKETS, [job] * BUCKETS, range(BUCKETS)))
    finish(place, job)
    return time.perf_counter() - began


def write_bucket(path: Path, job: Job, bucket: int) -> None:
    """The copies whose names fall into one bucket; what one task does."""
    writer = BucketWriter(Place(path), bucket)
    for number, name in enumerate(job.names()):
        if bucket_of(name, job.buckets) == bucket:
            writer.histories += 1
            for folder, part in _originals[number % SIMULATED]:
                writer.put(folder, part.set_column(0, IN_FILES.field("history"), pa.repeat(name, len(part))))
    writer.commit()


def main() -> None:
    millions, folder = float(sys.argv[1]), Path(sys.argv[2])
    taken = write(round(millions * 1e6), folder)
    records = Place(folder).manifest()["records"]
    print(f"{records:,} records in {taken:.0f} s, {records / taken:,.0f} a second with 2 processes")


if __name__ == "__main__":
    main()
