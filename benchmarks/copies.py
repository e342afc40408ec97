"""Many histories from a few: really simulated ones, written again and again under new names.

python -m benchmarks.copies 100 FOLDER     100 million records, in the layout of `generate`

Simulating 100 million records takes a quarter of an hour; copies take a minute or two, and to an engine that knows
no history from another they are as good. `generate` cannot be faster on this machine than these copies are written.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_ctl.history import simulate
from kafka_ctl.history.dataset import Job, finish, prepare
from kafka_ctl.history.layout import IN_FILES, BucketWriter, DatasetFolder, bucket_of, parts
from kafka_ctl.history.schema import to_arrow

SIMULATED, HOURS, SEED = 48, 24, 1
"""The number of clusters that are really simulated, their hours, and the seed of the first."""
BUCKETS = 8
QUICK = {"SIMULATED": 3, "HOURS": 2}

Parts = list[tuple[str, pa.Table]]
originals: list[pa.Table] = []
original_parts: list[Parts] = []


def simulated() -> list[pa.Table]:
    """The records of the clusters that are copied; simulated once."""
    if not originals:
        originals.extend(to_arrow(simulate(SEED * 1_000_000 + n, HOURS)) for n in range(SIMULATED))
        original_parts.extend(list(parts(table)) for table in originals)
    return originals


def job(records: int) -> Job:
    """As many clusters as have about so many records."""
    each = sum(map(len, simulated())) / len(simulated())
    return Job(max(BUCKETS, round(records / each)), HOURS, SEED, "2.0", BUCKETS)


def write(records: int, path: Path, processes: int = 2) -> float:
    """Write about so many records, and a dataset's manifest; the seconds it took, the simulation not counted."""
    work, place = job(records), DatasetFolder(path)
    prepare(place, work, overwrite=True, resume=False)
    began = time.perf_counter()
    todo = [path] * BUCKETS, [work] * BUCKETS, range(BUCKETS)
    if processes > 1:
        # Forked, so that each process has the originals.
        with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
            list(pool.map(write_bucket, *todo))
    else:
        list(map(write_bucket, *todo))
    finish(place, work)
    return time.perf_counter() - began


def write_bucket(path: Path, work: Job, bucket: int) -> None:
    """The copies whose names fall into one bucket; what one task does."""
    writer = BucketWriter(DatasetFolder(path), bucket)
    for number, name in enumerate(work.names()):
        if bucket_of(name, work.buckets) == bucket:
            writer.histories += 1
            for folder, part in original_parts[number % len(original_parts)]:
                writer.put(folder, part.set_column(0, IN_FILES.field("history"), pa.repeat(name, len(part))))
    writer.commit()


def write_plainly(records: int, path: Path) -> None:
    """The same records as one would write them at first: a folder for each cluster, everything in order of time."""
    for number, name in enumerate(job(records).names()):
        folder = path / f"history={name}"
        folder.mkdir(parents=True)
        pq.write_table(simulated()[number % len(simulated())].drop_columns(["history"]), folder / "records.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description="Write copies of histories.")
    parser.add_argument("millions", type=float, help="million records")
    parser.add_argument("folder", type=Path, help="a new folder for them")
    asked = parser.parse_args()
    taken = write(round(asked.millions * 1e6), asked.folder)
    records = DatasetFolder(asked.folder).manifest()["records"]
    print(f"{records:,} records in {taken:.0f} s, {records / taken:,.0f} a second with 2 processes")


if __name__ == "__main__":
    main()
