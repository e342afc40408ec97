"""Runs the benchmarks and prints each figure as it comes: see `benchmarks/__init__.py`."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable
from importlib import import_module

from benchmarks import against
from benchmarks.figures import Figure, figures, shorten
from kafka_ctl.errors import BadInput

ALL = (
    *("importing", "simulator", "travel", "million", "exploring", "controller", "beside_kafka", "first_frame", "views"),
    *("mutants", "fresh_clone", "timing_wheel", "purgatory", "wire", "site"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the kit costs.")
    parser.add_argument("benchmark", nargs="*", help=f"which ones (default: all of {', '.join(ALL)})")
    parser.add_argument("--quick", action="store_true", help="once, and small: whether they run, not how fast")
    parser.add_argument("--against", metavar="COMMIT", help="run this checkout and that commit in turn, print ratios")
    parser.add_argument("--rounds", type=int, default=5, help="with --against: how often each runs (default: 5)")
    asked = parser.parse_args()
    chosen = asked.benchmark or ALL
    if unknown := set(chosen) - set(ALL):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}")
    if asked.rounds < 1:
        parser.error(f"--rounds cannot be {asked.rounds}; it must be 1 or more")
    print(f"Python {platform.python_version()}")
    if asked.against:
        return print_all(against.measure(asked.against, chosen, asked.rounds, asked.quick))
    for name in chosen:
        print(f"\n{name}", flush=True)
        part = import_module(f"benchmarks.{name}")
        if asked.quick:
            shorten(part)
        print_all(figures(part))
    return 0


def print_all(measured: Iterable[Figure]) -> int:
    """Print each figure as it comes; the exit status."""
    try:
        for figure in measured:
            print(f"  {figure.name:60} {figure.result:>24}   {figure.beside}", flush=True)
    except BadInput as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
