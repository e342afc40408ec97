"""Spark beside DuckDB and polars: every question, on the same files, in one run, with 2 cores each.

python -m benchmarks.engines 1 10 100      sizes in million records; writes 4 MB for each million
python -m benchmarks.engines --plain 10    Spark on our layout beside Spark on one folder for each cluster

Each engine is a process; a question goes to one after the other, so that whatever else the machine does slows all of
them alike. All must give the same answer: rows, and the sum of each column. Times are the best of five runs
after that; processor time is less disturbed by others than seconds are. `pip install -e '.[bench]'` brings DuckDB and
polars. The data are copies of really simulated histories (`benchmarks/copies.py`).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import copies
from benchmarks.engine import QUESTIONS, Engine

ENGINES = ("spark", "duckdb", "polars")
CORES, RUNS = 2, 5
QUICK = {"RUNS": 1}
DERIVED = ("broker_churn", "preferred_leader_recovery", "unavailability_by")
"""Not measured: they sum up what departures, imbalance and unavailability answer, which are."""

Times = dict[str, tuple[float, float]]
"""By engine: seconds, and seconds of processor time."""


def same(digests: dict[str, dict[str, Any]]) -> None:
    """Raise AssertionError unless all engines counted the same rows and the same sums."""
    first, *others = digests
    for other in others:
        ours, theirs = digests[first], digests[other]
        assert ours.keys() == theirs.keys(), f"{first} has {list(ours)}, {other} {list(theirs)}"
        for column, found in ours.items():
            close = math.isclose(found or 0, theirs[column] or 0, rel_tol=1e-9, abs_tol=1e-6)
            assert close, f"{column}: {first} says {found}, {other} {theirs[column]}"


def measure(question: str, engines: dict[str, Engine]) -> Times:
    """The best of some runs of each engine, in turn, after one that compares the answers."""
    same({name: engine.run("digest", question)[2] for name, engine in engines.items()})
    runs = [{name: engine.run("ask", question)[:2] for name, engine in engines.items()} for _ in range(RUNS)]
    return {name: (min(run[name][0] for run in runs), min(run[name][1] for run in runs)) for name in engines}


def shown(what: str, times: Times) -> None:
    """A line: seconds (and processor seconds) of each, and how many times each other engine's Spark's are."""
    spark = times["spark"]
    columns = [f"{name} {s:7.2f} ({cpu:7.2f})" for name, (s, cpu) in times.items()]
    beside = [f"{spark[0] / s:5.2f} ({spark[1] / cpu:5.2f}) x {name}" for name, (s, cpu) in times.items() if s and cpu]
    print(f"{what:24}", *columns, *beside[1:], sep="  ", flush=True)


def compare(engines: dict[str, Engine]) -> Times:
    """All questions, to all engines; the sums."""
    total = dict.fromkeys(engines, (0.0, 0.0))
    try:
        for question in QUESTIONS:
            times = measure(question, engines)
            shown(question, times)
            total = {n: (total[n][0] + times[n][0], total[n][1] + times[n][1]) for n in engines}
    finally:
        for engine in engines.values():
            engine.close()
    shown("all questions", total)
    print("peak memory:", ", ".join(f"{n} {e.peak / 1e9:.2f} GB" for n, e in engines.items()), flush=True)
    return total


def plainly(records: int, folder: Path) -> None:
    """The gain by the layout."""
    copies.write(records, folder / "ours")
    copies.write_plainly(records, folder / "plain")
    places = {"spark": folder / "ours", "plain layout": folder / "plain"}
    compare({name: Engine("spark", str(path), CORES) for name, path in places.items()})


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("size", nargs="*", type=float, default=[1, 10], help="million records (default: 1 10)")
    parser.add_argument("--plain", action="store_true", help="Spark on our layout beside Spark on a plain one")
    chosen = parser.parse_args(arguments)
    sizes: list[float] = chosen.size
    totals: list[Times] = []
    with tempfile.TemporaryDirectory(prefix="kafka_ctl-benchmark-") as folder:
        for size in sizes:
            print(f"\n{size:g} million records: seconds (and of processor time), Spark's as a multiple of the others'")
            path = Path(folder, f"{size:g}")
            if chosen.plain:
                plainly(round(size * 1e6), path)
                continue
            copies.write(round(size * 1e6), path)
            totals.append(compare({name: Engine(name, str(path), CORES) for name in ENGINES}))
    for before, after, (small, large) in zip(totals, totals[1:], pairwise(sizes), strict=False):
        slope = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in ENGINES}
        shown(f"{small:g} to {large:g} million", slope)


if __name__ == "__main__":
    main(sys.argv[1:])
