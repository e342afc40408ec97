"""The time of questions by the number of records: `python -m benchmarks.question_times [--write] 1 3 10 30 100 1000`.

The sizes are in million records, grown from the twelve clusters of the lesson on large histories. `--write` writes
`docs/question-times.md`. A billion records need 1.6 GB of disk and a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.engine import Engine
from kafka_ctl.history import Workload, generate, grow

QUESTIONS = ("unavailability", "shutdown_vs_failure", "failover_time")
CLUSTERS, HOURS = 12, 4
"""Of the lesson's simulated clusters."""
CORES, RUNS = 2, 3
PAGE = Path(__file__).parents[1] / "docs" / "question-times.md"
HEAD = """\
# How long questions take

`python -m benchmarks.question_times --write {sizes}` wrote this page.

The records are those of the lesson on [large histories](../notebooks/25-large-histories.ipynb): twelve simulated
clusters, which `grow` wrote again under other names until there were so many records. Each figure is the processor
time of one question in seconds, on all cores together: the lowest of {runs} runs. "Growth" is the sum as a multiple of
the sum in the row above, and in brackets the same for the number of records. "Memory" is the most that Python and Java
held together while all questions ran.

Measured with Spark on {cores} cores: {machine}. Only processor time
is given, because other programs disturb it less than seconds.

| records | {questions} | sum | growth | memory |
| ---: | {marks} | ---: | ---: | ---: |
"""


def machine() -> str:
    """The processor, the memory and the versions, in one line."""
    known = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in known.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = f"{os.cpu_count()} cores" + (f" ({names[0]})" if names else "")
    return f"{platform.system()} {platform.machine()}, {cores}, {memory:.0f} GiB, Python {platform.python_version()}"


def measure(source: Path, records: int, times: int, folder: Path) -> tuple[int, dict[str, float], int]:
    """The number of records, the processor time of each question, and the most bytes of memory."""
    found = grow(None, source, times, out=folder, processes=CORES)
    print(f"{found.records:,} records, {records:,} of them different", flush=True)
    engine = Engine("spark", str(folder), CORES)
    try:
        took = {name: min(engine.run("ask", name)[1] for _ in range(RUNS)) for name in QUESTIONS}
    finally:
        engine.close()
    return found.records, took, engine.peak


def page(sizes: list[float], lines: list[str]) -> str:
    """The page with the rows that have been measured so far."""
    head = HEAD.format(
        sizes=" ".join(f"{size:g}" for size in sizes),
        runs=RUNS,
        cores=CORES,
        machine=machine(),
        questions=" | ".join(f"`{name}`" for name in QUESTIONS),
        marks=" | ".join(["---:"] * len(QUESTIONS)),
    )
    return head + "".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.question_times", description="The time of questions.")
    parser.add_argument("size", nargs="*", type=float, default=[1, 3, 10], help="million records (default: 1 3 10)")
    parser.add_argument("--write", action="store_true", help="write docs/question-times.md")
    chosen = parser.parse_args(arguments)
    sizes: list[float] = chosen.size
    lines: list[str] = []
    before: tuple[int, float] | None = None
    with tempfile.TemporaryDirectory(prefix="kafka_ctl-benchmark-") as name:
        folder = Path(name)
        lesson = Workload(topics=(2, 6), rate=6, spread=2)
        source = generate(None, CLUSTERS, HOURS, 2, out=folder / "source", workload=lesson)
        for size in sizes:
            times = -(-round(size * 1e6) // source.records)
            records, took, memory = measure(folder / "source", source.records, times, folder / f"{size:g}")
            total = sum(took.values())
            growth = f"{total / before[1]:.1f} ({records / before[0]:.1f})" if before else ""
            before = records, total
            seconds = [f"{each:.1f}" for each in (*took.values(), total)]
            cells = [f"{records:,}", *seconds, growth, f"{memory / 1e9:.1f} GB"]
            lines.append(f"| {' | '.join(cells)} |\n")
            print(lines[-1], end="", flush=True)
            if chosen.write:
                PAGE.write_text(page(sizes[: len(lines)], lines), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
